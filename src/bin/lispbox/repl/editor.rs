//! The line editor: completeness of an entry, completion, and highlighting.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lispbox::lang::internal::reader;
use lispbox::lang::internal::vocabulary::Word;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, Context, Editor, Event, EventContext,
    EventHandler, Helper, KeyEvent, RepeatCount,
};

use super::commands;
use super::fold::Screen;
use super::highlight::Tones;
use super::history::{self, Kept};
use super::scope::Scope;
use crate::context::Problem;
use crate::paint::{Paint, Tone};

/// Maximum width of the text next to a candidate, or of a hint after the cursor.
const BESIDE: usize = 76;

/// A result of the keyboard.
pub enum Typed {
    /// A complete entry.
    Entry(String),
    /// Ctrl-C: the entry was cleared.
    Cleared,
    /// Ctrl-D.
    End,
}

/// The editor of an interactive session.
pub struct Keyboard {
    editor: Editor<Assistant, FileHistory>,
    config: Config,
    assistant: Assistant,
    /// Set by Ctrl-C.
    is_cleared: Arc<AtomicBool>,
    kept: Kept,
}

impl Keyboard {
    /// Creates an editor whose history is in `file`.
    ///
    /// # Errors
    /// Returns an error if the terminal cannot be used.
    pub fn open(scope: Scope, longest: u64, file: Option<PathBuf>, paint: Paint) -> Result<Keyboard, Problem> {
        let builder = Config::builder()
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .color_mode(if paint.is_coloured() { ColorMode::Enabled } else { ColorMode::Disabled })
            .tab_stop(4);
        let config = builder.max_history_size(history::LONGEST).map_err(unusable)?.build();
        let assistant =
            Assistant { scope: Rc::new(RefCell::new(scope)), longest, paint, resting: Rc::new(Cell::new(false)) };
        let is_cleared = Arc::new(AtomicBool::new(false));
        let history = FileHistory::with_config(&config);
        let mut editor = editor(&config, history, &assistant, &is_cleared)?;
        let kept = Kept::load(file, &mut editor);
        Ok(Keyboard { editor, config, assistant, is_cleared, kept })
    }

    /// Waits for an entry. An entry that was pasted or typed during an evaluation is returned immediately.
    ///
    /// # Errors
    /// Returns an error if the terminal has been closed.
    pub fn read(&mut self) -> Result<Typed, Problem> {
        let prompt = "=> ";
        let painted = self.assistant.paint.tone(Tone::Heading, prompt);
        match self.editor.readline(&(prompt, painted.as_str())) {
            Ok(_) if self.is_cleared.swap(false, Ordering::Relaxed) => Ok(Typed::Cleared),
            Ok(text) => Ok(Typed::Entry(text)),
            Err(ReadlineError::Interrupted) => Ok(Typed::Cleared),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(problem) => Err(unusable(problem)),
        }
    }

    /// Discards the input that the editor has buffered after the last entry: the rest of a paste.
    ///
    /// # Errors
    /// Returns an error if the terminal has been closed.
    pub fn discard_pending(&mut self) -> Result<(), Problem> {
        // The editor's buffer cannot be cleared, but it is dropped with the editor.
        let history = std::mem::replace(self.editor.history_mut(), FileHistory::with_config(&self.config));
        self.editor = editor(&self.config, history, &self.assistant, &self.is_cleared)?;
        Ok(())
    }

    /// Adds an entry to the history; returns a message if it cannot be stored on disk.
    pub fn remember(&mut self, entry: &str) -> Option<String> {
        self.kept.add(entry, &mut self.editor)
    }

    /// Updates the definitions of the session, for completion.
    pub fn define(&self, words: Vec<Word>) {
        self.assistant.scope.borrow_mut().define(words);
    }

    /// The size of the terminal, or 80 by 24 if it is unknown.
    pub fn screen(&mut self) -> Screen {
        let (columns, rows) = self.editor.dimensions().unwrap_or((80, 24));
        // A terminal that does not know its height reports the maximum.
        let rows = if rows == u16::MAX { 24 } else { rows };
        Screen { columns: usize::from(columns), rows: usize::from(rows) }
    }
}

fn editor(
    config: &Config,
    history: FileHistory,
    assistant: &Assistant,
    is_cleared: &Arc<AtomicBool>,
) -> Result<Editor<Assistant, FileHistory>, Problem> {
    let mut editor = Editor::with_history(config.clone(), history).map_err(unusable)?;
    editor.set_helper(Some(assistant.clone()));
    let clear = EventHandler::Conditional(Box::new(Clear(is_cleared.clone())));
    editor.bind_sequence(KeyEvent::ctrl('C'), clear);
    Ok(editor)
}

/// Ctrl-C accepts the line as an entry that is then cleared. If it were an error, the input buffered after it would be
/// lost.
struct Clear(Arc<AtomicBool>);

impl ConditionalEventHandler for Clear {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

fn unusable(problem: ReadlineError) -> Problem {
    Problem::Failed(format!("the terminal: {problem}"))
}

/// The callbacks of the line editor.
#[derive(Clone)]
pub struct Assistant {
    scope: Rc<RefCell<Scope>>,
    /// Maximum length of a program in bytes.
    longest: u64,
    paint: Paint,
    /// True once an entry is accepted: matching brackets are no longer highlighted.
    resting: Rc<Cell<bool>>,
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
        let (start, choices) = self.scope.borrow().choices(text, position);
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
        // Without colour, a hint would look like typed text.
        if position < text.len() || !self.paint.is_coloured() || text.len() as u64 > self.longest {
            return None;
        }
        self.scope.borrow().call_at_end(text).map(|call| Call(format!("   {}", shorten(&call, BESIDE))))
    }
}

/// The hint after the cursor: the call of a function. It cannot be accepted as input.
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

/// The text, or its first `longest` characters.
pub fn shorten(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some(_) => text.chars().take(longest - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}
