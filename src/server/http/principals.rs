//! The principals that may use the server over HTTP, with their tokens and allowances.

use std::collections::HashMap;
use std::fmt;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::server::admission::allowances::{Allowance, Allowances};
use crate::server::fields::kind;
use crate::server::identity::LOCAL;
use crate::server::secrets::Secrets;

use super::tokens;

/// Minimum length of a token: a shorter one could be found by brute force.
const SHORTEST: usize = 16;

/// Looks up an environment variable.
type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The principals and digests of their tokens; the tokens themselves are not kept.
#[derive(Clone, Default)]
pub struct Principals {
    credentials: Vec<Credential>,
    allowances: HashMap<String, Allowance>,
    /// The file that is reloaded when it changes.
    file: Option<TokensFile>,
    /// The digest of the text that was last read from it.
    text: [u8; 32],
    /// A description of how the permissions of the file expose its tokens, if they do.
    exposure: Option<String>,
    /// Collects the tokens that are read, so that they are redacted from all output.
    secrets: Secrets,
}

/// The digest of a token and its principal.
#[derive(Clone)]
struct Credential {
    digest: [u8; 32],
    principal: Arc<str>,
    is_of_file: bool,
    /// Cancelled when the token is revoked.
    revoked: CancellationToken,
}

#[derive(Clone)]
struct TokensFile {
    path: PathBuf,
    variables: Variables,
}

/// The authenticated principal of a request.
#[derive(Clone)]
pub(super) struct Known {
    /// The name of the principal.
    pub(super) principal: Arc<str>,
    /// Cancelled when its token is revoked.
    pub(super) revoked: CancellationToken,
}

impl Known {
    /// Returns the principal of all requests where no token is needed.
    pub(super) fn everybody() -> Known {
        Known { principal: LOCAL.into(), revoked: CancellationToken::new() }
    }
}

impl Principals {
    /// Reads a JSON object from names to tokens, such as `{"ann": "${ANN_TOKEN}"}`; `${…}` refers to an environment
    /// variable. Instead of a token, a value may be an object, `{"token": "…", "limits": {"memory": "64MiB"},
    /// "sessions": 100, "evaluations": 2, "requests_per_minute": 60}`, whose other fields form an [`Allowance`].
    ///
    /// # Errors
    /// Returns a sentence that describes what is wrong with the text. It never contains a token.
    pub fn read(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Principals, String> {
        Principals::read_concealing(text, variable, &Secrets::default())
    }

    /// Like [`Principals::read`], and adds the tokens to the secrets that are redacted.
    ///
    /// # Errors
    /// As for [`Principals::read`].
    pub fn read_concealing(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
        secrets: &Secrets,
    ) -> Result<Principals, String> {
        let mut principals = Principals { secrets: secrets.clone(), ..Principals::default() };
        principals.add_all(text, variable)?;
        if principals.is_empty() { Err(format!("{SHAPE}; it has no names")) } else { Ok(principals) }
    }

    /// Reads a file, which `serve_http` reloads when it changes. The tokens are added to the secrets that are redacted,
    /// now and on each reload.
    ///
    /// # Errors
    /// As for [`Principals::read`]; also if the file cannot be read, or if anyone other than its owner may write it.
    pub fn open(
        path: &Path,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        secrets: &Secrets,
    ) -> Result<Principals, String> {
        let text = tokens::read_private(path)?;
        let mut principals = Principals::read_concealing(&text, &variables, secrets)?;
        principals.exposure = tokens::exposure(path, &text);
        principals.credentials.iter_mut().for_each(|credential| credential.is_of_file = true);
        principals.text = digest(&text);
        principals.file = Some(TokensFile { path: path.to_owned(), variables: Arc::new(variables) });
        Ok(principals)
    }

    /// Reloads the file and returns the updated principals, or `None` if the file has not changed. Tokens that are
    /// still in the file stay valid. A file without names leaves none of its principals.
    ///
    /// # Errors
    /// As for [`Principals::open`].
    pub(super) fn read_again(&self) -> Result<Option<Principals>, String> {
        let Some(file) = &self.file else { return Ok(None) };
        let text = tokens::read_private(&file.path)?;
        let text_digest = digest(&text);
        if text_digest == self.text {
            return Ok(None);
        }
        let mut again = Principals {
            file: self.file.clone(),
            text: text_digest,
            secrets: self.secrets.clone(),
            ..Principals::default()
        };
        again.add_all(&text, &*file.variables)?;
        again.exposure = tokens::exposure(&file.path, &text);
        for credential in &mut again.credentials {
            credential.is_of_file = true;
            if let Some(before) = self.credentials.iter().find(|before| before.is_same(credential)) {
                credential.revoked = before.revoked.clone();
            }
        }
        for added in self.credentials.iter().filter(|credential| !credential.is_of_file) {
            let allowance = self.allowances.get(&*added.principal).cloned().unwrap_or_default();
            again.insert(added.clone(), allowance)?;
        }
        Ok(Some(again))
    }

    /// Revokes the tokens that `others` does not contain.
    pub(super) fn revoke_all_but(&self, others: &Principals) {
        for credential in &self.credentials {
            if !others.credentials.iter().any(|other| other.is_same(credential)) {
                credential.revoked.cancel();
            }
        }
    }

    /// Returns how the tokens are exposed and a remedy, if others may read the file.
    pub(super) fn exposure(&self) -> Option<&str> {
        self.exposure.as_deref()
    }

    /// Returns the file that is reloaded, if any.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| &*file.path)
    }

    fn add_all(&mut self, text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
        let Fields(fields) = serde_json::from_str(text).map_err(|problem| {
            // Other error messages may contain part of the text.
            let again = problem.to_string().starts_with(TWICE);
            let why = if again { format!("; {TWICE}") } else { String::new() };
            format!("{SHAPE}{why}; line {}", problem.line())
        })?;
        for (name, value) in fields {
            let (token, allowance) = match &value {
                Value::String(token) => (token, Allowance::default()),
                Value::Object(fields) => {
                    let allowance =
                        Allowance::read(fields, &["token"]).map_err(|problem| format!("`{name}`: {problem}"))?;
                    let Some(Value::String(token)) = fields.get("token") else {
                        return Err(format!("`{name}`: expected `token`, a string"));
                    };
                    (token, allowance)
                }
                other => return Err(format!("{SHAPE}; `{name}` is {}", kind(other))),
            };
            let token = crate::server::config::expand(token, variable)
                .map_err(|problem| format!("the token of `{name}`: {problem}"))?;
            self.secrets.add([token.trim()]);
            self.add_with(&name, token.trim(), allowance)?;
        }
        Ok(())
    }

    /// Adds a principal with the default allowance.
    ///
    /// # Errors
    /// As for [`Principals::add_with`].
    pub fn add(&mut self, name: &str, token: &str) -> Result<(), String> {
        self.add_with(name, token, Allowance::default())
    }

    /// Adds a principal.
    ///
    /// # Errors
    /// Returns an error if the name is empty, if the token is too short or has characters that are not allowed, or if
    /// another principal has the same token.
    pub fn add_with(&mut self, name: &str, token: &str, allowance: Allowance) -> Result<(), String> {
        if name.is_empty() {
            return Err("a principal needs a name".to_owned());
        }
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the token of `{name}` must have at least {SHORTEST} characters, printable ASCII without spaces; \
                 `openssl rand -hex 24` makes one"
            ));
        }
        let (principal, digest) = (name.into(), digest(token));
        self.insert(Credential { digest, principal, is_of_file: false, revoked: CancellationToken::new() }, allowance)
    }

    fn insert(&mut self, credential: Credential, allowance: Allowance) -> Result<(), String> {
        if let Some(other) = self.credentials.iter().find(|other| other.digest == credential.digest) {
            return Err(format!("`{}` and `{}` have the same token", credential.principal, other.principal));
        }
        self.allowances.insert(credential.principal.to_string(), allowance);
        self.credentials.push(credential);
        Ok(())
    }

    /// True if there are no principals, so that no token is needed.
    pub fn is_empty(&self) -> bool {
        self.credentials.is_empty()
    }

    /// True if a principal has that name.
    pub(super) fn has(&self, principal: &str) -> bool {
        self.allowances.contains_key(principal)
    }

    /// Returns the allowances of the principals, by name.
    pub(super) fn each_allowance(&self) -> HashMap<String, Allowance> {
        self.allowances.clone()
    }

    /// Returns the allowances of the principals, which can be replaced when the file changes.
    pub(super) fn allowances(&self) -> Arc<Allowances> {
        Arc::new(Allowances::of_each(self.each_allowance()))
    }

    /// True if a principal of that name has a token with such a digest.
    pub(super) fn has_token(&self, principal: &str, is_such: impl Fn(&[u8; 32]) -> bool) -> bool {
        let own = self.credentials.iter().filter(|credential| &*credential.principal == principal);
        own.fold(false, |found, credential| found | is_such(&credential.digest))
    }

    /// Returns the names of two principals, one of these and one of the others, that have the same token, if there are
    /// any.
    fn sharing<'p>(&'p self, others: &'p Principals) -> Option<(&'p str, &'p str)> {
        self.credentials.iter().find_map(|credential| {
            let other = others.credentials.iter().find(|other| other.digest == credential.digest)?;
            Some((&*credential.principal, &*other.principal))
        })
    }

    /// Returns why these must not be the operators of a server with those principals, or `None` if they may.
    pub(super) fn objection_to_operators(&self, principals: &Principals) -> Option<String> {
        if let Some((operator, principal)) = self.sharing(principals) {
            return Some(format!(
                "the operator `{operator}` has the token of the principal `{principal}`: make another one"
            ));
        }
        let bounded = self.allowances.iter().find(|(_, allowance)| **allowance != Allowance::default());
        bounded.map(|(operator, _)| format!("`{operator}`: expected a token alone; an operator has no bounds"))
    }

    /// Finds the principal of a token. Compares all digests in full, so that the timing reveals nothing about any
    /// token.
    pub(super) fn find(&self, token: &str) -> Option<Known> {
        let digest = digest(token);
        let mut found = None;
        for credential in &self.credentials {
            if are_equal(&credential.digest, &digest) {
                found = Some(credential);
            }
        }
        found.map(|credential| Known {
            principal: Arc::clone(&credential.principal),
            revoked: credential.revoked.clone(),
        })
    }
}

impl Credential {
    /// True if both are the same token of the same principal.
    fn is_same(&self, other: &Credential) -> bool {
        self.principal == other.principal && self.digest == other.digest
    }
}

/// Compares in constant time.
fn are_equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = one.iter().zip(other).fold(0, |difference, (one, other)| black_box(difference | (one ^ other)));
    difference == 0
}

pub(super) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The expected format of the text from which principals are read.
const SHAPE: &str = "expected a JSON object from names to tokens, such as `{\"ann\": \"${ANN_TOKEN}\"}`";

/// The prefix of the error message about a duplicate name.
const TWICE: &str = "a name appears twice";

/// The fields of a JSON object without duplicate names: if a name had two tokens, one would not be revoked with the
/// other.
struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields: Vec<(String, Value)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if fields.iter().any(|(known, _)| *known == name) {
                        return Err(serde::de::Error::custom(TWICE));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_alone_or_with_what_its_principal_may_have() {
        let text = r#"{"ann": "${ANN}", "bob": {"token": "bob-bob-bob-bob-bob", "sessions": 5}}"#;
        let read = Principals::read(text, &|name| (name == "ANN").then(|| "ann-ann-ann-ann-ann".to_owned()));
        let principals = read.expect("it is right");
        let name = |token| principals.find(token).map(|known| known.principal.to_string());
        assert_eq!(name("ann-ann-ann-ann-ann").as_deref(), Some("ann"));
        assert_eq!(name("bob-bob-bob-bob-bob").as_deref(), Some("bob"));
        assert_eq!(name("bob-bob-bob-bob-boc"), None);
        let allowances = principals.allowances();
        assert_eq!((allowances.of("ann").sessions, allowances.of("bob").sessions), (None, Some(5)));
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
        assert_eq!(wrong(r#"{"ann": {"sessions": 1}}"#), "`ann`: expected `token`, a string");
        assert!(wrong(r#"{"ann": {"token": ["secret-secret-secret"]}}"#).starts_with("`ann`: expected `token`"));
        assert!(wrong(r#"{"ann": ["secret-secret-secret"]}"#).ends_with("`ann` is an array of 1"));
        assert!(
            wrong(r#"{"ann": "secret-secret-secret", "ann": "secret-secret-other-secret"}"#)
                .ends_with("a name appears twice; line 1")
        );
        assert!(wrong(r#"["secret-secret-secret"]"#).starts_with("expected a JSON object from names to tokens"));
        assert!(
            wrong(r#"{"ann": "secret-secret-secret", "bob": "secret-secret-secret"}"#).contains("have the same token")
        );
    }
}
