//! Tests of policy decisions.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::lang::Decision as Decided;
use crate::lang::{CallId, Tool, ToolCall, ToolReply};
use crate::server::identity::Identity;

use super::quotas::Caller;
use super::*;

fn policy(text: Value) -> Policy {
    let mut policy = Policy::default();
    let read = policy.read_policy(Some(&text), "policy", "servers.yaml");
    read.unwrap_or_else(|wrong| panic!("{}: {}", wrong.path, wrong.message));
    policy
}

fn problem(text: Value) -> String {
    let wrong = Policy::default().read_policy(Some(&text), "policy", "servers.yaml").expect_err("it is wrong");
    format!("`{}`: {}", wrong.path, wrong.message)
}

const NONE: ToolHints = ToolHints { read_only: None, destructive: None, idempotent: None };

fn destructive() -> ToolHints {
    ToolHints { read_only: Some(false), destructive: Some(true), ..NONE }
}

#[test]
fn what_a_tool_says_of_itself_decides_where_nothing_names_it() {
    let decides = |policy: &Policy, hints: &ToolHints| policy.decide("mail", "send", hints).verdict;
    let read_only = ToolHints { read_only: Some(true), ..NONE };
    let writes = ToolHints { destructive: Some(false), ..NONE };
    let contrary = ToolHints { read_only: Some(true), destructive: Some(true), ..NONE };
    let not_read_only = ToolHints { read_only: Some(false), ..NONE };
    let usual = Policy::default();
    for (hints, effect, verdict) in [
        (read_only, Effect::ReadOnly, Verdict::Allow),
        (writes, Effect::Writes, Verdict::Allow),
        (not_read_only, Effect::Destructive, Verdict::Ask),
        (NONE, Effect::Unannotated, Verdict::Allow),
        (destructive(), Effect::Destructive, Verdict::Ask),
        (contrary, Effect::Destructive, Verdict::Ask),
    ] {
        assert_eq!((Effect::of(&hints), decides(&usual, &hints)), (effect, verdict), "{hints:?}");
    }
    let strict = policy(json!({"defaults": {"destructive": "deny", "unannotated": "ask"}}));
    assert_eq!(decides(&strict, &destructive()), Verdict::Deny);
    assert_eq!(
        strict.decide("mail", "send", &NONE).rule,
        "it does not say what it does, and `policy.defaults` is unannotated: ask of servers.yaml"
    );
    assert_eq!(decides(&strict, &read_only), Verdict::Allow);
    assert_eq!(decides(&strict, &not_read_only), Verdict::Deny);
    for idempotent in [Some(true), Some(false)] {
        assert_eq!(decides(&strict, &ToolHints { idempotent, ..NONE }), Verdict::Ask, "it says nothing of effects");
    }
}

#[test]
fn a_name_goes_before_a_pattern_and_the_stricter_before_the_milder() {
    let policy = policy(json!({
        "allow": ["mail/delete-draft", "get-*", "both"], "ask": ["mail/*", "both"], "deny": ["*/delete-*"]
    }));
    let decides = |tool: &str| policy.decide("mail", tool, &NONE);
    assert_eq!(decides("delete-draft").verdict, Verdict::Allow);
    assert_eq!(decides("delete-all").verdict, Verdict::Deny);
    assert_eq!(decides("delete-all").rule, "`policy.deny` of servers.yaml has `*/delete-*`");
    assert_eq!(decides("get-mail").verdict, Verdict::Ask);
    assert_eq!(decides("both").verdict, Verdict::Ask);
    assert_eq!(policy.decide("files", "get-file", &destructive()).verdict, Verdict::Allow);
    // A policy does not open up tools that a list excludes.
    let mut closed = policy.clone();
    closed.read_tools(Some(&json!({"block": ["delete-*"]})), "tools", "a.json").unwrap_or_else(|_| panic!("right"));
    assert_eq!(closed.decide("mail", "delete-draft", &NONE).rule, "`tools.block` of a.json has `delete-*`");
}

#[test]
fn a_slip_in_a_policy_is_an_error() {
    assert_eq!(problem(json!({"alow": []})), "`policy.alow`: there is no such key; did you mean `allow`?");
    assert_eq!(problem(json!({"ask": "send"})), "`policy.ask`: expected a list of tools, got the string \"send\"");
    assert_eq!(
        problem(json!({"deny": ["a["]})),
        "`policy.deny[0]`: expected a pattern such as `search-*`, got \"a[\": unclosed character class; missing ']'"
    );
    assert_eq!(
        problem(json!({"defaults": {"destructive": "never"}})),
        "`policy.defaults.destructive`: expected `allow`, `ask` or `deny`, got the string \"never\""
    );
    assert_eq!(
        problem(json!({"limits": [{"tools": "send"}]})),
        "`policy.limits[0]`: a limit needs one of `per_evaluation`, `per_minute`, `per_hour`, `per_day`"
    );
    assert_eq!(
        problem(json!({"limits": [{"tools": "send", "per_minute": -1}]})),
        "`policy.limits[0].per_minute`: expected a number of calls up to 100000, got the number `-1`"
    );
}

#[test]
fn the_folder_of_a_file_is_for_the_operator_only() {
    let mut policy = Policy::default();
    let file = "/home/ann/secret-project/servers.yaml";
    let limits = json!([{"tools": "read", "per_minute": 0}]);
    let rules = json!({"ask": ["send"], "deny": ["drop"], "defaults": {"destructive": "deny"}, "limits": limits});
    policy.read_policy(Some(&rules), "policy", file).ok().expect("it is right");
    let said = |policy: &Policy, tool: &str| policy.decide("mail", tool, &destructive()).rule;
    assert_eq!(said(&policy, "send"), "`policy.ask` of servers.yaml has `send`");
    assert_eq!(said(&policy, "drop"), "`policy.deny` of servers.yaml has `drop`");
    assert_eq!(
        said(&policy, "other"),
        "it is destructive, by its own account, and `policy.defaults` is destructive: deny of servers.yaml"
    );
    let caller = Caller { tool: &ToolName::alone("mail", "read"), principal: "ann" };
    assert_eq!(
        Counts::default().take(&policy, false, caller, Instant::now()),
        Err("`policy.limits[0]` of servers.yaml allows 0 per minute".to_owned())
    );
    assert!(policy.lines().iter().all(|line| line.contains(file)), "{:?}", policy.lines());
    policy.read_tools(Some(&json!({"allow": ["send"]})), "tools", file).ok().expect("it is right");
    assert_eq!(said(&policy, "other"), "`tools.allow` of servers.yaml does not have it");
}

#[test]
fn no_minute_has_more_calls_than_its_quota() {
    let policy = policy(json!({"limits": [{"tools": "send-*", "per_minute": 2, "per_day": 3}]}));
    let (counts, begun) = (Counts::default(), Instant::now());
    let take = |tool: &str, principal: &str, seconds: u64| {
        let now = begun + Duration::from_secs(seconds);
        counts.take(&policy, false, Caller { tool: &ToolName::alone("mail", tool), principal }, now)
    };
    assert_eq!(take("send-mail", "ann", 0), Ok(()));
    assert_eq!(take("send-mail", "ann", 30), Ok(()));
    let full = "`policy.limits[0]` of servers.yaml allows 2 per minute; the next is free in 2 s";
    assert_eq!(take("send-mail", "ann", 59), Err(full.to_owned()));
    // Other tools and principals have separate counts, and tools without a quota are not counted.
    assert_eq!(take("send-fax", "ann", 59), Ok(()));
    assert_eq!(take("send-mail", "bob", 59), Ok(()));
    (0..10).for_each(|_| assert_eq!(take("search", "ann", 59), Ok(())));
    assert_eq!(take("send-mail", "ann", 60), Ok(()));
    let full = "`policy.limits[0]` of servers.yaml allows 3 per day; the next is free in 86201 s";
    assert_eq!(take("send-mail", "ann", 200), Err(full.to_owned()));
    assert_eq!(take("send-mail", "ann", 86_400), Ok(()));
}

/// A person who gives the same answer to every question, and records the questions.
struct Person {
    says: Answer,
    shown: Mutex<Vec<String>>,
}

impl Approver for Person {
    fn ask(&self, question: Question, _patience: Duration) -> BoxFuture<'_, Answer> {
        self.shown.lock().expect("not poisoned").push(question.to_string());
        Box::pin(std::future::ready(self.says.clone()))
    }
}

/// Creates a call of a tool.
fn call_of(tool: &Tool) -> ToolCall {
    ToolCall {
        id: CallId::default(),
        server: tool.server.as_str().into(),
        tool: tool.name.as_str().into(),
        arguments: "{}".to_owned(),
        remaining: Duration::from_secs(60),
        timeout: Duration::from_secs(60),
        fuel: 0,
        memory: 0,
        approved: None,
        values: None,
        room: u64::MAX,
    }
}

/// Returns the refusal of a call of the destructive tool `mail/send`, if any, and the questions shown to the person.
fn asked(policy: &Policy, says: Answer, arguments: Value) -> (Option<ToolReply>, Vec<String>) {
    let tool = Tool { server: "mail".into(), name: "send".into(), hints: destructive(), ..Tool::default() };
    let person = Arc::new(Person { says, shown: Mutex::default() });
    let identity = Identity { program: "ab".repeat(32), ..Identity::default() };
    let consent = Consent::new(Arc::new(identity), Arc::<Person>::clone(&person));
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let counts = Counts::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let name = ToolName::alone("mail", "send");
    let mut given = call_of(&tool);
    let refused = runtime.block_on(async {
        let ruling = |given: &ToolCall| {
            let (file, remaining) = ("servers.yaml", Duration::from_secs(60));
            let (tool, name, arguments) = (&tool, &name, &arguments);
            let call = IntendedCall { given, tool, name, arguments, is_checked: true, file, remaining };
            consent.by_policy(&call, policy, &counts)
        };
        let question = match ruling(&given).refused {
            Some(ToolReply::Ask(question)) => *question,
            refused => return refused,
        };
        match consent.decide(std::slice::from_ref(&question)).await.pop() {
            Some(Decided::Approved) => {
                given.approved = Some(question.arguments.into());
                ruling(&given).refused
            }
            Some(Decided::Denied(rule)) => Some(ToolReply::Denied(rule)),
            Some(Decided::Unavailable(why)) => Some(ToolReply::Unapproved(why)),
            other => panic!("{other:?}"),
        }
    });
    let shown = std::mem::take(&mut *person.shown.lock().expect("not poisoned"));
    (refused, shown)
}

#[test]
fn a_person_sees_the_exact_call_and_decides() {
    let arguments = json!({"to": "eve@example.org", "body": "a\u{202E}b\nc"});
    let (refused, shown) = asked(&Policy::default(), Answer::Yes, arguments.clone());
    assert!(refused.is_none(), "{refused:?}");
    assert_eq!(
        shown,
        [
            "A program wants to call mail/send with\n{\n  \"to\": \"eve@example.org\",\n  \"body\": \"a\\u{202e}b\\nc\"\n}\n\n\
          The program's SHA-256 begins with abababababababab. You are asked because it is destructive, by its own \
          account, and `policy.defaults` is destructive: ask, which is the default."
        ]
    );
    let (refused, _) = asked(&Policy::default(), Answer::No, arguments);
    assert!(matches!(&refused, Some(ToolReply::Denied(rule)) if rule.starts_with("a person was asked and said no")));
    let unavailable = Answer::Unavailable("no one answered in time".into());
    let (refused, _) = asked(&policy(json!({"ask": ["send"]})), unavailable, json!({}));
    let Some(ToolReply::Unapproved(what)) = refused else { panic!("{refused:?}") };
    assert_eq!(
        what,
        "`policy.ask` of servers.yaml has `send`; no one answered in time; an operator allows it by `policy: {allow: \
         [mail/send]}` in servers.yaml"
    );
}

#[test]
fn an_approval_is_for_the_arguments_that_were_shown() {
    let tool = Tool { server: "mail".into(), name: "send".into(), hints: destructive(), ..Tool::default() };
    let consent = Consent::new(Arc::default(), Arc::new(no_approver()));
    let (policy, counts, name) = (Policy::default(), Counts::default(), ToolName::alone("mail", "send"));
    let refused = |approved: Option<&str>, arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let given = ToolCall { approved: approved.map(Into::into), ..call_of(&tool) };
        let (tool, name, arguments, file) = (&tool, &name, &arguments, "servers.yaml");
        let remaining = Duration::from_secs(60);
        let call = IntendedCall { given: &given, tool, name, arguments, is_checked: true, file, remaining };
        consent.by_policy(&call, &policy, &counts).refused
    };
    assert!(refused(Some(r#"{"to":"ann"}"#), json!({"to": "ann"})).is_none());
    for (approved, arguments) in [
        (None, json!({"to": "ann"})),
        (Some(r#"{"to":"ann"}"#), json!({"to": "bob"})),
        (Some(r#"{"to":"ann"}"#), json!({"to": "ann", "bcc": "eve"})),
        (Some("{}"), json!({"to": "ann"})),
    ] {
        let refused = refused(approved, arguments.clone());
        assert!(matches!(refused, Some(ToolReply::Ask(_))), "{approved:?} {arguments}: {refused:?}");
    }
}

#[test]
fn arguments_other_than_the_approved_ones_are_asked_about_though_the_policy_allows_the_tool() {
    let tool = Tool { server: "mail".into(), name: "send".into(), ..Tool::default() };
    let consent = Consent::new(Arc::default(), Arc::new(no_approver()));
    let (policy, counts, name) =
        (policy(json!({"allow": ["send"]})), Counts::default(), ToolName::alone("mail", "send"));
    let arguments = Map::from_iter([("to".to_owned(), json!("ann"))]);
    for (approved, is_asked) in [(None, false), (Some(r#"{"to":"ann"}"#), false), (Some(r#"{"to":"bob"}"#), true)] {
        let given = ToolCall { approved: approved.map(Into::into), ..call_of(&tool) };
        let (tool, name, arguments, file) = (&tool, &name, &arguments, "servers.yaml");
        let remaining = Duration::from_secs(60);
        let call = IntendedCall { given: &given, tool, name, arguments, is_checked: true, file, remaining };
        let refused = consent.by_policy(&call, &policy, &counts).refused;
        assert_eq!(matches!(refused, Some(ToolReply::Ask(_))), is_asked, "{approved:?}: {refused:?}");
    }
}

#[test]
fn nobody_is_asked_about_a_call_that_cannot_be_shown() {
    let arguments: Map<String, Value> = (0..3_000).map(|at| (format!("argument-{at}"), at.into())).collect();
    let (refused, shown) = asked(&Policy::default(), Answer::Yes, Value::Object(arguments));
    let Some(ToolReply::Unapproved(what)) = refused else { panic!("{refused:?}") };
    assert!(what.contains("the names of its 3000 arguments are more than a person can be shown"), "{what}");
    assert_eq!(shown, [""; 0]);
}

#[test]
fn nobody_is_asked_about_what_is_used_up_or_denied() {
    let used_up = policy(json!({"limits": [{"tools": "send", "per_evaluation": 0}]}));
    let denied = policy(json!({"deny": ["send"]}));
    for policy in [used_up, denied] {
        let (refused, shown) = asked(&policy, Answer::Yes, Value::Object(Map::new()));
        assert!(matches!(refused, Some(ToolReply::Denied(_))), "{refused:?}");
        assert_eq!(shown, [""; 0]);
    }
}

#[test]
fn variables_may_have_more_blanks_than_patterns() {
    let mut policy = Policy::default();
    let texts = ["", " explode  get_* ", "\n"].map(str::to_owned);
    policy.add_flag(Verdict::Deny, &texts).expect("patterns");
    assert_eq!(policy.lines(), ["deny explode, get_* (`--deny`)"]);
    policy.add_variable(Verdict::Ask, "LISPBOX_ASK", &["".to_owned()]).expect("none");
    assert_eq!(policy.lines().len(), 1);
    let empty = problem(json!({"deny": [""]}));
    assert_eq!(empty, "`policy.deny[0]`: expected a pattern such as `search-*`, got \"\": it is empty");
}

/// A rule that may mean another tool applies if it denies, asks or limits, and not if it allows.
#[test]
fn what_is_not_certain_forbids_and_does_not_allow() {
    let servers = Names::of(["a", "a__b"]);
    let tools = Names::of(["c", "b__c"]);
    let name =
        |server| ToolName::among(server, if server == "a" { "b__c" } else { "c" }, &servers, Known::Tools(&tools));
    let verdict = |rules: Value, server| policy(rules).decide_on(&name(server), &destructive()).verdict;
    for server in ["a", "a__b"] {
        assert_eq!(verdict(json!({"allow": ["mcp__a__b__c"]}), server), Verdict::Ask);
        assert_eq!(verdict(json!({"deny": ["mcp__a__b__c"]}), server), Verdict::Deny);
        // A question does not override a denial either.
        assert_eq!(verdict(json!({"ask": ["mcp__a__b__c"], "deny": ["*c"]}), server), Verdict::Deny);
        assert_eq!(verdict(json!({"ask": ["mcp__a__b__c"], "allow": ["c", "b__c"]}), server), Verdict::Ask);
        assert_eq!(policy(json!({"deny": ["mcp__a__b__c"]})).denial_by_name(&name(server)), None);
    }
    assert_eq!(verdict(json!({"allow": ["a__b/c"]}), "a__b"), Verdict::Allow);
    assert_eq!(verdict(json!({"allow": ["a__b/c"]}), "a"), Verdict::Ask);
}

#[test]
fn rules_that_fit_no_tool_are_found() {
    let names = Names::of(["financial-data", "gone"]);
    let tools = Names::of(["explode", "getEmail"]);
    let listed = [Listed { server: "financial-data", tools: Some(&tools) }, Listed { server: "gone", tools: None }];
    let policy = policy(json!({
        "deny": ["mcp__financial_data__explod", "financial_data/get_*", "financial-data/xyzzy", "nothing"],
        "allow": ["Get-Email"],
        "limits": [{"tools": ["explode", "financial-data/sned"], "per_hour": 1, "per_day": 2}],
    }));
    let timeouts = std::collections::BTreeMap::from([("get_mail".to_owned(), Duration::from_secs(1))]);
    let timeouts = Timeouts::of(&timeouts);
    let unfit = unfit(&policy, Some((&timeouts, "servers.yaml")), &listed, &names);
    let said: Vec<String> = unfit.iter().map(ToString::to_string).collect();
    let expected = [
        "`policy.deny` of servers.yaml has `mcp__financial_data__explod`, which matches no known tool; did you mean \
         `mcp__financial-data__explode`?",
        "`policy.deny` of servers.yaml has `financial-data/xyzzy`, which matches no known tool",
        "`policy.deny` of servers.yaml has `nothing`, which matches no known tool (the tools of gone are not known)",
        "`policy.limits[0]` of servers.yaml has `financial-data/sned`, which matches no known tool",
        "`tool_timeout_seconds` of servers.yaml has `get_mail`, which matches no known tool; did you mean `getEmail`? \
         (the \
         tools of gone are not known)",
    ];
    assert_eq!(said, expected);
}
