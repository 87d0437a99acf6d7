//! Runs the pipelines in `tests/pipelines/*.md`: programs as agents write them, over data that tools return.
//!
//! A block marked `json` is bound to `data` for the programs after it. One marked `json server/tool argument …` is the
//! result of that tool, filtered by the arguments of the call. A block marked `clojure` is a program that ends with a
//! line `;=> value`; a block marked `text` after it is the program's output.

use crate::common;

use common::literate::documents;
use lispbox::lang::{Reply, Request, ToolReply};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The result of a tool, and the names of its parameters.
#[derive(Clone)]
struct Answer {
    arguments: Vec<String>,
    json: Value,
}

/// A program with its data and its expected outcome.
struct Case {
    place: String,
    title: String,
    data: Option<String>,
    tools: BTreeMap<String, Answer>,
    program: String,
    value: String,
    prints: String,
}

/// Returns the fenced blocks of a file: the heading above, the line number, the info string, and the text.
fn blocks(text: &str) -> Vec<(String, usize, String, String)> {
    let (mut blocks, mut title) = (Vec::new(), String::new());
    let mut open: Option<(usize, String, String)> = None;
    for (at, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(mark)) => open = Some((at + 1, mark.trim().to_string(), String::new())),
            (None, None) => {
                if let Some(heading) = line.strip_prefix("## ") {
                    title = heading.to_string();
                }
            }
            (Some(_), Some(_)) => {
                let (at, mark, body) = open.take().expect("a block is open");
                blocks.push((title.clone(), at, mark, body));
            }
            (Some((_, _, body)), None) => {
                body.push_str(line);
                body.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn cases(name: &str, text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut data = None;
    let mut tools = BTreeMap::new();
    for (title, line, mark, body) in blocks(text) {
        let place = format!("{name}:{line}");
        let words: Vec<&str> = mark.split_whitespace().collect();
        match words.as_slice() {
            ["json"] => data = Some(body),
            ["json", name, arguments @ ..] => {
                let json = serde_json::from_str(&body).unwrap_or_else(|why| panic!("{place}: {why}"));
                let arguments = arguments.iter().map(ToString::to_string).collect();
                tools.insert((*name).to_string(), Answer { arguments, json });
            }
            ["clojure"] => {
                let (program, value) = body.rsplit_once(";=>").unwrap_or_else(|| panic!("{place}: no value"));
                let (program, value) = (program.trim().to_string(), value.trim().to_string());
                let (data, tools) = (data.clone(), tools.clone());
                cases.push(Case { place, title, data, tools, program, value, prints: String::new() });
            }
            ["text"] => cases.last_mut().expect("a program comes first").prints = body,
            _ => panic!("{place}: a block of no known kind"),
        }
    }
    cases
}

/// Computes the reply of a tool: for a list, the items whose fields equal the arguments, and at most `limit` of them.
fn answer(answer: &Answer, arguments: &Value) -> ToolReply {
    let mut reply = answer.json.clone();
    if let (Value::Array(items), Value::Object(wanted)) = (&mut reply, arguments) {
        items.retain(|item| wanted.iter().all(|(name, value)| name == "limit" || &item[name] == value));
        if let Some(limit) = wanted.get("limit").and_then(Value::as_u64) {
            items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
    }
    ToolReply::Json(reply.to_string())
}

fn run(case: &Case) -> Reply {
    let mut host = common::Scripted::new();
    for (name, tool) in case.tools.clone() {
        let properties: serde_json::Map<String, Value> =
            tool.arguments.iter().map(|name| (name.clone(), json!({}))).collect();
        let schema = json!({"type": "object", "properties": properties});
        host = host.tool(&name, schema, move |arguments| answer(&tool, arguments));
    }
    let request = Request { data: case.data.clone(), ..Request::new(&case.program) };
    common::session().eval(request, Arc::new(host))
}

#[test]
fn every_pipeline_is_right_at_the_first_attempt() {
    let mut wrong = String::new();
    let mut count = 0;
    for case in documents("tests/pipelines").iter().flat_map(|(name, text)| cases(name, text)) {
        count += 1;
        let reply = run(&case);
        let value = match &reply.failure {
            Some(failure) => failure.rendered.clone(),
            None => reply.value.unwrap_or_default(),
        };
        if value != case.value || reply.prints != case.prints || !reply.notes.is_empty() {
            let _ = writeln!(
                wrong,
                "{} {}\n  expected {}\n  got      {value}\n  printed  {:?}\n  noted    {:?}",
                case.place, case.title, case.value, reply.prints, reply.notes
            );
        }
    }
    assert!(count >= 50, "there are {count} pipelines");
    assert!(wrong.is_empty(), "of {count} pipelines these are wrong:\n{wrong}");
}
