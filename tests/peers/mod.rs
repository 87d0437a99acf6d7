//! Locates third-party programs that the tests use.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::PathBuf;

/// Returns the folder into which `.ci/run` installs the real peers.
pub fn folder() -> PathBuf {
    std::env::var_os("LISPBOX_PEERS")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/target/peers")), PathBuf::from)
}

/// Returns a program that a test requires, if it was found. If it is missing, reports that the test is skipped; with
/// `LISPBOX_REQUIRE_PEERS=1`, panics.
pub fn peer(name: &str, found: Option<PathBuf>) -> Option<PathBuf> {
    if found.is_none() {
        assert!(std::env::var_os("LISPBOX_REQUIRE_PEERS").is_none_or(|value| value != "1"), "{name} is missing");
        eprintln!("SKIPPED: {name} is missing");
    }
    found
}

/// Returns the path of a file in [`folder`], if it exists; see [`peer`].
pub fn installed(path: &str) -> Option<PathBuf> {
    let file = folder().join(path);
    peer(path, file.exists().then_some(file))
}
