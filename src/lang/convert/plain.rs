//! Values without lazy parts, which code outside of the evaluation can read.

use super::payer::NESTING;
use crate::error::Outcome;
use crate::machine::Machine;
use crate::value::Value;
use crate::value::list::List;
use crate::value::walk::Cursor;
use std::sync::Arc;

/// Returns the value with its lazy parts computed. Parts that nest deeper than a conversion reads stay as they are.
///
/// # Errors
/// Returns what a lazy part raises, or an exceeded limit.
pub(crate) fn plain(machine: &mut Machine, value: &Value) -> Outcome<Value> {
    Ok(changed(machine, value, 0)?.unwrap_or_else(|| value.clone()))
}

/// Returns the value without lazy parts; `None` if it has none.
fn changed(machine: &mut Machine, value: &Value, depth: usize) -> Outcome<Option<Value>> {
    if depth > NESTING {
        return Ok(None);
    }
    match value {
        Value::Lazy(_) => items(machine, value, depth, true),
        Value::List(list) => items(machine, value, depth, matches!(**list, List::Cons(_))),
        Value::Vector(_) => items(machine, value, depth, false),
        Value::Map(map) => {
            let mut out = None;
            for (key, value) in map.iter() {
                machine.charge(1)?;
                if let Some(value) = changed(machine, value, depth + 1)? {
                    out.get_or_insert_with(|| (**map).clone()).insert(key.clone(), value);
                }
            }
            Ok(out.map(|map| Value::Map(Arc::new(map))))
        }
        _ => Ok(None),
    }
}

/// Returns a sequence with the same items without lazy parts; `None` if nothing of it is lazy.
fn items(machine: &mut Machine, value: &Value, depth: usize, is_lazy: bool) -> Outcome<Option<Value>> {
    let over = || Cursor::over(value.clone()).unwrap_or(Cursor::End);
    let mut out = is_lazy.then(Vec::new);
    let (mut cursor, mut count) = (over(), 0);
    while let Some(item) = cursor.next(machine)? {
        let change = changed(machine, &item, depth + 1)?;
        if let (None, Some(_)) = (&out, &change) {
            let (mut before, mut same) = (over(), Vec::new());
            while same.len() < count
                && let Some(item) = before.next(machine)?
            {
                same.push(item);
                machine.grown(same.len())?;
            }
            out = Some(same);
        }
        if let Some(out) = &mut out {
            out.push(change.unwrap_or(item));
            machine.grown(out.len())?;
        }
        count += 1;
    }
    Ok(out.map(|items| if matches!(value, Value::Vector(_)) { Value::vector(items) } else { Value::list(items) }))
}
