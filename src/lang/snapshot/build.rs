//! Builds the values of a snapshot from the nodes of its text.

use super::decode::{Decoder, MISSING_ERROR, meaning_of};
use super::tape::{Kind, Part, Parts};
use crate::error::{Error, Outcome};
use crate::eval::{annotate, value_of};
use crate::machine::Object;
use crate::native::Builtin;
use crate::resolve::Meaning;
use crate::value::function::{Bound, ToolFunction};
use crate::value::list::List;
use crate::value::map::{Map, Values};
use crate::value::set::Set;
use crate::value::view::{Part as ViewPart, View};
use crate::value::{Reduced, Value};
use std::sync::Arc;

impl<'t> Decoder<'_, 't> {
    /// Builds a value.
    pub(super) fn value(&mut self, part: Part<'t>) -> Outcome<Value> {
        self.machine.charge(1)?;
        match part.kind() {
            Kind::List => match self.built(part)? {
                Some(value) => Ok(value),
                None => Err(self.damaged(part).into()),
            },
            Kind::Vector => Ok(Value::vector(self.values(part.items())?)),
            // The code of functions is no value.
            Kind::Code => Err(self.damaged(part).into()),
            _ => self.datum(part),
        }
    }

    fn values(&mut self, parts: Parts<'t>) -> Outcome<Vec<Value>> {
        let count = parts.count();
        self.machine.reserve_values(count as u64)?;
        let mut values = Vec::with_capacity(count);
        for part in parts {
            values.push(self.value(part)?);
        }
        Ok(values)
    }

    /// Builds a scalar, or a list or vector of data that is not evaluated.
    fn datum(&mut self, part: Part<'t>) -> Outcome<Value> {
        if let Some(form) = part.form() {
            return value_of(self.machine, form);
        }
        if let Some(code) = part.code() {
            return code.borrow().as_ref().map_or(Ok(Value::Nil), |form| value_of(self.machine, form));
        }
        self.machine.charge(1)?;
        let token = part.token().unwrap_or_default();
        Ok(match part.kind() {
            Kind::True => Value::Bool(true),
            Kind::False => Value::Bool(false),
            Kind::Int => Value::Int(part.integer().unwrap_or_default()),
            Kind::Float => Value::Float(token.parse().unwrap_or(f64::NAN)),
            Kind::Str => {
                let text = part.string().unwrap_or_default();
                self.machine.charge(text.len() as u64 / 64)?;
                Value::string(text)
            }
            Kind::Keyword => self.known.keyword(part.keyword().unwrap_or_default()),
            Kind::Symbol => Value::symbol(token),
            Kind::List => Value::list(part.items().map(|item| self.datum(item)).collect::<Outcome<_>>()?),
            Kind::Vector => Value::vector(part.items().map(|item| self.datum(item)).collect::<Outcome<_>>()?),
            Kind::Nil | Kind::Form | Kind::Code => Value::Nil,
        })
    }

    /// Builds the value of an expression; returns `None` if it is none.
    fn built(&mut self, part: Part<'t>) -> Outcome<Option<Value>> {
        let (head, rest) = part.row();
        match head {
            "record" => self.map(true, rest).map(Some),
            "map" => self.map(false, rest).map(Some),
            "ref" => match rest.exactly() {
                Some([id]) => Ok(match self.reference(id)? {
                    Object::Value(value) => Some(value.clone()),
                    _ => None,
                }),
                None => Ok(None),
            },
            "list" => Ok(Some(Value::list(self.values(rest)?))),
            "set" => self.set(rest).map(Some),
            "cons" | "pair" | "range" | "view" => self.sequence(head, rest),
            "sorted-map" | "sorted-set" => self.sorted(head, rest),
            "builtin" | "bound" | "function" | "var" | "tool" => self.callable(head, rest),
            _ => self.rare(head, rest),
        }
    }

    /// Builds a map or a record of alternating keys and values.
    fn map(&mut self, is_record: bool, entries: Parts<'t>) -> Outcome<Value> {
        if let Some(shape) = self.known.shape(is_record, entries) {
            let mut values = Values::with_capacity(shape.keys().len());
            let mut entries = entries;
            while let (Some(_), Some(value)) = (entries.next(), entries.next()) {
                self.machine.charge(2)?;
                values.push(self.value(value)?);
            }
            return Ok(Value::Map(Arc::new(Map::with_shape(shape, values))));
        }
        let count = entries.count() / 2;
        self.machine.reserve_values(2 * count as u64)?;
        let mut map = Map::with_capacity(count);
        let mut rest = entries;
        while let Some(key) = rest.next() {
            let key = self.value(key)?;
            if let Some(value) = rest.next() {
                map.add(key, self.value(value)?);
            }
        }
        let map = if is_record { map.into_record() } else { map };
        self.known.note(is_record, entries, &map);
        Ok(Value::Map(Arc::new(map)))
    }

    fn set(&mut self, members: Parts<'t>) -> Outcome<Value> {
        let count = members.count();
        self.machine.reserve_values(2 * count as u64)?;
        let mut set = Set::with_capacity(count);
        for member in members {
            set.add(self.value(member)?);
        }
        Ok(Value::Set(Arc::new(set)))
    }

    fn sequence(&mut self, head: &str, rest: Parts<'t>) -> Outcome<Option<Value>> {
        Ok(match head {
            "cons" => {
                let Some([head, tail]) = rest.exactly() else { return Ok(None) };
                let (head, tail) = (self.value(head)?, self.value(tail)?);
                Some(Value::List(Arc::new(List::cons(head, tail))))
            }
            "pair" => {
                let Some([key, value]) = rest.exactly() else { return Ok(None) };
                Some(Value::pair(self.value(key)?, self.value(value)?))
            }
            "range" => rest.exactly().and_then(|[start, step, count]| {
                let (start, step, count) = (start.integer()?, step.integer()?, count.integer()? as u64);
                Some(Value::List(Arc::new(List::Range { start, step, count })))
            }),
            _ => {
                let Some(([part, source], places)) = rest.first() else { return Ok(None) };
                let source = self.value(source)?;
                let view = view_of(part, source, places).filter(|view| view.left() != Some(0));
                view.map(|view| Value::List(Arc::new(List::View(view))))
            }
        })
    }

    /// Builds a sorted collection, whose members are written in their order.
    fn sorted(&mut self, head: &str, rest: Parts<'t>) -> Outcome<Option<Value>> {
        let Some(([comparator], mut items)) = rest.first() else { return Ok(None) };
        let comparator = self.value(comparator)?;
        if head == "sorted-set" {
            let mut set = Set::sorted(comparator);
            for member in items {
                let member = self.value(member)?;
                if set.contains(&member) {
                    return Ok(None);
                }
                set.insert_at(usize::MAX, member);
            }
            return Ok(Some(Value::Set(Arc::new(set))));
        }
        let mut map = Map::sorted(comparator);
        while let Some(key) = items.next() {
            let key = self.value(key)?;
            let Some(value) = items.next() else { break };
            let value = self.value(value)?;
            if map.contains_key(&key) {
                return Ok(None);
            }
            map.insert_at(usize::MAX, key, value);
        }
        Ok(Some(Value::Map(Arc::new(map))))
    }

    fn callable(&mut self, head: &str, rest: Parts<'t>) -> Outcome<Option<Value>> {
        match head {
            "builtin" => {
                let Some([name]) = rest.exactly() else { return Ok(None) };
                let name = name.symbol().unwrap_or_default();
                Ok(Some(match meaning_of(self.machine, name)? {
                    Some(Meaning::Prelude(_, closure)) => Value::Closure(closure),
                    Some(Meaning::Native(native)) => Value::Native(native),
                    _ => Value::Builtin(self.builtin(name)?),
                }))
            }
            "bound" => {
                let Some(([name], arguments)) = rest.first() else { return Ok(None) };
                let builtin = self.builtin(name.symbol().unwrap_or_default())?;
                Ok(Some(Value::Bound(Arc::new(Bound { builtin, arguments: self.values(arguments)? }))))
            }
            "function" => {
                let Some([group, index, captures]) = rest.exactly() else { return Ok(None) };
                let Some(index) = index.integer() else { return Ok(None) };
                self.function(group, index, captures)
            }
            "var" => Ok(rest.exactly().map(|[name]| Value::Var(name.symbol().unwrap_or_default().into()))),
            _ => Ok(rest.exactly().and_then(|[server, name]| {
                Some(Value::Tool(Arc::new(ToolFunction::by_name(server.string()?, name.string()?))))
            })),
        }
    }

    fn builtin(&self, name: &str) -> Outcome<&'static Builtin> {
        self.machine.core.registry.find_any(name).ok_or_else(|| {
            let message = format!("the snapshot uses `{name}`, which this build does not have");
            Error::new(MISSING_ERROR, message).about(name).into()
        })
    }

    fn rare(&mut self, head: &str, rest: Parts<'t>) -> Outcome<Option<Value>> {
        match head {
            "quote" => match rest.exactly() {
                Some([quoted]) => self.datum(quoted).map(Some),
                None => Ok(None),
            },
            "meta" => {
                let Some([value, metadata]) = rest.exactly() else { return Ok(None) };
                let (value, metadata) = (self.value(value)?, self.value(metadata)?);
                match metadata {
                    Value::Map(metadata) => annotate(self.machine, value, Some(metadata)).map(Some),
                    _ => Ok(None),
                }
            }
            "exception" => self.exception(rest),
            "reduced" => match rest.exactly() {
                Some([inner]) => Ok(Some(Value::Reduced(Arc::new(Reduced(self.value(inner)?))))),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Builds an exception: code, message, data, cause, and optionally its symbol and suggestion, which are nil or text.
    fn exception(&mut self, rest: Parts<'t>) -> Outcome<Option<Value>> {
        let Some(([code, message, data, cause], mut told)) = rest.first() else { return Ok(None) };
        let Some(message) = message.string() else { return Ok(None) };
        let (data, cause) = (self.value(data)?, self.value(cause)?);
        let Some(code) = code.symbol().filter(|code| is_code(code)) else { return Ok(None) };
        let mut error = Error::new(code.to_string(), message.to_owned());
        error.symbol = told.next().and_then(Part::string).map(str::to_owned);
        error.suggestion = told.next().and_then(Part::string).map(str::to_owned);
        Ok(Some(Value::Exception(Arc::new(error.with_data(data).with_cause(cause)))))
    }
}

/// True for a valid exception code: one alphanumeric word, not necessarily one that this build raises.
fn is_code(code: &str) -> bool {
    code.starts_with(|c: char| c.is_ascii_alphabetic()) && code.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Creates the view of a part of a collection between two positions, or of so many of its last items.
fn view_of(part: Part<'_>, source: Value, places: Parts<'_>) -> Option<View> {
    let name = part.symbol()?;
    let (part, _) = ViewPart::NAMES.iter().find(|(_, known)| *known == name)?;
    let number = |part: Part<'_>| usize::try_from(part.integer()?).ok();
    let view = View::of(source, *part)?;
    if view.bounds().is_none() {
        let [left] = places.exactly()?;
        return view.ending(number(left)?);
    }
    let [at, end] = places.exactly()?;
    let (at, end) = (number(at)?, number(end)?);
    if at == end { None } else { view.between(at, end) }
}
