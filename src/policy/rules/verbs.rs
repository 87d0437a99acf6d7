//! The verbs in the name of a tool, as evidence that it does more than read. A name is never evidence that a tool is
//! harmless.

/// Verbs of tools that destroy or overwrite something, run code, or send something to others.
const RISKY: &[&str] = &[
    "approve",
    "archive",
    "ban",
    "bash",
    "buy",
    "cancel",
    "charge",
    "clean",
    "clear",
    "cleanup",
    "commit",
    "debit",
    "delete",
    "deploy",
    "destroy",
    "disable",
    "discard",
    "drop",
    "edit",
    "email",
    "empty",
    "erase",
    "eval",
    "evaluate",
    "exec",
    "execute",
    "expire",
    "flush",
    "forget",
    "forward",
    "grant",
    "install",
    "invite",
    "invoke",
    "kill",
    "merge",
    "modify",
    "move",
    "mv",
    "overwrite",
    "patch",
    "pay",
    "post",
    "prune",
    "publish",
    "purchase",
    "purge",
    "push",
    "put",
    "rebase",
    "reboot",
    "refund",
    "reject",
    "remove",
    "rename",
    "replace",
    "reply",
    "reset",
    "restart",
    "restore",
    "revert",
    "revoke",
    "rm",
    "rollback",
    "rotate",
    "run",
    "scale",
    "sell",
    "send",
    "share",
    "shell",
    "shutdown",
    "spawn",
    "stop",
    "submit",
    "sudo",
    "terminate",
    "transfer",
    "trash",
    "truncate",
    "tweet",
    "unfollow",
    "uninstall",
    "unlink",
    "unprotect",
    "unpublish",
    "unshare",
    "update",
    "upgrade",
    "upload",
    "upsert",
    "wipe",
    "withdraw",
    "write",
];

/// Verbs of tools that read. What follows one names its object: `list_runs`, `get_last_commit`.
const READING: &[&str] = &[
    "analyze",
    "calculate",
    "check",
    "compare",
    "convert",
    "count",
    "describe",
    "diff",
    "display",
    "explain",
    "export",
    "fetch",
    "find",
    "get",
    "inspect",
    "is",
    "list",
    "lookup",
    "preview",
    "query",
    "read",
    "search",
    "show",
    "status",
    "summarize",
    "validate",
    "verify",
    "view",
    "watch",
];

/// Words behind which another verb stands.
const JOINING: &[&str] = &["and", "or", "then"];

/// Returns the verb in the name of a tool by which it does more than read.
pub(super) fn risky(name: &str) -> Option<&'static str> {
    let mut is_object = false;
    for word in words(name) {
        match RISKY.iter().find(|verb| **verb == word) {
            _ if JOINING.contains(&word.as_str()) => is_object = false,
            _ if is_object => {}
            Some(verb) => return Some(verb),
            None => is_object = READING.contains(&word.as_str()),
        }
    }
    None
}

/// Returns the words of a name in lower case: `fast_deleteFile` has `fast`, `delete` and `file`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        let is_begin = c.is_uppercase() && was_small;
        was_small = c.is_lowercase() || c.is_ascii_digit();
        if (is_begin || !c.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_evidence_wherever_it_is_one() {
        for (name, verb) in [
            ("fast_delete_file", Some("delete")),
            ("run-code", Some("run")),
            ("browser_runCode", Some("run")),
            ("GIT-Commit", Some("commit")),
            ("get_or_update", Some("update")),
            ("getAndDelete", Some("delete")),
            ("im.v1.message.send", Some("send")),
            ("list_runs", None),
            ("get_last_commit", None),
            ("search_emails", None),
            ("create_document", None),
            ("drop-off-points", Some("drop")),
            ("", None),
        ] {
            assert_eq!(risky(name), verb, "{name}");
        }
    }
}
