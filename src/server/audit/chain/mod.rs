//! Reading and verification of audit chains.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::server::identity::sha256;

use super::{HEAD, Head, Kind, PART, Record};

/// Maximum number of problems reported per chain; further ones are only counted.
const MOST_PROBLEMS: usize = 20;

/// The chain that one process has written.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The name of the chain: its time of beginning, the process id, and random digits.
    pub name: String,
    /// The parts by number.
    pub parts: BTreeMap<u32, PathBuf>,
    head: Option<PathBuf>,
}

/// The intents of a chain that have no outcome yet, in order: calls and programs in progress, or interrupted.
///
/// The records of the chain must be passed in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenIntents {
    open: BTreeMap<u64, Record>,
    /// The numbers of program records, by the ordinals of their evaluations.
    programs: BTreeMap<u64, u64>,
}

impl OpenIntents {
    /// Processes the next record. Returns false for the outcome of an intent that is not open or names another tool.
    pub fn take(&mut self, record: &Record) -> bool {
        match (record.kind, record.intent, record.evaluation) {
            (Kind::Intent, ..) => {
                self.open.insert(record.number, record.clone());
                true
            }
            (Kind::Call, Some(intent), _) => self
                .open
                .remove(&intent)
                .is_some_and(|intent| (&intent.server, &intent.tool) == (&record.server, &record.tool)),
            (Kind::Program, _, Some(evaluation)) => {
                self.programs.insert(evaluation, record.number);
                self.open.insert(record.number, record.clone());
                true
            }
            (Kind::Evaluation, _, Some(evaluation)) => {
                // A program that was refused before it ran was not announced.
                let announced = self.programs.remove(&evaluation);
                announced.and_then(|number| self.open.remove(&number));
                true
            }
            _ => true,
        }
    }

    /// Returns the intents that are still open.
    pub fn into_records(self) -> impl Iterator<Item = Record> {
        self.open.into_values()
    }
}

/// The result of verifying a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of records.
    pub records: u64,
    /// The time of the first record.
    pub from: String,
    /// The time of the last record.
    pub to: String,
    /// True if the process ended in order. If false, it is still running or was killed.
    pub ended: bool,
    /// True if the last line is incomplete, as after a kill during the write. The head does not include that line, and
    /// no action was based on it.
    pub cut: bool,
    /// The intents without an outcome: calls that may have been made and programs that may have run, or that are in
    /// progress.
    pub open: Vec<Record>,
    /// The number of records dropped while the log could not be written, as recorded in the log.
    pub lost: u64,
    /// Descriptions of what is missing or changed, one sentence each; empty if the chain is intact.
    pub problems: Vec<String>,
}

/// Finds the chains in a folder, oldest first. The heads are in `heads`, or in the same folder.
///
/// # Errors
/// Returns an error if a folder cannot be read.
pub fn chains(folder: &Path, heads: Option<&Path>) -> io::Result<Vec<Chain>> {
    let mut chains: BTreeMap<String, Chain> = BTreeMap::new();
    let mut chain = |name: &str, add: &dyn Fn(&mut Chain)| {
        add(chains.entry(name.to_owned()).or_insert_with(|| Chain { name: name.to_owned(), ..Chain::default() }));
    };
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let part = name.strip_suffix(PART).and_then(|name| name.rsplit_once('.'));
        if let Some((name, Ok(part))) = part.map(|(name, part)| (name, part.parse::<u32>())) {
            chain(name, &|chain| drop(chain.parts.insert(part, path.clone())));
        }
    }
    for entry in std::fs::read_dir(heads.unwrap_or(folder))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(HEAD) {
            chain(name, &|chain| chain.head = Some(path.clone()));
        }
    }
    Ok(chains.into_values().collect())
}

/// One line of a part.
struct Line {
    /// The position, as `PART line 12`.
    place: String,
    text: String,
    /// False for a last line that is incomplete.
    is_whole: bool,
}

impl Chain {
    /// Returns all lines of all parts, in order.
    fn lines(&self) -> impl Iterator<Item = io::Result<Line>> {
        self.parts.values().flat_map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let mut number = 0;
            let mut reader = File::open(path).map(BufReader::new);
            std::iter::from_fn(move || {
                let reader = match &mut reader {
                    Ok(reader) => reader,
                    // Report the error once.
                    Err(problem) if number == 0 => {
                        number += 1;
                        return Some(Err(io::Error::new(problem.kind(), format!("{name}: {problem}"))));
                    }
                    Err(_) => return None,
                };
                let mut text = Vec::new();
                match reader.read_until(b'\n', &mut text) {
                    Ok(0) => None,
                    Ok(_) => {
                        number += 1;
                        let is_whole = text.pop_if(|last| *last == b'\n').is_some();
                        let text = String::from_utf8_lossy(&text).into_owned();
                        Some(Ok(Line { place: format!("{name} line {number}"), text, is_whole }))
                    }
                    Err(problem) => Some(Err(problem)),
                }
            })
        })
    }

    /// Returns the readable records, in order.
    ///
    /// # Errors
    /// An item is an error if a part cannot be read.
    pub fn records(&self) -> impl Iterator<Item = io::Result<Record>> {
        self.lines().filter_map(|line| match line {
            Ok(line) => serde_json::from_str(&line.text).ok().map(Ok),
            Err(problem) => Some(Err(problem)),
        })
    }

    /// Verifies the whole chain: each line has the hash of the previous one, the numbers have no gap, and the end
    /// matches the head.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn verify(&self) -> io::Result<Verified> {
        let head: Option<Head> = match &self.head {
            Some(head) => serde_json::from_slice(&std::fs::read(head)?).ok(),
            None => None,
        };
        let mut verified = Verified::default();
        let mut problems = Vec::new();
        for (wanted, part) in (1..).zip(self.parts.keys()) {
            if *part != wanted {
                problems.push(format!("part {wanted} is missing"));
                break;
            }
        }
        // The hash of the previous line and the next expected number.
        let (mut previous, mut next) = (String::new(), 0);
        let mut at_head = None;
        let mut open = OpenIntents::default();
        let mut lines = self.lines().peekable();
        while let Some(line) = lines.next() {
            let Line { place, text, is_whole } = line?;
            let hash = sha256(text.as_bytes());
            let Some(record) = serde_json::from_str::<Record>(&text).ok().filter(|_| is_whole) else {
                let is_known = head.as_ref().is_none_or(|head| head.ended || head.records > next);
                if !is_whole && !is_known && lines.peek().is_none() {
                    verified.cut = true;
                } else {
                    problems.push(format!("{place}: this record is incomplete"));
                }
                previous = hash;
                continue;
            };
            if record.number > next {
                problems.push(format!("{place}: record {next} is missing, got record {}", record.number));
            } else if record.number < next {
                problems.push(format!("{place}: expected record {next}, got record {}", record.number));
            } else if record.previous != previous && next == 0 {
                problems.push(format!("{place}: this is not the beginning of a chain"));
            } else if record.previous != previous {
                problems.push(format!("{place}: the record before this one has been changed"));
            }
            if !open.take(&record) && problems.is_empty() {
                problems.push(format!("{place}: record {} is an outcome without an open intent", record.number));
            }
            verified.records += 1;
            verified.lost += record.lost.unwrap_or_default();
            if verified.from.is_empty() {
                verified.from.clone_from(&record.time);
            }
            verified.to.clone_from(&record.time);
            verified.ended = record.kind == Kind::End;
            (previous, next) = (hash, record.number + 1);
            if head.as_ref().is_some_and(|head| head.records == next) {
                at_head = Some(previous.clone());
            }
        }
        match (head, at_head) {
            (None, _) => problems.push("its head is missing, so its end cannot be verified".to_owned()),
            (Some(head), None) => {
                problems.push(format!("the end is missing: its head has {} records, the log has {next}", head.records));
            }
            (Some(head), Some(hash)) if hash != head.hash => {
                problems.push(format!("record {} does not match its head", head.records.saturating_sub(1)));
            }
            (Some(_), Some(_)) => {}
        }
        let more = problems.len().saturating_sub(MOST_PROBLEMS);
        problems.truncate(MOST_PROBLEMS);
        if more > 0 {
            problems.push(format!("and {more} more"));
        }
        Ok(Verified { problems, open: open.into_records().collect(), ..verified })
    }
}

#[cfg(test)]
mod tests;
