//! Rehearsals: the calls that were not made, and the run that makes them once a person has approved them.
//!
//! That run is an ordinary one: a program that consists of these calls, with a log in which a person is asked about each.
//! So its calls are decided on, made once, recorded and settled as those of any run that waits.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use lispbox_lang::internal::{foreign_text, readable};
use lispbox_lang::{
    CallId, Entry, Limits, Logged, Question, RehearsedCall, Session, SessionError, Suspended, ToolCall,
};
use serde::Deserialize;

/// The reason for which a person is asked about a call of a rehearsal, as a clause.
const REASON: &str = "the call comes from a rehearsal";

/// The calls of one rehearsal that were not made; see [`Monitor::rehearsing`](crate::Monitor::rehearsing).
///
/// ```
/// let rehearsal = lispbox::policy::Rehearsal::default();
/// assert!(rehearsal.calls().is_empty());
/// ```
#[derive(Default)]
pub struct Rehearsal(Mutex<Vec<Withheld>>);

/// What became of one call of a change set that was committed; the run of it returns a vector of these.
///
/// ```
/// use lispbox::policy::CommittedCall;
///
/// let read: CommittedCall<String> = serde_json::from_str(r#"{"result": "sent"}"#).unwrap();
/// assert_eq!(read, CommittedCall::Result("sent".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommittedCall<T> {
    /// It was made: its result.
    Result(T),
    /// A person or the policy has denied it; the message.
    Denied(String),
    /// Its tool has failed; the message. No later call was made.
    Failed(String),
}

/// A call that was not made.
struct Withheld {
    /// The call as the program made it.
    given: ToolCall,
    /// The arguments as they would be sent.
    arguments: String,
    /// The objection of a guard to these arguments, as a clause.
    objection: Option<String>,
    /// The arguments as the reader reads them back, with the data that JSON lacks, if the host takes values.
    literal: Option<String>,
}

/// The calls of a rehearsal as a program that makes them in order, each once a person has approved it. Its value is the
/// vector of their outcomes. A denied call is left out, and a failure ends the program.
#[derive(Clone, Debug)]
pub struct ChangeSet {
    /// The program.
    pub program: String,
    /// The arguments of the calls: the text of a JSON array, which the program sees as `data`.
    pub data: String,
    /// The log of the program, with a question about each call.
    #[doc(hidden)]
    pub log: Logged,
}

impl Rehearsal {
    fn withheld(&self) -> MutexGuard<'_, Vec<Withheld>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call that is not made, with its arguments as they would be sent, and the objection of a guard to them.
    #[doc(hidden)]
    pub fn withhold(&self, given: ToolCall, arguments: String, objection: Option<String>) {
        let literal = given.values.as_ref().map(readable);
        let given = ToolCall { values: None, ..given };
        let mut withheld = self.withheld();
        withheld.push(Withheld { given, arguments, objection, literal });
        // Concurrent calls come in any order; people see them in the order of the program.
        withheld.sort_by_cached_key(|Withheld { given, .. }| {
            (given.id.form, [&given.id.branch[..], &[given.id.ordinal]].concat())
        });
    }

    /// Returns the calls, in the order of the program.
    ///
    /// ```
    /// assert!(lispbox::policy::Rehearsal::default().calls().is_empty());
    /// ```
    pub fn calls(&self) -> Vec<RehearsedCall> {
        let call = |Withheld { given, arguments, .. }: &Withheld| RehearsedCall {
            server: given.server.to_string(),
            tool: given.tool.to_string(),
            arguments: serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.clone())),
        };
        self.withheld().iter().map(call).collect()
    }

    /// Makes the calls a suspended run of a session: the change set of the rehearsal, or `None` if there are no calls. Its
    /// questions are the calls, in the order of the program; each is approved or denied. When the run is resumed, it makes
    /// those that are approved, once, with exactly these arguments, and returns a vector of [`CommittedCall`]. It is kept and
    /// resumed like any other suspended run, and so is resumed once.
    ///
    /// # Errors
    /// Returns an error if the session has no room for it.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    /// use lispbox::policy::Rehearsal;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// assert!(Rehearsal::default().propose(&mut session).unwrap().is_none());
    /// ```
    pub fn propose(&self, session: &mut Session) -> Result<Option<Suspended>, SessionError> {
        let Some(ChangeSet { program, log, .. }) = self.changes() else { return Ok(None) };
        session.propose(&program, Limits::default(), log).map(Some)
    }

    /// Returns the calls as a program that makes them; `None` if there are none.
    #[doc(hidden)]
    pub fn changes(&self) -> Option<ChangeSet> {
        let withheld = self.withheld();
        let (mut calls, mut arguments, mut log) = (Vec::new(), Vec::new(), Logged::default());
        for (at, Withheld { given, arguments: sent, objection, literal }) in withheld.iter().enumerate() {
            let ToolCall { server, tool, arguments: text, .. } = given;
            let name = foreign_text::qualified(server, tool);
            match literal {
                Some(literal) => calls.push(format!("#({name} (quote {literal}))")),
                None => calls.push(format!("#({name} (nth data {at}))")),
            }
            arguments.push(text.as_str());
            // One form without branches makes the calls one after the other.
            let ordinal = u32::try_from(at).unwrap_or(u32::MAX);
            let question = Question {
                id: CallId { form: 0, branch: Vec::new(), ordinal },
                server: server.clone(),
                tool: tool.clone(),
                arguments: sent.clone(),
                reason: objection.clone().unwrap_or_else(|| REASON.to_owned()),
                is_guarded: objection.is_some(),
            };
            log.calls.push(Entry::asked(question, text.clone()));
        }
        let program = format!(
            "(reduce\n  (fn [outcomes call]\n    (try (conj outcomes {{:result (call)}})\n      \
             (catch ToolDenied e (conj outcomes {{:denied (ex-message e)}}))\n      \
             (catch Exception e (reduced (conj outcomes {{:failed (ex-message e)}})))))\n  []\n  [{}])",
            calls.join("\n   ")
        );
        (!calls.is_empty()).then(|| ChangeSet { program, data: format!("[{}]", arguments.join(",")), log })
    }
}
