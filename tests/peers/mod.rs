//! Where the tests find programs that nobody here wrote.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::PathBuf;

/// The folder into which `.ci/run` installs the real peers.
pub fn folder() -> PathBuf {
    std::env::var_os("LISPBOX_PEERS")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/peers")), PathBuf::from)
}

/// A program of the test's surroundings. Without it the test is skipped, and says so; with
/// `LISPBOX_REQUIRE_PEERS=1` it fails.
pub fn peer(name: &str, found: Option<PathBuf>) -> Option<PathBuf> {
    if found.is_none() {
        assert!(std::env::var_os("LISPBOX_REQUIRE_PEERS").is_none_or(|value| value != "1"), "{name} is missing");
        eprintln!("SKIPPED: {name} is missing");
    }
    found
}

/// A file in [`folder`].
pub fn installed(path: &str) -> Option<PathBuf> {
    let file = folder().join(path);
    peer(path, file.exists().then_some(file))
}
