//! Stores sessions in PostgreSQL, which several machines may share.
//!
//! Each step is one statement and therefore atomic; times are those of the server's clock. The server aborts a
//! statement that waits too long for a locked row, and such a wait affects that row's session alone: leases are taken
//! and renewed without waiting for a row at all, and renewals have dedicated connections.

use super::pieces::{self, Digest, Pieces};
use super::remote::{self, Remote};
use super::{Key, LEASE, Lease, OWN, PERMANENT, Problem, Store, Stored, Summary, handle};
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use std::collections::HashSet;
use std::time::{Duration, SystemTime};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Error, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The schema version.
const VERSION: i32 = 3;

/// Maximum number of connections: for ordinary statements, for renewing leases, and for probing the server.
const CONNECTIONS: usize = 16;
const RENEWING: usize = 2;
const PROBING: usize = 2;

/// Timeout of waiting for a free connection.
const FREE: Duration = Duration::from_secs(3);

/// The number of sessions that one statement expires.
const PAGE: i64 = 500;

/// Settings of every new connection: the server aborts a statement and reports it before our own timeout elapses.
const MANNERS: &str =
    "SET lock_timeout = '2500ms'; SET statement_timeout = '3500ms'; SET client_min_messages = 'warning'";

/// Creates the tables, or migrates those of an older version. Two processes may do this at the same time. A process of
/// an older version that is still running fails, because the column by which it takes leases is gone.
const TABLES: &str = "
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('lispbox'));
    CREATE TABLE IF NOT EXISTS lispbox_version (version INTEGER PRIMARY KEY);
    INSERT INTO lispbox_version SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM lispbox_version);
    CREATE TABLE IF NOT EXISTS lispbox_session (
        handle TEXT COLLATE \"C\" PRIMARY KEY,
        principal TEXT COLLATE \"C\" NOT NULL,
        version BIGINT NOT NULL,
        stamp TEXT NOT NULL,
        text BYTEA NOT NULL,
        names TEXT[] NOT NULL,
        created TIMESTAMPTZ NOT NULL DEFAULT now(),
        used TIMESTAMPTZ NOT NULL DEFAULT now(),
        expired BOOLEAN NOT NULL DEFAULT FALSE,
        holder TEXT,
        leased_until TIMESTAMPTZ NOT NULL DEFAULT '-infinity'
    );
    CREATE INDEX IF NOT EXISTS lispbox_session_used ON lispbox_session (principal, used);
    ALTER TABLE lispbox_session ADD COLUMN IF NOT EXISTS pieces BYTEA;
    CREATE TABLE IF NOT EXISTS lispbox_piece (
        handle TEXT COLLATE \"C\" NOT NULL REFERENCES lispbox_session ON DELETE CASCADE,
        digest BYTEA NOT NULL,
        piece BYTEA NOT NULL,
        PRIMARY KEY (handle, digest)
    );
    DO $$ BEGIN
        IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('lispbox_session')
                   AND attname = 'leased_until' AND NOT attisdropped) THEN
            ALTER TABLE lispbox_session RENAME COLUMN leased_until TO lease_until;
        END IF;
    END $$;
    ALTER TABLE lispbox_session ADD COLUMN IF NOT EXISTS fence BIGINT NOT NULL DEFAULT 0;
    UPDATE lispbox_version SET version = 3 WHERE version < 3;
    COMMIT;
";

/// A store in PostgreSQL; see the module documentation. Writes are as durable as the server's `synchronous_commit`
/// setting provides: by default they are on its disk.
pub struct Postgres {
    pool: Pool,
    /// Connections for renewals, which must not wait for other statements.
    renewing: Pool,
    /// Connections for probing the server.
    probing: Pool,
    remote: Remote,
}

impl Postgres {
    /// Connects to the server of a URL, `postgres://[USER:PASSWORD@]HOST[:PORT]/DATABASE`, and creates the tables if
    /// they do not exist. With `?sslmode=require` the connection is encrypted and the server's certificate is verified;
    /// otherwise it is not encrypted.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] if the server cannot be reached, and [`Problem::Unusable`] if its tables were
    /// created by a newer version.
    pub fn open(url: &str) -> Result<Postgres, Problem> {
        let mut config: Config = url.parse().map_err(|error| {
            let reason = reason(&error);
            Problem::Unavailable(format!("expected a URL such as `postgres://localhost:5432/lispbox`: {reason}"))
        })?;
        config.application_name("lispbox");
        let encrypted = matches!(config.get_ssl_mode(), SslMode::Require).then(tls).transpose()?;
        let pool = |size| {
            let manners = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            let manager = match encrypted.clone() {
                Some(tls) => Manager::from_config(config.clone(), tls, manners),
                None => Manager::from_config(config.clone().ssl_mode(SslMode::Disable).clone(), NoTls, manners),
            };
            let hook = Hook::async_fn(|client, _| {
                Box::pin(async move { client.batch_execute(MANNERS).await.map_err(HookError::Backend) })
            });
            let pool = Pool::builder(manager).max_size(size).post_create(hook);
            let pool = pool.wait_timeout(Some(FREE)).runtime(Runtime::Tokio1).build();
            pool.map_err(|problem| Problem::Unavailable(problem.to_string()))
        };
        let (renewing, probing) = (pool(RENEWING)?, pool(PROBING)?);
        let store = Postgres { pool: pool(CONNECTIONS)?, renewing, probing, remote: Remote::new()? };
        let (version, _) = store.ask(async |client, _| {
            let there = client.query_one("SELECT to_regclass('lispbox_version') IS NOT NULL", &[]).await?;
            if !there.get::<_, bool>(0) {
                return Ok(0);
            }
            client.query_one("SELECT version FROM lispbox_version", &[]).await.map(|row| row.get(0))
        })?;
        if version > VERSION {
            return Err(Problem::Unusable(format!(
                "its tables have version {version}, but this lispbox supports version {VERSION}: use a newer lispbox"
            )));
        }
        // A user with access to the tables alone need not have the right to create them.
        if version < VERSION {
            store.ask(async |client, _| client.batch_execute(TABLES).await)?;
        }
        Ok(store)
    }

    /// Runs `work`, and retries it once on another connection if this one has broken. Both `work` and the caller
    /// receive a flag that is true if the request may already have taken effect.
    fn ask<R>(&self, work: impl AsyncFn(&Object, bool) -> Result<R, Error>) -> Result<(R, bool), Problem> {
        self.ask_over(&self.pool, work)
    }

    fn ask_over<R>(
        &self,
        pool: &Pool,
        work: impl AsyncFn(&Object, bool) -> Result<R, Error>,
    ) -> Result<(R, bool), Problem> {
        let asked = async {
            let client = Lent::from(pool).await?;
            match work(client.object(), false).await {
                Err(problem) if is_broken(&problem) => {
                    drop(client);
                    let client = Lent::from(pool).await?;
                    let result = work(client.object(), true).await;
                    client.give_back();
                    Ok((result?, true))
                }
                result => {
                    client.give_back();
                    Ok((result?, false))
                }
            }
        };
        // A new connection, which is not returned to the pool.
        let probe = async { Lent::from(&self.probing).await.is_ok() };
        self.remote.wait(asked, probe, |is_there| {
            if !is_there {
                // Idle connections may never answer again, though new ones would.
                self.pool.retain(|_, _| false);
                self.renewing.retain(|_, _| false);
            }
        })
    }

    /// Returns the rows of one statement.
    fn rows(&self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Problem> {
        self.rows_over(&self.pool, statement, values).map(|(rows, _)| rows)
    }

    /// Returns the rows of one statement, and whether it was sent twice.
    fn rows_over(
        &self,
        pool: &Pool,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(Vec<Row>, bool), Problem> {
        self.ask_over(pool, async |client, _| client.query(&client.prepare_cached(statement).await?, values).await)
    }

    /// Expires the sessions whose `column` is older than `age`, unless they are leased.
    fn expire_before(&self, column: &str, age: Duration) -> Result<u64, Problem> {
        let statement = format!(
            "WITH expired AS (
                 UPDATE lispbox_session SET expired = TRUE, text = '', pieces = NULL, names = '{{}}' WHERE handle IN (
                     SELECT handle FROM lispbox_session
                     WHERE NOT expired AND {column} < now() - make_interval(secs => $1) AND lease_until <= now()
                         AND NOT coalesce(names[1] LIKE '{OWN}{PERMANENT}%', FALSE)
                     LIMIT $2 FOR UPDATE SKIP LOCKED
                 ) RETURNING handle
             ), gone AS (
                 DELETE FROM lispbox_piece USING expired WHERE lispbox_piece.handle = expired.handle
             )
             SELECT TRUE FROM expired"
        );
        let mut expired = 0;
        loop {
            let page = self.rows(&statement, &[&seconds(age), &PAGE])?;
            if page.is_empty() {
                return Ok(expired);
            }
            expired += page.len() as u64;
        }
    }

    /// Reads the state of a session that a statement did not affect, to find out why.
    fn state(&self, session: &Key) -> Result<State, Problem> {
        let rows = self.rows(
            "SELECT stamp, expired, version, coalesce(holder, '') AS holder, fence FROM lispbox_session
             WHERE handle = $1 AND principal = $2",
            &[&session.handle, &session.principal],
        )?;
        match rows.first() {
            None => Err(Problem::Unknown),
            Some(row) if row.get("expired") => Err(Problem::Expired),
            Some(row) => {
                let lease = Lease { holder: row.get("holder"), token: row.get::<_, i64>("fence") as u64 };
                Ok(State { stamp: row.get("stamp"), version: version(row), lease })
            }
        }
    }

    /// Returns the digests of the stored pieces of a session.
    fn digests(&self, session: &Key) -> Result<HashSet<Digest>, Problem> {
        let rows = self.rows("SELECT digest FROM lispbox_piece WHERE handle = $1", &[&session.handle])?;
        Ok(rows.iter().filter_map(|row| Digest::try_from(row.get::<_, &[u8]>("digest")).ok()).collect())
    }
}

/// The columns of a session other than its content.
struct State {
    stamp: String,
    version: u64,
    /// The last lease that was taken and not released.
    lease: Lease,
}

/// A connection of a pool, which is closed instead of reused unless it is returned explicitly: a wait that times out
/// leaves a running statement on it, for which the next user would have to wait.
struct Lent(Option<Object>);

impl Lent {
    async fn from(pool: &Pool) -> Result<Lent, Problem> {
        Ok(Lent(Some(pool.get().await?)))
    }

    fn object(&self) -> &Object {
        self.0.as_ref().expect("it is taken by what ends this")
    }

    fn give_back(mut self) {
        self.0.take();
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(object) = self.0.take() {
            drop(Object::take(object));
        }
    }
}

/// The beginning of the queries whose rows are read by [`summary`].
const SUMMARIES: &str = "SELECT handle, principal, version, octet_length(text) AS bytes,
        substring(pieces FROM 1 FOR 8) AS list, names, created, used, lease_until > now() AS is_leased
    FROM lispbox_session";

fn summary(row: &Row) -> Summary {
    Summary {
        key: Key { principal: row.get("principal"), handle: row.get("handle") },
        version: version(row),
        bytes: match row.get::<_, Option<&[u8]>>("list") {
            Some(list) => pieces::length(list),
            None => row.get::<_, i32>("bytes") as u64,
        },
        names: row.get("names"),
        created: row.get::<_, SystemTime>("created"),
        used: row.get::<_, SystemTime>("used"),
        is_leased: row.get("is_leased"),
    }
}

impl Store for Postgres {
    fn lease(&self, session: &Key, holder: &str) -> Result<Lease, Problem> {
        let Key { principal, handle } = session;
        let leased = self.ask(async |client, again| {
            let statement = client
                .prepare_cached(
                    "WITH free AS (
                         SELECT handle FROM lispbox_session
                         WHERE handle = $1 AND principal = $2 AND NOT expired FOR UPDATE NOWAIT
                     )
                     UPDATE lispbox_session AS session
                     SET holder = $3, fence = fence + 1, lease_until = now() + make_interval(secs => $4), used = now()
                     FROM free
                     WHERE session.handle = free.handle AND (lease_until <= now() OR ($5 AND holder = $3))
                     RETURNING fence",
                )
                .await?;
            let values: [&(dyn ToSql + Sync); 5] = [handle, principal, &holder, &LEASE.as_secs_f64(), &again];
            match client.query_opt(&statement, &values).await {
                // Another process is taking the lease, or has locked the row for something else.
                Err(problem) if problem.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => Ok(None),
                leased => leased,
            }
        })?;
        match leased {
            (Some(row), _) => Ok(Lease { holder: holder.to_owned(), token: row.get::<_, i64>("fence") as u64 }),
            (None, _) => self.state(session).and(Err(Problem::Leased)),
        }
    }

    fn renew(&self, session: &Key, lease: &Lease) -> Result<(), Problem> {
        let (renewed, _) = self.rows_over(
            &self.renewing,
            "UPDATE lispbox_session SET lease_until = now() + make_interval(secs => $4)
             WHERE handle = (
                 SELECT handle FROM lispbox_session
                 WHERE handle = $1 AND holder = $2 AND fence = $3 AND NOT expired FOR UPDATE NOWAIT
             ) RETURNING TRUE",
            &[&session.handle, &lease.holder, &(lease.token as i64), &LEASE.as_secs_f64()],
        )?;
        if renewed.is_empty() { Err(Problem::Lost) } else { Ok(()) }
    }

    fn release(&self, session: &Key, lease: &Lease) -> Result<(), Problem> {
        self.rows(
            "UPDATE lispbox_session SET holder = NULL, lease_until = '-infinity'
             WHERE handle = $1 AND holder = $2 AND fence = $3",
            &[&session.handle, &lease.holder, &(lease.token as i64)],
        )
        .map(drop)
    }

    fn read(&self, session: &Key, known: u64) -> Result<Option<Stored>, Problem> {
        let rows = self.rows(
            "SELECT version, expired, CASE WHEN version <> $3 THEN text END AS text, pieces AS list,
                    CASE WHEN version <> $3 THEN
                        ARRAY(SELECT digest FROM lispbox_piece WHERE handle = $1 ORDER BY digest) END AS digests,
                    CASE WHEN version <> $3 THEN
                        ARRAY(SELECT piece FROM lispbox_piece WHERE handle = $1 ORDER BY digest) END AS pieces
             FROM lispbox_session WHERE handle = $1 AND principal = $2",
            &[&session.handle, &session.principal, &(known as i64)],
        )?;
        let row = rows.first().ok_or(Problem::Unknown)?;
        if row.get("expired") {
            return Err(Problem::Expired);
        }
        let Some(text) = row.get::<_, Option<Vec<u8>>>("text") else { return Ok(None) };
        let text = match row.get::<_, Option<&[u8]>>("list") {
            Some(list) => {
                let digests = row.get::<_, Vec<&[u8]>>("digests").into_iter();
                let named = digests.zip(row.get::<_, Vec<&[u8]>>("pieces"));
                let pieces = named.filter_map(|(digest, piece)| Some((Digest::try_from(digest).ok()?, piece)));
                pieces::joined(list, &pieces.collect())?
            }
            None => String::from_utf8(text).map_err(|_| Problem::Damaged("its stored text is not UTF-8".to_owned()))?,
        };
        Ok(Some(Stored { version: version(row), text }))
    }

    fn create(&self, session: &Key, text: &str, names: &[String]) -> Result<(), Problem> {
        let stamp = handle().map_err(Problem::Unavailable)?;
        let pieces = Pieces::of(text);
        let whole = if pieces.is_some() { "" } else { text }.as_bytes();
        let list = pieces.as_ref().map(|pieces| &pieces.list[..]);
        let (digests, added) = columns(pieces.as_ref(), &HashSet::new());
        let made = self.rows(
            "WITH written AS (
                 INSERT INTO lispbox_session (handle, principal, version, stamp, text, pieces, names)
                 VALUES ($1, $2, 1, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING version
             ), added AS (
                 INSERT INTO lispbox_piece
                 SELECT $1, one.* FROM unnest($7::bytea[], $8::bytea[]) AS one, written
             )
             SELECT version FROM written",
            &[&session.handle, &session.principal, &stamp, &whole, &list, &names, &digests, &added],
        )?;
        if made.len() == 1 {
            return Ok(());
        }
        // The statement may have been sent twice, because the answer to the first was lost.
        match self.state(session) {
            Ok(State { stamp: last, .. }) if last == stamp => Ok(()),
            Ok(_) | Err(Problem::Unknown | Problem::Expired) => Err(Problem::Changed),
            Err(problem) => Err(problem),
        }
    }

    fn write(&self, session: &Key, lease: &Lease, known: u64, text: &str, names: &[String]) -> Result<u64, Problem> {
        let stamp = handle().map_err(Problem::Unavailable)?;
        let pieces = Pieces::of(text);
        let whole = if pieces.is_some() { "" } else { text }.as_bytes();
        let list = pieces.as_ref().map(|pieces| &pieces.list[..]);
        let stays: Vec<Digest> = list.into_iter().flat_map(pieces::digests).collect();
        let stays: Vec<&[u8]> = stays.iter().map(|digest| &digest[..]).collect();
        // If these pieces belong to another version, the write below fails.
        let there = if pieces.is_some() { self.digests(session)? } else { HashSet::new() };
        let (digests, added) = columns(pieces.as_ref(), &there);
        let (written, is_again) = self.rows_over(
            &self.pool,
            "WITH written AS (
                 UPDATE lispbox_session
                 SET version = version + 1, stamp = $3, text = $4, pieces = $5, names = $6, used = now()
                 WHERE handle = $1 AND principal = $2 AND NOT expired AND version = $9 AND holder = $11 AND fence = $12
                 RETURNING version
             ), gone AS (
                 DELETE FROM lispbox_piece USING written WHERE handle = $1 AND digest <> ALL ($10::bytea[])
             ), added AS (
                 INSERT INTO lispbox_piece
                 SELECT $1, one.* FROM unnest($7::bytea[], $8::bytea[]) AS one, written
             )
             SELECT version FROM written",
            &[
                &session.handle,
                &session.principal,
                &stamp,
                &whole,
                &list,
                &names,
                &digests,
                &added,
                &(known as i64),
                &stays,
                &lease.holder,
                &(lease.token as i64),
            ],
        )?;
        if written.len() == 1 {
            return Ok(known + 1);
        }
        match self.state(session)? {
            State { stamp: last, .. } if last == stamp => Ok(known + 1),
            // The first attempt may have taken effect before another process wrote.
            State { version, .. } if is_again && version != known => Err(Problem::Unavailable(
                "the connection broke during the write, and another process has written since".to_owned(),
            )),
            State { lease: last, .. } if last != *lease => Err(Problem::Lost),
            _ => Err(Problem::Changed),
        }
    }

    fn definer(&self, principal: &str, name: &str, except: &str) -> Result<Option<String>, Problem> {
        let rows = self.rows(
            "SELECT handle FROM lispbox_session
             WHERE principal = $1 AND handle <> $3 AND NOT expired AND $2 = ANY (names)
             ORDER BY used DESC LIMIT 1",
            &[&principal, &name, &except],
        )?;
        Ok(rows.first().map(|row| row.get("handle")))
    }

    fn named(&self, principal: &str, name: &str) -> Result<Vec<Summary>, Problem> {
        let query =
            format!("{SUMMARIES} WHERE principal = $1 AND NOT expired AND $2 = ANY (names) ORDER BY used DESC, handle");
        Ok(self.rows(&query, &[&principal, &name])?.iter().map(summary).collect())
    }

    fn list(&self) -> Result<Vec<Summary>, Problem> {
        let rows = self.rows(&format!("{SUMMARIES} WHERE NOT expired ORDER BY used DESC, handle"), &[])?;
        Ok(rows.iter().map(summary).collect())
    }

    fn remove(&self, session: &Key, lease: Option<&Lease>) -> Result<(), Problem> {
        let (holder, token) = (lease.map(|lease| &lease.holder), lease.map(|lease| lease.token as i64));
        let removed = self.rows(
            "DELETE FROM lispbox_session
             WHERE handle = $1 AND principal = $2 AND NOT expired
               AND CASE WHEN $3::text IS NULL THEN lease_until <= now() ELSE holder = $3 AND fence = $4 END
             RETURNING TRUE",
            &[&session.handle, &session.principal, &holder, &token],
        )?;
        let held = if lease.is_some() { Problem::Lost } else { Problem::Leased };
        if removed.is_empty() { self.state(session).and(Err(held)) } else { Ok(()) }
    }

    fn expire(&self, unused: Duration) -> Result<u64, Problem> {
        self.rows(
            "DELETE FROM lispbox_session WHERE expired AND used < now() - make_interval(secs => 2 * $1::float8)",
            &[&seconds(unused)],
        )?;
        self.expire_before("used", unused)
    }

    fn expire_old(&self, lifetime: Duration) -> Result<u64, Problem> {
        self.expire_before("created", lifetime)
    }

    fn has_many(&self, principal: &str, count: u64) -> Result<bool, Problem> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let rows = self.rows(
            "SELECT count(*) >= $2 AS has_many FROM (
                 SELECT FROM lispbox_session WHERE principal = $1 AND NOT expired LIMIT $2
             ) AS own",
            &[&principal, &count],
        )?;
        Ok(rows.first().is_some_and(|row| row.get("has_many")))
    }

    fn check(&self) -> Result<(), Problem> {
        self.rows("SELECT TRUE FROM lispbox_session LIMIT 1", &[]).map(drop)
    }
}

/// Returns the digests and contents of the pieces that are not stored yet, as columns.
fn columns<'p>(pieces: Option<&'p Pieces<'_>>, there: &HashSet<Digest>) -> (Vec<&'p [u8]>, Vec<&'p [u8]>) {
    let added = pieces.into_iter().flat_map(|pieces| pieces.added(there));
    added.map(|(digest, piece)| (&digest[..], piece)).unzip()
}

/// Returns an age in seconds, capped at about a century so that PostgreSQL can subtract it.
fn seconds(age: Duration) -> f64 {
    age.as_secs_f64().min(3e9)
}

fn version(row: &Row) -> u64 {
    row.get::<_, i64>("version") as u64
}

/// Sets up TLS with the system's trusted certificates.
fn tls() -> Result<MakeRustlsConnect, Problem> {
    remote::prepare_tls();
    let (connect, _) = MakeRustlsConnect::with_native_certs().map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Problem::Unavailable(format!("the system's certificates cannot be read: {}", problems.join("; ")))
    })?;
    Ok(connect)
}

/// True if a retry on another connection may succeed.
fn is_broken(problem: &Error) -> bool {
    let ended = [&SqlState::ADMIN_SHUTDOWN, &SqlState::CRASH_SHUTDOWN];
    let is_io = std::error::Error::source(problem).is_some_and(|source| source.is::<std::io::Error>());
    problem.is_closed() || is_io || problem.code().is_some_and(|code| ended.contains(&code))
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let wrong_login = [&SqlState::INVALID_PASSWORD, &SqlState::INVALID_AUTHORIZATION_SPECIFICATION];
        let unusable = [
            &SqlState::INVALID_CATALOG_NAME,
            &SqlState::INSUFFICIENT_PRIVILEGE,
            &SqlState::READ_ONLY_SQL_TRANSACTION,
            &SqlState::DISK_FULL,
            &SqlState::DATA_CORRUPTED,
            &SqlState::INDEX_CORRUPTED,
            &SqlState::UNDEFINED_TABLE,
            &SqlState::UNDEFINED_COLUMN,
        ];
        match error.code() {
            // A text with a NUL character, which PostgreSQL rejects: nothing is stored under such a name.
            Some(code) if *code == SqlState::CHARACTER_NOT_IN_REPERTOIRE => Problem::Unknown,
            Some(code) if *code == SqlState::LOCK_NOT_AVAILABLE => {
                Problem::Unavailable("another client of the database has locked the session".to_owned())
            }
            Some(code) if *code == SqlState::QUERY_CANCELED => {
                Problem::Unavailable(format!("the database cancelled this after {} s", remote::PATIENCE.as_secs()))
            }
            Some(code) if wrong_login.contains(&code) || unusable.contains(&code) => Problem::Unusable(reason(&error)),
            _ => Problem::Unavailable(reason(&error)),
        }
    }
}

/// Returns the cause of an error as a sentence.
fn reason(error: &Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(answer), _) => answer.message().to_owned(),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

impl From<PoolError> for Problem {
    fn from(error: PoolError) -> Problem {
        match error {
            PoolError::Timeout(TimeoutType::Wait) => {
                Problem::Unavailable(format!("all of our connections to it were in use for {} s", FREE.as_secs()))
            }
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => error.into(),
            other => Problem::Unavailable(other.to_string()),
        }
    }
}
