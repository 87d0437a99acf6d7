//! Tests of intact and damaged chains.

use serde_json::json;

use crate::server::identity::Identity;
use crate::server::secrets::Secrets;

use super::super::{AuditLog, AuditOptions};
use super::*;

/// Writes a chain of `calls` calls, in parts of a few records each.
fn written(calls: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let log = AuditLog::begin(AuditOptions { part_bytes: 2_000, ..AuditOptions::new(folder.path().to_owned()) });
    let log = log.expect("a folder that can be written");
    for evaluation in 0..calls {
        let identity = Identity { evaluation, principal: "ann".into(), ..Identity::default() };
        let call = Record { server: "mail".into(), tool: "search".into(), ..Record::of(Kind::Call, &identity) };
        let call = Record { arguments: Some(json!({"n": evaluation})), outcome: "ok".into(), ..call };
        log.write(call, &Secrets::default()).expect("writable");
    }
    folder
}

fn verified(folder: &Path) -> Verified {
    let mut chains = chains(folder, None).expect("readable");
    assert_eq!(chains.len(), 1);
    chains.remove(0).verify().expect("readable")
}

/// Changes the lines of a part.
fn change(folder: &Path, part: u32, change: impl Fn(&mut Vec<String>)) {
    let chain = chains(folder, None).expect("readable").remove(0);
    let file = &chain.parts[&part];
    let mut lines: Vec<String> =
        std::fs::read_to_string(file).expect("readable").lines().map(|line| format!("{line}\n")).collect();
    change(&mut lines);
    std::fs::write(file, lines.concat()).expect("writable");
}

#[test]
fn a_chain_that_is_whole_verifies() {
    let folder = written(1_000);
    let verified = verified(folder.path());
    assert_eq!((verified.records, verified.ended, &verified.problems[..]), (1_002, true, &[][..]));
    let chain = chains(folder.path(), None).expect("readable").remove(0);
    assert!(chain.parts.len() > 10, "{} parts", chain.parts.len());
    let second = chain.records().nth(1).expect("there").expect("readable");
    assert_eq!(
        (second.principal.as_str(), second.tool.as_str(), second.arguments),
        ("ann", "search", Some(json!({"n": 0})))
    );
}

#[test]
fn whatever_is_taken_out_or_changed_shows() {
    let taken = |part: u32, at: usize| {
        let folder = written(100);
        change(folder.path(), part, |lines| drop(lines.remove(at)));
        verified(folder.path()).problems
    };
    let [problem] = &taken(2, 1)[..] else { panic!("one problem") };
    assert!(problem.contains(".0002.jsonl line 2: record "), "{problem}");
    assert!(problem.contains(" is missing, got record "), "{problem}");
    let [problem] = &taken(1, 0)[..] else { panic!("one problem") };
    assert!(problem.ends_with(".0001.jsonl line 1: record 0 is missing, got record 1"), "{problem}");

    let folder = written(100);
    change(folder.path(), 3, |lines| lines[1] = lines[1].replace("search", "delete"));
    let [problem] = &verified(folder.path()).problems[..] else { panic!("one problem") };
    assert!(problem.ends_with(".0003.jsonl line 3: the record before this one has been changed"), "{problem}");

    let folder = written(100);
    let last = *chains(folder.path(), None).expect("readable")[0].parts.keys().last().expect("parts");
    change(folder.path(), last, |lines| drop(lines.pop()));
    assert_eq!(verified(folder.path()).problems, ["the end is missing: its head has 102 records, the log has 101"]);
    change(folder.path(), last, |lines| {
        let cut = lines.pop().expect("a line").replace(['\n', '}'], "");
        lines.push(cut);
    });
    assert!(verified(folder.path()).problems[0].ends_with("this record is incomplete"));

    let folder = written(100);
    let chain = chains(folder.path(), None).expect("readable").remove(0);
    std::fs::remove_file(&chain.parts[&2]).expect("removed");
    assert_eq!(verified(folder.path()).problems[0], "part 2 is missing");
    std::fs::remove_file(chain.head.expect("a head")).expect("removed");
    let problems = verified(folder.path()).problems;
    assert_eq!(problems.last().map(String::as_str), Some("its head is missing, so its end cannot be verified"));
}

#[test]
fn a_last_record_that_was_changed_shows_by_the_head() {
    let folder = written(3);
    change(folder.path(), 1, |lines| {
        let last = lines.pop().expect("a line").replace("\"end\"", "\"call\"");
        lines.push(last);
    });
    assert_eq!(verified(folder.path()).problems, ["record 4 does not match its head"]);
}

#[test]
fn secrets_of_the_configuration_are_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = AuditLog::begin(AuditOptions::new(folder.path().to_owned())).expect("writable");
    let secrets = Secrets::default();
    secrets.add(["sk-123456789", "\",\"tool\":\"x"]);
    let rule = Some("a person said sk-123456789".to_owned());
    let tool = "what \",\"tool\":\"x is".to_owned();
    log.write(Record { rule, tool, ..Record::of(Kind::Call, &Identity::default()) }, &secrets).expect("writable");
    drop(log);
    let chain = chains(folder.path(), None).expect("readable").remove(0);
    let call = chain.records().nth(1).expect("there").expect("readable");
    assert_eq!(call.rule.as_deref(), Some("a person said [redacted]"));
    assert_eq!(call.tool, "what [redacted] is");
    assert_eq!(chain.verify().expect("readable").problems, [""; 0]);
}

fn record(kind: Kind, tool: &str, intent: Option<u64>) -> Record {
    Record { server: "mail".into(), tool: tool.into(), intent, ..Record::of(kind, &Identity::default()) }
}

#[test]
fn intents_without_an_outcome_are_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = AuditLog::begin(AuditOptions::new(folder.path().to_owned())).expect("writable");
    let secrets = Secrets::default();
    let first = log.write_first(record(Kind::Intent, "send", None), &secrets).expect("writable");
    let second = log.write_first(record(Kind::Intent, "search", None), &secrets).expect("writable");
    let third = log.write_first(record(Kind::Intent, "send", None), &secrets).expect("writable");
    log.write(record(Kind::Call, "send", Some(third)), &secrets).expect("writable");
    log.write(record(Kind::Call, "search", Some(second)), &secrets).expect("writable");
    let verified = verified(folder.path());
    assert_eq!(verified.problems, [""; 0]);
    let open: Vec<(u64, &str)> = verified.open.iter().map(|intent| (intent.number, intent.tool.as_str())).collect();
    assert_eq!(open, [(first, "send")]);
}

#[test]
fn an_outcome_without_its_intent_shows() {
    for (tool, intent) in [("send", 7), ("delete", 1)] {
        let folder = tempfile::tempdir().expect("a folder");
        let log = AuditLog::begin(AuditOptions::new(folder.path().to_owned())).expect("writable");
        log.write_first(record(Kind::Intent, "send", None), &Secrets::default()).expect("writable");
        log.write(record(Kind::Call, tool, Some(intent)), &Secrets::default()).expect("writable");
        let [problem] = &verified(folder.path()).problems[..] else { panic!("one problem") };
        assert!(problem.ends_with("line 3: record 2 is an outcome without an open intent"), "{problem}");
    }
}

/// A killed process may leave an incomplete line.
#[test]
fn a_line_that_a_kill_has_cut_is_no_problem_where_the_head_does_not_know_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = AuditLog::begin(AuditOptions::new(folder.path().to_owned())).expect("writable");
    log.write_first(record(Kind::Intent, "send", None), &Secrets::default()).expect("writable");
    let cut = r#"{"number":2,"kind":"call","outc"#;
    let append = |text: &str| {
        let file = &chains(folder.path(), None).expect("readable")[0].parts[&1];
        let before = std::fs::read_to_string(file).expect("readable");
        std::fs::write(file, before + text).expect("writable");
    };
    append(cut);
    let found = verified(folder.path());
    assert_eq!((found.cut, found.open.len(), &found.problems[..]), (true, 1, &[][..]));
    append("\n");
    assert!(verified(folder.path()).problems[0].ends_with("line 3: this record is incomplete"));
    std::mem::forget(log);
}

/// Logs of versions that wrote one record for each call.
#[test]
fn a_log_without_intents_verifies() {
    let lines = [
        r#"{"number":0,"time":"2026-11-01T10:00:00.000Z","kind":"begin","version":"0.1.0","previous":""}"#.to_owned(),
        r#"{"number":1,"time":"2026-11-01T10:00:01.000Z","kind":"call","evaluation":0,"principal":"local","server":"mail","tool":"send","arguments":{"to":"ann"},"outcome":"ok","bytes":4,"ms":2,"previous":"PREVIOUS"}"#
            .to_owned(),
    ];
    let second = lines[1].replace("PREVIOUS", &sha256(lines[0].as_bytes()));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.0001.jsonl"), format!("{}\n{second}\n", lines[0])).expect("written");
    let head = Head { chain: "a".into(), records: 2, hash: sha256(second.as_bytes()), ended: false };
    std::fs::write(folder.path().join("a.head"), serde_json::to_string(&head).expect("JSON")).expect("written");
    let found = verified(folder.path());
    assert_eq!((found.records, found.open.len(), &found.problems[..]), (2, 0, &[][..]));
}

/// A log whose next part already exists as a file, so that nothing more can be written.
fn blocked() -> (tempfile::TempDir, AuditLog, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = AuditLog::begin(AuditOptions { part_bytes: 1, ..AuditOptions::new(folder.path().to_owned()) });
    let log = log.expect("writable");
    let first = chains(folder.path(), None).expect("readable")[0].parts[&1].display().to_string();
    let second = PathBuf::from(first.replace(".0001.", ".0002."));
    std::fs::write(&second, "").expect("written");
    (folder, log, second)
}

#[test]
fn an_intent_that_cannot_be_written_does_not_wait_and_an_outcome_does() {
    let (folder, log, obstacle) = blocked();
    let secrets = Secrets::default();
    let unwritten = log.write_first(record(Kind::Intent, "send", None), &secrets).expect_err("blocked");
    assert_eq!(
        (unwritten.number, &*unwritten.problem),
        (None, "the audit log cannot be written: entity already exists")
    );
    let problem = log.write(record(Kind::Call, "search", None), &secrets).expect_err("blocked");
    assert_eq!(problem, "the audit log cannot be written: entity already exists");
    assert!(log.trouble().is_some() && log.write_first(record(Kind::Intent, "send", None), &secrets).is_err());
    std::fs::remove_file(obstacle).expect("removed");
    let number = log.write_first(record(Kind::Intent, "send", None), &secrets).expect("writable");
    assert_eq!((number, log.trouble()), (2, None), "behind what waited");
    drop(log);
    let verified = verified(folder.path());
    assert_eq!((verified.records, verified.open.len(), &verified.problems[..]), (4, 1, &[][..]));
}

#[test]
fn records_that_find_no_room_to_wait_are_counted() {
    let (folder, log, obstacle) = blocked();
    let large = Record { text: Some("x".repeat(1 << 20)), ..record(Kind::Program, "", None) };
    while log.is_full().is_none() {
        log.write(large.clone(), &Secrets::default()).expect_err("blocked");
    }
    for _ in 0..3 {
        log.write(large.clone(), &Secrets::default()).expect_err("blocked");
    }
    std::fs::remove_file(obstacle).expect("removed");
    assert_eq!(log.trouble(), None);
    drop(log);
    let verified = verified(folder.path());
    assert_eq!((verified.lost, verified.ended, &verified.problems[..]), (3, true, &[][..]));
    assert!(verified.records > 16, "{}", verified.records);
}

#[cfg(unix)]
#[test]
fn a_log_whose_file_is_gone_takes_no_intents() {
    let begun = || {
        let folder = tempfile::tempdir().expect("a folder");
        let log = AuditLog::begin(AuditOptions::new(folder.path().to_owned())).expect("a folder that can be written");
        assert!(log.write_first(record(Kind::Intent, "send", None), &Secrets::default()).is_ok());
        let part = chains(folder.path(), None).expect("readable").remove(0).parts[&1].clone();
        (folder, log, part)
    };
    let refused = |log: &AuditLog| {
        assert!(log.write_first(record(Kind::Intent, "send", None), &Secrets::default()).is_err());
        assert!(log.trouble().is_some());
    };
    let (folder, log, _) = begun();
    std::fs::remove_dir_all(folder.path()).expect("removed");
    refused(&log);
    let (_folder, log, part) = begun();
    std::fs::rename(&part, part.with_extension("old")).expect("moved");
    refused(&log);
    std::fs::copy(part.with_extension("old"), &part).expect("copied");
    refused(&log);
    std::fs::rename(part.with_extension("old"), &part).expect("moved back");
    assert!(log.write_first(record(Kind::Intent, "send", None), &Secrets::default()).is_ok());
    assert_eq!(log.trouble(), None);
}

#[cfg(unix)]
#[test]
fn only_the_owner_reads_and_writes_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().expect("a folder");
    let (folder, heads) = (parent.path().join("log"), parent.path().join("heads"));
    let options = AuditOptions { heads: Some(heads.clone()), ..AuditOptions::new(folder.clone()) };
    drop(AuditLog::begin(options).expect("folders that can be made"));
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    for folder in [&folder, &heads] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
        let files: Vec<PathBuf> =
            std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("an entry").path()).collect();
        assert_eq!(files.len(), 1);
        assert_eq!(mode(&files[0]), 0o600, "{}", files[0].display());
    }
}
