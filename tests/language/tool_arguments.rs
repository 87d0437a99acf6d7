//! Arguments of tool calls: a map, keywords, or positional arguments in the order of the printed signature.

use crate::common;

use std::sync::Arc;

use common::{Scripted, session};
use lispbox::lang::{Reply, Request, ToolReply};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A mail server whose schema lists an optional argument before a required one.
fn office() -> Scripted {
    let echo = |arguments: &Value| ToolReply::Json(arguments.to_string());
    let mail = json!({"type": "object", "required": ["body", "subject", "to"], "properties": {
        "to": {"type": "string"}, "cc": {"type": "string"}, "subject": {"type": "string"},
        "replyTo": {"type": "string"}, "body": {"type": "string"}}});
    let list = json!({"type": "object", "required": ["repo"], "properties": {
        "status": {"enum": ["open", "closed"]}, "repo": {"type": "string"}, "assignee": {"type": "string"}}});
    let put = json!({"type": "object", "required": ["data"], "properties": {
        "path": {"type": "string"}, "data": {"type": "object"}}});
    let odd = json!({"type": "object", "required": ["ghost", "a", "ghost"], "properties": {
        "b": {"type": "string"}, "a": {"type": "string"}}});
    let twins = json!({"type": "object", "required": ["k", "get_x"], "properties": {
        "k": {"type": "string"}, "get_x": {"type": "string"}, "getX": {"type": "string"}, "set_x": {"type": "string"}}});
    Scripted::new()
        .tool("mail/send_email", mail, echo)
        .tool("issues/list", list, echo)
        .tool("store/put", put, echo)
        .tool("odd/names", odd, echo)
        .tool("odd/twins", twins, echo)
        .tool("odd/nothing", json!({"type": "object"}), echo)
}

fn eval(program: &str) -> Reply {
    session().eval(Request::new(program), Arc::new(office()))
}

/// Returns the arguments that a call sends to the tool.
fn sent(program: &str) -> Value {
    let reply = eval(&format!("(json/write-str {program})"));
    let text = reply.value.unwrap_or_else(|| panic!("{program}: {:?}", reply.failure));
    let json: String = serde_json::from_str(&text).expect("a string");
    serde_json::from_str(&json).expect("JSON")
}

/// Returns the error message and the suggestion of a call that is refused before it reaches the tool.
fn refused(program: &str) -> (String, String) {
    let host = Arc::new(office());
    let reply = session().eval(Request::new(program), host.clone());
    let failure = reply.failure.unwrap_or_else(|| panic!("{program}: {:?}", reply.value));
    assert_eq!(failure.error, "ToolArgumentError", "{program}: {}", failure.message);
    assert!(host.calls.lock().expect("not poisoned").is_empty(), "{program}: something was sent");
    (failure.message, failure.suggestion.unwrap_or_default())
}

#[test]
fn positions_are_those_of_the_signature() {
    let printed = eval("(dir 'mail)").prints;
    assert!(printed.contains("(mail/send_email :to string :subject string :body string :cc? string"), "{printed}");
    let three = json!({"to": "a", "subject": "s", "body": "b"});
    let four = json!({"to": "a", "subject": "s", "body": "b", "cc": "c"});
    assert_eq!(sent(r#"(mail/send-email "a" "s" "b")"#), three);
    assert_eq!(sent(r#"(mail/send-email "a" "s" "b" "c")"#), four);
    assert_eq!(sent(r#"(apply mail/send-email ["a" "s" "b" "c"])"#), four);
    assert_eq!(sent(r#"((partial mail/send-email "a" "s") "b")"#), three);
    assert_eq!(sent(r#"(first (map mail/send-email ["a"] ["s"] ["b"]))"#), three);
    assert_eq!(sent(r#"(first (pmap mail/send-email ["a"] ["s"] ["b"]))"#), three);
    assert_eq!(sent(r#"(-> "a" (mail/send-email "s" "b"))"#), three);
    assert_eq!(sent(r#"(mail/send-email :cc "c" :body "b" :subject "s" :to "a")"#), four);
    assert_eq!(sent(r#"(mail/send-email {"to" "a" 'subject "s" :BODY "b"})"#), three);
    assert_eq!(sent(r#"(odd/names "a" "g" "b")"#), json!({"a": "a", "ghost": "g", "b": "b"}));
}

#[test]
fn names_that_agree_up_to_spelling_are_shown_as_they_are() {
    let signature = "(odd/twins :k string :get_x string :getX? string :set-x? string)";
    assert!(eval("(dir 'odd)").prints.contains(signature));
    let described = eval("(doc odd/twins)").prints;
    assert!(described.contains(signature) && described.contains("\n  :getX string\n"), "{described}");
    let all = json!({"k": "k", "get_x": "a", "getX": "b", "set_x": "c"});
    assert_eq!(sent(r#"(odd/twins :k "k" :get_x "a" :getX "b" :set-x "c")"#), all);
    assert_eq!(sent(r#"(odd/twins {:k "k" :get_x "a" :getX "b" :set-x "c"})"#), all);
    let (_, suggestion) = refused(r#"(odd/twins "k")"#);
    assert_eq!(suggestion, "call it as (odd/twins :k :get_x :getX? :set-x?)");
}

#[test]
fn names_and_positions_do_not_mix() {
    let call = "call it as (mail/send_email :to :subject :body :cc? :reply-to?)";
    let named = |what: &str| {
        format!("{what} is mixed with positional arguments of `mail/send_email`: give all by name or all by position")
    };
    for (program, what) in [
        (r#"(mail/send-email "a" :subject "s")"#, "`:subject`"),
        (r#"(mail/send-email "a" "s" :body "b")"#, "`:body`"),
        (r#"(mail/send-email "a" "s" :bdy "b")"#, "`:bdy`"),
        (r#"(mail/send-email :to "a" "s" "b")"#, "`:to`"),
        (r#"(mail/send-email :to "a" {:subject "s"})"#, "`:to`"),
        (r#"(mail/send-email "a" 'subject "s")"#, "`:subject`"),
        (r#"(mail/send-email "a" "s" :cc)"#, "`:cc`"),
        (r#"(mail/send-email {:to "a" :subject "s"} "b")"#, "a map of arguments by name"),
        (r#"((partial mail/send-email {:to "a"}) :body "b")"#, "a map of arguments by name"),
        (r#"(mail/send-email "a" "s" "b" {:cc "c"})"#, "a map of arguments by name"),
    ] {
        let (message, suggestion) = refused(program);
        assert_eq!(message, named(what), "{program}");
        assert!(suggestion.starts_with(call), "{program}: {suggestion}");
    }
    let (message, suggestion) = refused(r#"(mail/send-email :to "a" :subject)"#);
    assert_eq!(message, "the argument `subject` of `mail/send_email` is named but has no value");
    assert_eq!(suggestion, call);
    let (message, _) = refused(r#"(mail/send-email {:to "a" "to" "b"})"#);
    assert_eq!(message, "`to` is given twice to `mail/send_email`");
    let (message, _) = refused(r#"(mail/send-email :reply-to "a" :reply_to "b")"#);
    assert_eq!(message, "`reply_to` is given twice to `mail/send_email`");
}

#[test]
fn a_keyword_is_a_value_where_it_cannot_be_a_name() {
    assert_eq!(sent(r#"(issues/list "r" :open)"#), json!({"repo": "r", "status": "open"}));
    assert_eq!(sent(r#"(issues/list "r" :open "ann")"#), json!({"repo": "r", "status": "open", "assignee": "ann"}));
    assert_eq!(sent("(issues/list :lispbox)"), json!({"repo": "lispbox"}));
    assert_eq!(sent("(issues/list :repo :lispbox)"), json!({"repo": "lispbox"}));
    let (message, _) = refused(r#"(issues/list "r" :opne "ann")"#);
    assert!(message.starts_with("`:opne` is mixed with positional arguments of `issues/list`"), "{message}");
    let (message, _) = refused("(issues/list :repo)");
    assert_eq!(message, "the argument `repo` of `issues/list` is named but has no value");
}

#[test]
fn a_map_alone_is_the_arguments_by_name() {
    assert_eq!(sent("(store/put {:data {:x 1}})"), json!({"data": {"x": 1}}));
    assert_eq!(sent(r#"(store/put {:x 1} "p")"#), json!({"data": {"x": 1}, "path": "p"}));
    let (message, suggestion) = refused("(store/put {:x 1})");
    assert_eq!(
        message,
        "a single map gives the arguments of `store/put` by name, but no key of this one is an argument"
    );
    assert_eq!(suggestion, "to give the map as `data`, write (store/put :data {…})");
}

#[test]
fn counts_are_checked_before_anything_is_sent() {
    let call = "call it as (mail/send_email :to :subject :body :cc? :reply-to?)";
    for (program, message) in [
        (r#"(mail/send-email "a")"#, "`mail/send_email` needs 3 arguments, got 1: `subject`, `body` are missing"),
        (r#"(mail/send-email "a" "s")"#, "`mail/send_email` needs 3 arguments, got 2: `body` is missing"),
        (r#"(mail/send-email 1 2 3 4 5 6)"#, "`mail/send_email` takes 5 arguments by position, got 6"),
    ] {
        assert_eq!(refused(program), (message.to_owned(), call.to_owned()), "{program}");
    }
    let (message, suggestion) = refused(r#"(odd/nothing "a")"#);
    assert_eq!(message, "`odd/nothing` takes no arguments by position: its schema names none");
    assert_eq!(suggestion, "call it as (odd/nothing)");
    assert_eq!(sent("(odd/nothing :a 1)"), json!({"a": 1}));
    assert_eq!(sent("(odd/nothing)"), json!({}));
}

proptest! {
    /// For any set of required parameters, positional arguments arrive under the names that the signature shows.
    #[test]
    fn a_signature_and_a_call_by_position_agree(required in proptest::collection::vec(any::<bool>(), 1..8)) {
        let name = |at: usize| format!("p{at}x");
        let properties: Map<String, Value> =
            (0..required.len()).map(|at| (name(at), json!({"type": "string"}))).collect();
        let needed: Vec<String> = (0..required.len()).rev().filter(|at| required[*at]).map(name).collect();
        let schema = json!({"type": "object", "properties": properties, "required": needed});
        let host = Scripted::new().tool("s/t", schema, |arguments| ToolReply::Json(arguments.to_string()));
        let host = Arc::new(host);
        let printed = session().eval(Request::new("(doc s/t)"), host.clone()).prints;
        let line = printed.lines().next().unwrap_or_default();
        let shown: Vec<&str> =
            line.split(" :").skip(1).filter_map(|part| part.split([' ', '?']).next()).collect();
        prop_assert_eq!(shown.len(), required.len());
        let program = format!("(s/t {})", shown.iter().map(|name| format!("\"{name}\" ")).collect::<String>());
        let reply = session().eval(Request::new(program), host.clone());
        prop_assert!(reply.failure.is_none(), "{:?}", reply.failure);
        let calls = host.calls.lock().expect("not poisoned");
        let arguments: Map<String, Value> = serde_json::from_str(&calls[0].arguments).expect("JSON");
        for (name, value) in arguments {
            prop_assert_eq!(Value::String(name), value);
        }
    }
}
