//! Redaction of call arguments for the audit log.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::lang::Tool;
use crate::lang::internal::foreign_text;
use crate::server::identity::sha256;
use crate::server::policy::{Name, NamePattern, ToolPattern};
use crate::server::secrets::Secrets;

/// Maximum length of a text argument that is recorded in full, in characters.
const TEXT_KEPT: usize = 2_000;
/// Maximum size of arguments that are recorded in full, in bytes.
const ARGUMENTS_KEPT: usize = 32 << 10;
/// Maximum number of arguments that are recorded by name when they exceed [`ARGUMENTS_KEPT`] together.
const NAMES_KEPT: usize = 200;
/// Maximum length of an argument name that is recorded in full, in characters.
const NAME_KEPT: usize = 200;
/// Minimum length of the prefix that is kept of an argument, in characters.
const BEGINNING_KEPT: usize = 40;
/// Replaces the value of a redacted argument.
const MASK: &str = "[redacted]";

/// Names of arguments whose values are never recorded.
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
    "*privatekey*",
];

/// The rules that decide which arguments are not recorded.
#[derive(Clone, Debug)]
pub struct Redaction {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    /// The text of the rule; `None` for the built-in ones.
    text: Option<String>,
    /// The tools to which it applies; `None` means all.
    tools: Option<ToolPattern>,
    /// The names of the arguments, including nested ones.
    arguments: NamePattern,
}

impl Default for Redaction {
    /// Returns the rules for common names of secrets.
    fn default() -> Self {
        let rule = |name: &&str| Rule { text: None, ..Rule::read(name).expect("the usual patterns are right") };
        Redaction { rules: USUAL.iter().map(rule).collect() }
    }
}

impl Rule {
    fn read(text: &str) -> Result<Rule, String> {
        let expected = |problem: &str| {
            format!("expected a redaction rule such as `body` or `mail/*:body`, got `{text}`: {problem}")
        };
        let (tools, arguments) = match text.split_once(':') {
            Some((tools, arguments)) => (Some(tools.trim()), arguments.trim()),
            None => (None, text.trim()),
        };
        if arguments.is_empty() {
            return Err(expected("it names no argument"));
        }
        if tools.is_some_and(|tools| tools.is_empty() || tools.starts_with('/') || tools.ends_with('/')) {
            return Err(expected("there is no tool before the colon"));
        }
        if arguments.contains(':') {
            return Err(expected("it has more than one colon"));
        }
        Ok(Rule {
            text: Some(text.to_owned()),
            tools: tools.map(ToolPattern::new).transpose().map_err(|problem| expected(&problem))?,
            arguments: NamePattern::new(arguments).map_err(|problem| expected(&problem))?,
        })
    }

    fn concerns(&self, tool: &Tool) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.fits(&tool.server, &tool.name))
    }

    /// True if the rule matches an argument that the schema declares.
    fn fits_argument(&self, schema: &Value) -> bool {
        let mut is_among = false;
        each_property(schema, &mut |name| is_among |= self.arguments.fits(&Name::new(name)));
        is_among
    }

    /// Returns the clause "`mail/*:bdoy` matches no argument of any tool" if it applies, with the tools whose schemas do
    /// not declare their arguments.
    fn without_effect(&self, tools: &[&Tool]) -> Option<String> {
        let text = self.text.as_deref()?;
        let concerned: Vec<&Tool> = tools.iter().copied().filter(|tool| self.concerns(tool)).collect();
        if concerned.iter().any(|tool| self.fits_argument(&tool.input_schema)) {
            return None;
        }
        let undeclared: Vec<&Tool> =
            concerned.into_iter().filter(|tool| declares_nothing(&tool.input_schema)).collect();
        let name = |tool: &Tool| foreign_text::name(&format!("{}/{}", tool.server, tool.name)).into_owned();
        let unknown = match &undeclared[..] {
            [] => String::new(),
            [tool] => format!(" (`{}` does not declare its arguments)", name(tool)),
            [tool, ..] => {
                format!(" ({} tools, such as `{}`, do not declare their arguments)", undeclared.len(), name(tool))
            }
        };
        Some(format!("`{text}` matches no argument of any tool{unknown}"))
    }
}

/// True if a schema does not declare the names of arguments, nor that there are none.
fn declares_nothing(schema: &Value) -> bool {
    let mut count = 0;
    each_property(schema, &mut |_| count += 1);
    count == 0
        && match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => false,
            Some(_) => true,
            None => schema.get("properties").is_none(),
        }
}

/// Calls `take` with the names of all properties in a schema, at any depth.
fn each_property(schema: &Value, take: &mut impl FnMut(&str)) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let ("properties", Value::Object(properties)) = (key.as_str(), value) {
                    properties.keys().for_each(|name| take(name));
                }
                each_property(value, take);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_property(item, take)),
        _ => {}
    }
}

impl Redaction {
    /// Adds a rule: a pattern of argument names, or `server/tool:name` for the arguments of some tools. Names are
    /// compared ignoring `-`, `_` and case.
    ///
    /// # Errors
    /// Returns a description of what is wrong with the rule.
    pub fn add(&mut self, rule: &str) -> Result<(), String> {
        self.rules.push(Rule::read(rule)?);
        Ok(())
    }

    /// True if rules were added to the built-in ones.
    pub fn has_own_rules(&self) -> bool {
        self.rules.iter().any(|rule| rule.text.is_some())
    }

    /// Returns the added rules that match no declared argument of any of the tools, each as a clause.
    pub fn without_effect(&self, tools: &[&Tool]) -> Vec<String> {
        self.rules.iter().filter_map(|rule| rule.without_effect(tools)).collect()
    }

    /// Returns the arguments of a call, given as the text of a JSON object, in the form in which they are recorded.
    /// Secrets are redacted before anything is cut, so that no cut leaves part of one; sizes and hashes are those of
    /// the redacted text.
    pub(in crate::server) fn apply(&self, server: &str, tool: &str, arguments: &str, secrets: &Secrets) -> Value {
        let fits = |rule: &&Rule| rule.tools.as_ref().is_none_or(|tools| tools.fits(server, tool));
        let rules: Vec<&Rule> = self.rules.iter().filter(fits).collect();
        let Ok(value) = serde_json::from_str(arguments) else {
            return json!({"bytes": arguments.len(), "sha256": sha256(secrets.redact(arguments).as_bytes())});
        };
        let value = redacted(value, &rules, secrets);
        match value {
            Value::Object(fields) if larger(&fields, ARGUMENTS_KEPT) => shortened(fields),
            value => cut_texts(value),
        }
    }
}

fn redacted(value: Value, rules: &[&Rule], secrets: &Secrets) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| {
                let spelt = Name::new(&name);
                let is_kept = !rules.iter().any(|rule| rule.arguments.fits(&spelt));
                let value = if is_kept { redacted(value, rules, secrets) } else { MASK.into() };
                (secrets.redact(&name).into_owned(), value)
            };
            Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(|item| redacted(item, rules, secrets)).collect(),
        other => without_secrets(other, secrets),
    }
}

/// Redacts secrets in a scalar; some secrets are numbers.
fn without_secrets(value: Value, secrets: &Secrets) -> Value {
    let text = match &value {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Number(number) => Cow::Owned(number.to_string()),
        _ => return value,
    };
    match secrets.redact(&text) {
        Cow::Borrowed(_) => value,
        Cow::Owned(redacted) => redacted.into(),
    }
}

/// True if the fields take more than `bytes` bytes as JSON.
fn larger(fields: &Map<String, Value>, bytes: usize) -> bool {
    serde_json::to_string(fields).is_ok_and(|text| text.len() > bytes)
}

fn cut_texts(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value)| (cut(name, NAME_KEPT), cut_texts(value));
            Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(cut_texts).collect(),
        Value::String(text) => cut(text, TEXT_KEPT).into(),
        other => other,
    }
}

/// Cuts a text of more than `kept` characters to `beginning… [3000 bytes, SHA-256 9be1…]`.
fn cut(text: String, kept: usize) -> String {
    match text.char_indices().nth(kept) {
        Some((end, _)) => {
            format!("{}… [{} bytes, SHA-256 {}]", &text[..end], text.len(), sha256(text.as_bytes()))
        }
        None => text,
    }
}

/// Shortens arguments that are too large together: keeps each name, and replaces a value that exceeds its share by the
/// prefix, the size and the hash of its JSON (for a text: of the text itself).
fn shortened(fields: Map<String, Value>) -> Value {
    let count = fields.len();
    let share = (ARGUMENTS_KEPT / count.clamp(1, NAMES_KEPT)).clamp(BEGINNING_KEPT, TEXT_KEPT);
    let mut rest = fields.into_iter();
    let mut kept = Map::new();
    for (name, value) in rest.by_ref().take(NAMES_KEPT) {
        let value = match value {
            Value::String(text) => cut(text, share).into(),
            Value::Object(_) | Value::Array(_) => {
                let json = value.to_string();
                if json.len() > share { cut(json, share.saturating_sub(1)).into() } else { cut_texts(value) }
            }
            scalar => scalar,
        };
        kept.insert(cut(name, NAME_KEPT), value);
    }
    let rest: Map<String, Value> = rest.collect();
    if !rest.is_empty() {
        let json = Value::Object(rest).to_string();
        let more = count - NAMES_KEPT;
        kept.insert(format!("… {more} more arguments"), cut(json, BEGINNING_KEPT).into());
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests;
