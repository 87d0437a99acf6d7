//! The places of records: a file per server in a folder, or a record per server in a store.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::config::{Endpoint, ServerConfig};
use crate::server::identity::sha256_of_json;
use crate::server::system::folders::{lock, make_private, readable, replace};
use crate::store::{Key, LEASE, OWN, PERMANENT, Problem, Store, wait_for_lease};

use super::record::{Record, VERSION};

/// Maximum size of a record, in bytes: twice the largest list of tools, since a change is kept beside its pin.
const LARGEST: u64 = 32 << 20;

/// The time for which a process waits for another one that changes a record.
const PATIENCE: Duration = Duration::from_secs(LEASE.as_secs() + 2);

/// The number of attempts to change a record that another process changes at the same time.
const ATTEMPTS: usize = 5;

/// Returns the name of a server's record: a digest of its name and of the way to reach it, without what may be a secret
/// that is replaced now and then. `None` for tools that are part of the configuration or of this program.
pub(super) fn identity(config: &ServerConfig) -> Option<String> {
    let way = match config.endpoint.as_ref().ok()? {
        Endpoint::Process { command, arguments, folder, .. } => json!({
            "command": command,
            "arguments": arguments,
            "folder": folder.as_ref().map(|folder| folder.display().to_string()),
        }),
        Endpoint::Http { url, .. } => json!({"url": without_secrets(url)}),
        Endpoint::Local(_) | Endpoint::Functions(_) => return None,
    };
    sha256_of_json(&json!({"name": config.name, "way": way})).ok()
}

/// Returns an address without its user information and its query.
fn without_secrets(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}/{path}")
}

/// The place of one server's record.
pub(super) enum Book {
    File(PathBuf),
    Stored(Arc<dyn Store>, Key),
}

/// The outcome of a change, and why it could not be written, if so.
type Updated<R> = (R, Option<String>);

impl Book {
    pub(super) fn in_folder(folder: &Path, server: &str, identity: &str) -> Book {
        Book::File(folder.join(format!("{}-{}.json", readable(server), &identity[..16])))
    }

    pub(super) fn in_store(store: &Arc<dyn Store>, identity: &str) -> Book {
        // No principal has the empty name.
        let key = Key { principal: String::new(), handle: format!("pins-{}", &identity[..32]) };
        Book::Stored(Arc::clone(store), key)
    }

    /// Reads the record; `None` if there is none. Blocks.
    ///
    /// # Errors
    /// Returns why it cannot be read, as a clause.
    pub(super) fn read(&self) -> Result<Option<Record>, String> {
        match self {
            Book::File(file) => read_file(file),
            Book::Stored(store, key) => match store.read(key, 0) {
                Ok(stored) => stored.map(|stored| decode(stored.text.as_bytes())).transpose(),
                Err(Problem::Unknown) => Ok(None),
                Err(problem) => Err(unusable(&problem)),
            },
        }
    }

    /// Changes the record, which is created if there is none, so that no change of another process is lost. Blocks.
    ///
    /// # Errors
    /// Returns why the record cannot be read, as a clause.
    pub(super) fn update<R>(
        &self,
        server: &str,
        mut change: impl FnMut(&mut Record) -> R,
    ) -> Result<Updated<R>, String> {
        match self {
            Book::File(file) => update_file(file, server, change),
            Book::Stored(store, key) => {
                for _ in 0..ATTEMPTS {
                    let before = self.read()?;
                    let mut record = before.clone().unwrap_or_else(|| Record::new(server));
                    let outcome = change(&mut record);
                    if before.as_ref() == Some(&record) {
                        return Ok((outcome, None));
                    }
                    match write(&**store, key, before.as_ref(), &record) {
                        Ok(()) => return Ok((outcome, None)),
                        // Another process has changed it meanwhile.
                        Err(Problem::Changed | Problem::Lost | Problem::Leased) => {}
                        Err(problem) => return Ok((outcome, Some(unusable(&problem)))),
                    }
                }
                Err("other processes change the record of its pins all the time".to_owned())
            }
        }
    }
}

/// Writes a record to a store, if it is still as it was before.
fn write(store: &dyn Store, key: &Key, before: Option<&Record>, record: &Record) -> Result<(), Problem> {
    let (text, names) = (encode(record), [format!("{OWN}{PERMANENT}pins")]);
    let Some(before) = before else { return store.create(key, &text, &names) };
    let taken = wait_for_lease(store, key, PATIENCE, || false)?;
    let written = store.read(key, 0).and_then(|stored| {
        let stored = stored.ok_or(Problem::Unknown)?;
        if decode(stored.text.as_bytes()).as_ref() != Ok(before) {
            return Err(Problem::Changed);
        }
        store.write(key, &taken.lease, stored.version, &text, &names).map(drop)
    });
    // Without it the lease expires.
    let _ = store.release(key, &taken.lease);
    written
}

fn unusable(problem: &Problem) -> String {
    match problem {
        Problem::Unavailable(reason) | Problem::Unusable(reason) => format!("the store cannot be used: {reason}"),
        Problem::Damaged(what) => format!("the record of its pins is damaged: {what}"),
        problem => format!("the record of its pins cannot be used: {problem}"),
    }
}

fn read_file(file: &Path) -> Result<Option<Record>, String> {
    let problem = |problem: io::Error| format!("{}: {problem}", file.display());
    match fs::metadata(file) {
        Err(absent) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&absent.kind()) => {
            return Ok(None);
        }
        Err(other) => return Err(problem(other)),
        Ok(_) => {}
    }
    make_private(file).map_err(problem)?;
    let mut text = Vec::new();
    File::open(file).map_err(problem)?.take(LARGEST + 1).read_to_end(&mut text).map_err(problem)?;
    if text.len() as u64 > LARGEST {
        return Err(format!("{}: the record is larger than {LARGEST} bytes", file.display()));
    }
    decode(&text).map(Some).map_err(|problem| format!("{}: {problem}", file.display()))
}

fn update_file<R>(file: &Path, server: &str, mut change: impl FnMut(&mut Record) -> R) -> Result<Updated<R>, String> {
    let locked = lock(&file.with_extension("lock"), PATIENCE);
    let before = read_file(file)?;
    let mut record = before.clone().unwrap_or_else(|| Record::new(server));
    let outcome = change(&mut record);
    if before.as_ref() == Some(&record) {
        return Ok((outcome, None));
    }
    let written = locked.and_then(|_lock| replace(file, encode(&record).as_bytes()));
    Ok((outcome, written.err().map(|problem| format!("{}: {problem}", file.display()))))
}

fn encode(record: &Record) -> String {
    serde_json::to_string(record).expect("it is data")
}

fn decode(text: &[u8]) -> Result<Record, String> {
    let value: Value = serde_json::from_slice(text).map_err(|problem| format!("it is damaged: {problem}"))?;
    match value.get("lispbox-pins").and_then(Value::as_u64) {
        Some(version) if version == u64::from(VERSION) => {
            serde_json::from_value(value).map_err(|problem| format!("it is damaged: {problem}"))
        }
        Some(version) => Err(format!("it was written by another version of lispbox (version {version} of pins)")),
        None => Err("it is damaged: it has no version".to_owned()),
    }
}
