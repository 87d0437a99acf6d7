//! The programs and messages that the soak sends, with their expected outcomes.

pub mod good;
pub mod hostile;
pub mod kept;
pub mod tools;
pub mod wrong;

use std::time::Duration;

use serde_json::{Value, json};

use kept::Kept;

/// Compute time limit of programs that must finish: long enough that a slow machine does not cause a wrong answer.
const AMPLE: &str = "60s";

/// One program for `lisp_eval`.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program text.
    pub program: String,
    /// The value bound to `data`.
    pub data: Option<Value>,
    /// The limits that the request asks for.
    pub limits: Value,
    /// The expected outcome.
    pub expected: Expected,
    /// True if the program returns a value; its latency is recorded.
    pub is_good: bool,
    /// The compute limit that is expected to stop the program; the lateness is recorded.
    pub clock: Option<Duration>,
    /// The contents of the session after the program, if the program changes them.
    pub after: Option<Kept>,
}

/// The outcomes that are correct, in the notation of [`Outcome::text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Exactly this text.
    Only(String),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// A value that begins with this text.
    Beginning(&'static str),
    /// Any outcome of a program: a value, an error or a limit.
    Anything,
}

/// The outcome of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The value as printed, `limit: NAME`, `error: CODE`, or `protocol: NUMBER`.
    pub text: String,
    /// The text that the model sees.
    pub shown: String,
    /// The structured content of the reply, or null.
    pub record: Value,
}

impl Job {
    /// A program with a known answer.
    pub fn good(program: impl Into<String>, answer: impl Into<String>) -> Job {
        Job {
            program: program.into(),
            data: None,
            limits: json!({"compute": AMPLE}),
            expected: Expected::Only(answer.into()),
            is_good: true,
            clock: None,
            after: None,
        }
    }

    /// A program that does not return a known answer.
    pub fn bad(program: impl Into<String>, limits: Value, expected: Expected) -> Job {
        Job { limits, expected, is_good: false, ..Job::good(program, "") }
    }

    /// Builds the arguments of `lisp_eval`.
    pub fn arguments(&self, session: Option<&str>) -> Value {
        let mut arguments = json!({"program": self.program, "limits": self.limits});
        if let Some(data) = &self.data {
            arguments["data"] = data.clone();
        }
        if let Some(session) = session {
            arguments["session"] = json!(session);
        }
        arguments
    }

    /// True if the program calls tools.
    pub fn calls_tools(&self) -> bool {
        tools::SERVERS.iter().any(|server| self.program.contains(&format!("{server}/")))
    }
}

impl Expected {
    /// True if the outcome is correct.
    pub fn fits(&self, outcome: &str) -> bool {
        match self {
            Expected::Only(text) => outcome == text,
            Expected::OneOf(texts) => texts.contains(&outcome),
            Expected::Beginning(text) => outcome.starts_with(text),
            // A program cannot cause these outcomes.
            Expected::Anything => {
                !outcome.starts_with("protocol: ")
                    && !["error: InternalError", "error: WorkerLost", "error: Busy"].contains(&outcome)
            }
        }
    }

    /// Describes the expected outcome.
    pub fn told(&self) -> String {
        match self {
            Expected::Only(text) => text.clone(),
            Expected::OneOf(texts) => texts.join(" or "),
            Expected::Beginning(text) => format!("{text}…"),
            Expected::Anything => "whatever a program may come to".to_owned(),
        }
    }
}

impl Outcome {
    /// Extracts the outcome from a reply.
    pub fn of(message: &Value) -> Outcome {
        if let Some(error) = message.get("error") {
            let shown = error["message"].as_str().unwrap_or_default().to_owned();
            return Outcome { text: format!("protocol: {}", error["code"]), shown, record: Value::Null };
        }
        let result = &message["result"];
        let shown = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        let record = result["structuredContent"].clone();
        let field = |name: &str| record[name].as_str();
        let text = match (field("error"), field("limit"), field("value")) {
            (Some("LimitExceeded"), limit, _) => format!("limit: {}", limit.unwrap_or("?")),
            (Some(code), ..) => format!("error: {code}"),
            (None, _, Some(value)) => value.to_owned(),
            (None, _, None) => shown.clone(),
        };
        Outcome { text, shown, record }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lispbox::lang::{Engine, Reply, Request, Session};

    use super::*;
    use crate::common::Scripted;
    use crate::mailbox::Mailbox;
    use crate::mailbox::chance::Chance;

    /// Runs the program in a local session without tools, ignoring the clock of the job.
    fn outcome(session: &mut Session, job: &Job) -> String {
        let mut request = Request::new(job.program.clone());
        request.data = job.data.as_ref().map(Value::to_string);
        if let Some(fuel) = job.limits["fuel"].as_u64() {
            request.limits.fuel = fuel;
        }
        let reply: Reply = session.eval(request, Arc::new(Scripted::new()));
        Outcome::of(&json!({"result": {"structuredContent": reply}})).text
    }

    #[test]
    fn answers_are_computed_right() {
        let engine = Engine::builder().build().expect("the allocator counts");
        let mut chance = Chance::new(3);
        for _ in 0..150 {
            let job = good::job(&mut chance);
            let outcome = outcome(&mut engine.session(), &job);
            assert!(job.expected.fits(&outcome), "{}: {} is not {outcome}", job.program, job.expected.told());
        }
    }

    #[test]
    fn sessions_hold_what_they_must() {
        let mut session = Engine::builder().build().expect("the allocator counts").session();
        let (mut chance, mailbox) = (Chance::new(5), Mailbox::new());
        let (mut kept, begin) = Kept::begin(&mut chance);
        assert!(begin.expected.fits(&outcome(&mut session, &begin)));
        for turn in 0..200 {
            let job = if turn % 2 == 0 { kept.change(&mut chance, &mailbox) } else { kept.use_it(&mut chance) };
            if job.calls_tools() {
                continue;
            }
            let outcome_of_it = outcome(&mut session, &job);
            assert!(job.expected.fits(&outcome_of_it), "{}: {outcome_of_it}", job.program);
            kept = job.after.unwrap_or(kept);
            assert_eq!(outcome(&mut session, &Kept::look()), kept.shown(), "after {}", job.program);
        }
    }

    #[test]
    fn the_plan_is_a_function_of_the_seed() {
        let programs = |seed| {
            let mut chance = Chance::new(seed);
            let mailbox = Mailbox::new();
            let kept = Kept::begin(&mut chance).0;
            let jobs = (0..20).flat_map(|_| {
                let here = [good::job(&mut chance), hostile::job(&mut chance), kept.use_it(&mut chance)];
                here.into_iter().chain([tools::job(&mut chance, &mailbox), kept.change(&mut chance, &mailbox)])
            });
            jobs.map(|job| job.program).collect::<Vec<_>>()
        };
        assert_eq!(programs(1), programs(1));
        assert_ne!(programs(1), programs(2));
    }

    #[test]
    fn outcomes_are_read_and_held_against_what_is_right() {
        let of = |result: Value| Outcome::of(&json!({"id": 1, "result": result})).text;
        assert_eq!(of(json!({"structuredContent": {"status": "ok", "value": "[1 2]"}})), "[1 2]");
        assert_eq!(of(json!({"structuredContent": {"error": "LimitExceeded", "limit": "fuel"}})), "limit: fuel");
        assert_eq!(of(json!({"structuredContent": {"error": "TypeError"}, "isError": true})), "error: TypeError");
        assert_eq!(of(json!({"content": [{"type": "text", "text": "dir"}]})), "dir");
        assert_eq!(Outcome::of(&json!({"error": {"code": -32601, "message": "x"}})).text, "protocol: -32601");
        assert!(Expected::Only("3".into()).fits("3") && !Expected::Only("3".into()).fits("4"));
        assert!(!Expected::OneOf(&["limit: fuel"]).fits("limit: memory"));
        assert!(Expected::Anything.fits("limit: fuel") && !Expected::Anything.fits("error: WorkerLost"));
    }
}
