//! Sign-ins of operators, each a record of the store: all instances know it, and it ends for all of them.
//!
//! The cookie of a browser is a random key. The store holds its hash only, so that a copy of the store opens nothing, and
//! a proof of the operator's token, so that a sign-in ends when the token is revoked.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use governor::{DefaultKeyedRateLimiter, Quota};
use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::server::http::principals::digest;
use crate::server::http::tokens::Directory;
use crate::server::identity::{hexadecimal, sha256};
use crate::server::system::random;
use crate::store::{Key, OWN, Problem, Store, Summary};

/// The time after which an operator has to sign in again.
pub(super) const LASTS: Duration = Duration::from_secs(8 * 60 * 60);

/// Maximum number of sign-ins of one operator; a further one ends the oldest.
const MOST: usize = 20;

/// Maximum number of attempts to sign in per minute from one address; as many may arrive at once.
const ATTEMPTS: NonZeroU32 = NonZeroU32::new(10).expect("it is not 0");

/// Number of addresses above which those without recent attempts are dropped.
const REMEMBERED: usize = 10_000;

/// The name of the cookie.
const COOKIE: &str = "lispbox-approvals";

/// The sign-ins of the operators.
pub(super) struct SignIns {
    store: Arc<dyn Store>,
    operators: Arc<Directory>,
    /// The principals, whose tokens never open the page.
    principals: Arc<Directory>,
    attempts: DefaultKeyedRateLimiter<IpAddr>,
}

/// An operator who has signed in.
#[derive(Clone)]
pub(super) struct SignedIn {
    /// The name of the operator.
    pub(super) operator: String,
    /// The secret that each form of the page sends back.
    pub(super) form_key: String,
}

/// The record of a sign-in.
#[derive(Serialize, Deserialize)]
struct Record {
    operator: String,
    /// The hash of the cookie with the digest of the token.
    proof: String,
    /// The time at which it expires, in seconds since 1970.
    until: u64,
}

impl SignIns {
    pub(super) fn new(store: Arc<dyn Store>, operators: Arc<Directory>, principals: Arc<Directory>) -> SignIns {
        SignIns { store, operators, principals, attempts: DefaultKeyedRateLimiter::keyed(Quota::per_minute(ATTEMPTS)) }
    }

    /// Counts an attempt to sign in; returns false if there were too many from that address.
    pub(super) fn may_try(&self, address: IpAddr) -> bool {
        if self.attempts.len() > REMEMBERED {
            self.attempts.retain_recent();
        }
        self.attempts.check_key(&address).is_ok()
    }

    /// Signs an operator in; returns the name and the value of the cookie, or `None` if no operator has the token. Blocks.
    ///
    /// # Errors
    /// Returns a message if the store cannot be used, or if the system has no randomness.
    pub(super) fn begin(&self, token: &str) -> Result<Option<(String, String)>, String> {
        let Some(known) = self.operators.find(token) else { return Ok(None) };
        let operator = known.principal.to_string();
        if self.principals.find(token).is_some() {
            tracing::error!(operator, "a principal has the token of this operator, who therefore cannot sign in");
            return Ok(None);
        }
        let cookie = hexadecimal(&random::key()?);
        let proof = proof(&cookie, &digest(token));
        let record = Record { operator, proof, until: now() + LASTS.as_secs() };
        let text = serde_json::to_string(&record).map_err(|problem| problem.to_string())?;
        let names = [mark(), mark_of(&record.operator)];
        self.store.create(&key(&cookie), &text, &names).map_err(|problem| problem.to_string())?;
        self.drop_old(&record.operator);
        Ok(Some((record.operator, cookie)))
    }

    /// Returns the operator of a request; `None` if its sign-in is unknown or has ended. Blocks.
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub(super) fn find(&self, cookie: Option<&str>) -> Result<Option<SignedIn>, Problem> {
        let Some(cookie) = cookie else { return Ok(None) };
        let text = match self.store.read(&key(cookie), 0) {
            Ok(stored) => stored.map(|stored| stored.text).unwrap_or_default(),
            Err(Problem::Unknown | Problem::Expired) => return Ok(None),
            Err(problem) => return Err(problem),
        };
        let Ok(record) = serde_json::from_str::<Record>(&text) else { return Ok(None) };
        let holds = self.operators.has_token(&record.operator, |digest| proof(cookie, digest) == record.proof);
        if now() >= record.until || !holds {
            return Ok(None);
        }
        let form_key = sha256(format!("form\n{cookie}").as_bytes());
        Ok(Some(SignedIn { operator: record.operator, form_key }))
    }

    /// Ends a sign-in, for all instances. Blocks.
    ///
    /// # Errors
    /// Returns the problem of the store.
    pub(super) fn end(&self, cookie: &str) -> Result<(), Problem> {
        match self.store.remove(&key(cookie), None) {
            Err(Problem::Unknown | Problem::Expired) => Ok(()),
            removed => removed.map(drop),
        }
    }

    /// Removes the sign-ins that have expired, and the oldest ones of an operator who has too many.
    fn drop_old(&self, operator: &str) {
        let Ok(listed) = self.store.list() else { return };
        let listed = listed.into_iter().filter(|summary| summary.names.contains(&mark()));
        let is_over = |summary: &Summary| summary.created.elapsed().is_ok_and(|age| age > LASTS);
        let (over, kept): (Vec<Summary>, Vec<Summary>) = listed.partition(is_over);
        let mut own: Vec<Summary> = kept.into_iter().filter(|kept| kept.names.contains(&mark_of(operator))).collect();
        own.sort_by_key(|summary| std::cmp::Reverse(summary.created));
        for summary in over.iter().chain(own.iter().skip(MOST)) {
            // Otherwise it expires with the sessions that are no longer used.
            let _ = self.store.remove(&summary.key, None);
        }
    }
}

/// The name by which the record of a sign-in is told from others.
fn mark() -> String {
    format!("{OWN}sign-in")
}

fn mark_of(operator: &str) -> String {
    format!("{OWN}sign-in-of/{operator}")
}

/// The key of a record. No principal has the empty name.
fn key(cookie: &str) -> Key {
    Key { principal: String::new(), handle: format!("sign-in-{}", sha256(format!("key\n{cookie}").as_bytes())) }
}

fn proof(cookie: &str, token: &[u8; 32]) -> String {
    let mut hash = Sha256::new();
    hash.update(b"proof\n");
    hash.update(cookie.as_bytes());
    hash.update(token);
    hexadecimal(&hash.finalize())
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the sign-in that a request names.
pub(super) fn cookie_of(headers: &HeaderMap) -> Option<String> {
    let values = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, cookie) = pairs.find(|(name, _)| *name == COOKIE)?;
    let is_key = cookie.len() == 64 && cookie.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_key.then(|| cookie.to_owned())
}

/// Returns the value of `Set-Cookie` that makes a browser keep a sign-in, or forget it if there is none.
pub(super) fn set_cookie(cookie: Option<&str>, is_secure: bool) -> String {
    let age = if cookie.is_some() { LASTS.as_secs() } else { 0 };
    let secure = if is_secure { "; Secure" } else { "" };
    let value = cookie.unwrap_or_default();
    format!("{COOKIE}={value}; Path=/approvals; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others() {
        let of = |value: String| {
            let pairs = [(header::COOKIE, http::HeaderValue::try_from(value).expect("a value"))];
            cookie_of(&pairs.into_iter().collect())
        };
        let key = "0f".repeat(32);
        assert_eq!(of(format!("a=b; {COOKIE}={key}; c")), Some(key.clone()));
        for wrong in [format!("{COOKIE}x={key}"), format!("{COOKIE}={key}0"), format!("{COOKIE}="), "a=b".to_owned()] {
            assert_eq!(of(wrong.clone()), None, "{wrong}");
        }
    }
}
