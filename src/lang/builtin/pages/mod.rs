//! `all-pages`: every item of a tool or function that replies page by page.
//!
//! The result is lazy. A step of it makes one call, takes the items from the reply, and decides how the next page is
//! asked for: by a cursor, by a link, by the number of the page, or by the number of items to skip. The first reply and
//! the names of the arguments decide on one of these schemes ([`scheme`]), which holds for all further pages.

mod evidence;
mod names;
mod reply;
mod scheme;
mod walk;

pub use evidence::has_pages;
pub use names::is_table;

use super::arguments::take;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, OptionKind, OptionSet, OptionSpec};
use crate::value::Value;
use crate::value::map::Map;
use std::sync::Arc;
use walk::{LAZY_PAGES, NO_FURTHER, Walk};

/// The builtins defined in this module.
pub const TABLE: &[Builtin] = &[Builtin::new(
    "all-pages",
    &["[tool]", "[tool arguments]", "[tool arguments options]", "[tool & keyvals]"],
    "A lazy sequence of all items of a tool (or a function of one map) that replies page by page, by page number, \
     offset, cursor or link; each page is fetched when an item of it is needed.\n\
     Rows of a table become maps: `{:columns [\"id\"] :rows [[1]]}` has the item `{:id 1}`. Items that the pages repeat \
     because the data changes in between are not removed. Options, if the names are not \
     recognised: `:items`, the key of the items or a path of keys; `:cursor-in`, the argument that takes the cursor, and \
     `:cursor-out`, its key or path in the reply; `:page-in` and `:offset-in`, the argument with the number of the page, \
     or of the items to skip; `:more`, the key or path that is true if there is another page.",
    &[
        (
            "(all-pages (fn [{:keys [page] :or {page 1}}] {:items [page (* 10 page)] :page page :total-pages 3}))",
            "(1 10 2 20 3 30)",
        ),
        (
            "(all-pages (fn [{:keys [after]}] (if after {:rows [3]} {:rows [1 2] :meta {:next 2}})) {} {:cursor-in \
             :after :cursor-out [:meta :next]})",
            "(1 2 3)",
        ),
    ],
    all_pages,
)
.with_options(&OPTIONS)];

/// The lazy sequence steps defined in this module.
pub const STEPS: &[&Builtin] = &[&LAZY_PAGES, &NO_FURTHER];

static OPTIONS: OptionSet = OptionSet {
    function: "all-pages",
    accepted: &[
        OptionSpec::new("items", &PATH),
        OptionSpec::new("cursor-in", &ARGUMENT),
        OptionSpec::new("cursor-out", &PATH),
        OptionSpec::new("page-in", &ARGUMENT),
        OptionSpec::new("offset-in", &ARGUMENT),
        OptionSpec::new("more", &PATH),
    ],
};

static PATH: OptionKind = OptionKind { wanted: "a key, or a vector of the keys of a path", fits: is_path };

static ARGUMENT: OptionKind = OptionKind {
    wanted: "the name of an argument, as a keyword or string",
    fits: |name| matches!(name, Value::Keyword(_) | Value::Str(_) | Value::Nil),
};

fn all_pages(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let (given, options) = match &mut arguments[1..] {
        [] => (Map::default(), Map::default()),
        [given] => (map_of(given)?, Map::default()),
        [given, options] if !matches!(given, Value::Keyword(_)) => {
            let options = checked(options)?;
            (map_of(given)?, options)
        }
        pairs if pairs.len().is_multiple_of(2) => {
            let pairs = pairs.chunks_exact_mut(2).map(|pair| (take(pair, 0), take(pair, 1)));
            (pairs.collect(), Map::default())
        }
        _ => {
            let message = "`all-pages` takes a tool, a map of its arguments and a map of options";
            return Err(Error::new("ArityError", message).into());
        }
    };
    let function = take(arguments, 0);
    if !function.is_function() {
        let error = Error::expected("a tool, or a function of a map of arguments", &function);
        return Err(error.suggest("give the tool itself, as in (all-pages tracker/list {:status \"open\"})").into());
    }
    let walk = Walk::new(function, given, options);
    Ok(machine.lazy(&LAZY_PAGES, walk.pack()))
}

fn map_of(value: &mut Value) -> Outcome<Map> {
    match std::mem::take(value) {
        Value::Map(map) => Ok(Arc::unwrap_or_clone(map)),
        Value::Nil => Ok(Map::default()),
        other => Err(Error::expected("a map", &other).into()),
    }
}

fn checked(options: &mut Value) -> Outcome<Map> {
    let given = map_of(options)?;
    OPTIONS.of_map(&given)?;
    Ok(given)
}

fn is_path(path: &Value) -> bool {
    matches!(path, Value::Keyword(_) | Value::Str(_) | Value::Int(_) | Value::Vector(_) | Value::Nil)
}
