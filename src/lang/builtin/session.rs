//! Operations of a program on its own session: forgetting definitions, copying it, ending it; and questions about runs.

use super::arguments::string;
use crate::error::{Error, Outcome};
use crate::json;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;

/// The builtins defined in this file.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "session/forget",
        &["[name & names]"],
        "Deletes definitions (quoted names) of the session and data only they hold; an unknown name is an error. \
         Returns the names.",
        &[
            ("(def mails [1 2 3]) (def page 2) (session/forget 'mails 'page)", "(mails page)"),
            ("(def a 1) (session/forget 'a) (resolve 'a)", "nil"),
        ],
        forget,
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "session/fork",
        &["[]"],
        "Creates a session with the state of this one at the end of the program; returns its handle.",
        &[("(string? (session/fork))", "true")],
        |machine, _| {
            let forked = machine.core.host.fork_session();
            match &*forked {
                Ok(handle) => Ok(Value::string(handle)),
                Err(reason) => Err(Error::new("NoSession", reason.clone()).into()),
            }
        },
    ),
    Builtin::new(
        "session/close",
        &["[]"],
        "Ends this session and deletes its state when the program has ended.",
        &[("(session/close)", "nil")],
        |machine, _| match &*machine.core.host.close_session() {
            Ok(()) => Ok(Value::Nil),
            Err(reason) => Err(Error::new("NoSession", reason.clone()).into()),
        },
    ),
    Builtin::new(
        "run/status",
        &["[]", "[run]"],
        "The programs of this user that go on, wait for approval, were cut off, or failed after they changed something, each a map \
         with `:run`, `:state`, open `:calls` and the calls `:made`; or that of one run.",
        &[("(run/status)", "[]")],
        run_status,
    ),
];

fn run_status(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let run = arguments.first().map(string).transpose()?;
    let status = machine.core.host.runs(run);
    match &*status {
        Ok(text) => json::parse(machine, text),
        Err(reason) => Err(Error::new("NoRun", reason.clone()).into()),
    }
}

fn forget(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let mut found = Vec::with_capacity(arguments.len());
    for argument in arguments.iter() {
        let name = argument.as_symbol().ok_or_else(|| Error::expected("a quoted name", argument))?;
        let index = machine.core.globals.find(name.as_str());
        found.push(index.ok_or_else(|| machine.unknown(name.as_str(), &[]))?);
    }
    // All of them or none: every name has been resolved by now.
    for index in found {
        machine.undefine(index);
    }
    Ok(Value::list(arguments.iter_mut().map(std::mem::take).collect()))
}
