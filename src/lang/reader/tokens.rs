//! Error messages for text that is not a token: unterminated strings, unexpected characters, syntax of other languages.

use super::brackets;
use super::place::Lines;
use super::{ReadError, excerpt, text_of};
use crate::lexer::{LexError, LexFault, Token};
use crate::span::Span;

/// Builds the message for the first lexical error of a text.
pub(super) fn explain(source: &str, error: &LexError) -> ReadError {
    match error.fault {
        LexFault::UnterminatedString => unterminated(source, error, "UnterminatedString", "string", "`\"`"),
        LexFault::UnterminatedRegex => unterminated(source, error, "UnterminatedString", "regex", "`\"`"),
        LexFault::UnterminatedComment => unterminated(source, error, "UnterminatedComment", "block comment", "`|#`"),
        LexFault::MarkdownFence => {
            ReadError::new("MarkdownFence", error.span, "a Markdown fence (three backquotes) is not part of a program")
                .suggest("send the program alone, without the fence lines around it")
        }
        LexFault::UnknownDispatch => dispatch(source, error),
        LexFault::UnexpectedCharacter => character(source, error),
    }
}

fn unterminated(source: &str, error: &LexError, code: &'static str, what: &str, end: &str) -> ReadError {
    let lines = Lines::new(source);
    let place = lines.place(error.span.start);
    let message = format!("the {what} opened at {place} is not closed: {end} is missing");
    let mut report = ReadError::new(code, error.span, message);
    report.incomplete = brackets::only_unclosed(&error.before);
    if error.fault == LexFault::UnterminatedComment {
        return report;
    }
    // If a quote is missing, every later string is inverted. The first string that continues on the next line and has a
    // name attached to its end is where that began.
    let flipped = error.before.windows(2).find(|pair| {
        matches!(pair[0].token, Token::String | Token::Regex)
            && pair[0].span.end == pair[1].span.start
            && matches!(pair[1].token, Token::Name | Token::Number | Token::Keyword | Token::Character)
            && text_of(source, pair[0].span).contains('\n')
    });
    let last = error.before.last().filter(|last| {
        matches!(last.token, Token::String | Token::Regex)
            && last.span.end == error.span.start
            && text_of(source, last.span).contains('\n')
    });
    if let Some(string) = flipped.map(|pair| pair[0]).or(last.copied()) {
        let place = lines.place(string.span.start);
        report.related.push((string.span, "this string runs over the end of its line".to_string()));
        return report.suggest(format!(
            "perhaps the closing quote of the string opened at {place} is missing: it runs over the end of its line"
        ));
    }
    report
}

fn dispatch(source: &str, error: &LexError) -> ReadError {
    let behind = &source[error.span.end as usize..];
    let shown = text_of(source, error.span);
    match behind.chars().next() {
        Some(next) if !next.is_whitespace() => {
            let shown = format!("{shown}{next}");
            let span = error.span.to(Span::new(error.span.end as usize, error.span.end as usize + next.len_utf8()));
            let report = |code, message: String| ReadError::new(code, span, message);
            match next {
                '=' => report("UnsupportedSyntax", "`#=` is not supported: reading never evaluates".to_string()),
                '<' => {
                    report("UnsupportedSyntax", "`#<` begins a printed object, which cannot be read back".to_string())
                }
                ';' => report("UnsupportedSyntax", "`#;` is not supported".to_string())
                    .suggest("`#_` leaves out the next form, `;` begins a comment"),
                '[' => report("UnexpectedCharacter", format!("`{shown}` is not syntax of this language"))
                    .suggest("a vector is written `[1 2 3]`"),
                _ => report("UnexpectedCharacter", format!("`{shown}` is not syntax of this language")),
            }
        }
        _ => ReadError::new("CommentSyntax", error.span, format!("`{shown}` does not begin a comment"))
            .suggest("comments begin with `;`"),
    }
}

fn character(source: &str, error: &LexError) -> ReadError {
    let Some(found) = text_of(source, error.span).chars().next() else {
        return ReadError::new("UnexpectedCharacter", error.span, "unexpected end of the program");
    };
    let code = "UnexpectedCharacter";
    let number = u32::from(found);
    let plain = match found {
        '“' | '”' | '„' | '‟' | '«' | '»' | '＂' => Some('"'),
        '‘' | '’' | '‚' | '‛' => Some('\''),
        '（' => Some('('),
        '）' => Some(')'),
        '［' => Some('['),
        '］' => Some(']'),
        '｛' => Some('{'),
        '｝' => Some('}'),
        '，' => Some(','),
        '；' => Some(';'),
        _ => None,
    };
    match plain {
        Some('"') => ReadError::new(code, error.span, format!("unexpected character `{found}` (U+{number:04X})"))
            .suggest("strings are written in plain double quotes: `\"text\"`"),
        Some('\'') => ReadError::new(code, error.span, format!("unexpected character `{found}` (U+{number:04X})"))
            .suggest("write plain `'` to quote a form, plain `\"` around a string"),
        Some(plain) => ReadError::new(code, error.span, format!("unexpected character `{found}` (U+{number:04X})"))
            .suggest(format!("write plain `{plain}`")),
        None if found == '\\' => {
            let message = "`\\` at the end of the program is incomplete: a character is written `\\a`, `\\space`";
            ReadError::new("InvalidCharacter", error.span, message)
        }
        None if found.is_control() => {
            ReadError::new(code, error.span, format!("unexpected control character U+{number:04X}"))
        }
        None => ReadError::new(code, error.span, format!("unexpected invisible character U+{number:04X}"))
            .suggest("delete it; inside a string it may be written as `\\u` and four hexadecimal digits"),
    }
}

/// Returns the text in single quotes that contains the offset, if it looks like a string of another language.
pub(super) fn single_quoted(source: &str, offset: u32) -> Option<String> {
    let before = source.get(..offset as usize)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let open = line_start + before[line_start..].rfind('\'')?;
    let behind = source[open + 1..].lines().next()?;
    let close = behind.find('\'')?;
    let is_edge = |c: char| c.is_whitespace() || "()[]{},".contains(c);
    let looks_so = open + 1 + close >= offset as usize
        && before[..open].chars().next_back().is_none_or(is_edge)
        && behind[close + 1..].chars().next().is_none_or(is_edge);
    looks_so.then(|| excerpt(&behind[..close]))
}
