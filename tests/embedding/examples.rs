//! Checks the examples for embedders, which run as separate processes.
//!
//! `cargo test` builds them. For `cargo test --test embedding` alone, run `cargo build --examples` first.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the binary of an example, which Cargo places beside the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test is a file");
    let builds = test.parent().and_then(Path::parent).expect("tests are in `deps` of the folder of the build");
    let file = builds.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(file.exists(), "{} is not built: say `cargo build --examples` first", file.display());
    file
}

/// Runs a program in the session of that file, in a new process; returns the output, and whether the program succeeded.
fn blocking(file: &Path, program: &str) -> (String, bool) {
    let output = Command::new(example("embed_blocking")).arg(file).arg(program).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    (format!("{}{errors}", String::from_utf8_lossy(&output.stdout)).trim_end().to_owned(), output.status.success())
}

#[test]
fn the_blocking_one_resumes_from_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("session.lisp");
    let (text, is_value) = blocking(&file, "(def open (orders/find :status \"open\")) (map :total open)");
    assert_eq!((text.as_str(), is_value), ("(12.5 30.0)\n[defined: open; 1 tool call]", true));
    assert_eq!(blocking(&file, "(map :id open)"), ("(2 3)".to_owned(), true));
    // The forms before an error take effect.
    let (text, is_value) = blocking(&file, "(def total (reduce + (map :total open))) (/ total (count nothing))");
    assert!(!is_value && text.contains("UnboundVariable") && text.contains("[defined: total]"), "{text}");
    assert_eq!(blocking(&file, "total"), ("42.5".to_owned(), true));
}

#[test]
fn the_blocking_one_has_a_tool_a_function_and_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |program| blocking(&folder.path().join("session.lisp"), program);
    assert_eq!(
        run("(map iban/valid? [\"GB82 WEST 1234 5698 7654 32\" \"GB82 WEST 1234 5698 7654 33\"])").0,
        "(true false)"
    );
    let (text, is_value) = run("(orders/find :status \"opne\")");
    assert!(!is_value && text.contains("ToolArgumentError") && text.contains("expected `open` or `paid`"), "{text}");
    // A host that lists its servers and their tools provides a catalogue.
    assert!(run("(apropos \"status\")").0.contains("orders/find"));
    let (text, is_value) = run("(vec (range 1e9))");
    assert!(!is_value && text.contains("LimitExceeded") && text.contains("memory"), "{text}");
    let (text, is_value) = run("(loop [] (recur))");
    assert!(!is_value && text.contains("LimitExceeded"), "{text}");
}

#[test]
fn the_blocking_one_refuses_what_is_no_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("session.lisp");
    std::fs::write(&file, "(no session)").expect("a file");
    let (text, is_value) = blocking(&file, "1");
    assert!(!is_value && text.contains("this is not a snapshot of a session"), "{text}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "(no session)");
}

#[cfg(feature = "cli")]
#[path = "../http_client/mod.rs"]
mod http_client;

#[cfg(feature = "cli")]
mod assistant {
    use super::example;
    use super::http_client::{Connection, Response, Server};
    use serde_json::{Value, json};
    use std::path::Path;
    use std::process::Command;
    use std::time::{Duration, Instant};

    fn start(database: &Path) -> Server {
        let mut command = Command::new(example("assistant"));
        command.arg(database).arg("127.0.0.1:0");
        Server::of(command)
    }

    fn post(connection: &mut Connection, user: &str, program: &str) -> Response {
        connection.request("POST", &format!("/users/{user}/programs"), "", program.as_bytes())
    }

    /// Evaluates a program and returns its record.
    fn run(server: &Server, user: &str, program: &str) -> Value {
        let response = post(&mut server.connect(), user, program);
        assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")), "{response:?}");
        response.message()
    }

    #[test]
    fn each_user_has_a_session_that_outlives_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("assistant.db");
        let server = start(&database);
        let record = run(&server, "ann", "(def open (orders/find :status \"open\")) (mail/search \"Invoice\")");
        assert_eq!(record["json"], json!([{"subject": "Invoice 1"}]), "{record}");
        assert_eq!((&record["status"], &record["defined"]), (&json!("ok"), &json!(["open"])), "{record}");
        assert!(record["text"].as_str().is_some_and(|text| text.contains("2 tool calls")), "{record}");
        run(&server, "bob", "(def open (orders/find))");
        drop(server);

        let server = start(&database);
        assert_eq!(run(&server, "ann", "(map :id open)")["json"], json!([2]));
        assert_eq!(run(&server, "bob", "(map :id open)")["json"], json!([3]));
        assert_eq!(run(&server, "eve", "open")["error"], "UnboundVariable");
    }

    #[test]
    fn what_is_wrong_is_said_as_json() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = start(&folder.path().join("assistant.db"));
        let record = run(&server, "ann", "(mail/search :subject \"Invoice\")");
        assert_eq!((&record["status"], &record["error"]), (&json!("error"), &json!("ToolArgumentError")), "{record}");
        assert!(record["text"].as_str().is_some_and(|text| text.contains("query")), "{record}");
        let record = run(&server, "ann", "(files/read \"/etc/passwd\")");
        assert_eq!(record["status"], "error", "{record}");
        let record = run(&server, "ann", "(vec (range 1e9))");
        assert_eq!((&record["status"], &record["limit"]), (&json!("limit"), &json!("memory")), "{record}");
        let response = server.request("POST", "/users/ann/programs", "", b"\xff");
        assert_eq!((response.status, &response.message()["error"]), (400, &json!("BadRequest")), "{response:?}");
        let response = server.request("GET", "/users/ann/programs", "", b"");
        assert_eq!((response.status, &response.message()["error"]), (404, &json!("BadRequest")), "{response:?}");
        let response = post(&mut server.connect(), "ann", &" ".repeat(3 << 20));
        assert_eq!((response.status, &response.message()["error"]), (413, &json!("BadRequest")), "{response:?}");
    }

    #[test]
    fn a_mail_waits_for_its_user_and_is_sent_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("assistant.db");
        let server = start(&database);
        let program = "(def to \"bob@example.org\") (mail/send {:to to :text \"hello\"})";
        let record = run(&server, "ann", program);
        assert_eq!(record["status"], "suspended", "{record}");
        assert!(record["text"].as_str().is_some_and(|text| text.contains("bob@example.org")), "{record}");
        // Another program of the user goes on meanwhile, and the process ends.
        run(&server, "ann", "(def to \"eve@example.org\")");
        drop(server);

        let server = start(&database);
        let waiting = server.request("GET", "/users/ann/runs", "", b"").message();
        let questions = waiting[0]["questions"][0].as_str().unwrap_or_default().to_owned();
        assert_eq!((&waiting[0]["run"], waiting.as_array().map(Vec::len)), (&json!(1), Some(1)), "{waiting}");
        assert!(questions.contains("bob@example.org") && questions.starts_with("mail/send "), "{questions}");
        let decide = |decision: &[u8]| server.request("POST", "/users/ann/runs/1", "", decision);
        assert_eq!(decide(b"perhaps").status, 400);
        let record = decide(b"approve").message();
        assert_eq!(
            (&record["status"], &record["json"]),
            (&json!("ok"), &json!("sent 5 characters to bob@example.org"))
        );
        assert_eq!(
            (decide(b"approve").status, decide(b"approve").message()["error"].clone()),
            (404, json!("UnknownRun"))
        );
        assert_eq!(run(&server, "ann", "to")["json"], "eve@example.org");
        assert_eq!(server.request("GET", "/users/ann/runs", "", b"").message(), json!([]));
    }

    #[test]
    fn a_mail_is_not_sent_again_by_a_corrected_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("assistant.db");
        let server = start(&database);
        let send = "(mail/send {:to \"bob@example.org\" :text \"hello\"})";
        run(&server, "ann", &format!("{send} (/ 1 0)"));
        let failed = server.request("POST", "/users/ann/runs/1", "", b"approve").message();
        assert_eq!(failed["made"], json!([{"tool": "mail/send", "count": 1}]), "{failed}");
        drop(server);

        let server = start(&database);
        let retry = |user: &str, program: &str| {
            server.request("POST", &format!("/users/{user}/retries"), "", program.as_bytes())
        };
        assert_eq!(
            (retry("bob", send).status, retry("bob", send).message()["error"].clone()),
            (404, json!("UnknownRun"))
        );
        // It fails once more, and then it does not.
        let again = retry("ann", &format!("{send} (nth [] 1)")).message();
        assert_eq!((&again["status"], &again["attempt"]["answered"]), (&json!("error"), &json!(1)), "{again}");
        let done = retry("ann", &format!("(str {send} \"!\")")).message();
        assert_eq!(done["json"], json!("sent 5 characters to bob@example.org!"), "{done}");
        assert_eq!(done["attempt"]["answered"], json!(1), "nobody is asked again: {done}");
        assert_eq!(retry("ann", send).status, 404, "it has ended well");
    }

    #[test]
    fn plans_rehearsals_grants_guards_and_metrics_are_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = start(&folder.path().join("assistant.db"));
        let send = |to: &str| format!("(mail/send {{:to \"{to}\" :text \"hello\"}})");
        let post = |what: &str, text: &str| {
            server.request("POST", &format!("/users/ann/{what}"), "", text.as_bytes()).message()
        };
        let runs = || server.request("GET", "/users/ann/runs", "", b"").message();
        let plan = post("plans", &format!("(mail/search \"a\") {}", send("bob@example.org")));
        let calls: Vec<_> = plan["calls"].as_array().into_iter().flatten().map(|call| &call["tool"]).collect();
        assert_eq!(calls, ["search", "send"], "{plan}");
        // What is rehearsed waits, and is made once; then such mails need no decision.
        let rehearsed = post("rehearsals", &format!("(orders/find) {}", send("bob@example.org")));
        assert_eq!(rehearsed["status"], "ok", "{rehearsed}");
        let waiting = runs();
        let run = &waiting[0]["run"];
        assert!(waiting[0]["questions"][0].as_str().is_some_and(|text| text.contains("bob@example.org")), "{waiting}");
        let made = post(&format!("runs/{run}"), "always");
        assert_eq!((&made["status"], runs()), (&json!("ok"), json!([])), "{made}");
        let sent = post("programs", &send("bob@example.org"));
        assert_eq!(sent["json"], json!("sent 5 characters to bob@example.org"), "{sent}");
        // A recipient that the model may have found in a mail.
        post("programs", "(mail/search \"Invoice\")");
        assert_eq!(post("programs", &send("eve@example.com"))["status"], "suspended");
        let waiting = runs();
        let question = waiting[0]["questions"][0].as_str().unwrap_or_default().to_owned();
        assert!(question.contains("eve@example.com") && question.contains("`to`"), "{question}");
        let denied = post(&format!("runs/{}", waiting[0]["run"]), "deny it was not me");
        assert!(denied["text"].as_str().is_some_and(|text| text.contains("it was not me")), "{denied}");
        let metrics = server.request("GET", "/metrics", "", b"").body;
        assert!(metrics.contains("assistant_calls_total{tool=\"mail/send\",outcome=\"ok\"} 2\n"), "{metrics}");
    }

    #[test]
    fn programs_of_a_user_take_turns() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = start(&folder.path().join("assistant.db"));
        run(&server, "ann", "(def sum 0)");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| run(&server, "ann", "(def sum (inc sum))"));
            }
        });
        assert_eq!(run(&server, "ann", "sum")["json"], 8);
    }

    #[test]
    fn a_change_by_another_process_is_never_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("assistant.db");
        let servers = [start(&database), start(&database)];
        run(&servers[0], "ann", "(def sum 0)");
        let add_some = |server: &Server| -> u64 {
            let added = (0..20).map(|_| post(&mut server.connect(), "ann", "(def sum (inc sum))"));
            let counted = added.map(|response| match response.status {
                200 => 1,
                409 => 0,
                _ => panic!("{response:?}"),
            });
            counted.sum()
        };
        let counted = std::thread::scope(|scope| {
            let other = scope.spawn(|| add_some(&servers[1]));
            add_some(&servers[0]) + other.join().expect("it counts")
        });
        assert_eq!(run(&servers[0], "ann", "sum")["json"], counted);
    }

    #[test]
    fn an_evaluation_ends_when_its_client_goes_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = start(&folder.path().join("assistant.db"));
        let mut client = server.connect();
        client.send("POST", "/users/ann/programs", "", b"(def begun true) (loop [] (recur))");
        assert!(client.is_silent_for(Duration::from_millis(500)), "it does not end by itself so soon");
        drop(client);
        let left = Instant::now();
        assert_eq!(run(&server, "ann", "begun")["json"], true);
        let waited = left.elapsed();
        assert!(waited < Duration::from_secs(3), "the next one waited {waited:?}, and the limit of time is 5 s");
    }
}

#[cfg(feature = "server")]
mod rust_tools {
    use super::example;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn eval(program: &str) -> (String, bool) {
        let output = Command::new(example("rust_tools")).arg(program).output().expect("it runs");
        (String::from_utf8_lossy(&output.stdout).trim_end().to_owned(), output.status.success())
    }

    #[test]
    fn functions_are_tools_like_any_other() {
        let (text, is_value) = eval(r#"(mapv :name (shop/find {:text "tea"}))"#);
        assert!(is_value && text.starts_with(r#"["green tea" "black tea"]"#), "{text}");
        assert!(eval(r#"(shop/find "tea" 1)"#).0.starts_with(r#"[{:name "green tea", :left 4}]"#));
        assert!(
            eval(r#"(pmap #(try (shop/order {:name %}) (catch Exception e (ex-message e))) ["coffee" "black tea"])"#)
                .0
                .starts_with(r#"("ordered coffee" "`shop/order` failed: there is no black tea left")"#)
        );
        let (text, is_value) = eval(r#"(shop/find {:text "tea" :limit 0})"#);
        assert!(!is_value && text.contains("argument `limit` of `shop/find`: expected at least `1`"), "{text}");
        assert!(eval("(with-out-str (dir))").0.contains("goods and orders"));
    }

    #[test]
    fn a_client_calls_them_through_the_server() {
        let mut server = Command::new(example("rust_tools"));
        let server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = server.spawn().expect("it runs");
        let mut input = server.stdin.take().expect("piped");
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
        let noted = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"lisp_eval","arguments":{"program":"(shop/order \"coffee\")"}}}"#;
        writeln!(input, "{hello}\n{noted}\n{call}").expect("it reads");
        drop(input);
        let output = server.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("ordered coffee"), "{text}");
    }
}
