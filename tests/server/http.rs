//! The server over HTTP: both generations of the protocol, authorization, and input checks.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::http_client::{Server, handle, tokens_file};
use serde_json::json;

const ANN: &str = "Authorization: Bearer ann-ann-ann-ann-ann\r\n";
const BOB: &str = "Authorization: bearer bob-bob-bob-bob-bob\r\n";

#[test]
fn a_stateless_client_comes_back_by_its_handle() {
    let server = Server::start(&[], &[]);
    let (text, failed) = server.eval("", "(def prices [1 2 3]) (reduce + prices)", None);
    assert!(!failed && text.starts_with('6'), "{text}");
    let session = handle(&text);
    assert_eq!(server.eval("", "(count prices)", Some(&session)), ("3".to_owned(), false));
    let (text, failed) = server.eval("", "(count prices)", None);
    assert!(failed && !text.contains(&session), "an omitted session is a fresh one: {text}");
    let (text, failed) = server.call("", "lisp_env", json!({"session": session})).result();
    assert!(!failed && text.contains("prices"), "{text}");
}

#[test]
fn a_client_of_an_older_protocol_has_a_session_of_its_connection() {
    let server = Server::start(&[], &[]);
    let info = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let response =
        server.post("", &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello.clone()}));
    assert_eq!(response.message()["result"]["serverInfo"]["name"], "lispbox");
    let first = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    let kinds = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    assert_eq!(server.request("POST", "/mcp/", kinds, first.to_string().as_bytes()).status, 200);
    let connection = response.header("mcp-session-id").expect("older protocols have sessions").to_owned();
    let headers = format!("Mcp-Session-Id: {connection}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
    let noted = server.post(&headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(noted.status, 202);
    let eval = |id: i64, program: &str| {
        let params = json!({"name": "lisp_eval", "arguments": {"program": program}});
        server.post(&headers, &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).result()
    };
    let (text, failed) = eval(2, "(def prices 3)");
    assert!(!failed, "{text}");
    assert_eq!(eval(3, "prices"), ("3".to_owned(), false));
}

#[test]
fn each_token_is_a_principal_with_sessions_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = tokens_file(folder.path(), &json!({"ann": "${ANN}", "bob": "bob-bob-bob-bob-bob"}));
    let server = Server::start(&["--tokens", &file.to_string_lossy()], &[("ANN", "ann-ann-ann-ann-ann")]);
    let session = handle(&server.eval(ANN, "(def secret 5)", None).0);
    assert_eq!(server.eval(ANN, "secret", Some(&session)), ("5".to_owned(), false));
    let (text, failed) = server.eval(BOB, "secret", Some(&session));
    assert!(failed && text.contains("UnknownSession"), "{text}");
    let (text, failed) = server.eval(BOB, "secret", None);
    assert!(failed && !text.contains(&session), "nobody is pointed to another's session: {text}");
    let (none, wrong) = (
        r#"Bearer realm="lispbox""#,
        r#"Bearer realm="lispbox", error="invalid_token", error_description="the token is unknown or was revoked""#,
    );
    let twice = format!("{ANN}{BOB}");
    for (headers, status, challenge) in [
        ("", 401, none),
        ("Authorization: Basic YW5u\r\n", 401, none),
        ("Authorization: Bearer wrong-wrong-wrong-wrong\r\n", 401, wrong),
        ("Authorization: Bearer ann-ann-ann-ann-an\r\n", 401, wrong),
        ("Authorization: Bearer\r\n", 401, wrong),
        (
            &twice,
            400,
            r#"Bearer realm="lispbox", error="invalid_request", error_description="expected one Authorization header""#,
        ),
    ] {
        for refused in [
            server.call(headers, "lisp_eval", json!({"program": "1"})),
            server.request("GET", "/mcp", headers, b""),
            server.request("DELETE", "/mcp", headers, b""),
            server.request("GET", "/metrics", headers, b""),
        ] {
            assert_eq!((refused.status, refused.header("www-authenticate")), (status, Some(challenge)), "{headers}");
        }
    }
    assert_eq!(server.request("GET", "/healthz", "", b"").status, 200, "health needs no token");
}

#[test]
fn other_hosts_and_pages_are_refused() {
    let server = Server::start(&["--origin", "https://app.example.com:443"], &[]);
    let call = |headers: &str| server.call(headers, "lisp_eval", json!({"program": "(+ 1 2)"})).status;
    assert_eq!(call(""), 200);
    let own = format!("Host: {}\r\n", server.address);
    for hosts in [format!("{own}{own}"), format!("{own}Host: evil.example.com\r\n"), "Host:\r\n".to_owned()] {
        assert_eq!(call(&hosts), 400, "{hosts}");
        for path in ["/healthz", "/readyz", "/metrics", "/mcp"] {
            assert_eq!(server.request("GET", path, &hosts, b"").status, 400, "{path} {hosts}");
        }
    }
    let target = |host: &str| server.request("GET", &format!("http://{host}/healthz"), &own, b"").status;
    assert_eq!(target(&server.address.to_string()), 200);
    assert_eq!(target("evil.example.com"), 400, "the target says another host");
    assert_eq!(call("Host: evil.example.com\r\n"), 403, "a name that somebody lets point to this machine");
    assert_eq!(call("Origin: https://evil.example.com\r\n"), 403);
    assert_eq!(call("Origin: http://127.0.0.1:9\r\n"), 403, "also pages of this machine");
    assert_eq!(call("Origin: https://app.example.com\r\n"), 200);
    assert_eq!(call(&format!("Origin: http://{}\r\n", server.address)), 200, "what is at this address is the server");
}

#[test]
fn what_comes_in_is_bounded() {
    let server = Server::start(&[], &[]);
    let json_headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let post = |body: &[u8]| server.request("POST", "/mcp", json_headers, body);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let wide = format!("[{}0]", "0,".repeat(4_000_000));
    let large = vec![b' '; 17 << 20];
    assert_eq!(post(deep.as_bytes()).status, 400);
    assert!(post(wide.as_bytes()).body.contains("at most 1000000 are accepted"));
    assert_eq!(post(&large).status, 413);
    let chunked = |chunks: &str| {
        let mut connection = server.connect();
        let host = server.address;
        let head = format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{json_headers}Transfer-Encoding: chunked\r\n\r\n");
        connection.write(format!("{head}{chunks}").as_bytes());
        let response = connection.receive();
        (response.status, response.message()["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    for chunks in ["zz\r\n{}\r\n0\r\n\r\n", "2\r\n{}xx0\r\n\r\n", "-2\r\n{}\r\n0\r\n\r\n"] {
        let (status, message) = chunked(chunks);
        assert!(status == 400 && message.starts_with("the message cannot be read: "), "{chunks:?}: {status} {message}");
    }
    let (status, message) = chunked(&format!("{:x}\r\n{}\r\n0\r\n\r\n", (16 << 20) + 1, " ".repeat((16 << 20) + 1)));
    assert_eq!((status, message.as_str()), (413, "expected a message of at most 16777216 bytes"));
    let encoded = server.request("POST", "/mcp", &format!("{json_headers}Content-Encoding: gzip\r\n"), b"\x1f\x8b\x08");
    assert_eq!((encoded.status, encoded.header("accept-encoding")), (415, Some("identity")), "{encoded:?}");
    assert_eq!(
        encoded.message()["error"]["message"],
        "expected a message without `Content-Encoding`, got `gzip`: send it as it is"
    );
    let plain = format!("{json_headers}Content-Encoding: identity\r\n");
    assert_eq!(server.request("POST", "/mcp", &plain, b"{}").status, 400, "that is no encoding");
    assert!((400..500).contains(&server.request("PUT", "/mcp", "", b"").status));
    assert_eq!(server.request("GET", "/elsewhere", "", b"").status, 404);
    let peak = server.memory("VmHWM");
    assert!(peak.is_none_or(|bytes| bytes < 400 << 20), "{peak:?} bytes");
    assert_eq!(server.eval("", "(+ 1 2)", None), ("3".to_owned(), false), "it goes on");
}

#[test]
fn an_address_that_others_reach_needs_tokens() {
    let refused = |arguments: &[&str], token: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.arg("serve").args(arguments).env_remove("LISPBOX_TOKEN").stdin(Stdio::null());
        if let Some(token) = token {
            command.env("LISPBOX_TOKEN", token);
        }
        let output = command.output().expect("it runs");
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["--http", "0.0.0.0:0"], None).contains("needs tokens"));
    assert!(refused(&["--http", "127.0.0.1:0"], Some("short")).contains("at least 16 characters"));
    assert!(refused(&["--http", "nonsense"], None).contains("HOST:PORT"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokens.json");
    std::fs::write(&file, "[\"secret-secret-secret\"]").expect("written");
    let errors = refused(&["--http", "127.0.0.1:0", "--tokens", &file.to_string_lossy()], None);
    assert!(errors.contains("expected a JSON object from names to tokens") && !errors.contains("secret"), "{errors}");
}

#[test]
#[cfg(unix)]
fn it_ends_in_time_when_it_is_told_to() {
    let mut server = Server::start(&["--grace", "1s"], &[]);
    let program = json!({"program": "(loop [] (recur))", "limits": {"fuel": 1e12, "compute": 60}});
    let _running = server.begin("", "lisp_eval", program);
    // The program is running once the process has used CPU time.
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.process.id())).unwrap_or_default();
        let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect::<Vec<_>>();
        fields.get(11).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(u64::MAX)
    };
    let begun = Instant::now();
    while used() < 20 {
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not begin");
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let told = Instant::now();
    Command::new("kill").args(["-TERM", &server.process.id().to_string()]).status().expect("kill runs");
    assert!(server.process.wait().expect("a child").success());
    assert!(told.elapsed() < Duration::from_secs(8), "{:?}", told.elapsed());
}

#[test]
fn readiness_is_that_of_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let server = Server::start(&["--store", &url], &[]);
    let ready = server.request("GET", "/readyz", "", b"");
    assert_eq!((ready.status, ready.body.as_str()), (200, "ready\n"));
    let session = handle(&server.eval("", "(def n 1)", None).0);
    drop(server);
    let other = Server::start(&["--store", &url], &[]);
    assert_eq!(other.eval("", "n", Some(&session)), ("1".to_owned(), false));
}

#[test]
fn two_servers_on_one_store_count_exactly() {
    const SESSIONS: usize = 10;
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 30;
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let servers = [Server::start(&["--store", &url], &[]), Server::start(&["--store", &url], &[])];
    let handles: Vec<String> = (0..SESSIONS).map(|_| handle(&servers[0].eval("", "(def n 0)", None).0)).collect();
    let clients = [servers[0].client, servers[1].client];
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let handles = &handles;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // Alternates between the servers, as a round-robin load balancer does.
                    let server = clients[(client + round) % 2];
                    let session = &handles[(client * ROUNDS + round) % SESSIONS];
                    let (text, failed) = server.eval("", "(def n (inc n))", Some(session));
                    assert!(!failed, "{text}");
                }
            });
        }
    });
    let counted = |session| clients[0].eval("", "n", Some(session)).0.parse::<usize>().expect("a number");
    let total: usize = handles.iter().map(|session| counted(session.as_str())).sum();
    assert_eq!(total, CLIENTS * ROUNDS);
}

#[test]
#[cfg(target_os = "linux")]
fn a_client_that_goes_away_ends_its_evaluation() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let limits = ["--limit", "fuel=1e12", "--limit", "compute=60s", "--store", &url];
    let server = Server::start(&limits, &[]);
    let session = handle(&server.eval("", "(def n 1)", None).0);
    let store = lispbox::store::open(&url).expect("it opens");
    let is_leased = || store.list().expect("a list")[0].is_leased;
    let begun = Instant::now();
    let until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_secs(40), "it did not come to pass");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    };
    let gone = server.begin("", "lisp_eval", json!({"program": "(loop [] (recur))", "session": session}));
    until(&is_leased);
    drop(gone);
    until(&|| !is_leased());
    assert_eq!(server.eval("", "n", Some(&session)), ("1".to_owned(), false));
}

#[test]
fn a_page_of_an_allowed_origin_can_use_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = tokens_file(folder.path(), &json!({"ann": "${ANN}"}));
    let arguments = ["--origin", "https://app.example.com:443", "--tokens", &file.to_string_lossy()];
    let server = Server::start(&arguments, &[("ANN", "ann-ann-ann-ann-ann")]);
    let page = "Origin: https://app.example.com\r\n";
    let asks = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type,mcp-session-id\r\n";
    for path in ["/mcp", "/mcp/"] {
        let allowed = server.request("OPTIONS", path, &format!("{page}{asks}"), b"");
        let headers =
            ["origin", "methods", "headers"].map(|name| allowed.header(&format!("access-control-allow-{name}")));
        let expected = ["https://app.example.com", "GET, POST, DELETE", "content-type,mcp-session-id"].map(Some);
        assert_eq!((allowed.status, headers), (204, expected), "a preflight has no token");
    }
    for response in [
        server.call(&format!("{ANN}{page}"), "lisp_eval", json!({"program": "1"})),
        server.call(page, "lisp_eval", json!({"program": "1"})),
    ] {
        assert_eq!(response.header("access-control-allow-origin"), Some("https://app.example.com"));
        let exposed = response.header("access-control-expose-headers").expect("exposed");
        assert!(exposed.starts_with("Mcp-Session-Id, "), "{exposed}");
        assert_eq!(response.header("vary"), Some("Origin"));
    }
    let other = "Origin: https://evil.example.com\r\n";
    let refused = server.request("OPTIONS", "/mcp", &format!("{other}{asks}"), b"");
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
    let refused = server.call(&format!("{ANN}{other}"), "lisp_eval", json!({"program": "1"}));
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
    assert!(refused.body.contains("`--origin`"), "{}", refused.body);
    let own = server.call(ANN, "lisp_eval", json!({"program": "1"}));
    assert_eq!(own.header("access-control-allow-origin"), None, "no page asked");
}

#[test]
fn a_client_that_does_not_name_event_streams_is_answered_in_json() {
    let server = Server::start(&[], &[]);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    for accept in ["", "Accept: */*\r\n", "Accept: application/json\r\n"] {
        let headers = format!("Content-Type: application/json\r\n{accept}");
        let post = |headers: &str, message: &serde_json::Value| {
            server.request("POST", "/mcp", headers, message.to_string().as_bytes())
        };
        let begun = post(&headers, &hello);
        assert_eq!((begun.status, begun.header("content-type")), (200, Some("application/json")), "{accept}");
        assert_eq!(begun.message()["result"]["serverInfo"]["name"], "lispbox");
        let session = begun.header("mcp-session-id").expect("a session").to_owned();
        let headers = format!("{headers}Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
        post(&headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        // Its progress is reported before it ends.
        let program = "(reduce + (range 3000000))";
        let params = json!({"name": "lisp_eval", "arguments": {"program": program}, "_meta": {"progressToken": 7}});
        let reply = post(&headers, &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
        assert_eq!(reply.header("content-type"), Some("application/json"), "{accept}");
        assert!(reply.result().0.starts_with("4499998500000"), "{}", reply.body);
    }
    let refused = server.request("POST", "/mcp", "Content-Type: application/json\r\nAccept: text/html\r\n", b"{}");
    assert_eq!(refused.status, 406);
}

#[test]
fn a_request_that_lacks_something_is_told_what() {
    let server = Server::start(&[], &[]);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}}});
    let refused = server.post("", &message);
    let expected = "`initialize` needs `params.clientInfo` (an object with `name` and `version`)";
    assert_eq!((refused.status, &refused.message()["error"]["message"]), (400, &json!(expected)));
    let host = server.request("POST", "/mcp", "Host: box.example.com:80\r\n", b"{}");
    assert_eq!(host.status, 403, "{}", host.body);
    assert!(
        host.body.contains("`box.example.com:80` is no name of this server; start it with `--host box.example.com`")
    );
}
