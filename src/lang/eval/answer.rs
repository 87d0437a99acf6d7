//! Answers: the results of nodes, passed in registers.
//!
//! Most nodes evaluate to a number or a boolean, which fits two processor registers. Any other value is stored in the
//! machine's `passed` until the parent node takes it. A signal that ends the evaluation early is stored in the same
//! way.

use super::Machine;
use crate::error::{Outcome, Signal};
use crate::machine::{Answer, Stopped, Walked};
use crate::value::Value;

/// Converts a borrowed value to an answer; clones it into `passed` if it does not fit.
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
    /// Converts an owned value to an answer; moves it into `passed` if it does not fit.
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

    /// Converts an answer to a value, taking it from `passed` if it is there.
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

    /// Stores an answer in a slot of the stack.
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

    /// Pushes an answer onto the stack.
    #[inline(always)]
    pub(super) fn push(&mut self, answer: Answer) {
        match (answer, self.stack.spare_capacity_mut()) {
            // Constructs the value in place. A value assembled elsewhere from two parts could not be moved with a
            // single copy.
            (Answer::Int(number), [free, ..]) => {
                free.write(Value::Int(number));
                // SAFETY: the first element of the spare capacity has just been initialized.
                unsafe { self.stack.set_len(self.stack.len() + 1) };
            }
            _ => {
                let value = self.take(answer);
                self.stack.push(value);
            }
        }
    }

    /// Drops an unused answer.
    #[inline(always)]
    pub(super) fn discard(&mut self, answer: Answer) {
        if let Answer::Passed = answer {
            self.passed = Value::Nil;
        }
    }

    /// Returns whether an answer is truthy, and drops it.
    #[inline(always)]
    pub(super) fn holds(&mut self, answer: Answer) -> bool {
        if let Answer::Passed = answer {
            return std::mem::take(&mut self.passed).is_truthy();
        }
        answer.is_truthy()
    }

    /// Converts an outcome to a result of the walk.
    #[inline]
    pub(super) fn walked(&mut self, outcome: Outcome<Value>) -> Walked {
        match outcome {
            Ok(value) => Ok(self.pass(value)),
            Err(signal) => Err(self.stop(signal)),
        }
    }

    /// Converts a result of the walk to an outcome.
    #[inline]
    pub(super) fn outcome(&mut self, walked: Walked) -> Outcome<Value> {
        match walked {
            Ok(answer) => Ok(self.take(answer)),
            Err(stopped) => Err(self.signal(stopped)),
        }
    }

    /// Stores a signal that ends the walk.
    #[cold]
    pub(super) fn stop(&mut self, signal: Signal) -> Stopped {
        self.signal = Some(signal);
        Stopped
    }

    /// Takes the signal that ended the walk.
    #[cold]
    pub(super) fn signal(&mut self, _: Stopped) -> Signal {
        self.signal.take().unwrap_or_else(|| super::internal_error().into())
    }

    /// Truncates the stack to `top`.
    #[inline(always)]
    pub(super) fn shrink(&mut self, top: usize) {
        let above = self.stack.get(top..).unwrap_or_default();
        if above.iter().all(Value::is_plain) {
            // SAFETY: the new length does not exceed the old one, so the remaining elements are initialized; the
            // forgotten ones own nothing and need no drop.
            unsafe { self.stack.set_len(top.min(self.stack.len())) };
        } else {
            self.stack.truncate(top);
        }
    }

    /// Charges fuel for one node.
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
