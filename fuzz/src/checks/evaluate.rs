//! Programs under small limits: no panic, no internal error, and no more fuel than allowed. A second run of the program
//! gives the same reply for the same fuel, and the evaluator without optimisations gives the same reply for no less
//! fuel. The session remains usable and survives encoding.

use super::super::expression::Program;
use super::super::{evaluate, is_of_the_moment, moved, plain_session, session, small_limits};
use lispbox::lang::{Limits, Reply};

/// Checks one input.
pub fn check(program: Program) {
    let text = program.text();
    let (mut one, mut other, mut plain) = (session(), session(), plain_session());
    let reply = evaluate(&mut one, &text, None, small_limits());
    let again = evaluate(&mut other, &text, None, small_limits());
    if !is_of_the_moment(&reply) && !is_of_the_moment(&again) && !text.contains("(time ") {
        assert_eq!(reply.spent.fuel, again.spent.fuel, "other fuel the second time\n{text}");
        assert_eq!(outcome(&reply), outcome(&again), "another reply the second time\n{text}");
    }
    let plainly = evaluate(&mut plain, &text, None, small_limits());
    // An update in place is not charged as a copy, so the unoptimised evaluator may reach a limit earlier.
    let limited =
        |reply: &Reply| is_of_the_moment(reply) || reply.failure.as_ref().is_some_and(|it| it.limit.is_some());
    if !limited(&reply) && !limited(&plainly) && !text.contains("(time ") {
        assert!(reply.spent.fuel <= plainly.spent.fuel, "more fuel than on the plain walk\n{text}");
        assert_eq!(outcome(&reply), outcome(&plainly), "another reply on the plain walk\n{text}");
    }
    let sum = evaluate(&mut one, "(+ 1 1)", None, Limits::default());
    assert_eq!(sum.value.as_deref(), Some("2"), "the session does not go on\n{text}\n{:?}", sum.failure);
    drop(moved(&mut one));
}

/// Returns the parts of a reply that must be the same in each run.
fn outcome(reply: &Reply) -> (Option<&str>, &str, Option<&str>, &[String]) {
    let failure = reply.failure.as_ref().map(|failure| failure.rendered.as_str());
    (reply.value.as_deref(), &reply.prints, failure, &reply.defined)
}
