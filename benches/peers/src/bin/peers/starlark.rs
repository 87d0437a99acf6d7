//! starlark-rust, with its limits on.

use lispbox_peers::child::{Meaning, Peer, Session};
use lispbox_peers::workload::Language;
use starlark::environment::{Globals, GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::Value;
use starlark::values::dict::DictRef;

/// The limits that are on.
pub const LIMITS: &str = "ticks, call depth, heap";

#[starlark_module]
fn host(builder: &mut GlobalsBuilder) {
    fn host_add<'v>(values: Value<'v>) -> anyhow::Result<i32> {
        let values = DictRef::from_value(values);
        let number = |name: &str| values.as_ref()?.get_str(name)?.unpack_i32();
        match (number("a"), number("b")) {
            (Some(a), Some(b)) => Ok(a + b),
            _ => Err(anyhow::anyhow!("host_add takes two integers, a and b")),
        }
    }
}

/// The functions shared by all environments.
pub struct Starlark(Globals);

impl Starlark {
    /// Creates the functions.
    pub fn new() -> Starlark {
        Starlark(GlobalsBuilder::extended_by(&[LibraryExtension::Json]).with(host).build())
    }
}

impl Peer for Starlark {
    fn language(&self) -> Language {
        Language::Starlark
    }

    fn in_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<(), String>) -> Result<(), String> {
        Module::with_temp_heap(|module| {
            let mut evaluator = Evaluator::new(&module);
            let limited = [
                evaluator.set_max_callstack_size(1_000),
                evaluator.set_max_heap_size(2 << 30),
                evaluator.set_max_tick_count(1_000_000_000),
            ];
            limited.into_iter().collect::<Result<Vec<()>, _>>().map_err(|error| error.to_string())?;
            work(&mut Running { evaluator, module: &module, globals: &self.0 })
        })
    }
}

struct Running<'v, 'a> {
    evaluator: Evaluator<'v, 'a, 'a>,
    module: &'a Module<'v>,
    globals: &'a Globals,
}

impl Session for Running<'_, '_> {
    fn give(&mut self, text: String, _: Meaning) -> Result<(), String> {
        self.module.set("text", self.module.heap().alloc(text.as_str()));
        Ok(())
    }

    fn parse(&mut self) -> Result<(), String> {
        self.run(include_str!("../../../programs/parse.star")).map(drop)
    }

    fn run(&mut self, program: &str) -> Result<String, String> {
        let parsed = AstModule::parse("program", program.to_string(), &Dialect::Standard);
        let value = parsed.and_then(|parsed| self.evaluator.eval_module(parsed, self.globals));
        value.map(Value::to_str).map_err(|error| error.to_string())
    }
}
