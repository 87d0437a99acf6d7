//! Regular expression search in slices: a search is charged for the work that it really does, and can be stopped at any
//! point.
//!
//! The engines of `regex-automata` run to the end of a text without yielding. This module instead steps their lazy DFA
//! byte by byte ([`lazy`]). Where the DFA gives up or has no answer, an NFA simulation takes over ([`threads`]). The
//! crate's capture engines run only on matches short enough to bound their work.

mod lazy;
mod threads;

use super::walk::Pace;
use lazy::{Bounds, Lazy};
use regex_automata::dfa::onepass;
use regex_automata::nfa::thompson::backtrack::{self, BoundedBacktracker};
use regex_automata::nfa::thompson::{Compiler, Config, NFA, WhichCaptures};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::util::primitives::{NonMaxUsize, PatternID};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::Hir;
use std::fmt;
use threads::Threads;

/// Maximum size in bytes of each of the two NFAs (forward and reverse) of an expression.
pub const SIZE: usize = 1 << 20;

/// Maximum number of text positions remembered at once: states times capture slots.
const PLACES: usize = 1 << 19;

/// Maximum size, in states times bytes, of a match whose groups the backtracker finds in one call.
const AT_ONCE: usize = 200_000;

/// Maximum length in bytes of a match whose groups the one-pass DFA finds in one call, without a check of the deadline.
const ONE_PASS: usize = 1 << 20;

/// Start and end offsets of the groups, alternating.
pub type Slots = Vec<Option<NonMaxUsize>>;

/// An expression compiled for searches.
#[derive(Debug)]
pub struct Compiled {
    nfa: NFA,
    lazy: Option<Lazy>,
    one_pass: Option<onepass::DFA>,
    backtracker: Option<BoundedBacktracker>,
}

/// Reasons why an expression cannot be compiled.
#[derive(Debug)]
pub enum Unfit {
    /// Its syntax is invalid.
    Syntax(Box<regex_syntax::Error>),
    /// It is larger than [`SIZE`].
    Large,
    /// It has too many groups for its number of states: the number of groups, and of states.
    Groups(usize, usize),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Syntax(error) => {
                let said = error.to_string();
                f.write_str(said.lines().last().unwrap_or_default().trim_start_matches("error: "))
            }
            Unfit::Large => write!(f, "Compiled regex exceeds size limit of {SIZE} bytes."),
            Unfit::Groups(groups, states) => {
                let most = PLACES / (2 * states).max(1);
                write!(f, "a regex of {states} states may have at most {most} groups, got {groups}")
            }
        }
    }
}

/// The mutable working memory of searches with one expression.
#[derive(Debug)]
pub struct Tables {
    lazy: Option<lazy::Caches>,
    one_pass: Option<onepass::Cache>,
    backtracker: Option<backtrack::Cache>,
    threads: Threads,
}

impl Compiled {
    /// Compiles an expression in the syntax of the `regex` crate.
    ///
    /// # Errors
    /// Returns [`Unfit`] if the syntax is invalid or the expression exceeds a limit.
    pub fn new(expression: &str) -> Result<Compiled, Unfit> {
        let parsed = regex_syntax::ParserBuilder::new().crlf(true).nest_limit(100).build().parse(expression);
        let parsed = parsed.map_err(|error| Unfit::Syntax(Box::new(error)))?;
        let nfa = automaton(&parsed, Config::new())?;
        let groups = nfa.group_info().all_group_len();
        if groups > 1 && nfa.states().len().saturating_mul(2 * groups) > PLACES {
            return Err(Unfit::Groups(groups - 1, nfa.states().len()));
        }
        let reverse = automaton(&parsed, Config::new().reverse(true).which_captures(WhichCaptures::None))?;
        let prefilter = Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, &parsed);
        let lazy = Lazy::new(&nfa, reverse, prefilter);
        let has_groups = groups > 1;
        let one_pass = has_groups.then(|| {
            let config = onepass::Config::new().size_limit(Some(SIZE / 4));
            onepass::Builder::new().configure(config).build_from_nfa(nfa.clone()).ok()
        });
        let one_pass = one_pass.flatten();
        let backtracker = (has_groups && one_pass.is_none()).then(|| {
            let config = backtrack::Config::new().visited_capacity(AT_ONCE.div_ceil(8));
            BoundedBacktracker::builder().configure(config).build_from_nfa(nfa.clone()).ok()
        });
        Ok(Compiled { lazy, one_pass, backtracker: backtracker.flatten(), nfa })
    }

    /// Returns the number of groups, including the whole match.
    pub fn groups(&self) -> usize {
        self.nfa.group_info().all_group_len()
    }

    /// Returns the index of the group of that name.
    pub fn group(&self, name: &str) -> Option<usize> {
        self.nfa.group_info().to_index(PatternID::ZERO, name)
    }

    /// Returns the maximum number of bytes to which [`Compiled::tables`] can grow.
    pub fn room(&self) -> u64 {
        let (states, groups) = (self.nfa.states().len(), self.groups());
        let slots = if groups > 1 { 2 * groups } else { 2 };
        let threads = 2 * states * (slots * size_of::<Option<NonMaxUsize>>() + 3 * size_of::<u32>());
        let lazy = self.lazy.as_ref().map_or(0, Lazy::room);
        (threads + lazy + AT_ONCE / 8) as u64
    }

    /// Creates the working memory for searches with this expression.
    pub fn tables(&self) -> Tables {
        Tables {
            lazy: self.lazy.as_ref().map(Lazy::caches),
            one_pass: self.one_pass.as_ref().map(onepass::DFA::create_cache),
            backtracker: None,
            threads: Threads::default(),
        }
    }

    /// Finds the first match at or after the byte offset `from`. Overwrites `slots` with the bounds of the match,
    /// followed by those of its groups if `with_groups` is set. Returns true if there is a match.
    ///
    /// # Errors
    /// Returns the error of `pace` if it aborts the search.
    pub fn find<P: Pace>(
        &self,
        tables: &mut Tables,
        text: &str,
        from: usize,
        with_groups: bool,
        slots: &mut Slots,
        pace: &mut P,
    ) -> Result<bool, P::Stop> {
        let mut from = from;
        while self.find_anywhere(tables, text, from, with_groups, slots, pace)? {
            // Skip empty matches inside a multi-byte character.
            let start = slots.first().copied().flatten().map_or(0, NonMaxUsize::get);
            if text.is_char_boundary(start) {
                return Ok(true);
            }
            from = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        }
        Ok(false)
    }

    fn find_anywhere<P: Pace>(
        &self,
        tables: &mut Tables,
        text: &str,
        from: usize,
        with_groups: bool,
        slots: &mut Slots,
        pace: &mut P,
    ) -> Result<bool, P::Stop> {
        let has_groups = with_groups && self.groups() > 1;
        slots.clear();
        slots.resize(if has_groups { 2 * self.groups() } else { 2 }, None);
        let bounds = match (&self.lazy, &mut tables.lazy) {
            (Some(lazy), Some(caches)) => lazy.find(caches, text, from, pace)?,
            _ => Bounds::Unknown,
        };
        match bounds {
            Bounds::None => Ok(false),
            Bounds::Match(start, end) if !has_groups => {
                slots[0] = NonMaxUsize::new(start);
                slots[1] = NonMaxUsize::new(end);
                Ok(true)
            }
            Bounds::Match(start, end) => {
                let input = Input::new(text).span(start..end).anchored(Anchored::Yes);
                self.take_apart(tables, &input, slots, pace)
            }
            Bounds::Unknown => {
                let input = Input::new(text).span(from..text.len());
                tables.threads.find(&self.nfa, &input, slots, pace)
            }
        }
    }

    /// Finds the groups of a match with known bounds.
    fn take_apart<P: Pace>(
        &self,
        tables: &mut Tables,
        input: &Input<'_>,
        slots: &mut Slots,
        pace: &mut P,
    ) -> Result<bool, P::Stop> {
        let length = input.end() - input.start();
        if let (Some(one_pass), Some(cache)) = (&self.one_pass, &mut tables.one_pass)
            && length <= ONE_PASS
        {
            pace.step(1 + length as u64 / 64)?;
            if let Ok(found) = one_pass.try_search_slots(cache, input, slots) {
                return Ok(found.is_some());
            }
        }
        let walked = self.nfa.states().len() * (length + 1);
        if let Some(backtracker) = &self.backtracker
            && walked <= AT_ONCE
        {
            pace.step(1 + walked as u64 / 512)?;
            let cache = tables.backtracker.get_or_insert_with(|| backtracker.create_cache());
            if let Ok(found) = backtracker.try_search_slots(cache, input, slots) {
                return Ok(found.is_some());
            }
        }
        slots.fill(None);
        tables.threads.find(&self.nfa, input, slots, pace)
    }
}

/// Builds the NFA of an expression.
fn automaton(parsed: &Hir, config: Config) -> Result<NFA, Unfit> {
    let config = config.utf8(true).nfa_size_limit(Some(SIZE)).shrink(false);
    // Every other limit of the library is bounded by the length of the expression, so an error means that it is too
    // large.
    Compiler::new().configure(config).build_from_hir(parsed).map_err(|_| Unfit::Large)
}

#[cfg(test)]
mod tests;
