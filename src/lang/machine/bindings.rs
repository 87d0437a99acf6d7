//! The dynamic bindings (`binding`) of a branch.

use super::Core;
use crate::value::Value;

/// A dynamic binding of a definition.
pub struct Binding {
    pub(crate) index: u32,
    /// The outer value while the binding is in effect; the bound value while the branch waits.
    pub(crate) other: Option<Value>,
}

/// The dynamic bindings of a branch, the innermost last.
#[derive(Default)]
pub struct Bindings(pub(crate) Vec<Binding>);

impl Bindings {
    /// Swaps the bindings out of the table of definitions, so that other branches do not see them.
    pub(crate) fn suspend(&mut self, core: &mut Core) {
        for binding in self.0.iter_mut().rev() {
            core.globals.swap(binding.index, &mut binding.other);
        }
    }

    /// Swaps the bindings back in.
    pub(crate) fn resume(&mut self, core: &mut Core) {
        for binding in &mut self.0 {
            core.globals.swap(binding.index, &mut binding.other);
        }
    }

    pub(crate) fn outermost(&mut self, index: u32) -> Option<&mut Binding> {
        self.0.iter_mut().find(|binding| binding.index == index)
    }
}
