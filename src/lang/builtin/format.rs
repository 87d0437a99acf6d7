//! `format`: Java's format patterns, such as `%5.2f`. Padding is reserved against the memory limit before it is
//! written.

use super::arguments::{integer, string, take};
use super::arithmetic::{float, is_number, not_a_number, pay_for_digits};
use super::digits::{Decimal, group_thousands};
use super::text::{Builder, excerpt, pay, text_of};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::decimal;
use num_bigint::BigInt;
use num_traits::Signed;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "format",
        &["[pattern & values]"],
        "Formats values by a pattern: `%s` any, `%d` an integer, `%.2f` a number with two decimals, `%e` `%x` `%o` \
         `%b` `%c`, `%n` a newline, `%%`; with width and flags as in `%-5s`, `%05d`, `%,d`. With nil as first \
         argument, Common Lisp's, with `~a ~s ~d ~,2f ~%`.",
        &[
            ("(format \"%s has %d\" \"Ada\" 3)", "\"Ada has 3\""),
            ("(format \"%.2f\" 3.14159)", "\"3.14\""),
            ("(format nil \"~a is ~,1f\" \"x\" 2)", "\"x is 2.0\""),
            ("(format \"%05d|%-4s|%,d\" 42 \"a\" 1234567)", "\"00042|a   |1,234,567\""),
        ],
        format,
    ),
    Builtin::new(
        "String/format",
        &["[pattern & values]"],
        "Like `format`; the values may also be given as one array or vector.",
        &[("(String/format \"%s-%d\" (to-array [\"a\" 1]))", "\"a-1\""), ("(String/format \"%s\" \"a\")", "\"a\"")],
        format_array,
    ),
];

/// A format specifier: one `%` of a pattern.
#[derive(Default)]
struct Specifier {
    /// Argument number, counted from 1; 0 for the next argument.
    index: usize,
    /// `%<s`: reuses the argument of the previous specifier.
    again: bool,
    left: bool,
    plus: bool,
    space: bool,
    zeros: bool,
    grouped: bool,
    brackets: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

fn format(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let pattern = take(arguments, 0);
    // Common Lisp's `format`: nil returns a string, true prints.
    if let (Value::Nil | Value::Bool(_), Some(Value::Str(directives))) = (&pattern, arguments.get(1)) {
        return super::directives::put(machine, &pattern, directives.as_str(), &arguments[2..]);
    }
    let text = formatted(machine, string(&pattern)?, &arguments[1..])?;
    Ok(text.finish())
}

fn format_array(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let [pattern, values @ Value::Vector(_)] = arguments else { return format(machine, arguments) };
    let values = machine.items(std::mem::take(values))?;
    Ok(formatted(machine, string(pattern)?, &values)?.finish())
}

/// Formats values by a pattern.
///
/// # Errors
/// Returns `FormatError` if the pattern is invalid or a specifier lacks an argument, and `TypeError` if a value does
/// not fit its specifier; halts if a resource limit is exceeded.
pub(super) fn formatted(machine: &mut Machine, pattern: &str, values: &[Value]) -> Outcome<Builder> {
    pay(machine, pattern)?;
    let mut builder = Builder::default();
    let mut rest = pattern;
    let mut next = 0;
    let mut last = None;
    while let Some(at) = rest.find('%') {
        machine.charge(1)?;
        builder.push(machine, &rest[..at])?;
        let (specifier, length) = specifier(&rest[at + 1..])?;
        let shown = &rest[at..at + 1 + length];
        rest = &rest[at + 1 + length..];
        match specifier.conversion {
            'n' => builder.push(machine, "\n")?,
            '%' => pad(machine, &mut builder, &specifier, "", "%")?,
            _ => {
                let index = match (specifier.again, specifier.index) {
                    (true, _) => last,
                    (false, 0) => {
                        next += 1;
                        Some(next - 1)
                    }
                    (false, index) => Some(index - 1),
                };
                let Some(value) = index.and_then(|index| values.get(index)) else {
                    return Err(missing(shown, pattern, values.len()).into());
                };
                last = index;
                one(machine, &mut builder, &specifier, shown, value)?;
            }
        }
    }
    builder.push(machine, rest)?;
    Ok(builder)
}

#[cold]
fn missing(specifier: &str, pattern: &str, count: usize) -> Error {
    Error::new(
        "FormatError",
        format!("`{}` in the pattern `{}` has no argument: {count} given", excerpt(specifier), excerpt(pattern)),
    )
    .suggest("give one argument for each `%`; a percent sign is `%%`")
}

/// Parses the specifier after a `%`; returns it with its length in bytes.
fn specifier(text: &str) -> Result<(Specifier, usize), Error> {
    let mut specifier = Specifier::default();
    let mut rest = text;
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    // A number that overflows is clamped; its width exceeds the memory limit anyway.
    let number = |text: &str| text.parse().unwrap_or(usize::MAX);
    let length = digits(rest);
    if length > 0 && rest[length..].starts_with('$') {
        specifier.index = number(&rest[..length]);
        rest = &rest[length + 1..];
    } else if let Some(behind) = rest.strip_prefix('<') {
        specifier.again = true;
        rest = behind;
    }
    while let Some(flag) = rest.chars().next() {
        let known = match flag {
            '-' => &mut specifier.left,
            '+' => &mut specifier.plus,
            ' ' => &mut specifier.space,
            '0' => &mut specifier.zeros,
            ',' => &mut specifier.grouped,
            '(' => &mut specifier.brackets,
            '#' => &mut specifier.alternate,
            _ => break,
        };
        *known = true;
        rest = &rest[1..];
    }
    let length = digits(rest);
    if length > 0 {
        specifier.width = number(&rest[..length]);
        rest = &rest[length..];
    }
    if let Some(behind) = rest.strip_prefix('.') {
        let length = digits(behind);
        specifier.precision = Some(number(&behind[..length]));
        rest = &behind[length..];
    }
    match rest.chars().next() {
        Some(conversion) if "sSdfeExXobBcCgGhHn%".contains(conversion) => {
            specifier.conversion = conversion;
            Ok((specifier, text.len() - rest.len() + 1))
        }
        other => {
            let shown: String = other.into_iter().collect();
            Err(Error::new(
                "FormatError",
                format!("`%{}{shown}` is not a format directive", excerpt(&text[..text.len() - rest.len()])),
            )
            .suggest("supported: `%s %d %f %e %g %x %o %b %c %n`; a percent sign is `%%`"))
        }
    }
}

/// Formats one value by its specifier.
fn one(machine: &mut Machine, builder: &mut Builder, specifier: &Specifier, shown: &str, value: &Value) -> Outcome<()> {
    if value.is_nil() && !matches!(specifier.conversion, 'b' | 'B') {
        return general(machine, builder, specifier, "null");
    }
    match specifier.conversion {
        's' | 'S' => {
            let text = text_of(machine, value)?;
            general(machine, builder, specifier, text.as_str().unwrap_or_default())
        }
        'h' | 'H' => {
            let text = format!("{:x}", java_hash(machine, value)?);
            general(machine, builder, specifier, &text)
        }
        'b' | 'B' => general(machine, builder, specifier, if value.is_truthy() { "true" } else { "false" }),
        'c' | 'C' => {
            let character = match value {
                Value::Char(character) => Some(*character),
                Value::Int(code) => u32::try_from(*code).ok().and_then(char::from_u32),
                _ => None,
            };
            match character {
                Some(character) => general(machine, builder, specifier, character.encode_utf8(&mut [0; 4])),
                None => Err(unfit(shown, "a character", value).into()),
            }
        }
        'd' => whole(machine, builder, specifier, shown, value),
        'x' | 'X' => digits(machine, builder, specifier, shown, value, 16),
        'o' => digits(machine, builder, specifier, shown, value, 8),
        _ if !is_number(value) => Err(unfit(shown, "a number", value).into()),
        _ => floating(machine, builder, specifier, value),
    }
}

/// Computes a hash code: Java's for booleans, characters, integers and strings, that of the printed text for other
/// values.
fn java_hash(machine: &mut Machine, value: &Value) -> Outcome<i32> {
    Ok(match value {
        Value::Bool(value) => {
            if *value {
                1231
            } else {
                1237
            }
        }
        Value::Char(character) => u32::from(*character) as i32,
        Value::Int(number) => (number ^ (number >> 32)) as i32,
        other => {
            let text = text_of(machine, other)?;
            super::text::java_hash(machine, text.as_str().unwrap_or_default())?
        }
    })
}

#[cold]
fn unfit(specifier: &str, wanted: &str, value: &Value) -> Error {
    let error = Error::expected(&format!("{wanted} for `{}`", excerpt(specifier)), value);
    match value {
        Value::Float(_) => error.suggest("`%.0f` and `(math/round x)` round a number, `%s` shows it as it is"),
        Value::Str(_) => error.suggest("`%s` shows any value"),
        _ => match not_a_number(value).suggestion {
            Some(suggestion) => error.suggest(suggestion),
            None => error,
        },
    }
}

/// Appends text, truncated to the precision and padded to the width.
fn general(machine: &mut Machine, builder: &mut Builder, specifier: &Specifier, text: &str) -> Outcome<()> {
    let end = specifier.precision.and_then(|most| text.char_indices().nth(most)).map_or(text.len(), |(at, _)| at);
    if specifier.conversion.is_ascii_uppercase() {
        super::text::ask_for_copy(machine, text, 3)?;
        return pad(machine, builder, specifier, "", &text[..end].to_uppercase());
    }
    pad(machine, builder, specifier, "", &text[..end])
}

/// Appends a sign and text, padded to the width: with spaces before or after both, or with zeros between them.
fn pad(machine: &mut Machine, builder: &mut Builder, specifier: &Specifier, sign: &str, text: &str) -> Outcome<()> {
    let fill = specifier.width.saturating_sub(sign.len() + text.chars().count());
    if !specifier.left && !specifier.zeros {
        builder.push_times(machine, " ", fill)?;
    }
    builder.push(machine, sign)?;
    if !specifier.left && specifier.zeros {
        builder.push_times(machine, "0", fill)?;
    }
    builder.push(machine, text)?;
    if specifier.left {
        builder.push_times(machine, " ", fill)?;
    }
    Ok(())
}

/// Appends a number, given its sign and digits.
fn signed(
    machine: &mut Machine,
    builder: &mut Builder,
    specifier: &Specifier,
    negative: bool,
    mut digits: String,
) -> Outcome<()> {
    if specifier.grouped {
        digits = group_thousands(&digits);
    }
    let sign = match negative {
        true if specifier.brackets => {
            digits.push(')');
            "("
        }
        true => "-",
        false if specifier.plus => "+",
        false if specifier.space => " ",
        false => "",
    };
    pad(machine, builder, specifier, sign, &digits)
}

fn whole(
    machine: &mut Machine,
    builder: &mut Builder,
    specifier: &Specifier,
    shown: &str,
    value: &Value,
) -> Outcome<()> {
    match value {
        Value::BigInt(number) => {
            pay_for_digits(machine, number.bits())?;
            signed(machine, builder, specifier, number.is_negative(), number.magnitude().to_string())
        }
        other => {
            let number = integer(other).map_err(|_| unfit(shown, "an integer", other))?;
            signed(machine, builder, specifier, number < 0, number.unsigned_abs().to_string())
        }
    }
}

/// Appends an integer in hexadecimal or octal; a negative 64-bit integer in two's complement.
fn digits(
    machine: &mut Machine,
    builder: &mut Builder,
    specifier: &Specifier,
    shown: &str,
    value: &Value,
    radix: u32,
) -> Outcome<()> {
    let mut text = match value {
        Value::BigInt(number) => {
            pay_for_digits(machine, number.bits())?;
            number.to_str_radix(radix)
        }
        other => {
            let number = integer(other).map_err(|_| unfit(shown, "an integer", other))?;
            BigInt::from(number as u64).to_str_radix(radix)
        }
    };
    if specifier.alternate {
        text.insert_str(0, if radix == 16 { "0x" } else { "0" });
    }
    if specifier.conversion == 'X' {
        text = text.to_uppercase();
    }
    pad(machine, builder, specifier, "", &text)
}

fn floating(machine: &mut Machine, builder: &mut Builder, specifier: &Specifier, value: &Value) -> Outcome<()> {
    let number = float(value)?;
    if !number.is_finite() && !matches!(value, Value::Decimal(_)) {
        // As in Java: no zero padding, no grouping, and no sign for NaN.
        let signs = number.is_infinite();
        let plain = Specifier {
            zeros: false,
            grouped: false,
            plus: specifier.plus && signs,
            space: specifier.space && signs,
            ..*specifier
        };
        let text = if signs { "Infinity" } else { "NaN" };
        let text = if specifier.conversion.is_ascii_uppercase() { text.to_uppercase() } else { text.to_string() };
        return signed(machine, builder, &plain, number < 0.0, text);
    }
    let precision = specifier.precision.unwrap_or(6);
    machine.charge(precision as u64 / 16)?;
    machine.reserve((precision as u64).saturating_mul(4))?;
    let decimal = match value {
        Value::Decimal(exact) => {
            let zeros = exact.fractional_digit_count().unsigned_abs() + decimal::digits(exact);
            pay_for_digits(machine, decimal::digits(exact) * 4)?;
            machine.reserve(zeros * 4)?;
            Decimal::of_exact(exact)
        }
        _ => Decimal::of(number.abs()),
    };
    let text = match specifier.conversion {
        'f' => decimal.fixed(precision),
        'e' => decimal.scientific(precision),
        'E' => decimal.scientific(precision).to_uppercase(),
        conversion => {
            let text = decimal.general(precision.max(1));
            if conversion == 'G' { text.to_uppercase() } else { text }
        }
    };
    signed(machine, builder, specifier, number.is_sign_negative(), text)
}
