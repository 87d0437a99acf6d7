//! Nodes: code with every name resolved, ready to be walked.
//!
//! A step is one node that is neither a constant nor a name; each such node pays for itself when it
//! is evaluated. Locals are slots of the running function's frame, captured values are indices, globals
//! are indices into the session's table, builtins are direct.

use crate::lang::builtin::Builtin;
use crate::lang::builtin::operators::{Operator, Run};
use crate::lang::form::Form;
use crate::lang::span::{Source, Span};
use crate::lang::value::Value;
use crate::lang::value::map::Map;
use crate::lang::value::shape::Shape;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Code.
pub enum Node {
    /// A value known when the code was made.
    Constant(Value),
    /// A slot of the frame.
    Local(u32),
    /// A slot of the frame that is not read again before it is set: its value is taken out.
    Take(u32),
    /// A captured value.
    Captured(u32),
    /// A function of the running function's own group, by its index: itself, or a sibling.
    Sibling(u32),
    /// A session's definition.
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
    /// `(recur …)`: sets the slots from the first on and goes round.
    Recur(Box<Recur>),
    /// `(fn* …)`, `(letfn* …)`: makes functions.
    Lambda(Box<Lambda>),
    /// A call of a builtin known by name.
    CallBuiltin(Box<CallBuiltin>),
    /// A call of a builtin that is an operator.
    Operate(Box<Operation>),
    /// A call of a keyword known by name: what a collection has under it.
    LookUp(Box<LookUp>),
    /// A call of whatever the first node comes to.
    Call(Box<Call>),
    /// The same where the result is the function's own: takes its place.
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

/// The bindings and body of `let*` and `loop*`.
pub struct Let {
    /// The first slot; the bindings take this one and those behind it.
    pub slot: u32,
    /// What the slots are set to, in order.
    pub values: Box<[Node]>,
    /// What is evaluated then.
    pub body: Node,
    /// Of `loop*`: the slots that it reads, each as a bit, among the first 64.
    pub reads: u64,
    /// True where the slots are needed no longer once the body is done: they are cleared then, unless
    /// the whole frame goes.
    pub clears: bool,
}

/// The new values of a loop's or function's slots.
pub struct Recur {
    /// The first slot.
    pub slot: u32,
    /// The values, in order.
    pub values: Box<[Node]>,
}

/// Functions made together, and what they capture.
pub struct Lambda {
    /// Their codes.
    pub group: Arc<Group>,
    /// Where the captured values come from, all names or constants.
    pub captures: Box<[Node]>,
    /// What becomes of them.
    pub result: LambdaResult,
}

/// What a [`Lambda`] node does with its functions.
pub enum LambdaResult {
    /// The node's value is the only function.
    Value,
    /// The functions go into slots from this one on, then the body is evaluated.
    Slots(u32, Box<Node>),
}

/// A call of a builtin.
pub struct CallBuiltin {
    /// The builtin.
    pub builtin: &'static Builtin,
    /// Its arguments.
    pub arguments: Box<[Node]>,
    /// Where the call stands.
    pub span: Span,
}

/// A call of a builtin that is an operator.
pub struct Operation {
    /// What it does with integers.
    pub operator: Operator,
    /// The evaluator's function for it and for operands of these kinds.
    pub run: Run,
    /// What it does with anything else.
    pub builtin: &'static Builtin,
    /// Its first argument.
    pub left: Node,
    /// Its second argument; nil where it takes one.
    pub right: Node,
    /// Where the call stands.
    pub span: Span,
}

/// `(:key collection)`, `(:key collection default)`
pub struct LookUp {
    /// The keyword.
    pub key: Value,
    /// Where it stood in the last small map: most often it stands there in the next one.
    pub place: AtomicUsize,
    /// Where it is looked up.
    pub collection: Node,
    /// What stands for it where it is missing.
    pub default: Option<Node>,
    /// Where the call stands.
    pub span: Span,
}

impl LookUp {
    /// What a small map has under the key.
    #[inline(always)]
    pub fn find<'m>(&self, map: &'m Map) -> Option<&'m Value> {
        let last = self.place.load(Ordering::Relaxed);
        let mut place = last;
        let found = map.get_near(&self.key, &mut place);
        if place != last {
            self.place.store(place, Ordering::Relaxed);
        }
        found
    }
}

/// A call of a computed function.
pub struct Call {
    /// The function.
    pub callee: Node,
    /// Its arguments.
    pub arguments: Box<[Node]>,
    /// Where the call stands.
    pub span: Span,
}

/// A definition.
pub struct Define {
    /// Index of the global.
    pub global: u32,
    /// Its value; none where the name is only declared.
    pub value: Option<Node>,
    /// Its metadata.
    pub metadata: Option<Node>,
    /// Its doc string.
    pub doc: Option<String>,
    /// What it defines, and when.
    pub kind: Definition,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// `def`
    Value,
    /// `defmacro`
    Macro,
    /// `defonce`: only what has no value yet.
    Once,
}

/// `try`.
pub struct Try {
    /// The body.
    pub body: Node,
    /// The slot for the exception and what is evaluated then; any exception is caught by the first
    /// clause.
    pub catch: Option<(u32, Node)>,
    /// What is evaluated last in any case but a halt.
    pub finally: Option<Node>,
}

/// Functions that may refer to each other.
pub struct Group {
    /// Their codes.
    pub lambdas: Vec<Code>,
    /// Names of the captured values, in order.
    pub captured: Vec<String>,
    /// The text they were defined in.
    pub source: Arc<Source>,
    /// What the free names of the forms were resolved to, with the qualified name: kept so that a
    /// function means the same wherever it is read back.
    pub names: Vec<(String, String)>,
}

/// The code of one function.
pub struct Code {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Its arities, in the order of their parameter counts; a variadic one last.
    pub arities: Vec<Arity>,
    /// The expanded form it was made from, `(fn* …)`.
    pub form: Arc<Form>,
}

/// One arity of a function.
pub struct Arity {
    /// How many parameters are required.
    pub required: u32,
    /// True if what is left over goes, as a list, into one more slot.
    pub variadic: bool,
    /// Slots of the frame, parameters included.
    pub frame: u32,
    /// How deep its nodes nest, for the depth limit.
    pub nesting: u32,
    /// Its body.
    pub body: Node,
    /// How many parameters stand in front of those that the program wrote: a macro's `&form` and `&env`.
    pub implicit: u32,
    /// The parameters as they were written.
    pub parameters: String,
}
