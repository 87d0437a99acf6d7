//! `lispbox soak` for a few seconds: it passes, and its summary adds up.
#![cfg(feature = "cli")]

use std::process::Command;

use serde_json::Value;

fn soak(arguments: &[&str]) -> Value {
    let ran = Command::new(env!("CARGO_BIN_EXE_lispbox"))
        .args(["soak", "--seconds", "5", "--json"])
        .args(arguments)
        .output()
        .expect("the binary runs");
    let output = String::from_utf8(ran.stdout).expect("UTF-8");
    let summary: Value = serde_json::from_str(&output).unwrap_or_else(|problem| panic!("{problem}: {output}"));
    assert!(ran.status.success(), "{summary:#}");
    summary
}

fn number(summary: &Value, field: &str) -> u64 {
    summary[field].as_u64().unwrap_or_else(|| panic!("`{field}` is no count in {summary:#}"))
}

fn adds_up(summary: &Value) {
    assert_eq!(summary["verdict"], "passed");
    for field in ["unanswered", "reply_faults", "wrong", "processes_left"] {
        assert_eq!(summary[field], 0, "{field}");
    }
    let of = |field| number(summary, field);
    assert_eq!(of("replies"), of("requests") - (of("withdrawn") - of("withdrawn_answered")));
    for field in ["values", "limits", "errors", "refused", "sessions_begun", "sessions_looked_at"] {
        assert!(of(field) > 0, "{field}: {summary:#}");
    }
    assert!(of("lost") <= of("killed_workers"), "{summary:#}");
    assert!(of("killed_workers") + of("killed_servers") > 0 || cfg!(not(target_os = "linux")), "{summary:#}");
}

#[test]
fn in_worker_processes_where_there_are_any() {
    let summary = soak(&["--seed", "7", "--sessions", "8"]);
    assert_eq!((number(&summary, "seed"), number(&summary, "sessions")), (7, 8));
    assert_eq!(summary["isolated"], cfg!(target_os = "linux"));
    adds_up(&summary);
}

#[test]
fn in_the_process_of_the_server() {
    let summary = soak(&["--no-isolate", "--sessions", "4"]);
    assert_eq!((&summary["isolated"], &summary["killed_workers"]), (&Value::Bool(false), &Value::from(0)));
    adds_up(&summary);
}
