//! Recognises errors of a tool that leave open whether it was carried out: what stands behind the tool did not answer in time,
//! was lost while it worked, or failed halfway. MCP has no code for that, so that servers say it in words of their own.
//!
//! Status codes are those of HTTP (RFC 9110, section 15.6), and of proxies that have added their own.

use crate::lang::ToolErrorKind;

use super::refusals;

/// Maximum length of a text that is looked at, in bytes; longer ones are results.
const LONGEST: usize = 4_000;

/// Words that leave it open, in lower case and without anything but letters and digits.
const OPEN: &[&str] = &[
    "timeout",
    "timedout",
    "deadlineexceeded",
    "badgateway",
    "outcomeisnotknown",
    "outcomeisunknown",
    "outcomeunknown",
    "unknownoutcome",
    "mayhavebeen",
    "mighthavebeen",
    "mayormaynot",
    "connectionreset",
    "connectionclosed",
    "connectionaborted",
    "connectionlost",
    "connectionterminated",
    "connectionbroken",
    "closedtheconnection",
    "remoteendclosed",
    "serverdisconnected",
    "remoteprotocolerror",
    "brokenpipe",
    "sockethangup",
    "econnreset",
    "econnaborted",
    "epipe",
    "unexpectedeof",
    "unexpectedendoffile",
    "incompleteread",
    "internalservererror",
    "internalerror",
    "partialfailure",
    "partiallyfailed",
    "partiallycompleted",
    "partiallyapplied",
];

/// Words that say that nothing was done, whatever else is said.
const CLOSED: &[&str] = &[
    "nothingwas",
    "nothinghasbeen",
    "nochangeswere",
    "nochangewas",
    "nochangesmade",
    "wasnotsent",
    "wasnotexecuted",
    "rolledback",
    "connectetimedout",
    "connecttimeout",
    "econnrefused",
    "connectionrefused",
    "enotfound",
    "getaddrinfo",
    "nameresolution",
];

/// Words before a number that make it a status.
const STATUS: &[&str] =
    &["http", "status", "code", "error", "statuscode", "response", "returned", "with", "got", "failed"];

/// Returns the kind of an error in these words.
pub(super) fn kind(text: &str) -> ToolErrorKind {
    if is_said(text) { ToolErrorKind::Uncertain } else { ToolErrorKind::Failed }
}

/// Returns the kind of an error with this status of HTTP.
pub(super) fn kind_of_status(status: u16) -> ToolErrorKind {
    if status_is(status) { ToolErrorKind::Uncertain } else { ToolErrorKind::Failed }
}

/// Returns true if a status of HTTP leaves open whether the request was carried out.
fn status_is(status: u16) -> bool {
    matches!(status, 408 | 499 | 500 | 502 | 504 | 520..=599)
}

/// Returns true if the words of a failed tool leave open whether it was carried out.
fn is_said(text: &str) -> bool {
    if text.len() > LONGEST || refusals::has_words(text) {
        return false;
    }
    let squeezed: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let has = |words: &[&str]| words.iter().any(|words| squeezed.contains(words));
    !has(CLOSED) && (has(OPEN) || has_status(text))
}

/// Returns true if a text has such a status: as its first word, or behind a word that announces it.
fn has_status(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let before = std::iter::once(None).chain(words.clone().map(Some));
    before.zip(words).any(|(before, word)| {
        let announces = |word: &str| STATUS.contains(&word.to_lowercase().as_str());
        word.len() == 3 && word.parse().is_ok_and(status_is) && before.is_none_or(announces)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_leave_it_open_are_recognised() {
        for text in [
            "504 gateway timeout: the request was passed on, its outcome is not known",
            "Request failed with status code 500",
            "HTTP 502 Bad Gateway",
            "Error: 524: A timeout occurred",
            "The read operation timed out",
            "httpx.ReadTimeout",
            "('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))",
            "read ECONNRESET",
            "socket hang up",
            "context deadline exceeded",
            "MCP error -32603: Internal error",
            "the message may have been sent",
        ] {
            assert!(is_said(text), "{text}");
        }
    }

    #[test]
    fn words_that_say_that_nothing_was_done_are_no_doubt() {
        for text in [
            "503 the service is temporarily unavailable; nothing was done",
            "429 Too Many Requests",
            "the quota of 500 mails is used up",
            "there is no order 504",
            "Invalid argument: timeout has to be positive",
            "connect ECONNREFUSED 127.0.0.1:8080",
            "connect ETIMEDOUT 10.0.0.1:443",
            "timed out while waiting for a lock; the transaction was rolled back",
            "permission denied",
            "",
        ] {
            assert!(!is_said(text), "{text}");
        }
    }
}
