//! Servers whose messages are not framed as MCP prescribes, that report progress, or whose arguments have alternatives.

use std::time::{Duration, Instant};

use crate::mcp_client::{Client, python, script};
use serde_json::{Value, json};

fn server(form: &str) -> Value {
    json!({"command": "python3", "args": [script("framing.py"), form], "start_timeout_seconds": 20, "timeout_seconds": 1})
}

fn client(form: &str) -> Option<Client> {
    python()?;
    Some(Client::start(&json!({"mcpServers": {"s": server(form)}}), &[]))
}

#[test]
fn messages_are_read_however_they_are_framed() {
    for form in ["lines", "pretty", "crlf", "log", "length", "batch", "joined", "characters", "bare", "tagged"] {
        let Some(mut client) = client(form) else { return };
        let answer = client.eval(r#"[(:a (s/echo :a [1 {:b "}{"}])) (:a (s/echo :a "é"))]"#);
        assert!(answer.text.starts_with(r#"[[1 {:b "}{"}] "é"]"#), "{form}: {answer:?}");
    }
}

#[test]
fn a_server_that_reads_frames_is_spoken_to_in_frames() {
    for (form, patience) in [("frames", 2), ("refuse-frames", 20)] {
        if python().is_none() {
            return;
        }
        let mut framed = server(form);
        framed["start_timeout_seconds"] = json!(patience);
        let mut client = Client::start(&json!({"mcpServers": {"s": framed}}), &[]);
        let answer = client.eval(r#"[(:a (s/echo :a [1 {:b "}{"}])) (:a (s/echo :a "é\n"))]"#);
        assert!(answer.text.starts_with(r#"[[1 {:b "}{"}] "é\n"]"#), "{form}: {answer:?}");
    }
}

#[test]
fn a_message_over_several_lines_has_the_maximum_size_of_any_other() {
    if python().is_none() {
        return;
    }
    let mut patient = server("pretty");
    patient["timeout_seconds"] = json!(30);
    let mut client = Client::start(&json!({"mcpServers": {"s": patient}}), &[]);
    let (code, message) = client.fails("(s/echo :big 17)");
    assert_eq!(code, "ToolResultTooLarge", "{message}");
    assert!(client.eval("(:a (s/echo :a 2))").text.starts_with('2'));
}

#[test]
fn progress_gives_a_call_more_time() {
    let Some(mut client) = client("lines") else { return };
    let answer = client.eval("(:steps (s/slow :steps 4 :wait 0.6))");
    assert!(answer.text.starts_with('4'), "{answer:?}");
    let (code, message) = client.fails("(s/slow :steps 2 :wait 0.6 :silent true)");
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("ToolTimeout", "`s/slow` neither answered nor reported progress for 1 s")
    );
    let begun = Instant::now();
    let arguments = json!({"program": "(s/slow :steps 100 :wait 0.5)", "limits": {"total": "3s"}});
    let answer = client.call("lisp_eval", arguments);
    assert!(answer.is_error && begun.elapsed() < Duration::from_secs(20), "{answer:?}");
}

#[test]
fn a_tool_that_runs_as_a_task_only_is_not_listed() {
    let Some(mut client) = client("lines") else { return };
    let listed = client.eval("(dir 's)").text;
    assert!(listed.contains("(s/echo)") && !listed.contains("s/later"), "{listed}");
}

#[test]
fn alternatives_of_arguments_are_shown_and_errors_name_the_argument() {
    let Some(mut client) = client("lines") else { return };
    let listed = client.eval("(dir 's)").text;
    let line = r#"(s/open :kind "file"|"page" :file-path? string :url? string)  opens  ; either :kind "file" :file-path, or :kind "page" :url"#;
    assert!(listed.contains(line), "{listed}");
    let documented = client.eval("(doc s/open)").text;
    assert!(documented.contains("either :kind \"file\" :file-path, or :kind \"page\" :url\n"), "{documented}");
    assert!(client.eval(r#"(:filePath (s/open :kind "file" :file-path "a.txt"))"#).text.starts_with("\"a.txt\""));
    for (call, expected) in [
        (r#"(s/open :kind "page")"#, "`s/open` needs the argument `url`"),
        (
            r#"(s/open :kind "file" :file-path {:a 1})"#,
            "argument `filePath` of `s/open`: expected string, got an object of 1",
        ),
        (
            "(s/open :x 1)",
            "the arguments of `s/open`: expected either `kind = \"file\"`, `filePath`, or `kind = \"page\"`, `url`, got `x`",
        ),
    ] {
        let (code, message) = client.fails(call);
        assert_eq!((code.as_str(), message.as_str()), ("ToolArgumentError", expected), "{call}");
    }
}
