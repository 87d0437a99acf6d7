//! The lazy DFA, stepped byte by byte. A cached transition costs one table lookup. A missing one is computed from the
//! NFA and charged by its size.

use crate::value::walk::Pace;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::NFA;
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{Anchored, Input, MatchKind, Span};

/// Cache capacity in bytes of one direction, unless the expression itself requires more.
const CAPACITY: usize = 512 << 10;

/// Number of parts per charged step. A table lookup costs one part.
const PARTS: u64 = 64;

/// Number of parts that are charged together.
const BATCH: u64 = 128 * PARTS;

/// The forward and reverse lazy DFAs of an expression.
#[derive(Debug)]
pub struct Lazy {
    forward: DFA,
    reverse: DFA,
    /// True if a match can begin only at the beginning of the text.
    is_anchored: bool,
    /// True if the start of a match does not depend on the preceding text (no leading look-around assertion).
    begins_anywhere: bool,
}

/// The caches of both directions.
#[derive(Debug)]
pub struct Caches {
    forward: States,
    reverse: States,
}

/// The state cache of one direction.
#[derive(Debug)]
struct States {
    cache: Cache,
    /// Memory usage of the cache, in bytes, when it was last measured.
    taken: usize,
    /// Largest growth of the cache by one state, in bytes. Computing a state takes time proportional to its size.
    largest: u64,
    /// Number of transitions from tagged states since the last measurement.
    unseen: u32,
}

impl States {
    fn new(dfa: &DFA) -> States {
        let cache = dfa.create_cache();
        States { taken: cache.memory_usage(), cache, largest: 0, unseen: 0 }
    }
}

/// The result of a search for the bounds of a match.
pub enum Bounds {
    /// There is no match.
    None,
    /// The start and the end of the match.
    Match(usize, usize),
    /// The DFA cannot decide.
    Unknown,
}

/// The DFA gives up: its cache is inefficient for this text, or the text has a byte that it cannot process.
struct GivesUp;

/// Reasons for aborting a search.
enum End<S> {
    GivesUp,
    Stopped(S),
}

impl<S> From<GivesUp> for End<S> {
    fn from(_: GivesUp) -> Self {
        End::GivesUp
    }
}

/// The work done since the last charge.
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
    /// Builds the DFAs of an expression; `None` if they cannot be built.
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

    /// Returns the maximum number of bytes to which [`Lazy::caches`] can grow.
    pub fn room(&self) -> usize {
        let one = |dfa: &DFA| {
            let least = dfa.get_config().get_minimum_cache_capacity(dfa.get_nfa());
            // The last computed state may exceed the capacity.
            least.map_or(CAPACITY, |least| least.max(CAPACITY)) + CAPACITY / 4
        };
        one(&self.forward) + one(&self.reverse)
    }

    /// Creates empty caches.
    pub fn caches(&self) -> Caches {
        Caches { forward: States::new(&self.forward), reverse: States::new(&self.reverse) }
    }

    /// Finds the bounds of the first match at or after the byte offset `from`.
    ///
    /// # Errors
    /// Returns the error of `pace` if it aborts the search.
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

    /// Returns the end of the first match.
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
        // The prefilter runs in a start state, before its first byte is consumed.
        let mut jumps = prefilter.is_some();
        states.cache.search_start(at);
        loop {
            if jumps && let Some(prefilter) = prefilter {
                let found = prefilter.find(bytes, Span::from(at..bytes.len()));
                let next = found.map_or(bytes.len(), |found| found.start);
                // The prefilter examines many bytes per instruction.
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
                    // The DFA reports a match one byte late.
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

    /// Returns the start of the match that ends at the end of the span.
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

/// Returns the successor of a state for a byte.
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

/// Number of transitions from tagged states between two measurements of the cache.
const SEEN_AFTER: u32 = 64;

/// Cold path of [`next`]: the transition may have to be computed. For a tagged state the crate does not reveal whether
/// it was. Such transitions are charged an estimate, and after [`SEEN_AFTER`] of them the measured growth of the cache
/// is charged.
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
