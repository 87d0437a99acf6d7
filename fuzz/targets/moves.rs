//! Sessions of programs that move: one that was written and read answers what comes later as the one that stayed, for
//! as many steps; and a form that fails leaves what the session holds as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lispbox::lang::{Reply, Session};
use lispbox_fuzz::expression::Program;
use lispbox_fuzz::{evaluate, is_of_the_moment, moved, session, small_limits, state};

/// How many programs run before the move, and how many behind it.
const PROGRAMS: usize = 4;

fuzz_target!(|programs: (Vec<Program>, Program, Vec<Program>)| {
    let (before, failing, after) = programs;
    let mut stayed = session();
    for program in before.iter().take(PROGRAMS) {
        evaluate(&mut stayed, &program.text(), None, small_limits());
    }
    let known = state(&mut stayed);
    // A pair of brackets right behind `do` is a loop of Scheme.
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
});

/// What must be the same in both sessions; nothing where a clock has decided.
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

/// True where the program came to the end of its memory: where that is depends on what the session holds, which is
/// packed otherwise where it was read.
fn is_of_memory(reply: &Reply) -> bool {
    matches!(reply.failure.as_ref().and_then(|failure| failure.limit.as_deref()), Some("memory" | "session"))
}
