//! Everything that escaped values can reach: their code without regard to the order or number of calls.

use super::calls::{Place, UnknownCall};
use crate::heap::Heap;
use crate::native::{Builtin, Conduct};
use crate::node::{Group, Node};
use crate::span::Source;
use crate::value::Value;
use crate::value::function::ToolFunction;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// A tool by the exact names of its server and itself.
pub type ToolName = (Arc<str>, Arc<str>);

/// The closure of the escaped values under "may call".
#[derive(Default)]
pub struct Reach {
    /// The tools.
    pub tools: BTreeMap<ToolName, Arc<ToolFunction>>,
    /// The definitions, by index.
    pub globals: BTreeSet<u32>,
    /// The names of vars.
    pub vars: BTreeSet<String>,
    /// Builtins that look names up at run time.
    pub unknown: Vec<UnknownCall>,
    /// True if a cell or a function of the embedder is reached: what it does depends on when it is called.
    pub is_changeable: bool,
    groups: Vec<Arc<Group>>,
    values: Vec<Value>,
    seen: HashSet<usize>,
}

impl Reach {
    /// Adds a value. [`Reach::follow`] adds what it reaches.
    pub fn value(&mut self, value: &Value) {
        self.values.push(value.clone());
    }

    /// Adds the code of a function.
    pub fn code(&mut self, group: &Arc<Group>) {
        if self.seen.insert(Arc::as_ptr(group).addr()) {
            self.groups.push(group.clone());
        }
    }

    /// Adds a tool.
    pub fn tool(&mut self, tool: &Arc<ToolFunction>) {
        self.tools.entry((tool.server.clone(), tool.name.clone())).or_insert_with(|| tool.clone());
    }

    /// Reports a builtin that looks names up at run time.
    pub fn builtin(&mut self, builtin: &Builtin, place: &Place) {
        if builtin.conduct == Conduct::ByName {
            self.unknown(place.unknown(format!("`{}` looks names up at run time", builtin.name)));
        }
    }

    /// Reports a place once.
    pub fn unknown(&mut self, unknown: UnknownCall) {
        if !self.unknown.contains(&unknown) {
            self.unknown.push(unknown);
        }
    }

    /// Adds everything that the added values and functions reach, except through definitions and vars. `place` is that
    /// of the escape.
    pub fn follow(&mut self, heap: &Heap, place: &Place) {
        loop {
            if let Some(value) = self.values.pop() {
                self.within(&value, heap, place);
            } else if let Some(group) = self.groups.pop() {
                for arity in group.lambdas.iter().flat_map(|code| &code.arities) {
                    self.node(&arity.body, &group.source);
                }
            } else {
                return;
            }
        }
    }

    fn within(&mut self, value: &Value, heap: &Heap, place: &Place) {
        match value {
            Value::Tool(tool) => self.tool(tool),
            Value::Builtin(builtin) => self.builtin(builtin, place),
            Value::Closure(closure) => self.code(&closure.group),
            Value::Bound(bound) => self.builtin(bound.builtin, place),
            Value::Native(_) => self.is_changeable = true,
            Value::Var(name) => {
                self.vars.insert(name.as_str().to_owned());
            }
            Value::Cell(handle) | Value::Lazy(handle) => {
                self.is_changeable = true;
                if self.seen.insert(Arc::as_ptr(handle).addr()) {
                    if let Ok(state) = heap.state(handle) {
                        self.values.extend(state.held().cloned());
                    }
                    self.values.extend(heap.notes(handle).into_iter().flat_map(|notes| notes.values()));
                }
            }
            _ => {}
        }
        if value.is_scalar() || value.node().is_some_and(|(address, _)| !self.seen.insert(address ^ 1)) {
            return;
        }
        value.for_each_child(&mut |child, _| {
            if !child.is_scalar() || child.is_function() || matches!(child, Value::Cell(_)) {
                self.values.push(child.clone());
            }
        });
    }

    /// Adds code of a source. [`Reach::follow`] adds what it reaches.
    pub fn node(&mut self, node: &Node, source: &Arc<Source>) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match node {
                Node::Constant(value) => self.value(value),
                Node::Global(index, _) => {
                    self.globals.insert(*index);
                }
                Node::Define(define) => {
                    self.globals.insert(define.global);
                }
                Node::CallBuiltin(call) => {
                    self.is_changeable |= call.native.is_some();
                    self.builtin(call.builtin, &Place { source: source.clone(), span: call.span });
                }
                Node::Lambda(lambda) => self.code(&lambda.group),
                _ => {}
            }
            node.for_each_child(&mut |child| open.push(child));
        }
    }
}
