//! Rows as Python prints them: `[{'id': 1, 'ok': True, 'due': None}]`.
//!
//! Servers that return `str(rows)` send the literals of Python. A text is read as data only if all of it is one list or
//! mapping of literals that JSON has as well; anything else in it, such as `Decimal('1')` or `nan`, leaves it a text.

/// Maximum nesting depth.
const DEEPEST: u32 = 100;

/// Returns the JSON of a list or mapping in the notation of Python; `None` for any other text.
pub(super) fn json(text: &str) -> Option<String> {
    let text = text.trim();
    // The first item tells most other texts apart, such as a line of a log that begins with a bracket.
    let begins =
        |open: &str, next: &[char]| text.strip_prefix(open).is_some_and(|rest| rest.trim_start().starts_with(next));
    if !(begins("[", &['{', '(', '\'', '"', '[']) || begins("{", &['\'', '"'])) {
        return None;
    }
    let mut reader = Reader { rest: text, json: String::with_capacity(text.len()), depth: 0 };
    reader.value()?;
    reader.rest.is_empty().then_some(reader.json)
}

struct Reader<'t> {
    rest: &'t str,
    json: String,
    depth: u32,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }

    /// Takes a text if it comes next.
    fn takes(&mut self, text: &str) -> bool {
        self.skip_blanks();
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self) -> Option<()> {
        self.skip_blanks();
        match self.rest.chars().next()? {
            '[' => self.items('[', ']'),
            '(' => self.items('(', ')'),
            '{' => self.mapping(),
            quote @ ('\'' | '"') => self.text(quote),
            sign if sign == '-' || sign.is_ascii_digit() => self.number(),
            _ => {
                let (word, json) = [("True", "true"), ("False", "false"), ("None", "null")]
                    .into_iter()
                    .find(|(word, _)| self.rest.starts_with(word))?;
                self.rest = &self.rest[word.len()..];
                if self.rest.starts_with(|next: char| next.is_alphanumeric() || next == '_') {
                    return None;
                }
                self.json.push_str(json);
                Some(())
            }
        }
    }

    fn enter(&mut self) -> Option<()> {
        self.rest = &self.rest[1..];
        self.depth += 1;
        (self.depth <= DEEPEST).then_some(())
    }

    /// Reads a list or a tuple. A single item in parentheses needs a comma.
    fn items(&mut self, open: char, close: char) -> Option<()> {
        self.enter()?;
        self.json.push('[');
        let (mut count, mut has_comma) = (0, true);
        while !self.takes(close.encode_utf8(&mut [0; 4])) {
            if !has_comma {
                return None;
            }
            if count > 0 {
                self.json.push(',');
            }
            self.value()?;
            count += 1;
            has_comma = self.takes(",");
        }
        if open == '(' && count == 1 && !has_comma {
            return None;
        }
        self.json.push(']');
        self.depth -= 1;
        Some(())
    }

    fn mapping(&mut self) -> Option<()> {
        self.enter()?;
        self.json.push('{');
        let (mut is_first, mut has_comma) = (true, true);
        while !self.takes("}") {
            if !has_comma {
                return None;
            }
            if !std::mem::take(&mut is_first) {
                self.json.push(',');
            }
            self.skip_blanks();
            let quote = self.rest.chars().next().filter(|sign| matches!(sign, '\'' | '"'))?;
            self.text(quote)?;
            if !self.takes(":") {
                return None;
            }
            self.json.push(':');
            self.value()?;
            has_comma = self.takes(",");
        }
        self.json.push('}');
        self.depth -= 1;
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let end = self.rest.find(|sign: char| !matches!(sign, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
        let (number, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if rest.starts_with(|next: char| next.is_alphanumeric() || next == '_') {
            return None;
        }
        // The numbers of Python's notation that JSON has as well.
        serde_json::from_str::<serde_json::Number>(number).ok()?;
        self.json.push_str(number);
        self.rest = rest;
        Some(())
    }

    fn text(&mut self, quote: char) -> Option<()> {
        let mut text = String::new();
        let mut signs = self.rest[1..].char_indices();
        loop {
            let (at, sign) = signs.next()?;
            match sign {
                _ if sign == quote => {
                    self.rest = &self.rest[1 + at + quote.len_utf8()..];
                    break;
                }
                '\n' => return None,
                '\\' => text.push(match signs.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    sign @ ('\\' | '\'' | '"') => sign,
                    'x' => hexadecimal(&mut signs, 2)?,
                    'u' => hexadecimal(&mut signs, 4)?,
                    'U' => hexadecimal(&mut signs, 8)?,
                    _ => return None,
                }),
                sign => text.push(sign),
            }
        }
        self.json.push_str(&serde_json::to_string(&text).ok()?);
        Some(())
    }
}

/// Reads the number of a character.
fn hexadecimal(signs: &mut std::str::CharIndices<'_>, digits: usize) -> Option<char> {
    let mut number = 0;
    for _ in 0..digits {
        number = number * 16 + signs.next()?.1.to_digit(16)?;
    }
    char::from_u32(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_as_python_prints_them_are_data() {
        for (text, expected) in [
            ("[{'id': 1, 'ok': True, 'due': None}]", r#"[{"id":1,"ok":true,"due":null}]"#),
            ("[(1, 'a'), (-2.5, \"it's\")]", r#"[[1,"a"],[-2.5,"it's"]]"#),
            ("[('a', -2.5), (\"it's\", 1e3)]\n", r#"[["a",-2.5],["it's",1e3]]"#),
            ("{'a': [1, 2], 'b': {'c': ()}, }", r#"{"a":[1,2],"b":{"c":[]}}"#),
            (r"['a\n\x41\u00fc\'']", r#"["a\nAü'"]"#),
            ("[{'a': ('x',)}]", r#"[{"a":["x"]}]"#),
            ("[{'a': Decimal('1')}]", ""),
            ("[{'a': nan}]", ""),
            ("[{'a': ('x')}]", ""),
            ("[{'a': b'x'}]", ""),
            ("[{'a': 1_000}]", ""),
            ("[{1: 'a'}]", ""),
            ("[{'a': 1}] and more", ""),
            ("['a' 'b']", ""),
            ("['a', ]", r#"["a"]"#),
            ("[info] started", ""),
            ("[1, 2]", ""),
            ("'a'", ""),
            ("['a", ""),
            ("[{'a': Nonesuch}]", ""),
        ] {
            let expected = (!expected.is_empty()).then(|| expected.to_owned());
            assert_eq!(json(text), expected, "{text}");
        }
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(json(&deep), None);
    }
}
