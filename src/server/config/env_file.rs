//! Reads the variables of an `envFile`, as VS Code and Docker do: literally, without any expansion.
//!
//! Lines that VS Code and Docker read alike are read in that way. Of the others, VS Code's reading counts, since `envFile`
//! is its key: quotes around a value do not belong to it, and `export` does not belong to a name. Only a `#` right after
//! other characters is part of a value here, as it is for Docker: it occurs in passwords. No error and no note shows any
//! part of a line.

use std::collections::BTreeMap;
use std::path::Path;

/// Maximum size of the file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Maximum number of lines that a note names.
const NAMED: usize = 5;

/// The variables of a file, and the numbers of the lines that define none.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Variables {
    pub(super) values: BTreeMap<String, String>,
    skipped: Vec<usize>,
}

impl Variables {
    /// Describes the lines that define no variable, as a clause.
    pub(super) fn note(&self) -> Option<String> {
        let named: Vec<String> = self.skipped.iter().take(NAMED).map(usize::to_string).collect();
        let (lines, more) = (named.join(", "), self.skipped.len().saturating_sub(NAMED));
        match self.skipped.len() {
            0 => None,
            1 => Some(format!("line {lines} was skipped: expected `NAME=VALUE`")),
            _ if more == 0 => Some(format!("lines {lines} were skipped: expected `NAME=VALUE`")),
            _ => Some(format!("lines {lines} and {more} more were skipped: expected `NAME=VALUE`")),
        }
    }
}

/// Reads a file.
///
/// # Errors
/// Returns a clause that names the line, but shows nothing of it.
pub(super) fn read(path: &Path) -> Result<Variables, String> {
    if std::fs::metadata(path).map_err(|problem| problem.to_string())?.len() > LARGEST {
        return Err(format!("it is larger than {} KiB", LARGEST >> 10));
    }
    parse(&std::fs::read(path).map_err(|problem| problem.to_string())?)
}

/// Parses the content of a file.
fn parse(bytes: &[u8]) -> Result<Variables, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut variables = Variables::default();
    let mut rest = bytes;
    for number in 1.. {
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let line = rest[..end.unwrap_or(rest.len())].trim_ascii();
        if !line.is_empty() && line[0] != b'#' {
            let line = std::str::from_utf8(line).map_err(|_| format!("line {number} is not UTF-8"))?;
            if line.contains('\0') {
                return Err(format!("line {number} contains a zero byte, which no variable can"));
            }
            match variable(line.trim()) {
                Some((name, value)) => drop(variables.values.insert(name, value)),
                None => variables.skipped.push(number),
            }
        }
        let Some(end) = end else { break };
        let is_pair = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + 1 + usize::from(is_pair)..];
    }
    Ok(variables)
}

/// Returns the variable that a line defines.
fn variable(line: &str) -> Option<(String, String)> {
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => line,
    };
    let separator = outside_quotes(line, |_, sign| sign == '=' || sign == ':')?;
    let (name, value) = (line[..separator].trim_end(), line[separator + 1..].trim());
    // A space before a `#` tells a comment from a value, such as a password.
    let begins_comment = |at: usize, sign| {
        sign == '#' && value[..at].chars().next_back().is_none_or(|before| before.is_whitespace() || is_quote(before))
    };
    let value = outside_quotes(value, begins_comment).map_or(value, |at| value[..at].trim_end());
    (!name.is_empty()).then(|| (name.to_owned(), unquoted(value)))
}

fn is_quote(sign: char) -> bool {
    matches!(sign, '"' | '\'' | '`')
}

/// Returns the position of the first character that `is_wanted`, which is not called for those between two quotes. A
/// quote after a backslash does not end a quotation, and one without an end quotes the rest.
fn outside_quotes(text: &str, is_wanted: impl Fn(usize, char) -> bool) -> Option<usize> {
    let (mut open, mut before) = (None, ' ');
    for (at, sign) in text.char_indices() {
        match open {
            Some(quote) if sign == quote && before != '\\' => open = None,
            Some(_) => {}
            None if is_quote(sign) => open = Some(sign),
            None if is_wanted(at, sign) => return Some(at),
            None => {}
        }
        before = sign;
    }
    None
}

/// Removes the quotes around a value. Between double quotes, `\n` and `\r` are line breaks; nothing else is replaced.
fn unquoted(value: &str) -> String {
    let quote = value.chars().next().filter(|sign| is_quote(*sign));
    let inside = quote.and_then(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    match inside {
        Some(inside) if quote == Some('"') => inside.replace("\\n", "\n").replace("\\r", "\r"),
        Some(inside) => inside.to_owned(),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that VS Code and Docker read, each `None` if it finds no variable or reports an error.
    struct Case {
        line: &'static str,
        code: Option<&'static str>,
        docker: Option<&'static str>,
        ours: Option<&'static str>,
    }

    const fn alike(line: &'static str, value: &'static str) -> Case {
        Case { line, code: Some(value), docker: Some(value), ours: Some(value) }
    }

    /// All define `A`. The readings are those of VS Code's `base/common/envfile.ts` and Docker's `pkg/kvfile`.
    const CASES: &[Case] = &[
        alike("A=1", "1"),
        alike("A=", ""),
        alike("  A=1", "1"),
        alike("A=correct-horse battery", "correct-horse battery"),
        alike("A=pa$$w0rd", "pa$$w0rd"),
        alike("A=abc$xyz", "abc$xyz"),
        alike("A=postgres://u:p${x}@h/db?a=b", "postgres://u:p${x}@h/db?a=b"),
        alike("A={\"a\":1}", "{\"a\":1}"),
        alike("A=C:\\Users\\new", "C:\\Users\\new"),
        alike("A=it's # one", "it's # one"),
        alike("A=YWJj==", "YWJj=="),
        alike("A=a\\nb", "a\\nb"),
        alike("A=\"a\" and \"b\"x", "\"a\" and \"b\"x"),
        Case { line: "A=\"pa$word\"", code: Some("pa$word"), docker: Some("\"pa$word\""), ours: Some("pa$word") },
        Case { line: "A='a b'", code: Some("a b"), docker: Some("'a b'"), ours: Some("a b") },
        Case { line: "A=\"a\\nb\"", code: Some("a\nb"), docker: Some("\"a\\nb\""), ours: Some("a\nb") },
        Case { line: "A=1 # one", code: Some("1"), docker: Some("1 # one"), ours: Some("1") },
        Case { line: "A=\"a # b\" # c", code: Some("a # b"), docker: Some("\"a # b\" # c"), ours: Some("a # b") },
        Case { line: "A=abc#def", code: Some("abc"), docker: Some("abc#def"), ours: Some("abc#def") },
        Case { line: "A=1  ", code: Some("1"), docker: Some("1  "), ours: Some("1") },
        Case { line: "A = 1", code: Some("1"), docker: None, ours: Some("1") },
        Case { line: "export A=1", code: Some("1"), docker: None, ours: Some("1") },
        Case { line: "A: 1", code: Some("1"), docker: None, ours: Some("1") },
        Case { line: "source ./x.sh", code: None, docker: None, ours: None },
        Case { line: "=1", code: None, docker: None, ours: None },
    ];

    fn read(text: &str) -> Variables {
        parse(text.as_bytes()).expect("readable")
    }

    #[test]
    fn lines_are_read_as_vs_code_and_docker_read_them() {
        for Case { line, code, docker, ours } in CASES {
            let value = read(line).values.get("A").cloned();
            assert_eq!(value.as_deref(), *ours, "{line}");
            assert!(code != docker || ours == code, "{line}: both agree");
            assert!(ours == code || ours == docker, "{line}: as one of them");
        }
    }

    #[test]
    fn a_whole_file() {
        let text = "\u{feff}# first\r\nA=1\r\n\n  # B=2\nmy.key-x=J\u{fc}rgen\nA=3\rnonsense\nC='un'closed'";
        let read = read(text);
        let values: Vec<_> = read.values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(values, [("A", "3"), ("C", "un'closed"), ("my.key-x", "J\u{fc}rgen")]);
        assert_eq!(read.note().as_deref(), Some("line 7 was skipped: expected `NAME=VALUE`"));
        assert_eq!(parse(b""), Ok(Variables::default()));
        assert_eq!(parse(b"A=1\n# \xff\nB=\xff"), Err("line 3 is not UTF-8".to_owned()));
        assert_eq!(parse(b"A=a\0b"), Err("line 1 contains a zero byte, which no variable can".to_owned()));
    }
}
