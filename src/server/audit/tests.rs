//! Chains that are whole, and chains that are not.

use serde_json::json;

use super::super::{AuditLog, AuditOptions};
use super::*;
use crate::server::identity::Identity;
use crate::server::secrets::Secrets;

/// A folder with a chain of so many calls, in parts of some records each.
fn written(calls: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let log = AuditLog::begin(AuditOptions { part_bytes: 2_000, ..AuditOptions::new(folder.path().to_owned()) });
    let log = log.expect("a folder that can be written");
    for evaluation in 0..calls {
        let identity = Identity { evaluation, principal: "ann".into(), ..Identity::default() };
        let call = Record { server: "mail".into(), tool: "search".into(), ..Record::of(Kind::Call, &identity) };
        log.write(
            Record { arguments: Some(json!({"n": evaluation})), outcome: "ok".into(), ..call },
            &Secrets::default(),
        );
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
    assert!(problem.contains(".0002.jsonl line 2: record ") && problem.ends_with(" is missing"), "{problem}");
    let [problem] = &taken(1, 0)[..] else { panic!("one problem") };
    assert!(problem.ends_with(".0001.jsonl line 1: record 1 stands where record 0 is missing"), "{problem}");

    let folder = written(100);
    change(folder.path(), 3, |lines| lines[1] = lines[1].replace("search", "delete"));
    let [problem] = &verified(folder.path()).problems[..] else { panic!("one problem") };
    assert!(problem.ends_with(".0003.jsonl line 3: the record before this one has been changed"), "{problem}");

    let folder = written(100);
    let last = *chains(folder.path(), None).expect("readable")[0].parts.keys().last().expect("parts");
    change(folder.path(), last, |lines| drop(lines.pop()));
    assert_eq!(verified(folder.path()).problems, ["the end is missing: its head knows 102 records, the last is 101"]);
    change(folder.path(), last, |lines| {
        let cut = lines.pop().expect("a line").replace(['\n', '}'], "");
        lines.push(cut);
    });
    assert!(verified(folder.path()).problems[0].ends_with("this is not a whole record"));

    let folder = written(100);
    let chain = chains(folder.path(), None).expect("readable").remove(0);
    std::fs::remove_file(&chain.parts[&2]).expect("removed");
    assert_eq!(verified(folder.path()).problems[0], "part 2 is missing");
    std::fs::remove_file(chain.head.expect("a head")).expect("removed");
    let problems = verified(folder.path()).problems;
    assert_eq!(problems.last().map(String::as_str), Some("its head is missing, so that nobody knows where it ends"));
}

#[test]
fn a_last_record_that_was_changed_shows_by_the_head() {
    let folder = written(3);
    change(folder.path(), 1, |lines| {
        let last = lines.pop().expect("a line").replace("\"end\"", "\"call\"");
        lines.push(last);
    });
    assert_eq!(verified(folder.path()).problems, ["record 4 is not the one that its head knows"]);
}

#[test]
fn secrets_of_the_configuration_are_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = AuditLog::begin(AuditOptions::new(folder.path().to_owned())).expect("writable");
    let secrets = Secrets::default();
    secrets.add(["sk-123456789"]);
    let arguments = Some(json!({"query": "what is sk-123456789?"}));
    log.write(Record { arguments, ..Record::of(Kind::Call, &Identity::default()) }, &secrets);
    drop(log);
    let chain = chains(folder.path(), None).expect("readable").remove(0);
    let call = chain.records().nth(1).expect("there").expect("readable");
    assert_eq!(call.arguments, Some(json!({"query": "what is [redacted]?"})));
    assert_eq!(chain.verify().expect("readable").problems, [""; 0]);
}
