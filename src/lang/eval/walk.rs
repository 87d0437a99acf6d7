//! The tree walk: one method for each kind of node that does more than read a value.

use super::Machine;
use super::answer::copied;
use super::call::Site;
use crate::error::class::catches;
use crate::error::{Error, Fault, Outcome, Raised, Signal, describe};
use crate::machine::{Answer, Frame, Global, Stopped, Tail, Walked, unbound};
use crate::native::{Builtin, Native};
use crate::node::*;
use crate::span::Span;
use crate::value::Value;
use crate::value::function::{Captures, Closure};
use crate::value::map::{Map, Values};
use crate::value::set::Set;
use crate::value::shape::Shape;
use std::sync::Arc;

impl Machine {
    /// Evaluates a node in a frame.
    pub(super) fn eval(&mut self, frame: &Frame<'_>, node: &Node) -> Walked {
        let mut node = node;
        loop {
            return match node {
                Node::Constant(value) => Ok(copied(&mut self.passed, value)),
                Node::Local(slot) => Ok(copied(&mut self.passed, &self.stack[frame.base + *slot as usize])),
                Node::Take(slot) => Ok(self.taken(frame, *slot)),
                Node::Captured(index) => Ok(copied(&mut self.passed, &frame.captures[*index as usize])),
                Node::If(parts) => {
                    self.pay_step()?;
                    let condition = self.operand(frame, &parts[0])?;
                    node = if self.holds(condition) { &parts[1] } else { &parts[2] };
                    continue;
                }
                Node::Operate(operation) => (operation.run)(self, frame, operation),
                Node::Call(call) => self.call_node(frame, call),
                Node::Recur(recur) => self.recur(frame, recur),
                Node::CallBuiltin(_) | Node::Record(..) | Node::Vector(_) => self.compute(frame, node),
                Node::LookUp(look_up) => self.look_up_node(frame, look_up),
                Node::Let(binding) => {
                    self.set_slots(frame, binding)?;
                    if binding.clears {
                        return self.body_of_let(frame, binding);
                    }
                    node = &binding.body;
                    continue;
                }
                Node::Do(nodes) => {
                    self.pay_step()?;
                    let Some((last, first)) = nodes.split_last() else { return Ok(Answer::Nil) };
                    for node in first {
                        let answer = self.eval(frame, node)?;
                        self.discard(answer);
                    }
                    node = last;
                    continue;
                }
                Node::And(nodes) => self.chain(frame, nodes, false),
                Node::Or(nodes) => self.chain(frame, nodes, true),
                Node::TailCall(call) => self.tail_call(frame, call),
                Node::Loop(binding) => self.loop_star(frame, binding),
                Node::Try(parts) => self.try_(frame, parts),
                Node::Lambda(lambda) => self.lambda(frame, lambda),
                node => self.make(frame, node),
            };
        }
    }

    /// Evaluates a node that creates or fetches a value which is rarely a number.
    #[inline(never)]
    fn make(&mut self, frame: &Frame<'_>, node: &Node) -> Walked {
        let made = match node {
            Node::Sibling(index) => Ok(frame.sibling(*index)),
            Node::Global(index, span) => self.global(frame, *index, *span),
            Node::Define(define) => self.define(frame, define),
            Node::Map(pairs, span) => self.map(frame, pairs, *span),
            Node::Set(nodes, span) => self.set(frame, nodes, *span),
            _ => Err(super::internal_error().into()),
        };
        self.walked(made)
    }

    /// Evaluates a node to a value.
    pub(super) fn value(&mut self, frame: &Frame<'_>, node: &Node) -> Outcome<Value> {
        let walked = self.eval(frame, node);
        self.outcome(walked)
    }

    /// Evaluates an argument: [`eval`](Machine::eval) with an inlined fast path for `Take`, small integers and
    /// operations.
    #[inline(always)]
    fn argument(&mut self, frame: &Frame<'_>, node: &Node) -> Walked {
        if let Node::Take(slot) = node { Ok(self.taken(frame, *slot)) } else { self.operand(frame, node) }
    }

    /// Evaluates an operand that the caller only reads: a fast path for integers and operations, then
    /// [`eval`](Machine::eval).
    #[inline(always)]
    fn operand(&mut self, frame: &Frame<'_>, node: &Node) -> Walked {
        match node {
            Node::Local(slot) => match &self.stack[frame.base + *slot as usize] {
                Value::Int(number) => Ok(Answer::Int(*number)),
                _ => self.eval(frame, node),
            },
            Node::Constant(Value::Int(number)) => Ok(Answer::Int(*number)),
            Node::Operate(operation) => (operation.run)(self, frame, operation),
            node => self.eval(frame, node),
        }
    }

    /// Moves the value out of a slot that is not read again.
    #[inline(always)]
    fn taken(&mut self, frame: &Frame<'_>, slot: u32) -> Answer {
        match &mut self.stack[frame.base + slot as usize] {
            Value::Int(number) => Answer::Int(*number),
            slot => {
                let value = std::mem::take(slot);
                self.pass(value)
            }
        }
    }

    /// Evaluates an argument to a value, with a fast path for names and constants.
    #[inline(always)]
    pub(super) fn argument_value(&mut self, frame: &Frame<'_>, node: &Node) -> Result<Value, Stopped> {
        match node {
            Node::Local(slot) => Ok(self.stack[frame.base + *slot as usize].clone()),
            Node::Take(slot) => Ok(std::mem::take(&mut self.stack[frame.base + *slot as usize])),
            Node::Constant(value) => Ok(value.clone()),
            node => self.computed(frame, node),
        }
    }

    /// Evaluates a node that is neither a name nor a constant. Results that are rarely numbers bypass the conversion
    /// to an answer.
    #[inline(never)]
    fn computed(&mut self, frame: &Frame<'_>, node: &Node) -> Result<Value, Stopped> {
        match node {
            Node::CallBuiltin(call) => self.call_builtin(frame, call),
            Node::Record(shape, nodes) => self.record(frame, shape, nodes),
            Node::Vector(nodes) => self.vector(frame, nodes),
            node => {
                let answer = self.eval(frame, node)?;
                Ok(self.take(answer))
            }
        }
    }

    /// Evaluates a node as [`computed`](Machine::computed) does and converts the result to an answer.
    #[inline(never)]
    pub(super) fn compute(&mut self, frame: &Frame<'_>, node: &Node) -> Walked {
        let value = self.computed(frame, node)?;
        Ok(self.pass(value))
    }

    /// Evaluates nodes in order.
    #[inline(always)]
    fn values(&mut self, frame: &Frame<'_>, nodes: &[Node]) -> Result<Vec<Value>, Stopped> {
        let mut values = Vec::with_capacity(nodes.len());
        for node in nodes {
            values.push(self.argument_value(frame, node)?);
        }
        Ok(values)
    }

    fn global(&mut self, frame: &Frame<'_>, index: u32, span: Span) -> Outcome<Value> {
        match &self.core.globals.get(index).value {
            Some(value) => Ok(value.clone()),
            None => {
                let error = unbound(self.core.globals.name(index));
                Err(self.placed(frame, error.into(), span))
            }
        }
    }

    /// Evaluates `and` and `or`: returns the first value whose truthiness equals `until`, or the last value.
    #[inline(never)]
    fn chain(&mut self, frame: &Frame<'_>, nodes: &[Node], until: bool) -> Walked {
        self.pay_step()?;
        let Some((last, first)) = nodes.split_last() else { return Ok(Answer::Nil) };
        for node in first {
            let answer = self.argument(frame, node)?;
            if let Answer::Passed = answer {
                self.passed.touch();
            }
            if answer.is_truthy() == until {
                return Ok(answer);
            }
            self.discard(answer);
        }
        self.eval(frame, last)
    }

    /// Sets the slots of `let*` and `loop*`.
    fn set_slots(&mut self, frame: &Frame<'_>, binding: &Let) -> Result<(), Stopped> {
        self.pay_step()?;
        let slot = frame.base + binding.slot as usize;
        for (at, node) in binding.values.iter().enumerate() {
            let answer = self.argument(frame, node)?;
            self.set_slot(slot + at, answer);
        }
        Ok(())
    }

    #[inline(never)]
    fn body_of_let(&mut self, frame: &Frame<'_>, binding: &Let) -> Walked {
        let result = self.eval(frame, &binding.body);
        self.clear(frame, binding);
        result
    }

    fn clear(&mut self, frame: &Frame<'_>, binding: &Let) {
        let slot = frame.base + binding.slot as usize;
        for value in &mut self.stack[slot..slot + binding.values.len()] {
            value.put(Value::Nil);
        }
    }

    #[inline(never)]
    fn loop_star(&mut self, frame: &Frame<'_>, binding: &Let) -> Walked {
        self.set_slots(frame, binding)?;
        let result = loop {
            match self.eval(frame, &binding.body) {
                Ok(Answer::Recur) => {}
                result => break result,
            }
        };
        if binding.clears {
            self.clear(frame, binding);
        }
        result
    }

    fn recur(&mut self, frame: &Frame<'_>, recur: &Recur) -> Walked {
        self.pay_step()?;
        let slot = frame.base + recur.slot as usize;
        match &*recur.values {
            [] => {}
            [only] => {
                let answer = self.argument(frame, only)?;
                self.set_slot(slot, answer);
            }
            [first, second] => match self.argument(frame, first)? {
                // The second evaluation would overwrite the passed value.
                Answer::Passed => {
                    let first = std::mem::take(&mut self.passed);
                    let second = self.argument(frame, second)?;
                    self.set_slot(slot + 1, second);
                    self.stack[slot].put(first);
                }
                first => {
                    let second = self.argument(frame, second)?;
                    self.set_slot(slot + 1, second);
                    self.set_slot(slot, first);
                }
            },
            values => {
                let top = self.stack.len();
                for node in values {
                    let answer = self.argument(frame, node)?;
                    self.push(answer);
                }
                for at in 0..values.len() {
                    let value = std::mem::take(&mut self.stack[top + at]);
                    self.stack[slot + at].put(value);
                }
                self.shrink(top);
            }
        }
        Ok(Answer::Recur)
    }

    /// Calls a builtin resolved at compile time. The arguments are passed as an array.
    #[inline(never)]
    fn call_builtin(&mut self, frame: &Frame<'_>, call: &CallBuiltin) -> Result<Value, Stopped> {
        let called = (call.builtin, call.native.as_deref(), call.span);
        match &*call.arguments {
            [] => self.run_builtin(frame, called, &mut []),
            [a] => {
                let mut arguments = [self.argument_value(frame, a)?];
                self.run_builtin(frame, called, &mut arguments)
            }
            [a, b] => {
                let mut arguments = [self.first_value(frame, a)?, self.argument_value(frame, b)?];
                self.take_first(frame, a, &mut arguments);
                self.run_builtin(frame, called, &mut arguments)
            }
            [a, b, c] => {
                let mut arguments =
                    [self.first_value(frame, a)?, self.argument_value(frame, b)?, self.argument_value(frame, c)?];
                self.take_first(frame, a, &mut arguments);
                self.run_builtin(frame, called, &mut arguments)
            }
            [a, more @ ..] => {
                let mut arguments = Vec::with_capacity(1 + more.len());
                arguments.push(self.first_value(frame, a)?);
                for node in more {
                    arguments.push(self.argument_value(frame, node)?);
                }
                self.take_first(frame, a, &mut arguments);
                self.run_builtin(frame, called, &mut arguments)
            }
        }
    }

    /// Evaluates the first of several arguments. A `Take` is deferred until the others are evaluated, because they
    /// may read the slot.
    #[inline(always)]
    fn first_value(&mut self, frame: &Frame<'_>, node: &Node) -> Result<Value, Stopped> {
        if let Node::Take(_) = node { Ok(Value::Nil) } else { self.argument_value(frame, node) }
    }

    /// Takes the first argument if [`first_value`](Machine::first_value) deferred it.
    #[inline(always)]
    fn take_first(&mut self, frame: &Frame<'_>, node: &Node, arguments: &mut [Value]) {
        if let (Node::Take(slot), [first, ..]) = (node, arguments) {
            *first = std::mem::take(&mut self.stack[frame.base + *slot as usize]);
        }
    }

    pub(super) fn run_builtin(
        &mut self,
        frame: &Frame<'_>,
        (builtin, native, span): (&'static Builtin, Option<&Native>, Span),
        arguments: &mut [Value],
    ) -> Result<Value, Stopped> {
        self.pay_step()?;
        self.run_checked(builtin, native, arguments).map_err(|signal| self.stop_at(frame, signal, span))
    }

    /// Converts the outcome of the node at `span` for the walk.
    #[inline(always)]
    fn walked_at(&mut self, frame: &Frame<'_>, outcome: Outcome<Value>, span: Span) -> Walked {
        match outcome {
            Ok(value) => Ok(self.pass(value)),
            Err(signal) => Err(self.stop_at(frame, signal, span)),
        }
    }

    /// Stops the walk with a signal raised by the node at `span`.
    #[cold]
    fn stop_at(&mut self, frame: &Frame<'_>, signal: Signal, span: Span) -> Stopped {
        let signal = self.placed(frame, signal, span);
        self.stop(signal)
    }

    #[inline(never)]
    fn look_up_node(&mut self, frame: &Frame<'_>, node: &LookUp) -> Walked {
        self.pay_step()?;
        if let (Node::Local(slot), None) = (&node.collection, &node.default)
            && let Value::Map(map) = &self.stack[frame.base + *slot as usize]
            && let Some(value) = node.find(map, &mut self.core.look_ups, frame.source)
        {
            let answer = copied(&mut self.passed, value);
            return self.pay_step().map(|()| answer);
        }
        let collection = self.argument_value(frame, &node.collection)?;
        let default = match &node.default {
            Some(default) => self.argument_value(frame, default)?,
            None => Value::Nil,
        };
        if let Value::Map(map) = &collection
            && let Some(value) = node.find(map, &mut self.core.look_ups, frame.source)
        {
            let answer = copied(&mut self.passed, value);
            return self.pay_step().map(|()| answer);
        }
        let found = self.look_up(&collection, &node.key, default);
        if let (Ok(Value::Nil), None, false) = (&found, &node.default, frame.source.is_hidden) {
            if let Some(map) = self.lacking(&collection, &node.key) {
                node.missed(map, &mut self.core.look_ups);
            } else if let (Value::Str(_) | Value::Char(_), Value::Keyword(name)) = (&collection, &node.key) {
                self.core.look_ups.in_text(name, true);
            }
        }
        self.walked_at(frame, found, node.span)
    }

    /// Calls a computed function; its arguments are pushed where its frame begins. The callee is most often a
    /// definition of the session. A function that calls itself needs no further reference count, since the frame
    /// keeps it alive.
    #[inline(never)]
    pub(super) fn call_node(&mut self, frame: &Frame<'_>, call: &Call) -> Walked {
        let held;
        let closure = match &call.callee {
            Node::Global(index, _) if let Some(Value::Closure(closure)) = &self.core.globals.get(*index).value => {
                match frame.closure {
                    Some(running) if Arc::ptr_eq(running, closure) => running,
                    _ => {
                        held = closure.clone();
                        &held
                    }
                }
            }
            _ => return self.call_value(frame, call),
        };
        self.pay_step()?;
        let base = self.stack.len();
        self.push_arguments(frame, call)?;
        let site = Site { source: frame.source, span: call.span };
        match self.apply_closure(closure, base, Some(site)) {
            Ok(answer) => Ok(answer),
            Err(stopped) => Err(self.stop_again(frame, stopped, call.span)),
        }
    }

    /// Calls a callee of any kind.
    #[inline(never)]
    fn call_value(&mut self, frame: &Frame<'_>, call: &Call) -> Walked {
        self.pay_step()?;
        let callee = self.argument_value(frame, &call.callee)?;
        self.push_arguments(frame, call)?;
        let site = Site { source: frame.source, span: call.span };
        let result = self.apply_stacked(&callee, call.arguments.len(), Some(site));
        result.map_err(|stopped| self.stop_again(frame, stopped, call.span))
    }

    #[inline(always)]
    fn push_arguments(&mut self, frame: &Frame<'_>, call: &Call) -> Result<(), Stopped> {
        for node in &call.arguments {
            let answer = self.argument(frame, node)?;
            self.push(answer);
        }
        Ok(())
    }

    /// Stops the walk of the node at `span` with the signal that stopped a nested walk.
    #[cold]
    fn stop_again(&mut self, frame: &Frame<'_>, stopped: Stopped, span: Span) -> Stopped {
        let signal = self.signal(stopped);
        self.stop_at(frame, signal, span)
    }

    /// Evaluates the callee of a tail call, most often a definition of the session.
    #[inline(always)]
    fn callee(&mut self, frame: &Frame<'_>, node: &Node) -> Result<Value, Stopped> {
        match node {
            Node::Global(index, _) if let Some(Value::Closure(closure)) = &self.core.globals.get(*index).value => {
                Ok(Value::Closure(closure.clone()))
            }
            node => self.argument_value(frame, node),
        }
    }

    fn tail_call(&mut self, frame: &Frame<'_>, call: &Call) -> Walked {
        self.pay_step()?;
        let callee = self.callee(frame, &call.callee)?;
        self.push_arguments(frame, call)?;
        self.tail = Some(Tail { callee, count: call.arguments.len(), span: call.span });
        Ok(Answer::TailCall)
    }

    #[inline(never)]
    fn lambda(&mut self, frame: &Frame<'_>, lambda: &Lambda) -> Walked {
        self.pay_step()?;
        let mut captured = Vec::with_capacity(lambda.captures.len());
        for node in &lambda.captures {
            captured.push(self.argument_value(frame, node)?);
        }
        let captures = Arc::new(Captures::new(captured));
        let closure = |index: usize| {
            let (group, captures) = (lambda.group.clone(), captures.clone());
            Value::Closure(Arc::new(Closure { group, index: index as u32, captures }))
        };
        match &lambda.result {
            LambdaResult::Value => Ok(self.pass(closure(0))),
            LambdaResult::Slots(slot, body) => {
                let base = frame.base + *slot as usize;
                for index in 0..lambda.group.lambdas.len() {
                    self.stack[base + index] = closure(index);
                }
                self.eval(frame, body)
            }
        }
    }

    fn define(&mut self, frame: &Frame<'_>, define: &Define) -> Outcome<Value> {
        self.charge(1)?;
        let index = define.global;
        if define.kind == Definition::Once && self.root(index).is_some_and(|value| !super::is_unbound(&value)) {
            return Ok(Value::Nil);
        }
        let value = match &define.value {
            // `(def x x)`
            Some(Node::Global(own, _)) if *own == index && self.root(index).is_none() => self.declared_value(index),
            Some(node) => self.value(frame, node)?,
            None => self.declared_value(index),
        };
        let metadata = define.metadata.as_ref().map(|node| self.value(frame, node)).transpose()?;
        let doc = define.doc.as_deref().map(Arc::from);
        let is_macro = define.kind == Definition::Macro;
        let mut global = Global { value: Some(value), doc, is_macro, metadata: None };
        let name = self.core.globals.name(index).to_string();
        if let Some(Value::Map(metadata)) = metadata {
            self.add_metadata(&name, &mut global, metadata)
                .map_err(|signal| self.placed(frame, signal, define.span))?;
        }
        self.set_definition(index, global);
        Ok(Value::Var(name.as_str().into()))
    }

    #[inline(never)]
    fn record(&mut self, frame: &Frame<'_>, shape: &Arc<Shape>, nodes: &[Node]) -> Result<Value, Stopped> {
        self.pay_step()?;
        let values = match nodes {
            [only] => Values::from_iter([self.argument_value(frame, only)?]),
            [first, second] => Values::from([self.argument_value(frame, first)?, self.argument_value(frame, second)?]),
            more => self.values(frame, more)?.into(),
        };
        Ok(Value::Map(Arc::new(Map::with_shape(shape.clone(), values))))
    }

    #[inline(never)]
    fn vector(&mut self, frame: &Frame<'_>, nodes: &[Node]) -> Result<Value, Stopped> {
        self.pay_step()?;
        let values = self.values(frame, nodes)?;
        Ok(Value::vector(values))
    }

    fn map(&mut self, frame: &Frame<'_>, pairs: &[(Node, Node)], span: Span) -> Outcome<Value> {
        self.charge(1)?;
        let mut map = Map::default();
        for (key, value) in pairs {
            let key = self.value(frame, key)?;
            let key = self.key(key).map_err(|signal| self.placed(frame, signal, span))?;
            let value = self.value(frame, value)?;
            if map.contains_key(&key) {
                return Err(self.placed(frame, twice(&key, "key", "map").into(), span));
            }
            map.insert(key, value);
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn set(&mut self, frame: &Frame<'_>, nodes: &[Node], span: Span) -> Outcome<Value> {
        self.charge(1)?;
        let mut set = Set::default();
        for node in nodes {
            let member = self.value(frame, node)?;
            let member = self.key(member).map_err(|signal| self.placed(frame, signal, span))?;
            if set.contains(&member) {
                return Err(self.placed(frame, twice(&member, "item", "set").into(), span));
            }
            set.insert(member);
        }
        Ok(Value::Set(Arc::new(set)))
    }

    #[inline(never)]
    fn try_(&mut self, frame: &Frame<'_>, parts: &Try) -> Walked {
        self.pay_step()?;
        let top = self.stack.len();
        let (depth, nesting) = (self.depth, self.nesting);
        let mut result = self.value(frame, &parts.body).and_then(|value| self.settle(&value).map(|()| value));
        let chosen = result.as_ref().err().and_then(caught).and_then(|exception| {
            let Value::Exception(error) = &exception else { return None };
            let takes = |catch: &&Catch| catch.class.as_deref().is_none_or(|class| catches(class, error));
            parts.catches.iter().find(takes).map(|catch| (catch, exception))
        });
        if let Some((catch, exception)) = chosen {
            self.stack.truncate(top);
            (self.depth, self.nesting) = (depth, nesting);
            self.stack[frame.base + catch.slot as usize] = exception;
            result = self.value(frame, &catch.body);
        }
        if let Some(finally) = &parts.finally {
            let halted = matches!(&result, Err(signal) if matches!(signal.raised(), Raised::Halt(_)));
            if !halted {
                self.stack.truncate(top);
                (self.depth, self.nesting) = (depth, nesting);
                let answer = self.eval(frame, finally)?;
                self.discard(answer);
            }
        }
        self.walked(result)
    }
}

/// Returns the exception passed to a handler; a halt is never caught.
pub(super) fn caught(signal: &Signal) -> Option<Value> {
    match signal.raised() {
        Raised::Fault(Fault { error, .. }) | Raised::Error(error) => Some(Value::Exception(error.clone())),
        Raised::Halt(_) => None,
    }
}

/// The error for a literal whose computed keys turn out equal.
#[cold]
fn twice(key: &Value, what: &str, whose: &str) -> Error {
    let made = if whose == "map" { "(assoc {} k v …)" } else { "(set [a b …])" };
    Error::new("DuplicateKey", format!("the {what} {} appears twice in this {whose}", describe(key)))
        .suggest(format!("where items may be equal, `{made}` keeps one of them"))
}
