//! NFA simulation (a Pike VM): threads advance through the NFA in parallel, in order of preference, each with its own
//! capture slots. Finds a match where the DFA cannot.

use super::Slots;
use crate::value::walk::Pace;
use regex_automata::Input;
use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::{NonMaxUsize, StateID};

/// Number of visited states that are charged together.
const BATCH: u64 = 2_048;

/// Number of visited states per charged step.
const VISITED: u64 = 8;

/// The threads at the current byte and at the next one.
#[derive(Debug, Default)]
pub struct Threads {
    current: Row,
    next: Row,
    stack: Vec<Task>,
    /// Number of visited states not charged yet.
    visited: u64,
}

/// The states that threads are in, in order of preference, and the capture slots of each.
#[derive(Debug, Default)]
struct Row {
    states: Vec<StateID>,
    /// Sparse set index: for each state, its index in `states` if it is a member.
    index: Vec<u32>,
    places: Slots,
}

impl Row {
    fn reset(&mut self, states: usize, places: usize) {
        self.states.clear();
        if self.index.len() < states {
            self.index.resize(states, 0);
        }
        if self.places.len() < states * places {
            self.places.resize(states * places, None);
        }
    }

    /// Adds a state. Returns false if it is already a member.
    fn insert(&mut self, state: StateID) -> bool {
        let at = self.index[state.as_usize()] as usize;
        if self.states.get(at) == Some(&state) {
            return false;
        }
        self.index[state.as_usize()] = self.states.len() as u32;
        self.states.push(state);
        true
    }
}

/// A pending step of the epsilon closure.
#[derive(Debug)]
enum Task {
    Visit(StateID),
    Restore(usize, Option<NonMaxUsize>),
}

impl Threads {
    /// Finds the first match within the input and fills as many capture slots as `slots` has. Returns true if there is
    /// a match.
    ///
    /// # Errors
    /// Returns the error of `pace` if it aborts the search.
    pub fn find<P: Pace>(
        &mut self,
        nfa: &NFA,
        input: &Input<'_>,
        slots: &mut Slots,
        pace: &mut P,
    ) -> Result<bool, P::Stop> {
        let (states, places) = (nfa.states().len(), slots.len());
        self.current.reset(states, places);
        self.next.reset(states, places);
        self.stack.clear();
        let is_anchored = input.get_anchored().is_anchored() || nfa.is_always_start_anchored();
        let mut own: Slots = vec![None; places];
        let mut found = false;
        for at in input.start()..=input.end() {
            if self.current.states.is_empty() && (found || (is_anchored && at > input.start())) {
                break;
            }
            // A match that begins here has lower preference than all that began earlier.
            if !found && (!is_anchored || at == input.start()) {
                own.fill(None);
                self.visit(nfa, input, at, nfa.start_anchored(), &mut own, true);
            }
            found |= self.step(nfa, input, at, &mut own, slots, pace)?;
            std::mem::swap(&mut self.current, &mut self.next);
            self.next.states.clear();
        }
        self.pay(pace)?;
        Ok(found)
    }

    fn pay<P: Pace>(&mut self, pace: &mut P) -> Result<(), P::Stop> {
        let steps = self.visited / VISITED;
        self.visited %= VISITED;
        pace.step(steps)
    }

    /// Advances all threads over the byte at `at`. Returns true if a thread has reached a match.
    fn step<P: Pace>(
        &mut self,
        nfa: &NFA,
        input: &Input<'_>,
        at: usize,
        own: &mut Slots,
        slots: &mut Slots,
        pace: &mut P,
    ) -> Result<bool, P::Stop> {
        let places = slots.len();
        for turn in 0..self.current.states.len() {
            let state = self.current.states[turn];
            let from = state.as_usize() * places;
            let behind = match nfa.state(state) {
                State::Match { .. } => {
                    slots.copy_from_slice(&self.current.places[from..from + places]);
                    // The remaining threads have lower preference.
                    return Ok(true);
                }
                _ if at >= input.end() => None,
                State::ByteRange { trans } => trans.matches(input.haystack(), at).then_some(trans.next),
                State::Sparse(sparse) => sparse.matches(input.haystack(), at),
                State::Dense(dense) => dense.matches(input.haystack(), at),
                _ => None,
            };
            self.visited += 1;
            if let Some(behind) = behind {
                own.copy_from_slice(&self.current.places[from..from + places]);
                self.visit(nfa, input, at + 1, behind, own, false);
            }
            if self.visited >= BATCH {
                self.pay(pace)?;
            }
        }
        Ok(false)
    }

    /// Adds a state and its epsilon closure to the threads of the current byte or of the next one.
    fn visit(&mut self, nfa: &NFA, input: &Input<'_>, at: usize, state: StateID, own: &mut Slots, is_current: bool) {
        let places = own.len();
        let row = if is_current { &mut self.current } else { &mut self.next };
        self.stack.push(Task::Visit(state));
        while let Some(task) = self.stack.pop() {
            let mut state = match task {
                Task::Restore(slot, place) => {
                    own[slot] = place;
                    continue;
                }
                Task::Visit(state) => state,
            };
            while row.insert(state) {
                self.visited += 1;
                state = match nfa.state(state) {
                    State::Fail => break,
                    State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) | State::Match { .. } => {
                        let to = state.as_usize() * places;
                        row.places[to..to + places].copy_from_slice(own);
                        self.visited += places as u64 / 4;
                        break;
                    }
                    State::Look { look, next } => {
                        if !nfa.look_matcher().matches(*look, input.haystack(), at) {
                            break;
                        }
                        *next
                    }
                    State::Union { alternates } => {
                        let Some((first, others)) = alternates.split_first() else { break };
                        self.stack.extend(others.iter().rev().copied().map(Task::Visit));
                        self.visited += others.len() as u64;
                        *first
                    }
                    State::BinaryUnion { alt1, alt2 } => {
                        self.stack.push(Task::Visit(*alt2));
                        *alt1
                    }
                    State::Capture { next, slot, .. } => {
                        let slot = slot.as_usize();
                        if let Some(place) = own.get_mut(slot) {
                            self.stack.push(Task::Restore(slot, *place));
                            *place = NonMaxUsize::new(at);
                        }
                        *next
                    }
                };
            }
        }
    }
}
