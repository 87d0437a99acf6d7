//! Directives for numbers: `~d ~x ~r ~,2f ~e ~$`.

use super::pattern::Directive;
use super::spelled::{cardinal, ordinal, roman};
use super::{Run, Values};
use crate::builtin::arithmetic::{float, is_number, pay_for_digits};
use crate::builtin::digits::Decimal;
use crate::error::{Error, Outcome};
use crate::value::Value;
use crate::value::decimal;
use num_bigint::BigInt;
use num_traits::Signed;

impl Run<'_> {
    /// `~d ~b ~o ~x ~r`: an integer with commas, a sign and a width.
    pub(super) fn whole(&mut self, directive: &Directive, values: &mut Values) -> Outcome<()> {
        let mut first = 0;
        let radix = match directive.letter {
            'b' => 2,
            'o' => 8,
            'x' => 16,
            'r' => {
                first = 1;
                match self.number(directive, 0, values)? {
                    Some(radix) => radix,
                    None => return self.spelled(directive, values),
                }
            }
            _ => 10,
        };
        if !(2..=36).contains(&radix) {
            return Err(Error::new("FormatError", format!("`~r` takes a radix from 2 to 36, got {radix}")).into());
        }
        let width = self.number(directive, first, values)?.unwrap_or(0);
        let with = self.character(directive, first + 1, values, ' ')?;
        let comma = self.character(directive, first + 2, values, ',')?;
        let distance = self.number(directive, first + 3, values)?.unwrap_or(3).max(1);
        let number = match self.next(directive, values)? {
            Value::Int(number) => BigInt::from(number),
            Value::BigInt(number) => (*number).clone(),
            // Any other value is printed like `~a`.
            other => {
                let text = self.shown(&other, false)?;
                self.fill(with, width - text.chars().count() as i64)?;
                return self.push(&text);
            }
        };
        pay_for_digits(self.machine, number.bits())?;
        let mut digits = number.magnitude().to_str_radix(radix as u32);
        if directive.colon {
            digits = grouped(&digits, comma, usize::try_from(distance).unwrap_or(usize::MAX));
        }
        let sign = match (number.is_negative(), directive.at) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        self.fill(with, width - (digits.chars().count() + sign.len()) as i64)?;
        self.push(sign)?;
        self.push(&digits)
    }

    /// `~r`: in words; with `:` as an ordinal, with `@` in Roman numerals.
    fn spelled(&mut self, directive: &Directive, values: &mut Values) -> Outcome<()> {
        let value = self.next(directive, values)?;
        let text = match (&value, directive.at, directive.colon) {
            (Value::Int(number), true, old) => roman(*number, old),
            (Value::Int(number), false, true) => Some(ordinal(*number)),
            (Value::Int(number), false, false) => Some(cardinal(*number)),
            _ => None,
        };
        let text = match text {
            Some(text) => text,
            None => self.shown(&value, false)?,
        };
        self.push(&text)
    }

    /// `~5,2f ~e ~$`: a number with a decimal point.
    pub(super) fn real(&mut self, directive: &Directive, values: &mut Values) -> Outcome<()> {
        let mut given = [None; 3];
        for (at, given) in given.iter_mut().enumerate() {
            *given = self.number(directive, at, values)?;
        }
        let with_at = if directive.letter == '$' { 3 } else { 4 };
        let with = self.character(directive, with_at, values, ' ')?;
        let value = self.next(directive, values)?;
        if !is_number(&value) {
            let text = self.shown(&value, false)?;
            return self.push(&text);
        }
        let number = float(&value)?;
        let (width, places) = match directive.letter {
            '$' => (given[2].unwrap_or(0), Some(given[0].unwrap_or(2))),
            _ => (given[0].unwrap_or(0), given[1]),
        };
        let places = places.map(|places| usize::try_from(places).unwrap_or(0));
        self.machine.charge(places.unwrap_or(0) as u64 / 16)?;
        self.machine.reserve((places.unwrap_or(0) as u64).saturating_mul(4))?;
        let decimal = match &value {
            Value::Decimal(exact) => {
                let zeros = exact.fractional_digit_count().unsigned_abs() + decimal::digits(exact);
                pay_for_digits(self.machine, decimal::digits(exact).saturating_mul(4))?;
                self.machine.reserve(zeros.saturating_mul(4))?;
                Decimal::of_exact(exact)
            }
            _ if number.is_finite() => Decimal::of(number.abs()),
            other => {
                let text = self.shown(other, false)?;
                return self.push(&text);
            }
        };
        let mut text = match (directive.letter, places) {
            ('e', places) => exponential(number.abs(), places),
            (_, Some(places)) => decimal.fixed(places),
            (_, None) => shortest(&decimal.fixed(340)),
        };
        if directive.letter == '$' {
            let least = usize::try_from(given[1].unwrap_or(1)).unwrap_or(0).min(1_000);
            let whole = text.find('.').unwrap_or(text.len());
            text.insert_str(0, &"0".repeat(least.saturating_sub(whole)));
        }
        if let Some(0) = places
            && directive.letter == 'f'
        {
            text.push('.');
        }
        let sign = match (number < 0.0, directive.at) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        // If the text exceeds the width, the zero before the point is dropped.
        if directive.letter == 'f'
            && width > 0
            && text.starts_with("0.")
            && text.len() > 2
            && (text.len() + sign.len()) as i64 > width
        {
            text.remove(0);
        }
        self.fill(with, width - (text.len() + sign.len()) as i64)?;
        self.push(sign)?;
        self.push(&text)
    }
}

/// Inserts a comma every `distance` digits, counted from the end.
fn grouped(digits: &str, comma: char, distance: usize) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / distance.max(1));
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(distance) {
            out.push(comma);
        }
        out.push(digit);
    }
    out
}

/// Strips trailing zeros, but keeps one digit after the point.
fn shortest(text: &str) -> String {
    let cut = text.trim_end_matches('0');
    if cut.ends_with('.') { format!("{cut}0") } else { cut.to_string() }
}

/// Formats as `1.5E+3`.
fn exponential(number: f64, places: Option<usize>) -> String {
    let text = match places {
        Some(places) => format!("{number:.*e}", places.min(1_000)),
        None => format!("{number:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') { mantissa.to_string() } else { format!("{mantissa}.0") };
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    format!("{mantissa}E{sign}{exponent}")
}
