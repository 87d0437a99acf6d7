//! Random calls of the language's functions on collections with huge keys, and on long texts and numbers: under a small
//! time limit, each call must return soon, however long a single step takes.
//!
//! The test measures the processor time of the thread. `LISPBOX_SEED` and `LISPBOX_PROGRAMS` set the seed and the
//! number of programs.
#![cfg(target_os = "linux")]

mod common;

use lispbox::lang::{Reply, Request, Session};

/// Definitions of the values that the programs use.
const HELD: [&str; 22] = [
    "(def text (str/repeat \"ab c\" 250000))",
    "(def alike (str/repeat \"a\" 1000000))",
    "(def texts (mapv (fn [i] (str (str/repeat \"x\" 200000) i)) (range 30)))",
    "(def record (json/parse (json/write (zipmap (map (fn [i] (str (str/repeat \"key_\" 50000) i)) (range 30)) (range)))))",
    "(def vectors (mapv (fn [i] (conj (vec (range 40000)) i)) (range 12)))",
    "(def others (mapv (fn [i] (conj (vec (range 40000)) i)) (range 12)))",
    "(def by-vector (zipmap vectors (range)))",
    "(def by-other (zipmap others (range)))",
    "(def of-vectors (set vectors))",
    "(def of-others (set others))",
    "(def sorted (into (sorted-map) by-vector))",
    "(def sorted-others (into (sorted-set) others))",
    "(def sorted-texts (into (sorted-set) (map vector texts)))",
    "(def by-length (into (sorted-set-by (fn [a b] (compare (count a) (count b)))) [(first texts) (peek texts)]))",
    "(def wide {(vec (range 1000000)) 1})",
    "(def sorted-wide (sorted-map (vec (range 1000000)) 1))",
    "(def shared (let [v (vec (range 1000))] {(vec (repeat 1000 v)) 1}))",
    "(def integer (reduce *' (repeat 1500 9223372036854775807)))",
    "(def longer (*' integer integer))",
    "(def decimal (* 1.50M (bigdec integer)))",
    "(def far 1e900000M)",
    "(def rows (mapv (fn [i] {:id i :text (str i) :tags [i i]}) (range 5000)))",
];

const MORE: [&str; 30] = [
    "(first vectors)",
    "(first others)",
    "(first texts)",
    "(str (peek texts) 1)",
    "(seq by-other)",
    "#{(peek texts)}",
    "(re-pattern \"(a|b)*?(a|b){90}z\")",
    "(range)",
    "1",
    "100000",
    "-1",
    "nil",
    "\"a\"",
    "\":\"",
    "inc",
    "identity",
    "compare",
    "str",
    "=",
    "{}",
    "[]",
    "1.5",
    "1M",
    "#\"a\"",
    "\"%s\"",
    ":id",
    "vec",
    "count",
    "hash",
    "true",
];

/// The time limit, and the maximum lateness of a program, in milliseconds. A step of an unoptimised build takes about
/// four times as long.
const LIMIT: u64 = 60;
const LATE: u64 = if cfg!(debug_assertions) { 250 } else { 50 };

/// Maximum number of runs of a program that is late; the fastest run counts.
const TRIES: u32 = 3;

/// Functions that are excluded because they wait on purpose.
const LEFT_OUT: [&str; 2] = ["sleep", "Thread/sleep"];

/// Random number generator (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn one_of<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[(self.next() % among.len() as u64) as usize]
    }
}

/// Returns the names in the reference, without the special forms and macros.
fn names() -> Vec<String> {
    let reference = std::fs::read_to_string("stdlib/REFERENCE.md").expect("a reference");
    let functions = reference.split("\n## ").skip(1).filter(|area| !area.starts_with("Forms\n"));
    let lines = functions.flat_map(|area| area.lines().filter_map(|line| line.strip_prefix("- `(")));
    let names = lines.map(|line| line.split([' ', ')', '`']).next().unwrap_or_default().to_string());
    names.filter(|name| !name.is_empty() && !LEFT_OUT.contains(&name.as_str())).collect()
}

/// Generates a random call, evaluated once or in an endless loop.
fn program(random: &mut Random, names: &[&str]) -> String {
    let held: Vec<&str> = HELD.iter().filter_map(|definition| definition.split_whitespace().nth(1)).collect();
    let count = 1 + random.next() % 3;
    let special = random.next() % count;
    let arguments: Vec<&str> =
        (0..count)
            .map(|at| {
                if at == special || random.next().is_multiple_of(2) {
                    random.one_of(&held)
                } else {
                    random.one_of(&MORE)
                }
            })
            .collect();
    let call = format!("({} {})", random.one_of(names), arguments.join(" "));
    match random.next() % 3 {
        0 => format!("(loop [] (try {call} (catch Exception e nil)) (recur))"),
        1 => format!("(let [x {call}] 1)"),
        _ => call,
    }
}

fn eval(session: &mut Session, program: &str, compute: &str) -> Reply {
    let mut request = Request::new(program);
    for (name, amount) in [("fuel", "1e13"), ("memory", "512MiB"), ("session", "512MiB"), ("compute", compute)] {
        request.limits.set(name, amount).expect("a known limit");
    }
    session.eval(request, common::host())
}

/// Returns the processor time of this thread, in milliseconds.
fn processor() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a text");
    let spent: u64 = stat.split(' ').next().and_then(|spent| spent.parse().ok()).expect("a number");
    spent / 1_000_000
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn no_call_runs_on_between_two_looks_at_the_clock() {
    let names = names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(names.len() > 800, "{} names", names.len());
    let begin = || {
        let mut session = common::engine().session();
        for definition in HELD {
            let reply = eval(&mut session, definition, "60s");
            assert!(reply.failure.is_none(), "{definition}: {reply:?}");
        }
        session
    };
    let mut session = begin();
    let mut random = Random(setting("LISPBOX_SEED", 1));
    let mut late = Vec::new();
    for _ in 0..setting("LISPBOX_PROGRAMS", 200) {
        let program = program(&mut random, &names);
        let mut least = u64::MAX;
        let mut tries = 0;
        while least > LIMIT + LATE && tries < TRIES {
            let before = processor();
            let reply = eval(&mut session, &program, &format!("{LIMIT}ms"));
            least = least.min(processor() - before);
            assert_ne!(common::outcome(reply), "error: InternalError", "{program}");
            tries += 1;
        }
        if least > LIMIT + LATE {
            late.push(format!("{least} ms: {program}"));
        }
    }
    assert!(late.is_empty(), "{} programs were late:\n{}", late.len(), late.join("\n"));
}
