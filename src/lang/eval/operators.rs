//! What the commonest functions of numbers come to for integers. The evaluator does them where they stand in a
//! program; everything else about these functions, and every other kind of number, is in `numbers` and
//! `comparison`.

use super::answer::Answer;
use crate::lang::builtin::Builtin;

/// An operation on one or two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `(+ a b)`
    Add,
    /// `(- a b)`
    Subtract,
    /// `(* a b)`
    Multiply,
    /// `(quot a b)`
    Quotient,
    /// `(rem a b)`
    Remainder,
    /// `(mod a b)`
    Modulo,
    /// `(< a b)`
    Less,
    /// `(<= a b)`
    LessOrEqual,
    /// `(> a b)`
    Greater,
    /// `(>= a b)`
    GreaterOrEqual,
    /// `(= a b)`
    Equal,
    /// `(== a b)`
    SameNumber,
    /// `(inc a)`
    Increment,
    /// `(dec a)`
    Decrement,
    /// `(zero? a)`
    IsZero,
    /// `(pos? a)`
    IsPositive,
    /// `(neg? a)`
    IsNegative,
    /// `(even? a)`
    IsEven,
    /// `(odd? a)`
    IsOdd,
}

impl Operator {
    /// What a builtin does with that many integers, where that is one of these.
    pub fn of(builtin: &Builtin, arguments: usize) -> Option<Operator> {
        Some(match (builtin.name, arguments) {
            ("+", 2) => Operator::Add,
            ("-", 2) => Operator::Subtract,
            ("*", 2) => Operator::Multiply,
            ("quot", 2) => Operator::Quotient,
            ("rem", 2) => Operator::Remainder,
            ("mod", 2) => Operator::Modulo,
            ("<", 2) => Operator::Less,
            ("<=", 2) => Operator::LessOrEqual,
            (">", 2) => Operator::Greater,
            (">=", 2) => Operator::GreaterOrEqual,
            ("=", 2) => Operator::Equal,
            ("==", 2) => Operator::SameNumber,
            ("inc", 1) => Operator::Increment,
            ("dec", 1) => Operator::Decrement,
            ("zero?", 1) => Operator::IsZero,
            ("pos?", 1) => Operator::IsPositive,
            ("neg?", 1) => Operator::IsNegative,
            ("even?", 1) => Operator::IsEven,
            ("odd?", 1) => Operator::IsOdd,
            _ => return None,
        })
    }

    /// The result; `None` where it is no 64-bit integer, or there is none. Operators of one integer take no
    /// notice of the second.
    #[inline(always)]
    pub(super) fn apply(self, a: i64, b: i64) -> Option<Answer> {
        let truth = |holds: bool| Some(Answer::truth(holds));
        match self {
            Operator::Add => a.checked_add(b).map(Answer::Int),
            Operator::Subtract => a.checked_sub(b).map(Answer::Int),
            Operator::Multiply => a.checked_mul(b).map(Answer::Int),
            Operator::Quotient => a.checked_div(b).map(Answer::Int),
            Operator::Remainder => a.checked_rem(b).map(Answer::Int),
            Operator::Modulo => {
                let rest = a.checked_rem(b)?;
                Some(Answer::Int(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }))
            }
            Operator::Less => truth(a < b),
            Operator::LessOrEqual => truth(a <= b),
            Operator::Greater => truth(a > b),
            Operator::GreaterOrEqual => truth(a >= b),
            Operator::Equal | Operator::SameNumber => truth(a == b),
            Operator::Increment => a.checked_add(1).map(Answer::Int),
            Operator::Decrement => a.checked_sub(1).map(Answer::Int),
            Operator::IsZero => truth(a == 0),
            Operator::IsPositive => truth(a > 0),
            Operator::IsNegative => truth(a < 0),
            Operator::IsEven => truth(a & 1 == 0),
            Operator::IsOdd => truth(a & 1 != 0),
        }
    }
}
