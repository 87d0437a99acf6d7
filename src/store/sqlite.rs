//! Stores sessions in a SQLite file, which several processes on one machine may share.
//!
//! Leases use the time since the machine was started, so that setting the clock neither ends nor extends one. A lease
//! of an earlier boot is void, and so is one that could only have been taken in the future.

use super::files::{self, Files};
use super::pieces::{self, Digest, Pieces};
use super::{Key, LEASE, Lease, OWN, PERMANENT, Problem, Store, Stored, Summary, boot};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Timeout of a statement that waits for another process's write.
const PATIENCE: Duration = Duration::from_secs(5);

/// Polling interval during that wait: short enough to get a turn between the pages of an expiry.
const LOOK: Duration = Duration::from_millis(2);

/// The number of sessions, or pieces, that one transaction expires.
const PAGE: u32 = 100;

/// The pause between two pages, in which other processes can run their transactions.
const TURN: Duration = Duration::from_millis(10);

/// The schema version.
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

/// The additions of version 2: the pieces of large sessions, whose own text is empty.
const PIECES: &str = "
    ALTER TABLE session ADD COLUMN pieces BLOB;
    CREATE TABLE piece (
        handle TEXT NOT NULL REFERENCES session ON DELETE CASCADE,
        digest BLOB NOT NULL,
        piece BLOB NOT NULL,
        PRIMARY KEY (handle, digest)
    ) STRICT;
";

/// The additions of version 3: fencing tokens, and leases by the time since the machine was started. A process of an
/// older version that still has the file open cannot take leases by the old column, and fails.
const FENCES: &str = "
    ALTER TABLE session RENAME COLUMN leased_until TO lease_until;
    ALTER TABLE session ADD COLUMN lease_boot TEXT;
    ALTER TABLE session ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX session_unused ON session (expired, used);
    CREATE INDEX session_made ON session (expired, created);
";

/// True while a row is leased, with the named parameters of [`named_now`].
const IS_LEASED: &str =
    "(holder IS NOT NULL AND lease_boot IS :boot AND lease_until > :now AND lease_until <= :latest)";

/// A store in a file; see the module documentation. A write is on the disk before it is acknowledged.
pub struct Sqlite {
    path: PathBuf,
    /// For writes that must survive a crash of the machine.
    durable: Mutex<Connection>,
    /// For reads, and for leases, which need not survive one.
    quick: Mutex<Connection>,
    files: Files,
}

impl Sqlite {
    /// Opens the file and creates it if it does not exist; only its owner may read it.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`] if the file cannot be opened, is not such a database,
    /// or was created by a newer version.
    pub fn open(path: &Path) -> Result<Sqlite, Problem> {
        make_private(path)?;
        let mut durable = connect(path, "FULL")?;
        // Up-to-date tables are only read, even while another process writes.
        if version(&durable)? != VERSION {
            let transaction = durable.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let version = version(&transaction)?;
            if version > VERSION {
                return Err(Problem::Unusable(format!(
                    "its tables have version {version}, but this lispbox supports version {VERSION}: use a newer \
                     lispbox"
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

    /// Runs a transaction that has to be durable.
    fn lasting<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>) -> Result<R, Problem> {
        self.is_there()?;
        Sqlite::within(&self.durable, TransactionBehavior::Immediate, work)
    }

    /// Runs a transaction that a crash of the machine may undo.
    fn quickly<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>) -> Result<R, Problem> {
        self.is_there()?;
        Sqlite::within(&self.quick, TransactionBehavior::Immediate, work)
    }

    /// Runs a transaction that only reads, and for which no writer has to wait.
    fn reading<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>) -> Result<R, Problem> {
        self.is_there()?;
        Sqlite::within(&self.quick, TransactionBehavior::Deferred, work)
    }

    /// Checks that the file is still the one that was opened.
    fn is_there(&self) -> Result<(), Problem> {
        self.files.check(|| {
            let checked = connect(&self.path, "NORMAL").and_then(|connection| {
                Ok(connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))?)
            });
            checked.is_ok_and(|found| found == "ok")
        })
    }

    /// Checks that a reader with an empty cache finds what was just written.
    ///
    /// # Errors
    /// Returns [`Problem::Unusable`] if it does not.
    fn is_written(&self, session: &Key, version: u64, text: &str, list: Option<&[u8]>) -> Result<(), Problem> {
        let is_found = self.reading(|transaction| {
            let found: Option<(u64, String, Option<Vec<u8>>)> = transaction
                .prepare_cached("SELECT version, text, pieces FROM session WHERE handle = ?1")?
                .query_row(params![session.handle], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            let Some((found, read, pieces)) = found else {
                return Err(Problem::Unavailable("the session was removed while it was written".to_owned()));
            };
            // Another process may have taken the session and written since.
            Ok(found > version || (found == version && read == text && pieces.as_deref() == list))
        })?;
        if is_found { Ok(()) } else { Err(files::damaged("what was written cannot be read".to_owned())) }
    }

    /// Runs the pages of a larger job until one is not full, pausing between them so that others get their turns.
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

    /// Expires the sessions whose `column` is before a time, unless they are leased.
    fn expire_by(&self, column: &str, since: i64) -> Result<u64, Problem> {
        let expire = format!(
            "UPDATE session SET expired = 1, text = '', pieces = NULL, names = '[]' WHERE handle IN (
                 SELECT handle FROM session WHERE expired = 0 AND {column} < :since AND NOT {IS_LEASED}
                 AND names NOT LIKE '[\"{OWN}{PERMANENT}%' LIMIT {PAGE})"
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

    /// Runs one transaction, which is rolled back if `work` fails.
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

/// Opens a connection to the file, with that `synchronous` level.
fn connect(path: &Path, synchronous: &str) -> Result<Connection, Problem> {
    let mut connection = Connection::open(path)?;
    connection.busy_handler(Some(|looked: i32| {
        std::thread::park_timeout(LOOK);
        LOOK * looked.unsigned_abs() < PATIENCE
    }))?;
    // While another process changes the mode of a new file, SQLite fails without asking the handler.
    let begun = Instant::now();
    while let Err(problem) = connection.pragma_update(None, "journal_mode", "WAL") {
        if problem.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) || begun.elapsed() >= PATIENCE {
            return Err(problem.into());
        }
        std::thread::park_timeout(LOOK);
    }
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Returns the schema version; 0 if there are no tables yet.
fn version(connection: &Connection) -> Result<i64, Problem> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Creates the file, if it does not exist, so that other users of the machine cannot read it. An existing file is not
/// opened: closing it would release the locks that SQLite holds on it in this process.
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

/// The columns of a session other than its content.
struct State {
    version: u64,
    expired: bool,
    leased: bool,
    lease: Lease,
}

impl State {
    /// Checks that a lease is the last one taken, even if it has expired since.
    fn proves(&self, lease: &Lease) -> Result<(), Problem> {
        if self.lease == *lease { Ok(()) } else { Err(Problem::Lost) }
    }
}

/// Returns the state of a session that exists for its principal and has not expired.
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

/// Returns the boot identifier, the time since boot, and the latest end of a lease taken by now.
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

    fn named(&self, principal: &str, name: &str) -> Result<Vec<Summary>, Problem> {
        self.reading(|transaction| {
            let mut statement = transaction.prepare_cached(&format!(
                "SELECT {SUMMARY} FROM session
                 WHERE principal = ?1 AND expired = 0 AND EXISTS (SELECT 1 FROM json_each(names) WHERE value = ?2)
                 ORDER BY used DESC, handle",
            ))?;
            let summaries = statement.query_map(params![principal, name], summary)?;
            Ok(summaries.collect::<Result<Vec<Summary>, _>>()?)
        })
    }

    fn list(&self) -> Result<Vec<Summary>, Problem> {
        self.reading(|transaction| {
            let mut statement = transaction.prepare_cached(&format!(
                "SELECT {SUMMARY} FROM session WHERE expired = 0 ORDER BY used DESC, handle",
            ))?;
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
        // The index alone decides, unless expired sessions make the difference.
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

    fn bytes(&self) -> Result<Option<u64>, Problem> {
        self.reading(|transaction| {
            let number = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
            let used = number("page_count")?.saturating_sub(number("freelist_count")?);
            Ok(Some(used.saturating_mul(number("page_size")?)))
        })
    }

    fn check(&self) -> Result<(), Problem> {
        self.reading(|transaction| Ok(transaction.execute_batch("SELECT 1 FROM session LIMIT 1")?))
    }
}

/// Returns the pieces of a session.
fn pieces_of(transaction: &Transaction<'_>, session: &Key) -> Result<HashMap<Digest, Vec<u8>>, Problem> {
    let mut statement = transaction.prepare_cached("SELECT digest, piece FROM piece WHERE handle = ?1")?;
    let pieces = statement.query_map(params![session.handle], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pieces.collect::<Result<_, _>>()?)
}

/// Stores the current pieces of a session and deletes all others. The stored digests are looked up, so that a lost
/// piece is written again.
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

/// The columns from which [`summary`] is made.
const SUMMARY: &str = "handle, principal, version, octet_length(text), names, created, used, substr(pieces, 1, 8), holder, \
                       lease_boot, lease_until";

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

/// The time of day in milliseconds, the unit of the tables.
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
            Some(ErrorCode::NotADatabase) => Problem::Unusable("the file is not an SQLite database".to_owned()),
            Some(ErrorCode::DatabaseCorrupt) => files::damaged(error.to_string()),
            // A part that the log or its index refers to cannot be read.
            Some(ErrorCode::SystemIoFailure) if is_short(&error) => files::damaged(error.to_string()),
            Some(ErrorCode::DiskFull) => Problem::Unusable("the disk is full: free some space".to_owned()),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Problem::Unusable(error.to_string())
            }
            _ => Problem::Unavailable(error.to_string()),
        }
    }
}

/// True if a file is shorter than expected.
fn is_short(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|code| code.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ)
}
