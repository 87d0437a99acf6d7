//! `--store`: the store of the sessions, and the records of runs in it.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::parse_size;
use lispbox::server::{Pins, RecordOptions, Secrets, ServeOptions};

use crate::bounds::Time;
use crate::context::{Problem, store_problem};
use crate::usual_store::{self, MEMORY};

/// The store in which sessions outlive the process, and what is recorded there.
#[derive(Args)]
pub struct Storage {
    /// The store in which sessions outlive the process: `sqlite:sessions.db`, `redis://HOST:PORT/NUMBER` or
    /// `postgres://USER:PASSWORD@HOST/DATABASE`. It contains what tools returned, unencrypted unless the store encrypts
    /// it. By default, a server on standard input and output uses a SQLite file among the user's data, which only its
    /// owner can read; `memory` means no store.
    #[arg(long, value_name = "URL", env = "LISPBOX_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Record whole runs in the store, with what their tools returned, so that `lispbox runs` can show and replay them.
    /// They are kept for this time, such as `30d`; without a time, for 7 days.
    #[arg(
        long, value_name = "TIME", env = "LISPBOX_RECORD", requires = "store", num_args = 0..=1,
        default_missing_value = "7d"
    )]
    record: Option<Time>,
    /// Maximum size of the record of one run. Of a larger one, only the reply is kept.
    #[arg(long, value_name = "SIZE", env = "LISPBOX_RECORD_SIZE", default_value = "16MiB")]
    record_size: String,
}

impl Storage {
    /// Returns the options for recording whole runs, if they are recorded.
    ///
    /// # Errors
    /// Returns a usage error if the size of a record is invalid.
    pub fn recording(&self) -> Result<Option<RecordOptions>, Problem> {
        let largest = parse_size(&self.record_size, "the size of a record").map_err(Problem::Usage)?;
        let largest = usize::try_from(largest).unwrap_or(usize::MAX);
        Ok(self.record.map(|keep| RecordOptions { keep: keep.0, largest }))
    }

    /// Adds the password of the store to the secrets.
    pub fn conceal(&self, secrets: &Secrets) {
        self.store.iter().for_each(|url| secrets.add_credentials_in(url));
    }

    /// Checks that the store can be used. A missing SQLite file is not created; a server is connected to.
    ///
    /// # Errors
    /// Returns the reason why it cannot.
    pub fn check(&self) -> Result<(), Problem> {
        let Some(url) = self.named() else { return Ok(()) };
        match url.strip_prefix("sqlite:").filter(|path| !path.is_empty()).map(Path::new) {
            Some(path) if !path.exists() => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let missing = || Problem::Usage(format!("{url}: there is no folder {}", folder.display()));
                if folder.is_dir() { Ok(()) } else { Err(missing()) }
            }
            _ => lispbox::store::open(url).map(drop).map_err(|message| store_problem(url, message)),
        }
    }

    /// Returns true if a store is named.
    pub fn is_named(&self) -> bool {
        self.named().is_some()
    }

    /// Returns the URL of the store, if one is named.
    fn named(&self) -> Option<&String> {
        self.store.as_ref().filter(|url| *url != MEMORY)
    }

    /// Opens the store that is named, or the usual one, which a server over HTTP does not use.
    ///
    /// # Errors
    /// Returns the reason why a store that is named cannot be used.
    pub fn open(&self, options: &mut ServeOptions, is_http: bool) -> Result<(), Problem> {
        if let Some(url) = self.named() {
            let store = lispbox::store::open(url).map_err(|message| store_problem(url, message))?;
            options.storage.store = Some(store);
        } else if self.store.is_none() && !is_http {
            let store = usual_store::open_usual().unwrap_or_else(|problem| {
                let since = "sessions and waiting programs end with this process, since the usual store cannot be used";
                tracing::warn!(problem, "{since}");
                Arc::new(usual_store::Unusable(problem))
            });
            options.storage.store = Some(store);
            options.sessions.stored_bytes = usual_store::MOST;
            options.storage.is_usual = true;
        }
        Ok(())
    }

    /// Returns the pins of tools in the store, if one is named and exists. A SQLite file is not created.
    ///
    /// # Errors
    /// Returns the reason why the store cannot be used.
    pub fn pins(&self) -> Result<Option<Pins>, Problem> {
        let Some(url) = self.named() else { return Ok(None) };
        if url.strip_prefix("sqlite:").is_some_and(|path| !Path::new(path).exists()) {
            return Ok(None);
        }
        let store = lispbox::store::open(url).map_err(|message| store_problem(url, message))?;
        Ok(Some(Pins::in_store(store)))
    }
}
