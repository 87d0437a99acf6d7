//! The arguments of our two tools, parsed from the client's request.

use rmcp::model::ErrorData;
use serde_json::{Map, Value, json};

use crate::lang::Limits;
use crate::lang::internal::closest;
use crate::lang::{Failure, Reply, Status};
use crate::server::fields::kind;
use crate::server::text::cut;

/// A call of `lisp_eval`.
#[derive(Debug)]
pub(in crate::server) struct EvalRequest {
    pub(in crate::server) program: String,
    pub(in crate::server) session: Option<String>,
    /// The text of a JSON value.
    pub(in crate::server) data: Option<String>,
    pub(in crate::server) limits: Limits,
    /// True if calls that may change something are not made.
    pub(in crate::server) rehearse: bool,
    /// True if the program is planned, and not evaluated.
    pub(in crate::server) plan: bool,
    /// True if calls are made that an earlier program has made, which did not end well.
    pub(in crate::server) repeat: bool,
}

/// A run that a call of `lisp_eval` names, with what it says of a further attempt.
#[derive(Debug)]
pub(in crate::server) struct NamedRun {
    pub(in crate::server) run: String,
    /// The session that the call names, which has to be that of the run.
    pub(in crate::server) session: Option<String>,
    /// The corrected program.
    pub(in crate::server) program: Option<String>,
    /// The text of a JSON value.
    pub(in crate::server) data: Option<String>,
    pub(in crate::server) limits: Option<Limits>,
    /// True if reads are answered from the log.
    pub(in crate::server) repeats_reads: bool,
    /// True if calls whose outcome is unknown are made.
    pub(in crate::server) repeat: bool,
    /// True if the program is to be ended.
    pub(in crate::server) cancel: bool,
}

impl NamedRun {
    /// Returns an argument that is for a further attempt, if there is any.
    pub(in crate::server) fn further(&self) -> Option<&'static str> {
        let given = [
            (self.program.is_some(), "program"),
            (self.data.is_some(), "data"),
            (self.limits.is_some(), "limits"),
            (self.repeats_reads, "reads"),
            (self.repeat, "repeat"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, name)| name)
    }
}

/// A call of `lisp_env`.
#[derive(Debug)]
pub(in crate::server) struct EnvRequest {
    pub(in crate::server) session: Option<String>,
    pub(in crate::server) query: Option<String>,
}

/// A refusal of a call that cannot begin: a code and a message.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::server) struct Refused {
    pub(in crate::server) code: &'static str,
    pub(in crate::server) message: String,
    pub(in crate::server) suggestion: Option<String>,
    /// True if the session of the call is lost permanently.
    is_session_lost: bool,
    /// True if the client, not its model, must correct the call.
    is_of_client: bool,
}

impl Refused {
    pub(in crate::server) fn new(code: &'static str, message: impl Into<String>) -> Refused {
        Refused { code, message: message.into(), suggestion: None, is_session_lost: false, is_of_client: false }
    }

    /// Creates the refusal of a call that violates the protocol in a part that models do not write.
    pub(in crate::server) fn of_client(code: &'static str, message: impl Into<String>) -> Refused {
        Refused { is_of_client: true, ..Refused::new(code, message) }
    }

    /// Returns the protocol error with which the call is answered; `None` if a reply explains the refusal to the model.
    pub(in crate::server) fn protocol_error(&self) -> Option<ErrorData> {
        let data = json!({"error": self.code});
        self.is_of_client.then(|| ErrorData::invalid_params(self.message.clone(), Some(data)))
    }

    /// Creates the refusal of a call whose session no longer exists, with the reason.
    pub(in crate::server) fn session_lost(code: &'static str, why: impl Into<String>) -> Refused {
        Refused { is_session_lost: true, ..Refused::new(code, why) }
    }

    /// True if the session of the call no longer exists.
    pub(in crate::server) fn is_session_lost(&self) -> bool {
        self.is_session_lost
    }

    /// Adapts the refusal to the session of a connection, which begins another session at the next call.
    pub(in crate::server) fn of_connection(self) -> Refused {
        if !self.is_session_lost {
            return self;
        }
        let message = format!(
            "the session of this connection is gone: {}; nothing was evaluated, and the definitions of that session \
             are lost; the next call without `session` starts a new one",
            self.message
        );
        Refused { message, is_session_lost: false, ..self }
    }

    /// Converts the refusal to a reply.
    pub(in crate::server) fn reply(mut self) -> Reply {
        if self.is_session_lost {
            self.message.push_str("; leave `session` out for a new one");
        }
        let mut rendered = format!("{}: {}", self.code, self.message);
        if let Some(suggestion) = &self.suggestion {
            rendered = format!("{rendered}\n{suggestion}");
        }
        let failure = Failure {
            error: self.code.to_owned(),
            message: self.message,
            suggestion: self.suggestion,
            rendered,
            ..Failure::default()
        };
        Reply { status: Status::Error, failure: Some(failure), ..Reply::default() }
    }
}

impl From<Refused> for Box<Reply> {
    fn from(refused: Refused) -> Box<Reply> {
        Box::new(refused.reply())
    }
}

const CODE: &str = "InvalidArguments";

impl EvalRequest {
    /// Takes the argument `run` out: the identity of a run that is to be resumed, with what is said of a further attempt of
    /// it.
    ///
    /// # Errors
    /// Refuses a `run` beside other arguments.
    pub(in crate::server) fn run(
        arguments: &mut Map<String, Value>,
        usual: &Limits,
        most: &Limits,
    ) -> Result<Option<NamedRun>, Refused> {
        if !arguments.contains_key("run") {
            return Ok(None);
        }
        let mut given = Arguments { tool: "lisp_eval", given: std::mem::take(arguments) };
        let Some(run) = given.text("run")?.filter(|run| !run.is_empty()) else {
            *arguments = given.given;
            return Ok(None);
        };
        let limits = match given.given.get("limits") {
            None | Some(Value::Null) => None,
            Some(_) => Some(given.limits(usual, most)?),
        };
        let repeats_reads = match given.text("reads")?.as_deref() {
            None | Some("new") => false,
            Some("logged") => true,
            Some(other) => {
                let message = format!("`reads` is \"new\" or \"logged\", not {:?}", cut(other, 60));
                return Err(Refused::new(CODE, message));
            }
        };
        let session = given.text("session")?.filter(|session| !session.is_empty());
        let (program, data, repeat) = (given.text("program")?, given.data(), given.flag("repeat")?);
        let cancel = given.flag("cancel")?;
        given.given.retain(|_, value| !value.is_null());
        match given.given.keys().next() {
            None => {
                let named = NamedRun { run, session, program, data, limits, repeats_reads, repeat, cancel };
                match named.further().filter(|_| cancel) {
                    None => Ok(Some(named)),
                    Some(other) => Err(Refused::new(CODE, format!("`cancel` ends a program; leave `{other}` out"))),
                }
            }
            Some(other) => {
                let message = format!("`run` goes on with a program; leave `{}` out", cut(other, 60));
                Err(Refused::new(CODE, message))
            }
        }
    }

    /// Reads the arguments. Limits default to `usual` and may not exceed `most`.
    ///
    /// # Errors
    /// Refuses with the wrong argument, what was expected and what was found.
    pub(in crate::server) fn read(
        arguments: Map<String, Value>,
        usual: &Limits,
        most: &Limits,
    ) -> Result<EvalRequest, Refused> {
        let mut arguments = Arguments::new(
            "lisp_eval",
            &["program", "session", "data", "limits", "run", "reads", "repeat", "cancel", "rehearse", "plan"],
            arguments,
        )?;
        let program = arguments.text("program")?.ok_or_else(|| {
            Refused::new(CODE, "`lisp_eval` needs `program`, the text of the program, such as `\"(+ 1 2)\"`")
        })?;
        let limits = arguments.limits(usual, most)?;
        if arguments.take("reads").is_some() {
            return Err(Refused::new(CODE, "`reads` is for a further attempt of a program: it needs `run`"));
        }
        if arguments.flag("cancel")? {
            return Err(Refused::new(CODE, "`cancel` ends a program that is running: it needs `run`"));
        }
        let (rehearse, plan) = (arguments.flag("rehearse")?, arguments.flag("plan")?);
        let repeat = arguments.flag("repeat")?;
        if rehearse && plan {
            let message =
                "`rehearse` and `plan` exclude each other: a rehearsal evaluates the program, a plan does not";
            return Err(Refused::new(CODE, message));
        }
        let data = arguments.data();
        let session = arguments.text("session")?.filter(|text| !text.is_empty());
        Ok(EvalRequest { program, session, data, limits, rehearse, plan, repeat })
    }
}

impl EnvRequest {
    /// Reads the arguments.
    ///
    /// # Errors
    /// Refuses with the wrong argument, what was expected and what was found.
    pub(in crate::server) fn read(arguments: Map<String, Value>) -> Result<EnvRequest, Refused> {
        let mut arguments = Arguments::new("lisp_env", &["session", "query"], arguments)?;
        let some = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        Ok(EnvRequest { session: some(arguments.text("session")?), query: some(arguments.text("query")?) })
    }
}

/// Adds advice on an exceeded limit: by the field `limits` of a request it is raised up to the operator's maximum. A program
/// that `goes_on` by its run, behind the calls that count no more, need not do less.
pub(in crate::server) fn advise_on_limit(failure: &mut Failure, limits: &Limits, most: &Limits, goes_on: bool) {
    let Some(name) = failure.limit.clone() else { return };
    let of = |limits: &Limits| limits.shown().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let (Some(allowed), Some(most)) = (of(limits), of(most)) else { return };
    if goes_on && allowed == most && matches!(&*name, "calls" | "total") {
        return;
    }
    failure.suggest(if allowed == most {
        format!("do less in one call: the operator allows at most {most} (`serve --limit {name}=VALUE`)")
    } else {
        format!("call again with `limits: {{\"{name}\": …}}`, at most {most}")
    });
}

fn is_object_or_array(text: &str) -> bool {
    let text = text.trim_ascii();
    matches!(text.as_bytes().first(), Some(b'{' | b'[')) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The arguments of one call; only known ones are accepted.
struct Arguments {
    tool: &'static str,
    given: Map<String, Value>,
}

impl Arguments {
    fn new(tool: &'static str, known: &[&str], given: Map<String, Value>) -> Result<Arguments, Refused> {
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Arguments { tool, given }),
            Some(name) => Err(Refused {
                suggestion: closest(name, known.iter().copied()).map(|close| format!("Did you mean {close}?")),
                ..Refused::new(
                    CODE,
                    format!("`{tool}` has no argument `{}`; it takes `{}`", cut(name, 60), known.join("`, `")),
                )
            }),
        }
    }

    /// Removes and returns an argument; null counts as absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.given.remove(name).filter(|value| !value.is_null())
    }

    /// Reads `limits`, which default to `usual` and may not exceed `most`.
    fn limits(&mut self, usual: &Limits, most: &Limits) -> Result<Limits, Refused> {
        let mut limits = usual.clone();
        match self.take("limits") {
            None => {}
            Some(Value::Object(asked)) => {
                for (name, value) in asked {
                    let outcome = match &value {
                        Value::Number(number) => limits.set_number(&name, number.as_f64().unwrap_or(f64::NAN)),
                        Value::String(text) => limits.set(&name, text),
                        other => Err(format!(
                            "limit `{name}` takes a number or a string such as `\"64MiB\"`, not {}",
                            kind(other)
                        )),
                    };
                    outcome.map_err(|message| Refused::new(CODE, message))?;
                }
            }
            Some(other) => return Err(self.wrong("limits", "an object such as `{\"fuel\": 1e7}`", &other)),
        }
        limits.clamp_to(most);
        Ok(limits)
    }

    /// Reads `data`, as the text of a JSON value.
    fn data(&mut self) -> Option<String> {
        self.take("data").map(|data| match data {
            // Clients that do not support untyped arguments send objects as text.
            Value::String(text) if is_object_or_array(&text) => text,
            other => other.to_string(),
        })
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Refused> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "a string", &other)),
        }
    }

    fn flag(&mut self, name: &str) -> Result<bool, Refused> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(self.wrong(name, "true or false", &other)),
        }
    }

    fn wrong(&self, name: &str, expected: &str, came: &Value) -> Refused {
        Refused::new(CODE, format!("argument `{name}` of `{}`: expected {expected}, got {}", self.tool, kind(came)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(arguments: Value) -> Result<EvalRequest, (String, Option<String>)> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let most = Limits { fuel: 100_000_000, ..Limits::default() };
        EvalRequest::read(arguments, &Limits::default(), &most).map_err(|refused| (refused.message, refused.suggestion))
    }

    #[test]
    fn arguments_are_read() {
        let request = read(json!({
            "program": "(+ 1 2)", "session": "", "data": {"a": [1]},
            "limits": {"fuel": 1e12, "compute": "2s", "memory": 1024}
        }))
        .expect("right");
        assert_eq!(request.data.as_deref(), Some("{\"a\":[1]}"));
        assert_eq!((request.limits.fuel, request.limits.memory), (100_000_000, 1024));
        assert_eq!(request.limits.compute.as_secs(), 2);
        assert_eq!(request.session, None);
        let data = |data: Value| read(json!({"program": "", "data": data})).expect("right").data;
        assert_eq!(data(json!("[1]")).as_deref(), Some("[1]"));
        assert_eq!(data(json!("hello [")).as_deref(), Some("\"hello [\""));
        assert_eq!(data(json!(5)).as_deref(), Some("5"));
        assert_eq!(data(json!(null)), None);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let message = |arguments| read(arguments).expect_err("wrong");
        assert_eq!(
            message(json!({"progam": "x"})),
            (
                "`lisp_eval` has no argument `progam`; it takes `program`, `session`, `data`, `limits`, `run`, `reads`, `repeat`, `cancel`, `rehearse`, `plan`".into(),
                Some("Did you mean program?".into())
            )
        );
        assert_eq!(message(json!({})).0, "`lisp_eval` needs `program`, the text of the program, such as `\"(+ 1 2)\"`");
        assert_eq!(
            message(json!({"program": ["+", 1]})).0,
            "argument `program` of `lisp_eval`: expected a string, got an array of 2"
        );
        assert_eq!(
            message(json!({"program": "", "limits": 5})).0,
            "argument `limits` of `lisp_eval`: expected an object such as `{\"fuel\": 1e7}`, got the number `5`"
        );
        assert_eq!(
            message(json!({"program": "", "limits": {"fuel": []}})).0,
            "limit `fuel` takes a number or a string such as `\"64MiB\"`, not an array of 0"
        );
        assert!(message(json!({"program": "", "limits": {"fule": 1}})).0.contains("Did you mean fuel?"));
    }

    #[test]
    fn a_limit_says_how_it_is_raised_until_it_is_at_its_maximum() {
        let advice = |limits: &Limits| {
            let mut failure =
                Failure { limit: Some("fuel".to_owned()), rendered: "it".to_owned(), ..Failure::default() };
            advise_on_limit(&mut failure, limits, &Limits { fuel: 2_000, ..Limits::default() }, true);
            assert_eq!(failure.rendered, format!("it\n{}", failure.suggestion.as_deref().unwrap_or_default()));
            failure.suggestion.unwrap_or_default()
        };
        assert_eq!(
            advice(&Limits { fuel: 1_000, ..Limits::default() }),
            "call again with `limits: {\"fuel\": …}`, at most 2000"
        );
        assert_eq!(
            advice(&Limits { fuel: 2_000, ..Limits::default() }),
            "do less in one call: the operator allows at most 2000 (`serve --limit fuel=VALUE`)"
        );
    }
}
