//! Rules for the declarations of tools: names, titles, descriptions, enumerations and other texts of schemas.
//!
//! A description addresses the model by its nature, and may well say which tool of the same server is to be called
//! first. It has no reason to speak about all other tools, about the tools of other servers, about the user's messages,
//! or about things that the user is not to know.

use std::sync::LazyLock;

use crate::server::identity::sha256_of_json;

use super::{matching, rules, views, words};

/// The names of rules for replies that ordinary declarations match.
const NOT_FOR_DECLARATIONS: [&str; 2] = ["tool-order", "to-the-assistant"];

/// Returns the names of the rules that match in a text of a declaration, each once.
pub(in crate::server) fn declared(text: &str) -> Vec<&'static str> {
    let views = views::views(text);
    let usual = words::USUAL.candidates(&views, &NOT_FOR_DECLARATIONS);
    matching(usual.into_iter().chain(words::DECLARED.candidates(&views, &[])), &views)
}

/// Returns a name of the rules, which changes with them.
pub(in crate::server) fn declaration_rules() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        // Texts can always be serialized.
        sha256_of_json(&(rules::USUAL, rules::DECLARED)).unwrap_or_default()[..16].to_owned()
    });
    &NAME
}
