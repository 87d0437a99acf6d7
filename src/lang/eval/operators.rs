//! Inline evaluation of calls to operator builtins on integers.
//!
//! A specialized function exists for each operator and kind of operands. It is chosen at compile time, so that the
//! only check at run time is whether the operands are integers.

use super::Machine;
use crate::error::Outcome;
use crate::machine::Frame;
use crate::machine::{Answer, Walked};
use crate::node::{Node, Operation};
use crate::operators::{Operator, Run};
use crate::value::Value;

impl Operator {
    /// Returns the function that evaluates the operator on operands of these kinds.
    pub fn run_on(self, left: &Node, right: &Node) -> Run {
        let is_unary = self.operands() == 1;
        match (left, right) {
            (Node::Local(_), _) if is_unary => unary::<Slot>(self),
            _ if is_unary => unary::<Computed>(self),
            (Node::Local(_), Node::Local(_)) => binary::<Slot, Slot>(self),
            (Node::Local(_), Node::Constant(Value::Int(_))) => binary::<Slot, Number>(self),
            (Node::Local(_), _) => binary::<Slot, Computed>(self),
            (Node::Constant(Value::Int(_)), Node::Local(_)) => binary::<Number, Slot>(self),
            (Node::Constant(Value::Int(_)), _) => binary::<Number, Computed>(self),
            (_, Node::Local(_)) => binary::<Computed, Slot>(self),
            (_, Node::Constant(Value::Int(_))) => binary::<Computed, Number>(self),
            _ => binary::<Computed, Computed>(self),
        }
    }

    /// The number of operands.
    fn operands(self) -> usize {
        if self < Operator::Increment { 2 } else { 1 }
    }

    /// Applies the operator. Returns `None` if the result is undefined or does not fit 64 bits. Unary operators
    /// ignore `b`.
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

fn unary<A: Operand>(operator: Operator) -> Run {
    match operator {
        Operator::Increment => Machine::operate::<{ Operator::Increment as u8 }, A, Nothing>,
        Operator::Decrement => Machine::operate::<{ Operator::Decrement as u8 }, A, Nothing>,
        Operator::IsZero => Machine::operate::<{ Operator::IsZero as u8 }, A, Nothing>,
        Operator::IsPositive => Machine::operate::<{ Operator::IsPositive as u8 }, A, Nothing>,
        Operator::IsNegative => Machine::operate::<{ Operator::IsNegative as u8 }, A, Nothing>,
        Operator::IsEven => Machine::operate::<{ Operator::IsEven as u8 }, A, Nothing>,
        _ => Machine::operate::<{ Operator::IsOdd as u8 }, A, Nothing>,
    }
}

fn binary<A: Operand, B: Operand>(operator: Operator) -> Run {
    match operator {
        Operator::Add => Machine::operate::<{ Operator::Add as u8 }, A, B>,
        Operator::Subtract => Machine::operate::<{ Operator::Subtract as u8 }, A, B>,
        Operator::Multiply => Machine::operate::<{ Operator::Multiply as u8 }, A, B>,
        Operator::Quotient => Machine::operate::<{ Operator::Quotient as u8 }, A, B>,
        Operator::Remainder => Machine::operate::<{ Operator::Remainder as u8 }, A, B>,
        Operator::Modulo => Machine::operate::<{ Operator::Modulo as u8 }, A, B>,
        Operator::Less => Machine::operate::<{ Operator::Less as u8 }, A, B>,
        Operator::LessOrEqual => Machine::operate::<{ Operator::LessOrEqual as u8 }, A, B>,
        Operator::Greater => Machine::operate::<{ Operator::Greater as u8 }, A, B>,
        Operator::GreaterOrEqual => Machine::operate::<{ Operator::GreaterOrEqual as u8 }, A, B>,
        Operator::Equal => Machine::operate::<{ Operator::Equal as u8 }, A, B>,
        _ => Machine::operate::<{ Operator::SameNumber as u8 }, A, B>,
    }
}

/// A kind of operand: a compile-time strategy for reading it.
trait Operand {
    /// Reads or evaluates the operand.
    fn find(machine: &mut Machine, frame: &Frame<'_>, node: &Node) -> Found;
}

/// The result of reading an operand.
enum Found {
    Integer(i64),
    /// Not known to be an integer, and not evaluated yet.
    Unread,
    /// Evaluated, and not an integer.
    Other(Walked),
}

/// A slot of the frame.
struct Slot;

/// An integer literal.
struct Number;

/// Any other node.
struct Computed;

/// The missing second operand of a unary operator.
struct Nothing;

impl Operand for Slot {
    #[inline(always)]
    fn find(machine: &mut Machine, frame: &Frame<'_>, node: &Node) -> Found {
        let Node::Local(slot) = node else { return Found::Unread };
        match machine.stack[frame.base + *slot as usize] {
            Value::Int(number) => Found::Integer(number),
            _ => Found::Unread,
        }
    }
}

impl Operand for Number {
    #[inline(always)]
    fn find(_: &mut Machine, _: &Frame<'_>, node: &Node) -> Found {
        match node {
            Node::Constant(Value::Int(number)) => Found::Integer(*number),
            _ => Found::Unread,
        }
    }
}

impl Operand for Computed {
    #[inline(always)]
    fn find(machine: &mut Machine, frame: &Frame<'_>, node: &Node) -> Found {
        let walked = match node {
            Node::Operate(operation) => (operation.run)(machine, frame, operation),
            Node::Call(call) => machine.call_node(frame, call),
            Node::CallBuiltin(_) => machine.compute(frame, node),
            node => machine.eval(frame, node),
        };
        match walked {
            Ok(Answer::Int(number)) => Found::Integer(number),
            other => Found::Other(other),
        }
    }
}

impl Operand for Nothing {
    #[inline(always)]
    fn find(_: &mut Machine, _: &Frame<'_>, _: &Node) -> Found {
        Found::Integer(0)
    }
}

impl Machine {
    /// Evaluates an operation. Operands that are not integers are handled by other functions in tail position, so
    /// that the fast path has no registers to save.
    fn operate<const OPERATOR: u8, A: Operand, B: Operand>(
        &mut self,
        frame: &Frame<'_>,
        operation: &Operation,
    ) -> Walked {
        let a = match A::find(self, frame, &operation.left) {
            Found::Integer(a) => a,
            Found::Unread => return self.operate_apart(frame, operation),
            Found::Other(left) => return self.operate_with(frame, operation, left?),
        };
        let b = match B::find(self, frame, &operation.right) {
            Found::Integer(b) => b,
            Found::Unread => return self.operate_with(frame, operation, Answer::Int(a)),
            Found::Other(right) => return self.run_operation(frame, operation, Answer::Int(a), right?),
        };
        let operator = const { Operator::ALL[OPERATOR as usize] };
        let Some(answer) = operator.apply(a, b) else {
            return self.run_operation(frame, operation, Answer::Int(a), Answer::Int(b));
        };
        // `=` is charged a second step: comparisons are charged by the size of their operands.
        let is_paid_twice = operator == Operator::Equal;
        if self.core.meter.pay_one() {
            return self.look_and_answer(answer, is_paid_twice);
        }
        if is_paid_twice && self.core.meter.pay_one() {
            return self.look_and_answer(answer, false);
        }
        Ok(answer)
    }

    /// Applies an operator to two values if both are integers, and charges what the call of its builtin costs.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    #[inline]
    pub(crate) fn operate_on(&mut self, operator: Operator, left: &Value, right: &Value) -> Outcome<Option<Value>> {
        let (Value::Int(a), Value::Int(b)) = (left, right) else { return Ok(None) };
        let Some(answer) = operator.apply(*a, *b) else { return Ok(None) };
        self.charge(1)?;
        Ok(Some(self.take(answer)))
    }

    /// Returns the answer unless a limit is exceeded.
    #[cold]
    #[inline(never)]
    fn look_and_answer(&mut self, answer: Answer, pays_again: bool) -> Walked {
        self.look_on()?;
        if pays_again {
            self.pay_step()?;
        }
        Ok(answer)
    }

    /// Evaluates an operation whose first operand is not evaluated yet and is not an integer.
    #[inline(never)]
    fn operate_apart(&mut self, frame: &Frame<'_>, operation: &Operation) -> Walked {
        let left = self.eval(frame, &operation.left)?;
        self.operate_with(frame, operation, left)
    }

    /// Evaluates an operation whose first operand is evaluated.
    #[inline(never)]
    fn operate_with(&mut self, frame: &Frame<'_>, operation: &Operation, left: Answer) -> Walked {
        let mut arguments = [self.take(left), Value::Nil];
        let count = operation.operator.operands();
        if count > 1 {
            arguments[1] = self.argument_value(frame, &operation.right)?;
        }
        let value = self.run_builtin(frame, (operation.builtin, None, operation.span), &mut arguments[..count])?;
        Ok(self.pass(value))
    }

    /// Evaluates an operation whose operands are both evaluated.
    #[inline(never)]
    fn run_operation(&mut self, frame: &Frame<'_>, operation: &Operation, left: Answer, right: Answer) -> Walked {
        let mut arguments = [self.take(left), self.take(right)];
        let count = operation.operator.operands();
        let value = self.run_builtin(frame, (operation.builtin, None, operation.span), &mut arguments[..count])?;
        Ok(self.pass(value))
    }
}
