//! How the cost of operations grows with their collection. Each row of the table in `docs/performance.md` is a program
//! that makes `N` operations on a collection of `N` items, or one operation if that is linear. Its steps, and the bytes
//! that it allocates, are counted at three sizes: a copy of the whole collection in one operation makes them grow with
//! the square of `N`.

use crate::common;

use common::counted::allocated;
use common::{eval, host, session, with_limit};
use lispbox::lang::Request;
use std::fmt::Write;

/// An operation: its name, its collection, its class in Clojure and here, and the program.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    (
        "`seq` as a test",
        "vector",
        "O(1)",
        "O(1)",
        "(loop [s (vec (range N)) k 0] (if (seq s) (recur (pop s) (inc k)) k))",
    ),
    (
        "`empty?`, `not-empty`",
        "vector, map, set",
        "O(1)",
        "O(1)",
        "(let [v (vec (range N)) m (zipmap v v) s (set v)] \
         (count (filter (fn [_] (and (not-empty v) (not (empty? m)) (not-empty s))) (range N))))",
    ),
    (
        "`first`, `rest`",
        "vector",
        "O(1)",
        "O(1)",
        "(loop [s (vec (range N)) k 0] (if (seq s) (recur (rest s) (+ k (first s))) k))",
    ),
    (
        "`next`",
        "vector",
        "O(1)",
        "O(1)",
        "(loop [s (seq (vec (range N))) k 0] (if s (recur (next s) (+ k (first s))) k))",
    ),
    (
        "`[x & more :as all]`",
        "vector",
        "O(1)",
        "O(1)",
        "(loop [[x & r :as all] (vec (range N)) k 0] (if (seq all) (recur r (inc k)) k))",
    ),
    (
        "`[x y & more]`",
        "entries of a map",
        "O(1)",
        "O(1)",
        "(loop [[x y & r :as all] (seq (zipmap (range N) (range N))) k 0] (if (seq all) (recur r (inc k)) k))",
    ),
    (
        "`& more` of a function",
        "vector that is applied",
        "O(1)",
        "O(1)",
        "(defn f [k & xs] (if (seq xs) (recur (inc k) (rest xs)) k)) (apply f 0 (vec (range N)))",
    ),
    (
        "`first`, `rest`",
        "map",
        "O(1)",
        "O(1)",
        "(loop [s (zipmap (range N) (range N)) k 0] (if (seq s) (recur (rest s) (+ k (val (first s)))) k))",
    ),
    (
        "`first`, `rest`",
        "set",
        "O(1)",
        "O(1)",
        "(loop [s (set (range N)) k 0] (if (seq s) (recur (rest s) (+ k (first s))) k))",
    ),
    (
        "`seq`, `first`, then `dissoc`",
        "map",
        "O(1)",
        "O(1)",
        "(loop [m (zipmap (range N) (range N)) k 0] (if (seq m) (recur (dissoc m (key (first m))) (inc k)) k))",
    ),
    (
        "`first` of `keys`, then `dissoc`",
        "map",
        "O(1)",
        "O(1)",
        "(loop [m (zipmap (range N) (range N)) k 0] (if (seq m) (recur (dissoc m (first (keys m))) (inc k)) k))",
    ),
    (
        "`second` of `keys`, then `dissoc`",
        "map",
        "O(1)",
        "O(1)",
        "(loop [m (zipmap (range N) (range N)) k 0] (if (next m) (recur (dissoc m (second (keys m))) (inc k)) k))",
    ),
    (
        "`first` of `vals`, then `assoc`",
        "map",
        "O(1)",
        "O(1)",
        "(loop [m (zipmap (range N) (range N)) k 0] (if (< k N) (recur (assoc m k (first (vals m))) (inc k)) k))",
    ),
    (
        "`keys`, `vals` as a test",
        "map",
        "O(1)",
        "O(1)",
        "(let [m (zipmap (range N) (range N))] (count (filter (fn [_] (and (keys m) (vals m))) (range N))))",
    ),
    (
        "`first`, then `disj`",
        "set",
        "O(1)",
        "O(1)",
        "(loop [s (set (range N)) k 0] (if (seq s) (recur (disj s (first s)) (inc k)) k))",
    ),
    (
        "`conj` in any order",
        "sorted set",
        "O(log n)",
        "O(log n)",
        "(count (into (sorted-set) (map (fn [i] (mod (* i 7919) 1000003)) (range N))))",
    ),
    (
        "`first`, then `disj`",
        "sorted set",
        "O(log n)",
        "O(log n)",
        "(loop [s (into (sorted-set) (range N)) k 0] (if (seq s) (recur (disj s (first s)) (inc k)) k))",
    ),
    (
        "`first`, then `disj`",
        "`sorted-set-by`",
        "O(log n)",
        "O(log n)",
        "(loop [s (into (sorted-set-by >) (range N)) k 0] (if (seq s) (recur (disj s (first s)) (inc k)) k))",
    ),
    (
        "`first`, then `dissoc`",
        "sorted map",
        "O(log n)",
        "O(log n)",
        "(loop [m (into (sorted-map) (zipmap (range N) (range N))) k 0] \
         (if (seq m) (recur (dissoc m (ffirst m)) (inc k)) k))",
    ),
    (
        "`first` of `rseq`, then `disj`",
        "sorted set",
        "O(log n)",
        "O(log n)",
        "(loop [s (into (sorted-set) (range N)) k 0] (if (seq s) (recur (disj s (first (rseq s))) (inc k)) k))",
    ),
    (
        "`first` of `subseq`, `rsubseq`",
        "sorted set",
        "O(log n)",
        "O(log n)",
        "(let [s (into (sorted-set) (range N))] \
         (reduce + (map (fn [i] (+ (first (subseq s >= i)) (first (rsubseq s <= i)))) (range N))))",
    ),
    (
        "`first` of `subseq` with two bounds",
        "sorted map",
        "O(log n)",
        "O(log n)",
        "(let [m (into (sorted-map) (zipmap (range N) (range N)))] \
         (reduce + (map (fn [i] (val (first (subseq m >= i < (inc i))))) (range N))))",
    ),
    (
        "`first` of `rseq`",
        "vector",
        "O(1)",
        "O(1)",
        "(let [v (vec (range N))] (reduce + (map (fn [_] (first (rseq v))) (range N))))",
    ),
    (
        "`rest` of `rseq`",
        "vector",
        "O(1)",
        "O(1)",
        "(loop [s (rseq (vec (range N))) k 0] (if (seq s) (recur (rest s) (+ k (first s))) k))",
    ),
    (
        "`count` of `seq`, `rest`",
        "vector",
        "O(1)",
        "O(1)",
        "(let [v (vec (range N))] (reduce + (map (fn [_] (+ (count (seq v)) (count (rest v)))) (range N))))",
    ),
    (
        "`count` of `seq`, `keys`",
        "map",
        "O(1); of `keys` O(n)",
        "O(1)",
        "(let [m (zipmap (range N) (range N))] (reduce + (map (fn [_] (+ (count (seq m)) (count (keys m)))) (range N))))",
    ),
    (
        "`nth` of `seq`, `rest`",
        "vector",
        "O(n)",
        "O(1)",
        "(let [v (vec (range N)) s (seq v) r (rest v)] (reduce + (map (fn [i] (+ (nth s i) (nth r i 0))) (range N))))",
    ),
    (
        "`drop`, `nthrest`",
        "vector",
        "O(n)",
        "O(1)",
        "(let [v (vec (range N))] (reduce + (map (fn [i] (+ (first (drop i v)) (first (nthrest v i)))) (range N))))",
    ),
    (
        "`take-last`, `last`",
        "vector",
        "O(n)",
        "O(1)",
        "(let [v (vec (range N))] (reduce + (map (fn [_] (+ (count (take-last 5 v)) (last v))) (range N))))",
    ),
    (
        "`take-last`, then `conj`",
        "vector",
        "O(n)",
        "O(1)",
        "(count (reduce (fn [a x] (conj (vec (take-last 5 a)) x)) [] (range N)))",
    ),
    (
        "`subvec`",
        "vector",
        "O(1)",
        "O(log n)",
        "(loop [v (vec (range N)) k 0] (if (seq v) (recur (subvec v 1) (+ k (first v))) k))",
    ),
    (
        "`subvec`, then `conj`",
        "vector",
        "O(1)",
        "O(log n)",
        "(loop [v (vec (range N)) k 0] (if (< k N) (recur (conj (subvec v 1) k) (inc k)) (count v)))",
    ),
    (
        "`pop` of `subvec`",
        "vector",
        "O(1)",
        "O(log n)",
        "(loop [v (subvec (vec (range (+ N 9))) 9) k 0] (if (seq v) (recur (pop v) (+ k (peek v))) k))",
    ),
    (
        "`conj`, `pop`, `peek`",
        "list",
        "O(1)",
        "O(1)",
        "(loop [l () k 0] (if (< k N) (recur (conj l k) (inc k)) (loop [l l c 0] (if (seq l) (recur (pop l) (+ c (peek l))) c))))",
    ),
    (
        "`assoc`, while the old one is used",
        "map",
        "O(1)",
        "O(1)",
        "(loop [m {} old nil k 0] (if (< k N) (recur (assoc m k 1) m (inc k)) (count old)))",
    ),
    (
        "`conj`, while the old one is used",
        "vector",
        "O(1)",
        "O(1)",
        "(loop [v [] old nil k 0] (if (< k N) (recur (conj v k) v (inc k)) (count old)))",
    ),
    (
        "`concat` of more, in a loop",
        "sequence",
        "O(1), the stack overflows",
        "O(log n)",
        "(count (reduce (fn [a i] (concat a [i])) [] (range N)))",
    ),
    (
        "`concat` in front, in a loop",
        "sequence",
        "O(1)",
        "O(log n)",
        "(count (reduce (fn [a i] (concat [i] a)) [] (range N)))",
    ),
    (
        "`rest`, then `concat`: a queue",
        "sequence",
        "O(1)",
        "O(log n)",
        "(loop [q (range 100) k 0] (if (< k N) (recur (concat (rest q) [(first q)]) (inc k)) (count q)))",
    ),
    (
        "`first`, `drop`",
        "`cycle` of a vector",
        "O(1) an item",
        "O(1) an item",
        "(first (drop (* 2 N) (cycle (vec (range N)))))",
    ),
    (
        "`first`, `next`",
        "string",
        "O(1)",
        "O(1)",
        "(loop [s (seq (apply str (repeat N \"aé\"))) k 0] (if s (recur (next s) (+ k (int (first s)))) k))",
    ),
    (
        "`seq`, `first`, `rest`",
        "string",
        "O(1)",
        "O(1)",
        "(let [s (apply str (repeat N \"é\"))] (count (filter (fn [_] (and (seq s) (first s) (rest s))) (range N))))",
    ),
    (
        "`nth`, `get`, `.charAt`",
        "string",
        "O(1)",
        "O(1)",
        "(let [s (apply str (repeat N \"aé\"))] \
         (reduce + (map (fn [i] (+ (int (nth s i)) (int (get s i)) (int (.charAt s i)))) (range N))))",
    ),
    (
        "`subs` of a few characters",
        "string",
        "O(1)",
        "O(1)",
        "(let [s (apply str (repeat N \"aé\"))] (count (filter (fn [i] (= (subs s i (+ i 1)) \"a\")) (range N))))",
    ),
    (
        "`count`",
        "string",
        "O(1)",
        "O(1)",
        "(let [s (apply str (repeat N \"aé\"))] (reduce + (map (fn [_] (+ (count s) (count (rest s)))) (range N))))",
    ),
    (
        "`str` of a text and a few characters, in a loop",
        "string",
        "O(n)",
        "O(1) if nothing else holds the text",
        "[(count (loop [s \"\" k 0] (if (< k N) (recur (str s \"aé\" k) (inc k)) s))) (count (reduce str (range N)))]",
    ),
    (
        "`str/index-of` from an index",
        "string",
        "O(distance)",
        "O(distance)",
        "(let [s (apply str (repeat N \"aé\"))] (loop [i 0 k 0] \
         (if-let [at (str/index-of s \"é\" i)] (recur (inc at) (inc k)) k)))",
    ),
    (
        "`mapcat`, `concat` of many",
        "vectors in a lazy sequence",
        "O(1) an item",
        "O(1) an item",
        "(count (take N (mapcat (fn [_] (vec (range N))) (iterate inc 0))))",
    ),
    (
        "`drop`, `filter`, `drop-while`",
        "lazy sequence",
        "O(1) an item",
        "O(1) an item",
        "[(first (drop N (iterate inc 1))) (first (filter #(> % N) (iterate inc 1))) \
         (first (drop-while #(< % N) (iterate inc 1))) (first (keep #(if (> % N) %) (iterate inc 1)))]",
    ),
    (
        "`sort`, `reverse`, `butlast`, `vec`, `into`",
        "any",
        "O(n), `sort` O(n log n)",
        "O(n), `sort` O(n log n)",
        "(let [v (vec (range N))] [(count (sort v)) (count (reverse (seq v))) (count (butlast v)) (count (into [] (rest v)))])",
    ),
];

/// The numbers of items.
const SIZES: [u32; 3] = [1_000, 4_000, 16_000];

/// The growth from one size to the next that is linear, or nearly.
const LINEAR: f64 = 6.5;

/// The steps and the bytes that a program takes with `N` items.
fn cost(program: &str, items: u32) -> [f64; 2] {
    let program = program.replace('N', &items.to_string());
    let before = allocated();
    let reply = with_limit(&program, &[("fuel", "1e9"), ("compute", "120s"), ("total", "120s"), ("memory", "1GiB")]);
    let bytes = allocated() - before;
    assert!(reply.failure.is_none(), "{program}: {:?}", reply.failure.map(|failure| failure.rendered));
    [reply.spent.fuel as f64, bytes as f64]
}

/// Returns the costs of a program at all sizes, and the largest growth between two of them.
fn growth(program: &str) -> (Vec<[f64; 2]>, f64) {
    let costs: Vec<_> = SIZES.iter().map(|items| cost(program, *items)).collect();
    let steps = costs.windows(2).flat_map(|pair| [0, 1].map(|what| pair[1][what] / pair[0][what]));
    let largest = steps.fold(0.0, f64::max);
    (costs, largest)
}

#[test]
fn operations_grow_as_the_table_says() {
    let mut wrong = String::new();
    for (operation, collection, _, _, program) in ROWS {
        let (costs, largest) = growth(program);
        if largest > LINEAR {
            let _ = writeln!(wrong, "{operation} of {collection}: {largest:.1} times for 4 times the items: {costs:?}");
        }
    }
    assert!(wrong.is_empty(), "steps and bytes at {SIZES:?} items:\n{wrong}");
}

#[test]
fn a_copy_in_each_operation_is_noticed() {
    for program in [
        "(loop [v (vec (range N)) k 0] (if (< k N) (recur v (+ k (count (into [] v)))) k))",
        "(let [v (vec (range N))] (dotimes [_ N] (reverse v)))",
        "(let [v (vec (range N))] (dotimes [_ N] (apply list v)))",
    ] {
        let program = program.replace("(< k N)", "(< k (* N N))");
        assert!(growth(&program).1 > LINEAR, "{program}");
    }
}

#[test]
fn the_page_has_the_table() {
    let page = include_str!("../../docs/performance.md");
    let mut missing = String::new();
    for (operation, collection, clojure, here, _) in ROWS {
        let row = format!("| {operation} | {collection} | {clojure} | {here} |\n");
        if !page.contains(&row) {
            missing.push_str(&row);
        }
    }
    assert!(missing.is_empty(), "docs/performance.md lacks\n{missing}");
    let (_, table) = page.split_once("| operation | collection | Clojure | lispbox |\n").expect("the table");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|')).count();
    assert_eq!(rows, ROWS.len(), "the page has rows that no program holds");
}

#[test]
fn a_program_holds_nothing_that_it_has_left_out() {
    for program in [
        "(def a 1) (first (drop 600000 (iterate inc 1)))",
        "(def a 1) (first (filter #(> % 600000) (iterate inc 1)))",
        "(def a 1) (first (remove #(< % 600000) (iterate inc 1)))",
        "(def a 1) (first (keep #(if (> % 600000) %) (iterate inc 1)))",
        "(def a 1) (first (drop-while #(< % 600000) (iterate inc 1)))",
        "(def a 1) (nth (iterate inc 1) 600000)",
        "(def a 1) (nth (map inc (iterate inc 1)) 300000)",
        "(def a 1) (first (drop 300000 (map inc (filter odd? (iterate inc 1)))))",
        "(def a 1) (first (for [x (iterate inc 1) :when (> x 300000)] x))",
        "(def a 1) (first (mapcat #(if (> % 300000) [%]) (iterate inc 1)))",
        "(def a 1) (last (take 300000 (iterate inc 1)))",
        "(def a 1) (first (sequence (comp (filter #(> % 300000)) (map inc)) (iterate inc 1)))",
        "(def a 1) (first (eduction (filter #(> % 300000)) (iterate inc 1)))",
        "(def a 1) (first (drop 300000 (map-indexed vector (iterate inc 1))))",
        "(def a 1) (some #(if (> % 300000) %) (iterate inc 1))",
        "(def a 1) (first (drop 100000 (partition-all 3 (iterate inc 1))))",
        "(def a 1) (first (drop 300000 (reductions + (iterate inc 1))))",
        "(def a 1) (first (drop 300000 (interleave (iterate inc 1) (repeat 0))))",
    ] {
        let reply =
            with_limit(program, &[("memory", "4MiB"), ("session", "1MiB"), ("fuel", "1e9"), ("compute", "120s")]);
        assert!(reply.failure.is_none(), "{program}: {:?}", reply.failure.map(|failure| failure.rendered));
    }
}

#[test]
fn what_is_no_longer_held_is_not_counted() {
    let mut session = session();
    let mut request = Request::new("(def a 1) (count (doall (take 400000 (iterate inc 1))))");
    for (limit, amount) in [("memory", "256MiB"), ("session", "1MiB"), ("fuel", "1e9"), ("compute", "120s")] {
        request.limits.set(limit, amount).expect("a known limit");
    }
    let reply = session.eval(request, host());
    assert_eq!(reply.value.as_deref(), Some("400000"), "{:?}", reply.failure.map(|failure| failure.rendered));
    // A program that reaches its limit gives back all that it held.
    let mut request = Request::new("(reduce conj [] (iterate inc 1))");
    for (limit, amount) in [("memory", "64MiB"), ("session", "1MiB"), ("fuel", "1e9"), ("compute", "120s")] {
        request.limits.set(limit, amount).expect("a known limit");
    }
    let reply = session.eval(request, host());
    assert_eq!(reply.failure.and_then(|failure| failure.limit).as_deref(), Some("memory"));
    let mut request = Request::new("(+ a 1)");
    request.limits.set("session", "1MiB").expect("a known limit");
    let reply = session.eval(request, host());
    assert_eq!(reply.value.as_deref(), Some("2"), "{:?}", reply.failure.map(|failure| failure.rendered));
}

#[test]
fn a_limit_is_never_said_to_be_exceeded_by_more_than_there_can_be() {
    for program in ["(repeat 1000000 (vec (repeat 10000000 1)))", "(vec (range 1e18))", "(into [] (range 9e17))"] {
        let reply = eval(program);
        let failure = reply.failure.expect("a limit");
        assert_eq!(failure.limit.as_deref(), Some("memory"), "{program}: {}", failure.rendered);
        assert!(
            !failure.rendered.contains("0000 GiB") && !failure.rendered.contains("17179869184"),
            "{}",
            failure.rendered
        );
    }
}
