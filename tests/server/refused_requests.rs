//! Requests over HTTP that are refused, or never arrive: the error names the cause and the next step, and quotes the
//! words of the server without secrets.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::mcp_client::{Announced, Client, announced, free_port, python, script};
use serde_json::{Map, Value, json};

/// Starts a server that refuses as its cases say.
fn refusing(cases: &Value, certificate: &[&Path]) -> Announced {
    announced(Command::new("python3").arg(script("refusing.py")).arg(cases.to_string()).args(certificate))
}

/// Returns why the server `s` does not start.
fn problem(server: &Value, variables: &[(&str, &str)]) -> String {
    let mut client = Client::start_with(&json!({"mcpServers": {"s": server}}), variables);
    let (_, message) = client.fails("(s/t)");
    message.strip_prefix("server `s` did not start: ").unwrap_or_else(|| panic!("{message}")).to_owned()
}

const TOKEN: &str = "sk-live-0123456789abcdef";
const HOST: &str = "; it is to be called by another host name than that of the `url`, or to be told ours";
const LOGIN: &str = "; log in with `lispbox login NAME`";

/// The cases: the response, and what is said about it.
fn refusals() -> Vec<(&'static str, Value, String)> {
    let json = |status: u16, body: Value| json!({"status": status, "body": body.to_string()});
    let text = |status: u16, body: &str| json!({"status": status, "body": body, "kind": "text/plain"});
    let with = |mut case: Value, name: &str, value: &str| {
        case["headers"] = json!({ name: value });
        case
    };
    let quota = json(429, json!({"error": {"message": "the quota of 1,000 calls is used up"}}));
    let scope = r#"Bearer error="insufficient_scope", scope="repo:write", error_description="more is needed""#;
    let page = "<html><head><title>Oops</title><style>h1 {}</style></head><h1>It&#39;s locked</h1></html>";
    let said = |status: u16, words: &str| format!("it answered with HTTP status {status}: \"{words}\"");
    let asks = |words: &str| format!("it asks for authorization (HTTP status 401){words}{LOGIN}");
    let redirected = |rest: &str| format!("it answered with HTTP status 302, a redirect {rest}");
    vec![
        (
            "version",
            json(400, json!({"message": "version 1 is no longer served"})),
            said(400, "version 1 is no longer served"),
        ),
        ("header", text(400, "missing X-Workspace"), said(400, "missing X-Workspace")),
        (
            "expired",
            json(401, json!({"error": "invalid_token", "error_description": "expired in May"})),
            asks(": \"expired in May\""),
        ),
        (
            "challenged",
            with(text(401, ""), "WWW-Authenticate", "Bearer error=\"invalid_token\""),
            asks(": \"invalid_token\""),
        ),
        ("both", with(json(401, json!({"detail": "revoked"})), "WWW-Authenticate", "Bearer"), asks(": \"revoked\"")),
        ("locked", text(401, ""), asks("")),
        (
            "scope",
            with(json(403, json!({"message": "read only"})), "WWW-Authenticate", scope),
            "it refused the request (HTTP status 403): \"read only\"; it requires the scope \"repo:write\"".to_owned(),
        ),
        ("forbidden", text(403, ""), "it refuses our authorization (HTTP status 403)".to_owned()),
        (
            "local",
            text(403, "Access is only allowed at localhost:8794"),
            "it refused the request (HTTP status 403): \"Access is only allowed at localhost:8794\"".to_owned() + HOST,
        ),
        ("misdirected", text(421, "Invalid Host header"), said(421, "Invalid Host header") + HOST),
        (
            "quota",
            with(quota, "Retry-After", "30"),
            said(429, "the quota of 1,000 calls is used up") + "; it asks to wait: 30 s",
        ),
        ("crashed", json(500, json!({"detail": "KeyError: 'API_KEY'"})), said(500, "KeyError: 'API_KEY'")),
        ("page", json!({"status": 500, "body": page, "kind": "text/html"}), said(500, "Oops It's locked")),
        ("empty", text(500, ""), "it answered with HTTP status 500".to_owned()),
        ("nowhere", text(302, ""), redirected("that does not say where to")),
        (
            "elsewhere",
            with(text(302, ""), "Location", "https://login.example/sso?code=hush"),
            redirected(
                "to \"https://login.example/sso\", which is not followed; if the server is there, that is its `url`",
            ),
        ),
        (
            "portal",
            json!({"status": 200, "body": "<title>Sign in</title>", "kind": "text/html"}),
            "its answer is not MCP: expected JSON or a stream of events, got `text/html`: \"Sign in\"".to_owned(),
        ),
    ]
}

#[test]
fn the_words_of_a_refusal_are_quoted_with_its_cause_and_the_next_step() {
    if python().is_none() {
        return;
    }
    let refusals = refusals();
    let mut cases = Map::new();
    for (name, case, _) in &refusals {
        cases.insert((*name).to_owned(), case.clone());
        let mut in_call = case.clone();
        in_call["on"] = json!("tools/call");
        cases.insert(format!("{name}-call"), in_call);
    }
    let peer = refusing(&Value::Object(cases.clone()), &[]);
    let server = |name: &String| (name.clone(), json!({"url": peer.url("http", name), "type": "http"}));
    let servers: Map<String, Value> = cases.keys().map(server).collect();
    let mut client = Client::start(&json!({ "mcpServers": servers }), &[]);
    for (name, case, expected) in &refusals {
        let (_, message) = client.fails(&format!("({name}/t)"));
        let expected = expected.replace("NAME", name);
        assert_eq!(message, format!("server `{name}` did not start: {expected}"));
        let (_, message) = client.fails(&format!("({name}-call/t)"));
        let said = expected.replace(&format!("login {name}"), &format!("login {name}-call"));
        let details = said.strip_prefix(&format!("it answered with HTTP status {}", case["status"]));
        let expected = match details {
            Some(details) if case["status"] != json!(400) => {
                format!("server `{name}-call` answered `{name}-call/t` with HTTP status {}{details}", case["status"])
            }
            _ => format!("server `{name}-call` cannot be used: {said}"),
        };
        assert_eq!(message, expected);
    }
}

#[test]
fn a_credential_that_is_refused_is_named_and_not_shown() {
    if python().is_none() {
        return;
    }
    let body = json!({"message": format!("{}{TOKEN} is not known", "x".repeat(285))}).to_string();
    let peer = refusing(&json!({"s": {"status": 401, "body": body}}), &[]);
    let headers = json!({"Authorization": format!("Bearer {TOKEN}")});
    for kind in ["http", "sse"] {
        let message = problem(&json!({"url": peer.url("http", "s"), "headers": headers, "type": kind}), &[]);
        assert!(message.ends_with("; it does not accept the `Authorization` in its `headers`"), "{message}");
        assert!(message.contains("x[redac") && !message.contains("sk-l"), "{message}");
    }
    let message = problem(&json!({"url": "http://127.0.0.1:1/", "headers": {"X-Key": format!("{TOKEN}\n")}}), &[]);
    let expected = "the value of header `X-Key` cannot be sent: there is a line break or a control character at its end; \
                    remove it, for example where the variable is set";
    assert_eq!(message, expected);
}

#[test]
fn a_connection_that_is_not_made_says_why() {
    if python().is_none() {
        return;
    }
    let cases = json!({
        "closed": {"raw": ""},
        "cut": {"raw": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"},
        "ssh": {"raw": "SSH-2.0-OpenSSH_9.6\r\n"},
    });
    let peer = refusing(&cases, &[]);
    let secure = "it does not speak TLS at this port: expected a `url` that begins with `http://`, or another port";
    for (scheme, name, expected) in [
        (
            "http",
            "closed",
            "it closed the connection before it answered; a server with TLS has a `url` that begins with `https://`",
        ),
        ("http", "cut", "it closed the connection in the middle of its answer"),
        ("http", "ssh", "its answer is not HTTP: expected a `url` that begins with `https://`, or another port"),
        ("https", "closed", secure),
    ] {
        assert_eq!(problem(&json!({"url": peer.url(scheme, name)}), &[]), expected, "{scheme} {name}");
    }
    let gone = format!("http://127.0.0.1:{}/mcp", free_port());
    assert_eq!(problem(&json!({ "url": gone }), &[]), "the connection was refused");
    let unknown = problem(&json!({"url": "http://no-such-host.invalid/mcp"}), &[]);
    assert_eq!(unknown, "the host was not found");
}

#[test]
fn a_proxy_that_does_not_connect_is_named() {
    if python().is_none() {
        return;
    }
    let without = "`NO_PROXY` lists the hosts that are reached without it";
    let dead = format!("http://user:{TOKEN}@127.0.0.1:{}", free_port());
    let secure = json!({"url": "https://mcp.example/mcp"});
    let plain = json!({"url": "http://mcp.example/mcp"});
    assert_eq!(
        problem(&secure, &[("HTTPS_PROXY", &dead)]),
        format!("the proxy of `HTTPS_PROXY` cannot be used: the connection was refused; {without}")
    );
    assert_eq!(
        problem(&plain, &[("HTTP_PROXY", &dead)]),
        format!("the connection was refused; requests go through the proxy of `HTTP_PROXY`; {without}")
    );
    for (status, expected) in
        [(407, "asks for a login, as in `http://USER:PASSWORD@HOST:PORT`"), (403, "refused to connect to it")]
    {
        // The path of a request to connect is the host.
        let peer = refusing(&json!({"mcp.example:443": {"status": status}}), &[]);
        let message = problem(&secure, &[("ALL_PROXY", &format!("http://127.0.0.1:{}", peer.port))]);
        assert_eq!(message, format!("the proxy of `ALL_PROXY` {expected}; {without}"));
    }
}

/// Creates a certificate and its key in a folder; false if there is no `openssl`.
pub fn certify(folder: &Path, name: &str, host: &str, constraints: &str) -> bool {
    let path = |kind: &str| folder.join(format!("{name}.{kind}"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", &format!("/CN={name}")]);
    command.args(["-addext", &format!("subjectAltName={host}"), "-addext", &format!("basicConstraints={constraints}")]);
    command.arg("-keyout").arg(path("key")).arg("-out").arg(path("pem"));
    command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[test]
fn a_certificate_that_is_not_trusted_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    if python().is_none() || !certify(folder.path(), "good", "IP:127.0.0.1", "critical,CA:FALSE") {
        eprintln!("SKIPPED: there is no openssl");
        return;
    }
    certify(folder.path(), "other", "DNS:other.example", "critical,CA:FALSE");
    certify(folder.path(), "authority", "IP:127.0.0.1", "critical,CA:TRUE");
    let trusting = path("good.pem").display().to_string();
    for (name, trusted, expected) in [
        (
            "good",
            path("other.pem").display().to_string(),
            "its certificate is of an issuer that this system does not trust; `SSL_CERT_FILE` names a file with others",
        ),
        (
            "other",
            path("other.pem").display().to_string(),
            "its certificate is for another host name than that of the `url`",
        ),
        (
            "authority",
            path("authority.pem").display().to_string(),
            "its certificate is that of an authority (`CA:TRUE`)",
        ),
    ] {
        let peer = refusing(&json!({}), &[&path(&format!("{name}.pem")), &path(&format!("{name}.key"))]);
        let message = problem(&json!({"url": peer.url("https", "s")}), &[("SSL_CERT_FILE", &trusted)]);
        assert!(message.contains(expected), "{name}: {message}");
    }
    let peer = refusing(&json!({}), &[&path("good.pem"), &path("good.key")]);
    let message = problem(&json!({"url": peer.url("http", "s")}), &[]);
    assert!(message.contains("`url` that begins with `https://`"), "{message}");
    let servers = json!({"mcpServers": {"s": {"url": peer.url("https", "s")}}});
    let mut client = Client::start_with(&servers, &[("SSL_CERT_FILE", &trusting)]);
    assert!(client.eval("(s/t)").text.starts_with("\"answered\""));
}

#[test]
fn a_notification_that_is_refused_does_not_end_a_start() {
    if python().is_none() {
        return;
    }
    let refused = |status: u16| json!({"status": status, "on": "notifications/initialized", "body": "no"});
    let peer = refusing(&json!({"a": refused(500), "b": refused(400), "c": refused(403)}), &[]);
    let server = |name: &str| json!({"url": peer.url("http", name)});
    let servers = json!({"mcpServers": {"a": server("a"), "b": server("b"), "c": server("c")}});
    let mut client = Client::start(&servers, &[]);
    for name in ["a", "b", "c"] {
        assert!(client.eval(&format!("({name}/t)")).text.starts_with("\"answered\""), "{name}");
    }
}

#[test]
fn a_port_that_accepts_and_says_nothing_runs_into_the_time_of_the_start() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", silent.local_addr().expect("an address"));
    let message = problem(&json!({"url": url, "start_timeout_seconds": 0.3}), &[]);
    assert_eq!(message, "it did not answer within 0.3 s (`start_timeout_seconds` allows more)");
}
