//! Sessions in Redis, which several machines may share.
//!
//! What has to be one step is a script, which Redis runs alone; times are those of its clock. The keys all begin with
//! `lispbox:`.

use super::pieces::{self, Digest, Pieces};
use super::remote::{self, Remote};
use super::{Key, LEASE, Problem, Store, Stored, Summary, handle};
use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, ParsingError, RedisError, Script, ScriptInvocation, Value,
};
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;

/// The version of the keys and what is in them.
const VERSION: u64 = 2;
/// The version before, which has nothing that this one has not: sessions in pieces are new.
const OLDER: u64 = 1;

const VERSION_KEY: &str = "lispbox:version";
/// Before a handle: what there is of the session, a hash.
const SESSION: &str = "lispbox:session:";
/// Before a handle: the holder of the lease, which ends with the key.
const LEASED: &str = "lispbox:lease:";
/// Before a principal: the handles of its sessions by their last use.
const OWN: &str = "lispbox:principal:";
/// The handles of all sessions by their last use.
const ALL: &str = "lispbox:sessions";

/// How many sessions are listed with one request.
const PAGE: usize = 500;

/// A store in Redis; see the module's text. It keeps what it is told as well as the server is configured to.
pub struct Redis {
    client: Client,
    /// One connection for all, while there is one.
    connection: Mutex<Option<MultiplexedConnection>>,
    scripts: Scripts,
    remote: Remote,
}

struct Scripts {
    lease: Script,
    renew: Script,
    read: Script,
    write: Script,
    definer: Script,
    remove: Script,
    expire: Script,
}

impl Scripts {
    fn new() -> Scripts {
        Scripts {
            lease: Script::new(concat!(include_str!("scripts/state.lua"), include_str!("scripts/lease.lua"))),
            renew: Script::new(include_str!("scripts/renew.lua")),
            read: Script::new(concat!(include_str!("scripts/state.lua"), include_str!("scripts/read.lua"))),
            write: Script::new(concat!(include_str!("scripts/state.lua"), include_str!("scripts/write.lua"))),
            definer: Script::new(include_str!("scripts/definer.lua")),
            remove: Script::new(concat!(include_str!("scripts/state.lua"), include_str!("scripts/remove.lua"))),
            expire: Script::new(include_str!("scripts/expire.lua")),
        }
    }
}

impl Redis {
    /// Connects to the server of a URL: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss:` with TLS.
    ///
    /// # Errors
    /// [`Problem::Unavailable`] if it cannot be reached, or holds what was made by a newer version.
    pub fn open(url: &str) -> Result<Redis, Problem> {
        remote::prepare_tls();
        let client = Client::open(url)?;
        let store = Redis { client, connection: Mutex::default(), scripts: Scripts::new(), remote: Remote::new()? };
        store.check()?;
        Ok(store)
    }

    /// The connection, which is made if there is none.
    async fn connected(&self) -> Result<MultiplexedConnection, Problem> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = &*slot {
            return Ok(connection.clone());
        }
        // Waiting is bounded as a whole.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        // A server that has lost everything is a new one.
        let _: Option<String> =
            ::redis::cmd("SET").arg(VERSION_KEY).arg(VERSION).arg("NX").query_async(&mut connection).await?;
        let version: u64 = ::redis::cmd("GET").arg(VERSION_KEY).query_async(&mut connection).await?;
        if version == OLDER {
            ::redis::cmd("SET").arg(VERSION_KEY).arg(VERSION).exec_async(&mut connection).await?;
        } else if version != VERSION {
            return Err(Problem::Unavailable(format!(
                "its keys have version {version}, and this lispbox knows version {VERSION}: use a newer lispbox"
            )));
        }
        *slot = Some(connection.clone());
        Ok(connection)
    }

    /// Says something to the server, and once more on another connection if this one has broken: it may have been
    /// idle for too long for somebody on the way. `work` is told whether it may have taken place already.
    fn ask<R>(
        &self,
        work: impl AsyncFn(&mut MultiplexedConnection, bool) -> Result<R, RedisError>,
    ) -> Result<R, Problem> {
        let asked = self.remote.wait(async {
            let mut connection = self.connected().await?;
            match work(&mut connection, false).await {
                Err(problem) if problem.is_unrecoverable_error() => {
                    *self.connection.lock().await = None;
                    let mut connection = self.connected().await?;
                    Ok(work(&mut connection, true).await?)
                }
                result => Ok(result?),
            }
        });
        if let Err(Problem::Unavailable(_)) = asked
            && let Ok(mut connection) = self.connection.try_lock()
        {
            // It may never answer again, though another would.
            *connection = None;
        }
        asked
    }

    /// Runs a script over a session, whose first two arguments are the principal and the handle.
    fn run<R: FromRedisValue>(
        &self,
        script: &Script,
        session: &Key,
        arguments: impl Fn(&mut ScriptInvocation<'_>, bool),
    ) -> Result<R, Problem> {
        let Key { principal, handle } = session;
        self.ask(async |connection, again| {
            let mut invocation = script.prepare_invoke();
            invocation
                .key(format!("{SESSION}{handle}"))
                .key(format!("{LEASED}{handle}"))
                .key(ALL)
                .key(format!("{OWN}{principal}"))
                .arg(principal)
                .arg(handle);
            arguments(&mut invocation, again);
            invocation.invoke_async(connection).await
        })
    }

    /// Makes the lease of a holder hold for so long from now on, and says whether it had it.
    fn hold(&self, session: &Key, holder: &str, length: Duration) -> Result<bool, Problem> {
        self.ask(async |connection, _| {
            let mut invocation = self.scripts.renew.key(format!("{LEASED}{}", session.handle));
            invocation.arg(holder).arg(millis(length)).invoke_async(connection).await
        })
    }

    /// Lets sessions expire that were used or created so long ago, page by page.
    fn expire_by(&self, what: &str, age: Duration) -> Result<u64, Problem> {
        let (mut expired, mut passed) = (0, 0);
        loop {
            let (more, next, seen): (u64, u64, u64) = self.ask(async |connection, _| {
                let mut invocation = self.scripts.expire.key(ALL);
                invocation.arg(millis(age)).arg(passed).arg(&[SESSION, LEASED, OWN, what]);
                invocation.invoke_async(connection).await
            })?;
            expired += more;
            passed = next;
            if seen == 0 {
                return Ok(expired);
            }
        }
    }

    /// What a list says of some sessions; those that are gone meanwhile are left out.
    fn summaries(&self, page: &[(String, f64)]) -> Result<Vec<Summary>, Problem> {
        type Row = (Option<String>, Option<u64>, Option<String>, Option<u64>, Option<Vec<u8>>);
        let mut pipe = ::redis::pipe();
        for (handle, _) in page {
            let session = format!("{SESSION}{handle}");
            pipe.cmd("HMGET").arg(&session).arg(&["principal", "version", "names", "created", "pieces"]);
            pipe.cmd("HSTRLEN").arg(&session).arg("text");
            pipe.cmd("EXISTS").arg(format!("{LEASED}{handle}"));
        }
        let rows: Vec<::redis::Value> = self.ask(async |connection, _| pipe.query_async(connection).await)?;
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
    fn lease(&self, session: &Key, holder: &str) -> Result<(), Problem> {
        self.run(&self.scripts.lease, session, |invocation, again| {
            invocation.arg(holder).arg(millis(LEASE)).arg(u8::from(again));
        })
    }

    fn renew(&self, session: &Key, holder: &str) -> Result<(), Problem> {
        if self.hold(session, holder, LEASE)? { Ok(()) } else { Err(Problem::Leased) }
    }

    fn release(&self, session: &Key, holder: &str) -> Result<(), Problem> {
        self.hold(session, holder, Duration::ZERO).map(drop)
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

    fn write(&self, session: &Key, known: u64, text: &str, names: &[String]) -> Result<u64, Problem> {
        let stamp = handle().map_err(Problem::Unavailable)?;
        let names: String = std::iter::once("\n".to_owned()).chain(names.iter().map(|name| line(name))).collect();
        let Some(pieces) = Pieces::of(text) else {
            return self.run(&self.scripts.write, session, |invocation, _| {
                invocation.arg(known).arg(text).arg(&names).arg(&stamp).arg("");
            });
        };
        // If it is another version's list, nothing is written.
        let before: Option<Vec<u8>> = self.ask(async |connection, _| {
            ::redis::cmd("HGET").arg(format!("{SESSION}{}", session.handle)).arg("pieces").query_async(connection).await
        })?;
        self.run(&self.scripts.write, session, |invocation, _| {
            invocation.arg(known).arg("").arg(&names).arg(&stamp).arg(&pieces.list);
            for (digest, piece) in pieces.added(before.as_deref()) {
                invocation.arg(digest).arg(piece);
            }
        })
    }

    fn definer(&self, principal: &str, name: &str, except: &str) -> Result<Option<String>, Problem> {
        self.ask(async |connection, _| {
            let mut invocation = self.scripts.definer.key(format!("{OWN}{principal}"));
            invocation.arg(format!("\n{}", line(name))).arg(except).arg(SESSION).invoke_async(connection).await
        })
    }

    fn list(&self) -> Result<Vec<Summary>, Problem> {
        let handles: Vec<(String, f64)> = self.ask(async |connection, _| {
            ::redis::cmd("ZRANGE").arg(ALL).arg(&["0", "-1", "WITHSCORES"]).query_async(connection).await
        })?;
        let mut summaries = Vec::with_capacity(handles.len());
        for page in handles.chunks(PAGE) {
            summaries.extend(self.summaries(page)?);
        }
        summaries.sort_by(|one, other| (other.used, &one.key.handle).cmp(&(one.used, &other.key.handle)));
        Ok(summaries)
    }

    fn remove(&self, session: &Key) -> Result<(), Problem> {
        self.run(&self.scripts.remove, session, |_, _| {})
    }

    fn expire(&self, unused: Duration) -> Result<u64, Problem> {
        self.expire_by("used", unused)
    }

    fn expire_old(&self, lifetime: Duration) -> Result<u64, Problem> {
        self.expire_by("created", lifetime)
    }

    fn has_many(&self, principal: &str, count: u64) -> Result<bool, Problem> {
        let own: u64 = self.ask(async |connection, _| {
            ::redis::cmd("ZCARD").arg(format!("{OWN}{principal}")).query_async(connection).await
        })?;
        Ok(own >= count)
    }

    fn check(&self) -> Result<(), Problem> {
        self.ask(async |connection, _| ::redis::cmd("GET").arg(VERSION_KEY).exec_async(connection).await)
    }
}

/// What the script answers that reads a session.
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
            // A piece that is gone is missed when the text is put together.
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

/// A name as it stands in a list of names: a line that no other name is a part of.
fn line(name: &str) -> String {
    format!("{}\n", serde_json::Value::from(name))
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn time(millis: f64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis as u64)
}

impl From<RedisError> for Problem {
    fn from(error: RedisError) -> Problem {
        match error.code() {
            Some("UNKNOWN") => return Problem::Unknown,
            Some("EXPIRED") => return Problem::Expired,
            Some("LEASED") => return Problem::Leased,
            Some("CHANGED") => return Problem::Changed,
            _ => {}
        }
        let reason = match error.kind() {
            ErrorKind::Io => format!("the connection to Redis failed: {error}"),
            ErrorKind::InvalidClientConfig => {
                format!("expected a URL such as `redis://localhost:6379/0`: {error}")
            }
            ErrorKind::Parse => "what answers there does not speak as Redis does".to_owned(),
            _ => error.to_string(),
        };
        Problem::Unavailable(reason)
    }
}
