//! The principals as they are now: the tokens file is read again when it changes.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::principals::{Known, Principals};
use super::protocol_sessions::ProtocolSessions;
use crate::server::allowances::Allowances;

/// How often the file is read. Its text is compared, not its time: a copy may keep the time of its source.
const EVERY: Duration = Duration::from_secs(1);

/// The largest file that is read.
const LARGEST: u64 = 4 << 20;

/// Who may use the server now.
pub(super) struct Directory {
    current: RwLock<Arc<Principals>>,
    /// True where every request needs a token, also once all of them have been revoked.
    needs_token: bool,
    allowances: Arc<Allowances>,
}

impl Directory {
    /// Those principals, with what they may have.
    pub(super) fn new(principals: Principals, allowances: Arc<Allowances>) -> Directory {
        warn_of_exposure(&principals);
        let needs_token = !principals.is_empty();
        Directory { current: RwLock::new(Arc::new(principals)), needs_token, allowances }
    }

    fn current(&self) -> Arc<Principals> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whose token that is.
    pub(super) fn find(&self, token: &str) -> Option<Known> {
        self.current().find(token)
    }

    /// True where every request needs a token.
    pub(super) fn needs_token(&self) -> bool {
        self.needs_token
    }

    /// Reads the file again whenever it changes, until `stop` is cancelled. Tokens that are no longer in it are revoked
    /// and the protocol sessions of principals that are gone are closed. A file that cannot be read or is wrong changes
    /// nothing, as it must neither let anybody in nor lock everybody out: `report` is told so.
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
            match read.unwrap_or_else(|_| Err("reading it broke".to_owned())) {
                Ok(again) => {
                    if problem.take().is_some() {
                        tracing::info!("the tokens file is right again");
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
                        "the tokens file has changed and cannot be used: the tokens from before hold on, and no change takes effect until the file is right"
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

/// The text of a tokens file, which only its owner may write. A file whose tokens others may read is used, with a warning
/// in the log: volumes of secrets are often mounted like that.
///
/// # Errors
/// When it cannot be read, or others than its owner may write it.
pub(super) fn read_private(path: &Path) -> Result<String, String> {
    let broken = |problem: std::io::Error| problem.to_string();
    let file = File::open(path).map_err(broken)?;
    let metadata = file.metadata().map_err(broken)?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(broken)?;
    if text.len() as u64 > LARGEST {
        return Err(format!("a tokens file may have {LARGEST} bytes"));
    }
    if let Some(mode) = mode_for_others(&metadata, WRITE) {
        return Err(format!(
            "others than its owner may write it (mode {mode:03o}), and so make themselves a principal; run `chmod 600 {}`",
            path.display()
        ));
    }
    Ok(text)
}

/// Why tokens are exposed by the permissions of their file, and what to do about it.
pub(super) fn exposure(path: &Path, text: &str) -> Option<String> {
    let mode = mode_for_others(&path.metadata().ok()?, READ).filter(|_| has_tokens(text))?;
    Some(format!(
        "others than its owner may read the tokens in {} (mode {mode:03o}); name variables of the environment in their place, or run `chmod 600 {}`",
        path.display(),
        path.display()
    ))
}

/// The permissions of the group and of others: to read, and to write.
const READ: u32 = 0o044;
const WRITE: u32 = 0o022;

/// The mode of a file that others have one of those permissions on.
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

/// True for a text in which a token is written out: it is more than the name of a variable of the environment.
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
