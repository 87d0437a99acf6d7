//! What a pattern of directives says: text, directives, and blocks such as `~{ … ~}`.

use crate::lang::builtin::text::excerpt;
use crate::lang::error::{Error, Outcome};

/// How deep blocks may nest, and patterns from arguments.
pub const NESTING: usize = 32;

/// A part of a pattern.
pub enum Part<'p> {
    /// Text as it is.
    Text(&'p str),
    /// A directive.
    Directive(Directive),
    /// A directive that brackets others: the clauses between its `~;`, and how it was closed.
    Block(Directive, Vec<Vec<Part<'p>>>, Directive),
}

/// `~` with its parameters, its modifiers and its letter.
#[derive(Clone, Default)]
pub struct Directive {
    /// The letter, in lower case.
    pub letter: char,
    /// What stands before it, between commas.
    pub parameters: Vec<Parameter>,
    /// `:` stands before it.
    pub colon: bool,
    /// `@` stands before it.
    pub at: bool,
    /// The last clause of its block is the one for everything else: `~:;` stands before it.
    pub has_default: bool,
}

/// A parameter of a directive.
#[derive(Clone, Copy, PartialEq)]
pub enum Parameter {
    /// It was left out.
    Absent,
    /// A number.
    Number(i64),
    /// `'c`
    Character(char),
    /// `v`: the next argument.
    Next,
    /// `#`: how many arguments are left.
    Left,
}

/// A block that is still open.
struct Open<'p> {
    directive: Directive,
    clauses: Vec<Vec<Part<'p>>>,
}

/// The parts of a pattern.
///
/// # Errors
/// `FormatError` for blocks that are not closed and directives that do not exist.
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
                    return Err(wrong(pattern, "`~;` stands outside of `~[ … ~]`".to_string()).into());
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
                    let what = format!("`~{opener}` is closed by `~{closer}`, but `~{came}` came");
                    return Err(wrong(pattern, what).into());
                }
                clauses.push(std::mem::take(&mut parts));
                parts = clauses.remove(0);
                parts.push(Part::Block(opening, clauses, directive));
            }
            // A tilde before the end of a line hides it and the blanks that follow.
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

/// The letter that closes what another opens.
fn closer(opener: char) -> char {
    match opener {
        '{' => '}',
        '[' => ']',
        _ => ')',
    }
}

/// One directive behind its tilde, and what follows it.
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
                        return Err(wrong(pattern, format!("the sign `{next}` has no number behind it")).into());
                    }
                    // Numbers too large for the machine are too large for its memory.
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
                    // Hints for line breaks, of which there are none.
                    '_' | 'i' => Ok((Directive { letter: '_', ..directive }, rest)),
                    _ => Err(wrong(pattern, format!("`~{letter}` is no directive here"))
                        .suggest("there are `~a ~s ~d ~:d ~,2f ~x ~r ~p ~% ~~ ~{ ~} ~[ ~; ~] ~( ~)`; Clojure's own pattern is `(format \"%s is %.2f\" name n)`")
                        .into()),
                };
            }
        }
    }
}

/// What is wrong with a pattern.
#[cold]
pub fn wrong(pattern: &str, what: String) -> Error {
    Error::new("FormatError", format!("{what}, in the pattern `{}`", excerpt(pattern)))
}
