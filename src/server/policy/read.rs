//! Parsing of policies from configurations and command lines.

use serde_json::{Map, Value};

use crate::server::fields::{Wrong, given, known_keys, wrong};

use super::quotas::{LARGEST, Per, Quota};
use super::repeats::RepeatedCalls;
use super::{Effect, List, Policy, Purpose, Source, ToolPattern, Usual, Verdict};

impl Policy {
    /// Reads `tools`, an object with either `allow` or `block`.
    pub(in crate::server) fn read_tools(&mut self, value: Option<&Value>, path: &str, file: &str) -> Result<(), Wrong> {
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
                Err(Wrong { path: path.to_owned(), message })
            }
            (Some(list), None) => self.add(Purpose::Only, list, "tools.allow", &format!("{path}.allow"), file),
            (None, Some(list)) => self.add(Purpose::Block, list, "tools.block", &format!("{path}.block"), file),
            (None, None) => Ok(()),
        }
    }

    /// Reads a list in the format of another client: only those tools, or all but those.
    pub(in crate::server) fn read_list(
        &mut self,
        only: bool,
        list: &Value,
        key: &str,
        file: &str,
    ) -> Result<(), Wrong> {
        let purpose = if only { Purpose::Only } else { Purpose::Block };
        self.add(purpose, list, key, &format!(".{key}"), file)
    }

    /// Reads `policy`: the lists `allow`, `ask` and `deny`, `defaults` by effect, `limits`, `trusted` tools, `guards` and
    /// `repeats`.
    pub(in crate::server) fn read_policy(
        &mut self,
        value: Option<&Value>,
        path: &str,
        file: &str,
    ) -> Result<(), Wrong> {
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
    pub fn add_flag(&mut self, verdict: Verdict, patterns: &[String]) -> Result<(), String> {
        self.add_named(verdict, &format!("--{}", verdict.key()), patterns)
    }

    /// Adds a list of the environment variable that corresponds to such a flag, under the name of the variable.
    ///
    /// # Errors
    /// Returns a sentence that names the invalid pattern.
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
        let patterns = patterns.map_err(|wrong| format!("`{}`: {}", wrong.path, wrong.message))?;
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
            None => return Err(Wrong { path: path.to_owned(), message: "a limit needs the key `tools`".to_owned() }),
        };
        let patterns = texts.into_iter().map(|text| match text {
            Value::String(text) => read_pattern(text, &format!("{path}.tools")),
            other => wrong(format!("{path}.tools"), "a string", other),
        });
        let patterns: Vec<ToolPattern> = patterns.collect::<Result<_, _>>()?;
        let before = self.quotas.len();
        for per in Per::ALL {
            let Some(value) = given(fields, per.key()) else { continue };
            let count = value.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|count| *count <= LARGEST);
            let Some(count) = count else {
                return wrong(format!("{path}.{}", per.key()), &format!("a number of calls up to {LARGEST}"), value);
            };
            let source = Source { key: path.to_owned(), file: file.to_owned() };
            self.quotas.push(Quota { patterns: patterns.clone(), per, count, source });
        }
        if self.quotas.len() == before {
            let message = format!("a limit needs one of `{}`", periods.join("`, `"));
            return Err(Wrong { path: path.to_owned(), message });
        }
        Ok(())
    }
}

/// Parses the tool or pattern at a path.
pub(super) fn read_pattern(text: &str, path: &str) -> Result<ToolPattern, Wrong> {
    ToolPattern::new(text).map_err(|message| Wrong { path: path.to_owned(), message })
}
