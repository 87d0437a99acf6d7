//! Self-contained programs, with answers computed in Rust.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Job;
use crate::mailbox::chance::Chance;

/// Chooses a program.
pub fn job(chance: &mut Chance) -> Job {
    let kinds: [fn(&mut Chance) -> Job; 11] =
        [squares, groups, groups, factorial, fibonacci, texts, frequencies, transducer, caught, counting, round_trip];
    chance.of(&kinds)(chance)
}

/// Random numbers from -1000 to 1000: at least one, at most `most`.
pub fn numbers(chance: &mut Chance, most: u64) -> Vec<i64> {
    (0..1 + chance.below(most)).map(|_| chance.below(2_001) as i64 - 1_000).collect()
}

/// Joins items with spaces, as the printer does inside a vector or a list.
pub fn spaced<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(" ")
}

/// Quotes a text that contains no character that needs an escape.
pub fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn squares(chance: &mut Chance) -> Job {
    let numbers = numbers(chance, 200);
    let sum: i64 = numbers.iter().filter(|number| *number % 2 != 0).map(|number| number * number).sum();
    Job::good(format!("(reduce + (map #(* % %) (filter odd? [{}])))", spaced(&numbers)), sum.to_string())
}

/// Rows passed as data; one time in twelve, 4,000 of them.
fn groups(chance: &mut Chance) -> Job {
    let count = if chance.below(12) == 0 { 4_000 } else { 1 + chance.below(60) };
    let rows: Vec<(String, i64)> =
        (0..count).map(|_| (format!("group {}", chance.below(9)), chance.below(10_000) as i64)).collect();
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for (group, value) in &rows {
        *sums.entry(group).or_default() += value;
    }
    let answer: Vec<String> = sums.iter().map(|(group, sum)| format!("{} {sum}", quoted(group))).collect();
    let data: Value = rows.iter().map(|(group, value)| json!({"group": group, "value": value})).collect();
    let program = "(->> data
     (group-by :group)
     (map (fn [[group rows]] [group (reduce + (map :value rows))]))
     (into (sorted-map)))";
    Job { data: Some(data), ..Job::good(program, format!("{{{}}}", answer.join(", "))) }
}

fn factorial(chance: &mut Chance) -> Job {
    // From 21! on, the result exceeds 64 bits; up to 34!, it fits 128.
    let last = 21 + chance.below(14);
    let product: u128 = (1..=u128::from(last)).product();
    Job::good(format!("(reduce *' (range 1 {}))", last + 1), format!("{product}N"))
}

fn fibonacci(chance: &mut Chance) -> Job {
    let place = chance.below(90);
    let (mut one, mut next) = (0u64, 1u64);
    for _ in 0..place {
        (one, next) = (next, one + next);
    }
    let program = format!("(loop [a 0 b 1 n {place}] (if (zero? n) a (recur b (+ a b) (dec n))))");
    Job::good(program, one.to_string())
}

fn words(chance: &mut Chance) -> Vec<&'static str> {
    const WORDS: [&str; 8] = ["lisp", "box", "tree", "walk", "meter", "heap", "form", "node"];
    (0..1 + chance.below(30)).map(|_| chance.of(&WORDS)).collect()
}

fn texts(chance: &mut Chance) -> Job {
    let mut words = words(chance);
    let literal = spaced(words.iter().map(|word| quoted(word)));
    words.sort_unstable();
    let answer = words.join("-").to_uppercase();
    Job::good(format!("(->> [{literal}] sort (map str/upper-case) (str/join \"-\"))"), quoted(&answer))
}

fn frequencies(chance: &mut Chance) -> Job {
    let words = words(chance);
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for word in &words {
        *counts.entry(word).or_default() += 1;
    }
    let mut sorted: Vec<(&str, i64)> = counts.into_iter().collect();
    sorted.sort_by_key(|(word, count)| (-count, *word));
    let answer = spaced(sorted.iter().map(|(word, count)| format!("[{} {count}]", quoted(word))));
    let literal = spaced(words.iter().map(|word| quoted(word)));
    Job::good(format!("(vec (sort-by (juxt (comp - val) key) (frequencies [{literal}])))"), format!("[{answer}]"))
}

fn transducer(chance: &mut Chance) -> Job {
    let (end, taken) = (chance.below(5_000), 1 + chance.below(300));
    let sum: u64 = (0..end).map(|n| n + 1).filter(|n| n % 2 == 0).take(taken as usize).sum();
    let program = format!("(transduce (comp (map inc) (filter even?) (take {taken})) + 0 (range {end}))");
    Job::good(program, sum.to_string())
}

fn caught(chance: &mut Chance) -> Job {
    let number = chance.below(1_000_000);
    let program = format!(
        "(let [log (atom [])]
  (try
    (try (swap! log conj {number})
         (mapv (fn [x] (if (= x 3) (throw (ex-info \"three\" {{:x x}})) x)) (range 10))
         (finally (swap! log conj :finally)))
    (catch Exception e (conj @log (:x (ex-data e)) (ex-message e)))))"
    );
    Job::good(program, format!("[{number} :finally 3 \"three\"]"))
}

fn counting(chance: &mut Chance) -> Job {
    let end = chance.below(20_000) as i64;
    let sum: i64 = (0..end).map(|i| i * i % 7).sum();
    let program = format!("(loop [i 0 sum 0] (if (= i {end}) sum (recur (inc i) (+ sum (mod (* i i) 7)))))");
    Job::good(program, sum.to_string())
}

fn round_trip(chance: &mut Chance) -> Job {
    let data = json!({"numbers": numbers(chance, 50), "words": words(chance), "nested": {"a": [null, true, 1.5]}});
    Job { data: Some(data), ..Job::good("(= data (json/read (json/write data)))", "true") }
}
