//! lispbox: one engine and one world; the limits are its default ones.

use std::sync::Arc;

use lispbox::lang::{Call, Engine, Outcome, Session, Suspended, Tools, World};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{BONUS, CALLS, Order, Quote, Subject, Suspend};
use crate::Failed;

/// The engine, and the tools of every session.
pub struct Lispbox {
    engine: Arc<Engine>,
    world: World<'static>,
}

/// The arguments of the call that waits.
#[derive(Deserialize)]
struct Pay {
    total: i64,
}

impl Subject for Lispbox {
    type Session = Session;

    const SUSPEND: Result<Suspend<Self>, &'static str> = Ok(suspend);

    const NOTES: &'static [&'static str] =
        &["tool call: the record of every call, with its arguments and time, is in it"];

    fn new() -> Result<Self, Failed> {
        let mut tools = Tools::new();
        tools.tool("shop/quote", |quote: Quote, _: &Call| Ok(super::quote(&quote)));
        tools.tool("shop/pay", |pay: Pay, _: &Call| Ok(pay.total)).needs_approval();
        Ok(Lispbox { engine: Engine::builder().build()?, world: World::new(tools) })
    }

    fn session(&self) -> Result<Session, Failed> {
        Ok(self.engine.session())
    }

    fn define(&self, session: &mut Session) -> Result<(), Failed> {
        session.run(&*format!("(def bonus {BONUS})")).eval::<IgnoredAny>(&self.world)?.into_result()?;
        Ok(())
    }

    fn run(&self, session: &mut Session, orders: &[Order]) -> Result<i64, Failed> {
        let run = session.run("(reduce + bonus (map :amount (filter :paid orders)))").set("orders", &orders);
        Ok(run.eval(&self.world)?.into_result()?)
    }

    fn calls(&self, session: &mut Session) -> Result<i64, Failed> {
        let script = "
            (loop [n 0 total 0]
              (if (< n most)
                (let [price (shop/quote {:customer \"ann\" :amount n :express false})]
                  (recur (inc n) (+ total (:net price) (:shipping price))))
                total))";
        Ok(session.run(script).set("most", &CALLS).eval(&self.world)?.into_result()?)
    }
}

/// A call that needs approval suspends the run; the run and its session are text.
fn suspend(subject: &Lispbox, mut session: Session, orders: &[Order]) -> Result<(i64, usize), Failed> {
    let script = "(shop/pay {:total (reduce + bonus (map :amount (filter :paid orders)))})";
    let outcome = session.run(script).set("orders", &orders).eval::<i64>(&subject.world)?;
    let Outcome::Suspended(run) = outcome else { return Err("it asks for approval".into()) };
    let (run, session) = (run.encode(), session.encode()?);
    let bytes = run.len() + session.len();

    let mut run = Suspended::decode(&run)?;
    let question = run.questions().next().ok_or("it asks about one call")?.id.clone();
    run.approve(&question)?;
    let total = subject.engine.restore(&session)?.resume(run).eval::<i64>(&subject.world)?.into_result()?;
    Ok((total, bytes))
}
