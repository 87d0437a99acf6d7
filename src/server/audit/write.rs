//! Writing a chain.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::{HEAD, Head, Kind, PART, Record, Redaction};
use crate::server::identity::sha256;
use crate::server::secrets::Secrets;

/// How many records may wait for a disk that takes none. No further call is made while one waits.
const MOST_WAITING: usize = 10_000;

/// How to write an audit log.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The folder with the parts; made if it is not there.
    pub folder: PathBuf,
    /// The folder with the heads, if it is another one.
    pub heads: Option<PathBuf>,
    /// The size in bytes at which a further part is begun.
    pub part_bytes: u64,
    /// Which arguments are not written.
    pub redaction: Redaction,
}

impl AuditOptions {
    /// The defaults, in that folder: parts of 64 MiB.
    pub fn new(folder: PathBuf) -> AuditOptions {
        AuditOptions { folder, heads: None, part_bytes: 64 << 20, redaction: Redaction::default() }
    }
}

/// The chain that this process writes. It is ended when this is dropped.
pub struct AuditLog {
    open: Mutex<Open>,
    redaction: Redaction,
}

struct Open {
    options: AuditOptions,
    head: Head,
    head_file: File,
    part: u32,
    file: File,
    /// How much of the part is whole lines.
    written: u64,
    /// Records that have not been written yet.
    waiting: VecDeque<Record>,
    /// True where the file of the head does not say what the head is.
    head_is_behind: bool,
}

impl AuditLog {
    /// Begins a chain.
    ///
    /// # Errors
    /// When the files cannot be made.
    pub fn begin(options: AuditOptions) -> io::Result<AuditLog> {
        let heads = options.heads.as_ref().unwrap_or(&options.folder);
        for folder in [&options.folder, heads] {
            make_folder(folder)?;
        }
        let began = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        let number = crate::server::random::bits() & 0xffff;
        let chain = format!("{began}-{}-{number:04x}", std::process::id());
        let file = make_file(&part_file(&options.folder, &chain, 1))?;
        let head_file = make_file(&heads.join(format!("{chain}{HEAD}")))?;
        let head = Head { chain, ..Head::default() };
        let redaction = options.redaction.clone();
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        let first = Record { kind: Kind::Begin, version, ..Record::default() };
        let waiting = VecDeque::from([stamped(first)]);
        let mut open = Open { options, head, head_file, part: 1, file, written: 0, waiting, head_is_behind: true };
        open.catch_up()?;
        Ok(AuditLog { open: Mutex::new(open), redaction })
    }

    /// Which arguments are not written.
    pub(in crate::server) fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record, without secrets. One that cannot be written waits, and keeps further calls from being made.
    pub(in crate::server) fn write(&self, record: Record, secrets: &Secrets) {
        let record = stamped(without(record, secrets));
        let mut open = self.open();
        if open.head.ended || open.waiting.len() >= MOST_WAITING {
            tracing::error!("a record of the audit log is lost: the log has ended, or too many wait to be written");
            return;
        }
        open.waiting.push_back(record);
        if let Err(problem) = open.catch_up() {
            tracing::error!(%problem, waiting = open.waiting.len(), "the audit log cannot be written");
        }
    }

    /// Makes sure that what happened so far has been written.
    ///
    /// # Errors
    /// Why it cannot be, as a clause.
    pub(in crate::server) fn ready(&self) -> Result<(), String> {
        let caught_up = self.open().catch_up();
        caught_up.map_err(|problem| format!("the audit log cannot be written: {}", problem.kind()))
    }

    /// Ends the chain, once: nothing is written any more.
    pub fn end(&self) {
        let mut open = self.open();
        if open.head.ended {
            return;
        }
        open.waiting.push_back(stamped(Record { kind: Kind::End, ..Record::default() }));
        open.head.ended = true;
        if let Err(problem) = open.catch_up().and_then(|()| open.file.sync_all()) {
            tracing::error!(%problem, "the audit log was not ended");
        }
        let Head { chain, records, hash, .. } = &open.head;
        tracing::info!(target: "lispbox::audit", chain, records, hash, "audit log ended");
    }
}

fn stamped(record: Record) -> Record {
    Record { time: format!("{:.3}", Timestamp::now()), ..record }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuditLog").field("options", &self.open().options).finish_non_exhaustive()
    }
}

/// A record in which no secret stands. Its own fields are texts of JSON, so this is done on the line as a whole.
fn without(record: Record, secrets: &Secrets) -> Record {
    let Ok(line) = serde_json::to_string(&record) else { return record };
    match secrets.redact(&line) {
        std::borrow::Cow::Borrowed(_) => record,
        std::borrow::Cow::Owned(line) => serde_json::from_str(&line).unwrap_or(record),
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.end();
    }
}

impl Open {
    /// Writes what waits.
    fn catch_up(&mut self) -> io::Result<()> {
        while let Some(record) = self.waiting.pop_front() {
            self.append(record.clone()).inspect_err(|_| self.waiting.push_front(record))?;
        }
        if self.head_is_behind { self.write_head() } else { Ok(()) }
    }

    /// Writes one record as the next of the chain, or nothing.
    fn append(&mut self, record: Record) -> io::Result<()> {
        if self.written >= self.options.part_bytes {
            self.begin_part()?;
        }
        let record = Record { number: self.head.records, previous: self.head.hash.clone(), ..record };
        let mut line = serde_json::to_string(&record)?;
        let hash = sha256(line.as_bytes());
        line.push('\n');
        if let Err(problem) = self.file.write_all(line.as_bytes()) {
            // Half a line would be taken for a change.
            self.file.set_len(self.written)?;
            self.file.seek(SeekFrom::End(0))?;
            return Err(problem);
        }
        self.written += line.len() as u64;
        self.head.records += 1;
        self.head.hash = hash;
        self.head_is_behind = true;
        Ok(())
    }

    /// A part ends when it is full; the chain goes on in the next.
    fn begin_part(&mut self) -> io::Result<()> {
        let file = make_file(&part_file(&self.options.folder, &self.head.chain, self.part + 1))?;
        self.file.sync_all()?;
        self.file = file;
        self.part += 1;
        self.written = 0;
        let Head { chain, records, hash, .. } = &self.head;
        tracing::info!(target: "lispbox::audit", chain, records, hash, part = self.part, "audit log goes on in another part");
        Ok(())
    }

    fn write_head(&mut self) -> io::Result<()> {
        let mut text = serde_json::to_string(&self.head)?;
        text.push('\n');
        self.head_file.seek(SeekFrom::Start(0))?;
        self.head_file.write_all(text.as_bytes())?;
        self.head_file.set_len(text.len() as u64)?;
        self.head_is_behind = false;
        Ok(())
    }
}

fn part_file(folder: &Path, chain: &str, part: u32) -> PathBuf {
    folder.join(format!("{chain}.{part:04}{PART}"))
}

/// A folder that is the owner's alone.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A new file that is the owner's alone.
fn make_file(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}
