//! Keys that are easily confused: numbers of several types, strings in several cases, names of several types.

use super::Choices;
use std::cmp::Ordering;
use std::fmt::{Display, Formatter, Result};

/// A key of a map, or a member of a set.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    Int(i64),
    Big(i64),
    Double(i64),
    /// `-0.0`
    MinusZero,
    /// `1.0M`
    Decimal(i64),
    /// `1.00M`
    Longer(i64),
    Text(&'static str),
    Keyword(&'static str),
    Nil,
    Vector(i64),
    List(i64),
}

const TEXTS: &[&str] = &["a", "A", "b", "B", "ab", "AB", "aB", "c"];

/// An ordering of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// `compare`, for numbers.
    Natural,
    /// `>`, for numbers.
    Greater,
    /// By the remainder modulo 3, for numbers.
    Rest,
    /// Case-insensitive, for strings.
    Folded,
}

impl Order {
    pub fn any(choices: &mut impl Choices) -> Order {
        choices.one_of(&[Order::Natural, Order::Greater, Order::Rest, Order::Folded])
    }

    /// Returns the comparator as program text.
    pub fn comparator(self) -> &'static str {
        match self {
            Order::Natural => "compare",
            Order::Greater => ">",
            Order::Rest => "(fn [a b] (compare (mod a 3) (mod b 3)))",
            Order::Folded => "(fn [a b] (compare (str/lower-case a) (str/lower-case b)))",
        }
    }

    pub fn compare(self, left: &Key, right: &Key) -> Ordering {
        match self {
            Order::Natural => left.number().cmp(&right.number()),
            Order::Greater => right.number().cmp(&left.number()),
            Order::Rest => left.number().rem_euclid(3).cmp(&right.number().rem_euclid(3)),
            Order::Folded => left.text().to_lowercase().cmp(&right.text().to_lowercase()),
        }
    }
}

impl Key {
    /// Returns any key, or one that the ordering can compare.
    pub fn any(choices: &mut impl Choices, order: Option<Order>) -> Key {
        match order {
            Some(Order::Folded) => Key::Text(choices.one_of(TEXTS)),
            Some(_) => Key::of_number(choices),
            None => match choices.pick(8) {
                0 => Key::Text(choices.one_of(TEXTS)),
                1 => Key::Keyword(choices.one_of(TEXTS)),
                2 => Key::Nil,
                3 => Key::Vector(choices.pick(3) as i64),
                4 => Key::List(choices.pick(3) as i64),
                _ => Key::of_number(choices),
            },
        }
    }

    fn of_number(choices: &mut impl Choices) -> Key {
        let number = choices.pick(7) as i64;
        match choices.pick(6) {
            0 => Key::Big(number),
            1 => Key::Double(number),
            2 => Key::MinusZero,
            3 => Key::Decimal(number),
            4 => Key::Longer(number),
            _ => Key::Int(number),
        }
    }

    /// Returns true if `=` considers the keys equal.
    pub fn equals(&self, other: &Key) -> bool {
        use Key::*;
        match (self, other) {
            (Int(a) | Big(a), Int(b) | Big(b)) => a == b,
            (Double(_) | MinusZero, Double(_) | MinusZero) => self.number() == other.number(),
            (Decimal(a) | Longer(a), Decimal(b) | Longer(b)) => a == b,
            (Vector(a) | List(a), Vector(b) | List(b)) => a == b,
            (a, b) => a == b,
        }
    }

    fn number(&self) -> i64 {
        match self {
            Key::Int(number) | Key::Big(number) | Key::Double(number) | Key::Decimal(number) | Key::Longer(number) => {
                *number
            }
            _ => 0,
        }
    }

    fn text(&self) -> &str {
        match self {
            Key::Text(text) | Key::Keyword(text) => text,
            _ => "",
        }
    }

    /// Returns the key as program text.
    pub fn written(&self) -> String {
        match self {
            Key::List(_) => format!("'{self}"),
            key => key.to_string(),
        }
    }
}

impl Display for Key {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Key::Int(number) => write!(out, "{number}"),
            Key::Big(number) => write!(out, "{number}N"),
            Key::Double(number) => write!(out, "{number}.0"),
            Key::MinusZero => write!(out, "-0.0"),
            Key::Decimal(number) => write!(out, "{number}.0M"),
            Key::Longer(number) => write!(out, "{number}.00M"),
            Key::Text(text) => write!(out, "{text:?}"),
            Key::Keyword(name) => write!(out, ":{name}"),
            Key::Nil => write!(out, "nil"),
            Key::Vector(number) => write!(out, "[{number}]"),
            Key::List(number) => write!(out, "({number})"),
        }
    }
}
