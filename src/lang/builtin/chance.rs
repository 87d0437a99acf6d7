//! Values from the host: random numbers and the time of day.

use super::arguments::{integer, take};
use super::arithmetic::float;
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "rand",
        &["[]", "[n]"],
        "A random double from 0 (inclusive) to `n` (exclusive; default 1).",
        &[("(< -1 (rand 10) 10)", "true")],
        rand,
    ),
    Builtin::new(
        "rand-int",
        &["[n]"],
        "A random integer from 0 (inclusive) to `n` (exclusive).",
        &[("(rand-int 1)", "0"), ("(< -1 (rand-int 10) 10)", "true")],
        rand_int,
    ),
    Builtin::new("rand-nth", &["[coll]"], "A random item.", &[("(rand-nth [7 7])", "7")], rand_nth),
    Builtin::new(
        "random-uuid",
        &["[]"],
        "A new random UUID, as a string.",
        &[("(count (random-uuid))", "36")],
        random_uuid,
    ),
    Builtin::new(
        "System/nanoTime",
        &["[]"],
        "The host's clock in nanoseconds, for measuring elapsed time; its resolution is a millisecond.",
        &[("(let [start (System/nanoTime)] (>= (System/nanoTime) start))", "true")],
        nanoseconds,
    ),
    Builtin::new(
        "now",
        &["[]"],
        "The current time, in milliseconds since 1970-01-01T00:00:00Z.",
        &[("(pos? (now))", "true")],
        now,
    ),
];

/// Aliases from Java and other Lisps, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("math/random", "rand"),
    ("random", "rand-int"),
    ("UUID/randomUUID", "random-uuid"),
    ("java.util.UUID/randomUUID", "random-uuid"),
    ("current-time-millis", "now"),
    ("System/currentTimeMillis", "now"),
];

/// Returns a uniformly distributed double from 0 up to but not including 1.
pub fn fraction(machine: &mut Machine) -> f64 {
    (machine.core.random() >> 11) as f64 / (1_u64 << 53) as f64
}

fn rand(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let end = arguments.first().map(float).transpose()?.unwrap_or(1.0);
    Ok(Value::Float(fraction(machine) * end))
}

fn rand_int(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let end = integer(&arguments[0])?;
    let below = below(machine, end.unsigned_abs());
    Ok(Value::Int(below as i64 * end.signum()))
}

/// Returns a random number from 0 up to but not including `end`; 0 if `end` is 0. Takes the high half of a 128-bit
/// product, whose bias is below one in 2⁶⁴ / `end`.
fn below(machine: &mut Machine, end: u64) -> u64 {
    ((u128::from(machine.core.random()) * u128::from(end)) >> 64) as u64
}

fn rand_nth(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let collection = take(arguments, 0);
    if collection.is_nil() {
        return Ok(Value::Nil);
    }
    if let Value::Vector(vector) = &collection
        && !vector.is_empty()
    {
        let at = below(machine, vector.len() as u64);
        return Ok(vector.get(at as usize).cloned().unwrap_or_default());
    }
    let items = machine.items(collection)?;
    if items.is_empty() {
        return Err(Error::new("IndexOutOfBounds", "an empty collection has no item to choose")
            .suggest("test it with `seq` first")
            .into());
    }
    let at = below(machine, items.len() as u64);
    Ok(items.into_iter().nth(at as usize).unwrap_or_default())
}

fn random_uuid(machine: &mut Machine, _: &mut [Value]) -> Outcome<Value> {
    // UUID version 4, variant 1 of RFC 9562.
    let high = machine.core.random() & !0xf000 | 0x4000;
    let low = machine.core.random() & !(0b11 << 62) | (0b10 << 62);
    let text = format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    );
    Ok(Value::string(&text))
}

fn now(machine: &mut Machine, _: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Int(machine.core.host.now_millis()))
}

fn nanoseconds(machine: &mut Machine, _: &mut [Value]) -> Outcome<Value> {
    Ok(Value::Int(machine.core.host.now_millis().saturating_mul(1_000_000)))
}
