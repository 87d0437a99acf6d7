//! Sessions that are encoded and decoded between programs: the decoded session answers later programs like the
//! original, for the same fuel. A form that fails leaves the state of the session unchanged.

use super::super::expression::Program;
use super::super::{evaluate, is_of_the_moment, moved, session, small_limits, state};
use lispbox::lang::{Reply, Session};

/// Maximum number of programs before the move, and after it.
const PROGRAMS: usize = 4;

/// Programs before a move, one that fails, and programs after the move.
pub type Programs = (Vec<Program>, Program, Vec<Program>);

/// Checks one input.
pub fn check(programs: Programs) {
    let (before, failing, after) = programs;
    let mut stayed = session();
    for program in before.iter().take(PROGRAMS) {
        evaluate(&mut stayed, &program.text(), None, small_limits());
    }
    let known = state(&mut stayed);
    // The `nil` is necessary: `do` followed directly by a list in parentheses can be a `do` loop of Scheme.
    let failing = format!("(do nil {}\n(throw (ex-info \"undone\" {{}})))", failing.text());
    evaluate(&mut stayed, &failing, None, small_limits());
    assert_eq!(state(&mut stayed), known, "a form that fails leaves a trace\n{failing}");
    let mut gone = moved(&mut stayed);
    for program in after.iter().take(PROGRAMS).map(Program::text).chain(stayed.names()) {
        let (one, other) = (answer(&mut stayed, &program), answer(&mut gone, &program));
        let (Some(one), Some(other)) = (one, other) else { return };
        assert_eq!(one, other, "the session that has moved answers otherwise\n{program}");
    }
    assert_eq!(stayed.names().len(), gone.names().len(), "other names");
}

/// Returns the parts of a reply that must be the same in both sessions; `None` if the reply depends on a clock.
fn answer(session: &mut Session, program: &str) -> Option<String> {
    if program.contains("(time ") {
        return None;
    }
    let reply = evaluate(session, program, None, small_limits());
    if is_of_the_moment(&reply) || is_of_memory(&reply) {
        return None;
    }
    let failure = reply.failure.map(|failure| format!("{}: {}", failure.error, failure.message));
    let (value, prints, defined, fuel) = (reply.value, reply.prints, reply.defined, reply.spent.fuel);
    Some(format!("{value:?} {failure:?} {prints:?} {defined:?} {fuel}"))
}

/// Returns true if the program reached a memory limit. The free memory depends on the layout of the session's data,
/// which decoding changes.
fn is_of_memory(reply: &Reply) -> bool {
    matches!(reply.failure.as_ref().and_then(|failure| failure.limit.as_deref()), Some("memory" | "session"))
}
