//! The workloads in Rust over the values of lispbox, without an interpreter. The difference from the Lisp programs is
//! the cost of the tree walk; the difference from other peers is the cost of the values.

use foldhash::quality::RandomState;
use indexmap::IndexMap;
use lispbox::lang::Value;
use lispbox::lang::arguments::{integer, map};
use lispbox::lang::{EngineBuilder, Error};
use lispbox::lang::value::Map;
use lispbox::lang::internal::Shape;
use serde_json::{Value as Json, json};
use std::cmp::Reverse;

/// Adds one function for each workload that is dominated by values; they do not use the evaluator.
pub fn register(builder: &mut EngineBuilder) {
    builder.function("by-hand/mails", mails);
    builder.function("by-hand/words", words);
    builder.function("by-hand/calls", calls);
}

/// A hash table like those of `group-by` and `frequencies`.
type Table<T> = IndexMap<Value, T, RandomState>;

/// A key, with its index in the previous record.
struct Key(Value, usize);

impl Key {
    fn new(name: &str) -> Key {
        Key(Value::keyword(name), 0)
    }

    fn of<'m>(&mut self, record: &'m Value) -> &'m Value {
        let Value::Map(record) = record else { return &Value::Nil };
        record.get_near(&self.0, &mut self.1).unwrap_or(&Value::Nil)
    }
}

fn mails(data: Value) -> Result<Value, Error> {
    let data = map(data)?;
    let mails = match data.field("mails") {
        Some(Value::Vector(mails)) => mails.as_slice().unwrap_or_default(),
        _ => return Err(Error::new("IllegalArgument", "the data has no mails")),
    };
    let (mut unread, mut size, mut sender) = (Key::new("unread"), Key::new("size"), Key::new("sender"));
    let mut groups: Table<Vec<Value>> = Table::default();
    for mail in mails {
        if unread.of(mail).is_truthy() && integer(size.of(mail))? > 10_000 {
            groups.entry(sender.of(mail).clone()).or_default().push(mail.clone());
        }
    }
    let mut rows = Vec::with_capacity(groups.len());
    for (sender, mails) in groups {
        let mut total = 0;
        for mail in &mails {
            total += integer(size.of(mail))?;
        }
        rows.push((Reverse(mails.len()), sender.as_str().unwrap_or_default().to_string(), total));
    }
    rows.sort();
    let row = |(Reverse(count), sender, total): &(Reverse<usize>, String, i64)| json!({"sender": sender, "count": count, "sum": total, "mean": *total as f64 / *count as f64});
    Ok(text(&json!({"top": rows.iter().take(10).map(row).collect::<Vec<Json>>()})))
}

fn words(lines: Value) -> Value {
    let lines: Vec<Value> = lines.as_str().unwrap_or_default().lines().map(Value::string).collect();
    let mut counts: Table<i64> = Table::default();
    for line in &lines {
        for word in line.as_str().unwrap_or_default().split_ascii_whitespace() {
            *counts.entry(Value::string(word)).or_default() += 1;
        }
    }
    let mut counts: Vec<(Reverse<i64>, &str)> =
        counts.iter().map(|(word, count)| (Reverse(*count), word.as_str().unwrap_or_default())).collect();
    counts.sort();
    let row = |(Reverse(count), word): &(Reverse<i64>, &str)| json!([word, count]);
    text(&json!({"top": counts.iter().take(20).map(row).collect::<Vec<Json>>()}))
}

fn calls() -> Result<i64, Error> {
    let shape = Shape::new(vec![Value::keyword("a"), Value::keyword("b")]);
    let mut total = 0;
    for number in 0..1_000_000 {
        let numbers = Map::with_shape(shape.clone(), vec![Value::Int(number), Value::Int(2)]);
        let number = |name: &str| integer(numbers.field(name).unwrap_or(&Value::Nil));
        total += number("a")? + number("b")?;
    }
    Ok(total)
}

fn text(answer: &Json) -> Value {
    Value::string(&answer.to_string())
}
