//! Forks of sessions: what they share, and what they do not.

use crate::common;

use common::engine;
use lispbox::lang::{Limits, Outcome, Session, Value, World};
use std::sync::{Arc, Mutex};

fn session() -> Session {
    engine().session()
}

#[test]
fn forks_share_values_and_change_independently() {
    let mut session = session();
    let define = "(def big (vec (range 300000)))
                  (def counter (atom {:n 1}))
                  (def lazy (map (fn [x] (* x x)) (iterate inc 0)))
                  (add-watch counter :w (fn [_ _ _ new] new))
                  (defn bump [] (swap! counter update :n inc))
                  (def nested [(atom counter)])
                  (take 3 lazy)";
    let run = |session: &mut Session, program: &str| -> serde_json::Value {
        session.run(program).eval(&World::default()).expect("it fits").into_result().expect("it runs")
    };
    run(&mut session, define);
    let mut fork = session.fork();
    assert_eq!(fork.names(), session.names());
    assert_eq!(
        run(&mut fork, "[(count big) (:n (bump)) (nth lazy 5) (:n @@(first nested))]"),
        serde_json::json!([300_000, 2, 25, 2])
    );
    assert_eq!(run(&mut session, "[(:n @counter) (nth lazy 4)]"), serde_json::json!([1, 16]));
    run(&mut session, "(def big nil) (reset! counter :gone) (def only (atom 5)) nil");
    run(&mut fork, "(def only (atom 6)) (def more (mapv atom (range 100))) nil");
    let mut second = fork.fork();
    assert_eq!(
        run(&mut second, "[(count big) (:n (bump)) @only @(nth more 99)]"),
        serde_json::json!([300_000, 3, 6, 99])
    );
    assert_eq!(run(&mut fork, "[(:n @counter) @only]"), serde_json::json!([2, 6]));
    // Cells that one session drops stay in the other.
    run(&mut fork, "(session/forget 'more 'counter 'nested 'bump) nil");
    run(&mut fork, "1 2 3");
    run(&mut fork, "(def fresh (mapv atom (range 200))) nil");
    assert_eq!(run(&mut second, "[(mapv deref (take 3 more)) (:n (bump))]"), serde_json::json!([[0, 1, 2], 4]));
    drop(fork);
    drop(session);
    assert_eq!(
        run(&mut second, "[(count big) (:n (bump)) (reduce + (map deref more))]"),
        serde_json::json!([300_000, 5, 4_950])
    );
    let text = second.encode().expect("it encodes");
    assert_eq!(run(&mut engine().restore(&text).expect("it decodes"), "(:n (bump))"), 6);
}

#[test]
fn a_cell_of_one_fork_is_foreign_to_the_other() {
    let left = Arc::new(Mutex::new(Value::Nil));
    let (put, taken) = (left.clone(), left);
    let mut builder = lispbox::lang::Engine::builder();
    builder.function("my/put", move |value: Value| *put.lock().expect("not poisoned") = value);
    builder.function("my/take", move || taken.lock().expect("not poisoned").clone());
    let mut session = builder.build().expect("the names are free").session();
    let run = |session: &mut Session, program: &str| {
        session.run(program).reply(&World::default()).expect("no input").text(1_000)
    };
    run(&mut session, "(def shared (atom 1))");
    let mut fork = session.fork();
    run(&mut session, "(my/put (atom 2))");
    run(&mut fork, "(def own (atom 3))");
    assert!(run(&mut fork, "@(my/take)").contains("ForeignCell"), "{}", run(&mut fork, "@(my/take)"));
    run(&mut session, "(my/put shared)");
    assert_eq!(run(&mut fork, "(reset! (my/take) 4) @shared"), "4\n4");
    assert_eq!(run(&mut session, "@shared"), "1");
}

#[test]
fn a_fork_is_held_to_the_memory_limit() {
    let mut session = session();
    let limits = Limits { memory: 16 << 20, ..Limits::default() };
    let fits = |session: &mut Session, program: &str| {
        let run = session.run(program).limits(limits.clone());
        matches!(run.eval::<Value>(&World::default()).expect("it fits"), Outcome::Done(_))
    };
    assert!(fits(&mut session, "(def big (vec (range 500000))) nil"));
    let mut fork = session.fork();
    assert!(!fits(&mut fork, "(vec (range 700000))"), "both together exceed the limit");
    drop(session);
    assert!(fits(&mut fork, "(def big nil)"));
    for _ in 0..3 {
        assert!(fits(&mut fork, "1"));
    }
    assert!(fork.live_bytes() < 1_000_000, "{}", fork.live_bytes());
    assert!(!fits(&mut fork, "(vec (range 1200000))"), "the credit for shared values is not more than their charge");
}

#[test]
fn an_idle_fork_does_not_grow_with_its_parent() {
    let mut session = session();
    assert!(session.run("(def a (atom 1))").eval::<Value>(&World::default()).expect("it fits").done().is_some());
    let mut fork = session.fork();
    let work = "(count (mapv deref (mapv atom (range 100000))))";
    for _ in 0..3 {
        assert_eq!(session.run(work).eval::<u64>(&World::default()).expect("it fits").done(), Some(100_000));
    }
    assert_eq!(fork.run("@a").eval::<u8>(&World::default()).expect("it fits").done(), Some(1));
    assert!(fork.live_bytes() < 100_000, "{}", fork.live_bytes());
}
