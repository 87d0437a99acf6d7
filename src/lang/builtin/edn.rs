//! Data read from text with the reader of programs: `clojure.edn/read-string`. Nothing is evaluated.

use super::arguments::map;
use super::dynamic::current;
use super::options::{ANY, FUNCTION, Given, MAP};
use super::text::excerpt;
use crate::error::{Error, Outcome};
use crate::eval::{Constants, value_of};
use crate::form::Form;
use crate::machine::Machine;
use crate::native::{Builtin, OptionKind, OptionSet, OptionSpec};
use crate::reader::{Conditionals, ReadError, Reading, known_tag, read_first};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::pattern::Pattern;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "edn/read-string",
        &["[s]", "[options s]"],
        "Reads the first form in the text as data; nil if none. Options: `:eof`, the value to return then; `:readers`, \
         a map from tag to function; `:default`, a function of any other tag and its value. Nothing is evaluated.",
        &[
            ("(edn/read-string \"{:port 8080, :hosts [\\\"a\\\" \\\"b\\\"]}\")", "{:port 8080, :hosts [\"a\" \"b\"]}"),
            ("(edn/read-string \"(+ 1 2)\")", "(+ 1 2)"),
            ("(edn/read-string {:eof :none} \"\")", ":none"),
            ("(edn/read-string {:readers {'inches #(* 2.5 %)}} \"[#inches 4]\")", "[10.0]"),
            ("(edn/read-string {:default tagged-literal} \"#point [1 2]\")", "#point [1 2]"),
        ],
        read_string,
    )
    .with_options(&EDN),
    Builtin::new(
        "read-string",
        &["[s]", "[options s]"],
        "Like `edn/read-string`, but text without a form is an error. Options: `:eof`; `:read-cond`, `:allow` to \
         select a branch of `#?(…)`, `:preserve` to keep it; `:features`. `*data-readers*` defines how tags are read.",
        &[
            ("(read-string \"[1 a :b]\")", "[1 a :b]"),
            ("(read-string {:read-cond :allow} \"[#?(:clj 1 :cljs 2)]\")", "[1]"),
            ("(binding [*data-readers* {'twice (fn [x] [x x])}] (read-string \"#twice 1\"))", "[1 1]"),
        ],
        read_code,
    )
    .with_options(&READ_STRING),
];

/// Common Lisp's alias, as a pair of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[("read-from-string", "read-string")];

static EDN: OptionSet = OptionSet {
    function: "edn/read-string",
    accepted: &[OptionSpec::new("eof", &ANY), OptionSpec::new("readers", &MAP), OptionSpec::new("default", &FUNCTION)],
};

/// Options of `read-string` and `read`.
pub(super) const OF_CODE: &[OptionSpec] =
    &[OptionSpec::new("eof", &ANY), OptionSpec::new("read-cond", &READ_COND), OptionSpec::new("features", &FEATURES)];

static READ_STRING: OptionSet = OptionSet { function: "read-string", accepted: OF_CODE };

static READ_COND: OptionKind =
    OptionKind { wanted: ":allow or :preserve", fits: |mode| is(mode, "allow") || is(mode, "preserve") };

static FEATURES: OptionKind = OptionKind { wanted: "a set of keywords", fits: |value| matches!(value, Value::Set(_)) };

fn is(value: &Value, name: &str) -> bool {
    matches!(value, Value::Keyword(keyword) if keyword.as_str() == name)
}

/// Memory that one byte of text may take as tokens and forms, in bytes.
const BYTES_A_BYTE: u64 = 128;

fn read_string(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let options = match arguments {
        [options, _] => {
            let given = map(std::mem::take(options))?;
            Options::of_edn(&EDN.of_map(&given)?)?
        }
        _ => Options { at_end: Some(Value::Nil), ..Options::of_edn(&EDN.none())? },
    };
    match arguments.last() {
        Some(Value::Nil) | None => options.at_end(),
        Some(text) => first_form(machine, text, options),
    }
}

fn read_code(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = match arguments {
        [options, _] => {
            let given = map(std::mem::take(options))?;
            READ_STRING.of_map(&given)?
        }
        _ => READ_STRING.none(),
    };
    let options = Options::of_code(machine, &given)?;
    first_form(machine, arguments.last().unwrap_or(&Value::Nil), options)
}

/// Builds the error for a text without a form.
#[cold]
fn nothing_to_read() -> Error {
    Error::new("NothingToRead", "there is no form in the text")
        .suggest("`(edn/read-string s)` gives nil then, and so does the option `{:eof nil}`")
}

/// Options for reading a text as data.
pub(super) struct Options {
    /// Result at the end of the text; without one, reaching the end is an error.
    pub(super) at_end: Option<Value>,
    /// Reader functions by tag, which take precedence over the built-in tags.
    readers: Arc<Map>,
    /// Function of the tag and the value for all other tags, or nil.
    default: Value,
    reading: Reading,
}

impl Options {
    /// Parses the options of `edn/read-string`.
    fn of_edn(given: &Given) -> Result<Options, Error> {
        let reading = Reading { is_data: true, conditionals: Conditionals::Refuse, ..Reading::default() };
        Ok(Options {
            at_end: given.get("eof").cloned(),
            readers: map(given.or_nil("readers"))?,
            default: given.or_nil("default"),
            reading,
        })
    }

    /// Parses the options of `read-string` and `read`; the reader functions come from `*data-readers*` and
    /// `*default-data-reader-fn*`.
    pub(super) fn of_code(machine: &Machine, given: &Given) -> Result<Options, Error> {
        let conditionals = match given.get("read-cond") {
            Some(mode) if is(mode, "allow") => Conditionals::Choose,
            Some(_) => Conditionals::Keep,
            None => Conditionals::Refuse,
        };
        let features = match given.get("features") {
            Some(Value::Set(features)) => features.iter().filter_map(keyword_name).collect(),
            _ => Vec::new(),
        };
        Ok(Options {
            at_end: given.get("eof").filter(|value| !is(value, "eofthrow")).cloned(),
            readers: map(current(machine, "*data-readers*"))?,
            default: current(machine, "*default-data-reader-fn*"),
            reading: Reading { is_data: true, conditionals, features, ..Reading::default() },
        })
    }

    fn at_end(self) -> Outcome<Value> {
        self.at_end.ok_or_else(|| nothing_to_read().into())
    }
}

fn keyword_name(value: &Value) -> Option<String> {
    match value {
        Value::Keyword(name) => Some(name.as_str().to_string()),
        _ => None,
    }
}

/// Reads the first form of a text.
fn first_form(machine: &mut Machine, text: &Value, options: Options) -> Outcome<Value> {
    let Value::Str(text) = text else {
        return Err(Error::expected("a string", text).suggest("`(pr-str x)` spells a value").into());
    };
    Ok(next_form(machine, text.as_str(), options)?.0)
}

/// Reads the first form of a text, or returns the configured result at its end; also returns the number of bytes
/// consumed.
pub(super) fn next_form(machine: &mut Machine, text: &str, options: Options) -> Outcome<(Value, usize)> {
    let longest = machine.core.meter.limits.program;
    if text.len() as u64 > longest {
        return Err(Error::new("TextTooLong", format!("data of at most {longest} bytes can be read"))
            .suggest("use `json/parse` for data in JSON, or read it line by line with `str/split-lines`")
            .into());
    }
    machine.reserve(text.len() as u64 * BYTES_A_BYTE)?;
    let read = read_first(text, &options.reading);
    let passed = match &read {
        Ok(Some((_, passed))) => *passed,
        _ => text.len(),
    };
    machine.charge(passed as u64)?;
    let Some((mut form, passed)) = read.map_err(|error| unreadable(text, &error))? else {
        return Ok((options.at_end()?, text.len()));
    };
    if text.contains("::") {
        machine.resolve_aliases(&mut form).map_err(|failed| failed.0)?;
    }
    let value = value_of(&mut Readers { machine, text, options: &options }, &form)?;
    Ok((value, passed))
}

/// Applies the reader functions of tags while forms are converted to values.
struct Readers<'a> {
    machine: &'a mut Machine,
    text: &'a str,
    options: &'a Options,
}

impl Constants for Readers<'_> {
    fn pay(&mut self, steps: u64) -> Outcome<()> {
        self.machine.pay(steps)
    }

    fn regex(&mut self, pattern: &str) -> Outcome<Arc<Pattern>> {
        self.machine.regex(pattern)
    }

    fn tagged(&mut self, tag: &str, form: &Form) -> Outcome<Value> {
        self.machine.charge(1)?;
        let options = self.options;
        if let Some(reader) = options.readers.get(&Value::symbol(tag)) {
            let value = value_of(self, form)?;
            return self.machine.call(reader, &mut [value]);
        }
        if let Some(known) = known_tag(tag, form, form.span) {
            let known = known.map_err(|error| unreadable(self.text, &error))?;
            return value_of(self, &known);
        }
        if options.default.is_nil() {
            return Err(unknown_tag(tag).into());
        }
        let value = value_of(self, form)?;
        self.machine.call(&options.default, &mut [Value::symbol(tag), value])
    }
}

#[cold]
fn unknown_tag(tag: &str) -> Error {
    Error::new("UnknownTag", format!("there is no reader function for the tag `#{tag}`")).suggest(format!(
        "say what it means: `(edn/read-string {{:readers {{'{tag} f}}}} s)`, or keep all tags as data with `{{:default tagged-literal}}`"
    ))
}

/// Converts an error of the reader, adding its position in the text.
#[cold]
fn unreadable(text: &str, error: &ReadError) -> Error {
    let at = error.span.start as usize;
    let told = Error::new(error.code, format!("`{}` cannot be read at byte {at}: {}", excerpt(text), error.message));
    match &error.suggestion {
        Some(suggestion) => told.suggest(suggestion.clone()),
        None => told,
    }
}
