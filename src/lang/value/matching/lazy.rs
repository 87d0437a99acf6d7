//! The lazy DFA, stepped byte by byte: a transition that was taken before costs a look into a table; one that was
//! not is computed from the NFA and paid for by its size.

use crate::lang::value::walk::Pace;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::NFA;
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{Anchored, Input, MatchKind, Span};

/// How many bytes the states of one direction may take, unless the expression itself needs more.
const CAPACITY: usize = 512 << 10;

/// How many parts a step has: a look into the table costs one.
const PARTS: u64 = 64;

/// How many parts are collected before they are paid.
const BATCH: u64 = 128 * PARTS;

/// An expression as DFAs in both directions.
#[derive(Debug)]
pub struct Lazy {
    forward: DFA,
    reverse: DFA,
    /// True if a match can begin at the beginning of the text alone.
    is_anchored: bool,
    /// True if where a match may begin does not depend on what is in front of it.
    begins_anywhere: bool,
}

/// The states of both directions.
#[derive(Debug)]
pub struct Caches {
    forward: States,
    reverse: States,
}

/// The states of one direction.
#[derive(Debug)]
struct States {
    cache: Cache,
    /// How many bytes they took when they were last looked at.
    taken: usize,
    /// By how many bytes the largest of them made the cache grow: computing one takes time in proportion to that.
    largest: u64,
    /// How many steps since then were taken from tagged states.
    unseen: u32,
}

impl States {
    fn new(dfa: &DFA) -> States {
        let cache = dfa.create_cache();
        States { taken: cache.memory_usage(), cache, largest: 0, unseen: 0 }
    }
}

/// What a search came to.
pub enum Bounds {
    /// There is no match.
    None,
    /// Where the match begins and ends.
    Match(usize, usize),
    /// The DFA cannot tell.
    Unknown,
}

/// The DFA cannot tell: its states do not pay, or the text has a byte that it does not know how to take.
struct GivesUp;

/// What ends a search.
enum End<S> {
    GivesUp,
    Stopped(S),
}

impl<S> From<GivesUp> for End<S> {
    fn from(_: GivesUp) -> Self {
        End::GivesUp
    }
}

/// What has been done since it was last paid for.
struct Bill<'p, P: Pace> {
    pace: &'p mut P,
    parts: u64,
}

impl<P: Pace> Bill<'_, P> {
    #[inline]
    fn add(&mut self, parts: u64) -> Result<(), End<P::Stop>> {
        self.parts += parts;
        if self.parts >= BATCH { self.pay() } else { Ok(()) }
    }

    #[inline(never)]
    fn pay(&mut self) -> Result<(), End<P::Stop>> {
        let steps = self.parts / PARTS;
        self.parts %= PARTS;
        self.pace.step(steps).map_err(End::Stopped)
    }
}

impl Lazy {
    /// The DFAs of an expression; `None` if they cannot be built.
    pub fn new(nfa: &NFA, reverse: NFA, prefilter: Option<Prefilter>) -> Option<Lazy> {
        let config = |prefilter: Option<Prefilter>, kind| {
            Config::new()
                .match_kind(kind)
                .specialize_start_states(prefilter.is_some())
                .prefilter(prefilter)
                .unicode_word_boundary(true)
                .cache_capacity(CAPACITY)
                .skip_cache_capacity_check(true)
                .minimum_cache_clear_count(Some(3))
                .minimum_bytes_per_state(Some(10))
        };
        let build = |config, nfa| DFA::builder().configure(config).build_from_nfa(nfa).ok();
        let is_anchored = nfa.is_always_start_anchored();
        Some(Lazy {
            is_anchored,
            begins_anywhere: nfa.look_set_prefix_any().is_empty(),
            forward: build(config(prefilter.filter(|_| !is_anchored), MatchKind::LeftmostFirst), nfa.clone())?,
            reverse: build(config(None, MatchKind::All), reverse)?,
        })
    }

    /// How many bytes [`Lazy::caches`] may come to take.
    pub fn room(&self) -> usize {
        let one = |dfa: &DFA| {
            let least = dfa.get_config().get_minimum_cache_capacity(dfa.get_nfa());
            // What is computed last may lie beyond the capacity.
            least.map_or(CAPACITY, |least| least.max(CAPACITY)) + CAPACITY / 4
        };
        one(&self.forward) + one(&self.reverse)
    }

    /// No states yet.
    pub fn caches(&self) -> Caches {
        Caches { forward: States::new(&self.forward), reverse: States::new(&self.reverse) }
    }

    /// The bounds of the first match at or behind a byte of the text.
    ///
    /// # Errors
    /// What ends the walk early.
    pub fn find<P: Pace>(&self, caches: &mut Caches, text: &str, from: usize, pace: &mut P) -> Result<Bounds, P::Stop> {
        let mut bill = Bill { pace, parts: 0 };
        let found = self.bounds(caches, text, from, &mut bill);
        let steps = bill.parts / PARTS;
        match found {
            Ok(found) => {
                if steps > 0 {
                    bill.pace.step(steps)?;
                }
                Ok(found.map_or(Bounds::None, |(start, end)| Bounds::Match(start, end)))
            }
            Err(End::GivesUp) => {
                bill.pace.step(steps)?;
                Ok(Bounds::Unknown)
            }
            Err(End::Stopped(stop)) => Err(stop),
        }
    }

    fn bounds<P: Pace>(
        &self,
        caches: &mut Caches,
        text: &str,
        from: usize,
        bill: &mut Bill<'_, P>,
    ) -> Result<Option<(usize, usize)>, End<P::Stop>> {
        let Some(end) = self.end(&mut caches.forward, text, from, bill)? else { return Ok(None) };
        if self.is_anchored || end == from {
            return Ok(Some((from, end)));
        }
        let start = self.start(&mut caches.reverse, text, from..end, bill)?;
        Ok(Some((start, end)))
    }

    /// Where the first match ends.
    fn end<P: Pace>(
        &self,
        states: &mut States,
        text: &str,
        from: usize,
        bill: &mut Bill<'_, P>,
    ) -> Result<Option<usize>, End<P::Stop>> {
        let (dfa, bytes) = (&self.forward, text.as_bytes());
        let begin = |states: &mut States, at: usize| {
            dfa.start_state_forward(&mut states.cache, &Input::new(bytes).span(at..bytes.len())).map_err(|_| GivesUp)
        };
        let prefilter = dfa.get_config().get_prefilter();
        let mut at = from;
        let mut state = begin(states, at)?;
        let mut end = None;
        // A state where a match may begin is looked at before its first byte is taken.
        let mut jumps = prefilter.is_some();
        states.cache.search_start(at);
        loop {
            if jumps && let Some(prefilter) = prefilter {
                let found = prefilter.find(bytes, Span::from(at..bytes.len()));
                let next = found.map_or(bytes.len(), |found| found.start);
                // It looks at many bytes at once.
                bill.add((next - at) as u64 / 8)?;
                if found.is_none() {
                    states.cache.search_finish(bytes.len());
                    return Ok(None);
                }
                if next > at {
                    at = next;
                    if !self.begins_anywhere {
                        state = begin(states, at)?;
                    }
                }
                jumps = false;
            }
            let Some(byte) = bytes.get(at) else { break };
            state = next(dfa, states, state, *byte, at, bill)?;
            if state.is_tagged() {
                if state.is_match() {
                    // A match is told one byte late.
                    end = Some(at);
                } else if state.is_dead() {
                    states.cache.search_finish(at);
                    return Ok(end);
                } else if state.is_quit() {
                    states.cache.search_finish(at);
                    return Err(GivesUp.into());
                } else if state.is_start() {
                    jumps = end.is_none();
                }
            }
            at += 1;
        }
        states.cache.search_finish(at);
        let last = dfa.next_eoi_state(&mut states.cache, state).map_err(|_| GivesUp)?;
        Ok(if last.is_match() { Some(bytes.len()) } else { end })
    }

    /// Where the match begins that ends where the span does.
    fn start<P: Pace>(
        &self,
        states: &mut States,
        text: &str,
        span: std::ops::Range<usize>,
        bill: &mut Bill<'_, P>,
    ) -> Result<usize, End<P::Stop>> {
        let (dfa, bytes) = (&self.reverse, text.as_bytes());
        let input = Input::new(bytes).span(span.clone()).anchored(Anchored::Yes);
        let mut state = dfa.start_state_reverse(&mut states.cache, &input).map_err(|_| GivesUp)?;
        let mut start = None;
        states.cache.search_start(span.end);
        for at in span.clone().rev() {
            state = next(dfa, states, state, bytes[at], at, bill)?;
            if state.is_tagged() {
                if state.is_match() {
                    start = Some(at + 1);
                } else if state.is_dead() {
                    states.cache.search_finish(at);
                    return start.ok_or(End::GivesUp);
                } else if state.is_quit() {
                    states.cache.search_finish(at);
                    return Err(GivesUp.into());
                }
            }
        }
        states.cache.search_finish(span.start);
        let last = match span.start.checked_sub(1) {
            Some(before) => dfa.next_state(&mut states.cache, state, bytes[before]),
            None => dfa.next_eoi_state(&mut states.cache, state),
        };
        let last = last.map_err(|_| GivesUp)?;
        if last.is_quit() {
            return Err(GivesUp.into());
        }
        if last.is_match() { Ok(span.start) } else { start.ok_or(End::GivesUp) }
    }
}

/// The state behind a byte.
#[inline(always)]
fn next<P: Pace>(
    dfa: &DFA,
    states: &mut States,
    state: LazyStateID,
    byte: u8,
    at: usize,
    bill: &mut Bill<'_, P>,
) -> Result<LazyStateID, End<P::Stop>> {
    if !state.is_tagged() {
        bill.add(1)?;
        let next = dfa.next_state_untagged(&states.cache, state, byte);
        if !next.is_unknown() {
            return Ok(next);
        }
    }
    compute(dfa, states, state, byte, at, bill)
}

/// How many steps from tagged states are taken before it is seen what they made.
const SEEN_AFTER: u32 = 64;

/// The same where it may have to be computed. Of a tagged state that cannot be told from outside: it is paid in part,
/// and what many of them made is paid together.
#[inline(never)]
fn compute<P: Pace>(
    dfa: &DFA,
    states: &mut States,
    state: LazyStateID,
    byte: u8,
    at: usize,
    bill: &mut Bill<'_, P>,
) -> Result<LazyStateID, End<P::Stop>> {
    states.cache.search_update(at);
    let next = dfa.next_state(&mut states.cache, state, byte).map_err(|_| End::GivesUp)?;
    if state.is_tagged() && states.unseen < SEEN_AFTER {
        states.unseen += 1;
        bill.add(1 + states.largest / 32)?;
        return Ok(next);
    }
    let computed = u64::from(std::mem::take(&mut states.unseen)) + 1;
    let before = std::mem::replace(&mut states.taken, states.cache.memory_usage());
    let grown = states.taken.saturating_sub(before) as u64;
    states.largest = states.largest.max(grown / computed);
    bill.add(if grown == 0 { 2 * states.largest } else { 2 * grown })?;
    Ok(next)
}
