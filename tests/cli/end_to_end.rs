//! The main use case end to end: one program calls real tools over MCP, and only its result is returned.

use crate::mcp_client::{Answer, Client, installed};
use serde_json::{Value, json};

const FILESYSTEM: &str = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";

const DEFINITIONS: &str = "
    (defn sender [mail] (get-in mail [:sender :email]))
    (defn compute-stats [mails] (vals (group-by mails :key sender)))";

/// The three programs of the design, verbatim.
const GROUPED: &str = "(let ((emails (fetch-emails :limit 50)))
  (group-by emails :key sender :count t))";
const STATS: &str = "(define email-stats (compute-stats (fetch-emails)))";
const FILTERED: &str = "(filter email-stats (lambda (s) (> (count s) 10)))";

fn mailbox() -> Value {
    json!({"mcpServers": {"mail": {"command": env!("CARGO_BIN_EXE_lispbox"), "args": ["sample-mailbox"], "description": "a sample mailbox"}}})
}

fn ok(answer: &Answer) -> &str {
    assert!(!answer.is_error, "{answer:?}");
    &answer.text
}

#[test]
fn the_programs_of_the_design_run_as_they_stand() {
    let mut client = Client::start(&mailbox(), &[]);
    assert!(ok(&client.eval(DEFINITIONS)).contains("[defined: sender, compute-stats]"));
    let grouped = client.eval(GROUPED);
    assert!(ok(&grouped).starts_with('{') && grouped.text.contains("[1 tool call]"), "{grouped:?}");
    let counts: i64 =
        ok(&client.eval("(reduce + (vals *1))")).lines().next().and_then(|line| line.parse().ok()).expect("a sum");
    assert_eq!(counts, 50);
    assert!(ok(&client.eval(STATS)).contains("[defined: email-stats; 1 tool call]"));
    let program = format!("(every? (fn [s] (> (count s) 10)) {FILTERED})");
    assert_eq!(ok(&client.eval(&program)).lines().next(), Some("true"));
    let busy = client.eval(FILTERED);
    assert!(ok(&busy).starts_with('('), "{busy:?}");
}

#[test]
fn the_programs_of_the_design_run_statelessly_in_one_session() {
    let mut client = Client::start_stateless(&mailbox(), &[]);
    let first = client.eval(DEFINITIONS);
    let session = first.handle().expect("the first definition names the session");
    let mut eval = |program: &str| client.call("lisp_eval", json!({"program": program, "session": session}));
    assert!(ok(&eval(GROUPED)).starts_with('{'));
    assert!(ok(&eval(STATS)).contains("[defined: email-stats"));
    assert!(ok(&eval(FILTERED)).starts_with('('));
    // Without the handle the definitions are not visible, but the error names the session that has them.
    let elsewhere = client.eval(FILTERED);
    assert!(elsewhere.is_error && elsewhere.text.contains(&session), "{elsewhere:?}");
}

#[test]
fn a_misspelt_tool_names_the_right_one() {
    let mut client = Client::start(&mailbox(), &[]);
    let answer = client.eval("(fetch-emials :limit 50)");
    assert!(answer.is_error);
    assert_eq!(answer.record["error"], "UnboundVariable");
    assert_eq!(answer.record["symbol"], "fetch-emials");
    assert_eq!(answer.record["suggestion"], "Did you mean fetch-emails?");
    assert_eq!((answer.record["line"].as_u64(), answer.record["column"].as_u64()), (Some(1), Some(2)));
    let answer = client.eval("(mail/fetch-emials)");
    assert_eq!(answer.record["suggestion"], "Did you mean mail/fetch-emails?");
    let answer = client.eval("(fetch-emails :limt 50)");
    assert_eq!(answer.record["error"], "ToolArgumentError");
    assert!(answer.record["suggestion"].as_str().is_some_and(|text| text.contains("limit")), "{answer:?}");
    let answer = client.eval("(+ 1 (:subjct (first (fetch-emails :limit 1))))");
    assert!(answer.record["suggestion"].as_str().is_some_and(|text| text.contains(":subject")), "{answer:?}");
}

#[test]
fn discovery_finds_the_mailbox() {
    let mut client = Client::start(&mailbox(), &[]);
    for (program, words) in [
        ("(dir)", "mail  a sample mailbox"),
        ("(dir 'mail)", "(mail/fetch-emails"),
        ("(dir mail)", "(mail/search-emails"),
        ("(dir \"mail\")", ":limit? integer"),
        ("(doc mail/search-emails)", "(mail/search-emails"),
        ("(doc 'mail/search-emails)", ":query string"),
        ("(apropos \"email\")", "(mail/fetch-emails"),
        ("(apropos email)", "(mail/get-email"),
        ("(apropos group-by)", "(group-by"),
    ] {
        let answer = client.eval(program);
        assert!(ok(&answer).contains(words), "{program}: {}", answer.text);
    }
    ok(&client.eval("(def invoices \"what was billed\" [1 2 3])"));
    for (query, words) in [
        (json!({}), "invoices  vector of 3: [1 2 3]"),
        (json!({"query": "search"}), "(mail/search-emails"),
        (json!({"query": "mail"}), "(mail/fetch-emails"),
        (json!({"query": "mail/get-email"}), ":id"),
        (json!({"query": "billed"}), "invoices"),
        (json!({"query": "reduce"}), "(reduce f"),
    ] {
        let answer = client.call("lisp_env", query.clone());
        assert!(ok(&answer).contains(words), "{query}: {}", answer.text);
    }
}

#[test]
fn history_holds_across_calls() {
    let mut client = Client::start(&mailbox(), &[]);
    ok(&client.eval("(+ 1 2)"));
    ok(&client.eval("(* *1 10)"));
    assert_eq!(ok(&client.eval("[*1 *2]")).lines().next(), Some("[30 3]"));
    assert!(client.eval("(nth [] 1)").is_error);
    assert!(ok(&client.eval("(ex-message *e)")).contains("index 1"));
}

#[test]
fn a_program_summarises_a_folder_of_files() {
    let Some(server) = installed(FILESYSTEM) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("alpha.txt", "one two three\nERROR first\n"),
        ("beta.txt", "one two\n"),
        ("gamma.log", "ERROR a\nERROR b\nfine\n"),
    ] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let path = folder.path().to_string_lossy().into_owned();
    let mut client = Client::start(
        &json!({"mcpServers": {"files": {"command": "node", "args": [server, path], "start_timeout_seconds": 60}}}),
        &[],
    );
    let program = format!(
        r#"(let [root {path:?}
                 names (->> (files/list_directory :path root) :content (re-seq #"\[FILE\] ([\w.]+)") (map second) sort)
                 text (fn [name] (:content (files/read_text_file :path (str root "/" name))))
                 summary (fn [name content]
                           {{:file name
                             :words (count (re-seq #"[A-Za-z]+" content))
                             :errors (count (re-seq #"ERROR" content))}})]
             (map summary names (pmap text names)))"#
    );
    let answer = client.eval(&program);
    let expected = r#"({:file "alpha.txt", :words 5, :errors 1} {:file "beta.txt", :words 2, :errors 0} {:file "gamma.log", :words 5, :errors 2})"#;
    assert_eq!(ok(&answer).lines().next(), Some(expected), "{answer:?}");
    assert!(answer.text.contains("[4 tool calls]"), "{}", answer.text);
}

#[test]
fn a_limit_says_how_a_client_asks_for_more_and_where_the_end_is() {
    let mut client = Client::start(&mailbox(), &["--limit", "calls=3"]);
    let program = "(dotimes [_ 5] (mail/list-labels))";
    for (limits, suggestion) in [
        (json!({"calls": 1}), "call again with `limits: {\"calls\": …}`, at most 3"),
        (json!({}), "do less in one call: the operator allows at most 3 (`serve --limit calls=VALUE`)"),
        (json!({"calls": 100}), "do less in one call: the operator allows at most 3 (`serve --limit calls=VALUE`)"),
    ] {
        let answer = client.call("lisp_eval", json!({"program": program, "limits": limits}));
        assert_eq!(answer.record["limit"], "calls", "{answer:?}");
        assert_eq!(answer.record["suggestion"], suggestion);
        assert!(answer.text.contains(suggestion), "{}", answer.text);
    }
}

#[test]
fn a_server_is_no_function_and_an_unknown_one_is_named() {
    let mut client = Client::start(&mailbox(), &[]);
    let answer = client.eval("(mail)");
    let server = "`(dir 'mail)` lists its tools; one is called as `(mail/TOOL …)`";
    assert_eq!((&answer.record["error"], &answer.record["suggestion"]), (&json!("UnboundVariable"), &json!(server)));
    let answer = client.eval("(calendar/list-events)");
    assert_eq!(answer.record["message"], "`calendar/list-events` is not defined: there is no server `calendar`");
    assert_eq!(answer.record["suggestion"], "there are `mail`; `(dir)` lists servers and namespaces");
    // A misspelt name of the language is still reported as such.
    let answer = client.eval("(str/jion \",\" [1])");
    assert_eq!(answer.record["suggestion"], "Did you mean str/join?");
}
