//! The folder of data that can be recreated: tool lists and learned result shapes, in files that only their owner can
//! read. Without a folder nothing is stored.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::server::config::{Endpoint, ServerConfig};
use crate::server::system::folders::{make_private, readable, replace};
use crate::server::transport::envelope::Envelope;
use crate::server::transport::lines::MOST_MARKS;

/// The folder, and whether it has been reported that it cannot be written.
pub(super) struct Cache {
    folder: Option<PathBuf>,
    is_reported: AtomicBool,
}

impl Cache {
    pub(super) fn new(folder: Option<PathBuf>) -> Cache {
        Cache { folder, is_reported: AtomicBool::new(false) }
    }

    /// Returns the beginning of the paths of a server's files of one kind, such as `…/tools/mail-0123456789abcdef`. The
    /// parameters with which the server runs (its arguments, its environment) enter the name only as a hash. `None` if
    /// nothing is stored, as for functions of an embedding program.
    pub(super) fn place(&self, kind: &str, config: &ServerConfig) -> Option<PathBuf> {
        let (folder, endpoint) = (self.folder.as_ref()?, config.endpoint.as_ref().ok()?);
        let mut hasher = DefaultHasher::new();
        config.name.hash(&mut hasher);
        match endpoint {
            Endpoint::Process { command, arguments, environment, folder } => {
                (command, arguments, environment, folder, &config.inherit).hash(&mut hasher);
            }
            Endpoint::Http { url, headers, .. } => (url, headers).hash(&mut hasher),
            Endpoint::Local(tools) => format!("{tools:?}").hash(&mut hasher),
            Endpoint::Functions(_) => return None,
        }
        Some(folder.join(kind).join(format!("{}-{:016x}", readable(&config.name), hasher.finish())))
    }

    /// Reads a file of at most `largest` bytes; `None` if there is none that can be used.
    pub(super) fn read<T: DeserializeOwned>(&self, file: &Path, largest: u64, server: &str) -> Option<T> {
        if !fs::metadata(file).ok()?.is_file() {
            return None;
        }
        if let Err(problem) = make_private(file) {
            tracing::warn!(%problem, server, "a file in the cache is not used: other users may change it");
            return None;
        }
        let mut text = Vec::new();
        fs::File::open(file).ok()?.take(largest + 1).read_to_end(&mut text).ok()?;
        if text.len() as u64 > largest || Envelope::of(&text).marks() > MOST_MARKS {
            return None;
        }
        serde_json::from_slice(&text).ok()
    }

    /// Replaces a file. The first failure is logged as a warning: what is not stored has to be fetched and learned again
    /// by the next process.
    pub(super) fn write(&self, file: &Path, content: &impl Serialize) {
        let text = serde_json::to_vec(content).map_err(io::Error::from);
        let Err(problem) = text.and_then(|text| replace(file, &text)) else { return };
        let folder = file.parent().unwrap_or(file).display();
        if self.is_reported.swap(true, Ordering::Relaxed) {
            tracing::debug!(%problem, %folder, "a file in the cache was not written");
        } else {
            tracing::warn!(
                %problem,
                %folder,
                "tool lists and result shapes cannot be stored, so the next process has to learn them again; LISPBOX_CACHE names another folder, or is `off`"
            );
        }
    }
}
