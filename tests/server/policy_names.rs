//! Policy rules match tools in any spelling and are reported if they match none. Hints that a tool does not declare
//! count against it.

use std::io::Read;
use std::path::Path;
use std::process::Command;

use crate::mcp_client::{Client, python, script};
use serde_json::{Value, json};

/// A downstream server with these tools and their annotations.
fn named(tools: Value) -> Value {
    json!({"command": "python3", "args": [script("named.py"), tools.to_string()]})
}

fn financial() -> Value {
    named(json!({"explode": null, "getEmail": null}))
}

/// A configuration in lispbox's own form: the servers under their names, and more keys.
fn ours(servers: &[(&str, Value)], more: Value) -> Value {
    let server = |(name, server): &(&str, Value)| {
        let mut server = server.clone();
        server["name"] = json!(name);
        server
    };
    let mut root = json!({"servers": servers.iter().map(server).collect::<Vec<_>>()});
    root.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    root
}

/// Messages to programs and models contain no path of the machine, even if the configuration is given by its full path.
#[test]
fn refusals_name_files_without_their_folders() {
    if python().is_none() {
        return;
    }
    let tools = json!({"send": null, "drop": null, "list": null}).to_string();
    let limits = json!([{"tools": "list", "per_evaluation": 0}]);
    let configuration = json!({
        "mcpServers": {
            "mail": {"command": "python3", "args": [script("named.py"), tools]},
            "keyless": {"command": "x", "env": {"KEY": "${file:/no/such/folder/key}"}},
            "bare": {"command": "x", "envFile": "/no/such/folder/variables"},
        },
        "policy": {"ask": ["mail/send"], "deny": ["mail/drop"], "limits": limits},
    });
    let mut client = Client::start(&configuration, &[]);
    for (program, expected) in [
        ("(mail/send)", "`policy.ask` of servers.json has `mail/send`"),
        ("(mail/send)", "in servers.json"),
        ("(mail/drop)", "`policy.deny` of servers.json has `mail/drop`"),
        ("(mail/list)", "`policy.limits[0]` of servers.json allows 0 per evaluation"),
        ("(keyless/x)", "the file key: "),
        ("(bare/x)", "its `envFile` variables: "),
    ] {
        let answer = client.eval(program);
        assert!(answer.is_error && answer.text.contains(expected), "{program}: {}", answer.text);
        let everything = format!("{} {}", answer.text, answer.record);
        for folder in [std::env::temp_dir().display().to_string().as_str(), "/no/such"] {
            assert!(!everything.contains(folder), "{program}: {everything}");
        }
    }
}

#[test]
fn a_rule_holds_in_every_spelling_that_programs_use() {
    if python().is_none() {
        return;
    }
    let servers = [("financial-data", financial())];
    let calls = ["(financial-data/explode)", "(mcp__financial_data__explode)", "(explode)", "(financial_data/EXPLODE)"];
    for rule in
        ["mcp__financial_data__explode", "financial_data/explode", "financial-data/EXPLODE", "mcp__financial-data__ex*"]
    {
        for more in [
            json!({"tools": {"block": [rule]}}),
            json!({"policy": {"deny": [rule]}}),
            json!({"policy": {"limits": [{"tools": rule, "per_hour": 0}]}}),
        ] {
            let mut client = Client::start(&ours(&servers, more.clone()), &[]);
            for call in calls {
                let answer = client.eval(call);
                assert!(answer.is_error && !answer.text.contains("was called"), "{more} {call}: {}", answer.text);
            }
            assert!(!client.eval("(financial-data/get-email)").is_error, "{more}");
        }
    }
    for rule in ["financial-data/get-email", "mcp__financial-data__getEmail", "financial_data/get_*"] {
        let mut client = Client::start(&ours(&servers, json!({})), &["--deny", rule]);
        assert_eq!(client.fails("(financial-data/getEmail)").0, "ToolDenied", "{rule}");
        assert!(!client.eval("(financial-data/explode)").is_error, "{rule}");
        let mut client = Client::start(&ours(&servers, json!({"tools": {"allow": [rule]}})), &[]);
        assert!(!client.eval("(financial-data/getEmail)").is_error, "{rule}");
        assert_eq!(client.fails("(financial-data/explode)").0, "ToolDenied", "{rule}");
        let mut client = Client::start(&ours(&servers, json!({"policy": {"ask": [rule]}})), &["--allow", "x"]);
        assert_eq!(client.fails("(financial-data/getEmail)").0, "ToolNeedsApproval", "{rule}");
    }
}

#[test]
fn a_pattern_of_a_spelling_that_programs_can_use_forbids() {
    if python().is_none() {
        return;
    }
    let servers = [("m", named(json!({"getemail": null, "send": null})))];
    for rule in ["m/get?email", "m/get[_.-]email", "m/get[!a-z]email", "get_*", "m/get[!_]email"] {
        for more in [json!({"policy": {"deny": [rule]}}), json!({"tools": {"block": [rule]}})] {
            let mut client = Client::start(&ours(&servers, more), &[]);
            for call in ["(m/get-email)", "(m/getemail)", "(get_email)", "(mcp__m__get-email)"] {
                assert_eq!(client.fails(call).0, "ToolDenied", "{rule} {call}");
            }
            assert!(!client.eval("(m/send)").is_error, "{rule}");
        }
    }
}

#[test]
fn a_tool_that_may_not_be_called_fails_before_the_program_and_a_limit_at_the_call() {
    if python().is_none() {
        return;
    }
    let more = json!({"policy": {"deny": ["explode"], "limits": [{"tools": "getEmail", "per_evaluation": 1}]}});
    let mut client = Client::start(&ours(&[("financial-data", financial())], more), &[]);
    for program in [
        "(do (financial-data/get-email) (try (financial-data/explode) (catch Exception e :caught)))",
        "(if false (financial-data/explode) 1)",
    ] {
        let answer = client.eval(program);
        assert_eq!(answer.record["error"], "ToolDenied", "{program}: {}", answer.text);
        assert!(!answer.text.contains("was called") && answer.record["calls"].as_array().is_none_or(Vec::is_empty));
    }
    let program =
        "(do (financial-data/get-email) (try (financial-data/get-email) (catch Exception e (:error (ex-data e)))))";
    let answer = client.eval(program);
    assert!(!answer.is_error && answer.text.contains("ToolDenied"), "{}", answer.text);
}

#[test]
fn of_two_tools_of_one_name_with_different_annotations_neither_is_called() {
    if python().is_none() {
        return;
    }
    let (reads, destroys) = (json!({"readOnlyHint": true}), json!({"destructiveHint": true}));
    let pairs = [("wipe", &reads), ("wipe", &destroys), ("wipe", &reads), ("look", &reads), ("look", &reads)];
    let folder = tempfile::tempdir().expect("a folder");
    let servers = [("m", named(json!(pairs)))];
    let mut client = Client::start(&ours(&servers, json!({})), &[]);
    assert_eq!(client.fails("(m/wipe)").0, "UnknownTool");
    assert!(client.eval("(m/look)").text.contains("look was called"));
    std::fs::write(folder.path().join("servers.json"), ours(&servers, json!({})).to_string()).expect("written");
    let said = check(folder.path(), &[], &[]);
    assert!(said.contains("ok      m: 1 tool (1 read_only)\n"), "{said}");
    for expected in [
        "warning: m: the tools wipe are left out: several have this name, with different annotations\n",
        "warning: m: a second tool look is left out: another one has its name\n",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn a_server_is_named_as_its_configuration_names_it() {
    if python().is_none() {
        return;
    }
    for rule in ["a/b/explode", "a/b/ex*", "A/B/Explode", "a-b/explode"] {
        let more = json!({"policy": {"deny": [rule]}});
        let mut client = Client::start(&ours(&[("a/b", financial())], more), &[]);
        assert_eq!(client.fails("(a-b/explode)").0, "ToolDenied", "{rule}");
        assert!(!client.eval("(a-b/get-email)").is_error, "{rule}");
    }
}

#[test]
fn tools_that_differ_in_spelling_alone_are_ruled_apart() {
    if python().is_none() {
        return;
    }
    let servers = [("mail", named(json!({"getEmail": null, "get_email": null})))];
    let mut client = Client::start(&ours(&servers, json!({"policy": {"deny": ["mail/getEmail"]}})), &[]);
    assert_eq!(client.fails("(mail/getEmail)").0, "ToolDenied");
    assert!(!client.eval("(mail/get_email)").is_error);
    let mut client = Client::start(&ours(&servers, json!({"policy": {"deny": ["mail/get-email"]}})), &[]);
    assert_eq!(client.fails("(mail/getEmail)").0, "ToolDenied");
    assert_eq!(client.fails("(mail/get_email)").0, "ToolDenied");
}

#[test]
fn a_long_name_is_split_where_a_server_is_there() {
    if python().is_none() {
        return;
    }
    let server = named(json!({"c": null, "b__c": null}));
    let mut client = Client::start(&ours(&[("a__b", server.clone())], json!({})), &[]);
    assert!(client.eval("(mcp__a__b__c)").text.contains("c was called"));
    assert!(client.eval("(mcp__a__b__b__c)").text.contains("b__c was called"));
    let both = [("a__b", named(json!({"c": null}))), ("a", named(json!({"b__c": null})))];
    let mut client = Client::start(&ours(&both, json!({})), &[]);
    assert_eq!(client.fails("(mcp__a__b__c)").0, "AmbiguousTool");
    let mut client = Client::start(&ours(&both, json!({"policy": {"deny": ["mcp__a__b__c"]}})), &[]);
    assert_eq!((client.fails("(a__b/c)").0, client.fails("(a/b__c)").0), ("ToolDenied".into(), "ToolDenied".into()));
}

#[test]
fn a_time_out_holds_in_every_spelling() {
    if python().is_none() {
        return;
    }
    for spelling in ["slow_call", "SLOW-CALL", "mcp__mail_box__slowCall", "mail_box/slow*"] {
        let mut server = named(json!({"slowCall": {"readOnlyHint": true}}));
        server["tool_timeout_seconds"] = json!({ spelling: 0.2 });
        let mut client = Client::start(&ours(&[("mail-box", server)], json!({})), &[]);
        assert_eq!(client.fails("(mail-box/slow-call)").0, "ToolTimeout", "{spelling}");
    }
}

#[test]
fn what_a_tool_does_not_say_counts_against_it() {
    if python().is_none() {
        return;
    }
    let tools = json!({
        "none": null, "empty": {}, "idempotent": {"idempotentHint": true}, "repeated": {"idempotentHint": false},
        "open": {"openWorldHint": true}, "closed": {"openWorldHint": false}, "titled": {"title": "Send"}, "null": {"readOnlyHint": null},
        "not_read_only": {"readOnlyHint": false}, "kept": {"readOnlyHint": false, "destructiveHint": false}, "reads": {"readOnlyHint": true},
    });
    let configuration = ours(&[("odd", named(tools))], json!({"policy": {"defaults": {"unannotated": "ask"}}}));
    let mut client = Client::start(&configuration, &[]);
    for tool in ["none", "empty", "idempotent", "repeated", "open", "closed", "titled", "null", "not_read_only"] {
        assert_eq!(client.fails(&format!("(odd/{tool})")).0, "ToolNeedsApproval", "{tool}");
    }
    for tool in ["kept", "reads"] {
        assert!(!client.eval(&format!("(odd/{tool})")).is_error, "{tool}");
    }
    // A hint that is not a boolean is invalid, and does not permit a call.
    let odd = json!({"sends": {"readOnlyHint": "true"}, "writes": {"readOnlyHint": true, "destructiveHint": 1}});
    let mut client =
        Client::start(&ours(&[("odd", named(odd))], json!({"policy": {"defaults": {"unannotated": "ask"}}})), &[]);
    for call in ["(odd/sends)", "(odd/writes)"] {
        let answer = client.eval(call);
        assert!(answer.is_error && !answer.text.contains("was called"), "{call}: {}", answer.text);
    }
}

#[test]
fn a_tool_with_a_wrong_annotation_is_left_out_alone_and_named() {
    if python().is_none() {
        return;
    }
    let servers = [("odd", named(json!({"wipe": {"destructiveHint": "true"}, "look": {"readOnlyHint": true}})))];
    let mut client = Client::start(&ours(&servers, json!({})), &[]);
    assert!(client.eval("(odd/look)").text.contains("look was called"));
    assert_eq!(client.fails("(odd/wipe)").0, "UnknownTool");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("servers.json"), ours(&servers, json!({})).to_string()).expect("written");
    let said = check(folder.path(), &[], &[]);
    let expected = "ok      odd: 1 tool (1 read_only)\nwarning: odd: the tool wipe is left out: expected `true` or `false` as `annotations.destructiveHint`, got \"true\"\n";
    assert!(said.contains(expected), "{said}");
}

fn check(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    command.args(["config", "check", "--config", "servers.json"]).args(arguments).current_dir(folder);
    command.env("LISPBOX_CACHE", folder.join("cache")).envs(variables.iter().copied());
    String::from_utf8(command.output().expect("it runs").stdout).expect("text")
}

#[test]
fn a_check_reports_rules_that_fit_no_tool_and_sees_what_the_server_sees() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut server = financial();
    server["tools"] = json!({"block": ["getemial"]});
    server["tool_timeout_seconds"] = json!({"explod": 5});
    let more = json!({"policy": {"deny": ["financial-data/explod", "mcp__financial_data__getEmail"], "limits": [{"tools": "nothing", "per_day": 1}]}});
    let configuration = ours(&[("financial-data", server)], more);
    std::fs::write(folder.path().join("servers.json"), configuration.to_string()).expect("written");
    let said = check(folder.path(), &["--ask", "exploode"], &[("LISPBOX_DENY", "explode  financial-data/bang")]);
    for expected in [
        "warning: `policy.deny` of servers.json has `financial-data/explod`, which matches no known tool; did you \
         mean `financial-data/explode`?",
        "warning: `tools.block` of servers.json has `getemial`, which matches no known tool; did you mean `getEmail`?",
        "warning: `tool_timeout_seconds` of servers.json has `explod`, which matches no known tool; did you mean \
         `explode`?",
        "warning: `policy.limits[0]` of servers.json has `nothing`, which matches no known tool\n",
        "warning: `LISPBOX_DENY` has `financial-data/bang`, which matches no known tool\n",
        "warning: `--ask` has `exploode`, which matches no known tool; did you mean `explode`?",
        "2 more may not be called: explode, getEmail",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert_eq!(said.matches("warning: ").count(), 6, "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
    let output = command.args(["serve", "--no-config"]).env("LISPBOX_ASK", "[a").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("lispbox: `LISPBOX_ASK`: expected a pattern"), "{said}");
}

#[test]
fn the_log_says_once_which_rules_fit_no_tool() {
    if python().is_none() {
        return;
    }
    let configuration =
        ours(&[("financial-data", financial())], json!({"policy": {"deny": ["financial-data/explod"]}}));
    let mut client = Client::start_with_unread_log(&configuration);
    for _ in 0..3 {
        assert!(!client.eval("(financial-data/explode)").is_error);
    }
    client.close();
    client.wait();
    let mut logged = String::new();
    client.process.stderr.take().expect("piped").read_to_string(&mut logged).expect("text");
    assert_eq!(logged.matches("`policy.deny` of ").count(), 1, "{logged}");
    assert!(logged.contains("which matches no known tool; did you mean `financial-data/explode`?"), "{logged}");
}

#[test]
fn the_audit_log_is_asked_in_any_spelling() {
    if python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display().to_string();
    let mut client = Client::start(&ours(&[("financial-data", financial())], json!({})), &["--audit", &place]);
    assert!(!client.eval("(financial-data/get-email) (financial-data/explode)").is_error);
    client.close();
    client.wait();
    let shown = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["audit", "show", "--json"]).args(arguments).arg("--audit").arg(folder.path());
        let said = String::from_utf8(command.output().expect("it runs").stdout).expect("text");
        let tool = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["tool"].as_str().map(str::to_owned);
        said.lines().filter_map(tool).collect::<Vec<String>>()
    };
    for spelling in ["getEmail", "get_email", "financial_data/GET-EMAIL", "mcp__financial_data__get_*", "get?email"] {
        assert_eq!(shown(&["--tool", spelling]), ["getEmail"], "{spelling}");
    }
    for spelling in ["financial-data", "financial_data", "FinancialData", "fin*"] {
        assert_eq!(shown(&["--server", spelling, "--tool", "explode"]), ["explode"], "{spelling}");
    }
    assert_eq!(shown(&["--outcome", "OK", "--tool", "explode"]), ["explode"]);
    for (arguments, code, problem) in [
        (&["--tool", "explod"][..], 1, "lispbox: no record has the tool `explod`; did you mean `explode`?\n"),
        (
            &["--tool", "mail/nosuch"],
            1,
            "lispbox: no record has the tool `mail/nosuch`; there are `financial-data/explode`, `financial-data/getEmail`\n",
        ),
        (&["--server", "bogus"], 1, "lispbox: no record has the server `bogus`; there are `financial-data`\n"),
        (
            &["--server", "financial-dta", "--json"],
            1,
            "lispbox: no record has the server `financial-dta`; did you mean `financial-data`?\n",
        ),
        (&["--principal", "nobody"], 1, "lispbox: no record has the principal `nobody`; there are `local`\n"),
        (&["--outcome", "nonsense"], 1, "lispbox: no record has the outcome `nonsense`; there are `ok`\n"),
        (&["--outcome", "tooldenied"], 0, "no records match\n"),
        (&["--outcome", "tooldenied", "--json"], 0, ""),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.args(["audit", "show"]).args(arguments).arg("--audit").arg(folder.path());
        let output = command.output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), problem, "{arguments:?}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}
