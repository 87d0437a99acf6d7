//! rhai, with its limits on.

use lispbox_peers::child::{Meaning, Peer, Session};
use lispbox_peers::workload::Language;
use rhai::{Dynamic, Engine, EvalAltResult, Map, Scope};

/// The limits that are on.
pub const LIMITS: &str = "operations, call depth, variables; not sizes of data: with one of these on it measures \
    whole arrays and maps anew at each change, and W3 takes minutes";

/// An engine shared by all environments.
pub struct Rhai(Engine);

impl Rhai {
    /// Creates the engine.
    pub fn new() -> Rhai {
        let mut engine = Engine::new();
        engine.set_max_operations(2_000_000_000);
        engine.set_max_call_levels(500);
        engine.set_max_variables(10_000);
        engine.register_fn("host_add", add);
        Rhai(engine)
    }
}

fn add(values: Map) -> Result<i64, Box<EvalAltResult>> {
    let number = |name: &str| values.get(name).and_then(|value| value.as_int().ok());
    match (number("a"), number("b")) {
        (Some(a), Some(b)) => Ok(a + b),
        _ => Err("host_add takes two integers, a and b".into()),
    }
}

impl Peer for Rhai {
    fn language(&self) -> Language {
        Language::Rhai
    }

    fn in_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<(), String>) -> Result<(), String> {
        work(&mut Running { engine: &self.0, scope: Scope::new() })
    }
}

struct Running<'a> {
    engine: &'a Engine,
    scope: Scope<'static>,
}

impl Session for Running<'_> {
    fn give(&mut self, text: String, _: Meaning) -> Result<(), String> {
        self.scope.push("text", text);
        Ok(())
    }

    fn parse(&mut self) -> Result<(), String> {
        self.run(include_str!("../../../programs/parse.rhai")).map(drop)
    }

    fn run(&mut self, program: &str) -> Result<String, String> {
        let value = self.engine.eval_with_scope::<Dynamic>(&mut self.scope, program);
        value.map(|value| value.to_string()).map_err(|error| error.to_string())
    }
}
