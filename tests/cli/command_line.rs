//! The interface of the command line: standard output and standard error, exit codes, and JSON records.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The result of a run of the binary.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    code: Option<i32>,
    output: String,
    errors: String,
}

/// Runs the binary with these arguments and standard input.
fn lispbox(arguments: &[&str], input: &str) -> Ran {
    let mut process = Command::new(env!("CARGO_BIN_EXE_lispbox"))
        .args(arguments)
        .env("LISPBOX_CACHE", format!("{}/cache-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut pipe = process.stdin.take().expect("piped");
    let input = input.to_owned();
    // The write fails if the process ends before it has read everything, which is not an error here.
    let writing = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let ended = process.wait_with_output().expect("it ends");
    let _ = writing.join();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: ended.status.code(), output: text(ended.stdout), errors: text(ended.stderr) }
}

fn prints(output: &str) -> Ran {
    Ran { code: Some(0), output: output.to_owned(), errors: String::new() }
}

/// Runs a command with a usage error (exit code 2) and returns its standard error.
fn misused(arguments: &[&str], input: &str) -> String {
    let ran = lispbox(arguments, input);
    assert_eq!((ran.code, ran.output.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.errors);
    ran.errors
}

fn file(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let file = folder.path().join(name);
    std::fs::write(&file, text).expect("written");
    file
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn name(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The only record on standard output.
fn record(ran: &Ran) -> Value {
    assert_eq!(ran.output.lines().count(), 1, "{ran:?}");
    serde_json::from_str(&ran.output).expect("JSON")
}

/// Writes a configuration with the sample mailbox as its only server.
fn mailbox(folder: &TempDir) -> PathBuf {
    let server = json!({"command": env!("CARGO_BIN_EXE_lispbox"), "args": ["sample-mailbox"]});
    file(folder, "servers.json", &json!({"mcpServers": {"mail": server}}).to_string())
}

#[test]
fn eval_prints_the_value_so_that_it_reads_back() {
    assert_eq!(lispbox(&["eval", "(+ 1 1)"], ""), prints("2\n"));
    assert_eq!(lispbox(&["eval", r#"["a" \b :c nil]"#], ""), prints("[\"a\" \\b :c nil]\n"));
    assert_eq!(lispbox(&["eval", "nil"], ""), prints("nil\n"));
    assert_eq!(lispbox(&["eval", "-5"], ""), prints("-5\n"));
    assert_eq!(lispbox(&["eval", "-"], "(def x 20)\n(+ x 1)\n"), prints("21\n"));
}

#[test]
fn eval_prints_first_what_the_program_prints() {
    assert_eq!(lispbox(&["eval", r#"(println "a" 1) :b"#], ""), prints("a 1\n:b\n"));
    assert_eq!(lispbox(&["eval", r#"(print "open") :b"#], ""), prints("open\n:b\n"));
    let ran = lispbox(&["eval", r#"(println "before") (nonsense)"#], "");
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), "before\n"));
}

#[test]
fn eval_shows_what_went_wrong_on_standard_error() {
    let ran = lispbox(&["eval", "(def total 1)\n(+ totl 1)"], "");
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), ""));
    for part in ["UnboundVariable", "totl", "Did you mean total?", ":2:4"] {
        assert!(ran.errors.contains(part), "{part}: {}", ran.errors);
    }
    assert!(!ran.errors.contains('\u{1b}'), "colour is for terminals");
}

#[test]
fn eval_refuses_wrong_usage() {
    assert!(misused(&["eval"], "").contains("PROGRAM"));
    assert!(misused(&["eval", "1", "--jsn"], "").contains("--json"));
    assert!(misused(&["eval", "-", "--data", "-"], "1").contains("both come from standard input"));
    assert!(misused(&["eval", "1", "--batch"], "").contains("--batch"));
    assert!(misused(&["eval", "data", "--data", "/no/such/file"], "").contains("/no/such/file"));
    assert!(misused(&["eval", "1", "--limit", "memmory=1MiB"], "").contains("Did you mean memory?"));
    assert!(misused(&["eval", "1", "--limit", "memory=much"], "").contains("`64MiB`"));
    assert!(misused(&["eval", "1", "--limit", "memory"], "").contains("NAME=VALUE"));
    assert!(misused(&["eval", "1", "--config", "/no/such/file"], "").contains("/no/such/file"));
}

#[test]
fn data_comes_from_a_file_or_from_standard_input() {
    let folder = folder();
    let data = file(&folder, "data.json", r#"{"items": [1, 2, 123456789012345678901234567890]}"#);
    let ran = lispbox(&["eval", "--data", name(&data), "(:items data)"], "");
    assert_eq!(ran, prints("[1 2 123456789012345678901234567890N]\n"));
    assert_eq!(lispbox(&["eval", "(count data)", "--data", "-"], "[1, 2, 3]"), prints("3\n"));
    assert_eq!(lispbox(&["eval", "-", "--data", name(&data)], "(count (:items data))"), prints("3\n"));
    let ran = lispbox(&["eval", "data", "--data", "-"], "[1, 2");
    assert_eq!(ran.code, Some(1));
    assert!(ran.errors.contains("`data` is not JSON"), "{}", ran.errors);
}

#[test]
fn json_is_the_one_record_whatever_happens() {
    let ran = lispbox(&["eval", "--json", r#"(println "hello") (def x {:a [1 2.5 nil]}) x"#], "");
    let found = record(&ran);
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""));
    assert_eq!(found["status"], "ok");
    assert_eq!(found["value"], "{:a [1 2.5 nil]}");
    assert_eq!(found["json"], json!({"a": [1, 2.5, null]}));
    assert_eq!(found["prints"], "hello\n");
    assert_eq!(found["defined"], json!(["x"]));
    assert!(found["spent"]["fuel"].as_u64() > Some(0));
    assert_eq!(found.get("error"), None);

    let ran = lispbox(&["eval", "--json", "(prnitln 1)"], "");
    let found = record(&ran);
    assert_eq!((ran.code, ran.errors.as_str()), (Some(1), ""));
    assert_eq!(
        (&found["status"], &found["error"], &found["symbol"]),
        (&json!("error"), &json!("UnboundVariable"), &json!("prnitln"))
    );
    assert_eq!(found["suggestion"], "Did you mean println?");
    assert_eq!((&found["line"], &found["column"]), (&json!(1), &json!(2)));
}

#[test]
fn limits_have_units() {
    let exceeded = |limit: &str, program: &str| {
        let ran = lispbox(&["eval", "--json", "--limit", limit, program], "");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let found = record(&ran);
        assert_eq!((&found["status"], &found["error"]), (&json!("limit"), &json!("LimitExceeded")), "{found}");
        found["limit"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(exceeded("fuel=1e4", "(loop [] (recur))"), "fuel");
    assert_eq!(exceeded("compute=50ms", "(loop [] (recur))"), "compute");
    assert_eq!(exceeded("memory=8MiB", "(loop [items []] (recur (conj items items 1.5)))"), "memory");
    assert_eq!(exceeded("depth=50", "(defn down [n] (+ 1 (down n))) (down 1)"), "depth");
    let ran = lispbox(&["eval", "--limit", "output=200B", "(vec (range 1000))"], "");
    assert_eq!(ran.code, Some(0));
    assert!(ran.output.len() < 250 && ran.errors.contains("of 1000 items"), "{ran:?}");
}

/// Each round fills 6 MB with strings of a new size and frees all but one per 30 kB, which fragments the memory.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_nothing_fits_into_counts_as_taken() {
    let program = "(count (reduce (fn [kept round]
        (let [size (* 16 (inc round))
              more (map (fn [i] (str/repeat \"x\" (+ size (mod i 7)))) (range (quot 6000000 (+ 40 size))))]
          (into kept (take-nth (quot 30000 (+ 40 size))) (vec more))))
      [] (range 60)))";
    let ran = lispbox(&["eval", "--limit", "memory=16MiB", "--limit", "compute=60s", program], "");
    assert_eq!(ran.code, Some(1), "{}", ran.errors);
    assert!(ran.errors.contains("of the process for"), "{}", ran.errors);
    // Without fragmentation, the program fits into the limit.
    let program = program.replace("take-nth (quot 30000 (+ 40 size))", "take 5");
    let ran = lispbox(&["eval", "--limit", "memory=16MiB", "--limit", "compute=60s", &program], "");
    assert_eq!(ran, prints("300\n"));
}

#[test]
fn a_batch_is_a_record_for_each_line() {
    let input = [
        r#""(def x 1)""#,
        r#"{"program": "x"}"#,
        "",
        r#"{"program": "(:a data)", "data": {"a": [1, 123456789012345678901234567890]}}"#,
        r#"{"program": "(loop [] (recur))", "limits": {"fuel": 1000}}"#,
        "(+ 1 2)",
        r#"{"programme": "1"}"#,
        r#"{"program": "(println 5)"}"#,
    ];
    let ran = lispbox(&["eval", "--batch"], &input.join("\n"));
    assert_eq!((ran.code, ran.errors.as_str()), (Some(1), ""), "a line failed");
    assert_eq!(lispbox(&["eval", "--batch"], "\"1\"\n\"2\"").code, Some(0));
    let records: Vec<Value> = ran.output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let codes: Vec<&str> = records.iter().map(|record| record["error"].as_str().unwrap_or("")).collect();
    assert_eq!(codes, ["", "UnboundVariable", "", "LimitExceeded", "InvalidRequest", "InvalidRequest", ""]);
    assert_eq!(records[2]["value"], "[1 123456789012345678901234567890N]");
    assert!(records[5]["message"].as_str().is_some_and(|message| message.contains("did you mean `program`?")));
    assert_eq!(records[6]["prints"], "5\n");
    assert_eq!(lispbox(&["eval", "--batch"], ""), prints(""));
}

#[test]
fn a_batch_answers_line_by_line() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_lispbox"))
        .args(["eval", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut input = process.stdin.take().expect("piped");
    let mut output = std::io::BufReader::new(process.stdout.take().expect("piped"));
    for number in 1..4 {
        writeln!(input, "\"(+ {number} 1)\"").expect("it reads");
        let mut line = String::new();
        std::io::BufRead::read_line(&mut output, &mut line).expect("an answer before the next question");
        let found: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(found["json"], number + 1);
    }
    drop(input);
    assert!(process.wait().expect("it ends").success());
}

#[test]
fn run_takes_a_file_and_arguments() {
    let folder = folder();
    let script = file(&folder, "script.clj", "#!/usr/bin/env -S lispbox run\n(println (count args) (first args))\n");
    let ran = lispbox(&["run", name(&script), "--json", "two words", "-"], "");
    assert_eq!(ran, prints("3 --json\n"));
    let script = file(&folder, "value.clj", "{:args args :same (= args *command-line-args*)}");
    assert_eq!(lispbox(&["run", name(&script), "a"], ""), prints("{:args [\"a\"], :same true}\n"));
    assert_eq!(lispbox(&["run", "-"], "(println 1)"), prints("1\n"));

    let script = file(&folder, "wrong.clj", "(def ok 1)\n\n(+ ok oops)\n");
    let ran = lispbox(&["run", name(&script)], "");
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), ""));
    assert!(ran.errors.contains("wrong.clj:3:7"), "{}", ran.errors);
    assert!(misused(&["run"], "").contains("FILE"));
    assert!(misused(&["run", "/no/such/file.clj"], "").contains("/no/such/file.clj"));
    assert!(misused(&["run", "--limit", "fule=1", name(&script)], "").contains("Did you mean fuel?"));
}

#[test]
fn a_demo_shows_where_an_injected_address_ends() {
    let ran = lispbox(&["demo", "injection"], "");
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""), "{}", ran.output);
    let refused = ran.output.matches("guards `to[0]`, and its value").count();
    assert_eq!(refused, 3, "{}", ran.output);
    let long = ran.output.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None, "it fits into a hundred columns");
}

#[test]
fn plan_shows_the_tools_that_a_program_can_call() {
    let folder = folder();
    let config = mailbox(&folder);
    let plan = |arguments: &[&str], input: &str| {
        let common = ["plan", "--config", name(&config), "--allow", "mail/list-*"];
        lispbox(&[&common[..], arguments].concat(), input)
    };
    let send = "(mail/send-email :to [\"a@example.com\"] :subject \"\" :body \"\")";
    let ran = plan(&["-e", &format!("(mail/list-labels) (dotimes [_ 3] {send}) (when data {send})")], "");
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.output.lines().collect();
    assert_eq!(lines[0], "mail/list-labels  read_only  at most 1 call  allow: `--allow` has `mail/list-*`");
    assert!(lines[1].starts_with("mail/send-email  destructive  at most 4 calls  ask: "), "{}", lines[1]);
    assert_eq!(lines.len(), 2);

    let ran = plan(&["--json", "-"], "(while args (mail/list-labels))\n((resolve 'x))");
    let call = json!({
        "server": "mail", "tool": "list-labels", "effect": "read_only", "most": null, "decision": "allow",
        "rule": "`--allow` has `mail/list-*`", "guards": [],
    });
    let unknown = json!({"reason": "`resolve` looks names up at run time", "source": "-", "line": 2, "column": 2});
    let planned = record(&ran);
    assert_eq!((ran.code, &planned["calls"], &planned["unknown"]), (Some(0), &json!([call]), &json!([unknown])));
    assert_eq!(planned["program"].as_str().map(str::len), Some(64));

    let ran = plan(&["--guards", "careful", "-e", send], "");
    let guard = ran.output.lines().nth(1).unwrap_or_default();
    let expected = "*/contacts{,_list,_search,_get}; otherwise a person is asked (guard `mail-recipients` of";
    assert!(guard.starts_with("    `to`, `cc`, `bcc`") && guard.contains(expected), "{}", ran.output);

    let script = file(&folder, "script.clj", "(def n 1)\n((resolve 'x))");
    let ran = plan(&[name(&script)], "");
    let expected =
        format!("any tool  any number of calls  {}:2:2: `resolve` looks names up at run time\n", name(&script));
    assert_eq!(ran, prints(&expected));
    assert_eq!(plan(&["-e", "(+ 1 2)"], ""), prints("no tools\n"));
    let ran = plan(&["-e", "(mail/nothing)"], "");
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), ""));
    assert!(ran.errors.contains("UnknownTool"), "{}", ran.errors);
    assert!(misused(&["plan"], "").contains("PROGRAM"));
}

#[test]
fn a_program_is_held_to_its_plan() {
    let folder = folder();
    let config = mailbox(&folder);
    let program = "(dotimes [_ data] (mail/list-labels)) data";
    let planned = |program: &str| {
        let plan = lispbox(&["plan", "--json", "--config", name(&config), "-e", program], "").output;
        file(&folder, "plan.json", &plan)
    };
    let bounded = "(mail/list-labels) (if (= data 1) 1 ((resolve (symbol \"mail\" \"list-labels\"))))";
    let run = |program: &str, plan: &std::path::Path, data: &str| {
        let data = file(&folder, "data.json", data);
        lispbox(&["eval", "--config", name(&config), "--plan", name(plan), "--data", name(&data), program], "")
    };
    assert_eq!(run(program, &planned(program), "3"), prints("3\n"), "there is no bound");
    let plan = planned("(mail/list-labels) (when (= data 1) (mail/list-labels))");
    let refused = run(program, &plan, "1");
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.errors.contains("is the plan of another program, or of another version of it"),
        "{}",
        refused.errors
    );
    // A plan that was written by hand for this program.
    let text =
        std::fs::read_to_string(planned(program)).expect("it was written").replace("\"most\":null", "\"most\":2");
    let plan = file(&folder, "by-hand.json", &text);
    assert_eq!(run(program, &plan, "2"), prints("2\n"));
    let stopped = run(program, &plan, "3");
    let expected = "PlanExceeded: the run leaves its plan, so nothing was sent: the plan has at most 2 calls of \
                    `mail/list-labels`, and this is one more";
    assert_eq!((stopped.code, stopped.errors.lines().next()), (Some(1), Some(expected)));
    let refused = run(bounded, &planned(bounded), "1");
    assert!(refused.errors.contains("has no bounds: at 1:"), "{}", refused.errors);
    let refused = run(program, &file(&folder, "no.json", "{}"), "1");
    assert!(refused.errors.contains("expected a plan as `lispbox plan --json` prints it"), "{}", refused.errors);

    let script = file(&folder, "script.clj", "(doseq [_ args] (mail/list-labels)) (count args)");
    let plan = lispbox(&["plan", "--json", "--config", name(&config), name(&script)], "").output;
    let plan = file(&folder, "plan.json", &plan.replace("\"most\":null", "\"most\":1"));
    let run = |args: &[&str]| {
        lispbox(&[&["run", "--config", name(&config), "--plan", name(&plan), name(&script)], args].concat(), "")
    };
    assert_eq!(run(&["a"]), prints("1\n"));
    assert!(run(&["a", "b"]).errors.contains("PlanExceeded"));
}

#[test]
fn the_repl_reads_from_a_pipe() {
    let ran = lispbox(&["repl"], "(defn double [n]\n  (* 2 n))\n(double 4) (double 5)\n; nothing\n[*1 *2]\n");
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""));
    let lines: Vec<&str> = ran.output.lines().collect();
    assert_eq!(&lines[1..], ["8", "10", "[10 8]"], "{}", ran.output);

    let ran = lispbox(&["repl"], "1\n(oops)\n2\n");
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), "1\n"));
    assert!(ran.errors.contains("UnboundVariable"), "{}", ran.errors);

    let ran = lispbox(&["repl"], "(+ 1\n(* 2");
    assert_eq!(ran.code, Some(1));
    assert!(ran.errors.contains("UnbalancedBrackets"), "{}", ran.errors);
}

#[test]
fn the_repl_goes_on_after_errors_if_told_so() {
    let script = "1\n(oops)\n(defn f [n]\n  (+ n bad))\n(]\n:help\n(+ 1 1)\n";
    let ran = lispbox(&["repl", "--keep-going"], script);
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), "1\n:help\n2\n"), "{}", ran.errors);
    for part in ["stdin line 2:1:2", "stdin line 3:2:8", "stdin line 5:1:"] {
        assert!(ran.errors.contains(part), "{part}: {}", ran.errors);
    }
    assert_eq!(lispbox(&["repl", "--keep-going"], "1"), prints("1\n"));
}

#[test]
fn doc_describes_names_and_areas() {
    let ran = lispbox(&["doc", "map-indexed", "let"], "");
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""));
    assert!(ran.output.contains("(map-indexed f coll)") && ran.output.contains("=>"), "{}", ran.output);
    assert!(ran.output.contains("(let "), "{}", ran.output);

    let ran = lispbox(&["doc", "map-indxed"], "");
    assert_eq!((ran.code, ran.output.as_str()), (Some(1), ""));
    assert!(ran.errors.contains("Did you mean map-indexed?"), "{}", ran.errors);
    let ran = lispbox(&["doc", "slurp"], "");
    assert!(ran.code == Some(1) && ran.errors.contains("NotAvailable"), "{ran:?}");

    let areas = lispbox(&["doc"], "").output;
    let count = |title: &str| {
        let line = areas.lines().find(|line| line.starts_with(title)).expect("the area is there");
        line.split_whitespace().last().and_then(|count| count.parse::<usize>().ok()).expect("a number")
    };
    let listed = lispbox(&["doc", "sets"], "");
    assert_eq!((listed.code, listed.output.lines().count()), (Some(0), 1 + count("Sets ")));
    let found = lispbox(&["doc", "--search", "frequencies"], "");
    assert!(found.code == Some(0) && found.output.starts_with("(frequencies "), "{found:?}");

    let folder = folder();
    let servers = mailbox(&folder);
    let ran = lispbox(&["doc", "--config", name(&servers), "mail/fetch-emails"], "");
    assert!(ran.code == Some(0) && ran.output.contains(":limit"), "{ran:?}");
    let ran = lispbox(&["doc", "--config", name(&servers), "mail/fetch-emails", ":schema", "map"], "");
    assert!(ran.code == Some(0) && ran.output.contains("\"limit\"") && ran.output.contains("(map f coll)"), "{ran:?}");
    let ran = lispbox(&["doc", "map", ":schema"], "");
    assert!(ran.code == Some(1) && ran.errors.contains("only tools have schemas"), "{ran:?}");
    let ran = lispbox(&["doc", "--config", name(&servers), "mail/fetch-emails", ":shema"], "");
    assert!(ran.code == Some(1) && ran.errors.contains("there is nothing called `:shema`"), "{ran:?}");
}

#[test]
fn shells_get_their_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = lispbox(&["completions", shell], "");
        assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""), "{shell}");
        for part in ["lispbox", "eval", "keep-going"] {
            assert!(ran.output.contains(part), "{shell}: {part}");
        }
    }
    assert!(misused(&["completions", "tcsh"], "").contains("powershell"));
}

#[test]
fn programs_at_a_terminal_call_the_tools_of_a_configuration() {
    let folder = folder();
    let servers = mailbox(&folder);
    let servers = name(&servers);
    let program = "(count (mail/fetch-emails :limit 30))";
    assert_eq!(lispbox(&["eval", "--config", servers, program], ""), prints("30\n"));
    let script = file(&folder, "script.clj", program);
    assert_eq!(lispbox(&["run", "--config", servers, name(&script)], ""), prints("30\n"));
    assert_eq!(lispbox(&["repl", "--config", servers], program), prints("30\n"));
    let found =
        record(&lispbox(&["eval", "--json", "--config", servers, "(:id (mail/get-email {:id \"nobody\"}))"], ""));
    assert_eq!(found["error"], "ToolError");
    assert!(
        found["message"].as_str().is_some_and(|message| message.contains("there is no message `nobody`")),
        "{found}"
    );
    assert_eq!((&found["calls"][0]["server"], &found["calls"][0]["tool"]), (&json!("mail"), &json!("get-email")));
    let ran = lispbox(&["eval", "(mail/fetch-emails)"], "");
    assert_eq!(ran.code, Some(1));
}

#[test]
fn the_demo_shows_programs_replies_and_costs() {
    let ran = lispbox(&["demo"], "");
    assert_eq!((ran.code, ran.errors.as_str()), (Some(0), ""), "{}", ran.output);
    let parts = [
        "(let ((emails (fetch-emails :limit 50)))",
        "\"builds@ci.northwind.example\"",
        "(define email-stats (compute-stats (fetch-emails)))",
        "email-stats",
        "(filter email-stats (lambda (s) (> (count s) 10)))",
        "Build #",
        ":unread",
        "Did you mean fetch-emails?",
        "LimitExceeded",
        "through lispbox",
        "called directly",
        "times fewer tokens",
        "o200k_base",
    ];
    let mut rest = ran.output.as_str();
    for part in parts {
        let (_, behind) = rest.split_once(part).unwrap_or_else(|| panic!("`{part}` is missing: {}", ran.output));
        rest = behind;
    }
    let long = ran.output.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None, "it fits into a hundred columns");
    let total = ran.output.lines().find(|line| line.trim_start().starts_with("total")).expect("a total");
    let numbers: Vec<u64> = total.split_whitespace().filter_map(|word| word.replace(',', "").parse().ok()).collect();
    assert_eq!(numbers.len(), 4, "{total}");
    assert!(numbers[1] * 20 < numbers[3], "tokens through lispbox and directly: {total}");
}

#[test]
fn a_limit_names_its_flag() {
    let ran = lispbox(&["eval", "--limit", "fuel=1000", "(reduce + (range 1e6))"], "");
    assert_eq!(ran.code, Some(1));
    assert!(ran.errors.starts_with("LimitExceeded: limit `fuel` exceeded: "), "{}", ran.errors);
    assert!(ran.errors.ends_with("\n`--limit fuel=VALUE` allows more\n"), "{}", ran.errors);
    let ran = lispbox(&["eval", "--json", "--limit", "fuel=1000", "(reduce + (range 1e6))"], "");
    let record: Value = serde_json::from_str(&ran.output).expect("a record");
    assert_eq!(record["suggestion"], "`--limit fuel=VALUE` allows more");
    let ran = lispbox(&["repl", "--limit", "fuel=1000"], "(reduce + (range 1e6))\n");
    assert!(ran.errors.ends_with("\n`--limit fuel=VALUE` allows more\n"), "{}", ran.errors);
}

#[test]
fn a_tool_without_servers_says_how_to_configure_one() {
    for name in ["mail/fetch-emails", "mcp__mail__fetch_emails"] {
        let ran = lispbox(&["eval", "--no-config", &format!("({name} :limit 5)")], "");
        let message = format!("`{name}` is not defined: there is no server `mail`, since none is configured");
        assert!(ran.errors.contains(&message), "{}", ran.errors);
        assert!(
            ran.errors.contains("`lispbox config import`") && ran.errors.contains("`--config FILE`"),
            "{}",
            ran.errors
        );
    }
    let ran = lispbox(&["eval", "--no-config", "(require '[clojure.string :as s]) (s/no-such-function 1)"], "");
    assert!(!ran.errors.contains("there is no server"), "{}", ran.errors);
}
