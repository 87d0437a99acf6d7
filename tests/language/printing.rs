//! Data of every type prints as text that reads back equal, and survives a snapshot.

use crate::common;

use common::{Scripted, engine};
use lispbox::lang::Request;
use proptest::prelude::*;
use std::sync::Arc;

/// A program that builds a value without its literal, and whether the value equals itself after it is read back.
#[derive(Clone, Debug)]
struct Made {
    program: String,
    has_equal: bool,
}

impl Made {
    fn new(program: String) -> Made {
        Made { program, has_equal: true }
    }

    fn call(function: &str, parts: &[Made]) -> Made {
        let programs: Vec<&str> = parts.iter().map(|part| part.program.as_str()).collect();
        let program = format!("({function} {})", programs.join(" "));
        Made { program, has_equal: parts.iter().all(|part| part.has_equal) }
    }
}

/// Builds an expression for a string from the code points of its characters.
fn text_of(characters: &[char]) -> String {
    let numbers: Vec<String> = characters.iter().map(|c| u32::from(*c).to_string()).collect();
    format!("(apply str (map char [{}]))", numbers.join(" "))
}

fn characters() -> impl Strategy<Value = char> {
    let awkward = "\"\\'`~@#^:;,/()[]{} \n\t\r%&+-.0a\u{0}\u{7f}\u{85}\u{a0}\u{200b}\u{200d}\u{2018}\u{2028}\u{202e}\u{feff}\u{ff08}\u{1f600}«é";
    prop_oneof![
        prop::sample::select(awkward.chars().collect::<Vec<_>>()),
        (0_u8..128).prop_map(char::from),
        any::<char>()
    ]
}

fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(characters(), 0..6).prop_map(|characters| text_of(&characters))
}

fn names() -> impl Strategy<Value = String> {
    let known = [
        "nil", "true", "1", "+1", "-.5", "/", "a/", "/a", "a//", "//", "a::b", ":a", "a:", "a/b/c", "#t", "&", ".",
        "..", "%1", "x y", "",
    ];
    prop_oneof![
        prop::sample::select(known.to_vec()).prop_map(|name| text_of(&name.chars().collect::<Vec<_>>())),
        "[a-z+*!?<>=/:#'.0-9-]{1,5}".prop_map(|name: String| text_of(&name.chars().collect::<Vec<_>>())),
        texts(),
    ]
}

fn times() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i32>().prop_map(|seconds| format!("(Instant/ofEpochSecond {seconds})")),
        (-9999_i32..=9999, 1..=12, 1..=28).prop_map(|(y, m, d)| format!("(LocalDate/of {y} {m} {d})")),
        (0..24, 0..60, 0..60).prop_map(|(h, m, s)| format!("(LocalTime/of {h} {m} {s})")),
        (1..=12, 0..24, 0..60).prop_map(|(m, h, s)| format!("(LocalDateTime/of 2024 {m} 1 {h} 0 {s})")),
        any::<i64>().prop_map(|seconds| format!("(Duration/ofSeconds {seconds})")),
        (any::<i16>(), any::<i16>(), any::<i16>()).prop_map(|(y, m, d)| format!("(Period/of {y} {m} {d})")),
        (1..9999, 1..=12).prop_map(|(y, m)| format!("(YearMonth/of {y} {m})")),
        Just("(ZoneId/of \"Europe/Paris\")".to_string()),
    ]
}

fn scalars() -> impl Strategy<Value = Made> {
    let equal = prop_oneof![
        prop::sample::select(vec!["nil", "true", "false", "##Inf", "##-Inf", "-0.0", "0M", "0.00M", "(gensym)"])
            .prop_map(String::from),
        any::<i64>().prop_map(|n| n.to_string()),
        "-?[1-9][0-9]{0,40}".prop_map(|digits: String| format!("(bigint \"{digits}\")")),
        ("-?[0-9]{1,25}(\\.[0-9]{1,25})?", -400..400)
            .prop_map(|(digits, power)| format!("(bigdec \"{digits}e{power}\")")),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| format!("(parse-double \"{x:e}\")")),
        characters().prop_map(|c| format!("(char {})", u32::from(c))),
        texts(),
        names().prop_map(|name| format!("(keyword {name})")),
        names().prop_map(|name| format!("(symbol {name})")),
        times(),
    ];
    let patterns = "[a-c\"\\\\. |]{0,6}".prop_map(|text: String| {
        let text = text_of(&text.chars().collect::<Vec<_>>());
        Made { program: format!("(try (re-pattern {text}) (catch Exception e #\"x\"))"), has_equal: false }
    });
    prop_oneof![
        12 => equal.prop_map(Made::new),
        1 => patterns,
        1 => Just(Made { program: "##NaN".to_string(), has_equal: false }),
    ]
}

fn values() -> impl Strategy<Value = Made> {
    scalars().prop_recursive(4, 24, 5, |inner| {
        let items = || prop::collection::vec(inner.clone(), 0..5);
        let entries = || prop::collection::vec((inner.clone(), inner.clone()), 0..4);
        let flat =
            |entries: Vec<(Made, Made)>| entries.into_iter().flat_map(|(key, value)| [key, value]).collect::<Vec<_>>();
        let record = prop::collection::vec("[a-zA-Z_ :/\u{e9}]{0,4}", 0..4).prop_map(|keys| {
            let entries: std::collections::BTreeMap<String, usize> = keys.into_iter().zip(0..).collect();
            let json = serde_json::to_string(&entries).expect("text and numbers");
            Made::new(format!("(json/parse {json:?})"))
        });
        prop_oneof![
            items().prop_map(|items| Made::call("list", &items)),
            items().prop_map(|items| Made::call("vector", &items)),
            // `hash-set` of a map, a keyword and a value has the meaning of Racket.
            items().prop_map(|items| {
                let Made { program, has_equal } = Made::call("vector", &items);
                Made { program: format!("(set {program})"), has_equal }
            }),
            entries().prop_map(move |entries| Made::call("hash-map", &flat(entries))),
            prop::collection::vec(any::<i64>(), 0..5)
                .prop_map(|keys| Made::new(format!("(apply sorted-set {keys:?})").replace(',', " "))),
            (prop::collection::vec(texts(), 0..4), inner.clone()).prop_map(|(keys, value)| Made {
                program: format!("(into (sorted-map) (map (fn [k] [k {}]) [{}]))", value.program, keys.join(" ")),
                has_equal: value.has_equal,
            }),
            inner.clone().prop_map(|item| Made::call("list (quote quote)", &[item])),
            inner.clone().prop_map(|item| Made {
                program: format!("(with-meta [{}] {{:m \"x\"}})", item.program),
                has_equal: item.has_equal,
            }),
            record,
            Just(Made::new("(->Point 1 \"a\")".to_string())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn what_is_printed_reads_back_equal(made in values()) {
        let mut session = engine().session();
        let made_by = &made.program;
        let defined = session.eval(Request::new(format!("(defrecord Point [x y]) (def v {made_by}) :made")), Arc::new(Scripted::new()));
        prop_assert_eq!(defined.value.as_deref(), Some(":made"), "{}\n{:?}", made_by, defined.failure);
        let check = "(let [text (pr-str v) back (read-string text)] [(= v back) (= text (pr-str back)) text])";
        let reply = session.eval(Request::new(check), Arc::new(Scripted::new()));
        let shown = reply.value.clone().unwrap_or_default();
        let expected = if made.has_equal { "[true true " } else { " true " };
        prop_assert!(shown.contains(expected), "{}\n{}\n{:?}", made_by, shown, reply.failure);

        let snapshot = session.encode().expect("it encodes");
        let mut other = engine().session();
        if let Err(error) = other.decode(&snapshot) {
            return Err(TestCaseError::fail(format!("{made_by}\n{error}\n{snapshot}")));
        }
        let again = other.encode().expect("it encodes");
        prop_assert_eq!(&again, &snapshot, "{}", made_by);
        let restored = other.eval(Request::new(check), Arc::new(Scripted::new()));
        prop_assert_eq!(restored.value, reply.value, "{}", made_by);
    }
}
