//! Integer fast paths of the most common numeric functions, which the evaluator executes inline. All other behaviour of
//! these functions, and every other kind of number, is in `numbers` and `comparison`.

use crate::machine::{Frame, Machine, Walked};
use crate::native::{Builtin, Intrinsic};
use crate::node::Operation;

/// Evaluates an operation.
pub type Run = fn(&mut Machine, &Frame<'_>, &Operation) -> Walked;

/// An operation on one or two integers. The unary operators follow the binary ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
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
    /// All operators, in declaration order.
    pub const ALL: [Operator; 19] = [
        Operator::Add,
        Operator::Subtract,
        Operator::Multiply,
        Operator::Quotient,
        Operator::Remainder,
        Operator::Modulo,
        Operator::Less,
        Operator::LessOrEqual,
        Operator::Greater,
        Operator::GreaterOrEqual,
        Operator::Equal,
        Operator::SameNumber,
        Operator::Increment,
        Operator::Decrement,
        Operator::IsZero,
        Operator::IsPositive,
        Operator::IsNegative,
        Operator::IsEven,
        Operator::IsOdd,
    ];

    /// Returns the operator that a builtin represents when called with `arguments` arguments, if any.
    pub fn of(builtin: &Builtin, arguments: usize) -> Option<Operator> {
        match builtin.intrinsic {
            Some(Intrinsic::Operator(count, operator)) if count == arguments => Some(operator),
            _ => None,
        }
    }
}
