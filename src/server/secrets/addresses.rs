//! User credentials in addresses: `scheme://user:password@host`, and `user:password@host` without a scheme.

use percent_encoding::percent_decode_str;

/// Schemes without `//`, and labels before the address of a person or of a package, which are not user names.
const LABELS: &[&str] = &[
    "mailto",
    "sip",
    "sips",
    "xmpp",
    "jid",
    "acct",
    "im",
    "from",
    "to",
    "cc",
    "bcc",
    "sender",
    "recipient",
    "mail",
    "email",
    "contact",
    "replyto",
    "npm",
    "jsr",
    "file",
    "link",
    "workspace",
    "portal",
    "patch",
    "pkg",
    "gem",
    "pip",
    "pypi",
    "cargo",
    "github",
    "gitlab",
    "gist",
    "bitbucket",
    "docker",
    "oci",
    "image",
    "http",
    "https",
    "ssh",
    "git",
    "urn",
];
/// Labels before the address of a person that may also be user names.
const PERSONS: &[&str] = &["user", "author", "owner", "assignee", "member", "group", "account"];

/// Adds the credentials of users in addresses.
pub(super) fn addresses(text: &str, found: &mut Vec<String>) {
    for word in text.split(|c: char| c.is_whitespace() || "\"'`<>".contains(c)) {
        let mut parts = word.split("://");
        let first = parts.next().unwrap_or_default();
        if word.len() == first.len() {
            without_scheme(word, found);
        }
        for whole in parts {
            if let Some(user) = user(whole) {
                add(user, true, found);
            }
        }
    }
}

/// `user:password@host`, also after `name=` or `//`.
fn without_scheme(word: &str, found: &mut Vec<String>) {
    let Some(at) = word.rfind('@') else { return };
    let Some(colon) = word[..at].find(':') else { return };
    let from = word[..colon].rfind(['=', ',', ';', '(', '[', '{', '/']).map_or(0, |before| before + 1);
    let is_remote = word[..from].ends_with("//");
    // A single `/` before the user belongs to a path.
    if !is_remote && word[..from].ends_with('/') {
        return;
    }
    let whole = &word[from..];
    let Some(user) = user(whole) else { return };
    let host = whole[user.len()..].trim_start_matches('@');
    if is_remote || is_likely(user, host) {
        add(user, is_remote, found);
    }
}

/// Returns the part of an address before the `@` of its host.
fn user(whole: &str) -> Option<&str> {
    let authority = &whole[..whole.find(['/', '?', '#']).unwrap_or(whole.len())];
    // A password may contain a `/` that should have been encoded; the text before it is then not a port.
    let is_port = || authority.split_once(':').is_none_or(|(_, port)| port.bytes().all(|c| c.is_ascii_digit()));
    match authority.rsplit_once('@') {
        Some((user, _)) => Some(user),
        None if is_port() => None,
        None => whole.rsplit_once('@').map(|(user, _)| user),
    }
}

/// Returns whether these are likely a user with a password and a host, without a scheme as evidence.
fn is_likely(user: &str, host: &str) -> bool {
    let Some((name, password)) = user.split_once(':') else { return false };
    let is_name = |c: char| c.is_alphanumeric() || "_.%+-".contains(c);
    let plain: String = name.chars().filter(|c| *c != '-').flat_map(char::to_lowercase).collect();
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let is_time = is_digits(name) && name.len() < 3 && password.starts_with(|c: char| c.is_ascii_digit());
    let is_ratio = is_digits(name) && is_digits(password);
    let names_a_person =
        PERSONS.contains(&&*plain) && password.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | '-' | '_'));
    name.chars().all(is_name)
        && !password.is_empty()
        && !password.starts_with('\\')
        && !is_time
        && !is_ratio
        && !LABELS.contains(&&*plain)
        && !names_a_person
        && is_host(host)
}

/// Returns whether the text can be a host: not a version, not a digest, not the end of the text.
fn is_host(host: &str) -> bool {
    let name = &host[..host.find([':', '/', '?', '#', ',', ';', '(', ')']).unwrap_or(host.len())];
    let is_version = name.trim_start_matches(['v', '^', '~']).bytes().all(|c| c.is_ascii_digit() || c == b'.')
        && name.split('.').count() != 4;
    let is_digest = matches!(name, "sha256" | "sha512" | "sha1") && host.contains(':');
    // `user:password@/database`, `@tcp(host:3306)` and `@[::1]` do not begin with a host name.
    (host.starts_with(['/', '[']) || name.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        && (name.is_empty() || !is_version)
        && !is_digest
}

/// Adds the credentials of a user; a user without a password is added if it is certainly a token.
fn add(user: &str, may_be_token: bool, found: &mut Vec<String>) {
    let decoded = percent_decode_str(user).decode_utf8_lossy().into_owned();
    for user in [user, &decoded] {
        match user.split_once(':') {
            // Also with the user name, as in a header and before a host: that makes a short password recognizable.
            Some((_, password)) if !password.is_empty() => {
                found.extend([password.to_owned(), user.to_owned(), format!("{user}@")]);
            }
            _ if may_be_token && (user.len() >= 16 || super::recognition::is_random(user)) => {
                found.push(user.trim_end_matches(':').to_owned());
            }
            _ => {}
        }
    }
}
