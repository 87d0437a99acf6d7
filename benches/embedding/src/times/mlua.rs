//! mlua: the state of a user is a Lua state, because it alone has limits of its own.

use std::cell::Cell;
use std::rc::Rc;

use mlua::debug::{DebugEvent, HookTriggers};
use mlua::{Error, Lua, LuaSerdeExt, Value, VmState};

use super::{BONUS, CALLS, MEMORY, Order, STEPS, Subject, Suspend};
use crate::Failed;

/// Nothing is shared by the sessions.
pub struct Mlua;

/// A state, and the instructions left to its run.
pub struct Session {
    lua: Lua,
    left: Rc<Cell<i64>>,
}

impl Session {
    /// Runs a chunk with a limit of its own.
    fn eval<T: mlua::FromLuaMulti>(&self, script: &str) -> Result<T, Failed> {
        self.left.set(STEPS.into());
        Ok(self.lua.load(script).eval()?)
    }
}

impl Subject for Mlua {
    type Session = Session;

    const SUSPEND: Result<Suspend<Self>, &'static str> =
        Err("a coroutine can be suspended, but neither it nor the state can be written out");

    const NOTES: &'static [&'static str] = &["session: a state of its own, with the limits and the tool in it"];

    fn new() -> Result<Self, Failed> {
        Ok(Mlua)
    }

    fn session(&self) -> Result<Session, Failed> {
        let (lua, left) = (Lua::new(), Rc::new(Cell::new(i64::from(STEPS))));
        lua.set_memory_limit(MEMORY)?;
        let counter = left.clone();
        let triggers = HookTriggers::new().on_returns().every_nth_instruction(1_000);
        lua.set_global_hook(triggers, move |_, debug| {
            if debug.event() == DebugEvent::Count {
                counter.set(counter.get() - 1_000);
            }
            if counter.get() > 0 { Ok(VmState::Continue) } else { Err(Error::runtime("too many instructions")) }
        })?;
        let quote = lua.create_function(|lua, quote: Value| lua.to_value(&super::quote(&lua.from_value(quote)?)))?;
        lua.globals().set("quote", quote)?;
        Ok(Session { lua, left })
    }

    fn define(&self, session: &mut Session) -> Result<(), Failed> {
        session.eval(&format!("bonus = {BONUS}"))
    }

    fn run(&self, session: &mut Session, orders: &[Order]) -> Result<i64, Failed> {
        let script = "
            local total = bonus
            for _, order in ipairs(orders) do
                if order.paid then total = total + order.amount end
            end
            return total";
        session.lua.globals().set("orders", session.lua.to_value(orders)?)?;
        session.eval(script)
    }

    fn calls(&self, session: &mut Session) -> Result<i64, Failed> {
        let script = "
            local total = 0
            for n = 0, most - 1 do
                local price = quote({ customer = 'ann', amount = n, express = false })
                total = total + price.net + price.shipping
            end
            return total";
        session.lua.globals().set("most", CALLS)?;
        session.eval(script)
    }
}
