//! Reading chains: whether they are whole, and what is in them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::{HEAD, Head, Kind, PART, Record};
use crate::server::identity::sha256;

/// More problems than this of one chain are not told apart.
const MOST_PROBLEMS: usize = 20;

/// What one process has written.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Its name: when it began, and the number of the process.
    pub name: String,
    /// Its parts by their numbers.
    pub parts: BTreeMap<u32, PathBuf>,
    head: Option<PathBuf>,
}

/// The intents of a chain that have no outcome, in order: calls and programs that were or are under way.
///
/// It is fed the records one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenIntents {
    open: BTreeMap<u64, Record>,
    /// The numbers of the records of programs, by the ordinals of their evaluations.
    programs: BTreeMap<u64, u64>,
}

impl OpenIntents {
    /// Takes in the next record; false for the outcome of an intent that is not open.
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
                // One that was refused before it ran was not announced.
                let announced = self.programs.remove(&evaluation);
                announced.and_then(|number| self.open.remove(&number));
                true
            }
            _ => true,
        }
    }

    /// The intents that are open so far.
    pub fn into_records(self) -> impl Iterator<Item = Record> {
        self.open.into_values()
    }
}

/// The result of reading a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many records there are.
    pub records: u64,
    /// The time of the first of them.
    pub from: String,
    /// The time of the last.
    pub to: String,
    /// True where the process ended in order. Without it, it runs still or was killed.
    pub ended: bool,
    /// True where the last line is cut as by a kill while it was written. The head does not know that line, and nothing
    /// was done on it.
    pub cut: bool,
    /// The intents without an outcome: calls that may have been made and programs that may have run, or are under way.
    pub open: Vec<Record>,
    /// How many records were dropped while the log could not be written, as it says itself.
    pub lost: u64,
    /// What is missing or changed, a sentence each; nothing where the chain is whole.
    pub problems: Vec<String>,
}

/// The chains in a folder, the oldest first, with the heads in another one or in the same.
///
/// # Errors
/// When a folder cannot be read.
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
    /// `PART line 12`.
    place: String,
    text: String,
    /// False for a last line that is cut.
    is_whole: bool,
}

impl Chain {
    /// All lines of all parts, in order.
    fn lines(&self) -> impl Iterator<Item = io::Result<Line>> {
        self.parts.values().flat_map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let mut number = 0;
            let mut reader = File::open(path).map(BufReader::new);
            std::iter::from_fn(move || {
                let reader = match &mut reader {
                    Ok(reader) => reader,
                    // Said once.
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

    /// The records that can be read, in order.
    ///
    /// # Errors
    /// When a part cannot be read.
    pub fn records(&self) -> impl Iterator<Item = io::Result<Record>> {
        self.lines().filter_map(|line| match line {
            Ok(line) => serde_json::from_str(&line.text).ok().map(Ok),
            Err(problem) => Some(Err(problem)),
        })
    }

    /// Reads the chain as a whole: each line has the hash of the one before it, the numbers have no gap, and the end is
    /// the one that the head knows.
    ///
    /// # Errors
    /// When a file cannot be read.
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
        // The hash of the line before, and the number that comes next.
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
                    problems.push(format!("{place}: this is not a whole record"));
                }
                previous = hash;
                continue;
            };
            if record.number > next {
                problems.push(format!("{place}: record {} stands where record {next} is missing", record.number));
            } else if record.number < next {
                problems.push(format!("{place}: record {} stands where record {next} belongs", record.number));
            } else if record.previous != previous && next == 0 {
                problems.push(format!("{place}: this is not the beginning of a chain"));
            } else if record.previous != previous {
                problems.push(format!("{place}: the record before this one has been changed"));
            }
            if !open.take(&record) && problems.is_empty() {
                problems.push(format!("{place}: record {} is the outcome of no open intent", record.number));
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
            (None, _) => problems.push("its head is missing, so that its end is not known".to_owned()),
            (Some(head), None) => {
                problems
                    .push(format!("the end is missing: its head knows {} records, the last is {next}", head.records));
            }
            (Some(head), Some(hash)) if hash != head.hash => {
                problems.push(format!("record {} is not the one that its head knows", head.records.saturating_sub(1)));
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
#[path = "tests.rs"]
mod tests;
