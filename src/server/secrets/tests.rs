use super::*;

#[test]
fn secrets_are_taken_out_and_words_stay() {
    let secrets = Secrets::default();
    secrets.add(["sk-1234567", "postgres", "100000000", "short1", "quo\"ted-99", "sk-1234567-long"]);
    secrets.add([env!("CARGO_MANIFEST_DIR")]);
    assert_eq!(secrets.redact(env!("CARGO_MANIFEST_DIR")), env!("CARGO_MANIFEST_DIR"), "a path is none");
    assert_eq!(secrets.redact("of 100000000"), "of 100000000");
    assert_eq!(secrets.redact("key sk-1234567, host postgres"), "key [redacted], host postgres");
    assert_eq!(secrets.redact("sk-1234567-long short1"), "[redacted] short1");
    assert_eq!(secrets.redact(r#"{"a":"quo\"ted-99"}"#), r#"{"a":"[redacted]"}"#);
    assert!(matches!(secrets.redact("nothing here"), Cow::Borrowed(_)));
    let shared = secrets.clone();
    shared.add(["another-one-1"]);
    assert_eq!(secrets.redact("another-one-1"), "[redacted]");
    assert_eq!(format!("{secrets:?}"), "4 secrets");
}

#[test]
fn encodings_and_parts_are_taken_out() {
    let secrets = Secrets::default();
    secrets.add(["pass/word&1", "line-one-1\nline-two-2", "two words-1"]);
    for (text, redacted) in [
        (r"a pass\/word&1.", "a [redacted]."),
        (r"pass\u002fword\u00261", "[redacted]"),
        (r#"{\"key\": \"pass\\/word\\u00261\"}"#, r#"{\"key\": \"[redacted]\"}"#),
        ("x=pass%2Fword%261&y", "x=[redacted]&y"),
        ("pass&#x2f;word&amp;1", "[redacted]"),
        ("two+words-1", "[redacted]"),
        ("YW5uOnBhc3Mvd29yZCYx", "YW5uOn[redacted]"),
        ("706173732f776f72642631", "[redacted]"),
        ("706173732F776F72642631", "[redacted]"),
        ("pass/\n  word&1", "[redacted]"),
        ("line-one-1\r\nline-two-2", "[redacted]"),
        ("cGFzcy93b3JkJjE=", "[redacted]E="),
        ("y cGFzcyUyRndvcmQlMjYx", "y [redacted]"),
        ("Y0dGemN5OTNiM0prSmpF", "[redacted]pF"),
        ("pass&sol;word&1", "[redacted]"),
        ("pass&#000000000047;word&#381", "pass&#000000000047;word&#381"),
        ("pass&#47word&amp1", "[redacted]"),
        (r"pass\57word\461", "[redacted]"),
        (r"pass\57word\0461", "[redacted]"),
        (r"\pass\N{SOLIDUS}word&1", r"\[redacted]"),
        ("pa\\\nss/word\\u{000000026}1", "[redacted]"),
        ("pass/  \r\n  word&1", "[redacted]"),
        ("pass/=\r\nword&1", "[redacted]"),
        ("pass/\u{2028}word&1", "[redacted]"),
        ("70:61:73:73:2f:77:6f:72:64:26:31", "[redacted]"),
        ("ab 70 61 73 73 2F 77 6f 72 64 26 31 0a", "ab [redacted] 0a"),
    ] {
        assert_eq!(secrets.redact(text), redacted, "{text}");
    }
    let mut parts = ["a pass".to_owned(), "/wor".to_owned(), "d&1 b".to_owned()];
    secrets.redact_parts(&mut parts);
    assert_eq!(parts, ["a [redacted]", "[redacted]", "[redacted] b"]);
    assert_eq!(secrets.redact_cut("a pass/wor", false, true), "a [redacted]");
    assert_eq!(secrets.redact_cut("/word&1 b", true, false), "[redacted] b");
    assert_eq!(secrets.redact_cut("a pas", false, true), "a pas", "too little to be told from data");
}

#[test]
fn renewed_secrets_take_the_place_of_older_ones() {
    let secrets = Secrets::default();
    for number in 0..=RENEWED_KEPT {
        secrets.renew("https://example.org", [format!("token-number-{number:03}").as_str()]);
    }
    assert_eq!(secrets.redact("token-number-000 token-number-001"), "token-number-000 [redacted]");
}

#[test]
fn keys_stay_apart_and_numbers_stay_as_they_were() {
    let secrets = Secrets::default();
    secrets.add(["secret-key-1", "secret-key-2", "1234567890123456"]);
    let text = r#"{"secret-key-1": 1.50, "secret-key-2": [1e400, {"secret-key-1": 12345678901234567890123}], "x": -0}"#;
    let redacted = r#"{"[redacted]": 1.50, "[redacted] 2": [1e400, {"[redacted]": "[redacted]"}], "x": -0}"#;
    assert_eq!(secrets.redact_json(text), redacted);
    assert_eq!(secrets.redact_json("[1234567890123456, 1.234567890123456E15]"), r#"["[redacted]", "[redacted]"]"#);
}

mod properties {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    /// Returns a text as the content of a JSON string, with each character written in one of its possible forms.
    fn escaped(text: &str, ways: &[u8]) -> String {
        let mut out = String::new();
        for (index, c) in text.chars().enumerate() {
            let way = ways.get(index % ways.len().max(1)).copied().unwrap_or_default();
            let mut units = [0; 2];
            match (c, way % 4) {
                ('/', 0) => out.push_str("\\/"),
                ('\n', 0) => out.push_str("\\n"),
                (_, 1) => c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
                (_, 2) => c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04X}"))),
                _ => {
                    let quoted = Value::from(c.to_string()).to_string();
                    out.push_str(&quoted[1..quoted.len() - 1]);
                }
            }
        }
        out
    }

    /// Writes a value as JSON, with escapes of all kinds.
    fn written(value: &Value, ways: &[u8], out: &mut String) {
        match value {
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { " , " } else { "" });
                    written(item, ways, out);
                }
                out.push(']');
            }
            Value::Object(fields) => {
                out.push('{');
                for (index, (key, item)) in fields.iter().enumerate() {
                    out.push_str(if index > 0 { ",\n" } else { "" });
                    out.push_str(&format!("\"{}\" : ", escaped(key, ways)));
                    written(item, ways, out);
                }
                out.push('}');
            }
            Value::String(text) => out.push_str(&format!("\"{}\"", escaped(text, ways))),
            other => out.push_str(&other.to_string()),
        }
    }

    /// Returns the value with `@` in texts and keys replaced.
    fn with(value: &Value, text: &str) -> Value {
        match value {
            Value::Array(items) => items.iter().map(|item| with(item, text)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, item)| (key.replace('@', text), with(item, text)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            Value::String(old) => Value::String(old.replace('@', text)),
            other => other.clone(),
        }
    }

    /// Ordinary texts around the place of a secret; their characters occur in no secret.
    fn text() -> impl Strategy<Value = String> {
        "[é😀 \"\\\\\n<>%&,]{0,4}@?[é😀 \"\\\\\n<>%&,]{0,4}"
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            text().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text(), inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    /// A secret with characters that encodings change; it begins and ends with letters that no escape contains.
    fn secret() -> impl Strategy<Value = String> {
        "Q[A-Z/+=\"\\\\ß😁;:'-]{7,24}Z"
    }

    proptest! {
        #[test]
        fn no_encoding_of_json_hides_a_secret(secret in secret(), value in value(), ways in prop::collection::vec(any::<u8>(), 1..9)) {
            let secrets = Secrets::default();
            secrets.add([secret.as_str()]);
            let mut text = String::new();
            written(&with(&value, &secret), &ways, &mut text);
            let redacted = secrets.redact_json(&text);
            let came: Value = serde_json::from_str(&redacted).expect("JSON");
            let wanted: Value = serde_json::from_str(&with(&value, MASK).to_string()).expect("JSON");
            prop_assert_eq!(&came, &wanted, "{} from {}", &redacted, &text);
            // Also as a JSON string inside another, and as plain text.
            let inside = Value::from(text.clone()).to_string();
            let redacted: Value = serde_json::from_str(&secrets.redact_json(&inside)).expect("JSON");
            let inner: Value = serde_json::from_str(redacted.as_str().expect("a string")).expect("JSON inside");
            prop_assert_eq!(&inner, &wanted, "{}", &inside);
            let inner: Value = serde_json::from_str(&secrets.redact(&text)).expect("JSON");
            prop_assert_eq!(&inner, &wanted, "{}", &text);
        }

        #[test]
        fn no_other_encoding_hides_a_secret(secret in secret(), before in "[a-p ]{0,9}", behind in "[a-p ]{0,9}") {
            use base64::Engine;
            use base64::engine::general_purpose::{STANDARD, URL_SAFE};
            use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
            let secrets = Secrets::default();
            secrets.add([secret.as_str()]);
            let whole = format!("{before}{secret}{behind}");
            let percent: String = whole.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let hex: String = whole.bytes().map(|byte| format!("{byte:02x}")).collect();
            let each = |format: fn(char) -> String| whole.chars().map(format).collect::<String>();
            let middle = secret.char_indices().nth(4).map_or(0, |(at, _)| at);
            let broken = |with: &str| format!("{before}{}{with}{}{behind}", &secret[..middle], &secret[middle..]);
            let pairs = |sign: &str| whole.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(sign);
            let texts = [
                STANDARD.encode(&whole),
                URL_SAFE.encode(&whole),
                STANDARD.encode(STANDARD.encode(&whole)),
                URL_SAFE.encode(STANDARD.encode(&whole)),
                STANDARD.encode(utf8_percent_encode(&whole, NON_ALPHANUMERIC).to_string().replace("%2D", "-")),
                STANDARD.encode(Value::from(whole.clone()).to_string()),
                hex,
                percent,
                format!("{whole:?}"),
                each(|c| format!("&#{:012};", u32::from(c))),
                each(|c| format!("&#{}", u32::from(c))),
                each(|c| format!("&#x{:x}", u32::from(c))),
                whole.replace('&', "&amp;").replace('\\', "&bsol;").replace('/', "&sol;").replace('+', "&plus;"),
                each(|c| if c.is_ascii() { format!("\\{:03o}", u32::from(c)) } else { c.to_string() }),
                each(|c| if "/+=;".contains(c) { format!("\\{:o}", u32::from(c)) } else { c.to_string().replace('\\', "\\\\") }),
                each(|c| if c.is_ascii_lowercase() { c.to_string() } else { format!("\\{c}") }),
                each(|c| format!("\\u{{{:010x}}}", u32::from(c))),
                [&secret[..middle], &secret[middle..]].map(|half| half.replace('\\', "\\\\")).join("\\\n"),
                broken("\n"),
                broken(" \t\r\n  "),
                broken("=\r\n"),
                broken("\u{2028}"),
                pairs(":"),
                pairs(" "),
                pairs("-"),
            ];
            for text in texts {
                let json = Value::from(text.clone()).to_string();
                prop_assert!(secrets.redact_json(&json).contains(MASK), "{}", json);
                prop_assert!(secrets.redact(&text).contains(MASK), "{}", text);
            }
        }

        #[test]
        fn secrets_in_pieces_are_found(secret in secret(), at in 1..7usize, more in 1..4usize) {
            let secrets = Secrets::default();
            secrets.add([secret.as_str()]);
            let chars: Vec<char> = secret.chars().collect();
            let mut parts: Vec<String> =
                [&chars[..at], &chars[at..at + more - 1], &chars[at + more - 1..]].iter().map(|part| part.iter().collect()).collect();
            secrets.redact_parts(&mut parts);
            prop_assert!(parts.iter().all(|part| part == MASK || part.is_empty()), "{:?}", parts);
        }
    }
}
