//! Search over all names: tools, definitions, builtins, forms.

use crate::error::Outcome;
use crate::foreign_text;
use crate::index::{FAR, Hits, Index, Indexed};
use crate::machine::Machine;
use std::fmt::Write;

/// Maximum number of results shown.
const SHOWN: usize = 10;

/// Weight of the language's own functions relative to tools and definitions, which searches usually target.
const LANGUAGE: f64 = 0.6;

/// Implements `(apropos "word")`: lists the best matches first.
///
/// # Errors
/// Halts if a resource limit is exceeded.
pub fn search(machine: &mut Machine, query: &str) -> Outcome<String> {
    let (host, registry) = (machine.core.host.clone(), machine.core.registry.clone());
    let found = machine.waiting(|| host.search(query, SHOWN));
    let language = registry.index();
    let names = found.searched + language.len() + machine.core.globals.len();
    // Matching one name against one query word costs about as much as a few evaluation steps.
    machine.charge(100 + names as u64 * (1 + query.split_whitespace().count() as u64))?;
    // The sort is stable: matches of equal score stay in the order tools, definitions, language.
    let mut lines: Vec<(f64, String)> = found.tools.iter().map(|(tool, score)| (*score, tool.signature())).collect();
    let things = machine.core.globals.iter().map(|global| Indexed {
        place: "",
        name: global.name,
        arguments: Vec::new(),
        description: global.doc.unwrap_or_default(),
    });
    let own = Index::new(things).search(query, SHOWN);
    let globals: Vec<_> = machine.core.globals.iter().collect();
    lines.extend(own.best.iter().map(|(at, score)| {
        let global = &globals[*at];
        let doc = foreign_text::lines(global.doc.unwrap_or("defined in this session")).into_iter().next();
        (*score, format!("{}  {}", foreign_text::symbol(global.name), doc.unwrap_or_default()))
    }));
    let Hits { best, more } = language.search(query, SHOWN);
    let entries: Vec<_> = if best.is_empty() { Vec::new() } else { registry.entries().collect() };
    lines.extend(best.iter().map(|(at, score)| {
        let entry = &entries[*at];
        (score * LANGUAGE, format!("{}  {}", entry.calls().next().unwrap_or_default(), entry.summary()))
    }));
    lines.sort_by(|one, other| other.0.total_cmp(&one.0));
    let least = lines.first().map_or(0.0, |(score, _)| score * FAR);
    let near = lines.iter().take_while(|(score, _)| *score >= least).count();
    let mut out: String = lines[..near.min(SHOWN)].iter().map(|(_, line)| format!("{line}\n")).collect();
    let more = near.saturating_sub(SHOWN) + found.more + own.more + more;
    if near >= SHOWN && more > 0 {
        let _ = writeln!(out, "… and {more} weaker matches; a more specific word finds fewer");
    }
    if near == 0 {
        let _ = writeln!(
            out,
            "no name or description matches `{}`; (dir) lists servers and namespaces",
            foreign_text::line(query)
        );
    }
    for (server, reason) in found.missing.iter().take(SHOWN) {
        let _ = writeln!(out, "not searched: {}: {}", foreign_text::name(server), foreign_text::line(reason));
    }
    if found.missing.len() > SHOWN {
        let _ = writeln!(out, "not searched: {} more servers", found.missing.len() - SHOWN);
    }
    Ok(out)
}
