//! The interactive REPL at a terminal.

use std::path::PathBuf;
use std::process::ExitCode;

use lispbox::lang::internal::bytes;
use lispbox::lang::internal::foreign_text::printable;
use lispbox::lang::internal::vocabulary;
use lispbox::lang::{Reply, Request, Session, Status};

use super::commands::{COMMANDS, Command, parse};
use super::editor::{Keyboard, Typed, shorten};
use super::fold::{Fold, fold};
use super::forms;
use super::highlight::Tones;
use super::layout::lay_out;
use super::scope::Scope;
use crate::context::{EvaluationContext, Problem};
use crate::doc::described;
use crate::input::InputMode;
use crate::paint::{Paint, Tone};
use crate::terminal::{Prints, complain, for_stdout, line};

/// The quantity that each limit counts, for those whose names do not express it.
const COUNTED: [(&str, &str); 12] = [
    ("fuel", "steps"),
    ("memory", "live bytes of the evaluation and the session"),
    ("depth", "nested calls"),
    ("compute", "time spent computing"),
    ("total", "total time"),
    ("calls", "tool calls"),
    ("parallel", "concurrent tool calls"),
    ("tool", "time of one tool call"),
    ("output", "bytes of a result"),
    ("program", "bytes of an entry"),
    ("session", "bytes that the session keeps"),
    ("bindings", "names that the session defines"),
];

/// Runs the REPL until the user ends it.
///
/// # Errors
/// Returns an error if the terminal cannot be used.
pub fn hold(context: EvaluationContext, session: Session, history: Option<PathBuf>) -> Result<ExitCode, Problem> {
    context.outlive_interrupts()?;
    let _input = InputMode::held();
    let paint = Paint::for_stdout();
    let scope = Scope::new(vocabulary::words(context.registry()), context.observer());
    let keyboard = Keyboard::open(scope, context.limits.program, history, paint)?;
    let mut conversation =
        Conversation { context, session, keyboard, paint, tells_spent: false, folded: String::new() };
    conversation.greet();
    conversation.go_on()
}

/// The state of an interactive session.
struct Conversation {
    context: EvaluationContext,
    session: Session,
    keyboard: Keyboard,
    paint: Paint,
    /// True if each evaluation shows what it spent.
    tells_spent: bool,
    /// The hidden rest of the last result, coloured.
    folded: String,
}

impl Conversation {
    fn greet(&self) {
        let name = self.paint.tone(Tone::Heading, "lispbox");
        line(&format!("{name} {}", env!("CARGO_PKG_VERSION")));
        self.remark("*1 *2 *3: the last values, *e: the last error; Tab completes, :help helps, Ctrl-D exits");
    }

    fn go_on(&mut self) -> Result<ExitCode, Problem> {
        loop {
            let entry = match self.keyboard.read()? {
                Typed::Entry(entry) => entry,
                Typed::Cleared => continue,
                Typed::End => return Ok(ExitCode::SUCCESS),
            };
            if entry.trim().is_empty() {
                continue;
            }
            if let Some(notice) = self.keyboard.remember(&entry) {
                self.remark(&notice);
            }
            match parse(&entry) {
                Some(Command::Quit) => return Ok(ExitCode::SUCCESS),
                Some(command) => self.obey(command),
                None => self.answer(entry)?,
            }
        }
    }

    /// Evaluates an entry form by form, up to the first that fails.
    fn answer(&mut self, entry: String) -> Result<(), Problem> {
        let programs = match forms(&entry) {
            Ok(forms) => forms.into_iter().map(|(_, form)| form).collect(),
            // Evaluating the entry reports the error in it.
            Err(_) => vec![entry],
        };
        for program in programs {
            let status = self.evaluate(program);
            // In these cases, part of the typed-ahead input has been discarded, and the rest is meaningless without it.
            if status == Status::Cancelled || self.context.has_lost_input() {
                self.keyboard.discard_pending()?;
            }
            if status != Status::Ok {
                break;
            }
        }
        Ok(())
    }

    /// Evaluates one form and shows its outcome.
    fn evaluate(&mut self, program: String) -> Status {
        let limits = self.context.limits.clone();
        let host = self.context.host(Prints::Stream, &limits, &program);
        let reply = host.redacted(self.session.eval(Request { limits, ..Request::new(program) }, host.clone()));
        self.context.at_rest();
        host.end_line();
        self.folded.clear();
        match (&reply.failure, &reply.value) {
            (Some(failure), _) => {
                complain(failure);
                if let Some(limit) = &failure.limit {
                    self.remark(&format!("`:limits {limit} VALUE` allows more"));
                }
            }
            (None, Some(value)) => self.show(value),
            (None, None) => {}
        }
        if let Some(truncated) = &reply.truncated {
            self.remark(&format!("[elided: {truncated}; `:limits output 1MiB` allows more]"));
        }
        for note in &reply.notes {
            self.remark(&format!("[note: {}]", printable(note)));
        }
        if self.tells_spent {
            self.remark(&spent(&reply));
        }
        if !reply.defined.is_empty() {
            let words = self.session.definitions(self.context.observer());
            self.keyboard.define(words);
        }
        reply.status
    }

    /// Shows a value, folded to the size of the screen.
    fn show(&mut self, value: &str) {
        let screen = self.keyboard.screen();
        let text = lay_out(&for_stdout(value), screen.columns);
        let tones = Tones::of(&text);
        let Some(Fold { shown, rest, more }) = fold(&text, screen) else {
            line(&tones.paint(&text, 0..text.len(), self.paint));
            return;
        };
        line(&tones.paint(&text, 0..shown, self.paint));
        self.folded = tones.paint(&text, rest..text.len(), self.paint);
        self.remark(&format!("… {more} more lines; :more shows them"));
    }

    fn obey(&mut self, command: Command<'_>) {
        match command {
            Command::Help(None) => self.help(),
            Command::Help(Some(name)) => self.explain(name),
            Command::Env => self.list_definitions(),
            Command::Limits(None) => self.list_limits(),
            Command::Limits(Some((name, value))) => match self.context.limits.set(name, value) {
                Ok(()) => self.list_limits(),
                Err(message) => line(&message),
            },
            Command::Time(wanted) => {
                self.tells_spent = wanted.unwrap_or(!self.tells_spent);
                let now = if self.tells_spent { "now" } else { "no longer" };
                self.remark(&format!("each evaluation {now} shows what it spent"));
            }
            Command::More if self.folded.is_empty() => self.remark("nothing is folded"),
            Command::More => line(&std::mem::take(&mut self.folded)),
            Command::Wrong(message) => line(&message),
            Command::Quit => {}
        }
    }

    fn help(&self) {
        for command in &COMMANDS {
            let call = format!("{} {}", command.name, command.argument);
            line(&format!("{}  {}", self.paint.tone(Tone::Program, &format!("{call:20}")), command.summary));
        }
        line("");
        let page = [
            "Anything else is a program. It may span several lines, until its brackets",
            "close. *1 *2 *3 are the last values, *e is the last error. (dir) lists what",
            "there is, (doc name) describes, (apropos \"word\") searches. Tab completes and",
            "shows how a function is called; Ctrl-R searches the history; Ctrl-C clears what",
            "was typed, or stops what runs and discards what was typed meanwhile; Ctrl-D exits.",
        ];
        page.into_iter().for_each(line);
    }

    fn explain(&mut self, name: &str) {
        match self.session.explain(name, self.context.observer()) {
            Ok(text) => line(&described(&text, self.paint)),
            Err(failure) => complain(&failure),
        }
    }

    fn list_definitions(&mut self) {
        let words = self.session.definitions(self.context.observer());
        if words.is_empty() {
            self.remark("nothing is defined in this session yet");
            return;
        }
        let room = self.keyboard.screen().columns;
        let longest = words.iter().map(|word| word.name.chars().count()).max().unwrap_or_default().min(room / 3);
        for word in &words {
            let name = self.paint.tone(Tone::Program, &format!("{:longest$}", word.name));
            line(&format!("{name}  {}", shorten(&word.summary, room.saturating_sub(longest + 2).max(20))));
        }
        let held = bytes(self.session.live_bytes());
        self.remark(&format!("{} in total, {held}", words.len()));
    }

    fn list_limits(&self) {
        for (name, value) in self.context.limits.shown() {
            let counted = COUNTED.iter().find(|(known, _)| *known == name).map_or("", |(_, counted)| counted);
            line(&format!(
                "{}  {:>10}  {}",
                self.paint.tone(Tone::Program, &format!("{name:8}")),
                value,
                self.paint.tone(Tone::Quiet, counted)
            ));
        }
    }

    /// Prints a message that is not a result.
    fn remark(&self, text: &str) {
        line(&self.paint.tone(Tone::Quiet, text));
    }
}

/// `[12 ms, 3400 steps, 1.2 MiB, 2 tool calls]`
fn spent(reply: &Reply) -> String {
    let spent = &reply.spent;
    let mut parts = vec![format!("{} ms", spent.total_ms)];
    if spent.total_ms > spent.compute_ms + 1 {
        parts.push(format!("{} ms of them computing", spent.compute_ms));
    }
    parts.push(format!("{} steps", spent.fuel));
    parts.push(bytes(spent.memory_bytes));
    match reply.calls.len() {
        0 => {}
        1 => parts.push("1 tool call".to_owned()),
        calls => parts.push(format!("{calls} tool calls")),
    }
    format!("[{}]", parts.join(", "))
}
