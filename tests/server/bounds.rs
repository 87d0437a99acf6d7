//! Bounds on the resources of one client over HTTP: connections, time, requests, evaluations and sessions. Other
//! clients are served meanwhile.

use std::time::{Duration, Instant};

use crate::http_client::{Connection, Response, Server, evaluation, handle, tokens_file};
use serde_json::{Value, json};

const ANN: &str = "Authorization: Bearer ann-ann-ann-ann-ann\r\n";
const BOB: &str = "Authorization: Bearer bob-bob-bob-bob-bob\r\n";

/// A program that runs until it is cancelled or reaches a limit.
const ENDLESS: &str = "(loop [] (recur))";

/// Starts a server with the principals `ann` and `bob`. The parameter has further fields for the tokens entry of `ann`.
fn server_for_two(ann: &Value, arguments: &[&str]) -> Server {
    let folder = tempfile::tempdir().expect("a folder");
    let mut ann = ann.clone();
    ann["token"] = json!("${ANN}");
    let file = tokens_file(folder.path(), &json!({"ann": ann, "bob": "bob-bob-bob-bob-bob"}));
    let file = file.to_string_lossy();
    let arguments: Vec<&str> = ["--tokens", &file].into_iter().chain(arguments.iter().copied()).collect();
    Server::start(&arguments, &[("ANN", "ann-ann-ann-ann-ann")])
}

/// The message of a protocol error.
fn message(response: &Response) -> String {
    response.message()["error"]["message"].as_str().unwrap_or_else(|| panic!("no error: {response:?}")).to_owned()
}

/// Polls until the condition holds. Panics after 40 s.
fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(40), "it did not come to pass");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn health(connection: &mut Connection) -> Response {
    connection.request("GET", "/healthz", "", b"")
}

#[test]
fn connections_with_an_open_request_are_so_many_at_a_time() {
    for (arguments, status, reason) in [
        (
            &["--connections", "3"][..],
            503,
            "3 connections have an open request, the maximum for this server (`serve --connections`)",
        ),
        (
            &["--connections-each", "3"],
            429,
            "127.0.0.1 has 3 connections with an open request, the maximum for one address (`serve \
             --connections-each`)",
        ),
    ] {
        let server = Server::start(&[arguments, &["--limit", "fuel=1e12", "--limit", "compute=60s"]].concat(), &[]);
        let mut open: Vec<Connection> = (0..3).map(|_| endless(&server)).collect();
        let refused = server.call("", "lisp_eval", json!({"program": "(+ 1 2)"}));
        let headers = (refused.header("retry-after"), refused.header("connection"));
        assert_eq!((refused.status, headers), (status, (Some("1"), Some("close"))), "{refused:?}");
        assert_eq!(message(&refused), format!("{reason}; try again in a moment"));
        let large = server.request("POST", "/mcp", "", &vec![b' '; 4 << 20]);
        assert_eq!(large.status, status, "it reads the message before it closes the connection");
        for path in ["/healthz", "/readyz"] {
            let answer = server.request("GET", path, "", b"");
            assert_eq!((answer.status, answer.header("connection")), (200, Some("close")), "{answer:?}");
        }
        let silent: Vec<Connection> = (0..500).map(|_| server.connect()).collect();
        assert_eq!(server.request("GET", "/healthz", "", b"").status, 200, "questions after health have a reserve");
        assert_eq!(server.request("GET", "/readyz", "", b"").status, 200);
        drop(silent);
        open.pop();
        until(|| server.call("", "lisp_eval", json!({"program": "(+ 1 2)"})).status == 200);
    }
}

/// Opens a connection with a request that is in progress: the server has sent the response headers.
fn endless(server: &Server) -> Connection {
    // What may be asked of the client is sent on the stream of the response, which begins at once.
    let session = server.initialize_with("", "2025-06-18", &json!({"elicitation": {}})).expect("a session");
    let mut connection = server.connect();
    connection.begin_post(&session.head(), &evaluation(1, ENDLESS));
    assert_eq!(connection.receive_head().status, 200);
    connection
}

#[test]
fn whoever_has_just_connected_is_told_that_it_made_room() {
    let server = Server::start(&["--connections", "2", "--limit", "fuel=1e12", "--limit", "compute=60s"], &[]);
    let _open = endless(&server);
    let mut first = server.connect();
    let mut second = server.connect();
    assert_eq!(health(&mut second).status, 200, "the first made room");
    let refused = first.call("", "lisp_eval", json!({"program": "(+ 1 2)"}));
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")), "{refused:?}");
    assert_eq!(
        message(&refused),
        "this connection was closed for a newer one, since a limit is reached (`serve --connections`, \
         `--connections-each`); try again in a moment"
    );
}

#[test]
fn idle_connections_make_room_for_others() {
    for arguments in [&["--connections", "20"], &["--connections-each", "20"]] {
        let server = server_for_two(&json!({}), arguments);
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let (of_ann, of_bob) = (server.initialize(ANN, "2025-06-18"), server.initialize(BOB, "2025-06-18"));
        let (of_ann, of_bob) = (of_ann.expect("a session").head(), of_bob.expect("a session").head());
        let mut bob = server.connect();
        assert_eq!(bob.post(&of_bob, &ping).status, 200);
        let mut anns: Vec<Connection> = (0..30)
            .map(|_| {
                let mut connection = server.connect();
                assert_eq!(connection.post(&of_ann, &ping).status, 200);
                connection
            })
            .collect();
        let closed = anns.iter_mut().map(|connection| connection.post(&of_ann, &ping).status == 0);
        let closed: Vec<bool> = closed.collect();
        let evicted = closed.iter().filter(|is_closed| **is_closed).count();
        if arguments[0] == "--connections" {
            assert!(closed.iter().take(evicted).all(|is_closed| *is_closed), "the longest idle ones: {closed:?}");
            assert_eq!((evicted, bob.post(&of_bob, &ping).status), (11, 200), "{closed:?}");
        }
        assert_eq!(server.request("GET", "/healthz", "", b"").status, 200);
        assert_eq!(server.request("GET", "/readyz", "", b"").status, 200);
        assert_eq!(server.eval(BOB, "(+ 1 2)", None), ("3".to_owned(), false));
    }
}

#[test]
fn connections_of_unknown_clients_make_room_for_those_of_principals() {
    let server = server_for_two(&json!({}), &["--connections", "20"]);
    let mut bob = server.connect();
    assert_eq!(bob.eval(BOB, "(+ 1 2)", None), ("3".to_owned(), false));
    let mut open: Vec<Connection> = Vec::new();
    for number in 0..100 {
        let mut connection = server.connect();
        match number % 4 {
            0 => {}
            1 => connection.write(b"POST /mcp HTTP/1.1\r\nHost: "),
            2 => assert_eq!(connection.request("POST", "/mcp", "", b"{}").status, 401),
            _ => assert_eq!(health(&mut connection).status, 200),
        }
        open.push(connection);
    }
    assert_eq!(bob.eval(BOB, "(+ 1 2)", None), ("3".to_owned(), false), "it had fewer");
    assert_eq!(server.eval(ANN, "(+ 1 2)", None), ("3".to_owned(), false));
}

#[test]
fn a_connection_is_closed_behind_a_refusal() {
    let server = Server::start(&["--requests-per-minute", "1"], &[]);
    let mut connection = server.connect();
    assert_eq!(connection.eval("", "(+ 1 2)", None), ("3".to_owned(), false));
    let refused = connection.call("", "lisp_eval", json!({"program": "(+ 1 2)"}));
    assert_eq!((refused.status, refused.header("connection")), (429, Some("close")), "{refused:?}");
    assert_eq!(connection.rest(), "", "it is closed");
}

#[test]
fn many_connections_that_say_nothing_cost_little_and_keep_nobody_out() {
    let server = Server::start(&["--connections", "100", "--arrival", "500ms"], &[]);
    health(&mut server.connect());
    let before = server.memory("VmRSS");
    let mut open: Vec<Connection> = (0..400).map(|_| server.connect()).collect();
    open.iter_mut().for_each(|connection| connection.write(b"POST /mcp HTTP/1.1\r\nHost: "));
    if let (Some(before), Some(after)) = (before, server.memory("VmRSS")) {
        assert!(after < before + (20 << 20), "{before} bytes grew to {after}");
    }
    until(|| server.request("GET", "/healthz", "", b"").status == 200);
}

#[test]
fn heads_and_messages_have_to_come_in_time() {
    let server = Server::start(&["--arrival", "300ms"], &[]);
    let begun = Instant::now();
    for head in [&b""[..], b"POST /mcp HTTP/1.1\r\nHost: 127", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"] {
        let mut connection = server.connect();
        connection.write(head);
        let response = connection.receive();
        assert!([0, 408].contains(&response.status), "it is closed: {response:?}");
    }
    let mut half = server.connect();
    half.write(format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Length: 100\r\n\r\n{{", server.address).as_bytes());
    let response = half.receive();
    assert_eq!((response.status, message(&response).as_str()), (408, "the message did not arrive in time"));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(server.eval("", "(+ 1 2)", None), ("3".to_owned(), false));
}

#[test]
fn the_head_of_a_request_is_bounded() {
    let server = Server::start(&[], &[]);
    let with = |bytes: usize| {
        let headers = format!("X-Long: {}\r\n", "x".repeat(bytes));
        server.request("GET", "/healthz", &headers, b"").status
    };
    assert_eq!(with(8 << 10), 200);
    assert_eq!(with(64 << 10), 431);
    let many: String = (0..200).map(|number| format!("X-{number}: 1\r\n")).collect();
    assert_eq!(server.request("GET", "/healthz", &many, b"").status, 431);
}

#[test]
fn who_has_no_token_may_ask_so_often() {
    let server = Server::start(&["--requests-per-minute", "5"], &[]);
    let ask = || server.call("", "lisp_eval", json!({"program": "(+ 1 2)"}));
    assert!((0..5).all(|_| ask().status == 200));
    let refused = ask();
    let wait: u64 = refused.header("retry-after").and_then(|wait| wait.parse().ok()).expect("it says when");
    assert!(refused.status == 429 && (1..=13).contains(&wait), "{refused:?}");
    assert_eq!(
        message(&refused),
        format!(
            "127.0.0.1 may send 5 requests a minute without a token (`serve --requests-per-minute`); try again in {wait} s"
        )
    );
    assert_eq!(health(&mut server.connect()).status, 200, "its health is everybody's to know");
}

#[test]
fn tokens_cannot_be_tried_out_nor_keep_others_out() {
    let server = server_for_two(&json!({}), &["--requests-per-minute", "5"]);
    let guess = |number: i32| {
        let headers = format!("Authorization: Bearer guess-guess-guess-{number}\r\n");
        server.call(&headers, "lisp_eval", json!({"program": "1"})).status
    };
    let answers: Vec<u16> = (0..7).map(guess).collect();
    assert_eq!(answers, [401, 401, 401, 401, 401, 429, 429]);
    assert!((0..10).all(|_| server.eval(ANN, "(+ 1 2)", None).0 == "3"), "who has a token is not counted there");
}

#[test]
fn a_principal_may_ask_as_often_as_the_operator_says() {
    let server = server_for_two(&json!({"requests_per_minute": 3}), &[]);
    let ask = |headers: &str| server.call(headers, "lisp_eval", json!({"program": "(+ 1 2)"}));
    assert!((0..3).all(|_| ask(ANN).status == 200));
    let refused = ask(ANN);
    assert_eq!(refused.status, 429);
    assert!(
        message(&refused).starts_with(
            "`ann` may send 3 requests a minute (`requests_per_minute` in the tokens file); try again in "
        ),
        "{refused:?}"
    );
    assert!((0..10).all(|_| ask(BOB).status == 200));
}

#[test]
fn calls_of_a_principal_are_within_its_limits() {
    let server = server_for_two(&json!({"limits": {"fuel": 10_000}}), &[]);
    let count = |headers: &str| {
        let program = json!({"program": "(reduce + (range 20000))", "limits": {"fuel": 1e7}});
        server.call(headers, "lisp_eval", program).result()
    };
    let (text, failed) = count(ANN);
    assert!(failed && text.contains("fuel") && text.contains("10000"), "{text}");
    assert_eq!(count(BOB), ("199990000".to_owned(), false));
}

#[test]
fn one_principals_load_does_not_keep_another_waiting() {
    let server = server_for_two(&json!({}), &["--limit", "fuel=1e12", "--limit", "compute=60s"]);
    let program = json!({"program": ENDLESS});
    let mut begun: Vec<Connection> = (0..100).map(|_| server.begin(ANN, "lisp_eval", program.clone())).collect();
    let refused = begun.last_mut().expect("there are many").receive().result();
    assert!(refused.1 && refused.0.contains("Busy") && refused.0.contains("evaluations of `ann`"), "{refused:?}");
    let asked = Instant::now();
    for _ in 0..10 {
        assert_eq!(server.eval(BOB, "(+ 1 2)", None), ("3".to_owned(), false));
    }
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
}

/// Evaluates a definition without a session and returns the handle of the session that it creates.
fn made(server: &Server, headers: &str, program: &str) -> String {
    handle(&server.eval(headers, program, None).0)
}

#[test]
fn in_memory_a_principal_has_its_latest_sessions() {
    let server = server_for_two(&json!({"sessions": 2}), &[]);
    let bobs = made(&server, BOB, "(def n 0)");
    let anns: Vec<String> = (0..3).map(|n| made(&server, ANN, &format!("(def n {n})"))).collect();
    assert_eq!(server.eval(ANN, "n", Some(&anns[2])), ("2".to_owned(), false));
    let (text, failed) = server.eval(ANN, "n", Some(&anns[0]));
    assert!(failed, "{text}");
    assert_eq!(
        text.lines().next(),
        Some(
            "SessionExpired: the session has expired: it was evicted as the least recently used one; leave `session` \
             out for a new one"
        )
    );
    let (text, _) = server.eval(BOB, "n", Some(&anns[0]));
    assert!(text.starts_with("UnknownSession"), "another's session is nobody's: {text}");
    assert_eq!(server.eval(BOB, "n", Some(&bobs)), ("0".to_owned(), false));
}

#[test]
fn in_a_store_a_principal_is_refused_one_more_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let server = server_for_two(&json!({"sessions": 2}), &["--store", &url]);
    let kept: Vec<String> = (0..2).map(|n| made(&server, ANN, &format!("(def n {n})"))).collect();
    let (text, failed) = server.eval(ANN, "(def n 2) (+ n 40)", None);
    assert!(failed && text.contains("SessionNotKept"), "{text}");
    assert!(
        text.contains(
            "`ann` has the maximum number of sessions in the store: 2 (`sessions` in the tokens file); \
             `(session/close)` closes one that is no longer needed"
        ),
        "{text}"
    );
    assert!(text.contains("the program ran and returned 42"), "{text}");
    let (text, _) = server.eval(ANN, "(session/fork)", Some(&kept[1]));
    assert!(
        text.contains("SessionNotForked") && text.contains("`ann` has the maximum number of sessions in the store"),
        "{text}"
    );
    assert_eq!(server.eval(ANN, "(+ 1 2)", None), ("3".to_owned(), false), "what defines nothing needs no room");
    for n in 0..4 {
        made(&server, BOB, &format!("(def n {n})"));
    }
    assert_eq!(server.eval(ANN, "n", Some(&kept[0])), ("0".to_owned(), false), "nothing that was kept is dropped");
    assert!(!server.eval(ANN, "(session/close)", Some(&kept[0])).1);
    made(&server, ANN, "(def n 3)");
}

#[test]
fn a_store_takes_so_many_sessions_of_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let server = Server::start(&["--store", &url], &[("LISPBOX_STORED_SESSIONS", "1")]);
    made(&server, "", "(def n 0)");
    let (text, failed) = server.eval("", "(def n 1)", None);
    assert!(
        failed
            && text.contains("`local` has the maximum number of sessions in the store: 1 (`serve --stored-sessions`)"),
        "{text}"
    );
}

/// Uses a session until it has expired, and returns the error message.
fn worn_out(server: &Server, session: &str) -> String {
    let mut last = String::new();
    until(|| {
        let (text, failed) = server.eval("", "n", Some(session));
        last = text;
        failed
    });
    last
}

#[test]
fn a_session_ends_after_its_lifetime_though_it_is_used() {
    let server = Server::start(&["--session-lifetime", "500ms"], &[]);
    let session = made(&server, "", "(def n 1)");
    let text = worn_out(&server, &session);
    assert!(text.contains("SessionExpired") && text.contains("it was created more than 500ms ago"), "{text}");
    let (text, _) = server.eval("", "n", Some(&session));
    assert!(text.contains("SessionExpired"), "it is remembered: {text}");
}

#[test]
fn a_session_ends_after_its_lifetime_in_a_store_also_if_another_process_made_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let session = made(&Server::start(&["--store", &url], &[]), "", "(def n 1)");
    let server = Server::start(&["--store", &url, "--session-lifetime", "1s"], &[]);
    let text = worn_out(&server, &session);
    assert!(text.contains("SessionExpired") && text.contains("created too long ago"), "{text}");
    drop(server);
    let text = Server::start(&["--store", &url], &[]).eval("", "n", Some(&session)).0;
    assert!(text.contains("SessionExpired"), "the store remembers it: {text}");
}

#[test]
fn a_connection_whose_session_has_ended_is_told_and_gets_another() {
    let server = Server::start(&["--session-lifetime", "500ms"], &[]);
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let response = server.post("", &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
    let connection = response.header("mcp-session-id").expect("older protocols have sessions").to_owned();
    let headers = format!("Mcp-Session-Id: {connection}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
    server.post(&headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let eval = |program: &str| {
        let params = json!({"name": "lisp_eval", "arguments": {"program": program}});
        server.post(&headers, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})).result()
    };
    assert!(!eval("(def n 1)").1);
    let mut last = (String::new(), false);
    until(|| {
        last = eval("n");
        last.1
    });
    assert!(last.0.contains("SessionExpired"), "{last:?}");
    assert!(!eval("(+ 1 2)").1, "the next one begins anew");
}

#[test]
fn bounds_that_make_no_sense_are_said() {
    let refused = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lispbox"));
        let output = command.args(["serve", "--http", "127.0.0.1:0"]).args(arguments).output().expect("it runs");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--session-lifetime", "soon"]).contains("expected a time such as `90s`, `12h` or `30d`"));
    assert!(refused(&["--session-idle", "0s"]).contains("expected a time such as"));
    assert!(refused(&["--connections", "0"]).contains("0 is not in 1.."));
    assert!(refused(&["--requests-per-minute", "0"]).contains("invalid value '0'"));
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = json!({"ann": {"token": "secret-secret-secret", "request_per_minute": 5}});
    let file = tokens_file(folder.path(), &tokens);
    let errors = refused(&["--tokens", &file.to_string_lossy()]);
    assert!(errors.contains("did you mean `requests_per_minute`?") && !errors.contains("secret"), "{errors}");
}

#[cfg(unix)]
#[test]
fn a_flood_of_failing_programs_of_many_principals_takes_bounded_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let configuration = folder.path().join("servers.json");
    std::fs::write(&configuration, crate::failed_runs::configuration(folder.path()).to_string()).expect("written");
    let token = |at: usize| format!("principal-{at}-principal-{at}");
    let names: serde_json::Map<String, Value> = (0..12).map(|at| (format!("p{at}"), json!(token(at)))).collect();
    let file = tokens_file(folder.path(), &json!(names)).display().to_string();
    let (configuration, cache) =
        (configuration.display().to_string(), folder.path().join("cache").display().to_string());
    let options = ["--tokens", &file, "--config", &configuration];
    let server = Server::start(&options, &[("LISPBOX_CACHE", &cache)]);
    let head = |at: usize| format!("Authorization: Bearer {}\r\n", token(at));
    // Each is kept with its text: 25 MiB of each principal, and 300 MiB of all.
    let padding = ";".repeat(900_000);
    let fails = |at: usize, n: usize| {
        let program = format!("(notes/add {{:line \"{at}-{n}\"}}) (/ 1 0)\n{padding}");
        let arguments = json!({"program": program, "limits": {"program": 1 << 20}});
        let (text, is_error) = server.call(&head(at), "lisp_eval", arguments).result();
        assert!(is_error && text.contains("[made before the error: notes/add once;"), "{text}");
    };
    fails(0, 0);
    let before = server.memory("VmRSS").unwrap_or_default();
    std::thread::scope(|scope| {
        for half in [0..6, 6..12] {
            scope.spawn(move || half.for_each(|at| (1..30).for_each(|n| fails(at, n))));
        }
    });
    let grown = server.memory("VmRSS").unwrap_or_default().saturating_sub(before);
    assert!(grown < 260 << 20, "{} MiB", grown >> 20);
    let count = |at| server.eval(&head(at), "(count (run/status))", None).0.parse::<usize>().expect("a number");
    let counts: Vec<usize> = (0..12).map(count).collect();
    assert!(counts.iter().all(|count| *count <= 20), "{counts:?}");
    assert!(counts.contains(&20) && counts.iter().sum::<usize>() <= (128 << 20) / 900_000, "{counts:?}");
}
