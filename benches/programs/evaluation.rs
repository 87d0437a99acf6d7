//! The tree walk: calls, names, branches, and a whole program.

use super::{DEFINITIONS, Program, each, whole};

const FIBONACCI: &str = "(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))";
const CALLED: &str = "
(defn of-none [] 1)
(defn of-one [a] a)
(defn of-two [a b] b)
(defn of-three [a b c] c)
(defn of-four [a b c d] d)
(defn of-any [& more] more)
(defn adder [n] (fn [x] (+ x n)))
(def add-one (adder 1))
(defmulti area :kind)
(defmethod area :square [shape] (:side shape))";
const TAKEN_APART: &str = "(def pair [1 2 3]) (def entry {:a 1 :b 2 :c 3})";

/// The programs of this file.
pub fn programs() -> Vec<Program> {
    vec![
        whole("fib 20, each call", FIBONACCI, "(fib 20)", "6765", 21_891),
        whole(
            "loop of 100,000",
            "",
            "(loop [i 0 sum 0] (if (< i 100000) (recur (inc i) (+ sum i)) sum))",
            "4999950000",
            100_000,
        ),
        each("nothing", "", "i", "9999"),
        each("call of 0 arguments", CALLED, "(of-none)", "1"),
        each("call of 1 argument", CALLED, "(of-one i)", "9999"),
        each("call of 2 arguments", CALLED, "(of-two 1 i)", "9999"),
        each("call of 3 arguments", CALLED, "(of-three 1 2 i)", "9999"),
        each("call of 4 arguments", CALLED, "(of-four 1 2 3 i)", "9999"),
        each("call with a rest", CALLED, "(of-any 1 2 i)", "(1 2 9999)"),
        each("closure called", CALLED, "(add-one i)", "10000"),
        each("closure made and called", CALLED, "((adder i) 1)", "10000"),
        each("apply", CALLED, "(apply of-three [1 2 i])", "9999"),
        each("multimethod", CALLED, "(area {:kind :square :side i})", "9999"),
        each("builtin of 2 arguments", "", "(+ i 1)", "10000"),
        each("let of 3 names", "", "(let [a i b a c b] c)", "9999"),
        each("let of a vector's parts", TAKEN_APART, "(let [[a b c] pair] c)", "3"),
        each("let of a map's parts", TAKEN_APART, "(let [{:keys [a b c]} entry] c)", "3"),
        each("cond of 4", "", "(cond (< i 0) 1 (= i -1) 2 (> i 100000) 3 :else 4)", "4"),
        each("case of 4", "", "(case i 1 :one 2 :two 3 :three :many)", ":many"),
        each("keyword looked up", TAKEN_APART, "(:b entry)", "2"),
        each("vector of 3 made", "", "[i 2 3]", "[9999 2 3]"),
        each("map of 3 made", "", "{:a i :b 2 :c 3}", "{:a 9999, :b 2, :c 3}"),
        each("atom made and swapped", "", "(let [a (atom 0)] (swap! a inc))", "1"),
        each("error thrown and caught", "", "(try (throw (ex-info \"no\" {})) (catch Exception e i))", "9999"),
        each("arithmetic on reals", "", "(* (+ i 0.5) 2.0)", "19999.0"),
        each("arithmetic on decimals", "", "(* 1.19M (+ 0.01M i))", "11898.8219M"),
        whole("minimal program", "", "(+ 1 1)", "2", 1),
        whole("program of 100 lines", "", DEFINITIONS, "#'report", 1),
    ]
}
