//! Threads that walk through an NFA side by side, the preferred one first, each with the places where its groups
//! begin and end: what finds a match where the DFA cannot.

use super::Slots;
use crate::lang::value::walk::Pace;
use regex_automata::Input;
use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::{NonMaxUsize, StateID};

/// How many states are visited before they are paid for.
const BATCH: u64 = 2_048;

/// How many states are visited in a step.
const VISITED: u64 = 8;

/// The threads at this byte and at the next one.
#[derive(Debug, Default)]
pub struct Threads {
    current: Row,
    next: Row,
    stack: Vec<Task>,
    /// Visited and not paid yet.
    visited: u64,
}

/// The states that threads are in, the preferred ones first, and the places of each.
#[derive(Debug, Default)]
struct Row {
    states: Vec<StateID>,
    /// For each state, where it stands among the others if it is one of them.
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

    /// Adds a state; false if it is there.
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

/// What is still to be done for a thread.
#[derive(Debug)]
enum Task {
    Visit(StateID),
    Restore(usize, Option<NonMaxUsize>),
}

impl Threads {
    /// The first match within the input, with as many places as there are slots for.
    ///
    /// # Errors
    /// What ends the walk early.
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
            // A match that begins here comes after all that have begun.
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

    /// Takes the byte at a place with all threads; true if one of them has come to a match.
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
                    // All others would be less preferred.
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

    /// Adds a state, and all that it leads to without taking a byte, to the threads of this byte or the next one.
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
