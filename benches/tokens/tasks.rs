//! The tasks: the direct calls of a model, and the equivalent programs.

use super::Direct;
use serde_json::{Map, Value, json};

/// A task that a user requests.
pub struct Task {
    /// A short title.
    pub title: &'static str,
    /// The searches for tools that a model makes if their definitions are deferred.
    pub searches: &'static [&'static str],
    /// The calls that a model makes; it derives the answer from the results.
    pub directly: fn(&mut Direct<'_>) -> Value,
    /// The programs that a model has evaluated: it searches for tools, inspects an unknown result, and computes the
    /// answer.
    pub programs: &'static [&'static str],
}

/// All tasks.
pub const TASKS: [Task; 5] = [
    Task {
        title: "unread mail by domain of the sender",
        searches: &["search unread messages"],
        directly: unread,
        programs: &[
            "(apropos \"search unread messages\")",
            "(describe (office/search_messages {:limit 2}))",
            "(->> [0 50 100 150]
                  (pmap #(:messages (office/search_messages {:unread_only true :offset %})))
                  (apply concat)
                  (map #(email-domain (:email (:from %))))
                  frequencies)",
        ],
    },
    Task {
        title: "the three fullest days of the month",
        searches: &["list calendar events"],
        directly: fullest_days,
        programs: &[
            "(apropos \"list calendar events\")",
            "(describe (office/list_events \"2026-11-01\" \"2026-11-02\"))",
            "(->> (office/list_events \"2026-11-01\" \"2026-11-30\")
                  (group-by #(subs (:start %) 0 10))
                  (map (fn [[day events]] [day (reduce + (map :minutes events))]))
                  (sort-by (fn [[day minutes]] [(- minutes) day]))
                  (take 3))",
        ],
    },
    Task {
        title: "what is unpaid in 16 invoices",
        searches: &["list and read files"],
        directly: unpaid,
        programs: &[
            "(apropos \"list and read files\")",
            "(let [paths (office/list_files \"invoices\")] [(count paths) (office/read_file (first paths))])",
            "(->> (office/list_files \"invoices\")
                  (pmap office/read_file)
                  (filter #(str/includes? % \"Paid: no\"))
                  (map #(parse-double (second (re-find #\"Total: ([\\d.]+)\" %))))
                  (reduce +))",
        ],
    },
    Task {
        title: "who has the old issues with most comments",
        searches: &["list issues", "find contact"],
        directly: old_issues,
        programs: &[
            "(apropos \"list issues\") (apropos \"find contact\")",
            "(describe (office/list_issues {:page 3}))",
            "(->> (pmap #(office/list_issues {:page %}) [1 2 3 4])
                  (apply concat)
                  (filter #(neg? (compare (:created %) \"2026-10-21\")))
                  (sort-by (fn [issue] [(- (:comments issue)) (:number issue)]))
                  (take 3)
                  (pmap (fn [issue] [(:number issue) (:email (office/find_contact (:assignee issue)))])))",
        ],
    },
    Task {
        title: "the events of one day",
        searches: &["calendar events"],
        directly: |direct| direct.call("list_events", json!({"from": "2026-11-16", "to": "2026-11-16"})),
        programs: &["(apropos \"calendar events\")", "(office/list_events \"2026-11-16\" \"2026-11-16\")"],
    },
];

fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        other => panic!("expected an array, got {other}"),
    }
}

fn field(value: &Value, name: &str) -> String {
    value[name].as_str().expect("a text").to_string()
}

fn unread(direct: &mut Direct<'_>) -> Value {
    let mut counts: Map<String, Value> = Map::new();
    for offset in [0, 50] {
        let mut page = direct.call("search_messages", json!({"unread_only": true, "offset": offset}));
        for message in items(page["messages"].take()) {
            let domain = field(&message["from"], "email").split_once('@').expect("an address").1.to_string();
            let count = counts.entry(domain).or_insert(json!(0));
            *count = json!(count.as_i64().expect("a number") + 1);
        }
    }
    Value::Object(counts)
}

fn fullest_days(direct: &mut Direct<'_>) -> Value {
    let events = items(direct.call("list_events", json!({"from": "2026-11-01", "to": "2026-11-30"})));
    let mut days: std::collections::BTreeMap<String, i64> = std::collections::BTreeMap::new();
    for event in events {
        *days.entry(field(&event, "start")[..10].to_string()).or_default() +=
            event["minutes"].as_i64().expect("minutes");
    }
    let mut days: Vec<(String, i64)> = days.into_iter().collect();
    days.sort_by_key(|(day, minutes)| (-minutes, day.clone()));
    json!(days[..3])
}

fn unpaid(direct: &mut Direct<'_>) -> Value {
    let paths = items(direct.call("list_files", json!({"folder": "invoices"})));
    let calls: Vec<(&str, Value)> = paths.iter().map(|path| ("read_file", json!({"path": path}))).collect();
    let texts = direct.turn(&calls);
    let total = |text: &str| -> f64 {
        let amount = text.split_once("Total: ").expect("a total").1.split(' ').next().expect("an amount");
        amount.parse().expect("a number")
    };
    let unpaid = texts.iter().filter_map(Value::as_str).filter(|text| text.contains("Paid: no"));
    json!(unpaid.map(total).sum::<f64>())
}

fn old_issues(direct: &mut Direct<'_>) -> Value {
    let mut issues = Vec::new();
    for page in 1.. {
        let found = items(direct.call("list_issues", json!({"page": page})));
        let is_last = found.len() < 30;
        issues.extend(found.into_iter().filter(|issue| *field(issue, "created") < *"2026-10-21"));
        if is_last {
            break;
        }
    }
    issues.sort_by_key(|issue| (-issue["comments"].as_i64().expect("comments"), issue["number"].as_i64()));
    let calls: Vec<(&str, Value)> =
        issues[..3].iter().map(|issue| ("find_contact", json!({"name": issue["assignee"]}))).collect();
    let contacts = direct.turn(&calls);
    issues.iter().zip(contacts).map(|(issue, contact)| json!([issue["number"], contact["email"]])).collect()
}
