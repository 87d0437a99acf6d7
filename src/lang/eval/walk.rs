//! The walk: one method for each kind of node that is more than a look.

use super::call::{Frame, Tail};
use super::core::Global;
use super::{Machine, core};
use crate::lang::error::{Error, Fault, Outcome, Raised, Signal, describe};
use crate::lang::node::*;
use crate::lang::span::Span;
use crate::lang::value::function::{Captures, Closure};
use crate::lang::value::map::Map;
use crate::lang::value::set::Set;
use crate::lang::value::{Jump, Value};
use std::sync::Arc;

impl Machine {
    /// Evaluates a node in a frame.
    pub(super) fn eval(&mut self, frame: &Frame<'_>, node: &Node) -> Outcome<Value> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Local(slot) => Ok(self.stack[frame.base + *slot as usize].clone()),
            Node::Captured(index) => Ok(frame.captures[*index as usize].clone()),
            Node::Sibling(index) => Ok(frame.sibling(*index)),
            Node::Global(index, span) => self.global(*index, *span),
            Node::If(parts) => {
                self.charge(1)?;
                let chosen = if self.eval(frame, &parts[0])?.is_truthy() { &parts[1] } else { &parts[2] };
                self.eval(frame, chosen)
            }
            Node::CallBuiltin(call) => self.call_builtin(frame, call),
            Node::Call(call) => self.call_node(frame, call),
            Node::TailCall(call) => self.tail_call(frame, call),
            Node::Recur(recur) => self.recur(frame, recur),
            Node::Let(binding) => self.let_star(frame, binding),
            Node::Loop(binding) => self.loop_star(frame, binding),
            Node::Do(nodes) => self.block(frame, nodes),
            Node::And(nodes) => self.chain(frame, nodes, false),
            Node::Or(nodes) => self.chain(frame, nodes, true),
            Node::Lambda(lambda) => self.lambda(frame, lambda),
            Node::Define(define) => self.define(frame, define),
            Node::Try(parts) => self.try_(frame, parts),
            Node::Vector(nodes) => {
                self.charge(1)?;
                Ok(Value::vector(self.eval_all(frame, nodes)?))
            }
            Node::Record(shape, nodes) => {
                self.charge(1)?;
                let values = self.eval_all(frame, nodes)?;
                Ok(Value::Map(Arc::new(Map::with_shape(shape.clone(), values))))
            }
            Node::Map(pairs, span) => self.map(frame, pairs, *span),
            Node::Set(nodes, span) => self.set(frame, nodes, *span),
        }
    }

    fn eval_all(&mut self, frame: &Frame<'_>, nodes: &[Node]) -> Outcome<Vec<Value>> {
        nodes.iter().map(|node| self.eval(frame, node)).collect()
    }

    fn global(&mut self, index: u32, span: Span) -> Outcome<Value> {
        match &self.core.globals.get(index).value {
            Some(value) => Ok(value.clone()),
            None => {
                let error = core::unbound(self.core.globals.name(index));
                Err(self.placed(error.into(), span))
            }
        }
    }

    fn block(&mut self, frame: &Frame<'_>, nodes: &[Node]) -> Outcome<Value> {
        self.charge(1)?;
        let Some((last, first)) = nodes.split_last() else { return Ok(Value::Nil) };
        for node in first {
            self.eval(frame, node)?;
        }
        self.eval(frame, last)
    }

    /// `and` and `or`: the first value whose truth is `until`, else the last.
    fn chain(&mut self, frame: &Frame<'_>, nodes: &[Node], until: bool) -> Outcome<Value> {
        self.charge(1)?;
        let Some((last, first)) = nodes.split_last() else { return Ok(Value::Nil) };
        for node in first {
            let value = self.eval(frame, node)?;
            if value.is_truthy() == until {
                return Ok(value);
            }
        }
        self.eval(frame, last)
    }

    fn let_star(&mut self, frame: &Frame<'_>, binding: &Let) -> Outcome<Value> {
        self.charge(1)?;
        let slot = frame.base + binding.slot as usize;
        for (at, node) in binding.values.iter().enumerate() {
            let value = self.eval(frame, node)?;
            self.stack[slot + at] = value;
        }
        let result = self.eval(frame, &binding.body);
        if binding.clears {
            self.clear(slot, binding.values.len());
        }
        result
    }

    fn clear(&mut self, slot: usize, count: usize) {
        for value in &mut self.stack[slot..slot + count] {
            *value = Value::Nil;
        }
    }

    fn loop_star(&mut self, frame: &Frame<'_>, binding: &Let) -> Outcome<Value> {
        self.charge(1)?;
        let slot = frame.base + binding.slot as usize;
        for (at, node) in binding.values.iter().enumerate() {
            let value = self.eval(frame, node)?;
            self.stack[slot + at] = value;
        }
        let result = loop {
            match self.eval(frame, &binding.body) {
                Ok(Value::Jump(Jump::Recur)) => {}
                result => break result,
            }
        };
        if binding.clears {
            self.clear(slot, binding.values.len());
        }
        result
    }

    fn recur(&mut self, frame: &Frame<'_>, recur: &Recur) -> Outcome<Value> {
        self.charge(1)?;
        let slot = frame.base + recur.slot as usize;
        match &*recur.values {
            [] => {}
            [only] => {
                let value = self.eval(frame, only)?;
                self.stack[slot] = value;
            }
            values => {
                let top = self.stack.len();
                for node in values {
                    let value = self.eval(frame, node)?;
                    self.stack.push(value);
                }
                for at in 0..values.len() {
                    self.stack[slot + at] = std::mem::take(&mut self.stack[top + at]);
                }
                self.stack.truncate(top);
            }
        }
        Ok(Value::Jump(Jump::Recur))
    }

    /// A call of a known builtin: the arguments stand in an array.
    fn call_builtin(&mut self, frame: &Frame<'_>, call: &CallBuiltin) -> Outcome<Value> {
        let result = match &*call.arguments {
            [] => self.run_builtin(call, &mut []),
            [a] => {
                let mut arguments = [self.eval(frame, a)?];
                self.run_builtin(call, &mut arguments)
            }
            [a, b] => {
                let mut arguments = [self.eval(frame, a)?, self.eval(frame, b)?];
                self.run_builtin(call, &mut arguments)
            }
            [a, b, c] => {
                let mut arguments = [self.eval(frame, a)?, self.eval(frame, b)?, self.eval(frame, c)?];
                self.run_builtin(call, &mut arguments)
            }
            nodes => {
                let mut arguments = self.eval_all(frame, nodes)?;
                self.run_builtin(call, &mut arguments)
            }
        };
        result.map_err(|signal| self.placed(signal, call.span))
    }

    #[inline]
    fn run_builtin(&mut self, call: &CallBuiltin, arguments: &mut [Value]) -> Outcome<Value> {
        self.charge(1)?;
        if !call.builtin.arity.accepts(arguments.len()) {
            return Err(super::call::builtin_arity(call.builtin, arguments.len()).into());
        }
        (call.builtin.run)(self, arguments).map_err(|signal| self.named(signal, call.builtin))
    }

    /// A call of a computed function: the arguments go where its frame begins.
    fn call_node(&mut self, frame: &Frame<'_>, call: &Call) -> Outcome<Value> {
        self.charge(1)?;
        let callee = self.eval(frame, &call.callee)?;
        for node in &call.arguments {
            let value = self.eval(frame, node)?;
            self.stack.push(value);
        }
        let span = call.span;
        self.apply_stacked(callee, call.arguments.len(), Some(span)).map_err(|signal| self.placed(signal, span))
    }

    fn tail_call(&mut self, frame: &Frame<'_>, call: &Call) -> Outcome<Value> {
        self.charge(1)?;
        let callee = self.eval(frame, &call.callee)?;
        for node in &call.arguments {
            let value = self.eval(frame, node)?;
            self.stack.push(value);
        }
        self.tail = Some(Tail { callee, count: call.arguments.len(), span: call.span });
        Ok(Value::Jump(Jump::Call))
    }

    fn lambda(&mut self, frame: &Frame<'_>, lambda: &Lambda) -> Outcome<Value> {
        self.charge(1)?;
        let captured = self.eval_all(frame, &lambda.captures)?;
        let captures = Arc::new(Captures::new(captured));
        let closure = |index: usize| {
            let (group, captures) = (lambda.group.clone(), captures.clone());
            Value::Closure(Arc::new(Closure { group, index: index as u32, captures }))
        };
        match &lambda.result {
            LambdaResult::Value => Ok(closure(0)),
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
            Some(node) => self.eval(frame, node)?,
            None => self.declared_value(index),
        };
        let metadata = define.metadata.as_ref().map(|node| self.eval(frame, node)).transpose()?;
        let doc = define.doc.as_deref().map(Arc::from);
        let is_macro = define.kind == Definition::Macro;
        let mut global = Global { value: Some(value.clone()), doc, is_macro, metadata: None };
        let name = self.core.globals.name(index).to_string();
        if let Some(Value::Map(metadata)) = metadata {
            self.add_metadata(&name, &mut global, metadata).map_err(|signal| self.placed(signal, define.span))?;
        }
        self.set_definition(index, global);
        // A lazy sequence may refer to its own name, and may go wrong further on than anyone asks for:
        // that error comes when such an item is asked for.
        match self.settle(&value) {
            Err(signal) if matches!(signal.raised(), Raised::Halt(_)) => return Err(self.placed(signal, define.span)),
            _ => {}
        }
        Ok(Value::Var(name.as_str().into()))
    }

    fn map(&mut self, frame: &Frame<'_>, pairs: &[(Node, Node)], span: Span) -> Outcome<Value> {
        self.charge(1)?;
        let mut map = Map::default();
        for (key, value) in pairs {
            let key = self.eval(frame, key)?;
            let key = self.key(key).map_err(|signal| self.placed(signal, span))?;
            let value = self.eval(frame, value)?;
            if map.contains_key(&key) {
                return Err(self.placed(twice(&key, "key", "map").into(), span));
            }
            map.insert(key, value);
        }
        Ok(Value::Map(Arc::new(map)))
    }

    fn set(&mut self, frame: &Frame<'_>, nodes: &[Node], span: Span) -> Outcome<Value> {
        self.charge(1)?;
        let mut set = Set::default();
        for node in nodes {
            let member = self.eval(frame, node)?;
            let member = self.key(member).map_err(|signal| self.placed(signal, span))?;
            if set.contains(&member) {
                return Err(self.placed(twice(&member, "item", "set").into(), span));
            }
            set.insert(member);
        }
        Ok(Value::Set(Arc::new(set)))
    }

    fn try_(&mut self, frame: &Frame<'_>, parts: &Try) -> Outcome<Value> {
        self.charge(1)?;
        let top = self.stack.len();
        let (depth, nesting) = (self.depth, self.nesting);
        let source = self.source.clone();
        let mut result = self.eval(frame, &parts.body).and_then(|value| self.settle(&value).map(|()| value));
        if let (Err(signal), Some((slot, handler))) = (&mut result, &parts.catch)
            && let Some(exception) = caught(signal)
        {
            self.stack.truncate(top);
            (self.depth, self.nesting) = (depth, nesting);
            self.source = source.clone();
            self.stack[frame.base + *slot as usize] = exception;
            result = self.eval(frame, handler);
        }
        if let Some(finally) = &parts.finally {
            let halted = matches!(&result, Err(signal) if matches!(signal.raised(), Raised::Halt(_)));
            if !halted {
                self.stack.truncate(top);
                (self.depth, self.nesting) = (depth, nesting);
                self.source = source;
                self.eval(frame, finally)?;
            }
        }
        result
    }
}

/// The exception that a handler gets; a halt is never caught.
pub(super) fn caught(signal: &Signal) -> Option<Value> {
    match signal.raised() {
        Raised::Fault(Fault { error, .. }) | Raised::Error(error) => Some(Value::Exception(error.clone())),
        Raised::Halt(_) => None,
    }
}

/// The error of a literal that turns out to have equal keys.
#[cold]
fn twice(key: &Value, what: &str, whose: &str) -> Error {
    let made = if whose == "map" { "(assoc {} k v …)" } else { "(set [a b …])" };
    Error::new("DuplicateKey", format!("the {what} {} stands twice in this {whose}", describe(key)))
        .suggest(format!("where items may be equal, `{made}` keeps one of them"))
}
