//! Bounds of numbers, compared exactly: no digit is lost, and a text is a number only if every reader takes it for one.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// Most digits of an exponent.
const LONGEST_EXPONENT: usize = 6;

/// A bound that a number has to keep.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    kind: BoundKind,
    /// The number as messages show it.
    text: String,
    number: Decimal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoundKind {
    AtMost,
    AtLeast,
    MoreThan,
}

impl BoundKind {
    pub(super) const ALL: [(BoundKind, &'static str); 3] =
        [(BoundKind::AtLeast, "at_least"), (BoundKind::MoreThan, "more_than"), (BoundKind::AtMost, "at_most")];
}

impl Bound {
    /// Reads a bound of a configuration; `None` if it is not a finite number.
    pub(super) fn new(kind: BoundKind, value: &Value) -> Option<Bound> {
        let text = match value {
            Value::Number(number) if number.is_f64() => {
                number.as_f64().filter(|number| number.is_finite())?.to_string()
            }
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        let number = Decimal::read(&text)?;
        Some(Bound { kind, text, number })
    }

    /// Returns why a value does not keep the bound, as a clause without its subject.
    pub(super) fn failed(&self, value: &str) -> Option<String> {
        let Some(number) = Decimal::read(value) else { return Some(format!("is not a number {self}")) };
        let Bound { kind, text, number: bound } = self;
        match (kind, number.cmp(bound)) {
            (BoundKind::AtMost, Ordering::Greater) => Some(format!("is more than {text}")),
            (BoundKind::AtLeast, Ordering::Less) => Some(format!("is less than {text}")),
            (BoundKind::MoreThan, Ordering::Less | Ordering::Equal) => Some(format!("is not more than {text}")),
            _ => None,
        }
    }
}

/// Formats the bound behind "is not a number" and "has to be".
impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.kind {
            BoundKind::AtMost => "of at most",
            BoundKind::AtLeast => "of at least",
            BoundKind::MoreThan => "of more than",
        };
        write!(formatter, "{words} {}", self.text)
    }
}

/// A decimal number: 0.DIGITS × 10^`point`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    /// The digits without zeros at either end; empty for zero.
    digits: String,
    point: i64,
}

impl Decimal {
    /// Reads a number as JSON writes it. Others, such as `+5`, ` 5`, `05`, `0x5`, `1_000`, `1,000` and `NaN`, are read
    /// differently by different readers.
    fn read(text: &str) -> Option<Decimal> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (mantissa, ""),
        };
        let is_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_whole = whole == "0" || !whole.is_empty() && !whole.starts_with('0');
        if !is_whole || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let shift = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if shift.is_empty() || shift.len() > LONGEST_EXPONENT || !is_digits(shift) {
            return None;
        }
        let exponent: i64 = exponent.parse().ok()?;
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0');
        let leading = all.len() - digits.len();
        let point = i64::try_from(whole.len()).ok()? - i64::try_from(leading).ok()? + exponent;
        let digits = digits.trim_end_matches('0').to_owned();
        let is_zero = digits.is_empty();
        Some(Decimal { is_negative: !is_zero && text.starts_with('-'), digits, point: if is_zero { 0 } else { point } })
    }

    fn cmp(&self, other: &Decimal) -> Ordering {
        let sign = |number: &Decimal| match (number.digits.is_empty(), number.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = (self.point, &self.digits).cmp(&(other.point, &other.digits));
        sign(self).cmp(&sign(other)).then(if self.is_negative { size.reverse() } else { size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_compared_exactly() {
        let ordered = [
            "-1e3",
            "-100.5",
            "-100",
            "-0.5",
            "0",
            "0.000001",
            "0.5",
            "5e-1",
            "9.99",
            "10",
            "1e1",
            "99",
            "1E+2",
            "9007199254740992",
            "9007199254740993",
        ];
        let numbers: Vec<Decimal> = ordered.iter().map(|text| Decimal::read(text).expect("a number")).collect();
        for (index, number) in numbers.iter().enumerate() {
            assert!(numbers[index..].iter().all(|later| number.cmp(later) != Ordering::Greater), "{}", ordered[index]);
        }
        let same = |one: &str, other: &str| Decimal::read(one) == Decimal::read(other);
        assert!(same("10", "1e1") && same("0.5", "5e-1") && same("-0", "0.00") && same("12.50", "12.5"));
        assert!(!same("9007199254740992", "9007199254740993"));
    }

    #[test]
    fn other_spellings_are_no_numbers() {
        for text in [
            "",
            " ",
            "+5",
            " 5",
            "5 ",
            "5\n",
            "05",
            "-05",
            "00",
            "0x5",
            "1_000",
            "1,000",
            "5.",
            ".5",
            "-",
            "-.5",
            "1e",
            "1e+",
            "e5",
            "NaN",
            "nan",
            "inf",
            "Infinity",
            "-inf",
            "1e99999999999",
            "\u{665}",
            "\u{ff15}",
            "5M",
            "5%",
            "$5",
            "5 EUR",
            "true",
            "null",
            "--5",
            "1.2.3",
            "1e1.5",
        ] {
            assert!(Decimal::read(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn bounds_are_kept_or_named() {
        let bound = |kind, value: Value| Bound::new(kind, &value).expect("a number");
        let most = bound(BoundKind::AtMost, json!(100.0));
        assert_eq!(most.failed("100"), None);
        assert_eq!(most.failed("100.00000000000000000001").as_deref(), Some("is more than 100"));
        assert_eq!(most.failed("x").as_deref(), Some("is not a number of at most 100"));
        let least = bound(BoundKind::AtLeast, json!(-2));
        assert_eq!((least.failed("-2"), least.failed("-2.01").as_deref()), (None, Some("is less than -2")));
        let positive = bound(BoundKind::MoreThan, json!(0));
        assert_eq!((positive.failed("1e-9"), positive.failed("-0.0").as_deref()), (None, Some("is not more than 0")));
        assert!(Bound::new(BoundKind::AtMost, &json!("5")).is_none());
    }
}
