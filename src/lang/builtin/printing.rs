//! Printing to the reply or to a string.

use super::arguments::{room, string, take};
use super::dynamic::print_settings;
use super::text::Builder;
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::print::Printer;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "println",
        &["[& values]"],
        "Prints the values separated by spaces, then a newline.",
        &[("(println \"a\" 1)", "nil")],
        |machine, arguments| to_reply(machine, arguments, false, "\n"),
    ),
    Builtin::new(
        "print",
        &["[& values]"],
        "Prints the values separated by spaces.",
        &[("(print \"a\" 1)", "nil")],
        |machine, arguments| to_reply(machine, arguments, false, ""),
    ),
    Builtin::new(
        "prn",
        &["[& values]"],
        "Prints the values in readable form, then a newline.",
        &[("(prn \"a\" 1)", "nil")],
        |machine, arguments| to_reply(machine, arguments, true, "\n"),
    ),
    Builtin::new(
        "pr",
        &["[& values]"],
        "Prints the values in readable form.",
        &[("(pr \"a\" 1)", "nil")],
        |machine, arguments| to_reply(machine, arguments, true, ""),
    ),
    Builtin::new("newline", &["[]"], "Ends the line.", &[("(newline)", "nil")], |machine, arguments| {
        to_reply(machine, arguments, false, "\n")
    }),
    Builtin::new(
        "flush",
        &["[]"],
        "Does nothing: all output is in the reply at once.",
        &[("(flush)", "nil")],
        |_, _| Ok(Value::Nil),
    ),
    Builtin::new(
        "printf",
        &["[pattern & values]"],
        "Prints the values formatted by a pattern, like `format`.",
        &[("(printf \"%d items%n\" 3)", "nil")],
        printf,
    ),
    Builtin::new(
        "pr-str",
        &["[& values]"],
        "The values in readable form, as one string.\n\
         All printing obeys `*print-length*`, `*print-level*`, `*print-meta*`, `*print-readably*`, `*print-dup*` and \
         `*print-namespace-maps*`, as set by `binding` or `set!`; `*warn-on-reflection*`, `*assert*`, \
         `*unchecked-math*`, `*math-context*` and `*flush-on-newline*` exist, but have no effect.",
        &[
            ("(pr-str \"a\" [1 \\b])", "\"\\\"a\\\" [1 \\\\b]\""),
            ("(binding [*print-length* 2] (pr-str (range 9)))", "\"(0 1 ...)\""),
        ],
        |machine, arguments| to_string(machine, arguments, true, ""),
    ),
    Builtin::new(
        "prn-str",
        &["[& values]"],
        "Like `pr-str`, with a newline.",
        &[("(prn-str 1)", "\"1\\n\"")],
        |machine, arguments| to_string(machine, arguments, true, "\n"),
    ),
    Builtin::new(
        "print-str",
        &["[& values]"],
        "The output of `print` as a string.",
        &[("(print-str \"a\" nil [\"b\"])", "\"a nil [b]\"")],
        |machine, arguments| to_string(machine, arguments, false, ""),
    ),
    Builtin::new(
        "println-str",
        &["[& values]"],
        "The output of `println` as a string.",
        &[("(println-str \"a\")", "\"a\\n\"")],
        |machine, arguments| to_string(machine, arguments, false, "\n"),
    ),
];

/// Java's names and those of other Lisps.
pub const ALIASES: &[(&str, &str)] = &[
    ("display", "print"),
    ("displayln", "println"),
    ("princ", "print"),
    ("prin1", "pr"),
    ("terpri", "newline"),
    ("pprint", "prn"),
    ("clojure.pprint/pprint", "prn"),
    ("pprint/pprint", "prn"),
    ("System.out/println", "println"),
    (".println", "println"),
];

/// Prints the values, separated by blanks. For the reply, a lazy value is printed up to the output limit; printing to a
/// string is complete or fails.
fn printed(machine: &mut Machine, arguments: &mut [Value], readable: bool, for_reply: bool) -> Outcome<Builder> {
    let settings = print_settings(machine);
    // `*print-dup*` forces readable output; otherwise a false `*print-readably*` disables it.
    let readable = settings.duplicable || readable && settings.readable;
    let mut builder = Builder::default();
    for (at, value) in arguments.iter_mut().enumerate() {
        machine.charge(1)?;
        if at > 0 {
            builder.push(machine, " ")?;
        }
        let value = std::mem::take(value);
        if let (Value::Str(text), false) = (&value, readable) {
            builder.push(machine, text.as_str())?;
            continue;
        }
        let endless = for_reply && settings.length.is_none() && machine.is_lazy(&value);
        let budget = if endless { machine.core.meter.limits.output as usize } else { room(machine) };
        let mut printer =
            if readable { Printer::new(budget, true) } else { Printer::plain(budget) }.with(settings.clone());
        let complete = printer.print(&value, machine)?;
        builder.push(machine, &printer.into_text())?;
        if !complete && endless {
            builder.push(machine, " …")?;
        } else if !complete {
            machine.reserve(u64::MAX / 4)?;
        }
    }
    Ok(builder)
}

fn to_reply(machine: &mut Machine, arguments: &mut [Value], readable: bool, end: &str) -> Outcome<Value> {
    let mut builder = printed(machine, arguments, readable, true)?;
    builder.push(machine, end)?;
    machine.core.print(builder.as_str());
    Ok(Value::Nil)
}

fn to_string(machine: &mut Machine, arguments: &mut [Value], readable: bool, end: &str) -> Outcome<Value> {
    let mut builder = printed(machine, arguments, readable, false)?;
    builder.push(machine, end)?;
    Ok(builder.finish())
}

fn printf(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let pattern = take(arguments, 0);
    let builder = super::format::formatted(machine, string(&pattern)?, &arguments[1..])?;
    machine.core.print(builder.as_str());
    Ok(Value::Nil)
}
