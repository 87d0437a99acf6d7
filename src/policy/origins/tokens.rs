//! Finds the parts of a text that identify someone or something: e-mail addresses, URLs and their hosts, numbers of
//! phones and accounts, paths of files, amounts, and other words with digits.

use super::urls::{authority_of_source, without_port};

/// Characters that separate words.
const DELIMITERS: &[u8] = b" \t\n\r\x0c<>()[]{}\"'`,;|*";

/// Fewest digits of a number whose groups are joined: a phone or an account.
const LONG_NUMBER: usize = 7;

/// Fewest characters of a number, or of another word with a digit, without a decimal point.
const SHORTEST_NUMBER: usize = 3;

const DIGIT: u16 = 1;
const LETTER: u16 = 1 << 1;
const LOWERCASE: u16 = 1 << 2;
const AT: u16 = 1 << 3;
const DOT: u16 = 1 << 4;
const SLASH: u16 = 1 << 5;
const PAIR: u16 = 1 << 6;
const OTHER: u16 = 1 << 7;
const DELIMITER: u16 = 1 << 8;

/// The properties of the bytes.
static PROPERTIES: [u16; 256] = properties();

const fn properties() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'A'..=b'Z' => LETTER,
            b'a'..=b'z' => LETTER | LOWERCASE,
            b'@' => AT,
            b'.' => DOT,
            b'/' | b'\\' => SLASH,
            b'=' | b':' | b'&' | b'?' | b'#' => PAIR,
            b'+' | b'-' => 0,
            128.. => LETTER | OTHER,
            _ => OTHER,
        };
        byte += 1;
    }
    let mut at = 0;
    while at < DELIMITERS.len() {
        table[DELIMITERS[at] as usize] = DELIMITER;
        at += 1;
    }
    table
}

/// The properties of a word that decide whether it is a token.
#[derive(Clone, Copy)]
struct Traits(u16);

impl Traits {
    fn of(word: &str) -> Traits {
        Traits(word.bytes().fold(0, |traits, byte| traits | PROPERTIES[usize::from(byte)]))
    }

    fn has(self, any: u16) -> bool {
        self.0 & any != 0
    }

    /// Returns whether a word may be a group of a longer number, such as `3704` of an IBAN.
    fn is_group(self) -> bool {
        self.has(DIGIT) && !self.has(LOWERCASE | AT | PAIR | OTHER)
    }
}

/// Calls `each` with every token of a text, in its order; a token may contain others.
pub(super) fn tokens(text: &str, each: &mut dyn FnMut(&str)) {
    let mut number = Number::default();
    let bytes = text.as_bytes();
    let mut start = 0;
    while start < bytes.len() {
        let mut traits = 0;
        let mut end = start;
        while let Some(byte) = bytes.get(end) {
            let properties = PROPERTIES[usize::from(*byte)];
            if properties == DELIMITER {
                break;
            }
            traits |= properties;
            end += 1;
        }
        // Most words of a text are plain.
        if Traits(traits).has(DIGIT | AT | DOT | SLASH | PAIR) {
            let word = text[start..end].trim_matches(|c| matches!(c, '.' | ':' | '!' | '?' | '='));
            let traits = Traits::of(word);
            if traits.has(DIGIT | AT | DOT | SLASH | PAIR) {
                token(word, traits, each);
            }
            number.add(word, traits, each);
        } else if end > start {
            number.end(each);
        }
        if end > start && !matches!(bytes.get(end), Some(b' ' | b'(' | b')')) {
            number.end(each);
        }
        start = end + 1;
    }
    number.end(each);
}

/// Reports a word, and the tokens within it.
fn token(word: &str, traits: Traits, each: &mut dyn FnMut(&str)) {
    let word = word.strip_prefix("mailto:").unwrap_or(word);
    if word.is_empty() {
        return;
    }
    if let Some(host) = host(word) {
        each(word);
        match authority_of_source(word).filter(|authority| without_port(authority).is_some()) {
            Some(authority) => each(&authority),
            None => each(host),
        }
        if let Some((_, query)) = word.split_once(['?', '#']) {
            pieces(query, each);
        }
        return;
    }
    if let Some((user, domain)) = word.rsplit_once('@').filter(|(user, domain)| !user.is_empty() && !domain.is_empty())
    {
        each(word);
        // With its `@`, since addresses of one domain belong to different people.
        each(&format!("@{domain}"));
        if user.contains(['=', ':']) {
            pieces(word, each);
        }
        return;
    }
    let is_number = traits.has(DIGIT) && (word.len() >= SHORTEST_NUMBER || traits.has(DOT));
    let is_token = is_number || traits.has(SLASH) || traits.has(DOT) && traits.has(LETTER);
    if is_token {
        let amount = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '\\');
        each(word);
        if amount != word && !amount.is_empty() {
            each(amount);
        }
    }
    // The host of a host with a port is another one alone.
    if traits.has(PAIR) && without_port(word).is_none() {
        pieces(word, each);
    }
}

/// Reports the tokens among the parts of a query or of a pair such as `id=7`.
fn pieces(text: &str, each: &mut dyn FnMut(&str)) {
    for piece in text.split(['=', ':', '&', '?', '#']).filter(|piece| piece.len() < text.len() && !piece.is_empty()) {
        token(piece, Traits::of(piece), each);
    }
}

/// Returns the host of a URL of a source, without the user and the port.
pub(super) fn host(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
        return None;
    }
    // A browser takes a backslash for a slash.
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    Some(host).filter(|host| !host.is_empty())
}

/// Joins the groups of a number that are separated by blanks.
#[derive(Default)]
struct Number {
    joined: String,
    digits: usize,
    groups: usize,
}

impl Number {
    fn add(&mut self, word: &str, traits: Traits, each: &mut dyn FnMut(&str)) {
        if !traits.is_group() {
            self.end(each);
            return;
        }
        self.joined.extend(compact(word));
        self.digits += word.bytes().filter(u8::is_ascii_digit).count();
        let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        self.groups += if is_plain { 1 } else { 2 };
        if self.joined.len() > 64 {
            self.end(each);
        }
    }

    fn end(&mut self, each: &mut dyn FnMut(&str)) {
        if self.groups > 1 && self.digits >= LONG_NUMBER {
            each(&self.joined);
        }
        if self.groups > 0 {
            *self = Number::default();
        }
    }
}

/// Returns the letters and digits of a text.
fn compact(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(char::is_ascii_alphanumeric)
}

/// Returns a number whose groups are separated, such as an IBAN or a phone number, without the separators.
pub(super) fn joined(text: &str) -> Option<String> {
    let is_separator = |byte| matches!(byte, b' ' | b'+' | b'-' | b'.' | b'(' | b')' | b'/');
    let is_number = text.len() <= 64
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || is_separator(byte))
        && text.bytes().any(is_separator)
        && text.bytes().filter(u8::is_ascii_digit).count() >= LONG_NUMBER;
    is_number.then(|| compact(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        tokens(text, &mut |token| found.push(token.to_owned()));
        found
    }

    #[test]
    fn addresses_urls_numbers_paths_and_identifiers_are_tokens() {
        for (text, expected) in [
            (
                "Write to Ann <ann@example.org>, or mailto:bob@x.org.",
                vec!["ann@example.org", "@example.org", "bob@x.org", "@x.org"],
            ),
            (
                "see https://me:pw@pay.example.com:8443/a?id=INV-20394&x=1 now",
                vec!["https://me:pw@pay.example.com:8443/a?id=INV-20394&x=1", "pay.example.com:8443", "INV-20394"],
            ),
            (
                "to DE89 3704 0044 0532 0130 00, please",
                vec!["DE89", "3704", "0044", "0532", "0130", "DE89370400440532013000"],
            ),
            ("call +1 (555) 123-4567!", vec!["555", "123-4567", "15551234567"]),
            ("pay $1250.00 by 2024-05-01", vec!["$1250.00", "1250.00", "2024-05-01", "20240501"]),
            ("in /etc/passwd and notes.txt", vec!["/etc/passwd", "notes.txt"]),
            ("order=A1234567", vec!["order=A1234567", "A1234567"]),
            ("A plain text, of words. Nothing else!", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn a_host_is_what_a_browser_would_connect_to() {
        for (url, expected) in [
            ("https://a.org", Some("a.org")),
            ("https://a.org@b.org/", Some("b.org")),
            ("https://b.org\\@a.org/", Some("b.org")),
            ("http://[::1]:80/x", Some("::1")),
            ("a.org/x", None),
            ("://a.org", None),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
