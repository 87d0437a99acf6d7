//! Partial reads: in `(take 3 (map f xs))`, `f` is called for three items.
//!
//! Sequence functions are eager over realised collections. Where an enclosing call reads only a part of their result,
//! the resolver makes the collection lazy with `stepwise*`, and them with it, unless all functions are the language's
//! own. If the part is a sequence, `realised*` computes it at once, so that effects keep the order of the program.
//!
//! Where the enclosing call only counts the items of `mapcat`, it counts them as they come.

use super::{Resolver, names::Meaning};
use crate::error::Outcome;
use crate::form::{Form, FormKind};
use crate::native::{Builtin, Conduct, Intrinsic, Reading};
use crate::node::{CallBuiltin, Lambda, Node};
use crate::value::Value;
use std::collections::BTreeSet;

impl Resolver<'_> {
    /// Creates the node of a builtin's call.
    pub(super) fn call_of_builtin(&mut self, mut call: Box<CallBuiltin>) -> Outcome<Node> {
        let reading = call.builtin.reading;
        if reading == Reading::Counts && self.names.takes_shortcuts() {
            return self.count_joined(call);
        }
        if !matches!(reading, Reading::Few | Reading::Search | Reading::Prefix) {
            return Ok(Node::CallBuiltin(call));
        }
        let is_search = reading == Reading::Search;
        // The function and the collection may come in either order.
        let Some(read) = call.arguments.iter_mut().find(|argument| calls_open(argument, is_search)) else {
            return Ok(Node::CallBuiltin(call));
        };
        let source = self.internal("core/stepwise*")?;
        make_stepwise(read, source);
        let span = call.span;
        let node = Node::CallBuiltin(call);
        if reading != Reading::Prefix {
            return Ok(node);
        }
        let builtin = self.internal("core/realised*")?;
        Ok(Node::CallBuiltin(Box::new(CallBuiltin { builtin, native: None, arguments: Box::new([node]), span })))
    }

    /// Counts the items of a join as they come: `(frequencies (mapcat f coll))`.
    fn count_joined(&mut self, mut call: Box<CallBuiltin>) -> Outcome<Node> {
        if let [Node::CallBuiltin(join)] = &mut *call.arguments
            && is_join(join.builtin)
            && !join.builtin.is_internal()
            && join.arguments.len() == 2
        {
            let (arguments, span) = (std::mem::take(&mut join.arguments), join.span);
            let builtin = self.internal("core/frequencies-joined*")?;
            return Ok(Node::CallBuiltin(Box::new(CallBuiltin { builtin, native: None, arguments, span })));
        }
        Ok(Node::CallBuiltin(call))
    }

    /// Makes the collection of a join lazy, if the join calls the function that it is in, directly or through another one,
    /// and all is pure: what is seen when it runs.
    pub(super) fn read_as_needed(&mut self, forms: &[Form], arguments: &mut [Node]) -> Outcome<()> {
        if arguments.len() != 2 || !self.frames.in_named_function() {
            return Ok(());
        }
        let (used, looked_at) = symbols(forms);
        self.names.charge(looked_at / 16)?;
        let mut names = Vec::new();
        if used.iter().any(|name| self.frames.is_around(name)) {
            for name in used {
                if self.frames.is_around(name) || self.frames.find(name).is_some() {
                    names.push(name);
                }
            }
            return self.wrap_as_read("core/as-read*", &names, &forms[1], &mut arguments[1]);
        }
        let Some(own) = self.function_around() else { return Ok(()) };
        if self.frames.is_recursive() && self.is_local(&forms[1]) {
            // The collection may be what a recursive call has returned.
            return self.wrap_as_read("core/as-read*", &[&own], &forms[1], &mut arguments[1]);
        }
        // Functions whose results the join reads may call the one that it is in.
        for name in inner_callees(&forms[0]) {
            if self.frames.find(name).is_none() && self.is_definition(name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        names.insert(0, &own);
        self.wrap_as_read("core/as-read-through*", &names, &forms[1], &mut arguments[1])
    }

    /// Makes `(concat r (map f r))` lazy in a function that calls itself, if it is pure: where `r` is what such a call has
    /// returned, each level doubles the items.
    pub(super) fn concat_as_needed(&mut self, forms: &[Form], arguments: &mut [Node]) -> Outcome<()> {
        // Each argument is compared with the others.
        if !(2..=8).contains(&arguments.len()) || !self.frames.is_recursive() {
            return Ok(());
        }
        let Some(own) = self.function_around() else { return Ok(()) };
        let (used, looked_at) = symbols(forms);
        self.names.charge(looked_at / 16)?;
        if used.iter().any(|name| self.frames.is_around(name)) {
            return Ok(());
        }
        for at in 0..arguments.len() {
            let Some(name) = forms[at].as_symbol().filter(|_| self.is_local(&forms[at])) else { continue };
            let is_read_again = |(other, form): (usize, &Form)| {
                other != at
                    && matches!(form.kind, FormKind::List(_))
                    && symbols(std::slice::from_ref(form)).0.contains(name)
            };
            if forms.iter().enumerate().any(is_read_again) {
                self.wrap_as_read("core/as-read*", &[&own], &forms[at], &mut arguments[at])?;
            }
        }
        Ok(())
    }

    /// Returns the name of the innermost named function around, if code can refer to it: a method may have the name of
    /// something else.
    fn function_around(&mut self) -> Option<String> {
        let name = self.frames.function_name()?.to_string();
        let is_known = self.frames.find(&name).is_some() || self.own(&name).is_some() || self.is_definition(&name);
        is_known.then_some(name)
    }

    /// True for the name of a definition of the session.
    fn is_definition(&mut self, name: &str) -> bool {
        matches!(self.names.meaning(name, &Vec::new), Ok(Meaning::Global(_)))
    }

    /// True for the name of a value that is bound within the function.
    fn is_local(&mut self, form: &Form) -> bool {
        form.as_symbol().is_some_and(|name| !self.frames.is_around(name) && self.frames.find(name).is_some())
    }

    /// Replaces a collection by a call of the builtin with the values of the names and the collection.
    fn wrap_as_read(&mut self, builtin: &str, names: &[&str], form: &Form, argument: &mut Node) -> Outcome<()> {
        let span = form.span;
        let mut values = Vec::with_capacity(names.len() + 1);
        for name in names {
            values.push(self.name(name, span)?);
        }
        values.push(std::mem::replace(argument, Node::Constant(Value::Nil)));
        let builtin = self.internal(builtin)?;
        *argument = Node::CallBuiltin(Box::new(CallBuiltin { builtin, native: None, arguments: values.into(), span }));
        Ok(())
    }

    /// Returns a builtin that programs cannot name.
    pub(super) fn internal(&mut self, name: &str) -> Outcome<&'static Builtin> {
        match self.names.meaning(name, &Vec::new)? {
            Meaning::Builtin(builtin) => Ok(builtin),
            _ => Err(crate::error::Error::new("InternalError", format!("`{name}` is no builtin")).into()),
        }
    }
}

/// Returns the symbols in forms, sorted, so that the code is the same whenever it is resolved; and the number of forms.
fn symbols(forms: &[Form]) -> (BTreeSet<&str>, u64) {
    let (mut used, mut looked_at) = (BTreeSet::new(), 0);
    let mut open: Vec<&Form> = forms.iter().collect();
    while let Some(form) = open.pop() {
        looked_at += 1;
        match &form.kind {
            FormKind::Symbol(name) => {
                used.insert(name.as_str());
            }
            FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => {
                open.extend(items);
            }
            _ => {}
        }
    }
    (used, looked_at)
}

/// The heads of forms that are no calls.
const SPECIAL: &[&str] =
    &["and", "def", "do", "fn*", "if", "let*", "letfn*", "loop*", "or", "quote", "recur", "try", "var"];

/// Returns the functions that are called for the collections of the inner bindings of a `for`, sorted.
fn inner_callees(function: &Form) -> Vec<&str> {
    let mut callees = BTreeSet::new();
    let mut open = vec![function];
    while let Some(form) = open.pop() {
        let FormKind::List(items) = &form.kind else { continue };
        if let [head, _, collection] = items.as_slice()
            && head.is_symbol("core/for*")
            && let Some(callee) = collection.as_list().and_then(<[Form]>::first).and_then(Form::as_symbol)
            && !callee.contains('/')
            && !SPECIAL.contains(&callee)
        {
            callees.insert(callee);
        }
        open.extend(items);
    }
    callees.into_iter().collect()
}

/// True for `concat`.
pub(super) fn concatenates(callee: &Node) -> bool {
    matches!(callee, Node::Constant(Value::Builtin(builtin)) if builtin.intrinsic == Some(Intrinsic::Concat))
}

/// True for a builtin that may read a part of a sequence.
pub(super) fn is_partial(callee: &Node) -> bool {
    let Node::Constant(Value::Builtin(builtin)) = callee else { return false };
    matches!(builtin.reading, Reading::Few | Reading::Search | Reading::Prefix)
}

/// True for a builtin that joins the sequences which a function returns for the items of a collection.
pub(super) fn joins(callee: &Node) -> bool {
    matches!(callee, Node::Constant(Value::Builtin(builtin)) if is_join(builtin))
}

fn is_join(builtin: &Builtin) -> bool {
    builtin.conduct == Conduct::Joins && builtin.reading == Reading::Stepwise
}

/// Returns the call if the node is one of a function that reads stepwise.
fn stepwise_call(node: &Node) -> Option<&CallBuiltin> {
    match node {
        Node::CallBuiltin(call)
            if matches!(call.builtin.reading, Reading::Stepwise | Reading::Prefix | Reading::Result) =>
        {
            Some(call)
        }
        _ => None,
    }
}

/// True for a chain of stepwise calls, one of which calls a function that may have effects.
fn calls_open(node: &Node, is_search: bool) -> bool {
    let mut node = node;
    while let Some(call) = stepwise_call(node) {
        let Some((last, others)) = call.arguments.split_last() else { return false };
        let has_function = !matches!(call.builtin.conduct, Conduct::Take | Conduct::Same);
        if has_function && others.iter().take(1).any(|function| is_open(function, is_search)) {
            return true;
        }
        node = last;
    }
    false
}

/// Makes the sources of a chain of stepwise calls lazy.
fn make_stepwise(node: &mut Node, source: &'static Builtin) {
    let Node::CallBuiltin(call) = node else { return wrap(node, source) };
    match call.builtin.reading {
        // It need not be asked whether it may be lazy.
        Reading::Source if call.arguments.len() > 1 => {
            if let Some(collection) = call.arguments.last_mut() {
                *node = std::mem::replace(collection, Node::Constant(Value::Nil));
                make_stepwise(node, source);
            }
        }
        Reading::Source => {}
        // The enclosing read decides how far this one goes.
        Reading::Result => {
            if let Some(inner) = call.arguments.first_mut() {
                *node = std::mem::replace(inner, Node::Constant(Value::Nil));
            }
        }
        Reading::Stepwise | Reading::Prefix => {
            let first = usize::from(call.arguments.len() > 1);
            for collection in &mut call.arguments[first..] {
                make_stepwise(collection, source);
            }
        }
        _ => wrap(node, source),
    }
}

fn wrap(node: &mut Node, source: &'static Builtin) {
    let span = match node {
        Node::CallBuiltin(call) => call.span,
        Node::Call(call) => call.span,
        Node::Global(_, span) => *span,
        _ => crate::span::Span::default(),
    };
    let collection = std::mem::replace(node, Node::Constant(Value::Nil));
    let arguments = Box::new([collection]);
    *node = Node::CallBuiltin(Box::new(CallBuiltin { builtin: source, native: None, arguments, span }));
}

/// True unless the node is a function of the language, or data. A search often reads to the end, for which a lazy
/// sequence is slower; so there a function that calls only the language's own ones is no reason for it.
fn is_open(node: &Node, is_search: bool) -> bool {
    match node {
        Node::Constant(value) => is_open_value(value),
        Node::Lambda(lambda) => !is_search || is_open_code(lambda),
        Node::CallBuiltin(call) => call.native.is_some() || call.arguments.iter().any(|part| is_open(part, is_search)),
        Node::LookUp(_) | Node::Vector(_) | Node::Record(..) | Node::Map(..) | Node::Set(..) => false,
        _ => true,
    }
}

fn is_open_value(value: &Value) -> bool {
    matches!(value, Value::Tool(_) | Value::Native(_) | Value::Var(_))
}

fn is_open_code(lambda: &Lambda) -> bool {
    let mut open: Vec<&Node> = bodies(lambda).collect();
    while let Some(node) = open.pop() {
        match node {
            Node::Call(_) | Node::TailCall(_) | Node::Global(..) | Node::Define(_) => return true,
            Node::Constant(value) if is_open_value(value) => return true,
            Node::CallBuiltin(call) if call.native.is_some() => return true,
            Node::Lambda(inner) => open.extend(bodies(inner)),
            _ => {}
        }
        node.for_each_child(&mut |child| open.push(child));
    }
    false
}

fn bodies(lambda: &Lambda) -> impl Iterator<Item = &Node> {
    lambda.group.lambdas.iter().flat_map(|code| &code.arities).map(|arity| &arity.body)
}
