//! The `lispbox sessions` commands, run as an operator runs them.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::databases::{Database, Kind};
use lispbox::store::{Key, Sqlite, Store};

const TEXT: &str = "(lispbox-session 1)\n(define x 5)\n(define mails [{:id 1}])\n(history nil nil nil nil)\n";

fn sessions(url: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lispbox"))
        .arg("sessions")
        .args(arguments)
        .args(["--store", url])
        .output()
        .expect("it runs")
}

fn printed(url: &str, arguments: &[&str]) -> String {
    let output = sessions(url, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn refused(url: &str, arguments: &[&str]) -> String {
    let output = sessions(url, arguments);
    assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn sessions_are_listed_shown_moved_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let (one, other) = (url("one.db"), url("other.db"));
    let key = |handle: &str| Key { principal: "local".to_owned(), handle: handle.to_owned() };
    let store = Sqlite::open(&folder.path().join("one.db")).expect("it opens");
    let names = ["x".to_owned(), "mails".to_owned()];
    store.create(&key("abcd1"), TEXT, &names).expect("written");
    store.create(&key("abce2"), "damaged", &[]).expect("written");

    let list = printed(&one, &["list"]);
    assert!(list.lines().any(|line| line.starts_with("abcd1  local") && line.ends_with("x mails")), "{list}");
    let records: Vec<serde_json::Value> =
        printed(&one, &["list", "--json"]).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(records.iter().any(|record| record["handle"] == "abcd1" && record["bytes"] == TEXT.len()), "{records:?}");

    assert!(printed(&one, &["show", "abcd"]).contains("mails"));
    assert!(refused(&one, &["show", "abce"]).contains("this is not a snapshot of a session"));
    assert!(refused(&one, &["show", "abc"]).contains("`abc` is ambiguous: 2 sessions match; give more of the handle"));
    assert!(refused(&one, &["export", "zzz"]).contains("there is no session `zzz`"));

    let exported = printed(&one, &["export", "abcd1"]);
    assert_eq!(exported, TEXT);
    assert_eq!(printed(&one, &["export", "abce2"]), "damaged", "what cannot be read can be saved");
    let file = folder.path().join("exported");
    std::fs::write(&file, &exported).expect("written");
    let handle = printed(&other, &["import", &file.to_string_lossy()]);
    assert_eq!(printed(&other, &["export", handle.trim()]), TEXT);
    assert!(printed(&other, &["list"]).contains("x mails"), "an imported session says what it defines");
    std::fs::write(&file, format!("{exported}{exported}")).expect("written");
    assert!(
        refused(&other, &["import", &file.to_string_lossy()])
            .contains("another snapshot begins at line 5: read each separately")
    );
    assert_eq!(printed(&other, &["list"]).lines().count(), 1, "nothing is imported of two");
    std::fs::write(&file, "(lispbox-session 1) (define").expect("written");
    assert!(refused(&other, &["import", &file.to_string_lossy()]).contains("the snapshot cannot be read"));

    assert_eq!(printed(&one, &["purge", "--unused-days", "1"]), "0 removed\n");
    let lease = store.lease(&key("abcd1"), "somebody").expect("it is free");
    assert!(refused(&one, &["purge", "abcd1"]).contains("abcd1: the session is being used by another process"));
    store.release(&key("abcd1"), &lease).expect("given back");
    assert_eq!(printed(&one, &["purge", "abcd1"]), "1 removed\n");
    assert_eq!(printed(&one, &["purge", "--all"]), "1 removed\n");
    assert_eq!(printed(&one, &["list"]), "");
}

#[test]
fn a_store_must_be_there_and_be_named_where_there_is_no_usual_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let listed = |home: Option<&std::path::Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["sessions", "list"]).env_clear().envs(home.map(|home| ("HOME", home)));
        String::from_utf8(command.output().expect("it runs").stderr).expect("UTF-8")
    };
    assert!(listed(None).contains("expected `--store sqlite:PATH`"));
    assert!(listed(Some(folder.path())).contains("there is no store at "));
    let file = folder.path().join("none.db");
    assert!(refused(&format!("sqlite:{}", file.display()), &["list"]).contains("there is no store at"));
    assert!(!file.exists(), "looking makes no file");
}

#[test]
fn an_encrypted_store_has_to_be_one_that_the_system_trusts() {
    for kind in Kind::ALL {
        let Some(database) = Database::start_encrypted(kind) else { continue };
        let list = |trusted: &std::path::Path| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
            command.args(["sessions", "list", "--store", &database.url()]).env("SSL_CERT_FILE", trusted);
            let output = command.output().expect("it runs");
            (output.status.success(), String::from_utf8(output.stderr).expect("UTF-8"))
        };
        let [own, stranger] = database.certificates();
        let begun = Instant::now();
        while let (false, errors) = list(&own) {
            // The database may still be starting.
            assert!(begun.elapsed() < Duration::from_secs(30), "{errors}");
        }
        let (is_taken, errors) = list(&stranger);
        assert!(!is_taken && errors.contains("invalid peer certificate"), "{errors}");
        assert!(!errors.contains(crate::databases::PASSWORD), "{errors}");
    }
}
