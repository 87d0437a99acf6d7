//! The parts of values that guards compare.

use super::addresses::addresses;
use super::urls::{UrlRules, authority, bare_host, links};

/// The part of a value that is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// The host of a URL, or a host alone.
    Host,
    /// The domains of a list of e-mail addresses, or a domain alone.
    Domain,
    /// The hosts of all URLs in a text.
    Links,
}

impl Part {
    pub const ALL: [(Part, &'static str); 4] =
        [(Part::Whole, "whole"), (Part::Host, "host"), (Part::Domain, "domain"), (Part::Links, "links")];

    /// Returns these parts of a value, exactly as it is: all of it, or hosts in lowercase.
    ///
    /// # Errors
    /// Returns why the value has no such parts for certain, as a clause without its subject.
    pub fn all_of(self, value: &str, rules: &UrlRules) -> Result<Vec<String>, String> {
        match self {
            Part::Whole => Ok(vec![value.to_owned()]),
            Part::Host => host(value, rules).map(|host| vec![host]),
            Part::Domain => domains(value),
            Part::Links => {
                links(value, rules).map_err(|why| format!("has a link that parsers read differently: {why}"))
            }
        }
    }
}

/// Returns the hosts of a value that is a URL, a list of e-mail addresses, or a host alone.
///
/// # Errors
/// Returns why it is none of them for certain, as a clause without its subject.
pub fn hosts(value: &str, rules: &UrlRules) -> Result<Vec<String>, String> {
    if value.contains("://") { host(value, rules).map(|host| vec![host]) } else { domains(value) }
}

fn host(value: &str, rules: &UrlRules) -> Result<String, String> {
    match bare_host(value) {
        Some(host) => Ok(host),
        None => authority(value, rules).map_err(|why| format!("is not one URL for every parser: {why}")),
    }
}

fn domains(value: &str) -> Result<Vec<String>, String> {
    if let Some(host) = bare_host(value) {
        return Ok(vec![host]);
    }
    let found = addresses(value).map_err(|why| format!("is not a plain list of e-mail addresses: {why}"))?;
    Ok(found.iter().map(|address| address.domain.to_ascii_lowercase()).collect())
}
