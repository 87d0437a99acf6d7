//! The arguments by which tools are asked for a page, recognised by their names and types.

use super::reply::COLUMNS;
use crate::host::Tool;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::names::canonical;
use serde_json::Value as Json;

/// Names of arguments that take the cursor of the next page, in canonical form. The ones after [`PLAIN_CURSORS`] have
/// other meanings as well, so that a reply has to confirm them.
const CURSORS: &[&str] = &[
    "cursor",
    "pagetoken",
    "nexttoken",
    "nextcursor",
    "nextpagetoken",
    "pagecursor",
    "continuationtoken",
    "continuation",
    "startingafter",
    "aftercursor",
    "startcursor",
    "scrollid",
    "bookmark",
    "exclusivestartkey",
    "after",
    "startafter",
    "marker",
    "nextmarker",
    "startkey",
    "next",
    "token",
    "page",
];
const PLAIN_CURSORS: usize = 14;

/// Names of arguments that take the identifier of the last item.
const LAST_ITEMS: &[&str] = &["startingafter", "startafter", "afterid", "lastid", "after"];

/// Names of arguments that take the number of a page.
const PAGES: &[&str] = &["page", "pagenumber", "pageno", "pagenum", "pageindex", "currentpage"];

/// Names of arguments that take the number of items to skip. The ones after [`PLAIN_OFFSETS`] are that only if their
/// type is a number.
const OFFSETS: &[&str] =
    &["offset", "skip", "startindex", "startat", "firstresult", "startposition", "fromindex", "start", "from"];
const PLAIN_OFFSETS: usize = 2;

/// Names of arguments that take the number of items of a page.
const LIMITS: &[&str] = &[
    "limit",
    "perpage",
    "pagesize",
    "maxresults",
    "itemsperpage",
    "maxitems",
    "pagelimit",
    "size",
    "count",
    "top",
    "first",
    "take",
    "max",
    "rows",
];

/// The meanings of an argument for paging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Cursor,
    LastItem,
    Page,
    Offset,
    Limit,
}

impl Meaning {
    fn names(self) -> &'static [&'static str] {
        match self {
            Meaning::Cursor => CURSORS,
            Meaning::LastItem => LAST_ITEMS,
            Meaning::Page => PAGES,
            Meaning::Offset => OFFSETS,
            Meaning::Limit => LIMITS,
        }
    }

    /// True if an argument of that canonical name may have this meaning.
    pub fn is_name(self, name: &str) -> bool {
        self.names().contains(&name)
    }

    /// True if an argument of that canonical name is a cursor, without a reply that confirms it.
    pub fn is_plain_cursor(name: &str) -> bool {
        CURSORS[..PLAIN_CURSORS].contains(&name)
    }

    fn fits(self, name: &str, schema: Option<&Json>) -> bool {
        let Some(place) = self.names().iter().position(|known| *known == name) else { return false };
        let number = schema.and_then(|schema| allows(schema, &["integer", "number"]));
        let text = schema.and_then(|schema| allows(schema, &["string"]));
        match self {
            Meaning::Cursor if name == "page" || name == "next" => text == Some(true) && number != Some(true),
            Meaning::Cursor | Meaning::LastItem => true,
            Meaning::Offset if place >= PLAIN_OFFSETS => number == Some(true),
            Meaning::Page | Meaning::Offset | Meaning::Limit => number != Some(false) || text != Some(true),
        }
    }
}

/// Returns whether a schema allows one of the types; `None` if it names no types.
pub fn allows(schema: &Json, types: &[&str]) -> Option<bool> {
    let one = |kind: &Json| kind.as_str().is_some_and(|kind| types.contains(&kind));
    match schema.get("type") {
        Some(Json::Array(kinds)) => return Some(kinds.iter().any(one)),
        Some(kind) => return Some(one(kind)),
        None => {}
    }
    let choices = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array())?;
    Some(choices.iter().any(|choice| allows(choice, types) == Some(true)))
}

/// The arguments of the function whose pages are read.
pub struct Arguments<'a> {
    /// The names and schemas of a tool's arguments; `None` for a function, or a tool that declares none.
    declared: Option<Vec<(&'a str, &'a Json)>>,
    /// The arguments that the program gives.
    given: &'a Map,
}

impl<'a> Arguments<'a> {
    pub fn new(tool: Option<&'a Tool>, given: &'a Map) -> Arguments<'a> {
        let properties = tool.and_then(|tool| tool.input_schema.get("properties")).and_then(Json::as_object);
        let declared = properties.map(|all| all.iter().map(|(name, schema)| (name.as_str(), schema)).collect());
        Arguments { declared, given }
    }

    /// True if the names of the arguments are known.
    pub fn are_declared(&self) -> bool {
        self.declared.is_some()
    }

    /// Returns the names of the arguments: those that are declared, else those that are given.
    pub fn names(&self) -> Vec<&'a str> {
        match &self.declared {
            Some(declared) => declared.iter().map(|(name, _)| *name).collect(),
            None => self.given.iter().filter_map(|(key, _)| key.as_text()).collect(),
        }
    }

    /// Returns the argument of that name, in any spelling.
    pub fn named(&self, name: &str) -> Option<&'a str> {
        let wanted = canonical(name);
        let names = self.names();
        let exact = names.iter().find(|known| **known == name);
        exact.or_else(|| names.iter().find(|known| canonical(known) == wanted)).copied()
    }

    /// Returns the argument of that meaning whose name comes first in the list of names.
    pub fn meaning(&self, meaning: Meaning) -> Option<&'a str> {
        let names = self.names();
        let place = |name: &str| meaning.names().iter().position(|known| *known == canonical(name));
        let fitting = names.into_iter().filter(|name| meaning.fits(&canonical(name), self.schema(name)));
        fitting.min_by_key(|name| place(name))
    }

    /// Returns the declared schema of an argument.
    pub fn schema(&self, name: &str) -> Option<&'a Json> {
        self.declared.as_ref()?.iter().find(|(known, _)| *known == name).map(|(_, schema)| *schema)
    }

    /// Returns whether the argument takes numbers only.
    pub fn takes_numbers(&self, name: &str) -> bool {
        let schema = self.schema(name);
        schema.is_some_and(|schema| {
            allows(schema, &["integer", "number"]) == Some(true) && allows(schema, &["string"]) != Some(true)
        })
    }

    /// Returns the value that the program gives for an argument, in any spelling.
    pub fn given(&self, name: &str) -> Option<&'a Value> {
        let wanted = canonical(name);
        self.given.iter().find(|(key, _)| key.as_text().is_some_and(|key| canonical(key) == wanted)).map(|(_, v)| v)
    }

    /// Returns the declared default of an argument.
    pub fn default(&self, name: &str) -> Option<i64> {
        self.schema(name)?.get("default")?.as_i64()
    }

    /// Returns the least value that the schema of an argument allows.
    pub fn minimum(&self, name: &str) -> Option<i64> {
        let schema = self.schema(name)?;
        let choices = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
        let schemas = || std::iter::once(schema).chain(choices.into_iter().flatten());
        let least = schemas().find_map(|schema| schema.get("minimum")?.as_i64());
        let above = || schemas().find_map(|schema| schema.get("exclusiveMinimum")?.as_i64()?.checked_add(1));
        least.or_else(above)
    }

    /// Returns the number of items a page that the program asks for.
    pub fn asked_size(&self) -> Option<i64> {
        self.given(self.meaning(Meaning::Limit)?).and_then(number)
    }
}

/// Returns an integral number, also from a string with one.
pub fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(*number as i64),
        Value::Str(text) => text.as_str().parse().ok(),
        _ => None,
    }
}

/// Returns whether the result of a tool, as declared or seen, is a table: rows, with the names of their columns beside
/// them.
pub fn is_table(tool: &Tool) -> bool {
    [&tool.output_schema, &tool.seen].into_iter().flatten().any(|schema| has_table(schema, 3))
}

/// Returns whether an object, or one in it, has columns and rows.
fn has_table(schema: &Json, depth: usize) -> bool {
    let has_type = |schema: &Json, kind: &str| allows(schema, &[kind]) == Some(true);
    let is_list = |schema: &Json, kinds: &[&str]| {
        let items = schema.get("items");
        has_type(schema, "array") && items.is_some_and(|items| kinds.iter().any(|kind| has_type(items, kind)))
    };
    let Some(fields) = schema.get("properties").and_then(Json::as_object) else { return false };
    let is_columns = |name: &str| COLUMNS.contains(&canonical(name).as_str());
    let has_columns = fields.iter().any(|(name, schema)| is_columns(name) && is_list(schema, &["string", "object"]));
    let has_rows = fields.values().any(|schema| is_list(schema, &["array"]));
    has_columns && has_rows || depth > 0 && fields.values().any(|schema| has_table(schema, depth - 1))
}
