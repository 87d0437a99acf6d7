//! Replies show the values of all top-level forms, and those that exceed a budget as previews: within the budget, with
//! all brackets and quotes closed, and marked as elided.

use crate::common;

use common::engine;
use lispbox::lang::{Limits, Reply, World};
use proptest::prelude::*;
use serde_json::{Value, json};

fn reply(program: &str, data: &Value, preview: Option<u64>) -> Reply {
    let limits = Limits { preview, ..Limits::default() };
    engine().session().run(program).data(data).limits(limits).reply(&World::default()).expect("an evaluation")
}

/// Returns the reply with a preview of 4 KiB.
fn shown(program: &str) -> Reply {
    reply(program, &Value::Null, Some(4 << 10))
}

/// True if all brackets and quotes of a text are closed in the right order.
fn is_balanced(text: &str) -> bool {
    let mut open = Vec::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => loop {
                match characters.next() {
                    Some('\\') => drop(characters.next()),
                    Some('"') => break,
                    Some(_) => {}
                    None => return false,
                }
            },
            '\\' => drop(characters.next()),
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(c) => return false,
            _ => {}
        }
    }
    open.is_empty()
}

fn check(program: &str, data: &Value, preview: u64) {
    let (part, whole) = (reply(program, data, Some(preview)), reply(program, data, None));
    let (text, full) = (part.value.clone().unwrap_or_default(), whole.value.unwrap_or_default());
    assert_eq!(part.value, reply(program, data, Some(preview)).value, "the same each time");
    if whole.truncated.is_none() && full.len() as u64 <= preview {
        assert_eq!((text, &part.truncated, part.more.is_empty()), (full, &None, true));
        return;
    }
    assert!(text.len() as u64 <= (preview / 2).max(3), "{} bytes of {preview}: {text}", text.len());
    assert!(is_balanced(&text), "{text}");
    assert!(text.contains('…') && part.truncated.is_some() && part.json.is_none(), "{part:?}");
    let rendered = part.text(100_000);
    assert!(rendered.lines().any(|line| line.starts_with("[elided: ") && line.contains("output")), "{rendered}");
}

fn values() -> impl Strategy<Value = Value> {
    let scalars = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z \"\\\\(){}…é\n]{0,12}".prop_map(Value::from),
        "[a-z \"\\\\\\[\\]]{100,400}".prop_map(Value::from),
    ];
    scalars.prop_recursive(5, 120, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
            (inner.clone(), 1..60_usize).prop_map(|(item, count)| Value::from(vec![item; count])),
            prop::collection::vec(("[a-z \"(]{1,10}|[a-z]{60,90}", inner.clone()), 0..40)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn previews_keep_their_budget_and_close_what_they_open(data in values(), preview in 16_u64..1_500) {
        check("data", &data, preview);
        check("(list (set [data]) {data data})", &data, preview);
    }
}

#[test]
fn values_of_every_kind_have_previews() {
    for program in [
        "(range)",
        "(map inc (range 10000))",
        "(iterate inc 1)",
        "(nth (iterate vector 1) 5000)",
        "(nth (iterate (fn [x] {:inner x :text \"aaaaaaaaaaaaaaa\"}) 1) 2000)",
        "{(vec (range 3000)) 1, (apply str (repeat 9000 \"k\")) {(keyword (apply str (repeat 9000 \"k\"))) 2}}",
        "(symbol (apply str (repeat 3000 \"a (\")))",
        "(re-pattern (apply str (repeat 1200 \"[(]x\\\"\")))",
        "(atom (vec (range 5000)))",
        "(let [a (atom nil)] (reset! a [a (vec (range 5000))]) a)",
        "(ex-info (apply str (repeat 3000 \"m\\\"\")) {})",
        "(reduced (vec (range 5000)))",
        "(do (defrecord Point [x y]) (->Point (vec (range 5000)) \"y\"))",
        "(zipmap (range 5000) (range))",
        "(set (range 5000))",
        "(apply str (repeat 5000 \"\\u0001\\n\"))",
        "[[] {} (apply str (repeat 5000 \"x\")) #{} (vec (range 5000)) nil (range 5000)]",
    ] {
        for preview in [16, 64, 300, 4 << 10] {
            check(program, &Value::Null, preview);
        }
    }
    // Within a smaller budget, the number of digits is shown.
    check("(reduce *' (range 1N 3000N))", &Value::Null, 4 << 10);
}

#[test]
fn a_preview_shows_the_shape_and_the_next_step() {
    let items: Vec<Value> = (0..250).map(|id| json!({"id": id, "body": "lorem ipsum ".repeat(300)})).collect();
    let text = reply("data", &json!({"page": 1, "items": items, "total": 250}), Some(4 << 10)).text(100_000);
    assert!(text.starts_with("{:page 1, :items [{:id 0, :body \"lorem ipsum"), "{text}");
    assert!(
        text.contains("\"…(3600 chars)} … 247 more], :total 250}\n[elided: all 3 entries, shortened; more: "),
        "{text}"
    );
    assert!(
        text.ends_with("more: (describe *1), (take 5 (:items *1)) or `limits {\"output\": \"32 KiB\"}`]"),
        "{text}"
    );
    for (program, next) in [
        ("(apply str (repeat 5000 \"x\"))", "(subs *1 2031)"),
        ("(vec (repeat 9 (apply str (repeat 5000 \"x\"))))", "(first *1)"),
        ("(vec (range 5000))", "(take 535 (drop 535 *1))"),
        ("{\"a b\" (apply str (repeat 5000 \"x\"))}", "(subs (get *1 \"a b\") 0 3000)"),
        ("{:a {:b (vec (range 5000))}}", "(:a *1)"),
    ] {
        let more = shown(program).more;
        assert!(more.iter().any(|more| more == next), "{program}: {more:?}");
        let mut session = engine().session();
        session.run(program).reply(&World::default()).expect("an evaluation");
        assert!(session.run(next).reply(&World::default()).expect("an evaluation").failure.is_none(), "{next}");
    }
}

#[test]
fn prints_keep_their_first_and_last_lines() {
    let reply = shown("(dotimes [n 1000] (println \"line\" n)) :done");
    let lines: Vec<&str> = reply.prints.lines().collect();
    assert!(reply.prints.len() < 2_300, "{}", reply.prints.len());
    assert_eq!((lines[0], lines.last()), ("line 0", Some(&"line 999")));
    assert!(lines.iter().any(|line| line.starts_with("… [") && line.contains("lines, ")), "{}", reply.prints);
    let both = shown("(dotimes [n 1000] (println \"line\" n)) (vec (range 5000))").text(100_000);
    assert!(both.len() <= 4_096 + 200, "{} bytes", both.len());
    assert_eq!(shown("(println \"a\") 1").prints, "a\n");
    // A long line is shown by its beginning, and costs no other line.
    let prints = shown("(println \"first\") (println (range 3000)) (println \"last\") 1").prints;
    let lines: Vec<&str> = prints.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[2]), (3, "first", "last"), "{prints}");
    assert!(
        lines[1].starts_with("(0 1 2 3 ")
            && lines[1].ends_with(" more bytes of this line: print less, or raise the limit `output`]"),
        "{prints}"
    );
    assert!((500..1_100).contains(&prints.len()), "{} bytes", prints.len());
    let program = "(dotimes [n 60] (println \"line\" n)) (dotimes [_ 9] (println (str/repeat \"x\" 3000))) (println (str/repeat \"L\" 3000)) 1";
    let prints = shown(program).prints;
    assert!(
        prints.starts_with("line 0\nline 1\n") && prints.lines().last().is_some_and(|line| line.starts_with("LLL")),
        "{prints}"
    );
    assert!(
        prints.contains("… [9 lines, 27009 bytes left out: ") || prints.contains("… [8 lines, 24008 bytes left out: "),
        "{prints}"
    );
}

#[test]
fn the_values_of_all_forms_are_shown_and_those_of_definitions_are_not() {
    for (program, text) in [
        ("1 \"a\" [2]", "1\n\"a\"\n[2]"),
        ("(def a 1) (+ a 1) nil (println \"hi\") :last", "2\n:last\nprinted:\nhi\n[defined: a]"),
        ("(+ 1 1) (defn f [] 1)", "2\n[defined: f]"),
        ("(defmulti area :kind) (defmethod area 1 [_] 2) 3", "3\n[defined: area]"),
        ("1 nil", "1\nnil"),
        ("nil 1", "1"),
        ("(println \"x\")", "x"),
        ("1 (doseq [x [1 2]] (print x))", "1\nprinted:\n12"),
        ("(println \"x\") nil", "nil\nprinted:\nx"),
        ("(do (println \"x\") nil)", "nil\nprinted:\nx"),
        ("nil", "nil (the program printed nothing)"),
    ] {
        assert_eq!(shown(program).text(10_000), text, "{program}");
    }
    let failed = shown("(+ 1 1) (throw (ex-info \"no\" {}))");
    assert_eq!((failed.earlier[0].value.as_str(), failed.text(10_000).contains("\n2")), ("2", false));
    // Nothing is computed that the program has not asked for.
    let reply = shown("1 (lazy-seq (throw (ex-info \"late\" {}))) (iterate inc 0) 2");
    assert_eq!(reply.value.as_deref(), Some("2"));
    assert_eq!(
        (&*reply.earlier[1].value, reply.earlier[1].truncated.as_deref()),
        ("(…)", Some("as far as it is computed"))
    );
    assert!(reply.earlier[2].value.starts_with("(0 1 2 3 ") && reply.earlier[2].value.ends_with(" …)"), "{reply:?}");
}

#[test]
fn many_and_large_values_share_the_budget() {
    let program = "(vec (range 5000)) ".repeat(50) + "(vec (range 5000))";
    let reply = shown(&program);
    let text = reply.text(100_000);
    assert!(text.len() <= 4_096 + 300, "{} bytes", text.len());
    assert!(reply.earlier_omitted > 0 && text.contains(&format!("[elided: {} more values]", reply.earlier_omitted)));
    assert!(reply.value.is_some_and(|value| value.len() > 900));
}
