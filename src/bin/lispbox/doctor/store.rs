//! The store, and the programs in it that wait for a person.

use lispbox::server::{RunState, StoredRuns};
use lispbox::store::{Store, Summary, open_existing};

use crate::config::counted;
use crate::output::outln;
use crate::usual_store::{self, MEMORY};

/// Looks at the store and at the programs that wait in it; returns false if it cannot be used.
pub fn examine() -> bool {
    let named = std::env::var("LISPBOX_STORE").ok().filter(|url| !url.is_empty());
    if named.as_deref() == Some(MEMORY) {
        outln!("        store: none; sessions end with their process, as LISPBOX_STORE says");
        return true;
    }
    let is_usual = named.is_none();
    let Some(url) = named.or_else(usual_store::url) else {
        outln!("        store: none; the folder of the user's data is unknown");
        return true;
    };
    if let Some(file) = usual_store::file().filter(|file| is_usual && !file.exists()) {
        return match usual_store::check_folder(&file) {
            Ok(()) => {
                outln!("ok      store: none yet; the first client creates it");
                true
            }
            Err(problem) => {
                outln!("broken  store: none can be created, so that sessions end with their process: {problem}");
                false
            }
        };
    }
    let examined = open_existing(&url).and_then(|store| {
        let sessions = store.list().map_err(|problem| problem.to_string())?;
        let size = store.bytes().map_err(|problem| problem.to_string())?;
        Ok((sessions.iter().filter(|summary| Summary::is_session(summary)).count(), size, store))
    });
    match examined {
        Ok((sessions, size, store)) => {
            let size = size.map_or_else(String::new, |bytes| format!(", {} KiB", bytes.div_ceil(1024)));
            let place = if is_usual { url.trim_start_matches("sqlite:") } else { "the one that LISPBOX_STORE names" };
            outln!("ok      store: {place}, {}{size}", counted(sessions, "session"));
            waiting(store);
            true
        }
        Err(problem) => {
            let mends = if is_usual { "; move the file away, and a new one is created" } else { "" };
            outln!("broken  store: {problem}{mends}");
            false
        }
    }
}

/// Says how many programs wait for a person.
fn waiting(store: std::sync::Arc<dyn Store>) {
    let listed = StoredRuns::new(store).list().unwrap_or_default();
    let is_waiting = |run: &lispbox::server::StoredRun| run.state() == RunState::Waiting;
    match listed.iter().filter_map(|(_, run)| run.as_ref().ok()).filter(|run| is_waiting(run)).count() {
        0 => outln!("ok      approvals: nothing waits for you"),
        count => {
            let programs = counted(count, "program");
            outln!("waiting approvals: {programs} waiting for you; `lispbox approvals open` shows them");
        }
    }
}
