//! Random programs over collections, each with the answer of a simple model of the collections.
//!
//! Shared by the fuzz target `collections` and the test `tests/language/collections.rs`.

mod keyed;
mod keys;
mod records;
mod sequences;

use std::fmt::Display;

/// A source of choices.
pub trait Choices {
    /// Returns a number below `count`, which is at least 1; 0 when the source is exhausted.
    fn pick(&mut self, count: usize) -> usize;

    /// Returns one of these items.
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.pick(all.len())]
    }
}

/// A program and the printed form of its value.
pub struct Case {
    pub program: String,
    pub expected: String,
}

/// Generates a program that derives one collection from another, step by step, and shows each of them.
pub fn case(choices: &mut impl Choices) -> Case {
    let mut steps = Steps::default();
    match choices.pick(4) {
        0 => records::steps(choices, &mut steps),
        1 => sequences::steps(choices, &mut steps),
        _ => keyed::steps(choices, &mut steps),
    }
    steps.finish()
}

/// Maximum number of steps of a program.
const LONGEST: usize = 8;

/// A program under construction: the bindings `c0`, `c1` and so on, and the expressions that show them.
#[derive(Default)]
struct Steps {
    bindings: Vec<String>,
    shown: Vec<String>,
    expected: Vec<String>,
}

impl Steps {
    /// Returns the name of the last collection.
    fn last(&self) -> String {
        format!("c{}", self.bindings.len() - 1)
    }

    /// Adds a collection.
    fn bind(&mut self, expression: impl Display) {
        self.bindings.push(expression.to_string());
    }

    /// Adds an expression to show, and its expected printed form.
    fn show(&mut self, expression: impl Display, expected: impl Display) {
        self.shown.push(expression.to_string());
        self.expected.push(expected.to_string());
    }

    fn finish(self) -> Case {
        let bindings: Vec<String> =
            self.bindings.iter().enumerate().map(|(number, expression)| format!("c{number} {expression}")).collect();
        Case {
            program: format!("(let [{}]\n  [{}])", bindings.join("\n      "), self.shown.join("\n   ")),
            expected: format!("[{}]", self.expected.join(" ")),
        }
    }
}

/// Formats items as a printed sequence; `nil` if there are none.
fn printed_seq(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "nil".to_string() } else { format!("({})", items.join(" ")) }
}
