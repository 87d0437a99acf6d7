//! The card (MCP Apps): clients that show interfaces of servers let their user decide on calls that wait.
//!
//! The model calls `lisp_approve` with a run. The client shows the resource [`URI`] beside the call, an HTML document
//! whose script exchanges messages with the client; it shows the run with the forms of the approvals page, which the
//! metadata of the reply hold. The script sends a decision by `lisp_decide`, a tool for interfaces alone. It needs a secret
//! that is in those metadata too, is good for one decision about the calls shown, and is never in what a model reads.
//! [`carded`](super::carded) answers the calls of both tools.

use std::collections::VecDeque;
use std::sync::{LazyLock, Mutex, PoisonError};

use maud::{DOCTYPE, PreEscaped, html};
use rmcp::model::{ClientCapabilities, ResourceContents};

use crate::server::approvals::STYLE;
use crate::server::identity::{hexadecimal, sha256};
use crate::server::system::random;

/// The resource that clients show.
pub(super) const URI: &str = "ui://lispbox/approval";

/// The extension of the protocol by which clients show interfaces, and the type of those that they show.
const EXTENSION: &str = "io.modelcontextprotocol/ui";
const KIND: &str = "text/html;profile=mcp-app";

/// Maximum number of cards of a principal that take a decision; the oldest are out of date.
const MOST: usize = 16;

const SCRIPT: &str = include_str!("card.js");
const OWN_STYLE: &str = include_str!("card.css");

/// True if a client shows interfaces of servers.
pub(super) fn is_shown(capabilities: Option<&ClientCapabilities>) -> bool {
    let extension = capabilities.and_then(|able| able.extensions.as_ref()?.get(EXTENSION));
    extension.is_some_and(|extension| match extension.get("mimeTypes") {
        Some(kinds) => kinds.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == KIND)),
        None => true,
    })
}

/// Returns the resource. It is the same for all runs, and has nothing of any.
pub(super) fn resource() -> ResourceContents {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { "lispbox approval" }
                    style { (PreEscaped(STYLE)) (PreEscaped(OWN_STYLE)) }
                }
                body {
                    main id="card" { p.note role="status" { "Waiting for the calls…" } }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        document.into_string()
    });
    ResourceContents::text(DOCUMENT.as_str(), URI).with_mime_type(KIND)
}

/// A card that takes a decision.
pub(super) struct Issued {
    /// The hash of its secret, so that the time of a comparison says nothing about it.
    hash: String,
    principal: String,
    /// The run that it shows.
    pub(super) run: String,
    /// The numbers of the calls that it shows.
    pub(super) calls: Vec<String>,
}

/// The cards of this process that take a decision.
#[derive(Default)]
pub(in crate::server) struct Cards(Mutex<VecDeque<Issued>>);

impl Cards {
    /// Returns the secret of a new card.
    pub(super) fn issue(&self, principal: &str, run: &str, calls: Vec<String>) -> Result<String, String> {
        let secret = hexadecimal(&random::key()?);
        let (hash, principal, run) = (sha256(secret.as_bytes()), principal.to_owned(), run.to_owned());
        let mut issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if issued.iter().filter(|card| card.principal == principal).count() >= MOST
            && let Some(oldest) = issued.iter().position(|card| card.principal == principal)
        {
            issued.remove(oldest);
        }
        issued.push_back(Issued { hash, principal, run, calls });
        Ok(secret)
    }

    /// Returns the card with this secret, once and to its principal alone.
    pub(super) fn take(&self, principal: &str, secret: &str) -> Option<Issued> {
        let hash = sha256(secret.as_bytes());
        let mut issued = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = issued.iter().position(|card| card.hash == hash && card.principal == principal)?;
        issued.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_secret_is_good_once_and_for_its_principal() {
        let cards = Cards::default();
        let secret = cards.issue("ann", "r", vec!["1.1".to_owned()]).expect("random");
        assert!(cards.take("bob", &secret).is_none());
        assert!(cards.take("ann", "").is_none());
        assert_eq!(cards.take("ann", &secret).expect("issued").calls, ["1.1"]);
        assert!(cards.take("ann", &secret).is_none());
    }

    #[test]
    fn the_oldest_cards_of_a_principal_are_out_of_date() {
        let cards = Cards::default();
        let other = cards.issue("bob", "r", Vec::new()).expect("random");
        let secrets: Vec<String> = (0..=MOST).map(|_| cards.issue("ann", "r", Vec::new()).expect("random")).collect();
        assert!(cards.take("ann", &secrets[0]).is_none());
        assert!(cards.take("ann", &secrets[1]).is_some() && cards.take("ann", &secrets[MOST]).is_some());
        assert!(cards.take("bob", &other).is_some());
    }

    #[test]
    fn a_client_shows_cards_if_it_says_so() {
        let able = |extensions: Value| {
            let able: ClientCapabilities = serde_json::from_value(json!({ "extensions": extensions })).expect("read");
            is_shown(Some(&able))
        };
        assert!(able(json!({EXTENSION: {"mimeTypes": [KIND]}})) && able(json!({EXTENSION: {}})));
        assert!(!able(json!({EXTENSION: {"mimeTypes": ["text/html"]}})) && !able(json!({})) && !is_shown(None));
    }

    #[test]
    fn the_document_has_no_other_end_than_its_own() {
        for text in [SCRIPT, OWN_STYLE, STYLE] {
            assert!(!text.contains("</"));
        }
    }
}
