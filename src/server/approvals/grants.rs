//! Grants: decisions of a person that cover later calls of a tool, for a bounded time and number.
//!
//! Each grant is a record of its own in the store of the sessions, found by a name that is made of what it covers. A call
//! is looked up when its program asks about it, and counted when it is about to be sent: under the lease of the grant, so
//! that no two processes use its last call. A grant ends for all processes once it is removed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lispbox_policy::GrantTerms;
use serde::{Deserialize, Serialize};

use crate::lang::Question;
use crate::server::identity::sha256;
use crate::server::runs::stored::{OpenCall, StoredRun};
use crate::server::runs::summary::now;
use crate::store::{Key, LEASE, Lease, OWN, Problem, Store, Summary, handle, wait_for_lease};

use super::{Grants, LaterCalls, Take, TakenCall};

/// The version of the text of a grant.
const VERSION: u32 = 1;

/// The time for which a revocation waits for a process that counts a call.
const PATIENCE: Duration = Duration::from_secs(LEASE.as_secs() + 2);

/// The time for which a grant lasts that is given in a form, unless its session ends before.
const IN_A_FORM: Duration = Duration::from_secs(24 * 60 * 60);

/// The time for which the record of a grant stays that is used up.
const SETTLING: Duration = Duration::from_secs(10 * 60);

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
    /// The SHA-256 of the handle of the session in which it covers all calls of the tool, in hexadecimal; absent if it
    /// covers those of all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The time at which it ends, in seconds since 1970.
    pub until: u64,
    /// The number of calls that it still covers; absent if that is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u32>,
    /// The time at which its last call was counted, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    used_up: Option<u64>,
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
        terms.check().map_err(|problem| problem.to_string())?;
        let call_as_sent =
            GrantedCall { session: sha256(run.session().as_bytes()), arguments: call.question.arguments.to_string() };
        Ok(Grant {
            version: VERSION,
            server: call.question.server.clone(),
            tool: call.question.tool.clone(),
            call: is_for_these_arguments.then_some(call_as_sent),
            session: None,
            until: now() + period.as_secs().max(1),
            left: count,
            used_up: None,
            at: now(),
            by: by.to_owned(),
        })
    }

    /// Creates the grant for later calls in the session of that handle, which a person allows in the form for a call.
    pub(super) fn of_form(question: &super::Question, session: &str, later: LaterCalls) -> Grant {
        let super::Question { server, tool, arguments, .. } = question;
        Grant::of_later(later, (server, tool), arguments.to_string(), sha256(session.as_bytes()))
    }

    fn of_later(later: LaterCalls, (server, tool): (&str, &str), arguments: String, session: String) -> Grant {
        let (call, session) = match later {
            LaterCalls::SameArguments => (Some(GrantedCall { session, arguments }), None),
            LaterCalls::SameTool => (None, Some(session)),
        };
        Grant {
            version: VERSION,
            server: server.to_owned(),
            tool: tool.to_owned(),
            call,
            session,
            until: now() + IN_A_FORM.as_secs(),
            left: None,
            used_up: None,
            at: now(),
            by: "a form of the client".to_owned(),
        }
    }

    /// Returns the name by which its record is found.
    fn name(&self) -> String {
        name_of(&self.server, &self.tool, self.call.as_ref(), self.session.as_deref())
    }

    /// Returns true if it covers no further call.
    pub fn has_ended(&self) -> bool {
        self.until <= now() || self.left == Some(0)
    }

    /// Returns true if no call by it can be under way any more.
    fn is_settled(&self) -> bool {
        self.until <= now() || self.used_up.is_some_and(|since| since + SETTLING.as_secs() <= now())
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
    /// Returns why it may not have ended, or that it had ended before, as a clause.
    pub fn revoke(&self, key: &Key) -> Result<(), String> {
        let ended = || "there is no such grant, or it has ended".to_owned();
        let taken = match wait_for_lease(&*self.0, key, PATIENCE, || false) {
            Err(Problem::Unknown | Problem::Expired) => return Err(ended()),
            taken => taken.map_err(|problem| unusable(&problem))?,
        };
        let had_ended = self.read(key).is_ok_and(|grant| grant.is_none());
        self.0.remove(key, Some(&taken.lease)).map_err(|problem| unusable(&problem))?;
        if had_ended { Err(ended()) } else { Ok(()) }
    }

    /// Returns for each call the grant that covers it now, in words, if all of them are made.
    fn covering(&self, principal: &str, session: &str, asked: &[Question]) -> Result<Vec<Option<String>>, String> {
        // The calls that each grant has left for the questions that follow.
        let mut left: HashMap<String, u32> = HashMap::new();
        let mut covering = Vec::with_capacity(asked.len());
        for asked in asked {
            covering.push(self.covered(principal, &Wanted::by(session, asked), &mut left)?);
        }
        Ok(covering)
    }

    fn covered(
        &self,
        principal: &str,
        wanted: &[Wanted],
        left: &mut HashMap<String, u32>,
    ) -> Result<Option<String>, String> {
        for wanted in wanted {
            for Summary { key, .. } in self.named(principal, wanted)? {
                let Some(grant) = self.read(&key)?.filter(|grant| wanted.is_covered_by(grant)) else { continue };
                let left = left.entry(key.handle.clone()).or_insert(grant.left.unwrap_or(u32::MAX));
                if *left > 0 {
                    *left -= u32::from(grant.left.is_some());
                    return Ok(Some(words(&key, &grant)));
                }
            }
        }
        Ok(None)
    }

    fn named(&self, principal: &str, wanted: &Wanted) -> Result<Vec<Summary>, String> {
        self.0.named(principal, &wanted.name()).map_err(|problem| unusable(&problem))
    }

    /// Reads a grant; returns `None` if it has ended.
    fn read(&self, key: &Key) -> Result<Option<Grant>, String> {
        match self.0.read(key, 0) {
            Err(Problem::Unknown | Problem::Expired) | Ok(None) => Ok(None),
            Ok(Some(read)) => Grant::decode(&read.text).map(|grant| Some(grant).filter(|grant| !grant.has_ended())),
            Err(problem) => Err(unusable(&problem)),
        }
    }

    /// Takes one call from a grant that covers it.
    fn take(&self, principal: &str, session: &str, asked: &Question) -> Result<Take, String> {
        for wanted in Wanted::by(session, asked) {
            for Summary { key, .. } in self.named(principal, &wanted)? {
                match self.count(&key, &wanted)? {
                    Take::Uncovered => {}
                    taken => return Ok(taken),
                }
            }
        }
        Ok(Take::Uncovered)
    }

    /// Counts a call of that grant, if it covers the call and no other process uses it.
    fn count(&self, key: &Key, wanted: &Wanted) -> Result<Take, String> {
        let lease = match self.0.lease(key, &handle()?) {
            Err(Problem::Unknown | Problem::Expired) => return Ok(Take::Uncovered),
            Err(Problem::Leased) => return Ok(Take::Busy),
            taken => taken.map_err(|problem| unusable(&problem))?,
        };
        let counted = self.count_under(key, &lease, wanted);
        // Without it the lease expires.
        let _ = self.0.release(key, &lease);
        counted.map_err(|problem| unusable(&problem))
    }

    fn count_under(&self, key: &Key, lease: &Lease, wanted: &Wanted) -> Result<Take, Problem> {
        let Some(read) = self.0.read(key, 0)? else { return Ok(Take::Uncovered) };
        let grant = Grant::decode(&read.text).map_err(Problem::Damaged)?;
        if grant.has_ended() {
            if grant.is_settled() {
                self.0.remove(key, Some(lease))?;
            }
            return Ok(Take::Uncovered);
        }
        if !wanted.is_covered_by(&grant) {
            return Ok(Take::Uncovered);
        }
        if let Some(left) = grant.left {
            let used_up = (left == 1).then(now);
            let counted = Grant { left: Some(left - 1), used_up, ..grant.clone() };
            self.0.write(key, lease, read.version, &counted.encode(), &[counted.name()])?;
        }
        Ok(Take::Taken(self.taken(key, &grant)))
    }

    fn taken(&self, key: &Key, grant: &Grant) -> TakenCall {
        let (by, until) = (words(key, grant), grant.until);
        let (grants, key) = (self.clone(), key.clone());
        TakenCall { by, holds: Arc::new(move || Ok(until > now() && grants.is_there(&key)?)) }
    }

    /// Returns whether a grant is still there. One that is used up is there for a while: its last calls may not have been
    /// sent yet, and it may be revoked until then.
    fn is_there(&self, key: &Key) -> Result<bool, String> {
        match self.0.read(key, 0) {
            Ok(_) => Ok(true),
            Err(Problem::Unknown | Problem::Expired) => Ok(false),
            Err(problem) => Err(unusable(&problem)),
        }
    }
}

/// The calls that a grant has to cover: all of a tool, those of one session, or one of them.
struct Wanted {
    server: Arc<str>,
    tool: Arc<str>,
    call: Option<GrantedCall>,
    session: Option<String>,
}

impl Wanted {
    /// Returns the kinds of grants that cover a call in a session, the narrower first.
    fn by(session: &str, asked: &Question) -> Vec<Wanted> {
        let wanted = |call, session| {
            let (server, tool) = (Arc::clone(&asked.server), Arc::clone(&asked.tool));
            Wanted { server, tool, call, session }
        };
        let call = GrantedCall { session: session.to_owned(), arguments: asked.arguments.clone() };
        let mut kinds = vec![wanted(Some(call), None)];
        // A decision about the tool in general was made without knowledge of these values.
        if !asked.is_guarded {
            kinds.push(wanted(None, Some(session.to_owned())));
            kinds.push(wanted(None, None));
        }
        kinds
    }

    fn name(&self) -> String {
        name_of(&self.server, &self.tool, self.call.as_ref(), self.session.as_deref())
    }

    fn is_covered_by(&self, grant: &Grant) -> bool {
        (&*grant.server, &*grant.tool, &grant.call, &grant.session)
            == (&*self.server, &*self.tool, &self.call, &self.session)
    }
}

/// Returns the name by which the record of a grant for such a call is found.
fn name_of(server: &str, tool: &str, call: Option<&GrantedCall>, session: Option<&str>) -> String {
    let mut covered = format!("{server}\n{tool}");
    if let Some(GrantedCall { session, arguments }) = call {
        covered.push_str(&format!("\n{session}\n{arguments}"));
    }
    if let Some(session) = session {
        covered.push_str(&format!("\n\n{session}"));
    }
    format!("{}{}", prefix(), sha256(covered.as_bytes()))
}

/// Names a grant, as a clause.
fn words(key: &Key, grant: &Grant) -> String {
    format!("grant {} covers it ({})", key.handle, grant.by)
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

impl Grants for SessionGrants {
    fn covering(&self, asked: &[Question]) -> Result<Vec<Option<String>>, String> {
        self.grants.covering(&self.principal, &self.session, asked)
    }

    fn take(&self, asked: &Question) -> Result<Take, String> {
        self.grants.take(&self.principal, &self.session, asked)
    }

    fn give(&self, asked: &Question, later: LaterCalls) -> Result<(), String> {
        let grant = Grant::of_later(later, (&asked.server, &asked.tool), asked.arguments.clone(), self.session.clone());
        self.grants.give(&self.principal, &grant).map(drop)
    }
}
