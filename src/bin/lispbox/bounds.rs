//! Bounds of `lispbox serve`: sessions and their lifetimes, connections, requests, and the shutdown. The defaults are
//! those of the library.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use lispbox::server::{
    CONNECTIONS_EACH, Configuration, HttpOptions, REQUESTS_PER_MINUTE, ReplyWithin, ServeOptions, SessionBounds,
};

const DAY: u64 = 24 * 60 * 60;

/// Bounds on sessions, connections and requests, and timeouts.
#[derive(Args)]
pub struct Bounds {
    /// Maximum number of sessions in memory. Beyond it, the least recently used session of the principal with the most
    /// sessions is evicted. A session in the store is read again when it is used.
    #[arg(long, value_name = "COUNT", env = "LISPBOX_SESSIONS", default_value_t = SessionBounds::default().count, value_parser = count(), help_heading = "Sessions")]
    sessions: usize,
    /// Time after which an unused session is removed from memory, such as `24h`. A session in the store is read again
    /// when it is used.
    #[arg(long, value_name = "TIME", env = "LISPBOX_SESSION_IDLE", default_value_t = Time(SessionBounds::default().idle), help_heading = "Sessions")]
    session_idle: Time,
    /// Maximum lifetime of a session, such as `90d`, in memory and in the store, even if it is in use [default:
    /// unlimited]
    #[arg(long, value_name = "TIME", env = "LISPBOX_SESSION_LIFETIME", help_heading = "Sessions")]
    session_lifetime: Option<Time>,
    /// Days for which an unused session is kept in the store.
    #[arg(
        long, value_name = "DAYS", env = "LISPBOX_KEEP_DAYS", default_value_t = SessionBounds::default().kept.as_secs() / DAY,
        value_parser = clap::value_parser!(u64).range(1..=36500),
        help_heading = "Sessions"
    )]
    keep_days: u64,
    /// Maximum number of sessions of one principal in the store. A further session is not stored, and the reply reports
    /// it.
    #[arg(long, value_name = "COUNT", env = "LISPBOX_STORED_SESSIONS", default_value_t = SessionBounds::default().stored, help_heading = "Sessions")]
    stored_sessions: u64,
    /// Maximum number of HTTP connections.
    #[arg(long, value_name = "COUNT", env = "LISPBOX_CONNECTIONS", default_value_t = http().connections, value_parser = count(), help_heading = "HTTP")]
    connections: usize,
    #[arg(long, value_name = "COUNT", env = "LISPBOX_CONNECTIONS_EACH", value_parser = count(), help = connections_each(), help_heading = "HTTP")]
    connections_each: Option<usize>,
    #[arg(long, value_name = "COUNT", env = "LISPBOX_REQUESTS_PER_MINUTE", help = requests_per_minute(), help_heading = "HTTP")]
    requests_per_minute: Option<NonZeroU32>,
    /// Timeout for the head of the next request on a connection, and for the message of a request, such as `10s`.
    #[arg(long, value_name = "TIME", env = "LISPBOX_ARRIVAL", default_value_t = Time(http().arrival), help_heading = "HTTP")]
    arrival: Time,
    /// Time for which programs may continue after the server receives SIGTERM or SIGINT, such as `20s`; then they are
    /// cancelled and answered, which takes up to two more seconds. `0s` or a second signal cancels them immediately.
    #[arg(long, value_name = "TIME", env = "LISPBOX_GRACE", default_value_t = grace(), value_parser = any_time, help_heading = "Limits")]
    grace: Time,
    /// Time after which a call is answered whose program is still running, such as `45s`: the program goes on, and a call
    /// with its `run` waits for the reply. `never` answers at its end alone; by default, each client is answered before it
    /// gives up, as far as is known.
    #[arg(
        long,
        value_name = "TIME",
        env = "LISPBOX_REPLY_WITHIN",
        default_value = "client",
        hide_default_value = true,
        help_heading = "Replies"
    )]
    reply_within: ReplyWithin,
}

impl Bounds {
    /// Applies the bounds on sessions.
    pub fn of_sessions(&self, bounds: &mut SessionBounds) {
        bounds.count = self.sessions;
        bounds.idle = self.session_idle.0;
        bounds.lifetime = self.session_lifetime.map_or(bounds.lifetime, |time| time.0);
        bounds.kept = Duration::from_secs(self.keep_days * DAY);
        bounds.stored = self.stored_sessions;
    }

    /// Time for which programs may continue during the shutdown.
    pub fn grace(&self) -> Duration {
        self.grace.0
    }

    /// Time after which a call is answered whose program is still running.
    pub fn reply_within(&self) -> ReplyWithin {
        self.reply_within
    }

    /// Applies the bounds on HTTP connections and requests.
    pub fn of_http(&self, options: &mut HttpOptions) {
        options.connections = self.connections;
        options.connections_each = self.connections_each;
        options.requests_per_minute = self.requests_per_minute;
        options.arrival = self.arrival.0;
    }
}

/// The HTTP defaults of the library; the address is irrelevant.
fn http() -> HttpOptions {
    HttpOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn grace() -> Time {
    Time(ServeOptions::new(Configuration::default()).grace)
}

fn count() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

fn connections_each() -> String {
    format!(
        "Maximum number of connections from one address [default: {CONNECTIONS_EACH}; unlimited from this machine, \
         where a proxy may run]"
    )
}

fn requests_per_minute() -> String {
    format!(
        "Maximum number of requests per minute from one address without a known token [default: \
         {REQUESTS_PER_MINUTE}; unlimited from this machine]"
    )
}

/// A duration as written on a command line: `90s`, `12h`, `30d`.
#[derive(Clone, Copy)]
pub struct Time(pub Duration);

impl std::str::FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        any_time(text).ok().filter(|time| !time.0.is_zero()).ok_or_else(|| TIME.to_owned())
    }
}

const TIME: &str = "expected a time such as `90s`, `12h` or `30d`";

/// Parses a duration that may be zero.
fn any_time(text: &str) -> Result<Time, String> {
    let time = text.parse::<jiff::Span>().and_then(|span| span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()));
    let time = time.ok().and_then(|time| Duration::try_from(time).ok());
    time.map(Time).ok_or_else(|| TIME.to_owned())
}

impl std::fmt::Display for Time {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", jiff::SignedDuration::try_from(self.0).unwrap_or(jiff::SignedDuration::MAX))
    }
}
