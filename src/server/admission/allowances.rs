//! Limits that the operator sets for single principals, beside the server's limits for all.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use serde_json::{Map, Value};

use crate::lang::Limits;
use crate::lang::internal::closest;
use crate::server::fields::kind;

/// The allowance of one principal. A field that is not set leaves the general limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// The maximum limits that its calls may request, each in a form that [`Limits::set`] accepts.
    pub(in crate::server) limits: Vec<(String, String)>,
    /// Maximum number of its sessions.
    pub sessions: Option<usize>,
    /// Maximum number of its concurrent evaluations; further ones wait.
    pub evaluations: Option<usize>,
    /// Maximum number of its requests per minute.
    pub requests_per_minute: Option<NonZeroU32>,
}

/// The keys of an allowance in a file.
pub(in crate::server) const KEYS: [&str; 4] = ["limits", "sessions", "evaluations", "requests_per_minute"];

impl Allowance {
    /// Sets the maximum that its calls may request of a limit; the server's own maximum still applies.
    ///
    /// # Errors
    /// Fails like [`Limits::set`].
    pub fn set_limit(&mut self, name: &str, text: &str) -> Result<(), String> {
        Limits::default().set(name, text)?;
        self.limits.push((name.to_owned(), text.to_owned()));
        Ok(())
    }

    /// Reads an allowance from the fields of a JSON object. The fields in `others` are not part of the allowance.
    ///
    /// # Errors
    /// Returns which field is wrong, what was expected and what was found.
    pub(in crate::server) fn read(fields: &Map<String, Value>, others: &[&str]) -> Result<Allowance, String> {
        let known: Vec<&str> = others.iter().copied().chain(KEYS).collect();
        if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
            let hint = closest(name, known.iter().copied()).map(|close| format!("; did you mean `{close}`?"));
            return Err(format!(
                "there is no `{name}`; a principal has `{}`{}",
                known.join("`, `"),
                hint.unwrap_or_default()
            ));
        }
        let count = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().and_then(|count| u32::try_from(count).ok()).and_then(NonZeroU32::new) {
                Some(count) => Ok(Some(count)),
                None => Err(format!("`{name}`: expected a count from 1, got {}", kind(value))),
            },
        };
        let size = |name: &str| Ok::<_, String>(count(name)?.map(|count| count.get() as usize));
        let mut allowance = Allowance {
            limits: Vec::new(),
            sessions: size("sessions")?,
            evaluations: size("evaluations")?,
            requests_per_minute: count("requests_per_minute")?,
        };
        match fields.get("limits") {
            None | Some(Value::Null) => {}
            Some(Value::Object(limits)) => {
                for (name, value) in limits {
                    let text = match value {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    allowance.set_limit(name, &text).map_err(|problem| format!("`limits`: {problem}"))?;
                }
            }
            Some(other) => {
                let expected = r#"an object such as `{"memory": "64MiB"}`"#;
                return Err(format!("`limits`: expected {expected}, got {}", kind(other)));
            }
        }
        Ok(allowance)
    }

    /// Returns the default and the maximum limits of a call, within those of the server.
    pub(in crate::server) fn within(&self, usual: &Limits, most: &Limits) -> (Limits, Limits) {
        let mut own = most.clone();
        for (name, text) in &self.limits {
            own.set(name, text).expect("`set_limit` tried it");
        }
        own.clamp_to(most);
        let mut usual = usual.clone();
        usual.clamp_to(&own);
        (usual, own)
    }
}

/// The allowances of all principals, which may change while the server runs.
#[derive(Debug, Default)]
pub(in crate::server) struct Allowances(RwLock<HashMap<String, Arc<Allowance>>>);

impl Allowances {
    /// Creates the allowances of those principals.
    pub(in crate::server) fn of_each(each: HashMap<String, Allowance>) -> Allowances {
        let allowances = Allowances::default();
        allowances.replace(each);
        allowances
    }

    /// Replaces all allowances.
    pub(in crate::server) fn replace(&self, each: HashMap<String, Allowance>) {
        let each = each.into_iter().map(|(name, allowance)| (name, Arc::new(allowance))).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = each;
    }

    /// Sets the allowance of one principal.
    #[cfg(test)]
    pub(in crate::server) fn insert(&mut self, principal: &str, allowance: Allowance) {
        let known = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        known.insert(principal.to_owned(), Arc::new(allowance));
    }

    fn known(&self) -> RwLockReadGuard<'_, HashMap<String, Arc<Allowance>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the allowance of a principal, if the principal is known.
    pub(in crate::server) fn find(&self, principal: &str) -> Option<Arc<Allowance>> {
        self.known().get(principal).cloned()
    }

    /// Returns the allowance of a principal; the default for an unknown one.
    pub(in crate::server) fn of(&self, principal: &str) -> Arc<Allowance> {
        self.find(principal).unwrap_or_default()
    }

    /// True if there may be several principals, which compete for resources.
    pub(in crate::server) fn are_of_several(&self) -> bool {
        self.known().len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<Allowance, String> {
        let Value::Object(fields) = value else { panic!("an object") };
        Allowance::read(&fields, &["token"])
    }

    #[test]
    fn what_a_principal_may_have_is_within_what_the_server_allows() {
        let allowance =
            read(json!({"token": "x", "limits": {"fuel": 1e6, "memory": "64GiB"}, "sessions": 3, "evaluations": null}))
                .expect("it is right");
        assert_eq!((allowance.sessions, allowance.evaluations, allowance.requests_per_minute), (Some(3), None, None));
        let server = Limits { fuel: 5_000_000, ..Limits::default() };
        let (usual, most) = allowance.within(&server, &server);
        assert_eq!((usual.fuel, most.fuel), (1_000_000, 1_000_000));
        assert_eq!(most.memory, server.memory);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            (
                json!({"session": 3}),
                "there is no `session`; a principal has `token`, `limits`, `sessions`, `evaluations`, `requests_per_minute`; did you mean `sessions`?",
            ),
            (json!({"sessions": 0}), "`sessions`: expected a count from 1, got the number `0`"),
            (json!({"evaluations": "many"}), "`evaluations`: expected a count from 1, got the string \"many\""),
            (
                json!({"requests_per_minute": 1.5}),
                "`requests_per_minute`: expected a count from 1, got the number `1.5`",
            ),
            (
                json!({"limits": 5}),
                "`limits`: expected an object such as `{\"memory\": \"64MiB\"}`, got the number `5`",
            ),
            (json!({"limits": {"fuel": []}}), "`limits`: limit `fuel` takes a count such as `1000` or `1e7`, not `[]`"),
        ];
        for (value, message) in cases {
            assert_eq!(read(value).expect_err("it is wrong"), message);
        }
        assert!(read(json!({"limits": {"fule": 5}})).expect_err("it is wrong").ends_with("Did you mean fuel?"));
    }
}
