//! Parser for format patterns: text, directives, and blocks such as `~{ … ~}`.

use crate::builtin::text::excerpt;
use crate::error::{Error, Outcome};

/// Maximum nesting depth of blocks, and of patterns passed as arguments.
pub const NESTING: usize = 32;

/// A part of a pattern.
pub enum Part<'p> {
    /// Literal text.
    Text(&'p str),
    /// A directive.
    Directive(Directive),
    /// A block: the opening directive, the clauses separated by `~;`, and the closing directive.
    Block(Directive, Vec<Vec<Part<'p>>>, Directive),
}

/// A directive: `~` with its parameters, modifiers and letter.
#[derive(Clone, Default)]
pub struct Directive {
    /// The letter, in lower case.
    pub letter: char,
    /// The comma-separated parameters before the letter.
    pub parameters: Vec<Parameter>,
    /// True with the modifier `:`.
    pub colon: bool,
    /// True with the modifier `@`.
    pub at: bool,
    /// True if the last clause of the block is the default, introduced by `~:;`.
    pub has_default: bool,
}

/// A parameter of a directive.
#[derive(Clone, Copy, PartialEq)]
pub enum Parameter {
    /// An omitted parameter.
    Absent,
    /// A number.
    Number(i64),
    /// `'c`: a character.
    Character(char),
    /// `v`: takes the next argument.
    Next,
    /// `#`: the number of remaining arguments.
    Left,
}

/// A block that has not been closed yet.
struct Open<'p> {
    directive: Directive,
    clauses: Vec<Vec<Part<'p>>>,
}

/// Parses a pattern into parts.
///
/// # Errors
/// Returns `FormatError` if a block is not closed or a directive does not exist.
pub fn parse(pattern: &str) -> Outcome<Vec<Part<'_>>> {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut parts = Vec::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('~') {
        if at > 0 {
            parts.push(Part::Text(&rest[..at]));
        }
        let (directive, behind) = directive(&rest[at + 1..], pattern)?;
        rest = behind;
        match directive.letter {
            '{' | '[' | '(' => {
                if open.len() >= NESTING {
                    return Err(wrong(pattern, format!("directives nest more than {NESTING} deep")).into());
                }
                open.push(Open { directive, clauses: vec![std::mem::take(&mut parts)] });
            }
            ';' => {
                let Some(block) = open.last_mut() else {
                    return Err(wrong(pattern, "`~;` appears outside of `~[ … ~]`".to_string()).into());
                };
                block.clauses.push(std::mem::take(&mut parts));
                if directive.colon {
                    block.directive.has_default = true;
                }
            }
            '}' | ']' | ')' => {
                let Some(Open { directive: opening, mut clauses }) = open.pop() else {
                    return Err(wrong(pattern, format!("`~{}` closes nothing", directive.letter)).into());
                };
                let closer = closer(opening.letter);
                if directive.letter != closer {
                    let (opener, came) = (opening.letter, directive.letter);
                    let what = format!("`~{opener}` must be closed by `~{closer}`, got `~{came}`");
                    return Err(wrong(pattern, what).into());
                }
                clauses.push(std::mem::take(&mut parts));
                parts = clauses.remove(0);
                parts.push(Part::Block(opening, clauses, directive));
            }
            // A tilde before a line end skips the line end and the white space that follows.
            '\n' => {
                if directive.at {
                    parts.push(Part::Text("\n"));
                }
                rest = if directive.colon { rest } else { rest.trim_start() };
            }
            _ => parts.push(Part::Directive(directive)),
        }
    }
    if let Some(block) = open.last() {
        return Err(wrong(pattern, format!("`~{}` is not closed", block.directive.letter)).into());
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// Returns the letter that closes a block.
fn closer(opener: char) -> char {
    match opener {
        '{' => '}',
        '[' => ']',
        _ => ')',
    }
}

/// Parses the directive after a tilde; returns it with the rest of the text.
fn directive<'p>(text: &'p str, pattern: &str) -> Outcome<(Directive, &'p str)> {
    let mut directive = Directive::default();
    let mut rest = text;
    let mut parameter = Parameter::Absent;
    loop {
        let Some(next) = rest.chars().next() else {
            return Err(wrong(pattern, "it ends in the middle of a directive".to_string())
                .suggest("a tilde itself is `~~`")
                .into());
        };
        let behind = &rest[next.len_utf8()..];
        rest = behind;
        match next {
            '+' | '-' | '0'..='9' => {
                let length = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let written = &text[text.len() - behind.len() - 1..text.len() - behind.len() + length];
                parameter = match (written.parse(), next) {
                    (Ok(number), _) => Parameter::Number(number),
                    (Err(_), '+' | '-') if length == 0 => {
                        return Err(wrong(pattern, format!("the sign `{next}` has no number after it")).into());
                    }
                    // A number that overflows is clamped; its width exceeds the memory limit anyway.
                    (Err(_), '-') => Parameter::Number(i64::MIN),
                    (Err(_), _) => Parameter::Number(i64::MAX),
                };
                rest = &behind[length..];
            }
            '\'' => {
                let character = behind.chars().next().unwrap_or(' ');
                parameter = Parameter::Character(character);
                rest = &behind[character.len_utf8().min(behind.len())..];
            }
            'v' | 'V' => parameter = Parameter::Next,
            '#' => parameter = Parameter::Left,
            ',' => directive.parameters.push(std::mem::replace(&mut parameter, Parameter::Absent)),
            ':' => directive.colon = true,
            '@' => directive.at = true,
            letter => {
                if parameter != Parameter::Absent {
                    directive.parameters.push(parameter);
                }
                directive.letter = letter.to_ascii_lowercase();
                return match directive.letter {
                    'a' | 's' | 'd' | 'b' | 'o' | 'x' | 'r' | 'p' | 'c' | 'f' | 'e' | 'g' | '$' | '%' | '&' | '|'
                    | '~' | '*' | '?' | '^' | 't' | 'w' | '{' | '}' | '[' | ']' | '(' | ')' | ';' | '\n' => {
                        Ok((directive, rest))
                    }
                    // Pretty-printing directives for line breaks and indentation have no effect.
                    '_' | 'i' => Ok((Directive { letter: '_', ..directive }, rest)),
                    _ => Err(wrong(pattern, format!("`~{letter}` is not a directive here"))
                        .suggest("supported: `~a ~s ~d ~:d ~,2f ~x ~r ~p ~% ~~ ~{ ~} ~[ ~; ~] ~( ~)`; Clojure's own pattern is `(format \"%s is %.2f\" name n)`")
                        .into()),
                };
            }
        }
    }
}

/// Builds a `FormatError` that quotes the pattern.
#[cold]
pub fn wrong(pattern: &str, what: String) -> Error {
    Error::new("FormatError", format!("{what}, in the pattern `{}`", excerpt(pattern)))
}
