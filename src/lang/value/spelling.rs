//! Writing names, characters and regexes so that the reader reads them back, whatever they contain.
//!
//! `(keyword "a b")` is a valid keyword, but `:a b` would read as two forms. Such a name is written `#keyword "a b"`,
//! and `(symbol "1")` is written `#symbol "1"`.

use super::print::write_quoted;
use std::fmt::Write;

/// Writes the keyword of that name.
pub fn write_keyword(out: &mut String, name: &str) {
    if keyword_reads(name) {
        out.push(':');
        out.push_str(name);
    } else {
        out.push_str("#keyword ");
        write_quoted(out, name);
    }
}

/// Writes the symbol of that name.
pub fn write_symbol(out: &mut String, name: &str) {
    if symbol_reads(name) {
        out.push_str(name);
    } else {
        out.push_str("#symbol ");
        write_quoted(out, name);
    }
}

/// Writes a character with its backslash.
pub fn write_character(out: &mut String, c: char) {
    out.push('\\');
    match c {
        '\n' => out.push_str("newline"),
        ' ' => out.push_str("space"),
        '\t' => out.push_str("tab"),
        '\r' => out.push_str("return"),
        '\u{8}' => out.push_str("backspace"),
        '\u{c}' => out.push_str("formfeed"),
        // All whitespace and control characters are at most U+FFFF, so four digits suffice.
        c if c.is_control() || c.is_whitespace() => {
            let _ = write!(out, "u{:04x}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Writes a regex literal. Escapes a bare quote; inside `\Q…\E` it closes and reopens the quotation, because an escape
/// has no meaning there.
pub fn write_regex(out: &mut String, written: &str) {
    out.push_str("#\"");
    let mut quoting = false;
    let mut chars = written.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoting => out.push_str("\\E\\\"\\Q"),
            '"' => out.push_str("\\\""),
            '\\' => {
                out.push('\\');
                match chars.next() {
                    Some(escaped) => {
                        quoting = if quoting { escaped != 'E' } else { escaped == 'Q' };
                        out.push(escaped);
                    }
                    // Only an unterminated quotation can end with a backslash.
                    None => out.push_str("\\E"),
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn keyword_reads(name: &str) -> bool {
    let slashes = name == "/" || !(name.starts_with('/') || (name.ends_with('/') && !name.ends_with("//")));
    !name.is_empty() && slashes && !name.starts_with(':') && colons_read(name) && name.chars().all(is_part)
}

fn symbol_reads(name: &str) -> bool {
    let Some(first) = name.chars().next() else { return false };
    let number = name.strip_prefix(['+', '-']).unwrap_or(name);
    let number = number.strip_prefix('.').unwrap_or(number);
    let slashes = name == "/" || !(name.starts_with('/') || (name.ends_with('/') && !name.ends_with("//")));
    let heads = !matches!(first, '#' | '\'' | ':' | '\u{200c}' | '\u{200d}');
    heads
        && slashes
        && !number.starts_with(|c: char| c.is_ascii_digit())
        && !matches!(name, "nil" | "true" | "false")
        && colons_read(name)
        && name.chars().all(is_part)
}

fn colons_read(name: &str) -> bool {
    !name.ends_with(':') && !name.contains("::")
}

/// True for characters that the lexer accepts inside a name. `tests/language/printing.rs` checks that the two agree.
fn is_part(c: char) -> bool {
    match c {
        ',' | ';' | '"' | '^' | '@' | '`' | '~' | '(' | ')' | '[' | ']' | '{' | '}' | '\\' => false,
        _ if c.is_ascii() => c.is_ascii_graphic(),
        '«' | '»' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => false,
        '\u{2018}'..='\u{201f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => false,
        '\u{ff02}' | '\u{ff08}' | '\u{ff09}' | '\u{ff0c}' | '\u{ff1b}' => false,
        '\u{ff3b}' | '\u{ff3d}' | '\u{ff5b}' | '\u{ff5d}' => false,
        _ => !c.is_whitespace() && !c.is_control(),
    }
}
