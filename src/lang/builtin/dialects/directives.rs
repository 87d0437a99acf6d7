//! Common Lisp's patterns: `(format nil "~a has ~d~%" x n)`.

use super::super::arguments::text;
use super::super::text::{Builder, excerpt, pay};
use crate::lang::error::{Error, Outcome};
use crate::lang::eval::Machine;
use crate::lang::value::Value;
use crate::lang::value::print::Printer;

/// The values set into a pattern of directives.
///
/// # Errors
/// `FormatError` for directives that are not known or have no argument; limits.
pub(in crate::lang::builtin) fn formatted(machine: &mut Machine, pattern: &str, values: &[Value]) -> Outcome<Builder> {
    pay(machine, pattern)?;
    let mut builder = Builder::default();
    let mut values = values.iter();
    let mut rest = pattern;
    while let Some(at) = rest.find('~') {
        machine.charge(1)?;
        builder.push(machine, &rest[..at])?;
        let behind = &rest[at + 1..];
        let length = behind.find(|c: char| !(c.is_ascii_digit() || matches!(c, ',' | ':' | '@'))).unwrap_or(0);
        let (options, behind) = behind.split_at(length);
        let directive = behind.chars().next().unwrap_or('~');
        rest = &behind[directive.len_utf8().min(behind.len())..];
        if let '%' | '&' | '~' = directive {
            builder.push(machine, if directive == '~' { "~" } else { "\n" })?;
            continue;
        }
        let Some(value) = values.next() else {
            return Err(
                Error::new("FormatError", format!("`~{directive}` in `{}` has no argument", excerpt(pattern))).into()
            );
        };
        match (directive.to_ascii_lowercase(), value) {
            ('f', Value::Float(_) | Value::Int(_)) => {
                let number = if let Value::Int(number) = value { *number as f64 } else { as_float(value) };
                let places = options.split(',').nth(1).and_then(|places| places.parse::<usize>().ok());
                let shown = match places {
                    Some(places) => format!("{number:.*}", places.min(300)),
                    None => text(machine, value)?,
                };
                builder.push(machine, &shown)?;
            }
            ('x', Value::Int(number)) => builder.push(machine, &format!("{number:x}"))?,
            ('s', value) => {
                let mut printer = Printer::new(super::super::arguments::room(machine), true);
                printer.print(value, machine)?;
                builder.push(machine, &printer.into_text())?;
            }
            ('a' | 'd' | 'f' | 'c', Value::Nil) => builder.push(machine, "nil")?,
            ('a' | 'd' | 'f' | 'c' | 'x', value) => builder.push_value(machine, value)?,
            _ => {
                return Err(Error::new("FormatError", format!("`~{directive}` in `{}` is no directive here", excerpt(pattern)))
                    .suggest("there are `~a ~s ~d ~,2f ~x ~% ~~`; Clojure's own pattern is `(format \"%s is %.2f\" name n)`, and lists are joined with `(str/join \", \" xs)`")
                    .into());
            }
        }
    }
    builder.push(machine, rest)?;
    Ok(builder)
}

fn as_float(value: &Value) -> f64 {
    match value {
        Value::Float(number) => *number,
        _ => 0.0,
    }
}
