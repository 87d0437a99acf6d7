//! What an application learns of a run that failed: where, and in words that can be shown.

use crate::common::engine;
use lispbox::lang::{Failure, Session, World};

fn failure(session: &mut Session, program: &str) -> Failure {
    let outcome = session.run(program).eval::<i64>(&World::default()).expect("input");
    *outcome.into_result().expect_err("it fails")
}

#[test]
fn the_line_of_a_failure_is_in_the_source_that_it_names() {
    let engine = engine();
    let mut session = engine.session();
    let place = |Failure { source, line, .. }: &Failure| (source.clone().unwrap_or_default(), line.unwrap_or_default());
    let half = "(def a 1)\n(def b 2)\n(defn half [n]\n  (/ n 0))";
    session.run(half).eval::<()>(&World::default()).expect("input").done().expect("it succeeds");
    assert_eq!(place(&failure(&mut session, "a\n(+ a :b)")), ("program 2".to_owned(), 2));
    // A function of an earlier program.
    let failed = failure(&mut session, "(half a)");
    assert_eq!(place(&failed), ("program 1".to_owned(), 4));
    assert!(failed.rendered.contains("program 1:4:3"), "{}", failed.rendered);
    // A session that was stored twice.
    for programs in [4, 4] {
        let text = session.encode().expect("it is data");
        let mut restored = engine.restore(&text).expect("it is a session");
        let failed = failure(&mut restored, "(half a)");
        let (source, line) = place(&failed);
        assert_eq!(source, "stored program 1");
        let written = text.lines().nth(line as usize - 1).expect("a line of the session");
        assert!(written.contains("(/ n 0)"), "{written}");
        assert!(failed.rendered.contains(&format!("stored program 1:{line}:")), "{}", failed.rendered);
        assert_eq!(place(&failure(&mut restored, "(+ a :b)")), (format!("program {}", programs + 1), 1));
        session = engine.restore(&text).expect("it is a session");
    }
    // Nothing has a place before a program runs.
    let json = serde_json::to_value(failure(&mut session, "(half a)")).expect("it is data");
    assert_eq!(json["source"], "stored program 1");
}
