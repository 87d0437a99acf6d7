//! `(dir)` and `lisp_env` without a query: one look at all servers, the signatures of their tools as far as there is
//! room, and the namespaces of the language. The MCP server sends the first part to
//! connecting clients.

use super::shape::cut;
use super::signature::{self, NARROW, WIDER};
use super::{LISTED, namespaces};
use crate::error::Outcome;
use crate::foreign_text;
use crate::host::{Catalogue, Server, Tool};
use crate::machine::Machine;
use crate::meter::{Limits, time};
use std::fmt::Write;
use std::sync::Arc;

/// Maximum length of the lines of servers and tools in an answer, in bytes: about 800 tokens.
const ROOM: usize = 3_200;

/// Maximum length of a server's description, and of the reason why its tools are unknown, in characters.
const DESCRIPTION: usize = 100;

/// Maximum number of tool names in the line of a server whose signatures do not fit.
const NAMED: usize = 6;

/// Name parts of tools that find what others then work on.
const FINDING: [&str; 7] = ["list", "search", "find", "get", "query", "fetch", "read"];

/// A server in the answer.
struct Place<'t> {
    server: &'t Server,
    tools: Vec<&'t Tool>,
    /// Why its tools are unknown.
    missing: Option<&'t str>,
    /// Maximum length of what its line says about it, in characters.
    width: usize,
    /// The lines that there is room for, the most useful first, each with the position of its tool.
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
        out.push_str("Tools by server ((dir 'name) lists those of one, (doc name/tool) says all of one tool):\n");
        out.push_str(&outline(&servers, &catalogue, ROOM));
        out.push_str(&advice(&catalogue, &machine.core.meter.limits));
    }
    let _ = writeln!(out, "Namespaces: {}", namespaces(&machine.core.registry).join(" "));
    out.push_str("Search with (apropos \"word\"), read with (doc name).\n");
    Ok(out)
}

/// Returns lines on what programs should know before they call these tools: how to make many changes, and limits that are
/// lower than usual, which a program would otherwise come to in the middle of its changes.
pub fn advice(catalogue: &Catalogue, limits: &Limits) -> String {
    let mut out = String::new();
    if catalogue.tools.iter().any(|tool| tool.hints.read_only != Some(true)) {
        out.push_str("Many writes: (all-settled f items) returns the outcome of each.\n");
    }
    let usual = Limits::default();
    if limits.calls < usual.calls || limits.total < usual.total {
        let _ = writeln!(out, "A program may make {} tool calls and take {}.", limits.calls, time(limits.total));
    }
    out
}

/// Lists servers, each followed by the signatures of its tools, on lines of at most `room` bytes together. If not all
/// signatures fit, those of the most useful tools are chosen; a line says how many are left out.
pub fn outline(servers: &[Server], catalogue: &Catalogue, room: usize) -> String {
    // The lines of many servers share half of the room.
    let width = (room / 2 / servers.len().clamp(1, LISTED)).min(DESCRIPTION);
    let mut places: Vec<Place<'_>> = servers
        .iter()
        .take(LISTED)
        .map(|server| Place {
            server,
            tools: catalogue.tools.iter().map(Arc::as_ref).filter(|tool| tool.server == server.name).collect(),
            missing: catalogue.missing.iter().find(|(name, _)| *name == server.name).map(|(_, reason)| &**reason),
            width,
            lines: Vec::new(),
        })
        .collect();
    fill(&mut places, room);
    loop {
        let written: String = places.iter().map(Place::written).collect();
        let left = servers.len() - places.len();
        let more = match left {
            0 => String::new(),
            _ => format!("… and {left} more servers, search with (apropos \"word\")\n"),
        };
        // One server remains, however little room there is.
        if written.len() + more.len() <= room || !shorten(&mut places) {
            return written + &more;
        }
    }
}

/// Removes the least useful tool of the server that shows most of them, or else the last server but one. False if there is
/// nothing to remove.
fn shorten(places: &mut Vec<Place<'_>>) -> bool {
    match places.iter_mut().max_by_key(|place| place.lines.len()) {
        Some(place) if !place.lines.is_empty() => place.lines.pop().is_some(),
        _ => places.len() > 1 && places.pop().is_some(),
    }
}

impl Place<'_> {
    /// The line of the server. Without lines of tools, it says what there is: the description, or some of their names.
    fn heading(&self) -> String {
        let mut line = foreign_text::name(&self.server.name).into_owned();
        if self.lines.is_empty() && !self.tools.is_empty() {
            let plural = if self.tools.len() == 1 { "" } else { "s" };
            let _ = write!(line, " ({} tool{plural})", self.tools.len());
        }
        let described = foreign_text::lines(&self.server.description).into_iter().next().unwrap_or_default();
        if !described.is_empty() {
            let _ = write!(line, "  {}", cut(described, self.width));
        } else if self.lines.is_empty() && !self.tools.is_empty() {
            let names: Vec<_> = self.tools.iter().take(NAMED).map(|tool| foreign_text::name(&tool.name)).collect();
            let more = if self.tools.len() > NAMED { ", …" } else { "" };
            let _ = write!(line, "  {}", cut(format!("{}{more}", names.join(", ")), self.width));
        }
        line
    }

    /// The line of the server and those of its tools.
    fn written(&self) -> String {
        let mut out = self.heading() + "\n";
        if let Some(reason) = self.missing {
            let _ = writeln!(out, "  its tools are not known: {}", cut(foreign_text::line(reason), DESCRIPTION));
        }
        let mut lines: Vec<_> = self.lines.iter().collect();
        lines.sort_unstable();
        for (_, line) in lines {
            let _ = writeln!(out, "  {line}");
        }
        let more = self.tools.len() - self.lines.len();
        if more > 0 && !self.lines.is_empty() {
            out.push_str(&self.rest(more));
        }
        out
    }

    /// The line for tools that are left out.
    fn rest(&self, more: usize) -> String {
        format!("  … {more} more: (dir '{})\n", foreign_text::name(&self.server.name))
    }
}

/// Chooses the lines: of all tools if they fit, or else of the most useful ones. Servers take turns, so that one with
/// many tools leaves room for the others. The room that is left then widens the lines, step by step.
fn fill(places: &mut [Place<'_>], room: usize) {
    let headings: usize = places.iter().map(|place| place.written().len()).sum();
    let mut left = room.saturating_sub(headings);
    let mut shown = take_turns(places, &mut left);
    if shown.len() < places.iter().map(|place| place.tools.len()).sum() {
        // Each server may need a line for the tools that are left out.
        let rest = |place: &Place<'_>| if place.tools.is_empty() { 0 } else { place.rest(place.tools.len()).len() };
        left = room.saturating_sub(headings + places.iter().map(rest).sum::<usize>());
        places.iter_mut().for_each(|place| place.lines.clear());
        shown = take_turns(places, &mut left);
    }
    for widths in WIDER {
        for (at_place, at_line) in &shown {
            let place = &mut places[*at_place];
            let (at, narrow) = &mut place.lines[*at_line];
            let wide = signature::line(place.tools[*at], widths);
            if wide.len().saturating_sub(narrow.len()) <= left {
                left = left + narrow.len() - wide.len();
                *narrow = wide;
            }
        }
    }
}

/// Adds short lines, the most useful ones of each server first, as long as there is room. Returns the places of servers and
/// the positions of lines, in the order in which they were added.
fn take_turns(places: &mut [Place<'_>], left: &mut usize) -> Vec<(usize, usize)> {
    let mut ranked: Vec<Vec<usize>> = places.iter().map(|place| by_use(&place.tools)).collect();
    let mut shown = Vec::new();
    while ranked.iter().any(|tools| !tools.is_empty()) {
        for (at_place, (place, tools)) in places.iter_mut().zip(&mut ranked).enumerate() {
            let Some(at) = tools.pop() else { continue };
            let line = signature::line(place.tools[at], NARROW);
            // With two spaces before it, and a line break.
            let width = line.len() + 3;
            if width > *left {
                tools.clear();
                continue;
            }
            *left -= width;
            shown.push((at_place, place.lines.len()));
            place.lines.push((at, line));
        }
    }
    shown
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
