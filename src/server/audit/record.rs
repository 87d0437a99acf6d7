//! One record of the audit log, and what of a call's arguments is written into it.

use globset::{Glob, GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::lang::reply::Reply;
use crate::server::identity::{Identity, sha256};

/// The longest text among arguments that is written as it is, in characters.
const TEXT_KEPT: usize = 2_000;
/// The most bytes of arguments that are written.
const ARGUMENTS_KEPT: usize = 32 << 10;
/// What stands where a redacted argument stood.
const MASK: &str = "[redacted]";

/// The names of arguments whose values are never written.
const USUAL: &[&str] = &[
    "*password*",
    "*passwd*",
    "*secret*",
    "*token*",
    "*api?key*",
    "*apikey*",
    "authorization",
    "*cookie*",
    "*credential*",
    "*private?key*",
];

/// What a record is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The process began to write.
    Begin,
    /// A tool was called, or refused.
    #[default]
    Call,
    /// A program ended, or was refused.
    Evaluation,
    /// The process ended in order.
    End,
}

/// One line of the audit log. Fields that have nothing to say are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// Its place in its chain, from 0.
    pub number: u64,
    /// When it was written, in UTC, to the millisecond (RFC 3339).
    pub time: String,
    /// What it is about.
    pub kind: Kind,
    /// Ordinal of the evaluation in its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<u64>,
    /// Whose it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// The beginning of the hash of the session's handle.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The SHA-256 of the program's text, in hexadecimal.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The server's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The tool's exact name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The arguments as the program gave them, redacted by rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The rule of the policy that decided on the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// `ok`, or the stable code of the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// How large the result, or the reply to the client, was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How long it took, in milliseconds; a call with the waiting for its turn and for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// How many tools the program called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The rules of the quarantine that found something in the reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quarantine: Vec<String>,
    /// The version of lispbox, where the chain begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The SHA-256 of the line before this one; empty in the first.
    pub previous: String,
}

impl Record {
    /// A record about an evaluation, or about something in it.
    pub(in crate::server) fn of(kind: Kind, identity: &Identity) -> Record {
        Record {
            kind,
            evaluation: Some(identity.evaluation),
            principal: identity.principal.clone(),
            session: identity.session.clone().unwrap_or_default(),
            program: identity.program.clone(),
            ..Record::default()
        }
    }

    /// A record about an evaluation that came to that.
    pub(in crate::server) fn of_evaluation(identity: &Identity, reply: &Reply) -> Record {
        let outcome = reply.failure.as_ref().map_or("ok", |failure| failure.error.as_str()).to_owned();
        let (ms, calls) = (Some(reply.spent.total_ms), Some(reply.calls.len() as u64));
        Record { outcome, ms, calls, ..Record::of(Kind::Evaluation, identity) }
    }
}

/// Which arguments are not written.
#[derive(Clone, Debug)]
pub struct Redaction {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    /// Of which tools, `server/tool`; of all without it.
    tools: Option<GlobMatcher>,
    /// The names of the arguments, also of those inside others.
    arguments: GlobMatcher,
}

impl Default for Redaction {
    /// The usual names of secrets.
    fn default() -> Self {
        let rule = |name: &&str| Rule::read(name).expect("the usual patterns are right");
        Redaction { rules: USUAL.iter().map(rule).collect() }
    }
}

impl Rule {
    fn read(text: &str) -> Result<Rule, String> {
        let wrong = |problem: globset::Error| {
            format!("expected a pattern such as `body` or `mail/*:body`, got `{text}`: {}", problem.kind())
        };
        let (tools, arguments) = match text.split_once(':') {
            Some((tools, arguments)) => (Some(Glob::new(tools).map_err(wrong)?.compile_matcher()), arguments),
            None => (None, text),
        };
        let arguments = GlobBuilder::new(arguments).case_insensitive(true).build().map_err(wrong)?;
        Ok(Rule { tools, arguments: arguments.compile_matcher() })
    }
}

impl Redaction {
    /// Adds a rule: a pattern of names of arguments, or `server/tool:name` for those of some tools.
    ///
    /// # Errors
    /// When the pattern is none.
    pub fn add(&mut self, rule: &str) -> Result<(), String> {
        self.rules.push(Rule::read(rule)?);
        Ok(())
    }

    /// The arguments of a call, the text of a JSON object, as they are written.
    pub(in crate::server) fn apply(&self, server: &str, tool: &str, arguments: &str) -> Value {
        let qualified = format!("{server}/{tool}");
        let fits = |rule: &&Rule| rule.tools.as_ref().is_none_or(|tools| tools.is_match(&qualified));
        let rules: Vec<&Rule> = self.rules.iter().filter(fits).collect();
        let large = || json!({"bytes": arguments.len(), "sha256": sha256(arguments.as_bytes())});
        if arguments.len() > ARGUMENTS_KEPT {
            return large();
        }
        match serde_json::from_str(arguments) {
            Ok(value) => redacted(value, &rules),
            Err(_) => large(),
        }
    }
}

fn redacted(value: Value, rules: &[&Rule]) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| {
                let is_kept = !rules.iter().any(|rule| rule.arguments.is_match(&name));
                let value = if is_kept { redacted(value, rules) } else { MASK.into() };
                (name, value)
            };
            Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(|item| redacted(item, rules)).collect(),
        Value::String(text) => match text.char_indices().nth(TEXT_KEPT) {
            Some((end, _)) => {
                let hash = sha256(text.as_bytes());
                format!("{}… [{} bytes, SHA-256 {hash}]", &text[..end], text.len()).into()
            }
            None => text.into(),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_by_its_name_is_not_written() {
        let mut redaction = Redaction::default();
        redaction.add("mail/*:body").expect("a rule");
        let arguments = r#"{"to": "ann", "body": "hello", "auth": {"accessToken": "x", "api_key": 1}, "list": [{"Password": "y"}]}"#;
        let written = redaction.apply("mail", "send", arguments);
        let expected = json!({"to": "ann", "body": MASK, "auth": {"accessToken": MASK, "api_key": MASK}, "list": [{"Password": MASK}]});
        assert_eq!(written, expected);
        assert_eq!(redaction.apply("notes", "add", r#"{"body": "hello"}"#), json!({"body": "hello"}));
        assert_eq!(
            redaction.add("a[").expect_err("no pattern"),
            "expected a pattern such as `body` or `mail/*:body`, got `a[`: unclosed character class; missing ']'"
        );
    }

    #[test]
    fn long_arguments_are_cut() {
        let long = json!({"text": "x".repeat(3_000)}).to_string();
        let written = Redaction::default().apply("a", "b", &long);
        let text = written["text"].as_str().expect("text");
        assert!(text.starts_with("xxx") && text.contains("… [3000 bytes, SHA-256 ") && text.len() < 2_200, "{text}");
        let huge = json!({"text": "x".repeat(40_000)}).to_string();
        assert_eq!(Redaction::default().apply("a", "b", &huge)["bytes"], huge.len());
    }
}
