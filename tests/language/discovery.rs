//! Tool discovery: the output of `dir`, `doc`, `apropos` and `lisp_env`, which stays short for any number of tools.

use crate::common;

use common::{Scripted, session};
use lispbox::lang::{Catalogue, Host, Request, Server, Session, Tool, ToolCall, ToolError, ToolHints, ToolReply};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A host with these tools, none of which can be called.
#[derive(Default)]
struct Shelves {
    tools: Vec<Arc<Tool>>,
    /// Servers without tools.
    others: Vec<String>,
    missing: Vec<(String, String)>,
}

impl Shelves {
    fn new(tools: Vec<Tool>) -> Arc<Shelves> {
        Arc::new(Shelves { tools: tools.into_iter().map(Arc::new).collect(), ..Shelves::default() })
    }

    /// Creates a host with that many servers, and that many tools on each.
    fn many(servers: usize, tools: usize) -> Arc<Shelves> {
        let verbs = ["get", "list", "search", "create", "update", "delete", "archive", "share", "export", "move"];
        let nouns =
            ["ticket", "invoice", "contact", "document", "event", "channel", "message", "report", "branch", "order"];
        let tool = |server: usize, at: usize| Tool {
            server: format!("service-{server}"),
            name: format!("{}_{}_{}", verbs[at % 10], nouns[at / 10 % 10], at / 100),
            description: format!(
                "Does {} with one {} of the service, to be used in a team.",
                verbs[at % 10],
                nouns[at / 10 % 10]
            ),
            input_schema: json!({"type": "object", "required": ["id"], "properties": {
                "id": {"type": "string", "description": "Which one."},
                "limit": {"type": "integer", "default": 50}}}),
            ..Tool::default()
        };
        Shelves::new((0..servers).flat_map(|server| (0..tools).map(move |at| tool(server, at))).collect())
    }
}

impl Host for Shelves {
    fn servers(&self) -> Vec<Server> {
        let mut names: Vec<&str> = self.tools.iter().map(|tool| tool.server.as_str()).collect();
        names.dedup();
        names.extend(self.others.iter().map(String::as_str));
        let description = "a service for teams, ".repeat(20);
        names.into_iter().map(|name| Server { name: name.to_string(), description: description.clone() }).collect()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        Ok(self.tools.iter().filter(|tool| tool.server == server).cloned().collect())
    }

    fn catalogue(&self) -> Catalogue {
        Catalogue { tools: self.tools.clone(), missing: self.missing.clone() }
    }

    fn call(&self, _: ToolCall) -> ToolReply {
        ToolReply::Denied("nothing is called here".to_string())
    }

    fn now_millis(&self) -> i64 {
        0
    }

    fn random(&self) -> u64 {
        4
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Returns the output of a program.
fn prints(session: &mut Session, program: &str, host: &Arc<Shelves>) -> String {
    let reply = session.eval(Request::new(program), host.clone());
    assert!(reply.failure.is_none(), "{program}: {:?}", reply.failure);
    reply.prints
}

/// A server each of whose tools has an unusual parameter schema.
fn office() -> Arc<Shelves> {
    let tool = |name: &str, description: &str, schema: Value| Tool {
        server: "office".into(),
        name: name.into(),
        description: description.into(),
        input_schema: schema,
        ..Tool::default()
    };
    Shelves::new(vec![
        Tool {
            output_schema: Some(json!({"type": "object", "required": ["id"], "properties": {
                "id": {"type": "string"}, "sent_at": {"type": ["string", "null"]}}})),
            ..tool(
                "send_email",
                "Sends an email.\nIt goes out at once.",
                json!({"type": "object", "required": ["to", "body"], "$defs": {
                        "Person": {"type": "object", "required": ["email"], "properties": {
                            "email": {"type": "string"}, "name": {"type": "string"}}}},
                    "properties": {
                        "body": {"type": "string", "description": "The text."},
                        "to": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
                        "priority": {"enum": ["low", "high"], "default": "low"},
                        "replyTo": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null}}}),
            )
        },
        Tool {
            seen: Some(json!({"type": "array", "items": {"type": "object", "required": ["id"], "properties": {
                "id": {"type": "integer"}, "title": {"type": "string"}}}})),
            ..tool(
                "list_meetings",
                "Lists meetings. All of them.",
                json!({"type": "object", "properties": {"day": {}}}),
            )
        },
        tool("room", "", json!({"type": "object"})),
    ])
}

#[test]
fn a_line_says_how_a_tool_is_called_and_what_it_gives() {
    let listing = "\
(office/send_email :body string :to [{:email string :name? string}] :priority? \"low\"|\"high\"=\"low\" :reply-to? string) -> {:id :sent_at?}  Sends an email
(office/list_meetings :day? any) -> seen [{:id :title?}]  Lists meetings
(office/room)
";
    assert_eq!(prints(&mut session(), "(dir 'office)", &office()), listing);
}

#[test]
fn the_documentation_says_all_of_it_and_where_the_schema_is() {
    let (mut session, office) = (session(), office());
    let text = "\
(office/send_email :body string :to [{:email string :name? string}] :priority? \"low\"|\"high\"=\"low\" :reply-to? string)
  Sends an email.
  It goes out at once.
  :body string, required  The text.
  :to [{:email string :name? string}], required
  :priority \"low\"|\"high\"=\"low\"
  :reply-to string
  returns {:id string :sent_at? string|nil}
  (doc office/send_email :schema) shows its JSON Schema
";
    assert_eq!(prints(&mut session, "(doc office/send-email)", &office), text);
    let seen = prints(&mut session, "(doc list-meetings)", &office);
    assert!(
        seen.contains("\n  seen to return [{:id integer :title? string}]; its server does not declare this\n"),
        "{seen}"
    );
    let schema = prints(&mut session, "(doc office/send_email :schema)", &office);
    assert!(schema.starts_with("arguments {\"type\":\"object\",\"required\":[\"to\",\"body\"]"), "{schema}");
    assert!(schema.contains("\nreturns {\"type\":\"object\""), "{schema}");
    assert_eq!(session.describe(Some("doc office/send_email :schema"), office.clone()), schema);
    let refused = session.eval(Request::new("(doc map :schema)"), office.clone()).failure.expect("it has none");
    assert_eq!(refused.message, "there is no tool called `map`, and only tools have schemas");
    let refused = session.eval(Request::new("(doc map :shape)"), office).failure.expect("there is no such part");
    assert_eq!(refused.message, "there is no tool called `map`, and only tools have arguments to show");
}

#[test]
fn a_search_takes_what_a_person_would_say() {
    let (mut session, office) = (session(), office());
    for query in ["send an email to someone", "serach or sned emial", "office mail sending", "reply-to"] {
        let found = prints(&mut session, &format!("(apropos \"{query}\")"), &office);
        assert!(found.starts_with("(office/send_email "), "{query}: {found}");
    }
    let found = prints(&mut session, "(apropos \"frequencies\")", &office);
    assert!(found.starts_with("(frequencies coll)"), "{found}");
    let found = prints(&mut session, "(apropos \"->>\")", &office);
    assert!(found.starts_with("(->> "), "{found}");
    let found = prints(&mut session, "(defn room-size \"How large a room is.\" [] 1) (apropos \"room size\")", &office);
    assert!(found.starts_with("room-size  How large a room is.\n(office/room)\n"), "{found}");
    let nothing = prints(&mut session, "(apropos \"xylophone\")", &office);
    assert_eq!(nothing, "no name or description matches `xylophone`; (dir) lists servers and namespaces\n");
}

#[test]
fn answers_stay_short_whatever_stands_behind() {
    let mut session = session();
    let (crowd, giant) = (Shelves::many(200, 10), Shelves::many(1, 500));
    for (program, most) in [
        ("(dir)", 6_000),
        ("(dir 'service-7)", 2_000),
        ("(apropos \"search for an invoice\")", 1_500),
        ("(apropos \"service\")", 1_500),
        ("(apropos \"to\")", 1_500),
    ] {
        let text = prints(&mut session, program, &crowd);
        assert!(text.len() < most, "{program}: {} bytes\n{text}", text.len());
    }
    let text = prints(&mut session, "(dir)", &crowd);
    assert!(text.contains("\n… and 160 more servers, search with (apropos \"word\")\n"), "{text}");
    let text = prints(&mut session, "(dir 'service-0)", &giant);
    assert!(text.ends_with("\n… and 460 more, search with (apropos \"word\")\n") && text.len() < 6_000, "{text}");
    assert!(session.describe(None, crowd).len() < 6_000);
}

/// The part of `(dir)` about servers and tools.
fn overview(host: &Arc<Shelves>) -> String {
    let text = prints(&mut session(), "(dir)", host);
    let (servers, rest) = text.split_once("Namespaces: ").expect("the language has namespaces");
    assert!(rest.ends_with("Search with (apropos \"word\"), read with (doc name).\n"), "{rest}");
    let (heading, servers) = servers.split_once('\n').expect("a heading");
    assert_eq!(heading, "Tools by server ((dir 'name) lists those of one, (doc name/tool) says all of one tool):");
    let about_writing = "Many writes: (all-settled f items) returns the outcome of each.\n";
    let some_write = host.tools.iter().any(|tool| tool.hints.read_only != Some(true));
    assert_eq!(servers.ends_with(about_writing), some_write, "{servers}");
    servers.trim_end_matches(about_writing).to_owned()
}

#[test]
fn one_look_shows_the_signatures_of_all_tools_if_they_fit() {
    let office = office();
    let listed = prints(&mut session(), "(dir 'office)", &office);
    let lines: String = listed.lines().map(|line| format!("  {line}\n")).collect();
    let text = overview(&office);
    assert!(text.starts_with("office  a service for teams, ") && text.ends_with(&lines), "{text}");
    assert!(session().describe(None, office.clone()).ends_with(&prints(&mut session(), "(dir)", &office)));
}

#[test]
fn of_many_tools_each_server_shows_its_most_useful_ones() {
    let tool = |server: &str, name: &str, read_only: bool, seen: bool| Tool {
        server: server.into(),
        name: name.into(),
        description: format!("Does {name} with {} of the service.", "very many things and ".repeat(4)),
        input_schema: json!({"type": "object"}),
        hints: ToolHints { read_only: Some(read_only), ..ToolHints::default() },
        seen: seen.then(|| json!({"type": "string"})),
        ..Tool::default()
    };
    let large = (0..200).map(|at| match at {
        120 => tool("large", "used", false, true),
        150 => tool("large", "list_items", true, false),
        _ => tool("large", &format!("change_{at}"), false, false),
    });
    let small = ["add", "remove"].map(|name| tool("small", name, false, false));
    let text = overview(&Shelves::new(large.chain(small).collect()));
    let lines: Vec<&str> = text.lines().collect();
    let shown = |name: &str| lines.iter().position(|line| line.starts_with(&format!("  ({name})")));
    assert!(shown("large/used") < shown("large/list_items") && shown("large/used").is_some(), "{text}");
    assert!(shown("small/add").is_some() && shown("small/remove").is_some(), "{text}");
    let more = lines.iter().find(|line| line.starts_with("  … ")).expect("some are left out");
    assert!(more.ends_with(" more: (dir 'large)"), "{more}");
    assert!((2_500..3_400).contains(&text.chars().count()), "{} characters", text.chars().count());
}

#[test]
fn a_server_without_answer_is_named_with_its_reason() {
    let mut office = Arc::into_inner(office()).expect("just created");
    office.missing.push(("office".to_owned(), "did not\nstart".to_owned()));
    office.tools.clear();
    office.others.push("office".to_owned());
    let text = overview(&Arc::new(office));
    assert!(text.ends_with("\n  its tools are not known: did not start\n"), "{text}");
}

#[test]
fn a_bare_name_is_refused_while_the_tools_of_a_server_are_unknown() {
    let mut office = Arc::into_inner(office()).expect("just created");
    let failure = |office: Shelves, program: &str| {
        session().eval(Request::new(program), Arc::new(office)).failure.expect("nothing is called here")
    };
    assert_eq!(failure(Shelves { tools: office.tools.clone(), ..Shelves::default() }, "(room)").error, "ToolDenied");
    office.missing.push(("mail".to_owned(), "did not start".to_owned()));
    let qualified = Shelves { tools: office.tools.clone(), missing: office.missing.clone(), ..Shelves::default() };
    assert_eq!(failure(qualified, "(office/room)").error, "ToolDenied");
    let refused = failure(office, "(room)");
    assert_eq!(refused.error, "ServerUnavailable");
    assert!(refused.message.contains("`office/room`, or a tool of `mail`, whose tools are not known: did not start"));
}

#[test]
fn a_line_keeps_what_arguments_must_look_like() {
    let tool = Tool {
        server: "crm".into(),
        name: "find_tickets".into(),
        description: "Finds tickets by state, e.g. open ones, in v1.2 of the API. More text.".into(),
        input_schema: json!({"type": "object", "required": ["owner"], "properties": {
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
            "owner": {"type": "string", "description": "Whose tickets; the e-mail address of the owner."},
            "since": {"type": "string", "format": "date-time"},
            "text": {"type": "string", "description": "What to look for."}}}),
        ..Tool::default()
    };
    let expected = "\
(crm/find_tickets :owner string(e-mail address of the owner) :limit? integer(1..100)=20 :since? string(date-time) :text? string)  Finds tickets by state, e.g. open ones, in v1.2 of the API
";
    assert_eq!(prints(&mut session(), "(dir 'crm)", &Shelves::new(vec![tool])), expected);
}

#[test]
fn a_search_among_two_thousand_tools_is_cheap_for_the_program() {
    let host = Shelves::many(40, 50);
    let reply = session().eval(Request::new("(apropos \"search for an invoice\")"), host);
    assert!(reply.prints.starts_with("(service-0/search_invoice_0 "), "{}", reply.prints);
    assert!((2_000..100_000).contains(&reply.spent.fuel), "{}", reply.spent.fuel);
}

#[test]
fn definitions_beyond_the_first_are_counted() {
    let mut session = session();
    let host = Arc::new(Scripted::new());
    let definitions: String = (0..60).map(|n| format!("(def name-{n} {n})")).collect();
    session.eval(Request::new(&*definitions), host.clone());
    let text = session.describe(None, host);
    assert!(text.contains("name-39  ") && !text.contains("name-40  "), "{text}");
    assert!(text.contains("\n… and 20 more, search with (apropos \"word\")\n"), "{text}");
}

/// Returns what a program prints, and its value.
fn printed(program: &str) -> (String, String) {
    let reply = common::eval(program);
    assert!(reply.failure.is_none(), "{program}: {:?}", reply.failure);
    (reply.prints, reply.value.unwrap_or_default())
}

#[test]
fn a_namespace_is_described_with_its_functions() {
    let (csv, _) = printed("(doc csv)");
    assert!(
        csv.starts_with("csv/  CSV text to records and back\n  (csv/parse s & options)  A vector of one map"),
        "{csv}"
    );
    assert!(
        csv.contains("\n  (csv/write rows & options)  ") && csv.ends_with("Read about one with (doc csv/parse).\n")
    );
    assert!(csv.len() < 700, "{csv}");
    for same in ["(doc 'csv)", "(doc \"csv\")", "(doc clojure.data.csv)"] {
        assert_eq!(printed(same).0, csv, "{same}");
    }
    // A name that is also that of a form or function: both with a quote, else the form and where the rest is.
    let (time, _) = printed("(doc 'time)");
    assert!(time.starts_with("(time & forms)\n"), "{time}");
    assert!(time.contains("\n\ntime/  dates, times, durations and time zones"), "{time}");
    assert!(time.contains("\nArithmetic on times:\n  (time/plus t amount | t n unit & more)\n"), "{time}");
    let (form, _) = printed("(doc time)");
    assert!(form.starts_with("(time & forms)\n") && form.ends_with(": (dir 'time)\n"), "{form}");
    assert!(printed("(doc str)").0.contains("`str/` is also a namespace, text: "));
    // A definition of the session is what its name means.
    assert!(printed("(def csv 5) (doc csv)").0.starts_with("csv\n  integer: 5"));
}

#[test]
fn every_namespace_lists_signatures_by_group() {
    let listed = printed("(dir)").0;
    let names = listed.lines().find_map(|line| line.strip_prefix("Namespaces: ")).expect("they are listed");
    for name in names.split_whitespace() {
        let (text, value) = printed(&format!("(dir '{name})"));
        assert_eq!(value, "nil");
        assert!(text.len() < 10_000, "{name}: {}", text.len());
        assert!(!printed(&format!("(doc '{name})")).0.is_empty(), "{name}");
        if name != "core" {
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).collect();
            assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("  (")), "{name}: {text}");
        }
    }
    assert!(printed("(dir 'str)").0.contains("  (str/split s separator | s separator limit)\n"));
    assert_eq!(printed("(dir 'clojure.string)").0, printed("(dir 'str)").0);
}

#[test]
fn what_prints_inside_of_data_leaves_nil_there() {
    let doc = printed("(doc map)").0;
    let dir = printed("(dir)").0;
    let cases = [
        ("[(doc map)]", doc.clone(), "[nil]"),
        ("{:a (dir)}", dir.clone(), "{:a nil}"),
        ("(do (doc map) 1)", doc.clone(), "1"),
        ("(let [x (dir)] [x])", dir.clone(), "[nil]"),
        ("[(doc map) (dir)]", format!("{doc}{dir}"), "[nil nil]"),
        ("(with-out-str (doc map))", String::new(), ""),
    ];
    for (program, prints, value) in cases {
        let (printed, shown) = printed(program);
        assert_eq!(printed, prints, "{program}");
        assert!(value.is_empty() || shown == value, "{program}: {shown}");
    }
}
