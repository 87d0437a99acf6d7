//! Hints about names that a program misses and that another session defines.

use crate::lang::internal::foreign_text;
use crate::lang::{Reply, Status};

/// Returns the undefined name because of which a program failed.
pub(super) fn unbound(reply: &Reply) -> Option<&str> {
    let failure = reply.failure.as_ref().filter(|failure| failure.error == "UnboundVariable")?;
    failure.symbol.as_deref().filter(|_| reply.status == Status::Error)
}

/// Says in a reply that a name is defined in the session of that handle.
pub(super) fn defined_in(reply: &mut Reply, symbol: &str, handle: &str) {
    let symbol = foreign_text::symbol(symbol);
    suggest(reply, format!("`{symbol}` is defined in another session: call again with session \"{handle}\""));
}

/// Says in a reply that a name is defined in a session whose handle the connection does not know, as after a restart of
/// the client. The model may have read it in this conversation before.
pub(super) fn defined_earlier(reply: &mut Reply, symbol: &str) {
    let symbol = foreign_text::symbol(symbol);
    suggest(
        reply,
        format!(
            "`{symbol}` is defined in an earlier session: call again with the `session` that an earlier reply showed; \
             `lispbox sessions list` shows it to the user"
        ),
    );
}

/// Says in a reply that a call without a session has no definitions of other calls.
pub(super) fn starts_empty(reply: &mut Reply, symbol: &str) {
    let symbol = foreign_text::symbol(symbol);
    let hint = format!(
        "A call without `session` starts with an empty one: pass the `session` of the reply that defined `{symbol}`"
    );
    suggest(reply, hint);
}

/// Prepends a hint to the suggestion of a failed reply.
fn suggest(reply: &mut Reply, hint: String) {
    let Some(failure) = reply.failure.as_mut() else { return };
    let before = failure.suggestion.take();
    failure.suggest(hint);
    if let (Some(suggestion), Some(before)) = (&mut failure.suggestion, before) {
        suggestion.push_str(&format!("; {before}"));
    }
}
