//! Templates with placeholders for arguments, such as `--max-count={count}`.
//!
//! A template is parsed before its variables are expanded and before any argument is known, so neither a secret nor an
//! argument can add a placeholder.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A text in which `{name}` is a placeholder for an argument; `{{` and `}}` are literal braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `${NAME}`, until variables are expanded.
    Variable(String),
    Argument(String),
}

/// The texts of arguments by name, for one instantiation of templates that belong together.
pub(in crate::server) type Round = HashMap<String, String>;

impl Template {
    /// Returns the text, if it consists of literal text only.
    pub(super) fn plain(&self) -> Option<String> {
        let mut plain = String::new();
        for piece in &self.pieces {
            let Piece::Text(text) = piece else { return None };
            plain.push_str(text);
        }
        Some(plain)
    }

    /// Returns the texts between the placeholders.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Parses a template.
    ///
    /// # Errors
    /// Returns a description of an unmatched brace.
    pub(in crate::server) fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}', '$']) {
            plain.push_str(&rest[..at]);
            rest = &rest[at..];
            let sign = &rest[..1];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                plain.push_str(sign);
                rest = &rest[2..];
            } else if sign == "}" {
                return Err("expected `{` before `}`, or `}}` for a literal brace".to_owned());
            } else if sign == "$" && !rest.starts_with("${") {
                plain.push_str(sign);
                rest = &rest[1..];
            } else {
                let end =
                    rest.find('}').ok_or_else(|| "expected `}` after `{`, or `{{` for a literal brace".to_owned())?;
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(match sign {
                    "$" => Piece::Variable(rest[..=end].to_owned()),
                    _ => Piece::Argument(rest[1..end].trim().to_owned()),
                });
                rest = &rest[end + 1..];
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Template { pieces })
    }

    /// Returns the template with its variables expanded.
    ///
    /// # Errors
    /// As for `expand`.
    pub(super) fn expanded(self, expand: &dyn Fn(&str) -> Result<String, String>) -> Result<Template, String> {
        let piece = |piece| match piece {
            Piece::Variable(text) => expand(&text).map(Piece::Text),
            other => Ok(other),
        };
        Ok(Template { pieces: self.pieces.into_iter().map(piece).collect::<Result<_, _>>()? })
    }

    /// Returns the arguments that have placeholders.
    pub(in crate::server) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// True if variables have not been expanded yet.
    pub(super) fn has_variables(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Variable(_)))
    }

    /// True for `{name}` alone.
    pub(in crate::server) fn is_one_argument(&self) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Argument(_)])
    }

    /// Returns the text before the first argument.
    pub(in crate::server) fn beginning(&self) -> String {
        let plain = self.pieces.iter().map_while(|piece| match piece {
            Piece::Text(text) | Piece::Variable(text) => Some(text.as_str()),
            Piece::Argument(_) => None,
        });
        plain.collect()
    }

    /// Returns the arguments before the first `=` in the text of the template, or all of them if it has none.
    pub(in crate::server) fn arguments_before_equals(&self) -> impl Iterator<Item = &str> {
        let has_equals = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Variable(text) => text.contains('='),
            Piece::Argument(_) => false,
        };
        let end = self.pieces.iter().position(has_equals).unwrap_or(self.pieces.len());
        self.pieces[..end].iter().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Returns the text with the arguments of a round filled in.
    pub(in crate::server) fn filled(&self, round: &Round) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Variable(text) => text.clone(),
            Piece::Argument(name) => round.get(name).cloned().unwrap_or_default(),
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// Returns the rounds in which templates with placeholders for those arguments are filled: none if one of the arguments
/// is not given, one per item of a list argument, and otherwise exactly one.
///
/// # Errors
/// Returns an error if more than one argument is a list.
pub(in crate::server) fn rounds<'n>(
    names: impl Iterator<Item = &'n str>,
    arguments: &Map<String, Value>,
) -> Result<Vec<Round>, String> {
    let mut round = Round::new();
    let mut list: Option<(&str, &[Value])> = None;
    for name in names {
        match arguments.get(name) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => match list {
                Some((other, _)) if other != name => {
                    return Err(format!("`{other}` and `{name}` are both lists, of which only one can be spread here"));
                }
                _ => list = Some((name, items)),
            },
            Some(value) => drop(round.insert(name.to_owned(), text(value))),
        }
    }
    let Some((name, items)) = list else { return Ok(vec![round]) };
    let with = |item: &Value| {
        let mut round = round.clone();
        round.insert(name.to_owned(), text(item));
        round
    };
    Ok(items.iter().map(with).collect())
}

/// Formats a value as an argument of a command or in an address: texts unchanged, other values as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(text: &str, arguments: Value) -> Result<Vec<String>, String> {
        let template = Template::parse(text)?.expanded(&|variable| Ok(format!("<{variable}>")))?;
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let rounds = rounds(template.arguments(), &arguments)?;
        Ok(rounds.iter().map(|round| template.filled(round)).collect())
    }

    #[test]
    fn arguments_take_their_places() {
        assert_eq!(filled("-n={n}", json!({"n": 5})), Ok(vec!["-n=5".to_owned()]));
        assert_eq!(filled("-n={n}", json!({"n": null})), Ok(vec![]), "what is not given leaves nothing");
        assert_eq!(
            filled("{a}:{a}", json!({"a": ["x", {"y": 1}]})),
            Ok(vec!["x:x".to_owned(), "{\"y\":1}:{\"y\":1}".to_owned()])
        );
        assert!(filled("{a}{b}", json!({"a": [1], "b": [2]})).expect_err("two lists").contains("`a` and `b`"));
    }

    #[test]
    fn neither_variables_nor_arguments_bring_places() {
        assert_eq!(filled("{a}", json!({"a": "{b} ${HOME}", "b": "no"})), Ok(vec!["{b} ${HOME}".to_owned()]));
        let template = Template::parse("${KEY}{a}").expect("right").expanded(&|_| Ok("{a}".to_owned())).expect("right");
        assert_eq!(template.filled(&Round::from([("a".to_owned(), "1".to_owned())])), "{a}1");
    }

    #[test]
    fn braces_have_partners() {
        assert_eq!(filled("{{\"a\": $5}}", json!({})), Ok(vec!["{\"a\": $5}".to_owned()]));
        assert!(filled("{a", json!({})).is_err());
        assert!(filled("a}", json!({})).is_err());
    }
}
