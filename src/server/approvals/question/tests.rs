//! Tests of the text that a person is shown about a call.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn question(arguments: Value) -> Question {
    Question {
        server: "mail".into(),
        tool: "send".into(),
        arguments,
        program: "ab".repeat(32),
        rule: "`policy.ask` of a.yaml has `send`".into(),
        planned: None,
        later: Vec::new(),
    }
}

#[test]
fn every_argument_is_named_however_long_the_others_are() {
    let arguments =
        json!({"to": "ann@example.org", "note": "x".repeat(7_000), "bcc": "eve@example.org", "pad": "y".repeat(3_000)});
    let shown = question(arguments).to_string();
    assert!(shown.contains("\"to\": \"ann@example.org\",\n  \"note\": \"xxx"), "{shown}");
    assert!(shown.contains("x…\" (7000 bytes in all),\n  \"bcc\": \"eve@example.org\",\n  \"pad\": \"yyy"), "{shown}");
    // The longest is cut first, and no more than necessary.
    assert!(shown.contains("yyy\"\n}\nParts too long to show are marked"), "{shown}");
    assert!((7_900..8_600).contains(&shown.len()), "{}", shown.len());
    let arguments = json!({"to": "ann", "note": "x".repeat(7_000), "bcc": "eve@example.org", "pad": "y".repeat(4_000)});
    let shown = question(arguments).to_string();
    assert!(shown.contains("x…\" (7000 bytes in all),\n  \"bcc\": \"eve@example.org\",\n  \"pad\": \"yyy"), "{shown}");
    assert!(shown.contains("y…\" (4000 bytes in all)\n}"), "{shown}");
}

#[test]
fn items_are_cut_before_levels_and_levels_before_names() {
    let people: Vec<Value> = (0..3_000).map(|at| json!({"name": format!("person {at}"), "role": "cc"})).collect();
    let shown = question(json!({"people": people, "headers": {"reply-to": {"x": {"bcc": "eve"}}}})).to_string();
    for expected in ["\"name\": \"person 0\"", " more items\n", "\"reply-to\": {", "\"bcc\": \"eve\""] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let fields: Map<String, Value> = (0..3_000).map(|at| (format!("field {at}"), "x".repeat(100).into())).collect();
    let shown = question(json!({"options": fields, "bcc": "eve"})).to_string();
    for expected in ["\"field 0\": \"", " more fields\n", "\"bcc\": \"eve\""] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let deep = (0..90).fold(json!("x".repeat(500)), |inner, at| {
        let mut fields: Map<String, Value> =
            (0..20).map(|more| (format!("field {more}"), "y".repeat(90).into())).collect();
        fields.insert(format!("level {at}"), inner);
        fields.into()
    });
    let shown = question(json!({"deep": deep, "bcc": "eve"})).to_string();
    assert!(shown.contains("\"bcc\": \"eve\"") && shown.contains("{… ") && shown.len() < 9_000, "{shown}");
}

#[test]
fn long_runs_of_blanks_are_their_number() {
    for (blanks, shown) in [
        (" ".repeat(8), " ".repeat(8)),
        (" ".repeat(9), "\\{9 blanks}".to_owned()),
        (" ".repeat(3_000), "\\{3000 blanks}".to_owned()),
        ("\n".repeat(8), "\\n".repeat(8)),
        ("\n".repeat(300), "\\{300 times \\n}".to_owned()),
        ("\t".repeat(20), "\\{20 times \\t}".to_owned()),
        ("\u{a0}".repeat(20), "\\{20 times \\u{a0}}".to_owned()),
        ("\u{200b}".repeat(20), "\\{20 times \\u{200b}}".to_owned()),
        ("\u{2800} \n".repeat(20), "\\{60 blanks and invisible characters}".to_owned()),
        (format!("{}x{}", " ".repeat(20), " ".repeat(30)), "\\{20 blanks}x\\{30 blanks}".to_owned()),
        ("\\{9 blanks}".to_owned(), "\\\\{9 blanks}".to_owned()),
    ] {
        let text = question(json!({"text": format!("hi{blanks}and send the chats to eve")})).to_string();
        assert!(text.contains(&format!("\"text\": \"hi{shown}and send the chats to eve\"")), "{blanks:?}: {text}");
        // A longer name is not shown at all.
        if blanks.len() < LONGEST_NAME / 2 {
            let text = question(json!({format!("to{blanks}eve"): "x"})).to_string();
            assert!(text.contains(&format!("\"to{shown}eve\": \"x\"")), "{blanks:?}: {text}");
        }
    }
    let named = Question { rule: format!("a{}b", " ".repeat(500)), ..question(json!({})) }.to_string();
    assert!(named.ends_with("because a\\{500 blanks}b."), "{named}");
}

#[test]
fn characters_that_may_show_nothing_are_code_points() {
    for c in [
        '\u{13430}',
        '\u{1343f}',
        '\u{1d159}',
        '\u{fffc}',
        '\u{e000}',
        '\u{f8ff}',
        '\u{f0000}',
        '\u{10fffd}',
        '\u{e0100}',
    ] {
        let text = question(json!({"text": format!("a{c}z")})).to_string();
        assert!(text.contains(&format!("\"a\\u{{{:x}}}z\"", u32::from(c))), "{text}");
    }
    let text = question(json!({"text": "naïve — 日本 😀 ½"})).to_string();
    assert!(text.contains("\"naïve — 日本 😀 ½\""), "{text}");
}

#[test]
fn what_cannot_be_shown_as_a_whole_says_so() {
    let many: Map<String, Value> = (0..3_000).map(|at| (format!("argument {at}"), at.into())).collect();
    let many = question(many.into());
    assert_eq!(many.unshowable().expect("many"), "the names of its 3000 arguments are more than a person can be shown");
    assert!(many.to_string().contains("arguments that cannot be shown as a whole; SHA-256 "), "{many}");
    assert!(question(json!({"x".repeat(501): 1})).unshowable().is_some());
    let long = Question { tool: "x".repeat(501), ..question(json!({})) };
    assert_eq!(
        long.unshowable().expect("long"),
        "its name is longer than the 500 characters that a person can be shown"
    );
    assert!(question(json!({"a": "x".repeat(5_000_000)})).unshowable().is_none());
}

#[test]
fn no_text_can_look_like_another_part_of_the_question() {
    let spoof = "x\",\n  \"to\": \"ann\"\n}\n\nThe program's\u{1b}[2J \u{202E}\u{200B}…\" (3 bytes in all)";
    let mut shown = question(json!({"note": spoof, spoof: "\\u{202e}"}));
    shown.tool = "send\nwith\n{}".into();
    assert_eq!(
        shown.to_string(),
        "A program wants to call mail/send\\u{a}with\\u{a}{} with\n{\n  \"note\": \"x\\\",\\n  \\\"to\\\": \
         \\\"ann\\\"\\n}\\n\\nThe program's\\u{1b}[2J \\u{202e}\\u{200b}…\\\" (3 bytes in all)\",\n  \"x\\\",\\n  \
         \\\"to\\\": \\\"ann\\\"\\n}\\n\\nThe program's\\u{1b}[2J \\u{202e}\\u{200b}…\\\" (3 bytes in all)\": \
         \"\\\\u{202e}\"\n}\n\nThe program's SHA-256 begins with abababababababab. You are asked because `policy.ask` of \
         a.yaml has `send`."
    );
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        ".{0,60}".prop_map(Value::from),
        (0usize..20_000).prop_map(|length| "z".repeat(length).into()),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    scalar.prop_recursive(4, 60, 12, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,12}", inner, 0..12)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn all_arguments_are_named_or_the_call_is_refused(
        fields in proptest::collection::btree_map("[a-z]{1,12}", value(), 0..60),
    ) {
        let arguments: Map<String, Value> = fields.into_iter().collect();
        let names: Vec<String> = arguments.keys().map(|name| format!("\n  \"{name}\": ")).collect();
        let question = question(arguments.into());
        prop_assert_eq!(question.unshowable(), None);
        let shown = question.to_string();
        prop_assert!(shown.chars().count() < 8_600);
        for name in names {
            prop_assert!(shown.contains(&name), "{name}: {shown}");
        }
    }
}
