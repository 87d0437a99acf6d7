//! Stores sessions in Redis, which several machines may share.
//!
//! Each step that has to be atomic is a script, which Redis runs exclusively; times are those of its clock. All keys
//! begin with `lispbox:`. Connecting and checking write nothing, so that they work on a replica and when memory is
//! exhausted.

use super::pieces::{self, Digest, Pieces};
use super::remote::{self, Remote};
use super::{Key, LEASE, Lease, OWN as RECORD, PERMANENT, Problem, Store, Stored, Summary, handle};
use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, ParsingError, RedisError, Script, ScriptInvocation, Value,
};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;

/// The version of the keys and their content. The versions are compatible upwards: this one adds sessions in pieces and
/// fencing tokens. Creating a session or taking a lease records it.
const VERSION: u64 = 3;

const VERSION_KEY: &str = "lispbox:version";
/// Prefix of a handle: the session, a hash.
const SESSION: &str = "lispbox:session:";
/// Prefix of a handle: the holder of the lease; the key expires with the lease. The last holder and the fencing token
/// are in the session as well.
const LEASED: &str = "lispbox:lease:";
/// Prefix of a principal: the handles of its sessions by their last use.
const OWN: &str = "lispbox:principal:";
/// The handles of all sessions by their last use.
const ALL: &str = "lispbox:sessions";
/// The principals that have, or had, sessions.
const PRINCIPALS: &str = "lispbox:principals";

/// Maximum size of a request on the shared connection, in bytes: a larger one would delay the others.
const SHARED: usize = 256 << 10;

/// Prefix of the digest of a piece: its field in a session.
const PIECE: &[u8] = b"piece:";

/// The number of sessions that one request lists or examines.
const PAGE: usize = 500;

/// A store in Redis; see the module documentation. Writes are as durable as the server's configuration provides.
pub struct Redis {
    client: Client,
    /// The shared connection, if there is one.
    connection: Mutex<Option<MultiplexedConnection>>,
    scripts: Scripts,
    remote: Remote,
}

struct Scripts {
    lease: Script,
    renew: Script,
    release: Script,
    read: Script,
    create: Script,
    write: Script,
    definer: Script,
    remove: Script,
    expire: Script,
    tidy: Script,
}

impl Scripts {
    fn new() -> Scripts {
        let with_state = |script: &str| Script::new(&format!("{}{script}", include_str!("scripts/state.lua")));
        let writing = |script: &str| with_state(&format!("{}{script}", include_str!("scripts/put.lua")));
        Scripts {
            lease: with_state(include_str!("scripts/lease.lua")),
            renew: with_state(include_str!("scripts/renew.lua")),
            release: with_state(include_str!("scripts/release.lua")),
            read: with_state(include_str!("scripts/read.lua")),
            create: writing(include_str!("scripts/create.lua")),
            write: writing(include_str!("scripts/write.lua")),
            definer: Script::new(include_str!("scripts/definer.lua")),
            remove: with_state(include_str!("scripts/remove.lua")),
            expire: Script::new(include_str!("scripts/expire.lua")),
            tidy: Script::new(include_str!("scripts/tidy.lua")),
        }
    }
}

impl Redis {
    /// Connects to the server of a URL: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss:` with TLS.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] if the server cannot be reached, and [`Problem::Unusable`] if it denies access
    /// or its keys were created by a newer version.
    pub fn open(url: &str) -> Result<Redis, Problem> {
        remote::prepare_tls();
        let client = Client::open(url)?;
        let store = Redis { client, connection: Mutex::default(), scripts: Scripts::new(), remote: Remote::new()? };
        store.check()?;
        Ok(store)
    }

    /// Returns the shared connection, and opens it if necessary.
    async fn connected(&self) -> Result<MultiplexedConnection, Problem> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = &*slot {
            return Ok(connection.clone());
        }
        let connection = self.connect().await?;
        *slot = Some(connection.clone());
        Ok(connection)
    }

    /// Opens a new connection.
    async fn connect(&self) -> Result<MultiplexedConnection, Problem> {
        // The caller bounds the total wait.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        // A server that has lost all data counts as new.
        let version: Option<u64> = ::redis::cmd("GET").arg(VERSION_KEY).query_async(&mut connection).await?;
        match version {
            Some(version) if version > VERSION => Err(newer(version)),
            _ => Ok(connection),
        }
    }

    /// Runs `work`, and retries it once on another connection if this one has broken, for example because a device on
    /// the path dropped it while idle. Both `work` and the caller receive a flag that is true if the request may
    /// already have taken effect.
    fn ask<R>(
        &self,
        work: impl AsyncFn(&mut MultiplexedConnection, bool) -> Result<R, RedisError>,
    ) -> Result<(R, bool), Problem> {
        self.ask_with(0, work)
    }

    /// Like [`Redis::ask`], for a request of the given size.
    fn ask_with<R>(
        &self,
        bytes: usize,
        work: impl AsyncFn(&mut MultiplexedConnection, bool) -> Result<R, RedisError>,
    ) -> Result<(R, bool), Problem> {
        let connection = async || if bytes > SHARED { self.connect().await } else { self.connected().await };
        let asked = async {
            match work(&mut connection().await?, false).await {
                Err(problem) if problem.is_unrecoverable_error() => {
                    *self.connection.lock().await = None;
                    Ok((work(&mut connection().await?, true).await?, true))
                }
                result => Ok((result?, false)),
            }
        };
        let probe = async {
            let Ok(mut connection) = self.connect().await else { return false };
            ::redis::cmd("PING").exec_async(&mut connection).await.is_ok()
        };
        self.remote.wait(asked, probe, |_| {
            if let Ok(mut connection) = self.connection.try_lock() {
                // This connection may never answer again, though a new one would.
                *connection = None;
            }
        })
    }

    /// Runs a script on a session. Its first two arguments are the principal and the handle.
    fn run<R: FromRedisValue>(
        &self,
        script: &Script,
        session: &Key,
        arguments: impl Fn(&mut ScriptInvocation<'_>, bool),
    ) -> Result<R, Problem> {
        self.run_with(0, script, session, arguments)
    }

    /// Like [`Redis::run`], with arguments of the given size.
    fn run_with<R: FromRedisValue>(
        &self,
        bytes: usize,
        script: &Script,
        session: &Key,
        arguments: impl Fn(&mut ScriptInvocation<'_>, bool),
    ) -> Result<R, Problem> {
        let Key { principal, handle } = session;
        let (answer, _) = self.ask_with(bytes, async |connection, again| {
            let mut invocation = script.prepare_invoke();
            invocation
                .key(format!("{SESSION}{handle}"))
                .key(format!("{LEASED}{handle}"))
                .key(ALL)
                .key(format!("{OWN}{principal}"))
                .key(VERSION_KEY)
                .key(PRINCIPALS)
                .arg(principal)
                .arg(handle);
            arguments(&mut invocation, again);
            invocation.invoke_async(connection).await
        })?;
        Ok(answer)
    }

    /// Runs a script that creates or writes a session: passes the arguments of `before`, then the content. Only pieces
    /// that are not stored yet are sent.
    fn put<R: FromRedisValue>(
        &self,
        script: &Script,
        session: &Key,
        put: &Put<'_>,
        before: impl Fn(&mut ScriptInvocation<'_>, bool),
    ) -> Result<R, Problem> {
        let stamp = handle().map_err(Problem::Unavailable)?;
        let names: String = std::iter::once("\n".to_owned()).chain(put.names.iter().map(|name| line(name))).collect();
        let Some(pieces) = Pieces::of(put.text) else {
            return self.run(script, session, |invocation, again| {
                before(invocation, again);
                invocation.arg(put.text).arg(&names).arg(&stamp).arg("");
            });
        };
        // If these pieces belong to another version, nothing is written.
        let there = if put.is_new { HashSet::new() } else { self.digests(session)? };
        let bytes = pieces.added(&there).map(|(_, piece)| piece.len()).sum();
        self.run_with(bytes, script, session, |invocation, again| {
            before(invocation, again);
            invocation.arg("").arg(&names).arg(&stamp).arg(&pieces.list);
            for (digest, piece) in pieces.added(&there) {
                invocation.arg(digest).arg(piece);
            }
        })
    }

    /// Returns the digests of the stored pieces of a session.
    fn digests(&self, session: &Key) -> Result<HashSet<Digest>, Problem> {
        let (fields, _): (Vec<Vec<u8>>, _) = self.ask(async |connection, _| {
            ::redis::cmd("HKEYS").arg(format!("{SESSION}{}", session.handle)).query_async(connection).await
        })?;
        let digests = fields.iter().filter_map(|field| field.strip_prefix(PIECE)?.try_into().ok());
        Ok(digests.collect())
    }

    /// Removes the handles of sessions that no longer exist, because the server has evicted them, from the indexes.
    fn tidy(&self) -> Result<(), Problem> {
        let (principals, _): (Vec<String>, _) =
            self.ask(async |connection, _| ::redis::cmd("SMEMBERS").arg(PRINCIPALS).query_async(connection).await)?;
        for principal in principals {
            let mut passed: u64 = 0;
            loop {
                let ((next, seen), _): ((u64, u64), _) = self.ask(async |connection, _| {
                    let mut invocation = self.scripts.tidy.key(format!("{OWN}{principal}"));
                    invocation.key(PRINCIPALS).key(ALL).arg(&principal).arg(passed).arg(PAGE).arg(SESSION);
                    invocation.invoke_async(connection).await
                })?;
                if seen < PAGE as u64 {
                    break;
                }
                passed = next;
            }
        }
        Ok(())
    }

    /// Expires the sessions whose last use or creation is older than `age`, page by page.
    fn expire_by(&self, what: &str, age: Duration) -> Result<u64, Problem> {
        let (mut expired, mut passed) = (0, 0);
        let permanent = format!("\n\"{RECORD}{PERMANENT}");
        loop {
            let ((more, next, seen), _): ((u64, u64, u64), _) = self.ask(async |connection, _| {
                let mut invocation = self.scripts.expire.key(ALL);
                invocation.arg(millis(age)).arg(passed).arg(&[SESSION, LEASED, OWN, what, &permanent]);
                invocation.invoke_async(connection).await
            })?;
            expired += more;
            passed = next;
            if seen == 0 {
                return Ok(expired);
            }
        }
    }

    /// Returns the summaries of those sessions of a sorted set that are wanted, the most recently used first.
    fn listed(&self, set: &str, is_wanted: impl Fn(&Summary) -> bool) -> Result<Vec<Summary>, Problem> {
        let (handles, _): (Vec<(String, f64)>, _) = self.ask(async |connection, _| {
            ::redis::cmd("ZRANGE").arg(set).arg(&["0", "-1", "WITHSCORES"]).query_async(connection).await
        })?;
        let mut summaries = Vec::new();
        for page in handles.chunks(PAGE) {
            summaries.extend(self.summaries(page)?.into_iter().filter(&is_wanted));
        }
        summaries.sort_by(|one, other| (other.used, &one.key.handle).cmp(&(one.used, &other.key.handle)));
        Ok(summaries)
    }

    /// Returns the summaries of some sessions, without those that were removed meanwhile.
    fn summaries(&self, page: &[(String, f64)]) -> Result<Vec<Summary>, Problem> {
        type Row = (Option<String>, Option<u64>, Option<String>, Option<u64>, Option<Vec<u8>>);
        let mut pipe = ::redis::pipe();
        for (handle, _) in page {
            let session = format!("{SESSION}{handle}");
            pipe.cmd("HMGET").arg(&session).arg(&["principal", "version", "names", "created", "pieces"]);
            pipe.cmd("HSTRLEN").arg(&session).arg("text");
            pipe.cmd("EXISTS").arg(format!("{LEASED}{handle}"));
        }
        let (rows, _): (Vec<::redis::Value>, _) = self.ask(async |connection, _| pipe.query_async(connection).await)?;
        let mut summaries = Vec::with_capacity(page.len());
        for ((handle, used), row) in page.iter().zip(rows.chunks_exact(3)) {
            let [fields, bytes, leased] = row else { continue };
            let (Some(principal), Some(version), Some(names), Some(created), list) =
                Row::from_redis_value_ref(fields).map_err(RedisError::from)?
            else {
                continue;
            };
            summaries.push(Summary {
                key: Key { principal, handle: handle.clone() },
                version,
                bytes: match list {
                    Some(list) => pieces::length(&list),
                    None => u64::from_redis_value_ref(bytes).map_err(RedisError::from)?,
                },
                names: names.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
                created: UNIX_EPOCH + Duration::from_millis(created),
                used: time(*used),
                is_leased: bool::from_redis_value_ref(leased).map_err(RedisError::from)?,
            });
        }
        Ok(summaries)
    }
}

impl Store for Redis {
    fn lease(&self, session: &Key, holder: &str) -> Result<Lease, Problem> {
        let token = self.run(&self.scripts.lease, session, |invocation, again| {
            invocation.arg(holder).arg(millis(LEASE)).arg(u8::from(again)).arg(VERSION);
        })?;
        Ok(Lease { holder: holder.to_owned(), token })
    }

    fn renew(&self, session: &Key, lease: &Lease) -> Result<(), Problem> {
        self.run(&self.scripts.renew, session, |invocation, _| {
            invocation.arg(&lease.holder).arg(lease.token).arg(millis(LEASE));
        })
    }

    fn release(&self, session: &Key, lease: &Lease) -> Result<(), Problem> {
        self.run(&self.scripts.release, session, |invocation, _| {
            invocation.arg(&lease.holder).arg(lease.token);
        })
    }

    fn read(&self, session: &Key, known: u64) -> Result<Option<Stored>, Problem> {
        let read: Option<Read> = self.run(&self.scripts.read, session, |invocation, _| {
            invocation.arg(known);
        })?;
        let Some(Read { version, text, list, pieces }) = read else { return Ok(None) };
        let text = match list {
            Some(list) => pieces::joined(&list, &pieces)?,
            None => text,
        };
        Ok(Some(Stored { version, text }))
    }

    fn create(&self, session: &Key, text: &str, names: &[String]) -> Result<(), Problem> {
        self.put(&self.scripts.create, session, &Put { text, names, is_new: true }, |invocation, _| {
            invocation.arg(VERSION);
        })
    }

    fn write(&self, session: &Key, lease: &Lease, known: u64, text: &str, names: &[String]) -> Result<u64, Problem> {
        self.put(&self.scripts.write, session, &Put { text, names, is_new: false }, |invocation, again| {
            invocation.arg(&lease.holder).arg(lease.token).arg(known).arg(u8::from(again));
        })
    }

    fn definer(&self, principal: &str, name: &str, except: &str) -> Result<Option<String>, Problem> {
        let (found, _) = self.ask(async |connection, _| {
            let mut invocation = self.scripts.definer.key(format!("{OWN}{principal}"));
            invocation.arg(format!("\n{}", line(name))).arg(except).arg(SESSION).invoke_async(connection).await
        })?;
        Ok(found)
    }

    fn named(&self, principal: &str, name: &str) -> Result<Vec<Summary>, Problem> {
        self.listed(&format!("{OWN}{principal}"), |summary| summary.names.iter().any(|it| it == name))
    }

    fn list(&self) -> Result<Vec<Summary>, Problem> {
        self.listed(ALL, |_| true)
    }

    fn remove(&self, session: &Key, lease: Option<&Lease>) -> Result<(), Problem> {
        self.run(&self.scripts.remove, session, |invocation, _| {
            if let Some(lease) = lease {
                invocation.arg(&lease.holder).arg(lease.token);
            }
        })
    }

    fn expire(&self, unused: Duration) -> Result<u64, Problem> {
        let expired = self.expire_by("used", unused)?;
        self.tidy()?;
        Ok(expired)
    }

    fn expire_old(&self, lifetime: Duration) -> Result<u64, Problem> {
        self.expire_by("created", lifetime)
    }

    fn has_many(&self, principal: &str, count: u64) -> Result<bool, Problem> {
        let (own, _): (u64, _) = self.ask(async |connection, _| {
            ::redis::cmd("ZCARD").arg(format!("{OWN}{principal}")).query_async(connection).await
        })?;
        Ok(own >= count)
    }

    fn check(&self) -> Result<(), Problem> {
        self.ask(async |connection, _| ::redis::cmd("GET").arg(VERSION_KEY).exec_async(connection).await).map(drop)
    }
}

/// The content of a session to be written.
struct Put<'t> {
    text: &'t str,
    names: &'t [String],
    is_new: bool,
}

/// The answer of the script that reads a session.
struct Read {
    version: u64,
    text: String,
    list: Option<Vec<u8>>,
    pieces: HashMap<Digest, Vec<u8>>,
}

impl FromRedisValue for Read {
    fn from_redis_value(value: Value) -> Result<Read, ParsingError> {
        let mut parts = Vec::<Value>::from_redis_value(value)?.into_iter();
        let mut next = || parts.next().unwrap_or(Value::Nil);
        let (version, text, list) = (next(), next(), next());
        let mut pieces = HashMap::new();
        while let (Some(digest), Some(piece)) = (parts.next(), parts.next()) {
            // Reassembling the text detects a missing piece.
            if let Some(piece) = Option::<Vec<u8>>::from_redis_value(piece)? {
                pieces.insert(Digest::from_redis_value(digest)?, piece);
            }
        }
        Ok(Read {
            version: u64::from_redis_value(version)?,
            text: String::from_redis_value(text)?,
            list: Option::from_redis_value(list)?,
            pieces,
        })
    }
}

/// Encodes a name as a line in a list of names; no line is part of another.
fn line(name: &str) -> String {
    format!("{}\n", serde_json::Value::from(name))
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn time(millis: f64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis as u64)
}

/// The problem of a server that a newer lispbox has used.
fn newer(version: u64) -> Problem {
    Problem::Unusable(format!(
        "its keys have version {version}, but this lispbox supports version {VERSION}: use a newer lispbox"
    ))
}

impl From<RedisError> for Problem {
    fn from(error: RedisError) -> Problem {
        let told = || without_scripts(error.detail().unwrap_or_default());
        match (code(&error), error.kind()) {
            (Some("UNKNOWN"), _) => Problem::Unknown,
            (Some("EXPIRED"), _) => Problem::Expired,
            (Some("LEASED"), _) => Problem::Leased,
            (Some("LOST"), _) => Problem::Lost,
            (Some("CHANGED"), _) => Problem::Changed,
            (Some("UNHEARD"), _) => Problem::Unavailable(
                "the connection broke during the write, and another process has written since".to_owned(),
            ),
            (Some("NEWER"), _) => newer(error.detail().and_then(|version| version.parse().ok()).unwrap_or(VERSION + 1)),
            (Some("OOM"), _) => Problem::Unusable(
                "Redis has no memory left (`maxmemory`): remove sessions with `lispbox sessions purge`, or raise \
                 `maxmemory`"
                    .to_owned(),
            ),
            (Some("READONLY"), _) => Problem::Unusable(
                "this Redis is a replica, which is read-only: use the server that it replicates".to_owned(),
            ),
            (Some("WRONGPASS"), _) | (_, ErrorKind::AuthenticationFailed) => Problem::Unusable(
                "Redis rejects the user name or the password of the URL, or one is missing".to_owned(),
            ),
            (Some("NOAUTH"), _) => Problem::Unusable(
                "Redis requires a password, but the URL has none: `redis://USER:PASSWORD@HOST`".to_owned(),
            ),
            (Some("NOPERM"), _) => {
                Problem::Unusable(format!("the user of the URL may not do this in Redis: {}", told()))
            }
            (Some("MISCONF"), _) => {
                Problem::Unusable("Redis refuses writes, because it cannot save to its disk: see its log".to_owned())
            }
            (Some("MOVED" | "ASK" | "CROSSSLOT"), _) => Problem::Unusable(
                "this Redis is part of a cluster, which lispbox does not support: use a standalone server".to_owned(),
            ),
            (_, ErrorKind::Io) => Problem::Unavailable(format!("the connection to Redis failed: {error}")),
            (_, ErrorKind::InvalidClientConfig) => {
                Problem::Unusable(format!("expected a URL such as `redis://localhost:6379/0`: {error}"))
            }
            (_, ErrorKind::Parse) => Problem::Unusable("the server there does not speak the Redis protocol".to_owned()),
            _ => Problem::Unavailable(without_scripts(&error.to_string())),
        }
    }
}

/// Returns the code of an error. It unwraps the codes of scripts, which Redis before version 7 wraps, and those of a
/// connection that selects its database before it authenticates.
fn code(error: &RedisError) -> Option<&str> {
    let detail = error.detail().unwrap_or_default();
    if detail.contains("Authentication required") {
        return Some("NOAUTH");
    }
    let wrapped = detail.split_once(": -").and_then(|(_, wrapped)| wrapped.split(' ').next());
    wrapped.filter(|code| code.chars().all(|letter| letter.is_ascii_uppercase())).or_else(|| error.code())
}

/// Removes from a message of Redis the digests by which it names our scripts.
fn without_scripts(message: &str) -> String {
    let message = message.split(" script: ").next().unwrap_or_default();
    let is_digest = |word: &&str| word.chars().filter(char::is_ascii_hexdigit).count() >= 40;
    message.split(' ').filter(|word| !is_digest(word)).collect::<Vec<_>>().join(" ")
}
