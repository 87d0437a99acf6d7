//! The knowledge about servers and tools that a run has received from its host: recorded, and given again.

use crate::host::{
    Audience, CallId, Catalogue, Decision, Found, Host, Question, Server, Tool, ToolCall, ToolError, ToolReply,
};
use crate::runs::recorder::unrecorded;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A question to the host, other than a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Asked {
    Servers,
    Tools(String),
    ToolsAnew(String),
    Instructions(String),
    Denied(String),
    Catalogue,
    Search(String, usize),
    Note(CallId),
}

/// An answer of the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Answer {
    Servers(Vec<Server>),
    Tools(Result<Vec<Arc<Tool>>, ToolError>),
    ToolsAnew(Option<Vec<Arc<Tool>>>),
    Instructions(Option<String>),
    Denied(Vec<(String, String)>),
    Catalogue(Catalogue),
    Found(Found),
    Note(Option<String>),
}

/// What a run has learned about servers and tools: for each question the different answers, in order, each with the
/// number of times that it was given in a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Observed(Vec<(Asked, Vec<(Answer, u32)>)>);

impl Observed {
    /// Adds what a later evaluation of the same run has learned.
    pub fn extend(&mut self, later: Observed) {
        for (asked, answers) in later.0 {
            match self.0.iter_mut().find(|(known, _)| *known == asked) {
                Some((_, known)) => {
                    let is_new = |answer: &(Answer, u32)| known.last().is_none_or(|(last, _)| *last != answer.0);
                    let from = answers.iter().position(is_new).unwrap_or(answers.len());
                    known.extend(answers.into_iter().skip(from));
                }
                None => self.0.push((asked, answers)),
            }
        }
    }
}

/// Most bytes of questions and answers that a witness keeps.
const MOST_SEEN: u64 = 4 << 20;

impl Asked {
    fn bytes(&self) -> usize {
        match self {
            Asked::Tools(text)
            | Asked::ToolsAnew(text)
            | Asked::Instructions(text)
            | Asked::Denied(text)
            | Asked::Search(text, _) => text.len(),
            Asked::Servers | Asked::Catalogue | Asked::Note(_) => 0,
        }
    }
}

impl Answer {
    /// Returns its size in bytes, without the descriptions of tools, which are shared.
    fn bytes(&self) -> usize {
        let of_list = |tools: usize, missing: usize| 16 * tools + 256 * missing;
        200 + match self {
            Answer::Tools(Ok(tools)) | Answer::ToolsAnew(Some(tools)) => of_list(tools.len(), 0),
            Answer::Tools(Err(error)) => error.message.len(),
            Answer::Catalogue(catalogue) => of_list(catalogue.tools.len(), catalogue.missing.len()),
            Answer::Found(found) => of_list(found.tools.len(), found.missing.len()),
            Answer::Note(text) | Answer::Instructions(text) => text.as_ref().map_or(0, String::len),
            Answer::Servers(_) | Answer::ToolsAnew(None) | Answer::Denied(_) => 0,
        }
    }
}

/// A host that records what another one says about servers and tools, up to a size.
pub struct Witness<H> {
    inner: H,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    answers: HashMap<Asked, Vec<(Answer, u32)>>,
    bytes: u64,
}

impl<H> Witness<H> {
    /// Creates a witness of that host.
    pub fn new(inner: H) -> Witness<H> {
        Witness { inner, seen: Mutex::default() }
    }

    /// Returns what was recorded.
    pub fn observed(&self) -> Observed {
        Observed(self.seen().answers.iter().map(|(asked, answers)| (asked.clone(), answers.clone())).collect())
    }

    /// Returns true if something was not recorded, because there was no room for it.
    pub fn is_full(&self) -> bool {
        self.seen().bytes > MOST_SEEN
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, asked: Asked, answer: Answer) {
        let mut seen = self.seen();
        if let Some((last, count)) = seen.answers.get_mut(&asked).and_then(|answers| answers.last_mut())
            && *last == answer
        {
            *count = count.saturating_add(1);
            return;
        }
        let bytes = (asked.bytes() + answer.bytes()) as u64;
        if seen.bytes <= MOST_SEEN {
            seen.bytes += bytes;
        }
        if seen.bytes <= MOST_SEEN {
            seen.answers.entry(asked).or_default().push((answer, 1));
        }
    }
}

impl<H> Host for Witness<H>
where
    H: Deref + Send + Sync,
    H::Target: Host,
{
    fn servers(&self) -> Vec<Server> {
        let servers = self.inner.servers();
        self.see(Asked::Servers, Answer::Servers(servers.clone()));
        servers
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        let tools = self.inner.tools(server);
        self.see(Asked::Tools(server.to_owned()), Answer::Tools(tools.clone()));
        tools
    }

    fn tools_anew(&self, server: &str) -> Option<Vec<Arc<Tool>>> {
        let tools = self.inner.tools_anew(server);
        self.see(Asked::ToolsAnew(server.to_owned()), Answer::ToolsAnew(tools.clone()));
        tools
    }

    fn instructions(&self, server: &str) -> Option<String> {
        let instructions = self.inner.instructions(server);
        self.see(Asked::Instructions(server.to_owned()), Answer::Instructions(instructions.clone()));
        instructions
    }

    fn denied(&self, server: &str) -> Vec<(String, String)> {
        let denied = self.inner.denied(server);
        self.see(Asked::Denied(server.to_owned()), Answer::Denied(denied.clone()));
        denied
    }

    fn catalogue(&self) -> Catalogue {
        let catalogue = self.inner.catalogue();
        self.see(Asked::Catalogue, Answer::Catalogue(catalogue.clone()));
        catalogue
    }

    fn search(&self, query: &str, most: usize) -> Found {
        let found = self.inner.search(query, most);
        self.see(Asked::Search(query.to_owned(), most), Answer::Found(found.clone()));
        found
    }

    fn note(&self, call: &CallId) -> Option<String> {
        let note = self.inner.note(call);
        if note.is_some() {
            self.see(Asked::Note(call.clone()), Answer::Note(note.clone()));
        }
        note
    }

    fn audience(&self) -> Audience {
        self.inner.audience()
    }

    fn refused(&self, server: &str, tool: &str) {
        self.inner.refused(server, tool);
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        self.inner.call(call)
    }

    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        self.inner.decide(questions)
    }

    fn begin_form(&self, form: u32) {
        self.inner.begin_form(form);
    }

    fn give_up(&self, call: &CallId) {
        self.inner.give_up(call);
    }

    fn print(&self, text: &str) {
        self.inner.print(text);
    }

    fn now_millis(&self) -> i64 {
        self.inner.now_millis()
    }

    fn fork_session(&self) -> Result<String, String> {
        self.inner.fork_session()
    }

    fn close_session(&self) -> Result<(), String> {
        self.inner.close_session()
    }

    fn held(&self) -> u64 {
        self.inner.held() + self.seen().bytes.min(MOST_SEEN)
    }

    fn runs(&self, run: Option<&str>) -> Result<String, String> {
        self.inner.runs(run)
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }

    fn monotonic(&self) -> Duration {
        self.inner.monotonic()
    }

    fn processor_time(&self) -> Option<Duration> {
        self.inner.processor_time()
    }

    fn cancelled(&self) -> bool {
        self.inner.cancelled()
    }
}

/// A host without servers, which repeats what a recorded run has learned. It calls nothing.
pub struct Stage {
    observed: HashMap<Asked, Vec<(Answer, u32)>>,
    /// The position among the answers to each question.
    at: Mutex<HashMap<Asked, (usize, u32)>>,
}

impl Stage {
    /// Creates the host for a replay.
    pub fn new(observed: Observed) -> Stage {
        Stage { observed: observed.0.into_iter().collect(), at: Mutex::default() }
    }

    /// Returns the next answer to a question; the last one, if it is asked more often than recorded.
    fn answer(&self, asked: Asked) -> Option<&Answer> {
        let answers = self.observed.get(&asked)?;
        let mut all = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, times) = all.entry(asked).or_default();
        let (answer, count) = answers.get(*at)?;
        *times += 1;
        if *times >= *count && *at + 1 < answers.len() {
            (*at, *times) = (*at + 1, 0);
        }
        Some(answer)
    }
}

impl Host for Stage {
    fn audience(&self) -> Audience {
        Audience::User
    }

    fn servers(&self) -> Vec<Server> {
        match self.answer(Asked::Servers) {
            Some(Answer::Servers(servers)) => servers.clone(),
            _ => Vec::new(),
        }
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        match self.answer(Asked::Tools(server.to_owned())) {
            Some(Answer::Tools(tools)) => tools.clone(),
            _ => Err(ToolError::unavailable(format!("the record does not have the tools of server `{server}`"))),
        }
    }

    fn tools_anew(&self, server: &str) -> Option<Vec<Arc<Tool>>> {
        match self.answer(Asked::ToolsAnew(server.to_owned())) {
            Some(Answer::ToolsAnew(tools)) => tools.clone(),
            _ => None,
        }
    }

    fn instructions(&self, server: &str) -> Option<String> {
        match self.answer(Asked::Instructions(server.to_owned())) {
            Some(Answer::Instructions(instructions)) => instructions.clone(),
            _ => None,
        }
    }

    fn denied(&self, server: &str) -> Vec<(String, String)> {
        match self.answer(Asked::Denied(server.to_owned())) {
            Some(Answer::Denied(denied)) => denied.clone(),
            _ => Vec::new(),
        }
    }

    fn catalogue(&self) -> Catalogue {
        match self.answer(Asked::Catalogue) {
            Some(Answer::Catalogue(catalogue)) => catalogue.clone(),
            _ => Catalogue::default(),
        }
    }

    fn search(&self, query: &str, most: usize) -> Found {
        match self.answer(Asked::Search(query.to_owned(), most)) {
            Some(Answer::Found(found)) => found.clone(),
            _ => Found::default(),
        }
    }

    fn note(&self, call: &CallId) -> Option<String> {
        match self.answer(Asked::Note(call.clone())) {
            Some(Answer::Note(note)) => note.clone(),
            _ => None,
        }
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        ToolReply::Diverged(unrecorded(&call))
    }

    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        questions.iter().map(|_| Decision::Pending).collect()
    }

    fn close_session(&self) -> Result<(), String> {
        Ok(())
    }
}
