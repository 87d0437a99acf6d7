//! Tests of the consent of a person to calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::lang::Decision as Decided;
use crate::lang::{CallId, Tool, ToolCall, ToolHints, ToolReply};
use crate::server::identity::Identity;

use crate::server::policy::{Counts, Policy, ToolName};

use super::*;

fn policy(text: Value) -> Policy {
    let mut policy = Policy::default();
    let read = policy.read_policy(Some(&text), "policy", "servers.yaml");
    read.unwrap_or_else(|wrong| panic!("{}: {}", wrong.path, wrong.problem));
    policy
}

fn destructive() -> ToolHints {
    ToolHints { read_only: Some(false), destructive: Some(true), idempotent: None }
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
