//! Checks programs over maps, sets, sorted collections, records from JSON and sequences against a simple model.

use super::super::collections::{Choices, case};
use super::super::{evaluate, is_of_the_moment, session, small_limits};
use arbitrary::Unstructured;
use lispbox::lang::Limits;

/// Choices derived from the fuzzer's input.
struct Picks<'u>(Unstructured<'u>);

impl Choices for Picks<'_> {
    fn pick(&mut self, count: usize) -> usize {
        self.0.int_in_range(0..=count - 1).unwrap_or(0)
    }
}

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let case = case(&mut Picks(Unstructured::new(bytes)));
    let limits = Limits { fuel: 2_000_000, memory: 64 << 20, output: 1 << 20, ..small_limits() };
    let reply = evaluate(&mut session(), &case.program, None, limits);
    if is_of_the_moment(&reply) {
        return;
    }
    let answer = reply.failure.map_or(reply.value.unwrap_or_default(), |failure| failure.rendered);
    assert_eq!(answer, case.expected, "{}", case.program);
}
