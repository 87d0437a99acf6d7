//! `lispbox repl`: an interactive session at a terminal, or a script from a pipe.

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
use lispbox::lang::Session;
use lispbox::lang::internal::form::Form;
use lispbox::lang::internal::reader::{self, ReadError};

use crate::context::{EvaluationContext, Problem, Settings};

/// Evaluates what you type; from a pipe, stops at the first error.
#[derive(Args)]
pub struct Repl {
    /// From a pipe: continue after an error (the exit code is still 1).
    #[arg(long)]
    keep_going: bool,
    /// The history file; an empty name disables the history.
    #[arg(long, value_name = "FILE", env = "LISPBOX_HISTORY", hide_env_values = true)]
    history: Option<OsString>,
    /// Do not store the history.
    #[arg(long)]
    no_history: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Repl {
    /// Runs the REPL; the exit code is 0, or 1 if a program from a pipe fails.
    pub fn run(self) -> ExitCode {
        self.begin().unwrap_or_else(Problem::report)
    }

    fn begin(self) -> Result<ExitCode, Problem> {
        let context = self.settings.open_to_stay()?;
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            let history = if self.no_history { None } else { history::place(self.history) };
            let session = context.session();
            return conversation::hold(context, session, history);
        }
        if context.has_tools() {
            context.stop_on_interrupt();
        }
        let session = context.session();
        script::run(&context, session, self.keep_going)
    }
}

/// Holds a REPL in a session.
///
/// # Errors
/// Returns an error if the terminal or standard input cannot be used.
pub fn hold(context: EvaluationContext, session: Session) -> Result<ExitCode, Problem> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return conversation::hold(context, session, None);
    }
    script::run(&context, session, false)
}

/// Splits a text into its forms, each with its offset.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn forms(text: &str) -> Result<Vec<(usize, String)>, ReadError> {
    let excerpt = |form: &Form| {
        let (start, end) = (form.span.start as usize, form.span.end as usize);
        (start, text.get(start..end).unwrap_or_default().to_owned())
    };
    Ok(reader::read(text)?.iter().map(excerpt).collect())
}
