//! Decides whether a tool replies page by page, from its declaration and from earlier results, and whether it may be
//! called for further pages.
//!
//! A signature says that a tool has pages only if three things come together: it reads, its result has a list, and its
//! arguments are for paging by more than a name that is used for other things as well, such as `page` or `start`.

use super::names::{Arguments, Meaning, allows};
use super::reply;
use crate::error::Error;
use crate::foreign_text;
use crate::host::Tool;
use crate::value::map::Map;
use crate::value::names::canonical;
use serde_json::Value as Json;

/// Words in the names of tools that read.
const READING: &[&str] = &[
    "list",
    "search",
    "find",
    "get",
    "fetch",
    "query",
    "read",
    "browse",
    "show",
    "lookup",
    "view",
    "retrieve",
    "filter",
    "scan",
    "describe",
    "select",
    "history",
    "enumerate",
    "all",
];

/// Those of them that promise several items.
const LISTING: &[&str] =
    &["list", "search", "find", "query", "browse", "filter", "scan", "history", "enumerate", "all"];

/// Words in the names of tools that change something.
const CHANGING: &[&str] = &[
    "add",
    "append",
    "apply",
    "approve",
    "archive",
    "assign",
    "book",
    "buy",
    "cancel",
    "clear",
    "click",
    "close",
    "commit",
    "copy",
    "create",
    "delete",
    "deploy",
    "disable",
    "drag",
    "drop",
    "edit",
    "enable",
    "exec",
    "execute",
    "fill",
    "go",
    "grant",
    "import",
    "insert",
    "install",
    "invite",
    "invoke",
    "kill",
    "mark",
    "merge",
    "modify",
    "move",
    "navigate",
    "order",
    "patch",
    "pay",
    "post",
    "press",
    "publish",
    "purge",
    "push",
    "put",
    "reject",
    "remove",
    "rename",
    "replace",
    "reply",
    "reset",
    "restart",
    "revoke",
    "run",
    "save",
    "send",
    "set",
    "start",
    "stop",
    "store",
    "submit",
    "transfer",
    "trash",
    "truncate",
    "type",
    "undo",
    "uninstall",
    "unlock",
    "update",
    "upload",
    "upsert",
    "write",
];

/// Names of arguments that count items in some tools, and are times, rows or places in others.
const AMBIGUOUS: &[&str] = &["start", "from"];

/// Words by which the description of an argument says that it is for paging.
const SAID: &[&str] = &["pagination", "paginat", "per page", "page of ", "page number", "to skip", "next page"];

/// Maximum depth at which lists and marks are looked for in the schema of a result.
const DEPTH: usize = 4;

/// The evidence for paging in the arguments of a tool.
enum Paging {
    None,
    /// A name that has other meanings as well.
    Perhaps,
    /// A position together with the number of items, or a description that says so.
    Likely,
    Cursor,
}

/// Returns whether a tool replies page by page, as far as is known.
pub fn has_pages(tool: &Tool) -> bool {
    let name = Name::of(tool);
    let reads = match tool.hints.read_only {
        Some(reads) => reads,
        None => tool.hints.destructive != Some(true) && name.reads(),
    };
    if !reads {
        return false;
    }
    match (has_list(tool), paging(tool)) {
        (Some(false), _) | (_, Paging::None) | (None, Paging::Perhaps) => false,
        (_, Paging::Cursor) | (Some(true), Paging::Likely) => true,
        (Some(true), Paging::Perhaps) => has_marks(tool),
        (None, Paging::Likely) => name.promises_items(),
    }
}

/// Returns why a tool is not called for pages: it may change something with each call.
pub fn refusal(tool: &Tool) -> Option<Error> {
    let why = match (tool.hints.read_only, tool.hints.destructive) {
        (Some(true), _) => return None,
        (Some(false), _) | (None, Some(true)) => "its server declares that it does not only read",
        (None, _) if Name::of(tool).changes() => "its name says so, and its server does not declare that it only reads",
        (None, _) => return None,
    };
    let name = foreign_text::qualified(&tool.server, &tool.name);
    let message = format!("`{name}` may change something with each call: {why}; it was not called");
    let advice = format!("if it only reads, write (all-pages (fn [arguments] ({name} arguments)) {{…}})");
    Some(Error::new("PagingError", message).about(&name).suggest(advice))
}

/// The words of the name of a tool, in lower case.
struct Name(Vec<String>);

impl Name {
    fn of(tool: &Tool) -> Name {
        let (mut words, mut was_lower) = (vec![String::new()], false);
        for sign in tool.name.chars() {
            if !sign.is_alphanumeric() || was_lower && sign.is_uppercase() {
                words.push(String::new());
            }
            was_lower = sign.is_lowercase();
            if sign.is_alphanumeric()
                && let Some(word) = words.last_mut()
            {
                word.extend(sign.to_lowercase());
            }
        }
        Name(words)
    }

    fn has(&self, known: &[&str]) -> bool {
        self.0.iter().any(|word| known.contains(&word.as_str()))
    }

    /// Returns whether the first verb is one of those that read, or that change something; `None` without a verb.
    fn verb_reads(&self) -> Option<bool> {
        self.0.iter().find_map(|word| match word.as_str() {
            word if READING.contains(&word) => Some(true),
            word if CHANGING.contains(&word) => Some(false),
            _ => None,
        })
    }

    fn reads(&self) -> bool {
        self.verb_reads() == Some(true)
    }

    fn changes(&self) -> bool {
        self.verb_reads() == Some(false)
    }

    /// Returns whether it has a verb for several items, or a plural.
    fn promises_items(&self) -> bool {
        let is_plural = |word: &String| word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
        self.has(LISTING) || self.0.iter().any(is_plural)
    }
}

/// Returns what the arguments of a tool say.
fn paging(tool: &Tool) -> Paging {
    let none = Map::default();
    let arguments = Arguments::new(Some(tool), &none);
    if !arguments.are_declared() {
        return Paging::None;
    }
    let names = arguments.names();
    if names.iter().any(|name| Meaning::is_plain_cursor(&canonical(name))) {
        return Paging::Cursor;
    }
    let positions: Vec<&str> =
        [Meaning::Page, Meaning::Offset].into_iter().filter_map(|it| arguments.meaning(it)).collect();
    let is_said = |name: &&str| {
        let description = arguments.schema(name).and_then(|schema| schema.get("description")?.as_str());
        let description = description.unwrap_or_default().to_lowercase();
        SAID.iter().any(|words| description.contains(words))
    };
    let is_clear = |name: &&str| !AMBIGUOUS.contains(&canonical(name).as_str());
    let is_likely =
        positions.iter().any(is_said) || arguments.meaning(Meaning::Limit).is_some() && positions.iter().any(is_clear);
    match positions.is_empty() {
        true => Paging::None,
        false if is_likely => Paging::Likely,
        false => Paging::Perhaps,
    }
}

/// Returns whether the result of a tool has a list, as declared or seen; `None` if that is not known.
fn has_list(tool: &Tool) -> Option<bool> {
    let known: Vec<Option<bool>> =
        [&tool.output_schema, &tool.seen].into_iter().flatten().map(|schema| lists(schema, DEPTH)).collect();
    match &known[..] {
        known if known.contains(&Some(true)) => Some(true),
        [] => None,
        known if known.contains(&None) => None,
        _ => Some(false),
    }
}

fn lists(schema: &Json, depth: usize) -> Option<bool> {
    if allows(schema, &["array"]) == Some(true) {
        return Some(true);
    }
    let fields = schema.get("properties").and_then(Json::as_object).filter(|fields| !fields.is_empty());
    match fields {
        None if allows(schema, &["object"]) == Some(false) => Some(false),
        None => None,
        Some(_) if depth == 0 => None,
        Some(fields) => {
            let inner: Vec<Option<bool>> = fields.values().map(|field| lists(field, depth - 1)).collect();
            if inner.contains(&Some(true)) {
                Some(true)
            } else {
                inner.into_iter().all(|it| it.is_some()).then_some(false)
            }
        }
    }
}

/// Returns whether the result of a tool has a field that leads to the next page, or says how much there is.
fn has_marks(tool: &Tool) -> bool {
    fn has(schema: &Json, depth: usize) -> bool {
        let Some(fields) = schema.get("properties").and_then(Json::as_object) else { return false };
        let is_mark = |name: &String| {
            let name = canonical(name);
            reply::is_mark(&name) || Meaning::Page.is_name(&name) || Meaning::Offset.is_name(&name)
        };
        fields.keys().any(is_mark) || depth > 0 && fields.values().any(|field| has(field, depth - 1))
    }
    [&tool.output_schema, &tool.seen].into_iter().flatten().any(|schema| has(schema, DEPTH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ToolHints;
    use serde_json::json;

    fn tool(name: &str, properties: Json, read_only: Option<bool>, result: Option<Json>) -> Tool {
        Tool {
            server: "t".into(),
            name: name.into(),
            input_schema: json!({"type": "object", "properties": properties}),
            hints: ToolHints { read_only, ..ToolHints::default() },
            seen: result,
            ..Tool::default()
        }
    }

    fn number() -> Json {
        json!({"type": "integer"})
    }

    #[test]
    fn only_tools_that_read_lists_by_pages_are_marked() {
        let text = || Some(json!({"type": "string"}));
        let rows = || Some(json!({"type": "array", "items": {"type": "object"}}));
        let paged = || {
            Some(json!({"type": "object", "properties": {"tickets": {"type": "array"}, "total": {"type": "integer"}}}))
        };
        let (cursor, page) = (|| json!({"cursor": {"type": "string"}}), || json!({"page": number()}));
        let both = || json!({"offset": number(), "limit": number()});
        for (name, properties, read_only, result, expected) in [
            ("tickets", cursor(), Some(true), None, true),
            ("tickets", cursor(), Some(true), text(), false),
            ("tickets", cursor(), Some(false), rows(), false),
            ("list_tickets", cursor(), None, None, true),
            ("slack_post_message", cursor(), None, rows(), false),
            ("base", cursor(), None, rows(), false),
            ("list_tickets", both(), Some(true), None, true),
            ("read_file", both(), Some(true), None, false),
            ("read_file", both(), Some(true), text(), false),
            ("read_file", both(), Some(true), rows(), true),
            ("list_tickets", page(), Some(true), None, false),
            ("list_tickets", page(), Some(true), rows(), false),
            ("list_tickets", page(), Some(true), paged(), true),
            ("listTickets", json!({"page": {"type": "integer", "description": "Page number"}}), None, rows(), true),
            ("go_page", page(), Some(true), text(), false),
            ("base", json!({"from": number()}), Some(true), rows(), false),
            ("get_history", json!({"from": number(), "limit": number()}), Some(true), rows(), false),
            ("insert_rows", json!({"start": number(), "count": number()}), None, rows(), false),
        ] {
            let tool = tool(name, properties.clone(), read_only, result);
            assert_eq!(has_pages(&tool), expected, "{name} {properties} {read_only:?} {:?}", tool.seen);
        }
    }

    #[test]
    fn tools_that_may_change_something_are_refused() {
        for (name, read_only, is_refused) in [
            ("insert_rows", None, true),
            ("insert_rows", Some(true), false),
            ("list_rows", Some(false), true),
            ("list_rows", None, false),
            ("get_post", None, false),
            ("rows", None, false),
        ] {
            assert_eq!(refusal(&tool(name, json!({}), read_only, None)).is_some(), is_refused, "{name} {read_only:?}");
        }
    }
}
