//! Purity: whether calls of functions have an effect, or an answer that depends on more than their arguments.
//!
//! The answer is about the code as it is now, with the definitions that it refers to. It is "no" where it is not known:
//! for tools, functions of the host, cells, printing, exceptions and dispatch. A function that code is given as an
//! argument is assumed to be one of those asked about.

use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Intrinsic;
use crate::node::{Group, Node};
use crate::value::Value;
use std::sync::Arc;

/// Maximum number of nodes that are looked at.
const MOST: usize = 4_000;

/// Nodes for each of which a step is charged.
const NODES_A_STEP: usize = 8;

impl Machine {
    /// Returns whether calls of the functions among these values are known to have no effect, and to depend on nothing
    /// but their arguments.
    ///
    /// # Errors
    /// Halts if a resource limit is exceeded.
    pub(crate) fn are_pure(&mut self, values: &[Value]) -> Outcome<bool> {
        self.walk(values, None)
    }

    /// As [`are_pure`](Machine::are_pure), and whether one of them may call the function.
    ///
    /// # Errors
    /// Halts if a resource limit is exceeded.
    pub(crate) fn are_pure_and_call(&mut self, values: &[Value], function: &Value) -> Outcome<bool> {
        match function {
            Value::Closure(closure) => self.walk(values, Some(Arc::as_ptr(&closure.group))),
            _ => Ok(false),
        }
    }

    fn walk(&mut self, values: &[Value], called: Option<*const Group>) -> Outcome<bool> {
        let open = values.iter().map(|value| Open::Value(value.clone())).collect();
        let mut walk = Walk { machine: self, seen: Vec::new(), open, looked_at: 0 };
        let holds = walk.all() && called.is_none_or(|called| walk.seen.contains(&called));
        let steps = walk.looked_at / NODES_A_STEP;
        self.charge(steps as u64)?;
        Ok(holds)
    }
}

/// A walk through the code of functions.
struct Walk<'m> {
    machine: &'m Machine,
    /// The groups of functions that have been met.
    seen: Vec<*const Group>,
    open: Vec<Open>,
    looked_at: usize,
}

/// The code that is still to be looked at.
enum Open {
    Value(Value),
    Group(Arc<Group>),
}

impl Walk<'_> {
    /// Looks at all that has been met.
    fn all(&mut self) -> bool {
        while let Some(open) = self.open.pop() {
            self.looked_at += 1;
            let is_pure = match open {
                Open::Value(value) => self.value(&value),
                Open::Group(group) => {
                    let mut arities = group.lambdas.iter().flat_map(|code| &code.arities);
                    arities.all(|arity| self.code(&arity.body))
                }
            };
            if !is_pure || self.looked_at > MOST {
                return false;
            }
        }
        true
    }

    /// Looks at a value that code refers to. Data is pure.
    fn value(&mut self, value: &Value) -> bool {
        match value {
            Value::Closure(closure) => {
                self.group(&closure.group);
                self.functions_of(closure.captures.as_slice());
                true
            }
            Value::Builtin(builtin) => self.machine.core.registry.is_pure(builtin),
            Value::Bound(bound) => {
                self.functions_of(&bound.arguments);
                self.machine.core.registry.is_pure(bound.builtin)
            }
            Value::Tool(_) | Value::Native(_) | Value::Var(_) => false,
            _ => true,
        }
    }

    /// True for a call of a method whose name the session does not define: it calls no protocol function.
    fn is_of_language(&self, call: &[Node]) -> bool {
        let Some(Node::Constant(Value::Symbol(name))) = call.first() else { return false };
        self.machine.core.globals.find(name.as_str().trim_start_matches('.')).is_none()
    }

    fn functions_of(&mut self, values: &[Value]) {
        let functions = values.iter().filter(|value| value.is_function());
        self.open.extend(functions.cloned().map(Open::Value));
    }

    fn group(&mut self, group: &Arc<Group>) {
        if !self.seen.contains(&Arc::as_ptr(group)) {
            self.seen.push(Arc::as_ptr(group));
            self.open.push(Open::Group(group.clone()));
        }
    }

    fn code(&mut self, body: &Node) -> bool {
        let mut open = vec![body];
        while let Some(node) = open.pop() {
            // Constants are not counted: code without shortcuts has others.
            self.looked_at += usize::from(!matches!(node, Node::Constant(_)));
            let is_pure = match node {
                Node::Define(_) | Node::Try(_) => false,
                Node::Constant(value) => self.value(value),
                Node::Global(index, _) => {
                    let machine = self.machine;
                    machine.core.globals.get(*index).value.as_ref().is_some_and(|value| self.value(value))
                }
                Node::Lambda(lambda) => {
                    self.group(&lambda.group);
                    true
                }
                Node::CallBuiltin(call) => {
                    call.native.is_none()
                        && self.machine.core.registry.is_pure(call.builtin)
                        && (call.builtin.intrinsic != Some(Intrinsic::ObjectCall)
                            || self.is_of_language(&call.arguments))
                }
                _ => true,
            };
            if !is_pure || self.looked_at > MOST {
                return false;
            }
            node.for_each_child(&mut |child| open.push(child));
        }
        true
    }
}
