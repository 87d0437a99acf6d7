//! Answers: what a node comes to, as it is handed from node to node.
//!
//! Most nodes come to a number or a truth value, and those go in two registers of the processor. Anything else stands
//! in the machine's `passed` until whoever asked takes it; so does the signal where the evaluation ends early.

use super::Machine;
use crate::lang::error::{Outcome, Signal};
use crate::lang::value::Value;

/// What a node came to.
#[derive(Clone, Copy)]
pub enum Answer {
    Nil,
    False,
    True,
    Int(i64),
    /// A double, by its bits.
    Float(i64),
    /// What stands in [`Machine::passed`].
    Passed,
    /// The slots are set: run the body of the loop, or of the function, again.
    Recur,
    /// Callee and arguments are ready: call it in place of the running function.
    TailCall,
}

/// The evaluation ends early: its signal stands in [`Machine::signal`].
#[derive(Clone, Copy)]
pub struct Stopped;

/// What the walk of a node comes to.
pub type Walked = Result<Answer, Stopped>;

impl Answer {
    #[inline(always)]
    pub(super) fn truth(holds: bool) -> Answer {
        if holds { Answer::True } else { Answer::False }
    }

    #[inline(always)]
    pub(super) fn is_truthy(self) -> bool {
        !matches!(self, Answer::Nil | Answer::False)
    }

    /// The answer that is that value, where it fits.
    #[inline(always)]
    fn of(value: &Value) -> Option<Answer> {
        if let Value::Int(number) = value {
            return Some(Answer::Int(*number));
        }
        Some(match value {
            Value::Nil => Answer::Nil,
            Value::Bool(holds) => Answer::truth(*holds),
            Value::Float(number) => Answer::Float(number.to_bits() as i64),
            _ => return None,
        })
    }
}

/// The answer that a value is; what does not fit is copied to where it is passed on.
#[inline(always)]
pub(super) fn copied(passed: &mut Value, value: &Value) -> Answer {
    match Answer::of(value) {
        Some(answer) => answer,
        None => {
            passed.put(value.clone());
            Answer::Passed
        }
    }
}

impl Machine {
    /// The answer that a value is.
    #[inline(always)]
    pub(super) fn pass(&mut self, value: Value) -> Answer {
        match Answer::of(&value) {
            Some(answer) => answer,
            None => {
                self.passed.put(value);
                Answer::Passed
            }
        }
    }

    /// The value that an answer is.
    #[inline(always)]
    pub(super) fn take(&mut self, answer: Answer) -> Value {
        match answer {
            Answer::Nil | Answer::Recur | Answer::TailCall => Value::Nil,
            Answer::False => Value::Bool(false),
            Answer::True => Value::Bool(true),
            Answer::Int(number) => Value::Int(number),
            Answer::Float(bits) => Value::Float(f64::from_bits(bits as u64)),
            Answer::Passed => std::mem::take(&mut self.passed),
        }
    }

    /// Puts an answer into a slot of the stack.
    #[inline(always)]
    pub(super) fn set_slot(&mut self, slot: usize, answer: Answer) {
        if let Answer::Int(number) = answer
            && let Value::Int(old) = &mut self.stack[slot]
        {
            *old = number;
            return;
        }
        let value = self.take(answer);
        self.stack[slot].put(value);
    }

    /// Puts an answer on top of the stack.
    #[inline(always)]
    pub(super) fn push(&mut self, answer: Answer) {
        match (answer, self.stack.spare_capacity_mut()) {
            // Written where it stays: what is made elsewhere, in two parts, cannot be moved at once.
            (Answer::Int(number), [free, ..]) => {
                free.write(Value::Int(number));
                // SAFETY: the next free place has just been filled.
                unsafe { self.stack.set_len(self.stack.len() + 1) };
            }
            _ => {
                let value = self.take(answer);
                self.stack.push(value);
            }
        }
    }

    /// Lets go of an answer that nobody wants.
    #[inline(always)]
    pub(super) fn discard(&mut self, answer: Answer) {
        if let Answer::Passed = answer {
            self.passed = Value::Nil;
        }
    }

    /// Whether a condition with that answer holds.
    #[inline(always)]
    pub(super) fn holds(&mut self, answer: Answer) -> bool {
        self.discard(answer);
        answer.is_truthy()
    }

    /// An outcome for the walk.
    #[inline]
    pub(super) fn walked(&mut self, outcome: Outcome<Value>) -> Walked {
        match outcome {
            Ok(value) => Ok(self.pass(value)),
            Err(signal) => Err(self.stop(signal)),
        }
    }

    /// What the walk came to, for everybody else.
    #[inline]
    pub(super) fn outcome(&mut self, walked: Walked) -> Outcome<Value> {
        match walked {
            Ok(answer) => Ok(self.take(answer)),
            Err(stopped) => Err(self.signal(stopped)),
        }
    }

    /// Ends the walk with a signal.
    #[cold]
    pub(super) fn stop(&mut self, signal: Signal) -> Stopped {
        self.signal = Some(signal);
        Stopped
    }

    /// What ended the walk.
    #[cold]
    pub(super) fn signal(&mut self, _: Stopped) -> Signal {
        self.signal.take().unwrap_or_else(|| super::internal_error().into())
    }

    /// Takes everything off the stack that is above `top`.
    #[inline(always)]
    pub(super) fn shrink(&mut self, top: usize) {
        let above = self.stack.get(top..).unwrap_or_default();
        if above.iter().all(Value::is_plain) {
            // SAFETY: what is forgotten is there, and owns nothing.
            unsafe { self.stack.set_len(top.min(self.stack.len())) };
        } else {
            self.stack.truncate(top);
        }
    }

    /// Pays for one node.
    #[inline(always)]
    pub(super) fn pay_step(&mut self) -> Result<(), Stopped> {
        if self.core.meter.pay_one() { self.look_on() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn look_on(&mut self) -> Result<(), Stopped> {
        self.look().map_err(|signal| self.stop(signal))
    }
}
