//! Guards: they decide on a call by the origins of its arguments.
//!
//! The rules, and the index of origins, are in `lispbox-policy`. Here an evaluation feeds the index of its session: with
//! what the program has as [`KnownTexts`] when it begins, with what its tools return ([`layers`]), and with what its model
//! reads. Nothing is recorded if there are no guards.

pub(in crate::server) mod layers;

use std::sync::Arc;

use lispbox_policy::internal::{Origins, shown};

use crate::lang::{CallState, Logged, Reply, Request, ToolReply};
use crate::server::downstream::Downstreams;
use crate::server::policy::Policy;
use crate::server::sessions::Entry;

/// The origins of the values of a session, and the guards that ask for them.
#[derive(Clone)]
pub(in crate::server) struct Guarded {
    policy: Arc<Policy>,
    origins: Arc<Origins>,
}

impl Guarded {
    /// Returns the origins of a session, if there are guards; otherwise nothing is recorded.
    pub(in crate::server) fn new(downstreams: &Downstreams, origins: &Arc<Origins>) -> Option<Guarded> {
        downstreams.guarding().map(|policy| Guarded { policy, origins: Arc::clone(origins) })
    }

    pub(in crate::server) fn origins(&self) -> &Arc<Origins> {
        &self.origins
    }

    /// Begins a program with its data; see [`Origins::add_program`].
    pub(in crate::server) fn begin(&self, program: &str, data: Option<&str>, is_unread: bool) {
        self.origins.add_program(program, data, is_unread);
    }

    /// Adds what a tool has returned.
    pub(in crate::server) fn returned(&self, server: &Arc<str>, tool: &Arc<str>, reply: &ToolReply) {
        self.origins.add_reply(server, tool, reply, self.policy.standing(server, tool));
    }

    /// Adds what tools have returned earlier in a run that is continued.
    fn returned_before(&self, log: &Logged) {
        for call in &log.calls {
            self.origins.add_sent(&call.arguments);
            if let CallState::Done(reply) = &call.state {
                self.returned(&call.server, &call.tool, reply);
            }
        }
    }

    fn replied(&self, program: &str, reply: &Reply) {
        let (program, shown) = shown(program, reply);
        self.origins.add_reading(program, &shown);
    }
}

/// Records that the model receives a reply to a program that was evaluated at another time, perhaps in another session.
pub(in crate::server) fn received(origins: &Origins, program: &str, reply: &Reply) {
    let (program, shown) = shown(program, reply);
    origins.add_other_reading(program, &shown);
}

/// The texts that the model may know when it writes a program.
pub(in crate::server) struct KnownTexts {
    guarded: Option<Guarded>,
    /// True if the model can have read no text that is not trusted outside of the session.
    is_unread: bool,
    /// The words of the user, if the client passes them.
    words: Option<String>,
}

impl KnownTexts {
    /// Returns what is known in a session. `own` is the session of the caller's connection, if it has one.
    pub(in crate::server) fn new(
        downstreams: &Downstreams,
        own: Option<&Arc<Entry>>,
        entry: &Arc<Entry>,
        words: Option<String>,
    ) -> KnownTexts {
        let guarded = Guarded::new(downstreams, entry.origins());
        if guarded.is_none() {
            own.into_iter().chain([entry]).for_each(|entry| entry.origins().unwatched());
        }
        // Without a connection it is unknown what the model has read before.
        let is_unread = own.is_some_and(|own| !own.origins().is_read());
        KnownTexts { guarded, is_unread, words }
    }

    /// Returns what is known to a program of a person, whose host records the origins.
    pub(in crate::server) fn of_person() -> KnownTexts {
        KnownTexts { guarded: None, is_unread: true, words: None }
    }

    pub(in crate::server) fn guarded(&self) -> Option<&Guarded> {
        self.guarded.as_ref()
    }

    /// True if the model can have read no text that is not trusted outside of the session.
    pub(in crate::server) fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Adds the words of the user to the origins.
    pub(in crate::server) fn add_words(&self) {
        if let (Some(guarded), Some(words)) = (&self.guarded, &self.words) {
            guarded.origins().add_words(words);
        }
    }

    /// Begins a program; see [`Origins::add_program`].
    pub(in crate::server) fn begin(&self, program: &Request, is_unread: bool) {
        self.guarded.iter().for_each(|guarded| guarded.begin(&program.program, program.data.as_deref(), is_unread));
    }

    /// Adds what tools have returned earlier in a run that is continued.
    pub(in crate::server) fn returned_before(&self, log: &Logged) {
        self.guarded.iter().for_each(|guarded| guarded.returned_before(log));
    }

    /// Records that the model receives a reply to a program of the session.
    pub(in crate::server) fn replied(&self, program: &str, reply: &Reply) {
        self.guarded.iter().for_each(|guarded| guarded.replied(program, reply));
    }
}
