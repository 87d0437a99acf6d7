//! A client's configuration in TOML, in which the servers change; comments and the order of tables stay.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike};

/// The beginning of the names of tables that only hold a place while the text is written.
const PLACE: &str = "lispbox-was-here-";

/// The position of a table that returns: after all others.
const LAST: isize = 1 << 40;

/// Returns the text of the entry of a server that is a table of its own, with the comments right above it.
pub fn entry(document: &DocumentMut, key: &str, name: &str) -> Option<String> {
    let mut table = document.get(key)?.as_table()?.get(name)?.as_table().filter(|table| !table.is_dotted())?.clone();
    let (_, own) = comments(&table);
    table.decor_mut().set_prefix(own);
    let mut place = Table::new();
    place.set_implicit(true);
    place.insert(name, Item::Table(table));
    let mut alone = DocumentMut::new();
    alone.insert(key, Item::Table(place));
    Some(alone.to_string())
}

/// Returns the text of a document with these servers under this key instead of those before. One that is new gets one
/// of `texts` if it is there.
///
/// # Errors
/// Returns the reason why it cannot be written, as a clause.
pub fn with(
    mut document: DocumentMut,
    key: &str,
    before: &Map<String, Value>,
    servers: &Map<String, Value>,
    texts: &BTreeMap<String, String>,
) -> Result<String, String> {
    let is_empty = document.is_empty();
    let item = document.entry(key).or_insert_with(|| {
        // Its servers are tables of their own: `[mcp_servers.lispbox]`.
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let place = item.as_table_like_mut().ok_or_else(|| format!("expected a table in `{key}`"))?;
    let mut marks = Vec::new();
    for name in before.keys().filter(|name| !servers.contains_key(*name)) {
        if let Some(mark) = place.remove(name).as_ref().and_then(Item::as_table).and_then(kept_place) {
            let name = format!("{PLACE}{}", marks.len());
            place.insert(&name, Item::Table(mark));
            marks.push(name);
        }
    }
    for (number, (name, entry)) in (0..).zip(servers) {
        match texts.get(name).and_then(|text| returning(text, key, name, LAST + number, !is_empty)) {
            _ if before.get(name) == Some(entry) => {}
            Some(item) => drop(place.insert(name, item)),
            None => put(place, name, before.get(name), entry)?,
        }
    }
    let mut text = document.to_string();
    for mark in marks {
        let Some(found) = text.find(&mark) else { continue };
        let begin = text[..found].rfind('\n').map_or(0, |end| end + 1);
        let end = text[found..].find('\n').map_or(text.len(), |end| found + end + 1);
        text.replace_range(begin..end, "");
        // The comments end with a blank line, and what follows may begin with one.
        if text[..begin].ends_with("\n\n") && text[begin..].starts_with('\n') {
            text.remove(begin);
        }
    }
    Ok(text)
}

/// Returns the comments above a table that are about what follows in the file, and those right above it.
fn comments(table: &Table) -> (String, String) {
    let prefix = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
    let lines: Vec<&str> = prefix.split_inclusive('\n').collect();
    let blank = lines.iter().rposition(|line| line.trim().is_empty()).map_or(0, |blank| blank + 1);
    (lines[..blank].concat(), lines[blank..].concat())
}

/// Returns an empty table with the comments that stay when a table is removed, if there are any.
fn kept_place(table: &Table) -> Option<Table> {
    let (stays, _) = comments(table);
    if stays.trim().is_empty() || table.is_dotted() {
        return None;
    }
    let mut mark = Table::new();
    mark.set_position(table.position());
    mark.decor_mut().set_prefix(stays);
    Some(mark)
}

/// Returns an entry from its text, as the last table of a document.
fn returning(text: &str, key: &str, name: &str, position: isize, is_after_others: bool) -> Option<Item> {
    let alone: DocumentMut = text.parse().ok()?;
    let mut item = alone.get(key)?.get(name)?.clone();
    let table = item.as_table_mut()?;
    move_to(table, position);
    if is_after_others {
        let (_, own) = comments(table);
        table.decor_mut().set_prefix(format!("\n{own}"));
    }
    Some(item)
}

fn move_to(table: &mut Table, position: isize) {
    table.set_position(Some(position));
    for (_, item) in table.iter_mut() {
        if let Some(inner) = item.as_table_mut() {
            move_to(inner, position);
        }
    }
}

/// Puts an entry into a table. Of one that is there, only what differs changes, so that its comments stay.
fn put(place: &mut dyn TableLike, name: &str, before: Option<&Value>, entry: &Value) -> Result<(), String> {
    match (before, entry, place.get_mut(name)) {
        (Some(Value::Object(before)), Value::Object(fields), Some(item)) => {
            if let Some(table) = item.as_table_like_mut() {
                return change(table, before, fields);
            }
        }
        (Some(Value::Array(before)), Value::Array(after), Some(Item::Value(toml_edit::Value::Array(array)))) => {
            return change_array(array, before, after);
        }
        (Some(_), entry, Some(Item::Value(value))) if !entry.is_object() => {
            let decor = value.decor().clone();
            *value = toml_value(entry)?;
            *value.decor_mut() = decor;
            return Ok(());
        }
        _ => {}
    }
    insert(place, name, entry)
}

/// Changes the fields of a table that differ.
fn change(table: &mut dyn TableLike, before: &Map<String, Value>, after: &Map<String, Value>) -> Result<(), String> {
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        table.remove(name);
    }
    let differs = |(name, field): &(&String, &Value)| before.get(*name) != Some(*field);
    after.iter().filter(differs).try_for_each(|(name, field)| put(table, name, before.get(name), field))
}

/// Changes the items of an array between those that stay at its beginning and at its end.
fn change_array(array: &mut Array, before: &[Value], after: &[Value]) -> Result<(), String> {
    let begin = before.iter().zip(after).take_while(|(before, after)| before == after).count();
    let (old, new) = (&before[begin..], &after[begin..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.len() - end, &new[..new.len() - end]);
    for (at, item) in (begin..).zip(new) {
        match toml_value(item)? {
            value if at < begin + old => drop(array.replace(at, value)),
            value => array.insert(at, value),
        }
    }
    (new.len()..old).for_each(|_| drop(array.remove(begin + new.len())));
    Ok(())
}

/// Puts an entry into a table, in place of one of its name: objects become tables of their own.
fn insert(place: &mut dyn TableLike, name: &str, entry: &Value) -> Result<(), String> {
    let item = match entry {
        Value::Object(fields) => {
            let mut table = Table::new();
            fields.iter().try_for_each(|(name, field)| insert(&mut table, name, field))?;
            Item::Table(table)
        }
        other => Item::Value(toml_value(other)?),
    };
    place.insert(name, item);
    Ok(())
}

fn toml_value(value: &Value) -> Result<toml_edit::Value, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no null".to_owned()),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(number)) if !value.is_u64() => number.into(),
            _ => return Err(format!("TOML has no number {number}")),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            toml_edit::Value::Array(items.iter().map(toml_value).collect::<Result<Array, String>>()?)
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| Ok((name.as_str(), toml_value(field)?)));
            toml_edit::Value::InlineTable(fields.collect::<Result<_, String>>()?)
        }
    })
}
