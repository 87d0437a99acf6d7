//! A session and its monitor as one text.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use lispbox_lang::{EncodeError, Engine, RestoreError, Session};

use crate::grants::Grants;
use crate::origins::Origins;
use crate::rules::{Counted, Policy};

use super::Monitor;

/// The beginning of the line that has the grants and counts: a comment for readers of the session.
const LINE: &str = ";; policy: ";

const VERSION: u32 = 1;

/// What a monitor keeps besides the origins of values.
#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    grants: Grants,
    /// The times of calls that limits count.
    counts: Vec<Counted>,
}

/// The reason why a text is not restored to a session and its monitor.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::Engine;
/// use lispbox::policy::{Monitor, MonitorError, Policy};
/// use std::sync::Arc;
///
/// let (policy, engine) = (Arc::new(Policy::default()), Engine::builder().build().unwrap());
/// assert!(matches!(Monitor::restore(&policy, &engine, "{}"), Err(MonitorError::Session(_))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MonitorError {
    /// The session cannot be restored.
    Session(RestoreError),
    /// What the monitor has kept cannot be read; the reason.
    Damaged(String),
}

impl fmt::Display for MonitorError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MonitorError::Session(error) => error.fmt(formatter),
            MonitorError::Damaged(why) => write!(formatter, "the monitor of the session cannot be restored: {why}"),
        }
    }
}

impl std::error::Error for MonitorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            MonitorError::Session(error) => Some(error),
            MonitorError::Damaged(_) => None,
        }
    }
}

impl Monitor {
    /// Returns the text of a session together with what its monitor knows, for one field of a database. It is read by
    /// [`Monitor::restore`]; [`Engine::restore`] reads the session alone.
    ///
    /// # Errors
    /// As [`Session::encode`].
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    /// use lispbox::policy::{Monitor, Policy};
    /// use std::sync::Arc;
    ///
    /// let policy = Arc::new(Policy::read(r#"{"deny": ["mail/delete-*"]}"#).unwrap());
    /// let engine = Engine::builder().build().unwrap();
    /// let (mut session, monitor) = (engine.session(), Monitor::new(&policy));
    /// let text = monitor.encode(&mut session).unwrap();
    /// let (_session, _monitor) = Monitor::restore(&policy, &engine, &text).unwrap();
    /// ```
    pub fn encode(&self, session: &mut Session) -> Result<String, EncodeError> {
        let mut text = session.encode()?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let stored = Stored { version: VERSION, grants: self.grants().clone(), counts: self.counts.stored() };
        text.push_str(LINE);
        text.push_str(&serde_json::to_string(&stored).expect("it is data"));
        text.push('\n');
        self.origins.append_to(&mut text);
        Ok(text)
    }

    /// Restores a session and its monitor from the text of [`Monitor::encode`]. The policy may have changed meanwhile.
    ///
    /// A text of [`Session::encode`] alone is read as well. What the model has read in such a session is not known, so that
    /// guards take its literals as those of a `model`.
    ///
    /// # Errors
    /// Returns an error if the session cannot be restored, or what the monitor has kept.
    pub fn restore(policy: &Arc<Policy>, engine: &Arc<Engine>, text: &str) -> Result<(Session, Monitor), MonitorError> {
        let (rest, origins) = Origins::split(text).map_err(MonitorError::Damaged)?;
        let at = rest.rfind(LINE).filter(|at| *at == 0 || rest[..*at].ends_with('\n'));
        let session = engine.restore(at.map_or(rest, |at| &rest[..at])).map_err(MonitorError::Session)?;
        let monitor = Monitor::new(policy);
        let monitor = match (at, origins) {
            (Some(at), Some(origins)) => {
                let stored = read(&rest[at + LINE.len()..]).map_err(MonitorError::Damaged)?;
                monitor.counts.restore(stored.counts);
                *monitor.grants() = stored.grants;
                Monitor { origins: Arc::new(origins), ..monitor }
            }
            (None, None) => {
                monitor.origins.unwatched();
                monitor
            }
            // One was written without the other.
            _ => return Err(MonitorError::Damaged("a part of it is missing".to_owned())),
        };
        Ok((session, monitor))
    }
}

fn read(line: &str) -> Result<Stored, String> {
    let stored: Stored =
        serde_json::from_str(line.trim_end()).map_err(|problem| format!("its grants are damaged: {problem}"))?;
    match stored.version {
        VERSION => Ok(stored),
        version => Err(format!("its grants were written by another version of lispbox ({version})")),
    }
}
