//! rhai: one engine; the state of a user is a scope.

use rhai::serde::{from_dynamic, to_dynamic};
use rhai::{Dynamic, Engine, EvalAltResult, Scope};

use super::{BONUS, CALLS, MEMORY, Order, Quote, STEPS, Subject, Suspend};
use crate::Failed;

/// The engine, with the tool.
pub struct Rhai(Engine);

impl Subject for Rhai {
    type Session = Scope<'static>;

    const SUSPEND: Result<Suspend<Self>, &'static str> = Err("a run cannot be suspended");

    const NOTES: &'static [&'static str] =
        &["limits: the sizes of strings, arrays and maps, each by itself, in place of memory"];

    fn new() -> Result<Self, Failed> {
        let mut engine = Engine::new();
        engine.set_max_operations(STEPS.into()).set_max_variables(1_000);
        engine.set_max_string_size(MEMORY).set_max_array_size(MEMORY / 16).set_max_map_size(MEMORY / 64);
        engine.register_fn("quote", |quote: Dynamic| -> Result<Dynamic, Box<EvalAltResult>> {
            to_dynamic(super::quote(&from_dynamic::<Quote>(&quote)?))
        });
        Ok(Rhai(engine))
    }

    fn session(&self) -> Result<Scope<'static>, Failed> {
        Ok(Scope::new())
    }

    fn define(&self, session: &mut Scope<'static>) -> Result<(), Failed> {
        Ok(self.0.run_with_scope(session, &format!("let bonus = {BONUS};"))?)
    }

    fn run(&self, session: &mut Scope<'static>, orders: &[Order]) -> Result<i64, Failed> {
        let script = "
            let total = bonus;
            for order in orders { if order.paid { total += order.amount } }
            total";
        let kept = session.len();
        session.push("orders", to_dynamic(orders)?);
        let total = self.0.eval_with_scope(session, script)?;
        session.rewind(kept);
        Ok(total)
    }

    fn calls(&self, session: &mut Scope<'static>) -> Result<i64, Failed> {
        let script = r#"
            let total = 0;
            for n in 0..most {
                let price = quote(#{ customer: "ann", amount: n, express: false });
                total += price.net + price.shipping;
            }
            total"#;
        let kept = session.len();
        session.push("most", CALLS);
        let total = self.0.eval_with_scope(session, script)?;
        session.rewind(kept);
        Ok(total)
    }
}
