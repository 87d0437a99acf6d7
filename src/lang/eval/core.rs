//! What the branches of an evaluation share, and what lasts from one evaluation of a session to the
//! next.

use super::Object;
use crate::lang::builtin::Registry;
use crate::lang::error::{Error, Halt};
use crate::lang::heap::{Handle, Heap};
use crate::lang::host::Host;
use crate::lang::meter::{self, Account, Meter};
use crate::lang::reply::CallRecord;
use crate::lang::value::Value;
use crate::lang::value::map::Map;
use crate::lang::value::matching::{Compiled, Tables};
use crate::lang::value::pattern::Pattern;
use crate::lang::value::text::{Text, split_name};
use foldhash::quality::RandomState;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Everything but the stacks.
pub struct Core {
    /// The ledger.
    pub meter: Meter,
    /// Content of atoms and lazy sequences.
    pub heap: Heap,
    /// The session's definitions.
    pub globals: Globals,
    /// What had which row in the session's last text, so that it keeps it in the next; see
    /// [`snapshot`](crate::lang::snapshot). It can be let go of at any time.
    pub rows: Vec<(i64, Object)>,
    /// The way out.
    pub host: Arc<dyn Host>,
    /// The language's functions.
    pub registry: Arc<Registry>,
    /// Evaluation threads for branches.
    pub stacks: Arc<super::Stacks>,
    /// What was printed, up to the output limit.
    pub prints: String,
    /// Where prints go instead while a `with-out-str` runs, the innermost last.
    pub captured: Vec<String>,
    /// The texts of the running `with-in-str`, each with the byte to go on reading from, the innermost last.
    pub inputs: Vec<(Text, usize)>,
    /// Bytes printed beyond that.
    pub prints_cut: u64,
    /// Tool calls in the order in which they began.
    pub calls: Vec<CallRecord>,
    /// Names that later forms of the program define.
    pub coming: HashSet<String, RandomState>,
    /// Names that the running form defines, as far as it has been resolved: they hide what else has that
    /// name.
    pub shadowed: HashSet<String, RandomState>,
    /// What branches wait for that another branch is realising, by the number of the branch that waits.
    pub(super) awaited: HashMap<u32, Arc<Handle>>,
    /// How many programs the session has run.
    pub programs: u32,
    /// Ordinal of the running form.
    pub form: u32,
    /// State of the random numbers, seeded by the host when first needed.
    pub random: Option<u64>,
    /// The evaluation's account, while no thread has it open.
    pub account: Account,
    /// The last few expressions that were compiled as the evaluation ran.
    pub regexes: HashMap<String, Arc<Pattern>>,
    /// What the last few searches wrote on, the latest last.
    pub tables: Vec<(Arc<Compiled>, Box<Tables>)>,
}

/// One definition of the session.
#[derive(Clone, Default)]
pub struct Global {
    /// Its value; `None` until it is defined, or after it was undone.
    pub value: Option<Value>,
    /// Its doc string.
    pub doc: Option<Arc<str>>,
    /// True for a macro.
    pub is_macro: bool,
    /// Its metadata, where the program said more than a doc string.
    pub metadata: Option<Arc<Map>>,
}

/// The session's definitions: an indexed table, with the names beside it.
#[derive(Default)]
pub struct Globals {
    slots: Vec<Global>,
    names: Vec<String>,
    by_name: HashMap<String, u32, RandomState>,
    /// What the running form has changed, once it has.
    changed: Option<Box<Changed>>,
    /// How often a form has changed definitions.
    changes: u64,
    /// `*1`, `*2`, `*3`, `*e`.
    pub history: [Value; 4],
    /// True if a name that printing obeys, such as `*print-length*`, has ever had a value of its own.
    pub has_print_settings: bool,
    /// The atom of the hierarchy that `derive` changes; nil before its first use.
    pub hierarchy: Value,
    /// How many names `gensym` has made. It is not undone with a form: `*e` may hold such a name.
    pub generated: u64,
}

/// What a form has changed among the definitions.
#[derive(Default)]
struct Changed {
    /// What it replaced, and the indices of that.
    journal: Vec<(u32, Global)>,
    journaled: HashSet<u32>,
    /// The hierarchy that it replaced, if it did.
    hierarchy: Option<Value>,
    /// What it defined, in order, and as a set.
    defined: Vec<u32>,
    is_defined: HashSet<u32>,
}

/// A definition as `lisp_env` and the REPL show it.
pub struct Visible<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: &'a Value,
    /// Its doc string.
    pub doc: Option<&'a str>,
    /// True for a macro.
    pub is_macro: bool,
    /// Its metadata, where the program said more than a doc string.
    pub metadata: Option<&'a Arc<Map>>,
}

impl Globals {
    /// The index of a name, made if need be.
    pub fn index(&mut self, name: &str) -> u32 {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        self.has_print_settings |= name.starts_with("*print-");
        let index = self.slots.len() as u32;
        self.slots.push(Global::default());
        self.names.push(name.to_string());
        self.by_name.insert(name.to_string(), index);
        index
    }

    /// The index of a name that is defined. What the language notes for itself has a qualified name, which no
    /// program can define, and is no definition.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.find_note(name).filter(|_| !is_note(name))
    }

    /// The index of what the language has noted under that name.
    pub fn find_note(&self, name: &str) -> Option<u32> {
        let index = *self.by_name.get(name)?;
        self.slots[index as usize].value.as_ref().map(|_| index)
    }

    /// The definition at an index.
    #[inline]
    pub fn get(&self, index: u32) -> &Global {
        &self.slots[index as usize]
    }

    /// The name at an index.
    pub fn name(&self, index: u32) -> &str {
        &self.names[index as usize]
    }

    /// Defines, remembering what was there.
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

    /// Exchanges the value of a definition for a while; whoever does it puts the old one back.
    pub fn exchange(&mut self, index: u32, value: Option<Value>) -> Option<Value> {
        // What stands in for a core that is elsewhere has no definitions.
        let global = self.slots.get_mut(index as usize)?;
        let changed = self.changed.get_or_insert_default();
        if changed.journaled.insert(index) {
            changed.journal.push((index, global.clone()));
        }
        std::mem::replace(&mut global.value, value)
    }

    /// Exchanges a value that was put there by [`exchange`](Globals::exchange).
    pub(super) fn swap(&mut self, index: u32, other: &mut Option<Value>) {
        if let Some(global) = self.slots.get_mut(index as usize) {
            std::mem::swap(&mut global.value, other);
        }
    }

    /// Puts the atom of the hierarchy in place, remembering what was there.
    pub fn set_hierarchy(&mut self, atom: Value) {
        let old = std::mem::replace(&mut self.hierarchy, atom);
        self.changed.get_or_insert_default().hierarchy.get_or_insert(old);
    }

    /// Ends a form, keeping its definitions; returns their names.
    pub fn commit(&mut self) -> Vec<String> {
        let Some(changed) = self.changed.take() else { return Vec::new() };
        self.changes += 1;
        let defined = changed.defined.into_iter().map(|index| index as usize);
        defined.filter(|at| self.slots[*at].value.is_some()).map(|at| self.names[at].clone()).collect()
    }

    /// Ends a form, undoing its definitions.
    pub fn undo(&mut self) {
        let Some(changed) = self.changed.take() else { return };
        for (index, old) in changed.journal.into_iter().rev() {
            self.slots[index as usize] = old;
        }
        if let Some(old) = changed.hierarchy {
            self.hierarchy = old;
        }
    }

    /// What is defined, in the order in which the names came up.
    pub fn iter(&self) -> impl Iterator<Item = Visible<'_>> {
        self.kept().filter(|global| !is_note(global.name))
    }

    /// What is kept from one program to the next: what is defined, and what the language has noted.
    pub fn kept(&self) -> impl Iterator<Item = Visible<'_>> {
        self.names.iter().zip(&self.slots).filter_map(|(name, global)| {
            let value = global.value.as_ref()?;
            let metadata = global.metadata.as_ref();
            Some(Visible { name, value, doc: global.doc.as_deref(), is_macro: global.is_macro, metadata })
        })
    }

    /// A number that is another one whenever a form has changed definitions, or made a name that no later one may
    /// have.
    pub fn changes(&self) -> u64 {
        self.changes + self.generated
    }

    /// How many names have come up, defined or not.
    pub fn known(&self) -> usize {
        self.names.len()
    }

    /// How many names are defined.
    pub fn len(&self) -> usize {
        self.slots.iter().filter(|global| global.value.is_some()).count()
    }

    /// True when nothing is defined.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values that the session holds on to.
    pub fn roots(&self) -> Vec<Value> {
        let defined = self.slots.iter().filter_map(|global| global.value.clone());
        let metadata = self.slots.iter().filter_map(|global| global.metadata.clone().map(Value::Map));
        defined.chain(metadata).chain(self.history.iter().cloned()).chain([self.hierarchy.clone()]).collect()
    }
}

impl Core {
    /// A core of a session that has nothing yet.
    pub fn new(meter: Meter, host: Arc<dyn Host>, registry: Arc<Registry>, stacks: Arc<super::Stacks>) -> Core {
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
            coming: HashSet::default(),
            shadowed: HashSet::default(),
            awaited: HashMap::new(),
            programs: 0,
            form: 0,
            random: None,
            account: Account::default(),
            regexes: HashMap::new(),
            tables: Vec::new(),
        }
    }

    /// Lets go of what belongs to one evaluation alone.
    pub fn end_evaluation(&mut self) {
        self.meter.close();
        self.prints = String::new();
        self.captured = Vec::new();
        self.inputs = Vec::new();
        self.awaited = HashMap::new();
        self.prints_cut = 0;
        self.calls = Vec::new();
        self.coming = HashSet::default();
        self.shadowed = HashSet::default();
        self.form = 0;
        self.random = None;
        // What a program spends is not to depend on what ran before it.
        self.regexes = HashMap::new();
        self.tables = Vec::new();
    }

    /// What stands in a machine while its core is elsewhere.
    pub(super) fn placeholder(of: &Core) -> Core {
        let meter = Meter::new(of.meter.limits.clone(), of.meter.memory_counted, std::time::Duration::ZERO);
        Core::new(meter, of.host.clone(), of.registry.clone(), of.stacks.clone())
    }

    /// Adds to what was printed, within the output limit, and passes it on to the host.
    pub fn print(&mut self, text: &str) {
        if let Some(captured) = self.captured.last_mut() {
            captured.push_str(text);
            return;
        }
        self.host.print(text);
        let room = (self.meter.limits.output as usize).saturating_sub(self.prints.len());
        let cut = text.floor_char_boundary(room);
        self.prints.push_str(&text[..cut]);
        self.prints_cut += (text.len() - cut) as u64;
    }

    /// Keeps what the running form defined and changed; returns the names that it defined. `result` is what it came
    /// to.
    pub fn commit(&mut self, result: &Value) -> Vec<String> {
        let roots = || {
            let mut roots = self.globals.roots();
            roots.push(result.clone());
            roots
        };
        self.heap.commit();
        let (meter, host) = (&mut self.meter, &*self.host);
        // What the form came to is kept, even if time runs out now.
        self.heap.sweep_from(roots, &mut || meter.check_time(host).is_err());
        self.globals.commit()
    }

    /// Undoes what the running form defined and changed.
    pub fn undo(&mut self) {
        self.globals.undo();
        self.heap.undo();
    }

    /// Checks what the session would keep, before it is kept.
    ///
    /// # Errors
    /// A halt of the limit `session` or `bindings`.
    pub fn check_session(&mut self) -> Result<(), Halt> {
        use crate::lang::meter::{bytes, limit};
        let limits = &self.meter.limits;
        let count = self.globals.len();
        if count > limits.bindings as usize {
            return Err(limit("bindings", format!("{} bindings", limits.bindings), format!("{count} bindings")));
        }
        let (most, has_some) = (limits.session, !self.globals.is_empty());
        if self.meter.memory_counted && has_some && meter::live() > most {
            self.meter.drop_aside(&*self.host)?;
            if meter::live() > most {
                self.rows = Vec::new();
                self.meter.drop_aside(&*self.host)?;
            }
            let live = meter::live();
            if live > most {
                return Err(limit("session", bytes(most), bytes(live)));
            }
        }
        Ok(())
    }

    /// The next sixty-four random bits.
    pub fn random(&mut self) -> u64 {
        let state = match self.random {
            Some(state) => state,
            None => self.host.random(),
        };
        // SplitMix64: the host's bits seed it, so that a run can be replayed from one number.
        let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.random = Some(state);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// True for the names of what the language notes for itself among the definitions.
fn is_note(name: &str) -> bool {
    split_name(name).0.is_some()
}

/// The error of a name that was used before it was defined.
pub fn unbound(name: &str) -> Error {
    Error::new("UnboundVariable", format!("`{name}` is not defined yet")).about(name)
}
