//! The approvals page of the HTTP server: sign-in, forms, and a real browser.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;

use lispbox::store::{Key, open};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http_client::{Response, Server, Session, tokens_file};
use crate::mcp_client::{Answer, installed, peer, script, until};

const OLGA: &str = "olga-olga-olga-olga";
const OTTO: &str = "otto-otto-otto-otto";
const ANN: &str = "ann-ann-ann-ann-ann";
const BOB: &str = "bob-bob-bob-bob-bob";

/// Arguments that would be harmful as HTML, or that hide characters.
const HOSTILE: &str =
    "<script>document.title='owned'</script><img src=x onerror=\"window.owned=1\">\u{202e}txt\u{200b}";

/// A server with a store, principals and operators, and a tool that appends a line to the file `sent`.
struct Scene {
    folder: TempDir,
    store: String,
    server: Server,
}

/// The browser of an operator.
struct Browser<'s> {
    server: &'s Server,
    cookie: String,
    key: String,
}

fn file(folder: &Path, name: &str, content: &Value) -> PathBuf {
    let inner = folder.join(name);
    std::fs::create_dir_all(&inner).expect("created");
    tokens_file(&inner, content)
}

fn serving(folder: &Path, store: &str) -> Server {
    let call = |script: &str| {
        let parameters = json!({"properties": {"to": {"type": "string"}, "text": {}}, "required": ["to"]});
        json!({"command": "sh", "args": ["-c", script, folder.join("sent"), "{to}", folder.join("go")], "parameters": parameters})
    };
    let configuration = json!({
        "local": {
            "mail/send": call("printf '%s\\n' \"$1\" >> \"$0\"; printf 'sent to %s' \"$1\""),
            "mail/hold": call("printf '%s\\n' \"$1\" >> \"$0\"; while [ ! -e \"$2\" ]; do sleep 0.02; done"),
        },
        "policy": {"allow": ["mail/hold"], "ask": ["mail/send"]},
    });
    let servers = folder.join("servers.json");
    std::fs::write(&servers, configuration.to_string()).expect("written");
    let principals = file(folder, "principals", &json!({"ann": ANN, "bob": BOB}));
    let operators = file(folder, "operators", &json!({"olga": OLGA, "otto": OTTO}));
    let [servers, principals, operators, cache] =
        [servers, principals, operators, folder.join("cache")].map(|path| path.display().to_string());
    let arguments = ["--config", &servers, "--tokens", &principals, "--approvals-tokens", &operators, "--store", store];
    Server::start(&arguments, &[("LISPBOX_CACHE", &cache)])
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
        let server = serving(folder.path(), &store);
        Scene { folder, store, server }
    }

    fn call(&self, arguments: Value) -> Answer {
        let headers = format!("Authorization: Bearer {ANN}\r\n");
        Answer::of(&self.server.call(&headers, "lisp_eval", arguments).message())
    }

    /// Evaluates a program that is suspended; returns its run.
    fn run(&self, program: &str) -> String {
        let answer = self.call(json!({ "program": program }));
        let (_, rest) = answer.text.split_once("{\"run\": \"").unwrap_or_else(|| panic!("no run: {}", answer.text));
        rest.split('"').next().expect("a run").to_owned()
    }

    /// Suspends a program that sends a mail with a text, which is given as data.
    fn mail(&self, to: &str, text: &Value) -> String {
        let program = "(try (mail/send {:to (:to data) :text (:text data)}) (catch ToolDenied e (str \"denied: \" (ex-message e))))";
        let answer = self.call(json!({"program": program, "data": {"to": to, "text": text}}));
        let (_, rest) = answer.text.split_once("{\"run\": \"").unwrap_or_else(|| panic!("no run: {}", answer.text));
        rest.split('"').next().expect("a run").to_owned()
    }

    fn sent(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("sent")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Makes a run as old as if it had been suspended eight days ago.
    fn let_expire(&self, run: &str) {
        let store = open(&self.store).expect("a store");
        let key = Key { principal: "ann".to_owned(), handle: run.to_owned() };
        let lease = store.lease(&key, "the test").expect("it is free");
        let stored = store.read(&key, 0).expect("it is there").expect("a text");
        let (before, after) = stored.text.split_once("\"since\":").expect("a time");
        let end = after.find(|c: char| !c.is_ascii_digit()).expect("an end");
        let since: u64 = after[..end].parse().expect("a number");
        let text = format!("{before}\"since\":{}{}", since - 8 * 24 * 60 * 60, &after[end..]);
        store.write(&key, &lease, stored.version, &text, &["lispbox/run".to_owned()]).expect("written");
        store.release(&key, &lease).expect("released");
    }

    fn browser(&self, token: &str) -> Browser<'_> {
        Browser::sign_in(&self.server, token)
    }
}

/// The headers of a form that a browser sends from the page itself.
fn own(server: &Server) -> String {
    let origin = server.url().replace("/mcp", "");
    format!("Origin: {origin}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n")
}

fn encoded(fields: &[(&str, &str)]) -> Vec<u8> {
    let escape = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
    pairs.join("&").into_bytes()
}

fn try_to_sign_in(server: &Server, token: &str) -> Response {
    server.request("POST", "/approvals/sign-in", &own(server), &encoded(&[("token", token)]))
}

impl Browser<'_> {
    fn sign_in<'s>(server: &'s Server, token: &str) -> Browser<'s> {
        let response = try_to_sign_in(server, token);
        assert_eq!((response.status, response.header("location")), (303, Some("/approvals")), "{response:?}");
        let cookie = response.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
        let mut browser = Browser { server, cookie, key: String::new() };
        let page = browser.get("/approvals").body;
        let (_, rest) = page.split_once("name=\"key\" value=\"").expect("a form");
        browser.key = rest.split('"').next().expect("a value").to_owned();
        browser
    }

    fn get(&self, path: &str) -> Response {
        self.server.request("GET", path, &format!("Cookie: {}\r\n", self.cookie), b"")
    }

    fn show(&self, run: &str) -> Response {
        self.get(&format!("/approvals/runs/{run}"))
    }

    fn send(&self, path: &str, headers: &str, fields: &[(&str, &str)]) -> Response {
        self.server.request("POST", path, &format!("Cookie: {}\r\n{headers}", self.cookie), &encoded(fields))
    }

    fn decide(&self, run: &str, action: &str, calls: &str, more: &[(&str, &str)]) -> Response {
        let fields = [&[("key", &*self.key), ("action", action), ("calls", calls)], more].concat();
        self.send(&format!("/approvals/runs/{run}/decide"), &own(self.server), &fields)
    }
}

#[test]
fn a_call_that_an_operator_approves_is_made_once() {
    let scene = Scene::new();
    let olga = scene.browser(OLGA);
    let empty = olga.get("/approvals");
    assert!(empty.status == 200 && empty.body.contains("No program waits for a decision."), "{empty:?}");
    let run = scene.mail("ann@example.org", &json!(HOSTILE));
    let listed = olga.get("/approvals").body;
    for expected in [&run, "1 call of <bdi>mail/send</bdi>", "<dd><bdi>ann</bdi></dd>", "in 6 days <span"] {
        assert!(listed.contains(expected), "{expected}: {listed}");
    }
    let shown = olga.show(&run);
    assert_eq!(shown.status, 200);
    for expected in ["<bdi>to</bdi>", "ann@example.org", "Asked because <bdi>`policy.ask` of ", "(try (mail/send"] {
        assert!(shown.body.contains(expected), "{expected}: {}", shown.body);
    }
    // Nothing of it is markup, and nothing is hidden.
    assert!(
        shown.body.contains(
            "&lt;script&gt;document.title='owned'&lt;/script&gt;&lt;img src=x onerror=&quot;window.owned=1&quot;&gt;<b \
             class=\"unseen\">\\u{202e}</b>txt<b class=\"unseen\">\\u{200b}</b>"
        ),
        "{}",
        shown.body
    );
    assert!(!shown.body.contains("<script") && !shown.body.contains("<img") && !shown.body.contains('\u{202e}'));

    let done = olga.decide(&run, "approve", "1.1", &[]);
    assert_eq!((done.status, done.header("location")), (303, Some(&*format!("/approvals/runs/{run}"))), "{done:?}");
    let decided = olga.show(&run).body;
    assert!(decided.contains("No call is open: the program goes on when its client continues it."), "{decided}");
    assert!(decided.contains("<bdi>approved</bdi>") && decided.contains("<bdi>the approvals page, by olga</bdi>"));
    assert!(scene.sent().is_empty(), "the client continues it");
    for _ in 0..2 {
        assert!(scene.call(json!({ "run": run })).text.starts_with("\"sent to ann@example.org\""));
    }
    assert_eq!(scene.sent(), ["ann@example.org"]);
    let ended = olga.show(&run).body;
    assert!(ended.contains("The program has ended") && ended.contains("by olga"), "{ended}");
    let late = olga.decide(&run, "deny", "1.1", &[]);
    assert!(late.status == 409 && late.body.contains("the run has ended"), "{late:?}");
}

#[test]
fn an_operator_approves_the_plan_of_a_program() {
    let scene = Scene::new();
    let olga = scene.browser(OLGA);
    let program = "(mapv (fn [to] (mail/send {:to to})) [\"a@x.org\" \"b@x.org\"])";
    let answer = scene.call(json!({"program": program, "plan": true}));
    let (_, rest) = answer.text.split_once("{\"run\": \"").unwrap_or_else(|| panic!("no run: {}", answer.text));
    let run = rest.split('"').next().expect("a run").to_owned();
    assert!(olga.get("/approvals").body.contains("A plan with <bdi>mail/send</bdi>"));
    let shown = olga.show(&run).body;
    for expected in [
        "The program has not begun: it waits for a decision on its plan, to which it is held.",
        "The program plans <strong>at most 2 calls</strong>, with any arguments.",
        "The program may make these calls, and is stopped before any other.",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("The call is made once"), "{shown}");
    assert_eq!(olga.decide(&run, "approve", "1.1", &[]).status, 303);
    assert!(scene.call(json!({ "run": run })).text.starts_with("[\"sent to a@x.org\" \"sent to b@x.org\"]"));
    assert_eq!(scene.sent(), ["a@x.org", "b@x.org"]);
}

#[test]
fn the_page_has_its_own_tokens_and_its_sign_ins_end() {
    let scene = Scene::new();
    let server = &scene.server;
    let run = scene.mail("ann@example.org", &json!("hello"));
    // Without a sign-in.
    let path = format!("/approvals/runs/{run}");
    let first = server.request("GET", &path, "", b"");
    assert_eq!((first.status, first.header("location")), (303, Some(&*format!("/approvals/sign-in?run={run}"))));
    let bearer = format!("Authorization: Bearer {OLGA}\r\n");
    assert_eq!(server.request("GET", &path, &bearer, b"").status, 303, "the cookie alone opens it");
    let form = server.request("POST", &format!("{path}/decide"), &own(server), &encoded(&[("action", "approve")]));
    assert_eq!(form.status, 403);
    assert!(server.request("GET", "/approvals/sign-in", "", b"").body.contains("Operator token"));
    // A principal's token does not open the page, and an operator's opens nothing else.
    let refused = try_to_sign_in(server, ANN);
    assert!(refused.status == 403 && refused.header("set-cookie").is_none(), "{refused:?}");
    assert!(refused.body.contains("No operator has this token."));
    assert_eq!(server.call(&bearer, "lisp_eval", json!({"program": "1"})).status, 401);

    let response = try_to_sign_in(server, OLGA);
    let cookie = response.header("set-cookie").expect("a cookie").to_owned();
    let (value, attributes) = cookie.split_once("; ").expect("attributes");
    assert_eq!(attributes, "Path=/approvals; Max-Age=28800; HttpOnly; SameSite=Strict");
    assert!(!value.contains("olga") && !response.body.contains(OLGA));
    let proxied = format!("{}Host: box.localhost\r\n", own(server));
    assert_eq!(server.request("POST", "/approvals/sign-in", &proxied, b"").status, 403, "an unknown name");
    let https = own(server).replace("http://", "https://");
    let secure = server.request("POST", "/approvals/sign-in", &https, &encoded(&[("token", OLGA)]));
    assert!(secure.header("set-cookie").expect("a cookie").ends_with("; SameSite=Strict; Secure"));

    // Another instance with the same store knows the sign-in, until it ends there.
    let olga = scene.browser(OLGA);
    let second = serving(scene.folder.path(), &scene.store);
    let there = Browser { server: &second, cookie: olga.cookie.clone(), key: olga.key.clone() };
    assert_eq!(there.show(&run).status, 200);
    let out = there.send("/approvals/sign-out", &own(&second), &[("key", &there.key)]);
    let gone = "lispbox-approvals=; Path=/approvals; Max-Age=0; HttpOnly; SameSite=Strict";
    assert_eq!((out.status, out.header("set-cookie")), (303, Some(gone)));
    assert_eq!(olga.show(&run).status, 303, "it has ended for both");

    // A token that is revoked ends its sign-ins.
    let (olga, otto) = (scene.browser(OLGA), scene.browser(OTTO));
    file(scene.folder.path(), "operators", &json!({ "otto": OTTO }));
    until(|| olga.show(&run).status == 303);
    assert_eq!(otto.show(&run).status, 200);
    assert_eq!(try_to_sign_in(server, OLGA).status, 403);
    // Attempts are limited.
    let statuses: Vec<u16> = (0..10).map(|_| try_to_sign_in(server, "guess-guess-guess").status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(otto.show(&run).status, 200);
}

#[test]
fn a_form_of_another_site_changes_nothing() {
    let scene = Scene::new();
    let (olga, otto) = (scene.browser(OLGA), scene.browser(OTTO));
    let run = scene.mail("ann@example.org", &json!("hello"));
    let path = format!("/approvals/runs/{run}/decide");
    let own = own(&scene.server);
    let approve = |headers: &str, key: &str| {
        olga.send(&path, headers, &[("key", key), ("action", "approve"), ("calls", "1.1")]).status
    };
    let changed = |from: &str, to: &str| own.replace(from, to);
    let origin = format!("Origin: {}", scene.server.url().replace("/mcp", ""));
    for headers in [
        changed(&origin, "Origin: https://evil.example.com"),
        changed(&origin, "Origin: null"),
        changed("Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"),
        changed("Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: same-site"),
        changed(&format!("{origin}\r\nSec-Fetch-Site: same-origin\r\n"), ""),
        format!("{own}Host: evil.example.com\r\n"),
    ] {
        assert_eq!(approve(&headers, &olga.key), 403, "{headers}");
    }
    for key in ["", "x", &otto.key] {
        assert_eq!(approve(&own, key), 403, "the form of another sign-in");
    }
    assert_eq!(approve(&changed("x-www-form-urlencoded", "json"), &olga.key), 415);
    assert_eq!(olga.get(&path).status, 405, "only forms change something");
    assert_eq!(olga.decide(&run, "burn", "1.1", &[]).status, 400);
    assert!(olga.show(&run).body.contains("The program waits for a decision on 1 call."));
    let foreign = scene.server.request("GET", "/approvals", "Host: evil.example.com\r\n", b"");
    assert_eq!(foreign.status, 403, "{foreign:?}");
    for path in ["/approvals", "/approvals/sign-in", "/approvals/style.css", &path, "/approvals/runs/x"] {
        let response = olga.get(path);
        let policy = response.header("content-security-policy").unwrap_or_else(|| panic!("{path}: {response:?}"));
        assert!(policy.starts_with("default-src 'none'; style-src 'self'; ") && !policy.contains("unsafe"));
        assert!(policy.contains("frame-ancestors 'none'"));
        assert_eq!(response.header("x-frame-options"), Some("DENY"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(response.header("referrer-policy"), Some("same-origin"));
    }
    assert_eq!(approve(&own, &olga.key), 303);
}

#[test]
fn of_two_operators_one_decides_and_the_other_is_told() {
    let scene = Scene::new();
    let operators = [scene.browser(OLGA), scene.browser(OTTO)];
    let run = scene.mail("ann@example.org", &json!("hello"));
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let decide = |(operator, action): (&Browser<'_>, &'static str)| operator.decide(&run, action, "1.1", &[]);
        let (first, second) = (&operators[0], &operators[1]);
        let first = scope.spawn(move || decide((first, "approve")));
        let second = scope.spawn(move || decide((second, "deny")));
        [first, second].into_iter().map(|operator| operator.join().expect("it ends")).collect()
    });
    let winner = answers.iter().position(|answer| answer.status == 303).expect("one decides");
    let (loser, name) = (&answers[1 - winner], ["olga", "otto"][winner]);
    assert_eq!(loser.status, 409);
    for expected in
        ["has been decided on already", &format!("the approvals page, by {name}"), "less than a minute ago <span"]
    {
        assert!(loser.body.contains(expected), "{expected}: {}", loser.body);
    }
    let done = scene.call(json!({ "run": run })).text;
    let expected = ["\"sent to ann@example.org\"", "\"denied: "][winner];
    assert!(done.starts_with(expected), "{done}");
}

#[test]
fn all_calls_that_were_shown_are_approved_or_none() {
    let scene = Scene::new();
    let (olga, otto) = (scene.browser(OLGA), scene.browser(OTTO));
    let program = "(pmap (fn [n] (try (mail/send {:to (str n)}) (catch ToolDenied e (ex-message e)))) (range 3))";
    let run = scene.run(program);
    let shown = olga.show(&run).body;
    assert!(shown.contains("value=\"1.1,1.2,1.3\"") && shown.contains("Approve all 3 calls"), "{shown}");
    assert_eq!(otto.decide(&run, "deny", "1.2", &[("reason", "not to <him>")]).status, 303);
    for (action, calls) in
        [("approve-all", "1.1,1.2,1.3"), ("approve-all", "1.1"), ("deny-all", "1.1,1.2,1.3"), ("cancel", "1.1,1.2,1.3")]
    {
        let late = olga.decide(&run, action, calls, &[]);
        assert!(late.status == 409 && late.body.contains("no longer those that were shown"), "{late:?}");
        assert!(late.body.contains("denied: not to &lt;him&gt;") && late.body.contains("by otto"), "{}", late.body);
    }
    assert_eq!(olga.decide(&run, "approve-all", "1.1,1.3", &[]).status, 303);
    let done = scene.call(json!({ "run": run })).text;
    assert!(done.starts_with("(\"sent to 0\" ") && done.contains("not to <him>"), "{done}");
    assert_eq!(scene.sent().len(), 2);

    let run = scene.run(program);
    assert_eq!(olga.decide(&run, "deny-all", "1.1,1.2,1.3", &[("reason", "all of it")]).status, 303);
    let denied = scene.call(json!({ "run": run })).text;
    assert_eq!(denied.matches("all of it").count(), 3, "{denied}");

    let run = scene.run(program);
    assert_eq!(olga.decide(&run, "cancel", "1.1,1.2,1.3", &[]).status, 303);
    let cancelled = olga.show(&run).body;
    assert!(cancelled.contains("cancelled while it waited (the approvals page, by olga)"), "{cancelled}");
    let late = otto.decide(&run, "approve", "1.1", &[]);
    assert!(late.status == 409 && late.body.contains("(the approvals page, by olga)"), "{late:?}");
    assert!(scene.call(json!({ "run": run })).text.contains("the program was cancelled while it waited"));
    assert_eq!(scene.sent().len(), 2);
}

#[test]
fn an_operator_gives_a_grant_with_an_approval_and_revokes_it() {
    let scene = Scene::new();
    let olga = scene.browser(OLGA);
    let run = scene.mail("a@example.org", &json!("1"));
    let wrong = olga.decide(&run, "approve", "1.1", &[("grant", "forever")]);
    assert!(wrong.status == 400 && wrong.body.contains("no such choice of later calls"), "{wrong:?}");
    assert_eq!(olga.decide(&run, "approve", "1.1", &[("grant", "five")]).status, 303);
    scene.call(json!({ "run": run }));
    let next = scene.call(json!({"program": "(mail/send {:to \"b@example.org\"})"}));
    assert!(next.text.starts_with("\"sent to b@example.org\""), "{}", next.text);

    let listed = olga.get("/approvals/grants").body;
    for expected in ["<bdi>mail/send</bdi>", "<dd>4</dd>", "<bdi>the approvals page, by olga</bdi>"] {
        assert!(listed.contains(expected), "no {expected} in {listed}");
    }
    let (_, rest) = listed.split_once("name=\"grant\" value=\"").expect("a form");
    let grant = rest.split('"').next().expect("a grant").to_owned();
    let fields = [("key", &*olga.key), ("grant", &*grant)];
    let foreign = olga.send("/approvals/grants", &own(&scene.server), &[("key", "x"), ("grant", &grant)]);
    assert_eq!(foreign.status, 403, "{foreign:?}");
    assert_eq!(olga.send("/approvals/grants", &own(&scene.server), &fields).status, 303);
    let again = olga.send("/approvals/grants", &own(&scene.server), &fields);
    assert!(again.status == 409 && again.body.contains("There is no such grant"), "{again:?}");
    assert!(olga.get("/approvals/grants").body.contains("There are no grants."));
    let asked = scene.call(json!({"program": "(mail/send {:to \"c@example.org\"})"}));
    assert!(asked.text.starts_with("Suspended: "), "{}", asked.text);
    assert_eq!(scene.sent(), ["a@example.org", "b@example.org"]);
}

#[test]
fn a_run_that_has_expired_or_never_existed_says_so() {
    let scene = Scene::new();
    let olga = scene.browser(OLGA);
    let run = scene.mail("ann@example.org", &json!("hello"));
    scene.let_expire(&run);
    for response in [olga.show(&run), olga.decide(&run, "approve", "1.1", &[])] {
        assert!(response.status == 410 && response.body.contains("The run has expired"), "{response:?}");
    }
    assert!(olga.get("/approvals").body.contains("No program waits for a decision."));
    for path in ["nosuchrun", "..%2fstyle.css", "%3Cscript%3E"] {
        let response = olga.show(path);
        assert!(response.status == 404 && !response.body.contains("<script"), "{response:?}");
    }
    assert_eq!(olga.decide("nosuchrun", "approve", "1.1", &[]).status, 404);
    assert!(scene.sent().is_empty());
}

#[test]
fn long_values_are_read_in_parts() {
    let scene = Scene::new();
    let olga = scene.browser(OLGA);
    let text = format!("begin {}é{} the end", "x".repeat(65_529), "<".repeat(70_000));
    let run = scene.mail("ann@example.org", &json!(text));
    let shown = olga.show(&run).body;
    assert!(
        shown.contains("text, 135.5 kB") && shown.contains("This is the beginning, 65.5 kB of 135.5 kB."),
        "{shown}"
    );
    assert!(shown.len() < 100_000);
    let (_, rest) = shown
        .split_once("Read all of it")
        .map(|(before, _)| before.rsplit_once("href=\"").expect("a link"))
        .expect("a link");
    let address = rest.split('"').next().expect("an address").to_owned();
    let parts: Vec<String> = (1..=3)
        .map(|part| {
            let page = olga.get(&address.replace("part=1", &format!("part={part}")));
            assert!(page.status == 200 && page.body.contains(&format!("Part {part} of 3, ")), "{}", page.status);
            let (_, rest) = page.body.split_once("<pre class=\"text whole\">").expect("a text");
            rest.split("</pre>").next().expect("an end").replace("&lt;", "<")
        })
        .collect();
    assert_eq!(parts.concat(), text);
    assert_eq!(olga.get(&format!("/approvals/runs/{run}/text/9.9.9")).status, 404);
    assert_eq!(olga.get(&format!("/approvals/runs/{run}/text/program")).status, 200);
}

#[test]
fn an_operator_says_whether_a_call_happened() {
    let mut scene = Scene::new();
    let program = "(mail/send {:to \"a\"}) (def b (mail/hold {:to \"b\"})) (str \"found \" (:id b))";
    let run = scene.run(program);
    assert_eq!(scene.browser(OLGA).decide(&run, "approve", "1.1", &[]).status, 303);
    let headers = format!("Authorization: Bearer {ANN}\r\n");
    let _waiting = scene.server.begin(&headers, "lisp_eval", json!({ "run": run }));
    until(|| scene.sent() == ["a", "b"]);
    {
        let olga = scene.browser(OLGA);
        let running = olga.show(&run).body;
        assert!(running.contains("A server process evaluates the program.") && !running.contains("It happened"));
    }
    scene.server.process.kill().expect("it is ours");
    scene.server.process.wait().expect("it is ours");
    std::fs::write(scene.folder.path().join("go"), "").expect("written");
    scene.server = serving(scene.folder.path(), &scene.store);
    let olga = scene.browser(OLGA);
    // The lease of the dead process expires first.
    until(|| olga.show(&run).body.contains("It is not known whether this call happened"));
    let shown = olga.show(&run).body;
    let (_, rest) = shown.split_once("id=\"result-").expect("a form");
    let call = rest.split('"').next().expect("a number").to_owned();
    let refused = olga.decide(&run, "approve", &call, &[]);
    assert!(refused.status == 409 && refused.body.contains("may have happened already"), "{refused:?}");
    let returned = olga.decide(&run, "happened", &call, &[("result", "{\"id\": <7>")]);
    assert_eq!(returned.status, 400);
    assert!(returned.body.contains("expected the result of the call as JSON"), "{}", returned.body);
    assert!(returned.body.contains("{&quot;id&quot;: &lt;7&gt;</textarea>"), "{}", returned.body);
    assert_eq!(olga.decide(&run, "happened", &call, &[("result", "{\"id\": 7}")]).status, 303);
    assert!(olga.show(&run).body.contains("<bdi>it happened</bdi>"));
    let done = scene.call(json!({ "run": run }));
    assert!(done.text.starts_with("\"sent to a\"\n\"found 7\"\n"), "{}", done.text);
    assert_eq!(scene.sent(), ["a", "b"]);
}

#[test]
fn operators_need_a_store_and_tokens_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let operators = file(folder.path(), "operators", &json!({ "olga": OLGA })).display().to_string();
    let same = file(folder.path(), "principals", &json!({ "ann": OLGA })).display().to_string();
    let bounded = json!({"olga": {"token": OLGA, "sessions": 5}});
    let bounded = file(folder.path(), "bounded", &bounded).display().to_string();
    let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
    let refusal = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        let output = command.arg("serve").args(arguments).env_remove("LISPBOX_TOKEN").output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let http = ["--http", "127.0.0.1:0", "--approvals-tokens"];
    assert!(refusal(&[&http[..], &[&operators]].concat()).contains("--store <URL>"));
    assert!(refusal(&["--approvals-tokens", &operators, "--store", &store]).contains("--http <ADDRESS>"));
    let shared = refusal(&[&http[..], &[&operators, "--store", &store, "--tokens", &same]].concat());
    assert!(shared.contains("the operator `olga` has the token of the principal `ann`"), "{shared}");
    let bounded = refusal(&[&http[..], &[&bounded, "--store", &store]].concat());
    assert!(bounded.contains("`olga`: expected a token alone"), "{bounded}");
}

#[test]
fn a_card_over_http_is_for_the_runs_of_its_principal() {
    let scene = Scene::new();
    let able = json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}});
    let session = |token: &str| {
        let headers = format!("Authorization: Bearer {token}\r\n");
        scene.server.initialize_with(&headers, "2025-11-25", &able).expect("a session")
    };
    let (ann, bob) = (session(ANN), session(BOB));
    let call = |session: &Session, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        session.post(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})).message()
    };
    let waits = call(&ann, "lisp_eval", json!({"program": "(mail/send {:to \"ann@example.org\"})"}));
    let text = Answer::of(&waits).text;
    let (_, rest) = text.split_once("{\"run\": \"").unwrap_or_else(|| panic!("no run: {text}"));
    let run = rest.split('"').next().expect("a run");
    assert!(text.contains("on a card"), "{text}");

    let shown = call(&ann, "lisp_approve", json!({"run": run}));
    let secret = &shown["result"]["_meta"]["lispbox/card"]["secret"];
    assert!(secret.is_string(), "{shown}");
    // Another principal learns nothing of the run, and has no use for the secret.
    let foreign = call(&bob, "lisp_approve", json!({"run": run}));
    assert!(foreign["result"]["isError"] == true && !foreign.to_string().contains("ann@example.org"), "{foreign}");
    let approve = json!({"secret": secret, "form": {"action": "approve", "calls": "1.1"}});
    assert_eq!(call(&bob, "lisp_decide", approve.clone())["result"]["isError"], true);
    assert!(Answer::of(&call(&ann, "lisp_eval", json!({"run": run}))).text.contains("waits until a person"));
    let decided = call(&ann, "lisp_decide", approve);
    assert!(decided.to_string().contains("a card in the client of ann"), "{decided}");
    assert!(Answer::of(&call(&ann, "lisp_eval", json!({"run": run}))).text.starts_with("\"sent to ann@example.org"));
    assert_eq!(scene.sent(), ["ann@example.org"]);
}

/// The browser of Debian, which `.ci/run` installs.
fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join("chromium")).find(|file| file.exists());
    peer("chromium", found)
}

/// Operators in a real browser, on a desktop and on a phone. `LISPBOX_SCREENSHOTS` names a folder for pictures.
#[test]
fn operators_use_the_page_in_a_browser() {
    let (Some(chromium), Some(playwright)) = (chromium(), installed("node_modules/playwright-core/index.js")) else {
        return;
    };
    let scene = Scene::new();
    let long = format!("{}\n{}", "a long line ".repeat(200), "x".repeat(3_000));
    let hostile = scene.mail(HOSTILE, &json!({"html": HOSTILE, "long": long, "list": [1, true, null]}));
    let [denied, contested, expired] =
        ["bob", "eve", "old"].map(|name| scene.mail(&format!("{name}@example.org"), &json!(long)));
    let many = scene.run("(pmap (fn [n] (mail/send {:to (str n)})) (range 3))");
    scene.let_expire(&expired);
    let told = json!({
        "playwright": playwright, "chromium": chromium, "page": scene.server.url().replace("/mcp", "/approvals"),
        "tokens": {"olga": OLGA, "otto": OTTO, "principal": ANN}, "text": HOSTILE,
        "runs": {"hostile": hostile, "denied": denied, "contested": contested, "expired": expired, "many": many},
        "screenshots": std::env::var("LISPBOX_SCREENSHOTS").ok(),
    });
    let mut command = Command::new("node");
    // The browser keeps nothing outside this folder.
    command.arg(script("approvals.js")).arg(told.to_string()).env("HOME", scene.folder.path());
    let output = command.output().expect("node runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text, "signed in\napproved\ndenied\nexpired\ncontested\nphone\nsigned out\n");
    assert!(scene.sent().is_empty());
    for _ in 0..2 {
        let sent = scene.call(json!({ "run": hostile })).text;
        assert!(sent.starts_with("\"sent to <script>"), "{sent}");
    }
    assert_eq!(scene.sent(), [HOSTILE], "it is sent once");
    let done = scene.call(json!({ "run": denied })).text;
    assert!(done.starts_with("\"denied: ") && done.contains("bob has left"), "{done}");
    assert!(scene.call(json!({ "run": contested })).text.starts_with("\"sent to eve@example.org\""));
    assert_eq!(scene.sent().len(), 2);
}
