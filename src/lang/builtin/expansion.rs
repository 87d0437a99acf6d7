//! Macro expansion on demand.

use crate::error::Outcome;
use crate::eval::Expansion;
use crate::machine::Machine;
use crate::native::{Builtin, Conduct};
use crate::value::Value;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "macroexpand-1",
        &["[form]"],
        "Expands the macro at the head of a quoted form once; a form without one is unchanged.",
        &[("(macroexpand-1 '(-> x (f 1) g))", "(g (f x 1))"), ("(macroexpand-1 '(f x))", "(f x)")],
        |machine, arguments| machine.expand_data(&arguments[0], Expansion::Once),
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "macroexpand",
        &["[form]"],
        "Expands a quoted form until its head is not a macro.",
        &[("(defmacro twice [x] `(do ~x ~x)) (macroexpand '(twice (f)))", "(do (f) (f))")],
        |machine, arguments| machine.expand_data(&arguments[0], Expansion::Head),
    )
    .with_conduct(Conduct::ByName),
    Builtin::new(
        "macroexpand-all",
        &["[form]"],
        "Expands a quoted form and all its subforms.",
        &[("(macroexpand-all '(f (-> x g)))", "(f (g x))")],
        all,
    )
    .with_conduct(Conduct::ByName),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[("walk/macroexpand-all", "macroexpand-all")];

fn all(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    machine.expand_data(&arguments[0], Expansion::All)
}
