//! Grants: decisions of a person that cover later calls, for a bounded time and number.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use lispbox_lang::Question;

/// The longest time for which a grant lasts.
///
/// ```
/// use lispbox::policy::LONGEST_GRANT;
///
/// assert_eq!(LONGEST_GRANT.as_secs(), 30 * 86_400);
/// ```
pub const LONGEST_GRANT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Most grants of one session.
const MOST_GRANTS: usize = 1_000;

/// The bounds of a grant.
///
/// ```
/// use lispbox::policy::GrantTerms;
/// use std::time::Duration;
///
/// // Five calls of the tool within an hour, with any arguments that no guard objects to.
/// let terms = GrantTerms { period: Duration::from_secs(3_600), count: Some(5), is_for_these_arguments: false };
/// assert!(terms.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantTerms {
    /// The time for which it lasts, at most [`LONGEST_GRANT`].
    pub period: Duration,
    /// The number of calls that it covers; `None` for any number.
    pub count: Option<u32>,
    /// True if it covers only calls with the same arguments in the same session.
    pub is_for_these_arguments: bool,
}

impl GrantTerms {
    /// Checks that the time and the number of calls are in range.
    ///
    /// # Errors
    /// Returns which one is not.
    ///
    /// ```
    /// use lispbox::policy::{GrantError, GrantTerms, LONGEST_GRANT};
    ///
    /// let terms = GrantTerms { period: LONGEST_GRANT * 2, count: None, is_for_these_arguments: true };
    /// assert_eq!(terms.check(), Err(GrantError::Period));
    /// ```
    pub fn check(&self) -> Result<(), GrantError> {
        if self.period.is_zero() || self.period > LONGEST_GRANT {
            return Err(GrantError::Period);
        }
        if self.count == Some(0) { Err(GrantError::Count) } else { Ok(()) }
    }
}

/// The reason why a grant cannot be given.
///
/// ```
/// use lispbox::policy::GrantError;
///
/// assert_eq!(GrantError::Count.to_string(), "a grant covers at least one call");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrantError {
    /// It would last for no time, or for more than [`LONGEST_GRANT`].
    Period,
    /// It would cover no call.
    Count,
    /// A guard objects to the values of the call, of which a grant for other arguments would know nothing.
    Guarded,
    /// The session has as many grants as it can hold; revoke some.
    Full,
}

impl fmt::Display for GrantError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrantError::Period => formatter.write_str("a grant lasts for at least one second and at most 30 days"),
            GrantError::Count => formatter.write_str("a grant covers at least one call"),
            GrantError::Guarded => formatter
                .write_str("a guard objects to the values of this call, so a grant can be for these arguments only"),
            GrantError::Full => {
                write!(formatter, "the session has {MOST_GRANTS} grants, which are the most; revoke some")
            }
        }
    }
}

impl std::error::Error for GrantError {}

/// A decision of a person that covers later calls of a tool in one session.
///
/// ```
/// # use lispbox::lang::{CallId, Question};
/// # use lispbox::policy::{GrantTerms, Monitor, Policy};
/// # use std::{sync::Arc, time::Duration};
/// # let question = Question {
/// #     id: CallId::default(),
/// #     server: "mail".into(),
/// #     tool: "send".into(),
/// #     arguments: r#"{"to":"ann"}"#.to_owned(),
/// #     reason: "it may send mail".to_owned(),
/// #     is_guarded: false,
/// # };
/// let monitor = Monitor::new(&Arc::new(Policy::default()));
/// let terms = GrantTerms { period: Duration::from_secs(60), count: Some(1), is_for_these_arguments: true };
/// let grant = monitor.grant(&question, terms, "bob").unwrap();
/// assert_eq!(grant.to_string(), r#"1: mail/send {"to":"ann"}, 1 more call (bob)"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// Its number in the session, from 1.
    pub id: u32,
    /// The server of the tool.
    pub server: String,
    /// The exact name of the tool.
    pub tool: String,
    /// The arguments, the text of a JSON object, if it covers only calls with exactly these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The time at which it was given, in milliseconds since 1970.
    pub at: i64,
    /// The time at which it ends, in milliseconds since 1970.
    pub until: i64,
    /// The number of calls that it still covers; absent if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
    /// Who gave it, as far as that is known.
    pub by: String,
}

/// Describes the grant on one line: "2: mail/send, 3 more calls (ann)".
impl fmt::Display for Grant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grant { id, server, tool, arguments, left, by, .. } = self;
        write!(formatter, "{id}: {server}/{tool}")?;
        if let Some(arguments) = arguments {
            write!(formatter, " {arguments}")?;
        }
        match left {
            Some(1) => write!(formatter, ", 1 more call")?,
            Some(left) => write!(formatter, ", {left} more calls")?,
            None => {}
        }
        if by.is_empty() { Ok(()) } else { write!(formatter, " ({by})") }
    }
}

impl Grant {
    /// Returns true if it covers no further call at that time, in milliseconds since 1970.
    fn has_ended(&self, now: i64) -> bool {
        self.until <= now || self.left == Some(0)
    }

    fn covers(&self, asked: &Question) -> bool {
        let is_of_tool = *self.server == *asked.server && *self.tool == *asked.tool;
        is_of_tool
            && match &self.arguments {
                Some(arguments) => *arguments == asked.arguments,
                // A decision about the tool in general was made without knowledge of these values.
                None => !asked.is_guarded,
            }
    }
}

/// The grants of one session.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Grants {
    /// The number of grants that were given.
    given: u32,
    grants: Vec<Grant>,
}

impl Grants {
    /// Gives a grant for calls like the one of a question, for that time in milliseconds since 1970 and its end.
    ///
    /// # Errors
    /// Returns why it cannot be given.
    pub fn give(
        &mut self,
        asked: &Question,
        (at, until): (i64, i64),
        terms: (Option<u32>, bool),
        by: &str,
    ) -> Result<Grant, GrantError> {
        let (left, is_for_these_arguments) = terms;
        if asked.is_guarded && !is_for_these_arguments {
            return Err(GrantError::Guarded);
        }
        self.grants.retain(|grant| !grant.has_ended(at));
        if self.grants.len() >= MOST_GRANTS {
            return Err(GrantError::Full);
        }
        self.given += 1;
        let grant = Grant {
            id: self.given,
            server: asked.server.to_string(),
            tool: asked.tool.to_string(),
            arguments: is_for_these_arguments.then(|| asked.arguments.clone()),
            at,
            until,
            left,
            by: by.to_owned(),
        };
        self.grants.push(grant.clone());
        Ok(grant)
    }

    /// Returns the grants that have not ended.
    pub fn list(&self, now: i64) -> Vec<Grant> {
        self.grants.iter().filter(|grant| !grant.has_ended(now)).cloned().collect()
    }

    /// Ends a grant; returns false if there is none of that number.
    pub fn revoke(&mut self, id: u32) -> bool {
        let before = self.grants.len();
        self.grants.retain(|grant| grant.id != id);
        self.grants.len() < before
    }

    /// Returns whether a grant covers a call; nothing is counted.
    pub fn covers(&self, asked: &Question, now: i64) -> bool {
        self.grants.iter().any(|grant| !grant.has_ended(now) && grant.covers(asked))
    }

    /// Counts a call that is about to be made by a grant that covers it, the narrower first. Returns false if none does.
    pub fn take(&mut self, asked: &Question, now: i64) -> bool {
        let covering = self.grants.iter_mut().filter(|grant| !grant.has_ended(now) && grant.covers(asked));
        let Some(grant) = covering.min_by_key(|grant| (grant.arguments.is_none(), grant.until)) else { return false };
        grant.left = grant.left.map(|left| left - 1);
        true
    }
}
