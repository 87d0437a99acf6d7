//! The current principals: the tokens file is reloaded when it changes.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::server::admission::allowances::Allowances;

use super::principals::{Known, Principals};
use super::protocol_sessions::ProtocolSessions;

/// Interval at which the file is read. Its text is compared and not its modification time, since a copy may keep the
/// time of its source.
const EVERY: Duration = Duration::from_secs(1);

/// Maximum size of the file, in bytes.
const LARGEST: u64 = 4 << 20;

/// The principals that may currently use the server.
pub(super) struct Directory {
    current: RwLock<Arc<Principals>>,
    /// True if every request needs a token, even after all tokens have been revoked.
    needs_token: bool,
    allowances: Arc<Allowances>,
}

impl Directory {
    /// Creates a directory of these principals and their allowances.
    pub(super) fn new(principals: Principals, allowances: Arc<Allowances>) -> Directory {
        warn_of_exposure(&principals);
        let needs_token = !principals.is_empty();
        Directory { current: RwLock::new(Arc::new(principals)), needs_token, allowances }
    }

    fn current(&self) -> Arc<Principals> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Finds the principal of a token.
    pub(super) fn find(&self, token: &str) -> Option<Known> {
        self.current().find(token)
    }

    /// True if a principal of that name has a token with such a digest.
    pub(super) fn has_token(&self, principal: &str, is_such: impl Fn(&[u8; 32]) -> bool) -> bool {
        self.current().has_token(principal, is_such)
    }

    /// True if every request needs a token.
    pub(super) fn needs_token(&self) -> bool {
        self.needs_token
    }

    /// Reloads the file when it changes, until `stop` is cancelled. Revokes tokens that are no longer in it and closes
    /// the protocol sessions of removed principals. A file that cannot be read or is invalid changes nothing, since it
    /// must neither admit nor lock out anyone; `report` is called with true when that begins and with false when it
    /// ends.
    pub(super) async fn watch(&self, sessions: &ProtocolSessions, report: impl Fn(bool), stop: CancellationToken) {
        if self.current().file().is_none() {
            return;
        }
        let mut problem: Option<String> = None;
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => return,
            }
            let before = self.current();
            let reading = Arc::clone(&before);
            let read = tokio::task::spawn_blocking(move || reading.read_again()).await;
            match read.unwrap_or_else(|_| Err("reading it panicked".to_owned())) {
                Ok(again) => {
                    if problem.take().is_some() {
                        tracing::info!("the tokens file is valid again");
                        report(false);
                    }
                    if let Some(again) = again {
                        self.replace(&before, again, sessions).await;
                    }
                }
                Err(why) if problem.as_ref() == Some(&why) => {}
                Err(why) => {
                    tracing::error!(
                        problem = why,
                        "the tokens file has changed and cannot be used: the previous tokens remain valid, and no \
                         change takes effect until the file is valid"
                    );
                    report(true);
                    problem = Some(why);
                }
            }
        }
    }

    async fn replace(&self, before: &Principals, again: Principals, sessions: &ProtocolSessions) {
        warn_of_exposure(&again);
        let again = Arc::new(again);
        self.allowances.replace(again.each_allowance());
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&again);
        before.revoke_all_but(&again);
        sessions.keep_only(|principal| again.has(principal)).await;
        tracing::info!("the tokens file has changed and was read again");
    }
}

fn warn_of_exposure(principals: &Principals) {
    if let Some(problem) = principals.exposure() {
        tracing::warn!(problem, "the tokens file is exposed");
    }
}

/// Reads a tokens file, which only its owner may write. A file that others may read is accepted, since secret volumes
/// are often mounted like that; the exposure of its tokens is logged as a warning.
///
/// # Errors
/// Returns an error if the file cannot be read, is too large, or may be written by anyone other than its owner.
pub(super) fn read_private(path: &Path) -> Result<String, String> {
    let broken = |problem: std::io::Error| problem.to_string();
    let file = File::open(path).map_err(broken)?;
    let metadata = file.metadata().map_err(broken)?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(broken)?;
    if text.len() as u64 > LARGEST {
        return Err(format!("expected a tokens file of at most {LARGEST} bytes"));
    }
    if let Some(mode) = mode_for_others(&metadata, WRITE) {
        return Err(format!(
            "users other than its owner may write it (mode {mode:03o}) and so make themselves principals; run `chmod \
             600 {}`",
            path.display()
        ));
    }
    Ok(text)
}

/// Returns how the permissions of the file expose its tokens and a remedy, or `None` if they do not.
pub(super) fn exposure(path: &Path, text: &str) -> Option<String> {
    let mode = mode_for_others(&path.metadata().ok()?, READ).filter(|_| has_tokens(text))?;
    Some(format!(
        "users other than its owner may read the tokens in {} (mode {mode:03o}); use environment variables instead, \
         or run `chmod 600 {}`",
        path.display(),
        path.display()
    ))
}

/// Permission bits of the group and of others: read, and write.
const READ: u32 = 0o044;
const WRITE: u32 = 0o022;

/// Returns the mode of a file if the group or others have one of those permissions.
#[cfg(unix)]
fn mode_for_others(metadata: &std::fs::Metadata, permissions: u32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let mode = metadata.mode() & 0o777;
    (mode & permissions != 0).then_some(mode)
}

#[cfg(not(unix))]
fn mode_for_others(_: &std::fs::Metadata, _: u32) -> Option<u32> {
    None
}

/// True if the text contains a literal token, that is, a token that is not just a reference to an environment variable.
fn has_tokens(text: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(text) else { return false };
    fields.values().any(|value| match value.get("token").unwrap_or(value) {
        Value::String(token) => {
            let name = token.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            !name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_are_no_tokens() {
        assert!(!has_tokens(r#"{"ann": "${ANN_TOKEN}", "bob": {"token": " ${BOB} ", "sessions": 5}}"#));
        for text in [
            r#"{"ann": "${ANN_TOKEN}", "bob": "bob-bob-bob-bob-bob"}"#,
            r#"{"bob": {"token": "bob-bob-bob-bob-bob"}}"#,
            r#"{"ann": "${ANN_TOKEN:-ann-ann-ann-ann-ann}"}"#,
            r#"{"ann": "x${ANN_TOKEN}"}"#,
            r#"{"ann": "${A}${B}"}"#,
        ] {
            assert!(has_tokens(text), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_change_is_refused_and_one_that_they_may_read_is_warned_about() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tokens.json");
        let read = |text: &str, mode: u32| {
            std::fs::write(&file, text).expect("written");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("it is ours");
            read_private(&file).map(|text| exposure(&file, &text))
        };
        let (written_out, named) = (r#"{"ann": "ann-ann-ann-ann-ann"}"#, r#"{"ann": "${ANN_TOKEN}"}"#);
        assert_eq!(read(written_out, 0o600), Ok(None));
        assert_eq!(read(written_out, 0o400), Ok(None));
        assert_eq!(read(named, 0o644), Ok(None));
        let remedy = format!("run `chmod 600 {}`", file.display());
        for mode in [0o644, 0o640, 0o604] {
            let warning = read(written_out, mode).expect("it is used").expect("it is warned about");
            assert!(warning.ends_with(&remedy) && !warning.contains("ann-ann"), "{warning}");
        }
        for (text, mode) in [(written_out, 0o666), (named, 0o622), (named, 0o602)] {
            let problem = read(text, mode).expect_err("it is refused");
            assert!(problem.ends_with(&remedy) && !problem.contains("ann-ann"), "{problem}");
        }
    }
}
