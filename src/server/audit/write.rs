//! Writing of audit chains.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::server::identity::LOCAL;
use crate::server::identity::sha256;
use crate::server::secrets::Secrets;

use super::{HEAD, Head, Kind, PART, Record, Redaction};

/// Maximum number of records buffered while the disk cannot be written; further ones are dropped and counted.
const MOST_WAITING: usize = 10_000;
/// Maximum size of the buffered records, in bytes of JSON.
const MOST_WAITING_BYTES: usize = 16 << 20;

/// Options of the audit log.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The folder for the parts; created if it does not exist.
    pub folder: PathBuf,
    /// The folder for the heads, if it differs.
    pub heads: Option<PathBuf>,
    /// The size in bytes at which a new part is begun.
    pub part_bytes: u64,
    /// The rules that decide which arguments are not recorded.
    pub redaction: Redaction,
    /// Syncs each intent to disk before its call is made, so that it survives a power failure.
    pub sync: bool,
    /// Also records the texts of programs.
    pub programs: bool,
    /// Handling of programs and questions while the log cannot be written. `None` [refuses](AuditFailure::Refuse) those
    /// of token principals and [warns](AuditFailure::Warn) for those of the local user.
    pub failure: Option<AuditFailure>,
}

/// Handling of programs and questions while the log cannot be written. Tool calls are never made then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditFailure {
    /// Refuses them before they have any effect.
    Refuse,
    /// Answers them with a warning. Their records are buffered, and are lost if the process is killed in the meantime.
    Warn,
}

impl std::str::FromStr for AuditFailure {
    type Err = String;

    fn from_str(text: &str) -> Result<AuditFailure, String> {
        match text {
            "refuse" => Ok(AuditFailure::Refuse),
            "warn" => Ok(AuditFailure::Warn),
            other => Err(format!("expected `refuse` or `warn`, got `{other}`")),
        }
    }
}

impl AuditOptions {
    /// Returns the default options for a folder, with parts of 64 MiB.
    pub fn new(folder: PathBuf) -> AuditOptions {
        AuditOptions {
            folder,
            heads: None,
            part_bytes: 64 << 20,
            redaction: Redaction::default(),
            sync: false,
            programs: false,
            failure: None,
        }
    }
}

/// The chain that this process writes, which ends on drop.
pub struct AuditLog {
    open: Mutex<Open>,
    redaction: Redaction,
    programs: bool,
    failure: Option<AuditFailure>,
}

struct Open {
    options: AuditOptions,
    head: Head,
    head_file: File,
    /// The length of the head file. It never shrinks: if a shorter text overwrote a longer one and the file were
    /// truncated in a second step, it would be unreadable in between.
    head_length: usize,
    part: u32,
    file: File,
    /// The length of the complete lines in the part, in bytes.
    written: u64,
    /// True if a partial line may follow them.
    torn: bool,
    waiting: Waiting,
    /// True if the head file is outdated.
    head_is_behind: bool,
}

/// Records that have not been written yet.
#[derive(Default)]
struct Waiting {
    /// Each record with its size in bytes.
    records: VecDeque<(Record, usize)>,
    bytes: usize,
    /// The number of records dropped because the buffer was full.
    lost: u64,
}

/// Reason why a record was not written immediately.
#[derive(Debug)]
pub(in crate::server) struct Unwritten {
    /// The number of the record if it is in the chain nevertheless, because only the head or a sync failed.
    pub(in crate::server) number: Option<u64>,
    /// The reason, as a clause.
    pub(in crate::server) problem: String,
}

impl AuditLog {
    /// Begins a chain.
    ///
    /// # Errors
    /// Returns an error if the files cannot be created.
    pub fn begin(options: AuditOptions) -> io::Result<AuditLog> {
        let heads = options.heads.as_ref().unwrap_or(&options.folder);
        for folder in [&options.folder, heads] {
            make_folder(folder)?;
        }
        let began = Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
        let number = crate::server::system::random::bits() & 0xffff;
        let chain = format!("{began}-{}-{number:04x}", std::process::id());
        let file = make_file(&part_file(&options.folder, &chain, 1))?;
        let head_file = make_file(&heads.join(format!("{chain}{HEAD}")))?;
        let head = Head { chain, ..Head::default() };
        let (redaction, programs, failure) = (options.redaction.clone(), options.programs, options.failure);
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        let first = Record { kind: Kind::Begin, version, ..Record::default() };
        let mut open = Open {
            options,
            head,
            head_file,
            head_length: 0,
            part: 1,
            file,
            written: 0,
            torn: false,
            waiting: Waiting::default(),
            head_is_behind: true,
        };
        open.append(&stamped(first))?;
        open.catch_up()?;
        if open.options.sync {
            open.head_file.sync_all()?;
            open.sync_names()?;
        }
        Ok(AuditLog { open: Mutex::new(open), redaction, programs, failure })
    }

    /// Returns the rules that decide which arguments are not recorded.
    pub fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    /// True if actions of that principal are refused when they cannot be recorded.
    pub(in crate::server) fn fails_closed(&self, principal: &str) -> bool {
        match self.failure {
            Some(failure) => failure == AuditFailure::Refuse,
            None => principal != LOCAL,
        }
    }

    /// Writes the record of a program that is about to run, with its text if texts are recorded. If it cannot be
    /// written, it is buffered for a principal whose programs may run nevertheless.
    ///
    /// # Errors
    /// Returns why it cannot be written, as a clause, if the program must not run for that reason.
    pub(in crate::server) fn write_program(&self, record: Record, text: &str, secrets: &Secrets) -> Result<(), String> {
        let record = Record { text: self.programs.then(|| text.to_owned()), ..record };
        if self.fails_closed(&record.principal) {
            return self.write_first(record, secrets).map(drop).map_err(|unwritten| unwritten.problem);
        }
        // If the log is still unwritable when the evaluation is recorded, the reply reports it.
        let _ = self.write(record, secrets);
        Ok(())
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a record of a past event, with secrets redacted. A record that cannot be written is buffered, and blocks
    /// further calls until it is written.
    ///
    /// # Errors
    /// Returns why it is buffered or lost, as a clause.
    pub(in crate::server) fn write(&self, record: Record, secrets: &Secrets) -> Result<(), String> {
        let record = stamped(without(record, secrets));
        let mut open = self.open();
        if open.head.ended {
            tracing::error!("a record of the audit log is lost: the log has ended");
            return Err("the audit log has ended".to_owned());
        }
        open.waiting.push(record);
        open.catch_up().map_err(|problem| {
            let Waiting { records, lost, .. } = &open.waiting;
            tracing::error!(%problem, waiting = records.len(), lost, "the audit log cannot be written");
            unwritable(&problem)
        })
    }

    /// Writes a record of an imminent event, with secrets redacted, after all buffered records, and returns its number.
    ///
    /// # Errors
    /// Returns why it was not written. The record is then not buffered, and the event must not happen.
    pub(in crate::server) fn write_first(&self, record: Record, secrets: &Secrets) -> Result<u64, Unwritten> {
        let record = stamped(without(record, secrets));
        let mut open = self.open();
        let unwritten = |number, problem: io::Error| {
            tracing::error!(%problem, "the audit log cannot be written; a call or program was refused");
            Unwritten { number, problem: unwritable(&problem) }
        };
        if open.head.ended {
            return Err(Unwritten { number: None, problem: "the audit log has ended".to_owned() });
        }
        open.catch_up().and_then(|()| open.is_in_place()).map_err(|problem| unwritten(None, problem))?;
        let number = open.append(&record).map_err(|problem| unwritten(None, problem))?;
        let written = open.catch_up().and_then(|()| if open.options.sync { open.file.sync_data() } else { Ok(()) });
        written.map(|()| number).map_err(|problem| unwritten(Some(number), problem))
    }

    /// Tries to write the buffered records; returns why the log cannot be written, if it cannot.
    pub(in crate::server) fn trouble(&self) -> Option<String> {
        let mut open = self.open();
        open.catch_up().and_then(|()| open.is_in_place()).err().map(|problem| unwritable(&problem))
    }

    /// Returns why no further record can be buffered, if the buffer is full and cannot be written.
    pub(in crate::server) fn is_full(&self) -> Option<String> {
        let mut open = self.open();
        let problem = open.waiting.is_full().then(|| open.catch_up().err()).flatten()?;
        Some(format!("{}, and too many records wait for it", unwritable(&problem)))
    }

    /// Ends the chain, once: nothing is written to it afterwards.
    pub fn end(&self) {
        let mut open = self.open();
        if open.head.ended {
            return;
        }
        // The buffered records and the number of dropped ones come before the final record.
        let caught_up = open.catch_up();
        open.head.ended = true;
        let last = stamped(Record { kind: Kind::End, ..Record::default() });
        let ended = caught_up.and_then(|()| open.append(&last)).and_then(|_| open.catch_up());
        if let Err(problem) = ended.and_then(|()| open.file.sync_all()) {
            tracing::error!(%problem, "the audit log could not be ended");
        }
        let Head { chain, records, hash, .. } = &open.head;
        tracing::info!(target: "lispbox::audit", chain, records, hash, "audit log ended");
    }
}

fn unwritable(problem: &io::Error) -> String {
    format!("the audit log cannot be written: {}", problem.kind())
}

fn stamped(record: Record) -> Record {
    Record { time: format!("{:.3}", Timestamp::now()), ..record }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AuditLog").field("options", &self.open().options).finish_non_exhaustive()
    }
}

/// Redacts secrets in each text of a record separately, so that the result is still a valid record. Arguments have been
/// redacted [before they were cut](Redaction::apply).
fn without(record: Record, secrets: &Secrets) -> Record {
    let redact = |text: String| match secrets.redact(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(redacted) => redacted,
    };
    Record {
        principal: redact(record.principal),
        server: redact(record.server),
        tool: redact(record.tool),
        rule: record.rule.map(redact),
        text: record.text.map(redact),
        ..record
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.end();
    }
}

impl Waiting {
    fn is_full(&self) -> bool {
        self.records.len() >= MOST_WAITING || self.bytes >= MOST_WAITING_BYTES
    }

    fn push(&mut self, record: Record) {
        if self.is_full() {
            self.lost += 1;
            return;
        }
        let bytes = serde_json::to_string(&record).map_or(0, |text| text.len());
        self.bytes += bytes;
        self.records.push_back((record, bytes));
    }
}

impl Open {
    /// Checks that the open part still has its name: records written to a removed file would be lost.
    #[cfg(unix)]
    fn is_in_place(&self) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let named = fs::metadata(part_file(&self.options.folder, &self.head.chain, self.part))?;
        let open = self.file.metadata()?;
        if (named.dev(), named.ino()) == (open.dev(), open.ino()) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    /// On other systems an open file cannot be removed.
    #[cfg(not(unix))]
    fn is_in_place(&self) -> io::Result<()> {
        Ok(())
    }

    /// Writes the buffered records, and the head if it is outdated.
    fn catch_up(&mut self) -> io::Result<()> {
        while let Some((record, bytes)) = self.waiting.records.pop_front() {
            if let Err(problem) = self.append(&record) {
                self.waiting.records.push_front((record, bytes));
                return Err(problem);
            }
            self.waiting.bytes -= bytes;
        }
        self.append_lost()?;
        if self.head_is_behind { self.write_head() } else { Ok(()) }
    }

    /// Writes the number of dropped records, if any were dropped.
    fn append_lost(&mut self) -> io::Result<()> {
        let lost = self.waiting.lost;
        if lost > 0 {
            self.append(&stamped(Record { kind: Kind::Lost, lost: Some(lost), ..Record::default() }))?;
            self.waiting.lost = 0;
        }
        Ok(())
    }

    /// Appends one record to the chain, completely or not at all, and returns its number.
    fn append(&mut self, record: &Record) -> io::Result<u64> {
        if self.written >= self.options.part_bytes {
            self.begin_part()?;
        }
        let number = self.head.records;
        let record = Record { number, previous: self.head.hash.clone(), ..record.clone() };
        let mut line = serde_json::to_string(&record)?;
        let hash = sha256(line.as_bytes());
        line.push('\n');
        if self.torn {
            // A partial line would look like tampering.
            self.file.set_len(self.written)?;
            self.file.seek(SeekFrom::Start(self.written))?;
            self.torn = false;
        }
        self.torn = true;
        self.file.write_all(line.as_bytes()).inspect_err(|_| self.cut())?;
        self.torn = false;
        self.written += line.len() as u64;
        self.head.records += 1;
        self.head.hash = hash;
        self.head_is_behind = true;
        Ok(number)
    }

    /// Removes a partial line, at once if possible: the process may be killed before space for another write is
    /// available.
    fn cut(&mut self) {
        let cut = self.file.set_len(self.written).and_then(|()| self.file.seek(SeekFrom::Start(self.written)));
        self.torn = cut.is_err();
    }

    /// Ends a full part; the chain continues in the next.
    fn begin_part(&mut self) -> io::Result<()> {
        // The steps that may fail and be retried come first: a file that already exists is not created again.
        self.file.sync_all()?;
        self.file = make_file(&part_file(&self.options.folder, &self.head.chain, self.part + 1))?;
        self.part += 1;
        (self.written, self.torn) = (0, false);
        if self.options.sync {
            self.sync_names()?;
        }
        let Head { chain, records, hash, .. } = &self.head;
        tracing::info!(
            target: "lispbox::audit", chain, records, hash, part = self.part, "audit log continues in another part"
        );
        Ok(())
    }

    /// Syncs the directory entries of created files to disk.
    fn sync_names(&self) -> io::Result<()> {
        let mut folders = std::iter::once(&self.options.folder).chain(&self.options.heads);
        // Other systems than Unix cannot open a folder, and take care of its entries themselves.
        if cfg!(unix) { folders.try_for_each(|folder| File::open(folder)?.sync_all()) } else { Ok(()) }
    }

    fn write_head(&mut self) -> io::Result<()> {
        let text = serde_json::to_string(&self.head)?;
        let line = format!("{text:<width$}\n", width = self.head_length.saturating_sub(1));
        self.head_file.seek(SeekFrom::Start(0))?;
        self.head_file.write_all(line.as_bytes())?;
        self.head_length = line.len();
        self.head_is_behind = false;
        Ok(())
    }
}

fn part_file(folder: &Path, chain: &str, part: u32) -> PathBuf {
    folder.join(format!("{chain}.{part:04}{PART}"))
}

/// Creates a folder that only its owner can access.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates a file that only its owner can access.
fn make_file(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}
