//! The indices of texts: those of the same texts and of texts that look alike, by source, and those that were sent.

use std::collections::HashSet;

use lispbox_lang::ToolReply;
use lispbox_lang::internal::unmarked;

use super::index::{Fingerprint, Index, IndexKey};
use super::likeness::{self, alike, given_forms, sent_forms};
use super::words::{is_said, whole_address};
use super::{Job, LONGEST_ALIKE, Source, literals, replies, tokens, urls};

/// Most texts of sources that allow-lists name.
pub(super) const MOST_SAME: usize = 200_000;
/// Most texts of all sources.
pub(super) const MOST_ALIKE: usize = 400_000;
/// Most texts that were sent to tools. After that no text of a tool is added to the index of same texts.
pub(super) const MOST_SENT: usize = 400_000;
/// Stands for all texts, if it is not known what was sent. No text is it.
const ANYTHING: &str = "\0anything";

/// The indices, which are complete once the queue is empty.
#[derive(Clone)]
pub(super) struct Texts {
    pub(super) key: IndexKey,
    pub(super) same: Index,
    pub(super) alike: Index,
    /// Texts sent to tools, by their look, apart from those that the user had said: a tool that only repeats them is not
    /// their source.
    pub(super) sent: HashSet<Fingerprint>,
}

impl Texts {
    pub(super) fn new(key: IndexKey) -> Texts {
        Texts { key, same: Index::default(), alike: Index::default(), sent: HashSet::new() }
    }

    pub(super) fn add_all(&mut self, job: Job) {
        match job {
            Job::Sent { arguments, words } => self.add_sent(&arguments, &words),
            Job::Words(words) => {
                let Texts { key, same: exact, .. } = self;
                let lowercase = [words.to_ascii_lowercase()];
                // The words as a whole are looked for by their parts.
                tokens::tokens(&words, &mut |token| {
                    // A part of an address is another one.
                    if token.find('@').is_none_or(|at| at == 0) || is_said(&lowercase, token) {
                        given_forms(token)
                            .for_each(|form| exact.add(key.fingerprint(&*form), &Source::User, MOST_SAME));
                    }
                });
            }
            Job::Program { program, data, source } => {
                literals::of_program(&program, &mut |text| self.add(text, &source, true));
                if let Some(data) = data {
                    replies::texts(&data, &mut |_, text| self.add(text, &source, true));
                }
            }
            Job::Reply { reply, mut source, is_named } => {
                let mut add = |at: &str, text: &str| {
                    if let Source::Tool { place, .. } = &mut source
                        && place != at
                    {
                        at.clone_into(place);
                    }
                    self.add(text, &source, is_named);
                };
                match &reply {
                    ToolReply::Json(text) => replies::texts(text, &mut add),
                    ToolReply::Marked(text) => replies::texts(&unmarked(text), &mut add),
                    ToolReply::Text(text) => replies::text(text, "", &mut add),
                    ToolReply::Error(error) => replies::text(&error.message, "", &mut add),
                    _ => {}
                }
                #[cfg(feature = "tracing")]
                {
                    let (texts, bytes) = (self.same.len() + self.alike.len(), self.bytes());
                    tracing::debug!(texts, bytes, "the origins of a result are recorded");
                }
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.same.bytes() + self.alike.bytes() + self.sent.capacity() * (size_of::<Fingerprint>() + 1)) as u64
    }

    /// Adds texts that are sent to a tool, unless the user has said them.
    fn add_sent(&mut self, arguments: &str, words: &[String]) {
        let Texts { key, same: exact, sent, .. } = self;
        if !arguments.starts_with(['{', '[']) {
            // They were too long to be kept.
            sent.insert(key.sent(ANYTHING));
            return;
        }
        let is_users =
            |text: &str| sent_forms(text).any(|form| exact.get(key.fingerprint(&*form)).contains(&Source::User));
        let mut add = |text: &str| {
            if sent.len() < MOST_SENT && !is_users(text) {
                sent.extend(given_forms(text).map(|form| key.sent(&form)));
            }
        };
        replies::texts(arguments, &mut |_, text| {
            for text in [Some(text.to_owned()), likeness::percent_decoded(text)].into_iter().flatten() {
                if text.len() > LONGEST_ALIKE || !is_said(words, &text) {
                    add(&text);
                }
                tokens::tokens(&text, &mut add);
            }
        });
    }

    fn add(&mut self, text: &str, source: &Source, is_named: bool) {
        let Texts { key, same: exact, alike: similar, sent } = self;
        let is_tool = matches!(source, Source::Tool { .. });
        // Sessions that earlier versions have stored contain what was sent as it was.
        let is_sent = |form: &str| sent.contains(&key.sent(form)) || sent.contains(&key.fingerprint(form));
        let is_all = is_tool && (sent.len() >= MOST_SENT || sent.contains(&key.sent(ANYTHING)));
        let is_repeated = |form: &str| is_all || is_tool && is_sent(form);
        let mut add = |text: &str| {
            if is_named {
                for form in given_forms(text).filter(|form| !is_repeated(form)) {
                    exact.add(key.fingerprint(&*form), source, MOST_SAME);
                }
            }
            if text.len() <= LONGEST_ALIKE {
                for text in [Some(text), urls::without_port(text)].into_iter().flatten() {
                    similar.add(key.fingerprint(alike(text)), source, MOST_ALIKE);
                }
            }
        };
        add(text);
        tokens::tokens(text, &mut |token| {
            let token = whole_address(text, token);
            if token.len() < text.len() {
                add(token);
            }
        });
    }
}
