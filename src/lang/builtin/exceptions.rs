//! Exceptions: construction, throwing, inspection.

use super::arguments::take;
use crate::error::class::is_class;
use crate::error::{Error, Outcome, describe};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use std::sync::Arc;

/// The constructor of a class of exceptions.
macro_rules! constructor {
    ($class:literal) => {
        Builtin::new(
            concat!($class, "."),
            &["[]", "[message]", "[message cause]"],
            concat!("An exception of the class `", $class, "` with a message and a cause, like Java's constructor."),
            &[(concat!("(try (throw (", $class, ". \"no\")) (catch ", $class, " e (ex-message e)))"), "\"no\"")],
            |machine, arguments| exception(machine, arguments, $class),
        )
    };
}

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "ex-info",
        &["[message data]", "[message data cause]"],
        "An exception with a message, a map of data and a cause.",
        &[("(try (throw (ex-info \"no\" {:id 1})) (catch Exception e (:id (ex-data e))))", "1")],
        ex_info,
    ),
    Builtin::new(
        "ex-message",
        &["[e]"],
        "The message of an exception; nil for any other value.",
        &[("(ex-message (ex-info \"no\" {}))", "\"no\""), ("(try (throw \"no\") (catch e (.getMessage e)))", "\"no\"")],
        ex_message,
    ),
    Builtin::new(
        "ex-data",
        &["[e]"],
        "The data of an exception; nil for any other value.\n\
         For a language error: `:error` (its code), `:message`, and, if present, `:symbol` and `:suggestion`.",
        &[
            ("(ex-data (ex-info \"no\" {:id 1}))", "{:id 1}"),
            ("(try (+ 1 \"x\") (catch Exception e (:error (ex-data e))))", "\"TypeError\""),
        ],
        ex_data,
    ),
    Builtin::new(
        "ex-cause",
        &["[e]"],
        "The cause of an exception, or nil.",
        &[("(ex-message (ex-cause (ex-info \"outer\" {} (ex-info \"inner\" {}))))", "\"inner\"")],
        ex_cause,
    ),
    Builtin::new(
        "Throwable->map",
        &["[e]"],
        "An exception as data: `:cause`, the innermost message; `:via`, each exception with `:type`, `:message` and \
         `:data`; `:data` of the innermost.",
        &[("(:cause (Throwable->map (ex-info \"no\" {} (Exception. \"why\"))))", "\"why\"")],
        as_map,
    ),
    Builtin::new(
        "throw",
        &["[x]"],
        "Throws an exception. A string is used as message; a map as data, with its `:message`, `:msg` or `:error` as \
         message.",
        &[("(try (throw (ex-info \"no\" {})) (catch Exception e (ex-message e)))", "\"no\"")],
        throw,
    ),
    Builtin::new(
        "error",
        &["[message & values]"],
        "Throws an exception with the message followed by the values.",
        &[("(try (error \"not a name:\" 5) (catch Exception e (ex-message e)))", "\"not a name: 5\"")],
        error,
    ),
    Builtin::new(
        "assert",
        &["[x]", "[x message]"],
        "Throws an `AssertionError` unless `x` is true.",
        &[
            ("(assert (= 1 1))", "nil"),
            (
                "(try (assert false \"one is not two\") (catch e (ex-message e)))",
                "\"assertion failed: one is not two\"",
            ),
        ],
        assert,
    ),
    constructor!("Exception"),
    constructor!("RuntimeException"),
    constructor!("IllegalArgumentException"),
    constructor!("IllegalStateException"),
    constructor!("UnsupportedOperationException"),
    constructor!("ArithmeticException"),
    constructor!("NumberFormatException"),
    constructor!("ClassCastException"),
    constructor!("NullPointerException"),
    constructor!("IndexOutOfBoundsException"),
    constructor!("NoSuchElementException"),
    constructor!("Error"),
    constructor!("AssertionError"),
    constructor!("Throwable"),
    Builtin::new(
        "assert*",
        &["[x message form]"],
        "Expansion of `assert` and of conditions: the text of the form is part of the message.",
        &[],
        assert_form,
    ),
    Builtin::new("no-case*", &["[x]"], "The error for `case` without a matching clause.", &[], no_case),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("raise", "throw"),
    (".getMessage", "ex-message"),
    (".getLocalizedMessage", "ex-message"),
    (".getCause", "ex-cause"),
    (".getData", "ex-data"),
];

/// Error code of exceptions that programs create with `ex-info` or by throwing other values.
const MADE: &str = "ExceptionInfo";

/// Error code of `assert`, and of conditions of functions.
const ASSERTION: &str = "AssertionError";

/// Converts a value to a message: a string unchanged, nil to the empty text, anything else to a prefix of its printed
/// form.
fn message(machine: &mut Machine, value: &Value) -> Outcome<String> {
    match value {
        Value::Nil => Ok(String::new()),
        Value::Str(text) => {
            machine.reserve(text.as_str().len() as u64)?;
            Ok(text.as_str().to_string())
        }
        other => printed(machine, other),
    }
}

/// Returns the optional cause argument: an exception or nil.
fn cause(arguments: &mut [Value], at: usize) -> Outcome<Value> {
    match arguments.get_mut(at).map(std::mem::take) {
        None => Ok(Value::Nil),
        Some(cause @ (Value::Exception(_) | Value::Nil)) => Ok(cause),
        Some(other) => Err(Error::expected("an exception as the cause", &other).into()),
    }
}

fn ex_info(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let message = message(machine, &arguments[0])?;
    let cause = cause(arguments, 2)?;
    match take(arguments, 1) {
        data @ Value::Map(_) => {
            Ok(Value::Exception(Arc::new(Error::new(MADE, message).with_data(data).with_cause(cause))))
        }
        other => {
            Err(Error::expected("a map of data", &other).suggest("`(ex-info \"message\" {})` carries no data").into())
        }
    }
}

/// Constructs an exception whose code is the name of its class.
fn exception(machine: &mut Machine, arguments: &mut [Value], class: &'static str) -> Outcome<Value> {
    // `(Exception. cause)` takes its message from the cause.
    if let [Value::Exception(inner)] = arguments {
        let error = Error::new(class, inner.message.clone()).with_cause(Value::Exception(inner.clone()));
        return Ok(Value::Exception(Arc::new(error)));
    }
    let message = match arguments.first() {
        Some(value) => message(machine, value)?,
        None => String::new(),
    };
    let cause = cause(arguments, 1)?;
    Ok(Value::Exception(Arc::new(Error::new(class, message).with_cause(cause))))
}

fn ex_message(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(match &arguments[0] {
        Value::Exception(error) => Value::string(&error.message),
        _ => Value::Nil,
    })
}

fn ex_cause(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Ok(match &arguments[0] {
        Value::Exception(error) => error.cause().clone(),
        _ => Value::Nil,
    })
}

fn ex_data(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Value::Exception(error) = &arguments[0] else { return Ok(Value::Nil) };
    if !error.data().is_nil() || is_class(&error.code) && error.code != MADE && error.code != ASSERTION {
        return Ok(error.data().clone());
    }
    let mut data = Map::default();
    let entries = [
        ("error", Some(&*error.code)),
        ("message", Some(error.message.as_str())),
        ("symbol", error.symbol.as_deref()),
        ("suggestion", error.suggestion.as_deref()),
    ];
    for (key, text) in entries {
        if let Some(text) = text {
            data.insert(Value::keyword(key), Value::string(text));
        }
    }
    Ok(Value::Map(Arc::new(data)))
}

fn as_map(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut next = take(arguments, 0);
    let mut via = Vec::new();
    let mut out = Map::default();
    out.insert(Value::keyword("via"), Value::Nil);
    out.insert(Value::keyword("trace"), Value::vector(Vec::new()));
    while let Value::Exception(error) = next {
        machine.charge(1)?;
        let mut step = Map::default();
        step.insert(Value::keyword("type"), super::types::type_name(&Value::Exception(error.clone())));
        machine.reserve(2 * error.message.len() as u64)?;
        if error.message.is_empty() {
            out.remove(&Value::keyword("cause"));
        } else {
            step.insert(Value::keyword("message"), Value::string(&error.message));
            out.insert(Value::keyword("cause"), Value::string(&error.message));
        }
        let data = ex_data(machine, &mut [Value::Exception(error.clone())])?;
        if data.is_nil() {
            out.remove(&Value::keyword("data"));
        } else {
            step.insert(Value::keyword("data"), data.clone());
            out.insert(Value::keyword("data"), data);
        }
        via.push(Value::Map(Arc::new(step)));
        machine.grown(via.len())?;
        next = error.cause().clone();
    }
    if via.is_empty() {
        return Err(Error::expected("an exception", &next).into());
    }
    out.insert(Value::keyword("via"), Value::vector(via));
    Ok(Value::Map(Arc::new(out)))
}

fn throw(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let thrown = take(arguments, 0);
    Err(match thrown {
        Value::Exception(error) => return Err(error.into()),
        text @ Value::Str(_) => Error::new(MADE, message(machine, &text)?),
        Value::Map(map) => {
            let said = ["message", "msg", "error"].iter().find_map(|key| map.get(&Value::keyword(key)).cloned());
            let message = match said {
                Some(said @ Value::Str(_)) => message(machine, &said)?,
                _ => describe(&Value::Map(map.clone())),
            };
            Error::new(MADE, message).with_data(Value::Map(map))
        }
        Value::Nil => Error::expected("an exception, a string or a map to throw", &Value::Nil),
        other => {
            let data = Map::from_iter([(Value::keyword("value"), other.clone())]);
            Error::new(MADE, printed(machine, &other)?).with_data(Value::Map(Arc::new(data)))
        }
    }
    .into())
}

/// Prints a value as `pr-str` does, truncated to 1,000 bytes, for messages.
fn printed(machine: &mut Machine, value: &Value) -> Outcome<String> {
    Ok(crate::value::print::print_within(value, 1_000, true, machine)?.text)
}

fn error(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut said = message(machine, &arguments[0])?;
    for value in &arguments[1..] {
        machine.charge(1)?;
        machine.reserve(said.len() as u64)?;
        said.push(' ');
        said.push_str(&printed(machine, value)?);
    }
    let mut error = Error::new(MADE, said);
    if arguments.len() > 1 {
        let values = arguments[1..].iter_mut().map(std::mem::take).collect();
        let data = Map::from_iter([(Value::keyword("values"), Value::vector(values))]);
        error = error.with_data(Value::Map(Arc::new(data)));
    }
    Err(error.into())
}

fn assert(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments[0].is_truthy() {
        return Ok(Value::Nil);
    }
    let said = match arguments.get(1) {
        Some(said) => format!("assertion failed: {}", message(machine, said)?),
        None => format!("assertion failed: expected something true, got {}", describe(&arguments[0])),
    };
    Err(Error::new(ASSERTION, said).into())
}

fn assert_form(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments[0].is_truthy() {
        return Ok(Value::Nil);
    }
    let form = arguments[2].as_str().unwrap_or_default().to_string();
    if form.is_empty() {
        let given = if arguments[1].is_nil() { 1 } else { 2 };
        return assert(machine, &mut arguments[..given]);
    }
    let came = describe(&arguments[0]);
    let said = match &arguments[1] {
        Value::Nil => format!("assertion failed: `{form}` is {came}"),
        said => format!("assertion failed: {}: `{form}` is {came}", message(machine, said)?),
    };
    Err(Error::new(ASSERTION, said).into())
}

fn no_case(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    Err(Error::new("NoMatchingClause", format!("no clause matches {}", describe(&arguments[0])))
        .suggest("a last form without a test is the default of `case` and `condp`")
        .into())
}
