//! `all-pages` over a real MCP server whose pages have faults; and results and tools of it that need care.

use crate::mcp_client::{Client, script};
use serde_json::json;

fn client() -> Client {
    let server = json!({"command": "python3", "args": [script("paged.py")]});
    Client::start(&json!({"mcpServers": {"t": server}}), &[])
}

#[test]
fn pages_of_every_scheme_are_read_to_the_end() {
    let mut client = client();
    let mut check = |program: &str, expected: &str| assert_eq!(client.eval(program).text, expected, "{program}");
    check("(count (all-pages t/page))", "230\n[12 tool calls]");
    let capped = "asked for 100 items a page, got 50; all pages were counted by what came";
    check(
        "(let [keys (map :key (all-pages t/page {:per-page 100}))] [(count keys) (last keys)])",
        &format!("[230 \"T-229\"]\n[5 tool calls; note: `t/page`: {capped}]"),
    );
    check(
        "(count (set (all-pages t/lying)))",
        "230\n[6 tool calls; note: `t/lying`: its reply says that there are 500 items; 230 came]",
    );
    check("(count (distinct (all-pages t/cursor)))", "230\n[3 tool calls]");
    check("(map :key (take 2 (all-pages t/cursor)))", "(\"T-0\" \"T-1\")\n[1 tool call]");
    // The ticket that moved to the next page comes twice.
    check(
        "(let [keys (map :key (all-pages t/changing))] [(count keys) (count (distinct keys))])",
        "[231 230]\n[3 tool calls]",
    );
}

#[test]
fn cursors_that_go_in_circles_are_an_error() {
    let mut client = client();
    let (code, message) = client.fails("(count (all-pages t/circle))");
    let expected = "the cursor \"A\" (a string) came a second time, on page 3: the pages go in circles";
    assert_eq!((code.as_str(), message.as_str()), ("PagingError", expected));
}

#[test]
fn a_tool_that_may_change_something_is_not_called_for_pages() {
    let mut client = client();
    let answer = client.eval("(count (all-pages t/insert-rows {:start 1}))");
    assert!(answer.is_error && !answer.text.contains("tool call"), "{answer:?}");
    let expected = "PagingError: `t/insert_rows` may change something with each call: its name says so, and its server \
                    does not declare that it only reads; it was not called";
    assert_eq!(answer.text.lines().next(), Some(expected));
    let counted = client.eval("(:rows (t/insert-rows {:start 1}))").text;
    assert_eq!(counted.lines().next(), Some("1"), "nothing was inserted before");
}

#[test]
fn only_tools_that_read_lists_are_marked_as_paged() {
    let mut client = client();
    let line = |client: &mut Client, name: &str| {
        let listed = client.eval("(dir 't)").text;
        let line = listed.lines().find(|line| line.starts_with(&format!("(t/{name}"))).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{name} is not in {listed}"))
    };
    assert!(!line(&mut client, "insert").contains("; pages:"));
    assert!(!line(&mut client, "read").contains("; pages:"), "it is not known to have a list");
    assert!(!line(&mut client, "page").contains("; pages:"));
    assert!(!client.eval("[(t/read-text {:page 1}) (t/page)]").is_error);
    assert!(!line(&mut client, "read").contains("; pages:"), "its result is a text");
    assert!(line(&mut client, "page").contains("; pages: all-pages"), "its result has a list");
}

#[test]
fn tools_for_apps_alone_are_neither_listed_nor_called() {
    let mut client = client();
    let listed = client.eval("(dir 't)").text;
    assert!(listed.contains("(t/both)  The tool both"), "{listed}");
    assert!(listed.contains("(t/cursor :page-token? string)") && listed.contains("; pages: all-pages\n"), "{listed}");
    assert!(!listed.contains("apps") && !listed.contains('\u{7}'), "{listed}");
    assert_eq!(client.fails("(t/apps)").0, "UnknownTool");
    assert!(!client.eval("(apropos \"apps\")").text.contains("t/apps"));
}

#[test]
fn a_text_that_is_a_json_string_is_that_string() {
    let mut client = client();
    assert_eq!(client.eval("(t/quoted)").text, "\"he said \\\"hi\\\"\\n\"\n[1 tool call]");
    assert_eq!(client.eval("(t/number)").text, "\"42\"\n[1 tool call]");
}
