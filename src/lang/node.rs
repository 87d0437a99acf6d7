//! The executable form of code: a tree of nodes in which every name has been resolved.
//!
//! A step is one node that is neither a constant nor a name; each such node charges fuel when it is evaluated. Locals
//! are slots of the running function's frame, captured values are indices into its captures, globals are indices into
//! the session's table, and builtins are direct references.

use crate::form::Form;
use crate::machine::LookUps;
use crate::native::{Builtin, Native};
use crate::operators::{Operator, Run};
use crate::span::{Source, Span};
use crate::value::Value;
use crate::value::map::Map;
use crate::value::shape::Shape;
use crate::value::text::Name;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An executable expression.
pub enum Node {
    /// A value known at compile time.
    Constant(Value),
    /// Reads a slot of the frame.
    Local(u32),
    /// Moves the value out of a slot: its last use before the slot is set again.
    Take(u32),
    /// Reads a captured value.
    Captured(u32),
    /// A function of the running function's own group, by index: the function itself or a sibling.
    Sibling(u32),
    /// Reads a definition of the session.
    Global(u32, Span),
    /// `(if test then else)`
    If(Box<[Node; 3]>),
    /// `(do …)`
    Do(Box<[Node]>),
    /// `(and …)`
    And(Box<[Node]>),
    /// `(or …)`
    Or(Box<[Node]>),
    /// `(let* [name value …] body)`
    Let(Box<Let>),
    /// `(loop* [name value …] body)`
    Loop(Box<Let>),
    /// `(recur …)`: sets consecutive slots and jumps back to the start of the loop or function.
    Recur(Box<Recur>),
    /// `(fn* …)`, `(letfn* …)`: creates closures.
    Lambda(Box<Lambda>),
    /// A call of a builtin resolved at compile time.
    CallBuiltin(Box<CallBuiltin>),
    /// A call of a builtin that has an operator fast path.
    Operate(Box<Operation>),
    /// A call of a literal keyword: looks the keyword up in a collection.
    LookUp(Box<LookUp>),
    /// A call whose callee is computed by the first node.
    Call(Box<Call>),
    /// A call in tail position: replaces the running call.
    TailCall(Box<Call>),
    /// `(def name value)`
    Define(Box<Define>),
    /// `(try … (catch … ) (finally …))`
    Try(Box<Try>),
    /// `[a b]`
    Vector(Box<[Node]>),
    /// `{k v}` with constant keys
    Record(Arc<Shape>, Box<[Node]>),
    /// `{k v}` with computed keys
    Map(Box<[(Node, Node)]>, Span),
    /// `#{a b}`
    Set(Box<[Node]>, Span),
}

impl Node {
    /// Visits the nodes that a node holds directly, without those of the functions that it creates.
    pub fn for_each_child<'n>(&'n self, visit: &mut impl FnMut(&'n Node)) {
        match self {
            Node::Constant(_)
            | Node::Local(_)
            | Node::Take(_)
            | Node::Captured(_)
            | Node::Sibling(_)
            | Node::Global(..) => {}
            Node::If(parts) => parts.iter().for_each(visit),
            Node::Do(nodes) | Node::And(nodes) | Node::Or(nodes) | Node::Vector(nodes) => nodes.iter().for_each(visit),
            Node::Let(scope) | Node::Loop(scope) => {
                scope.values.iter().for_each(&mut *visit);
                visit(&scope.body);
            }
            Node::Recur(recur) => recur.values.iter().for_each(visit),
            Node::Lambda(lambda) => {
                lambda.captures.iter().for_each(&mut *visit);
                if let LambdaResult::Slots(_, body) = &lambda.result {
                    visit(body);
                }
            }
            Node::CallBuiltin(call) => call.arguments.iter().for_each(visit),
            Node::Operate(operation) => [&operation.left, &operation.right].into_iter().for_each(visit),
            Node::LookUp(look_up) => {
                visit(&look_up.collection);
                look_up.default.iter().for_each(visit);
            }
            Node::Call(call) | Node::TailCall(call) => {
                visit(&call.callee);
                call.arguments.iter().for_each(visit);
            }
            Node::Define(define) => define.value.iter().chain(&define.metadata).for_each(visit),
            Node::Try(attempt) => {
                visit(&attempt.body);
                attempt.catches.iter().map(|catch| &catch.body).chain(&attempt.finally).for_each(visit);
            }
            Node::Record(_, nodes) | Node::Set(nodes, _) => nodes.iter().for_each(visit),
            Node::Map(pairs, _) => pairs.iter().flat_map(|(key, value)| [key, value]).for_each(visit),
        }
    }
}

/// The bindings and body of `let*` and `loop*`.
pub struct Let {
    /// The first slot; the bindings occupy consecutive slots from this one on.
    pub slot: u32,
    /// The initial values of the slots, in order.
    pub values: Box<[Node]>,
    /// The body, evaluated after the slots are set.
    pub body: Node,
    /// For `loop*`: a bit mask of the slots that the loop reads, limited to the first 64 slots.
    pub reads: u64,
    /// True if the slots are dead after the body and must be cleared then. False if the whole frame is dropped
    /// anyway.
    pub clears: bool,
}

/// The new values of a loop's or function's slots.
pub struct Recur {
    /// The first slot.
    pub slot: u32,
    /// The values, in order.
    pub values: Box<[Node]>,
}

/// A group of functions created together, with the values that they capture.
pub struct Lambda {
    /// The code of the functions.
    pub group: Arc<Group>,
    /// Sources of the captured values; each is a name or a constant.
    pub captures: Box<[Node]>,
    /// The use of the created functions.
    pub result: LambdaResult,
}

/// The use that a [`Lambda`] node makes of its functions.
pub enum LambdaResult {
    /// The only function is the value of the node.
    Value,
    /// The functions are stored in consecutive slots from this one on, then the body is evaluated.
    Slots(u32, Box<Node>),
}

/// A call of a builtin.
pub struct CallBuiltin {
    /// The builtin.
    pub builtin: &'static Builtin,
    /// The function of the embedder that the builtin describes, if it is one.
    pub native: Option<Arc<Native>>,
    /// Its arguments.
    pub arguments: Box<[Node]>,
    /// Source location of the call.
    pub span: Span,
}

/// A call of a builtin that has an operator fast path.
pub struct Operation {
    /// The operator, which handles integers.
    pub operator: Operator,
    /// The evaluator's function specialized for this operator and these kinds of operands.
    pub run: Run,
    /// The builtin that handles all other operands.
    pub builtin: &'static Builtin,
    /// Its first argument.
    pub left: Node,
    /// Its second argument; nil for a unary operator.
    pub right: Node,
    /// Source location of the call.
    pub span: Span,
}

/// `(:key collection)`, `(:key collection default)`
pub struct LookUp {
    /// The keyword.
    pub key: Value,
    /// Monomorphic inline cache: the index of the key in the last small map that had it, or [`LookUp::NOWHERE`].
    pub place: AtomicUsize,
    /// The collection to search.
    pub collection: Node,
    /// The value returned if the key is missing.
    pub default: Option<Node>,
    /// Source location of the call.
    pub span: Span,
}

impl LookUp {
    /// The place of a key that was not found yet, or was missed last.
    pub const NOWHERE: usize = usize::MAX;

    /// Looks up the key in a small map, trying the cached index first.
    #[inline(always)]
    pub fn find<'m>(&self, map: &'m Map, look_ups: &mut LookUps, source: &Source) -> Option<&'m Value> {
        let last = self.place.load(Ordering::Relaxed);
        let mut place = last;
        let found = map.get_near(&self.key, &mut place);
        if place != last {
            self.store(place, last, look_ups, source);
        }
        found
    }

    /// Remembers the place of the key, and records the first time that it is found.
    #[inline(never)]
    fn store(&self, place: usize, last: usize, look_ups: &mut LookUps, source: &Source) {
        self.place.store(place, Ordering::Relaxed);
        if let (LookUp::NOWHERE, Value::Keyword(name), false) = (last, &self.key, source.is_hidden) {
            look_ups.hit(name);
        }
    }

    /// Records that a map lacks the key, and forgets its place, so that it is seen when another map has it.
    pub(crate) fn missed(&self, map: &Map, look_ups: &mut LookUps) {
        let Value::Keyword(name) = &self.key else { return };
        if self.place.swap(LookUp::NOWHERE, Ordering::Relaxed) != LookUp::NOWHERE {
            look_ups.hit(name);
        }
        look_ups.missed(name, map, true);
    }

    /// True if the key has this name, and was found in a small map since it was last missed.
    pub(crate) fn has_found(&self, name: &Name) -> bool {
        self.place.load(Ordering::Relaxed) != LookUp::NOWHERE && matches!(&self.key, Value::Keyword(key) if key == name)
    }
}

/// A call of a computed callee.
pub struct Call {
    /// The callee.
    pub callee: Node,
    /// Its arguments.
    pub arguments: Box<[Node]>,
    /// Source location of the call.
    pub span: Span,
}

/// A definition.
pub struct Define {
    /// Index of the global.
    pub global: u32,
    /// Its value; `None` if the name is only declared.
    pub value: Option<Node>,
    /// Its metadata.
    pub metadata: Option<Node>,
    /// Its doc string.
    pub doc: Option<String>,
    /// The kind of definition.
    pub kind: Definition,
    /// Source location of the definition.
    pub span: Span,
}

/// The kinds of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// `def`
    Value,
    /// `defmacro`
    Macro,
    /// `defonce`: defines the name only if it has no value yet.
    Once,
}

/// A `try` expression.
pub struct Try {
    /// The body.
    pub body: Node,
    /// The handlers, of which the first that catches the exception runs.
    pub catches: Box<[Catch]>,
    /// The cleanup expression: always evaluated, except after a halt.
    pub finally: Option<Node>,
}

/// A handler of `try`.
pub struct Catch {
    /// The class that it catches, without its package; `None` for every exception.
    pub class: Option<Box<str>>,
    /// The slot for the exception.
    pub slot: u32,
    /// The handler.
    pub body: Node,
}

/// A group of functions that may refer to each other.
pub struct Group {
    /// The code of the functions.
    pub lambdas: Vec<Code>,
    /// Names of the captured values, in order.
    pub captured: Vec<String>,
    /// The source text in which the functions are defined.
    pub source: Arc<Source>,
    /// The free names of the forms, each paired with the qualified name to which it was resolved. They are kept so
    /// that a function keeps its meaning wherever it is deserialized.
    pub names: Vec<(String, String)>,
}

/// The code of one function.
pub struct Code {
    /// Its name, if any.
    pub name: Option<String>,
    /// Its arities in the order of their parameter counts, the variadic one last.
    pub arities: Vec<Arity>,
    /// The expanded form that it was compiled from, `(fn* …)`.
    pub form: Arc<Form>,
}

/// One arity of a function.
pub struct Arity {
    /// The number of required parameters.
    pub required: u32,
    /// True if surplus arguments are collected, as a list, in one additional slot.
    pub variadic: bool,
    /// The number of slots in the frame, parameters included.
    pub frame: u32,
    /// Nesting depth of its nodes, for the depth limit.
    pub nesting: u32,
    /// Its body.
    pub body: Node,
    /// The number of implicit parameters that precede the written ones: a macro's `&form` and `&env`.
    pub implicit: u32,
    /// The parameters as written in the source.
    pub parameters: String,
}
