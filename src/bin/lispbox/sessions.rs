//! `lispbox sessions`: manages the sessions of a store.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use lispbox::lang::internal;
use lispbox::server::Secrets;
use lispbox::store::{Key, Store, Summary, handle, open, open_existing};
use serde_json::json;

use crate::context::{Problem, read_file, seconds, store_problem, store_url};
use crate::output::{errln, out, outln};
use crate::process;
use crate::terminal::{Prints, Terminal, for_stdout};

/// Lists, shows, exports, imports and removes the sessions of a store.
#[derive(Args)]
pub struct Sessions {
    /// The store, such as `sqlite:sessions.db` or `postgres://USER:PASSWORD@HOST/DATABASE`.
    #[arg(long, value_name = "URL", env = "LISPBOX_STORE", hide_env_values = true, global = true)]
    store: Option<String>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Lists the sessions, one per line, the most recently used first.
    List {
        /// Print one JSON object per line instead.
        #[arg(long)]
        json: bool,
    },
    /// Shows the definitions of a session.
    Show {
        /// Its handle, or an unambiguous prefix of it.
        session: String,
    },
    /// Prints a session as text that `import` reads, into this or another store.
    Export {
        /// Its handle, or an unambiguous prefix of it.
        session: String,
    },
    /// Creates a session from an exported one, and prints its handle.
    Import {
        /// The file; `-` is standard input.
        file: PathBuf,
        /// The principal that owns the session; `local` is the user of `serve` on standard input and output.
        #[arg(long, default_value = "local")]
        principal: String,
    },
    /// Permanently removes sessions.
    Purge {
        /// Their handles, or unambiguous prefixes of them.
        #[arg(required_unless_present_any = ["unused_days", "all"])]
        sessions: Vec<String>,
        /// All sessions that have not been used for this number of days.
        #[arg(long, value_name = "DAYS", conflicts_with = "sessions")]
        unused_days: Option<u32>,
        /// All sessions.
        #[arg(long, conflicts_with_all = ["sessions", "unused_days"])]
        all: bool,
    },
}

impl Sessions {
    /// Runs the subcommand.
    pub fn run(self) -> ExitCode {
        self.act().map_or_else(Problem::report, |()| ExitCode::SUCCESS)
    }

    fn act(self) -> Result<(), Problem> {
        let url = store_url(self.store)?;
        // Read first, so that no store is created for an unreadable file.
        let imported = match &self.action {
            Action::Import { file, .. } => Some(read_file(file)?),
            _ => None,
        };
        let store = if imported.is_some() { open(&url) } else { open_existing(&url) };
        let store = store.map_err(|message| store_problem(&url, message))?;
        match self.action {
            Action::List { json } => list(&*store, json),
            Action::Show { session } => show(&*store, &session),
            Action::Export { session } => export(&*store, &session),
            Action::Import { principal, .. } => import(&*store, &imported.unwrap_or_default(), principal),
            Action::Purge { sessions, unused_days, all } => purge(&*store, &sessions, unused_days, all),
        }
    }
}

fn failed(problem: impl std::fmt::Display) -> Problem {
    Problem::Failed(problem.to_string())
}

/// Lists the sessions of a store.
fn all_sessions(store: &dyn Store) -> Result<Vec<Summary>, Problem> {
    let mut all = store.list().map_err(failed)?;
    all.retain(Summary::is_session);
    Ok(all)
}

/// Finds the session with this handle or this unambiguous prefix.
fn find(store: &dyn Store, beginning: &str) -> Result<Summary, Problem> {
    let mut fitting = all_sessions(store)?;
    fitting.retain(|session| session.key.handle.starts_with(beginning));
    match fitting.len() {
        1 => Ok(fitting.remove(0)),
        0 => Err(Problem::Failed(format!("there is no session `{beginning}`; `lispbox sessions list` lists them all"))),
        count => {
            Err(Problem::Usage(format!("`{beginning}` is ambiguous: {count} sessions match; give more of the handle")))
        }
    }
}

fn list(store: &dyn Store, as_json: bool) -> Result<(), Problem> {
    let sessions = all_sessions(store)?;
    if as_json {
        for Summary { key, version, bytes, names, created, used, is_leased } in &sessions {
            let record = json!({
                "handle": key.handle, "principal": key.principal, "version": version, "bytes": bytes, "names": names,
                "created": seconds(*created), "used": seconds(*used), "leased": is_leased,
            });
            outln!("{record}");
        }
        return Ok(());
    }
    if sessions.is_empty() {
        errln!("there are no sessions");
    }
    for session in &sessions {
        outln!(
            "{}  {:<10}  {:>10}  used {:>12}  {}{}",
            session.key.handle,
            session.key.principal,
            internal::bytes(session.bytes),
            age(session.used),
            few(&session.names),
            if session.is_leased { "  (in use)" } else { "" },
        );
    }
    Ok(())
}

fn show(store: &dyn Store, beginning: &str) -> Result<(), Problem> {
    let session = find(store, beginning)?;
    let text = text(store, &session.key)?;
    let (mut environment, host) = (process::engine(0)?.session(), host());
    environment.decode(&text).map_err(|error| Problem::Failed(error.to_string()))?;
    outln!("{}", for_stdout(&environment.describe(None, host)));
    Ok(())
}

fn export(store: &dyn Store, beginning: &str) -> Result<(), Problem> {
    let session = find(store, beginning)?;
    out!("{}", text(store, &session.key)?);
    Ok(())
}

fn import(store: &dyn Store, text: &str, principal: String) -> Result<(), Problem> {
    let mut environment = process::engine(0)?.session();
    environment.decode(text).map_err(|error| Problem::Failed(error.to_string()))?;
    let key = Key { principal, handle: handle().map_err(Problem::Failed)? };
    store.create(&key, text, &environment.names()).map_err(failed)?;
    outln!("{}", key.handle);
    Ok(())
}

fn purge(store: &dyn Store, sessions: &[String], unused_days: Option<u32>, all: bool) -> Result<(), Problem> {
    let chosen = match unused_days {
        None if all => all_sessions(store)?,
        None => sessions.iter().map(|session| find(store, session)).collect::<Result<_, _>>()?,
        Some(days) => {
            let least = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
            let mut sessions = all_sessions(store)?;
            sessions.retain(|session| session.used.elapsed().is_ok_and(|unused| unused >= least));
            sessions
        }
    };
    let mut removed = 0;
    for session in &chosen {
        match store.remove(&session.key, None) {
            Ok(()) => removed += 1,
            Err(problem) => errln!("lispbox: {}: {problem}", session.key.handle),
        }
    }
    outln!("{removed} removed");
    if removed == chosen.len() { Ok(()) } else { Err(Problem::Failed("not all of them could be removed".to_owned())) }
}

fn text(store: &dyn Store, key: &Key) -> Result<String, Problem> {
    let stored = store.read(key, 0).map_err(failed)?;
    stored.map(|stored| stored.text).ok_or_else(|| Problem::Failed("the session is empty".to_owned()))
}

/// A host for reading a session, with which no program runs.
fn host() -> Arc<Terminal> {
    Arc::new(Terminal::new(Prints::Keep, lispbox::server::CancellationToken::new(), None, Secrets::of_environment()))
}

/// `3 hours ago`
fn age(time: SystemTime) -> String {
    let seconds = time.elapsed().map_or(0, |age| age.as_secs());
    let (count, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..7_200 => (seconds / 60, "min"),
        7_200..172_800 => (seconds / 3_600, "hours"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{count} {unit} ago")
}

/// Joins the first few names.
fn few(names: &[String]) -> String {
    const FEW: usize = 6;
    let shown = names.iter().take(FEW).map(String::as_str).collect::<Vec<_>>().join(" ");
    if names.len() > FEW { format!("{shown} … {} in all", names.len()) } else { shown }
}
