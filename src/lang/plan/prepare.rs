//! Resolves the forms of a program without running them.

use super::calls::{Input, Place};
use super::reach::Reach;
use crate::error::{Outcome, Raised, Signal};
use crate::expand::{Expander, Reached};
use crate::form::{Form, FormKind};
use crate::machine::{Global, Machine};
use crate::node::{Definition, LambdaResult, Node};
use crate::resolve::{Program, Resolver};
use crate::span::{Source, Span};
use crate::value::Value;
use crate::value::text::split_name;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The definitions of the session before the program.
pub struct Before {
    /// Those that have a value, by index.
    pub globals: HashMap<u32, Global>,
    /// The values of the inputs, and those that builtins know by name: the language's own notes, such as the methods of records and protocols,
    /// and settings such as `*print-length*`.
    pub notes: Vec<Value>,
    /// The names that the run binds, each with whether it is data.
    pub inputs: HashMap<u32, bool>,
}

impl Before {
    /// Records the definitions and defines the inputs, whose values are not known.
    pub fn of(machine: &mut Machine, given: &[Input]) -> Before {
        let globals = &mut machine.core.globals;
        let is_plain = |input: &Input| input.value.as_ref().is_none_or(is_data);
        let inputs: HashMap<u32, bool> = given.iter().map(|one| (globals.index(&one.name), is_plain(one))).collect();
        for index in inputs.keys() {
            globals.set(*index, Global { value: Some(Value::Nil), ..Global::default() });
        }
        machine.core.commit(&Value::Nil);
        let globals = &machine.core.globals;
        let known = (0..globals.known() as u32).filter(|index| !inputs.contains_key(index));
        let defined = known.map(|index| (index, globals.get(index).clone())).filter(|(_, one)| one.value.is_some());
        let registry = &machine.core.registry;
        let is_known = |name: &str| globals.find(name).is_none() || registry.dynamic(name).is_some();
        let notes = globals.kept().filter(|one| is_known(one.name)).map(|one| one.value.clone());
        let notes = notes.chain(given.iter().filter_map(|input| input.value.clone())).collect();
        Before { globals: defined.collect(), notes, inputs }
    }
}

/// A part of a program, which is resolved and evaluated as a whole.
pub enum Part {
    /// Its code.
    Code(Program),
    /// Its code is known only when it runs, for that reason.
    Unknown(Place, String),
}

/// A program in the order of evaluation.
pub struct Prepared {
    pub parts: Vec<Part>,
    pub source: Arc<Source>,
}

struct Preparing<'a> {
    machine: &'a mut Machine,
    source: &'a Arc<Source>,
    parts: Vec<Part>,
    /// The names that the code mentions so far.
    said: Reach,
    /// The definitions whose values are known only when the program runs.
    pending: HashSet<u32>,
}

/// Expands and resolves the forms one after the other, as their evaluation would.
///
/// # Errors
/// Returns what the evaluation would raise before it ran the form.
pub fn prepare(machine: &mut Machine, forms: Vec<Form>, source: &Arc<Source>, before: &Before) -> Outcome<Prepared> {
    machine.core.coming.extend(forms.iter().filter_map(Form::defined_name).map(str::to_string));
    let pending = before.inputs.keys().copied().collect();
    let mut preparing = Preparing { machine, source, parts: Vec::new(), said: Reach::default(), pending };
    for mut form in forms {
        let span = form.span;
        let resolved = preparing.machine.resolve_aliases(&mut form);
        resolved.map_err(|failed| Signal::from(failed.0).at(source, failed.1))?;
        preparing.part(form, Reached::default()).map_err(|signal| signal.at(source, span))?;
        preparing.machine.core.commit(&Value::Nil);
    }
    Ok(Prepared { parts: preparing.parts, source: source.clone() })
}

impl Preparing<'_> {
    fn place(&self, span: Span) -> Place {
        Place { source: self.source.clone(), span }
    }

    fn part(&mut self, form: Form, reached: Reached) -> Outcome<()> {
        self.machine.in_prelude = false;
        self.machine.core.shadowed.clear();
        let span = form.span;
        if let Some(name) = self.macro_in(&form)
            && !self.are_macros_steady()
        {
            let reason = format!("the expansion of the macro `{name}` is known only when the program runs");
            self.parts.push(Part::Unknown(self.place(span), reason));
            return Ok(());
        }
        let drawn = self.machine.core.random;
        match self.resolve(form, reached) {
            Ok(()) if self.machine.core.random == drawn => Ok(()),
            Ok(()) => {
                let reason = "a macro uses random numbers".to_owned();
                self.parts.push(Part::Unknown(self.place(span), reason));
                Ok(())
            }
            Err(signal) => {
                let is_certain =
                    self.said.unknown.is_empty() && !self.parts.iter().any(|part| matches!(part, Part::Unknown(..)));
                if is_certain || matches!(signal.raised(), Raised::Halt(_)) {
                    return Err(signal);
                }
                let reason = "its names have a meaning only when the program runs".to_owned();
                self.parts.push(Part::Unknown(self.place(span), reason));
                Ok(())
            }
        }
    }

    fn resolve(&mut self, mut form: Form, reached: Reached) -> Outcome<()> {
        let mut expander = Expander::of_part(self.machine, self.source, reached);
        expander.head(&mut form)?;
        let Some(parts) = expander.parts(&form) else {
            expander.expand(&mut form)?;
            let program = Resolver::new(self.machine, self.source).program(&form)?;
            return self.settle(program);
        };
        let reached = expander.within_block(form.span)?;
        self.machine.charge(parts.len() as u64)?;
        self.machine.core.coming.extend(parts.iter().filter_map(|part| part.defined_name()).map(str::to_string));
        for part in parts {
            self.part(part.into_owned(), reached)?;
        }
        Ok(())
    }

    /// Makes the definitions of a part known to the following ones.
    fn settle(&mut self, program: Program) -> Outcome<()> {
        self.said.node(&program.body, self.source);
        self.said.follow(&self.machine.core.heap, &self.place(Span::default()));
        match &program.body {
            Node::Define(define) if define.value.iter().chain(&define.metadata).all(is_still) => {
                self.machine.run(&program, self.source)?;
                if define.kind != Definition::Once {
                    self.pending.remove(&define.global);
                }
            }
            body => self.defer(body),
        }
        self.parts.push(Part::Code(program));
        Ok(())
    }

    /// Notes the definitions in code that does not run.
    fn defer(&mut self, body: &Node) {
        let mut groups = Vec::new();
        let mut open = vec![body];
        let mut defined = Vec::new();
        loop {
            while let Some(node) = open.pop() {
                match node {
                    Node::Define(define) => defined.push((define.global, define.kind)),
                    Node::Lambda(lambda) => groups.push(&lambda.group),
                    _ => {}
                }
                node.for_each_child(&mut |child| open.push(child));
            }
            let Some(group) = groups.pop() else { break };
            open.extend(group.lambdas.iter().flat_map(|code| &code.arities).map(|arity| &arity.body));
        }
        for (index, kind) in defined {
            self.pending.insert(index);
            let value = Some(self.machine.declared_value(index));
            let is_macro = kind == Definition::Macro;
            self.machine.core.globals.set(index, Global { value, is_macro, ..Global::default() });
        }
    }

    /// Returns the name of a macro of the session that the form mentions.
    fn macro_in(&self, form: &Form) -> Option<String> {
        let macros = self.machine.core.globals.iter().filter(|global| global.is_macro);
        let macros: HashSet<&str> = macros.map(|global| global.name).collect();
        let mut open = if macros.is_empty() { Vec::new() } else { vec![form] };
        while let Some(form) = open.pop() {
            if let FormKind::Symbol(name) = &form.kind
                && let Some(name) = macros.get(split_name(name).1)
            {
                return Some((*name).to_owned());
            }
            open.extend(form.children());
        }
        None
    }

    /// Returns whether the macros of the session expand to the same code now as when the program runs: they depend on
    /// nothing that the program changes, and call nothing outside.
    fn are_macros_steady(&self) -> bool {
        let core = &*self.machine.core;
        let mut reach = Reach::default();
        let macros = core.globals.iter().filter(|global| global.is_macro);
        macros.for_each(|global| reach.value(global.value));
        let rebound: HashSet<&str> = self.said.vars.iter().map(String::as_str).collect();
        let mut followed = HashSet::new();
        let place = self.place(Span::default());
        loop {
            reach.follow(&core.heap, &place);
            let fresh: Vec<u32> = reach.globals.iter().copied().filter(|index| followed.insert(*index)).collect();
            if fresh.is_empty() {
                break;
            }
            for index in fresh {
                if self.pending.contains(&index) || rebound.contains(core.globals.name(index)) {
                    return false;
                }
                core.globals.get(index).value.iter().for_each(|value| reach.value(value));
            }
        }
        let names_pending = || {
            core.globals
                .iter()
                .filter(|global| global.is_macro)
                .any(|global| core.globals.find(global.name).is_some_and(|index| self.pending.contains(&index)))
        };
        reach.tools.is_empty()
            && reach.unknown.is_empty()
            && reach.vars.is_empty()
            && !reach.is_changeable
            && !names_pending()
    }
}

/// Returns whether the evaluation of the node does nothing but create a value that holds no cell.
fn is_still(node: &Node) -> bool {
    let is_plain = matches!(
        node,
        Node::Constant(_) | Node::Vector(_) | Node::Record(..) | Node::Map(..) | Node::Set(..) | Node::Lambda(_)
    );
    let is_value = |node: &Node| !matches!(node, Node::Lambda(lambda) if !matches!(lambda.result, LambdaResult::Value));
    let mut all = is_plain && is_value(node);
    node.for_each_child(&mut |child| all = all && is_still(child));
    all
}

/// Returns whether the value holds neither functions nor cells.
fn is_data(value: &Value) -> bool {
    let mut open = vec![value.clone()];
    while let Some(value) = open.pop() {
        if value.is_function() || matches!(value, Value::Cell(_) | Value::Lazy(_)) {
            return false;
        }
        value.for_each_child(&mut |child, _| {
            if !child.is_scalar() || child.is_function() || matches!(child, Value::Cell(_)) {
                open.push(child.clone());
            }
        });
    }
    true
}
