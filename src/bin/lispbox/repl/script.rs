//! The REPL without a terminal: no prompt, values are printed, and it stops at the first error.

use std::io::BufRead;
use std::process::ExitCode;

use lispbox::lang::{Request, Session};

use super::forms;
use crate::context::{EvaluationContext, Problem};
use crate::terminal::{Prints, advise_on_limit, show};

/// Evaluates standard input form by form, each as soon as it is complete.
///
/// # Errors
/// Returns an error if standard input cannot be read.
pub fn run(context: &EvaluationContext, mut session: Session, keep_going: bool) -> Result<ExitCode, Problem> {
    let mut pending = Pending::default();
    let mut all_well = true;
    loop {
        let mut bytes = Vec::new();
        let count = std::io::stdin().lock().read_until(b'\n', &mut bytes);
        let ended = count.map_err(|problem| Problem::Failed(format!("standard input: {problem}")))? == 0;
        let typed = String::from_utf8(bytes).map_err(|_| Problem::Failed("standard input is not UTF-8".to_owned()))?;
        for (line, program) in pending.take_in(&typed, ended, context.limits.program) {
            match evaluate(context, &mut session, line, program) {
                Ran::Well => {}
                Ran::Badly if keep_going => all_well = false,
                Ran::Badly => return Ok(ExitCode::FAILURE),
                Ran::Unread => return Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
            }
        }
        if ended {
            return Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
    }
}

/// The outcome of one form.
enum Ran {
    Well,
    Badly,
    /// The reader of standard output has gone.
    Unread,
}

/// Evaluates one form and shows its outcome.
fn evaluate(context: &EvaluationContext, session: &mut Session, line: usize, program: String) -> Ran {
    let limits = context.limits.clone();
    let host = context.host(Prints::Stream, &limits, &program);
    let name = Some(format!("stdin line {line}"));
    let mut reply = host.redacted(session.eval(Request { limits, name, ..Request::new(program) }, host.clone()));
    context.at_rest();
    advise_on_limit(&mut reply, false);
    show(&reply, &host, true);
    match reply.failure {
        _ if host.is_unread() => Ran::Unread,
        Some(_) => Ran::Badly,
        None => Ran::Well,
    }
}

/// Lines that do not form a complete program yet.
#[derive(Default)]
struct Pending {
    text: String,
    /// The number of lines before it.
    lines_before: usize,
}

impl Pending {
    /// Adds a line; returns the programs that it completes, one for each form, with their first lines. A text that
    /// cannot be parsed is returned unchanged, so that evaluating it reports the error.
    fn take_in(&mut self, typed: &str, ended: bool, longest: u64) -> Vec<(usize, String)> {
        self.text.push_str(typed);
        let all = std::mem::take(&mut self.text);
        let before = self.lines_before;
        let programs = match forms(&all) {
            Ok(forms) => {
                let line = |start| before + 1 + all[..start].matches('\n').count();
                forms.into_iter().map(|(start, form)| (line(start), form)).collect()
            }
            // A text that exceeds the length limit is returned at once, so that it is reported and not parsed again for
            // each line.
            Err(error) if error.incomplete && !ended && all.len() as u64 <= longest => {
                self.text = all;
                return Vec::new();
            }
            Err(_) => vec![(before + 1, all.clone())],
        };
        self.lines_before += all.matches('\n').count();
        programs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_taken_in_as_they_close() {
        let mut pending = Pending::default();
        let mut take = |typed, ended| pending.take_in(typed, ended, 1000);
        let owned = |programs: &[(usize, &str)]| -> Vec<(usize, String)> {
            programs.iter().map(|(line, program)| (*line, (*program).to_owned())).collect()
        };
        assert_eq!(take("(+ 1\n", false), []);
        assert_eq!(take("   2) :a ; and\n", false), owned(&[(1, "(+ 1\n   2)"), (2, ":a")]));
        assert_eq!(take("; nothing\n\n", false), []);
        assert_eq!(take("(]\n", false), owned(&[(5, "(]\n")]));
        assert_eq!(take("(a", true), owned(&[(6, "(a")]));
    }
}
