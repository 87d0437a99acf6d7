//! Regular expressions as values, written in Java's syntax and run by the engines of the `regex` crate.
//!
//! Where the two syntaxes differ, or give one spelling different meanings, the expression is translated. The original
//! text is kept for printing and hashing.

use super::matching::{Compiled, SIZE, Unfit};
use super::simple::Simple;
use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

/// Maximum length of a source expression, in bytes.
pub const LONGEST: usize = 64 << 10;

/// A compiled expression and its source text. A clone shares the compiled form.
#[derive(Clone, Debug)]
pub struct Pattern {
    written: Arc<str>,
    compiled: Arc<Compiled>,
    simple: Option<Simple>,
}

/// An expression translated to the syntax of the `regex` crate, not compiled yet.
pub struct Draft<'w> {
    written: &'w str,
    translated: String,
}

impl<'w> Draft<'w> {
    /// Translates an expression from Java's syntax; `None` if it is longer than [`LONGEST`].
    pub fn new(written: &'w str) -> Option<Draft<'w>> {
        (written.len() <= LONGEST).then(|| Draft { written, translated: translate(written) })
    }

    /// Estimates the peak number of bytes that compiling it takes, including those that the result keeps.
    pub fn room(&self) -> u64 {
        // Bytes that the library's parser allocates per character, and per named Unicode class.
        const CHARACTER: usize = 512;
        const CLASS: usize = 8 << 10;
        let bytes = self.translated.as_bytes();
        let is_class = |pair: &&[u8]| pair[0] == b'\\' && b"pPwWdDsS".contains(&pair[1]);
        let classes = bytes.windows(2).filter(is_class).count();
        (2 * SIZE + bytes.len() * CHARACTER + classes * CLASS) as u64
    }

    /// Compiles it.
    ///
    /// # Errors
    /// Returns [`Unfit`] if the syntax is invalid or the expression exceeds a limit.
    pub fn compile(self) -> Result<Pattern, Unfit> {
        let compiled = Arc::new(Compiled::new(&self.translated)?);
        Ok(Pattern { written: self.written.into(), compiled, simple: Simple::of(&self.translated) })
    }

    /// Returns the cost of compiling it: an estimate of its number of states.
    pub fn weight(&self) -> u64 {
        weight(self.written)
    }
}

impl Pattern {
    /// Returns the source text of the expression.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Returns the compiled form, which runs the searches.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Returns the byte-scan form, if the expression is simple enough for one.
    pub fn simple(&self) -> Option<&Simple> {
        self.simple.as_ref()
    }
}

/// Estimates the number of NFA states of an expression.
fn weight(expression: &str) -> u64 {
    const CLASS: u64 = 64;
    let mut groups = vec![0_u64];
    let mut last = 0_u64;
    let mut rest = expression.bytes().peekable();
    while let Some(byte) = rest.next() {
        let atom = match byte {
            b'\\' => match rest.next() {
                Some(b'w' | b'W' | b'd' | b'D' | b's' | b'S' | b'p' | b'P') => CLASS,
                _ => 1,
            },
            b'[' => CLASS,
            b'.' => 8,
            b'(' => {
                groups.push(1);
                continue;
            }
            b')' if groups.len() > 1 => groups.pop().unwrap_or_default(),
            b'{' => {
                // The largest number between the braces counts.
                let mut number = 0_u64;
                let mut times = 1;
                while let Some(byte) = rest.next_if(|byte| *byte != b'}') {
                    number = match byte {
                        b'0'..=b'9' => number.saturating_mul(10).saturating_add(u64::from(byte - b'0')),
                        _ => 0,
                    };
                    times = times.max(number);
                }
                last = last.max(1).saturating_mul(times);
                last
            }
            _ => 1,
        };
        last = atom;
        if let Some(group) = groups.last_mut() {
            *group = group.saturating_add(atom);
        }
    }
    groups.into_iter().fold(1, u64::saturating_add).min(SIZE as u64)
}

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const BLANK: &str = r"\t\n\x0B\x0C\r\x20";
const HORIZONTAL: &str = r"\t\x20\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
const VERTICAL: &str = r"\n\x0B\x0C\r\x{85}\x{2028}\x{2029}";

/// Java's class names that the library does not know, or defines more widely.
const CLASSES: &[(&str, &str)] = &[
    ("Lower", "a-z"),
    ("Upper", "A-Z"),
    ("ASCII", r"\x00-\x7F"),
    ("Alpha", "A-Za-z"),
    ("Digit", DIGIT),
    ("Alnum", "0-9A-Za-z"),
    ("Punct", r"!-/:-@\[-`{-\~"),
    ("Graph", r"!-\~"),
    ("Print", r"\x20-\~"),
    ("Blank", r"\x20\t"),
    ("Cntrl", r"\x00-\x1F\x7F"),
    ("XDigit", "0-9A-Fa-f"),
    ("Space", BLANK),
    ("javaLowerCase", r"\p{Lowercase}"),
    ("javaUpperCase", r"\p{Uppercase}"),
    ("javaAlphabetic", r"\p{Alphabetic}"),
    ("javaLetter", r"\p{L}"),
    ("javaDigit", r"\p{Nd}"),
    ("javaWhitespace", r"\p{White_Space}"),
    ("IsLetter", r"\p{L}"),
    ("IsDigit", r"\p{Nd}"),
    ("IsPunctuation", r"\p{P}"),
    ("IsWhite_Space", r"\p{White_Space}"),
    ("javaLetterOrDigit", r"\p{L}\p{Nd}"),
    // Blocks of Unicode.
    ("InCombiningDiacriticalMarks", r"\x{300}-\x{36F}"),
    ("InBasicLatin", r"\x00-\x7F"),
    ("InGreek", r"\x{370}-\x{3FF}"),
    ("InCyrillic", r"\x{400}-\x{4FF}"),
    ("InHebrew", r"\x{590}-\x{5FF}"),
    ("InArabic", r"\x{600}-\x{6FF}"),
    ("InHiragana", r"\x{3040}-\x{309F}"),
    ("InKatakana", r"\x{30A0}-\x{30FF}"),
    ("InCJKUnifiedIdeographs", r"\x{4E00}-\x{9FFF}"),
];

/// Translates an expression to the syntax of the `regex` crate.
fn translate(written: &str) -> String {
    let mut out = String::with_capacity(written.len());
    let mut rest = written.chars().peekable();
    // With `(?U)` the shorthand classes are Unicode classes, as in the library.
    let mut unicode = false;
    while let Some(character) = rest.next() {
        match character {
            '\\' => escape(&mut out, &mut rest, unicode),
            '(' => {
                out.push('(');
                unicode |= flags(&mut out, &mut rest);
            }
            character => out.push(character),
        }
    }
    out
}

/// Copies the flags after `(?`, except those that the library does not support. Returns true if the flag for Unicode
/// classes is among them.
fn flags(out: &mut String, rest: &mut Peekable<Chars<'_>>) -> bool {
    let is_flag = |character: &char| "imsxudUc-".contains(*character);
    let mut ahead = rest.clone();
    if ahead.next() != Some('?') || !ahead.peek().is_some_and(is_flag) {
        return false;
    }
    rest.next();
    out.push('?');
    let kept = out.len();
    let mut unicode = false;
    while let Some(flag) = rest.next_if(is_flag) {
        match flag {
            'U' => unicode = true,
            'u' | 'd' | 'c' => {}
            flag => out.push(flag),
        }
    }
    if out.len() == kept && rest.peek() == Some(&')') {
        // No flag remains, but the library requires one here. `u` is the default and changes nothing.
        out.push('u');
    }
    unicode
}

/// Translates the escape sequence after a backslash.
fn escape(out: &mut String, rest: &mut Peekable<Chars<'_>>, unicode: bool) {
    let Some(character) = rest.next() else {
        out.push('\\');
        return;
    };
    match character {
        'd' if !unicode => class(out, DIGIT, false),
        'D' if !unicode => class(out, DIGIT, true),
        'w' if !unicode => class(out, WORD, false),
        'W' if !unicode => class(out, WORD, true),
        's' if !unicode => class(out, BLANK, false),
        'S' if !unicode => class(out, BLANK, true),
        'h' => class(out, HORIZONTAL, false),
        'H' => class(out, HORIZONTAL, true),
        'v' => class(out, VERTICAL, false),
        'V' => class(out, VERTICAL, true),
        'R' => {
            out.push_str(r"(?:\r\n|[");
            out.push_str(VERTICAL);
            out.push_str("])");
        }
        'Z' => out.push_str(r"\z"),
        'e' => out.push_str(r"\x1B"),
        'Q' => quotation(out, rest),
        'E' => {}
        'c' => {
            if let Some(control) = rest.next() {
                code(out, u32::from(control) ^ 64);
            }
        }
        '0' => octal(out, rest),
        'p' | 'P' => property(out, rest, character == 'P'),
        '<' | '>' => out.push(character),
        character => {
            out.push('\\');
            out.push(character);
        }
    }
}

fn class(out: &mut String, members: &str, negated: bool) {
    out.push_str(if negated { "[^" } else { "[" });
    out.push_str(members);
    out.push(']');
}

fn code(out: &mut String, code: u32) {
    out.push_str(&format!("\\x{{{code:X}}}"));
}

/// Translates a literal quotation, up to `\E`.
fn quotation(out: &mut String, rest: &mut Peekable<Chars<'_>>) {
    let mut quoted = String::new();
    while let Some(character) = rest.next() {
        if character == '\\' && rest.next_if_eq(&'E').is_some() {
            break;
        }
        quoted.push(character);
    }
    out.push_str(&regex_syntax::escape(&quoted));
}

/// Translates an octal escape: `\0` and up to three octal digits.
fn octal(out: &mut String, rest: &mut Peekable<Chars<'_>>) {
    let mut number = 0;
    for _ in 0..3 {
        let digit = rest.peek().and_then(|next| next.to_digit(8));
        match digit.filter(|digit| number * 8 + digit <= 0o377) {
            Some(digit) => {
                rest.next();
                number = number * 8 + digit;
            }
            None => break,
        }
    }
    code(out, number);
}

/// Translates a property class: `\p{Name}`, `\pL`, or its negation.
fn property(out: &mut String, rest: &mut Peekable<Chars<'_>>, negated: bool) {
    let mut ahead = rest.clone();
    if ahead.next() == Some('{') {
        let name: String = ahead.by_ref().take_while(|character| *character != '}').collect();
        if let Some((_, members)) = CLASSES.iter().find(|(known, _)| *known == name) {
            *rest = ahead;
            return class(out, members, negated);
        }
    }
    out.push_str(if negated { r"\P" } else { r"\p" });
}

#[cfg(test)]
mod tests {
    use super::translate;

    #[test]
    fn what_java_writes_otherwise_is_translated() {
        assert_eq!(translate(r"a+(\d)[\w-]\\d"), r"a+([0-9])[[0-9A-Za-z_]-]\\d");
        assert_eq!(translate(r"\Qa.b\E\Z"), r"a\.b\z");
        assert_eq!(translate(r"(?U)\w(?i:x)(?<n>y)"), r"(?u)\w(?i:x)(?<n>y)");
        assert_eq!(translate(r"\p{Alpha}\P{Digit}\p{L}\pN"), r"[A-Za-z][^0-9]\p{L}\pN");
        assert_eq!(translate(r"\0101\cA\<\e"), r"\x{41}\x{1}<\x1B");
        assert_eq!(translate("\\"), "\\");
    }
}
