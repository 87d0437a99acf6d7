//! Forms in which texts are compared: one for texts that mean the same, one for texts that look alike.

use std::borrow::Cow;
use std::iter;
use std::sync::LazyLock;

use unicode_security::confusable_detection::skeleton;

use lispbox_lang::internal::foreign_text::shows_nothing;

use super::tokens::{host, joined};

/// The skeletons of the ASCII characters, in lowercase, each with its length; empty for white space and control
/// characters.
static ASCII: LazyLock<[(u8, [u8; 7]); 128]> = LazyLock::new(|| {
    std::array::from_fn(|at| {
        let skeleton = folded(&char::from(at as u8).to_string());
        let mut bytes = [0; 7];
        bytes[..skeleton.len()].copy_from_slice(skeleton.as_bytes());
        (skeleton.len() as u8, bytes)
    })
});

/// Returns the forms in which a text of a source is found again: as it is, without the white space around it, as a
/// number without zeros at its end, and as a number without separators.
pub(super) fn given_forms(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let trimmed = text.trim();
    let without_space = (trimmed.len() < text.len() && !trimmed.is_empty()).then_some(trimmed);
    let texts = [Some(text), without_space, decimal(trimmed).map(|(number, _)| number)];
    texts.into_iter().flatten().map(same).chain(joined(trimmed).map(Cow::Owned))
}

/// Returns the forms in which a value that is to be sent may be among those of sources: exactly as it is, apart from
/// the case of addresses and hosts, and as an amount: 12.50 is 12.5. Three digits behind the point may be thousands.
pub(super) fn sent_forms(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let amount = decimal(text).filter(|(_, digits)| *digits <= 2).map(|(number, _)| Cow::Borrowed(number));
    iter::once(same(text)).chain(amount)
}

/// Returns the form in which a text is compared for being the same: e-mail addresses and hosts ignore case.
fn same(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    if let Some(host) = host(text) {
        let start = host.as_ptr() as usize - text.as_ptr() as usize;
        let (before, after) = (&text[..start], &text[start + host.len()..]);
        return Cow::Owned(format!("{before}{}{after}", host.to_ascii_lowercase()));
    }
    let is_name = !text.contains(char::is_whitespace) && (text.contains('@') || is_host(text));
    if is_name { Cow::Owned(text.to_ascii_lowercase()) } else { Cow::Borrowed(text) }
}

/// Returns a decimal without zeros at its end, and the number of digits that it has behind the point.
pub(super) fn decimal(text: &str) -> Option<(&str, usize)> {
    let (whole, fraction) = text.split_once('.')?;
    let is_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_decimal = is_digits(whole.strip_prefix('-').unwrap_or(whole)) && is_digits(fraction);
    is_decimal.then(|| (text.trim_end_matches('0').trim_end_matches('.'), fraction.len()))
}

/// Returns whether a text has the form of a host: labels of letters, digits and `-`, with letters in the last one.
fn is_host(text: &str) -> bool {
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    text.rsplit_once('.').is_some_and(|(_, last)| last.bytes().all(|byte| byte.is_ascii_alphabetic()))
        && text.split('.').all(is_label)
}

/// Returns the form in which texts are compared for looking alike: without case, white space, invisible characters and
/// accents that were composed, and with look-alike characters replaced (UTS #39, skeleton).
pub(super) fn alike(text: &str) -> Vec<u8> {
    if !text.is_ascii() {
        return folded(text).into_bytes();
    }
    let table = &*ASCII;
    let mut form = Vec::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        let (length, bytes) = table[usize::from(byte)];
        form.extend_from_slice(&bytes[..usize::from(length)]);
    }
    form
}

/// Returns the skeleton of the lowercase text; letters of another case may look like other letters.
fn folded(text: &str) -> String {
    let visible = |text: &str| -> String {
        let is_seen = |c: &char| !c.is_whitespace() && !shows_nothing(*c);
        text.chars().filter(is_seen).flat_map(char::to_lowercase).collect()
    };
    let compatible: String = unicode_normalization::UnicodeNormalization::nfkc(text).collect();
    visible(&skeleton(&visible(&compatible)).collect::<String>())
}

/// Returns a text without its percent-encoding, if it has any.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    Some(percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned())
}

/// Most boundaries at which a value is taken apart.
const MOST_BOUNDARIES: usize = 64;

/// Returns the places at which a value may have been joined: its ends, and where letters or digits meet other
/// characters. Of a value with too many of them, only the ends.
pub(super) fn boundaries(value: &str) -> Vec<usize> {
    let mut ends = vec![0];
    let mut before = None;
    for (at, c) in value.char_indices() {
        let kind = (c.is_alphanumeric(), is_list_separator(c) || c.is_whitespace());
        if before.is_some_and(|before| before != kind || kind == (false, false)) {
            ends.push(at);
        }
        before = Some(kind);
    }
    if !value.is_empty() {
        ends.push(value.len());
    }
    if ends.len() > MOST_BOUNDARIES { vec![0, value.len()] } else { ends }
}

fn is_list_separator(c: char) -> bool {
    matches!(c, ',' | ';' | '<' | '>' | '\n')
}

/// Returns whether a text separates the items of a list: `,` or `;` with blanks behind it, also behind the `>` of an
/// address, or the ` <` before one. Line breaks do not.
pub(super) fn is_separator(text: &str) -> bool {
    let end = text.strip_prefix('>').unwrap_or(text);
    let is_end = text == ">" || end.strip_prefix([',', ';']).is_some_and(|blanks| blanks.chars().all(|c| c == ' '));
    is_end || text == " <"
}

/// Returns whether two names look alike, also if one has an index, as `to[0]` has, or blanks and marks around it.
pub fn looks_like(one: &str, other: &str) -> bool {
    let form = |name: &str| -> String {
        let form = String::from_utf8(alike(name)).unwrap_or_default();
        let whole: String = form.chars().filter(|c| c.is_alphanumeric()).collect();
        let end = form.find(['[', '(', '.', ':']).filter(|end| *end > 0).unwrap_or(form.len());
        let start: String = form[..end].chars().filter(|c| c.is_alphanumeric()).collect();
        if start.is_empty() { whole } else { start }
    };
    form(one) == form(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_alike_but_not_the_same() {
        for (one, other) in [
            ("paypal.com", "p\u{430}yp\u{430}l.com"),
            ("ann@example.org", "ANN@Example.org"),
            ("ann@example.org", "a\u{200b}nn@exam\u{2060}ple.org"),
            ("example.org", "ｅｘａｍｐｌｅ．ｏｒｇ"),
            ("DE89 3704", "de893704"),
            ("microsoft", "rnicrosoft"),
        ] {
            assert_eq!(alike(one), alike(other), "{one} {other}");
        }
        assert_ne!(alike("ann"), alike("bob"));
        assert_ne!(same("paypal.com"), same("p\u{430}yp\u{430}l.com"));
        assert_eq!(same("Ann@Example.ORG"), "ann@example.org");
        assert_ne!(same(" ann@example.org"), "ann@example.org");
        assert_eq!(same("https://Example.org/Path"), "https://example.org/Path");
        assert_ne!(same("INV-A"), same("inv-a"));
    }

    #[test]
    fn names_with_indices_and_marks_look_like_the_name() {
        for name in ["to ", "to[0]", "to[]", "to.0", "to\u{200b}", "t\u{43e}", "TO", "_to", "to:", "\u{ff54}o", "(to)"]
        {
            assert!(looks_like("to", name), "{name:?}");
        }
        for name in ["total", "cc", "into", "tod", ""] {
            assert!(!looks_like("to", name), "{name:?}");
        }
    }
}
