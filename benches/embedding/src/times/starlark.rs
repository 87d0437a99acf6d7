//! starlark-rust: the state of a user is a frozen module, which every run imports; a module that is not frozen lives no
//! longer than the function that created it.

use starlark::environment::{FrozenModule, Globals, GlobalsBuilder, Module};
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::list::AllocList;
use starlark::values::structs::AllocStruct;
use starlark::values::{Heap, UnpackValue, Value};

use super::{BONUS, CALLS, MEMORY, Order, Quote, STEPS, Subject, Suspend};
use crate::Failed;

/// The functions of every module.
pub struct Starlark(Globals);

#[starlark_module]
fn tools(builder: &mut GlobalsBuilder) {
    fn quote<'v>(
        #[starlark(require = named)] customer: String,
        #[starlark(require = named)] amount: i64,
        #[starlark(require = named)] express: bool,
        heap: Heap<'v>,
    ) -> anyhow::Result<Value<'v>> {
        let price = super::quote(&Quote { customer, amount, express });
        let fields = [
            ("net", heap.alloc(price.net)),
            ("shipping", heap.alloc(price.shipping)),
            ("note", heap.alloc(price.note)),
        ];
        Ok(heap.alloc(AllocStruct(fields)))
    }
}

impl Starlark {
    /// Evaluates a script in a module, with its limits.
    fn eval<'v>(&self, module: &Module<'v>, script: &str) -> Result<Value<'v>, Failed> {
        let script = AstModule::parse("script", script.to_string(), &Dialect::Standard)?;
        let mut evaluator = Evaluator::new(module);
        evaluator.set_max_tick_count(STEPS.into())?;
        evaluator.set_max_heap_size(MEMORY)?;
        Ok(evaluator.eval_module(script, &self.0)?)
    }

    /// Evaluates a script in a module that imports the session, and returns its number.
    fn number<I>(&self, session: &FrozenModule, name: &str, input: I, script: &str) -> Result<i64, Failed>
    where
        I: for<'v> FnOnce(Heap<'v>) -> Value<'v>,
    {
        Module::with_temp_heap(|module| {
            module.import_public_symbols(session);
            module.set(name, input(module.heap()));
            Ok(i64::unpack_value(self.eval(&module, script)?)?.ok_or("not an integer")?)
        })
    }
}

impl Subject for Starlark {
    type Session = FrozenModule;

    const SUSPEND: Result<Suspend<Self>, &'static str> = Err("a run cannot be suspended");

    const NOTES: &'static [&'static str] = &[
        "session: a frozen module, replaced by another one whenever a program defines something",
        "limits: the size of the heap, without the contents of dictionaries, in place of memory",
    ];

    fn new() -> Result<Self, Failed> {
        Ok(Starlark(GlobalsBuilder::standard().with(tools).build()))
    }

    fn session(&self) -> Result<FrozenModule, Failed> {
        Module::with_temp_heap(|module| Ok(module.freeze().map_err(starlark::Error::from)?))
    }

    fn define(&self, session: &mut FrozenModule) -> Result<(), Failed> {
        *session = Module::with_temp_heap(|module| -> Result<FrozenModule, Failed> {
            module.import_public_symbols(session);
            self.eval(&module, &format!("bonus = {BONUS}"))?;
            Ok(module.freeze().map_err(starlark::Error::from)?)
        })?;
        Ok(())
    }

    fn run(&self, session: &mut FrozenModule, orders: &[Order]) -> Result<i64, Failed> {
        let script = "
def sum():
  total = bonus
  for order in orders:
    if order.paid:
      total += order.amount
  return total
sum()";
        self.number(
            session,
            "orders",
            |heap| {
                heap.alloc(AllocList(orders.iter().map(|order| {
                    AllocStruct([
                        ("id", heap.alloc(order.id)),
                        ("customer", heap.alloc(&*order.customer)),
                        ("amount", heap.alloc(order.amount)),
                        ("paid", heap.alloc(order.paid)),
                    ])
                })))
            },
            script,
        )
    }

    fn calls(&self, session: &mut FrozenModule) -> Result<i64, Failed> {
        let script = r#"
def sum():
  total = 0
  for n in range(most):
    price = quote(customer="ann", amount=n, express=False)
    total += price.net + price.shipping
  return total
sum()"#;
        self.number(session, "most", |heap| heap.alloc(CALLS), script)
    }
}
