//! The suspended runs of a session: what it keeps for them until they are resumed.
//!
//! All of it is in notes, definitions with qualified names that no program can define, so that it is stored with the
//! session: the data and parameters of a run, the definitions that other programs have replaced meanwhile, and the number
//! of times that the run was suspended, without which it cannot be resumed.

use super::core::{Core, Global, Globals, WAITING, is_note};
use crate::value::Value;

/// Returns the note that tells how often the run of a program was suspended.
fn waiting_note(program: u32) -> String {
    format!("{WAITING}{program}")
}

/// Returns the note under which a session keeps a definition for the suspended run of a program.
fn kept_note(program: u32, name: &str) -> String {
    format!("run/{program}.{name}")
}

impl Globals {
    /// Returns how often the run of a program was suspended, if it waits.
    pub(crate) fn turn(&self, program: u32) -> Option<u32> {
        match self.get(self.find_note(&waiting_note(program))?).value {
            Some(Value::Int(turn)) => u32::try_from(turn).ok(),
            _ => None,
        }
    }

    /// Returns the programs whose runs wait.
    fn waiting(&self) -> Vec<u32> {
        let names = self.kept().filter_map(|global| global.name.strip_prefix(WAITING));
        names.filter_map(|number| number.parse().ok()).collect()
    }

    /// Returns the names of the notes that are kept for the run of a program.
    fn kept_for(&self, program: u32) -> Vec<String> {
        let prefix = kept_note(program, "");
        let names = self.kept().map(|global| global.name);
        names.filter(|name| name.starts_with(&prefix)).map(str::to_owned).collect()
    }

    /// Drops the runs that wait, in a copy of their session.
    pub(super) fn forget_waiting(&mut self) {
        if !self.has_waited {
            return;
        }
        for program in self.waiting() {
            for note in self.kept_for(program).into_iter().chain([waiting_note(program)]) {
                let index = self.index(&note);
                self.slots[index as usize] = Global::default();
            }
        }
    }
}

impl Core {
    /// Keeps the values of these names for the run of a program, which is suspended.
    pub(crate) fn keep_inputs(&mut self, program: u32, names: &[String]) {
        for name in names {
            let value = self.globals.find(name).and_then(|index| self.globals.get(index).value.clone());
            self.set_note(&kept_note(program, name), Global { value, ..Global::default() });
        }
        self.commit(&Value::Nil);
    }

    /// Records that the run of a program waits, for that many times by now.
    pub(crate) fn wait_for(&mut self, program: u32, turn: u32) {
        let value = Some(Value::Int(turn.into()));
        self.set_note(&waiting_note(program), Global { value, ..Global::default() });
        self.commit(&Value::Nil);
    }

    /// Takes the run of a program out of the session: it is about to be resumed.
    pub(crate) fn stop_waiting(&mut self, program: u32) {
        if self.globals.turn(program).is_some() {
            self.set_note(&waiting_note(program), Global::default());
            self.commit(&Value::Nil);
        }
    }

    /// Binds the definitions that were kept for the run of a program, for this evaluation.
    ///
    /// # Errors
    /// Returns the first of these names for which nothing was kept.
    pub(crate) fn lend_inputs<'n>(&mut self, program: u32, names: &'n [String]) -> Result<(), &'n str> {
        let is_kept = |name: &&String| self.globals.find_note(&kept_note(program, name)).is_some();
        if let Some(missing) = names.iter().find(|name| !is_kept(name)) {
            return Err(missing.as_str());
        }
        for note in self.globals.kept_for(program) {
            let definition = self.globals.find_note(&note).map(|index| self.globals.get(index).clone());
            let name = note.strip_prefix(&kept_note(program, ""));
            if let (Some(definition), Some(name)) = (definition, name) {
                self.lend_definition(name, definition);
            }
        }
        Ok(())
    }

    /// Drops all that was kept for the run of a program.
    pub(crate) fn drop_inputs(&mut self, program: u32) {
        for note in self.globals.kept_for(program).into_iter().chain([waiting_note(program)]) {
            if self.globals.find_note(&note).is_some() {
                self.set_note(&note, Global::default());
            }
        }
        self.commit(&Value::Nil);
    }

    /// Keeps the definitions that the running form has replaced for each run that waits, so that it goes on with those
    /// that it began with.
    pub(super) fn keep_replaced(&mut self) {
        let Some(changed) = self.globals.changed.as_ref().filter(|changed| !changed.journal.is_empty()) else { return };
        let waiting = self.globals.waiting();
        if waiting.is_empty() {
            return;
        }
        let mut replaced: Vec<(String, Global)> = Vec::new();
        for (index, old) in &changed.journal {
            let name = self.globals.name(*index);
            // A program may define a name that is bound to one of its parameters.
            let hidden = self.lent.iter().find(|(lent, _)| lent == index).map(|(_, hidden)| hidden);
            let old = hidden.unwrap_or(old);
            if old.value.is_some() && !is_note(name) {
                replaced.push((name.to_owned(), old.clone()));
            }
        }
        for program in waiting {
            for (name, old) in &replaced {
                let note = kept_note(program, name);
                if self.globals.find_note(&note).is_none() {
                    self.set_note(&note, old.clone());
                }
            }
        }
    }

    fn set_note(&mut self, name: &str, note: Global) {
        let index = self.globals.index(name);
        self.globals.set(index, note);
    }
}
