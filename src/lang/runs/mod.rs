//! Runs: evaluations whose host calls are logged, so that they can be suspended and resumed.
//!
//! A run is one evaluation of a program. Its [`RunLog`] holds an entry for each host call, keyed by [`CallId`]. The
//! [`Recorder`] is a [`Host`](crate::host::Host) around another one: it answers logged calls from the log, after it has
//! compared them, and passes on the others. A run that is resumed evaluates its running form again from the beginning,
//! so its effects happen once although its code runs twice.
//!
//! Two designs were considered. In the other one the evaluator holds the log and looks into it before each call. Then
//! the log of an isolated session would be held by the worker process, which is not trusted; a host around the host is
//! on the trusted side, and the evaluator knows nothing about logs but how to park a call.
//!
//! A replay takes the same course as the original because everything it can observe is the same: the replies and the
//! decisions by [`CallId`]; the clock and the seed of random numbers, in the order of their use; and the order in which
//! branches run, which depends on the program alone (see [`branches`](crate::eval)). Time limits and cancellation are
//! not logged: they end a run.
//!
//! A run that did not end well can be attempted again, perhaps with a corrected program. Its calls have other places then,
//! so they are matched by what they ask for: a change that an earlier attempt has made answers an equal call of the new
//! one, as often as it was made. Two designs were considered here too. In the other one the new program would be compared
//! with the old one, form by form, and equal forms would be answered by [`CallId`]; but a correction changes the very form
//! in which the calls are. [`Logged::next_attempt`] has the earlier calls.
//!
//! [`CallId`]: crate::host::CallId

mod bounds;
mod log;
mod logged;
mod matched;
mod observed;
mod recorder;

pub use bounds::{PlanBounds, at_most};
pub use log::{Journal, Keep, RunLog};
pub use logged::{CallState, Draw, EarlierCall, Entry, LogChange, Logged, Timing};
pub use matched::{Replies, asked_for};
pub use observed::{Observed, Stage, Witness};
pub use recorder::Recorder;
