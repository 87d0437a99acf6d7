//! Reads the audit log of a server under test.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Runs `lispbox audit`; returns whether it succeeded, and its output.
pub fn audit(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.arg("audit").args(arguments).arg("--audit").arg(folder);
    let output = command.env("COLUMNS", "160").output().expect("it runs");
    (output.status.success(), String::from_utf8(output.stdout).expect("text"))
}

/// Returns the record files, in order.
pub fn parts(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut parts: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "jsonl")).collect();
    parts.sort();
    parts
}

/// Returns all records, except a last one that a kill has truncated.
pub fn records(folder: &Path) -> Vec<Value> {
    let texts = parts(folder).into_iter().map(|part| std::fs::read_to_string(part).expect("text"));
    let whole = |line: &str| line.strip_suffix('\n').map(|line| serde_json::from_str(line).expect("JSON"));
    texts.collect::<String>().split_inclusive('\n').filter_map(whole).collect()
}

/// Returns the records of one kind.
pub fn records_of(folder: &Path, kind: &str) -> Vec<Value> {
    records(folder).into_iter().filter(|record| record["kind"] == kind).collect()
}
