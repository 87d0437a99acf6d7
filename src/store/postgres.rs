//! Sessions in PostgreSQL, which several machines may share.
//!
//! Each step is one statement, so that nothing is ever half done; times are those of the server's clock.

use super::pieces::{self, Digest, Pieces};
use super::remote::{self, Remote};
use super::{Key, LEASE, Problem, Store, Stored, Summary, handle};
use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod};
use std::time::{Duration, SystemTime};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Error, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The version of the tables.
const VERSION: i32 = 2;

/// How many connections there are at most.
const CONNECTIONS: usize = 8;

/// How many sessions expire with one statement.
const PAGE: i64 = 500;

/// What is said on every new connection: whatever we do not wait for any longer is given up there as well.
const MANNERS: &str = "SET statement_timeout = '4s'; SET client_min_messages = 'warning'";

/// Two processes may come first at the same time.
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
    UPDATE lispbox_version SET version = 2 WHERE version = 1;
    COMMIT;
";

/// A store in PostgreSQL; see the module's text. What was written is as durable as the server's
/// `synchronous_commit` says, by default on its disk.
pub struct Postgres {
    pool: Pool,
    remote: Remote,
}

impl Postgres {
    /// Connects to the server of a URL, `postgres://[USER:PASSWORD@]HOST[:PORT]/DATABASE`, and makes the tables if
    /// they are not there. With `?sslmode=require` the connection is encrypted, and the server's certificate has to
    /// be good; otherwise it is not encrypted.
    ///
    /// # Errors
    /// [`Problem::Unavailable`] if it cannot be reached, or holds what was made by a newer version.
    pub fn open(url: &str) -> Result<Postgres, Problem> {
        let mut config: Config = url.parse().map_err(|error| {
            let reason = reason(&error);
            Problem::Unavailable(format!("expected a URL such as `postgres://localhost:5432/lispbox`: {reason}"))
        })?;
        config.application_name("lispbox");
        let manners = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match config.get_ssl_mode() {
            SslMode::Require => Manager::from_config(config, tls()?, manners),
            _ => Manager::from_config(config.ssl_mode(SslMode::Disable).clone(), NoTls, manners),
        };
        let hook = Hook::async_fn(|client, _| {
            Box::pin(async move { client.batch_execute(MANNERS).await.map_err(HookError::Backend) })
        });
        let pool = Pool::builder(manager).max_size(CONNECTIONS).post_create(hook).build();
        let pool = pool.map_err(|problem| Problem::Unavailable(problem.to_string()))?;
        let store = Postgres { pool, remote: Remote::new()? };
        let found = store.ask(async |client, _| {
            // Who may only use the tables need not be allowed to make them.
            let there = client.query_one("SELECT to_regclass('lispbox_piece') IS NOT NULL", &[]).await?;
            if !there.get::<_, bool>(0) {
                client.batch_execute(TABLES).await?;
            }
            client.query_one("SELECT version FROM lispbox_version", &[]).await
        })?;
        match found.get(0) {
            VERSION => Ok(store),
            newer => Err(Problem::Unavailable(format!(
                "its tables have version {newer}, and this lispbox knows version {VERSION}: use a newer lispbox"
            ))),
        }
    }

    /// Says something to the server, and once more on another connection if this one has broken. `work` is told
    /// whether it may have taken place already.
    fn ask<R>(&self, work: impl AsyncFn(&Object, bool) -> Result<R, Error>) -> Result<R, Problem> {
        let asked = self.remote.wait(async {
            let client = self.pool.get().await?;
            match work(&client, false).await {
                Err(problem) if is_broken(&problem) => {
                    drop(Object::take(client));
                    let client = self.pool.get().await?;
                    Ok(work(&client, true).await?)
                }
                result => Ok(result?),
            }
        });
        if let Err(Problem::Unavailable(_)) = asked {
            // They may never answer again, though others would.
            self.pool.retain(|_, _| false);
        }
        asked
    }

    /// The rows of one statement.
    fn rows(&self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Problem> {
        self.ask(async |client, _| client.query(&client.prepare_cached(statement).await?, values).await)
    }

    /// Lets sessions expire of which that column is so long ago, unless they are in use.
    fn expire_before(&self, column: &str, age: Duration) -> Result<u64, Problem> {
        let statement = format!(
            "WITH expired AS (
                 UPDATE lispbox_session SET expired = TRUE, text = '', pieces = NULL, names = '{{}}' WHERE handle IN (
                     SELECT handle FROM lispbox_session
                     WHERE NOT expired AND {column} < now() - make_interval(secs => $1) AND leased_until <= now()
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

    /// The stamp of the last write of a session, which a statement has passed over for some reason.
    fn stamp(&self, session: &Key) -> Result<String, Problem> {
        let rows = self.rows(
            "SELECT stamp, expired FROM lispbox_session WHERE handle = $1 AND principal = $2",
            &[&session.handle, &session.principal],
        )?;
        match rows.first() {
            None => Err(Problem::Unknown),
            Some(row) if row.get("expired") => Err(Problem::Expired),
            Some(row) => Ok(row.get("stamp")),
        }
    }
}

impl Store for Postgres {
    fn lease(&self, session: &Key, holder: &str) -> Result<(), Problem> {
        let Key { principal, handle } = session;
        let leased = self.ask(async |client, again| {
            let statement = client
                .prepare_cached(
                    "UPDATE lispbox_session
                     SET holder = $3, leased_until = now() + make_interval(secs => $4), used = now()
                     WHERE handle = $1 AND principal = $2 AND NOT expired
                       AND (leased_until <= now() OR ($5 AND holder = $3))",
                )
                .await?;
            client.execute(&statement, &[handle, principal, &holder, &LEASE.as_secs_f64(), &again]).await
        })?;
        if leased == 1 { Ok(()) } else { self.stamp(session).and(Err(Problem::Leased)) }
    }

    fn renew(&self, session: &Key, holder: &str) -> Result<(), Problem> {
        let renewed = self.rows(
            "UPDATE lispbox_session SET leased_until = now() + make_interval(secs => $3)
             WHERE handle = $1 AND holder = $2 RETURNING TRUE",
            &[&session.handle, &holder, &LEASE.as_secs_f64()],
        )?;
        if renewed.is_empty() { Err(Problem::Leased) } else { Ok(()) }
    }

    fn release(&self, session: &Key, holder: &str) -> Result<(), Problem> {
        self.rows(
            "UPDATE lispbox_session SET holder = NULL, leased_until = '-infinity' WHERE handle = $1 AND holder = $2",
            &[&session.handle, &holder],
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
            None => {
                String::from_utf8(text).map_err(|_| Problem::Damaged("what the store has is no text".to_owned()))?
            }
        };
        Ok(Some(Stored { version: version(row), text }))
    }

    fn write(&self, session: &Key, known: u64, text: &str, names: &[String]) -> Result<u64, Problem> {
        let Key { principal, handle: session_handle } = session;
        let stamp = handle().map_err(Problem::Unavailable)?;
        let pieces = Pieces::of(text);
        let whole = if pieces.is_some() { "" } else { text }.as_bytes();
        let list = pieces.as_ref().map(|pieces| &pieces.list[..]);
        let stays: Vec<Digest> = list.into_iter().flat_map(pieces::digests).collect();
        let stays: Vec<&[u8]> = stays.iter().map(|digest| &digest[..]).collect();
        // If it is another version's list, nothing is written.
        let before = match &pieces {
            Some(_) if known > 0 => {
                self.rows("SELECT pieces FROM lispbox_session WHERE handle = $1", &[session_handle])?
            }
            _ => Vec::new(),
        };
        let before = before.first().and_then(|row| row.get::<_, Option<&[u8]>>("pieces"));
        let added = pieces.iter().flat_map(|pieces| pieces.added(before));
        let (digests, added): (Vec<&[u8]>, Vec<&[u8]>) = added.map(|(digest, piece)| (&digest[..], piece)).unzip();
        let written = if known == 0 {
            self.rows(
                "WITH written AS (
                     INSERT INTO lispbox_session (handle, principal, version, stamp, text, pieces, names)
                     VALUES ($1, $2, 1, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING version
                 ), added AS (
                     INSERT INTO lispbox_piece
                     SELECT $1, one.* FROM unnest($7::bytea[], $8::bytea[]) AS one, written
                 )
                 SELECT version FROM written",
                &[session_handle, principal, &stamp, &whole, &list, &names, &digests, &added],
            )?
        } else {
            self.rows(
                "WITH written AS (
                     UPDATE lispbox_session
                     SET version = version + 1, stamp = $3, text = $4, pieces = $5, names = $6, used = now()
                     WHERE handle = $1 AND principal = $2 AND NOT expired AND version = $9 RETURNING version
                 ), gone AS (
                     DELETE FROM lispbox_piece USING written WHERE handle = $1 AND digest <> ALL ($10::bytea[])
                 ), added AS (
                     INSERT INTO lispbox_piece
                     SELECT $1, one.* FROM unnest($7::bytea[], $8::bytea[]) AS one, written
                 )
                 SELECT version FROM written",
                &[session_handle, principal, &stamp, &whole, &list, &names, &digests, &added, &(known as i64), &stays],
            )?
        };
        if written.len() == 1 {
            return Ok(known + 1);
        }
        // It may have been said twice, because the answer to the first was lost.
        match self.stamp(session) {
            Ok(last) if last == stamp => Ok(known + 1),
            Ok(_) => Err(Problem::Changed),
            Err(Problem::Unknown | Problem::Expired) if known == 0 => Err(Problem::Changed),
            Err(problem) => Err(problem),
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

    fn list(&self) -> Result<Vec<Summary>, Problem> {
        let rows = self.rows(
            "SELECT handle, principal, version, octet_length(text) AS bytes, substring(pieces FROM 1 FOR 8) AS list, names, created, used,
                    leased_until > now() AS is_leased
             FROM lispbox_session WHERE NOT expired ORDER BY used DESC, handle",
            &[],
        )?;
        let summary = |row: &Row| Summary {
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
        };
        Ok(rows.iter().map(summary).collect())
    }

    fn remove(&self, session: &Key) -> Result<(), Problem> {
        let removed = self.rows(
            "DELETE FROM lispbox_session
             WHERE handle = $1 AND principal = $2 AND NOT expired AND leased_until <= now() RETURNING TRUE",
            &[&session.handle, &session.principal],
        )?;
        if removed.is_empty() { self.stamp(session).and(Err(Problem::Leased)) } else { Ok(()) }
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

/// An age as PostgreSQL counts it back: a century, which nobody means to wait for, can be.
fn seconds(age: Duration) -> f64 {
    age.as_secs_f64().min(3e9)
}

fn version(row: &Row) -> u64 {
    row.get::<_, i64>("version") as u64
}

/// TLS with servers that the system trusts.
fn tls() -> Result<MakeRustlsConnect, Problem> {
    remote::prepare_tls();
    let (connect, _) = MakeRustlsConnect::with_native_certs().map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Problem::Unavailable(format!("the system's certificates cannot be read: {}", problems.join("; ")))
    })?;
    Ok(connect)
}

/// True where another connection might do.
fn is_broken(problem: &Error) -> bool {
    let ended = [&SqlState::ADMIN_SHUTDOWN, &SqlState::CRASH_SHUTDOWN];
    let is_io = std::error::Error::source(problem).is_some_and(|source| source.is::<std::io::Error>());
    problem.is_closed() || is_io || problem.code().is_some_and(|code| ended.contains(&code))
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        // A text with a zero character, which PostgreSQL does not take: nothing is there by such a name.
        if error.code() == Some(&SqlState::CHARACTER_NOT_IN_REPERTOIRE) {
            return Problem::Unknown;
        }
        Problem::Unavailable(reason(&error))
    }
}

/// What went wrong, in a sentence.
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
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => error.into(),
            other => Problem::Unavailable(other.to_string()),
        }
    }
}
