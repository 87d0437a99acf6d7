//! Syntax highlighting of programs and values, based on the lexer of the language.

use std::ops::Range;

use lispbox::lang::internal::lexer::{LexFault, Lexeme, Token, lex};
use lispbox::lang::internal::syntax;

use crate::paint::{Paint, Tone};

/// Maximum length in bytes of a text that is highlighted, so that a large paste does not delay the keyboard.
const LONGEST: usize = 100_000;

/// The pieces of a text that have a tone, in order; the text between them has none.
#[derive(Default)]
pub struct Tones(Vec<(Range<usize>, Tone)>);

impl Tones {
    /// Computes the tones of a program or a printed value.
    pub fn of(text: &str) -> Tones {
        let mut tones = Tones::default();
        if text.len() > LONGEST {
            return tones;
        }
        let (lexemes, rest) = match lex(text) {
            Ok(lexemes) => (lexemes, None),
            Err(error) => {
                let tone = match error.fault {
                    LexFault::UnterminatedString | LexFault::UnterminatedRegex => Some(Tone::Text),
                    LexFault::UnterminatedComment => Some(Tone::Quiet),
                    _ => None,
                };
                (error.before, tone.map(|tone| (error.span.start as usize..text.len(), tone)))
            }
        };
        let mut behind = 0;
        let mut after_open = false;
        for lexeme in &lexemes {
            let range = range(lexeme);
            tones.comment(text, behind..range.start);
            behind = range.end;
            if let Some(tone) = tone(lexeme.token, &text[range.clone()], after_open) {
                tones.0.push((range, tone));
            }
            after_open = matches!(lexeme.token, Token::ListOpen | Token::FunctionOpen);
        }
        match rest {
            Some(rest) => tones.0.push(rest),
            None => tones.comment(text, behind..text.len()),
        }
        tones
    }

    /// Between tokens, there are only white space and comments.
    fn comment(&mut self, text: &str, gap: Range<usize>) {
        if let Some(at) = text[gap.clone()].find([';', '#']) {
            self.0.push((gap.start + at..gap.end, Tone::Quiet));
        }
    }

    /// Highlights the bracket at `position` and its partner.
    pub fn with_brackets(mut self, text: &str, position: usize) -> Tones {
        for at in pair(text, position).into_iter().flatten() {
            // Brackets have no other tone.
            let place = self.0.partition_point(|(range, _)| range.start < at.start);
            self.0.insert(place, (at, Tone::Match));
        }
        self
    }

    /// Formats a part of the text in its colours.
    pub fn paint(&self, text: &str, part: Range<usize>, paint: Paint) -> String {
        let mut out = String::with_capacity(part.len() * 2);
        let mut behind = part.start;
        for (range, tone) in &self.0 {
            let (start, end) = (range.start.max(behind), range.end.min(part.end));
            if start >= end {
                continue;
            }
            out.push_str(&text[behind..start]);
            // Each line is coloured separately, so that a caller can split the result into lines.
            let lines: Vec<String> = text[start..end].split('\n').map(|line| paint.tone(*tone, line)).collect();
            out.push_str(&lines.join("\n"));
            behind = end;
        }
        out.push_str(&text[behind..part.end]);
        out
    }
}

fn range(lexeme: &Lexeme) -> Range<usize> {
    lexeme.span.start as usize..lexeme.span.end as usize
}

fn tone(token: Token, text: &str, is_head: bool) -> Option<Tone> {
    Some(match token {
        Token::String | Token::Regex | Token::Character | Token::SchemeCharacter => Tone::Text,
        Token::Number | Token::SymbolicNumber => Tone::Number,
        Token::Keyword | Token::True | Token::False => Tone::Keyword,
        Token::Name if matches!(text, "nil" | "true" | "false") => Tone::Keyword,
        Token::Name if is_head && syntax::all().any(|form| form.name == text) => Tone::Form,
        Token::Discard | Token::Tag | Token::Metadata => Tone::Quiet,
        _ => return None,
    })
}

/// The bracket at a position, or else before it, and its partner.
fn pair(text: &str, position: usize) -> Option<[Range<usize>; 2]> {
    if text.len() > LONGEST {
        return None;
    }
    let lexemes = lex(text).unwrap_or_else(|error| error.before);
    let is_bracket = |lexeme: &&Lexeme| lexeme.token.closer().is_some() || lexeme.token.is_closer();
    let brackets: Vec<&Lexeme> = lexemes.iter().filter(is_bracket).collect();
    let chosen = brackets
        .iter()
        .position(|lexeme| range(lexeme).contains(&position))
        .or_else(|| brackets.iter().position(|lexeme| range(lexeme).end == position))?;
    let mut open = Vec::new();
    for (at, lexeme) in brackets.iter().enumerate() {
        if lexeme.token.closer().is_some() {
            open.push(at);
            continue;
        }
        let opener = open.pop()?;
        if opener == chosen || at == chosen {
            let fits = brackets[opener].token.closer() == Some(lexeme.token);
            return fits.then(|| [range(brackets[opener]), range(lexeme)]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_stays_whatever_the_tones() {
        for text in ["(let [a \"x\ny\"] ; so\n  #_b :c)", "(str \"open", "#| a", "“", "(]", "#(inc %) nil #\"a\"", ""]
        {
            let tones = Tones::of(text).with_brackets(text, 0);
            assert_eq!(tones.paint(text, 0..text.len(), Paint::plain()), text);
        }
    }

    #[test]
    fn brackets_find_their_partners() {
        assert_eq!(pair("(a [b])", 0), Some([0..1, 6..7]));
        assert_eq!(pair("(a [b])", 6), Some([0..1, 6..7]));
        assert_eq!(pair("(a [b]) ", 7), Some([0..1, 6..7]));
        assert_eq!(pair("(a #{b}", 7), Some([3..5, 6..7]));
        assert_eq!(pair("(a", 0), None);
        assert_eq!(pair("(a ]", 4), None);
        assert_eq!(pair("\"(\" a", 2), None);
    }
}
