//! Sessions in a store: they outlive their process, can be shared by several processes, and are never lost or mixed up.

use crate::databases::on_each_store;
use crate::mcp_client::{Answer, Client};
use lispbox::store::{Key, Sqlite, open};
use serde_json::{Value, json};

/// The URL of a store in a file in `folder`.
fn in_a_file(folder: &tempfile::TempDir) -> String {
    format!("sqlite:{}", folder.path().join("sessions.db").display())
}

/// Starts a server with the store at this URL.
fn server(url: &str, more: &[&str]) -> Client {
    let arguments: Vec<&str> = ["--store", url].into_iter().chain(more.iter().copied()).collect();
    Client::start_stateless(&json!({"mcpServers": {}}), &arguments)
}

fn eval_in(client: &mut Client, handle: &str, program: &str) -> Answer {
    client.call("lisp_eval", json!({"program": program, "session": handle}))
}

/// Evaluates a program in a session and returns its value as text.
/// True for a line in which lispbox reports definitions, calls or the session.
fn is_report(line: &str) -> bool {
    ["[defined: ", "[session: ", "[1 tool call"].iter().any(|report| line.starts_with(report))
}

fn value_in(client: &mut Client, handle: &str, program: &str) -> String {
    let answer = eval_in(client, handle, program);
    assert!(!answer.is_error, "{program}: {answer:?}");
    // Other lines are the values before it, and those in which lispbox reports definitions and calls.
    answer.text.lines().rfind(|line| !is_report(line)).unwrap_or_default().to_owned()
}

#[test]
fn a_session_outlives_its_process() {
    on_each_store(|url| {
        for more in [&[][..], &["--isolate"]] {
            let mut first = server(url, more);
            let program = "(def mails [{:id 1 :size 10} {:id 2 :size 30}])
                       (defn total [mails] (reduce + (map :size mails)))
                       (def seen (atom #{1}))
                       (def watched seen)";
            let handle = first.eval(program).handle().expect("the first definition names the handle");
            assert_eq!(value_in(&mut first, &handle, "(swap! seen conj 2) (total mails)"), "40");
            first.close();
            first.wait();
            let mut second = server(url, more);
            assert_eq!(
                value_in(&mut second, &handle, "[(total mails) @watched (identical? seen watched)]"),
                "[40 #{1 2} true]"
            );
            let env = second.call("lisp_env", json!({"session": handle}));
            assert!(env.text.contains("mails") && env.text.contains("total"), "{}", env.text);
        }
    });
}

#[test]
fn copies_of_a_session_are_in_the_store_and_closed_ones_are_not() {
    on_each_store(|url| {
        let mut first = server(url, &[]);
        let handle = first.eval("(def n 1)").handle().expect("named");
        let copy = value_in(&mut first, &handle, "(def n 2) (session/fork)");
        let copy = copy.trim_matches('"');
        let mut second = server(url, &[]);
        assert_eq!(value_in(&mut second, copy, "(def n (inc n)) n"), "3");
        assert_eq!(value_in(&mut second, &handle, "n"), "2");
        assert_eq!(value_in(&mut second, &handle, "(session/close) 7"), "7");
        assert_eq!(eval_in(&mut first, &handle, "n").record["error"], "UnknownSession");
        assert_eq!(eval_in(&mut second, &handle, "n").record["error"], "UnknownSession");
        assert_eq!(value_in(&mut first, copy, "n"), "3");
        let store = open(url).expect("it opens");
        assert!(store.list().expect("a list").iter().all(|session| session.key.handle != handle));
    });
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = in_a_file(&folder);
    let mut client = server(&url, &[]);
    let handle = client.eval("(def n 0)").handle().expect("named");
    let mut acknowledged = 0;
    for round in 0..8 {
        for _ in 0..=round {
            assert_eq!(value_in(&mut client, &handle, "(def n (inc n)) n"), (acknowledged + 1).to_string());
            acknowledged += 1;
        }
        // When the process is killed, one more evaluation is in progress, or has ended without its reply being read.
        let params = json!({"name": "lisp_eval", "arguments": {"program": "(def n (inc n))", "session": handle}});
        client.begin("tools/call", params);
        client.process.kill().expect("it runs");
        client.wait();
        client = server(&url, &[]);
        let n: i64 = value_in(&mut client, &handle, "n").parse().expect("a number");
        assert!(n == acknowledged || n == acknowledged + 1, "{n} after {acknowledged} were acknowledged");
        acknowledged = n;
    }
}

#[test]
fn processes_that_share_a_store_lose_no_update() {
    const SESSIONS: usize = 5;
    const ROUNDS: usize = 40;
    on_each_store(|url| {
        let mut first = server(url, &[]);
        let handles: Vec<String> = (0..SESSIONS).map(|_| first.eval("(def n 0)").handle().expect("named")).collect();
        let count = |mut client: Client, handles: Vec<String>| {
            std::thread::spawn(move || {
                for round in 0..ROUNDS {
                    let handle = &handles[round % handles.len()];
                    value_in(&mut client, handle, "(def n (inc n))");
                }
                client
            })
        };
        let workers = [count(first, handles.clone()), count(server(url, &[]), handles.clone())];
        let mut clients = workers.map(|worker| worker.join().expect("no update failed"));
        for handle in &handles {
            let expected = (2 * ROUNDS / SESSIONS).to_string();
            for client in &mut clients {
                assert_eq!(value_in(client, handle, "n"), expected);
            }
        }
    });
}

#[test]
fn an_evaluation_waits_for_one_in_another_process() {
    on_each_store(|url| {
        let (mut one, mut other) = (server(url, &[]), server(url, &[]));
        let handle = one.eval("(def order [])").handle().expect("named");
        let long = "(def order (conj order :first)) (reduce + (range 20000000))";
        let begun =
            one.begin("tools/call", json!({"name": "lisp_eval", "arguments": {"program": long, "session": handle}}));
        let store = open(url).expect("it opens");
        crate::mcp_client::until(|| store.list().expect("it can be read").iter().any(|session| session.is_leased));
        assert_eq!(value_in(&mut other, &handle, "(def order (conj order :second)) order"), "[:first :second]");
        assert_eq!(one.receive()["id"], begun);
    });
}

#[test]
fn a_handle_is_not_told_to_a_connection_that_does_not_know_it() {
    on_each_store(|url| {
        let handle = server(url, &[]).eval("(def prices [1 2])").handle().expect("named");
        let answer = server(url, &[]).eval("(count prices)");
        assert!(answer.is_error && !answer.text.contains(&handle), "{answer:?}");
    });
}

#[test]
fn a_connection_of_an_older_protocol_leaves_its_session_in_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = in_a_file(&folder);
    let mut client = Client::start(&json!({"mcpServers": {}}), &["--store", &url]);
    let handle = client.eval("(def kept 5)").handle().expect("named");
    client.close();
    client.wait();
    let mut other = Client::start(&json!({"mcpServers": {}}), &["--store", &url]);
    assert!(other.eval("kept").is_error, "it has a session of its own");
    assert_eq!(value_in(&mut other, &handle, "kept"), "5");
}

/// Evaluates a program in a session and returns the code and the text of its error.
fn error_in(client: &mut Client, handle: &str) -> (Value, String) {
    let answer = eval_in(client, handle, "(+ 1 2)");
    assert!(answer.is_error, "{answer:?}");
    (answer.record["error"].clone(), answer.text)
}

#[test]
fn a_large_session_goes_on_wherever_it_is_taken_up() {
    on_each_store(|url| {
        let mut first = server(url, &[]);
        let large = "(def mails (mapv (fn [id] {:id id :subject (str \"subject \" id)}) (range 20000)))
                     (def by-parity (group-by (comp odd? :id) mails))";
        let handle = first.eval(large).handle().expect("the first definition names the handle");
        let sum =
            "[(count mails) (count (get by-parity true)) (identical? (nth mails 1) (first (get by-parity true)))]";
        for (more, small) in [(&[][..], "1"), (&["--isolate"], "2")] {
            eval_in(&mut first, &handle, &format!("(def small {small})"));
            let mut second = server(url, more);
            assert_eq!(
                value_in(&mut second, &handle, &format!("(conj {sum} small)")),
                format!("[20000 10000 true {small}]")
            );
            eval_in(&mut second, &handle, "(def mails (assoc-in mails [3 :subject] \"changed\"))");
            assert_eq!(
                value_in(&mut first, &handle, "(map :subject (take 2 (drop 3 mails)))"),
                "(\"changed\" \"subject 4\")"
            );
        }
    });
}

#[test]
fn what_cannot_be_used_is_said() {
    on_each_store(|url| {
        let mut client = server(url, &[]);
        let (error, text) = error_in(&mut client, "nonsense");
        assert_eq!(error, "UnknownSession");
        assert!(text.contains("leave `session` out for a new one"), "{text}");

        let store = open(url).expect("it opens");
        let key = |principal: &str, handle: &str| Key { principal: principal.to_owned(), handle: handle.to_owned() };
        let damaged = "(lispbox-session 1)\n(define x (nonsense";
        store.create(&key("local", "damaged"), damaged, &[]).expect("it is written");
        let (error, text) = error_in(&mut client, "damaged");
        assert_eq!(error, "SessionDamaged", "{text}");
        assert_eq!(
            store.read(&key("local", "damaged"), 0).expect("read").expect("kept").text,
            damaged,
            "it is kept aside"
        );

        store
            .create(&key("somebody else", "foreign"), "(lispbox-session 1)\n(history nil nil nil nil)\n", &[])
            .expect("written");
        assert_eq!(error_in(&mut client, "foreign").0, "UnknownSession", "another principal's session is nobody's");

        store.create(&key("local", "old"), "(lispbox-session 1)\n(history nil nil nil nil)\n", &[]).expect("written");
        assert_eq!(eval_in(&mut client, "old", "(+ 1 2)").text, "3");
        crate::mcp_client::until(|| {
            store.expire(std::time::Duration::ZERO).expect("they expire");
            store.list().expect("a list").is_empty()
        });
        assert_eq!(error_in(&mut client, "old").0, "SessionExpired");
    });
}

#[test]
fn a_store_that_cannot_be_opened_is_said_at_the_start() {
    let refused = |url: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_lispbox"))
            .args(["serve", "--store", url])
            .stdin(std::process::Stdio::null())
            .output()
            .expect("the binary runs");
        assert!(!output.status.success(), "{url}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text.db");
    std::fs::write(
        &text,
        "this is no database, but a text of more than a hundred bytes, so that SQLite takes it for a page".repeat(3),
    )
    .expect("written");
    assert!(refused("sqlite:/nonexistent/folder/sessions.db").contains("No such file or directory"));
    assert!(refused(&format!("sqlite:{}", text.display())).contains("the file is not an SQLite database"));
    assert!(
        refused("mongodb://x")
            .contains("expected a store such as `sqlite:/var/lib/lispbox/sessions.db`, got `mongodb://x`")
    );
}

#[test]
#[cfg(unix)]
fn only_its_owner_may_read_a_store() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sessions.db");
    drop(Sqlite::open(&file).expect("it opens"));
    let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
