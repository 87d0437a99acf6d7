use proptest::prelude::*;

use super::*;

/// Returns these arguments of `mail/send_email` as recorded under that rule.
fn applied(rule: &str, arguments: &Value) -> Value {
    let mut redaction = Redaction::default();
    redaction.add(rule).expect("a rule");
    redaction.apply("mail", "send_email", &arguments.to_string(), &Secrets::default())
}

#[test]
fn arguments_that_are_secret_by_their_name_are_not_written() {
    let arguments =
        json!({"to": "ann", "body": "hello", "auth": {"accessToken": "x", "api_key": 1}, "list": [{"Pass-Word": "y"}]});
    let expected = json!({"to": "ann", "body": MASK, "auth": {"accessToken": MASK, "api_key": MASK}, "list": [{"Pass-Word": MASK}]});
    assert_eq!(applied("mail/*:body", &arguments), expected);
    assert_eq!(applied("notes/*:body", &json!({"body": "hello"})), json!({"body": "hello"}));
}

#[test]
fn names_agree_up_to_dashes_underscores_and_case() {
    let arguments = json!({"filter": [{"reply_to_id": 7}], "replyToId": "x", "other": 1});
    let expected = json!({"filter": [{"reply_to_id": MASK}], "replyToId": MASK, "other": 1});
    for rule in ["reply-to-id", "reply_to_id", "replyToId", "REPLY_TO_ID", "replytoid", "reply*", "{x,reply-to}_id"] {
        assert_eq!(applied(rule, &arguments), expected, "{rule}");
    }
    for tool in [
        "mail/send_email",
        "mail/send-email",
        "Mail/sendEmail",
        "mcp__mail__send_email",
        "mcp__mail__*",
        "send-email",
        "mail/*",
        "send*",
        "mcp__mail",
        "*",
        "[l-n]ail/*",
    ] {
        assert_eq!(applied(&format!("{tool}:reply-to-id"), &arguments), expected, "{tool}");
    }
    // A `?` also matches a word boundary, including one that only the program writes.
    assert_eq!(
        applied("reply?to?id", &json!({"reply-to-id": 1, "replyToId": 2, "replytoid": 3, "replyid": 4})),
        json!({"reply-to-id": MASK, "replyToId": MASK, "replytoid": MASK, "replyid": 4})
    );
    for rule in [
        "reply",
        "mail/other:reply-to-id",
        "mail*:reply-to-id",
        "mcp__notes__send_email:reply-to-id",
        "[a-q]eply-to-id",
    ] {
        assert_eq!(applied(rule, &arguments), arguments, "{rule}");
    }
}

#[test]
fn a_rule_that_is_none_is_an_error() {
    let wrong = |rule: &str| Redaction::default().add(rule).expect_err(rule);
    assert_eq!(
        wrong("a["),
        "expected a redaction rule such as `body` or `mail/*:body`, got `a[`: unclosed character class; missing ']'"
    );
    assert_eq!(
        wrong("mail/*:"),
        "expected a redaction rule such as `body` or `mail/*:body`, got `mail/*:`: it names no argument"
    );
    for rule in ["", " ", ":body", " :body", "/send:body", "mail/:body", "a:b:c", "mail/[:body", "{a", "mail/{a:b"] {
        wrong(rule);
    }
}

#[test]
fn rules_that_fit_no_argument_are_known() {
    let tool = |name: &str, schema: Value| Tool {
        server: "mail".into(),
        name: name.into(),
        input_schema: schema,
        ..Tool::default()
    };
    let nested = json!({"type": "object", "properties": {"items": {"type": "array", "items": {"properties": {"secret_note": {}}}}}});
    let tools = [
        tool("send", json!({"properties": {"reply_to_id": {}, "body": {}}})),
        tool("add", nested),
        tool("ping", json!({"type": "object", "properties": {}})),
        tool("stop", json!({"additionalProperties": false})),
        tool("open", json!({})),
        tool("any", json!({"properties": {}, "additionalProperties": true})),
    ];
    let tools: Vec<&Tool> = tools.iter().collect();
    let mut redaction = Redaction::default();
    for rule in [
        "reply-to-id",
        "secret-note",
        "mail/send:body",
        "bdoy",
        "mail/open:any",
        "mail/{add,ping}:body",
        "notes/*:body",
    ] {
        redaction.add(rule).expect("a rule");
    }
    assert_eq!(
        redaction.without_effect(&tools),
        [
            "`bdoy` matches no argument of any tool (2 tools, such as `mail/open`, do not declare their arguments)",
            "`mail/open:any` matches no argument of any tool (`mail/open` does not declare its arguments)",
            "`mail/{add,ping}:body` matches no argument of any tool",
            "`notes/*:body` matches no argument of any tool",
        ]
    );
    assert_eq!(
        redaction.without_effect(&tools[..4])[..2],
        ["`bdoy` matches no argument of any tool", "`mail/open:any` matches no argument of any tool",]
    );
}

#[test]
fn long_texts_are_cut() {
    let written = applied("x", &json!({"text": "x".repeat(3_000)}));
    let text = written["text"].as_str().expect("text");
    let hash = sha256("x".repeat(3_000).as_bytes());
    assert_eq!(text, format!("{}… [3000 bytes, SHA-256 {hash}]", "x".repeat(2_000)));
}

#[test]
fn arguments_that_are_large_together_keep_name_size_hash_and_beginning_each() {
    let rows: Vec<Value> = (0..5_000).map(|n| json!({"row": n, "password": "hunter22"})).collect();
    let written = applied("x", &json!({"to": "ann", "text": "y".repeat(40_000), "rows": rows, "n": 1}));
    let fields = written.as_object().expect("an object");
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["to", "text", "rows", "n"]);
    assert_eq!((&written["to"], &written["n"]), (&json!("ann"), &json!(1)));
    let text = written["text"].as_str().expect("text");
    let hash = sha256("y".repeat(40_000).as_bytes());
    assert!(text.starts_with("yyyy") && text.ends_with(&format!("… [40000 bytes, SHA-256 {hash}]")), "{text}");
    let rows = written["rows"].as_str().expect("text");
    assert!(rows.starts_with(r#"[{"row":0,"password":"[redacted]"},"#) && rows.contains(" bytes, SHA-256 "), "{rows}");
}

#[test]
fn very_many_arguments_are_bounded() {
    let many: Map<String, Value> = (0..20_000).map(|n| (format!("argument-{n}"), json!(["value", n]))).collect();
    let written = applied("x", &Value::Object(many));
    let fields = written.as_object().expect("an object");
    assert_eq!(fields.len(), NAMES_KEPT + 1);
    assert!(fields["… 19800 more arguments"].as_str().is_some_and(|text| text.contains(" bytes, SHA-256 ")));
    let names = json!({"n".repeat(100_000): "v".repeat(100_000)});
    assert!(applied("x", &names).to_string().len() < 4_000);
}

#[test]
fn a_text_is_cut_after_secrets_were_taken_out() {
    const KEY: &str = "sk-test-1234567890";
    let secrets = Secrets::default();
    secrets.add([KEY, "9876543210987654"]);
    for before in TEXT_KEPT - KEY.len()..TEXT_KEPT {
        let arguments = json!({"text": format!("{}{KEY}{}", "x".repeat(before), "y".repeat(50_000))}).to_string();
        let written = Redaction::default().apply("a", "b", &arguments, &secrets).to_string();
        assert!(!written.contains("sk-t"), "{before}");
    }
    let arguments = json!({KEY: 1, "number": 9_876_543_210_987_654_u64, "in": [{"it": KEY}]}).to_string();
    let escaped = arguments.replace("sk-test", "\\u0073k-test");
    for arguments in [arguments, escaped] {
        let written = Redaction::default().apply("a", "b", &arguments, &secrets);
        assert_eq!(written, json!({MASK: 1, "number": MASK, "in": [{"it": MASK}]}));
    }
    let unreadable = Redaction::default().apply("a", "b", &format!("{{{KEY}"), &secrets);
    assert_eq!(unreadable["sha256"], sha256(b"{[redacted]"), "no hash is a secret's own");
}

/// Returns a name of these words in one of its spellings.
fn spelled(words: &[String], spelling: usize) -> String {
    match spelling {
        0 => words.join("-"),
        1 => words.join("_"),
        2 => words.concat(),
        3 => words.join("_").to_uppercase(),
        _ => words.iter().map(|word| word[..1].to_uppercase() + &word[1..]).collect(),
    }
}

proptest! {
    #[test]
    fn every_spelling_of_a_rule_fits_every_spelling_of_a_name(
        words in proptest::collection::vec("[a-z]{1,6}", 1..4), one in 0usize..5, other in 0usize..5, deep in 0usize..4,
    ) {
        let name = spelled(&words, other);
        let arguments = (0..deep).fold(json!({&name: "private"}), |inner, level| {
            if level % 2 == 0 { json!({"inside": [1, inner]}) } else { json!({"beside": 1, "inside": inner}) }
        });
        for rule in [spelled(&words, one), format!("mcp__mail__send-email:{}", spelled(&words, one))] {
            prop_assert!(!applied(&rule, &arguments).to_string().contains("private"), "{rule} {name}");
        }
    }

    #[test]
    fn no_rule_makes_it_panic(rule in "\\PC{0,20}") {
        let _ = Redaction::default().add(&rule);
    }

    #[test]
    fn records_are_bounded(texts in proptest::collection::vec("[a-zé]{0,300}", 0..30), times in 1usize..500) {
        let fields: Map<String, Value> =
            texts.iter().enumerate().map(|(n, text)| (format!("{n}{text}"), text.repeat(times).into())).collect();
        prop_assert!(applied("x", &Value::Object(fields)).to_string().len() < 200_000);
    }
}
