//! The secrets in the configuration of one server.

use std::collections::BTreeMap;
use std::fmt;

use crate::server::secrets::{
    behind_option, credentials_in, is_path, is_redactable, is_secret_variable, names_a_secret,
};

use super::{Action, Endpoint};

/// The credentials of a server, each with its place in the configuration. The texts are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Concealed(Vec<Secret>);

/// A secret text.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret {
    /// Its place, such as `env.TOKEN`, `args[2]` or `${file:key}`.
    pub(super) place: String,
    pub(super) text: String,
}

impl fmt::Debug for Concealed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} secrets", self.0.len())
    }
}

impl Concealed {
    /// Collects the secrets in the configuration of a server: referenced files, inputs and variables, values of
    /// variables, headers, options and parameters with the name of a secret, and text that looks like a credential in
    /// any other value.
    pub(super) fn of(endpoint: &Result<Endpoint, String>, expanded: Vec<Secret>) -> Concealed {
        let mut concealed = Concealed(expanded);
        match endpoint {
            Ok(Endpoint::Process { command, arguments, environment, .. }) => {
                concealed.add_credentials("command", command);
                concealed.add_table("env", environment);
                concealed.add_words(arguments.iter().map(String::as_str));
            }
            Ok(Endpoint::Http { url, headers, .. }) => {
                concealed.add_table("headers", headers);
                concealed.add_credentials("url", url);
            }
            Ok(Endpoint::Local(_) | Endpoint::Functions(_)) | Err(_) => {}
        }
        concealed
    }

    /// Adds the secrets of a tool without a server.
    pub(super) fn add(&mut self, action: Option<&Action>, expanded: Vec<Secret>) {
        self.0.extend(expanded);
        match action {
            Some(Action::Command { words, environment, .. }) => {
                self.add_table("env", environment);
                let words: Vec<String> = words
                    .iter()
                    .flat_map(|words| &words.templates)
                    .map(|word| word.plain().unwrap_or_default())
                    .collect();
                self.add_words(words.iter().map(String::as_str));
            }
            Some(Action::Request { url, headers, query, .. }) => {
                url.texts().for_each(|text| self.add_credentials("url", text));
                for (place, templates) in [("headers", headers), ("query", query)] {
                    let plain = templates.iter().filter_map(|(name, value)| Some((name.clone(), value.plain()?)));
                    self.add_table(place, &plain.collect());
                    for text in templates.iter().flat_map(|(_, template)| template.texts()) {
                        self.add_credentials(place, text);
                    }
                }
            }
            None => {}
        }
    }

    fn push(&mut self, place: &str, text: &str) {
        self.0.push(Secret { place: place.to_owned(), text: text.to_owned() });
    }

    /// Adds the values of a table with the name of a secret, and the credentials in the other values.
    fn add_table(&mut self, place: &str, table: &BTreeMap<String, String>) {
        for (name, value) in table {
            let is_secret = if place == "env" { is_secret_variable(name, value) } else { names_a_secret(name) };
            let place = format!("{place}.{name}");
            if is_secret {
                self.push(&place, value);
                // `Bearer TOKEN`: the token alone is secret as well.
                if let Some((_, rest)) = value.split_once(' ') {
                    self.push(&place, rest);
                }
            }
            self.add_credentials(&place, value);
        }
    }

    /// Adds the words of a command that follow an option with the name of a secret, and the credentials in any word.
    fn add_words<'w>(&mut self, words: impl Iterator<Item = &'w str>) {
        let mut before = "";
        for (index, word) in words.enumerate() {
            let place = format!("args[{index}]");
            for credential in behind_option(before, word) {
                self.push(&place, &credential);
            }
            self.add_credentials(&place, word);
            before = word;
        }
    }

    fn add_credentials(&mut self, place: &str, text: &str) {
        for credential in credentials_in(text) {
            self.push(place, &credential);
        }
    }

    /// Returns the secret texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|secret| secret.text.as_str())
    }

    /// Returns the places of redactable secrets, each once.
    pub fn places(&self) -> Vec<&str> {
        distinct(self.0.iter().filter(|secret| is_redactable(&secret.text)))
    }

    /// Returns the places of texts that are secret because of their place, but too short or too similar to ordinary
    /// words to be distinguished from data: they are not redacted.
    pub fn exposed(&self) -> Vec<&str> {
        distinct(self.0.iter().filter(|secret| {
            let text = secret.text.trim();
            !text.is_empty() && !is_redactable(text) && !is_path(text)
        }))
    }
}

fn distinct<'s>(secrets: impl Iterator<Item = &'s Secret>) -> Vec<&'s str> {
    let mut places: Vec<&str> = Vec::new();
    for secret in secrets {
        if !places.contains(&secret.place.as_str()) {
            places.push(&secret.place);
        }
    }
    places
}
