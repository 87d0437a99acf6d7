//! Types as applications have them: with the attributes of serde, with keys of all kinds, and from the standard library.

use super::values::{echo, evaluated, failure, there_and_back};
use crate::common::engine;
use lispbox::lang::value::Value;
use lispbox::lang::{Call, Tools, World};
use proptest::test_runner::TestCaseError;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::net::IpAddr;
use std::num::{NonZeroI128, NonZeroU8};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// Passes a value through a tool, data, a parameter and a stored session.
fn passes<T>(value: T)
where
    T: Serialize + for<'de> Deserialize<'de> + PartialEq + Debug + 'static,
{
    match there_and_back(&engine(), &value) {
        Ok(()) => {}
        Err(TestCaseError::Fail(reason) | TestCaseError::Reject(reason)) => panic!("{value:?}: {reason}"),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    FirstClass,
    #[serde(rename = "2nd", alias = "second")]
    Second,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Tagged {
    Train { seats: u8, fare: f64, name: Option<String> },
    Bus(Page),
    OnFoot,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    A(i64),
    B { x: i128, kinds: Vec<Kind> },
    C(u8, String),
    D,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Nothing(()),
    Flag(bool),
    Int(i64),
    Large(u64),
    Float(f64),
    Text(String),
    List(Vec<Untagged>),
    Map(BTreeMap<String, Untagged>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Page {
    number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Search {
    search_text: String,
    #[serde(flatten)]
    page: Page,
    #[serde(flatten)]
    rest: BTreeMap<String, Untagged>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Id(u128);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Point(i8, String);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Settings {
    #[serde(rename = "type")]
    kind: Kind,
    limit: u16,
    tags: Vec<Cow<'static, str>>,
    #[serde(skip)]
    cache: Option<u8>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { kind: Kind::Second, limit: 20, tags: Vec::new(), cache: None }
    }
}

#[test]
fn enums_in_each_of_the_ways_of_serde_come_back() {
    passes(vec![Kind::FirstClass, Kind::Second]);
    passes(vec![
        Tagged::Train { seats: 3, fare: 1.5, name: None },
        Tagged::Train { seats: 255, fare: -0.25, name: Some(String::new()) },
        Tagged::Bus(Page { number: 1, size: Some(u64::MAX) }),
        Tagged::OnFoot,
    ]);
    passes(vec![
        Adjacent::A(i64::MIN),
        Adjacent::B { x: i128::MIN, kinds: vec![Kind::Second] },
        Adjacent::C(7, "x".to_owned()),
        Adjacent::D,
    ]);
    passes(vec![
        Untagged::Nothing(()),
        Untagged::Flag(true),
        Untagged::Int(-1),
        Untagged::Large(u64::MAX),
        Untagged::Float(1e300),
        Untagged::Text(":not-a-keyword".to_owned()),
        Untagged::List(vec![Untagged::Int(1), Untagged::Text("a".to_owned())]),
        Untagged::Map(BTreeMap::from([("a b".to_owned(), Untagged::Nothing(()))])),
    ]);
    passes(vec![Ok::<u8, String>(1), Err("no".to_owned())]);
}

#[test]
fn an_enum_is_read_from_what_a_program_writes() {
    let tagged = echo::<Tagged>();
    for program in [
        "(:seats (t/echo {:it {:kind \"train\" :seats 3 :fare 2}}))",
        "(:seats (t/echo {:it {:kind :train :seats 3 :fare 2.5}}))",
        "(:seats (t/echo {:it {\"kind\" \"train\" \"seats\" 3 \"fare\" 2}}))",
    ] {
        assert_eq!(evaluated::<u8>(program, &tagged), 3, "{program}");
    }
    assert_eq!(
        failure("(t/echo {:it {:kind \"plane\"}})", &tagged),
        "ToolArgumentError: argument `it.kind` of `t/echo`: unknown variant `plane`, expected one of `train`, `bus`, \
         `onFoot`"
    );
    // Serde keeps the fields of such an enum before it knows their types: a number is taken as it is written.
    assert_eq!(
        failure("(t/echo {:it {:kind :train :seats 3.0 :fare 2}})", &tagged),
        "ToolArgumentError: argument `it` of `t/echo`: invalid type: floating point `3.0`, expected u8"
    );
    assert_eq!(evaluated::<Kind>("(t/echo {:it :second})", &echo::<Kind>()), Kind::Second);
    assert_eq!(evaluated::<String>("(t/echo {:it :first-class})", &echo::<Kind>()), "first-class");
    let untagged = echo::<Untagged>();
    assert_eq!(evaluated::<Untagged>("(t/echo {:it 3})", &untagged), Untagged::Int(3));
    assert_eq!(evaluated::<Untagged>("(t/echo {:it [nil]})", &untagged), Untagged::List(vec![Untagged::Nothing(())]));
    assert_eq!(evaluated::<Untagged>("(t/echo {:it {:a 1}})", &untagged), {
        Untagged::Map(BTreeMap::from([("a".to_owned(), Untagged::Int(1))]))
    });
}

#[test]
fn structs_with_attributes_come_back() {
    passes(Unit);
    passes((Id(u128::MAX), Id(0), Point(i8::MIN, "p".to_owned())));
    passes(Settings { limit: 65_535, tags: vec!["a".into(), "b c".into()], ..Settings::default() });
    assert_eq!(evaluated::<Settings>("(t/echo {:it {}})", &echo::<Settings>()), Settings::default());
    assert_eq!(evaluated::<u16>("(:limit (t/echo {:it {:type \"2nd\" :limit 3}}))", &echo::<Settings>()), 3);
    let rest = BTreeMap::from([("a".to_owned(), Untagged::Int(1)), ("b".to_owned(), Untagged::Nothing(()))]);
    passes(Search { search_text: "x".to_owned(), page: Page { number: 4_294_967_295, size: None }, rest });
}

#[test]
fn a_flattened_struct_takes_what_is_left() {
    let seen = Mutex::new(Vec::new());
    let mut tools = Tools::new();
    tools.tool("mail/search", |search: Search, _: &Call| {
        seen.lock().unwrap().push(format!("{search:?}"));
        Ok(())
    });
    let world = World::new(tools);
    let _: () = evaluated("(mail/search {:searchText \"a\" :number 2 :since 1.5 :more [1 :b]})", &world);
    assert_eq!(
        failure("(mail/search {:searchText \"a\" :number -2})", &world),
        "ToolArgumentError: the arguments of `mail/search`: invalid value: integer `-2`, expected u32"
    );
    assert_eq!(
        failure("(mail/search {:searchText \"a\"})", &world),
        "ToolArgumentError: `mail/search` needs the argument `number`"
    );
    drop(world);
    assert_eq!(
        *seen.lock().unwrap(),
        [
            r#"Search { search_text: "a", page: Page { number: 2, size: None }, rest: {"more": List([Int(1), Text("b")]), "since": Float(1.5)} }"#
        ]
    );
}

#[test]
fn options_in_options_are_what_serde_makes_of_them() {
    passes(vec![None, Some(7_u8)]);
    passes((Some(Some(7_i16)), None::<Option<i16>>));
    passes(vec![Some(vec![None, Some(String::new())]), None]);
    // As in JSON, null is the outer one.
    let back: Option<Option<u8>> = evaluated("(t/echo {:it nil})", &echo::<Option<Option<u8>>>());
    assert_eq!(back, None);
}

#[test]
fn keys_of_all_kinds_come_back() {
    passes(BTreeMap::from([(i128::MIN, 1), (i128::MAX, 2), (0, 3)]));
    passes(BTreeMap::from([(u128::MAX, 1)]));
    passes(BTreeMap::from([(true, 1), (false, 2)]));
    passes(BTreeMap::from([('a', 1), ('"', 2), ('é', 3)]));
    passes(BTreeMap::from([(Kind::FirstClass, 1), (Kind::Second, 2)]));
    passes(BTreeMap::from([(String::new(), 1), ("a b".to_owned(), 2), (":a".to_owned(), 3), ("1".to_owned(), 4)]));
    passes(HashMap::from([(PathBuf::from("/a/b"), Unit)]));
    passes(BTreeMap::from([("127.0.0.1".parse::<IpAddr>().unwrap(), 1)]));
}

#[test]
fn integers_and_booleans_are_read_from_keys_that_are_text() {
    fn keys<K>(text: &str) -> Result<Vec<K>, String>
    where
        K: for<'de> Deserialize<'de> + Ord,
    {
        // As data that came as JSON has them.
        let read = engine().session().run(format!("{{\"{text}\" 1}}")).eval::<BTreeMap<K, u8>>(&World::default());
        let map = read.map_err(|error| error.to_string())?.into_result().expect("it succeeds");
        Ok(map.into_keys().collect())
    }
    assert_eq!(keys("340282366920938463463374607431768211455"), Ok(vec![u128::MAX]));
    assert_eq!(keys("-170141183460469231731687303715884105728"), Ok(vec![i128::MIN]));
    assert_eq!(keys("-9223372036854775808"), Ok(vec![i64::MIN]));
    assert_eq!((keys("true"), keys("false")), (Ok(vec![true]), Ok(vec![false])));
    assert_eq!(keys(&'x'.to_string()), Ok(vec!['x']));
    for (read, message) in [
        (keys::<u128>("-1").err(), "at -1: expected an integer of the type `u128` as key, got `-1`"),
        (keys::<i128>("1.0").err(), "at 1.0: expected an integer of the type `i128` as key, got `1.0`"),
        (keys::<u8>("256").err(), "at 256: expected an integer of the type `u8` as key, got `256`"),
        (keys::<bool>("yes").err(), "at yes: expected `true` or `false` as key, got `yes`"),
    ] {
        assert_eq!(read, Some(format!("the result does not fit its type: {message}")));
    }
}

#[test]
fn types_of_the_standard_library_come_back() {
    passes(BTreeSet::from([3, 1, 2]));
    passes(VecDeque::from([1.5, -0.0]));
    passes((NonZeroU8::MAX, NonZeroI128::MIN, Box::new(1_u16), std::num::Wrapping(-1_i8)));
    passes(("::1".parse::<IpAddr>().unwrap(), PathBuf::from("a b"), Duration::new(1, 999_999_999)));
    passes(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 33));
    passes((1..5, 'x', [[1_u8; 3]; 2], ((), (1,))));
    passes([f32::MIN_POSITIVE, f32::MAX, -0.0]);
    passes([f64::MIN_POSITIVE, f64::MAX, 5e-324, 0.1 + 0.2]);
    assert!(failure("(t/echo {:it 0})", &echo::<NonZeroU8>()).contains("argument `it` of `t/echo`: "));
}

#[test]
fn each_width_of_integers_has_its_bounds() {
    fn bounds<T>(least: T, most: T)
    where
        T: Serialize + for<'de> Deserialize<'de> + PartialEq + Debug + std::fmt::Display + 'static,
    {
        let world = echo::<T>();
        for beyond in [format!("(dec' {least})"), format!("(inc' {most})")] {
            let message = failure(&format!("(t/echo {{:it {beyond}}})"), &world);
            assert!(message.starts_with("ToolArgumentError: argument `it` of `t/echo`: "), "{beyond}: {message}");
        }
        passes((least, most));
    }
    bounds(i8::MIN, i8::MAX);
    bounds(u8::MIN, u8::MAX);
    bounds(i16::MIN, i16::MAX);
    bounds(u16::MIN, u16::MAX);
    bounds(i32::MIN, i32::MAX);
    bounds(u32::MIN, u32::MAX);
    bounds(i64::MIN, i64::MAX);
    bounds(u64::MIN, u64::MAX);
    bounds(i128::MIN, i128::MAX);
    bounds(u128::MIN, u128::MAX);
}

#[test]
fn values_that_rust_has_no_type_for_come_back() {
    for program in [
        "123456789012345678901234567890123456789012345678901234567890.12345M",
        "0.123456789012345678901234567890123456789012345678901234567890M",
        "-1.50M",
        "(reduce *' (repeat 40 12345678901234567890N))",
        "-0.0",
        "[\\space \\newline \\é]",
        "[(keyword \"a b\") (keyword \"\") :a/b (symbol \"1\")]",
        "{[1 2] {:a #{1}} nil 1 1.5 2 \\a 3 {:b 1} 4 #{} 5}",
        "#{#{1} [2] {:a 3} nil}",
        "[#inst \"2026-03-01T10:00:00Z\" #time/date \"2024-02-29\" #time/time \"10:00:00.5\"]",
        "[#time/date-time \"2024-02-29T10:00\" #time/duration \"PT0.001S\" #time/period \"P1M3D\"]",
        "[#time/offset-date-time \"2024-02-29T10:00+02:00\" #time/zoned-date-time \"2024-07-01T10:00+02:00[Europe/Berlin]\"]",
        "(json/parse \"{\\\"aB\\\": [1, 2.5, null, {\\\"\\\": true}]}\")",
    ] {
        passes(evaluated::<Value>(program, &World::default()));
    }
}

#[test]
fn what_is_no_number_is_kept_as_it_is() {
    let mut session = engine().session();
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        session.set("n", &number).unwrap();
        let mut session = engine().restore(&session.encode().unwrap()).unwrap();
        assert_eq!(session.get::<f64>("n").unwrap().map(f64::to_bits), Some(number.to_bits()));
        session.set("n", &(number as f32)).unwrap();
        assert_eq!(session.get::<f32>("n").unwrap().map(f32::is_nan), Some(number.is_nan()));
    }
}
