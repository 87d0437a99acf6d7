//! Parsing of policies from configurations and command lines.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::fields::{Problem, Wrong, given, known_keys, wrong};

use super::call_limits::{CallLimit, LARGEST, Per};
use super::repeats::RepeatedCalls;
use super::{Effect, List, Policy, Purpose, Source, ToolPattern, Usual, Verdict};

/// The reason why a text is not a policy: the place, and what is wrong there.
///
/// ```
/// use lispbox::policy::Policy;
///
/// let error = Policy::read(r#"{"guards": [{"tool": "mail/send", "argument": "to", "fro": "contacts/*"}]}"#).unwrap_err();
/// assert_eq!(error.path(), "policy.guards[0].fro");
/// assert_eq!(error.to_string(), "`policy.guards[0].fro`: there is no such key; did you mean `from`?");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyError(Wrong);

impl PolicyError {
    /// Returns the path of keys, from `policy`: `policy.guards[0].from`.
    ///
    /// ```
    /// use lispbox::policy::Policy;
    ///
    /// assert_eq!(Policy::read(r#"{"ask": "send"}"#).unwrap_err().path(), "policy.ask");
    /// ```
    pub fn path(&self) -> &str {
        &self.0.path
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`: {}", self.0.path, self.0.problem)
    }
}

impl std::error::Error for PolicyError {}

/// Reads the object that [`Policy::read`] reads as text.
impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Policy, D::Error> {
        Policy::of(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Policy {
    /// Reads a policy: the JSON text of the object that stands under `policy` in a configuration of the server. Its keys are
    /// `allow`, `ask`, `deny`, `defaults`, `limits`, `trusted`, `guards` and `preset`. An unknown key is an error.
    ///
    /// `repeats` is none of them: [`Session::retry`](lispbox_lang::Session::retry) decides on the calls of earlier attempts.
    /// A policy is also read by serde, as a field of your own configuration.
    ///
    /// # Errors
    /// Returns the place that cannot be used, and why.
    ///
    /// ```
    /// use lispbox::policy::Policy;
    ///
    /// let policy = Policy::read(r#"{
    ///     "ask": ["mail/send"],
    ///     "deny": ["mail/delete-*"],
    ///     "limits": [{"tools": "mail/*", "per_minute": 20}]
    /// }"#).unwrap();
    /// assert_eq!(policy.lines()[0], "ask mail/send (`policy.ask`)");
    /// ```
    pub fn read(text: &str) -> Result<Policy, PolicyError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|problem| PolicyError(Wrong::new("policy", format!("expected JSON: {problem}"))))?;
        Policy::of(&value)
    }

    fn of(value: &Value) -> Result<Policy, PolicyError> {
        let mut policy = Policy::default();
        if !value.is_object() {
            return Err(PolicyError(Wrong {
                path: "policy".to_owned(),
                problem: Problem::Kind { expected: "an object with rules".to_owned(), came: value.clone() },
            }));
        }
        if value.get("repeats").is_some_and(|repeats| !repeats.is_null()) {
            let message = "calls of an earlier attempt are decided on by `Session::retry`, not by the policy";
            return Err(PolicyError(Wrong::new("policy.repeats", message)));
        }
        policy.read_policy(Some(value), "policy", "").map_err(PolicyError)?;
        Ok(policy)
    }

    /// Reads `tools`, an object with either `allow` or `block`.
    #[doc(hidden)]
    pub fn read_tools(&mut self, value: Option<&Value>, path: &str, file: &str) -> Result<(), Wrong> {
        let fields = match value {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Object(fields)) => fields,
            // Other clients give a list of the allowed tools here.
            Some(list @ Value::Array(_)) => return self.add(Purpose::Only, list, "tools", path, file),
            Some(other) => return wrong(path, "an object with `allow` or `block`", other),
        };
        known_keys(fields, ["allow", "block"], &format!("{path}."))?;
        match (given(fields, "allow"), given(fields, "block")) {
            (Some(_), Some(_)) => {
                let message = "expected either `allow` or `block`, got both".to_owned();
                Err(Wrong::new(path, message))
            }
            (Some(list), None) => self.add(Purpose::Only, list, "tools.allow", &format!("{path}.allow"), file),
            (None, Some(list)) => self.add(Purpose::Block, list, "tools.block", &format!("{path}.block"), file),
            (None, None) => Ok(()),
        }
    }

    /// Reads a list in the format of another client: only those tools, or all but those.
    #[doc(hidden)]
    pub fn read_list(&mut self, only: bool, list: &Value, key: &str, file: &str) -> Result<(), Wrong> {
        let purpose = if only { Purpose::Only } else { Purpose::Block };
        self.add(purpose, list, key, &format!(".{key}"), file)
    }

    /// Reads `policy`: the lists `allow`, `ask` and `deny`, `defaults` by effect, `limits`, `trusted` tools, `guards` and
    /// `repeats`.
    #[doc(hidden)]
    pub fn read_policy(&mut self, value: Option<&Value>, path: &str, file: &str) -> Result<(), Wrong> {
        let fields = match value {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Object(fields)) => fields,
            Some(other) => {
                let expected =
                    "an object with `allow`, `ask`, `deny`, `defaults`, `limits`, `trusted`, `guards` or `repeats`";
                return wrong(path, expected, other);
            }
        };
        known_keys(
            fields,
            ["allow", "ask", "deny", "defaults", "limits", "trusted", "guards", "preset", "repeats"],
            &format!("{path}."),
        )?;
        for verdict in Verdict::ALL {
            if let Some(list) = given(fields, verdict.key()) {
                let name = format!("policy.{}", verdict.key());
                self.add(Purpose::Rule(verdict), list, &name, &format!("{path}.{}", verdict.key()), file)?;
            }
        }
        match given(fields, "defaults") {
            Some(Value::Object(defaults)) => self.read_defaults(defaults, &format!("{path}.defaults"), file)?,
            Some(other) => return wrong(format!("{path}.defaults"), "an object such as `destructive: deny`", other),
            None => {}
        }
        if let Some(trusted) = given(fields, "trusted") {
            self.read_trusted(trusted, &format!("{path}.trusted"), file)?;
        }
        if let Some(repeats) = given(fields, "repeats") {
            self.repeats = Some((RepeatedCalls::read(repeats, format!("{path}.repeats"))?, file.to_owned()));
        }
        self.read_guards(given(fields, "preset"), given(fields, "guards"), path, file)?;
        match given(fields, "limits") {
            Some(Value::Array(limits)) => limits
                .iter()
                .enumerate()
                .try_for_each(|(index, limit)| self.read_limit(limit, &format!("{path}.limits[{index}]"), file)),
            Some(other) => wrong(format!("{path}.limits"), "a list of limits", other),
            None => Ok(()),
        }
    }

    /// Adds a list of the command line, under the flag of the verdict, such as `--deny`.
    ///
    /// # Errors
    /// Returns a sentence that names the invalid pattern.
    ///
    /// ```
    /// use lispbox::policy::{Policy, Verdict};
    ///
    /// let mut policy = Policy::read(r#"{"allow": ["mail/send"]}"#).unwrap();
    /// policy.add_flag(Verdict::Deny, &["mail/*".to_owned()]).unwrap();
    /// assert_eq!(policy.lines()[1], "deny mail/* (`--deny`)");
    /// ```
    pub fn add_flag(&mut self, verdict: Verdict, patterns: &[String]) -> Result<(), String> {
        self.add_named(verdict, &format!("--{}", verdict.key()), patterns)
    }

    /// Adds a list of the environment variable that corresponds to such a flag, under the name of the variable.
    ///
    /// # Errors
    /// Returns a sentence that names the invalid pattern.
    ///
    /// ```
    /// use lispbox::policy::{Policy, Verdict};
    ///
    /// let mut policy = Policy::default();
    /// policy.add_variable(Verdict::Ask, "MAIL_ASK", &["mail/* bank/*".to_owned()]).unwrap();
    /// assert_eq!(policy.lines(), ["ask mail/*, bank/* (`MAIL_ASK`)"]);
    /// ```
    pub fn add_variable(&mut self, verdict: Verdict, variable: &str, patterns: &[String]) -> Result<(), String> {
        self.add_named(verdict, variable, patterns)
    }

    fn add_named(&mut self, verdict: Verdict, name: &str, patterns: &[String]) -> Result<(), String> {
        // A variable may be empty, or separate patterns by several blanks or line breaks.
        let mut patterns = patterns.iter().flat_map(|pattern| pattern.split_whitespace()).peekable();
        if patterns.peek().is_none() {
            return Ok(());
        }
        let patterns: Result<_, _> = patterns.map(|pattern| read_pattern(pattern, name)).collect();
        let patterns = patterns.map_err(|wrong| format!("`{}`: {}", wrong.path, wrong.problem))?;
        let source = Source { key: name.to_owned(), file: String::new() };
        self.lists.push(List { purpose: Purpose::Rule(verdict), source, patterns });
        Ok(())
    }

    fn add(&mut self, purpose: Purpose, list: &Value, name: &str, path: &str, file: &str) -> Result<(), Wrong> {
        let Value::Array(items) = list else { return wrong(path, "a list of tools", list) };
        let patterns = items.iter().enumerate().map(|(index, item)| {
            let path = format!("{path}[{index}]");
            match item {
                Value::String(text) => read_pattern(text, &path),
                other => wrong(path, "a string", other),
            }
        });
        let patterns = patterns.collect::<Result<_, _>>()?;
        let source = Source { key: name.to_owned(), file: file.to_owned() };
        self.lists.push(List { purpose, source, patterns });
        Ok(())
    }

    fn read_defaults(&mut self, fields: &Map<String, Value>, path: &str, file: &str) -> Result<(), Wrong> {
        known_keys(fields, Effect::ALL.map(Effect::key), &format!("{path}."))?;
        for effect in Effect::ALL {
            let Some(value) = given(fields, effect.key()) else { continue };
            let verdicts = Verdict::ALL.into_iter().map(Usual::Fixed);
            let by_name = (effect == Effect::Unannotated).then_some(Usual::ByName);
            let usual = verdicts.chain(by_name).find(|usual| value.as_str() == Some(usual.key()));
            let expected = match by_name {
                Some(_) => "`allow`, `ask`, `deny` or `by_name`",
                None => "`allow`, `ask` or `deny`",
            };
            match usual {
                Some(usual) => drop(self.defaults.insert(effect, (usual, file.to_owned()))),
                None => return wrong(format!("{path}.{}", effect.key()), expected, value),
            }
        }
        Ok(())
    }

    fn read_limit(&mut self, value: &Value, path: &str, file: &str) -> Result<(), Wrong> {
        let Value::Object(fields) = value else {
            return wrong(path, "an object such as `tools: send-*` with `per_minute: 5`", value);
        };
        let periods = Per::ALL.map(Per::key);
        known_keys(fields, ["tools"].into_iter().chain(periods), &format!("{path}."))?;
        let texts: Vec<&Value> = match given(fields, "tools") {
            Some(Value::Array(items)) => items.iter().collect(),
            Some(one) => vec![one],
            None => return Err(Wrong::new(path, "a limit needs the key `tools`".to_owned())),
        };
        let patterns = texts.into_iter().map(|text| match text {
            Value::String(text) => read_pattern(text, &format!("{path}.tools")),
            other => wrong(format!("{path}.tools"), "a string", other),
        });
        let patterns: Vec<ToolPattern> = patterns.collect::<Result<_, _>>()?;
        let before = self.limits.len();
        for per in Per::ALL {
            let Some(value) = given(fields, per.key()) else { continue };
            let count = value.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|count| *count <= LARGEST);
            let Some(count) = count else {
                return wrong(format!("{path}.{}", per.key()), &format!("a number of calls up to {LARGEST}"), value);
            };
            let source = Source { key: path.to_owned(), file: file.to_owned() };
            self.limits.push(CallLimit { patterns: patterns.clone(), per, count, source });
        }
        if self.limits.len() == before {
            let message = format!("a limit needs one of `{}`", periods.join("`, `"));
            return Err(Wrong::new(path, message));
        }
        Ok(())
    }
}

/// Parses the tool or pattern at a path.
pub(super) fn read_pattern(text: &str, path: &str) -> Result<ToolPattern, Wrong> {
    ToolPattern::new(text).map_err(|message| Wrong::new(path, message))
}
