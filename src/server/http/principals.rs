//! Who may use the server over HTTP: a token each, and what it may have.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::server::allowances::{Allowance, Allowances};
use crate::server::config::kind;

/// The principal of everybody, where nobody needs a token: that of `serve` on standard input and output.
pub(in crate::server) const LOCAL: &str = "local";

/// The shortest token that is taken: what is shorter can be tried out.
const SHORTEST: usize = 16;

/// The principals and their tokens, of which only digests are kept.
#[derive(Clone, Default)]
pub struct Principals {
    by_digest: HashMap<[u8; 32], String>,
    allowances: Allowances,
}

impl Principals {
    /// Reads a JSON object from names to tokens, such as `{"ann": "${ANN_TOKEN}"}`; `${…}` is a variable of the
    /// environment. In place of a token may stand an object, `{"token": "…", "limits": {"memory": "64MiB"}, "sessions":
    /// 100, "evaluations": 2, "requests_per_minute": 60}`, all but the token as an [`Allowance`].
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text. It never has a token in it.
    pub fn read(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Principals, String> {
        let shape = "expected a JSON object from names to tokens, such as `{\"ann\": \"${ANN_TOKEN}\"}`";
        let read: Map<String, Value> =
            serde_json::from_str(text).map_err(|problem| format!("{shape}; line {}", problem.line()))?;
        let mut principals = Principals::default();
        for (name, value) in read {
            let (token, allowance) = match &value {
                Value::String(token) => (token, Allowance::default()),
                Value::Object(fields) => {
                    let allowance =
                        Allowance::read(fields, &["token"]).map_err(|problem| format!("`{name}`: {problem}"))?;
                    let Some(Value::String(token)) = fields.get("token") else {
                        return Err(format!("`{name}`: expected `token`, a text"));
                    };
                    (token, allowance)
                }
                other => return Err(format!("{shape}; `{name}` is {}", kind(other))),
            };
            let token = crate::server::config::expand(token, variable)
                .map_err(|problem| format!("the token of `{name}`: {problem}"))?;
            principals.add_with(&name, token.trim(), allowance)?;
        }
        if principals.is_empty() { Err(format!("{shape}; it has no names")) } else { Ok(principals) }
    }

    /// Adds a principal that may have whatever is there.
    ///
    /// # Errors
    /// As [`Principals::add_with`].
    pub fn add(&mut self, name: &str, token: &str) -> Result<(), String> {
        self.add_with(name, token, Allowance::default())
    }

    /// Adds a principal.
    ///
    /// # Errors
    /// When the token is too short, or another principal's.
    pub fn add_with(&mut self, name: &str, token: &str, allowance: Allowance) -> Result<(), String> {
        if name.is_empty() {
            return Err("a principal needs a name".to_owned());
        }
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the token of `{name}` must have at least {SHORTEST} characters, printable ones of ASCII without blanks; `openssl rand -hex 24` makes one"
            ));
        }
        match self.by_digest.insert(digest(token), name.to_owned()) {
            None => {
                self.allowances.insert(name, allowance);
                Ok(())
            }
            Some(other) => Err(format!("`{name}` and `{other}` have the same token")),
        }
    }

    /// True when nobody needs a token.
    pub fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }

    /// What each of them may have.
    pub(super) fn allowances(&self) -> Arc<Allowances> {
        Arc::new(self.allowances.clone())
    }

    /// Whose token that is. Digests are compared, so that the time says nothing about the token.
    pub(super) fn find(&self, token: &str) -> Option<&str> {
        self.by_digest.get(&digest(token)).map(String::as_str)
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_alone_or_with_what_its_principal_may_have() {
        let text = r#"{"ann": "${ANN}", "bob": {"token": "bob-bob-bob-bob-bob", "sessions": 5}}"#;
        let read = Principals::read(text, &|name| (name == "ANN").then(|| "ann-ann-ann-ann-ann".to_owned()));
        let principals = read.expect("it is right");
        assert_eq!(principals.find("ann-ann-ann-ann-ann"), Some("ann"));
        assert_eq!(principals.find("bob-bob-bob-bob-bob"), Some("bob"));
        assert_eq!(
            (principals.allowances.of("ann").sessions, principals.allowances.of("bob").sessions),
            (None, Some(5))
        );
    }

    #[test]
    fn what_is_wrong_is_said_without_a_token() {
        let wrong = |text: &str| {
            let message = Principals::read(text, &|_| None).err().expect("it is wrong");
            assert!(!message.contains("secret"), "{message}");
            message
        };
        assert!(
            wrong(r#"{"ann": {"token": "secret-secret-secret", "evaluation": 1}}"#)
                .ends_with("did you mean `evaluations`?")
        );
        assert_eq!(wrong(r#"{"ann": {"sessions": 1}}"#), "`ann`: expected `token`, a text");
        assert!(wrong(r#"{"ann": {"token": ["secret-secret-secret"]}}"#).starts_with("`ann`: expected `token`"));
        assert!(wrong(r#"{"ann": ["secret-secret-secret"]}"#).ends_with("`ann` is an array of 1"));
        assert!(wrong(r#"["secret-secret-secret"]"#).starts_with("expected a JSON object from names to tokens"));
        assert!(
            wrong(r#"{"ann": "secret-secret-secret", "bob": "secret-secret-secret"}"#).contains("have the same token")
        );
    }
}
