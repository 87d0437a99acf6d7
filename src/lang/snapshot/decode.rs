//! Snapshot decoder.

use super::{CODE_NESTING, MOST_ROWS, VERSION};
use crate::error::{Error, Outcome, Raised};
use crate::form::{Form, FormKind};
use crate::heap::{CellKind, Handle, Notes, State};
use crate::machine::{Global, Machine, Object};
use crate::node::Group;
use crate::reader::{self, Reading};
use crate::resolve::shape::misshapen;
use crate::resolve::{Meaning, Names, Resolver, definition, name_elsewhere};
use crate::span::{Source, SourceName};
use crate::value::function::{Bound, Captures, Closure, ToolFunction};
use crate::value::list::List;
use crate::value::map::Map;
use crate::value::set::Set;
use crate::value::view::{Part, View};
use crate::value::{Reduced, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Error code for a text of an unknown version.
pub const VERSION_ERROR: &str = "SnapshotVersion";

/// Error code for a text that is no snapshot.
pub const FORMAT_ERROR: &str = "SnapshotFormat";

/// Error code for a snapshot that uses a function which the engine lacks.
pub const MISSING_ERROR: &str = "SnapshotMissing";

/// Restores an environment into an empty session.
///
/// # Errors
/// Returns one of the codes above, or `SnapshotError` if the text cannot be decoded, with the position of the damage where it is known. Halts,
/// such as those of limits, pass through unchanged.
pub fn decode(machine: &mut Machine, source: &Arc<Source>) -> Outcome<()> {
    read(machine, source).map_err(|signal| match signal.raised() {
        Raised::Fault(fault) => {
            let (line, column) = fault.source.line_column(fault.span.start);
            let message = &fault.error.message;
            let place = format!("the snapshot is damaged at line {line}, column {column}");
            Error::new("SnapshotError", format!("{place}: {message}")).into()
        }
        Raised::Error(error) if !error.code.starts_with("Snapshot") => {
            Error::new("SnapshotError", format!("the snapshot cannot be read: {}", error.message)).into()
        }
        _ => signal,
    })
}

fn read(machine: &mut Machine, source: &Arc<Source>) -> Outcome<()> {
    machine.charge(source.text.len() as u64 / 16)?;
    let forms = forms(&source.text)
        .map_err(|error| Error::new("SnapshotError", format!("the snapshot cannot be read: {}", error.message)))?;
    let mut decoder = Decoder { machine, source, rows: HashMap::new(), objects: HashMap::new(), cells: Vec::new() };
    decoder.header(forms.first())?;
    if let Some(second) = forms.iter().skip(1).find(|form| row_parts(form).0 == "lispbox-session") {
        let (line, _) = source.line_column(second.span.start);
        let message = format!("another snapshot begins at line {line}: read each separately");
        return Err(Error::new("SnapshotError", message).into());
    }
    if !forms.iter().any(|form| row_parts(form).0 == "history") {
        return Err(
            Error::new("SnapshotError", "the snapshot is cut off: its last row, `(history …)`, is missing").into()
        );
    }
    // Register the names in the order of their definitions, not in the order in which functions use them.
    for form in &forms {
        if let ("define", [name, ..]) = row_parts(form) {
            decoder.machine.core.globals.index(name.as_symbol().unwrap_or_default());
        }
    }
    decoder.read_rows(&forms)?;
    for form in &forms {
        match row_parts(form) {
            ("define", [name, value, options @ ..]) => decoder.define(name, value, options)?,
            ("history", values) => {
                for (at, value) in values.iter().enumerate().take(4) {
                    decoder.machine.core.globals.history[at] = decoder.value(value)?;
                }
            }
            ("counts", [Form { kind: FormKind::Int(programs), .. }, Form { kind: FormKind::Int(generated), .. }]) => {
                decoder.machine.core.programs = u32::try_from(*programs).unwrap_or(u32::MAX);
                decoder.machine.core.globals.generated = (*generated).clamp(0, MOST_ROWS).unsigned_abs();
            }
            ("hierarchy", [value]) => decoder.machine.core.globals.hierarchy = decoder.value(value)?,
            ("object" | "lispbox-session", _) => {}
            _ => return Err(decoder.damaged(form).into()),
        }
    }
    // The next snapshot reuses the row numbers, unless they exceed `MOST_ROWS`.
    let mut rows: Vec<(i64, Object)> = decoder.objects.into_iter().collect();
    rows.retain(|(id, _)| (1..=MOST_ROWS).contains(id));
    rows.sort_unstable_by_key(|(id, _)| *id);
    machine.core.rows = rows;
    machine.core.commit(&Value::Nil);
    Ok(())
}

/// Reads the rows of a snapshot.
pub fn forms(text: &str) -> Result<Vec<Form>, reader::ReadError> {
    reader::read_as(text, &Reading { nesting: CODE_NESTING, ..Reading::default() })
}

/// Splits a row into its head symbol and its arguments.
fn row_parts(form: &Form) -> (&str, &[Form]) {
    match form.as_list() {
        Some([head, rest @ ..]) => (head.as_symbol().unwrap_or_default(), rest),
        _ => ("", &[]),
    }
}

struct Decoder<'m> {
    machine: &'m mut Machine,
    source: &'m Arc<Source>,
    rows: HashMap<i64, &'m Form>,
    objects: HashMap<i64, Object>,
    /// Cells and the forms of their states. The states are restored after all rows have been read.
    cells: Vec<(Arc<Handle>, &'m Form)>,
}

impl<'m> Decoder<'m> {
    fn damaged(&self, form: &Form) -> Error {
        let (line, column) = self.source.line_column(form.span.start);
        Error::new("SnapshotError", format!("the snapshot is damaged at line {line}, column {column}"))
    }

    fn header(&self, form: Option<&Form>) -> Outcome<()> {
        match form.map(row_parts) {
            Some(("lispbox-session", [Form { kind: FormKind::Int(1..=VERSION), .. }])) => Ok(()),
            Some(("lispbox-session", [Form { kind: FormKind::Int(version), .. }])) => Err(Error::new(
                VERSION_ERROR,
                format!("the snapshot has version {version}; this build reads versions 1 to {VERSION}"),
            )
            .into()),
            _ => Err(Error::new(FORMAT_ERROR, "this is not a snapshot of a session").into()),
        }
    }

    /// Reads all rows in dependency order: each after the rows that it refers to.
    fn read_rows(&mut self, forms: &'m [Form]) -> Outcome<()> {
        for form in forms {
            if let ("object", [Form { kind: FormKind::Int(id), .. }, content]) = row_parts(form) {
                if let (
                    kind @ ("atom" | "volatile" | "transient" | "delay" | "local-var" | "matcher" | "text" | "lazy"),
                    [_, _, ..],
                ) = row_parts(content)
                {
                    let handle = self.machine.core.heap.allocate(cell_kind(kind), State::Done(Value::Nil));
                    let value = if kind == "lazy" { Value::Lazy(handle.clone()) } else { Value::Cell(handle.clone()) };
                    self.objects.insert(*id, Object::Value(value));
                    self.cells.push((handle, content));
                }
                self.rows.insert(*id, content);
            }
        }
        let mut waiting: Vec<i64> = self.rows.keys().copied().collect();
        waiting.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
        let mut under_way: HashMap<i64, u32> = HashMap::new();
        while let Some(id) = waiting.pop() {
            self.machine.charge(1)?;
            if self.objects.contains_key(&id) {
                continue;
            }
            let Some(form) = self.rows.get(&id).copied() else {
                return Err(Error::new("SnapshotError", format!("the snapshot has no object {id}")).into());
            };
            let mut missing = Vec::new();
            references(form, &mut missing);
            missing.retain(|id| !self.objects.contains_key(id));
            if missing.is_empty() {
                let object = self.object(form)?;
                self.objects.insert(id, object);
                continue;
            }
            let tries = under_way.entry(id).or_insert(0);
            *tries += 1;
            if *tries > 1 {
                return Err(Error::new("SnapshotError", format!("object {id} of the snapshot contains itself")).into());
            }
            waiting.push(id);
            waiting.extend(missing);
        }
        for (handle, form) in std::mem::take(&mut self.cells) {
            let (_, [word, value, notes @ ..]) = row_parts(form) else { return Err(self.damaged(form).into()) };
            let value = self.value(value)?;
            let state = match word.as_symbol() {
                Some("waiting") => State::Waiting(value),
                Some("failed") => State::Failed(value),
                _ => State::Done(value),
            };
            self.machine.core.heap.change(&handle, state)?;
            if let [metadata, validator, watches] = notes {
                let metadata = match self.value(metadata)? {
                    Value::Map(metadata) => Some(metadata),
                    _ => None,
                };
                let validator = self.value(validator)?;
                let Value::Map(watches) = self.value(watches)? else { return Err(self.damaged(form).into()) };
                self.machine.core.heap.annotate(&handle, Notes { metadata, validator, watches })?;
            }
        }
        Ok(())
    }

    fn object(&mut self, form: &Form) -> Outcome<Object> {
        Ok(match (row_parts(form), form.as_vector()) {
            (("functions", [name, functions, names, captured]), _) => {
                Object::Group(self.group(form, name, functions, names, captured)?)
            }
            // The captured values of a function are a bare vector at the top of a row, and so is a shared vector. The
            // row is read as a vector first; `function` converts it to captures when it is used as such.
            _ => Object::Value(self.value(form)?),
        })
    }

    fn values(&mut self, forms: &[Form]) -> Outcome<Vec<Value>> {
        forms.iter().map(|form| self.value(form)).collect()
    }

    fn reference(&self, form: &Form) -> Outcome<&Object> {
        let found = match &form.kind {
            FormKind::Int(id) => self.objects.get(id),
            _ => None,
        };
        found.ok_or_else(|| self.damaged(form).into())
    }

    fn value(&mut self, form: &Form) -> Outcome<Value> {
        self.machine.charge(1)?;
        if let Some(items) = form.as_vector() {
            return Ok(Value::vector(self.values(items)?));
        }
        if form.as_list().is_none() {
            return crate::eval::value_of(self.machine, form);
        }
        match row_parts(form) {
            ("ref", [id]) => match self.reference(id)? {
                Object::Value(value) => Ok(value.clone()),
                _ => Err(self.damaged(form).into()),
            },
            ("quote", [quoted]) => crate::eval::value_of(self.machine, quoted),
            ("list", items) => Ok(Value::list(self.values(items)?)),
            ("cons", [head, tail]) => {
                let (head, tail) = (self.value(head)?, self.value(tail)?);
                Ok(Value::List(Arc::new(List::cons(head, tail))))
            }
            ("view", [part, source, places @ ..]) => {
                let source = self.value(source)?;
                let view = view_of(part, source, places).filter(|view| view.left() != Some(0));
                view.map(|view| Value::List(Arc::new(List::View(view)))).ok_or_else(|| self.damaged(form).into())
            }
            ("pair", [key, value]) => Ok(Value::pair(self.value(key)?, self.value(value)?)),
            ("range", [start, step, count]) => match (&start.kind, &step.kind, &count.kind) {
                (FormKind::Int(start), FormKind::Int(step), FormKind::Int(count)) => {
                    Ok(Value::List(Arc::new(List::Range { start: *start, step: *step, count: *count as u64 })))
                }
                _ => Err(self.damaged(form).into()),
            },
            (kind @ ("map" | "record"), items) => {
                let mut map = Map::default();
                let mut values = self.values(items)?.into_iter();
                while let (Some(key), Some(value)) = (values.next(), values.next()) {
                    map.insert(key, value);
                }
                Ok(Value::Map(Arc::new(if kind == "record" { map.into_record() } else { map })))
            }
            ("sorted-map", [comparator, items @ ..]) => {
                let mut map = Map::sorted(self.value(comparator)?);
                let mut values = self.values(items)?.into_iter();
                while let (Some(key), Some(value)) = (values.next(), values.next()) {
                    if map.contains_key(&key) {
                        return Err(self.damaged(form).into());
                    }
                    map.insert_at(usize::MAX, key, value);
                }
                Ok(Value::Map(Arc::new(map)))
            }
            ("sorted-set", [comparator, items @ ..]) => {
                let mut set = Set::sorted(self.value(comparator)?);
                for member in self.values(items)? {
                    if set.contains(&member) {
                        return Err(self.damaged(form).into());
                    }
                    set.insert_at(usize::MAX, member);
                }
                Ok(Value::Set(Arc::new(set)))
            }
            ("meta", [value, metadata]) => {
                let (value, metadata) = (self.value(value)?, self.value(metadata)?);
                match metadata {
                    Value::Map(metadata) => crate::eval::annotate(self.machine, value, Some(metadata)),
                    _ => Err(self.damaged(form).into()),
                }
            }
            ("set", items) => Ok(Value::Set(Arc::new(self.values(items)?.into_iter().collect::<Set>()))),
            ("builtin", [name]) => match meaning_of(self.machine, name.as_symbol().unwrap_or_default())? {
                Some(Meaning::Prelude(_, closure)) => Ok(Value::Closure(closure)),
                Some(Meaning::Native(native)) => Ok(Value::Native(native)),
                _ => self.builtin(name).map(Value::Builtin),
            },
            ("bound", [name, arguments @ ..]) => {
                let builtin = self.builtin(name)?;
                Ok(Value::Bound(Arc::new(Bound { builtin, arguments: self.values(arguments)? })))
            }
            ("function", [group, Form { kind: FormKind::Int(index), .. }, captures]) => {
                self.function(form, group, *index, captures)
            }
            ("var", [name]) => Ok(Value::Var(name.as_symbol().unwrap_or_default().into())),
            ("tool", [Form { kind: FormKind::Str(server), .. }, Form { kind: FormKind::Str(name), .. }]) => {
                Ok(Value::Tool(Arc::new(ToolFunction::by_name(server, name))))
            }
            ("exception", [code, Form { kind: FormKind::Str(message), .. }, data, cause, rest @ ..]) => {
                let (data, cause) = (self.value(data)?, self.value(cause)?);
                let code = code.as_symbol().filter(|code| is_code(code)).ok_or_else(|| self.damaged(form))?;
                let mut error = Error::new(code.to_string(), message.clone());
                error.symbol = rest.first().and_then(told);
                error.suggestion = rest.get(1).and_then(told);
                Ok(Value::Exception(Arc::new(error.with_data(data).with_cause(cause))))
            }
            ("reduced", [inner]) => Ok(Value::Reduced(Arc::new(Reduced(self.value(inner)?)))),
            _ => Err(self.damaged(form).into()),
        }
    }

    fn builtin(&self, name: &Form) -> Outcome<&'static crate::native::Builtin> {
        let text = name.as_symbol().unwrap_or_default();
        self.machine.core.registry.find_any(text).ok_or_else(|| {
            let message = format!("the snapshot uses `{text}`, which this build does not have");
            Error::new(MISSING_ERROR, message).about(text).into()
        })
    }

    fn function(&mut self, form: &Form, group: &Form, index: i64, captures: &Form) -> Outcome<Value> {
        let Object::Group(group) = self.reference(group)?.clone() else { return Err(self.damaged(form).into()) };
        let FormKind::Int(id) = captures.kind else { return Err(self.damaged(form).into()) };
        let captures = match self.reference(captures)?.clone() {
            Object::Captures(captures) => captures,
            Object::Value(Value::Vector(items)) => {
                let captures = Arc::new(Captures::new(items.iter().cloned().collect()));
                self.objects.insert(id, Object::Captures(captures.clone()));
                captures
            }
            _ => return Err(self.damaged(form).into()),
        };
        let fits = usize::try_from(index).is_ok_and(|index| index < group.lambdas.len())
            && captures.as_slice().len() == group.captured.len();
        if !fits {
            return Err(self.damaged(form).into());
        }
        Ok(Value::Closure(Arc::new(Closure { group, index: index as u32, captures })))
    }

    fn group(
        &mut self,
        form: &Form,
        name: &Form,
        functions: &Form,
        names: &Form,
        captured: &Form,
    ) -> Outcome<Arc<Group>> {
        let damaged = self.damaged(form);
        let FormKind::Str(source_name) = &name.kind else { return Err(damaged.into()) };
        let pairs = |form: &Form| -> Vec<Vec<Form>> {
            form.as_list()
                .unwrap_or_default()
                .iter()
                .map(|pair| pair.as_vector().unwrap_or_default().to_vec())
                .collect()
        };
        let mut codes = Vec::new();
        for pair in pairs(functions) {
            let [name, code] = &pair[..] else { return Err(damaged.into()) };
            let misshapen = if code.is_call_of("fn*") { misshapen(code) } else { Some(code) };
            if let Some(part) = misshapen {
                return Err(self.damaged(part).into());
            }
            codes.push((name.as_symbol().map(str::to_string), code.clone()));
        }
        let mut meanings = HashMap::new();
        for pair in pairs(names) {
            match &pair[..] {
                [name, Form { kind: FormKind::Str(meaning), .. }] => {
                    meanings.insert(name.as_symbol().unwrap_or_default().to_string(), meaning.clone());
                }
                _ => return Err(damaged.into()),
            }
        }
        let captured: Vec<String> =
            captured.as_vector().unwrap_or_default().iter().filter_map(Form::as_symbol).map(str::to_string).collect();
        if codes.is_empty() {
            return Err(damaged.into());
        }
        // Functions created by prelude code use the prelude's source, which is hidden in the same way.
        let source = match self.machine.core.registry.prelude().source(source_name) {
            Some(source) => source.clone(),
            None => {
                let name = SourceName::Given(source_name.as_str().into());
                Arc::new(Source { name, text: self.source.text.clone(), is_hidden: false })
            }
        };
        let mut names = Meanings { machine: self.machine, meanings };
        Resolver::new(&mut names, &source).function(&codes, &captured)
    }

    fn define(&mut self, name: &Form, value: &Form, options: &[Form]) -> Outcome<()> {
        let Some(name) = name.as_symbol() else { return Err(self.damaged(value).into()) };
        let value = self.value(value)?;
        let option = |wanted: &str| {
            options.chunks_exact(2).find(|pair| pair[0].as_keyword() == Some(wanted)).map(|pair| &pair[1].kind)
        };
        let doc = match option("doc") {
            Some(FormKind::Str(doc)) => Some(Arc::from(doc.as_str())),
            _ => None,
        };
        let is_macro = matches!(option("macro"), Some(FormKind::Bool(true)));
        let metadata = match options.chunks_exact(2).find(|pair| pair[0].as_keyword() == Some("meta")) {
            Some([_, form]) => match self.value(form)? {
                Value::Map(metadata) => Some(metadata),
                _ => return Err(self.damaged(form).into()),
            },
            _ => None,
        };
        let index = self.machine.core.globals.index(name);
        self.machine.core.globals.set(index, Global { value: Some(value), doc, is_macro, metadata });
        Ok(())
    }
}

/// Collects the rows that must be read before a row. Cells exist from the beginning.
fn references(form: &Form, out: &mut Vec<i64>) {
    match (row_parts(form), &form.kind) {
        (("ref", [Form { kind: FormKind::Int(id), .. }]), _) => out.push(*id),
        (("function", [Form { kind: FormKind::Int(group), .. }, _, Form { kind: FormKind::Int(captures), .. }]), _) => {
            out.extend([*group, *captures]);
        }
        (("functions" | "quote", _), _) => {}
        (_, FormKind::List(items) | FormKind::Vector(items)) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

fn cell_kind(name: &str) -> CellKind {
    match name {
        "atom" => CellKind::Atom,
        "volatile" => CellKind::Volatile,
        "transient" => CellKind::Transient,
        "delay" => CellKind::Delay,
        "local-var" => CellKind::Var,
        "matcher" => CellKind::Matcher,
        "text" => CellKind::Text,
        "unknown" => CellKind::Unknown,
        _ => CellKind::Lazy,
    }
}

/// True for a valid exception code: one alphanumeric word, not necessarily one that this build raises.
fn is_code(code: &str) -> bool {
    code.starts_with(|c: char| c.is_ascii_alphabetic()) && code.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Reads an optional text of an exception (its symbol or its suggestion): nil or a string.
fn told(form: &Form) -> Option<String> {
    match &form.kind {
        FormKind::Str(text) => Some(text.clone()),
        _ => None,
    }
}

/// Resolves a qualified name of the language.
fn meaning_of(machine: &Machine, name: &str) -> Outcome<Option<Meaning>> {
    let registry = &machine.core.registry;
    match (registry.find_any(name), registry.find_any_prelude(name)) {
        (Some(builtin), _) => Ok(Some(Meaning::of(registry, builtin))),
        (None, Some(function)) => machine.prelude_meaning(function).map(Some),
        (None, None) => Ok(None),
    }
}

/// Resolves names in the code of a restored function to their recorded meanings.
struct Meanings<'m> {
    machine: &'m mut Machine,
    meanings: HashMap<String, String>,
}

impl Meanings<'_> {
    /// Resolves a name without a recorded meaning in the current session.
    fn free(&mut self, name: &str, scope: &dyn Fn() -> Vec<String>) -> Outcome<Meaning> {
        Ok(match self.machine.meaning(name, scope)? {
            // The snapshot lists the captures of a function, so a held value becomes a constant. Version 1 did not
            // capture `*1`.
            Meaning::Held(value) => Meaning::Constant(value),
            meaning => meaning,
        })
    }
}

impl Names for Meanings<'_> {
    fn charge(&mut self, steps: u64) -> Outcome<()> {
        self.machine.charge(steps)
    }

    fn takes_shortcuts(&self) -> bool {
        self.machine.takes_shortcuts()
    }

    fn meaning(&mut self, name: &str, scope: &dyn Fn() -> Vec<String>) -> Outcome<Meaning> {
        let Some(meaning) = self.meanings.get(name).cloned() else { return self.free(name, scope) };
        if let Some(definition) = definition(name, &meaning) {
            return Ok(Meaning::Global(self.machine.core.globals.index(definition)));
        }
        let meaning = name_elsewhere(&meaning);
        if let Some(meaning) = meaning_of(self.machine, meaning)? {
            return Ok(meaning);
        }
        match meaning.split_once('/') {
            Some((server, tool)) => Ok(Meaning::Tool(Arc::new(ToolFunction::by_name(server, tool)))),
            None => self.free(name, scope),
        }
    }

    fn var(&mut self, name: &str, scope: &dyn Fn() -> Vec<String>) -> Outcome<String> {
        match self.meanings.get(name) {
            Some(meaning) => Ok(definition(name, meaning).unwrap_or_else(|| name_elsewhere(meaning)).to_string()),
            None => self.machine.var(name, scope),
        }
    }

    fn define(&mut self, name: &str) -> u32 {
        self.machine.core.globals.index(name)
    }

    fn name_of(&self, definition: u32) -> String {
        self.machine.name_of(definition)
    }

    fn shadow(&mut self, _: &str) {}

    fn constant(&mut self, form: &Form) -> Outcome<Value> {
        Names::constant(self.machine, form)
    }
}

/// Creates the view of a part of a collection between two positions, or of so many of its last items.
fn view_of(part: &Form, source: Value, places: &[Form]) -> Option<View> {
    let name = part.as_symbol()?;
    let (part, _) = Part::NAMES.iter().find(|(_, known)| *known == name)?;
    let number = |form: &Form| match &form.kind {
        FormKind::Int(number) => usize::try_from(*number).ok(),
        _ => None,
    };
    let view = View::of(source, *part)?;
    match places {
        [left] if view.bounds().is_none() => view.ending(number(left)?),
        [at, end] if at != end => view.between(number(at)?, number(end)?),
        _ => None,
    }
}
