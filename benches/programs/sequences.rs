//! Operations on ten thousand items at once, each item an operation.

use super::{DATA, DEFINITIONS, Program, TIMES, whole};

/// The programs of this file.
pub fn programs() -> Vec<Program> {
    let over = |name, text, answer| whole(name, DATA, text, answer, TIMES);
    let mut programs = vec![
        over("reduce +", "(reduce + numbers)", "49995000"),
        over("reduce with a function", "(reduce (fn [a b] (+ a b)) numbers)", "49995000"),
        over("range, doseq", "(doseq [n (range 10000)] n)", "nil"),
        over("map", "(count (map inc numbers))", "10000"),
        over("mapv", "(count (mapv inc numbers))", "10000"),
        over("map with a function", "(count (map (fn [n] (+ n 1)) numbers))", "10000"),
        over("map, filter", "(->> numbers (map inc) (filter even?) (reduce +))", "25005000"),
        over(
            "map, filter, map with functions",
            "(->> numbers (map (fn [n] (* n 3))) (filter (fn [n] (> n 10))) (map (fn [n] (- n 1))) (reduce +))",
            "149974986",
        ),
        over("map, filter as transducers", "(transduce (comp (map inc) (filter even?)) + numbers)", "25005000"),
        over("for with when", "(count (for [n numbers :when (odd? n)] [n (* n n)]))", "5000"),
        over("take-while, drop, partition", "(count (partition 3 (drop 10 (take-while #(< % 9990) numbers))))", "3326"),
        over("mapcat", "(count (mapcat (fn [n] [n n]) numbers))", "20000"),
        over("distinct", "(count (distinct (map :subject mails)))", "500"),
        over("frequencies", "(count (frequencies (map :subject mails)))", "500"),
        over("group-by", "(count (group-by :subject mails))", "500"),
        over("group-by of a path", "(count (group-by #(get-in % [:sender :email]) mails))", "97"),
        over("sort", "(first (sort > numbers))", "9999"),
        over("sort-by", "(:id (first (sort-by :size mails)))", "0"),
        over("update of every record", "(count (mapv #(update % :size inc) mails))", "10000"),
        over("assoc to every record", "(count (mapv #(assoc % :seen true) mails))", "10000"),
        over("filter by a path", "(count (filter #(= \"Customer 5\" (get-in % [:sender :name])) mails))", "104"),
        over("max-key", "(:size (apply max-key :size mails))", "2501.5"),
    ];
    programs.push(Program {
        text: format!("{DEFINITIONS}\n(count (report mails))"),
        ..over("report of 100 lines, read and run", "", "7")
    });
    programs
}
