//! The state shared by the branches of an evaluation, including what persists from one evaluation of a session to the
//! next.

use super::{Capture, CountedCalls, LookUps, Object};
use crate::error::{Error, Halt};
use crate::heap::{Handle, Heap};
use crate::host::{CallRecord, HostAccess};
use crate::meter::{self, Account, Meter};
use crate::registry::Registry;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::matching::{Compiled, Tables};
use crate::value::pattern::Pattern;
use crate::value::text::{Text, split_name};
use foldhash::quality::RandomState;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The prefix of the notes that tell which runs wait; see [`waiting`](super::waiting).
pub(super) const WAITING: &str = "waiting/";

/// Maximum number of notes of an evaluation.
const NOTES: usize = 16;

/// The shared state of an evaluation: everything except the stacks.
pub struct Core {
    /// The ledger of limits.
    pub meter: Meter,
    /// The contents of atoms, delays and lazy sequences.
    pub heap: Heap,
    /// The session's definitions.
    pub globals: Globals,
    /// The objects with their row numbers in the session's last snapshot, so that the next snapshot reuses the
    /// numbers; see [`snapshot`](crate::snapshot). A cache: it can be dropped at any time.
    pub rows: Vec<(i64, Object)>,
    /// The host: the only access to the outside.
    pub host: HostAccess,
    /// The language's functions.
    pub registry: Arc<Registry>,
    /// The pool of stacks, and of threads for branches.
    pub stacks: Arc<super::Stacks>,
    /// The printed output, up to the output limit.
    pub prints: String,
    /// The buffers that capture prints while a `with-out-str` runs, the innermost last.
    pub(crate) captured: Vec<Capture>,
    /// The input texts of the active `with-in-str`, each with its read position in bytes, the innermost last.
    pub inputs: Vec<(Text, usize)>,
    /// The number of printed bytes beyond the output limit.
    pub prints_cut: u64,
    /// Tool calls in the order in which they began.
    pub calls: Vec<CallRecord>,
    /// Calls that have changed something, or may have, while somebody counts them.
    pub(crate) counted: CountedCalls,
    /// Notes on the evaluation for its reply, each once.
    pub notes: Vec<String>,
    /// The keys that lookups found and missed.
    pub look_ups: LookUps,
    /// Names that later forms of the program define.
    pub coming: HashSet<String, RandomState>,
    /// Names that the running form defines, as far as it has been resolved. They shadow other meanings of the name.
    pub shadowed: HashSet<String, RandomState>,
    /// Cells that one branch is realising and another waits for, keyed by the number of the waiting branch.
    pub(crate) awaited: HashMap<u32, Arc<Handle>>,
    /// The number of programs that the session has run.
    pub programs: u32,
    /// Ordinal number of the running form.
    pub form: u32,
    /// State of the random number generator; `None` until the host seeds it on first use.
    pub random: Option<u64>,
    /// The evaluation's memory account, while no thread has it open.
    pub account: Account,
    /// The names bound for this evaluation only, with the definitions that they hide.
    pub(super) lent: Vec<(u32, Global)>,
    /// The live bytes of their values.
    pub(crate) lent_bytes: u64,
    /// Cache of the last few regular expressions compiled at run time.
    pub regexes: HashMap<String, Arc<Pattern>>,
    /// Cache of the working tables of the last few searches, the most recent last.
    pub tables: Vec<(Arc<Compiled>, Box<Tables>)>,
}

/// One definition of the session.
#[derive(Clone, Default)]
pub struct Global {
    /// Its value; `None` before it is defined and after its definition is undone.
    pub value: Option<Value>,
    /// Its doc string.
    pub doc: Option<Arc<str>>,
    /// True for a macro.
    pub is_macro: bool,
    /// Its metadata, if the program gave more than a doc string.
    pub metadata: Option<Arc<Map>>,
}

/// The session's definitions: an indexed table with a parallel table of names.
#[derive(Default)]
pub struct Globals {
    pub(super) slots: Vec<Global>,
    pub(super) names: Vec<String>,
    by_name: HashMap<String, u32, RandomState>,
    /// The changes of the running form; `None` until it changes something.
    pub(super) changed: Option<Box<Changed>>,
    /// The number of forms that have changed definitions.
    changes: u64,
    /// `*1`, `*2`, `*3`, `*e`.
    pub history: [Value; 4],
    /// True if a setting of the printer, such as `*print-length*`, has ever been given a value.
    pub has_print_settings: bool,
    /// The atom that holds the hierarchy which `derive` changes; nil before its first use.
    pub hierarchy: Value,
    /// The number of names that `gensym` has generated. It is not undone with a form, because `*e` may hold such a
    /// name.
    pub generated: u64,
    /// True if a run has ever waited in this session.
    pub(super) has_waited: bool,
}

/// The changes that a form has made to the definitions.
#[derive(Default)]
pub(super) struct Changed {
    /// The undo log: indices and replaced definitions.
    pub(super) journal: Vec<(u32, Global)>,
    journaled: HashSet<u32>,
    /// The hierarchy that the form replaced, if it did.
    hierarchy: Option<Value>,
    /// The indices that the form defined, in order and as a set.
    defined: Vec<u32>,
    is_defined: HashSet<u32>,
}

/// A definition as presented to `lisp_env` and the REPL.
pub struct Visible<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: &'a Value,
    /// Its doc string.
    pub doc: Option<&'a str>,
    /// True for a macro.
    pub is_macro: bool,
    /// Its metadata, if the program gave more than a doc string.
    pub metadata: Option<&'a Arc<Map>>,
}

impl Globals {
    /// Returns the index of a name; adds the name if it is new.
    pub fn index(&mut self, name: &str) -> u32 {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        self.has_print_settings |= name.starts_with("*print-");
        self.has_waited |= name.starts_with(WAITING);
        let index = self.slots.len() as u32;
        self.slots.push(Global::default());
        self.names.push(name.to_string());
        self.by_name.insert(name.to_string(), index);
        index
    }

    /// Returns the index of a name that is defined. The language's own notes have qualified names, which no program
    /// can define; they do not count as definitions.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.find_note(name).filter(|_| !is_note(name))
    }

    /// Returns the index of a name that has a value, including the language's own notes.
    pub fn find_note(&self, name: &str) -> Option<u32> {
        let index = *self.by_name.get(name)?;
        self.slots[index as usize].value.as_ref().map(|_| index)
    }

    /// Returns the definition at an index.
    #[inline]
    pub fn get(&self, index: u32) -> &Global {
        &self.slots[index as usize]
    }

    /// Returns the name at an index.
    pub fn name(&self, index: u32) -> &str {
        &self.names[index as usize]
    }

    /// Sets a definition and records the old one in the undo log.
    pub fn set(&mut self, index: u32, global: Global) {
        let old = std::mem::replace(&mut self.slots[index as usize], global);
        let changed = self.changed.get_or_insert_default();
        if changed.journaled.insert(index) {
            changed.journal.push((index, old));
        }
        if changed.is_defined.insert(index) {
            changed.defined.push(index);
        }
    }

    /// Replaces the value of a definition temporarily and returns the old value. The caller restores it.
    pub fn exchange(&mut self, index: u32, value: Option<Value>) -> Option<Value> {
        // The placeholder of a core that is in use elsewhere has no definitions.
        let global = self.slots.get_mut(index as usize)?;
        let changed = self.changed.get_or_insert_default();
        if changed.journaled.insert(index) {
            changed.journal.push((index, global.clone()));
        }
        std::mem::replace(&mut global.value, value)
    }

    /// Swaps a value that [`exchange`](Globals::exchange) put in place.
    pub(crate) fn swap(&mut self, index: u32, other: &mut Option<Value>) {
        if let Some(global) = self.slots.get_mut(index as usize) {
            std::mem::swap(&mut global.value, other);
        }
    }

    /// Sets the atom of the hierarchy and records the old one in the undo log.
    pub fn set_hierarchy(&mut self, atom: Value) {
        let old = std::mem::replace(&mut self.hierarchy, atom);
        self.changed.get_or_insert_default().hierarchy.get_or_insert(old);
    }

    /// Ends a form and keeps its definitions; returns their names.
    pub fn commit(&mut self) -> Vec<String> {
        let Some(changed) = self.changed.take() else { return Vec::new() };
        self.changes += 1;
        let defined = changed.defined.into_iter().map(|index| index as usize);
        defined.filter(|at| self.slots[*at].value.is_some()).map(|at| self.names[at].clone()).collect()
    }

    /// Ends a form and undoes its definitions.
    pub fn undo(&mut self) {
        let Some(changed) = self.changed.take() else { return };
        for (index, old) in changed.journal.into_iter().rev() {
            self.slots[index as usize] = old;
        }
        if let Some(old) = changed.hierarchy {
            self.hierarchy = old;
        }
    }

    /// Returns the names of the definitions whose values are among these cells.
    fn names_of(&self, cells: &[Arc<Handle>]) -> Vec<String> {
        let cells: HashSet<*const Handle> = cells.iter().map(Arc::as_ptr).collect();
        let is_one =
            |slot: &Global| matches!(&slot.value, Some(Value::Cell(cell)) if cells.contains(&Arc::as_ptr(cell)));
        let named = self.slots.iter().zip(&self.names).filter(|(slot, name)| is_one(slot) && !is_note(name));
        named.map(|(_, name)| name.clone()).collect()
    }

    /// Copies the definitions, whose values are shared.
    fn fork(&self) -> Globals {
        Globals {
            slots: self.slots.clone(),
            names: self.names.clone(),
            by_name: self.by_name.clone(),
            changed: None,
            changes: self.changes,
            history: self.history.clone(),
            has_print_settings: self.has_print_settings,
            hierarchy: self.hierarchy.clone(),
            generated: self.generated,
            has_waited: self.has_waited,
        }
    }

    /// Iterates over the definitions, in the order in which their names were added.
    pub fn iter(&self) -> impl Iterator<Item = Visible<'_>> {
        self.kept().filter(|global| !is_note(global.name))
    }

    /// Iterates over what persists from one program to the next: the definitions and the language's own notes.
    pub fn kept(&self) -> impl Iterator<Item = Visible<'_>> {
        self.names.iter().zip(&self.slots).filter_map(|(name, global)| {
            let value = global.value.as_ref()?;
            let metadata = global.metadata.as_ref();
            Some(Visible { name, value, doc: global.doc.as_deref(), is_macro: global.is_macro, metadata })
        })
    }

    /// A revision number. It changes whenever a form changes definitions or generates a name that must not be
    /// generated again.
    pub fn changes(&self) -> u64 {
        self.changes + self.generated
    }

    /// The number of names in the table, defined or not.
    pub fn known(&self) -> usize {
        self.names.len()
    }

    /// The number of names that have a value.
    pub fn len(&self) -> usize {
        self.slots.iter().filter(|global| global.value.is_some()).count()
    }

    /// Returns all values that the session references directly: the roots of the cycle collector.
    pub fn roots(&self) -> Vec<Value> {
        let defined = self.slots.iter().filter_map(|global| global.value.clone());
        let metadata = self.slots.iter().filter_map(|global| global.metadata.clone().map(Value::Map));
        defined.chain(metadata).chain(self.history.iter().cloned()).chain([self.hierarchy.clone()]).collect()
    }
}

/// Replaces a table by a new one, unless it has no memory: then it is as new, and seeding another would cost more.
fn renew<T: Default>(capacity: usize, table: &mut T) {
    if capacity > 0 {
        *table = T::default();
    }
}

impl Core {
    /// Creates the core of an empty session.
    pub fn new(meter: Meter, host: HostAccess, registry: Arc<Registry>, stacks: Arc<super::Stacks>) -> Core {
        Core {
            meter,
            heap: Heap::default(),
            globals: Globals::default(),
            rows: Vec::new(),
            host,
            registry,
            stacks,
            prints: String::new(),
            captured: Vec::new(),
            inputs: Vec::new(),
            prints_cut: 0,
            calls: Vec::new(),
            counted: CountedCalls::default(),
            notes: Vec::new(),
            look_ups: LookUps::default(),
            coming: HashSet::default(),
            shadowed: HashSet::default(),
            awaited: HashMap::new(),
            programs: 0,
            form: 0,
            random: None,
            account: Account::default(),
            lent: Vec::new(),
            lent_bytes: 0,
            regexes: HashMap::new(),
            tables: Vec::new(),
        }
    }

    /// Binds a name for this evaluation only. Programs that run later see the definition that it hides.
    pub(crate) fn lend(&mut self, name: &str, value: Value) {
        self.lend_definition(name, Global { value: Some(value), ..Global::default() });
    }

    /// As [`lend`](Core::lend), with all that belongs to a definition.
    pub(super) fn lend_definition(&mut self, name: &str, definition: Global) {
        let index = self.globals.index(name);
        let hidden = std::mem::replace(&mut self.globals.slots[index as usize], definition);
        if !self.lent.iter().any(|(known, _)| *known == index) {
            self.lent.push((index, hidden));
        }
    }

    /// Defines a name, or removes its definition, for the embedder.
    ///
    /// # Errors
    /// As [`Core::check_session`]; nothing is changed then.
    pub(crate) fn define(&mut self, name: &str, value: Option<Value>) -> Result<(), Halt> {
        let index = self.globals.index(name);
        self.globals.set(index, Global { value, ..Global::default() });
        if let Err(halt) = self.check_session() {
            self.undo();
            return Err(halt);
        }
        self.commit(&Value::Nil);
        Ok(())
    }

    /// Copies what persists between evaluations. The copy is charged for all values that the two share.
    ///
    /// The copy has none of the runs that wait: each is resumed once.
    pub(crate) fn fork(&mut self) -> Core {
        let meter = Meter::new(self.meter.limits.clone(), self.meter.memory_counted, std::time::Duration::ZERO);
        let mut globals = self.globals.fork();
        globals.forget_waiting();
        Core {
            heap: self.heap.fork(),
            globals,
            programs: self.programs,
            account: Account::of(self.account.live()),
            ..Core::new(meter, HostAccess::none(), self.registry.clone(), self.stacks.clone())
        }
    }

    /// Drops all state that belongs to a single evaluation.
    pub fn end_evaluation(&mut self) {
        if !self.lent.is_empty() {
            for (index, hidden) in std::mem::take(&mut self.lent) {
                self.globals.slots[index as usize] = hidden;
            }
        }
        self.lent_bytes = 0;
        self.meter.close();
        self.prints = String::new();
        self.captured = Vec::new();
        self.inputs = Vec::new();
        renew(self.awaited.capacity(), &mut self.awaited);
        self.prints_cut = 0;
        self.calls = Vec::new();
        self.notes = Vec::new();
        self.look_ups.clear();
        renew(self.coming.capacity(), &mut self.coming);
        renew(self.shadowed.capacity(), &mut self.shadowed);
        self.form = 0;
        self.random = None;
        // The fuel that a program consumes must not depend on what ran before it.
        renew(self.regexes.capacity(), &mut self.regexes);
        self.tables = Vec::new();
    }

    /// Creates the placeholder that a machine holds while its core is in use elsewhere.
    pub(crate) fn placeholder(of: &Core) -> Core {
        let meter = Meter::new(of.meter.limits.clone(), of.meter.memory_counted, std::time::Duration::ZERO);
        Core::new(meter, of.host.clone(), of.registry.clone(), of.stacks.clone())
    }

    /// Prints text: to the innermost capture, or to the output, within its limit, and to the host.
    pub fn print(&mut self, text: &str) {
        if let Some(captured) = self.captured.last_mut() {
            captured.text.push_str(text);
            return;
        }
        self.host.print(text);
        let room = (self.meter.limits.output as usize).saturating_sub(self.prints.len());
        let cut = text.floor_char_boundary(room);
        self.prints.push_str(&text[..cut]);
        self.prints_cut += (text.len() - cut) as u64;
    }

    /// Adds a note to the reply, once.
    pub fn note(&mut self, text: String) {
        if self.notes.len() < NOTES && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Commits the definitions and heap changes of the running form; returns the names that it defined. `result` is
    /// the value of the form.
    pub fn commit(&mut self, result: &Value) -> Vec<String> {
        let roots = || {
            let mut roots = self.globals.roots();
            roots.push(result.clone());
            roots
        };
        self.heap.commit();
        let (meter, host) = (&mut self.meter, &self.host);
        // The changes are kept even if the time limit is exceeded during the sweep.
        self.heap.sweep_from(roots, &mut || meter.check_time(host).is_err());
        if self.globals.has_waited {
            self.keep_replaced();
        }
        let defined = self.globals.commit();
        // A definition of the program replaces a binding for the evaluation.
        self.lent.retain(|(index, _)| !defined.iter().any(|name| name == self.globals.name(*index)));
        defined
    }

    /// Undoes the definitions and heap changes of the running form. Returns the names of definitions whose cells, such as
    /// atoms, the form had changed.
    pub fn undo(&mut self) -> Vec<String> {
        self.globals.undo();
        let undone = self.heap.undo();
        if undone.is_empty() { Vec::new() } else { self.globals.names_of(&undone) }
    }

    /// Checks the limits on the session's contents before they are kept.
    ///
    /// # Errors
    /// Returns a halt of the limit `session` or `bindings`.
    pub fn check_session(&mut self) -> Result<(), Halt> {
        use crate::meter::{bytes, limit};
        let limits = &self.meter.limits;
        let count = self.globals.len().saturating_sub(self.lent.len());
        if count > limits.bindings as usize {
            return Err(limit("bindings", format!("{} bindings", limits.bindings), format!("{count} bindings")));
        }
        // Data of a single run is not the session's.
        let (most, has_some) = (limits.session.saturating_add(self.lent_bytes), count > 0);
        if self.meter.memory_counted && has_some && meter::live() > most {
            self.release_unheld()?;
            if meter::live() > most {
                self.rows = Vec::new();
                self.meter.drop_aside(&self.host)?;
            }
            let live = meter::live();
            if live > most {
                return Err(limit("session", bytes(most), bytes(live)));
            }
        }
        Ok(())
    }

    /// Releases all that nothing holds any more: contents whose drop was deferred and cells without a handle, each of
    /// which may hold more of the others.
    ///
    /// # Errors
    /// Returns a halt if the time limit is exceeded meanwhile.
    pub(super) fn release_unheld(&mut self) -> Result<(), Halt> {
        loop {
            let before = meter::live();
            self.meter.drop_aside(&self.host)?;
            self.heap.reclaim_all();
            if meter::live() >= before {
                return Ok(());
            }
        }
    }

    /// Returns the next 64 random bits.
    pub fn random(&mut self) -> u64 {
        let state = match self.random {
            Some(state) => state,
            None => self.host.random(),
        };
        // SplitMix64. The host's bits seed it, so a run can be replayed from a single number.
        let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random = Some(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// True for the qualified names of the language's own notes in the table of definitions.
pub(super) fn is_note(name: &str) -> bool {
    split_name(name).0.is_some()
}

/// The error for a name that is used before it is defined.
pub fn unbound(name: &str) -> Error {
    Error::new("UnboundVariable", format!("`{name}` is not defined yet")).about(name)
}
