//! Decimal digits of doubles, rounded as in Java: from the shortest digits that denote the double, half up.

/// A nonnegative finite number as `0.d₁d₂d₃… × 10^point`.
pub struct Decimal {
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    /// Creates the shortest decimal that denotes a double.
    pub fn of(number: f64) -> Decimal {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        if number == 0.0 {
            return Decimal { digits: Vec::new(), point: 0 };
        }
        Decimal {
            digits: mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect(),
            point: exponent.parse::<i64>().unwrap_or(0) + 1,
        }
    }

    /// Creates the decimal of an exact decimal's absolute value.
    pub fn of_exact(number: &bigdecimal::BigDecimal) -> Decimal {
        let (unscaled, scale) = number.as_bigint_and_scale();
        let text = unscaled.magnitude().to_string();
        if text == "0" {
            return Decimal { digits: Vec::new(), point: 0 };
        }
        let point = text.len() as i64 - scale;
        Decimal { digits: text.bytes().map(|digit| digit - b'0').collect(), point }
    }

    /// Rounds to `keep` digits.
    fn rounded(&self, keep: i64) -> Decimal {
        let (mut digits, mut point) = (self.digits.clone(), self.point);
        let Ok(keep) = usize::try_from(keep) else { return Decimal { digits: Vec::new(), point } };
        if keep >= digits.len() {
            return Decimal { digits, point };
        }
        let up = digits[keep] >= 5;
        digits.truncate(keep);
        if up {
            while digits.last() == Some(&9) {
                digits.pop();
            }
            match digits.last_mut() {
                Some(last) => *last += 1,
                None => {
                    digits.push(1);
                    point += 1;
                }
            }
        }
        Decimal { digits, point }
    }

    /// Returns the digit at an index from the first digit; 0 outside the stored digits.
    fn digit(&self, place: i64) -> char {
        let digit = usize::try_from(place).ok().and_then(|place| self.digits.get(place)).copied().unwrap_or(0);
        char::from(b'0' + digit)
    }

    /// Formats with `precision` digits after the point: `%f`.
    pub fn fixed(&self, precision: usize) -> String {
        let rounded = self.rounded(self.point.saturating_add(precision as i64));
        let point = if rounded.digits.is_empty() { 0 } else { rounded.point };
        let mut out: String = (0..point).map(|place| rounded.digit(place)).collect();
        if out.is_empty() {
            out.push('0');
        }
        if precision > 0 {
            out.push('.');
            out.extend((point..point + precision as i64).map(|place| rounded.digit(place)));
        }
        out
    }

    /// Formats with one digit before the point and an exponent: `%e`.
    pub fn scientific(&self, precision: usize) -> String {
        let rounded = self.rounded((precision as i64).saturating_add(1));
        let exponent = if rounded.digits.is_empty() { 0 } else { rounded.point - 1 };
        let mut out = String::from(rounded.digit(0));
        if precision > 0 {
            out.push('.');
            out.extend((1..=precision as i64).map(|place| rounded.digit(place)));
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("e{sign}{:02}", exponent.abs()));
        out
    }

    /// Formats with `precision` significant digits, using an exponent only for magnitudes far from 1: `%g`.
    pub fn general(&self, precision: usize) -> String {
        let rounded = self.rounded(precision as i64);
        let digits = precision as i64;
        match rounded.point {
            _ if rounded.digits.is_empty() => self.fixed(precision - 1),
            point if point > -4 && point <= digits => self.fixed((digits - point) as usize),
            _ => self.scientific(precision - 1),
        }
    }
}

/// Inserts a comma between groups of three digits before the point.
pub fn group_thousands(digits: &str) -> String {
    let whole = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let mut out = String::with_capacity(digits.len() + whole / 3);
    for (at, digit) in digits[..whole].chars().enumerate() {
        if at > 0 && (whole - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(&digits[whole..]);
    out
}
