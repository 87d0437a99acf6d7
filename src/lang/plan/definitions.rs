//! Knowledge about constants and definitions.

use super::count::{Counting, Frame};
use super::known::{Depth, Function, Known};
use crate::error::Outcome;
use crate::node::{Define, Definition};
use crate::value::Value;

impl Counting<'_> {
    /// Returns what is known of a value of the code or the session. What it holds escapes.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    pub fn value(&mut self, value: &Value) -> Outcome<Known> {
        Ok(match value {
            Value::Tool(tool) => Known::Tool(tool.clone()),
            Value::Builtin(builtin) => Known::Builtin(builtin),
            Value::Var(name) => Known::Var(name.clone()),
            Value::Closure(closure) => {
                let mut captures = Vec::new();
                for capture in closure.captures.as_slice() {
                    // Functions that it captured escape, which bounds the nesting.
                    captures.push(match capture {
                        Value::Closure(_) => {
                            self.reach.value(capture);
                            Known::ANY
                        }
                        capture => self.value(capture)?,
                    });
                }
                self.follow()?;
                let (group, index) = (closure.group.clone(), closure.index);
                Known::Function(Function { group, index, captures: captures.into() })
            }
            Value::Int(number) => Known::Integer(*number),
            Value::Keyword(_) => Known::Keyword,
            Value::Nil => Known::Other { most: Some(0), depth: Depth::Data },
            Value::Str(text) => Known::Other { most: Some(text.as_str().chars().count() as u64), depth: Depth::Data },
            value if value.is_scalar() && !value.is_function() && !matches!(value, Value::Cell(_)) => Known::DATA,
            value => {
                self.reach.value(value);
                self.follow()?;
                let most = match value {
                    Value::Vector(vector) => Some(vector.len()),
                    Value::Map(map) => Some(map.len()),
                    Value::Set(set) => Some(set.len()),
                    value => value.as_block().map(|items| items.len()),
                };
                let depth = if most.is_some() { Depth::Realised } else { Depth::Lazy };
                let most = most.map(|most| most as u64);
                Known::Other { most, depth }
            }
        })
    }

    /// Returns what is known of a definition at this point.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    pub fn global(&mut self, index: u32) -> Outcome<Known> {
        if self.reach.globals.contains(&index) {
            return Ok(Known::ANY);
        }
        if let Some(is_data) = self.before.inputs.get(&index) {
            return Ok(if *is_data { Known::DATA } else { Known::ANY });
        }
        if let Some(known) = self.defined.get(&index) {
            return Ok(known.clone());
        }
        match self.before.globals.get(&index).and_then(|global| global.value.clone()) {
            Some(value) => self.value(&value),
            None => Ok(Known::ANY),
        }
    }

    /// Walks a definition. `is_certain` is true if it takes effect exactly once, between the forms before and after it.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    pub fn define(&mut self, define: &Define, frame: &mut Frame, is_certain: bool) -> Outcome<Known> {
        let index = define.global;
        let value = define.value.as_ref().map(|value| self.node(value, frame)).transpose()?;
        if let Some(metadata) = &define.metadata {
            let metadata = self.node(metadata, frame)?;
            self.escape(&metadata)?;
        }
        if let Some(value) = value {
            self.held.entry(index).or_default().push(value.clone());
            let may_be_kept = define.kind == Definition::Once
                && (self.before.globals.contains_key(&index) || self.defined.contains_key(&index));
            if !is_certain || may_be_kept || self.before.inputs.contains_key(&index) {
                self.reach.globals.insert(index);
            }
            if self.reach.globals.contains(&index) {
                // Also if the definition has been followed before this value was held.
                self.release(&value);
                self.followed.0 = usize::MAX;
                self.follow()?;
            }
            self.defined.insert(index, value);
        }
        Ok(Known::Var(self.machine.core.globals.name(index).into()))
    }
}
