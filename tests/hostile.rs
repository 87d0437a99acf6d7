//! Programs whose cost is incurred between two checks of the limits: they once ran on for seconds or took gigabytes
//! without being charged for it. Each test gives the expected outcome; no program may take much more memory than its
//! limit.

mod common;

use common::{eval, session, value};
use lispbox::lang::{Reply, Request, Status};
use std::sync::Arc;

/// Limits that the programs below once escaped. The time limits are generous, for slow machines.
const LIMITS: [(&str, &str); 4] = [("memory", "64MiB"), ("fuel", "2e6"), ("compute", "60s"), ("total", "60s")];

fn limited(program: &str) -> Reply {
    limited_to(LIMITS, program)
}

fn limited_to(limits: [(&str, &str); 4], program: &str) -> Reply {
    let mut request = Request::new(program);
    for (name, amount) in limits {
        request.limits.set(name, amount).expect("a known limit");
    }
    session().eval(request, Arc::new(common::Scripted::new()))
}

/// Returns the outcome of a program: `limit: memory`, `error: InvalidRegex`, or its value.
fn outcome(program: &str) -> String {
    let reply = limited(program);
    let memory = reply.spent.memory_bytes;
    assert!(memory <= 64 << 20, "{memory} bytes: {}", beginning(program));
    common::outcome(reply)
}

fn beginning(program: &str) -> &str {
    &program[..program.floor_char_boundary(200)]
}

fn check(cases: &[(&str, &str)]) {
    for (program, expected) in cases {
        assert_eq!(outcome(program), *expected, "{}", beginning(program));
    }
}

/// Returns that many regexes, either all with the same text or all with different texts.
fn regexes(count: usize, alike: bool) -> String {
    let one = |number| format!("#\"\\pL{{20}}{}\" ", if alike { 0 } else { number });
    (0..count).map(one).collect()
}

#[test]
fn regexes_in_data_are_paid_for_as_they_are_compiled() {
    let (different, alike) = (regexes(1_000, false), regexes(3_000, true));
    check(&[
        (&format!("'[{different}]"), "limit: memory"),
        (&format!("[{different}]"), "limit: memory"),
        (&format!("(read-string {:?})", format!("[{different}]")), "limit: memory"),
        // Equal regex literals are compiled once, but each is a distinct value.
        (&format!("(count '[{alike}])"), "3000"),
        (&format!("(count [{alike}])"), "3000"),
        ("(= #\"a\" #\"a\")", "false"),
        ("(let [[a b] '[#\"a\" #\"a\"]] [(= a b) (= a a) (re-find b \"cab\")])", "[false true \"a\"]"),
    ]);
}

#[test]
fn arguments_that_are_copied_from_call_to_call_are_asked_for() {
    let wrapped = |wrapper: &str| {
        format!("(apply (reduce (fn [f _] {wrapper}) (fn [& xs] (count xs)) (range 500)) (range 300000))")
    };
    let keeps = "(fn [& xs] (first [(apply f xs) (first xs)]))";
    for wrapper in ["(juxt f)", "(comp identity f)", "(complement f)", "(fnil f 1)", keeps] {
        assert_eq!(outcome(&wrapped(wrapper)), "limit: memory", "{wrapper}");
    }
    // This wrapper passes its arguments on without keeping a copy.
    assert_eq!(outcome(&wrapped("(fn [& xs] (apply f xs))")), "limit: fuel");
    // Arguments that end up in an `& rest` parameter anyway are not copied.
    assert_eq!(outcome(&wrapped("(partial f 1)")), "300500");
    check(&[
        ("(let [xs (vec (range 100000))] (apply (apply juxt (repeat 5000 (constantly 1))) xs))", "limit: fuel"),
        ("(def p (apply partial (constantly 1) (range 100000))) (loop [] (p) (recur))", "limit: fuel"),
        ("(defn p [& xs] 1) (def xs (range 100000)) (loop [] (apply p xs) (recur))", "limit: fuel"),
        ("((apply juxt (repeat 3 (partial + 1))) 1 2)", "[4 4 4]"),
    ]);
}

#[test]
fn patterns_have_a_length_at_which_they_are_refused() {
    check(&[
        ("(re-pattern (str/repeat \"[a\" 1000000))", "error: InvalidRegex"),
        ("(re-pattern (str/repeat \"(\" 1000000))", "error: InvalidRegex"),
        ("(re-pattern (str/repeat \"ab\" 40000))", "error: InvalidRegex"),
        ("(.split \"a\" (str/repeat \"a,b\\n\" 100000))", "error: InvalidRegex"),
        ("(str/split \"a\" (str/repeat \"a\" 100000))", "error: InvalidRegex"),
        (&format!("#\"{}\"", "a|".repeat(50_000)), "error: InvalidRegex"),
        // A short regex with a large compiled form: the Unicode classes alone would take 80 MB.
        ("(re-pattern (str/repeat \"\\\\pL\" 10000))", "limit: memory"),
        ("(count (re-find (re-pattern (str/repeat \"ab\" 1000)) (str/repeat \"ab\" 1001)))", "2000"),
    ]);
}

#[test]
fn questions_are_cut() {
    check(&[
        ("(apropos (str/repeat \"x\" 2000000))", "nil"),
        ("(apropos (str/repeat \"e \" 300000))", "nil"),
        ("(doc (str/repeat \"x\" 2000000))", "error: UnknownName"),
        ("(source (str/repeat \"x\" 2000000))", "error: UnknownName"),
        ("(dir (str/repeat \"x\" 2000000))", "error: UnknownName"),
    ]);
    assert!(eval("(apropos \"fliter\")").prints.contains("(filter"));
    let described = session().describe(Some(&"e ".repeat(300_000)), Arc::new(common::Scripted::new()));
    assert!(described.len() < 40_000, "{described}");
}

/// An integer of about 40,000 digits.
const LONG: &str = "(loop [n 2N i 0] (if (= i 17) n (recur (*' n n) (inc i))))";

#[test]
fn long_numbers_as_keys_and_in_comparisons_are_paid_for() {
    check(&[
        (&format!("(def b (bigdec {LONG})) (dotimes [i 1000000] (hash b))"), "limit: fuel"),
        (&format!("(def b (bigdec {LONG})) (dotimes [i 1000000] (hash [b]))"), "limit: fuel"),
        (&format!("(def b (bigdec {LONG})) (dotimes [i 1000000] (get {{[1] 1}} b))"), "limit: fuel"),
        ("(def s (str/repeat \"x\" 3000000)) (dotimes [i 1000000] (hash [s]))", "limit: fuel"),
        (
            "(def s (str/repeat \"x\" 3000000)) (def t (str/repeat \"x\" 3000000)) (loop [] (compare s t) (recur))",
            "limit: fuel",
        ),
        (
            "(def s (str/repeat \"x\" 3000000)) (def t (str/repeat \"x\" 3000000)) (loop [] (= [s] [t]) (recur))",
            "limit: fuel",
        ),
    ]);
    // Equal decimals have equal hashes, whatever their trailing zeros.
    for (one, other) in [
        ("1M", "1.0M"),
        ("1000M", "1E+3M"),
        ("0M", "0.000M"),
        ("-20.00M", "-2E+1M"),
        ("0.000123M", "0.0001230000000000000000000000000000000000M"),
        ("1E+5000M", "(bigdec (str \"1\" (str/repeat \"0\" 5000)))"),
        ("12.5E+700M", "(bigdec (str \"125\" (str/repeat \"0\" 699) \".00\"))"),
    ] {
        let program = format!("[(= {one} {other}) (= (hash {one}) (hash {other})) (count (hash-set {one} {other}))]");
        assert_eq!(value(&program), "[true true 1]", "{one} {other}");
    }
    assert_eq!(value("(= (hash 1M) (hash 10M))"), "false");
    // Decimals whose exponents are far apart, and close together, sort correctly.
    let ordered = "(sort < [1E+9000M 1E-9000M -1E+9000M 0M 1.00M 0.99M -1.01M 100E-2M 9.99E+8999M])";
    assert_eq!(value(ordered), "(-1E+9000M -1.01M 0M 1E-9000M 0.99M 1.00M 1.00M 9.99E+8999M 1E+9000M)");
}

#[test]
fn messages_about_long_values_take_no_longer_than_others() {
    for held in [
        format!("[{LONG}]"),
        format!("[(bigdec {LONG})]"),
        "(str/repeat \"ab, \" 1000000)".to_string(),
        "(keyword (str/repeat \"k\" 60000))".to_string(),
        "(ex-info (str/repeat \"k\" 3000000) {})".to_string(),
        "(re-pattern (str/repeat \"k\" 8000))".to_string(),
    ] {
        let started = std::time::Instant::now();
        let program = format!("(def b {held}) (dotimes [i 2000] (try (inc (list b)) (catch Exception e nil))) (inc b)");
        assert_eq!(outcome(&program), "error: TypeError", "{held}");
        // Traversing the whole value would take some milliseconds for each message.
        assert!(started.elapsed().as_secs() < 10, "{held}: {:?}", started.elapsed());
    }
    assert!(value(&format!("(first {LONG})")).contains("got #<about 39456 digits> (a big integer)"));
    let text = value("(inc (str/repeat \"ab, \" 1000))");
    assert!(text.contains("got \"ab, ab, ab, ab, ab, ab, ab, ab, ab, ab, ab, ab, ab, ab, ab,… (a string)"), "{text}");
}

#[test]
fn what_a_macro_returns_is_asked_for() {
    check(&[
        ("(defmacro m [] (vec (repeat 1000 (str/repeat \"x\" 1000000)))) (count (m))", "limit: memory"),
        ("(macroexpand-all (vec (repeat 1000 (str/repeat \"x\" 1000000))))", "limit: memory"),
        ("(defmacro m [] (range)) (m)", "limit: memory"),
        ("(defmacro m [] (vec (repeat 1000 \"x\"))) (count (m))", "1000"),
        // Every form is resolved against the names in scope.
        (&format!("(let [{{:keys [{}]}} {{}}] 1)", "a ".repeat(20_000)), "limit: fuel"),
    ]);
}

#[test]
fn the_cells_of_a_wide_row_are_asked_for() {
    check(&[
        ("(count (csv/parse (str/repeat \",\" 5000000)))", "limit: memory"),
        ("(count (csv/parse (str/repeat \",\" 1000000)))", "limit: memory"),
        ("(count (csv/parse (str/repeat \"a;b\\n\" 10000) :separator \";\"))", "9999"),
    ]);
}

#[test]
fn names_have_a_length_at_which_they_are_refused() {
    check(&[
        ("(keyword (str/repeat \"k\" 3000000))", "error: NameTooLong"),
        ("(symbol (str/repeat \"k\" 70000))", "error: NameTooLong"),
        ("(keyword \"a\" (str/repeat \"k\" 65535))", "error: NameTooLong"),
        ("(gensym (str/repeat \"k\" 70000))", "error: NameTooLong"),
        ("(string->symbol (str/repeat \"k\" 70000))", "error: NameTooLong"),
        ("(read-string (str \":\" (str/repeat \"k\" 70000)))", "error: NameTooLong"),
        ("(read-string (str \"#keyword \\\"\" (str/repeat \"k\" 70000) \"\\\"\"))", "error: NameTooLong"),
        ("(count (name (keyword (str/repeat \"k\" 65536))))", "65536"),
        // Longer keys of parsed data become strings.
        (
            "(map string? (keys (json/parse (str \"{\\\"\" (str/repeat \"k\" 70000) \"\\\": 1, \\\"a\\\": 2}\"))))",
            "(true false)",
        ),
    ]);
    assert_eq!(outcome(&"k".repeat(70_000)), "error: NameTooLong");
}

#[test]
fn the_hash_that_a_program_sees_depends_on_nothing_but_the_program() {
    let program = "[(hash (fn [] 1)) (hash (fn [x] x)) (hash (partial + 1)) (hash (comp inc)) (hash (ex-info \"a\" {}))
                    (hash [inc (fn [] 2)]) (hash {:f (fn [] 3)}) (hash (atom 1)) (hash #\"a\") (hash 1.50M) (hash \"a\")]";
    let first = value(program);
    // Allocating in between changes the addresses of later values.
    let _taken: Vec<Box<[u8]>> = (1..200).map(|size| vec![0; size * 16].into()).collect();
    assert_eq!(value(program), first);
    // Functions are still distinguished in hash tables, even if many come from one place in the source.
    assert_eq!(value("(count (set (map (fn [i] (fn [] i)) (range 20000))))"), "20000");
}

/// Evaluates bodies, expansions and resolutions of the maximum nesting depth, at every depth of the stack.
#[test]
fn no_depth_overflows_the_stack() {
    let nested = [
        "(list 'and true acc)",
        "(list 'or nil acc)",
        "(list 'do 1 acc)",
        "(list 'let ['a acc] 'a)",
        "(list 'let ['a 1] acc)",
        "(list 'loop ['a acc] 'a)",
        "(list 'if acc acc2 nil)",
        "(list 'str acc)",
        "(list 'inc acc)",
        "(list '+ 1 acc)",
        "(list 'nth [acc] 0)",
        "(list 'get {1 acc} 1)",
        "(list 'first (hash-set acc))",
        "(list :a {:a acc})",
        "(list (list 'fn [] acc))",
        "(list 'try acc '(catch Exception e 1))",
        "(list 'try acc '(finally 1))",
        "(list 'case acc 1 2 3)",
        "(list 'when acc 1)",
        "(list '-> acc 'identity)",
        "(list 'for ['a [acc]] 'a)",
        "(list 'binding ['*x* acc] 1)",
        "(list 'doto acc 'identity)",
        "(list 'letfn '[(h [x] x)] (list 'h acc))",
        "(list 'deref (list 'delay acc))",
        "(list 'with-out-str acc)",
    ];
    for step in nested {
        let step = step.replace("acc2", "1");
        let define = format!("(def ^:dynamic *x* 1) (defmacro nest [n x] (reduce (fn [acc _] {step}) x (range n)))");
        for program in [
            "(defn f [n] (nest 450 (+ 1 (f (inc n))))) (f 0)",
            "(defn f [n] (macroexpand-all '(nest 450 1)) (nest 10 (+ 1 (f (inc n))))) (f 0)",
        ] {
            let mut request = Request::new(format!("{define} {program}"));
            for (name, amount) in [("depth", "100000"), ("fuel", "5e5"), ("memory", "8GiB"), ("compute", "60s")] {
                request.limits.set(name, amount).expect("a known limit");
            }
            let reply = session().eval(request, Arc::new(common::Scripted::new()));
            // Any limit or error is accepted, because the process has survived.
            let outcome = common::outcome(reply);
            let ended = outcome.starts_with("limit: ") || outcome.starts_with("error: ");
            assert!(ended && outcome != "error: InternalError", "{outcome}: {define} {program}");
        }
    }
}

/// Fuel is the same in every build.
#[test]
fn fuel_is_exact() {
    let cases = [
        ("(count '[1 [2 3] {:a #{4}}])", 14),
        ("(count [#\"a+\" #\"a+\" #\"b\"])", 1_019),
        ("(apply (partial + 1 2) (range 1000))", 2_083),
        ("((juxt + -) 1 2)", 23),
        ("(hash (str/repeat \"x\" 6400))", 211),
        ("(= (bigdec (str/repeat \"7\" 3000)) 1.5M)", 7_625),
        ("(defmacro m [] (vec (repeat 100 \"xyz\"))) (count (m))", 730),
    ];
    let spent = cases.map(|(program, _)| (program, eval(program).spent.fuel));
    assert_eq!(spent, cases);
    // A program ends at the limit wherever it is reached, also while the result is printed or converted to JSON.
    let program = "(zipmap (range 40) (range))";
    let needed = eval(program).spent.fuel;
    for fuel in needed - 120..=needed {
        let mut request = Request::new(program);
        request.limits.fuel = fuel;
        let reply = session().eval(request, Arc::new(common::Scripted::new()));
        assert_eq!(reply.status == Status::Ok, fuel == needed, "{fuel} of {needed} steps: {reply:?}");
    }
    // Fuel does not depend on what the session ran before.
    let mut session = session();
    let again = [(); 2].map(|()| {
        session.eval(Request::new("(re-find #\"b+\" \"abb\")"), Arc::new(common::Scripted::new())).spent.fuel
    });
    assert_eq!(again[0], again[1]);
}

/// Fills memory with strings of different sizes in each round, and frees every second one.
const EVERY_OTHER: &str = "(count (reduce (fn [kept round]
    (let [size (* 100 (inc (mod (* 7 round) 41)))
          more (map (fn [i] (str/repeat \"x\" (+ size (mod (* 31 i) 97)))) (range (quot 8000000 size)))]
      (into [] (take-nth 2) (concat kept more))))
  [] (range 60)))";

/// Checks the actual memory use of the process; each program runs in its own child process.
#[cfg(target_os = "linux")]
#[test]
fn the_process_stays_within_what_is_promised() {
    for program in [
        format!("'[{}]", regexes(1_000, false)),
        "(apply (reduce (fn [a i] (juxt a)) + (range 5000)) (range 300000))".to_string(),
        "(re-pattern (str/repeat \"[a\" 4000000))".to_string(),
        "(re-pattern (str/repeat \"[a\" 32000))".to_string(),
        "(defmacro m [] (vec (repeat 1000 (str/repeat \"x\" 1000000)))) (count (m))".to_string(),
        "(count (csv/parse (str/repeat \",\" 5000000)))".to_string(),
        EVERY_OTHER.to_string(),
        "(def f (memoize inc)) (loop [i 0] (f i) (recur (inc i)))".to_string(),
        "(def a (atom {})) (loop [i 0] (swap! a assoc [i] i) (recur (inc i)))".to_string(),
    ] {
        let most = 64 * 3 / 2 + 16;
        let (before, after) = highest_in_child(&program);
        assert!(after - before <= most, "{} MiB more: {}", after - before, beginning(&program));
    }
}

/// Environment variable that passes the program to the child.
#[cfg(target_os = "linux")]
const CHILD: &str = "LISPBOX_HOSTILE_PROGRAM";

/// Returns the peak memory of a process before and after it ran a program, in MiB.
#[cfg(target_os = "linux")]
fn highest_in_child(program: &str) -> (u64, u64) {
    let own = std::env::current_exe().expect("a path");
    let mut child = std::process::Command::new(own);
    child.args(["--exact", "a_child", "--nocapture"]).env(CHILD, program);
    let output = String::from_utf8(child.output().expect("it runs").stdout).expect("a text");
    let number = |mark: &str| {
        let line = output.lines().find_map(|line| line.split_once(mark)).unwrap_or_else(|| panic!("{output}"));
        line.1.trim().parse().expect("a number")
    };
    (number("before:"), number("after:"))
}

/// Body of the child process that the test above starts; does nothing unless the variable is set.
#[cfg(target_os = "linux")]
#[test]
fn a_child() {
    let Ok(program) = std::env::var(CHILD) else { return };
    eval("(+ 1 1)");
    println!("\nbefore: {}", common::most_memory());
    // Memory is the limit that may end the program.
    limited_to([("memory", "64MiB"), ("fuel", "1e9"), ("compute", "60s"), ("total", "60s")], &program);
    println!("\nafter: {}", common::most_memory());
}
