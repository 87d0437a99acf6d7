//! The command line.

use crate::peer::Peer;
use lispbox_peers::growth::{self, Growth};
use lispbox_peers::workload::{self, Workload};
use serde_json::Value;
use std::path::PathBuf;

/// The text of `--help`.
pub const HELP: &str = "\
Measures lispbox against its peers and prints a table in Markdown.

cargo run --release --manifest-path benches/peers/Cargo.toml -- [OPTIONS]
  --only W1,W3a     these workloads; W3 and W5 stand for both of theirs
  --growth          instead, how lispbox's cost grows with data, groups, tools and sessions;
                    --only calls,mails,senders,lines,tools,tools-unused,tools-used,sessions
  --peers A,B       these peers of lispbox, by-hand, cpython, rhai, starlark, monty; CPython always takes part
  --pairs N         pairs of runs for each workload and peer, rounds of --growth (5)
  --json FILE       writes every single measurement as well
  --cpu             time of the processors instead of the clock's, for a machine that others use; not for W5a
  --binary PATH     the binary of lispbox that W5a starts; a small process of the crate otherwise
  --python PATH     CPython (/usr/bin/python3.11)
  --help            this text
";

/// The action requested on the command line.
pub enum Asked {
    /// Show the help text.
    Help,
    /// Run one measurement in this process.
    Child {
        /// The workload.
        workload: Workload,
        /// The peer that runs it.
        peer: Peer,
        /// The folder of the inputs.
        inputs: PathBuf,
    },
    /// Measure, and print the table.
    Table(Options),
    /// Measure the growth of the cost of lispbox, and print that table.
    Growth(Vec<Growth>, Options),
}

/// The options of the measurements.
pub struct Options {
    /// The workloads, in the order of the table.
    pub workloads: Vec<Workload>,
    /// The peers, in the order of the table.
    pub peers: Vec<Peer>,
    /// The number of pairs of a peer and CPython.
    pub pairs: usize,
    /// True if processor time is compared instead of wall-clock time.
    pub cpu: bool,
    /// The file to which all measurements are written.
    pub json: Option<PathBuf>,
    /// The binary of lispbox.
    pub binary: Option<PathBuf>,
    /// The CPython executable.
    pub python: PathBuf,
}

impl Options {
    /// Extracts the compared time from the record of a child.
    ///
    /// # Errors
    /// Returns an error if the record does not contain it.
    pub fn seconds(&self, record: &Value) -> Result<f64, String> {
        let name = if self.cpu { "cpu" } else { "seconds" };
        record[name].as_f64().ok_or_else(|| format!("the record has no `{name}`"))
    }

    /// Describes the compared time.
    pub fn clock(&self) -> &'static str {
        if self.cpu { "Time is that of the processors, of all threads" } else { "Time is the clock's" }
    }
}

/// Parses the command line.
///
/// # Errors
/// Returns a message for invalid arguments.
pub fn read(arguments: &[String]) -> Result<Asked, String> {
    if let [first, rest @ ..] = arguments
        && first == "--child"
    {
        let [workload, peer, inputs @ ..] = rest else {
            return Err("--child takes WORKLOAD PEER INPUTS".to_string());
        };
        let workload = workloads(workload)?[0];
        let inputs = inputs.first().map(PathBuf::from).unwrap_or_default();
        return Ok(Asked::Child { workload, peer: peer_named(peer)?, inputs });
    }
    let mut options = Options {
        workloads: workload::ALL.to_vec(),
        peers: Peer::ALL.into_iter().filter(|peer| peer.is_usual()).collect(),
        pairs: 5,
        cpu: false,
        json: None,
        binary: None,
        python: PathBuf::from("/usr/bin/python3.11"),
    };
    let (mut only, mut growth) = (None, false);
    let mut arguments = arguments.iter();
    while let Some(option) = arguments.next() {
        if option == "--help" || option == "-h" {
            return Ok(Asked::Help);
        }
        let mut value = || arguments.next().ok_or_else(|| format!("{option} takes a value; see --help"));
        match option.as_str() {
            "--only" => only = Some(value()?),
            "--growth" => growth = true,
            "--cpu" => options.cpu = true,
            "--peers" => options.peers = peers(value()?)?,
            "--pairs" => options.pairs = pairs(value()?)?,
            "--json" => options.json = Some(value()?.into()),
            "--binary" => options.binary = Some(value()?.into()),
            "--python" => options.python = value()?.into(),
            _ => return Err(format!("there is no option `{option}`; see --help")),
        }
    }
    if growth {
        options.peers = vec![Peer::Lispbox];
        let growths = only.map_or_else(|| Ok(growth::ALL.to_vec()), |names| growths(names))?;
        return Ok(Asked::Growth(growths, options));
    }
    if let Some(names) = only {
        options.workloads = workloads(names)?;
    }
    Ok(Asked::Table(options))
}

fn growths(names: &str) -> Result<Vec<Growth>, String> {
    let named = |name: &str| {
        Growth::named(name.trim()).ok_or_else(|| {
            let known: Vec<&str> = growth::ALL.into_iter().map(Growth::name).collect();
            format!("there is no growth `{name}`; there are {}", known.join(", "))
        })
    };
    names.split(',').map(named).collect()
}

fn workloads(names: &str) -> Result<Vec<Workload>, String> {
    let mut found = Vec::new();
    for name in names.split(',') {
        let name = name.trim().to_ascii_uppercase();
        let fits = |known: &Workload| match known.name().to_ascii_uppercase() {
            known if known == name => true,
            known => name.len() == 2 && known.starts_with(&name),
        };
        let before = found.len();
        found.extend(workload::ALL.into_iter().filter(fits));
        if found.len() == before {
            let known: Vec<&str> = workload::ALL.into_iter().map(Workload::name).collect();
            return Err(format!("there is no workload `{name}`; the workloads are {}", known.join(", ")));
        }
    }
    Ok(workload::ALL.into_iter().filter(|workload| found.contains(workload)).collect())
}

fn peers(names: &str) -> Result<Vec<Peer>, String> {
    let mut found = names.split(',').map(|name| peer_named(name.trim())).collect::<Result<Vec<Peer>, String>>()?;
    if let Some(missing) = found.iter().find(|peer| !peer.is_built()) {
        let name = missing.name();
        return Err(format!("{name} is not built in; run with `--features {name}` before `--`, on Rust 1.96 or later"));
    }
    found.push(Peer::Cpython);
    Ok(Peer::ALL.into_iter().filter(|peer| found.contains(peer)).collect())
}

fn peer_named(name: &str) -> Result<Peer, String> {
    Peer::ALL.into_iter().find(|peer| peer.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
        let known: Vec<&str> = Peer::ALL.into_iter().map(Peer::name).collect();
        format!("there is no peer `{name}`; the peers are {}", known.join(", "))
    })
}

fn pairs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1_000) => Ok(count),
        _ => Err(format!("--pairs takes a number from 1 to 1000, not `{text}`")),
    }
}
