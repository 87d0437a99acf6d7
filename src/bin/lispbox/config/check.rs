//! `lispbox config check`: tests the configuration.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::Tool;
use lispbox::lang::internal::foreign_text;
use lispbox::server::{Checked, Connections, Downstreams, Effect, PinReport, Pins, Sampled, ServeOptions, Verdict};

use crate::context::Problem;
use crate::output::outln;
use crate::serve::{Prepared, Serve};

/// Reads all settings as `serve` does (its flags and variables, without listening), starts each server, lists its
/// tools, reports the errors of those that do not work, and names the rules that match no tool. Fails if a server does
/// not work.
#[derive(Args)]
pub struct Check {
    /// Call the tools that only read and need no arguments once each, as far as the policy allows that without asking,
    /// to learn the shapes of their results. Programs are shown these shapes, in which there are no values.
    #[arg(long)]
    sample: bool,
    #[command(flatten)]
    serve: Serve,
}

impl Check {
    /// Checks all servers concurrently.
    pub(super) fn run(self) -> Result<ExitCode, Problem> {
        let Prepared { options, redaction, .. } = self.serve.prepare()?;
        self.serve.storage.check()?;
        let ServeOptions { configuration, mut downstream, .. } = options;
        match self.serve.storage.pins()? {
            Some(pins) => downstream.pins = pins,
            None if self.serve.storage.is_named() => {
                outln!("warning: no tools are pinned, since the store does not exist yet");
                downstream.pins = Pins::none();
            }
            None => {}
        }
        for warning in &configuration.warnings {
            outln!("warning: {warning}");
        }
        if configuration.servers.is_empty() {
            outln!("no servers are configured; `lispbox config import` imports those of other clients");
            return Ok(ExitCode::SUCCESS);
        }
        for server in &configuration.servers {
            for place in server.secrets.exposed() {
                outln!(
                    "warning: {}: the secret at `{place}` is too short to be redacted: expected 8 bytes or more, or 16 where it is all small letters or all digits",
                    server.name
                );
            }
        }
        let keeps_shapes = downstream.cache.is_some();
        let connections = Connections::open_with(configuration, downstream)
            .map_err(|problem| Problem::Failed(problem.to_string()))?;
        let checked = connections.check();
        let mut broken = 0;
        for Checked { server: name, tools, unchecked, unguarded, command, unusable } in &checked {
            match tools {
                Ok(_) if !unusable.is_empty() => {
                    broken += 1;
                    outln!("broken  {name}: {}", unusable.join("; "));
                }
                Ok(tools) => {
                    let denied = connections.downstreams().denied(name);
                    let denied = match denied.len() {
                        0 => String::new(),
                        count => {
                            format!(", {count} more may not be called: {}", names(denied.iter().map(|(name, _)| name)))
                        }
                    };
                    let effects = effects(connections.downstreams(), tools);
                    outln!("ok      {name}: {}{effects}{denied}", counted(tools.len(), "tool"));
                    asked(connections.downstreams(), name, tools);
                    for left_out in connections.downstreams().left_out(name) {
                        outln!("warning: {name}: {left_out}");
                    }
                    for tool in tools {
                        let (own, called) = (foreign_text::qualified(name, &tool.name), tool.call_name());
                        if own != called {
                            outln!("named   {name}: {} is called as {called}", foreign_text::name(&tool.name));
                        }
                    }
                    if let Some(command) = command {
                        outln!("command {name}: {command}");
                    }
                    pinned(connections.downstreams(), name);
                    for warning in unchecked.iter().chain(unguarded) {
                        outln!("warning: {warning}");
                    }
                    if self.sample {
                        sample(&connections, name, tools);
                    }
                }
                Err(problem) => {
                    broken += 1;
                    outln!("broken  {name}: {}", foreign_text::line(&problem.message));
                    if let Some(command) = command {
                        outln!("command {name}: {command}");
                    }
                }
            }
        }
        if self.sample && !keeps_shapes {
            outln!("warning: the shapes are not kept, since LISPBOX_CACHE is `off` or no folder for it is known");
        }
        for guard in connections.downstreams().guard_lines() {
            outln!("guard   {guard}");
        }
        for rule in connections.downstreams().unfit_rules() {
            outln!("warning: {rule}");
        }
        match connections.downstreams().without_effect(&redaction) {
            Some(rules) => {
                rules.iter().for_each(|rule| outln!("warning: the redaction rule {rule}"));
            }
            None if redaction.has_own_rules() => {
                outln!("warning: the redaction rules were not checked, since the tools of a server are not known");
            }
            None => {}
        }
        connections.close();
        if broken == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        outln!("{broken} of {} cannot be used; programs can use the others", counted(checked.len(), "server"));
        Ok(ExitCode::FAILURE)
    }
}

/// Prints which tools of a server a person is asked about, and which not although their names speak for it.
fn asked(downstreams: &Downstreams, server: &str, tools: &[Arc<Tool>]) {
    let is_asked =
        |tool: &&Arc<Tool>| downstreams.decide(tool).is_some_and(|decision| decision.verdict == Verdict::Ask);
    let asked: Vec<&String> = tools.iter().filter(is_asked).map(|tool| &tool.name).collect();
    if !asked.is_empty() {
        outln!("asks    {server}: a person is asked about {}", names(asked.into_iter()));
    }
    let unasked: Vec<&String> =
        tools.iter().filter(|tool| downstreams.unasked(tool).is_some()).map(|tool| &tool.name).collect();
    if !unasked.is_empty() {
        outln!(
            "unasked {server}: nobody is asked about {}: {}, which by {} more than read; `policy: {{defaults: {{unannotated: by_name}}}}` asks",
            unannotated(unasked.len()),
            names(unasked.iter().copied()),
            if unasked.len() == 1 { "its name does" } else { "their names do" },
        );
    }
}

/// Prints how the tools of a server compare with their pins.
fn pinned(downstreams: &Downstreams, server: &str) {
    let PinReport { pinned, new, held, passed, suspicious, problem } = downstreams.pin_report(server);
    if let Some(problem) = problem {
        outln!("warning: {server}: the pins of its tools: {problem}");
    } else if pinned > 0 {
        outln!("pinned  {server}: {} at first sight", counted(pinned, "tool"));
    }
    for (tools, event) in [
        (held, "changed since pinned, and held"),
        (passed, "changed since pinned, and not held"),
        (new, "new since the server was pinned"),
    ] {
        if !tools.is_empty() {
            let count = counted(tools.len(), "tool");
            outln!("warning: {server}: {count} {event}: {}; see `lispbox config review {server}`", names(tools.iter()));
        }
    }
    for (tool, rules) in suspicious {
        let name = foreign_text::qualified(server, &tool);
        outln!("warning: {name} reads like instructions to the assistant ({})", rules.join(", "));
    }
}

/// Samples the tools of a server and prints what was learned of each.
fn sample(connections: &Connections, server: &str, tools: &[Arc<Tool>]) {
    let sampled = connections.sample(tools);
    for Sampled { tool, problem } in &sampled {
        let name = foreign_text::qualified(&tool.server, &tool.name);
        match (problem, tool.returns()) {
            (Some(problem), _) => outln!("sample  {name}: {}", foreign_text::line(problem)),
            (None, Some(shape)) => outln!("sample  {name} -> {shape}"),
            (None, None) => outln!("sample  {name}: nothing can be said of its result"),
        }
    }
    let others = tools.len() - sampled.len();
    if others > 0 {
        let others = counted(others, "tool");
        outln!("sample  {server}: not called: {others} with required arguments, or not declared read-only");
    }
}

/// ` (5 read_only, 2 destructive: ask)`: the number of tools by declared effect, with the verdict of the policy if
/// calls are not simply allowed.
fn effects(downstreams: &Downstreams, tools: &[Arc<Tool>]) -> String {
    let mut counts: BTreeMap<(Effect, Verdict), usize> = BTreeMap::new();
    for tool in tools {
        let verdict = downstreams.decide(tool).map_or(Verdict::Allow, |decision| decision.verdict);
        *counts.entry((Effect::of(&tool.hints), verdict)).or_default() += 1;
    }
    let each = counts.iter().map(|((effect, verdict), count)| match verdict {
        Verdict::Allow => format!("{count} {}", effect.key()),
        _ => format!("{count} {}: {}", effect.key(), verdict.key()),
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { String::new() } else { format!(" ({})", each.join(", ")) }
}

fn unannotated(count: usize) -> String {
    match count {
        1 => "1 tool that does not say what it does".to_owned(),
        count => format!("{count} tools that do not say what they do"),
    }
}

pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Joins the first few names.
fn names<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    const SHOWN: usize = 8;
    let count = names.len();
    let shown = names.take(SHOWN).map(|name| foreign_text::name(name)).collect::<Vec<_>>().join(", ");
    if count > SHOWN { format!("{shown}, …") } else { shown }
}
