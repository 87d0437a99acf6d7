//! Isolation of two principals over every route: the response about an object of the other principal equals that about
//! an object that does not exist, and the other's objects do not change.

use crate::http_client::{Client, Connection, Response, Server, Session, evaluation, handle, tokens_file};
use crate::{REVISIONS, meta};
use serde_json::{Value, json};

const NAMES: [&str; 2] = ["ann", "bob"];
const HEADERS: [&str; 2] =
    ["Authorization: Bearer ann-ann-ann-ann-ann\r\n", "Authorization: Bearer bob-bob-bob-bob-bob\r\n"];

/// Starts a server with two principals, and with a downstream server that returns images if it is installed.
fn server_for_two() -> (Server, bool, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = tokens_file(folder.path(), &json!({"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}));
    let images = crate::peers::installed("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let servers = match &images {
        Some(file) => json!({"images": {"command": "node", "args": [file, "stdio"]}}),
        None => json!({}),
    };
    let configuration = folder.path().join("servers.json");
    std::fs::write(&configuration, json!({"mcpServers": servers}).to_string()).expect("written");
    let cache = folder.path().join("cache");
    let server = Server::start(
        &["--tokens", &tokens.to_string_lossy(), "--config", &configuration.to_string_lossy()],
        &[("LISPBOX_CACHE", &cache.to_string_lossy())],
    );
    (server, images.is_some(), folder)
}

/// The parts of a response that a client can compare: status, headers except `Date`, and body. The id that was asked
/// about is replaced by `ID`.
fn seen(response: &Response, id: &str) -> (u16, Vec<(String, String)>, String) {
    let headers = response.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("date"));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.replace(id, "ID"))).collect();
    // The events of a session are numbered, so their ids differ between responses.
    let body: Vec<&str> = response.body.lines().filter(|line| !line.starts_with("id: ")).collect();
    (response.status, headers, body.join("\n").replace(id, "ID"))
}

/// Uses a protocol session by its id in every way, with the headers of the principal. Returns the responses.
fn uses(client: &Client, principal: &str, id: &str, own: &str) -> Vec<(String, Response)> {
    let named = format!("Mcp-Session-Id: {id}\r\n");
    let mut heads = vec![
        ("alone".to_owned(), named.clone()),
        ("in capitals".to_owned(), format!("MCP-SESSION-ID: {id}\r\n")),
        ("twice".to_owned(), format!("{named}{named}")),
        ("behind one's own".to_owned(), format!("Mcp-Session-Id: {own}\r\n{named}")),
        ("before one's own".to_owned(), format!("{named}Mcp-Session-Id: {own}\r\n")),
        ("in a list".to_owned(), format!("Mcp-Session-Id: {own}, {id}\r\n")),
        ("of 2026-07-28".to_owned(), format!("{named}MCP-Protocol-Version: 2026-07-28\r\n")),
    ];
    heads.extend(
        REVISIONS.map(|version| (format!("of {version}"), format!("{named}MCP-Protocol-Version: {version}\r\n"))),
    );
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}});
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "token", "progress": 1}});
    let mut stateless = evaluation(1, "n");
    stateless["params"]["_meta"] = meta();
    let messages = [
        evaluation(1, "n"),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "id": "long", "result": {}}),
        json!([evaluation(1, "n"), cancelled]),
        cancelled,
        progress,
        stateless,
    ];
    let mut answers = Vec::new();
    for (kind, head) in heads {
        let head = format!("{principal}{head}");
        for message in &messages {
            answers.push((format!("POST {message} {kind}"), client.post(&head, message)));
        }
        for last in
            ["", "Last-Event-ID: 0\r\n", "Last-Event-ID: 0/0\r\n", "Last-Event-ID: 0/1\r\n", "Last-Event-ID: x\r\n"]
        {
            answers.push((format!("GET {last} {kind}"), open(client.listen(&format!("{head}{last}")))));
        }
        answers.push((format!("DELETE {kind}"), client.request("DELETE", "/mcp", &head, b"")));
    }
    answers
}

/// The response to a request for an event stream. Panics if a stream was opened.
fn open(mut connection: Connection) -> Response {
    let head = connection.receive_head();
    assert_ne!(head.status, 200, "a stream was opened: {head:?}");
    head
}

#[test]
fn an_id_of_another_principal_is_as_good_as_none() {
    let (server, _, _folder) = server_for_two();
    let [ann, bob] = HEADERS.map(|headers| server.initialize(headers, "2025-06-18").expect("a session"));
    assert!(!ann.eval("(def n 5)").1);
    let stream = {
        let mut stream = ann.listen("");
        assert_eq!(stream.receive_head().status, 200);
        stream
    };
    // A call that runs throughout and is answered at the end.
    let program = "(loop [i 0] (if (< i 3000000) (recur (inc i)) i))";
    let mut running = server.connect();
    let mut call = evaluation(0, program);
    call["id"] = json!("long");
    call["params"]["_meta"] = json!({"progressToken": "token"});
    call["params"]["arguments"]["limits"] = json!({"fuel": 1e9, "compute": "50s"});
    running.begin_post(&ann.head(), &call);
    let unknown = "00000000-0000-4000-8000-000000000000";
    let of_ann = uses(&server, HEADERS[1], &ann.id, &bob.id);
    let of_nobody = uses(&server, HEADERS[1], unknown, &bob.id);
    for ((kind, answer), (_, expected)) in of_ann.iter().zip(&of_nobody) {
        assert_eq!(answer.status, 404, "{kind}: {answer:?}");
        assert_eq!(seen(answer, &ann.id), seen(expected, unknown), "{kind}");
    }
    // `bob` can cancel only requests of his own, even if he names the id of another's request.
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}});
    assert_eq!(bob.post(&cancelled).status, 202);
    let reply = running.receive();
    assert_eq!(reply.result().0.lines().next(), Some("3000000"), "{reply:?}");
    assert_eq!(ann.eval("n"), ("5".to_owned(), false));
    drop(stream);
    // Without a token the response reveals nothing either.
    let nobody = server.post(&format!("Mcp-Session-Id: {}\r\n", ann.id), &evaluation(1, "n"));
    assert_eq!(nobody.status, 401);
    // Its owner can use it over any connection, and over two at the same time.
    assert_eq!(open(server.listen(&format!("{}{}", ann.head(), ann.head()))).status, 400, "of two tokens none holds");
    let twice = format!("{}Mcp-Session-Id: {}\r\n", ann.head(), ann.id);
    assert_eq!(server.post(&twice, &evaluation(1, "n")).status, 400);
    let mut connections = [server.connect(), server.connect()];
    for (id, connection) in (7..).zip(&mut connections) {
        connection.begin_post(&ann.head(), &evaluation(id, "n"));
    }
    for connection in &mut connections {
        assert_eq!(connection.receive().result().0, "5");
    }
    assert_eq!(server.request("DELETE", "/mcp", &ann.head(), b"").status, 202);
    assert_eq!(ann.post(&evaluation(1, "n")).status, 404);
}

#[test]
fn without_tokens_a_session_is_everybodys_of_this_machine() {
    let server = Server::start(&[], &[]);
    let session = server.initialize("", "2025-06-18").expect("a session");
    assert!(!session.eval("(def n 5)").1);
    let with_token = Session { headers: HEADERS[0].to_owned(), ..session.clone() };
    assert_eq!(with_token.eval("n").0, "5");
    assert_eq!(server.request("DELETE", "/mcp", "Mcp-Session-Id: unknown\r\n", b"").status, 404);
}

/// A pseudorandom number generator (xorshift) with the same sequence in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn of<'t, T>(&mut self, things: &'t [T]) -> Option<&'t T> {
        (!things.is_empty()).then(|| &things[self.below(things.len())])
    }
}

/// The expected state of a principal's objects.
#[derive(Default)]
struct Things {
    /// Evaluation sessions by handle, each with the value of `n`.
    handles: Vec<(String, i64)>,
    sessions: Vec<(Session, i64)>,
    blobs: Vec<String>,
}

/// The first line of a program's reply: its value.
fn value(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Reads a blob, in a protocol session or without one.
fn read(client: &Client, headers: &str, session: Option<&Session>, uri: &str) -> Response {
    let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}});
    match session {
        Some(session) => session.post(&message),
        None => {
            message["params"]["_meta"] = meta();
            let more = format!(
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: resources/read\r\nMcp-Name: {uri}\r\n{headers}"
            );
            client.post(&more, &message)
        }
    }
}

/// Asks about an object of the other principal and about one that never existed, and checks that the responses match.
fn same(what: &str, theirs: &str, never: &str, ask: impl Fn(&str) -> Response) {
    let (answer, expected) = (ask(theirs), ask(never));
    assert_eq!(seen(&answer, theirs), seen(&expected, never), "{what}");
}

#[test]
fn whatever_two_principals_do_each_sees_its_own() {
    let (server, has_images, _folder) = server_for_two();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut things = [Things::default(), Things::default()];
    for step in 0..600 {
        let me = numbers.below(2);
        let (headers, other) = (HEADERS[me], 1 - me);
        let what = format!("step {step} of {}", NAMES[me]);
        let call = |tool: &str, arguments: Value| server.call(headers, tool, arguments);
        match numbers.below(14) {
            0 => {
                let (text, failed) = server.eval(headers, "(def n 0)", None);
                assert!(!failed, "{text}");
                things[me].handles.push((handle(&text), 0));
            }
            1 => {
                let session = server.initialize(headers, REVISIONS[numbers.below(4)]).expect("a session");
                assert!(!session.eval("(def n 0)").1);
                things[me].sessions.push((session, 0));
            }
            2 if has_images && things[me].blobs.len() < 4 => {
                let (text, _) = server.eval(headers, "(first (filter :blob (images/get-tiny-image)))", None);
                let (_, reference) = text.split_once("lispbox://blob/").unwrap_or_else(|| panic!("no blob: {text}"));
                things[me].blobs.push(format!("lispbox://blob/{}", &reference[..32]));
            }
            3 => {
                let Some(place) = (!things[me].handles.is_empty()).then(|| numbers.below(things[me].handles.len()))
                else {
                    continue;
                };
                let (handle, n) = &mut things[me].handles[place];
                *n += 1;
                assert_eq!(value(&server.eval(headers, "(def n (inc n)) n", Some(handle)).0), n.to_string(), "{what}");
            }
            4 => {
                let Some((handle, n)) = numbers.of(&things[me].handles).cloned() else { continue };
                let (text, failed) = server.eval(headers, "(session/fork)", Some(&handle));
                assert!(!failed, "{text}");
                things[me].handles.push((value(&text).trim_matches('"').to_owned(), n));
            }
            5 => {
                let Some(place) = (!things[me].sessions.is_empty()).then(|| numbers.below(things[me].sessions.len()))
                else {
                    continue;
                };
                let (session, n) = &mut things[me].sessions[place];
                *n += 1;
                assert_eq!(value(&session.eval("(def n (inc n)) n").0), n.to_string(), "{what}");
            }
            6 if things[me].handles.len() > 3 => {
                let (handle, _) = things[me].handles.remove(0);
                assert!(!server.eval(headers, "(session/close)", Some(&handle)).1, "{what}");
                assert!(server.eval(headers, "n", Some(&handle)).0.contains("UnknownSession"), "{what}");
            }
            7 if things[me].sessions.len() > 3 => {
                let (session, _) = things[me].sessions.remove(0);
                assert_eq!(server.request("DELETE", "/mcp", &session.head(), b"").status, 202, "{what}");
                assert_eq!(session.post(&evaluation(1, "n")).status, 404, "{what}");
            }
            8..=10 => {
                let Some((theirs, _)) = numbers.of(&things[other].handles).cloned() else { continue };
                let never = "a".repeat(theirs.len());
                let program = ["n", "(def n 100)", "(session/fork)", "(session/close)", "(count data)", "(no-such)"]
                    [numbers.below(6)];
                let own = numbers.of(&things[me].sessions).map(|(session, _)| session.clone());
                same(&what, &theirs, &never, |handle| match &own {
                    Some(session) => {
                        let mut message = evaluation(1, program);
                        message["params"]["arguments"]["session"] = json!(handle);
                        message["params"]["arguments"]["data"] = json!({"session": handle});
                        session.post(&message)
                    }
                    None => call("lisp_eval", json!({"program": program, "session": handle, "data": [1]})),
                });
                same(&what, &theirs, &never, |handle| call("lisp_env", json!({"session": handle, "query": "n"})));
            }
            11 => {
                let Some((theirs, _)) = numbers.of(&things[other].sessions).cloned() else { continue };
                let never = "00000000-0000-4000-8000-000000000000";
                let message = [
                    evaluation(1, "(def n 100)"),
                    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
                ][numbers.below(2)]
                .clone();
                let route = numbers.below(3);
                same(&what, &theirs.id, never, |id| {
                    let head = format!("{headers}Mcp-Session-Id: {id}\r\n");
                    match route {
                        0 => server.post(&head, &message),
                        1 => open(server.listen(&format!("{head}Last-Event-ID: 0/0\r\n"))),
                        _ => server.request("DELETE", "/mcp", &head, b""),
                    }
                });
            }
            12 => {
                let own = numbers.of(&things[me].sessions).map(|(session, _)| session.clone());
                let never = format!("lispbox://blob/{}", "0".repeat(32));
                if let Some(theirs) = numbers.of(&things[other].blobs) {
                    same(&what, theirs, &never, |uri| read(&server, headers, own.as_ref(), uri));
                }
                if let Some(mine) = numbers.of(&things[me].blobs) {
                    let contents = read(&server, headers, own.as_ref(), mine).message();
                    assert!(contents["result"]["contents"][0]["blob"].is_string(), "{what}: {contents}");
                }
            }
            _ => {
                let (text, failed) = server.eval(headers, "n", None);
                assert!(failed, "{what}: {text}");
                let theirs = &things[other];
                assert!(theirs.handles.iter().all(|(handle, _)| !text.contains(handle)), "{what}: {text}");
            }
        }
        if step % 20 == 19 {
            for (principal, things) in things.iter().enumerate() {
                for (handle, n) in &things.handles {
                    let found = server.eval(HEADERS[principal], "n", Some(handle));
                    assert_eq!(found, (n.to_string(), false), "{what}");
                }
                for (session, n) in &things.sessions {
                    assert_eq!(value(&session.eval("n").0), n.to_string(), "{what}");
                }
            }
        }
    }
    assert!(things.iter().all(|things| !things.handles.is_empty() && !things.sessions.is_empty()));
}

#[test]
fn progress_goes_to_whoever_asked() {
    let (server, _, _folder) = server_for_two();
    let [ann, bob] = HEADERS.map(|headers| server.initialize(headers, "2025-06-18").expect("a session"));
    let mut stream = bob.listen("");
    assert_eq!(stream.receive_head().status, 200);
    let mut call = evaluation(1, "(loop [] (recur))");
    call["params"]["_meta"] = json!({"progressToken": "token"});
    call["params"]["arguments"]["limits"] = json!({"fuel": 1e12, "compute": "2500ms"});
    let mut theirs = server.connect();
    theirs.begin_post(&bob.head(), &evaluation(1, "(+ 1 2)"));
    assert!(!theirs.receive().body.contains("notifications/progress"));
    let answer = ann.post(&call);
    assert!(answer.body.contains("notifications/progress"), "{answer:?}");
    assert_eq!(server.request("DELETE", "/mcp", &bob.head(), b"").status, 202);
    assert!(!stream.rest().contains("notifications/progress"));
}
