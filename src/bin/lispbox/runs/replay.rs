//! Evaluating a recorded run again.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use lispbox::lang::{
    Host, Keep, Logged, Observed, Recorder, Replies, Reply, Request, RunLog, Session, Stage, Status, Suspended,
};
use lispbox::server::{Recorded, StoredRun, fingerprint};

use crate::context::{EvaluationContext, Problem, read_file};
use crate::output::{errln, out, outln};
use crate::repl;
use crate::terminal::{Prints, for_stdout, show};

use super::ReplayOptions;

/// Replays a run.
///
/// # Errors
/// Returns an error if the run was not recorded, or if a setting is wrong.
pub fn replay(identity: &str, run: &StoredRun, options: ReplayOptions) -> Result<ExitCode, Problem> {
    let ReplayOptions { until, with, live, settings } = options;
    let recorded = run.recorded().ok_or_else(|| {
        Problem::Failed(format!(
            "run {identity} was not recorded as a whole, or was too large (`lispbox serve --record`, `--record-size`); \
             `lispbox runs show` shows what there is"
        ))
    })?;
    let context = if live { settings.open()? } else { settings.open_without_tools()? };
    if live && !context.has_tools() {
        return Err(Problem::Usage("`--live` makes calls: give the servers by `--config FILE`".to_owned()));
    }
    let mut session = context.session();
    if let Some(text) = &recorded.session {
        session.decode(text).map_err(|problem| Problem::Failed(format!("the recorded session: {problem}")))?;
    }
    let replay = Replay { run: run.run(), recorded, context: &context, is_live: live };
    if let Some(file) = with {
        return replay.of_file(&mut session, &file);
    }
    if let Some(form) = until {
        let reply = replay.evaluate(&mut session, until_form(run.run().program(), form)?);
        out!("{}", for_stdout(&reply.prints));
        let host = context.host(Prints::Keep, run.run().limits(), "");
        show(&reply, &host, true);
        return repl::hold(context, session);
    }
    let reply = replay.evaluate(&mut session, run.run().program().to_owned());
    let after = session.encode().ok().map(|text| fingerprint(&text));
    Ok(report(identity, recorded, &reply, after.as_deref()))
}

struct Replay<'r> {
    run: &'r Suspended,
    recorded: &'r Recorded,
    context: &'r EvaluationContext,
    is_live: bool,
}

impl Replay<'_> {
    /// Evaluates a program, or the beginning of it, with the log of the run.
    fn evaluate(&self, session: &mut Session, program: String) -> Reply {
        self.run_with(session, program, self.run.log().clone(), None)
    }

    /// Evaluates another program with the recorded replies to the same requests.
    fn of_file(&self, session: &mut Session, file: &Path) -> Result<ExitCode, Problem> {
        let program = read_file(file)?;
        let replies = Replies::of(self.run.log());
        let reply = self.run_with(session, program, Logged::default(), Some(replies));
        out!("{}", for_stdout(&reply.prints));
        let host = self.context.host(Prints::Keep, self.run.limits(), "");
        Ok(show(&reply, &host, true))
    }

    fn run_with(&self, session: &mut Session, program: String, logged: Logged, replies: Option<Replies>) -> Reply {
        let host: Arc<dyn Host> = match self.is_live {
            true => self.context.host(Prints::Keep, self.run.limits(), &program),
            false => Arc::new(Stage::new(self.observed())),
        };
        let log = Arc::new(RunLog::new(logged, Keep::Run, u64::MAX));
        let mut recorder = Recorder::new(host, log);
        if let Some(replies) = replies {
            recorder = recorder.matching(replies);
        }
        if !self.is_live {
            recorder = recorder.strict();
        }
        let (data, limits) = (self.recorded.data.clone(), self.run.limits().clone());
        session.eval(Request { program, data, limits, name: None, from: None }, Arc::new(recorder))
    }

    fn observed(&self) -> Observed {
        self.recorded.observed.clone()
    }
}

/// Returns the beginning of a program up to the end of a form.
fn until_form(program: &str, form: u32) -> Result<String, Problem> {
    let forms = repl::forms(program).map_err(|problem| Problem::Failed(format!("the program: {problem:?}")))?;
    let at = usize::try_from(form).unwrap_or(usize::MAX);
    match forms.get(at - 1) {
        Some((offset, text)) => Ok(program[..offset + text.len()].to_owned()),
        None => Err(Problem::Usage(format!("the program has {} forms, not {form}", forms.len()))),
    }
}

/// Prints whether a replay repeats the recorded run.
fn report(identity: &str, recorded: &Recorded, reply: &Reply, after: Option<&str>) -> ExitCode {
    let Some(original) = recorded.reply.as_deref() else {
        let state = if reply.status == Status::Suspended { "it waits there" } else { "it did not wait" };
        outln!("run {identity} has not ended; its replay reached the end of the record: {state}");
        return ExitCode::SUCCESS;
    };
    let differences = differences(original, reply, recorded.after.as_deref(), after);
    if differences.is_empty() {
        let calls =
            if original.calls.len() == 1 { "1 call".to_owned() } else { format!("{} calls", original.calls.len()) };
        outln!(
            "run {identity} was replayed without calling anything: value, prints, definitions, {calls} and fuel ({}) \
             are the same",
            original.spent.fuel
        );
        return ExitCode::SUCCESS;
    }
    errln!("lispbox: the replay of run {identity} differs from the record; nothing was called without a record");
    for Difference { part, recorded, replayed } in differences {
        outln!("{part}\n  recorded: {}\n  replayed: {}", for_stdout(&recorded), for_stdout(&replayed));
    }
    ExitCode::FAILURE
}

struct Difference {
    part: &'static str,
    recorded: String,
    replayed: String,
}

fn differences(original: &Reply, reply: &Reply, after: Option<&str>, now: Option<&str>) -> Vec<Difference> {
    let failure = |reply: &Reply| {
        reply.failure.as_ref().map_or(String::new(), |failure| format!("{}: {}", failure.error, failure.message))
    };
    let calls = |reply: &Reply| {
        let line = |call: &lispbox::lang::CallRecord| {
            format!("{}/{} {} {}", call.server, call.tool, call.outcome, call.note.as_deref().unwrap_or_default())
        };
        reply.calls.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let json = |reply: &Reply| reply.json.as_ref().map(serde_json::Value::to_string).unwrap_or_default();
    let earlier = |reply: &Reply| {
        let values: Vec<&str> = reply.earlier.iter().map(|earlier| &*earlier.value).collect();
        values.join("\n")
    };
    let parts: [(&'static str, String, String); 9] = [
        ("status", original.status.as_str().to_owned(), reply.status.as_str().to_owned()),
        ("earlier values", earlier(original), earlier(reply)),
        ("value", original.value.clone().unwrap_or_default(), reply.value.clone().unwrap_or_default()),
        ("value as JSON", json(original), json(reply)),
        ("prints", original.prints.clone(), reply.prints.clone()),
        ("error", failure(original), failure(reply)),
        ("definitions", original.defined.join(" "), reply.defined.join(" ")),
        ("calls", calls(original), calls(reply)),
        ("fuel", original.spent.fuel.to_string(), reply.spent.fuel.to_string()),
    ];
    // An isolated session in which nothing is defined has no text.
    let session = after.map(|after| ("session", after.to_owned(), now.unwrap_or_default().to_owned()));
    let all = parts.into_iter().chain(session).filter(|(_, recorded, replayed)| recorded != replayed);
    all.map(|(part, recorded, replayed)| Difference { part, recorded, replayed }).collect()
}
