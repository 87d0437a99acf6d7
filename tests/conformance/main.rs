//! Runs MCP's official conformance suite against the product's HTTP stack: against a server with the contents that the
//! suite expects ([`fixture`]), against lispbox itself where a scenario needs no tools of the suite, and against
//! lispbox behind a relay that translates calls of the suite's tools ([`bridge`]) where a scenario is about questions.
//!
//! The suite is expected below `$LISPBOX_PEERS`, with the `node` that it needs, in two releases: `conformance` supports
//! 2026-07-28, `conformance-2025` earlier revisions.
#![cfg(feature = "cli")]

mod bridge;
mod fixture;
#[path = "../http_client/mod.rs"]
mod http_client;
#[path = "../peers/mod.rs"]
mod peers;
mod wanted;

use std::fs::File;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bridge::Bridge;
use fixture::Fixture;
use http_client::Server;
use lispbox::server::{CancellationToken, HttpOptions, serve_handler};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A running server of the fixture, stopped on drop.
struct Served {
    url: String,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Served {
    fn start() -> Served {
        let runtime = Runtime::new().expect("a runtime");
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = runtime.block_on(TcpListener::bind(address)).expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let (stop, fixture) = (CancellationToken::new(), Fixture::new());
        let serving = serve_handler(move || fixture.clone(), HttpOptions::new(address), listener, stop.clone());
        let serving = std::thread::spawn(move || runtime.block_on(serving).expect("it serves"));
        Served { url, stop, serving: Some(serving) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
        let _ = self.serving.take().map(JoinHandle::join);
    }
}

/// Maximum duration of a run of the suite.
const PATIENCE: Duration = Duration::from_secs(180);

/// A run of the suite, killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a release of the suite against a server, and returns its output; `None` if the suite or Node is missing. Panics
/// if the suite fails.
fn suite(release: &str, url: &str, arguments: &[&str]) -> Option<String> {
    let node = peers::installed("node_modules/node/bin/node")?;
    let script = peers::installed(&format!("node_modules/{release}/dist/index.js"))?;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("said.txt");
    let said = File::create(&file).expect("a file");
    let child = Command::new(node)
        .arg(script)
        .args(["server", "--url", url])
        .args(arguments)
        .current_dir(&folder)
        .stdin(Stdio::null())
        .stderr(said.try_clone().expect("a file"))
        .stdout(said)
        .spawn()
        .expect("it runs");
    let (mut running, begun) = (Running(child), Instant::now());
    let status = loop {
        if let Some(status) = running.0.try_wait().expect("a child") {
            break status;
        }
        assert!(begun.elapsed() < PATIENCE, "the suite does not end");
        std::thread::park_timeout(Duration::from_millis(50));
    };
    let said = std::fs::read_to_string(file).expect("text");
    assert!(status.success(), "{release} {arguments:?} fails in {:#?} of {said}", failed(&said));
    Some(said)
}

/// Returns the checks that failed, except those of the tasks extension, which is not supported.
fn failed(said: &str) -> Vec<&str> {
    let failed = said.lines().map(str::trim).filter(|line| line.starts_with('✗') && !line.starts_with("✗ tasks-"));
    failed.collect()
}

/// Requires that all scenarios of a run against the fixture pass, and that there are at least `count` of them.
fn all_pass(release: &str, arguments: &[&str], count: usize) {
    let server = Served::start();
    let Some(said) = suite(release, &server.url, arguments) else { return };
    assert!(failed(&said).is_empty(), "{:#?} of {said}", failed(&said));
    let passed = said.lines().filter(|line| line.starts_with('✓')).count();
    assert!(passed >= count, "only {passed} passed: {said}");
}

#[test]
fn what_2026_07_28_requires_passes() {
    all_pass("conformance", &["--requirements", "2026-07-28"], 37);
}

#[test]
fn what_2025_11_25_requires_passes() {
    all_pass("conformance", &["--requirements", "2025-11-25"], 30);
}

#[test]
fn the_suite_from_before_2026_07_28_passes() {
    all_pass("conformance-2025", &[], 30);
}

#[test]
fn lispbox_itself_passes_what_needs_no_tools_of_the_suite() {
    let server = Server::start(&[], &[]);
    let url = server.url();
    let known = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/lispbox.yml");
    let both = ["tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"];
    let older = ["server-initialize", "server-session-lifecycle", "ping"];
    let newer = ["server-stateless", "http-header-validation", "input-required-result-unsupported-methods"];
    for (revision, own) in [("2025-11-25", older), ("2026-07-28", newer)] {
        for scenario in both.iter().chain(&own) {
            let arguments = ["--scenario", scenario, "--spec-version", revision, "--expected-failures", known];
            if suite("conformance", &url, &arguments).is_none() {
                return;
            }
        }
    }
}

/// Scenarios about questions in replies (from 2026-07-28 on) and during calls, by revision.
const ASKING: [(&str, &[&str]); 2] = [
    (
        "2026-07-28",
        &[
            "input-required-result-basic-elicitation",
            "input-required-result-basic-sampling",
            "input-required-result-basic-list-roots",
            "input-required-result-request-state",
            "input-required-result-multiple-input-requests",
            "input-required-result-multi-round",
            "input-required-result-missing-input-response",
            "input-required-result-non-tool-request",
            "input-required-result-result-type",
            "input-required-result-unsupported-methods",
            "input-required-result-tampered-state",
            "input-required-result-capability-check",
            "input-required-result-ignore-extra-params",
            "input-required-result-validate-input",
            "server-stateless",
        ],
    ),
    ("2025-11-25", &["tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"]),
];

#[test]
fn lispbox_asks_for_approval_as_the_scenarios_about_questions_expect() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("servers.json");
    std::fs::write(&file, bridge::configuration().to_string()).expect("written");
    let server = Server::start(&["--config", &file.to_string_lossy()], &[]);
    let bridge = Bridge::to(server.address);
    let known = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/asking.yml");
    for (revision, scenarios) in ASKING {
        for scenario in scenarios {
            let arguments = ["--scenario", scenario, "--spec-version", revision, "--expected-failures", known];
            let Some(said) = suite("conformance", &bridge.url(), &arguments) else { return };
            assert!(!said.contains("WARNING"), "{said}");
        }
    }
}
