//! Counts the calls of a program: an abstract evaluation of its nodes.

use super::calls::{Place, Plan, PlannedCall};
use super::known::{Depth, Function, Known};
use super::prepare::{Before, Part, Prepared};
use super::reach::{Reach, ToolName};
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::node::{Arity, Lambda, LambdaResult, Node};
use crate::resolve::Names;
use crate::span::{Source, Span};
use crate::value::Value;
use crate::value::function::ToolFunction;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum number of nodes visited in the bodies of called functions; beyond, functions escape instead.
const WORK: u64 = 200_000;

/// Maximum nesting of calls that are followed.
const DEPTH: usize = 32;

/// Numbers of calls by tool; `None` is any number.
pub type Counts = BTreeMap<ToolName, Option<u64>>;

/// The slots of a function that is being walked.
pub struct Frame {
    slots: Vec<Known>,
    function: Option<Function>,
    source: Arc<Source>,
}

/// The state of the walk.
pub struct Counting<'a> {
    pub machine: &'a mut Machine,
    pub before: Before,
    pub reach: Reach,
    /// The calls so far.
    counts: Counts,
    /// The tools that are called by name, so that they can be described.
    tools: BTreeMap<ToolName, Arc<ToolFunction>>,
    /// The known definitions of the program at this point.
    pub defined: HashMap<u32, Known>,
    /// All values that the program gives to each definition. They escape with it.
    pub held: HashMap<u32, Vec<Known>>,
    /// The number of escaped definitions and vars that have been followed.
    pub followed: (usize, usize),
    /// The functions whose bodies are being walked.
    running: Vec<(usize, u32)>,
    work: u64,
    place: Place,
}

/// Computes the plan of a prepared program.
///
/// # Errors
/// Returns a halt if a limit is exceeded.
pub fn count(machine: &mut Machine, prepared: &Prepared, before: Before) -> Outcome<Plan> {
    let place = Place { source: prepared.source.clone(), span: Span::default() };
    let mut reach = Reach::default();
    before.notes.iter().for_each(|note| reach.value(note));
    let mut counting = Counting {
        machine,
        before,
        reach,
        counts: Counts::new(),
        tools: BTreeMap::new(),
        defined: HashMap::new(),
        held: HashMap::new(),
        followed: (0, 0),
        running: Vec::new(),
        work: WORK,
        place,
    };
    // A definition that escapes may change before a place that has been walked already runs again. The walk is repeated
    // with nothing known of it.
    loop {
        let known = counting.reach.globals.len();
        counting.counts.clear();
        counting.defined.clear();
        counting.work = WORK;
        for part in &prepared.parts {
            counting.part(part, &prepared.source)?;
        }
        counting.follow()?;
        if counting.reach.globals.len() == known {
            return Ok(counting.plan());
        }
    }
}

impl Counting<'_> {
    fn plan(mut self) -> Plan {
        for (name, tool) in &self.reach.tools {
            self.counts.insert(name.clone(), None);
            self.tools.insert(name.clone(), tool.clone());
        }
        let calls = self.counts.iter().filter(|(_, most)| **most != Some(0)).map(|(name, most)| PlannedCall {
            server: name.0.to_string(),
            tool: name.1.to_string(),
            most: *most,
            hints: self.tools.get(name).map(|tool| tool.tool.hints).unwrap_or_default(),
        });
        Plan { calls: calls.collect(), unknown: self.reach.unknown }
    }

    fn part(&mut self, part: &Part, source: &Arc<Source>) -> Outcome<()> {
        match part {
            Part::Unknown(place, reason) => {
                self.reach.unknown(place.unknown(reason.clone()));
                Ok(())
            }
            Part::Code(program) => {
                let slots = vec![Known::ANY; program.frame as usize];
                let mut frame = Frame { slots, function: None, source: source.clone() };
                match &program.body {
                    Node::Define(define) => self.define(define, &mut frame, true).map(|_| ()),
                    body => self.node(body, &mut frame).map(|_| ()),
                }
            }
        }
    }

    /// Adds what the escaped values reach, including definitions.
    pub fn follow(&mut self) -> Outcome<()> {
        loop {
            self.reach.follow(&self.machine.core.heap, &self.place);
            let followed = (self.reach.globals.len(), self.reach.vars.len());
            if followed == self.followed {
                return Ok(());
            }
            self.followed = followed;
            for name in self.reach.vars.clone() {
                let index = self.machine.core.globals.index(&name);
                self.reach.globals.insert(index);
                if !self.before.globals.contains_key(&index)
                    && !self.held.contains_key(&index)
                    && let Ok(value) = self.machine.var_value(&name.as_str().into())
                {
                    self.reach.value(&value);
                }
            }
            for index in self.reach.globals.clone() {
                if let Some(global) = self.before.globals.get(&index) {
                    global.value.iter().for_each(|value| self.reach.value(value));
                    global.metadata.iter().for_each(|metadata| self.reach.value(&Value::Map(metadata.clone())));
                }
                for value in self.held.remove(&index).unwrap_or_default() {
                    self.release(&value);
                }
            }
        }
    }

    /// Lets a value escape.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    pub fn escape(&mut self, value: &Known) -> Outcome<()> {
        if value.is_function() {
            self.machine.charge(1)?;
            self.release(value);
            self.follow()?;
        }
        Ok(())
    }

    pub fn escape_all(&mut self, values: &[Known]) -> Outcome<()> {
        values.iter().try_for_each(|value| self.escape(value))
    }

    pub fn release(&mut self, value: &Known) {
        let mut open = vec![value.clone()];
        while let Some(value) = open.pop() {
            match value {
                Known::Function(function) => {
                    self.reach.code(&function.group);
                    open.extend(function.captures.iter().filter(|capture| capture.is_function()).cloned());
                }
                Known::Tool(tool) => self.reach.tool(&tool),
                Known::Builtin(builtin) => self.report(builtin),
                Known::Var(name) => {
                    self.reach.vars.insert(name.as_str().to_owned());
                }
                Known::Never | Known::Keyword | Known::Integer(_) | Known::Other { .. } => {}
            }
        }
    }

    /// Reports a builtin that looks names up at run time.
    pub fn report(&mut self, builtin: &'static Builtin) {
        self.reach.builtin(builtin, &self.place);
    }

    /// Adds one call of a tool.
    pub fn call(&mut self, tool: &Arc<ToolFunction>) {
        let name = (tool.server.clone(), tool.name.clone());
        let most = self.counts.entry(name.clone()).or_insert(Some(0));
        *most = most.and_then(|most| most.checked_add(1));
        self.tools.entry(name).or_insert_with(|| tool.clone());
    }

    /// Counts what `work` calls `times` times.
    pub fn repeated<R>(&mut self, times: Option<u64>, work: impl FnOnce(&mut Self) -> Outcome<R>) -> Outcome<R> {
        let before = std::mem::take(&mut self.counts);
        let result = work(self)?;
        let mut calls = std::mem::replace(&mut self.counts, before);
        for count in calls.values_mut().filter(|count| **count != Some(0)) {
            *count = match times {
                Some(0) => Some(0),
                times => count.zip(times).and_then(|(count, times)| count.checked_mul(times)),
            };
        }
        self.add(calls);
        Ok(result)
    }

    /// Counts the most that one of the alternatives calls. Returns what is known of each value.
    pub fn one_of<R>(
        &mut self,
        alternatives: impl IntoIterator<Item = R>,
        mut walk: impl FnMut(&mut Self, R) -> Outcome<Known>,
    ) -> Outcome<Known> {
        let before = std::mem::take(&mut self.counts);
        let (mut most, mut values) = (Counts::new(), Vec::new());
        for alternative in alternatives {
            values.push(walk(self, alternative)?);
            for (name, count) in std::mem::take(&mut self.counts) {
                let known = most.entry(name).or_insert(Some(0));
                *known = known.zip(count).map(|(known, count)| known.max(count));
            }
        }
        self.counts = before;
        self.add(most);
        self.join(values)
    }

    fn add(&mut self, more: Counts) {
        for (name, count) in more {
            let sum = self.counts.entry(name).or_insert(Some(0));
            *sum = sum.zip(count).and_then(|(sum, count)| sum.checked_add(count));
        }
    }

    /// Returns what is known of a value that is one of these.
    fn join(&mut self, values: Vec<Known>) -> Outcome<Known> {
        let mut values: Vec<Known> = values.into_iter().filter(|value| !matches!(value, Known::Never)).collect();
        if values.len() <= 1 {
            return Ok(values.pop().unwrap_or(Known::Never));
        }
        self.escape_all(&values)?;
        let most = values.iter().map(Known::most).try_fold(0, |most, one| one.map(|one| most.max(one)));
        let depth = values.iter().map(Known::depth).min().unwrap_or(Depth::Lazy);
        Ok(Known::Other { most, depth })
    }

    /// Walks a node and returns what is known of its value.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    pub fn node(&mut self, node: &Node, frame: &mut Frame) -> Outcome<Known> {
        self.machine.charge(1)?;
        Names::check_stack(self.machine)?;
        self.work = self.work.saturating_sub(1);
        Ok(match node {
            Node::Constant(value) => self.value(value)?,
            Node::Local(slot) | Node::Take(slot) => frame.slots[*slot as usize].clone(),
            Node::Captured(at) => {
                let function = frame.function.as_ref();
                function.and_then(|function| function.captures.get(*at as usize)).cloned().unwrap_or(Known::ANY)
            }
            Node::Sibling(index) => match &frame.function {
                Some(function) => Known::Function(Function { index: *index, ..function.clone() }),
                None => Known::ANY,
            },
            Node::Global(index, _) => self.global(*index)?,
            Node::If(parts) => {
                let [test, then, otherwise] = &**parts;
                if let Node::Constant(test) = test {
                    return self.node(if test.is_truthy() { then } else { otherwise }, frame);
                }
                let test = self.node(test, frame)?;
                self.escape(&test)?;
                self.one_of([then, otherwise], |counting, branch| counting.node(branch, frame))?
            }
            Node::Do(nodes) => {
                let mut last = Known::ANY;
                for node in nodes {
                    last = self.node(node, frame)?;
                }
                last
            }
            Node::And(nodes) | Node::Or(nodes) => {
                let values = self.nodes(nodes, frame)?;
                self.join(values)?
            }
            Node::Let(scope) => {
                self.bind(scope.slot, &scope.values, frame)?;
                self.node(&scope.body, frame)?
            }
            Node::Loop(scope) => {
                self.bind(scope.slot, &scope.values, frame)?;
                if !recurs(&scope.body) {
                    return self.node(&scope.body, frame);
                }
                for slot in scope.slot..scope.slot + scope.values.len() as u32 {
                    let first = std::mem::replace(&mut frame.slots[slot as usize], Known::ANY);
                    self.escape(&first)?;
                }
                self.repeated(None, |counting| counting.node(&scope.body, frame))?
            }
            Node::Recur(recur) => {
                let values = self.nodes(&recur.values, frame)?;
                self.escape_all(&values)?;
                Known::Never
            }
            Node::Lambda(lambda) => self.lambda(lambda, frame)?,
            Node::CallBuiltin(call) => {
                let arguments = self.nodes(&call.arguments, frame)?;
                self.place = Place { source: frame.source.clone(), span: call.span };
                match call.native {
                    Some(_) => self.escape_all(&arguments).map(|()| Known::ANY)?,
                    None => self.builtin(call.builtin, &arguments)?,
                }
            }
            Node::Operate(operation) => {
                for operand in [&operation.left, &operation.right] {
                    let operand = self.node(operand, frame)?;
                    self.escape(&operand)?;
                }
                Known::ANY
            }
            Node::LookUp(look_up) => {
                let collection = self.node(&look_up.collection, frame)?;
                self.escape(&collection)?;
                match &look_up.default {
                    Some(default) => {
                        let default = self.node(default, frame)?;
                        self.escape(&default)?;
                        Known::ANY
                    }
                    None => collection.item(),
                }
            }
            Node::Call(call) | Node::TailCall(call) => {
                let callee = self.node(&call.callee, frame)?;
                let arguments = self.nodes(&call.arguments, frame)?;
                self.place = Place { source: frame.source.clone(), span: call.span };
                self.apply(&callee, arguments)?
            }
            Node::Define(define) => self.define(define, frame, false)?,
            Node::Try(attempt) => {
                let mut values = vec![self.node(&attempt.body, frame)?];
                for catch in &attempt.catches {
                    frame.slots[catch.slot as usize] = Known::ANY;
                    values.push(self.node(&catch.body, frame)?);
                }
                if let Some(last) = &attempt.finally {
                    self.node(last, frame)?;
                }
                self.join(values)?
            }
            Node::Vector(nodes) | Node::Set(nodes, _) | Node::Record(_, nodes) => {
                let items = self.nodes(nodes, frame)?;
                self.literal(&items, nodes.len())?
            }
            Node::Map(pairs, _) => {
                let mut items = Vec::with_capacity(2 * pairs.len());
                for (key, value) in pairs {
                    items.push(self.node(key, frame)?);
                    items.push(self.node(value, frame)?);
                }
                self.literal(&items, pairs.len())?
            }
        })
    }

    fn nodes(&mut self, nodes: &[Node], frame: &mut Frame) -> Outcome<Vec<Known>> {
        nodes.iter().map(|node| self.node(node, frame)).collect()
    }

    pub fn literal(&mut self, items: &[Known], count: usize) -> Outcome<Known> {
        self.escape_all(items)?;
        let is_data = items.iter().all(|item| item.depth() == Depth::Data);
        let depth = if is_data { Depth::Data } else { Depth::Realised };
        Ok(Known::Other { most: Some(count as u64), depth })
    }

    fn bind(&mut self, slot: u32, nodes: &[Node], frame: &mut Frame) -> Outcome<()> {
        for (slot, node) in (slot..).zip(nodes) {
            frame.slots[slot as usize] = self.node(node, frame)?;
        }
        Ok(())
    }

    fn lambda(&mut self, lambda: &Lambda, frame: &mut Frame) -> Outcome<Known> {
        let captures: Arc<[Known]> = self.nodes(&lambda.captures, frame)?.into();
        let function =
            |index| Known::Function(Function { group: lambda.group.clone(), index, captures: captures.clone() });
        match &lambda.result {
            LambdaResult::Value => Ok(function(0)),
            LambdaResult::Slots(slot, body) => {
                for index in 0..lambda.group.lambdas.len() as u32 {
                    frame.slots[(slot + index) as usize] = function(index);
                }
                self.node(body, frame)
            }
        }
    }

    /// Calls a value with these arguments.
    pub fn apply(&mut self, callee: &Known, arguments: Vec<Known>) -> Outcome<Known> {
        match callee {
            Known::Tool(tool) => {
                self.call(tool);
                Ok(Known::DATA)
            }
            Known::Builtin(builtin) => self.builtin(builtin, &arguments),
            Known::Function(function) if self.may_follow(function) => {
                let count = arguments.len();
                let code = &function.group.lambdas[function.index as usize];
                let fits = |arity: &&Arity| {
                    arity.required as usize == count || arity.variadic && count >= arity.required as usize
                };
                let Some(arity) = code.arities.iter().find(fits) else {
                    self.escape_all(&arguments)?;
                    return Ok(Known::ANY);
                };
                self.body(function, arity, arguments)
            }
            callee => {
                self.escape(callee)?;
                self.escape_all(&arguments)?;
                Ok(Known::ANY)
            }
        }
    }

    /// Calls a value from a builtin, at most `times` times, with arguments of which `item` is known. Returns what is known
    /// of each result, which escapes.
    pub fn called(&mut self, callee: &Known, times: Option<u64>, item: &Known) -> Outcome<Known> {
        match callee {
            Known::Tool(tool) if times.is_some() => self.repeated(times, |counting| {
                counting.call(tool);
                Ok(Known::DATA)
            }),
            Known::Function(function) if times.is_some() && self.may_follow(function) => {
                self.repeated(times, |counting| {
                    let code = &function.group.lambdas[function.index as usize];
                    let result = counting.one_of(&code.arities, |counting, arity| {
                        let count = (arity.required + u32::from(arity.variadic)) as usize;
                        let mut arguments = vec![item.clone(); arity.required as usize];
                        arguments.resize(count, Known::ANY);
                        counting.body(function, arity, arguments)
                    })?;
                    counting.escape(&result)?;
                    Ok(result)
                })
            }
            callee => self.escape(callee).map(|()| Known::ANY),
        }
    }

    fn may_follow(&self, function: &Function) -> bool {
        let key = (Arc::as_ptr(&function.group).addr(), function.index);
        self.work > 0 && self.running.len() < DEPTH && !self.running.contains(&key)
    }

    /// Walks the body of a function.
    fn body(&mut self, function: &Function, arity: &Arity, mut arguments: Vec<Known>) -> Outcome<Known> {
        let required = arity.required as usize;
        if arity.variadic {
            let rest: Vec<Known> = arguments.drain(required..).collect();
            let given = self.literal(&rest, rest.len())?;
            arguments.push(match rest.as_slice() {
                // The rest of an unknown number of arguments.
                [Known::Other { most: None, depth: Depth::Lazy }] => Known::ANY,
                _ => given,
            });
        }
        let repeats = recurs(&arity.body);
        if repeats {
            self.escape_all(&arguments)?;
            arguments.iter_mut().for_each(|argument| *argument = Known::ANY);
        }
        let mut slots = arguments;
        slots.resize(arity.frame as usize, Known::ANY);
        let source = function.group.source.clone();
        let mut frame = Frame { slots, function: Some(function.clone()), source };
        self.running.push((Arc::as_ptr(&function.group).addr(), function.index));
        let walked = match repeats {
            true => self.repeated(None, |counting| counting.node(&arity.body, &mut frame)),
            false => self.node(&arity.body, &mut frame),
        };
        self.running.pop();
        walked
    }
}

/// Returns whether the code jumps back to its own start.
fn recurs(body: &Node) -> bool {
    let mut open = vec![body];
    while let Some(node) = open.pop() {
        match node {
            Node::Recur(_) => return true,
            // A `recur` in a loop is its own.
            Node::Loop(_) => {}
            node => node.for_each_child(&mut |child| open.push(child)),
        }
    }
    false
}
