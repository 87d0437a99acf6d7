//! Search over everything that has a name: tools, definitions, builtins, forms.

use super::signature;
use crate::lang::error::Outcome;
use crate::lang::eval::Machine;
use crate::lang::value::map::kebab;
use std::fmt::Write;

/// How many results are shown.
const SHOWN: usize = 20;

/// One thing that was found.
struct Hit {
    score: u32,
    line: String,
}

/// `(apropos "word")`: what fits best first.
///
/// # Errors
/// Limits.
pub fn search(machine: &mut Machine, query: &str) -> Outcome<String> {
    let words: Vec<String> =
        kebab(query).split(['-', ' ', '/']).filter(|word| !word.is_empty()).map(str::to_string).collect();
    let host = machine.core.host.clone();
    let catalogue = machine.waiting(|| host.catalogue());
    let places = catalogue.tools.len() + machine.core.globals.len() + machine.core.registry.entries().count();
    machine.charge((places * words.len()) as u64)?;
    let mut hits = Vec::new();
    for tool in &catalogue.tools {
        machine.charge(1)?;
        let name = kebab(&format!("{}/{}", tool.server, tool.name));
        let parameters: String = tool.parameters().iter().map(|(name, _)| format!("{} ", kebab(name))).collect();
        // Tools are what a search is for most often, so they come before builtins of the same score.
        if let Some(score) = score(&words, &name, &tool.description, &parameters) {
            hits.push(Hit { score: score * 2 + 1, line: signature::line(tool) });
        }
    }
    for global in machine.core.globals.iter() {
        if let Some(score) = score(&words, &kebab(global.name), global.doc.unwrap_or_default(), "") {
            hits.push(Hit {
                score: score * 2 + 1,
                line: format!("{}  {}", global.name, global.doc.unwrap_or("defined in this session")),
            });
        }
    }
    for entry in machine.core.registry.entries() {
        if let Some(score) = score(&words, entry.name, entry.doc, "") {
            let line = entry.calls().next().unwrap_or_default();
            hits.push(Hit { score: score * 2, line: format!("{line}  {}", entry.summary()) });
        }
    }
    machine.charge(hits.len() as u64 + 100)?;
    hits.sort_by_key(|hit| std::cmp::Reverse(hit.score));
    let mut out = String::new();
    for hit in hits.iter().take(SHOWN) {
        let _ = writeln!(out, "{}", hit.line);
    }
    if hits.len() > SHOWN {
        let _ = writeln!(out, "… and {} more", hits.len() - SHOWN);
    }
    if hits.is_empty() {
        let _ = writeln!(out, "nothing is called `{query}` or says so in its description; (dir) lists what there is");
    }
    for (server, reason) in &catalogue.missing {
        let _ = writeln!(out, "not searched: {server}: {reason}");
    }
    Ok(out)
}

/// How well something fits: every word must be in its name, its description or its parameters, or be
/// nearly a part of its name.
fn score(words: &[String], name: &str, description: &str, parameters: &str) -> Option<u32> {
    let description = description.to_lowercase();
    let parts: Vec<&str> = name.split(['-', '/', '.']).collect();
    let mut total = 0;
    for word in words {
        total += if name == word || parts.contains(&word.as_str()) {
            12
        } else if name.contains(word.as_str()) {
            8
        } else if parts.iter().any(|part| {
            part.len() > 3
                && word.len() > 3
                && part.len().abs_diff(word.len()) <= 4
                && strsim::damerau_levenshtein(part, word) == 1
        }) {
            5
        } else if description.contains(word.as_str()) {
            3
        } else if parameters.contains(word.as_str()) {
            2
        } else {
            return None;
        };
    }
    (total > 0).then_some(total)
}
