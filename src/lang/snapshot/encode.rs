//! Snapshot encoder.

use super::failure::UNFINISHED;
use super::{EncodeError, ROW_NESTING, VERSION};
use crate::error::{Error, Outcome};
use crate::form::{Form, FormKind};
use crate::heap::{CellKind, Handle, State};
use crate::machine::{Machine, Object};
use crate::node::Group;
use crate::registry::Function;
use crate::value::Value;
use crate::value::function::Closure;
use crate::value::list::List;
use crate::value::metadata::all_metadata as metadata;
use crate::value::print::{write_float, write_quoted};
use crate::value::spelling::{write_character, write_keyword, write_regex, write_symbol};
use crate::value::text::Name;
use crate::value::view::{Part, View};
use crate::value::walk::Pace;
use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// Encodes the session's definitions, everything reachable from them, and `*1 *2 *3 *e`.
///
/// # Errors
/// Returns `EncodeError` with the offending definition and the cause. The session is unchanged in that case.
pub fn encode(machine: &mut Machine) -> Result<String, EncodeError> {
    let mut owner = None;
    write(machine, &mut owner).map_err(|signal| {
        let name = owner.map(|owner| match machine.core.globals.kept().nth(owner) {
            Some(global) => global.name.to_string(),
            None => {
                let others = owner - machine.core.globals.kept().count();
                HISTORY.get(others).copied().unwrap_or("derive").to_string()
            }
        });
        EncodeError::of(name, &signal)
    })
}

/// The names of the history entries, in order.
const HISTORY: [&str; 4] = ["*1", "*2", "*3", "*e"];

/// A definition to encode.
struct Definition {
    name: String,
    value: Value,
    doc: Option<String>,
    is_macro: bool,
    metadata: Option<Value>,
}

/// Encodes the whole environment. `owner` tracks the item being encoded, for errors: the ordinal of a definition; the
/// numbers after the definitions stand for the history entries, then the hierarchy.
fn write(machine: &mut Machine, owner: &mut Option<usize>) -> Outcome<String> {
    let mut definitions = Vec::new();
    for global in machine.core.globals.kept() {
        definitions.push(Definition {
            name: global.name.to_string(),
            value: global.value.clone(),
            doc: global.doc.map(str::to_string),
            is_macro: global.is_macro,
            metadata: global.metadata.cloned().map(Value::Map),
        });
    }
    let history = machine.core.globals.history.clone();
    let hierarchy = machine.core.globals.hierarchy.clone();
    let defined = definitions.iter().map(|own| [Some(&own.value), own.metadata.as_ref()]);
    let roots = defined.chain(history.iter().chain([&hierarchy]).map(|value| [Some(value), None]));
    let mut shared = HashMap::new();
    for (at, values) in roots.enumerate() {
        *owner = Some(at);
        count_owners(machine, values.into_iter().flatten().cloned().collect(), &mut shared)?;
    }
    let mut encoder = Encoder::new(machine, shared, owner);
    let mut out = String::new();
    for (at, Definition { name, value, doc, is_macro, metadata }) in definitions.iter().enumerate() {
        *encoder.owner = Some(at);
        out.push_str("(define ");
        write_symbol(&mut out, name);
        out.push(' ');
        encoder.value(value, &mut out, 0)?;
        if let Some(doc) = doc {
            out.push_str(" :doc ");
            write_quoted(&mut out, doc);
        }
        if let Some(metadata) = metadata {
            out.push_str(" :meta ");
            encoder.value(metadata, &mut out, 0)?;
        }
        out.push_str(if *is_macro { " :macro true)\n" } else { ")\n" });
    }
    if !hierarchy.is_nil() {
        *encoder.owner = Some(definitions.len() + history.len());
        out.push_str("(hierarchy ");
        encoder.value(&hierarchy, &mut out, 0)?;
        out.push_str(")\n");
    }
    let (programs, generated) = (encoder.machine.core.programs, encoder.machine.core.globals.generated);
    let _ = writeln!(out, "(counts {programs} {generated})");
    out.push_str("(history");
    for (at, value) in history.iter().enumerate() {
        *encoder.owner = Some(definitions.len() + at);
        out.push(' ');
        encoder.value(value, &mut out, 0)?;
    }
    out.push_str(")\n");
    encoder.finish_rows()?;
    let mut text = format!("(lispbox-session {VERSION})\n");
    encoder.take_rows(&mut text)?;
    text.push_str(&out);
    Ok(text)
}

/// Counts how often each node is reached. Nodes reached more than once get their own rows.
fn count_owners(machine: &mut Machine, roots: Vec<Value>, shared: &mut HashMap<usize, u32>) -> Outcome<()> {
    let mut waiting = roots;
    while let Some(value) = waiting.pop() {
        machine.step(1)?;
        let Some((address, _)) = value.node() else { continue };
        let count = shared.entry(address).or_insert(0);
        *count += 1;
        if *count == 1 {
            parts(machine, &value, &mut waiting)?;
        }
    }
    Ok(())
}

/// Collects the nodes that a node refers to, including the content and notes of a cell.
fn parts(machine: &mut Machine, value: &Value, into: &mut Vec<Value>) -> Outcome<()> {
    value.for_each_child(&mut |child, _| into.extend(child.node().is_some().then(|| child.clone())));
    if let Value::Cell(handle) | Value::Lazy(handle) = value {
        into.extend(machine.core.heap.state(handle)?.held().cloned());
        into.extend(machine.core.heap.notes(handle).into_iter().flat_map(|notes| notes.values()));
    }
    Ok(())
}

struct Encoder<'m> {
    machine: &'m mut Machine,
    shared: HashMap<usize, u32>,
    /// Row numbers by the address of the object.
    ids: HashMap<usize, i64>,
    /// Row numbers of the previous snapshot. Objects keep their numbers, so that little of the text changes.
    earlier: HashMap<usize, i64>,
    /// Next unused row number.
    next: i64,
    /// Rows still to be written, each with the owner that first reached it.
    waiting: VecDeque<(i64, Object, Option<usize>)>,
    /// Rows that have been written, each with its end offset in `text`.
    written: Vec<(i64, Object, usize)>,
    text: String,
    /// The item being encoded, for errors.
    owner: &'m mut Option<usize>,
}

impl<'m> Encoder<'m> {
    fn new(machine: &'m mut Machine, shared: HashMap<usize, u32>, owner: &'m mut Option<usize>) -> Encoder<'m> {
        let earlier = machine.core.rows.iter().filter_map(|(id, object)| Some((object.address()?, *id))).collect();
        let next = machine.core.rows.iter().map(|(id, _)| id + 1).max().unwrap_or(1);
        let (ids, waiting, written) = (HashMap::new(), VecDeque::new(), Vec::new());
        Encoder { machine, shared, ids, earlier, next, waiting, written, text: String::new(), owner }
    }

    /// Returns the row number of the object at that address. Allocates a number and queues the row on first use.
    fn row(&mut self, address: usize, object: impl FnOnce() -> Object) -> i64 {
        if let Some(id) = self.ids.get(&address) {
            return *id;
        }
        let id = self.earlier.remove(&address).unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.ids.insert(address, id);
        self.waiting.push_back((id, object(), *self.owner));
        id
    }

    fn finish_rows(&mut self) -> Outcome<()> {
        while let Some((id, object, owner)) = self.waiting.pop_front() {
            *self.owner = owner;
            let mut text = format!("(object {id} ");
            match &object {
                Object::Value(Value::Cell(handle) | Value::Lazy(handle)) => self.cell(handle, &mut text)?,
                Object::Value(value) => self.inline(value, &mut text, 0)?,
                Object::Group(group) => self.group(group, &mut text)?,
                Object::Captures(captures) => {
                    text.push('[');
                    self.sequence(captures.as_slice(), &mut text, 1)?;
                    text.push(']');
                }
            }
            text.push_str(")\n");
            self.machine.reserve(text.len() as u64 + self.text.len() as u64 / 4)?;
            self.text.push_str(&text);
            self.written.push((id, object, self.text.len()));
        }
        Ok(())
    }

    /// Appends the rows to `out` in the order of their numbers, and stores the numbers in the session.
    fn take_rows(mut self, out: &mut String) -> Outcome<()> {
        *self.owner = None;
        self.machine.reserve(self.text.len() as u64)?;
        let mut start = 0;
        let mut places: Vec<(i64, Range<usize>)> = Vec::with_capacity(self.written.len());
        for (id, _, end) in &self.written {
            places.push((*id, start..*end));
            start = *end;
        }
        places.sort_unstable_by_key(|(id, _)| *id);
        out.reserve(self.text.len());
        places.into_iter().for_each(|(_, place)| out.push_str(&self.text[place]));
        self.machine.core.rows = self.written.drain(..).map(|(id, object, _)| (id, object)).collect();
        Ok(())
    }

    /// Encodes a value at a point of use: inline, or as a reference to its row.
    fn value(&mut self, value: &Value, out: &mut String, depth: u32) -> Outcome<()> {
        self.machine.step(1)?;
        if let Value::Cell(handle) | Value::Lazy(handle) = value {
            let id = self.row(Arc::as_ptr(handle).addr(), || Object::Value(value.clone()));
            let _ = write!(out, "(ref {id})");
            return Ok(());
        }
        match value.node() {
            Some((address, _)) if depth >= ROW_NESTING || self.shared.get(&address).is_some_and(|count| *count > 1) => {
                let id = self.row(address, || Object::Value(value.clone()));
                let _ = write!(out, "(ref {id})");
                Ok(())
            }
            _ => self.inline(value, out, depth),
        }
    }

    fn sequence<V: Borrow<Value>>(
        &mut self,
        items: impl IntoIterator<Item = V>,
        out: &mut String,
        depth: u32,
    ) -> Outcome<()> {
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                out.push(' ');
            }
            self.value(item.borrow(), out, depth)?;
        }
        Ok(())
    }

    fn inline(&mut self, value: &Value, out: &mut String, depth: u32) -> Outcome<()> {
        match metadata(value).filter(|_| !matches!(value, Value::Bound(_))) {
            None => self.plain(value, out, depth),
            Some(metadata) => {
                out.push_str("(meta ");
                self.plain(value, out, depth + 1)?;
                out.push(' ');
                self.value(&Value::Map(metadata), out, depth + 1)?;
                out.push(')');
                Ok(())
            }
        }
    }

    /// Encodes a value inline, without its metadata.
    fn plain(&mut self, value: &Value, out: &mut String, depth: u32) -> Outcome<()> {
        let inner = depth + 1;
        match value {
            Value::Symbol(_) | Value::Annotated(_) => {
                out.push_str("(quote ");
                write_symbol(out, value.as_symbol().map_or("", Name::as_str));
                out.push(')');
            }
            Value::List(list) => match &**list {
                List::Range { start, step, count } => {
                    let _ = write!(out, "(range {start} {step} {})", *count as i64);
                }
                List::Cons(cons) => {
                    out.push_str("(cons ");
                    self.sequence([&cons.head, &cons.tail], out, inner)?;
                    out.push(')');
                }
                List::View(view) => self.view(view, out, inner)?,
                List::Items { .. } => {
                    out.push_str("(list ");
                    self.sequence(list.as_slice().unwrap_or_default(), out, inner)?;
                    out.push(')');
                }
            },
            Value::Vector(items) if items.second_of_pair().is_some() => {
                out.push_str("(pair ");
                self.sequence(items.iter(), out, inner)?;
                out.push(')');
            }
            Value::Vector(items) => {
                out.push('[');
                self.sequence(items.iter(), out, inner)?;
                out.push(']');
            }
            Value::Map(map) => {
                // Not a map literal: the decoder reads literals as constant data and does not resolve references in
                // them.
                out.push_str(match map.order() {
                    Some(_) => "(sorted-map ",
                    None if map.is_record() => "(record ",
                    None => "(map ",
                });
                if let Some(order) = map.order() {
                    self.value(&order.comparator, out, inner)?;
                    out.push(' ');
                }
                self.sequence(map.iter().flat_map(|(key, value)| [key, value]), out, inner)?;
                out.push(')');
            }
            Value::Set(set) => {
                out.push_str(if set.order().is_some() { "(sorted-set " } else { "(set " });
                if let Some(order) = set.order() {
                    self.value(&order.comparator, out, inner)?;
                    out.push(' ');
                }
                self.sequence(set.iter(), out, inner)?;
                out.push(')');
            }
            Value::Builtin(builtin) => {
                let _ = write!(out, "(builtin {})", builtin.qualified());
            }
            Value::Native(native) => {
                let _ = write!(out, "(builtin {})", native.about.qualified());
            }
            Value::Var(name) => {
                out.push_str("(var ");
                write_symbol(out, name.as_str());
                out.push(')');
            }
            Value::Bound(bound) => {
                let _ = write!(out, "(bound {} ", bound.builtin.qualified());
                self.sequence(&bound.arguments, out, inner)?;
                out.push(')');
            }
            Value::Closure(closure) if closure.group.source.is_hidden && self.prelude_name(closure).is_some() => {
                let _ = write!(out, "(builtin {})", self.prelude_name(closure).unwrap_or_default());
            }
            Value::Closure(closure) => {
                let group = closure.group.clone();
                let group = self.row(Arc::as_ptr(&closure.group).addr(), || Object::Group(group));
                let captures = closure.captures.clone();
                let captures = self.row(Arc::as_ptr(&closure.captures).addr(), || Object::Captures(captures));
                let _ = write!(out, "(function {group} {} {captures})", closure.index);
            }
            Value::Tool(tool) => {
                out.push_str("(tool ");
                write_quoted(out, &tool.tool.server);
                out.push(' ');
                write_quoted(out, &tool.tool.name);
                out.push(')');
            }
            Value::Exception(error) => {
                let _ = write!(out, "(exception {} ", error.code);
                write_quoted(out, &error.message);
                out.push(' ');
                self.sequence([error.data(), error.cause()], out, inner)?;
                if error.symbol.is_some() || error.suggestion.is_some() {
                    for told in [&error.symbol, &error.suggestion] {
                        out.push(' ');
                        match told {
                            Some(text) => write_quoted(out, text),
                            None => out.push_str("nil"),
                        }
                    }
                }
                out.push(')');
            }
            Value::Reduced(held) => {
                out.push_str("(reduced ");
                self.value(&held.0, out, inner)?;
                out.push(')');
            }
            Value::Str(text) => {
                self.machine.step(text.as_str().len() as u64 / 64)?;
                write_quoted(out, text.as_str());
            }
            Value::Keyword(name) => write_keyword(out, name.as_str()),
            Value::Int(value) => {
                let _ = write!(out, "{value}");
            }
            scalar => {
                let mut printer = crate::value::print::Printer::new(usize::MAX / 2, true);
                printer.print(scalar, self.machine)?;
                out.push_str(&printer.into_text());
            }
        }
        Ok(())
    }

    /// Encodes a view: its source, and what is left of it.
    fn view(&mut self, view: &View, out: &mut String, depth: u32) -> Outcome<()> {
        let part = Part::NAMES.iter().find(|(part, _)| *part == view.part()).map_or("items", |(_, name)| name);
        let _ = write!(out, "(view {part} ");
        self.value(view.source(), out, depth)?;
        let _ = match (view.bounds(), view.left()) {
            (Some((at, end)), _) => write!(out, " {at} {end})"),
            // Gaps of removed entries are not written, so that positions are not the same afterwards.
            (None, left) => write!(out, " {})", left.unwrap_or_default()),
        };
        Ok(())
    }

    /// Returns the qualified name of a function declared by the prelude; `None` for functions that prelude code has
    /// created.
    fn prelude_name(&self, closure: &Closure) -> Option<String> {
        self.machine.core.registry.prelude().declared(closure).map(Function::qualified)
    }

    fn cell(&mut self, handle: &Arc<Handle>, out: &mut String) -> Outcome<()> {
        let kind = match handle.cell_kind() {
            CellKind::Atom => "atom",
            CellKind::Volatile => "volatile",
            CellKind::Transient => "transient",
            CellKind::Delay => "delay",
            CellKind::Var => "local-var",
            CellKind::Matcher => "matcher",
            CellKind::Text => "text",
            CellKind::Unknown => "unknown",
            CellKind::Lazy => "lazy",
        };
        let state = self.machine.core.heap.state(handle)?.clone();
        let (word, value) = match state {
            State::Done(value) => ("done", value),
            State::Waiting(value) => ("waiting", value),
            State::Failed(value) => ("failed", value),
            State::Running(_) => {
                return Err(Error::new(UNFINISHED, "a value is still being computed").into());
            }
        };
        let _ = write!(out, "({kind} {word} ");
        self.value(&value, out, 1)?;
        if let Some(notes) = self.machine.core.heap.notes(handle).cloned() {
            let metadata = notes.metadata.clone().map_or(Value::Nil, Value::Map);
            for note in [metadata, notes.validator.clone(), Value::Map(notes.watches.clone())] {
                out.push(' ');
                self.value(&note, out, 1)?;
            }
        }
        out.push(')');
        Ok(())
    }

    /// Writes a group of functions: `(functions "source" ([name form] …) ([name meaning] …) [captured …])`.
    fn group(&mut self, group: &Group, out: &mut String) -> Outcome<()> {
        out.push_str("(functions ");
        write_quoted(out, &group.source.name.original());
        out.push_str(" (");
        for code in &group.lambdas {
            out.push('[');
            match code.name.as_deref() {
                Some(name) => write_symbol(out, name),
                None => out.push_str("nil"),
            }
            out.push(' ');
            write_form(out, &code.form);
            out.push(']');
            self.machine.step(out.len() as u64 / 64)?;
        }
        out.push_str(") (");
        for (name, meaning) in &group.names {
            out.push('[');
            write_symbol(out, name);
            out.push(' ');
            write_quoted(out, meaning);
            out.push(']');
        }
        out.push_str(") [");
        for (at, name) in group.captured.iter().enumerate() {
            if at > 0 {
                out.push(' ');
            }
            write_symbol(out, name);
        }
        out.push_str("])");
        Ok(())
    }
}

/// Writes a form as text that the reader reads back.
fn write_form(out: &mut String, form: &Form) {
    if let Some(metadata) = &form.metadata {
        out.push('^');
        write_form(out, metadata);
        out.push(' ');
    }
    let mut seq = |open: &str, items: &[Form], close: char| {
        out.push_str(open);
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push(' ');
            }
            write_form(out, item);
        }
        out.push(close);
    };
    match &form.kind {
        FormKind::List(items) => seq("(", items, ')'),
        FormKind::Vector(items) => seq("[", items, ']'),
        FormKind::Map(items) => seq("{", items, '}'),
        FormKind::Set(items) => seq("#{", items, '}'),
        FormKind::Tagged(tag, form) => {
            let _ = write!(out, "#{tag} ");
            write_form(out, form);
        }
        FormKind::Nil => out.push_str("nil"),
        FormKind::Symbol(name) => write_symbol(out, name),
        FormKind::Str(text) => write_quoted(out, text),
        FormKind::Float(value) => write_float(out, *value),
        FormKind::Regex(pattern) => write_regex(out, pattern),
        FormKind::Bool(value) => {
            let _ = write!(out, "{value}");
        }
        FormKind::Int(value) => {
            let _ = write!(out, "{value}");
        }
        FormKind::BigInt(value) => {
            let _ = write!(out, "{value}N");
        }
        FormKind::Decimal(value) => {
            crate::value::decimal::write(out, value);
            out.push('M');
        }
        FormKind::Time(time) => {
            let _ = write!(out, "#{} \"{}\"", time.tag(), time.readable());
        }
        FormKind::Keyword(name) => write_keyword(out, name),
        FormKind::Char(value) => write_character(out, *value),
    }
}
