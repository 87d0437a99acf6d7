//! Batch evaluation: one JSON line in, one record out, each in a fresh environment.

use std::collections::HashMap;
use std::io::BufRead;
use std::process::ExitCode;
use std::sync::Arc;

use lispbox::lang::internal::closest;
use lispbox::lang::{Failure, Limits, Reply, Request, Sandbox, Status};
use serde_json::Value;
use serde_json::value::RawValue;

use super::record;
use crate::context::{EvaluationContext, Problem, Settings};
use crate::output::{self, outln};
use crate::terminal::{Prints, advise_on_limit, for_stdout};
use crate::worker::Isolation;

/// The permitted keys of a line.
const FIELDS: [&str; 3] = ["program", "data", "limits"];

/// Evaluates standard input line by line. The exit code is 1 if a line is not a request or its program failed.
pub fn run(settings: &Settings, isolation: &Isolation) -> Result<ExitCode, Problem> {
    let context = settings.open()?;
    let sandbox = context.sandbox(isolation)?;
    if context.has_tools() {
        context.stop_on_interrupt();
    }
    let mut input = std::io::stdin().lock();
    let mut all_well = true;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let count = input.read_until(b'\n', &mut bytes);
        if count.map_err(|problem| Problem::Failed(format!("standard input: {problem}")))? == 0 {
            return Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        let text = bytes.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let mut reply = match read(text, &context.limits) {
            Ok(request) => evaluate(&context, &sandbox, request),
            Err(message) => refused(message),
        };
        all_well &= reply.failure.is_none();
        outln!("{}", for_stdout(&record(&mut reply)));
        if output::is_broken() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn evaluate(context: &EvaluationContext, sandbox: &Arc<dyn Sandbox>, request: Request) -> Reply {
    let host = context.host(Prints::Keep, &request.limits, &request.program);
    let mut reply = host.redacted(Arc::clone(sandbox).environment().eval(request, host.clone()));
    context.at_rest();
    advise_on_limit(&mut reply, true);
    reply
}

/// Parses one line; `usual` contains the default limits.
///
/// # Errors
/// Returns the expected form and the actual one.
fn read(line: &[u8], usual: &Limits) -> Result<Request, String> {
    let line = std::str::from_utf8(line).map_err(|problem| format!("expected UTF-8: {problem}"))?;
    let limits = usual.clone();
    if line.starts_with('"') {
        let program: String = serde_json::from_str(line).map_err(|problem| format!("expected JSON: {problem}"))?;
        return Ok(Request { limits, ..Request::new(program) });
    }
    if !line.starts_with('{') {
        // The line is neither an object nor a string; report whether it is JSON at all.
        return Err(match serde_json::from_str::<serde::de::IgnoredAny>(line) {
            Ok(_) => "expected an object with `program`, or a program as a string".to_owned(),
            Err(problem) => format!("expected JSON: {problem}"),
        });
    }
    // The data is passed on verbatim, so that numbers keep all their digits.
    let mut fields: HashMap<String, Box<RawValue>> =
        serde_json::from_str(line).map_err(|problem| format!("expected JSON: {problem}"))?;
    let program = match fields.remove("program") {
        None => Err("expected `program`, the text of the program".to_owned()),
        Some(raw) => {
            serde_json::from_str::<String>(raw.get()).map_err(|_| "expected `program` to be a string".to_owned())
        }
    };
    let data = fields.remove("data").map(|raw| raw.get().to_owned());
    let asked = fields.remove("limits");
    if let Some(name) = fields.keys().min() {
        let hint = closest(name, FIELDS).map(|close| format!("; did you mean `{close}`?")).unwrap_or_default();
        return Err(format!("expected only `program`, `data` and `limits`, got `{name}`{hint}"));
    }
    let mut request = Request { data, limits, ..Request::new(program?) };
    if let Some(asked) = asked {
        set_limits(&mut request.limits, &asked)?;
    }
    Ok(request)
}

fn set_limits(limits: &mut Limits, asked: &RawValue) -> Result<(), String> {
    let asked: Value = serde_json::from_str(asked.get()).map_err(|problem| format!("`limits`: {problem}"))?;
    let asked = match asked {
        Value::Null => return Ok(()),
        Value::Object(asked) => asked,
        _ => return Err("expected `limits` to be an object such as `{\"fuel\": 1e7}`".to_owned()),
    };
    for (name, value) in &asked {
        match value {
            Value::Number(number) => limits.set_number(name, number.as_f64().unwrap_or(f64::NAN))?,
            Value::String(text) => limits.set(name, text)?,
            _ => return Err(format!("limit `{name}` takes a number or a string such as `\"64MiB\"`")),
        }
    }
    Ok(())
}

/// The record of a line that is not a request.
fn refused(message: String) -> Reply {
    let error = "InvalidRequest".to_owned();
    let rendered = format!("{error}: {message}");
    let failure = Failure { error, message, rendered, ..Failure::default() };
    Reply { status: Status::Error, failure: Some(failure), ..Reply::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        read(line.as_bytes(), &Limits::default()).expect_err("no request")
    }

    #[test]
    fn lines_are_read() {
        let request = |line: &str| read(line.as_bytes(), &Limits::default()).expect("a request");
        assert_eq!(request(r#""(+ 1 \"a\")""#).program, "(+ 1 \"a\")");
        let whole =
            request(r#"{"data": [123456789012345678901234567890, null], "program": "data", "limits": {"fuel": 10}}"#);
        assert_eq!(whole.data.as_deref(), Some("[123456789012345678901234567890, null]"));
        assert_eq!((whole.program.as_str(), whole.limits.fuel), ("data", 10));
        assert_eq!(request(r#"{"program": "1", "data": null}"#).data.as_deref(), Some("null"));
    }

    #[test]
    fn wrong_lines_are_explained() {
        assert_eq!(refusal("5"), "expected an object with `program`, or a program as a string");
        assert_eq!(refusal("{}"), "expected `program`, the text of the program");
        assert_eq!(refusal(r#"{"program": 5}"#), "expected `program` to be a string");
        assert_eq!(
            refusal(r#"{"program": "1", "dta": 5}"#),
            "expected only `program`, `data` and `limits`, got `dta`; did you mean `data`?"
        );
        assert!(refusal("(+ 1 2)").starts_with("expected JSON: "));
        assert!(refusal(r#"{"program": "1", "limits": {"fule": 5}}"#).contains("Did you mean fuel?"));
    }
}
