//! monty: the state of a user is a session that is fed with one script after the other.

use std::time::Duration;

use monty::{Dump, MontyRepl, ReplFunctionCall, ReplProgress, ReplStartError, SessionRef, dump};
use monty_types::{
    CompileOptions, MontyObject, ObjectRef, PrintWriter, ResourceLimits, ResourceTracker, memory_limit_with_headroom,
};

use super::{BONUS, CALLS, MEMORY, Order, Price, Quote, Subject, Suspend};
use crate::Failed;

/// Nothing is shared by the sessions.
pub struct Monty;

/// The limit on memory: it is one for the process, and 20,000 sessions are in it.
const ALL_MEMORY: usize = 16 * MEMORY;

/// A session, except while a script is suspended.
pub struct Session(Option<MontyRepl>);

/// The program of [`Subject::run`].
const SUM: &str = "
import json
total = bonus + sum([order['amount'] for order in json.loads(orders) if order['paid']])
total
";

impl Session {
    /// The session between two scripts.
    fn idle(&mut self) -> Result<&mut MontyRepl, Failed> {
        self.0.as_mut().ok_or_else(|| "a script had failed".into())
    }
}

impl Subject for Monty {
    type Session = Session;

    const SUSPEND: Result<Suspend<Self>, &'static str> = Ok(suspend);

    const NOTES: &'static [&'static str] = &[
        "run: the list comes as JSON text, which takes a third less time than its conversion to values of monty",
        "limits: time in place of steps; the memory of the whole process in place of that of a session",
    ];

    fn new() -> Result<Self, Failed> {
        monty_alloc::set_hard_limit(memory_limit_with_headroom(Some(ALL_MEMORY), false))?;
        Ok(Monty)
    }

    fn session(&self) -> Result<Session, Failed> {
        let limits = ResourceLimits::default().max_memory(ALL_MEMORY).max_feed_duration(Duration::from_secs(5));
        Ok(Session(Some(MontyRepl::new("script", ResourceTracker::new(limits), CompileOptions::default()))))
    }

    fn define(&self, session: &mut Session) -> Result<(), Failed> {
        session.idle()?.feed_run(&format!("bonus = {BONUS}"), vec![], PrintWriter::Disabled)?;
        Ok(())
    }

    fn run(&self, session: &mut Session, orders: &[Order]) -> Result<i64, Failed> {
        let answer = session.idle()?.feed_run(SUM, list(orders)?, PrintWriter::Disabled)?;
        Ok(i64::try_from(&answer)?)
    }

    fn calls(&self, session: &mut Session) -> Result<i64, Failed> {
        let script = "
total = 0
for n in range(most):
    price = quote({'customer': 'ann', 'amount': n, 'express': False})
    total += price['net'] + price['shipping']
total
";
        let inputs = vec![
            ("most".to_string(), MontyObject::int(CALLS)),
            ("quote".to_string(), MontyObject::function("quote", None)),
        ];
        let repl = session.0.take().ok_or("a script had failed")?;
        let mut progress = repl.feed_start(script, inputs, PrintWriter::Disabled).map_err(message)?;
        loop {
            match progress {
                ReplProgress::FunctionCall(call) => {
                    let quote = read(call.args.arg(0).ok_or("quote takes a dictionary")?)?;
                    let price = price(super::quote(&quote));
                    progress = call.resume(price, PrintWriter::Disabled).map_err(message)?;
                }
                ReplProgress::Complete { repl, value } => {
                    session.0 = Some(repl);
                    return Ok(i64::try_from(&value)?);
                }
                other => return Err(format!("unexpected: {other:?}").into()),
            }
        }
    }
}

/// Every call suspends the run; the run and its session are bytes.
fn suspend(_: &Monty, session: Session, orders: &[Order]) -> Result<(i64, usize), Failed> {
    let script = format!("{SUM}\npay(total)");
    let mut inputs = list(orders)?;
    inputs.push(("pay".to_string(), MontyObject::function("pay", None)));
    let repl = session.0.ok_or("a script had failed")?;
    let progress = repl.feed_start(&script, inputs, PrintWriter::Disabled).map_err(message)?;
    let bytes = dump("script", None, &[], SessionRef::Suspended(&progress))?;
    drop(progress);

    let call: ReplFunctionCall = match Dump::load(&bytes)?.state {
        monty::Session::Suspended(progress) => progress.into_function_call().ok_or("not at a call")?,
        _ => return Err("not suspended".into()),
    };
    let total = call.args.arg(0).ok_or("pay takes a number")?.to_owned();
    let progress = call.resume(total, PrintWriter::Disabled).map_err(message)?;
    let (_, answer) = progress.into_complete().ok_or("not complete")?;
    Ok((i64::try_from(&answer)?, bytes.len()))
}

/// The list of orders, as an input.
fn list(orders: &[Order]) -> Result<Vec<(String, MontyObject)>, Failed> {
    Ok(vec![("orders".to_string(), MontyObject::string(serde_json::to_string(orders)?))])
}

/// The error of a script, without the session that comes with it.
fn message(error: Box<ReplStartError>) -> Failed {
    error.error.into()
}

/// A dictionary whose keys are texts.
fn dictionary<const N: usize>(fields: [(&str, MontyObject); N]) -> MontyObject {
    MontyObject::dict(fields.map(|(name, value)| (MontyObject::string(name), value)))
}

/// The arguments of the tool.
fn read(argument: ObjectRef) -> Result<Quote, Failed> {
    let fields = argument.pairs().ok_or("not a dictionary")?;
    let field = |name| {
        let mut values = fields.iter().filter(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| *value);
        values.next().ok_or_else(|| Failed(format!("no field {name}")))
    };
    Ok(Quote {
        customer: field("customer")?.try_into()?,
        amount: field("amount")?.try_into()?,
        express: field("express")?.try_into()?,
    })
}

/// The result of the tool.
fn price(price: Price) -> MontyObject {
    dictionary([
        ("net", MontyObject::int(price.net)),
        ("shipping", MontyObject::int(price.shipping)),
        ("note", MontyObject::string(price.note)),
    ])
}
