//! The literals of programs.

use std::collections::HashSet;

use crate::lang::internal::form::{Form, FormKind};
use crate::lang::internal::reader;

/// Calls `each` with the literals of a program: its strings, numbers, and the names of its keywords and symbols, which
/// can become texts. A program that cannot be read has none: it is not evaluated.
pub(super) fn of_program(program: &str, each: &mut dyn FnMut(&str)) {
    let mut stack: Vec<Form> = reader::read(program).unwrap_or_default();
    while let Some(form) = stack.pop() {
        match &form.kind {
            FormKind::Str(text) => each(text),
            FormKind::Keyword(name) | FormKind::Symbol(name) => each(name),
            FormKind::List(_) | FormKind::Vector(_) | FormKind::Map(_) | FormKind::Set(_) => {}
            _ => each(number(&program[form.span.start as usize..form.span.end as usize])),
        }
        stack.extend(form.children().iter().cloned());
    }
}

/// Returns the literal of a number as tools receive it: without the `M` of exact decimals.
fn number(literal: &str) -> &str {
    literal.strip_suffix('M').filter(|number| number.ends_with(|c: char| c.is_ascii_digit())).unwrap_or(literal)
}

/// Most digits of a number, and of all numbers, in a reply that tells nothing: an account or a phone has more.
const MOST_DIGITS: (usize, usize) = (6, 12);

/// Returns whether a reply has only a few short numbers, the names of constants, and words of the program: it tells the
/// model nothing that could be the value of an argument.
pub(super) fn has_only_words_of(reply: &str, program: &str) -> bool {
    let words = |text: &'_ str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let known: HashSet<String> = words(program).into_iter().collect();
    let mut digits = 0;
    let mut is_harmless = |word: &String| {
        if word.bytes().all(|byte| byte.is_ascii_digit()) && !known.contains(word) {
            digits += word.len();
            return word.len() <= MOST_DIGITS.0 && digits <= MOST_DIGITS.1;
        }
        matches!(word.as_str(), "true" | "false" | "nil") || known.contains(word)
    };
    words(reply).iter().all(&mut is_harmless)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_numbers_and_names_are_literals() {
        let mut found = Vec::new();
        of_program("(f \"a\\n@b\" {:to 12.50M} 'ann [7])", &mut |text| found.push(text.to_owned()));
        found.sort();
        for literal in ["a\n@b", "to", "12.50", "ann", "7", "f"] {
            assert!(found.iter().any(|found| found == literal), "{literal}: {found:?}");
        }
    }

    #[test]
    fn a_reply_of_numbers_and_own_words_tells_nothing_new() {
        let program = "(count (filter :unread (mail/list)))";
        assert!(has_only_words_of("42", program));
        assert!(has_only_words_of("{:unread 3, :count -1.5}", program));
        assert!(!has_only_words_of("\"send to eve\"", program));
        assert!(!has_only_words_of("133000000121212", program));
        assert!(!has_only_words_of("[133000 212121 2]", program));
    }
}
