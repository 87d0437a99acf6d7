//! Resolution: compiles expanded forms to nodes.
//!
//! Every name is looked up once, here. A local becomes a slot or a captured value, a definition of the session an
//! index, and a builtin or a tool a constant. An unknown name is an error before anything runs, with a suggestion,
//! unless a later form of the same program defines it.

mod last_use;
mod methods;
mod names;
mod partly;
mod scope;
pub mod shape;

use crate::error::{Error, Outcome, Signal};
use crate::form::{Form, FormKind};
use crate::node::*;
use crate::operators::Operator;
use crate::span::{Source, Span};
use crate::value::Value;
use crate::value::shape::Shape;
pub use names::{Meaning, Names, definition, name_elsewhere};
use names::{elsewhere, qualified};
use scope::{Frames, Location};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Resolves one top-level form.
pub struct Resolver<'a> {
    names: &'a mut dyn Names,
    source: &'a Arc<Source>,
    frames: Frames,
    /// The definitions whose values are being resolved.
    own: Vec<Own>,
}

/// A definition whose value is being resolved. Functions within the value refer to it by its name, as they run after it
/// is made; elsewhere in the value the name keeps its meaning.
struct Own {
    name: String,
    global: u32,
    /// The number of groups of functions around the definition.
    around: usize,
}

/// Executable code: a body and the size of its frame.
pub struct Program {
    /// The code.
    pub body: Node,
    /// The number of slots in its frame.
    pub frame: u32,
}

impl<'a> Resolver<'a> {
    /// Creates a resolver for a form of the given source.
    pub fn new(names: &'a mut dyn Names, source: &'a Arc<Source>) -> Resolver<'a> {
        Resolver { names, source, frames: Frames::default(), own: Vec::new() }
    }

    /// Resolves an expanded top-level form.
    ///
    /// # Errors
    /// Returns `UnboundVariable` or `SyntaxError`, with the source location.
    pub fn program(mut self, form: &Form) -> Outcome<Program> {
        self.frames.enter_function(false, &[]);
        let body = self.form(form, Tail::No)?;
        let body = self.marked(body);
        let frame = self.frames.leave_function();
        Ok(Program { body, frame: frame.slots })
    }

    /// Resolves expanded `(fn* …)` forms whose captured names have the given order. Used to deserialize functions.
    pub fn function(mut self, functions: &[(Option<String>, Arc<Form>)], captured: &[String]) -> Outcome<Arc<Group>> {
        self.frames.enter_function(false, captured);
        let named: Vec<Named<'_>> = functions.iter().map(|(name, form)| (name.as_deref(), &**form)).collect();
        let (group, _) = self.group(&named, |at| functions[at].1.clone())?;
        Ok(group)
    }

    /// Marks the last uses in a complete body.
    fn marked(&self, mut body: Node) -> Node {
        if self.names.takes_shortcuts() {
            last_use::mark(&mut body);
        }
        body
    }

    fn fail<T>(&self, span: Span, message: String) -> Outcome<T> {
        Err(Signal::from(Error::new("SyntaxError", message)).at(self.source, span))
    }

    fn form(&mut self, form: &Form, tail: Tail) -> Outcome<Node> {
        self.names.check_stack()?;
        self.frames.deeper();
        // An error aborts the resolution, so functions that were entered need not be left.
        let node = self.form_kind(form, tail)?;
        self.frames.shallower();
        Ok(node)
    }

    fn form_kind(&mut self, form: &Form, tail: Tail) -> Outcome<Node> {
        match &form.kind {
            FormKind::Symbol(name) => self.name(name, form.span),
            FormKind::List(items) if items.is_empty() => Ok(Node::Constant(Value::list(Vec::new()))),
            FormKind::List(items) => self.list(form, items, tail),
            FormKind::Vector(items) => {
                let nodes = self.forms(items)?;
                Ok(match constants(&nodes) {
                    Some(values) => Node::Constant(Value::vector(values)),
                    None => Node::Vector(nodes),
                })
            }
            FormKind::Map(items) => self.map(form, items),
            FormKind::Set(items) => Ok(Node::Set(self.forms(items)?, form.span)),
            _ => self.constant(form).map(Node::Constant),
        }
    }

    fn constant(&mut self, form: &Form) -> Outcome<Value> {
        self.names.constant(form).map_err(|signal| signal.at(self.source, form.span))
    }

    fn forms(&mut self, forms: &[Form]) -> Outcome<Box<[Node]>> {
        forms.iter().map(|form| self.form(form, Tail::No)).collect()
    }

    fn name(&mut self, name: &str, span: Span) -> Outcome<Node> {
        self.names.charge(self.frames.bound() as u64 / 64)?;
        match self.frames.find(name) {
            Some(Location::Slot(slot)) => {
                self.frames.note_read(slot);
                return Ok(Node::Local(slot));
            }
            Some(Location::Captured(index)) => return Ok(Node::Captured(index)),
            Some(Location::Sibling(index)) => return Ok(Node::Sibling(index)),
            None => {}
        }
        if let Some(global) = self.own(name) {
            let names = &self.names;
            self.frames.note_name(name, || qualified(name, &names.name_of(global)));
            return Ok(Node::Global(global, span));
        }
        let frames = &self.frames;
        let meaning = self.names.meaning(name, &|| frames.names()).map_err(|signal| signal.at(self.source, span))?;
        Ok(match meaning {
            Meaning::Global(index) => {
                let names = &self.names;
                self.frames.note_name(name, || qualified(name, &names.name_of(index)));
                Node::Global(index, span)
            }
            Meaning::Builtin(builtin) => {
                self.frames.note_name(name, || elsewhere(name, builtin.qualified()));
                Node::Constant(Value::Builtin(builtin))
            }
            Meaning::Native(native) => {
                self.frames.note_name(name, || elsewhere(name, native.about.qualified()));
                Node::Constant(Value::Native(native))
            }
            Meaning::Prelude(qualified, closure) => {
                self.frames.note_name(name, || elsewhere(name, qualified));
                Node::Constant(Value::Closure(closure))
            }
            Meaning::Tool(tool) => {
                self.frames.note_name(name, || elsewhere(name, tool.qualified_name()));
                Node::Constant(Value::Tool(tool))
            }
            Meaning::Constant(value) => Node::Constant(value),
            Meaning::Held(value) => match self.frames.capture(name) {
                Some(index) => Node::Captured(index),
                None => Node::Constant(value),
            },
        })
    }

    /// Returns the definition of that name around the function that is being resolved.
    fn own(&self, name: &str) -> Option<u32> {
        let around = self.frames.groups();
        let found = self.own.iter().rev().find(|own| own.name == name && own.around < around);
        found.map(|own| own.global)
    }

    fn map(&mut self, form: &Form, items: &[Form]) -> Outcome<Node> {
        let nodes = self.forms(items)?;
        let keys = nodes.iter().step_by(2).map(|node| match node {
            Node::Constant(value) if value.is_scalar() => Some(value.clone()),
            _ => None,
        });
        let small = nodes.len() <= 64;
        match keys.collect::<Option<Vec<Value>>>().filter(|_| small) {
            Some(keys) => {
                let mut values: Vec<Node> = Vec::with_capacity(keys.len());
                let mut rest = nodes.into_iter();
                while let (Some(_), Some(value)) = (rest.next(), rest.next()) {
                    values.push(value);
                }
                if keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key)) {
                    return self.fail(form.span, "a map literal has the same key twice".to_string());
                }
                Ok(Node::Record(Shape::new(keys), values.into()))
            }
            None => {
                let mut pairs = Vec::with_capacity(nodes.len() / 2);
                let mut rest = nodes.into_iter();
                while let (Some(key), Some(value)) = (rest.next(), rest.next()) {
                    pairs.push((key, value));
                }
                Ok(Node::Map(pairs.into(), form.span))
            }
        }
    }

    fn list(&mut self, form: &Form, items: &[Form], tail: Tail) -> Outcome<Node> {
        let rest = &items[1..];
        match items[0].as_symbol() {
            Some("quote") => self.constant(&rest[0]).map(Node::Constant),
            Some("if") => {
                let test = self.form(&rest[0], Tail::No)?;
                let then = self.form(&rest[1], tail)?;
                let otherwise = match rest.get(2) {
                    Some(form) => self.form(form, tail)?,
                    None => Node::Constant(Value::Nil),
                };
                Ok(Node::If(Box::new([test, then, otherwise])))
            }
            Some("do") => self.body(rest, tail),
            Some("and") if rest.is_empty() => Ok(Node::Constant(Value::Bool(true))),
            Some("or") if rest.is_empty() => Ok(Node::Constant(Value::Nil)),
            Some("and") => Ok(Node::And(self.chain(rest, tail)?)),
            Some("or") => Ok(Node::Or(self.chain(rest, tail)?)),
            Some("let*") => self.let_star(rest, tail),
            Some("loop*") => self.loop_star(rest, tail),
            Some("recur") => self.recur(form, rest, tail),
            Some("fn*") => self.lambda(form),
            Some("letfn*") => self.letfn(rest, tail),
            Some("var") => self.var(&rest[0]),
            Some("def") => self.define(form, rest, Definition::Value),
            Some("core/defmacro*") => self.define(form, rest, Definition::Macro),
            Some("core/defonce*") => self.define(form, rest, Definition::Once),
            Some("try") => self.try_(rest),
            _ => self.call(form, items, tail),
        }
    }

    /// Resolves a sequence of forms. Only the last may be in tail position.
    fn chain(&mut self, forms: &[Form], tail: Tail) -> Outcome<Box<[Node]>> {
        let last = forms.len().saturating_sub(1);
        forms.iter().enumerate().map(|(at, form)| self.form(form, if at == last { tail } else { Tail::No })).collect()
    }

    fn body(&mut self, forms: &[Form], tail: Tail) -> Outcome<Node> {
        Ok(match forms {
            [] => Node::Constant(Value::Nil),
            [only] => self.form(only, tail)?,
            forms => Node::Do(self.chain(forms, tail)?),
        })
    }

    fn let_star(&mut self, rest: &[Form], tail: Tail) -> Outcome<Node> {
        let bindings = rest[0].as_vector().unwrap_or_default();
        let outer = self.frames.scope();
        let slot = self.frames.next_slot();
        let mut values = Vec::with_capacity(bindings.len() / 2);
        for pair in bindings.chunks_exact(2) {
            // Reserve the slot first: the slots of lets inside the value must follow it.
            let reserved = self.frames.reserve();
            let value = self.form(&pair[1], Tail::No)?;
            self.frames.bind_at(pair[0].as_symbol().unwrap_or_default(), reserved);
            values.push(value);
        }
        let body = self.body(&rest[1..], tail)?;
        self.frames.close(outer);
        if values.is_empty() {
            return Ok(body);
        }
        Ok(Node::Let(Box::new(Let { slot, values: values.into(), body, reads: 0, clears: tail == Tail::No })))
    }

    fn loop_star(&mut self, rest: &[Form], tail: Tail) -> Outcome<Node> {
        let bindings = rest[0].as_vector().unwrap_or_default();
        let outer = self.frames.scope();
        let slot = self.frames.next_slot();
        let mut values = Vec::with_capacity(bindings.len() / 2);
        for pair in bindings.chunks_exact(2) {
            let reserved = self.frames.reserve();
            let value = self.form(&pair[1], Tail::No)?;
            self.frames.bind_at(pair[0].as_symbol().unwrap_or_default(), reserved);
            values.push(value);
        }
        let target = self.frames.set_recur_target(Some((slot, values.len())));
        // A call in tail position of the loop is in tail position of the function only if the loop is.
        let inner = if tail == Tail::Yes { Tail::Yes } else { Tail::Loop };
        let before = self.frames.enter_loop();
        let body = self.body(&rest[1..], inner)?;
        let reads = self.frames.leave_loop(before);
        self.frames.set_recur_target(target);
        self.frames.close(outer);
        Ok(Node::Loop(Box::new(Let { slot, values: values.into(), body, reads, clears: tail != Tail::Yes })))
    }

    fn recur(&mut self, form: &Form, rest: &[Form], tail: Tail) -> Outcome<Node> {
        if tail == Tail::No {
            return self.fail(
                form.span,
                "`recur` must be the last thing its loop or function does; call the function by name instead, or restructure with an accumulator".to_string(),
            );
        }
        let Some((slot, count)) = self.frames.recur_target() else {
            return self.fail(form.span, "`recur` outside of `loop` and `fn`".to_string());
        };
        if rest.len() != count {
            return self
                .fail(form.span, format!("`recur` needs {count} values, one for each binding, got {}", rest.len()));
        }
        Ok(Node::Recur(Box::new(Recur { slot, values: self.forms(rest)? })))
    }

    /// Compiles a call of a keyword or an operator to an inline fast path, if one applies.
    fn shortcut(&mut self, callee: &Node, arguments: &[Form], span: Span) -> Outcome<Option<Node>> {
        let (Node::Constant(callee), [first] | [first, _]) = (callee, arguments) else { return Ok(None) };
        let operator = match callee {
            Value::Builtin(builtin) => Operator::of(builtin, arguments.len()).map(|operator| (operator, *builtin)),
            _ => None,
        };
        if !self.names.takes_shortcuts() || (operator.is_none() && !matches!(callee, Value::Keyword(_))) {
            return Ok(None);
        }
        let first = self.form(first, Tail::No)?;
        let second = arguments.get(1).map(|form| self.form(form, Tail::No)).transpose()?;
        Ok(Some(match operator {
            Some((operator, builtin)) => {
                let right = second.unwrap_or(Node::Constant(Value::Nil));
                let run = operator.run_on(&first, &right);
                Node::Operate(Box::new(Operation { operator, run, builtin, left: first, right, span }))
            }
            None => Node::LookUp(Box::new(LookUp {
                key: callee.clone(),
                place: AtomicUsize::new(LookUp::NOWHERE),
                collection: first,
                default: second,
                span,
            })),
        }))
    }

    fn call(&mut self, form: &Form, items: &[Form], tail: Tail) -> Outcome<Node> {
        let callee = self.form(&items[0], Tail::No)?;
        let span = form.span;
        if let Some(shortcut) = self.shortcut(&callee, &items[1..], span)? {
            return Ok(shortcut);
        }
        // A partial read adds two nodes around its arguments, a recursive join one.
        let may_join = partly::joins(&callee) || partly::concatenates(&callee);
        let levels = if partly::is_partial(&callee) { 2 } else { usize::from(may_join) };
        (0..levels).for_each(|_| self.frames.deeper());
        let mut arguments = self.forms(&items[1..])?;
        if partly::joins(&callee) {
            self.read_as_needed(&items[1..], &mut arguments)?;
        } else if may_join {
            self.concat_as_needed(&items[1..], &mut arguments)?;
        }
        (0..levels).for_each(|_| self.frames.shallower());
        if methods::is_method(&items[0], &callee, &items[1..]) {
            return self.call_of_method(&items[0], callee, arguments, span);
        }
        let (builtin, native) = match &callee {
            Node::Constant(Value::Builtin(builtin)) => (Some(*builtin), None),
            Node::Constant(Value::Native(native)) => (Some(native.about), Some(native.clone())),
            _ => (None, None),
        };
        if let Some(builtin) = builtin {
            return self.call_of_builtin(Box::new(CallBuiltin { builtin, native, arguments, span }));
        }
        let call = Box::new(Call { callee, arguments, span });
        // At the top level there is no running function to replace.
        let replaces = tail == Tail::Yes && self.frames.in_function();
        Ok(if replaces { Node::TailCall(call) } else { Node::Call(call) })
    }

    /// Resolves `(var name)` to a var, which looks up its name at each use.
    fn var(&mut self, form: &Form) -> Outcome<Node> {
        let name = form.as_symbol().unwrap_or_default();
        self.names.charge(self.frames.bound() as u64 / 64)?;
        let frames = &self.frames;
        let known = match self.names.var(name, &|| frames.names()) {
            Ok(known) => known,
            // `(labels ((f (x) …)) (mapcar #'f xs))`: Common Lisp's notation for a local function.
            Err(_) if self.frames.find(name).is_some() => return self.name(name, form.span),
            Err(signal) => return Err(signal.at(self.source, form.span)),
        };
        let is_plain = crate::value::text::split_name(&known).0.is_none();
        self.frames.note_name(name, || match is_plain {
            true => qualified(name, &known),
            false => elsewhere(name, known.clone()),
        });
        Ok(Node::Constant(Value::Var(known.as_str().into())))
    }

    fn define(&mut self, form: &Form, rest: &[Form], kind: Definition) -> Outcome<Node> {
        let name = rest[0].as_symbol().unwrap_or_default();
        let name = name.strip_prefix("session/").or_else(|| name.strip_prefix("user/")).unwrap_or(name);
        if crate::value::text::split_name(name).0.is_some() {
            return self.fail(rest[0].span, format!("cannot define the qualified name `{name}`; define a plain name"));
        }
        let global = self.names.define(name);
        let (doc, value) = match &rest[1..] {
            [Form { kind: FormKind::Str(doc), .. }, value] => (Some(doc.clone()), Some(value)),
            [value] => (None, Some(value)),
            [_, value] => (None, Some(value)),
            _ => (None, None),
        };
        self.own.push(Own { name: name.to_string(), global, around: self.frames.groups() });
        let value = value.map(|value| self.form(value, Tail::No)).transpose()?;
        self.own.pop();
        self.names.shadow(name);
        let metadata = rest[0].metadata.as_deref().map(|metadata| self.form(metadata, Tail::No)).transpose()?;
        Ok(Node::Define(Box::new(Define { global, value, metadata, doc, kind, span: form.span })))
    }

    fn try_(&mut self, rest: &[Form]) -> Outcome<Node> {
        let target = self.frames.set_recur_target(None);
        let body = self.form(&rest[0], Tail::No)?;
        let mut catches = Vec::new();
        let mut finally = None;
        for clause in &rest[1..] {
            let parts = clause.as_list().unwrap_or_default();
            if clause.is_call_of("catch") {
                let outer = self.frames.scope();
                let slot = self.frames.bind(parts[1].as_symbol().unwrap_or_default());
                let body = self.form(&parts[2], Tail::No)?;
                self.frames.close(outer);
                let class = match parts.get(3).map(|class| &class.kind) {
                    Some(FormKind::Str(class)) => Some(class.as_str().into()),
                    _ => None,
                };
                catches.push(Catch { class, slot, body });
            } else {
                finally = Some(self.form(&parts[1], Tail::No)?);
            }
        }
        self.frames.set_recur_target(target);
        Ok(Node::Try(Box::new(Try { body, catches: catches.into(), finally })))
    }

    fn lambda(&mut self, form: &Form) -> Outcome<Node> {
        let items = form.as_list().unwrap_or_default();
        let name = match items.get(1).map(|name| &name.kind) {
            Some(FormKind::Symbol(name) | FormKind::Str(name)) => Some(name.as_str()),
            _ => None,
        };
        let (group, captures) = self.group(&[(name, form)], |_| Arc::new(form.clone()))?;
        Ok(Node::Lambda(Box::new(Lambda { group, captures, result: LambdaResult::Value })))
    }

    fn letfn(&mut self, rest: &[Form], tail: Tail) -> Outcome<Node> {
        let bindings = rest[0].as_vector().unwrap_or_default();
        let functions: Vec<Named<'_>> = bindings.chunks_exact(2).map(|pair| (pair[0].as_symbol(), &pair[1])).collect();
        let (group, captures) = self.group(&functions, |at| Arc::new(functions[at].1.clone()))?;
        let outer = self.frames.scope();
        let slot = self.frames.next_slot();
        for (name, _) in &functions {
            self.frames.bind(name.unwrap_or_default());
        }
        let body = self.body(&rest[1..], tail)?;
        self.frames.close(outer);
        Ok(Node::Lambda(Box::new(Lambda { group, captures, result: LambdaResult::Slots(slot, Box::new(body)) })))
    }

    /// Resolves functions that can refer to each other by name; `kept` returns the form that the group keeps of one.
    /// Returns the group and the nodes for its captures.
    fn group(
        &mut self,
        functions: &[Named<'_>],
        kept: impl Fn(usize) -> Arc<Form>,
    ) -> Outcome<(Arc<Group>, Box<[Node]>)> {
        let siblings: Vec<String> = functions
            .iter()
            .map(|(name, form)| match form.as_list().and_then(|items| items.get(1)) {
                // The function refers to itself through its definition.
                Some(name) if is_display_name(name) => String::new(),
                _ => name.unwrap_or_default().to_string(),
            })
            .collect();
        let names = functions.iter().filter_map(|(name, _)| *name).map(str::to_string).collect();
        self.frames.enter_group(&siblings, names);
        let mut lambdas = Vec::with_capacity(functions.len());
        for (at, (name, form)) in functions.iter().enumerate() {
            let items = form.as_list().unwrap_or_default();
            let is_named = items.get(1).is_some_and(|own| own.as_symbol().is_some() || is_display_name(own));
            let arities = &items[if is_named { 2 } else { 1 }..];
            let mut codes = Vec::with_capacity(arities.len());
            for arity in arities {
                codes.push(self.arity(arity)?);
            }
            codes.sort_by_key(|arity: &Arity| (arity.variadic, arity.required));
            if codes.iter().filter(|arity| arity.variadic).count() > 1 {
                return self.fail(form.span, "a function has at most one variadic arity".to_string());
            }
            if codes.windows(2).any(|two| !two[1].variadic && two[0].required == two[1].required) {
                return self
                    .fail(form.span, "a function has two arities with the same number of parameters".to_string());
            }
            let most = codes.iter().filter(|arity| !arity.variadic).map(|arity| arity.required).max();
            if codes.iter().any(|arity| arity.variadic && Some(arity.required) < most) {
                let message =
                    "a fixed arity has more parameters than the variadic one: `[a & more]` needs at least as many";
                return self.fail(form.span, message.to_string());
            }
            lambdas.push(Code { name: name.map(str::to_string), arities: codes, form: kept(at) });
        }
        let left = self.frames.leave_group();
        let captures =
            left.captured.iter().map(|name| self.name(name, Span::default())).collect::<Outcome<Box<[Node]>>>()?;
        let group = Group { lambdas, captured: left.captured, source: self.source.clone(), names: left.names };
        Ok((Arc::new(group), captures))
    }

    fn arity(&mut self, form: &Form) -> Outcome<Arity> {
        let items = form.as_list().unwrap_or_default();
        let parameters = items[0].as_vector().unwrap_or_default();
        let mut plain = Vec::with_capacity(parameters.len());
        let mut variadic = false;
        for (at, parameter) in parameters.iter().enumerate() {
            let name = parameter.as_symbol().unwrap_or_default();
            if name == "&" {
                if variadic || at + 2 != parameters.len() {
                    return self.fail(parameter.span, "exactly one name must follow `&`".to_string());
                }
                variadic = true;
            } else {
                plain.push(name.to_string());
            }
        }
        self.frames.enter_function(true, &[]);
        for name in &plain {
            self.frames.bind(name);
        }
        self.frames.set_recur_target(Some((0, plain.len())));
        let body = self.body(&items[1..], Tail::Yes)?;
        let body = self.marked(body);
        let frame = self.frames.leave_function();
        let mut shown: Vec<&str> = parameters.iter().filter_map(Form::as_symbol).collect();
        let implicit = if shown.starts_with(&IMPLICIT) { IMPLICIT.len() } else { 0 };
        shown.drain(..implicit);
        Ok(Arity {
            required: (plain.len() - usize::from(variadic)) as u32,
            variadic,
            frame: frame.slots,
            nesting: frame.nesting,
            body,
            implicit: implicit as u32,
            parameters: format!("[{}]", shown.join(" ")),
        })
    }
}

/// A function: its name, if any, and its `(fn* …)` form.
type Named<'f> = (Option<&'f str>, &'f Form);

/// The implicit parameters that precede the written parameters of a macro.
pub const IMPLICIT: [&str; 2] = ["&form", "&env"];

/// True for the `"name"` in `(fn* "name" …)`: the display name that a definition gives its function. Such a function
/// refers to itself through the definition, whereas `(fn* name …)` binds the name inside.
pub fn is_display_name(form: &Form) -> bool {
    matches!(form.kind, FormKind::Str(_))
}

/// The tail position of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// In tail position of a function: `recur` is allowed and calls become tail calls.
    Yes,
    /// In tail position of a loop that is not itself in tail position: only `recur` is allowed.
    Loop,
    /// Not in tail position.
    No,
}

/// Returns the values if all nodes are constant scalars.
fn constants(nodes: &[Node]) -> Option<Vec<Value>> {
    nodes
        .iter()
        .map(|node| match node {
            Node::Constant(value) => Some(value.clone()),
            _ => None,
        })
        .collect()
}
