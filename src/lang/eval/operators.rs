//! What operators come to for integers, where they stand in a program.

use super::answer::Answer;
use crate::lang::builtin::operators::Operator;

impl Operator {
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
