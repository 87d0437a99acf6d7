//! Tests of names and patterns in all spellings.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use lispbox_lang::ToolHints;

use super::super::call_limits::Caller;
use super::super::{Counts, Policy, Timeouts, Verdict};
use super::*;

fn pattern(text: &str) -> ToolPattern {
    ToolPattern::new(text).unwrap_or_else(|problem| panic!("{problem}"))
}

/// Returns how a pattern matches a tool without similar names.
fn fit_of(text: &str, server: &str, tool: &str) -> Option<Fit> {
    pattern(text).fit(&ToolName::alone(server, tool)).map(|(fit, _)| fit)
}

#[test]
fn a_rule_fits_a_tool_in_every_spelling_that_programs_can_use() {
    let explode = [
        "explode",
        "EXPLODE",
        "ex-plode",
        "mcp__financial_data__explode",
        "mcp__financial-data__Explode",
        "MCP__financialdata__explode",
        "financial_data/explode",
        "financial-data/EXPLODE",
        "FinancialData/explode",
        "mcp__financial_data",
        "mcp__financial-data__*",
        "mcp__*",
        "mcp__fin*",
        "mcp__*__expl*",
        "mcp__fin*plode",
        "*",
        "**",
        "*/*",
        "**/explode",
        "{explode,other}",
        "{financial_data,mail}/explode",
        "financial[_-]data/explode",
        "financial\\_data/expl\\ode",
        "financial?data/explode",
        "f*_data/e[x-z]plode",
        "financial-data[/]explode",
        "EXP*",
        "e[X]plode",
        "Financial Data/explode",
    ];
    for text in explode {
        assert_eq!(fit_of(text, "financial-data", "explode"), Some(Fit::Certain), "{text}");
        assert_eq!(fit_of(text, "financial_data", "Explode"), Some(Fit::Certain), "{text}");
    }
    let get_email = [
        "financial-data/get-email",
        "mcp__financial-data__getEmail",
        "financial_data/get_*",
        "get_email",
        "GETEMAIL",
        "get-*",
        "*_email",
        "get?email",
        "{get_email,send}",
        "get_e*",
        "g-et*",
        "[gx]et_email",
        "[!a]et*",
        "get[_-]*",
        "get\\_email",
        "get{_email,_all}",
        "get{,_all}{_email,}",
    ];
    for text in get_email {
        for tool in ["getEmail", "get_email", "get-email", "GetEmail"] {
            assert_eq!(fit_of(text, "financial-data", tool), Some(Fit::Certain), "{text} {tool}");
        }
    }
}

#[test]
fn a_rule_fits_no_other_tool() {
    for (text, server, tool) in [
        ("a/bc", "ab", "c"),
        ("ab/c", "a", "bc"),
        ("mcp__a__bc", "ab", "c"),
        ("mcp__ab__c", "a", "bc"),
        ("explode", "mail", "explodes"),
        ("send_*", "mail", "resend"),
        ("*/send", "mail", "send_all"),
        ("mcp__mail__*", "mailbox", "send"),
        ("mcp__mail__send", "mail-send", "x"),
        ("mcp__mail", "mailbox", "send"),
        ("mcp__a__b", "ab", "c"),
        ("get?", "mail", "gets_it"),
        ("get[.]email", "mail", "get_email"),
        ("get[a-z]email", "mail", "get_email"),
        ("[!a]*", "mail", "add"),
        ("mail/send", "mailbox", "send"),
        ("_*", "mail", "send"),
        ("*_*", "mail", "send"),
        ("mcp__", "mail", "send"),
        ("*l/read", "evil", "l/reads"),
        ("send", "mail", "ſend"),
        ("mail", "ｍail", "send"),
    ] {
        assert_eq!(fit_of(text, server, tool), None, "{text}: {server}/{tool}");
    }
    // Under free spelling `get_*` also matches names that can be spelled that way; such matches deny but do not allow.
    for (text, tool) in [
        ("get_*", "getaway"),
        ("*_read", "mark_unread"),
        ("_get*", "getEmail"),
        ("get_*", "getemail"),
        ("get?email", "getemail"),
        ("get[_.-]email", "getemail"),
        ("get[!a-z]email", "getemail"),
        ("get[!_]email", "get_email"),
        ("get[^.]?email", "getemail"),
        ("get[!A-Z]mail", "getEmail"),
        ("?get*", "getemail"),
        ("get?", "get"),
        ("[_g]?[!x]et", "get"),
        ("???", "go"),
        ("[!g]et", "get"),
    ] {
        assert_eq!(fit_of(text, "mail", tool), Some(Fit::Possible), "{text} {tool}");
    }
    for (text, server) in [
        ("mail?box/send", "mailbox"),
        ("mcp__mail[-_]box__se?nd", "mailbox"),
        ("mcp__mail??send", "mail"),
        ("mcp__mail[_-]_send", "mail"),
        ("mcp__m?il?_s*", "mail"),
    ] {
        assert_eq!(fit_of(text, server, "send"), Some(Fit::Possible), "{text} {server}");
    }
    for (text, tool) in [("*d/read", "bad/read"), ("mail/send", "mail/send")] {
        assert_eq!(fit_of(text, "mail", tool), Some(Fit::Possible), "{text} {tool}");
    }
}

#[test]
fn letters_are_compared_as_programs_compare_them() {
    for (text, tool) in
        [("İ", "i\u{307}"), ("ÄÖ", "äö"), ("ＡＢ", "ａｂ"), ("Σ", "σ"), ("\u{212A}", "k"), ("ſend", "ſ-end")]
    {
        assert_eq!(fit_of(text, "mail", tool), Some(Fit::Certain), "{text} {tool}");
    }
    for (text, tool) in [("ſend", "send"), ("ＡＢ", "ab"), ("ς", "σ"), ("ß", "ss"), ("s*", "ſend"), ("[s]*", "ſend")]
    {
        assert_eq!(fit_of(text, "mail", tool), None, "{text} {tool}");
    }
}

#[test]
fn a_name_that_two_tools_have_up_to_spelling_fits_both_unless_it_is_one_of_them() {
    let (servers, tools) = (Names::of(["mail-box", "mail_box"]), Names::of(["getEmail", "get_email", "send"]));
    let fits = |text: &str, server, tool| {
        let name = ToolName::among(server, tool, &servers, Known::Tools(&tools));
        pattern(text).fit(&name).map(|(fit, _)| fit)
    };
    let both = |text: &str| [fits(text, "mail-box", "getEmail"), fits(text, "mail-box", "get_email")];
    let (certain, possible) = (Some(Fit::Certain), Some(Fit::Possible));
    assert_eq!(both("getEmail"), [certain, None]);
    assert_eq!(both("mail-box/get_email"), [None, certain]);
    assert_eq!(both("mcp__mail-box__getEmail"), [certain, None]);
    assert_eq!(both("get-email"), [certain, certain]);
    assert_eq!(both("getE*"), [certain, possible]);
    assert_eq!(both("get-*"), [certain, certain]);
    let servers_of = |text: &str| [fits(text, "mail-box", "send"), fits(text, "mail_box", "send")];
    assert_eq!(servers_of("mail-box/send"), [certain, None]);
    assert_eq!(servers_of("mcp__mail_box__send"), [None, certain]);
    assert_eq!(servers_of("mcp__mail_box"), [None, certain]);
    assert_eq!(servers_of("mailbox/send"), [certain, certain]);
    // While the tools of a server are unknown, a rule in another spelling may mean another tool.
    let unknown = ToolName::among("mail-box", "getEmail", &servers, Known::Nothing);
    assert_eq!(pattern("get_email").fit(&unknown), Some((Fit::Possible, true)));
    assert_eq!(pattern("getEmail").fit(&unknown), Some((Fit::Certain, true)));
}

#[test]
fn a_server_may_be_named_as_its_configuration_names_it() {
    // Programs refer to the server `a/b` as `a-b`.
    for text in ["a/b/x", "A/b/X", "a/b/*", "a/*/x", "a/b?/x", "{a/b,c}/x", "mcp__a/b__x", "a-b/x", "*/b/x", "a/b[/]x"]
    {
        let fit = fit_of(text, "a-b", "x");
        assert_eq!(fit, Some(if text == "a/b?/x" { Fit::Possible } else { Fit::Certain }), "{text}");
    }
    for (text, server, tool) in [("a/b/x", "a-c", "x"), ("a/b/x", "b", "x"), ("a/b/x", "a", "x"), ("a/b/x", "a-b", "y")]
    {
        assert_eq!(fit_of(text, server, tool), None, "{text}: {server}/{tool}");
    }
    assert_eq!(fit_of("a/b/x", "a", "b/x"), Some(Fit::Certain));
    let servers = Names::of(["a", "a-b"]);
    for (server, tool) in [("a-b", "x"), ("a", "b/x")] {
        let name = ToolName::among(server, tool, &servers, Known::Alone);
        assert_eq!(pattern("a/b/x").fit(&name).map(|(fit, _)| fit), Some(Fit::Possible), "{server}/{tool}");
    }
}

#[test]
fn a_long_name_may_be_split_at_every_mark() {
    let one = |servers: &[&str], server, tool| {
        let servers = Names::of(servers.iter().copied());
        pattern("mcp__a__b__c").fit(&ToolName::among(server, tool, &servers, Known::Alone)).map(|(fit, _)| fit)
    };
    assert_eq!(one(&["a__b", "x"], "a__b", "c"), Some(Fit::Certain));
    assert_eq!(one(&["a", "x"], "a", "b__c"), Some(Fit::Certain));
    assert_eq!(one(&["a", "a__b"], "a", "b__c"), Some(Fit::Possible));
    assert_eq!(one(&["a", "a__b"], "a__b", "c"), Some(Fit::Possible));
    // A server cannot claim a name that means the tool of another server.
    assert_eq!(one(&["a", "evil"], "evil", "mcp__a__b__c"), Some(Fit::Possible));
    assert_eq!(one(&["evil"], "evil", "mcp__a__b__c"), Some(Fit::Certain));
    assert_eq!(fit_of("mcp__a__b", "a__b", "x"), Some(Fit::Certain));
    assert_eq!(fit_of("a/b/c", "a", "b/c"), Some(Fit::Certain));
}

#[test]
fn a_pattern_with_a_slip_is_an_error() {
    for (text, problem) in [
        ("", "it is empty"),
        ("{,}", "it is empty"),
        ("a[", "unclosed character class; missing ']'"),
        ("a\\", "dangling '\\'"),
        ("{a,b", "unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"),
        ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "its braces expand to more than 256 names"),
    ] {
        let expected = format!("expected a pattern such as `search-*`, got {text:?}: {problem}");
        assert_eq!(ToolPattern::new(text).expect_err(text), expected);
    }
}

/// A name of a few words, without the marks that split names.
fn words() -> impl Strategy<Value = String> {
    proptest::collection::vec("[a-z][a-z0-9]{0,4}", 1..4).prop_map(|words| words.join("_"))
}

/// Returns another spelling of a name, with separators anywhere.
fn freely_spelled(name: &str, choices: &[Index]) -> String {
    let mut out = String::new();
    for (at, letter) in name.chars().filter(|c| *c != '_').enumerate() {
        let choice = choices[at % choices.len()].index(32);
        out.push_str(["", "", "-", "_", "", "_-", "", "--"][choice >> 2]);
        out.extend(if choice & 1 == 0 { vec![letter] } else { letter.to_uppercase().collect() });
        out.push_str(if choice & 2 == 0 || at + 1 < name.len() { "" } else { "_" });
    }
    out
}

/// Returns a pattern that matches a text: each character is literal or, by choice, a wildcard or class that contains
/// it.
fn pattern_of(text: &str, choices: &[Index]) -> String {
    let wild = |(at, c): (usize, char)| match choices[at % choices.len()].index(14) {
        0 => "?".to_owned(),
        1 => "*".to_owned(),
        2 => format!("[.{c}]"),
        3 => format!("[^{}]", if c == '_' { '-' } else { '_' }),
        4 => format!("[!{}.]", if c.is_lowercase() { "A-Z" } else { "a-z" }),
        5 => format!("\\{c}"),
        6 => format!("{c}*"),
        _ => c.to_string(),
    };
    text.chars().enumerate().map(wild).collect()
}

/// Returns another spelling of a name: other cases, and separators anywhere except at the edges or adjacent.
fn spelled(name: &str, choices: &[Index]) -> String {
    let letters: Vec<char> = name.chars().filter(|c| *c != '_').collect();
    let mut out = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let choice = choices[at % choices.len()].index(8);
        out.extend(if choice & 1 == 0 { vec![*letter] } else { letter.to_uppercase().collect() });
        if at + 1 < letters.len() {
            out.push_str(match choice >> 1 {
                0 => "-",
                1 => "_",
                _ => "",
            });
        }
    }
    out
}

fn rule(form: usize, server: &str, tool: &str) -> String {
    match form {
        0 => tool.to_owned(),
        1 => format!("{server}/{tool}"),
        2 => format!("mcp__{server}__{tool}"),
        _ => format!("{{{server}/{tool},other/none}}"),
    }
}

fn policy(rules: Value) -> Policy {
    let mut policy = Policy::default();
    let read = match rules.get("tools") {
        Some(tools) => policy.read_tools(Some(tools), "tools", "a.yaml"),
        None => policy.read_policy(Some(&rules), "policy", "a.yaml"),
    };
    read.unwrap_or_else(|wrong| panic!("{}", wrong.problem));
    policy
}

const NONE: ToolHints = ToolHints { read_only: None, destructive: None, idempotent: None };
const DESTRUCTIVE: ToolHints = ToolHints { read_only: None, destructive: Some(true), idempotent: None };

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn every_kind_of_rule_decides_alike_on_all_spellings(
        server in words(), tool in words(), other in words(),
        choices in proptest::collection::vec(any::<Index>(), 12..40), form in 0usize..4, real in any::<bool>(),
    ) {
        let turned: Vec<Index> = choices.iter().rev().copied().collect();
        // The tool name itself may have any spelling as well.
        let (server, tool) = if real { (server.clone(), spelled(&tool, &turned)) } else { (spelled(&server, &turned), tool) };
        let text = rule(form, &spelled(&server.replace('-', "_").to_lowercase(), &choices), &spelled(&tool.replace('-', "_").to_lowercase(), &choices[3..]));
        let hints = DESTRUCTIVE;
        prop_assert_eq!(policy(json!({"deny": [text]})).decide(&server, &tool, &hints).verdict, Verdict::Deny, "{}", text);
        prop_assert_eq!(policy(json!({"allow": [text]})).decide(&server, &tool, &hints).verdict, Verdict::Allow, "{}", text);
        prop_assert_eq!(policy(json!({"ask": [text]})).decide(&server, &tool, &NONE).verdict, Verdict::Ask, "{}", text);
        prop_assert!(policy(json!({"tools": {"block": [text]}})).denies(&server, &tool, &NONE), "{}", text);
        prop_assert!(!policy(json!({"tools": {"allow": [text]}})).denies(&server, &tool, &NONE), "{}", text);
        let name = ToolName::alone(&server, &tool);
        let (limited, counts) = (policy(json!({"limits": [{"tools": text, "per_hour": 1}]})), Counts::default());
        let take = || counts.take(&limited, false, Caller { tool: &name, principal: "ann" }, Duration::ZERO);
        prop_assert!(take().is_ok() && take().is_err(), "{}", text);
        let second = Duration::from_secs(1);
        prop_assert_eq!(Timeouts::of(&BTreeMap::from([(text.clone(), second)])).get(&name), Some(second), "{}", text);

        // No rule for another tool matches.
        if canonical_tool(&other) != canonical_tool(&tool) {
            let text = rule(form, &spelled(&server, &choices), &spelled(&other, &choices));
            prop_assert_eq!(policy(json!({"deny": [text]})).decide(&server, &tool, &NONE).verdict, Verdict::Allow, "{}", text);
        }
        if canonical_tool(&other) != canonical_tool(&server) && form > 0 {
            let text = rule(form, &spelled(&other, &choices), &spelled(&tool, &choices));
            prop_assert_eq!(policy(json!({"deny": [text]})).decide(&server, &tool, &NONE).verdict, Verdict::Allow, "{}", text);
        }
    }

    /// A pattern that matches the name by which a program calls a tool denies the call, regardless of the server's
    /// spelling.
    #[test]
    fn a_pattern_of_any_spelling_forbids(
        tool in words(), choices in proptest::collection::vec(any::<Index>(), 24..60), in_full in any::<bool>(),
    ) {
        let called = freely_spelled(&tool, &choices);
        let text = pattern_of(&called, &choices[7..]);
        let glob = globset::GlobBuilder::new(&text).backslash_escape(true).build().expect("a pattern");
        prop_assert!(glob.compile_matcher().is_match(&called), "{} {}", text, called);
        // A pattern that would match every name is compared only with the tool's own name.
        let is_letter = |c: char| c.is_ascii_alphanumeric();
        if !text.contains('*') || text.replace("[!a-z.]", "").replace("[!A-Z.]", "").contains(is_letter) {
            let text = if in_full { format!("mail/{text}") } else { text };
            for name in [tool.clone(), spelled(&tool, &choices[3..]), freely_spelled(&tool, &choices[5..])] {
                prop_assert!(policy(json!({"deny": [text]})).denies("mail", &name, &NONE), "{} {} {}", text, called, name);
            }
        }
    }

    /// Every match of globset is a match here too: a pattern is never narrower than under globset.
    #[test]
    fn a_pattern_fits_at_least_what_globset_fits(text in r"[ab_*?{},\[\]!A-]{1,8}", tool in "[abAB_-]{1,6}") {
        let glob = globset::GlobBuilder::new(&text).backslash_escape(true).build();
        if let (Ok(glob), Ok(pattern)) = (glob, ToolPattern::new(&text))
            && glob.compile_matcher().is_match(&tool)
        {
            let fit = pattern.fit(&ToolName::alone("mail", &tool)).map(|(fit, _)| fit);
            prop_assert_eq!(fit, Some(Fit::Certain), "{} {}", text, tool);
        }
    }

    /// Arbitrary texts of patterns and names are accepted or rejected without panics.
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,40}", tool in ".{0,20}") {
        if let Ok(pattern) = ToolPattern::new(&text) {
            pattern.fits("mail", &tool);
        }
    }
}
