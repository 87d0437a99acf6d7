//! `lispbox repl`: reads forms line by line and shows what each comes to.

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use clap::Args;
use lispbox::lang::reader;
use lispbox::lang::{Request, Session};

use crate::paint::{Paint, Tone};
use crate::surroundings::{Problem, Settings, Surroundings};
use crate::terminal::{Prints, line, prompt, show};

/// Evaluates what you type; from a pipe, up to the first error.
#[derive(Args)]
pub struct Repl {
    #[command(flatten)]
    settings: Settings,
}

/// The lines that end a conversation; so does Ctrl-D.
const FAREWELLS: [&str; 6] = ["exit", "quit", "(exit)", "(quit)", ":exit", ":quit"];

impl Repl {
    /// Exits with 0; from a pipe, with 1 at the first program that fails.
    pub fn run(self) -> ExitCode {
        self.converse().unwrap_or_else(Problem::report)
    }

    fn converse(self) -> Result<ExitCode, Problem> {
        let surroundings = self.settings.open()?;
        let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        if interactive || surroundings.has_tools() {
            surroundings.stop_on_interrupt();
        }
        if interactive {
            greet();
        }
        let mut session = surroundings.session();
        let mut pending = Pending::default();
        loop {
            if interactive {
                prompt(if pending.text.is_empty() { "=> " } else { ".. " });
            }
            let mut bytes = Vec::new();
            let count = std::io::stdin().lock().read_until(b'\n', &mut bytes);
            let ended = count.map_err(|problem| Problem::Failed(format!("standard input: {problem}")))? == 0;
            let typed =
                String::from_utf8(bytes).map_err(|_| Problem::Failed("standard input is no UTF-8".to_owned()))?;
            if interactive && pending.text.is_empty() && FAREWELLS.contains(&typed.trim()) {
                return Ok(ExitCode::SUCCESS);
            }
            for program in pending.take_in(&typed, ended, surroundings.limits.program) {
                let well = evaluate(&surroundings, &mut session, program);
                if !well && !interactive {
                    return Ok(ExitCode::FAILURE);
                }
                if !well {
                    break;
                }
            }
            if ended {
                if interactive {
                    line("");
                }
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

fn greet() {
    let paint = Paint::for_stdout();
    let version = env!("CARGO_PKG_VERSION");
    let hint = "*1 *2 *3 are the last values, *e the last error; (dir), (doc f), (apropos \"word\"); Ctrl-D ends";
    line(&format!("{} {version}", paint.tone(Tone::Heading, "lispbox")));
    line(&paint.tone(Tone::Quiet, hint));
}

/// Evaluates one form and shows what came of it; true if it went well.
fn evaluate(surroundings: &Surroundings, session: &mut Session, program: String) -> bool {
    let limits = surroundings.limits.clone();
    let host = surroundings.host(Prints::Stream, &limits);
    let reply = session.eval(Request { limits, ..Request::new(program) }, host.clone());
    surroundings.at_rest();
    show(&reply, &host, true);
    reply.failure.is_none()
}

/// Lines that do not make a whole form yet.
#[derive(Default)]
struct Pending {
    text: String,
}

impl Pending {
    /// Takes in a line; gives the programs that are complete with it, one for each form. What cannot be
    /// read is given as it stands, so that evaluating it says why.
    fn take_in(&mut self, typed: &str, ended: bool, longest: u64) -> Vec<String> {
        self.text.push_str(typed);
        let all = std::mem::take(&mut self.text);
        match reader::read(&all) {
            Ok(forms) => forms.iter().map(|form| excerpt(&all, form.span.start, form.span.end)).collect(),
            // Whoever writes more than a program may have is told so, and not read again for each line.
            Err(error) if error.incomplete && !ended && all.len() as u64 <= longest => {
                self.text = all;
                Vec::new()
            }
            Err(_) => vec![all],
        }
    }
}

fn excerpt(text: &str, start: u32, end: u32) -> String {
    text.get(start as usize..end as usize).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_taken_in_as_they_close() {
        let mut pending = Pending::default();
        let none: [&str; 0] = [];
        assert_eq!(pending.take_in("(+ 1\n", false, 1000), none);
        assert_eq!(pending.take_in("   2) :a ; and\n", false, 1000), ["(+ 1\n   2)", ":a"]);
        assert_eq!(pending.take_in("; nothing\n\n", false, 1000), none);
        assert_eq!(pending.take_in("(]\n", false, 1000), ["(]\n"]);
        assert_eq!(pending.take_in("(a", true, 1000), ["(a"]);
    }
}
