//! MCP towards the client, independent of the transport.
//!
//! [`front`] handles the requests of one connection: [`greeting`] tells a client what there is when it connects, [`begin`]
//! reads a call of `lisp_eval`, which may be about a run that exists, [`tools`] defines our two tools, [`replies`] builds
//! their results, with tables by [`toon`], and a warning before those that read like instructions to the model.
//! [`evaluating`] answers it: at the end of the program, or
//! before, if the program outlasts the client's [`patience`]; then it is [`unfinished`]. [`progress`] reports progress. [`asking`] chooses one of the [`doors`] to a person: [`elicitation`] asks the user of the
//! client for approval during a call, and [`multi_round`] in the reply to one, as revision 2026-07-28 requires, with the
//! [`form_text`] of the question; [`suspended`] tells
//! a client that cannot be asked what its run waits for; then its user decides on a [`card`], or [`approve`] lets the
//! client's own prompt decide.

mod approve;
mod asking;
mod begin;
pub(in crate::server) mod card;
mod carded;
mod doors;
pub(in crate::server) mod elicitation;
mod evaluating;
mod form_text;
pub(in crate::server) mod front;
mod greeting;
pub(in crate::server) mod multi_round;
pub(in crate::server) mod patience;
pub(in crate::server) mod progress;
pub(in crate::server) mod replies;
mod suspended;
mod tools;
mod toon;
pub(in crate::server) mod unfinished;
