//! `lispbox repl`: a conversation at a terminal, a script from a pipe.

mod commands;
mod conversation;
mod editor;
mod fold;
mod highlight;
mod history;
mod layout;
mod scope;
mod script;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Args;
use lispbox::lang::form::Form;
use lispbox::lang::reader::{self, ReadError};

use crate::surroundings::{Problem, Settings};

/// Evaluates what you type; from a pipe, up to the first error.
#[derive(Args)]
pub struct Repl {
    /// From a pipe: go on after an error (the exit code is 1 all the same).
    #[arg(long)]
    keep_going: bool,
    /// The file that keeps what was typed; an empty name keeps nothing.
    #[arg(long, value_name = "FILE", env = "LISPBOX_HISTORY", hide_env_values = true)]
    history: Option<OsString>,
    /// Keep nothing of what was typed.
    #[arg(long)]
    no_history: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Repl {
    /// Exits with 0; from a pipe, with 1 if a program fails.
    pub fn run(self) -> ExitCode {
        self.begin().unwrap_or_else(Problem::report)
    }

    fn begin(self) -> Result<ExitCode, Problem> {
        let surroundings = self.settings.open()?;
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            let history = if self.no_history { None } else { history::place(self.history) };
            return conversation::hold(surroundings, history);
        }
        if surroundings.has_tools() {
            surroundings.stop_on_interrupt();
        }
        script::run(&surroundings, self.keep_going)
    }
}

/// The forms of a text, each as its own text with its offset.
fn forms(text: &str) -> Result<Vec<(usize, String)>, ReadError> {
    let excerpt = |form: &Form| {
        let (start, end) = (form.span.start as usize, form.span.end as usize);
        (start, text.get(start..end).unwrap_or_default().to_owned())
    };
    Ok(reader::read(text)?.iter().map(excerpt).collect())
}
