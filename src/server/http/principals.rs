//! Who may use the server over HTTP: a token each.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// The principal of everybody, where nobody needs a token: that of `serve` on standard input and output.
pub(in crate::server) const LOCAL: &str = "local";

/// The shortest token that is taken: what is shorter can be tried out.
const SHORTEST: usize = 16;

/// The principals and their tokens, of which only digests are kept.
#[derive(Clone, Default)]
pub struct Principals {
    by_digest: HashMap<[u8; 32], String>,
}

impl Principals {
    /// Reads a JSON object from names to tokens, such as `{"ann": "${ANN_TOKEN}"}`; `${…}` is a variable of the
    /// environment.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text. It never has a token in it.
    pub fn read(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Principals, String> {
        let shape = "expected a JSON object from names to tokens, such as `{\"ann\": \"${ANN_TOKEN}\"}`";
        let tokens: HashMap<String, String> =
            serde_json::from_str(text).map_err(|problem| format!("{shape}; line {}", problem.line()))?;
        let mut principals = Principals::default();
        for (name, token) in tokens {
            let token = crate::server::config::expand(&token, variable)
                .map_err(|problem| format!("the token of `{name}`: {problem}"))?;
            principals.add(&name, token.trim())?;
        }
        if principals.is_empty() { Err(format!("{shape}; it has no names")) } else { Ok(principals) }
    }

    /// Adds a principal.
    ///
    /// # Errors
    /// When the token is too short, or another principal's.
    pub fn add(&mut self, name: &str, token: &str) -> Result<(), String> {
        if name.is_empty() {
            return Err("a principal needs a name".to_owned());
        }
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the token of `{name}` must have at least {SHORTEST} characters, printable ones of ASCII without blanks; `openssl rand -hex 24` makes one"
            ));
        }
        match self.by_digest.insert(digest(token), name.to_owned()) {
            None => Ok(()),
            Some(other) => Err(format!("`{name}` and `{other}` have the same token")),
        }
    }

    /// True when nobody needs a token.
    pub fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }

    /// Whose token that is. Digests are compared, so that the time says nothing about the token.
    pub(super) fn find(&self, token: &str) -> Option<&str> {
        self.by_digest.get(&digest(token)).map(String::as_str)
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
