//! The secrets of one server's configuration.

use std::collections::BTreeMap;
use std::fmt;

use super::{Action, Endpoint};
use crate::server::secrets::names_a_secret;

/// Texts that are shown to nobody: credentials of a server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Concealed(Vec<String>);

impl fmt::Debug for Concealed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} secrets", self.0.len())
    }
}

impl Concealed {
    /// What is secret in a server's configuration: what came from a file or an input, variables and headers with the
    /// name of a secret, and what a URL says of a user or gives under such a name.
    pub(super) fn of(endpoint: &Result<Endpoint, String>, expanded: Vec<String>) -> Concealed {
        let mut texts = expanded;
        match endpoint {
            Ok(Endpoint::Process { environment, .. }) => texts.extend(named(environment)),
            Ok(Endpoint::Http { url, headers, .. }) => {
                for value in named(headers) {
                    // `Bearer TOKEN`: the token alone is as secret.
                    texts.extend(value.split_once(' ').map(|(_, rest)| rest.trim().to_owned()));
                    texts.push(value);
                }
                if let Ok(url) = reqwest::Url::parse(url) {
                    texts.extend(url.password().map(str::to_owned));
                    let pairs = url.query_pairs().filter(|(name, _)| names_a_secret(name));
                    texts.extend(pairs.map(|(_, value)| value.into_owned()));
                }
            }
            Ok(Endpoint::Local(_) | Endpoint::Functions(_)) | Err(_) => {}
        }
        Concealed(texts)
    }

    /// Adds what is secret of a tool without a server.
    pub(super) fn add(&mut self, action: Option<&Action>, expanded: Vec<String>) {
        self.0.extend(expanded);
        match action {
            Some(Action::Command { environment, .. }) => self.0.extend(named(environment)),
            Some(Action::Request { headers, query, .. }) => {
                let named = headers.iter().chain(query).filter(|(name, _)| names_a_secret(name));
                self.0.extend(named.filter_map(|(_, value)| value.plain()));
            }
            None => {}
        }
    }

    /// The texts.
    pub(in crate::server) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

fn named(table: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    table.iter().filter(|(name, _)| names_a_secret(name)).map(|(_, value)| value.clone())
}
