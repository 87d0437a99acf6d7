//! Options of builtins: keywords and values after the other arguments, or a map of them.
//!
//! A builtin declares its options as an [`OptionSet`], both in its table entry and where it reads them. Reading refuses
//! options that are not declared and values of another kind, so that no option is ignored.

use super::kinds::is_callable;
use crate::error::{Error, Outcome, describe};
use crate::native::{OptionKind, OptionSet, OptionSpec};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::walk::Cursor;

/// Any value, including nil.
pub static ANY: OptionKind = OptionKind { wanted: "a value", fits: |_| true };

/// Any value but nil, which the builtin checks itself.
pub static GIVEN: OptionKind = OptionKind { wanted: "a value", fits: |value| !value.is_nil() };

/// True or false; nil is false.
pub static FLAG: OptionKind =
    OptionKind { wanted: "true or false", fits: |value| matches!(value, Value::Bool(_) | Value::Nil) };

/// A function, or another value that can be called.
pub static FUNCTION: OptionKind = OptionKind { wanted: "a function", fits: is_callable };

/// A number of things.
pub static COUNT: OptionKind =
    OptionKind { wanted: "an integer of at least 0", fits: |value| matches!(value, Value::Int(0..)) };

/// A map.
pub static MAP: OptionKind = OptionKind { wanted: "a map", fits: |value| matches!(value, Value::Map(_)) };

/// A vector, list, set or sequence.
pub static ITEMS: OptionKind = OptionKind { wanted: "a vector or another sequence", fits: has_items };

/// An option that the library sets itself, which errors do not name.
pub static INTERNAL: OptionKind = OptionKind { wanted: "true", fits: |value| matches!(value, Value::Bool(true)) };

/// The function by whose result items are compared.
pub const KEY: OptionSpec = OptionSpec::new("key", &FUNCTION);

/// The function that compares two items.
pub const TEST: OptionSpec = OptionSpec::new("test", &FUNCTION);

/// True for collections other than maps and strings.
pub fn has_items(value: &Value) -> bool {
    !matches!(value, Value::Nil | Value::Str(_) | Value::Map(_)) && Cursor::over(value.clone()).is_some()
}

/// The options of one call.
pub struct Given {
    set: &'static OptionSet,
    /// Positions in the declaration, with the values.
    values: Vec<(usize, Value)>,
}

impl OptionSet {
    /// Returns the options of a call without any.
    pub fn none(&'static self) -> Given {
        Given { set: self, values: Vec::new() }
    }

    /// Reads the options at the end of a call: keywords and values in turn, one map of them, or keywords and values
    /// followed by a map.
    ///
    /// # Errors
    /// Returns `UnknownOption`, with a similar name and all names, for an option that is not declared, `ArityError` for
    /// a keyword without a value, and `TypeError` for a value of another kind or a name that is no keyword.
    pub fn read(&'static self, rest: &mut [Value]) -> Outcome<Given> {
        let mut given = self.none();
        let (pairs, last) = rest.split_at_mut(rest.len() / 2 * 2);
        for pair in pairs.chunks_exact_mut(2) {
            let value = std::mem::take(&mut pair[1]);
            given.put(&pair[0], value)?;
        }
        match last {
            [Value::Map(map)] => given.put_all(map)?,
            [Value::Nil] | [] => {}
            [name] => {
                self.spec(name)?;
                let problem = format!("`{}` takes options as keywords and values in turn", self.function);
                return Err(Error::new("ArityError", format!("{problem}: {} has no value", describe(name))).into());
            }
            _ => {}
        }
        Ok(given)
    }

    /// Reads the options in a map.
    ///
    /// # Errors
    /// As [`OptionSet::read`].
    pub fn of_map(&'static self, map: &Map) -> Result<Given, Error> {
        let mut given = self.none();
        given.put_all(map)?;
        Ok(given)
    }

    /// Returns whether a value is the name of an option.
    pub fn has(&self, name: &Value) -> bool {
        self.position(name).is_some()
    }

    fn position(&self, name: &Value) -> Option<usize> {
        let Value::Keyword(name) = name else { return None };
        self.accepted.iter().position(|option| option.names().any(|known| known == name.as_str()))
    }

    /// Returns the position of the option with that name, or an error for any other value.
    fn spec(&self, name: &Value) -> Result<usize, Error> {
        self.position(name).ok_or_else(|| self.unknown(name))
    }

    #[cold]
    fn unknown(&self, name: &Value) -> Error {
        let public = || self.accepted.iter().filter(|option| !std::ptr::eq(option.kind, &INTERNAL));
        let listed: Vec<&str> = public().map(|option| option.name).collect();
        let all: Vec<&str> = public().flat_map(OptionSpec::names).collect();
        refused(self.function, name, &listed, &all)
    }
}

/// The error for an option that a function does not have. It has the options `listed`, under all names `all`.
#[cold]
fn refused(function: &str, name: &Value, listed: &[&str], all: &[&str]) -> Error {
    match name {
        Value::Keyword(name) => Error::unknown_option(function, name.as_str(), listed, all),
        other => Error::expected("a keyword as the name of an option", other)
            .suggest(format!("`{function}` takes :{}", listed.join(", :"))),
    }
}

/// Returns the value of the only option of a function of the prelude, from the arguments in its place; nil if there are
/// none.
///
/// # Errors
/// As [`OptionSet::read`].
pub fn only_option(function: &str, option: &str, rest: &[Value]) -> Result<Value, Error> {
    match rest {
        [] => Ok(Value::Nil),
        [Value::Keyword(name), value] if name.as_str() == option => Ok(value.clone()),
        [Value::Keyword(name), ..] if name.as_str() == option => Err(Error::new(
            "ArityError",
            format!("`{function}` takes one value for `:{option}` as its last argument, got {}", rest.len() - 1),
        )),
        [name, ..] => Err(refused(function, name, &[option], &[option])),
    }
}

impl Given {
    fn put_all(&mut self, map: &Map) -> Result<(), Error> {
        map.iter().try_for_each(|(name, value)| self.put(name, value.clone()))
    }

    fn put(&mut self, name: &Value, value: Value) -> Result<(), Error> {
        let at = self.set.spec(name)?;
        let option = &self.set.accepted[at];
        if self.values.iter().any(|(known, _)| *known == at) {
            let message = match option.also {
                [] => format!("`{}` is given the option `:{}` twice", self.set.function, option.name),
                also => format!(
                    "`{}` is given one option twice: `:{}` is another name of `:{}`",
                    self.set.function,
                    also.join("`, `:"),
                    option.name
                ),
            };
            return Err(Error::new("ArityError", message).suggest("give each option once"));
        }
        if !(option.kind.fits)(&value) {
            if value.is_nil() {
                return Ok(());
            }
            return Err(Error::expected(&format!("{} for `{name}`", option.kind.wanted), &value));
        }
        self.values.push((at, value));
        Ok(())
    }

    /// Returns whether the option is declared.
    pub fn takes(&self, name: &str) -> bool {
        self.set.accepted.iter().any(|option| option.name == name)
    }

    /// Returns the value of a declared option, by its first name; `None` if it is not given.
    pub fn get(&self, name: &str) -> Option<&Value> {
        debug_assert!(self.takes(name), "`:{name}` is not declared");
        self.values.iter().find(|(at, _)| self.set.accepted[*at].name == name).map(|(_, value)| value)
    }

    /// Returns the value of an option, or nil.
    pub fn or_nil(&self, name: &str) -> Value {
        self.get(name).cloned().unwrap_or_default()
    }

    /// Returns whether an option is given and true.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(Value::is_truthy)
    }
}
