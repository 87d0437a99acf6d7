//! The forms in which foreign names are compared, and in which programs can write them.

use std::borrow::Cow;

/// Maximum length in bytes of the name of a keyword or a symbol. Longer texts remain strings.
pub const LONGEST_NAME: usize = 64 << 10;

/// Returns the canonical form of a name: lower case, without `-` and `_`. Names of arguments with equal canonical forms are
/// spellings of each other, both for programs and for policy rules.
pub fn canonical(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Returns the canonical form of the name of a tool or server: that of the [spelling](writable) that a program can write.
/// Names of arguments have none: a server may treat `to` and `to ` differently, and so do the guards of arguments.
pub fn canonical_tool(name: &str) -> String {
    canonical(&writable(name))
}

/// Returns a spelling of a foreign name that a program can write: `get weather` as `get-weather`.
pub fn writable(name: &str) -> Cow<'_, str> {
    if !name.contains(is_unwritable) {
        return Cow::Borrowed(name);
    }
    let words: Vec<&str> = name.split(is_unwritable).filter(|word| !word.is_empty()).collect();
    Cow::Owned(words.join("-"))
}

/// Returns whether a character of a foreign name ends a name in a program, or begins something else.
fn is_unwritable(c: char) -> bool {
    c.is_whitespace() || c.is_control() || ",;:\"^@`~()[]{}\\".contains(c)
}

/// True for names that the reader accepts as a keyword without a namespace. JSON keys of this form become keywords.
pub fn is_plain_keyword(name: &str) -> bool {
    let mut characters = name.chars();
    name.len() <= LONGEST_NAME
        && characters.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && characters.all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '!' | '?' | '*' | '+' | '$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_keywords() {
        assert!(is_plain_keyword("from_address") && is_plain_keyword("naïve"));
        assert!(!is_plain_keyword("") && !is_plain_keyword("first name") && !is_plain_keyword("1st"));
    }
}
