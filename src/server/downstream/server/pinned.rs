//! The pins of a server's tools: compared when they are listed, and asked about in the call of a tool that is held.

use std::sync::Arc;

use crate::lang::{Tool, ToolError};
use crate::server::downstream::arguments::CheckedTool;
use crate::server::downstream::told;
use crate::server::pins::{Declaration, Held, PinReport, Review, Vetted};
use crate::server::system::offload;

use super::Downstream;

impl Downstream {
    /// Compares the tools that the server has listed, and what it says about its use, with their pins. Returns what it says
    /// as it may be shown. Blocks.
    pub(super) fn vet(
        &self,
        mut declared: Vec<Declaration>,
        said: Option<String>,
    ) -> (Vec<Vetted>, Option<String>, PinReport) {
        let pins = self.pins.as_ref().expect("a server that lists tools has pins");
        let says = said.is_some();
        declared.extend(said.map(Declaration::of_instructions));
        let (mut vetted, report) = pins.vet(declared);
        let said = if says { vetted.pop() } else { None };
        (vetted, said.map(|said| pins.instructions(said)), report)
    }

    /// Returns whether a person may have accepted a held tool since it was compared.
    pub(super) async fn may_be_accepted(self: &Arc<Self>, tool: &str, held: Held) -> bool {
        let (this, tool) = (Arc::clone(self), tool.to_owned());
        let look = move || this.pins.as_ref().is_some_and(|pins| pins.has_moved_on(&tool, &held));
        offload::linear(usize::MAX, look).await
    }

    /// Returns the error of a call of a tool that is held.
    pub(super) fn refusal(&self, checked: &CheckedTool) -> Option<ToolError> {
        let (pins, held) = (self.pins.as_ref()?, checked.standing.held.as_ref()?);
        Some(pins.refusal(&checked.tool.name, held))
    }

    /// Returns the outcome of the last comparison.
    pub(in crate::server::downstream) fn pin_report(&self) -> PinReport {
        self.known().pins.clone()
    }

    /// Returns the changes and new tools that no person has reviewed. Blocks.
    ///
    /// # Errors
    /// Returns why the pins cannot be read.
    pub(in crate::server::downstream) fn reviews(&self) -> Result<Vec<Review>, String> {
        self.pins.as_ref().map_or(Ok(Vec::new()), |pins| pins.reviews())
    }

    /// Accepts what was reviewed; returns the tools that have changed again. Blocks.
    ///
    /// # Errors
    /// Returns why the pins cannot be read or written.
    pub(in crate::server::downstream) fn accept(&self, reviewed: &[Review]) -> Result<Vec<String>, String> {
        self.pins.as_ref().map_or(Ok(Vec::new()), |pins| pins.accept(reviewed))
    }

    /// Returns the known tools that may be called, as they may be quoted in the instructions for a client, and whether
    /// any is left out.
    pub(in crate::server::downstream) fn told(&self, principal: &str) -> (Vec<Arc<Tool>>, bool) {
        let Some(tools) = self.known_anyhow() else { return (Vec::new(), false) };
        let (rules, names) = (self.rules(), self.names());
        let mut is_cut = false;
        let allowed = tools.iter().filter(|checked| !self.is_denied(&rules, names.as_deref(), checked));
        let told = allowed.filter_map(|checked| {
            let told = told::told(checked.shown(principal), &checked.standing);
            is_cut |= told.is_none();
            told
        });
        (told.collect(), is_cut)
    }
}
