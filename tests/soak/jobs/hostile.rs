//! Hostile programs, and the expected outcome of each.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Expected, Job, tools};
use crate::mailbox::chance::Chance;

/// Chooses a hostile program.
pub fn job(chance: &mut Chance) -> Job {
    match chance.below(10) {
        0..=3 => stopped(chance),
        4 | 5 => clocked(chance),
        6 => wrong(chance),
        7 => calling(chance),
        8 => odd(chance),
        _ => noise(chance),
    }
}

/// Low limits with ample time: the outcome is the same on every machine.
fn little() -> Value {
    json!({"fuel": 2_000_000, "memory": "32MiB", "compute": super::AMPLE})
}

/// Programs that a limit stops, or that look dangerous and end harmlessly.
fn stopped(chance: &mut Chance) -> Job {
    const PROGRAMS: [(&str, Expected); 22] = [
        ("(loop [] (recur))", Expected::OneOf(&["limit: fuel"])),
        ("(try (loop [] (recur)) (catch Exception e :caught) (finally :x))", Expected::OneOf(&["limit: fuel"])),
        ("(loop [s \"ab\"] (recur (str s s)))", Expected::OneOf(&["limit: memory"])),
        ("(loop [v [1]] (recur [v v]))", Expected::OneOf(&["limit: memory", "limit: fuel"])),
        ("(loop [v [1]] (recur (into v v)))", Expected::OneOf(&["limit: memory", "limit: fuel"])),
        ("(str/repeat \"ab\" 1000000000)", Expected::OneOf(&["limit: memory", "limit: fuel"])),
        ("(apply str (repeat 1000000000 \"x\"))", Expected::OneOf(&["limit: memory", "limit: fuel"])),
        ("(format \"%999999999d\" 1)", Expected::OneOf(&["limit: memory", "limit: fuel"])),
        ("(vec (range 1e10))", Expected::OneOf(&["limit: memory", "limit: fuel"])),
        ("(let [f (fn f [n] (+ 1 (f n)))] (f 1))", Expected::OneOf(&["limit: depth"])),
        ("(let [a (atom nil)] (swap! a (fn f [x] (swap! a f))))", Expected::OneOf(&["limit: depth"])),
        ("(count (reduce (fn [a _] [a]) [] (range 20000)))", Expected::OneOf(&["1"])),
        ("(let [a (atom nil)] (reset! a a) (str a))", Expected::OneOf(&["\"#<atom #<atom>>\""])),
        ("(re-find #\"(a+)+$\" (str (str/repeat \"a\" 5000) \"b\"))", Expected::OneOf(&["nil"])),
        ("(re-find #\"(x+x+)+y\" (str/repeat \"x\" 5000))", Expected::OneOf(&["nil"])),
        ("(re-matches #\"(a{1000}){1000}\" \"a\")", Expected::OneOf(&["error: InvalidRegex"])),
        ("(dotimes [i 5000] (println \"flood\" i)) :dry", Expected::OneOf(&[":dry"])),
        ("(println (range 100000)) (range)", Expected::Beginning("(0 1 2 3 4 5 6 7 8 9 10 ")),
        ("(sort (fn [a b] (throw (ex-info \"no\" {}))) (range 10))", Expected::OneOf(&["error: ExceptionInfo"])),
        (
            "(pmap (fn [x] (if (= x 5) (throw (ex-info \"five\" {})) x)) (range 8))",
            Expected::OneOf(&["error: ExceptionInfo"]),
        ),
        ("(pmap (fn [x] (loop [] (recur))) (range 8))", Expected::OneOf(&["limit: fuel"])),
        (
            "(sort-by (fn [_] (str/repeat \"a\" 1000000)) (range 100))",
            Expected::OneOf(&["limit: memory", "limit: fuel"]),
        ),
    ];
    let index = chance.below(PROGRAMS.len() as u64) as usize;
    let (program, expected) = PROGRAMS[index].clone();
    Job::bad(program, little(), expected)
}

/// Endless programs, which the compute limit stops.
fn clocked(chance: &mut Chance) -> Job {
    const PROGRAMS: [&str; 6] = [
        "(loop [] (recur))",
        "(loop [n 0] (recur (reduce + (map inc (range 1000)))))",
        "(loop [] (sort (fn [a b] (compare b a)) (range 500)) (recur))",
        "(try (while true (try (throw (ex-info \"x\" {})) (catch Exception e nil))) (catch Exception e :caught))",
        "(pmap (fn [x] (loop [] (recur))) (range 8))",
        "(loop [] (str/replace (str/repeat \"a\" 1000) #\"a\" \"bb\") (recur))",
    ];
    let clock = 50 + 50 * chance.below(5);
    let limits = json!({"fuel": 1e12, "memory": "32MiB", "compute": format!("{clock}ms")});
    let job = Job::bad(chance.of(&PROGRAMS), limits, Expected::OneOf(&["limit: compute"]));
    Job { clock: Some(Duration::from_millis(clock)), ..job }
}

/// Programs with errors.
fn wrong(chance: &mut Chance) -> Job {
    const PROGRAMS: [(&str, &str); 18] = [
        ("(let [x 1", "error: UnbalancedBrackets"),
        (")", "error: UnbalancedBrackets"),
        ("[1 2)", "error: UnbalancedBrackets"),
        ("\"abc", "error: UnterminatedString"),
        ("\"\\q\"", "error: InvalidEscape"),
        ("{:a}", "error: MapLiteral"),
        ("#{1 1}", "error: DuplicateKey"),
        ("@@@", "error: PrefixWithoutForm"),
        ("#\"(\"", "error: InvalidRegex"),
        ("(if)", "error: SyntaxError"),
        ("(recur)", "error: SyntaxError"),
        ("(let [x] x)", "error: SyntaxError"),
        ("(+ 1 \"a\")", "error: TypeError"),
        ("(nth [1 2] 5)", "error: IndexOutOfBounds"),
        ("(map)", "error: ArityError"),
        ("(/ 1 0)", "error: ArithmeticError"),
        ("(no-such-thing 1)", "error: UnboundVariable"),
        ("(slurp \"/etc/passwd\")", "error: NotAvailable"),
    ];
    let (program, outcome) = chance.of(&PROGRAMS);
    Job::bad(program, little(), Expected::Only(outcome.to_owned()))
}

/// Programs that call tools endlessly.
fn calling(chance: &mut Chance) -> Job {
    let server = chance.of(&tools::SERVERS);
    let call = format!("({server}/list-labels)");
    let program = match chance.below(3) {
        0 => format!("(loop [] {call} (recur))"),
        1 => format!("(loop [] (try {call} (catch Exception e nil)) (recur))"),
        _ => format!("(pmap (fn [_] {call}) (range 200))"),
    };
    let limits = json!({"calls": 3 + chance.below(20), "fuel": 2_000_000, "compute": super::AMPLE});
    Job::bad(program, limits, Expected::OneOf(&["limit: calls"]))
}

/// Extreme and invalid limits.
fn odd(chance: &mut Chance) -> Job {
    let refused = Expected::OneOf(&["error: InvalidArguments"]);
    let (limits, expected) = match chance.below(12) {
        0 => (json!({"fuel": 0}), Expected::OneOf(&["limit: fuel"])),
        1 => (json!({"fuel": 1}), Expected::OneOf(&["limit: fuel"])),
        2 => (json!({"memory": 0}), Expected::OneOf(&["limit: memory"])),
        3 => (json!({"program": 10}), Expected::OneOf(&["limit: program"])),
        4 => (json!({"output": 0}), Expected::Anything),
        5 => (json!({"compute": "0ms"}), Expected::OneOf(&["limit: compute", "499500"])),
        6 => (json!({"total": "0ms"}), Expected::OneOf(&["limit: total", "499500"])),
        7 => (json!({"fuel": -1}), refused),
        8 => (json!({"fuel": "much"}), refused),
        9 => (json!({"feul": 1000}), refused),
        10 => (json!({"memory": "64parsecs"}), refused),
        _ => (json!({"fuel": 1e300, "depth": 1e300, "parallel": 0, "calls": 0}), Expected::OneOf(&["499500"])),
    };
    Job::bad("(reduce + (map identity (range 1000)))", limits, expected)
}

/// Random sequences of tokens.
fn noise(chance: &mut Chance) -> Job {
    const PIECES: [&str; 32] = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "#{",
        "#(",
        "'",
        "`",
        "~",
        "~@",
        "@",
        "^",
        "#_",
        "\"",
        "\\",
        ";",
        "\n",
        " ",
        "%",
        "&",
        "loop ",
        "fn ",
        "let ",
        "map ",
        "1 ",
        "-0.5e3 ",
        ":k ",
        "x ",
        "é",
        "\u{1f600}",
    ];
    let program: String = (0..chance.below(60)).map(|_| chance.of(&PIECES)).collect();
    Job::bad(program, little(), Expected::Anything)
}
