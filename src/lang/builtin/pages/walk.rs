//! The steps of `all-pages`: one call each.

use super::super::sequences::in_front;
use super::evidence;
use super::names::Arguments;
use super::reply::{self, Page};
use super::scheme::{Decision, Scheme};
use crate::error::{Error, Outcome, Raised};
use crate::foreign_text;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::equal::visible_hash;
use crate::value::map::Map;
use crate::value::names::canonical;
use crate::value::set::Set;
use std::sync::Arc;

/// A step that fetches a page.
pub static LAZY_PAGES: Builtin =
    Builtin::new("lazy-pages*", &["[tool arguments & state]"], "A step of `all-pages`.", &[], step);

/// The step behind the last item that can be fetched, if there are more.
pub static NO_FURTHER: Builtin =
    Builtin::new("no-further-page*", &["[message suggestion]"], "The end of an `all-pages` that fails.", &[], fail);

/// The state between two pages. It is data, so that it can be stored with the sequence.
pub struct Walk {
    pub function: Value,
    /// The arguments and options that the program gives.
    pub given: Map,
    pub options: Map,
    /// The arguments that the next call gets in addition.
    pub follows: Map,
    /// The scheme and its argument, once the first reply has decided on them.
    pub scheme: Option<(Scheme, Value)>,
    /// The number of the page, or of the items before it, for the next call.
    pub position: i64,
    pub first_position: i64,
    /// The numbers of pages and items fetched.
    pub pages: i64,
    pub got: i64,
    /// The number of items of the first page.
    pub size: i64,
    /// The keys that lead to the items, or nil.
    pub path: Value,
    /// The keys of the columns whose rows are the items, or nil.
    pub columns: Value,
    /// The cursors and fingerprints of pages seen.
    pub seen: Set,
}

impl Walk {
    pub fn new(function: Value, given: Map, options: Map) -> Walk {
        Walk {
            function,
            given,
            options,
            follows: Map::default(),
            scheme: None,
            position: 0,
            first_position: 0,
            pages: 0,
            got: 0,
            size: 0,
            path: Value::Nil,
            columns: Value::Nil,
            seen: Set::default(),
        }
    }

    /// Returns the arguments of the step.
    pub fn pack(self) -> Vec<Value> {
        let map = |map| Value::Map(Arc::new(map));
        let (scheme, argument) = match self.scheme {
            Some((scheme, argument)) => (Value::keyword(scheme.name()), argument),
            None => (Value::Nil, Value::Nil),
        };
        let numbers = [self.position, self.first_position, self.pages, self.got, self.size].map(Value::Int);
        vec![
            self.function,
            map(self.given),
            map(self.options),
            map(self.follows),
            scheme,
            argument,
            Value::vector(numbers.to_vec()),
            self.path,
            self.columns,
            Value::Set(Arc::new(self.seen)),
        ]
    }

    fn unpack(arguments: &mut [Value]) -> Option<Walk> {
        let mut arguments = arguments.iter_mut().map(std::mem::take);
        let mut next = || arguments.next();
        let map = |value| match value {
            Value::Map(map) => Some(Arc::unwrap_or_clone(map)),
            _ => None,
        };
        let (function, given, options) = (next()?, map(next()?)?, map(next()?)?);
        let follows = map(next()?)?;
        let (scheme, argument) = (next()?, next()?);
        let scheme = scheme.as_text().and_then(Scheme::named).map(|scheme| (scheme, argument));
        let (Value::Vector(numbers), path, columns) = (next()?, next()?, next()?) else { return None };
        let Value::Set(seen) = next()? else { return None };
        let number = |at| match numbers.get(at) {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        };
        Some(Walk {
            function,
            given,
            options,
            follows,
            scheme,
            position: number(0)?,
            first_position: number(1)?,
            pages: number(2)?,
            got: number(3)?,
            size: number(4)?,
            path,
            columns,
            seen: Arc::unwrap_or_clone(seen),
        })
    }

    /// Returns the arguments of the next call.
    fn request(&self) -> Value {
        if self.follows.is_empty() {
            return Value::Map(Arc::new(self.given.clone()));
        }
        let follows: Vec<String> = self.follows.iter().filter_map(|(key, _)| key.as_text()).map(canonical).collect();
        let is_replaced = |key: &Value| key.as_text().is_some_and(|key| follows.contains(&canonical(key)));
        let kept = self.given.iter().filter(|(key, _)| !is_replaced(key));
        let all = kept.chain(self.follows.iter()).map(|(key, value)| (key.clone(), value.clone()));
        Value::Map(Arc::new(all.collect()))
    }

    /// Returns the function as messages name it.
    pub fn name(&self) -> String {
        match &self.function {
            Value::Tool(tool) => format!("`{}`", foreign_text::qualified(&tool.server, &tool.name)),
            _ => "the function".to_owned(),
        }
    }

    /// Takes the items and marks out of a reply.
    fn page(&mut self, machine: &mut Machine, reply: &Value, tool: &str) -> Outcome<Page> {
        let path = match option_path(&self.options, "items") {
            Some(path) => path,
            None if reply::is_array(reply) => Vec::new(),
            None => match &self.path {
                Value::Vector(path) if self.pages > 0 => path.iter().cloned().collect(),
                _ => match reply::items_path(machine, reply, tool)? {
                    Ok(path) => path,
                    Err(arrays) => return Err(self.no_items(reply, &arrays).into()),
                },
            },
        };
        let marks = reply::marks(machine, reply, &path)?;
        let items = match Page::at(reply, &path) {
            Some(array) if reply::is_array(array) => {
                let items = machine.items(array.clone())?;
                if let Some(columns) = reply::columns(reply, &path) {
                    self.columns = Value::vector(columns);
                }
                match self.columns.as_block() {
                    Some(columns) => reply::records(machine, columns, items)?,
                    None => items,
                }
            }
            Some(Value::Nil) => Vec::new(),
            // A page without items may leave them out; a reply without any mark as well is something else.
            None if self.pages > 0 && matches!(reply, Value::Map(_)) && !marks.is_empty() && has_no_array(reply) => {
                let page = Page { items: Vec::new(), marks };
                return if page.leads_on().is_some() || page.says_more().is_some() || page.total().is_some() {
                    Ok(page)
                } else {
                    Err(self.no_items(reply, &[]).into())
                };
            }
            _ => return Err(self.no_items(reply, &[]).into()),
        };
        if self.pages == 0 {
            self.path = Value::vector(path);
        }
        Ok(Page { items, marks })
    }

    /// The error for a reply whose items are not found.
    fn no_items(&self, reply: &Value, arrays: &[String]) -> Error {
        let which = if self.pages == 0 { "the reply".to_owned() } else { format!("reply {}", self.pages + 1) };
        let keys = reply::keys(reply);
        let message = match (arrays, reply) {
            ([], Value::Map(_)) => format!("expected a page with an array of items, but {which} is {keys}"),
            ([], _) => format!("expected a page with an array of items, but {which} is {keys} without items"),
            (arrays, _) => format!("the items of {which} may be {}", arrays.join(" or ")),
        };
        Error::new("PagingError", message).suggest("name the items, as in (all-pages f {} {:items [:data :items]})")
    }

    /// Records that this page has come; fails if it has come before.
    fn check_repeated(&mut self, machine: &mut Machine, items: &[Value]) -> Outcome<()> {
        if items.is_empty() {
            return Ok(());
        }
        machine.charge(items.len() as u64)?;
        let hash = match machine.key(Value::vector(items.to_vec())) {
            Ok(key) => visible_hash(&key),
            Err(signal) if matches!(signal.raised(), Raised::Halt(_)) => return Err(signal),
            // Too large or too deep to be compared.
            Err(_) => return Ok(()),
        };
        let fingerprint = Value::pair(Value::Int(items.len() as i64), Value::Int(hash as i64));
        if self.seen.insert(fingerprint) {
            return Ok(());
        }
        let message = format!("page {} has the items of an earlier page: the pages repeat", self.pages);
        let advice = "the argument for the page may be another one, or its first number: name it with an option such as \
                      {:offset-in :start}, or give the first page, as in {:page 0}";
        Err(Error::new("PagingError", message).suggest(advice).into())
    }
}

fn has_no_array(reply: &Value) -> bool {
    matches!(reply, Value::Map(map) if map.iter().all(|(_, value)| !reply::is_array(value)))
}

/// Returns an option that is a key or a path of keys.
pub fn option_path(options: &Map, name: &str) -> Option<Vec<Value>> {
    match options.get(&Value::keyword(name))? {
        Value::Nil => None,
        Value::Vector(path) => Some(path.iter().cloned().collect()),
        key => Some(vec![key.clone()]),
    }
}

fn step(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let Some(mut walk) = Walk::unpack(arguments) else {
        return Err(Error::new("PagingError", "the state of `all-pages` is damaged").into());
    };
    let tool = match &walk.function {
        Value::Tool(tool) => Some(machine.known_tool(tool)?),
        _ => None,
    };
    if walk.pages == 0
        && let Some(refusal) = tool.as_deref().and_then(evidence::refusal)
    {
        return Err(refusal.into());
    }
    loop {
        let reply = machine.call1(&walk.function.clone(), walk.request())?;
        reply.touch();
        machine.check_unknown()?;
        let reply = match reply {
            Value::Lazy(_) => Value::list(machine.items(reply)?),
            reply => reply,
        };
        let page = walk.page(machine, &reply, tool.as_ref().map_or("", |tool| &tool.name))?;
        walk.pages += 1;
        walk.got += page.items.len() as i64;
        if walk.pages == 1 {
            walk.size = page.items.len() as i64;
        }
        let arguments = walk.given.clone();
        let arguments = Arguments::new(tool.as_deref(), &arguments);
        let decision = walk.decide(machine, &arguments, &page, &reply)?;
        let is_compared = walk.pages > 1 || matches!(decision, Decision::Next);
        if is_compared {
            walk.check_repeated(machine, &page.items)?;
        }
        return match decision {
            Decision::End => Ok(Value::list(page.items)),
            Decision::Next if page.items.is_empty() => continue,
            Decision::Next => {
                let rest = machine.lazy(&LAZY_PAGES, walk.pack());
                in_front(machine, page.items, rest)
            }
            Decision::Stuck(error) if page.items.is_empty() => Err((*error).into()),
            // The items that have come can be used.
            Decision::Stuck(error) => {
                let advice = error.suggestion.as_deref().map_or(Value::Nil, Value::string);
                let rest = machine.lazy(&NO_FURTHER, vec![Value::string(&error.message), advice]);
                in_front(machine, page.items, rest)
            }
        };
    }
}

fn fail(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = |at: usize| arguments.get(at).and_then(Value::as_str).unwrap_or_default();
    let error = Error::new("PagingError", text(0));
    Err(if text(1).is_empty() { error } else { error.suggest(text(1)) }.into())
}
