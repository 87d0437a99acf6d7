//! Sessions in a SQLite file, which several processes on one machine may share.

use super::pieces::{self, Digest, Pieces};
use super::{Key, LEASE, Problem, Store, Stored, Summary};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a statement waits for another process that writes.
const PATIENCE: Duration = Duration::from_secs(5);

/// The version of the tables.
const VERSION: i64 = 2;

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

/// A store in a file; see the module's text. What was written is on the disk before anybody is told so.
pub struct Sqlite {
    /// For what must outlast the machine.
    durable: Mutex<Connection>,
    /// For leases, which need not, and for reading.
    quick: Mutex<Connection>,
}

impl Sqlite {
    /// Opens the file, which is made if it is not there; only its owner may read it.
    ///
    /// # Errors
    /// [`Problem::Unavailable`] if it cannot be opened, is no such file, or was made by a newer version.
    pub fn open(path: &Path) -> Result<Sqlite, Problem> {
        make_private(path)?;
        let mut durable = connect(path, "FULL")?;
        let transaction = durable.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version = transaction.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
        match version {
            0 | 1 => {
                if version == 0 {
                    transaction.execute_batch(TABLES)?;
                }
                transaction.execute_batch(PIECES)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
            }
            VERSION => {}
            newer => {
                return Err(Problem::Unavailable(format!(
                    "its tables have version {newer}, and this lispbox knows version {VERSION}: use a newer lispbox"
                )));
            }
        }
        transaction.commit()?;
        Ok(Sqlite { durable: Mutex::new(durable), quick: Mutex::new(connect(path, "NORMAL")?) })
    }

    /// Does something that has to last.
    fn lasting<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>) -> Result<R, Problem> {
        Sqlite::within(&self.durable, TransactionBehavior::Immediate, work)
    }

    /// Does something that the end of the machine may undo.
    fn quickly<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>) -> Result<R, Problem> {
        Sqlite::within(&self.quick, TransactionBehavior::Immediate, work)
    }

    /// Does something that only reads, and that nobody who writes has to wait for.
    fn reading<R>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<R, Problem>) -> Result<R, Problem> {
        Sqlite::within(&self.quick, TransactionBehavior::Deferred, work)
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
    let connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Makes the file, if it is not there, so that others on the machine cannot read it.
fn make_private(path: &Path) -> Result<(), Problem> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|problem| Problem::Unavailable(problem.to_string()))
}

/// What stands in a row beside the content of a session.
struct State {
    version: u64,
    expired: bool,
    leased: bool,
}

/// The state of a session that is there for its principal.
fn state(transaction: &Transaction<'_>, session: &Key) -> Result<State, Problem> {
    let state = transaction
        .prepare_cached("SELECT version, expired, leased_until FROM session WHERE handle = ?1 AND principal = ?2")?
        .query_row(params![session.handle, session.principal], |row| {
            let leased_until: i64 = row.get(2)?;
            Ok(State { version: row.get(0)?, expired: row.get(1)?, leased: leased_until > now() })
        })
        .optional()?;
    match state {
        None => Err(Problem::Unknown),
        Some(State { expired: true, .. }) => Err(Problem::Expired),
        Some(state) => Ok(state),
    }
}

impl Store for Sqlite {
    fn lease(&self, session: &Key, holder: &str) -> Result<(), Problem> {
        self.quickly(|transaction| {
            if state(transaction, session)?.leased {
                return Err(Problem::Leased);
            }
            transaction
                .prepare_cached("UPDATE session SET holder = ?2, leased_until = ?3, used = ?4 WHERE handle = ?1")?
                .execute(params![session.handle, holder, now() + millis(LEASE), now()])?;
            Ok(())
        })
    }

    fn renew(&self, session: &Key, holder: &str) -> Result<(), Problem> {
        self.quickly(|transaction| {
            let renewed = transaction
                .prepare_cached("UPDATE session SET leased_until = ?3 WHERE handle = ?1 AND holder = ?2")?
                .execute(params![session.handle, holder, now() + millis(LEASE)])?;
            if renewed == 1 { Ok(()) } else { Err(Problem::Leased) }
        })
    }

    fn release(&self, session: &Key, holder: &str) -> Result<(), Problem> {
        self.quickly(|transaction| {
            transaction
                .prepare_cached("UPDATE session SET holder = NULL, leased_until = 0 WHERE handle = ?1 AND holder = ?2")?
                .execute(params![session.handle, holder])?;
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

    fn write(&self, session: &Key, known: u64, text: &str, names: &[String]) -> Result<u64, Problem> {
        let names = serde_json::to_string(names).unwrap_or_default();
        let pieces = Pieces::of(text);
        let whole = if pieces.is_some() { "" } else { text };
        let list = pieces.as_ref().map(|pieces| &pieces.list[..]);
        self.lasting(|transaction| {
            let mut before: Option<Vec<u8>> = None;
            if known == 0 {
                let made = transaction
                    .prepare_cached(
                        "INSERT INTO session (handle, principal, version, text, pieces, names, created, used)
                         VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?6) ON CONFLICT DO NOTHING",
                    )?
                    .execute(params![session.handle, session.principal, whole, list, names, now()])?;
                if made == 0 {
                    return Err(Problem::Changed);
                }
            } else {
                if state(transaction, session)?.version != known {
                    return Err(Problem::Changed);
                }
                before = transaction
                    .prepare_cached("SELECT pieces FROM session WHERE handle = ?1")?
                    .query_row(params![session.handle], |row| row.get(0))?;
                transaction
                    .prepare_cached(
                        "UPDATE session SET version = ?2, text = ?3, pieces = ?4, names = ?5, used = ?6 WHERE handle = ?1",
                    )?
                    .execute(params![session.handle, known + 1, whole, list, names, now()])?;
            }
            write_pieces(transaction, session, pieces.as_ref(), before.as_deref())?;
            Ok(known + 1)
        })
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
                "SELECT handle, principal, version, octet_length(text), names, created, used, leased_until,
                        substr(pieces, 1, 8)
                 FROM session WHERE expired = 0 ORDER BY used DESC, handle",
            )?;
            let summaries = statement.query_map([], summary)?.collect::<Result<Vec<Summary>, _>>()?;
            Ok(summaries)
        })
    }

    fn remove(&self, session: &Key) -> Result<(), Problem> {
        self.lasting(|transaction| {
            if state(transaction, session)?.leased {
                return Err(Problem::Leased);
            }
            transaction.execute("DELETE FROM session WHERE handle = ?1", params![session.handle])?;
            Ok(())
        })
    }

    fn expire(&self, unused: Duration) -> Result<u64, Problem> {
        let since = now().saturating_sub(millis(unused));
        self.lasting(|transaction| {
            transaction.execute(
                "DELETE FROM session WHERE expired = 1 AND used < ?1",
                params![since.saturating_sub(millis(unused))],
            )?;
            expire(transaction, "used", since)
        })
    }

    fn expire_old(&self, lifetime: Duration) -> Result<u64, Problem> {
        self.lasting(|transaction| expire(transaction, "created", now().saturating_sub(millis(lifetime))))
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

/// Keeps the pieces that a session has now, where it had those of that list before.
fn write_pieces(
    transaction: &Transaction<'_>,
    session: &Key,
    pieces: Option<&Pieces<'_>>,
    before: Option<&[u8]>,
) -> Result<(), Problem> {
    for (digest, piece) in pieces.into_iter().flat_map(|pieces| pieces.added(before)) {
        transaction
            .prepare_cached("INSERT INTO piece (handle, digest, piece) VALUES (?1, ?2, ?3)")?
            .execute(params![session.handle, digest, piece])?;
    }
    let now: HashSet<Digest> = pieces.into_iter().flat_map(|pieces| pieces::digests(&pieces.list)).collect();
    let gone: HashSet<Digest> =
        before.into_iter().flat_map(pieces::digests).filter(|digest| !now.contains(digest)).collect();
    for digest in gone {
        transaction
            .prepare_cached("DELETE FROM piece WHERE handle = ?1 AND digest = ?2")?
            .execute(params![session.handle, digest])?;
    }
    Ok(())
}

/// Lets sessions expire of which that column is before a time, unless they are in use.
fn expire(transaction: &Transaction<'_>, column: &str, since: i64) -> Result<u64, Problem> {
    let expired = transaction.execute(
        &format!(
            "UPDATE session SET expired = 1, text = '', pieces = NULL, names = '[]'
             WHERE expired = 0 AND {column} < ?1 AND leased_until <= ?2"
        ),
        params![since, now()],
    )?;
    transaction.execute("DELETE FROM piece WHERE handle IN (SELECT handle FROM session WHERE expired = 1)", [])?;
    Ok(expired as u64)
}

fn summary(row: &Row<'_>) -> rusqlite::Result<Summary> {
    let names: String = row.get(4)?;
    let list: Option<Vec<u8>> = row.get(8)?;
    let leased_until: i64 = row.get(7)?;
    Ok(Summary {
        key: Key { handle: row.get(0)?, principal: row.get(1)? },
        version: row.get(2)?,
        bytes: list.map_or_else(|| row.get(3), |list| Ok(pieces::length(&list)))?,
        names: serde_json::from_str(&names).unwrap_or_default(),
        created: time(row.get(5)?),
        used: time(row.get(6)?),
        is_leased: leased_until > now(),
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
        let reason = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                format!("another process has been writing to it for more than {} s", PATIENCE.as_secs())
            }
            Some(ErrorCode::NotADatabase) => "the file is no SQLite database".to_string(),
            Some(ErrorCode::DiskFull) => "the disk is full".to_string(),
            _ => error.to_string(),
        };
        Problem::Unavailable(reason)
    }
}
