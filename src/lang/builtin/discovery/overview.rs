//! `(dir)` and `lisp_env` without a query: one look at all servers, the signatures of their tools as far as there is
//! room, and the namespaces of the language.

use super::shape::cut;
use super::signature::{self, NARROW, USUAL};
use super::{LISTED, namespaces};
use crate::error::Outcome;
use crate::foreign_text;
use crate::host::{Server, Tool};
use crate::machine::Machine;
use std::fmt::Write;
use std::sync::Arc;

/// Maximum length of the lines of servers and tools, in characters: about 800 tokens.
const ROOM: usize = 3_200;

/// Maximum length of a server's description, and of the reason why its tools are unknown, in characters.
const DESCRIPTION: usize = 100;

/// Name parts of tools that find what others then work on.
const FINDING: [&str; 7] = ["list", "search", "find", "get", "query", "fetch", "read"];

/// A server in the answer.
struct Place<'t> {
    server: &'t Server,
    tools: Vec<&'t Tool>,
    /// Why its tools are unknown.
    missing: Option<&'t str>,
    /// The lines that there is room for, each with the position of its tool.
    lines: Vec<(usize, String)>,
}

/// Lists the servers with their tools, and the namespaces of the language.
///
/// # Errors
/// Halts if a resource limit is exceeded.
pub fn overview(machine: &mut Machine) -> Outcome<String> {
    let host = machine.core.host.clone();
    let servers = host.servers();
    let mut out = String::new();
    if servers.is_empty() {
        out.push_str("No tool servers are configured.\n");
    } else {
        let catalogue = machine.waiting(|| host.catalogue());
        // Each tool is ranked, which costs less than a step.
        machine.charge(100 + catalogue.tools.len() as u64)?;
        let mut places: Vec<Place<'_>> = servers
            .iter()
            .take(LISTED)
            .map(|server| Place {
                server,
                tools: catalogue.tools.iter().map(Arc::as_ref).filter(|tool| tool.server == server.name).collect(),
                missing: catalogue.missing.iter().find(|(name, _)| *name == server.name).map(|(_, reason)| &**reason),
                lines: Vec::new(),
            })
            .collect();
        fill(&mut places);
        out.push_str("Tools by server ((dir 'name) lists those of one, (doc name/tool) says all of one tool):\n");
        places.iter().for_each(|place| place.write(&mut out));
        if servers.len() > LISTED {
            let _ = writeln!(out, "… and {} more servers, search with (apropos \"word\")", servers.len() - LISTED);
        }
    }
    let _ = writeln!(out, "Namespaces: {}", namespaces(&machine.core.registry).join(" "));
    out.push_str("Search with (apropos \"word\"), read with (doc name).\n");
    Ok(out)
}

impl Place<'_> {
    fn heading(&self) -> String {
        let line = foreign_text::lines(&self.server.description).into_iter().next().unwrap_or_default();
        let hidden = match self.tools.len() {
            count if count > 0 && self.lines.is_empty() => format!(" ({count} tools)"),
            _ => String::new(),
        };
        format!("{}{hidden}  {}", foreign_text::name(&self.server.name), cut(line, DESCRIPTION)).trim_end().to_string()
    }

    fn write(&self, out: &mut String) {
        let _ = writeln!(out, "{}", self.heading());
        if let Some(reason) = self.missing {
            let _ = writeln!(out, "  its tools are not known: {}", cut(foreign_text::line(reason), DESCRIPTION));
        }
        for (_, line) in &self.lines {
            let _ = writeln!(out, "  {line}");
        }
        let more = self.tools.len() - self.lines.len();
        if more > 0 && !self.lines.is_empty() {
            let _ = writeln!(out, "  … {more} more: (dir '{})", foreign_text::name(&self.server.name));
        }
    }
}

/// Chooses the lines: all tools if they fit, or else shorter lines of the most useful tools. Servers take turns, so that
/// one with many tools leaves room for the others.
fn fill(places: &mut [Place<'_>]) {
    let width = |line: &str| line.chars().count() + 1;
    let headings: usize = places.iter().map(|place| width(&place.heading())).sum();
    let room = ROOM.saturating_sub(headings);
    let tools: Vec<&Tool> = places.iter().flat_map(|place| place.tools.iter().copied()).collect();
    let mut left = room;
    let fits = |tool: &&Tool| {
        let needed = width(&signature::line(tool, USUAL)) + 2;
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    };
    if tools.iter().all(fits) {
        for place in places {
            place.lines = place.tools.iter().map(|tool| signature::line(tool, USUAL)).enumerate().collect();
        }
        return;
    }
    let mut left = room;
    let mut ranked: Vec<Vec<usize>> = places.iter().map(|place| by_use(&place.tools)).collect();
    while ranked.iter().any(|tools| !tools.is_empty()) {
        for (place, tools) in places.iter_mut().zip(&mut ranked) {
            let Some(at) = tools.pop() else { continue };
            let line = signature::line(place.tools[at], NARROW);
            let needed = width(&line) + 2;
            if needed > left {
                tools.clear();
                continue;
            }
            left -= needed;
            place.lines.push((at, line));
        }
    }
    places.iter_mut().for_each(|place| place.lines.sort_unstable());
}

/// Returns the positions of tools, the most useful last: those that have been called, then those that only read, then
/// those that find things.
fn by_use(tools: &[&Tool]) -> Vec<usize> {
    let finds = |tool: &Tool| {
        let name = tool.name.to_lowercase();
        FINDING.iter().any(|verb| name.split(|c: char| !c.is_alphanumeric()).any(|part| part.starts_with(verb)))
    };
    let rank = |tool: &Tool| (tool.seen.is_none(), tool.hints.read_only != Some(true), !finds(tool));
    let mut positions: Vec<usize> = (0..tools.len()).collect();
    positions.sort_by_key(|at| rank(tools[*at]));
    positions.reverse();
    positions
}
