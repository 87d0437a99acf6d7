//! Any text as a program: it is read, or the error points into the text.

use super::super::{evaluate, session, small_limits};
use lispbox::lang::Span;
use lispbox::lang::internal::form::{Form, FormKind};
use lispbox::lang::internal::reader::{Conditionals, ReadError, Reading, read, read_first};

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match read(&text) {
        Ok(forms) => forms.iter().for_each(|form| check_form(&text, form)),
        Err(error) => check_error(&text, &error),
    }
    let keeping = Reading { is_data: true, conditionals: Conditionals::Keep, ..Reading::default() };
    for reading in [Reading::default(), keeping] {
        match read_first(&text, &reading) {
            Ok(Some((form, end))) => {
                check_form(&text, &form);
                assert!(text.is_char_boundary(end), "the first form ends inside a character: {end}");
            }
            Ok(None) => {}
            Err(error) => check_error(&text, &error),
        }
    }
    // Forms that are read as data print as text that reads back as the same forms.
    let reply = evaluate(&mut session(), PRINTED, Some(&text), small_limits());
    let came = reply.value.unwrap_or_else(|| reply.failure.map(|failure| failure.error).unwrap_or_default());
    assert!(matches!(came.as_str(), "true" | ":unread" | "LimitExceeded"), "{came}");
}

/// Compares printed texts as well, since regexes and `##NaN` are not equal to anything.
const PRINTED: &str = "(let [form (try (read-string data) (catch Exception e :unread))]
  (if (= form :unread) :unread
    (let [text (pr-str form) back (read-string text)] (or (= text (pr-str back)) [form text back]))))";

fn check_span(text: &str, span: Span) {
    let (start, end) = (span.start as usize, span.end as usize);
    assert!(text.get(start..end).is_some(), "no part of the text: {span:?}");
}

fn check_error(text: &str, error: &ReadError) {
    check_span(text, error.span);
    error.related.iter().for_each(|(span, _)| check_span(text, *span));
    assert!(!error.message.is_empty());
}

/// Nesting is bounded by the reader, so plain recursion is safe.
fn check_form(text: &str, form: &Form) {
    check_span(text, form.span);
    form.metadata.iter().for_each(|metadata| check_form(text, metadata));
    match &form.kind {
        FormKind::List(items) | FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => {
            items.iter().for_each(|item| check_form(text, item));
        }
        FormKind::Tagged(_, tagged) => check_form(text, tagged),
        _ => {}
    }
}
