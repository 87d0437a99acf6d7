//! Random programs over collections, each with the answer that a plain model of the collections gives.
//!
//! The fuzz target `collections` and the test `tests/language/collections.rs` share this module.

mod keyed;
mod keys;
mod records;
mod sequences;

use std::fmt::Display;

/// A source of choices.
pub trait Choices {
    /// A number below `count`, which is at least 1; 0 when nothing is left to choose from.
    fn pick(&mut self, count: usize) -> usize;

    /// One of these.
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.pick(all.len())]
    }
}

/// A program and the text that its value prints as.
pub struct Case {
    pub program: String,
    pub expected: String,
}

/// A program that makes one collection from another, step by step, and shows what each looks like.
pub fn case(choices: &mut impl Choices) -> Case {
    let mut steps = Steps::default();
    match choices.pick(4) {
        0 => records::steps(choices, &mut steps),
        1 => sequences::steps(choices, &mut steps),
        _ => keyed::steps(choices, &mut steps),
    }
    steps.finish()
}

/// The most steps of one program.
const LONGEST: usize = 8;

/// A program in the making: bindings `c0`, `c1` and so on, and what is shown of them.
#[derive(Default)]
struct Steps {
    bindings: Vec<String>,
    shown: Vec<String>,
    expected: Vec<String>,
}

impl Steps {
    /// The name of the last collection.
    fn last(&self) -> String {
        format!("c{}", self.bindings.len() - 1)
    }

    /// Adds a collection.
    fn bind(&mut self, expression: impl Display) {
        self.bindings.push(expression.to_string());
    }

    /// Adds something to show, and how it prints.
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

/// Items as a sequence prints, which is nil if there are none.
fn printed_seq(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "nil".to_string() } else { format!("({})", items.join(" ")) }
}
