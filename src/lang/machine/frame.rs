//! Activation frames, pending tail calls, and the results of nodes as they pass between frames.

use crate::span::{Source, Span};
use crate::value::Value;
use crate::value::function::Closure;
use std::sync::Arc;

/// An activation frame: the base of its slots on the value stack, and the captures of the running function.
pub struct Frame<'a> {
    pub(crate) base: usize,
    pub(crate) closure: Option<&'a Arc<Closure>>,
    pub(crate) captures: &'a [Value],
    /// The source text of its code.
    pub(crate) source: &'a Arc<Source>,
}

impl Frame<'_> {
    /// Returns a function of the running function's group.
    pub(crate) fn sibling(&self, index: u32) -> Value {
        match self.closure {
            Some(closure) if closure.index == index => Value::Closure(closure.clone()),
            Some(closure) => Value::Closure(Arc::new(Closure {
                group: closure.group.clone(),
                index,
                captures: closure.captures.clone(),
            })),
            None => Value::Nil,
        }
    }
}

/// A pending tail call: its arguments are on top of the stack.
pub struct Tail {
    /// The function to call.
    pub callee: Value,
    /// The number of arguments.
    pub count: usize,
    /// The location of the call.
    pub span: Span,
}

/// The result of a node.
#[derive(Clone, Copy)]
pub enum Answer {
    /// `nil`
    Nil,
    /// `false`
    False,
    /// `true`
    True,
    /// A 64-bit integer
    Int(i64),
    /// A double, as its bits.
    Float(i64),
    /// The value is in the `passed` of the machine.
    Passed,
    /// The slots are set: run the body of the loop or function again.
    Recur,
    /// The callee and arguments are ready: replace the running function by the call.
    TailCall,
}

/// The evaluation ends early; the signal is in the `signal` of the machine.
#[derive(Clone, Copy)]
pub struct Stopped;

/// The result of walking a node.
pub type Walked = Result<Answer, Stopped>;

impl Answer {
    #[inline(always)]
    pub(crate) fn truth(holds: bool) -> Answer {
        if holds { Answer::True } else { Answer::False }
    }

    #[inline(always)]
    pub(crate) fn is_truthy(self) -> bool {
        !matches!(self, Answer::Nil | Answer::False)
    }

    /// Converts a value to an answer if it fits.
    #[inline(always)]
    pub(crate) fn of(value: &Value) -> Option<Answer> {
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
