//! Tests of policy decisions.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;

fn policy(text: Value) -> Policy {
    let mut policy = Policy::default();
    let read = policy.read_policy(Some(&text), "policy", "servers.yaml");
    read.unwrap_or_else(|wrong| panic!("{}: {}", wrong.path, wrong.problem));
    policy
}

fn problem(text: Value) -> String {
    let wrong = Policy::default().read_policy(Some(&text), "policy", "servers.yaml").expect_err("it is wrong");
    format!("`{}`: {}", wrong.path, wrong.problem)
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
    let mut rules = json!({"ask": ["send"], "deny": ["drop"], "defaults": {"destructive": "deny"}, "limits": limits});
    rules["repeats"] = json!("keep");
    policy.read_policy(Some(&rules), "policy", file).expect("it is right");
    let said = |policy: &Policy, tool: &str| policy.decide("mail", tool, &destructive()).rule;
    assert_eq!(said(&policy, "send"), "`policy.ask` of servers.yaml has `send`");
    assert_eq!(said(&policy, "drop"), "`policy.deny` of servers.yaml has `drop`");
    assert_eq!(
        said(&policy, "other"),
        "it is destructive, by its own account, and `policy.defaults` is destructive: deny of servers.yaml"
    );
    let caller = Caller { tool: &ToolName::alone("mail", "read"), principal: "ann" };
    assert_eq!(
        Counts::default().take(&policy, false, caller, Duration::ZERO),
        Err("`policy.limits[0]` of servers.yaml allows 0 per minute".to_owned())
    );
    assert!(policy.lines().iter().all(|line| line.contains(file)), "{:?}", policy.lines());
    assert!(policy.lines().iter().any(|line| line.contains("answered by their earlier replies (`policy.repeats` of ")));
    assert_eq!(policy.clone().of_files(&[]), Policy::default());
    policy.read_tools(Some(&json!({"allow": ["send"]})), "tools", file).expect("it is right");
    assert_eq!(said(&policy, "other"), "`tools.allow` of servers.yaml does not have it");
}

#[test]
fn no_minute_has_more_calls_than_its_limit() {
    let policy = policy(json!({"limits": [{"tools": "send-*", "per_minute": 2, "per_day": 3}]}));
    let counts = Counts::default();
    let take = |tool: &str, principal: &str, seconds: u64| {
        let now = Duration::from_secs(seconds);
        counts.take(&policy, false, Caller { tool: &ToolName::alone("mail", tool), principal }, now)
    };
    assert_eq!(take("send-mail", "ann", 0), Ok(()));
    assert_eq!(take("send-mail", "ann", 30), Ok(()));
    let full = "`policy.limits[0]` of servers.yaml allows 2 per minute; the next is free in 1 s";
    assert_eq!(take("send-mail", "ann", 59), Err(full.to_owned()));
    // Other tools and principals have separate counts, and tools without a limit are not counted.
    assert_eq!(take("send-fax", "ann", 59), Ok(()));
    assert_eq!(take("send-mail", "bob", 59), Ok(()));
    (0..10).for_each(|_| assert_eq!(take("search", "ann", 59), Ok(())));
    assert_eq!(take("send-mail", "ann", 60), Ok(()));
    let full = "`policy.limits[0]` of servers.yaml allows 3 per day; the next is free in 86200 s";
    assert_eq!(take("send-mail", "ann", 200), Err(full.to_owned()));
    assert_eq!(take("send-mail", "ann", 86_400), Ok(()));
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
