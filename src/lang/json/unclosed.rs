//! Finds the unclosed bracket or quote in truncated JSON text.

use std::fmt;

/// A bracket or quote that is open at the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclosed {
    /// The bracket or quote.
    pub mark: char,
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Unclosed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unclosed { mark, line, column } = self;
        write!(formatter, "the `{mark}` at line {line}, column {column} is not closed")
    }
}

impl Unclosed {
    /// Returns the innermost bracket or quote that is open at the end of a text, in JSON with or without comments and
    /// single quotes. It takes two passes and constant memory, so that a text of brackets costs no more than any other.
    ///
    /// ```
    /// use lispbox::lang::Unclosed;
    /// let open = Unclosed::in_json("{\"a\": [1,\n  {\"b\": 2}").expect("cut off");
    /// assert_eq!(open.to_string(), "the `[` at line 1, column 7 is not closed");
    /// assert_eq!(Unclosed::in_json("[\"]\"] // ["), None);
    /// ```
    pub fn in_json(text: &str) -> Option<Unclosed> {
        let (depth, quote) = Unclosed::walk(text, |_, _| {});
        let mut innermost = None;
        // The last bracket that reaches the final depth is never closed; otherwise a later bracket would reach that
        // depth again.
        Unclosed::walk(text, |open, deep| {
            if deep == depth {
                innermost = Some(open);
            }
        });
        quote.or(innermost.filter(|_| depth > 0))
    }

    /// Calls `opened` for each opening bracket, with the depth after it. Returns the depth at the end, and an open
    /// quote, if any.
    fn walk(text: &str, mut opened: impl FnMut(Unclosed, usize)) -> (usize, Option<Unclosed>) {
        let mut depth = 0_usize;
        let (mut line, mut column) = (1, 0);
        let mut quote: Option<Unclosed> = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            column += 1;
            let here = Unclosed { mark: c, line, column };
            match (quote, c) {
                (Some(_), '\\') => {
                    if chars.next_if(|c| *c != '\n').is_some() {
                        column += 1;
                    }
                }
                (Some(begun), _) if begun.mark == c => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(here),
                (None, '/') if chars.peek() == Some(&'/') => {
                    while chars.next_if(|c| *c != '\n').is_some() {
                        column += 1;
                    }
                }
                (None, '/') if chars.peek() == Some(&'*') => {
                    let mut last = ' ';
                    column += 1;
                    chars.next();
                    for c in chars.by_ref() {
                        column += 1;
                        if c == '\n' {
                            (line, column) = (line + 1, 0);
                        }
                        if last == '*' && c == '/' {
                            break;
                        }
                        last = c;
                    }
                }
                (None, '[' | '{') => {
                    depth += 1;
                    opened(here, depth);
                }
                (None, ']' | '}') => depth = depth.saturating_sub(1),
                (None, _) => {}
            }
            if c == '\n' {
                (line, column) = (line + 1, 0);
            }
        }
        (depth, quote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str) -> Option<(char, usize, usize)> {
        Unclosed::in_json(text).map(|open| (open.mark, open.line, open.column))
    }

    #[test]
    fn the_innermost_open_bracket_is_found() {
        assert_eq!(at(""), None);
        assert_eq!(at("{\"a\": 1}"), None);
        assert_eq!(at("{\n  \"a\": [1, 2"), Some(('[', 2, 8)));
        assert_eq!(at("{\"ä\": \"b\\\""), Some(('"', 1, 7)));
        assert_eq!(at("// {\n/* [\n */ {'}': 1"), Some(('{', 3, 5)));
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![any::<i32>().prop_map(Into::into), "[\\[\\]{}\"'/* a\\\\]{0,6}".prop_map(Into::into)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map("[{}\"a]{0,3}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// A complete text leaves nothing open; every proper prefix of an array or object leaves something open.
        #[test]
        fn what_is_cut_off_is_open(value in prop::collection::vec(json(), 0..4), at in any::<prop::sample::Index>()) {
            let text = format!("{:#}", serde_json::Value::Array(value));
            prop_assert_eq!(Unclosed::in_json(&text), None);
            let cut = text.floor_char_boundary(at.index(text.len()));
            prop_assert_eq!(Unclosed::in_json(&text[..cut]).is_some(), cut > 0);
        }
    }
}
