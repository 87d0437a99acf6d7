//! Looking up, adding and replacing in vectors, maps and sets, small and large.

use super::{Program, each, whole};

const SMALL: &str = "(def v [1 2 3 4]) (def m {:a 1 :b 2 :c 3}) (def nested {:a {:b {:c 1}}}) (def s #{:a :b :c})";
const LARGE: &str = "(def v (vec (range 10000))) (def m (zipmap v v)) (def s (set v))
(def texts (mapv (fn [i] (str \"customer-\" i)) v)) (def by-text (zipmap texts v))";

/// The programs of this file.
pub fn programs() -> Vec<Program> {
    vec![
        each("nth, small vector", SMALL, "(nth v 2)", "3"),
        each("nth, large vector", LARGE, "(nth v i)", "9999"),
        each("conj, small vector", SMALL, "(conj v i)", "[1 2 3 4 9999]"),
        each("assoc, small vector", SMALL, "(assoc v 1 i)", "[1 9999 3 4]"),
        each("get, small map", SMALL, "(get m :b)", "2"),
        each("get, large map", LARGE, "(get m i)", "9999"),
        each("get, large map of texts", LARGE, "(get by-text (nth texts i))", "9999"),
        each("get-in, small maps", SMALL, "(get-in nested [:a :b :c])", "1"),
        each("assoc of a key, small map", SMALL, "(assoc m :b i)", "{:a 1, :b 9999, :c 3}"),
        each("assoc of a new key, small map", SMALL, "(assoc m :d i)", "{:a 1, :b 2, :c 3, :d 9999}"),
        each("assoc of a key, large map", LARGE, "(count (assoc m i 1))", "10000"),
        each("dissoc, small map", SMALL, "(dissoc m :b)", "{:a 1, :c 3}"),
        each("update, small map", SMALL, "(update m :b inc)", "{:a 1, :b 3, :c 3}"),
        each("update-in, small maps", SMALL, "(update-in nested [:a :b :c] inc)", "{:a {:b {:c 2}}}"),
        each("merge, small maps", SMALL, "(merge m {:c 4 :d 5})", "{:a 1, :b 2, :c 4, :d 5}"),
        each("select-keys, small map", SMALL, "(select-keys m [:a :b])", "{:a 1, :b 2}"),
        each("contains?, small set", SMALL, "(contains? s :b)", "true"),
        each("contains?, large set", LARGE, "(contains? s i)", "true"),
        each("equal small maps", SMALL, "(= m {:a 1 :b 2 :c 3})", "true"),
        whole("conj, large vector that is kept", LARGE, "(dotimes [i 100] (conj v i))", "nil", 100),
        whole("assoc, large vector that is kept", LARGE, "(dotimes [i 100] (assoc v i 1))", "nil", 100),
        whole(
            "assoc, every item of a large vector",
            LARGE,
            "(count (loop [i 0 v v] (if (< i 10000) (recur (inc i) (assoc v i 1)) v)))",
            "10000",
            10_000,
        ),
        whole(
            "conj, a vector grown to 10,000",
            "",
            "(count (loop [i 0 v []] (if (< i 10000) (recur (inc i) (conj v i)) v)))",
            "10000",
            10_000,
        ),
        whole(
            "assoc, a map grown to 10,000",
            "",
            "(count (loop [i 0 m {}] (if (< i 10000) (recur (inc i) (assoc m i i)) m)))",
            "10000",
            10_000,
        ),
        whole("into a map, of 10,000 pairs", LARGE, "(count (into {} (map vector v v)))", "10000", 10_000),
        whole("into a set, of 10,000", LARGE, "(count (into #{} v))", "10000", 10_000),
    ]
}
