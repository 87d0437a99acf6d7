//! Snapshot decoder: the rows of a text, and the definitions in them. `build` makes their values.

use super::known::Known;
use super::scan::{CODE_NESTING, scan};
use super::tape::{Part, Parts, Tape};
use super::{MOST_ROWS, VERSION};
use crate::error::{Error, Outcome, Raised};
use crate::form::{Form, FormKind};
use crate::heap::{CellKind, Handle, Notes, State};
use crate::machine::{Global, Machine, Object};
use crate::node::Group;
use crate::reader::{self, Reading};
use crate::resolve::shape::misshapen;
use crate::resolve::{Meaning, Names, Resolver, definition, name_elsewhere};
use crate::span::{Source, SourceName};
use crate::value::Value;
use crate::value::function::{Captures, Closure, ToolFunction};
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
    let tape = match scan(&source.text) {
        Some(tape) => tape,
        None => {
            let read = forms(&source.text).map_err(|error| {
                Error::new("SnapshotError", format!("the snapshot cannot be read: {}", error.message))
            })?;
            Tape::of_forms(&source.text, read)
        }
    };
    let rows = tape.rows();
    let mut decoder = Decoder::new(machine, source);
    decoder.check(rows)?;
    // Register the names in the order of their definitions, not in the order in which functions use them.
    for row in rows {
        if let ("define", rest) = row.row()
            && let Some(([name, _], _)) = rest.first()
        {
            decoder.machine.core.globals.index(name.symbol().unwrap_or_default());
        }
    }
    decoder.read_rows(rows)?;
    for row in rows {
        if decoder.read_row(row)?.is_none() {
            return Err(decoder.damaged(row).into());
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

/// Decodes the rows of a text.
pub(super) struct Decoder<'m, 't> {
    pub(super) machine: &'m mut Machine,
    source: &'t Arc<Source>,
    rows: HashMap<i64, Part<'t>, foldhash::quality::RandomState>,
    pub(super) objects: HashMap<i64, Object, foldhash::quality::RandomState>,
    /// Cells and the parts with their states. The states are restored after all rows have been read.
    cells: Vec<(Arc<Handle>, Part<'t>)>,
    pub(super) known: Known<'t>,
}

impl<'m, 't> Decoder<'m, 't> {
    fn new(machine: &'m mut Machine, source: &'t Arc<Source>) -> Decoder<'m, 't> {
        let (rows, objects, cells) = (HashMap::default(), HashMap::default(), Vec::new());
        Decoder { machine, source, rows, objects, cells, known: Known::default() }
    }

    pub(super) fn damaged(&self, part: Part<'_>) -> Error {
        self.damaged_at(part.start())
    }

    fn damaged_at(&self, start: u32) -> Error {
        let (line, column) = self.source.line_column(start);
        Error::new("SnapshotError", format!("the snapshot is damaged at line {line}, column {column}"))
    }

    /// Checks that the rows are those of one whole snapshot.
    fn check(&self, mut rows: Parts<'t>) -> Outcome<()> {
        let header = rows.next().map(Part::row);
        let version = header.filter(|(head, _)| *head == "lispbox-session").and_then(|(_, rest)| rest.exactly());
        match version.and_then(|[version]| version.integer()) {
            Some(1..=VERSION) => {}
            Some(version) => {
                let message = format!("the snapshot has version {version}; this build reads versions 1 to {VERSION}");
                return Err(Error::new(VERSION_ERROR, message).into());
            }
            None => return Err(Error::new(FORMAT_ERROR, "this is not a snapshot of a session").into()),
        }
        let mut is_whole = false;
        for row in rows {
            match row.row().0 {
                "lispbox-session" => {
                    let (line, _) = self.source.line_column(row.start());
                    let message = format!("another snapshot begins at line {line}: read each separately");
                    return Err(Error::new("SnapshotError", message).into());
                }
                "history" => is_whole = true,
                _ => {}
            }
        }
        if is_whole {
            return Ok(());
        }
        let message = "the snapshot is cut off: its last row, `(history …)`, is missing";
        Err(Error::new("SnapshotError", message).into())
    }

    /// Restores what a row says of the session; returns `None` if the row is damaged.
    fn read_row(&mut self, row: Part<'t>) -> Outcome<Option<()>> {
        let (head, rest) = row.row();
        match head {
            "define" => {
                let Some(([name, value], options)) = rest.first() else { return Ok(None) };
                self.define(name, value, options)?;
            }
            "history" => {
                for (at, value) in rest.take(4).enumerate() {
                    self.machine.core.globals.history[at] = self.value(value)?;
                }
            }
            "counts" => {
                let counts =
                    rest.exactly().and_then(|[programs, generated]| Some((programs.integer()?, generated.integer()?)));
                let Some((programs, generated)) = counts else { return Ok(None) };
                self.machine.core.programs = u32::try_from(programs).unwrap_or(u32::MAX);
                self.machine.core.globals.generated = generated.clamp(0, MOST_ROWS).unsigned_abs();
            }
            "hierarchy" => {
                let Some([value]) = rest.exactly() else { return Ok(None) };
                self.machine.core.globals.hierarchy = self.value(value)?;
            }
            "object" | "lispbox-session" => {}
            _ => return Ok(None),
        }
        Ok(Some(()))
    }

    /// Reads all rows in dependency order: each after the rows that it refers to.
    fn read_rows(&mut self, rows: Parts<'t>) -> Outcome<()> {
        for row in rows {
            if let ("object", rest) = row.row()
                && let Some([id, content]) = rest.exactly()
                && let Some(id) = id.integer()
            {
                let (word, state) = content.row();
                if let (Some(kind), Some(([_, _], _))) = (cell_kind(word), state.first()) {
                    let handle = self.machine.core.heap.allocate(kind, State::Done(Value::Nil));
                    let value =
                        if kind == CellKind::Lazy { Value::Lazy(handle.clone()) } else { Value::Cell(handle.clone()) };
                    self.objects.insert(id, Object::Value(value));
                    self.cells.push((handle, content));
                }
                self.rows.insert(id, content);
            }
        }
        let mut waiting: Vec<i64> = self.rows.keys().copied().collect();
        waiting.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
        let mut under_way: HashMap<i64, u32> = HashMap::new();
        let mut missing = Vec::new();
        while let Some(id) = waiting.pop() {
            self.machine.charge(1)?;
            if self.objects.contains_key(&id) {
                continue;
            }
            let Some(part) = self.rows.get(&id).copied() else {
                return Err(Error::new("SnapshotError", format!("the snapshot has no object {id}")).into());
            };
            missing.clear();
            part.references(&mut missing);
            missing.retain(|id| !self.objects.contains_key(id));
            if missing.is_empty() {
                let object = self.object(part)?;
                self.objects.insert(id, object);
                continue;
            }
            let tries = under_way.entry(id).or_insert(0);
            *tries += 1;
            if *tries > 1 {
                return Err(Error::new("SnapshotError", format!("object {id} of the snapshot contains itself")).into());
            }
            waiting.push(id);
            waiting.append(&mut missing);
        }
        for (handle, part) in std::mem::take(&mut self.cells) {
            self.cell(&handle, part)?;
        }
        Ok(())
    }

    /// Restores the state and the notes of a cell.
    fn cell(&mut self, handle: &Arc<Handle>, part: Part<'t>) -> Outcome<()> {
        let Some(([word, value], notes)) = part.row().1.first() else { return Err(self.damaged(part).into()) };
        let value = self.value(value)?;
        let state = match word.symbol() {
            Some("waiting") => State::Waiting(value),
            Some("failed") => State::Failed(value),
            _ => State::Done(value),
        };
        self.machine.core.heap.change(handle, state)?;
        let Some([metadata, validator, watches]) = notes.exactly() else { return Ok(()) };
        let metadata = match self.value(metadata)? {
            Value::Map(metadata) => Some(metadata),
            _ => None,
        };
        let validator = self.value(validator)?;
        let Value::Map(watches) = self.value(watches)? else { return Err(self.damaged(part).into()) };
        self.machine.core.heap.annotate(handle, Notes { metadata, validator, watches })?;
        Ok(())
    }

    fn object(&mut self, part: Part<'t>) -> Outcome<Object> {
        // The captured values of a function are a bare vector at the top of a row, and so is a shared vector. The row is
        // read as a vector first; `function` converts it to captures when it is used as such.
        let Some(code) = part.code() else { return Ok(Object::Value(self.value(part)?)) };
        let group = code.take().map(|code| self.group(code)).transpose()?.flatten();
        group.map(Object::Group).ok_or_else(|| self.damaged(part).into())
    }

    pub(super) fn reference(&self, part: Part<'t>) -> Outcome<&Object> {
        part.integer().and_then(|id| self.objects.get(&id)).ok_or_else(|| self.damaged(part).into())
    }

    /// Restores the function of that index in a group; returns `None` if there is none.
    pub(super) fn function(&mut self, group: Part<'t>, index: i64, captures: Part<'t>) -> Outcome<Option<Value>> {
        let Object::Group(group) = self.reference(group)?.clone() else { return Ok(None) };
        let Some(id) = captures.integer() else { return Ok(None) };
        let captures = match self.reference(captures)?.clone() {
            Object::Captures(captures) => captures,
            Object::Value(Value::Vector(items)) => {
                let captures = Arc::new(Captures::new(items.iter().cloned().collect()));
                self.objects.insert(id, Object::Captures(captures.clone()));
                captures
            }
            _ => return Ok(None),
        };
        let fits = usize::try_from(index).is_ok_and(|index| index < group.lambdas.len())
            && captures.as_slice().len() == group.captured.len();
        Ok(fits.then(|| Value::Closure(Arc::new(Closure { group, index: index as u32, captures }))))
    }

    /// Restores the code of functions: the name of its source, names and forms, the meanings of the names in it, and the
    /// names of the captured values. Returns `None` if it is damaged.
    fn group(&mut self, code: Form) -> Outcome<Option<Arc<Group>>> {
        let FormKind::List(items) = code.kind else { return Ok(None) };
        let Ok([_, name, functions, names, captured]) = <[Form; 5]>::try_from(items) else { return Ok(None) };
        let (FormKind::Str(source_name), FormKind::List(functions)) = (&name.kind, functions.kind) else {
            return Ok(None);
        };
        let mut codes = Vec::new();
        for pair in functions {
            let FormKind::Vector(pair) = pair.kind else { return Ok(None) };
            let Ok([name, code]) = <[Form; 2]>::try_from(pair) else { return Ok(None) };
            let misshapen = if code.is_call_of("fn*") { misshapen(&code) } else { Some(&code) };
            if let Some(part) = misshapen {
                return Err(self.damaged_at(part.span.start).into());
            }
            codes.push((name.as_symbol().map(str::to_string), Arc::new(code)));
        }
        let mut meanings: HashMap<_, _, foldhash::quality::RandomState> = HashMap::default();
        for pair in pairs(&names) {
            let [name, Form { kind: FormKind::Str(meaning), .. }] = pair else { return Ok(None) };
            meanings.insert(name.as_symbol().unwrap_or_default(), meaning.as_str());
        }
        let captured: Vec<String> =
            captured.as_vector().unwrap_or_default().iter().filter_map(Form::as_symbol).map(str::to_string).collect();
        if codes.is_empty() {
            return Ok(None);
        }
        // Functions created by prelude code use the prelude's source, which is hidden in the same way.
        let source = match self.machine.core.registry.prelude().source(source_name) {
            Some(source) => source.clone(),
            None => {
                // Positions in it are those of this text.
                let name = SourceName::Stored(source_name.as_str().into());
                Arc::new(Source { name, text: self.source.text.clone(), is_hidden: false })
            }
        };
        let mut names = Meanings { machine: self.machine, meanings };
        Resolver::new(&mut names, &source).function(&codes, &captured).map(Some)
    }

    fn define(&mut self, name: Part<'t>, value: Part<'t>, options: Parts<'t>) -> Outcome<()> {
        let Some(name) = name.symbol() else { return Err(self.damaged(value).into()) };
        let value = self.value(value)?;
        let options: Vec<Part<'t>> = options.collect();
        let option =
            |wanted: &str| options.chunks_exact(2).find(|pair| pair[0].keyword() == Some(wanted)).map(|pair| pair[1]);
        let doc = option("doc").and_then(Part::string).map(Arc::from);
        let is_macro = option("macro").is_some_and(Part::is_true);
        let metadata = match option("meta") {
            Some(part) => match self.value(part)? {
                Value::Map(metadata) => Some(metadata),
                _ => return Err(self.damaged(part).into()),
            },
            None => None,
        };
        let index = self.machine.core.globals.index(name);
        self.machine.core.globals.set(index, Global { value: Some(value), doc, is_macro, metadata });
        Ok(())
    }
}

/// Returns the vectors in a list.
fn pairs(list: &Form) -> impl Iterator<Item = &[Form]> {
    list.as_list().unwrap_or_default().iter().map(|pair| pair.as_vector().unwrap_or_default())
}

/// Returns the kind of cell that a word means.
fn cell_kind(word: &str) -> Option<CellKind> {
    Some(match word {
        "atom" => CellKind::Atom,
        "volatile" => CellKind::Volatile,
        "transient" => CellKind::Transient,
        "delay" => CellKind::Delay,
        "local-var" => CellKind::Var,
        "matcher" => CellKind::Matcher,
        "text" => CellKind::Text,
        "lazy" => CellKind::Lazy,
        _ => return None,
    })
}

/// Resolves a qualified name of the language.
pub(super) fn meaning_of(machine: &Machine, name: &str) -> Outcome<Option<Meaning>> {
    let registry = &machine.core.registry;
    if let Some(builtin) = registry.find_any(name) {
        return Ok(Some(Meaning::of(registry, builtin)));
    }
    registry.find_any_prelude(name).map(|function| machine.prelude_meaning(function)).transpose()
}

/// Resolves names in the code of a restored function to their recorded meanings.
struct Meanings<'m> {
    machine: &'m mut Machine,
    meanings: HashMap<&'m str, &'m str, foldhash::quality::RandomState>,
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
        let Some(meaning) = self.meanings.get(name).copied() else { return self.free(name, scope) };
        if let Some(definition) = definition(name, meaning) {
            return Ok(Meaning::Global(self.machine.core.globals.index(definition)));
        }
        let meaning = name_elsewhere(meaning);
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
