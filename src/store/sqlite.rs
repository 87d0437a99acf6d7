//! Sessions in a SQLite file, which several processes on one machine may share.
//!
//! Leases are counted in the time since the machine was started, so that setting its clock ends none and lets none last;
//! one of before the last start is void, and so is one that would have to have been taken in the future.

use super::files::{self, Files};
use super::pieces::{self, Digest, Pieces};
use super::{Key, LEASE, Lease, Problem, Store, Stored, Summary, boot};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a statement waits for another process that writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it looks whether that has ended: often enough to get a turn between the pages of an expiry.
const LOOK: Duration = Duration::from_millis(2);

/// How many sessions, and how many pieces, expire in one transaction.
const PAGE: u32 = 100;

/// How long others have for their transactions between two pages.
const TURN: Duration = Duration::from_millis(10);

/// The version of the tables.
const VERSION: i64 = 3;

const TABLES: &str = "
    CREATE TABLE session (
        handle TEXT PRIMARY KEY,
        principal TEXT NOT NULL,
        version INTEGER NOT NULL,
        text TEXT NOT NULL,
        names TEXT NOT NULL,
        created INTEGER NOT NULL,
        used INTEGER NOT NULL,
        expired INTEGER NOT NULL DEFAULT 0,
        holder TEXT,
        leased_until INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX session_used ON session (principal, used);
";

/// What version 2 has beside that: the pieces of large sessions, whose own text is empty.
const PIECES: &str = "
    ALTER TABLE session ADD COLUMN pieces BLOB;
    CREATE TABLE piece (
        handle TEXT NOT NULL REFERENCES session ON DELETE CASCADE,
        digest BLOB NOT NULL,
        piece BLOB NOT NULL,
        PRIMARY KEY (handle, digest)
    ) STRICT;
";

/// What version 3 has beside that: fencing tokens, and leases by the time since the start of the machine. A process of an
/// older version that has the file open still cannot take leases by the old column, and fails.
const FENCES: &str = "
    ALTER TABLE session RENAME COLUMN leased_until TO lease_until;
    ALTER TABLE session ADD COLUMN lease_boot TEXT;
    ALTER TABLE session ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX session_unused ON session (expired, used);
    CREATE INDEX session_made ON session (expired, created);
";

/// True while a row is leased, by named parameters that [`named_now`] gives.
const IS_LEASED: &str =
    "(holder IS NOT NULL AND lease_boot IS :boot AND lease_until > :now AND lease_until <= :latest)";

/// A store in a file; see the module's text. What was written is on the disk before anybody is told so.
pub struct Sqlite {
    path: PathBuf,
    /// For what must outlast the machine.
    durable: Mutex<Connection>,
    /// For leases, which need not, and for reading.
    quick: Mutex<Connection>,
    files: Files,
}

impl Sqlite {
    /// Opens the file, which is made if it is not there; only its owner may read it.
    ///
    /// # Errors
    /// [`Problem::Unavailable`] or [`Problem::Unusable`] if it cannot be opened, is no such file, or was made by a newer
    /// version.
    pub fn open(path: &Path) -> Result<Sqlite, Problem> {
        make_private(path)?;
        let mut durable = connect(path, "FULL")?;
        // A file that has its tables is only read, whoever may be writing to it.
        if version(&durable)? != VERSION {
            let transaction = durable.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let version = version(&transaction)?;
            if version > VERSION {
                return Err(Problem::Unusable(format!(
                    "its tables have version {version}, and this lispbox knows version {VERSION}: use a newer lispbox"
                )));
            }
            let steps = [TABLES, PIECES, FENCES];
            for step in steps.iter().skip(usize::try_from(version).unwrap_or_default()) {
                transaction.execute_batch(step)?;
            }
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.commit()?;
        }
        let quick = Mutex::new(connect(path, "NORMAL")?);
        Sqlite::within(&quick, TransactionBehavior::Deferred, |transaction| {
            Ok(transaction.execute_batch("SELECT 1 FROM session LIMIT 1")?)
        })?;
        Ok(Sqlite { path: path.to_owned(), durable: Mutex::new(durable), quick, files: Files::of(path)? })
    }

    /// Does something that has to last.
    fn lasting<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>) -> Result<R, Problem> {
        self.is_there()?;
        Sqlite::within(&self.durable, TransactionBehavior::Immediate, work)
    }

    /// Does something that the end of the machine may undo.
    fn quickly<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>) -> Result<R, Problem> {
        self.is_there()?;
        Sqlite::within(&self.quick, TransactionBehavior::Immediate, work)
    }

    /// Does something that only reads, and that nobody who writes has to wait for.
    fn reading<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>) -> Result<R, Problem> {
        self.is_there()?;
        Sqlite::within(&self.quick, TransactionBehavior::Deferred, work)
    }

    /// Looks whether the file is still the one that was opened.
    fn is_there(&self) -> Result<(), Problem> {
        self.files.check(|| {
            let checked = connect(&self.path, "NORMAL").and_then(|connection| {
                Ok(connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))?)
            });
            checked.is_ok_and(|found| found == "ok")
        })
    }

    /// Looks whether what was just written is what a reader finds, who has none of it in its cache.
    ///
    /// # Errors
    /// [`Problem::Unusable`] where it is not.
    fn is_written(&self, session: &Key, version: u64, text: &str, list: Option<&[u8]>) -> Result<(), Problem> {
        let is_found = self.reading(|transaction| {
            let found: Option<(u64, String, Option<Vec<u8>>)> = transaction
                .prepare_cached("SELECT version, text, pieces FROM session WHERE handle = ?1")?
                .query_row(params![session.handle], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            let Some((found, read, pieces)) = found else {
                return Err(Problem::Unavailable("the session was removed while it was written".to_owned()));
            };
            // Somebody else may have taken the session and written since.
            Ok(found > version || (found == version && read == text && pieces.as_deref() == list))
        })?;
        if is_found { Ok(()) } else { Err(files::damaged("what was written cannot be read".to_owned())) }
    }

    /// Does one page of a larger work after another until one says that it was the last, so that others have their turns.
    fn in_pages(&self, page: impl Fn(&Transaction<'_>) -> Result<usize, Problem>) -> Result<u64, Problem> {
        let mut done = 0;
        loop {
            let count = self.lasting(&page)?;
            done += count as u64;
            if count < PAGE as usize {
                return Ok(done);
            }
            std::thread::park_timeout(TURN);
        }
    }

    /// Lets sessions expire of which that column is before a time, unless they are in use.
    fn expire_by(&self, column: &str, since: i64) -> Result<u64, Problem> {
        let expire = format!(
            "UPDATE session SET expired = 1, text = '', pieces = NULL, names = '[]' WHERE handle IN (
                 SELECT handle FROM session WHERE expired = 0 AND {column} < :since AND NOT {IS_LEASED} LIMIT {PAGE})"
        );
        let expired = self.in_pages(|transaction| {
            let (boot, now, latest) = named_now();
            Ok(transaction.execute(
                &expire,
                rusqlite::named_params! { ":since": since, ":boot": boot, ":now": now, ":latest": latest },
            )?)
        })?;
        let pieces = format!(
            "DELETE FROM piece WHERE rowid IN (
                 SELECT piece.rowid FROM session CROSS JOIN piece ON piece.handle = session.handle
                 WHERE session.expired = 1 LIMIT {PAGE})"
        );
        self.in_pages(|transaction| Ok(transaction.execute(&pieces, [])?))?;
        Ok(expired)
    }

    /// Does something in one transaction, which is undone if it fails.
    fn within<R>(
        connection: &Mutex<Connection>,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>,
    ) -> Result<R, Problem> {
        let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(behavior)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }
}

/// A connection to the file, which waits for the disk as that level of `synchronous` says.
fn connect(path: &Path, synchronous: &str) -> Result<Connection, Problem> {
    let mut connection = Connection::open(path)?;
    connection.busy_handler(Some(|looked: i32| {
        std::thread::park_timeout(LOOK);
        LOOK * looked.unsigned_abs() < PATIENCE
    }))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// The version of the tables; 0 where there are none yet.
fn version(connection: &Connection) -> Result<i64, Problem> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Makes the file, if it is not there, so that others on the machine cannot read it. One that is there is left alone: a
/// process that closes it would give up the locks that SQLite has on it in that process.
fn make_private(path: &Path) -> Result<(), Problem> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(problem) if problem.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Problem::Unusable(problem.to_string()))
        }
        _ => Ok(()),
    }
}

/// What stands in a row beside the content of a session.
struct State {
    version: u64,
    expired: bool,
    leased: bool,
    lease: Lease,
}

impl State {
    /// Looks whether a lease is the last that was taken, also if it has run out since.
    fn proves(&self, lease: &Lease) -> Result<(), Problem> {
        if self.lease == *lease { Ok(()) } else { Err(Problem::Lost) }
    }
}

/// The state of a session that is there for its principal.
fn state(transaction: &Transaction<'_>, session: &Key) -> Result<State, Problem> {
    let state = transaction
        .prepare_cached(
            "SELECT version, expired, holder, fence, lease_boot, lease_until FROM session
             WHERE handle = ?1 AND principal = ?2",
        )?
        .query_row(params![session.handle, session.principal], |row| {
            let holder: Option<String> = row.get(2)?;
            let leased = holder.is_some() && is_leased(row.get(4)?, row.get(5)?);
            let lease = Lease { holder: holder.unwrap_or_default(), token: row.get(3)? };
            Ok(State { version: row.get(0)?, expired: row.get(1)?, leased, lease })
        })
        .optional()?;
    match state {
        None => Err(Problem::Unknown),
        Some(State { expired: true, .. }) => Err(Problem::Expired),
        Some(state) => Ok(state),
    }
}

/// True if a lease with that end holds now.
fn is_leased(in_boot: Option<String>, until: i64) -> bool {
    let (boot, now, latest) = named_now();
    in_boot.as_deref() == Some(boot) && until > now && until <= latest
}

/// The start of the machine, the time since, and when a lease ends at the latest that was taken by now.
fn named_now() -> (&'static str, i64, i64) {
    let now = millis(boot::elapsed());
    (boot::id(), now, now + millis(LEASE))
}

impl Store for Sqlite {
    fn lease(&self, session: &Key, holder: &str) -> Result<Lease, Problem> {
        self.quickly(|transaction| {
            let State { leased, lease, .. } = state(transaction, session)?;
            if leased {
                return Err(Problem::Leased);
            }
            let token = lease.token + 1;
            let (boot, _, until) = named_now();
            transaction
                .prepare_cached(
                    "UPDATE session SET holder = ?2, fence = ?3, lease_boot = ?4, lease_until = ?5, used = ?6
                     WHERE handle = ?1",
                )?
                .execute(params![session.handle, holder, token, boot, until, now()])?;
            Ok(Lease { holder: holder.to_owned(), token })
        })
    }

    fn renew(&self, session: &Key, lease: &Lease) -> Result<(), Problem> {
        self.quickly(|transaction| {
            let (boot, _, until) = named_now();
            let renewed = transaction
                .prepare_cached(
                    "UPDATE session SET lease_boot = ?4, lease_until = ?5
                     WHERE handle = ?1 AND holder = ?2 AND fence = ?3 AND expired = 0",
                )?
                .execute(params![session.handle, lease.holder, lease.token, boot, until])?;
            if renewed == 1 { Ok(()) } else { Err(Problem::Lost) }
        })
    }

    fn release(&self, session: &Key, lease: &Lease) -> Result<(), Problem> {
        self.quickly(|transaction| {
            transaction
                .prepare_cached(
                    "UPDATE session SET holder = NULL, lease_boot = NULL, lease_until = 0
                     WHERE handle = ?1 AND holder = ?2 AND fence = ?3",
                )?
                .execute(params![session.handle, lease.holder, lease.token])?;
            Ok(())
        })
    }

    fn read(&self, session: &Key, known: u64) -> Result<Option<Stored>, Problem> {
        self.reading(|transaction| {
            let version = state(transaction, session)?.version;
            if version == known {
                return Ok(None);
            }
            let (text, list): (String, Option<Vec<u8>>) = transaction
                .prepare_cached("SELECT text, pieces FROM session WHERE handle = ?1")?
                .query_row(params![session.handle], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let text = match list {
                Some(list) => pieces::joined(&list, &pieces_of(transaction, session)?)?,
                None => text,
            };
            Ok(Some(Stored { version, text }))
        })
    }

    fn create(&self, session: &Key, text: &str, names: &[String]) -> Result<(), Problem> {
        let names = serde_json::to_string(names).unwrap_or_default();
        let pieces = Pieces::of(text);
        let whole = if pieces.is_some() { "" } else { text };
        let list = pieces.as_ref().map(|pieces| &pieces.list[..]);
        self.lasting(|transaction| {
            let made = transaction
                .prepare_cached(
                    "INSERT INTO session (handle, principal, version, text, pieces, names, created, used)
                     VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?6) ON CONFLICT DO NOTHING",
                )?
                .execute(params![session.handle, session.principal, whole, list, names, now()])?;
            if made == 0 {
                return Err(Problem::Changed);
            }
            write_pieces(transaction, session, pieces.as_ref())
        })?;
        self.is_written(session, 1, whole, list)
    }

    fn write(&self, session: &Key, lease: &Lease, known: u64, text: &str, names: &[String]) -> Result<u64, Problem> {
        let names = serde_json::to_string(names).unwrap_or_default();
        let pieces = Pieces::of(text);
        let whole = if pieces.is_some() { "" } else { text };
        let list = pieces.as_ref().map(|pieces| &pieces.list[..]);
        self.lasting(|transaction| {
            let state = state(transaction, session)?;
            state.proves(lease)?;
            if state.version != known {
                return Err(Problem::Changed);
            }
            transaction
                .prepare_cached(
                    "UPDATE session SET version = ?2, text = ?3, pieces = ?4, names = ?5, used = ?6 WHERE handle = ?1",
                )?
                .execute(params![session.handle, known + 1, whole, list, names, now()])?;
            write_pieces(transaction, session, pieces.as_ref())
        })?;
        self.is_written(session, known + 1, whole, list)?;
        Ok(known + 1)
    }

    fn definer(&self, principal: &str, name: &str, except: &str) -> Result<Option<String>, Problem> {
        self.reading(|transaction| {
            let found = transaction
                .prepare_cached(
                    "SELECT handle FROM session
                     WHERE principal = ?1 AND handle <> ?3 AND expired = 0
                       AND EXISTS (SELECT 1 FROM json_each(names) WHERE value = ?2)
                     ORDER BY used DESC LIMIT 1",
                )?
                .query_row(params![principal, name, except], |row| row.get(0))
                .optional()?;
            Ok(found)
        })
    }

    fn list(&self) -> Result<Vec<Summary>, Problem> {
        self.reading(|transaction| {
            let mut statement = transaction.prepare_cached(
                "SELECT handle, principal, version, octet_length(text), names, created, used, substr(pieces, 1, 8),
                        holder, lease_boot, lease_until
                 FROM session WHERE expired = 0 ORDER BY used DESC, handle",
            )?;
            let summaries = statement.query_map([], summary)?.collect::<Result<Vec<Summary>, _>>()?;
            Ok(summaries)
        })
    }

    fn remove(&self, session: &Key, lease: Option<&Lease>) -> Result<(), Problem> {
        self.lasting(|transaction| {
            let state = state(transaction, session)?;
            match lease {
                Some(lease) => state.proves(lease)?,
                None if state.leased => return Err(Problem::Leased),
                None => {}
            }
            transaction.execute("DELETE FROM session WHERE handle = ?1", params![session.handle])?;
            Ok(())
        })
    }

    fn expire(&self, unused: Duration) -> Result<u64, Problem> {
        let since = now().saturating_sub(millis(unused));
        let forget = format!(
            "DELETE FROM session WHERE handle IN (
                 SELECT handle FROM session WHERE expired = 1 AND used < ?1 LIMIT {PAGE})"
        );
        let long_since = since.saturating_sub(millis(unused));
        self.in_pages(|transaction| Ok(transaction.execute(&forget, params![long_since])?))?;
        self.expire_by("used", since)
    }

    fn expire_old(&self, lifetime: Duration) -> Result<u64, Problem> {
        self.expire_by("created", now().saturating_sub(millis(lifetime)))
    }

    fn has_many(&self, principal: &str, count: u64) -> Result<bool, Problem> {
        // The index alone tells, unless what has expired makes the difference.
        self.reading(|transaction| {
            let has_many = transaction
                .prepare_cached(
                    "SELECT (SELECT count(*) FROM session WHERE principal = ?1) >= ?2
                        AND (SELECT count(*) FROM session WHERE principal = ?1 AND expired = 0) >= ?2",
                )?
                .query_row(params![principal, i64::try_from(count).unwrap_or(i64::MAX)], |row| row.get(0))?;
            Ok(has_many)
        })
    }

    fn check(&self) -> Result<(), Problem> {
        self.reading(|transaction| Ok(transaction.execute_batch("SELECT 1 FROM session LIMIT 1")?))
    }
}

/// The pieces of a session.
fn pieces_of(transaction: &Transaction<'_>, session: &Key) -> Result<HashMap<Digest, Vec<u8>>, Problem> {
    let mut statement = transaction.prepare_cached("SELECT digest, piece FROM piece WHERE handle = ?1")?;
    let pieces = statement.query_map(params![session.handle], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pieces.collect::<Result<_, _>>()?)
}

/// Keeps the pieces that a session has now, and no others. Which there are is looked up: one that was lost is written
/// again.
fn write_pieces(transaction: &Transaction<'_>, session: &Key, pieces: Option<&Pieces<'_>>) -> Result<(), Problem> {
    let mut statement = transaction.prepare_cached("SELECT digest FROM piece WHERE handle = ?1")?;
    let there =
        statement.query_map(params![session.handle], |row| row.get(0))?.collect::<Result<HashSet<Digest>, _>>()?;
    for (digest, piece) in pieces.into_iter().flat_map(|pieces| pieces.added(&there)) {
        transaction
            .prepare_cached("INSERT INTO piece (handle, digest, piece) VALUES (?1, ?2, ?3)")?
            .execute(params![session.handle, digest, piece])?;
    }
    let now: HashSet<Digest> = pieces.into_iter().flat_map(|pieces| pieces::digests(&pieces.list)).collect();
    for digest in there.difference(&now) {
        transaction
            .prepare_cached("DELETE FROM piece WHERE handle = ?1 AND digest = ?2")?
            .execute(params![session.handle, digest])?;
    }
    Ok(())
}

fn summary(row: &Row<'_>) -> rusqlite::Result<Summary> {
    let names: String = row.get(4)?;
    let list: Option<Vec<u8>> = row.get(7)?;
    let is_held = row.get::<_, Option<String>>(8)?.is_some();
    Ok(Summary {
        key: Key { handle: row.get(0)?, principal: row.get(1)? },
        version: row.get(2)?,
        bytes: list.map_or_else(|| row.get(3), |list| Ok(pieces::length(&list)))?,
        names: serde_json::from_str(&names).unwrap_or_default(),
        created: time(row.get(5)?),
        used: time(row.get(6)?),
        is_leased: is_held && is_leased(row.get(9)?, row.get(10)?),
    })
}

/// The time of day in milliseconds, as the tables have it.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

fn time(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.max(0) as u64)
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Problem {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Problem::Unavailable(format!(
                "another process has been writing to it for more than {} s",
                PATIENCE.as_secs()
            )),
            Some(ErrorCode::NotADatabase) => Problem::Unusable("the file is no SQLite database".to_owned()),
            Some(ErrorCode::DatabaseCorrupt) => files::damaged(error.to_string()),
            // A part that the log or the index of the log says is there cannot be read.
            Some(ErrorCode::SystemIoFailure) if is_short(&error) => files::damaged(error.to_string()),
            Some(ErrorCode::DiskFull) => Problem::Unusable("the disk is full: make room on it".to_owned()),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Problem::Unusable(error.to_string())
            }
            _ => Problem::Unavailable(error.to_string()),
        }
    }
}

/// True where a file is shorter than it has to be.
fn is_short(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|code| code.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
}
