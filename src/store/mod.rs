//! Where sessions are kept between calls, processes and machines.
//!
//! A store holds each session as the text that [`Session::encode`](crate::lang::Session::encode) gives, with the
//! name of the principal it belongs to and a version that grows with every change. Whoever evaluates in a session
//! takes its lease first, so that no two do at a time, and so that no tool is called twice. A lease that is not
//! renewed ends by itself: its holder is gone, or is thought to be.
//!
//! Each lease has a fencing token, which is greater than that of every lease of the session before. A write proves its
//! lease: token, holder and version are compared in the transaction that writes, so that a holder that was stopped for
//! longer than its lease, and goes on, writes nothing once somebody else has had the next. A session that is not there
//! yet has no lease: its handle is random and known to its maker alone, and making it fails where there is one already.
//!
//! Every method may block, for a bounded time, and may be called from several threads at once, though not from
//! asynchronous code. A store holds what tools returned, as it is: who can read the store can read that.

pub(crate) mod boot;
mod files;
mod pieces;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod remote;
mod sqlite;

#[cfg(feature = "postgres")]
pub use postgres::Postgres;
#[cfg(feature = "redis")]
pub use redis::Redis;
pub use sqlite::Sqlite;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long a lease holds without being renewed.
pub const LEASE: Duration = Duration::from_secs(10);

/// A lease that was taken: the right to change a session until somebody else takes the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Who holds it: a name that no other lease has.
    pub holder: String,
    /// Its fencing token, which grows with every lease of the session.
    pub token: u64,
}

/// What a session is found by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Whose session it is; nobody else finds it.
    pub principal: String,
    /// Its handle.
    pub handle: String,
}

/// A session as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its version, from 1.
    pub version: u64,
    /// Its environment.
    pub text: String,
}

/// What a list of sessions says of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What it is found by.
    pub key: Key,
    /// Its version.
    pub version: u64,
    /// The size of its text in bytes.
    pub bytes: u64,
    /// The names that it defines.
    pub names: Vec<String>,
    /// When it was made.
    pub created: SystemTime,
    /// When it was last evaluated in.
    pub used: SystemTime,
    /// True while somebody holds its lease.
    pub is_leased: bool,
}

/// Why a store did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no such session, or it is another principal's.
    Unknown,
    /// It has been unused for longer than sessions are kept, or was made too long ago.
    Expired,
    /// Somebody else holds its lease.
    Leased,
    /// The lease is held no more: it ran out, and somebody else took the next, or removed the session.
    Lost,
    /// It has another version than it had when it was read, or is there although it was to be made.
    Changed,
    /// What the store has of it is not what was written; the text says what is wrong.
    Damaged(String),
    /// The store itself could not be used, and may be later; the text says what is wrong with it.
    Unavailable(String),
    /// The store itself cannot be used before somebody has done something about it, as the text says.
    Unusable(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Unknown => f.write_str("there is no session with this handle"),
            Problem::Expired => {
                f.write_str("the session has expired: it was not used for too long, or made too long ago")
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

/// Where sessions are kept; see the module's text.
pub trait Store: Send + Sync {
    /// Takes the lease of a session for `holder`, a name that nobody else uses and that is used once, and notes that the
    /// session is used. It holds for [`LEASE`].
    ///
    /// # Errors
    /// [`Problem::Leased`] at once where somebody else has it: this does not wait.
    fn lease(&self, session: &Key, holder: &str) -> Result<Lease, Problem>;

    /// Makes the lease hold for [`LEASE`] from now on, also if it has run out and nobody has taken the next.
    ///
    /// # Errors
    /// [`Problem::Lost`].
    fn renew(&self, session: &Key, lease: &Lease) -> Result<(), Problem>;

    /// Gives the lease back. One that was lost is no error.
    ///
    /// # Errors
    /// [`Problem::Unavailable`], [`Problem::Unusable`].
    fn release(&self, session: &Key, lease: &Lease) -> Result<(), Problem>;

    /// The session, if its version is not the known one; 0 is no version.
    ///
    /// # Errors
    /// [`Problem::Unknown`], [`Problem::Expired`], [`Problem::Damaged`].
    fn read(&self, session: &Key, known: u64) -> Result<Option<Stored>, Problem>;

    /// Makes a session, whose version is 1 then. It is there, whatever happens to this process, when this returns.
    ///
    /// # Errors
    /// [`Problem::Changed`] if there is one with that handle already: nothing is written then. After
    /// [`Problem::Unavailable`] and [`Problem::Unusable`] it may have been made, or be made yet: reading tells.
    fn create(&self, session: &Key, text: &str, names: &[String]) -> Result<(), Problem>;

    /// Writes the session, which takes effect as a whole, and gives its new version. It is there, whatever happens to
    /// this process, when this returns. Of a large text only what is another than before is sent.
    ///
    /// # Errors
    /// [`Problem::Lost`] if the lease is not the last that was taken, and [`Problem::Changed`] if the version is not the
    /// known one: nothing is written then, nor will be. After [`Problem::Unavailable`] and [`Problem::Unusable`] it may
    /// have been written, or be written yet, until somebody takes the next lease: reading tells then.
    fn write(&self, session: &Key, lease: &Lease, known: u64, text: &str, names: &[String]) -> Result<u64, Problem>;

    /// The handle of the principal's most recently used session that defines a name, other than `except`.
    ///
    /// # Errors
    /// [`Problem::Unavailable`], [`Problem::Unusable`].
    fn definer(&self, principal: &str, name: &str, except: &str) -> Result<Option<String>, Problem>;

    /// All sessions that have not expired, the most recently used first.
    ///
    /// # Errors
    /// [`Problem::Unavailable`], [`Problem::Unusable`].
    fn list(&self) -> Result<Vec<Summary>, Problem>;

    /// Removes a session for good, whose lease is that one; without one, if nobody has it.
    ///
    /// # Errors
    /// [`Problem::Unknown`]; [`Problem::Lost`], or [`Problem::Leased`] without a lease. After [`Problem::Unavailable`] and
    /// [`Problem::Unusable`] it may have been removed, or be removed yet, until somebody takes the next lease.
    fn remove(&self, session: &Key, lease: Option<&Lease>) -> Result<(), Problem>;

    /// Lets sessions expire that nobody has used for so long, and says how many: their content is removed, and
    /// their handles are remembered for as long again, to say why they are of no use any more.
    ///
    /// # Errors
    /// [`Problem::Unavailable`], [`Problem::Unusable`].
    fn expire(&self, unused: Duration) -> Result<u64, Problem>;

    /// Lets sessions expire that were made so long ago, alike.
    ///
    /// # Errors
    /// [`Problem::Unavailable`], [`Problem::Unusable`].
    fn expire_old(&self, lifetime: Duration) -> Result<u64, Problem>;

    /// True if a principal has so many sessions, or more, that have not expired.
    ///
    /// # Errors
    /// [`Problem::Unavailable`], [`Problem::Unusable`].
    fn has_many(&self, principal: &str, count: u64) -> Result<bool, Problem>;

    /// Looks whether the store can be used now.
    ///
    /// # Errors
    /// [`Problem::Unavailable`], [`Problem::Unusable`].
    fn check(&self) -> Result<(), Problem>;
}

/// A name that cannot be guessed, for a session or the holder of a lease: 130 random bits in 26 letters and digits,
/// none of which look alike.
///
/// # Errors
/// When the system has no randomness: a name that could be guessed is worse than none.
pub fn handle() -> Result<String, String> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345678";
    let mut bytes = [0u8; 26];
    getrandom::fill(&mut bytes).map_err(|problem| format!("the system has no randomness: {problem}"))?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect())
}

/// Opens the store that a URL names, if it is there: looking into a store makes none.
///
/// # Errors
/// As [`open`], or that there is no such store.
pub fn open_existing(url: &str) -> Result<Arc<dyn Store>, String> {
    match url.strip_prefix("sqlite:") {
        Some(path) if !std::path::Path::new(path).exists() => Err(format!("there is no store at {path}")),
        _ => open(url),
    }
}

/// Opens the store that a URL names: `sqlite:PATH`, `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]` (`rediss:` with
/// TLS) or `postgres://[USER:PASSWORD@]HOST[:PORT]/DATABASE` (`?sslmode=require` with TLS).
///
/// # Errors
/// A sentence that says what was expected, or why it cannot be opened; no password is in it.
pub fn open(url: &str) -> Result<Arc<dyn Store>, String> {
    let (scheme, rest) = url.split_once(':').unwrap_or_default();
    let opened: Result<Arc<dyn Store>, Problem> = match scheme {
        "sqlite" if !rest.is_empty() => Sqlite::open(rest.as_ref()).map(|store| Arc::new(store) as _),
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

/// A URL without what stands before its host and behind its path, where passwords are.
fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    // A password that was not encoded may have any of these signs in it.
    let (secret, rest) = rest.rsplit_once('@').map_or(("", rest), |(_, rest)| ("…@", rest));
    let (place, query) = rest.split_once(['?', '#']).map_or((rest, ""), |(place, _)| (place, "?…"));
    format!("{scheme}://{secret}{place}{query}")
}
