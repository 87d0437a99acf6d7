//! The doors to a person: the ways in which the user of a client, or an operator, decides on a call.
//!
//! What a client declares is not always what it does: some declare forms and show none. A form without an answer leaves
//! the run waiting for the next door, and that is remembered for the connection. [`asking`](super::asking) chooses.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use super::elicitation::Questions;

/// The way in which the user of a client is asked.
pub(super) enum Door {
    /// By requests to the client during the call.
    Elicitation {
        questions: Questions,
        /// True if the run can wait if the client does not show them.
        can_wait: bool,
    },
    /// In the reply to the call.
    NextRound,
    /// By the operator, at any time: the reply says which run waits.
    Operator,
    /// Not at all.
    None,
}

impl Door {
    /// Asks the user while `work` goes on, or until `end`, but not while a person reads a question. Returns `None` if the
    /// work has not ended; what it asks then is asked by the next door.
    pub(super) async fn during<T>(self, work: impl Future<Output = T>, end: impl Future<Output = ()>) -> Option<T> {
        match self {
            Door::Elicitation { questions, .. } => questions.during(work, end).await,
            Door::NextRound | Door::Operator | Door::None => tokio::select! {
                biased;
                outcome = work => Some(outcome),
                () = end => None,
            },
        }
    }

    /// True if a run can wait for the answer.
    pub(super) fn can_wait(&self) -> bool {
        match self {
            Door::Elicitation { can_wait, .. } => *can_wait,
            Door::NextRound | Door::Operator => true,
            Door::None => false,
        }
    }
}

/// The ways by which the tool `lisp_approve` asks the user of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// A card that the client shows.
    Card,
    /// The prompt of the client before the call of the tool, which has the calls as its arguments.
    Prompt,
}

/// Maximum number of runs about which `lisp_approve` may ask the user of a connection; the oldest are forgotten.
const MOST: usize = 64;

const UNKNOWN: u8 = 0;
const SHOWN: u8 = 1;
const UNSHOWN: u8 = 2;

/// What is known of the doors of one connection.
#[derive(Default)]
pub(super) struct Doors {
    forms: AtomicU8,
    /// The runs whose waiting calls were shown to the client.
    offered: Mutex<VecDeque<String>>,
}

impl Doors {
    /// True once a person has answered a form of this client.
    pub(super) fn shows_forms(&self) -> bool {
        self.forms.load(Ordering::Relaxed) == SHOWN
    }

    /// Records that a person has answered a form.
    pub(super) fn shown(&self) {
        self.forms.store(SHOWN, Ordering::Relaxed);
    }

    /// Records that a form was not answered, unless an earlier one was.
    pub(super) fn not_shown(&self) {
        // A failure means that a person has answered a form.
        let _ = self.forms.compare_exchange(UNKNOWN, UNSHOWN, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// True once a form was not answered.
    pub(super) fn hides_forms(&self) -> bool {
        self.forms.load(Ordering::Relaxed) == UNSHOWN
    }

    /// Records that the waiting calls of a run are shown to the client.
    pub(super) fn offer(&self, run: &str) {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        offered.retain(|known| known != run);
        offered.truncate(MOST - 1);
        offered.push_front(run.to_owned());
    }

    /// True if the waiting calls of that run were shown to the client.
    pub(super) fn has_offered(&self, run: &str) -> bool {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|known| known == run)
    }
}
