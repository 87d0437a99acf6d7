//! Persistent storage of sessions, shared between calls, processes and machines.
//!
//! A store holds each session as the text that [`Session::encode`](crate::lang::Session::encode) returns, together with
//! the name of the principal that owns it and a version that grows with every change. A process that evaluates in a
//! session takes its lease first, so that no two processes evaluate in it at the same time and no tool is called twice.
//! A lease that is not renewed expires: its holder has died, or is presumed dead.
//!
//! Each lease has a fencing token, which is greater than that of every earlier lease of the session. A write proves its
//! lease: token, holder and version are compared in the transaction that writes, so that a holder that was suspended
//! for longer than its lease and then resumes writes nothing once another holder has taken the next lease. A session
//! that does not exist yet has no lease: its handle is random and known to its creator alone, and creation fails if the
//! handle already exists.
//!
//! Every method may block, for a bounded time, and may be called from several threads at once, though not from
//! asynchronous code. A store holds the results of tools unencrypted: anyone who can read the store can read them.

pub(crate) mod boot;
#[cfg(feature = "sqlite")]
mod files;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "redis"))]
mod pieces;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod remote;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::Postgres;
#[cfg(feature = "redis")]
pub use redis::Redis;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The time for which a lease holds without being renewed.
pub const LEASE: Duration = Duration::from_secs(10);

/// A lease on a session: the right to change it until another holder takes the next lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The name of the holder, unique to this lease.
    pub holder: String,
    /// The fencing token, which grows with every lease of the session.
    pub token: u64,
}

/// The key under which a store finds a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The principal that owns the session; no other principal finds it.
    pub principal: String,
    /// The handle of the session.
    pub handle: String,
}

/// A session as read from a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The version, starting at 1.
    pub version: u64,
    /// The serialized environment.
    pub text: String,
}

/// One session in the list of all sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The key of the session.
    pub key: Key,
    /// The version of the session.
    pub version: u64,
    /// The size of the session's text in bytes.
    pub bytes: u64,
    /// The names that the session defines.
    pub names: Vec<String>,
    /// The time at which the session was created.
    pub created: SystemTime,
    /// The time of the last evaluation in the session.
    pub used: SystemTime,
    /// True while the session is leased.
    pub is_leased: bool,
}

/// The beginning of names that mark records of the server itself, which are no sessions.
pub(crate) const OWN: &str = "lispbox/";

/// The part of such a name, behind [`OWN`], that marks a record which never expires.
pub(crate) const PERMANENT: &str = "permanent/";

impl Summary {
    /// Returns true for a session, and false for another record that the server keeps beside them, such as a run that
    /// waits for approval.
    pub fn is_session(&self) -> bool {
        !self.names.iter().any(|name| name.starts_with(OWN))
    }
}

/// The reason for which a store did not carry out a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No such session exists, or it belongs to another principal.
    Unknown,
    /// The session was unused for longer than sessions are kept, or was created too long ago.
    Expired,
    /// Another holder has the lease.
    Leased,
    /// The lease no longer holds: it expired, and another holder took the next lease or removed the session.
    Lost,
    /// The version differs from the one that was read, or the session to be created already exists.
    Changed,
    /// The stored data differs from what was written; the text describes the damage.
    Damaged(String),
    /// The store is unavailable, perhaps temporarily; the text gives the reason.
    Unavailable(String),
    /// The store cannot be used until an operator intervenes; the text gives the reason.
    Unusable(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Unknown => f.write_str("there is no session with this handle"),
            Problem::Expired => {
                f.write_str("the session has expired: it was unused for too long, or created too long ago")
            }
            Problem::Leased => f.write_str("the session is being used by another process"),
            Problem::Lost => f.write_str("the lease of the session was lost to another process"),
            Problem::Changed => f.write_str("the session was changed by another process meanwhile"),
            Problem::Damaged(what) => write!(f, "the session is damaged: {what}"),
            Problem::Unavailable(reason) | Problem::Unusable(reason) => {
                write!(f, "the store of the sessions cannot be used: {reason}")
            }
        }
    }
}

impl std::error::Error for Problem {}

/// A store of sessions; see the module documentation.
pub trait Store: Send + Sync {
    /// Takes the lease of a session for `holder`, a unique name that is used only once, and updates the time of the
    /// session's last use. The lease holds for [`LEASE`].
    ///
    /// # Errors
    /// Returns [`Problem::Leased`] at once if another holder has the lease: this does not wait.
    fn lease(&self, session: &Key, holder: &str) -> Result<Lease, Problem>;

    /// Extends the lease to [`LEASE`] from now. This also works for an expired lease, if no other holder has taken the
    /// next one.
    ///
    /// # Errors
    /// Returns [`Problem::Lost`] if the lease was lost.
    fn renew(&self, session: &Key, lease: &Lease) -> Result<(), Problem>;

    /// Releases the lease. Releasing a lost lease is not an error.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
    fn release(&self, session: &Key, lease: &Lease) -> Result<(), Problem>;

    /// Reads the session; returns `None` if its version is the known one. Pass 0 if no version is known.
    ///
    /// # Errors
    /// Returns [`Problem::Unknown`], [`Problem::Expired`] or [`Problem::Damaged`].
    fn read(&self, session: &Key, known: u64) -> Result<Option<Stored>, Problem>;

    /// Creates a session with version 1. It is durable when this returns, whatever happens to this process.
    ///
    /// # Errors
    /// Returns [`Problem::Changed`], having written nothing, if a session with that handle already exists. After
    /// [`Problem::Unavailable`] or [`Problem::Unusable`] the session may have been created, or may still be created:
    /// read it to find out.
    fn create(&self, session: &Key, text: &str, names: &[String]) -> Result<(), Problem>;

    /// Writes the session atomically and returns its new version. The write is durable when this returns, whatever
    /// happens to this process. Of a large text only the parts that changed are sent.
    ///
    /// # Errors
    /// Returns [`Problem::Lost`] if the lease is not the last one taken, and [`Problem::Changed`] if the version is not
    /// the known one: in both cases nothing is written, now or later. After [`Problem::Unavailable`] or
    /// [`Problem::Unusable`] the session may have been written, or may still be written, until the next lease is taken:
    /// read it after that to find out.
    fn write(&self, session: &Key, lease: &Lease, known: u64, text: &str, names: &[String]) -> Result<u64, Problem>;

    /// Returns the handle of the principal's most recently used session that defines a name, other than `except`.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
    fn definer(&self, principal: &str, name: &str, except: &str) -> Result<Option<String>, Problem>;

    /// Lists the principal's sessions that define a name and have not expired, the most recently used first.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
    fn named(&self, principal: &str, name: &str) -> Result<Vec<Summary>, Problem> {
        let is_one =
            |summary: &Summary| summary.key.principal == principal && summary.names.iter().any(|it| it == name);
        Ok(self.list()?.into_iter().filter(is_one).collect())
    }

    /// Lists all sessions that have not expired, the most recently used first.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
    fn list(&self) -> Result<Vec<Summary>, Problem>;

    /// Removes a session permanently: under its `lease`, or, without one, only if the session is not leased.
    ///
    /// # Errors
    /// Returns [`Problem::Unknown`]; [`Problem::Lost`] if `lease` was lost, or [`Problem::Leased`] if no lease was
    /// passed and one is held. After [`Problem::Unavailable`] or [`Problem::Unusable`] the session may have been
    /// removed, or may still be removed, until the next lease is taken.
    fn remove(&self, session: &Key, lease: Option<&Lease>) -> Result<(), Problem>;

    /// Expires the sessions that were not used for `unused` and returns their number. Their content is removed. Their
    /// handles are remembered for the same time again, so that a caller learns why its handle is no longer valid. A
    /// record of the server itself with a name that begins with `lispbox/permanent/` never expires.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
    fn expire(&self, unused: Duration) -> Result<u64, Problem>;

    /// Expires the sessions that were created more than `lifetime` ago, in the same way as [`Store::expire`].
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
    fn expire_old(&self, lifetime: Duration) -> Result<u64, Problem>;

    /// Returns the size of the stored data in bytes, if the store knows it.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
    fn bytes(&self) -> Result<Option<u64>, Problem> {
        Ok(None)
    }

    /// True if a principal has at least `count` sessions that have not expired.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
    fn has_many(&self, principal: &str, count: u64) -> Result<bool, Problem>;

    /// Checks that the store can be used now.
    ///
    /// # Errors
    /// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
    fn check(&self) -> Result<(), Problem>;
}

/// The time for which an unused session is kept, however large the store is.
const LEAST_KEPT: Duration = Duration::from_secs(60);

/// Expires sessions that were not used for a shorter and shorter time, beginning with half of `kept`, until the store
/// has at most `most` bytes; returns their number. Sessions that were used within a minute are kept.
///
/// # Errors
/// Returns [`Problem::Unavailable`] or [`Problem::Unusable`].
pub fn make_room(store: &dyn Store, kept: Duration, most: u64) -> Result<u64, Problem> {
    let (mut unused, mut ended) = (kept, 0);
    while most < u64::MAX && unused > LEAST_KEPT && store.bytes()?.is_some_and(|bytes| bytes > most) {
        unused = (unused / 2).max(LEAST_KEPT);
        ended += store.expire(unused)?;
    }
    Ok(ended)
}

/// Polling interval while another holder has a lease.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// A lease, and the time since the machine was started at which it was requested.
pub(crate) struct TakenLease {
    pub(crate) lease: Lease,
    pub(crate) asked: Duration,
}

/// Takes the lease of a record. If another holder has it, waits for at most `patience`, or until `is_stopped`.
///
/// # Errors
/// Returns [`Problem::Leased`] if the other holder still has it, and otherwise the problem of the store.
pub(crate) fn wait_for_lease(
    store: &dyn Store,
    key: &Key,
    patience: Duration,
    is_stopped: impl Fn() -> bool,
) -> Result<TakenLease, Problem> {
    let holder = handle().map_err(Problem::Unusable)?;
    let begun = Instant::now();
    loop {
        let asked = boot::elapsed();
        match store.lease(key, &holder) {
            Err(Problem::Leased) if !is_stopped() && begun.elapsed() < patience => std::thread::park_timeout(LOOK),
            taken => return taken.map(|lease| TakenLease { lease, asked }),
        }
    }
}

/// Generates an unguessable name for a session or the holder of a lease: 130 random bits as 26 letters and digits, none
/// of which look alike.
///
/// # Errors
/// Returns a message if the system has no randomness: a guessable name would be worse than none.
pub fn handle() -> Result<String, String> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345678";
    let mut bytes = [0u8; 26];
    getrandom::fill(&mut bytes).map_err(|problem| format!("the system has no randomness: {problem}"))?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect())
}

/// Checks that a store takes writes: creates a record and removes it. A full disk, or a file that cannot be written, shows
/// only then.
///
/// # Errors
/// Returns the problem of the store.
pub fn probe(store: &dyn Store) -> Result<(), Problem> {
    let name = handle().map_err(Problem::Unusable)?;
    let probe = Key { principal: String::new(), handle: format!("probe-{name}") };
    store.create(&probe, "", &[])?;
    store.remove(&probe, None)
}

/// Opens the store that a URL names, if it exists; creates no store.
///
/// # Errors
/// Fails like [`open`], and if no such store exists.
pub fn open_existing(url: &str) -> Result<Arc<dyn Store>, String> {
    match url.strip_prefix("sqlite:") {
        Some(path) if !std::path::Path::new(path).exists() => {
            Err(format!("there is no store at {path}; `lispbox serve` creates it"))
        }
        _ => open(url),
    }
}

/// Opens the store that a URL names: `sqlite:PATH`, `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]` (`rediss:` with
/// TLS) or `postgres://[USER:PASSWORD@]HOST[:PORT]/DATABASE` (`?sslmode=require` with TLS).
///
/// # Errors
/// Returns a sentence that states what was expected, or why the store cannot be opened. It contains no password.
pub fn open(url: &str) -> Result<Arc<dyn Store>, String> {
    let (scheme, rest) = url.split_once(':').unwrap_or_default();
    let opened: Result<Arc<dyn Store>, Problem> = match scheme {
        #[cfg(feature = "sqlite")]
        "sqlite" if !rest.is_empty() => Sqlite::open(rest.as_ref()).map(|store| Arc::new(store) as _),
        #[cfg(not(feature = "sqlite"))]
        "sqlite" if !rest.is_empty() => {
            Err(Problem::Unavailable("this lispbox was built without the feature `sqlite`".to_owned()))
        }
        #[cfg(feature = "redis")]
        "redis" | "rediss" => Redis::open(url).map(|store| Arc::new(store) as _),
        #[cfg(not(feature = "redis"))]
        "redis" | "rediss" => {
            Err(Problem::Unavailable("this lispbox was built without the feature `redis`".to_owned()))
        }
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Postgres::open(url).map(|store| Arc::new(store) as _),
        #[cfg(not(feature = "postgres"))]
        "postgres" | "postgresql" => {
            Err(Problem::Unavailable("this lispbox was built without the feature `postgres`".to_owned()))
        }
        _ => {
            return Err(format!(
                "expected a store such as `sqlite:/var/lib/lispbox/sessions.db`, got `{}`; others are \
                 `redis://HOST:PORT/DATABASE`, `rediss://…` with TLS, and `postgres://HOST:PORT/DATABASE`",
                without_secrets(url)
            ));
        }
    };
    opened.map_err(|problem| format!("{}: {problem}", without_secrets(url)))
}

/// Redacts a URL: removes the user information before the host and the query after the path, which may hold passwords.
fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    // An unencoded password may contain any of these characters.
    let (secret, rest) = rest.rsplit_once('@').map_or(("", rest), |(_, rest)| ("…@", rest));
    let (place, query) = rest.split_once(['?', '#']).map_or((rest, ""), |(place, _)| (place, "?…"));
    format!("{scheme}://{secret}{place}{query}")
}
