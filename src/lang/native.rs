//! The contract between the evaluator and functions written in Rust.
//!
//! The evaluator calls builtins through this contract and knows none of them by name; the library of builtins and
//! hosts implement it.

use crate::error::Outcome;
use crate::machine::Machine;
use crate::operators::Operator;
use crate::value::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The implementation of a builtin. It may move its arguments out of the slice.
pub type Run = fn(&mut Machine, &mut [Value]) -> Outcome<Value>;

/// A builtin function of the language.
pub struct Builtin {
    /// Name; a name without a namespace belongs to `core`.
    pub name: &'static str,
    /// Argument lists, such as `[f coll]` and `[x & more]`.
    pub arguments: &'static [&'static str],
    /// Documentation; the first line is a summary.
    pub doc: &'static str,
    /// Example programs, each with the output it prints.
    pub examples: &'static [(&'static str, &'static str)],
    /// Accepted argument counts, computed from `arguments`.
    pub arity: ArityRange,
    /// The implementation.
    pub run: Run,
    /// The kind of function value that this builtin makes with arguments bound.
    pub(crate) role: Role,
    /// The special knowledge that other code has of this builtin, if any.
    pub(crate) intrinsic: Option<Intrinsic>,
    /// The bounds that a plan relies on.
    pub(crate) conduct: Conduct,
    /// True if its result is the same whatever its arguments are, up to these arguments.
    pub(crate) passes_on: bool,
    /// The options that it takes after (or, as a map, before) its other arguments, if any.
    pub options: Option<&'static OptionSet>,
    /// The part of its sequence argument that it reads.
    pub(crate) reading: Reading,
}

/// The options of a builtin. The builtin reads its options through this declaration, which refuses all others.
pub struct OptionSet {
    /// The name of the builtin, as errors show it.
    pub function: &'static str,
    /// The options that it takes.
    pub accepted: &'static [OptionSpec],
}

/// One option of a builtin.
pub struct OptionSpec {
    /// The name of its keyword.
    pub name: &'static str,
    /// Other names, from other libraries.
    pub also: &'static [&'static str],
    /// The values that it takes.
    pub kind: &'static OptionKind,
}

/// A kind of value that options take.
pub struct OptionKind {
    /// Its description in errors: `true or false`.
    pub wanted: &'static str,
    /// Returns whether a value is of this kind. If nil is not, an option with the value nil counts as not given.
    pub fits: fn(&Value) -> bool,
}

impl OptionSpec {
    /// Creates an option with one name.
    pub const fn new(name: &'static str, kind: &'static OptionKind) -> OptionSpec {
        OptionSpec { name, also: &[], kind }
    }

    /// Sets its other names.
    pub const fn or(self, also: &'static [&'static str]) -> OptionSpec {
        OptionSpec { also, ..self }
    }

    /// Iterates over its names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }
}

/// The part of the sequence in its last argument that a builtin reads. Where the sequence is computed in the same expression,
/// as in `(take 3 (map f xs))`, the resolver lets `f` be called only for the items that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// To its end, or as far as another function reads the result.
    Whole,
    /// At most a few items, and returns one of them.
    Few,
    /// Up to the first item that decides the answer.
    Search,
    /// The first items, which are the result.
    Prefix,
    /// To its end, and counts each item, so that the sequence itself is not needed.
    Counts,
    /// Item by item, as its own result is read, if the sequence is lazy: `map`, `filter`.
    Stepwise,
    /// `stepwise*`, which makes a sequence lazy for a partial read.
    Source,
    /// `realised*`, which computes the result of a partial read.
    Result,
}

/// A builtin that the evaluator, or another builtin, treats in a special way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intrinsic {
    /// Called with that many arguments, it is an operator, which the evaluator executes inline on integers.
    Operator(usize, Operator),
    /// `concat`: `apply` keeps it lazy in an infinite last argument.
    Concat,
    /// `object-call*`: it may call a protocol function of the session by name.
    ObjectCall,
    /// `keyword`: as the key function of a JSON reader it requests records.
    Keyword,
}

/// The kind of function that a builtin with bound arguments ([`Bound`](crate::value::function::Bound)) represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A function with its first arguments filled in.
    Partial,
    /// A partial application of any callable value: the function and its first arguments are bound.
    PartialCall,
    /// A function with metadata: the function and a map are bound.
    Annotated,
    /// A multimethod: its cell, name, dispatch function, default and hierarchy are bound.
    Multimethod,
    /// A transducer.
    Transducer,
    /// The placeholder of a declared name without a value: the name is bound.
    Unbound,
}

/// The bounds of a builtin on the calls of the functions that it is given, and on the number of items in its result, as
/// far as a [plan](crate::Plan) relies on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// No bound: functions may be called any number of times, also after the builtin has returned.
    Any,
    /// Calls its function, the first argument, at most once per item of the collections in parallel, before it returns.
    /// Of two arguments, the function may come second.
    Visits,
    /// As [`Conduct::Visits`]; the result is realised and has at most as many items.
    Maps,
    /// As [`Conduct::Maps`] over realised collections; lazy over lazy ones.
    MapsRealised,
    /// As [`Conduct::MapsRealised`], but the result has all items of the results; lazy from the first lazy one on.
    Joins,
    /// Of two or three arguments, calls the first one at most once per item of the last one, and at least once.
    Folds,
    /// Calls its first argument at most once, before it returns.
    CallsFirst,
    /// Calls its last argument at most once, before it returns.
    CallsLast,
    /// Calls each argument at most once, before it returns.
    CallsEach,
    /// Reaches definitions by names that the program computes, or changes the meaning of names at run time.
    ByName,
    /// The numbers of `range`.
    Range,
    /// At most as many items of the second argument as the first one says.
    Take,
    /// At most the items of the last argument; realised if that is.
    Same,
    /// A realised collection of the arguments.
    Collects,
    /// An integer as it is.
    Integer,
}

/// The set of argument counts that a function accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArityRange {
    /// Bit `n` is set if exactly `n` arguments are accepted.
    exact: u32,
    /// Lower bound of the variadic arity, if any: every count from here on is accepted.
    at_least: Option<u32>,
}

impl ArityRange {
    /// True if `count` arguments are accepted.
    #[inline]
    pub const fn accepts(self, count: usize) -> bool {
        if count < 32 && self.exact & (1 << count) != 0 {
            return true;
        }
        match self.at_least {
            Some(least) => count >= least as usize,
            None => false,
        }
    }

    /// Returns the least number of arguments that is accepted.
    pub(crate) fn least(self) -> usize {
        (0..32).find(|count| self.accepts(*count)).or(self.at_least.map(|least| least as usize)).unwrap_or_default()
    }

    /// True if `count` arguments are accepted, and not any number of them from there on.
    pub(crate) fn takes_only(self, count: usize) -> bool {
        self.at_least.is_none() && self.accepts(count)
    }

    /// Parses argument lists: names in brackets, with `&` before the rest parameter.
    pub(crate) const fn read(lists: &[&str]) -> ArityRange {
        let mut exact = 0;
        let mut at_least = None;
        let mut list = 0;
        while list < lists.len() {
            let text = lists[list].as_bytes();
            let mut count = 0_u32;
            let mut variadic = false;
            let mut in_word = false;
            let mut nesting = 0;
            let mut at = 0;
            while at < text.len() {
                let byte = text[at];
                if byte == b'[' || byte == b'{' {
                    nesting += 1;
                    if nesting == 2 && !variadic {
                        count += 1;
                    }
                    in_word = false;
                } else if byte == b']' || byte == b'}' {
                    nesting -= 1;
                    in_word = false;
                } else if byte == b' ' {
                    in_word = false;
                } else if !in_word {
                    in_word = true;
                    if byte == b'&' {
                        variadic = true;
                    } else if nesting == 1 && !variadic {
                        count += 1;
                    }
                }
                at += 1;
            }
            if variadic {
                at_least = match at_least {
                    Some(least) if least < count => Some(least),
                    _ => Some(count),
                };
            } else {
                exact |= 1 << count;
            }
            list += 1;
        }
        ArityRange { exact, at_least }
    }

    /// Describes the accepted counts in words: `1 or 2`, `at least 1`.
    pub fn describe(self) -> String {
        let mut parts: Vec<String> = (0..32).filter(|n| self.exact & (1 << n) != 0).map(|n| n.to_string()).collect();
        if let Some(least) = self.at_least {
            parts.push(format!("at least {least}"));
        }
        match parts.len() {
            0 => "none".to_string(),
            1 => parts.remove(0),
            _ => {
                let last = parts.pop().unwrap_or_default();
                format!("{} or {last}", parts.join(", "))
            }
        }
    }
}

impl Builtin {
    /// Creates a table entry and computes its arity.
    pub const fn new(
        name: &'static str,
        arguments: &'static [&'static str],
        doc: &'static str,
        examples: &'static [(&'static str, &'static str)],
        run: Run,
    ) -> Builtin {
        Builtin {
            name,
            arguments,
            doc,
            examples,
            arity: ArityRange::read(arguments),
            run,
            role: Role::Partial,
            intrinsic: None,
            conduct: Conduct::Any,
            passes_on: false,
            options: None,
            reading: Reading::Whole,
        }
    }

    /// Declares the options that the builtin takes.
    pub const fn with_options(self, options: &'static OptionSet) -> Builtin {
        Builtin { options: Some(options), ..self }
    }

    /// Declares how far the builtin reads a sequence.
    pub(crate) const fn reading(self, reading: Reading) -> Builtin {
        Builtin { reading, ..self }
    }

    /// Declares bounds for plans.
    pub(crate) const fn with_conduct(self, conduct: Conduct) -> Builtin {
        Builtin { conduct, ..self }
    }

    /// Declares that the builtin stores its arguments, returns them or gives them to functions, and depends on none of them.
    pub(crate) const fn passing_on(self) -> Builtin {
        Builtin { passes_on: true, ..self }
    }

    /// Declares that the builtin is special.
    pub(crate) const fn with_intrinsic(self, intrinsic: Intrinsic) -> Builtin {
        Builtin { intrinsic: Some(intrinsic), ..self }
    }

    /// Declares that calls with that many arguments are an operator.
    pub(crate) const fn with_operator(self, arguments: usize, operator: Operator) -> Builtin {
        self.with_intrinsic(Intrinsic::Operator(arguments, operator))
    }

    /// Sets the role of the builtin.
    pub(crate) const fn with_role(self, role: Role) -> Builtin {
        Builtin { role, ..self }
    }

    /// Returns the namespace-qualified name: `core/count`, `json/parse`.
    pub fn qualified(&self) -> String {
        if self.name.len() > 1 && self.name.contains('/') {
            self.name.to_string()
        } else {
            format!("core/{}", self.name)
        }
    }

    /// True for an undocumented builtin that only macro expansions call.
    pub fn is_internal(&self) -> bool {
        self.name.ends_with('*') && self.examples.is_empty()
    }
}

/// The implementation of a function of the embedder.
pub type NativeRun = dyn Fn(&mut Machine, &mut [Value]) -> Outcome<Value> + Send + Sync;

/// A function that the embedder adds to the language: a closure with its description.
pub struct Native {
    /// Name, arguments and documentation. Its `run` is never called.
    pub(crate) about: &'static Builtin,
    pub(crate) run: Box<NativeRun>,
}

impl Native {
    /// Creates a function. Equal descriptions share an allocation that lives as long as the process; the closure is
    /// dropped with its engine.
    pub(crate) fn new(about: Description, run: Box<NativeRun>) -> Native {
        Native { about: about.interned(), run }
    }
}

/// The description of a function that is added at run time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) doc: String,
    pub(crate) examples: Vec<(String, String)>,
}

impl Description {
    fn interned(self) -> &'static Builtin {
        static KNOWN: Mutex<Option<HashMap<Description, &'static Builtin>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        if let Some(builtin) = known.get(&self) {
            return builtin;
        }
        let leak = |text: &str| -> &'static str { Box::leak(text.into()) };
        let lists: &'static [&'static str] = Box::leak(Box::new([leak(&self.arguments)]));
        let examples: Vec<_> = self.examples.iter().map(|(program, prints)| (leak(program), leak(prints))).collect();
        let run: Run = |_, _| Err(crate::error::Error::new("InternalError", "a description was called").into());
        let builtin = Builtin::new(leak(&self.name), lists, leak(&self.doc), Box::leak(examples.into()), run);
        let builtin: &'static Builtin = Box::leak(Box::new(builtin));
        known.insert(self, builtin);
        builtin
    }
}

/// Returns the call shape of a function: `(f a b)` from the name `f` and the list `[a b]`.
pub(crate) fn call_shape(name: &str, list: &str) -> String {
    let inner = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list);
    format!("({name}{}{inner})", if inner.is_empty() { "" } else { " " })
}
