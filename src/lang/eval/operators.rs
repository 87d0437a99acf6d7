//! Calls of builtins that are operators: what they come to for integers is computed where they stand in a program.
//!
//! There is a function for each operator and kind of operands, chosen when the code is made, so that nothing has to be
//! found out when it runs but whether the operands are integers.

use super::Machine;
use super::answer::{Answer, Walked};
use super::call::Frame;
use crate::lang::builtin::operators::{Operator, Run};
use crate::lang::error::Outcome;
use crate::lang::node::{Node, Operation};
use crate::lang::value::Value;

impl Operator {
    /// The function that evaluates an operation on such operands.
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

    /// How many operands it takes.
    fn operands(self) -> usize {
        if self < Operator::Increment { 2 } else { 1 }
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

/// A kind of operand.
trait Operand {
    /// Looks at the operand, or evaluates it.
    fn find(machine: &mut Machine, frame: &Frame<'_>, node: &Node) -> Found;
}

/// What an operand turned out to be.
enum Found {
    Integer(i64),
    /// Something else, which is not evaluated yet.
    Unread,
    /// Something else.
    Other(Walked),
}

/// A slot of the frame.
struct Slot;

/// An integer that stands in the program.
struct Number;

/// Anything else.
struct Computed;

/// The second operand of an operator that takes one.
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
    /// Evaluates an operation. What is not an integer is another function's business, and where that is called nothing
    /// is left to be done here: so the common way needs nothing saved.
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
        // Comparing is paid for by the size of what is compared.
        let is_paid_twice = operator == Operator::Equal;
        if self.core.meter.pay_one() {
            return self.look_and_answer(answer, is_paid_twice);
        }
        if is_paid_twice && self.core.meter.pay_one() {
            return self.look_and_answer(answer, false);
        }
        Ok(answer)
    }

    /// What an operator comes to for two values where both are integers, paid for as a call of its builtin is.
    ///
    /// # Errors
    /// Limits.
    #[inline]
    pub fn operate_on(&mut self, operator: Operator, left: &Value, right: &Value) -> Outcome<Option<Value>> {
        let (Value::Int(a), Value::Int(b)) = (left, right) else { return Ok(None) };
        let Some(answer) = operator.apply(*a, *b) else { return Ok(None) };
        self.charge(1)?;
        Ok(Some(self.take(answer)))
    }

    /// The answer, if the limits allow it.
    #[cold]
    #[inline(never)]
    fn look_and_answer(&mut self, answer: Answer, pays_again: bool) -> Walked {
        self.look_on()?;
        if pays_again {
            self.pay_step()?;
        }
        Ok(answer)
    }

    /// Evaluates an operation of which nothing has been evaluated, and whose first argument is no integer.
    #[inline(never)]
    fn operate_apart(&mut self, frame: &Frame<'_>, operation: &Operation) -> Walked {
        let left = self.eval(frame, &operation.left)?;
        self.operate_with(frame, operation, left)
    }

    /// The same where the first argument has been evaluated.
    #[inline(never)]
    fn operate_with(&mut self, frame: &Frame<'_>, operation: &Operation, left: Answer) -> Walked {
        let mut arguments = [self.take(left), Value::Nil];
        let count = operation.operator.operands();
        if count > 1 {
            arguments[1] = self.argument_value(frame, &operation.right)?;
        }
        let value = self.run_builtin(frame, operation.builtin, operation.span, &mut arguments[..count])?;
        Ok(self.pass(value))
    }

    /// The same where both have been.
    #[inline(never)]
    fn run_operation(&mut self, frame: &Frame<'_>, operation: &Operation, left: Answer, right: Answer) -> Walked {
        let mut arguments = [self.take(left), self.take(right)];
        let count = operation.operator.operands();
        let value = self.run_builtin(frame, operation.builtin, operation.span, &mut arguments[..count])?;
        Ok(self.pass(value))
    }
}
