//! The line editor: when an entry is complete, what Tab offers, how it looks while it is typed.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::PathBuf;

use lispbox::lang::builtin::discovery::vocabulary::Word;
use lispbox::lang::reader;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};

use super::commands;
use super::fold::Screen;
use super::highlight::Tones;
use super::history::{self, Kept};
use super::scope::Scope;
use crate::paint::{Paint, Tone};
use crate::surroundings::Problem;

/// How wide what stands beside a candidate, or behind the cursor, may be.
const BESIDE: usize = 76;

/// What came from the keyboard.
pub enum Typed {
    /// A whole entry.
    Entry(String),
    /// Ctrl-C: what was there is gone.
    Cleared,
    /// Ctrl-D.
    End,
}

/// The editor of a conversation.
pub struct Keyboard {
    editor: Editor<Assistant, FileHistory>,
    kept: Kept,
}

impl Keyboard {
    /// An editor whose history is in that file.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn open(scope: Scope, longest: u64, file: Option<PathBuf>, paint: Paint) -> Result<Keyboard, Problem> {
        let builder = Config::builder()
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .color_mode(if paint.is_coloured() { ColorMode::Enabled } else { ColorMode::Disabled })
            .tab_stop(4);
        let builder = builder.max_history_size(history::LONGEST).map_err(unusable)?;
        let mut editor = Editor::with_config(builder.build()).map_err(unusable)?;
        editor.set_helper(Some(Assistant { scope, longest, paint, resting: Cell::new(false) }));
        let kept = Kept::load(file, &mut editor);
        Ok(Keyboard { editor, kept })
    }

    /// Waits for an entry.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn read(&mut self) -> Result<Typed, Problem> {
        let prompt = "=> ";
        let painted = self.editor.helper().map(|helper| helper.paint.tone(Tone::Heading, prompt));
        match self.editor.readline(&(prompt, painted.as_deref().unwrap_or(prompt))) {
            Ok(text) => Ok(Typed::Entry(text)),
            Err(ReadlineError::Interrupted) => Ok(Typed::Cleared),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(problem) => Err(unusable(problem)),
        }
    }

    /// Keeps an entry for later; says so if it cannot be kept on disk.
    pub fn remember(&mut self, entry: &str) -> Option<String> {
        self.kept.add(entry, &mut self.editor)
    }

    /// Takes note of what the session defines.
    pub fn define(&mut self, words: Vec<Word>) {
        if let Some(helper) = self.editor.helper_mut() {
            helper.scope.define(words);
        }
    }

    /// The size of the terminal, as far as it is known.
    pub fn screen(&mut self) -> Screen {
        let (columns, rows) = self.editor.dimensions().unwrap_or((80, 24));
        // A terminal that does not know its height gives the largest number there is.
        let rows = if rows == u16::MAX { 24 } else { rows };
        Screen { columns: usize::from(columns), rows: usize::from(rows) }
    }
}

fn unusable(problem: ReadlineError) -> Problem {
    Problem::Failed(format!("the terminal: {problem}"))
}

/// What the editor asks while somebody types.
pub struct Assistant {
    scope: Scope,
    /// How long a program may be.
    longest: u64,
    paint: Paint,
    /// True once an entry is taken: no bracket stands out in it any more.
    resting: Cell<bool>,
}

impl Helper for Assistant {}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let is_done = commands::parse(text).is_some()
            || text.len() as u64 > self.longest
            || !reader::read(text).is_err_and(|error| error.incomplete);
        Ok(if is_done { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, text: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, choices) = self.scope.choices(text, position);
        let longest = choices.iter().map(|choice| choice.text.chars().count()).max().unwrap_or_default();
        let name = longest.min(BESIDE / 2);
        let pairs = choices.into_iter().map(|choice| {
            let line = format!("{:name$}  {}", choice.text, choice.about);
            Pair { display: shorten(line.trim_end(), BESIDE), replacement: choice.text }
        });
        Ok((start, pairs.collect()))
    }
}

impl Hinter for Assistant {
    type Hint = Call;

    fn hint(&self, text: &str, position: usize, _: &Context<'_>) -> Option<Call> {
        // Without colour a hint looks like something that was typed.
        if position < text.len() || !self.paint.is_coloured() || text.len() as u64 > self.longest {
            return None;
        }
        self.scope.call_at_end(text).map(|call| Call(format!("   {}", shorten(&call, BESIDE))))
    }
}

/// How a function is called, behind the cursor: to look at, not to take over.
pub struct Call(String);

impl rustyline::hint::Hint for Call {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, text: &'l str, position: usize) -> Cow<'l, str> {
        let tones = Tones::of(text);
        let tones = if self.resting.get() { tones } else { tones.with_brackets(text, position) };
        Cow::Owned(tones.paint(text, 0..text.len(), self.paint))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(self.paint.tone(Tone::Quiet, hint))
    }

    fn highlight_candidate<'c>(&self, candidate: &'c str, _: CompletionType) -> Cow<'c, str> {
        match candidate.split_once("  ") {
            Some((name, about)) => Cow::Owned(format!("{name}  {}", self.paint.tone(Tone::Quiet, about))),
            None => Cow::Borrowed(candidate),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.resting.set(kind == CmdKind::ForcedRefresh);
        true
    }
}

/// The text, or its beginning in so many characters.
pub fn shorten(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some(_) => text.chars().take(longest - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}
