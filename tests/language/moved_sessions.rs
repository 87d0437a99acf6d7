//! Encoding and decoding the session of a random program is unobservable: the text, the names, the answers and the fuel
//! remain the same, also for later programs. A form that fails leaves the text unchanged.

use crate::common;

use common::literate::cases;
use common::{Scripted, moved, session, state};
use lispbox::lang::{Host, Request, Session, ToolReply};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use std::sync::Arc;

/// Definitions of NAME in terms of two earlier ones; each line is a program.
const PIECES: &[&str] = &[
    "(def NAME [FIRST SECOND FIRST])",
    "(def NAME (list FIRST (cons SECOND nil)))",
    "(def NAME {:first FIRST \"second\" [SECOND] nil 1.5M})",
    "(def NAME #{:a [FIRST]})",
    "(def NAME (sorted-map 2 FIRST 1 SECOND))",
    "(def NAME (into (sorted-set-by (fn [a b] (compare b a))) [1 3 2]))",
    "(def NAME (with-meta [FIRST] {:about SECOND}))",
    "(def NAME FIRST)",
    "(def NAME (atom FIRST))",
    "(def NAME (atom [FIRST SECOND] :meta {:unit FIRST} :validator some?))",
    "(do (def NAME (atom nil)) (reset! NAME {:self NAME :other FIRST}))",
    "(do (def NAME (atom [])) (add-watch NAME :seen (fn [_ _ old new] (swap! FIRST vector new))))",
    "(do (swap! FIRST vector SECOND) (def NAME FIRST))",
    "(def NAME (volatile! [FIRST SECOND]))",
    "(def NAME (delay [FIRST SECOND]))",
    "(do (def NAME (delay FIRST)) @NAME)",
    "(defn NAME \"Says what it was given, and more.\" ([] FIRST) ([x] [x SECOND]) ([x & more] [more FIRST]))",
    "(defn NAME [x] (if (number? x) (if (pos? x) (NAME (dec x)) [FIRST x]) SECOND))",
    "(def NAME (let [kept FIRST other [SECOND]] (fn [x] [kept (conj other x)])))",
    "(def NAME (let [state (atom FIRST)] {:put (fn [x] (reset! state x)) :now (fn [] @state)}))",
    "(def NAME (letfn [(f [x] (if (vector? x) (g x) [:f x])) (g [x] [:g (f (first x)) FIRST])] [f g f]))",
    "(def NAME (comp (partial vector FIRST) (juxt identity (constantly SECOND))))",
    "(def NAME (map (fn [x] [x FIRST]) (range 3)))",
    "(def NAME (map (fn [x] (if (< x 2) [x FIRST] (throw (ex-info \"enough\" {:x x})))) (iterate inc 0)))",
    "(def NAME (lazy-seq (cons FIRST NAME)))",
    "(defmacro NAME [x] `(let [again# ~x] [again# again# FIRST]))",
    "(do (defmulti NAME \"By what it is.\" (fn [x] (number? x))) (defmethod NAME true [x] [x FIRST]) (defmethod NAME :default [_] SECOND))",
    "(do (defrecord Thing [left right]) (def NAME (->Thing FIRST SECOND)))",
    "(def NAME (try (throw (ex-info \"thrown\" {:first FIRST})) (catch Exception e e)))",
    "(def NAME (json/parse \"{\\\"firstName\\\": [1, 2.5, null]}\"))",
    "(def NAME #'FIRST)",
    "(def NAME [#\"a+\" \\a 'symbol 10N ##NaN #time/date \"2024-02-29\" \"a \\\"b\\\"\"])",
    "(def NAME (reduced FIRST))",
    "(def NAME (re-matcher #\"[a-z]\" \"abc\"))",
    "(def NAME (transient [FIRST]))",
    "(def NAME (let [text (StringBuilder. (pr-str FIRST))] [text (fn [x] (.append text x))]))\n(.append (first NAME) \\a)",
    "(def ^{:dynamic true :about FIRST} NAME SECOND)",
    "(atom [FIRST])\n(defn NAME [] *1)",
    "[FIRST (atom SECOND)]\n(def NAME (let [kept FIRST] (fn [] [kept *1 (fn [] [*1 *2 *3])])))",
    "(throw (ex-info \"thrown\" {:about [FIRST (atom 1)]}))\n(defn NAME [] (ex-data *e))",
    "(def NAME (first {FIRST SECOND}))",
    "(def NAME (list (vec {:a FIRST :b SECOND}) (cons 1 2) (seq (sorted-map 1 FIRST)) (find {:a SECOND} :a)))",
    "(def NAME [(gensym) (gensym 'name)])",
    "(def NAME (memoize (fn [x] [x FIRST (gensym)])))\n(NAME 3)",
    "(def NAME (delay (atom FIRST)))\n(swap! @NAME vector SECOND)",
    "(def NAME (map (fn [x] [x FIRST]) (iterate inc 0)))\n(take 3 NAME)",
    "(def NAME (sequence (comp (map (fn [x] [x FIRST])) (partition-all 2)) (iterate inc 0)))\n(take 2 NAME)",
    "(def NAME (reductions vector FIRST (repeat SECOND)))\n(second NAME)",
    "(def NAME (let [xs (map vector (iterate inc 0) (repeat FIRST))] [(rest xs) xs (drop-while first xs)]))",
    "(def NAME (let [xs (seq [FIRST 2 SECOND])] [xs (rest xs) (next (next xs))]))",
    "(def NAME (drop 1 (conj (list 1 FIRST) SECOND)))",
    "(def NAME (rest [FIRST SECOND FIRST SECOND]))",
    "(def NAME (let [v (into (vec (range 40)) [FIRST SECOND])] [(rest v) (drop 7 v) v (rseq (subvec v 3))]))",
    "(def NAME (keys {FIRST 1 SECOND 2}))",
    "(def NAME (let [m (zipmap (range 50) (repeat FIRST))] [(rest (vals (dissoc m 0 1 2 30))) (seq m)]))",
    "(def NAME (subseq (sorted-map 1 FIRST 2 SECOND 3 nil) > 1))",
    "(def NAME (rsubseq (sorted-set 1 2 3 4) < 4))",
    "(def NAME (rest (seq (pr-str FIRST))))",
    "(def NAME (concat (vec (range 90)) [FIRST] (rest [SECOND FIRST])))",
    "(def NAME (eduction (map (fn [x] [x FIRST])) [1 2]))",
    "(def NAME ((comp (partition-all 2) (map vec)) conj))\n(NAME [] FIRST)",
    "(def NAME (into (sorted-map-by (fn [a b] (compare b a))) {1 FIRST 2 SECOND 3 nil}))",
    "(def NAME (assoc (json/parse \"{\\\"firstName\\\": 1, \\\"last_name\\\": {\\\"a b\\\": 2}}\") :first-name FIRST :more SECOND))",
    "(def NAME [1.50M 1e30M 123456789012345678901234567890N -0.0 ##-Inf 1e308 #inst \"2024-02-29T12:00:00Z\"])",
    "(def NAME {(keyword \"a b\") FIRST (symbol \"1\") SECOND \\newline \"\\u0001\"})",
    "(def NAME (with-meta (fn [x] [x FIRST]) {:about SECOND}))",
    "(def NAME (with-meta 'name {:about FIRST}))",
    "(derive ::NAME ::parent)\n(def NAME (fn [] [(isa? ::NAME ::parent) (parents ::NAME) FIRST]))",
    "(defprotocol PNAME (mNAME [x]))\n(extend-protocol PNAME Long (mNAME [x] [x FIRST]))\n(def NAME (fn [x] (mNAME x)))",
    "(require '[clojure.string :as sNAME])\n(defn NAME [x] (sNAME/join \",\" [x FIRST]))",
    "(defn NAME \"First.\" [x] FIRST)\n(alter-meta! #'NAME assoc :about SECOND)",
    "(def NAME (zipmap (range 40) (repeat FIRST)))",
    "(def NAME (into (vec (range 40)) [FIRST SECOND]))",
    "(def NAME (with-local-vars [v FIRST] (fn [x] [(var-get v) (var-set v x)])))",
    "(declare laterNAME)\n(defn NAME [x] [(laterNAME x) FIRST])\n(defn laterNAME [x] [:later x])",
    "(def NAME (map (fn [x] [x FIRST (:number (pages/page x))]) (iterate inc 1)))\n(take 2 NAME)",
    "(def NAME (map pages/page (iterate inc 1)))",
    "(def NAME (comp :number pages/page))",
    "(defn NAME [] [session/FIRST (user/SECOND) #'session/FIRST])",
    "(defn NAME [] (session/forget 'nothing))",
    "(def fork FIRST)\n(defn NAME [] [fork session/fork #'fork #'session/fork])",
    "(defn NAME [] [close session/close #'close #'session/close forget])",
    "(defn NAME [] [close #'close])\n(def close FIRST)",
];

/// A step of a session: one of the pieces, or a program from the corpora whose value is stored.
#[derive(Clone, Debug)]
enum Step {
    Piece { piece: Index, first: Index, second: Index },
    Program(Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        any::<(Index, Index, Index)>().prop_map(|(piece, first, second)| Step::Piece { piece, first, second }),
        any::<Index>().prop_map(Step::Program),
    ];
    prop::collection::vec(step, 1..16)
}

/// Builds the programs of the steps; their values are named `NAME0`, `NAME1`, …
fn programs(name: &str, steps: &[Step], corpus: &[String]) -> Vec<String> {
    let mut programs = vec![format!("(def {name}0 [:seed 1])")];
    for (at, step) in steps.iter().enumerate() {
        let next = format!("{name}{}", at + 1);
        match step {
            Step::Program(program) => {
                programs.push(program.get(corpus).clone());
                programs.push(format!("(def {next} *1)"));
            }
            Step::Piece { piece, first, second } => {
                let earlier = |index: &Index| format!("{name}{}", index.index(at + 1));
                let piece = piece.get(PIECES).replace("FIRST", &earlier(first)).replace("SECOND", &earlier(second));
                programs.extend(piece.lines().map(|program| program.replace("NAME", &next)));
            }
        }
    }
    programs
}

/// Creates a host with the tool `pages/page`, which returns its numeric argument.
fn world() -> Arc<dyn Host> {
    let schema = json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]});
    Arc::new(
        Scripted::new().tool("pages/page", schema, |arguments| {
            ToolReply::Json(json!({"number": arguments["number"]}).to_string())
        }),
    )
}

/// Describes a reply: the value or the error, the output, the definitions, the tool calls and the fuel.
fn answer(session: &mut Session, program: &str) -> String {
    // Functions record the name of their program. By default this is its sequence number since the session was decoded.
    let mut request = Request { name: Some("program".to_string()), ..Request::new(program) };
    request.limits.set("fuel", "1e5").expect("a known limit");
    let reply = session.eval(request, world());
    let failure = reply.failure.map(|failure| format!("{}: {}", failure.error, failure.message));
    let calls: Vec<_> = reply.calls.iter().map(|call| (&call.tool, &call.outcome)).collect();
    let (value, json, fuel) = (&reply.value, &reply.json, reply.spent.fuel);
    format!("{value:?} {json:?} {failure:?} {:?} {:?} {calls:?} {fuel}", reply.prints, reply.defined)
}

/// Returns programs that probe the definitions with these names.
fn probes(names: &[String]) -> Vec<String> {
    let mut probes = Vec::new();
    for name in names {
        for probe in [
            "NAME",
            "(meta NAME)",
            "(meta #'NAME)",
            "@NAME",
            "(NAME)",
            "(NAME 3)",
            "(NAME [1 2] :b)",
            "(take 3 NAME)",
            "(mapv (fn [f] (f 1)) (take 3 NAME))",
            "[((:put NAME) :put) ((:now NAME))]",
            "(swap! NAME (fn [x] [x :swapped]))",
            "(realized? NAME)",
            "(cdr NAME)",
            "(map cdr NAME)",
            "((NAME))",
            "(:first-name NAME)",
            "(:number (first (drop 3 NAME)))",
            "(first (drop 3 NAME))",
            "(assoc NAME 0 :changed)",
            "(conj NAME [1 2])",
            "(gensym)",
            "(describe NAME)",
        ] {
            probes.push(probe.replace("NAME", name));
        }
    }
    for first in names {
        for second in names {
            probes.push(format!("[(identical? {first} {second}) (= {first} {second})]"));
        }
    }
    probes
}

/// Describes the state of a session, with its rows numbered from 1. A session that runs short of memory drops the row
/// numbers of its last snapshot, so they are no part of its content.
fn content(session: &mut Session) -> String {
    let mut copy = common::engine().session();
    copy.decode(&state(session)).expect("it decodes");
    let mut request = Request::new("(clojure.core/vec (clojure.core/range 1e6))");
    request.limits.set("memory", "1MiB").expect("a known limit");
    let reply = copy.eval(request, common::host());
    let told = reply.failure.as_ref().map_or_else(String::new, |failure| failure.rendered.clone());
    assert_eq!(reply.failure.and_then(|failure| failure.limit).as_deref(), Some("memory"), "{told}");
    state(&mut copy)
}

/// Returns the programs of all literate cases.
fn corpus() -> Vec<String> {
    ["tests/clojure", "tests/spec"].iter().flat_map(|corpus| cases(corpus)).map(|case| case.program).collect()
}

/// Evaluates the same programs in both sessions and compares the replies.
fn compare(one: &mut Session, other: &mut Session, programs: &[String]) -> Result<(), TestCaseError> {
    for program in programs {
        prop_assert_eq!(answer(one, program), answer(other, program), "{}", program);
    }
    Ok(())
}

/// The time of a cycle collection depends on earlier programs; the fuel of a program must not.
#[test]
fn what_a_program_takes_does_not_depend_on_when_the_heap_was_swept() {
    let mut stayed = session();
    for program in [
        "(def pairs (let [xs (map vector (iterate inc 0) (repeat nil))] [(rest xs) xs (drop-while first xs)]))",
        "(describe pairs)",
        "(def pages (map (fn [x] [x #'pairs (:number (pages/page x))]) (iterate inc 1)))",
        "pairs",
    ] {
        answer(&mut stayed, program);
    }
    let mut gone = moved(&mut stayed);
    compare(&mut stayed, &mut gone, &["pages".to_owned()]).expect("they answer the same");
}

/// The keys of a restored map or set are found otherwise than those of one that has grown.
#[test]
fn work_with_long_keys_takes_as_much_after_a_move() {
    let mut stayed = session();
    for program in [
        "(defn long-key [i] (str (str/repeat \"key \" 5000) i))",
        "(def m (zipmap (map long-key (range 40)) (range)))",
        "(def s (set (keys m)))",
        "(def later (assoc m (long-key 90) 1))",
    ] {
        answer(&mut stayed, program);
    }
    let mut gone = moved(&mut stayed);
    let programs = [
        "[(get m (long-key 7)) (get m (long-key 70)) (s (long-key 8)) (s (long-key 80)) (later (long-key 90))]",
        "(def more (assoc m (long-key 7) 0 (long-key 70) 1))",
        "[(more (long-key 7)) (more (long-key 70)) (more (long-key 71)) (count more)]",
        "(def fewer (dissoc more (long-key 7) (long-key 70) (long-key 72)))",
        "[(fewer (long-key 7)) (fewer (long-key 8)) (count (assoc fewer (long-key 7) 1))]",
        "[(count (into m (map vector (map long-key (range 30 50)) (range)))) (count (into s (map long-key (range 30 50))))]",
        "[(count (disj s (long-key 1) (long-key 100))) (= s (set (keys m))) (= m (into {} m))]",
    ];
    compare(&mut stayed, &mut gone, &programs.map(str::to_owned)).expect("they answer the same");
    let told = answer(&mut gone, "(+ (count more) (count fewer) (count later))");
    assert!(told.starts_with("Some(\"121\")"), "{told}");
}

/// The builtins of the area `session` have names like those of definitions written with a prefix.
#[test]
fn short_names_of_builtins_mean_the_builtins() {
    for later in ["nil", "(def fork 1)", "(def close 2)"] {
        let mut stayed = session();
        for program in ["(defn f [] [fork close forget session/fork #'fork #'session/close])", later] {
            answer(&mut stayed, program);
        }
        let mut gone = moved(&mut stayed);
        compare(&mut stayed, &mut gone, &["(f)", "(defn g [] [fork #'fork])", "(g)"].map(str::to_owned))
            .expect("they answer the same");
    }
}

#[test]
fn a_form_that_runs_short_of_memory_leaves_the_content_as_it_was() {
    let mut session = session();
    for program in ["(def a [:seed 1])", "(def b (with-meta (fn [x] [x a]) {:about a}))", "(def c (atom [a a]))"] {
        answer(&mut session, program);
        state(&mut session);
    }
    let known = content(&mut session);
    assert!(answer(&mut session, "(do nil (hash (range)))").contains("memory"));
    assert_eq!(content(&mut session), known);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_form_that_fails_leaves_the_session_as_it_was(before in steps(), after in steps(), by_limit in any::<bool>()) {
        let corpus = corpus();
        let mut session = session();
        for program in programs("a", &before, &corpus) {
            answer(&mut session, &program);
        }
        let known = content(&mut session);
        let ending = if by_limit { "(loop [] (recur))" } else { "(throw (ex-info \"undone\" {}))" };
        for program in programs("b", &after, &corpus).iter().chain(&probes(&["a0".to_string(), "a1".to_string()])) {
            // The `nil` is necessary: `do` followed directly by a list in parentheses can be a `do` loop of Scheme.
            let failing = format!("(do nil {program}\n{ending})");
            answer(&mut session, &failing);
            prop_assert_eq!(&content(&mut session), &known, "{}", failing);
        }
    }

    #[test]
    fn a_session_that_has_moved_is_the_same(before in steps(), after in steps()) {
        let corpus = corpus();
        let mut stayed = session();
        for program in programs("a", &before, &corpus) {
            answer(&mut stayed, &program);
        }
        let mut gone = moved(&mut stayed);
        prop_assert_eq!(stayed.names(), gone.names());
        let names: Vec<String> = (0..=before.len()).map(|at| format!("a{at}")).collect();
        let later = programs("b", &after, &corpus);
        let all: Vec<String> = (0..=after.len()).map(|at| format!("b{at}")).chain(names.iter().cloned()).collect();
        compare(&mut stayed, &mut gone, &probes(&names))
            .and_then(|()| compare(&mut stayed, &mut gone, &later))
            .and_then(|()| compare(&mut stayed, &mut gone, &all))
            .and_then(|()| compare(&mut stayed, &mut moved(&mut gone), &all))
            .map_err(|found| TestCaseError::fail(format!("{found}\n{}\nmoved\n{}", programs("a", &before, &corpus).join("\n"), later.join("\n"))))?;
    }
}
