//! Detects programs in Python or JavaScript instead of Clojure. The checks apply only to constructs that no Clojure
//! program has at its top level, and to text that cannot be read.

use crate::error::Error;
use crate::form::{Form, FormKind};
use crate::span::Span;

/// Words that begin a statement in other languages, each with the advice for this one.
const STATEMENTS: &[(&str, &str)] = &[
    (
        "import",
        "everything is loaded already, so leave the line out: `json/parse`, `str/join`, `re-seq` are built in; `(dir)` lists the rest",
    ),
    (
        "from",
        "everything is loaded already, so leave the line out: `json/parse`, `str/join`, `re-seq` are built in; `(dir)` lists the rest",
    ),
    ("def", "a function is `(defn f [x] (+ x 1))`, a value `(def x 5)`, and `(f 1)` calls"),
    ("function", "a function is `(defn f [x] (+ x 1))`, without a name `(fn [x] (+ x 1))`, and `(f 1)` calls"),
    ("async", "a function is `(defn f [x] (+ x 1))`; tool calls are awaited automatically"),
    ("await", "tool calls are awaited automatically: `(server/tool {:id 1})`"),
    ("class", "there are no classes: data is maps, `{:name \"Ann\" :age 3}`, and functions work on them"),
    ("const", "define with `(def name value)`, locally `(let [name value] …)`; `xs.map(f)` is `(map f xs)`"),
    ("let", "define with `(def name value)`, locally `(let [name value] …)`; `xs.map(f)` is `(map f xs)`"),
    ("var", "define with `(def name value)`, locally `(let [name value] …)`; `xs.map(f)` is `(map f xs)`"),
    (
        "for",
        "`(doseq [x xs] (println x))` iterates over a collection, `(for [x xs :when (odd? x)] (* 2 x))` gives values",
    ),
    ("while", "`(loop [i 0] (if (< i 10) (recur (inc i)) i))` loops while a test holds"),
    ("if", "`(if (> x 5) a b)` chooses between two values, `(cond (> x 5) a (> x 1) b :else c)` among more"),
    ("elif", "`(cond (> x 5) a (> x 1) b :else c)` chooses among several"),
    ("return", "the last form of a function is its value"),
    ("try", "errors are caught with `(try (f x) (catch Exception e (ex-message e)))`"),
    ("with", "bind with `(let [name value] …)`"),
    ("print", "print with `(println x)`"),
];

/// Returns the first position at the top level that shows another language, with an error that suggests the equivalent.
pub fn at_top_level(forms: &[Form], program: &str) -> Option<(Span, Error)> {
    for (at, form) in forms.iter().enumerate() {
        let next = forms.get(at + 1);
        if let (Some(name), Some(next)) = (form.as_symbol(), next) {
            let adjacent = form.span.end == next.span.start;
            let same_line =
                program.get(form.span.end as usize..next.span.start as usize).is_some_and(|gap| !gap.contains('\n'));
            if let Some((_, advice)) =
                STATEMENTS.iter().find(|(word, _)| *word == name && same_line && *word != "print")
            {
                return Some((form.span, other_language(advice)));
            }
            if adjacent && next.as_list().is_some() {
                return Some((form.span, call_of(name, next, program)));
            }
        }
        if at > 0 && matches!(form.as_symbol(), Some("=" | ":=" | "+=" | "-=")) {
            let name = forms[at - 1].as_symbol().unwrap_or("x");
            return Some((
                form.span,
                other_language(&format!("define with `(def {name} value)`, locally `(let [{name} value] …)`")),
            ));
        }
        if let FormKind::Vector(items) = &form.kind
            && items.iter().any(|item| item.is_symbol("for"))
            && items.iter().any(|item| item.is_symbol("in"))
        {
            return Some((
                form.span,
                other_language("a comprehension is `(for [x xs :when (odd? x)] (* 2 x))`, numbers are `(range 10)`"),
            ));
        }
    }
    None
}

/// Builds the error for `print("hello")`, where the bracket follows the name.
fn call_of(name: &str, list: &Form, program: &str) -> Error {
    let inside = program.get(list.span.start as usize + 1..list.span.end as usize - 1).unwrap_or_default();
    let inside = if inside.len() > 80 || inside.contains('\n') { "…" } else { inside };
    let (object, method) = match name.rsplit_once('.') {
        Some((object, method)) if !object.is_empty() && object != "console" => (Some(object), method),
        _ => (None, name),
    };
    let function = match method {
        "print" | "console.log" | "printf" | "log" => "println",
        "len" => "count",
        other => other,
    };
    let arguments: Vec<&str> =
        [inside, object.unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect();
    let call = format!("({function} {})", arguments.join(" "));
    Error::new(
        "SyntaxError",
        format!("`{name}(…)` is a call of another language: here the name goes inside the brackets"),
    )
    .suggest(format!("write `{}`", call.replace(" )", ")")))
}

fn other_language(advice: &str) -> Error {
    Error::new("SyntaxError", "this is another language: programs here are Clojure, and every form is in brackets")
        .suggest(advice)
}

/// Returns advice for a text that cannot be read, if some of its lines are in another language.
pub fn advice(program: &str) -> Option<String> {
    const MOST: usize = 3;
    let mut found: Vec<&str> = Vec::new();
    for line in program.lines().map(str::trim).filter(|line| !line.starts_with([';', '('])) {
        if let Some(advice) = statement(line)
            && !found.contains(&advice)
            && found.len() < MOST
        {
            found.push(advice);
        }
    }
    (!found.is_empty()).then(|| found.join("; "))
}

/// Returns the advice for a line that is a statement of another language.
fn statement(line: &str) -> Option<&'static str> {
    let (word, rest) = line.split_once([' ', '(']).unwrap_or((line, ""));
    let is_statement = match word {
        "def" => rest.contains('(') && line.ends_with(':'),
        "class" | "elif" | "while" | "with" | "try" | "try:" => line.ends_with([':', '{']),
        "for" | "if" => line.ends_with([':', '{', '}']) || rest.contains(" in "),
        "import" | "from" | "return" | "const" | "let" | "var" | "function" | "async" | "await" => true,
        "print" => line.ends_with(')') && !rest.is_empty(),
        _ => false,
    };
    let word = word.trim_end_matches(':');
    let known = STATEMENTS.iter().find(|(known, _)| is_statement && *known == word);
    known.map(|(_, advice)| *advice).or_else(|| {
        line.contains("=> ")
            .then_some("a function without a name is `(fn [x] (* x 2))` or `#(* % 2)`, and `xs.map(f)` is `(map f xs)`")
    })
}
