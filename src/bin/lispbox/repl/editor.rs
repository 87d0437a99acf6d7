//! The line editor: when an entry is complete, what Tab offers, how it looks while it is typed.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lispbox::lang::builtin::discovery::vocabulary::Word;
use lispbox::lang::reader;
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
    config: Config,
    assistant: Assistant,
    /// Set by Ctrl-C.
    is_cleared: Arc<AtomicBool>,
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
        let config = builder.max_history_size(history::LONGEST).map_err(unusable)?.build();
        let assistant =
            Assistant { scope: Rc::new(RefCell::new(scope)), longest, paint, resting: Rc::new(Cell::new(false)) };
        let is_cleared = Arc::new(AtomicBool::new(false));
        let history = FileHistory::with_config(&config);
        let mut editor = editor(&config, history, &assistant, &is_cleared)?;
        let kept = Kept::load(file, &mut editor);
        Ok(Keyboard { editor, config, assistant, is_cleared, kept })
    }

    /// Waits for an entry. One that was pasted or typed while an earlier one ran is there at once.
    ///
    /// # Errors
    /// When the terminal is gone.
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

    /// Discards the input that the editor has taken in behind the last entry: the rest of what was pasted.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn discard_pending(&mut self) -> Result<(), Problem> {
        // The editor's buffer cannot be emptied, but it goes with the editor.
        let history = std::mem::replace(self.editor.history_mut(), FileHistory::with_config(&self.config));
        self.editor = editor(&self.config, history, &self.assistant, &self.is_cleared)?;
        Ok(())
    }

    /// Keeps an entry for later; says so if it cannot be kept on disk.
    pub fn remember(&mut self, entry: &str) -> Option<String> {
        self.kept.add(entry, &mut self.editor)
    }

    /// Takes note of what the session defines.
    pub fn define(&self, words: Vec<Word>) {
        self.assistant.scope.borrow_mut().define(words);
    }

    /// The size of the terminal, as far as it is known.
    pub fn screen(&mut self) -> Screen {
        let (columns, rows) = self.editor.dimensions().unwrap_or((80, 24));
        // A terminal that does not know its height gives the largest number there is.
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

/// Ctrl-C takes the line as an entry that is cleared. As an error it would take along what was typed behind it.
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

/// What the editor asks while somebody types.
#[derive(Clone)]
pub struct Assistant {
    scope: Rc<RefCell<Scope>>,
    /// How long a program may be.
    longest: u64,
    paint: Paint,
    /// True once an entry is taken: no bracket stands out in it any more.
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
        // Without colour a hint looks like something that was typed.
        if position < text.len() || !self.paint.is_coloured() || text.len() as u64 > self.longest {
            return None;
        }
        self.scope.borrow().call_at_end(text).map(|call| Call(format!("   {}", shorten(&call, BESIDE))))
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
