//! Programs that outlast the patience of their client: answered before their end, and evaluated on.

use std::path::Path;

use crate::failed_runs::{configuration, go_on};
use crate::http_client::{Server, tokens_file};
use crate::mcp_client::{Answer, Client, until};
use crate::waiting_runs::{approvals, continued, continued_while, lines, listed, printed, run_of};
use serde_json::{Value, json};

/// Adds a line, and then waits for the file `go`.
const HOLDS: &str = "(notes/add {:line \"a\"}) (str (notes/hold {:line \"b\"}) \"!\")";

const PATIENCE: [&str; 2] = ["--reply-within", "200ms"];

fn let_go(folder: &Path) {
    std::fs::write(folder.join("go"), "").expect("written");
}

fn cancelled(client: &mut Client, run: &str) -> Answer {
    client.call("lisp_eval", json!({"run": run, "cancel": true}))
}

/// Waits for the reply of a program that goes on.
pub fn awaited(client: &mut Client, run: &str) -> Answer {
    continued_while(client, run, |answer| answer.text.starts_with("[running: "))
}

/// Runs a check for clients of old and new revisions, without a store and with one.
fn on_each(check: impl Fn(&mut Client, &Path, Option<&str>)) {
    for stateless in [true, false] {
        for has_store in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let configuration = configuration(folder.path());
            let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
            let options = if has_store { [&PATIENCE[..], &["--store", &store]].concat() } else { PATIENCE.to_vec() };
            let mut client = match stateless {
                true => Client::start_stateless(&configuration, &options),
                false => Client::start(&configuration, &options),
            };
            check(&mut client, folder.path(), has_store.then_some(&store));
        }
    }
}

#[test]
fn a_program_that_is_sent_again_while_it_runs_is_not_run_twice() {
    for has_store in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
        let options = if has_store { [&PATIENCE[..], &["--store", &store]].concat() } else { PATIENCE.to_vec() };
        let mut client = Client::start(&configuration(folder.path()), &options);
        let running = client.eval(HOLDS);
        let run = run_of(&running);
        assert_eq!(run_of(&client.eval(HOLDS)), run, "it waits for the same program");
        let_go(folder.path());
        let call = json!({"name": "lisp_eval", "arguments": {"program": HOLDS}});
        let mut done = client.request("tools/call", call.clone());
        while Answer::of(&done).text.starts_with("[running: ") {
            done = client.request("tools/call", call.clone());
        }
        assert!(Answer::of(&done).text.starts_with("\"added a\"\n\"added b!\"\n[2 tool calls]"), "{done}");
        assert!(done.to_string().contains("[the same program was sent before and had no reply yet"), "{done}");
        assert_eq!((lines(folder.path(), "added"), lines(folder.path(), "held")), (vec!["a".into()], vec!["b".into()]));
        // Whoever has received the reply and sends it again means it.
        let again = client.call("lisp_eval", json!({"program": HOLDS, "repeat": true}));
        assert!(!again.is_error, "{}", again.text);
        assert_eq!((lines(folder.path(), "added").len(), lines(folder.path(), "held").len()), (2, 2));
    }
}

#[test]
fn a_program_that_outlasts_its_client_is_answered_before_and_its_reply_is_there_later() {
    on_each(|client, folder, _| {
        let running = client.eval(HOLDS);
        assert!(running.text.starts_with("[running: ") && !running.is_error, "{}", running.text);
        let run = run_of(&running);
        until(|| lines(folder, "held") == ["b"]);
        let waits = continued(client, &run).text;
        let (begin, end) = (
            "[running: 2 tool calls so far: notes/add 1, notes/hold 1; under way: notes/hold for ",
            format!(
                " s; made: notes/add once; {{\"run\": \"{run}\"}} waits for its reply, \"cancel\": true beside it ends it]"
            ),
        );
        assert!(waits.starts_with(begin) && waits.ends_with(&end), "it is still running: {waits}");
        let_go(folder);
        let done = awaited(client, &run);
        assert!(done.text.starts_with("\"added a\"\n\"added b!\"\n[2 tool calls]"), "{}", done.text);
        assert_eq!(continued(client, &run).text, done.text, "the reply is kept");
        assert_eq!((lines(folder, "added"), lines(folder, "held")), (vec!["a".to_owned()], vec!["b".to_owned()]));
        let refused = cancelled(client, &run);
        assert_eq!(refused.text, done.text, "it has ended");
    });
}

#[test]
fn a_running_program_is_listed_and_ended_and_a_corrected_one_repeats_nothing() {
    on_each(|client, folder, _| {
        let limits = json!({"fuel": 1e9, "compute": "50s"});
        let program = "(notes/add {:line \"a\"}) (loop [] (recur))";
        let mut running = client.call("lisp_eval", json!({"program": program, "limits": limits}));
        let run = run_of(&running);
        // The line is there before the tool has answered.
        until(|| {
            let is_made = running.text.contains("made: notes/add once;");
            if !is_made {
                running = continued(client, &run);
            }
            is_made
        });
        let refused = go_on(client, &run, "1");
        assert!(
            refused.text.contains(
                "the program is still running, so `program` does not apply to it: `run` alone waits for its reply, and \
                 `\"cancel\": true` beside it ends it"
            ),
            "{}",
            refused.text
        );
        let mut ended = cancelled(client, &run);
        if ended.text.starts_with("[running: ") {
            ended = awaited(client, &run);
        }
        assert!(ended.is_error && ended.text.starts_with("Cancelled: "), "{}", ended.text);
        assert!(ended.text.contains("[made before it was cancelled: notes/add once"), "{}", ended.text);
        assert!(ended.text.contains(&format!("{{\"run\": \"{run}\", \"program\": \"the same\"}}")), "{}", ended.text);
        let next = client.eval("1");
        assert!(!next.text.contains("was cut off"), "its reply has told of it: {}", next.text);
        let done = go_on(client, &run, "(notes/add {:line \"a\"})");
        assert!(done.text.contains("[1 call answered from an earlier attempt]"), "{}", done.text);
        assert_eq!(lines(folder, "added"), ["a"]);
    });
}

#[test]
fn a_run_that_outlives_its_requests_is_ended_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let options = [&PATIENCE[..], &["--store", &store]].concat();
    let mut client = Client::start_stateless(&configuration(folder.path()), &options);
    let forever = json!({"fuel": 1e12, "compute": "60s"});
    let end = |client: &mut Client, run: &str, running: Answer| {
        let running = if running.text.starts_with("[running: ") { running } else { continued(client, run) };
        assert!(running.text.starts_with("[running: "), "{}", running.text);
        let mut ended = cancelled(client, run);
        if ended.text.starts_with("[running: ") {
            ended = awaited(client, run);
        }
        assert!(ended.text.contains("[made before it was cancelled: "), "{}", ended.text);
        let done = go_on(client, run, ":done");
        assert!(done.text.starts_with(":done"), "{}", done.text);
    };
    // A further attempt.
    let run = run_of(&client.eval("(notes/add {:line \"a\"}) (/ 1 0)"));
    let program = "(notes/add {:line \"a\"}) (loop [] (recur))";
    let running = client.call("lisp_eval", json!({"run": run, "program": program, "limits": forever}));
    end(&mut client, &run, running);
    // A program that has waited for a person.
    let program = "(notes/share {:line \"b\"}) (loop [] (recur))";
    let run = run_of(&client.call("lisp_eval", json!({"program": program, "limits": forever})));
    printed(&approvals(&store, &["approve", &run]));
    let running = continued(&mut client, &run);
    end(&mut client, &run, running);
    assert_eq!((lines(folder.path(), "added").len(), lines(folder.path(), "shared").len()), (1, 1));
}

#[test]
fn programs_see_those_that_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start_stateless(&configuration(folder.path()), &PATIENCE);
    let run = run_of(&client.eval(HOLDS));
    until(|| lines(folder.path(), "held") == ["b"]);
    let seen = client.eval("(mapv (juxt :run :state #(:tool (first (:made %)))) (run/status))");
    assert!(seen.text.starts_with(&format!("[[\"{run}\" \"running\" \"notes/add\"]]")), "{}", seen.text);
    let_go(folder.path());
    awaited(&mut client, &run);
    assert!(client.eval("(run/status)").text.starts_with("[]"));
}

#[test]
fn the_next_program_of_the_session_waits_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start(&configuration(folder.path()), &PATIENCE);
    let first = run_of(&client.eval(&format!("(def a 1) {HOLDS}")));
    let second = client.eval("(inc a)");
    assert!(second.text.starts_with("[running: waiting for its turn; {\"run\": "), "{}", second.text);
    let_go(folder.path());
    awaited(&mut client, &first);
    assert!(awaited(&mut client, &run_of(&second)).text.starts_with("2"));
}

#[test]
fn a_program_that_goes_on_waits_for_a_person() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let options = [&PATIENCE[..], &["--store", &store]].concat();
    let mut client = Client::start_stateless(&configuration(folder.path()), &options);
    let run = run_of(&client.eval("(notes/hold {:line \"b\"}) (notes/share {:line \"c\"})"));
    let_go(folder.path());
    let waits = awaited(&mut client, &run);
    assert!(waits.text.starts_with("Suspended: "), "{}", waits.text);
    assert_eq!(run_of(&waits), run, "it is the run that was named before");
    printed(&approvals(&store, &["approve", &run]));
    assert!(awaited(&mut client, &run).text.starts_with("\"added b\"\n\"added c\""));
    assert_eq!((lines(folder.path(), "held").len(), lines(folder.path(), "shared").len()), (1, 1));
}

#[test]
fn a_program_that_goes_on_ends_with_the_server_and_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let options = [&PATIENCE[..], &["--store", &store, "--grace", "100ms"]].concat();
    let configuration = configuration(folder.path());
    let mut client = Client::start_stateless(&configuration, &options);
    let run = run_of(&client.eval(HOLDS));
    until(|| lines(folder.path(), "held") == ["b"]);
    client.close();
    until(|| client.process.try_wait().expect("a child").is_some());
    let kept = listed(&store);
    assert_eq!(kept.iter().map(|run| run["run"].as_str()).collect::<Vec<_>>(), [Some(&*run)]);
    let mut client = Client::start_stateless(&configuration, &options);
    let number = kept[0]["open"][0]["call"].as_str().expect("its outcome is unknown");
    printed(&approvals(&store, &["settle", &run, "--call", number, "--happened", "\"found b\""]));
    let done = go_on(&mut client, &run, HOLDS);
    assert!(done.text.starts_with("\"added a\"\n\"found b!\""), "{}", done.text);
    assert_eq!((lines(folder.path(), "added").len(), lines(folder.path(), "held").len()), (1, 1));
}

#[test]
fn another_instance_says_that_a_program_goes_on_and_has_its_reply() {
    crate::databases::on_each_store(|store| {
        let folder = tempfile::tempdir().expect("a folder");
        // It has changed nothing before it is answered.
        let mut configuration = configuration(folder.path());
        configuration["local"]["notes/hold"]["read_only"] = json!(true);
        let options = [&PATIENCE[..], &["--store", store]].concat();
        let [mut here, mut there] = [0, 1].map(|_| Client::start_stateless(&configuration, &options));
        let run = run_of(&here.eval("(notes/hold {:line \"b\"}) (notes/add {:line \"a\"})"));
        let running = continued(&mut there, &run);
        let expected = format!(
            "[running: in another call or in another process of the server; {{\"run\": \"{run}\"}} waits for its reply]"
        );
        assert_eq!(running.text, expected);
        let seen = there.eval("(mapv (juxt :run :state) (run/status))");
        assert!(seen.text.starts_with(&format!("[[\"{run}\" \"running\"]]")), "{}", seen.text);
        let refused = cancelled(&mut there, &run);
        let why = "RunNotResumed: the program is running in another call or in another process of the server, and cannot be \
                   ended from here: `run` alone waits for its reply; nothing was evaluated";
        assert_eq!(refused.text, why);
        let_go(folder.path());
        let done = awaited(&mut there, &run);
        assert!(done.text.starts_with("\"added b\"\n\"added a\""), "{}", done.text);
        assert_eq!(continued(&mut there, &run).text, done.text, "the reply is kept");
        assert!(awaited(&mut here, &run).text.starts_with("\"added b\"\n\"added a\""));
        assert_eq!(lines(folder.path(), "added"), ["a"]);
        // So is that of one that fails, and a corrected program goes on there.
        let _ = std::fs::remove_file(folder.path().join("go"));
        let run = run_of(&here.eval("(notes/add {:line \"c\"}) (notes/hold {:line \"d\"}) (/ 1 0)"));
        let_go(folder.path());
        let failed = awaited(&mut there, &run);
        assert!(failed.text.starts_with("ArithmeticError: "), "{}", failed.text);
        let done = go_on(&mut there, &run, "(notes/add {:line \"c\"}) (notes/add {:line \"e\"})");
        assert!(!done.is_error, "{}", done.text);
        assert_eq!(lines(folder.path(), "added"), ["a", "c", "e"]);
    });
}

#[test]
fn over_http_a_program_goes_on_when_its_connection_ends_and_belongs_to_its_principal() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"});
    let tokens = tokens_file(folder.path(), &tokens).display().to_string();
    let servers = folder.path().join("servers.json");
    std::fs::write(&servers, configuration(folder.path()).to_string()).expect("written");
    let servers = servers.display().to_string();
    let options = [&PATIENCE[..], &["--tokens", &tokens, "--config", &servers]].concat();
    let server = Server::start(&options, &[]);
    let call = |who: &str, arguments: Value| {
        let head = format!("Authorization: Bearer {who}-{who}-{who}-{who}-{who}\r\n");
        Answer::of(&server.call(&head, "lisp_eval", arguments).message())
    };
    let run = run_of(&call("ann", json!({"program": HOLDS})));
    let refused = call("bob", json!({"run": run, "cancel": true}));
    assert!(refused.is_error && refused.text.starts_with("RunNotResumed: there is no such run"), "{}", refused.text);
    let_go(folder.path());
    let mut done = call("ann", json!({"run": run}));
    until(|| {
        let goes_on = done.text.starts_with("[running: ");
        if goes_on {
            done = call("ann", json!({"run": run}));
        }
        !goes_on
    });
    assert!(done.text.starts_with("\"added a\"\n\"added b!\""), "{}", done.text);
}

#[test]
fn arguments_for_a_running_program_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start(&configuration(folder.path()), &["--reply-within", "never"]);
    let alone = client.call("lisp_eval", json!({"program": "1", "cancel": true}));
    assert!(alone.text.contains("`cancel` ends a program that is running: it needs `run`"), "{}", alone.text);
    let both = client.call("lisp_eval", json!({"run": "x", "program": "1", "cancel": true}));
    assert!(both.text.contains("`cancel` ends a program; leave `program` out"), "{}", both.text);
    let gone = cancelled(&mut client, "x");
    assert!(gone.is_error, "{}", gone.text);
}
