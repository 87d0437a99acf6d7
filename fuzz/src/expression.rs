//! Expressions of the language as structured input: the fuzzer mutates a tree, so that most programs pass the reader
//! and reach deep into the functions.

use super::vocabulary::{examples, functions};
use arbitrary::Arbitrary;

/// An expression. The first variant is the one generated when the input is exhausted.
#[derive(Arbitrary, Clone, Debug)]
pub enum Expression {
    Nil,
    Small(i8),
    Integer(i64),
    Float(f64),
    Scalar(u8),
    Text(String),
    Keyword(u8),
    /// A local variable, counted from the innermost.
    Local(u8),
    /// One of the session's global names, bound or unbound.
    Global(u8),
    /// A function of the language as a value.
    Function(u16),
    /// A call of a function of the language, with a number of arguments that it accepts.
    Call(u16, Vec<Expression>),
    /// A call from the documentation, with some of its arguments replaced.
    Example(u16, Vec<(u8, Expression)>),
    Apply(Box<Expression>, Vec<Expression>),
    Vector(Vec<Expression>),
    List(Vec<Expression>),
    Set(Vec<Expression>),
    Map(Vec<(Expression, Expression)>),
    Quoted(Box<Expression>),
    If(Box<Expression>, Box<Expression>, Box<Expression>),
    Do(Vec<Expression>),
    Let(Vec<Expression>, Box<Expression>),
    Lambda(u8, bool, Box<Expression>),
    Loop(u8, Box<Expression>, Box<Expression>),
    For(Box<Expression>, Option<Box<Expression>>, Box<Expression>),
    Lazy(Box<Expression>, Box<Expression>),
    Delay(Box<Expression>),
    Atom(Box<Expression>),
    Swap(Box<Expression>, Box<Expression>),
    Deref(Box<Expression>),
    Try(Box<Expression>, Box<Expression>, Option<Box<Expression>>),
    Throw(Box<Expression>),
    Thread(bool, Box<Expression>, Vec<Expression>),
    Define(u8, Box<Expression>),
    DefineFunction(u8, u8, Box<Expression>),
    Binding(u8, Box<Expression>, Box<Expression>),
    Record(u8, Vec<Expression>),
    Destructure(Box<Expression>, Box<Expression>),
    Macro(u8, Box<Expression>),
}

const SCALARS: &[&str] = &[
    "true",
    "false",
    "0",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "123456789012345678901234567890N",
    "0.1M",
    "1e30M",
    "##Inf",
    "##-Inf",
    "##NaN",
    "-0.0",
    "1e308",
    "\\a",
    "\\newline",
    "\\u0000",
    "#\"a+\"",
    "#\"(?i)(x)|(y*)\"",
    "'sym",
    "'a/b",
    "\"\"",
    "\"é\\u0000😀\"",
    "\"2024-02-29\"",
    "#inst \"2024-02-29T12:00:00Z\"",
    "#time/date \"2024-02-29\"",
    "(range)",
    "(range 100)",
    "(iterate inc 0)",
    "(repeat 1)",
    "(cycle [1 2])",
    "{:a {:b [1 2 3]}}",
    "{\"a\" 1}",
    "[[1 2] [3 4]]",
    "(sorted-map 2 :b 1 :a)",
    "(sorted-set 3 1 2)",
    "(sorted-map-by > 1 2)",
    "(transient [])",
    "(transient {})",
    "(list 1 2)",
    "'()",
    "[]",
    "{}",
    "#{}",
    "(volatile! 1)",
    "(map inc)",
    "(comp (map inc) (filter odd?))",
    "(Exception. \"x\")",
    "(json/parse \"{\\\"a b\\\":[1,2.5,null]}\")",
    "(zipmap (range 40) (range))",
    "(vec (range 70))",
    "^{:m 1} [1]",
    "#'map",
    "*ns*",
    "(java.util.Date. 0)",
    "(bigint 10)",
    "(str/repeat \"ab\" 50)",
    "\"a,b\\n1,2\\n\"",
    "(seq \"abc\")",
    "(first {:a 1})",
    "(lazy-seq [1 2])",
    "(reduced 1)",
    "(object-array 2)",
];

const KEYWORDS: &[&str] = &[":a", ":b", ":c", ":name", ":else", ":as", ":keys", ":a/b", ":default", ":key", ":id"];

const MACROS: &[&str] = &[
    "when",
    "not",
    "and",
    "or",
    "when-let [v 1]",
    "if-let [v nil]",
    "dotimes [i 3]",
    "doseq [v [1 2]]",
    "with-out-str",
    "lazy-cat",
    "cond-> 1 true",
    "as-> 1 v",
    "case 1 1",
    "condp = 1 1",
    "doto",
    "some->",
    "->>",
    "letfn [(f [x] x)]",
    "time",
    "assert",
    "while",
    "pmap (fn [v] v)",
    "pcalls",
    "comment",
    "fn []",
    "#(do %1)",
    "defmacro m [x]",
    "macroexpand-1",
    "deftest t",
    "is",
    "with-redefs [d0 1]",
    "reify",
    "memoize",
    "trampoline",
    "locking 1",
    "delay",
    "declare",
    "str",
    "println",
    "prn",
    "for [v [1 2] :let [w v]]",
    "loop [v 0]",
    "vswap! (volatile! 1)",
    "binding [*print-length* 2]",
    "with-in-str \"a b\"",
    "json/write",
    "pr-str",
    "read-string",
    "eval",
    "defmulti",
    "defonce d0",
    "extend-protocol",
    "iteration",
    "doc",
    "source",
];

/// Maximum depth to which expressions are written out. Each level opens up to three brackets, so that the text remains
/// below the nesting limit of the reader.
const DEPTH: usize = 60;

/// A program: a sequence of forms, each of which is a transaction.
#[derive(Arbitrary, Clone, Debug)]
pub struct Program {
    forms: Vec<Expression>,
    last: Expression,
}

impl Program {
    /// Returns the program text.
    pub fn text(&self) -> String {
        let mut writer = Writer { out: String::new(), scope: 0, depth: 0 };
        for form in self.forms.iter().take(8).chain([&self.last]) {
            writer.expression(form);
            writer.out.push('\n');
        }
        writer.out
    }
}

struct Writer {
    out: String,
    /// The number of locals in scope: `x0`, `x1`, …
    scope: usize,
    depth: usize,
}

impl Writer {
    fn expression(&mut self, expression: &Expression) {
        if self.depth >= DEPTH || self.out.len() > 30_000 {
            return self.word("nil");
        }
        self.depth += 1;
        self.inner(expression);
        self.depth -= 1;
    }

    fn inner(&mut self, expression: &Expression) {
        match expression {
            Expression::Nil => self.word("nil"),
            Expression::Small(number) => self.word(&number.to_string()),
            Expression::Integer(number) => self.word(&number.to_string()),
            Expression::Float(number) if number.is_finite() => self.word(&format!("{number:?}")),
            Expression::Float(_) => self.word("1.5"),
            Expression::Scalar(at) => self.word(chosen(SCALARS, *at)),
            Expression::Text(text) => self.text(text),
            Expression::Keyword(at) => self.word(chosen(KEYWORDS, *at)),
            Expression::Local(_) if self.scope == 0 => self.word("*1"),
            Expression::Local(at) => self.word(&format!("x{}", self.scope - 1 - usize::from(*at) % self.scope)),
            Expression::Global(at) => self.word(&global(*at)),
            Expression::Function(at) => self.word(&functions()[usize::from(*at) % functions().len()].name),
            Expression::Call(at, arguments) => self.call(*at, arguments),
            Expression::Example(at, exchanged) => self.example(*at, exchanged),
            Expression::Apply(function, arguments) => self.within("(", [&**function].into_iter().chain(arguments), ")"),
            Expression::Vector(items) => self.within("[", items, "]"),
            Expression::List(items) => self.within("(list", items, ")"),
            Expression::Set(items) => self.within("(hash-set", items, ")"),
            Expression::Map(entries) => {
                self.within("(hash-map", entries.iter().flat_map(|(key, value)| [key, value]), ")");
            }
            Expression::Quoted(quoted) => self.within("(quote", [&**quoted], ")"),
            Expression::If(test, then, otherwise) => self.within("(if", [&**test, then, otherwise], ")"),
            Expression::Do(forms) => self.within("(do", forms, ")"),
            Expression::Let(values, body) => self.bind(values, body),
            Expression::Lambda(count, has_rest, body) => self.lambda("fn", *count % 4, *has_rest, body),
            Expression::Loop(turns, start, body) => self.turns(*turns, start, body),
            Expression::For(items, test, body) => self.comprehension(items, test.as_deref(), body),
            Expression::Lazy(first, rest) => self.within("(lazy-seq (cons", [&**first, rest], "))"),
            Expression::Delay(body) => self.within("(delay", [&**body], ")"),
            Expression::Atom(value) => self.within("(atom", [&**value], ")"),
            Expression::Swap(cell, function) => self.within("(swap!", [&**cell, function], ")"),
            Expression::Deref(cell) => self.within("(deref", [&**cell], ")"),
            Expression::Try(body, handler, ending) => self.attempt(body, handler, ending.as_deref()),
            Expression::Throw(value) => self.within("(throw (ex-info \"thrown\" {:v", [&**value], "}))"),
            Expression::Thread(last, start, steps) => {
                let opening = if *last { "(->>" } else { "(->" };
                self.within(opening, [&**start].into_iter().chain(steps), ")");
            }
            Expression::Define(at, value) => self.within(&format!("(def {}", global(*at)), [&**value], ")"),
            Expression::DefineFunction(at, count, body) => {
                self.lambda(&format!("defn {}", global(*at)), *count % 4, false, body);
            }
            Expression::Binding(at, value, body) => {
                self.within(&format!("(binding [{}", global(*at)), [&**value], "]");
                self.within("", [&**body], ")");
            }
            Expression::Record(at, values) => {
                let fields: Vec<String> = (0..values.len().min(5)).map(|field| format!("f{field}")).collect();
                self.word(&format!("(do (defrecord R{} [{}])", at % 3, fields.join(" ")));
                self.within(&format!("(->R{}", at % 3), values.iter().take(5), "))");
            }
            Expression::Destructure(value, body) => self.destructure(value, body),
            Expression::Macro(at, body) => self.within(&format!("({}", chosen(MACROS, *at)), [&**body], ")"),
        }
    }

    fn word(&mut self, word: &str) {
        self.out.push_str(word);
        self.out.push(' ');
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.out.extend(['\\', c]),
                c if c.is_ascii_graphic() || c == ' ' || c == '\n' || c.is_alphanumeric() => self.out.push(c),
                c if u32::from(c) < 0x1_0000 => self.out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => self.out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            }
        }
        self.out.push_str("\" ");
    }

    fn within<'e>(&mut self, opening: &str, parts: impl IntoIterator<Item = &'e Expression>, closing: &str) {
        self.word(opening);
        for part in parts {
            self.expression(part);
        }
        self.word(closing);
    }

    /// Writes a call with a number of arguments that the function accepts, dropping or adding arguments if necessary
    /// and possible.
    fn call(&mut self, at: u16, arguments: &[Expression]) {
        let function = &functions()[usize::from(at) % functions().len()];
        let accepts = |count: usize| function.arity.is_none_or(|arity| arity.accepts(count));
        let count = arguments.len();
        let fewer_then_more = (0..=count).rev().chain(count + 1..count + 6);
        let count = fewer_then_more.into_iter().find(|count| accepts(*count)).unwrap_or(count);
        let padding = std::iter::repeat(&Expression::Small(1));
        self.within(&format!("({}", function.name), arguments.iter().chain(padding).take(count), ")");
    }

    fn example(&mut self, at: u16, exchanged: &[(u8, Expression)]) {
        let parts = &examples()[usize::from(at) % examples().len()];
        self.word("(");
        for (place, text) in parts.iter().enumerate() {
            let other = exchanged.iter().find(|(at, _)| place > 0 && usize::from(*at) % parts.len() == place);
            match other {
                Some((_, expression)) => self.expression(expression),
                None => self.word(text),
            }
        }
        self.word(")");
    }

    fn bind(&mut self, values: &[Expression], body: &Expression) {
        let outside = self.scope;
        self.word("(let [");
        for value in values.iter().take(4) {
            self.word(&format!("x{}", self.scope));
            self.expression(value);
            self.scope += 1;
        }
        self.within("]", [body], ")");
        self.scope = outside;
    }

    fn lambda(&mut self, head: &str, count: u8, has_rest: bool, body: &Expression) {
        let outside = self.scope;
        self.word(&format!("({head} ["));
        for _ in 0..count {
            self.word(&format!("x{}", self.scope));
            self.scope += 1;
        }
        if has_rest {
            self.word(&format!("& x{}", self.scope));
            self.scope += 1;
        }
        self.within("]", [body], ")");
        self.scope = outside;
    }

    /// Writes a counting loop; its body computes the value that is passed to the next iteration.
    fn turns(&mut self, turns: u8, start: &Expression, body: &Expression) {
        let (count, result) = (self.scope, self.scope + 1);
        self.within(&format!("(loop [x{count} 0 x{result}"), [start], "]");
        self.scope += 2;
        self.within(&format!("(if (< x{count} {turns}) (recur (inc x{count})"), [body], &format!(") x{result}))"));
        self.scope -= 2;
    }

    fn comprehension(&mut self, items: &Expression, test: Option<&Expression>, body: &Expression) {
        self.within(&format!("(for [x{}", self.scope), [items], "");
        self.scope += 1;
        if let Some(test) = test {
            self.within(":when", [test], "");
        }
        self.within("]", [body], ")");
        self.scope -= 1;
    }

    fn attempt(&mut self, body: &Expression, handler: &Expression, ending: Option<&Expression>) {
        self.within("(try", [body], "");
        self.scope += 1;
        self.within(&format!("(catch Exception x{}", self.scope - 1), [handler], ")");
        self.scope -= 1;
        if let Some(ending) = ending {
            self.within("(finally", [ending], ")");
        }
        self.word(")");
    }

    fn destructure(&mut self, value: &Expression, body: &Expression) {
        let (first, second) = (self.scope, self.scope + 1);
        self.within(&format!("(let [[x{first} & {{:keys [a] :as x{second}}}]"), [value], "]");
        self.scope += 2;
        self.within("", [body], ")");
        self.scope -= 2;
    }
}

fn chosen(words: &[&'static str], at: u8) -> &'static str {
    words[usize::from(at) % words.len()]
}

fn global(at: u8) -> String {
    format!("d{}", at % 4)
}
