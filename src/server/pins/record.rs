//! The record of one server's pins, and the comparison of a list of tools with it.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

use crate::lang::internal::{canonical_tool, foreign_text};
use crate::server::config::Pinning;
use crate::server::quarantine::{DeclaredTexts, declaration_rules};

use super::declaration::{Declaration, INSTRUCTIONS, Suspicions};
use super::standing::{Held, PinReport, Standing};

/// The version of the text of a record.
pub(super) const VERSION: u32 = 1;

/// Maximum number of pins of a server: twice the tools of a large one, since tools that have disappeared count.
const MOST: usize = 20_000;

/// The pins of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(rename = "lispbox-pins")]
    pub(super) version: u32,
    /// The name of the server, for people who read the record.
    server: String,
    /// The quarantine rules by which the suspicions were found.
    #[serde(default)]
    rules: String,
    /// The pins by the names of tools.
    pub(super) tools: BTreeMap<String, Pin>,
}

/// The pin of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Pin {
    /// The declaration that is accepted.
    pub(super) declaration: Declaration,
    pub(super) digest: String,
    pub(super) suspicions: Suspicions,
    /// When it was accepted, in seconds since 1970.
    pub(super) at: u64,
    /// True if the tool was not there when the server was first seen, and no person has reviewed it.
    #[serde(default)]
    pub(super) is_new: bool,
    /// A later declaration that is not accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) change: Option<Change>,
}

/// A change that is not accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) declaration: Declaration,
    pub(super) digest: String,
    /// When it was first seen, in seconds since 1970.
    pub(super) at: u64,
}

impl Pin {
    pub(super) fn new(
        declaration: Declaration,
        digest: String,
        at: u64,
        is_new: bool,
        checked: &mut DeclaredTexts,
    ) -> Pin {
        let suspicions = declaration.suspicions(checked);
        Pin { declaration, digest, suspicions, at, is_new, change: None }
    }

    fn standing(&self) -> Standing {
        let Suspicions { names, .. } = &self.suspicions;
        let is_quotable = self.suspicions.is_empty() && !self.is_new;
        let suspicions = self.suspicions.all();
        Standing { is_quotable, is_nameable: names.is_empty(), suspicions, ..Standing::default() }
    }
}

impl Record {
    pub(super) fn new(server: &str) -> Record {
        let (server, rules) = (server.to_owned(), declaration_rules().to_owned());
        Record { version: VERSION, server, rules, tools: BTreeMap::new() }
    }

    /// Returns whether a change to this declaration of a tool is recorded and not accepted.
    pub(super) fn waits(&self, tool: &str, digest: &str) -> bool {
        let is_it = |pin: &Pin| pin.change.as_ref().is_some_and(|change| change.digest == digest);
        match self.tools.get(tool) {
            Some(pin) => is_it(pin),
            None => self.tools.len() >= MOST || self.tools.values().any(is_it),
        }
    }

    /// Returns the names of the pins that the server lists no longer, by the spelling that programs and rules do not tell
    /// from others. So a tool does not lose its pin by another spelling of its name.
    fn gone(&self, listed: &[Declaration]) -> HashMap<String, String> {
        let listed: HashSet<&str> = listed.iter().map(|tool| tool.name.as_str()).collect();
        let gone = self.tools.keys().filter(|name| !listed.contains(name.as_str()));
        gone.map(|name| (canonical_tool(name), name.clone())).collect()
    }

    /// Returns the pins whose names are like those of listed tools without a pin, by the form in which they are. So a
    /// tool does not stand beside another one as its milder twin, and take its place once that is gone.
    fn twins(&self, listed: &[Declaration]) -> HashMap<String, Vec<Declaration>> {
        let unpinned = listed.iter().filter(|tool| !self.tools.contains_key(&tool.name));
        let forms: HashSet<String> = unpinned.map(|tool| likeness(&tool.name)).collect();
        let mut twins: HashMap<String, Vec<Declaration>> = HashMap::new();
        if forms.is_empty() {
            return twins;
        }
        for pin in self.tools.values() {
            let form = likeness(&pin.declaration.name);
            if forms.contains(&form) {
                twins.entry(form).or_default().push(pin.declaration.clone());
            }
        }
        twins
    }

    /// Looks for suspicions again if the rules have changed.
    fn renew_suspicions(&mut self, checked: &mut DeclaredTexts) {
        if self.rules != declaration_rules() {
            self.rules = declaration_rules().to_owned();
            self.tools.values_mut().for_each(|pin| pin.suspicions = pin.declaration.suspicions(checked));
        }
    }
}

/// Returns the form of a name that it has in common with all names that programs and rules do not tell from it, and
/// with those that look like it.
fn likeness(name: &str) -> String {
    let visible = |text: &str| -> String {
        let is_seen = |c: &char| !c.is_whitespace() && !foreign_text::shows_nothing(*c);
        text.chars().filter(is_seen).flat_map(char::to_lowercase).collect()
    };
    let compatible: String = name.nfkc().collect();
    let looks: String = skeleton(&visible(&compatible)).collect();
    canonical_tool(&visible(&looks))
}

impl PinReport {
    /// Adds a tool if its pin reads like instructions.
    fn suspect(&mut self, pin: &Pin) {
        if !pin.suspicions.is_empty() {
            self.suspicious.push((pin.declaration.name.clone(), pin.suspicions.all()));
        }
    }
}

/// The standing of a listed tool, and its pin if it is held.
type Vetting = (Standing, Option<Declaration>);

/// Compares the tools that a server has listed with their pins, and pins those that have none.
pub(super) fn vet(record: &mut Record, listed: &[Declaration], mode: Pinning, now: u64) -> (Vec<Vetting>, PinReport) {
    let mut checked = DeclaredTexts::default();
    record.renew_suspicions(&mut checked);
    let is_first_sight = record.tools.is_empty();
    let mut report = PinReport::default();
    let (mut gone, twins) = (record.gone(listed), record.twins(listed));
    let vettings = listed.iter().map(|tool| {
        let digest = tool.digest();
        let is_known = record.tools.contains_key(&tool.name);
        let known = if is_known { Some(tool.name.clone()) } else { gone.remove(&canonical_tool(&tool.name)) };
        match known {
            Some(name) => {
                let mut pin = record.tools.remove(&name).expect("the name of a pin");
                let vetting = compare(&mut pin, tool, digest, &Comparison { mode, now }, &mut report, &mut checked);
                report.suspect(&pin);
                record.tools.insert(pin.declaration.name.clone(), pin);
                vetting
            }
            None if record.tools.len() >= MOST => {
                report.held.push(tool.name.clone());
                let problem = Some(format!("its server has had more than {MOST} tools, and no more are pinned"));
                let held = Held { digest, parts: Vec::new(), problem };
                (Standing { held: Some(held), ..Standing::default() }, None)
            }
            None if let Some(twins) = twins.get(&likeness(&tool.name)) => {
                // The one by which it is held, if there are several.
                let twin = twins.iter().find(|twin| twin.is_milder(tool)).unwrap_or(&twins[0]);
                let assumed = Declaration { name: tool.name.clone(), ..twin.clone() };
                let mut pin = Pin::new(assumed.clone(), assumed.digest(), now, true, &mut checked);
                let vetting = compare(&mut pin, tool, digest, &Comparison { mode, now }, &mut report, &mut checked);
                report.suspect(&pin);
                record.tools.insert(tool.name.clone(), pin);
                vetting
            }
            None => {
                let is_new = !is_first_sight && tool.name != INSTRUCTIONS;
                let pin = Pin::new(tool.clone(), digest, now, is_new, &mut checked);
                let standing = pin.standing();
                report.suspect(&pin);
                record.tools.insert(tool.name.clone(), pin);
                if tool.name == INSTRUCTIONS {
                    // They are no tool, and records of earlier versions lack them.
                } else if is_first_sight {
                    report.pinned += 1;
                } else {
                    report.new.push(tool.name.clone());
                }
                (standing, None)
            }
        }
    });
    (vettings.collect(), report)
}

/// The setting and the time of a comparison.
struct Comparison {
    mode: Pinning,
    now: u64,
}

/// Compares a tool with its pin.
fn compare(
    pin: &mut Pin,
    tool: &Declaration,
    digest: String,
    comparison: &Comparison,
    report: &mut PinReport,
    checked: &mut DeclaredTexts,
) -> Vetting {
    let Comparison { mode, now } = *comparison;
    if pin.is_new {
        report.new.push(tool.name.clone());
    }
    if pin.digest == digest {
        pin.change = None;
        return (pin.standing(), None);
    }
    if mode == Pinning::Off && !pin.declaration.is_milder(tool) {
        *pin = Pin::new(tool.clone(), digest, now, pin.is_new, checked);
        report.passed.push(tool.name.clone());
        return (pin.standing(), None);
    }
    let parts = pin.declaration.differences(tool);
    if pin.change.as_ref().is_none_or(|change| change.digest != digest) {
        pin.change = Some(Change { declaration: tool.clone(), digest: digest.clone(), at: now });
    }
    if passes(&pin.declaration, tool, mode, checked) {
        report.passed.push(tool.name.clone());
        // Nothing but the arguments differs.
        let pinned_schema = Some(pin.declaration.input_schema.clone());
        return (Standing { pinned_schema, ..pin.standing() }, None);
    }
    report.held.push(tool.name.clone());
    let parts = parts.into_iter().map(str::to_owned).collect();
    let held = Held { digest, parts, problem: None };
    (Standing { held: Some(held), ..pin.standing() }, Some(pin.declaration.clone()))
}

/// Returns whether a tool with this change may be called before a person has accepted it.
pub(super) fn passes(before: &Declaration, after: &Declaration, mode: Pinning, checked: &mut DeclaredTexts) -> bool {
    match mode {
        Pinning::Off => !before.is_milder(after),
        Pinning::Strict => false,
        Pinning::Lenient => before.is_widened_by(after) && after.suspicions(checked).is_empty(),
    }
}
