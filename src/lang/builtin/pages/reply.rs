//! A reply with one page: its items, and the marks that lead to the next page.

use super::names::number;
use crate::error::Outcome;
use crate::foreign_text;
use crate::machine::Machine;
use crate::value::Value;
use crate::value::columns::Columns;
use crate::value::map::{Map, record_key};
use crate::value::names::canonical;
use std::sync::Arc;

/// Maximum depth at which items and marks are looked for, and maximum number of keys of a map that is searched.
const DEPTH: usize = 4;
const KEYS: usize = 64;

/// Names of the array with the items, in canonical form.
const ITEMS: &[&str] = &[
    "items",
    "results",
    "data",
    "records",
    "entries",
    "rows",
    "values",
    "value",
    "hits",
    "edges",
    "nodes",
    "list",
    "objects",
    "elements",
    "documents",
    "docs",
    "content",
    "contents",
    "members",
];

/// Names of arrays that are no items if there is another one.
const BESIDE: &[&str] = &["links", "errors", "warnings", "included", "facets", "columns", "headers", "sort"];

/// Names of the array that holds the column names of a table, in canonical form.
pub const COLUMNS: &[&str] = &["columns", "headers", "header", "fields", "cols", "columnnames"];

/// Names of maps that hold marks, or the items.
const CONTAINERS: &[&str] = &[
    "meta",
    "metadata",
    "page",
    "pages",
    "paging",
    "pager",
    "pagination",
    "pageinfo",
    "links",
    "cursors",
    "cursor",
    "data",
    "result",
    "results",
    "response",
    "body",
    "payload",
    "output",
    "embedded",
    "next",
    "info",
    "list",
    "hits",
    "searchresults",
    "responsemetadata",
];
const CONTAINER_ENDINGS: &[&str] = &["meta", "metadata", "pagination", "paging", "pageinfo", "links", "connection"];

const NEXT_CURSORS: &[&str] = &[
    "nextcursor",
    "nextpagetoken",
    "nexttoken",
    "nextpagecursor",
    "nextcontinuationtoken",
    "continuationtoken",
    "continuation",
    "nextmarker",
    "nextbookmark",
    "nextkey",
    "nextstartkey",
    "nextafter",
    "nextid",
    "lastevaluatedkey",
    "endcursor",
    "scrollid",
    "bookmark",
];
/// Cursors that a reply has even if it is the last one.
const ALWAYS_THERE: &[&str] = &["endcursor", "scrollid", "bookmark", "cursor", "after"];
const NEXT_OFFSETS: &[&str] = &["nextoffset", "nextskip", "nextstart", "nextfrom", "nextindex", "nextstartindex"];
const NEXT_PAGES: &[&str] = &["nextpage", "nextpagenumber"];
const MORE: &[&str] = &[
    "hasmore",
    "hasnext",
    "hasnextpage",
    "more",
    "moreavailable",
    "moreresults",
    "hasmoreresults",
    "hasmoreitems",
    "hasmorepages",
    "istruncated",
    "truncated",
];
const LAST: &[&str] = &["last", "islast", "lastpage", "islastpage"];
const TOTAL_PAGES: &[&str] =
    &["totalpages", "pagecount", "numpages", "pagescount", "numberofpages", "pagetotal", "pages", "lastpage"];
const TOTALS: &[&str] = &[
    "total",
    "totalcount",
    "totalitems",
    "totalresults",
    "totalrecords",
    "totalhits",
    "totalelements",
    "totalsize",
    "numfound",
    "counttotal",
];
const OWN_PAGES: &[&str] = &["page", "pagenumber", "currentpage", "pageno", "pagenum", "pageindex"];
const OWN_OFFSETS: &[&str] = &["offset", "skip", "startindex", "startat", "start", "from"];
const OWN_LIMITS: &[&str] = &["limit", "perpage", "pagesize", "size", "maxresults", "itemsperpage"];

/// Returns whether a scalar of that canonical name leads to the next page, or says how much there is.
pub fn is_mark(name: &str) -> bool {
    [NEXT_CURSORS, NEXT_OFFSETS, NEXT_PAGES, MORE, TOTAL_PAGES, TOTALS].into_iter().any(|names| names.contains(&name))
}

/// A scalar beside the items.
pub struct Mark {
    /// The keys that lead to it.
    pub path: Vec<Value>,
    name: String,
    parent: String,
    pub value: Value,
}

impl Mark {
    /// Returns the text of its key.
    pub fn key(&self) -> &str {
        self.path.last().and_then(Value::as_text).unwrap_or_default()
    }

    /// True for a cursor that says nothing about whether there is another page.
    pub fn is_always_there(&self) -> bool {
        ALWAYS_THERE.contains(&self.name.as_str())
    }

    /// True for the identity of a scroll, which all pages have.
    pub fn is_constant(&self) -> bool {
        self.name == "scrollid"
    }

    /// True for nil, false and the empty string, which say that there is no next page.
    pub fn is_end(&self) -> bool {
        !self.value.is_truthy() || self.value.as_str() == Some("")
    }
}

/// One page.
pub struct Page {
    pub items: Vec<Value>,
    pub marks: Vec<Mark>,
}

impl Page {
    fn mark(&self, names: &[&str], fits: impl Fn(&Mark) -> bool) -> Option<&Mark> {
        names.iter().find_map(|name| self.marks.iter().find(|mark| mark.name == *name && fits(mark)))
    }

    fn number(&self, names: &[&str]) -> Option<i64> {
        self.mark(names, |mark| number(&mark.value).is_some()).and_then(|mark| number(&mark.value))
    }

    /// Returns the flag of the reply that says whether there are more pages, if it has one.
    pub fn says_more(&self) -> Option<bool> {
        let of = |names: &[&str]| match self.mark(names, |mark| matches!(mark.value, Value::Bool(_)))?.value {
            Value::Bool(truth) => Some(truth),
            _ => None,
        };
        of(MORE).or_else(|| of(LAST).map(|is_last| !is_last))
    }

    /// Returns the mark with the cursor of the next page.
    pub fn next_cursor(&self) -> Option<&Mark> {
        let is_cursor = |mark: &Mark| match &mark.value {
            Value::Str(text) => !is_link(text.as_str()),
            value => matches!(value, Value::Nil | Value::Int(_) | Value::Bool(false)),
        };
        let is_text = |mark: &Mark| mark.is_end() || (mark.value.as_str().is_some() && is_cursor(mark));
        let within = |parents: &'static [&'static str]| move |mark: &Mark| parents.contains(&mark.parent.as_str());
        let in_cursors = within(&["cursors", "cursor", "paging", "pagination", "next", "page", "pageinfo"]);
        let in_next = within(&["next"]);
        self.mark(NEXT_CURSORS, is_cursor)
            .or_else(|| self.mark(&["cursor", "token", "after"], |mark| in_next(mark) && is_cursor(mark)))
            .or_else(|| self.mark(&["next", "nextpage"], is_text))
            .or_else(|| self.mark(&["after"], |mark| in_cursors(mark) && is_cursor(mark)))
            .or_else(|| self.mark(&["cursor"], is_cursor))
    }

    /// Returns the mark with the address of the next page.
    pub fn next_link(&self) -> Option<&Mark> {
        let has_link = |mark: &Mark| mark.value.as_str().is_some_and(|text| is_link(text) || is_link_header(text));
        let in_next = |mark: &Mark| mark.parent == "next" && has_link(mark);
        self.mark(&["next", "nextlink", "nexturl", "nextpage", "nextpageurl", "nexthref", "odata.nextlink"], has_link)
            .or_else(|| self.mark(&["href", "url"], in_next))
            .or_else(|| self.mark(&["link"], has_link))
    }

    pub fn next_offset(&self) -> Option<&Mark> {
        let fits = |mark: &Mark| mark.is_end() || number(&mark.value).is_some();
        self.mark(NEXT_OFFSETS, fits).or_else(|| self.mark(&["offset"], |mark| mark.parent == "next" && fits(mark)))
    }

    pub fn next_page(&self) -> Option<&Mark> {
        let fits = |mark: &Mark| mark.is_end() || number(&mark.value).is_some();
        self.mark(NEXT_PAGES, fits)
            .or_else(|| self.mark(&["page"], |mark| mark.parent == "next" && fits(mark)))
            .or_else(|| self.mark(&["next"], fits))
    }

    /// Returns whether the marks for the next page say that there is one; `None` without such a mark.
    pub fn leads_on(&self) -> Option<bool> {
        let marks = [self.next_cursor(), self.next_link(), self.next_offset(), self.next_page()];
        let mut telling = marks.into_iter().flatten().filter(|mark| !mark.is_always_there()).peekable();
        telling.peek()?;
        Some(telling.any(|mark| !mark.is_end()))
    }

    pub fn total_pages(&self) -> Option<i64> {
        self.number(TOTAL_PAGES)
    }

    /// Returns the total number of items. A `count` may be the number of the items at hand, unless it is larger.
    pub fn total(&self) -> Option<i64> {
        let count = self.number(&["count"]).filter(|count| *count > self.items.len() as i64);
        self.number(TOTALS).or(count)
    }

    pub fn own_page(&self) -> Option<i64> {
        let in_page = |mark: &Mark| mark.parent.starts_with("pag") || self.total_pages().is_some();
        self.number(OWN_PAGES)
            .or_else(|| self.mark(&["number"], in_page).and_then(|mark| number(&mark.value)))
            .filter(|page| *page >= 0)
    }

    pub fn own_offset(&self) -> Option<i64> {
        self.number(OWN_OFFSETS)
    }

    pub fn own_size(&self) -> Option<i64> {
        self.number(OWN_LIMITS)
    }

    /// Returns the value at a path; `None` if there is none.
    pub fn at<'r>(reply: &'r Value, path: &[Value]) -> Option<&'r Value> {
        path.iter().try_fold(reply, |value, key| field(value, key.as_text()?))
    }
}

/// Returns the field of a map whose name agrees with that name up to its spelling.
pub fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let Value::Map(map) = value else { return None };
    if let Some(found) = map.get(&Value::keyword(name)).or_else(|| map.get(&Value::string(name))) {
        return Some(found);
    }
    let wanted = canonical(name);
    let mut entries = map.iter().take(KEYS);
    entries.find(|(key, _)| key.as_text().is_some_and(|key| canonical(key) == wanted)).map(|(_, value)| value)
}

fn is_link(text: &str) -> bool {
    text.contains("://") || text.contains('?') && text.starts_with(['/', '?'])
}

/// True for the content of a `Link` header.
fn is_link_header(text: &str) -> bool {
    text.starts_with('<') && text.contains("rel=")
}

/// True for values that may be the items of a page.
pub fn is_array(value: &Value) -> bool {
    matches!(value, Value::Vector(_) | Value::List(_) | Value::Lazy(_))
}

/// Collects the marks of a reply: the scalars of the reply, of the maps on the way to the items, and of maps with usual
/// names.
///
/// # Errors
/// Returns a halt if a limit is exceeded.
pub fn marks(machine: &mut Machine, reply: &Value, items: &[Value]) -> Outcome<Vec<Mark>> {
    let mut out = Vec::new();
    let mut open = vec![(Vec::new(), String::new(), reply.clone())];
    while !open.is_empty() {
        let mut next = Vec::new();
        for (path, parent, value) in open {
            let Value::Map(map) = &value else { continue };
            for (key, value) in map.iter().take(KEYS) {
                machine.charge(1)?;
                let Some(text) = key.as_text() else { continue };
                let name = canonical(text.trim_start_matches('@'));
                let path: Vec<Value> = path.iter().cloned().chain([key.clone()]).collect();
                match value {
                    Value::Map(_) if path.len() < DEPTH && (is_container(&name) || items.starts_with(&path)) => {
                        next.push((path, name, value.clone()));
                    }
                    Value::Vector(links) if name == "links" => {
                        if let Some(link) = links.iter().find_map(relation) {
                            out.push(Mark { path, name: "next".to_owned(), parent: name, value: link });
                        }
                    }
                    _ if value.is_scalar() => {
                        out.push(Mark { path, name, parent: parent.clone(), value: value.clone() });
                    }
                    _ => {}
                }
            }
        }
        open = next;
    }
    Ok(out)
}

fn is_container(name: &str) -> bool {
    CONTAINERS.contains(&name) || CONTAINER_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns the address of a link `{:rel "next" :href "…"}`.
fn relation(link: &Value) -> Option<Value> {
    let is_next = field(link, "rel").and_then(Value::as_text) == Some("next");
    if is_next { field(link, "href").or_else(|| field(link, "url")).cloned() } else { None }
}

/// Finds the items of the first reply: the one array, or the one with a usual name, of records, or with the name of the
/// tool. Returns the keys that lead to it, or the names of the arrays if several may be meant.
///
/// # Errors
/// Returns a halt if a limit is exceeded.
pub fn items_path(machine: &mut Machine, reply: &Value, tool: &str) -> Outcome<Result<Vec<Value>, Vec<String>>> {
    let mut open = vec![(Vec::new(), reply.clone())];
    let mut beside: Vec<Found> = Vec::new();
    for _ in 0..DEPTH {
        let (mut arrays, mut empty, mut next) = (Vec::new(), Vec::new(), Vec::new());
        for (path, value) in &open {
            let Value::Map(map) = value else { continue };
            for (key, value) in map.iter().take(KEYS) {
                machine.charge(1)?;
                let Some(text) = key.as_text() else { continue };
                let path: Vec<Value> = path.iter().cloned().chain([key.clone()]).collect();
                match value {
                    _ if is_array(value) => arrays.push((path, value.clone())),
                    Value::Nil if ITEMS.contains(&canonical(text).as_str()) => empty.push(path),
                    Value::Map(_) => next.push((path, value.clone())),
                    _ => {}
                }
            }
        }
        let (mut arrays, others): (Vec<Found>, Vec<Found>) = arrays.into_iter().partition(|(path, _)| !is_beside(path));
        if !beside.is_empty() {
            // In the presence of such an array above, only a usual name counts.
            arrays.retain(|(path, _)| is_usual(path, tool));
        }
        if !arrays.is_empty() {
            return Ok(chosen(arrays, tool));
        }
        beside.extend(others);
        // The key of items without any items may have no value.
        if let [path] = &mut empty[..] {
            return Ok(Ok(std::mem::take(path)));
        }
        open = next;
    }
    Ok(if beside.is_empty() { Err(Vec::new()) } else { chosen(beside, tool) })
}

/// A value with the keys that lead to it.
type Found = (Vec<Value>, Value);

fn last_name(path: &[Value]) -> String {
    path.last().and_then(Value::as_text).map(canonical).unwrap_or_default()
}

fn is_beside(path: &[Value]) -> bool {
    BESIDE.contains(&last_name(path).as_str())
}

/// True for a usual name of items, and for one that the name of the tool contains.
fn is_usual(path: &[Value], tool: &str) -> bool {
    let name = last_name(path);
    let is_of_tool = name.len() > 2 && canonical(tool).contains(name.strip_suffix('s').unwrap_or(&name));
    ITEMS.contains(&name.as_str()) || is_of_tool
}

/// Chooses among several arrays.
fn chosen(arrays: Vec<Found>, tool: &str) -> Result<Vec<Value>, Vec<String>> {
    let has_records = |value: &Value| {
        let items = value.as_block().unwrap_or_default();
        !items.is_empty() && items.iter().all(|item| matches!(item, Value::Map(_)))
    };
    let rules: [&dyn Fn(&Found) -> bool; 4] = [
        &|_| true,
        &|(path, _)| ITEMS.contains(&last_name(path).as_str()),
        &|(path, _)| is_usual(path, tool),
        &|(_, value)| has_records(value),
    ];
    for rule in rules {
        let mut found = arrays.iter().filter(|array| rule(array));
        if let (Some((path, _)), None) = (found.next(), found.next()) {
            return Ok(path.clone());
        }
    }
    Err(arrays.iter().map(|(path, _)| shown(path)).collect())
}

/// Formats a path: `:items`, or `[:data :items]`.
pub fn shown(path: &[Value]) -> String {
    let keys: Vec<String> = path.iter().filter_map(Value::as_text).map(foreign_text::argument).collect();
    match &keys[..] {
        [key] => key.clone(),
        keys => format!("[{}]", keys.join(" ")),
    }
}

/// Formats the keys of a reply for an error message.
pub fn keys(reply: &Value) -> String {
    const SHOWN: usize = 12;
    fn of(map: &Map, prefix: &[Value], out: &mut Vec<String>, depth: usize) {
        for (key, value) in map.iter().take(SHOWN) {
            let path: Vec<Value> = prefix.iter().cloned().chain([key.clone()]).collect();
            match value {
                Value::Map(inner) if depth > 0 && !inner.is_empty() => of(inner, &path, out, depth - 1),
                _ => out.push(format!("`{}`", shown(&path))),
            }
        }
        if map.len() > SHOWN {
            out.push("…".to_owned());
        }
    }
    match reply {
        Value::Map(map) => {
            let mut out = Vec::new();
            of(map, &[], &mut out, 1);
            if out.is_empty() { "an empty map".to_owned() } else { format!("a map with {}", out.join(", ")) }
        }
        other => other.kind().to_owned(),
    }
}

/// Returns rows as maps by the keys of their columns. Other items, such as rows of another length, are returned as they
/// are.
///
/// # Errors
/// Returns a halt if a limit is exceeded.
pub fn records(machine: &mut Machine, keys: &[Value], items: Vec<Value>) -> Outcome<Vec<Value>> {
    let cells = (items.len() as u64).saturating_mul(keys.len() as u64);
    machine.charge(cells)?;
    machine.reserve(cells.saturating_mul(size_of::<Value>() as u64).saturating_add(items.len() as u64 * MAP))?;
    let columns = Columns::new(keys.to_vec());
    let record = |item: Value| match item.as_block() {
        Some(row) if row.len() == keys.len() => Value::Map(Arc::new(columns.map(row.to_vec()).into_record())),
        _ => item,
    };
    Ok(items.into_iter().map(record).collect())
}

/// The bytes of a map without its values, about.
const MAP: u64 = 64;

/// Maximum number of columns.
const MOST_COLUMNS: usize = 1_000;

/// Returns the keys of the columns beside the rows at a path: `{:columns ["id" "name"] :rows [[1 "Ann"]]}`. `None` unless
/// an array with a usual name holds distinct names, as many as a row has values.
pub fn columns(reply: &Value, path: &[Value]) -> Option<Vec<Value>> {
    let (last, parents) = path.split_last()?;
    let beside = Page::at(reply, parents)?;
    let rows = field(beside, last.as_text()?)?.as_block()?;
    let fits = |columns: &&[Value]| {
        let is_row = |row: &Value| row.as_block().is_some_and(|row| row.len() == columns.len());
        (1..=MOST_COLUMNS).contains(&columns.len()) && (rows.is_empty() || rows.iter().take(KEYS).any(is_row))
    };
    let names = COLUMNS.iter().filter(|name| canonical(last.as_text().unwrap_or_default()) != **name);
    names.filter_map(|name| field(beside, name)?.as_block()).filter(fits).find_map(distinct)
}

/// Returns the keys of columns that are given by their names, or as objects with a `name`; `None` unless they are distinct.
fn distinct(columns: &[Value]) -> Option<Vec<Value>> {
    let name = |column: &Value| column.as_str().or_else(|| field(column, "name")?.as_str()).map(record_key);
    let keys = columns.iter().map(name).collect::<Option<Vec<Value>>>()?;
    // A record finds a key in other spellings too, so those count as the same.
    let mut record = Map::default().into_record();
    for key in &keys {
        if record.contains_key(key) {
            return None;
        }
        record.insert(key.clone(), Value::Nil);
    }
    Some(keys)
}
