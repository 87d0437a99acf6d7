//! Equality and hashing, following Clojure's `=` and `hash`. Lists and vectors with the same items are equal. An
//! integer never equals a double. Records decoded from JSON equal maps; records of `defrecord` equal only records of
//! the same type.
//!
//! Equality uses an explicit work stack instead of recursion, so depth consumes no machine stack. Keys of maps and
//! members of sets nest at most [`KEY_NESTING`] levels (checked on insertion). This bounds the lookups inside a
//! comparison and allows hashing to recurse.

use super::map::Map;
use super::set::Set;
use super::text::{Name, Text};
use super::walk::{Cursor, Free, Pace};
use super::{Value, decimal};
use crate::heap::Handle;
use crate::meter::owe;
use num_bigint::BigInt;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Maximum nesting depth of a key.
pub const KEY_NESTING: u32 = 64;

/// A pending comparison.
enum Task {
    Values(Value, Value),
    Sequences(Cursor, Cursor),
    Maps(Arc<Map>, Arc<Map>, usize),
    Sets(Arc<Set>, Arc<Set>),
}

/// Returns the number of bits of a big integer or of the unscaled integer of a decimal; 0 for all other values.
pub fn bits(value: &Value) -> u64 {
    match value {
        Value::BigInt(number) => number.bits(),
        Value::Decimal(number) => decimal::bits(number),
        _ => 0,
    }
}

/// Returns the number of steps charged for computing the decimal digits of a number.
pub fn digits_effort(value: &Value) -> u64 {
    decimal::square_effort(bits(value))
}

/// Returns the number of steps for hashing a scalar, in addition to the first.
#[inline]
pub fn hashing_effort(value: &Value) -> u64 {
    match value {
        Value::Str(Text::Long(text)) => text.len() as u64 / 64,
        Value::Str(Text::Marked(text)) => text.as_str().len() as u64 / 64,
        Value::Keyword(name) | Value::Symbol(name) => name.as_str().len() as u64 / 64,
        Value::BigInt(number) => number.bits() / 512,
        Value::Decimal(_) => digits_effort(value),
        _ => 0,
    }
}

/// Returns the number of steps for comparing two scalars, in addition to the first.
#[inline]
pub fn comparing_effort(left: &Value, right: &Value) -> u64 {
    match (left, right) {
        (Value::Str(Text::Long(a)), Value::Str(Text::Long(b))) => a.len().min(b.len()) as u64 / 64,
        (Value::Str(Text::Marked(a)), Value::Str(Text::Marked(b))) => {
            a.as_str().len().min(b.as_str().len()) as u64 / 64
        }
        (Value::BigInt(a), Value::BigInt(b)) => a.bits().min(b.bits()) / 512,
        (Value::Decimal(a), b) | (b, Value::Decimal(a)) => decimal::comparing_effort(a, b),
        _ => 0,
    }
}

/// True if the two values are equal. Realises lazy sequences through `pace` as far as needed.
pub fn equal<P: Pace>(left: &Value, right: &Value, pace: &mut P) -> Result<bool, P::Stop> {
    pace.step(comparing_effort(left, right))?;
    if let Some(answer) = equal_at_once(left, right) {
        return Ok(answer);
    }
    let mut tasks = vec![Task::Values(left.clone(), right.clone())];
    while let Some(task) = tasks.pop() {
        match task {
            Task::Values(left, right) => {
                pace.step(comparing_effort(&left, &right))?;
                match equal_at_once(&left, &right) {
                    Some(true) => {}
                    Some(false) => return Ok(false),
                    None => match nested(left, right, pace)? {
                        Some(task) => tasks.push(task),
                        None => return Ok(false),
                    },
                }
            }
            Task::Sequences(mut left, mut right) => match (left.next(pace)?, right.next(pace)?) {
                (None, None) => {}
                (Some(a), Some(b)) => {
                    tasks.push(Task::Sequences(left, right));
                    pace.step(comparing_effort(&a, &b))?;
                    match equal_at_once(&a, &b) {
                        Some(true) => {}
                        Some(false) => return Ok(false),
                        None => tasks.push(Task::Values(a, b)),
                    }
                }
                _ => return Ok(false),
            },
            Task::Sets(left, right) => {
                for at in 0..left.positions() {
                    pace.step(1)?;
                    let Some(member) = left.member(at) else { continue };
                    pace.step(hashing_effort(member))?;
                    if !right.contains(member) {
                        return Ok(false);
                    }
                }
            }
            Task::Maps(left, right, position) => {
                pace.step(1)?;
                if position >= left.positions() {
                    continue;
                }
                if let Some((key, value)) = left.entry(position) {
                    pace.step(hashing_effort(key))?;
                    // Exact lookup: the result must not depend on which map is a record, and must agree with the
                    // hashes.
                    let Some((_, other)) = right.get_exact(key) else { return Ok(false) };
                    tasks.push(Task::Values(value.clone(), other.clone()));
                }
                let last = tasks.len() - usize::from(left.entry(position).is_some());
                tasks.insert(last, Task::Maps(left, right, position + 1));
            }
        }
    }
    Ok(true)
}

/// Fast path: decides equality without a walk, or returns `None` if the contents must be compared.
#[inline]
fn equal_at_once(left: &Value, right: &Value) -> Option<bool> {
    Some(match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Char(a), Value::Char(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Keyword(a), Value::Keyword(b))
        | (Value::Symbol(a), Value::Symbol(b))
        | (Value::Var(a), Value::Var(b)) => a == b,
        (Value::Annotated(a), b) | (b, Value::Annotated(a)) => b.as_symbol() == Some(&a.name),
        (Value::BigInt(a), Value::BigInt(b)) => a == b,
        (Value::Int(a), Value::BigInt(b)) | (Value::BigInt(b), Value::Int(a)) => **b == BigInt::from(*a),
        (Value::Decimal(a), Value::Decimal(b)) => decimal::equal(a, b),
        (Value::Time(a), Value::Time(b)) => a == b,
        (Value::Regex(a), Value::Regex(b)) => Arc::ptr_eq(a, b),
        (Value::Builtin(a), Value::Builtin(b)) => std::ptr::eq(*a, *b),
        (Value::Native(a), Value::Native(b)) => Arc::ptr_eq(a, b),
        (Value::Closure(a), Value::Closure(b)) => {
            Arc::ptr_eq(a, b)
                || (a.index == b.index && Arc::ptr_eq(&a.group, &b.group) && Arc::ptr_eq(&a.captures, &b.captures))
        }
        (Value::Bound(a), Value::Bound(b)) => Arc::ptr_eq(a, b),
        (Value::Tool(a), Value::Tool(b)) => a.tool.server == b.tool.server && a.tool.name == b.tool.name,
        (Value::Cell(a), Value::Cell(b)) if Arc::ptr_eq(a, b) => true,
        (Value::Exception(a), Value::Exception(b)) => Arc::ptr_eq(a, b),
        (Value::List(a), Value::List(b)) if Arc::ptr_eq(a, b) => true,
        (Value::Vector(a), Value::Vector(b)) if Arc::ptr_eq(a, b) => true,
        (Value::Lazy(a), Value::Lazy(b)) if Arc::ptr_eq(a, b) => true,
        (Value::Map(a), Value::Map(b)) => {
            if Arc::ptr_eq(a, b) {
                true
            } else if a.len() != b.len() || !a.is_alike(b) {
                false
            } else {
                return None;
            }
        }
        (Value::Set(a), Value::Set(b)) => {
            if Arc::ptr_eq(a, b) {
                true
            } else if a.len() != b.len() {
                false
            } else {
                return None;
            }
        }
        (Value::Reduced(_), Value::Reduced(_)) => return None,
        (Value::List(_) | Value::Vector(_) | Value::Lazy(_), Value::List(_) | Value::Vector(_) | Value::Lazy(_)) => {
            return None;
        }
        (Value::Cell(cell), other) | (other, Value::Cell(cell)) => {
            cell.touch();
            if let Value::Cell(other) = other {
                other.touch();
            }
            false
        }
        _ => false,
    })
}

/// Creates the comparison task for two values that [`equal_at_once`] could not decide; `None` if they are unequal.
fn nested<P: Pace>(left: Value, right: Value, pace: &mut P) -> Result<Option<Task>, P::Stop> {
    Ok(match (left, right) {
        (Value::Map(a), Value::Map(b)) => Some(Task::Maps(a, b, 0)),
        (Value::Set(a), Value::Set(b)) => Some(Task::Sets(a, b)),
        (Value::Reduced(a), Value::Reduced(b)) => Some(Task::Values(a.0.clone(), b.0.clone())),
        (a, b) => {
            pace.step(1)?;
            match (Cursor::over(a), Cursor::over(b)) {
                (Some(a), Some(b)) => match (a.remaining(), b.remaining()) {
                    (Some(x), Some(y)) if x != y => None,
                    _ => Some(Task::Sequences(a, b)),
                },
                _ => None,
            }
        }
    })
}

impl PartialEq for Value {
    #[inline]
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            // Most keys are keywords or strings.
            (Value::Keyword(a), Value::Keyword(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a == b,
            _ => same(self, other),
        }
    }
}

fn same(left: &Value, right: &Value) -> bool {
    match equal_at_once(left, right) {
        Some(answer) => answer,
        None => {
            let mut owing = Owing(0);
            let Ok(answer) = same_nested(left, right, &mut owing);
            if owing.0 >= MANY {
                owe(owing.0);
            }
            answer
        }
    }
}

/// Minimum number of steps of a comparison, or of items of a hashed collection, to be recorded as owed.
const MANY: u64 = 256;

/// A [`Pace`] that counts the steps of a walk so that they can be recorded as owed.
struct Owing(u64);

impl Pace for Owing {
    type Stop = Infallible;

    fn step(&mut self, steps: u64) -> Result<(), Infallible> {
        self.0 = self.0.saturating_add(steps);
        Ok(())
    }

    fn force(&mut self, _: &Arc<Handle>) -> Result<Option<Value>, Infallible> {
        Ok(None)
    }

    fn content(&mut self, _: &Arc<Handle>) -> Option<Value> {
        None
    }
}

/// Like [`equal`], for two values that [`equal_at_once`] could not decide. Compares contiguous items in place, without
/// a work stack for scalars.
fn same_nested(left: &Value, right: &Value, owing: &mut Owing) -> Result<bool, Infallible> {
    let (Some(a), Some(b)) = (left.as_block(), right.as_block()) else { return equal(left, right, owing) };
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b) {
        owing.step(1 + comparing_effort(a, b))?;
        let is_equal = match equal_at_once(a, b) {
            Some(answer) => answer,
            None => equal(a, b, owing)?,
        };
        if !is_equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Records as owed the cost of comparing a long scalar with `others` keys in a linear scan.
#[inline]
pub fn owe_for_scan(key: &Value, others: usize) {
    if let Value::Str(Text::Long(_) | Text::Marked(_)) | Value::BigInt(_) | Value::Decimal(_) = key {
        owe_for_long_scan(key, others);
    }
}

#[cold]
fn owe_for_long_scan(key: &Value, others: usize) {
    // Texts are compared and hashed several bytes at a time.
    const AT_ONCE: u64 = 8;
    let effort = hashing_effort(key);
    if effort >= LONG {
        owe(effort.saturating_mul(others as u64) / AT_ONCE);
    }
}

/// Minimum number of steps for hashing or comparing one scalar to be recorded as owed.
const LONG: u64 = 16;

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Value::Str(Text::Long(_) | Text::Marked(_)) | Value::BigInt(_) | Value::Decimal(_) = self {
            owe_for_long_scan(self, 1);
        }
        hash_nested(self, state, KEY_NESTING, Identity::Address);
    }
}

/// Returns the hash that programs see. It is identical in every process and independent of the secret seeds of the hash
/// tables.
pub fn visible_hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_nested(value, &mut hasher, KEY_NESTING, Identity::Place);
    hasher.finish()
}

/// Source of the hash of values that are equal only to themselves.
#[derive(Clone, Copy)]
enum Identity {
    /// The address in memory. Used in hash tables, which do not expose it.
    Address,
    /// Stable properties, such as a source position or a name. Used wherever a program can observe the hash.
    Place,
}

/// Creates the hasher for one member of an unordered collection, whose member hashes are summed. `seed` is the state of
/// the enclosing hash so far. In a hash table that state is secret, so that an attacker cannot construct members whose
/// sums collide.
fn of_member(seed: u64) -> DefaultHasher {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(seed);
    hasher
}

fn owe_for_items(count: u64) {
    if count >= MANY {
        owe(count);
    }
}

fn hash_symbol<H: Hasher>(name: &Name, state: &mut H) {
    state.write_u8(4);
    name.as_str().hash(state);
}

fn hash_nested<H: Hasher>(value: &Value, state: &mut H, levels: u32, identity: Identity) {
    match value {
        Value::Nil => state.write_u8(0),
        Value::Bool(value) => state.write_u8(1 + u8::from(*value)),
        Value::Int(value) => state.write_i64(*value),
        Value::BigInt(value) => match i64::try_from(&**value) {
            Ok(small) => state.write_i64(small),
            Err(_) => value.hash(state),
        },
        Value::Float(value) => state.write_u64((value + 0.0).to_bits()),
        Value::Decimal(value) => decimal::hash(value, state),
        Value::Time(time) => time.hash(state),
        Value::Char(value) => value.hash(state),
        Value::Str(text) => text.hash(state),
        Value::Keyword(name) => {
            state.write_u8(3);
            name.as_str().hash(state);
        }
        Value::Symbol(name) => hash_symbol(name, state),
        Value::Annotated(symbol) => hash_symbol(&symbol.name, state),
        Value::Var(name) => {
            state.write_u8(9);
            name.as_str().hash(state);
        }
        Value::List(_) | Value::Vector(_) => {
            state.write_u8(5);
            if levels > 0 {
                let mut count = 0;
                if let Some(items) = value.as_block() {
                    count = items.len() as u64;
                    items.iter().for_each(|item| hash_nested(item, state, levels - 1, identity));
                } else {
                    let mut cursor = Cursor::over(value.clone()).unwrap_or(Cursor::End);
                    while let Ok(Some(item)) = cursor.next(&mut Free) {
                        count += 1;
                        hash_nested(&item, state, levels - 1, identity);
                    }
                }
                owe_for_items(count);
            }
        }
        Value::Map(map) => {
            state.write_u8(6);
            if levels > 0 {
                let seed = state.finish();
                let entries = map.iter().map(|(key, value)| {
                    let mut own = of_member(seed);
                    hash_nested(key, &mut own, levels - 1, identity);
                    hash_nested(value, &mut own, levels - 1, identity);
                    own.finish()
                });
                state.write_u64(entries.fold(0, u64::wrapping_add));
                owe_for_items(4 * map.len() as u64);
            }
        }
        Value::Set(set) => {
            state.write_u8(7);
            if levels > 0 {
                let seed = state.finish();
                let members = set.iter().map(|member| {
                    let mut own = of_member(seed);
                    hash_nested(member, &mut own, levels - 1, identity);
                    own.finish()
                });
                state.write_u64(members.fold(0, u64::wrapping_add));
                owe_for_items(4 * set.len() as u64);
            }
        }
        Value::Regex(regex) => regex.as_str().hash(state),
        Value::Builtin(builtin) => builtin.name.hash(state),
        Value::Native(native) => native.about.name.hash(state),
        Value::Closure(closure) => {
            match identity {
                Identity::Address => state.write_usize(Arc::as_ptr(&closure.captures).addr()),
                Identity::Place => closure.group.lambdas[closure.index as usize].form.span.hash(state),
            }
            state.write_u32(closure.index);
        }
        Value::Bound(bound) => match identity {
            Identity::Address => state.write_usize(Arc::as_ptr(bound).addr()),
            Identity::Place => bound.builtin.name.hash(state),
        },
        Value::Tool(tool) => tool.tool.name.hash(state),
        Value::Cell(handle) | Value::Lazy(handle) => {
            handle.touch();
            state.write_u64(handle.serial());
        }
        Value::Exception(error) => match identity {
            Identity::Address => state.write_usize(Arc::as_ptr(error).addr()),
            Identity::Place => error.code.hash(state),
        },
        Value::Reduced(_) => state.write_u8(8),
    }
}
