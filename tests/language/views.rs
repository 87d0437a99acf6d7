//! A sequence that reads its collection is indistinguishable from a copy of the items: random programs give the same
//! values over both, also when the session is written and read between two steps.

use crate::common;

use common::{moved, run, session, value};
use proptest::prelude::*;
use proptest::sample::Index;

/// Sequences that read a collection.
const SOURCES: &[&str] = &[
    "(seq (vec (range 50)))",
    "(rest [1 2 3 4 5])",
    "(next (vec (range 100)))",
    "(seq {:a 1 :b [2] :c \"x\"})",
    "(seq (zipmap (range 60) (range 60)))",
    "(keys (zipmap (range 60) (range 60)))",
    "(vals (dissoc (zipmap (range 60) (range 60)) 3 4 5 0 59))",
    "(keys (reduce dissoc (zipmap (range 90) (range 90)) (range 1 40 2)))",
    "(seq (disj (set (range 50)) 0 1 2 7 8))",
    "(seq (sorted-set 5 3 1 9))",
    "(seq (dissoc (into (sorted-map) (zipmap (range 50) (range 50))) 0 7 8 49))",
    "(rseq (into (sorted-set) (range 45)))",
    "(rseq (into (sorted-map-by >) (zipmap (range 9) (range 9))))",
    "(rseq [1 2 3 :a nil])",
    "(rseq (vec (range 40)))",
    "(subseq (into (sorted-set) (range 80)) > 7 <= 60)",
    "(rsubseq (into (sorted-map) (zipmap (range 50) (range 50))) < 44)",
    "(seq \"héllo wörld\")",
    "(rest (apply str (repeat 30 \"aé😀\")))",
    "(rest (subvec (vec (range 100)) 10 90))",
    "(rest (subvec (subvec (into (vec (range 40)) (range 60)) 10 90) 5 70))",
    "(seq (conj (subvec (vec (range 100)) 10 90) :x))",
    "(seq (pop (subvec (vec (range 100)) 10 90)))",
    "(seq (assoc (subvec (vec (range 100)) 10 90) 0 :x))",
    "(let [[a & more] (vec (range 40))] more)",
    "((fn [a & more] (rest more)) 1 2 3 4 5)",
    "(concat (vec (range 80)) [:x])",
    "(concat [:y] (rest (vec (range 90))) [:z])",
    "(rest (into (vec (range 40)) [1 2]))",
    "(take-last 40 (vec (range 99)))",
    "(seq (into clojure.lang.PersistentQueue/EMPTY (range 50)))",
    "(rest (pop (pop (into clojure.lang.PersistentQueue/EMPTY (range 50)))))",
    "(drop 3 {:a 1 :b 2 :c 3 :d 4 :e 5})",
    "(nthrest \"abcdefgh\" 2)",
    "(keys (json/parse \"{\\\"firstName\\\": 1, \\\"last_name\\\": {\\\"a b\\\": 2}}\"))",
    "(rest [[1 2] [3 [4 5]] [nil] {:a [6]} #{7}])",
];

/// Functions from a sequence `X` to another.
const STEPS: &[&str] = &[
    "(rest X)",
    "(next X)",
    "(seq X)",
    "(drop 2 X)",
    "(drop 30 X)",
    "(take-last 3 X)",
    "(take-last 50 X)",
    "(concat X [:k])",
    "(concat [:k] X)",
    "(concat X X)",
    "(cons :c X)",
    "(conj X :c)",
    "(map str X)",
    "(map (fn [x] [x]) X)",
    "(filter some? X)",
    "(remove keyword? X)",
    "(reverse X)",
    "(butlast X)",
    "(drop-last 2 X)",
    "(take 20 X)",
    "(interleave X X)",
    "(partition 2 X)",
    "(partition-all 3 X)",
    "(map-indexed vector X)",
    "(distinct X)",
    "(drop-while nil? X)",
    "(nthnext X 3)",
    "(let [[a b & r] X] r)",
    "(let [[a & r :as all] X] (concat r all))",
    "(with-meta (seq X) {:m 1})",
    "(let [y X] (lazy-seq y))",
    "(sequence X)",
    "(mapcat list X)",
    "(take-nth 2 X)",
    "(interpose 0 X)",
    "(rest (vec X))",
    "(rseq (vec X))",
    "(seq (subvec (vec X) 1))",
    "(keys (zipmap X (range)))",
    "(vals (zipmap (range) X))",
    "(seq (frequencies X))",
    "(flatten X)",
    "(sort-by str X)",
    "(keep identity X)",
    "(seq (apply str X))",
    "(second (split-at 2 X))",
    "(list* 1 2 X)",
    "(take 9 (cycle X))",
    "(drop 4 (take 40 (cycle X)))",
    "(for [x X] [x x])",
    "(transduce (map identity) conj () X)",
];

/// Questions about a sequence `X`.
const QUESTIONS: &[&str] = &[
    "X",
    "(pr-str X)",
    "(count X)",
    "(hash (seq X))",
    "[(first X) (second X) (last X) (peek (vec X))]",
    "[(nth X 3 :none) (nth X 33 :none) (nth X 0 :none)]",
    "[(= X (vec X)) (= (vec X) X) (= X (rest X)) (= (apply list X) X)]",
    "[(empty? X) (boolean (seq X)) (not-empty X) (every? some? X)]",
    "[(vec X) (set X) (apply list X)]",
    "(reduce (fn [a x] (str a x)) \"\" X)",
    "(get {(seq X) 1} (seq X))",
    "(contains? #{(apply list X)} (seq X))",
    "(json/write X)",
    "(str (seq X))",
    "[(sequential? X) (coll? X) (map? X)]",
    "(frequencies X)",
    "(group-by str X)",
    "(some #{3 :k} X)",
    "(.indexOf (seq X) 3)",
    "(mapv (fn [x] [x]) X)",
    "(reduce-kv (fn [a k v] (conj a [k v])) [] (vec X))",
    "(bounded-count 3 (vec X))",
    "(let [[a b :as c] X] [a b (count c)])",
    "(loop [s X n 0] (if (seq s) (recur (rest s) (inc n)) n))",
    "(loop [s (seq X) n []] (if s (recur (next s) (conj n (first s))) n))",
];

/// Makes a list of the items of every sequence.
const COPY: &str = "(defn copy [x] (if (and (sequential? x) (not (vector? x))) (apply list x) x))";

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(160) })]

    #[test]
    fn programs_over_views_and_over_copies_give_the_same_values(
        source in any::<Index>(),
        steps in prop::collection::vec((any::<Index>(), any::<bool>()), 0..7),
        asked in prop::collection::vec(any::<Index>(), 1..8),
    ) {
        let (mut views, mut copies) = (session(), session());
        let source = source.get(SOURCES);
        run(&mut views, &format!("(def x {source})"));
        run(&mut copies, &format!("{COPY} (def x (copy {source}))"));
        let mut program = source.to_string();
        for (step, is_moved) in &steps {
            let step = step.get(STEPS);
            program = step.replace('X', &program);
            let next = step.replace('X', "x");
            let made = format!("(def y {next}) (count y)");
            prop_assert_eq!(run(&mut views, &made), run(&mut copies, &made), "{}", program);
            run(&mut views, "(def x y)");
            run(&mut copies, "(def x (copy y))");
            if *is_moved {
                views = moved(&mut views);
            }
        }
        for question in &asked {
            let question = question.get(QUESTIONS).replace('X', "x");
            let (one, other) = (run(&mut views, &question), run(&mut copies, &question));
            prop_assert_eq!(one, other, "{} of {}", question, program);
        }
    }
}

#[test]
fn a_view_is_a_list_in_every_respect() {
    for source in SOURCES {
        for question in QUESTIONS.iter().chain(&["[(list? X) (seq? X) (counted? X) (type X) (class X) (meta X)]"]) {
            let one = value(&question.replace('X', source));
            let other = value(&format!("{COPY} (def x (copy {source})) {}", question.replace('X', "x")));
            let other = other.lines().last().unwrap_or_default();
            assert_eq!(one.lines().last().unwrap_or_default(), other, "{question} of {source}");
        }
    }
}

#[test]
fn a_view_is_what_its_collection_was() {
    for (program, expected) in [
        ("(let [v [1 2 3 4 5 6] r (rest v) w (conj v 7)] [r (count w)])", "[(2 3 4 5 6) 7]"),
        ("(let [m {:a 1 :b 2} k (keys m) m (dissoc m :a)] [k m])", "[(:a :b) {:b 2}]"),
        ("(let [m (zipmap (range 40) (range 40)) k (rest (keys m)) m (dissoc m 1 2 3)] (take 4 k))", "(1 2 3 4)"),
        (
            "(let [s (into (sorted-set) (range 40)) k (rest s) s (disj s 1 2 3)] [(take 3 k) (take 3 s)])",
            "[(1 2 3) (0 4 5)]",
        ),
        ("(let [a (atom [1 2 3]) s (seq @a)] (swap! a conj 4) (swap! a assoc 0 :x) [s @a])", "[(1 2 3) [:x 2 3 4]]"),
        (
            "(let [v (vec (range 40)) s (subvec v 1) v (assoc v 1 :x) t (assoc s 0 :y)] [(s 0) (v 1) (t 0)])",
            "[1 :x :y]",
        ),
        ("(let [t (transient [1 2 3]) p (persistent! t) r (rest p)] [r (conj p 4)])", "[(2 3) [1 2 3 4]]"),
        ("(subseq (sorted-set 1 2 3) > 5)", "nil"),
        ("(subseq (sorted-set 1 2 3) < 0)", "()"),
        ("(subseq (sorted-set 1 2 3) > 1 < 2)", "()"),
        ("(rsubseq (sorted-set 1 2 3) < 0)", "nil"),
        ("(rsubseq (sorted-set 1 2 3) > 5)", "()"),
        ("(rsubseq (sorted-map 1 :a 2 :b 3 :c) >= 2)", "([3 :c] [2 :b])"),
        ("(subseq (sorted-map-by > 1 :a 2 :b 3 :c) >= 2)", "([2 :b] [1 :a])"),
        ("(subseq (sorted-set 1 2 3) (fn [a b] (> a b)) 1)", "(2 3)"),
        ("[(seq \"\") (rest \"\") (rest \"a\") (next \"a\") (seq \"é\") (rest \"éa\")]", "[nil () () nil (\\é) (\\a)]"),
        (
            "[(seq []) (seq {}) (seq #{}) (keys {}) (vals {}) (rseq []) (rest []) (next [1]) (rest [1])]",
            "[nil nil nil nil nil nil () nil ()]",
        ),
    ] {
        assert_eq!(value(program), expected, "{program}");
    }
}

#[test]
fn few_items_of_many_do_not_keep_the_others() {
    let mut session = session();
    run(
        &mut session,
        "(def few (take-last 5 (vec (range 100000)))) (def two (rest (subvec (vec (range 90000)) 7 10)))",
    );
    let text = session.encode().expect("it encodes");
    assert!(text.len() < 2_000, "{} bytes", text.len());
    assert_eq!(run(&mut session, "[few two]"), "[(99995 99996 99997 99998 99999) (8 9)]");
}

#[test]
fn views_share_what_they_read_in_a_snapshot() {
    let mut session = session();
    run(&mut session, "(def v (mapv str (range 5000))) (def a (rest v)) (def b (drop 2 v)) (def c [a (rseq v)])");
    let text = session.encode().expect("it encodes");
    assert_eq!(text.matches("\"4321\"").count(), 1);
    let mut other = moved(&mut session);
    assert_eq!(
        run(&mut other, "[(first a) (first b) (count a) (first (second c)) (= (rest v) (first c))]"),
        "[\"1\" \"2\" 4999 \"4999\" true]"
    );
}
