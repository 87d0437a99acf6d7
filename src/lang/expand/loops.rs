//! Common Lisp's `loop` with keywords: `(loop for x in xs when (odd? x) collect x)` becomes one `reduce`.
//!
//! The accumulators are passed from iteration to iteration; the collections of all `for` clauses are traversed in
//! parallel. Loops that need more (`then`, `named`, `initially`) raise an error that shows the Clojure equivalent.

use super::dialects::pattern;
use super::{Expander, call, nil};
use crate::error::{Error, Outcome, Signal};
use crate::form::{Form, FormKind};
use crate::span::Span;

/// An accumulator: its keyword, its name, and its initial value.
struct Gathered {
    word: &'static str,
    name: Form,
    is_answer: bool,
}

/// The actions of one iteration, in order.
enum Act {
    /// Adds the value to the accumulator with that index.
    Gather(usize, Form),
    /// Conditional actions: those if the condition holds, and those if it does not.
    When(Form, Vec<Act>, Vec<Act>),
    /// Forms evaluated for their effects.
    Do(Vec<Form>),
    /// Ends the loop unless the condition holds.
    While(Form),
    /// Ends the loop with that value if the condition holds.
    Return(Form, Form),
    /// Ends the loop with the value of a form if it is truthy.
    Found(Form),
    /// Binds a name for the following actions.
    Let(Form, Form),
}

/// The parser's state.
struct Words<'f> {
    rest: &'f [Form],
    span: Span,
    /// Names and the collections that they traverse, in parallel.
    each: Vec<(Form, Form)>,
    outside: Vec<Form>,
    gathered: Vec<Gathered>,
    finally: Option<Form>,
    /// The value of the loop if it has no accumulator and is not ended early.
    otherwise: Option<Form>,
    /// The number of actions of one iteration.
    acts: usize,
}

/// Maximum number of actions in one iteration: each nests the code of the following ones one level deeper.
const ACTS: usize = 256;

const GATHERING: &[(&str, &str)] = &[
    ("collect", "collect"),
    ("collecting", "collect"),
    ("append", "append"),
    ("appending", "append"),
    ("nconc", "append"),
    ("nconcing", "append"),
    ("sum", "sum"),
    ("summing", "sum"),
    ("count", "count"),
    ("counting", "count"),
    ("maximize", "maximize"),
    ("maximizing", "maximize"),
    ("minimize", "minimize"),
    ("minimizing", "minimize"),
];

/// `(loop for x in xs …)`; the colons of keywords are ignored.
pub fn loop_of_words(expander: &mut Expander<'_>, form: &Form, rest: &[Form]) -> Outcome<Form> {
    let mut words = Words {
        rest,
        span: form.span,
        each: Vec::new(),
        outside: Vec::new(),
        gathered: Vec::new(),
        finally: None,
        otherwise: None,
        acts: 0,
    };
    let mut acts = Vec::new();
    while !words.rest.is_empty() {
        expander.macros.charge(1)?;
        if words.clause(expander, &mut acts).is_none() {
            if words.acts > ACTS {
                return expander.fail(form.span, format!("a `loop` takes at most {ACTS} clauses that do something"));
            }
            return Err(Signal::from(not_here(rest)).at(expander.source, form.span));
        }
    }
    expander.macros.charge((words.acts * (words.gathered.len() + 1)) as u64)?;
    Ok(words.assemble(expander, acts))
}

fn word(form: &Form) -> Option<&str> {
    form.as_symbol().or(form.as_keyword())
}

impl Words<'_> {
    fn form(&mut self) -> Option<Form> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first.clone())
    }

    /// Consumes the next word if it is one of these.
    fn take(&mut self, words: &[&str]) -> bool {
        let found = self.rest.first().and_then(word).is_some_and(|word| words.contains(&word));
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    /// Parses one clause of the loop; `None` if it is not supported.
    fn clause(&mut self, expander: &mut Expander<'_>, acts: &mut Vec<Act>) -> Option<()> {
        if self.take(&["for", "as"]) {
            return self.each(expander, acts);
        }
        if self.take(&["with"]) {
            let name = pattern(&self.form()?);
            let value = if self.take(&["="]) { self.form()? } else { nil(self.span) };
            self.outside.extend([name, value]);
        } else if self.take(&["repeat"]) {
            let (unused, count) = (expander.fresh("round", self.span), self.form()?);
            self.each.push((unused, call("core/range", vec![count], self.span)));
        } else if self.take(&["finally"]) {
            let last = self.form()?;
            self.finally = match last.as_list() {
                Some([head, value]) if head.is_symbol("return") => Some(value.clone()),
                _ if word(&last) == Some("return") => Some(self.form()?),
                _ => None,
            };
            self.finally.as_ref()?;
        } else {
            let act = self.act(expander)?;
            acts.push(act);
        }
        Some(())
    }

    /// Parses the rest of a `for` clause.
    fn each(&mut self, expander: &mut Expander<'_>, acts: &mut Vec<Act>) -> Option<()> {
        let span = self.span;
        let name = pattern(&self.form()?);
        if self.take(&["in", "across", "elements"]) {
            let collection = self.form()?;
            self.each.push((name, collection));
        } else if self.take(&["on"]) {
            let (seq, rest) = (Form::symbol("core/seq", span), Form::symbol("core/rest", span));
            let tails = call("core/iterate", vec![rest, self.form()?], span);
            let tails = call("core/take-while", vec![seq, tails], span);
            self.each.push((name, tails));
        } else if self.take(&["="]) {
            let value = self.form()?;
            if self.take(&["then"]) {
                return None;
            }
            acts.push(Act::Let(name, value));
        } else if self.take(&["being"]) {
            self.table(name)?;
        } else {
            self.numbers(expander, name)?;
        }
        Some(())
    }

    /// `for k being the hash-keys of h using (hash-value v)`
    fn table(&mut self, name: Form) -> Option<()> {
        self.take(&["the", "each"]);
        let keys = self.take(&["hash-key", "hash-keys"]);
        if !keys && !self.take(&["hash-value", "hash-values"]) {
            return None;
        }
        if !self.take(&["of", "in"]) {
            return None;
        }
        let table = self.form()?;
        let other = if self.take(&["using"]) { Some(self.form()?.as_list()?.get(1)?.clone()) } else { None };
        let other = other.unwrap_or_else(|| Form::symbol("_", self.span));
        let pair = if keys { vec![name, other] } else { vec![other, name] };
        self.each.push((Form::vector(pair, self.span), table));
        Some(())
    }

    /// `for i from 1 to 10 by 2`
    fn numbers(&mut self, expander: &mut Expander<'_>, name: Form) -> Option<()> {
        let span = self.span;
        let one = || Form::new(FormKind::Int(1), span);
        let (mut start, mut end, mut step, mut down, mut within) = (None, None, None, false, true);
        loop {
            if self.take(&["from", "upfrom"]) {
                start = Some(self.form()?);
            } else if self.take(&["downfrom"]) {
                (start, down) = (Some(self.form()?), true);
            } else if self.take(&["to", "upto"]) {
                end = Some(self.form()?);
            } else if self.take(&["downto"]) {
                (end, down) = (Some(self.form()?), true);
            } else if self.take(&["below"]) {
                (end, within) = (Some(self.form()?), false);
            } else if self.take(&["above"]) {
                (end, down, within) = (Some(self.form()?), true, false);
            } else if self.take(&["by"]) {
                step = Some(self.form()?);
            } else {
                break;
            }
        }
        if start.is_none() && end.is_none() {
            return None;
        }
        let start = start.unwrap_or_else(|| Form::new(FormKind::Int(0), span));
        let step = step.unwrap_or_else(one);
        let step = if down { call("core/-", vec![step], span) } else { step };
        let numbers = match end {
            None => call(
                "core/iterate",
                vec![call("core/partial", vec![Form::symbol("core/+", span), step], span), start],
                span,
            ),
            Some(end) if within => {
                let held = expander.fresh("end", span);
                let beyond = call(if down { "core/dec" } else { "core/inc" }, vec![held.clone()], span);
                let range = call("core/range", vec![start, beyond, step], span);
                call("let", vec![Form::vector(vec![held, end], span), range], span)
            }
            Some(end) => call("core/range", vec![start, end, step], span),
        };
        self.each.push((name, numbers));
        Some(())
    }

    /// Parses one action: accumulation, condition, effect, or end.
    fn act(&mut self, expander: &mut Expander<'_>) -> Option<Act> {
        let span = self.span;
        self.acts += 1;
        if self.acts > ACTS {
            return None;
        }
        if let Some((_, kind)) = self.rest.first().and_then(word).and_then(|w| GATHERING.iter().find(|(k, _)| *k == w))
        {
            self.rest = &self.rest[1..];
            let value = self.form()?;
            let name = if self.take(&["into"]) { Some(self.form()?) } else { None };
            let at = self.place(expander, kind, name);
            return Some(Act::Gather(at, value));
        }
        let not = |test: Form| call("core/not", vec![test], span);
        if self.take(&["when", "if"]) {
            let test = self.form()?;
            return self.branches(expander, test);
        }
        if self.take(&["unless"]) {
            let test = not(self.form()?);
            return self.branches(expander, test);
        }
        if self.take(&["do", "doing"]) {
            let mut forms = Vec::new();
            while self.rest.first().is_some_and(|next| word(next).is_none()) {
                forms.push(self.form()?);
            }
            // `do (return x)` ends the loop.
            return Some(match forms.as_slice() {
                [only] if only.is_call_of("return") => {
                    let value = only.as_list()?.get(1).cloned().unwrap_or_else(|| nil(span));
                    Act::Return(Form::new(FormKind::Bool(true), span), value)
                }
                _ => Act::Do(forms),
            });
        }
        if self.take(&["return"]) {
            return Some(Act::Return(Form::new(FormKind::Bool(true), span), self.form()?));
        }
        if self.take(&["while"]) {
            return Some(Act::While(self.form()?));
        }
        if self.take(&["until"]) {
            return Some(Act::While(not(self.form()?)));
        }
        let truth = |value| Form::new(FormKind::Bool(value), span);
        if self.take(&["always"]) {
            self.otherwise = Some(truth(true));
            return Some(Act::Return(not(self.form()?), truth(false)));
        }
        if self.take(&["never"]) {
            self.otherwise = Some(truth(true));
            return Some(Act::Return(self.form()?, truth(false)));
        }
        if self.take(&["thereis"]) {
            return Some(Act::Found(self.form()?));
        }
        None
    }

    /// `when test act and act else act end`
    fn branches(&mut self, expander: &mut Expander<'_>, test: Form) -> Option<Act> {
        let mut sides = [Vec::new(), Vec::new()];
        for side in &mut sides {
            side.push(self.act(expander)?);
            while self.take(&["and"]) {
                side.push(self.act(expander)?);
            }
            if !self.take(&["else"]) {
                break;
            }
        }
        self.take(&["end"]);
        let [yes, no] = sides;
        Some(Act::When(test, yes, no))
    }

    /// Returns the index of the accumulator with that name, or of the loop's result if it has no name; creates it if
    /// needed.
    fn place(&mut self, expander: &mut Expander<'_>, word: &'static str, name: Option<Form>) -> usize {
        let known = self.gathered.iter().position(|gathered| match &name {
            Some(name) => gathered.name == *name || gathered.name.as_symbol() == name.as_symbol(),
            None => gathered.is_answer,
        });
        known.unwrap_or_else(|| {
            let is_answer = name.is_none();
            let name = name.unwrap_or_else(|| expander.fresh("gathered", self.span));
            self.gathered.push(Gathered { word, name, is_answer });
            self.gathered.len() - 1
        })
    }

    fn assemble(self, expander: &mut Expander<'_>, acts: Vec<Act>) -> Form {
        let span = self.span;
        let ended = expander.fresh("ended", span);
        let mut names: Vec<Form> = self.gathered.iter().map(|gathered| gathered.name.clone()).collect();
        names.push(ended.clone());
        let state = Form::vector(names, span);
        let mut starts: Vec<Form> = self.gathered.iter().map(|gathered| start(gathered.word, span)).collect();
        starts.push(nil(span));
        let round = self.round(expander, &acts, &state, state.clone());
        let (names, collections): (Vec<Form>, Vec<Form>) = match self.each.len() {
            // `(loop while …)`: without a collection, the loop iterates until an action ends it.
            0 => (vec![expander.fresh("round", span)], vec![call("core/range", Vec::new(), span)]),
            _ => self.each.iter().cloned().unzip(),
        };
        let (item, collection) = if names.len() == 1 {
            (names[0].clone(), collections[0].clone())
        } else {
            let sides = [vec![Form::symbol("core/vector", span)], collections].concat();
            (Form::vector(names, span), call("core/map", sides, span))
        };
        let step = call("fn", vec![Form::vector(vec![state.clone(), item], span), round], span);
        let folded = call("core/reduce", vec![step, Form::vector(starts, span), collection], span);
        let mut bindings = self.outside.clone();
        bindings.extend([state, folded]);
        for gathered in self.gathered.iter().filter(|gathered| matches!(gathered.word, "collect" | "append")) {
            let list = call("core/sequence", vec![gathered.name.clone()], span);
            bindings.extend([gathered.name.clone(), list]);
        }
        let answer = self.gathered.iter().find(|gathered| gathered.is_answer).map(|gathered| gathered.name.clone());
        let answer = self.finally.or(answer).or(self.otherwise).unwrap_or_else(|| nil(span));
        let early = call("core/first", vec![ended.clone()], span);
        call("let", vec![Form::vector(bindings, span), call("if", vec![ended, early, answer], span)], span)
    }

    /// Builds the form for the remaining actions of an iteration. Its value is the state at the end of the iteration.
    fn round(&self, expander: &mut Expander<'_>, acts: &[Act], state: &Form, last: Form) -> Form {
        let span = self.span;
        let reduced = |value: Form| call("core/reduced", vec![value], span);
        let bound = |name: Form, value: Form, after: Form| {
            call("let", vec![Form::vector(vec![name, value], span), after], span)
        };
        let returned = |value: Form| {
            let mut names = state.as_vector().unwrap_or_default().to_vec();
            names.pop();
            names.push(Form::vector(vec![value], span));
            reduced(Form::vector(names, span))
        };
        acts.iter().rev().fold(last, |after, act| match act {
            Act::Gather(at, value) => {
                let Gathered { word, name, .. } = &self.gathered[*at];
                let held = expander.fresh("value", span);
                let more = bound(held.clone(), value.clone(), gathered(word, name, &held, span));
                bound(name.clone(), more, after)
            }
            Act::When(test, yes, no) if ends(yes) || ends(no) => {
                // An early end must stay in tail position of its branch, so the following actions become a function of
                // the state.
                let follows = expander.fresh("after", span);
                let on = Form::list(vec![follows.clone(), state.clone()], span);
                let [yes, no] = [yes, no].map(|acts| self.round(expander, acts, state, on.clone()));
                let function = call("fn", vec![Form::vector(vec![state.clone()], span), after], span);
                bound(follows, function, call("if", vec![test.clone(), yes, no], span))
            }
            Act::When(test, yes, no) => {
                let [yes, no] = [yes, no].map(|acts| self.round(expander, acts, state, state.clone()));
                bound(state.clone(), call("if", vec![test.clone(), yes, no], span), after)
            }
            Act::Do(forms) => call("do", [forms.clone(), vec![after]].concat(), span),
            Act::While(test) => call("if", vec![test.clone(), after, reduced(state.clone())], span),
            Act::Return(test, value) => call("if", vec![test.clone(), returned(value.clone()), after], span),
            Act::Found(value) => {
                let held = expander.fresh("found", span);
                let ended = call("if", vec![held.clone(), returned(held.clone()), after], span);
                bound(held, value.clone(), ended)
            }
            Act::Let(name, value) => bound(name.clone(), value.clone(), after),
        })
    }
}

/// Returns whether one of the actions may end the loop.
fn ends(acts: &[Act]) -> bool {
    acts.iter().any(|act| match act {
        Act::While(_) | Act::Return(..) | Act::Found(_) => true,
        Act::When(_, yes, no) => ends(yes) || ends(no),
        _ => false,
    })
}

/// Returns the initial value of an accumulator.
fn start(word: &str, span: Span) -> Form {
    match word {
        "collect" | "append" => Form::vector(Vec::new(), span),
        "sum" | "count" => Form::new(FormKind::Int(0), span),
        _ => nil(span),
    }
}

/// Returns the form of an accumulator with one more value.
fn gathered(word: &str, name: &Form, value: &Form, span: Span) -> Form {
    let both = |function: &str| call(function, vec![name.clone(), value.clone()], span);
    match word {
        "collect" => both("core/conj"),
        "append" => both("core/into"),
        "sum" => both("core/+"),
        "count" => call("if", vec![value.clone(), call("core/inc", vec![name.clone()], span), name.clone()], span),
        "maximize" => {
            call("if", vec![call("core/nil?", vec![name.clone()], span), value.clone(), both("core/max")], span)
        }
        _ => call("if", vec![call("core/nil?", vec![name.clone()], span), value.clone(), both("core/min")], span),
    }
}

/// Builds the error for an unsupported loop, with the equivalent form.
fn not_here(rest: &[Form]) -> Error {
    let words = || rest.iter().filter_map(Form::as_symbol);
    let has = |names: &[&str]| words().any(|word| names.contains(&word));
    let name = words().nth(1).filter(|_| rest[0].is_symbol("for")).unwrap_or("x");
    let instead = if has(&["then"]) {
        format!(
            "`(take-while (fn [{name}] (< {name} 100)) (iterate (fn [{name}] (* 2 {name})) 1))` steps from value to value"
        )
    } else if has(&["while", "until"]) {
        "`(loop [i 0 acc []] (if (< i 10) (recur (inc i) (conj acc i)) acc))` loops while a test holds".to_string()
    } else {
        format!(
            "`(for [{name} xs :when (odd? {name})] (* {name} {name}))` collects, `(doseq [{name} xs] (println {name}))` is for effects, `(reduce + 0 xs)` gathers"
        )
    };
    Error::new("SyntaxError", "this Common Lisp `loop` has a clause that is not supported here: it takes `for … in/across/on/from … to`, `for … =`, `with`, `repeat`, `when`/`unless`, `collect`, `append`, `sum`, `count`, `maximize`, `minimize`, `do`, `while`, `until`, `return`, `always`, `never`, `thereis`, `finally return`")
        .suggest(instead)
}
