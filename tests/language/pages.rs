//! `all-pages`: the items of tools that reply page by page, by every usual scheme, also of servers with faults.

use crate::common;

use std::sync::Arc;

use common::{Scripted, session};
use lispbox::lang::{Reply, Request, ToolReply};
use serde_json::{Value, json};

/// Properties of an input schema.
fn schema(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn number() -> Value {
    json!({"type": "integer"})
}

fn text() -> Value {
    json!({"type": "string"})
}

/// The number under that key of the arguments.
fn of(arguments: &Value, key: &str, default: usize) -> usize {
    arguments[key].as_u64().map_or(default, |number| number as usize)
}

/// Records with the identifiers from `from`, at most `size`, of `all`.
fn records(from: usize, size: usize, all: usize) -> Vec<Value> {
    (from..all.min(from + size)).map(|id| json!({"id": id})).collect()
}

/// A tool `t/list` with that schema and script.
fn list(properties: Value, script: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Scripted {
    Scripted::new().tool("t/list", schema(properties), move |arguments| ToolReply::Json(script(arguments).to_string()))
}

/// The outcome of a program, and the arguments of the calls that it made.
struct Ran {
    reply: Reply,
    sent: Vec<Value>,
}

fn run(host: Scripted, program: &str) -> Ran {
    let host = Arc::new(host);
    let reply = session().eval(Request::new(program), host.clone());
    let calls = host.calls.lock().expect("not poisoned");
    let sent = calls.iter().map(|call| serde_json::from_str(&call.arguments).expect("JSON")).collect();
    Ran { reply, sent }
}

impl Ran {
    fn value(&self) -> &str {
        self.reply.value.as_deref().unwrap_or_else(|| panic!("{:?}", self.reply.failure))
    }

    fn failure(&self) -> (&str, &str) {
        let failure = self.reply.failure.as_ref().unwrap_or_else(|| panic!("{:?}", self.reply.value));
        (&failure.error, &failure.message)
    }
}

/// Checks that all identifiers from 0 to `count` come, with that many calls and those notes.
fn check(host: Scripted, arguments: &str, count: usize, calls: usize, notes: &[&str]) {
    let ran = run(
        host,
        &format!("(let [ids (map :id (all-pages t/list {arguments}))] [(count ids) (= ids (range {count}))])"),
    );
    assert_eq!(ran.value(), format!("[{count} true]"), "{:?}", ran.sent);
    assert_eq!(ran.sent.len(), calls, "{:?}", ran.sent);
    assert_eq!(ran.reply.notes, notes);
}

const TWENTY_THREE: usize = 23;

#[test]
fn numbered_pages_end_by_their_count_their_total_a_flag_or_a_short_page() {
    let paged = |marks: fn(usize, &[Value]) -> Value| {
        list(json!({"page": number(), "limit": number()}), move |arguments| {
            let page = of(arguments, "page", 1);
            let items = records((page - 1) * 5, 5, TWENTY_THREE);
            let mut reply = marks(page, &items);
            reply["tickets"] = items.into();
            reply
        })
    };
    check(paged(|page, _| json!({"page": page, "totalPages": 5})), "{}", 23, 5, &[]);
    check(paged(|_, _| json!({"total": 23})), "{}", 23, 5, &[]);
    check(paged(|_, _| json!({"pagination": {"total_count": 23}})), "{}", 23, 5, &[]);
    check(paged(|page, _| json!({"has_more": page < 5})), "{}", 23, 5, &[]);
    check(paged(|page, _| json!({"meta": {"last": page == 5}})), "{}", 23, 5, &[]);
    check(
        paged(|page, _| json!({"next_page": if page < 5 { json!(page + 1) } else { Value::Null }})),
        "{}",
        23,
        5,
        &[],
    );
    check(paged(|_, _| json!({})), "{}", 23, 5, &[]);
    // The count of the items at hand is not a total.
    check(paged(|_, items| json!({"count": items.len()})), "{}", 23, 5, &[]);
}

#[test]
fn bare_lists_end_with_a_short_or_an_empty_page() {
    let bare = |all: usize| {
        list(json!({"pageNumber": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}), move |arguments| {
            records((of(arguments, "pageNumber", 1) - 1) * 5, 5, all).into()
        })
    };
    check(bare(23), "{}", 23, 5, &[]);
    check(bare(20), "{}", 20, 5, &[]);
    check(bare(0), "{}", 0, 1, &[]);
}

#[test]
fn the_first_number_of_a_page_is_that_of_the_schema_or_of_the_reply() {
    let from_zero = |schema: Value, own: bool| {
        list(json!({"page": schema}), move |arguments| {
            let page = of(arguments, "page", 0);
            let mut reply = json!({"items": records(page * 5, 5, TWENTY_THREE), "totalPages": 5});
            if own {
                reply["page"] = page.into();
            }
            reply
        })
    };
    check(from_zero(json!({"type": "integer", "default": 0}), false), "{}", 23, 5, &[]);
    check(from_zero(json!({"type": "integer", "minimum": 0}), false), "{}", 23, 5, &[]);
    check(from_zero(number(), true), "{}", 23, 5, &[]);
    check(from_zero(number(), false), "{:page 0}", 23, 5, &[]);
    // A wrong number is noticed, since the first page comes again or is left out by the program itself.
    let ran = run(from_zero(number(), false), "(map :id (all-pages t/list {:page 3}))");
    assert_eq!(ran.value(), "(15 16 17 18 19 20 21 22)");
}

#[test]
fn offsets_advance_by_what_came() {
    let skipping = |most: usize, marks: fn(usize, usize) -> Value| {
        list(json!({"offset": number(), "limit": {"type": "integer", "default": 10}}), move |arguments| {
            let from = of(arguments, "offset", 0);
            let items = records(from, of(arguments, "limit", 10).min(most), TWENTY_THREE);
            let mut reply = marks(from, items.len());
            reply["items"] = items.into();
            reply
        })
    };
    check(skipping(50, |_, _| json!({"total": 23})), "{}", 23, 3, &[]);
    check(skipping(50, |_, _| json!({})), "{}", 23, 3, &[]);
    check(skipping(50, |from, count| json!({"hasMore": from + count < 23})), "{}", 23, 3, &[]);
    check(skipping(50, |from, count| json!({"offset": from, "has_more": from + count < 23})), "{:limit 4}", 23, 6, &[]);
    let next = |from: usize, count: usize| json!({"next_offset": if from + count < 23 { json!(from + count) } else { Value::Null }});
    check(skipping(50, next), "{}", 23, 3, &[]);
    // A page that the server made smaller than the program asked for is not the last one.
    let capped = "`t/list`: asked for 100 items a page, got 5; all pages were counted by what came";
    check(skipping(5, |_, _| json!({})), "{:limit 100}", 23, 5, &[capped]);
    check(skipping(5, |_, _| json!({"total": 23})), "{:limit 100}", 23, 5, &[capped]);
    check(skipping(5, |from, count| json!({"hasMore": from + count < 23})), "{:limit 100}", 23, 5, &[capped]);
    // Only the first page came: nothing is known of the others.
    let ran = run(skipping(5, |_, _| json!({})), "(take 3 (all-pages t/list {:limit 100}))");
    assert_eq!((ran.sent.len(), ran.reply.notes.len()), (1, 0));
}

/// Makes a reply from items and the cursor of the next page.
type MakeReply = fn(Vec<Value>, Option<String>) -> Value;

/// A tool whose cursor is `c` and the number of items before.
fn with_cursor(argument: &'static str, reply: MakeReply) -> Scripted {
    list(json!({"status": text(), argument: text()}), move |arguments| {
        let from = arguments[argument].as_str().map_or(0, |cursor| cursor[1..].parse().expect("a cursor"));
        let items = records(from, 5, TWENTY_THREE);
        let next = from + items.len();
        reply(items, (next < TWENTY_THREE).then(|| format!("c{next}")))
    })
}

#[test]
fn cursors_are_recognised_under_their_usual_names() {
    let cases: [(&str, MakeReply); 14] = [
        ("cursor", |items, next| json!({"items": items, "next_cursor": next})),
        ("cursor", |items, next| json!({"items": items, "nextCursor": next.unwrap_or_default()})),
        ("cursor", |items, next| json!({"items": items, "next": next})),
        ("cursor", |items, next| json!({"data": {"items": items, "meta": {"next_cursor": next}}})),
        ("cursor", |items, next| json!({"results": items, "response_metadata": {"next_cursor": next}})),
        ("page_token", |items, next| json!({"items": items, "nextPageToken": next})),
        ("pageToken", |items, next| match next {
            Some(next) => json!({"files": items, "nextPageToken": next}),
            None => json!({"files": items}),
        }),
        (
            "after",
            |items, next| json!({"data": {"issues": {"nodes": items, "pageInfo": {"hasNextPage": next.is_some(), "endCursor": next}}}}),
        ),
        ("after", |items, next| {
            let last = next.clone().or(Some("c23".to_owned()));
            json!({"nodes": items, "pageInfo": {"hasNextPage": next.is_some(), "endCursor": last}})
        }),
        ("after", |items, next| match next {
            Some(next) => {
                json!({"results": items, "paging": {"next": {"after": next, "link": "https://x.org/?after=1"}}})
            }
            None => json!({"results": items}),
        }),
        ("after", |items, next| json!({"data": items, "paging": {"cursors": {"before": "x", "after": next}}})),
        ("continuationToken", |items, next| json!({"value": items, "continuationToken": next})),
        ("continuation", |items, next| json!({"count": items.len(), "items": items, "continuation": next})),
        ("bookmark", |items, next| json!({"docs": items, "bookmark": next.unwrap_or("c23".to_owned())})),
    ];
    for (number, (argument, reply)) in cases.into_iter().enumerate() {
        let calls = if argument == "bookmark" { 6 } else { 5 };
        println!("case {number}");
        check(with_cursor(argument, reply), "{:status \"open\"}", 23, calls, &[]);
    }
}

#[test]
fn edges_and_last_identifiers_lead_on() {
    let stripe = list(json!({"starting_after": number(), "limit": number()}), |arguments| {
        let items = records(arguments["starting_after"].as_u64().map_or(0, |id| id as usize + 1), 5, TWENTY_THREE);
        let more = items.last().is_some_and(|last| last["id"] != 22);
        json!({"object": "list", "data": items, "has_more": more})
    });
    check(stripe, "{}", 23, 5, &[]);
    let relay = with_cursor("after", |items, next| {
        let edges: Vec<Value> = items.into_iter().map(|node| json!({"cursor": "x", "node": node})).collect();
        json!({"data": {"tickets": {"edges": edges, "pageInfo": {"hasNextPage": next.is_some(), "endCursor": next}}}})
    });
    let ran = run(relay, "(map (comp :id :node) (all-pages t/list))");
    assert_eq!(ran.value(), format!("({})", (0..23).map(|id| id.to_string()).collect::<Vec<_>>().join(" ")));
}

#[test]
fn links_lead_on_by_the_arguments_in_their_query() {
    let linked = |marks: fn(Option<String>) -> Value| {
        list(json!({"page": number(), "q": text()}), move |arguments| {
            let page = of(arguments, "page", 1);
            let items = records((page - 1) * 5, 5, TWENTY_THREE);
            let next = (page < 5).then(|| format!("https://x.org/tickets?q=a%20b&page={}", page + 1));
            let mut reply = marks(next);
            reply["results"] = items.into();
            reply
        })
    };
    check(linked(|next| json!({"links": {"next": next}})), "{:q \"a b\"}", 23, 5, &[]);
    check(linked(|next| json!({"_links": {"next": {"href": next}}})), "{}", 23, 5, &[]);
    check(linked(|next| json!({"count": 23, "next": next, "previous": null})), "{}", 23, 5, &[]);
    check(
        linked(|next| json!({"links": next.map(|next| vec![json!({"rel": "next", "href": next})])})),
        "{}",
        23,
        5,
        &[],
    );
    let header = |next: Option<String>| json!({"link": next.map(|next| format!("<https://x.org/?page=1>; rel=\"first\", <{next}>; rel=\"next\""))});
    check(linked(header), "{}", 23, 5, &[]);
}

#[test]
fn pages_are_fetched_as_they_are_needed() {
    let host = || with_cursor("cursor", |items, next| json!({"items": items, "next_cursor": next}));
    for (program, calls) in [
        ("(take 3 (all-pages t/list))", 1),
        ("(take 5 (all-pages t/list))", 1),
        ("(take 6 (all-pages t/list))", 2),
        ("(first (all-pages t/list))", 1),
        ("(some #(when (= 7 (:id %)) %) (all-pages t/list))", 2),
        ("(first (filter #(< 11 (:id %)) (all-pages t/list {:status \"open\"})))", 3),
        ("(take 3 (map :id (all-pages t/list :status \"open\")))", 1),
        ("(def all (all-pages t/list))", 0),
        ("(do (all-pages t/list) nil)", 0),
        ("(count (all-pages t/list))", 5),
        ("(into [] (comp (map :id) (take 7)) (all-pages t/list))", 2),
    ] {
        assert_eq!(run(host(), program).sent.len(), calls, "{program}");
    }
}

#[test]
fn a_stored_sequence_goes_on_in_a_later_program() {
    let host = Arc::new(with_cursor("cursor", |items, next| json!({"items": items, "next_cursor": next})));
    let mut before = session();
    before.eval(Request::new("(def all (all-pages t/list))"), host.clone());
    let mut after = common::moved(&mut before);
    let reply = after.eval(Request::new("(count all)"), host.clone());
    assert_eq!(reply.value.as_deref(), Some("23"));
    assert_eq!(host.calls.lock().expect("not poisoned").len(), 5);
}

#[test]
fn a_reply_without_paging_marks_is_all_there_is() {
    let whole = |reply: Value| list(json!({"query": text()}), move |_| reply.clone());
    check(whole(json!(records(0, 9, 9))), "{}", 9, 1, &[]);
    check(whole(json!({"items": records(0, 9, 9)})), "{:query \"a\"}", 9, 1, &[]);
    check(whole(json!({"items": records(0, 9, 9), "total": 9, "hasMore": false})), "{}", 9, 1, &[]);
    check(whole(json!({"items": null})), "{}", 0, 1, &[]);
    check(whole(json!([])), "{}", 0, 1, &[]);
    check(whole(json!({"lists": records(0, 9, 9), "errors": []})), "{}", 9, 1, &[]);
    check(whole(json!({"errors": [], "data": {"found": records(0, 9, 9), "list": records(0, 9, 9)}})), "{}", 9, 1, &[]);
    check(whole(json!({"warnings": ["slow"], "items": null})), "{}", 0, 1, &[]);
    check(whole(json!({"errors": records(0, 9, 9)})), "{}", 9, 1, &[]);
    check(whole(json!({"ok": true, "other": [1, 2], "items": records(0, 9, 9)})), "{}", 9, 1, &[]);
    check(whole(json!({"tags": ["a"], "people": records(0, 9, 9)})), "{}", 9, 1, &[]);
}

#[test]
fn a_reply_without_items_is_an_error_with_its_keys() {
    let whole = |reply: Value| list(json!({"page": number()}), move |_| reply.clone());
    let ran = run(whole(json!({"error": "busy", "meta": {"code": 7}})), "(all-pages t/list)");
    let expected = "expected a page with an array of items, but the reply is a map with `:error`, `[:meta :code]`";
    assert_eq!(ran.failure(), ("PagingError", expected));
    let ran = run(whole(json!("text")), "(all-pages t/list)");
    assert_eq!(
        ran.failure(),
        ("PagingError", "expected a page with an array of items, but the reply is a string without items")
    );
    let ran = run(whole(json!({"a": [{"x": 1}], "b": [{"y": 1}]})), "(all-pages t/list)");
    assert_eq!(ran.failure(), ("PagingError", "the items of the reply may be :a or :b"));
    let ran = run(
        whole(json!({"a": [{"x": 1}], "b": [{"y": 1}], "page": 1, "pages": 1})),
        "(all-pages t/list {} {:items :b})",
    );
    assert_eq!(ran.value(), "({:y 1})");
    // The third reply is not a page.
    let breaks = list(json!({"page": number()}), |arguments| match of(arguments, "page", 1) {
        page @ 1..=2 => json!({"items": records((page - 1) * 5, 5, TWENTY_THREE), "page": page}),
        _ => json!({"error": "rate limit"}),
    });
    assert_eq!(
        run(breaks, "(count (all-pages t/list))").failure(),
        ("PagingError", "expected a page with an array of items, but reply 3 is a map with `:error`")
    );
}

#[test]
fn repeated_cursors_end_in_an_error_after_the_items() {
    let circle = |length: usize| {
        list(json!({"cursor": text()}), move |arguments| {
            let at: usize = arguments["cursor"].as_str().map_or(0, |cursor| cursor.parse().expect("a number"));
            // Other items each time, so that only the cursor repeats.
            json!({"items": records(at * 10 + arguments["cursor"].as_str().map_or(0, str::len), 5, 1000),
                   "next_cursor": ((at % length) + 1).to_string()})
        })
    };
    for (length, calls) in [(1, 2), (2, 3), (3, 4)] {
        let ran = run(circle(length), "(count (all-pages t/list))");
        let (code, message) = ran.failure();
        let expected =
            format!("the cursor \"1\" (a string) came a second time, on page {calls}: the pages go in circles");
        assert_eq!((code, message, ran.sent.len()), ("PagingError", expected.as_str(), calls));
    }
    let ran = run(circle(1), "(count (take 10 (all-pages t/list)))");
    assert_eq!(ran.value(), "10");
    // The cursor that the program gives counts.
    let ran = run(circle(1), "(count (all-pages t/list {:cursor \"1\"}))");
    assert_eq!((ran.failure().0, ran.sent.len()), ("PagingError", 1));
}

#[test]
fn pages_that_repeat_end_in_an_error() {
    for properties in [json!({"page": number()}), json!({"offset": number()})] {
        let deaf = list(properties, |_| json!(records(0, 5, 5)));
        let ran = run(deaf, "(count (all-pages t/list))");
        let expected = "page 2 has the items of an earlier page: the pages repeat";
        assert_eq!((ran.failure(), ran.sent.len()), (("PagingError", expected), 2));
    }
    let circle =
        list(json!({"page": number()}), |arguments| json!(records((of(arguments, "page", 1) % 3) * 5, 5, 100)));
    assert_eq!(run(circle, "(count (all-pages t/list))").sent.len(), 4);
    let back = list(
        json!({"offset": number()}),
        |arguments| json!({"items": records(of(arguments, "offset", 0), 5, 100), "next_offset": 5}),
    );
    assert_eq!(
        run(back, "(count (all-pages t/list))").failure().1,
        "the reply to `offset` 5 leads back to 5: the pages go in circles"
    );
}

#[test]
fn totals_that_lie_end_with_a_note() {
    let lying = |total: usize, more: Option<bool>| {
        list(json!({"offset": number()}), move |arguments| {
            let items = records(of(arguments, "offset", 0), 10, TWENTY_THREE);
            match more {
                Some(more) => json!({"items": items, "total": total, "has_more": more}),
                None => json!({"items": items, "total": total}),
            }
        })
    };
    check(lying(500, None), "{}", 23, 4, &["`t/list`: its reply says that there are 500 items; 23 came"]);
    let both = [
        "`t/list`: a page without items says that there are more: taken as the end",
        "`t/list`: its reply says that there are 500 items; 23 came",
    ];
    check(lying(500, Some(true)), "{}", 23, 4, &both);
    let ran = run(lying(500, Some(true)), "(count (all-pages t/list))");
    assert!(ran.reply.text(10_000).ends_with("; 23 came]"), "{}", ran.reply.text(10_000));
    // A total of zero beside items says nothing.
    check(lying(0, None), "{}", 23, 3, &[]);
}

#[test]
fn pages_that_change_in_between_are_passed_on_as_they_come() {
    // An item is put in front between the calls.
    let changing = list(json!({"offset": number()}), |arguments| {
        let from = of(arguments, "offset", 0);
        let shift = usize::from(from > 0);
        json!({"items": records(from - shift, 5, 12), "has_more": from - shift + 5 < 12})
    });
    let ran = run(changing, "(map :id (all-pages t/list))");
    assert_eq!(ran.value(), "(0 1 2 3 4 4 5 6 7 8 9 10 11)");
}

#[test]
fn what_cannot_be_continued_says_what_was_recognised() {
    let closed = |reply: Value| list(json!({"query": text(), "size": number()}), move |_| reply.clone());
    for (reply, evidence) in [
        (json!({"items": [1, 2], "hasMore": true}), "says that there are more"),
        (json!({"items": [1, 2], "total": 9}), "has 2 of 9 items"),
        (json!({"items": [1, 2], "totalPages": 4}), "is one of 4 pages"),
        (json!({"items": [1, 2], "next_cursor": "x"}), "leads to a next page"),
        (json!({"items": [1, 2], "next": "https://x.org/?page=2"}), "leads to a next page"),
    ] {
        let keys: Vec<String> = reply.as_object().expect("a map").keys().map(|key| format!("`:{key}`")).collect();
        let expected = format!(
            "the reply of `t/list` {evidence}, and how to ask for them is not evident: its arguments are `:query`, \
             `:size`, the reply is a map with {}",
            keys.join(", ")
        );
        let ran = run(closed(reply.clone()), "(count (all-pages t/list))");
        assert_eq!(ran.failure(), ("PagingError", expected.as_str()));
        let advice = ran.reply.failure.expect("an error").suggestion.expect("advice");
        assert!(advice.contains("{:cursor-in :after :cursor-out [:meta :next]}"), "{advice}");
        // The items that came can be used.
        assert_eq!(run(closed(reply), "(take 2 (all-pages t/list))").value(), "(1 2)");
    }
}

#[test]
fn options_name_what_is_not_recognised() {
    let odd = list(json!({"weiter": text()}), |arguments| {
        let from = arguments["weiter"].as_str().map_or(0, |text| text.parse().expect("a number"));
        let next = (from + 5 < TWENTY_THREE).then(|| (from + 5).to_string());
        json!({"liste": records(from, 5, TWENTY_THREE), "mehr": [1], "stand": {"ab": next}})
    });
    check(odd, "{} {:items :liste :cursor-in :weiter :cursor-out [:stand :ab]}", 23, 5, &[]);
    let numbered = list(json!({"seite": number()}), |arguments| {
        let page = of(arguments, "seite", 1);
        json!({"items": records((page - 1) * 5, 5, TWENTY_THREE), "mehr": page < 5})
    });
    check(numbered, "{} {:page-in :seite :more :mehr}", 23, 5, &[]);
    let skipping = list(json!({"ab": number()}), |arguments| json!(records(of(arguments, "ab", 0), 5, TWENTY_THREE)));
    check(skipping, "{} {:offset-in :ab}", 23, 5, &[]);
    let ran = run(Scripted::new(), "(all-pages identity {} {:cursor-inn :a})");
    assert_eq!(ran.failure(), ("UnknownOption", "`all-pages` has no option `:cursor-inn`"));
}

#[test]
fn rows_of_a_table_become_maps_by_its_columns() {
    let table = |columns: Value, rows: Value| list(json!({}), move |_| json!({"columns": columns, "rows": rows}));
    let value = |host: Scripted| {
        let ran = run(host, "(all-pages t/list {})");
        assert_eq!(ran.reply.failure, None);
        ran.reply.value.expect("a value")
    };
    assert_eq!(
        value(table(json!(["id", "Full name"]), json!([[1, "Ann"], [2, null]]))),
        "({:id 1, \"Full name\" \"Ann\"} {:id 2, \"Full name\" nil})"
    );
    assert_eq!(value(table(json!([{"name": "id", "type": "INT"}]), json!([[1]]))), "({:id 1})");
    // Neither a row of another length, nor columns that are not distinct names.
    assert_eq!(value(table(json!(["id", "name"]), json!([[1, 2], [3]]))), "({:id 1, :name 2} [3])");
    assert_eq!(value(table(json!(["id", "name"]), json!([[1], [3]]))), "([1] [3])");
    assert_eq!(value(table(json!(["id", "id"]), json!([[1, 2]]))), "([1 2])");
    assert_eq!(value(table(json!(["id", 7]), json!([[1, 2]]))), "([1 2])");
    assert_eq!(value(table(json!([]), json!([[], []]))), "([] [])");
    // Every page has its columns, below a key as well.
    let paged = list(json!({"page": number()}), |arguments| {
        let page = of(arguments, "page", 1);
        json!({"data": {"headers": ["n"], "rows": [[page], [page * 10]]}, "totalPages": 2})
    });
    assert_eq!(value(paged), "({:n 1} {:n 10} {:n 2} {:n 20})");
    // Or the first one alone has them.
    let first = list(json!({"page": number()}), |arguments| match of(arguments, "page", 1) {
        1 => json!({"fields": ["a", "b"], "columns": ["n"], "rows": [[1]], "totalPages": 2}),
        page => json!({"rows": [[page]], "totalPages": 2}),
    });
    assert_eq!(value(first), "({:n 1} {:n 2})");
}

#[test]
fn functions_have_pages_as_well() {
    let program =
        |body: &str| format!("(def rows (vec (range 23))) (defn f [args] {body}) (= rows (all-pages f {{:q 1}}))");
    for body in [
        "(let [p (:page args 1)] {:items (take 5 (drop (* 5 (dec p)) rows)) :page p :total-pages 5})",
        "(let [o (:offset args 0)] {:items (take 5 (drop o rows)) :offset o :total 23})",
        "(let [c (:cursor args 0)] {:items (take 5 (drop c rows)) :next-cursor (if (< c 20) (+ c 5))})",
        "(let [c (:pageToken args 0)] {:items (take 5 (drop c rows)) :nextPageToken (if (< c 20) (+ c 5))})",
        "{:items rows}",
        "rows",
    ] {
        assert_eq!(common::value(&program(body)), "true", "{body}");
    }
}

#[test]
fn signatures_say_that_there_are_pages() {
    let host = list(json!({"status": text(), "cursor": text()}), |_| json!([])).tool(
        "t/plain",
        schema(json!({"from": text(), "after": text()})),
        |_| ToolReply::Text(String::new()),
    );
    let printed = run(host, "(dir 't)").reply.prints;
    assert!(
        printed.contains("(t/list :status? string :cursor? string)  the tool list  ; pages: all-pages\n"),
        "{printed}"
    );
    assert!(printed.contains("(t/plain :from? string :after? string)  the tool plain\n"), "{printed}");
    let host = list(json!({"cursor": text()}), |_| json!([]));
    let printed = run(host, "(doc t/list)").reply.prints;
    assert!(printed.contains("  (all-pages t/list {…}) gives the items of all its pages\n"), "{printed}");
}

#[test]
fn failures_of_a_page_are_those_of_the_tool() {
    let failing =
        Scripted::new().tool("t/list", schema(json!({"page": number()})), |arguments| match of(arguments, "page", 1) {
            3 => ToolReply::Error(lispbox::lang::ToolError::failed("rate limit")),
            page => {
                ToolReply::Json(json!({"items": records((page - 1) * 5, 5, TWENTY_THREE), "page": page}).to_string())
            }
        });
    let ran = run(
        failing,
        "(def all (all-pages t/list)) [(count (take 10 all)) (try (count all) (catch Exception e (ex-message e)))]",
    );
    assert_eq!(ran.value(), r#"[10 "rate limit"]"#);
}
