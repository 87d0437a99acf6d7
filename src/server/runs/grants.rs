//! Grants: decisions of a person that cover later calls of a tool, for a bounded time and number.
//!
//! Each grant is a record of its own in the store of the sessions, found by a name that is made of what it covers. It is
//! counted under its lease, so that no two processes use its last call, and it ends for all of them once it is removed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::lang::Question;
use crate::server::identity::sha256;
use crate::server::policy;
use crate::store::{Key, LEASE, OWN, Problem, Store, Summary, handle, wait_for_lease};

use super::stored::{OpenCall, StoredRun, now};

/// The version of the text of a grant.
const VERSION: u32 = 1;

/// The time for which a process waits for another one that counts a call.
const PATIENCE: Duration = Duration::from_secs(LEASE.as_secs() + 2);

/// The longest time for which a grant lasts.
pub const LONGEST_GRANT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The names of the records of grants begin with this.
fn prefix() -> String {
    format!("{OWN}grant/")
}

/// A decision of a person that covers later calls of a tool by one principal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    #[serde(rename = "lispbox-grant")]
    version: u32,
    /// The server of the tool.
    pub server: String,
    /// The exact name of the tool.
    pub tool: String,
    /// The call that it repeats; absent if it covers all calls of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<GrantedCall>,
    /// The time at which it ends, in seconds since 1970.
    pub until: u64,
    /// The number of calls that it still covers; absent if that is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
    /// The time at which it was given, in seconds since 1970.
    pub at: u64,
    /// The way in which it was given, and by whom, as far as that is known.
    pub by: String,
}

/// One call with exact arguments in one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrantedCall {
    /// The SHA-256 of the handle of the session, in hexadecimal.
    pub session: String,
    /// The arguments as they are sent: the text of a JSON object.
    pub arguments: String,
}

/// The bounds of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantTerms {
    /// The time for which it lasts, at most [`LONGEST_GRANT`].
    pub period: Duration,
    /// The number of calls that it covers; `None` for any number.
    pub count: Option<u32>,
    /// True if it covers only calls with the same arguments in the same session.
    pub is_for_these_arguments: bool,
}

impl Grant {
    /// Creates the grant that a person gives when they approve that call of a run.
    ///
    /// # Errors
    /// Returns a message if the time or the number of calls is out of range.
    pub fn new(run: &StoredRun, call: &OpenCall, terms: GrantTerms, by: &str) -> Result<Grant, String> {
        let GrantTerms { period, count, is_for_these_arguments } = terms;
        if is_for_these_arguments && call.question.planned.is_some() {
            return Err("a plan has no arguments for which a grant could hold".to_owned());
        }
        if period.is_zero() || period > LONGEST_GRANT {
            return Err("a grant lasts for at least one second and at most 30 days".to_owned());
        }
        if count == Some(0) {
            return Err("a grant covers at least one call".to_owned());
        }
        let call_as_sent =
            GrantedCall { session: sha256(run.session().as_bytes()), arguments: call.question.arguments.to_string() };
        Ok(Grant {
            version: VERSION,
            server: call.question.server.clone(),
            tool: call.question.tool.clone(),
            call: is_for_these_arguments.then_some(call_as_sent),
            until: now() + period.as_secs().max(1),
            left: count,
            at: now(),
            by: by.to_owned(),
        })
    }

    /// Returns the name by which the record of a grant for such a call is found.
    fn name(&self) -> String {
        let mut covered = format!("{}\n{}", self.server, self.tool);
        if let Some(GrantedCall { session, arguments }) = &self.call {
            covered.push_str(&format!("\n{session}\n{arguments}"));
        }
        format!("{}{}", prefix(), sha256(covered.as_bytes()))
    }

    /// Returns true if it covers no further call.
    pub fn has_ended(&self) -> bool {
        self.until <= now() || self.left == Some(0)
    }

    /// Returns the time at which it ends.
    pub fn end(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.until)
    }

    fn encode(&self) -> String {
        serde_json::to_string(self).expect("it is data")
    }

    fn decode(text: &str) -> Result<Grant, String> {
        let grant: Grant = serde_json::from_str(text).map_err(|problem| format!("it is damaged: {problem}"))?;
        match grant.version {
            VERSION => Ok(grant),
            version => Err(format!("it was written by another version of lispbox (version {version} of grants)")),
        }
    }
}

/// A grant with its key, or the reason why it cannot be read.
pub type ListedGrant = (Key, Result<Grant, String>);

/// The grants of a store.
///
/// ```no_run
/// use lispbox::server::StoredGrants;
///
/// let store = lispbox::store::open_existing("sqlite:/var/lib/lispbox/sessions.db").unwrap();
/// let grants = StoredGrants::new(store);
/// for (key, _) in grants.list().unwrap() {
///     grants.revoke(&key).unwrap();
/// }
/// ```
#[derive(Clone)]
pub struct StoredGrants(Arc<dyn Store>);

impl StoredGrants {
    /// Creates the view of a store.
    pub fn new(store: Arc<dyn Store>) -> StoredGrants {
        StoredGrants(store)
    }

    /// Returns the grants that have not ended, the most recently used first.
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub fn list(&self) -> Result<Vec<ListedGrant>, Problem> {
        let is_grant = |summary: &Summary| summary.names.iter().any(|name| name.starts_with(&prefix()));
        let mut grants = Vec::new();
        for summary in self.0.list()?.into_iter().filter(is_grant) {
            let grant = match self.0.read(&summary.key, 0) {
                // Its last call was made meanwhile.
                Err(Problem::Unknown) => continue,
                read => read.map_err(|problem| problem.to_string()),
            };
            let grant = grant.and_then(|read| Grant::decode(&read.map(|read| read.text).unwrap_or_default()));
            if !grant.as_ref().is_ok_and(Grant::has_ended) {
                grants.push((summary.key, grant));
            }
        }
        Ok(grants)
    }

    /// Stores a grant for the calls of a principal, and returns its key.
    ///
    /// # Errors
    /// Returns why it may not be stored, as a clause.
    pub fn give(&self, principal: &str, grant: &Grant) -> Result<Key, String> {
        let key = Key { principal: principal.to_owned(), handle: handle()? };
        self.0.create(&key, &grant.encode(), &[grant.name()]).map_err(|problem| unusable(&problem))?;
        Ok(key)
    }

    /// Ends a grant. No process makes a further call by it once this returns.
    ///
    /// # Errors
    /// Returns why it may not have ended, as a clause.
    pub fn revoke(&self, key: &Key) -> Result<(), String> {
        let taken = match wait_for_lease(&*self.0, key, PATIENCE, || false) {
            Err(Problem::Unknown | Problem::Expired) => {
                return Err("there is no such grant, or it has ended".to_owned());
            }
            taken => taken.map_err(|problem| unusable(&problem))?,
        };
        self.0.remove(key, Some(&taken.lease)).map_err(|problem| unusable(&problem))
    }

    /// Takes one call from a grant that covers it, and returns the grant in words. Blocks.
    fn take(&self, principal: &str, session: &str, asked: &Question) -> Result<Option<String>, String> {
        let tool = Grant {
            version: VERSION,
            server: asked.server.to_string(),
            tool: asked.tool.to_string(),
            call: None,
            until: 0,
            left: None,
            at: 0,
            by: String::new(),
        };
        let call = GrantedCall { session: session.to_owned(), arguments: asked.arguments.clone() };
        let exact = Grant { call: Some(call), ..tool.clone() };
        // A decision about the tool in general was made without knowledge of these values.
        let wanted = if asked.is_guarded { vec![exact] } else { vec![exact, tool] };
        for wanted in wanted {
            while let Some(handle) =
                self.0.definer(principal, &wanted.name(), "").map_err(|problem| unusable(&problem))?
            {
                let key = Key { principal: principal.to_owned(), handle };
                if let Some(words) = self.count(&key, &wanted)? {
                    return Ok(Some(words));
                }
            }
        }
        Ok(None)
    }

    /// Counts a call of that grant, and returns the grant in words; `None` if it has ended, or does not cover it.
    fn count(&self, key: &Key, wanted: &Grant) -> Result<Option<String>, String> {
        let taken = match wait_for_lease(&*self.0, key, PATIENCE, || false) {
            Err(Problem::Unknown | Problem::Expired) => return Ok(None),
            taken => taken.map_err(|problem| unusable(&problem))?,
        };
        let counted = self.count_under(key, &taken.lease, wanted);
        // Without it the lease expires.
        let _ = self.0.release(key, &taken.lease);
        counted.map_err(|problem| unusable(&problem))
    }

    fn count_under(&self, key: &Key, lease: &crate::store::Lease, wanted: &Grant) -> Result<Option<String>, Problem> {
        let Some(read) = self.0.read(key, 0)? else { return Ok(None) };
        let grant = Grant::decode(&read.text).map_err(Problem::Damaged)?;
        let covers = (&grant.server, &grant.tool, &grant.call) == (&wanted.server, &wanted.tool, &wanted.call);
        if !covers || grant.has_ended() {
            self.0.remove(key, Some(lease))?;
            return Ok(None);
        }
        let words = format!("a grant covers it ({})", grant.by);
        match grant.left {
            None => {}
            Some(1) => self.0.remove(key, Some(lease))?,
            Some(left) => {
                let counted = Grant { left: Some(left - 1), ..grant };
                self.0.write(key, lease, read.version, &counted.encode(), &[counted.name()])?;
            }
        }
        Ok(Some(words))
    }
}

/// Describes a problem of the store with a grant.
fn unusable(problem: &Problem) -> String {
    match problem {
        Problem::Unavailable(reason) | Problem::Unusable(reason) => format!("the store cannot be used: {reason}"),
        Problem::Damaged(what) => format!("the grant is damaged: {what}"),
        Problem::Leased => "another process uses the grant at this moment".to_owned(),
        Problem::Lost | Problem::Changed => "another process has used the grant meanwhile".to_owned(),
        Problem::Unknown | Problem::Expired => "the grant has ended".to_owned(),
    }
}

/// The grants that apply to the calls of one evaluation.
pub(in crate::server) struct SessionGrants {
    grants: StoredGrants,
    principal: String,
    /// The SHA-256 of the handle of the session.
    session: String,
}

impl SessionGrants {
    /// Returns the grants for the calls that a principal makes in a session.
    pub(in crate::server) fn new(store: &Arc<dyn Store>, principal: &str, session: &str) -> SessionGrants {
        let grants = StoredGrants::new(Arc::clone(store));
        SessionGrants { grants, principal: principal.to_owned(), session: sha256(session.as_bytes()) }
    }
}

impl policy::Grants for SessionGrants {
    fn take(&self, asked: &Question) -> Result<Option<String>, String> {
        self.grants.take(&self.principal, &self.session, asked)
    }
}
