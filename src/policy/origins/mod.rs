//! The origins of values: which texts the tools, the user and the programs of a session have given.
//!
//! Texts are found again by content: whole values, and the [tokens] within longer texts. There are two indices. That of
//! *same* texts is for allow-lists: a text is in it only if a source gave exactly this text, apart from the case of
//! addresses and hosts. That of texts that look *alike* is for deny-lists and for messages. Both have a maximum size;
//! what was not added for lack of room is in no index, so no allow-list accepts it.
//!
//! Two designs were considered. An index in the language's session would be encoded and forked with it, but with
//! isolated workers the process that runs the program would answer for the origin of its own arguments. The index is
//! therefore kept by the server, beside the session, and stored with its text.

mod addresses;
mod index;
mod likeness;
mod literals;
mod part;
mod queue;
mod replies;
mod stored;
mod texts;
mod tokens;
mod urls;
mod words;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use lispbox_lang::internal::canonical;
use lispbox_lang::{OsRandom, ToolReply};

use index::IndexKey;
use likeness::{alike, sent_forms};
use literals::Told;
use queue::Queue;
use texts::Texts;
use words::is_said;

pub use addresses::{addresses, listed_hosts, may_be_list};
pub use likeness::looks_like;
pub use literals::shown;
pub use part::{Part, hosts};
pub use replies::is_name;
pub use urls::{Ports, UrlRules};

/// Most bytes of the words of the user; the oldest are dropped, and are no longer accepted as theirs.
const MOST_WORDS: usize = 64 << 10;
/// Longest value that is taken apart into the values from which it may have been joined.
const LONGEST_JOINED: usize = 2_048;
/// Fewest characters of a part that a program did not write and that is joined to others without a separator.
const SHORTEST_PART: usize = 4;
/// Longest text of which the whole is looked for by likeness; of longer ones only the tokens are.
const LONGEST_ALIKE: usize = 256;

/// Names of the field at the top of a result that contains the result itself.
const ENVELOPES: [&str; 11] =
    ["data", "entries", "items", "list", "records", "response", "result", "results", "rows", "value", "values"];

/// A source of texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Source {
    /// The words of the user.
    #[serde(rename = "user")]
    User,
    /// A program that was sent before text of an untrusted source was in a reply of the session.
    #[serde(rename = "program")]
    Program,
    /// A program that was sent later.
    #[serde(rename = "model")]
    Model,
    /// A tool, with the number of the program that called it first, and the place in its result.
    #[serde(untagged)]
    Tool { server: Arc<str>, tool: Arc<str>, program: u64, place: String },
}

impl Source {
    /// Returns its size, in bytes.
    fn bytes(&self) -> usize {
        size_of::<Source>() + if let Source::Tool { place, .. } = self { place.len() } else { 0 }
    }

    /// Returns whether both are the same apart from the program.
    fn is_of(&self, other: &Source) -> bool {
        match (self, other) {
            (
                Source::Tool { server, tool, place, .. },
                Source::Tool { server: other_server, tool: other_tool, place: other_place, .. },
            ) => server == other_server && tool == other_tool && place == other_place,
            _ => self == other,
        }
    }

    /// Returns whether the text was at a place of a result: at one of the paths of fields from its top that a `|` separates,
    /// apart from lists and from an [envelope](ENVELOPES).
    pub fn is_at(&self, paths: &str) -> bool {
        let Source::Tool { place, .. } = self else { return false };
        let fields = |path: &str| -> Vec<String> {
            path.replace("[*]", "").split('.').filter(|field| !field.is_empty()).map(canonical).collect()
        };
        let found = fields(place);
        let inner =
            found.split_first().filter(|(first, _)| !place.starts_with('[') && ENVELOPES.contains(&first.as_str()));
        paths.split('|').map(fields).any(|wanted| {
            // Without a field, it is an item of a list.
            let is_item = !wanted.is_empty() || place.ends_with(']');
            is_item && (found == wanted || inner.is_some_and(|(_, inner)| *inner == wanted[..]))
        })
    }
}

/// Describes where a value was found, as a clause.
impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::User => formatter.write_str("the words of the user contain it"),
            Source::Program => formatter.write_str("the program contains it"),
            Source::Model => {
                formatter.write_str("the model wrote it after it had read text of tools that are not trusted")
            }
            Source::Tool { server, tool, program, place } if place.is_empty() => {
                write!(formatter, "found in a result of `{server}/{tool}` (program {program} of the session)")
            }
            Source::Tool { server, tool, program, place } => {
                write!(
                    formatter,
                    "found in `{place}` of a result of `{server}/{tool}` (program {program} of the session)"
                )
            }
        }
    }
}

/// The treatment of the texts of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// True if an allow-list names the tool.
    pub is_named: bool,
    /// True if its texts leave the model free to write what it wants.
    pub is_trusted: bool,
}

/// The origins of the values of one session.
pub struct Origins {
    facts: Mutex<Facts>,
    texts: Mutex<Texts>,
    queue: Queue<Job>,
    /// The memory of the indices in bytes, as it was after the last job.
    size: AtomicU64,
}

/// Facts that are known at once.
#[derive(Clone, Default)]
struct Facts {
    /// The words of the user, in the form in which they are compared.
    words: Vec<String>,
    /// The number of programs so far.
    programs: u64,
    /// True once a tool has returned something.
    has_replies: bool,
    /// True once a tool that is not trusted has returned something.
    has_untrusted: bool,
    /// True once such text may have been in a reply to the model.
    is_read: bool,
    /// The amount that the replies have told the model before.
    told: Told,
    /// The number of changes, for who stores it.
    changes: u64,
}

/// Texts that are to be added.
enum Job {
    Sent { arguments: String, words: Vec<String> },
    Words(String),
    Program { program: String, data: Option<String>, source: Source },
    Reply { reply: ToolReply, source: Source, is_named: bool },
}

/// The origins of a session that has done nothing yet.
impl Default for Origins {
    fn default() -> Origins {
        let mut key = [0; 16];
        if getrandom::fill(&mut key).is_err() {
            // Without randomness of the system, there are the seeds of hash tables.
            key[..8].copy_from_slice(&OsRandom.bits().to_le_bytes());
            key[8..].copy_from_slice(&OsRandom.bits().to_le_bytes());
        }
        Origins::of(Facts::default(), Texts::new(IndexKey(key)))
    }
}

impl Origins {
    fn of(facts: Facts, texts: Texts) -> Origins {
        let size = AtomicU64::new(texts.bytes());
        Origins { facts: Mutex::new(facts), texts: Mutex::new(texts), queue: Queue::default(), size }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all texts are added.
    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.queue.wait();
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(self: &Arc<Self>, job: Job, bytes: usize) {
        fn work(origins: &Origins) {
            origins.queue.work(|job| {
                let mut texts = origins.texts.lock().unwrap_or_else(PoisonError::into_inner);
                texts.add_all(job);
                origins.size.store(texts.bytes(), Ordering::Relaxed);
            });
        }
        match self.queue.add(job, bytes) {
            (true, true) => queue::in_background(self, work),
            (true, false) => work(self),
            (false, _) => {}
        }
    }

    /// Copies the origins, for a copy of the session.
    pub fn copied(&self) -> Origins {
        Origins::of(self.facts().clone(), self.texts().clone())
    }

    /// Replaces all of it, when the session is replaced.
    pub fn replace(&self, other: Origins) {
        let texts = other.texts().clone();
        self.size.store(texts.bytes(), Ordering::Relaxed);
        *self.texts() = texts;
        let mut facts = self.facts();
        *facts = Facts { changes: facts.changes + 1, ..other.facts().clone() };
    }

    /// Records that the model may have read text that is not trusted in another session.
    pub fn read_elsewhere(&self) {
        let mut facts = self.facts();
        if !facts.is_read {
            facts.is_read = true;
            facts.changes += 1;
        }
    }

    /// Records that programs have run without guards: it is unknown what the model has read. That is not stored; a
    /// stored session without origins is taken as such.
    pub fn unwatched(&self) {
        self.facts().is_read = true;
    }

    /// Records that programs work on text that is not trusted and that no tool has returned.
    pub fn add_untrusted(&self) {
        let mut facts = self.facts();
        if !facts.has_untrusted {
            facts.has_untrusted = true;
            facts.changes += 1;
        }
    }

    /// Returns whether a tool has returned something.
    pub fn has_replies(&self) -> bool {
        self.facts().has_replies
    }

    /// Returns the memory of the indices in bytes, without texts that are still to be added.
    pub fn bytes(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Returns the number of changes so far.
    pub fn changes(&self) -> u64 {
        self.facts().changes
    }

    /// Adds the words of the user, as the client passes them.
    pub fn add_words(self: &Arc<Self>, words: &str) {
        {
            let mut facts = self.facts();
            let lowercase = words.to_ascii_lowercase();
            if facts.words.last() == Some(&lowercase) || words.len() > MOST_WORDS {
                return;
            }
            facts.changes += 1;
            facts.words.push(lowercase);
            while facts.words.iter().map(String::len).sum::<usize>() > MOST_WORDS {
                facts.words.remove(0);
            }
        }
        self.add(Job::Words(words.to_owned()), words.len());
    }

    /// Begins a program with its data, and adds its literals. They are the model's if the model may have read text that
    /// is not trusted, in this session or, unless `is_unread`, elsewhere.
    pub fn add_program(self: &Arc<Self>, program: &str, data: Option<&str>, is_unread: bool) {
        let source = {
            let mut facts = self.facts();
            facts.programs += 1;
            facts.changes += 1;
            if is_unread && !facts.is_read { Source::Program } else { Source::Model }
        };
        let job = Job::Program { program: program.to_owned(), data: data.map(str::to_owned), source };
        self.add(job, program.len() + data.map_or(0, str::len));
    }

    /// Adds the arguments of a call that is about to be made, or was. If they are no JSON text, they are not known any more:
    /// whatever a tool returns from then on may be what was sent.
    pub fn add_sent(self: &Arc<Self>, arguments: &str) {
        let words = self.facts().words.clone();
        self.add(Job::Sent { arguments: arguments.to_owned(), words }, arguments.len());
    }

    /// Adds the texts of a reply to a call.
    pub fn add_reply(self: &Arc<Self>, server: &Arc<str>, tool: &Arc<str>, reply: &ToolReply, standing: Standing) {
        let bytes = match reply {
            ToolReply::Json(text) | ToolReply::Text(text) | ToolReply::Marked(text) => text.len(),
            ToolReply::Error(error) => error.message.len(),
            _ => return,
        };
        let program = {
            let mut facts = self.facts();
            facts.has_replies = true;
            facts.has_untrusted |= !standing.is_trusted;
            facts.changes += 1;
            facts.programs
        };
        let (server, tool) = (Arc::clone(server), Arc::clone(tool));
        let source = Source::Tool { server, tool, program, place: String::new() };
        // An error repeats what it was called with.
        let is_named = standing.is_named && !matches!(reply, ToolReply::Error(_));
        self.add(Job::Reply { reply: reply.clone(), source, is_named }, bytes);
    }

    /// Records that the model receives a reply to a program, or a description of the session.
    pub fn add_reading(&self, program: &str, reply: &str) {
        if self.facts().has_untrusted {
            self.add_other_reading(program, reply);
        }
    }

    /// Records that the model receives a reply to a program for which text that is not trusted may have been returned in
    /// another session.
    pub fn add_other_reading(&self, program: &str, reply: &str) {
        let mut facts = self.facts();
        if !facts.is_read {
            match facts.told.with(reply, program) {
                Some(told) => facts.told = told,
                None => facts.is_read = true,
            }
            facts.changes += 1;
        }
    }

    /// Returns whether text that is not trusted may have been in a reply of the session.
    pub fn is_read(&self) -> bool {
        self.facts().is_read
    }

    /// Returns whether a value came from accepted sources: one of them gave exactly this value, or each of the values
    /// from which it was joined.
    pub fn gave(&self, value: &str, accepts: &dyn Fn(&Source) -> bool) -> bool {
        let words = if accepts(&Source::User) { self.facts().words.clone() } else { Vec::new() };
        let accepted = Accepted { texts: &self.texts(), words, accepts };
        accepted.whole(value) || accepted.joined(value)
    }

    /// Returns the sources that gave a text which looks like the value, or like a token within it, also after the value
    /// is decoded. The second result is true if there may be others.
    pub fn resembling(&self, value: &str) -> (Vec<Source>, bool) {
        let texts = self.texts();
        let mut found: Vec<Source> = Vec::new();
        let mut look = |text: &str| {
            for source in texts.alike.get(texts.key.fingerprint(alike(text))) {
                if !found.contains(source) {
                    found.push(source.clone());
                }
            }
        };
        for value in [Some(value.to_owned()), likeness::percent_decoded(value)].into_iter().flatten() {
            look(&value);
            tokens::tokens(&value, &mut |token| {
                // The domain of an address is that of other people too.
                if !token.starts_with('@') {
                    look(token);
                    urls::without_port(token).into_iter().for_each(&mut look);
                }
            });
        }
        (found, texts.alike.is_full)
    }
}

/// The texts of accepted sources.
struct Accepted<'a> {
    texts: &'a Texts,
    /// The words of the user, if they are accepted.
    words: Vec<String>,
    accepts: &'a dyn Fn(&Source) -> bool,
}

/// The reason for which a part is accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A program wrote it.
    Written,
    /// The user or a tool gave it.
    Given,
    Separator,
}

impl Accepted<'_> {
    fn whole(&self, value: &str) -> bool {
        self.source(value).is_some() || is_said(&self.words, value)
    }

    /// Returns how a text came from an accepted source.
    fn source(&self, text: &str) -> Option<Kind> {
        let sources = sent_forms(text).flat_map(|form| self.texts.same.get(self.texts.key.fingerprint(&*form)));
        let mut kinds = sources.filter(|source| (self.accepts)(source)).map(|source| match source {
            Source::Tool { .. } | Source::User => Kind::Given,
            Source::Program | Source::Model => Kind::Written,
        });
        let first = kinds.next()?;
        Some(if kinds.any(|kind| kind == Kind::Written) { Kind::Written } else { first })
    }

    /// Returns whether the value consists of accepted parts: of what programs wrote, and of whole values and tokens of
    /// others, which are between separators of lists or beside something that a program wrote.
    fn joined(&self, value: &str) -> bool {
        if value.len() > LONGEST_JOINED {
            return false;
        }
        let ends = likeness::boundaries(value);
        // A parser of addresses may take other items of a list for addresses too.
        let is_list = !value.contains('@') || addresses(value).is_ok();
        // The kinds of the part that ends at each boundary.
        let mut reached: Vec<Vec<Kind>> = vec![Vec::new(); ends.len()];
        for to in 1..ends.len() {
            for from in 0..to {
                if from > 0 && reached[from].is_empty() {
                    continue;
                }
                let text = &value[ends[from]..ends[to]];
                // A separator is between parts; only that of an address also ends a value.
                let may_separate = is_list && from > 0 && (to < ends.len() - 1 || text == ">");
                let Some(kind) = self.part(text, may_separate) else { continue };
                let is_bounded = |kind: Option<Kind>| kind.is_none_or(|kind| kind == Kind::Separator);
                let fits = |before: Option<Kind>| match kind {
                    Kind::Separator | Kind::Written => true,
                    Kind::Given => match before {
                        Some(Kind::Given) => false,
                        before => is_bounded(before) || text.len() >= SHORTEST_PART,
                    },
                };
                let is_reached =
                    if from == 0 { fits(None) } else { reached[from].iter().any(|before| fits(Some(*before))) };
                if is_reached && !reached[to].contains(&kind) {
                    reached[to].push(kind);
                }
            }
        }
        // Separators alone come from no source.
        let is_text = value.chars().any(char::is_alphanumeric);
        is_text && reached.last().is_some_and(|kinds| !kinds.is_empty())
    }

    fn part(&self, text: &str, may_separate: bool) -> Option<Kind> {
        if may_separate && likeness::is_separator(text) {
            return Some(Kind::Separator);
        }
        let given = || is_said(&self.words, text).then_some(Kind::Given);
        self.source(text).or_else(given)
    }
}

#[cfg(test)]
mod tests;
