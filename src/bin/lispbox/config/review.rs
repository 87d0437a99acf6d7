//! `lispbox config review`: shows how servers have changed their tools, and accepts that.

use std::process::ExitCode;

use clap::Args;
use lispbox::lang::internal::{canonical_tool, foreign_text};
use lispbox::server::{Checked, Connections, Downstreams, Review as Reviewed};

use crate::context::Problem;
use crate::output::{errln, outln};
use crate::serve::{Prepared, Serve};

use super::check::counted;

/// Shows the tools that their servers have changed since they were pinned, as a difference, and the new tools of known
/// servers. Lines that read like instructions to the assistant are marked. The servers are started to list their tools,
/// unless something is accepted: accepted is only what has been recorded, which this command has shown before.
#[derive(Args)]
pub struct Review {
    /// The servers, or tools as `server/tool`, or as `server/tool@DIGEST` for the change that was shown with this
    /// digest; all if none is named.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Accept the changes of the named servers and tools: they are pinned as they are shown.
    #[arg(long)]
    accept: bool,
    /// Accept the changes of all servers.
    #[arg(long, requires = "accept", conflicts_with = "names")]
    all: bool,
    /// Show what has been recorded, and start no server.
    #[arg(long)]
    recorded: bool,
    #[command(flatten)]
    serve: Serve,
}

impl Review {
    /// Shows or accepts the changes. Without `--accept` it fails if any tool is held.
    pub(super) fn run(self) -> Result<ExitCode, Problem> {
        if self.accept && self.names.is_empty() && !self.all {
            return Err(Problem::Usage(
                "expected the names of servers or tools to accept, such as `mail` or `mail/send`, or `--all`"
                    .to_owned(),
            ));
        }
        let Prepared { mut options, .. } = self.serve.prepare()?;
        self.serve.storage.check()?;
        match self.serve.storage.pins()? {
            Some(pins) => options.downstream.pins = pins,
            None if self.serve.storage.is_named() => {
                return Err(Problem::Usage("the store does not exist yet, so no tools are pinned in it".to_owned()));
            }
            None => {}
        }
        let store = if self.serve.storage.is_named() { " --store …" } else { "" };
        let wanted: Vec<Wanted<'_>> = self.names.iter().map(|name| Wanted::of(name)).collect();
        let known: Vec<String> = options.configuration.servers.iter().map(|server| server.name.clone()).collect();
        if let Some(unknown) = wanted.iter().find(|wanted| !known.iter().any(|name| name == wanted.server)) {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Problem::Usage(format!("there is no server `{}`; configured: {known}", unknown.server)));
        }
        let connections = Connections::open_with(options.configuration, options.downstream)
            .map_err(|problem| Problem::Failed(problem.to_string()))?;
        if !self.accept && !self.recorded {
            for Checked { server, tools, .. } in connections.check() {
                if let Err(problem) = tools {
                    errln!("lispbox: {server}: its tools are not listed: {}", foreign_text::line(&problem.message));
                }
            }
        }
        let outcome = if self.accept {
            accept(connections.downstreams(), &wanted)
        } else {
            show(connections.downstreams(), &wanted, store)
        };
        connections.close();
        outcome
    }
}

/// A server or tool that is named on the command line.
struct Wanted<'n> {
    server: &'n str,
    tool: Option<&'n str>,
    digest: Option<&'n str>,
}

impl Wanted<'_> {
    fn of(name: &str) -> Wanted<'_> {
        let (server, tool) = name.split_once('/').map_or((name, None), |(server, tool)| (server, Some(tool)));
        let (tool, digest) = match tool.and_then(|tool| tool.rsplit_once('@')) {
            Some((tool, digest)) => (Some(tool), Some(digest)),
            None => (tool, None),
        };
        Wanted { server, tool, digest }
    }

    /// Returns whether a change is one of this server or tool, whatever its digest is.
    fn names(&self, reviewed: &Reviewed) -> bool {
        self.server == reviewed.server
            && self.tool.is_none_or(|tool| canonical_tool(tool) == canonical_tool(&reviewed.tool))
    }
}

/// Returns the changes of the named servers and tools, or of all; prints why those of a server cannot be read.
fn found(downstreams: &Downstreams, wanted: &[Wanted<'_>]) -> Result<Vec<Reviewed>, Problem> {
    let mut found = Vec::new();
    for name in downstreams.names() {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted.server == name) {
            found.extend(downstreams.reviews(&name).map_err(|problem| Problem::Failed(format!("{name}: {problem}")))?);
        }
    }
    found.retain(|reviewed| wanted.is_empty() || wanted.iter().any(|wanted| wanted.names(reviewed)));
    Ok(found)
}

fn show(downstreams: &Downstreams, wanted: &[Wanted<'_>], store: &str) -> Result<ExitCode, Problem> {
    let found = found(downstreams, wanted)?;
    if found.is_empty() {
        outln!("no tool has changed since it was pinned, and none is new");
        return Ok(ExitCode::SUCCESS);
    }
    for reviewed in &found {
        print(reviewed);
    }
    let example = label(&found[0]);
    outln!("accept with `lispbox config review{store} --accept {example}`, or the name of a server, or `--all`");
    let held = found.iter().any(|reviewed| reviewed.is_held);
    Ok(if held { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// `mail/send@0123456789abcdef`
fn label(reviewed: &Reviewed) -> String {
    format!("{}@{}", foreign_text::qualified(&reviewed.server, &reviewed.tool), reviewed.digest)
}

/// Prints one change.
fn print(reviewed: &Reviewed) {
    let state = match (reviewed.is_new, reviewed.is_held) {
        (true, false) => "new, can be called",
        (true, true) => "new or changed again, held",
        (false, true) => "changed, held",
        (false, false) => "changed, can be called",
    };
    outln!("{}  {state}", label(reviewed));
    if !reviewed.suspicions.is_empty() {
        outln!("  !! reads like instructions to the assistant: {}", reviewed.suspicions.join(", "));
    }
    for (part, lines) in &reviewed.parts {
        outln!("  {part}");
        for line in lines {
            let mark = match line.suspicions.as_slice() {
                [] => String::new(),
                rules => format!("   !! {}", rules.join(", ")),
            };
            outln!("  {} {}{mark}", line.sign, line.text);
        }
    }
}

fn accept(downstreams: &Downstreams, wanted: &[Wanted<'_>]) -> Result<ExitCode, Problem> {
    let found = found(downstreams, wanted)?;
    let mut is_complete = true;
    for wanted in wanted.iter().filter(|wanted| !found.iter().any(|reviewed| wanted.names(reviewed))) {
        let name = wanted.tool.map_or(wanted.server.to_owned(), |tool| format!("{}/{tool}", wanted.server));
        outln!("{name}: there is nothing to accept; `lispbox config review` looks for changes");
        is_complete = false;
    }
    for name in downstreams.names() {
        let of_server: Vec<Reviewed> = found.iter().filter(|reviewed| reviewed.server == name).cloned().collect();
        // A digest says which change was seen.
        let is_another = |reviewed: &Reviewed| {
            let digests = wanted.iter().filter(|wanted| wanted.tool.is_some() && wanted.names(reviewed));
            digests.filter_map(|wanted| wanted.digest).any(|digest| digest != reviewed.digest)
        };
        let (others, seen): (Vec<Reviewed>, Vec<Reviewed>) = of_server.into_iter().partition(is_another);
        let mut missed =
            downstreams.accept(&name, &seen).map_err(|problem| Problem::Failed(format!("{name}: {problem}")))?;
        missed.extend(others.into_iter().map(|reviewed| reviewed.tool));
        for reviewed in seen.iter().filter(|reviewed| !missed.contains(&reviewed.tool)) {
            print(reviewed);
            outln!("  accepted");
        }
        for tool in &missed {
            outln!("{}: not accepted, since it has changed again", foreign_text::qualified(&name, tool));
            is_complete = false;
        }
        let count = seen.len() - seen.iter().filter(|reviewed| missed.contains(&reviewed.tool)).count();
        if count > 0 {
            outln!("{name}: {} accepted", counted(count, "tool"));
        }
    }
    if found.is_empty() && wanted.is_empty() {
        outln!("there is nothing to accept");
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
