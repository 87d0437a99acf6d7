//! Functions of the prelude behave like builtins: in their printed form, their errors, their fuel, and their encoding
//! in a snapshot.

use crate::common;

use common::Scripted;
use lispbox::lang::{Reply, Request, Session};
use std::sync::Arc;

fn run(session: &mut Session, program: &str) -> Reply {
    session.eval(Request::new(program), Arc::new(Scripted::new()))
}

fn shown(session: &mut Session, program: &str) -> String {
    let reply = run(session, program);
    reply.value.or_else(|| reply.failure.map(|failure| failure.rendered)).unwrap_or_default()
}

#[test]
fn they_print_by_name() {
    assert_eq!(common::value("stats/mean"), "#<function stats/mean>");
    assert_eq!(
        common::value("[average core/pick (= mean stats/average)]"),
        "[#<function stats/mean> #<function pick> true]"
    );
}

#[test]
fn an_error_points_to_the_call_and_names_the_function() {
    assert_eq!(
        common::value("(+ 1 (stats/mean [\"7\"]))"),
        "TypeError: `stats/mean` expected a number, got \"7\" (a string)\n   ,-[ program 1:1:6 ]\n 1 \
         |(+ 1 (stats/mean [\"7\"]))\n   |              `--------- here\n\
         `(parse-long s)` and `(parse-double s)` read a number from a string; `str` joins strings"
    );
}

#[test]
fn a_call_in_tail_position_is_where_it_stands() {
    let reply = common::eval("(defn f [xs]\n  (stats/mean xs))\n(inc (f [nil]))");
    let failure = reply.failure.expect("nil is no number");
    assert_eq!((failure.line, failure.column), (Some(2), Some(3)));
    assert_eq!(failure.message, "`stats/mean` expected a number, got nil");
    assert_eq!(failure.trace, ["f (called at program 1:3:6)"]);
}

#[test]
fn an_error_in_a_function_of_the_program_is_shown_there() {
    let reply = common::eval("(defn size [m]\n  (+ 1 (:size m)))\n(sum-by size [{:size \"x\"}])");
    let failure = reply.failure.expect("a string is no number");
    assert_eq!(failure.line, Some(2));
    assert_eq!(failure.message, "`+` expected a number, got \"x\" (a string)");
}

#[test]
fn arity_errors_read_like_those_of_builtins() {
    let failure = common::eval("(stats/mean 1 2 3)").failure.expect("too many arguments");
    assert_eq!(failure.error, "ArityError");
    assert_eq!(
        failure.message,
        "`stats/mean` takes 1 or 2 arguments, got 3: `(stats/mean coll)` or `(stats/mean f coll)`"
    );
    assert_eq!((failure.line, failure.column), (Some(1), Some(1)));
}

#[test]
fn a_program_spends_the_same_whoever_came_first() {
    let engine = common::engine();
    let program = "(summarize [{:a 1 :b 2}] :by :a :total [:b sum])";
    let spent = |session: &mut Session| run(session, program).spent.fuel;
    let (mut first, mut second) = (engine.session(), engine.session());
    let fuel = spent(&mut first);
    assert!(fuel > 0);
    assert_eq!(fuel, spent(&mut first));
    assert_eq!(fuel, spent(&mut second));
    assert_eq!(fuel, spent(&mut common::session()));
}

#[test]
fn definitions_of_the_session_do_not_come_between() {
    let mut session = common::session();
    assert_eq!(
        shown(&mut session, "(def group-by nil) (def numbers* 1) (def total 2) (sum-by :k :v [{:k 1 :v 2}])"),
        "{1 2}"
    );
    assert_eq!(shown(&mut session, "(defn top [x] [:mine x]) (top 3)"), "[:mine 3]");
    assert_eq!(shown(&mut session, "(core/top 1 [3 4])"), "(4)");
    assert_eq!(shown(&mut session, "(let [sum 5 table 6] (+ sum table))"), "11");
    assert_eq!(common::value("(defn f [] (average 1)) (defn average [x] [:own x]) (f)"), "[:own 1]");
}

#[test]
fn private_functions_have_no_name_for_programs() {
    assert_eq!(common::eval("(mean-of [1])").failure.map(|failure| failure.error), Some("UnboundVariable".to_string()));
    assert_eq!(
        common::eval("(core/mean-of [1])").failure.map(|failure| failure.error),
        Some("UnboundVariable".to_string())
    );
}

#[test]
fn a_snapshot_knows_them_by_name() {
    let mut session = common::session();
    let program = "(def f stats/mean) (def fs [sum sum]) (defn g [xs] (top 1 xs))
                   (def h (partial sum-by :a))
                   (def lazy (pick (iterate (fn [m] (update m :a inc)) {:a 1 :b 1}) :a))";
    assert_eq!(run(&mut session, program).failure, None);
    let text = session.encode().expect("it can be written");
    assert!(text.contains("(define f (builtin stats/mean))"), "{text}");
    assert!(text.contains("[top \"core/top\"]"), "{text}");
    let mut again = common::session();
    again.decode(&text).expect("it can be read");
    assert_eq!(shown(&mut again, "[(f [1 2]) ((first fs) [1 2]) (= f stats/mean)]"), "[1.5 3 true]");
    assert_eq!(shown(&mut again, "(defn top [& _] :mine) [(g [1 5]) (h [{:a 4}])]"), "[(5) 4]");
    assert_eq!(shown(&mut again, "(take 2 lazy)"), "({:a 1} {:a 2})");
    assert_eq!(again.encode().map(|text| text.contains("(builtin stats/mean)")), Ok(true));
}

#[test]
fn they_are_found_and_described() {
    let mut session = common::session();
    let prints = |session: &mut Session, program: &str| run(session, program).prints;
    assert_eq!(
        prints(&mut session, "(doc average)"),
        "(stats/mean coll)\n(stats/mean f coll)\n  The average of numbers, or of a selector's values; nil if empty.\n  \
         (stats/mean [1 2 6]) => 3\n  (stats/mean :ms [{:ms 10} {:ms 25}]) => 17.5\n"
    );
    assert!(prints(&mut session, "(apropos \"percentile\")").contains("(stats/percentile p coll)"));
    assert!(prints(&mut session, "(dir 'stats)").contains("stats/median"));
    assert!(prints(&mut session, "(dir 'core)").contains("summarize"));
    let failure = common::eval("(sumarize [])").failure.expect("misspelt");
    assert_eq!(failure.suggestion.as_deref(), Some("Did you mean summarize?"));
}

#[test]
fn source_shows_code() {
    let mut session = common::session();
    let prints = |session: &mut Session, program: &str| run(session, program).prints;
    assert!(prints(&mut session, "(source mean-by)").starts_with("(defn mean-by\n  \"The average"));
    assert_eq!(
        prints(&mut session, "(defn twice\n  \"doubles\" [x] (* 2 x)) (source twice)"),
        "(defn twice\n  \"doubles\" [x] (* 2 x))\n"
    );
    assert_eq!(prints(&mut session, "(def x [1 2]) (source x)"), "(def x [1 2])\n");
    assert_eq!(
        prints(&mut session, "(source map)"),
        "`map` is native: it is not written in the language; (doc map) says what it does\n"
    );
    assert_eq!(
        prints(&mut session, "(source when)"),
        "`when` is a form of the language; (doc when) says what it does\n"
    );
    assert_eq!(
        run(&mut session, "(source nothing-at-all)").failure.map(|failure| failure.error),
        Some("UnknownName".to_string())
    );
}

/// Values of which most are invalid arguments for nearly every function.
const WRONG: &[&str] =
    &["nil", "5", "\"text\"", "{:a 1}", "[]", "[1 nil \"x\"]", ":key", "##NaN", "[[1] {:b 2}]", "inc"];

/// Returns the numbers of arguments with which the test calls a function of the prelude, from its argument lists.
fn counts(lists: &[String]) -> Vec<usize> {
    let mut counts: Vec<usize> = lists
        .iter()
        .map(|list| list.trim_matches(['[', ']']).split_whitespace().take_while(|word| *word != "&").count())
        .filter(|count| (1..=3).contains(count))
        .collect();
    counts.dedup();
    counts
}

#[test]
fn what_goes_wrong_in_them_is_said_by_their_names() {
    let engine = common::engine();
    let mut nameless = Vec::new();
    let mut session = engine.session();
    for function in engine.registry().entries().filter(|entry| engine.registry().find_prelude(entry.name).is_some()) {
        let lists: Vec<String> = function.arguments.iter().map(ToString::to_string).collect();
        for count in counts(&lists) {
            for at in 0..WRONG.len().pow(count.min(2) as u32) {
                let arguments = [WRONG[at % WRONG.len()], WRONG[at / WRONG.len() % WRONG.len()], "3"];
                let program = format!("(do ({} {}) nil)", function.name, arguments[..count].join(" "));
                let Some(failure) = run(&mut session, &program).failure else { continue };
                if !failure.message.contains(&format!("`{}`", function.name)) {
                    nameless.push(format!("{program}: {}", failure.message));
                }
            }
        }
    }
    assert!(nameless.is_empty(), "{} messages name no function:\n{}", nameless.len(), nameless.join("\n"));
}
