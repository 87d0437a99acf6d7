//! Multiple values, numeric and string functions of other Lisps.

use super::super::arguments::{integer, string, take};
use super::super::text::{Builder, index_of_byte, pay};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "values",
        &["[& xs]"],
        "Multiple values as a vector, a single one as itself, for `let-values` and `multiple-value-bind`.",
        &[("(values 1 2)", "[1 2]"), ("(values 1)", "1")],
        |_, arguments| {
            Ok(match arguments {
                [only] => std::mem::take(only),
                more => Value::vector(more.iter_mut().map(std::mem::take).collect()),
            })
        },
    ),
    Builtin::new(
        "call-with-values",
        &["[producer consumer]"],
        "Calls the consumer with the values returned by the producer.",
        &[("(call-with-values (lambda () (values 1 2)) +)", "3")],
        |machine, arguments| {
            let produced = machine.call(&arguments[0], &mut [])?;
            let mut values = match produced {
                Value::Vector(_) => machine.items(produced)?,
                one => vec![one],
            };
            let consumer = take(arguments, 1);
            machine.call(&consumer, &mut values)
        },
    ),
    Builtin::new(
        "square",
        &["[x]"],
        "The number times itself.",
        &[("(square 5)", "25"), ("(square 1.5)", "2.25")],
        |_, arguments| match &arguments[0] {
            Value::Int(number) => number.checked_mul(*number).map(Value::Int).ok_or_else(|| {
                Error::new("IntegerOverflow", "the square does not fit into 64 bits")
                    .suggest("`(*' x x)` gives a big integer")
                    .into()
            }),
            Value::Float(number) => Ok(Value::Float(number * number)),
            other => Err(Error::expected("a number", other).into()),
        },
    ),
    Builtin::new("isqrt", &["[n]"], "The integer part of the square root.", &[("(isqrt 17)", "4")], |_, arguments| {
        match u64::try_from(integer(&arguments[0])?) {
            Ok(number) => Ok(Value::Int(number.isqrt() as i64)),
            Err(_) => Err(Error::expected("an integer that is not negative", &arguments[0]).into()),
        }
    }),
    Builtin::new(
        "ash",
        &["[n shift]"],
        "The integer with its bits shifted left, or right for a negative shift.",
        &[("(ash 1 4)", "16"), ("(ash 16 -2)", "4")],
        |_, arguments| {
            let (number, shift) = (integer(&arguments[0])?, integer(&arguments[1])?);
            if shift <= 0 {
                return Ok(Value::Int(number >> shift.unsigned_abs().min(63)));
            }
            let factor = u32::try_from(shift).ok().and_then(|shift| 2_i64.checked_pow(shift));
            match factor.and_then(|factor| number.checked_mul(factor)) {
                Some(shifted) => Ok(Value::Int(shifted)),
                None => Err(Error::new("IntegerOverflow", "the shifted integer does not fit into 64 bits").into()),
            }
        },
    ),
    Builtin::new(
        "number-sequence",
        &["[from to]", "[from to step]"],
        "The numbers from `from` to `to`, inclusive.",
        &[("(number-sequence 1 4)", "(1 2 3 4)"), ("(number-sequence 5 1 -2)", "(5 3 1)")],
        |machine, arguments| {
            let (mut next, to) = (integer(&arguments[0])?, integer(&arguments[1])?);
            let step = arguments.get(2).map_or(Ok(1), integer)?;
            let mut numbers = Vec::new();
            while step > 0 && next <= to || step < 0 && next >= to {
                machine.charge(1)?;
                numbers.push(Value::Int(next));
                machine.grown(numbers.len())?;
                let Some(following) = next.checked_add(step) else { break };
                next = following;
            }
            Ok(Value::list(numbers))
        },
    ),
    Builtin::new(
        "string-pad-left",
        &["[s length]", "[s length char]"],
        "The string padded, or truncated, on the left to that length.",
        &[("(string-pad-left \"5\" 3 #\\0)", "\"005\""), ("(string-pad-left \"12345\" 3)", "\"345\"")],
        |machine, arguments| padded(machine, arguments, true),
    ),
    Builtin::new(
        "string-pad-right",
        &["[s length]", "[s length char]"],
        "The string padded, or truncated, on the right to that length.",
        &[("(string-pad-right \"ab\" 4 #\\.)", "\"ab..\"")],
        |machine, arguments| padded(machine, arguments, false),
    ),
    Builtin::new(
        "string<=?",
        &["[a b]"],
        "True if `a` ≤ `b` in alphabetical order, by code point.",
        &[("(string<=? \"a\" \"b\")", "true")],
        |_, arguments| Ok(Value::Bool(string(&arguments[0])? <= string(&arguments[1])?)),
    ),
    Builtin::new(
        "string>=?",
        &["[a b]"],
        "True if `a` ≥ `b` in alphabetical order, by code point.",
        &[("(string>=? \"a\" \"b\")", "false")],
        |_, arguments| Ok(Value::Bool(string(&arguments[0])? >= string(&arguments[1])?)),
    ),
    Builtin::new(
        "char<?",
        &["[a b]"],
        "True if the first character is before the second.",
        &[("(char<? #\\a #\\b)", "true")],
        |_, arguments| match (&arguments[0], &arguments[1]) {
            (Value::Char(one), Value::Char(two)) => Ok(Value::Bool(one < two)),
            (Value::Char(_), other) | (other, _) => Err(Error::expected("a character", other).into()),
        },
    ),
    Builtin::new(
        "string-prefix?",
        &["[prefix s]"],
        "True if the longer string starts with the shorter one: argument order varies by dialect.",
        &[("(string-prefix? \"he\" \"hello\")", "true"), ("(string-prefix? \"hello\" \"he\")", "true")],
        |machine, arguments| {
            let (held, part) = text_and_part(machine, arguments)?;
            Ok(Value::Bool(held.starts_with(part)))
        },
    ),
    Builtin::new(
        "string-suffix?",
        &["[suffix s]"],
        "True if the longer string ends with the shorter one: argument order varies by dialect.",
        &[("(string-suffix? \"lo\" \"hello\")", "true")],
        |machine, arguments| {
            let (held, part) = text_and_part(machine, arguments)?;
            Ok(Value::Bool(held.ends_with(part)))
        },
    ),
    Builtin::new(
        "string-search",
        &["[part s]"],
        "The index of the shorter string in the longer one, or nil.",
        &[("(string-search \"ll\" \"hello\")", "2"), ("(string-search \"x\" \"hello\")", "nil")],
        |machine, arguments| {
            let (held, part) = text_and_part(machine, arguments)?;
            Ok(held.find(part).map_or(Value::Nil, |at| Value::Int(index_of_byte(held, at))))
        },
    ),
    Builtin::new("void", &["[& xs]"], "Nil, for any arguments.", &[("(void 1 2)", "nil")], |_, _| Ok(Value::Nil)),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("string-prefix-p", "string-prefix?"),
    ("string-suffix-p", "string-suffix?"),
    ("arithmetic-shift", "ash"),
    ("exact-integer-sqrt", "isqrt"),
    ("string-not-greaterp", "string<=?"),
    ("char<", "char<?"),
    ("ignore", "void"),
];

/// Returns the text and the part to search for: the shorter argument, whatever the order.
fn text_and_part<'v>(machine: &mut Machine, arguments: &'v [Value]) -> Outcome<(&'v str, &'v str)> {
    let (first, second) = (string(&arguments[0])?, string(&arguments[1])?);
    pay(machine, first)?;
    pay(machine, second)?;
    Ok(if first.len() > second.len() { (first, second) } else { (second, first) })
}

fn padded(machine: &mut Machine, arguments: &mut [Value], left: bool) -> Outcome<Value> {
    let value = take(arguments, 0);
    let held = string(&value)?;
    pay(machine, held)?;
    let length = integer(&arguments[1])?.max(0) as usize;
    let filler = match arguments.get(2) {
        None => ' ',
        Some(Value::Char(filler)) => *filler,
        Some(other) => match other.as_str().and_then(|one| one.chars().next()) {
            Some(filler) => filler,
            None => return Err(Error::expected("a character to fill up with", other).into()),
        },
    };
    let count = held.chars().count();
    let mut builder = Builder::default();
    let missing = length.saturating_sub(count);
    let filling = filler.to_string();
    if left {
        builder.push_times(machine, &filling, missing)?;
        let cut: String = held.chars().skip(count.saturating_sub(length)).collect();
        builder.push(machine, &cut)?;
    } else {
        let cut: String = held.chars().take(length).collect();
        builder.push(machine, &cut)?;
        builder.push_times(machine, &filling, missing)?;
    }
    Ok(builder.finish())
}
