//! Incorrect programs as models write them, each with the complete text of the reply: `tests/wrong-programs.md`. With
//! `LISPBOX_WRITE_WRONG_PROGRAMS=1`, the test rewrites the replies in the file, for review before they are committed.

use crate::common;

use lispbox::lang::{Request, ToolReply};
use serde_json::json;
use std::fmt::Write;
use std::sync::Arc;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wrong-programs.md");

/// Returns the text of a program's reply, with a server `mail` that has one tool.
fn answer(program: &str) -> String {
    let mails = json!([
        {"id": "m1", "subject": "Invoice 17", "from": {"name": "Ann", "email": "ann@x.org"}, "unread": true, "size": 1200},
        {"id": "m2", "subject": "Lunch?", "from": {"name": "Bo", "email": "bo@y.org"}, "unread": false, "size": 300},
    ]);
    let schema = json!({
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query"],
    });
    let host = common::Scripted::new().tool("mail/search-emails", schema, move |_| ToolReply::Json(mails.to_string()));
    common::session().eval(Request::new(program), Arc::new(host)).text(32_768)
}

#[test]
fn each_wrong_program_gets_its_message() {
    let text = std::fs::read_to_string(FILE).expect("the file is text");
    let mut written = String::new();
    let mut wrong = String::new();
    let mut program = String::new();
    let mut expected = String::new();
    let mut inside = "";
    let mut count = 0;
    for (at, line) in text.lines().enumerate() {
        match (inside, line) {
            ("", "```clojure" | "```text") => {
                inside = &line[3..];
                (if inside == "clojure" { &mut program } else { &mut expected }).clear();
            }
            ("text", "```") => {
                let got = answer(program.trim_end());
                count += 1;
                if got.trim_end() != expected.trim_end() {
                    let _ = writeln!(wrong, "line {}:\n{program}\nexpected\n{expected}\ngot\n{got}\n", at + 1);
                }
                let _ = writeln!(written, "{}", got.trim_end());
                inside = "";
            }
            ("clojure", "```") => inside = "",
            ("clojure", line) => {
                let _ = writeln!(program, "{line}");
            }
            ("text", line) => {
                let _ = writeln!(expected, "{line}");
                continue;
            }
            _ => {}
        }
        let _ = writeln!(written, "{line}");
    }
    assert!(count >= 50, "{count} programs");
    if std::env::var_os("LISPBOX_WRITE_WRONG_PROGRAMS").is_some() {
        std::fs::write(FILE, written).expect("the file can be written");
    } else {
        assert!(wrong.is_empty(), "of {count} answers these differ:\n{wrong}");
    }
}
