//! Finds the parts of a text that identify someone or something: e-mail addresses, URLs and their hosts, numbers of
//! phones and accounts, paths of files, amounts, and other words with digits.

/// Characters that separate words, apart from white space.
const DELIMITERS: &[u8] = b"<>()[]{}\"'`,;|*";

/// Fewest digits of a number whose groups are joined: a phone or an account.
const LONG_NUMBER: usize = 7;

/// Fewest characters of a word with a digit that counts as an identifier.
const IDENTIFIER: usize = 8;

/// The properties of a word that decide whether it is a token.
#[derive(Default)]
struct Traits {
    digits: usize,
    has_letter: bool,
    has_lowercase: bool,
    has_at: bool,
    has_dot: bool,
    has_slash: bool,
    has_pair: bool,
    has_other: bool,
}

impl Traits {
    fn of(word: &str) -> Traits {
        let mut traits = Traits::default();
        for byte in word.bytes() {
            match byte {
                b'0'..=b'9' => traits.digits += 1,
                b'A'..=b'Z' => traits.has_letter = true,
                b'a'..=b'z' => (traits.has_letter, traits.has_lowercase) = (true, true),
                b'@' => traits.has_at = true,
                b'.' => traits.has_dot = true,
                b'/' | b'\\' => traits.has_slash = true,
                b'=' | b':' | b'&' | b'?' | b'#' => traits.has_pair = true,
                b'+' | b'-' => {}
                128.. => (traits.has_letter, traits.has_other) = (true, true),
                _ => traits.has_other = true,
            }
        }
        traits
    }

    /// Returns whether a word may be a group of a longer number, such as `3704` of an IBAN.
    fn is_group(&self) -> bool {
        self.digits > 0 && !(self.has_lowercase || self.has_at || self.has_pair || self.has_other)
    }
}

/// Calls `each` with every token of a text, in its order; a token may contain others.
pub(super) fn tokens(text: &str, each: &mut dyn FnMut(&str)) {
    let mut number = Number::default();
    let mut start = 0;
    let bytes = text.as_bytes();
    for at in 0..=bytes.len() {
        let ends = bytes.get(at).is_none_or(|byte| byte.is_ascii_whitespace() || DELIMITERS.contains(byte));
        if !ends {
            continue;
        }
        if at > start {
            let word = text[start..at].trim_matches(|c| matches!(c, '.' | ':' | '!' | '?' | '='));
            let traits = Traits::of(word);
            // Most words of a text are plain.
            if traits.digits > 0 || traits.has_at || traits.has_dot || traits.has_slash || traits.has_pair {
                token(word, &traits, each);
            }
            number.add(word, &traits, each);
        }
        if at > start && !matches!(bytes.get(at), Some(b' ' | b'(' | b')')) {
            number.end(each);
        }
        start = at + 1;
    }
    number.end(each);
}

/// Reports a word, and the tokens within it.
fn token(word: &str, traits: &Traits, each: &mut dyn FnMut(&str)) {
    let word = word.strip_prefix("mailto:").unwrap_or(word);
    if word.is_empty() {
        return;
    }
    if let Some(host) = host(word) {
        each(word);
        each(host);
        if let Some((_, query)) = word.split_once(['?', '#']) {
            pieces(query, each);
        }
        return;
    }
    if let Some((user, domain)) = word.rsplit_once('@').filter(|(user, domain)| !user.is_empty() && !domain.is_empty()) {
        each(word);
        // With its `@`, since addresses of one domain belong to different people.
        each(&format!("@{domain}"));
        if user.contains(['=', ':']) {
            pieces(word, each);
        }
        return;
    }
    let is_token = traits.has_slash
        || traits.has_dot && traits.has_letter
        || traits.digits > 0 && (word.len() >= IDENTIFIER || word.len() >= 3 || traits.has_dot);
    if is_token {
        let amount = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '\\');
        each(word);
        if amount != word && !amount.is_empty() {
            each(amount);
        }
    }
    if traits.has_pair {
        pieces(word, each);
    }
}

/// Reports the tokens among the parts of a query or of a pair such as `id=7`.
fn pieces(text: &str, each: &mut dyn FnMut(&str)) {
    for piece in text.split(['=', ':', '&', '?', '#']).filter(|piece| piece.len() < text.len() && !piece.is_empty()) {
        token(piece, &Traits::of(piece), each);
    }
}

/// Returns the host of a URL, without the user and the port.
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
    fn add(&mut self, word: &str, traits: &Traits, each: &mut dyn FnMut(&str)) {
        if !traits.is_group() {
            self.end(each);
            return;
        }
        self.joined.extend(compact(word));
        self.digits += traits.digits;
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
            ("Write to Ann <ann@example.org>, or mailto:bob@x.org.", vec!["ann@example.org", "@example.org", "bob@x.org", "@x.org"]),
            (
                "see https://me:pw@pay.example.com:8443/a?id=INV-20394&x=1 now",
                vec!["https://me:pw@pay.example.com:8443/a?id=INV-20394&x=1", "pay.example.com", "INV-20394"],
            ),
            ("to DE89 3704 0044 0532 0130 00, please", vec!["DE89", "3704", "0044", "0532", "0130", "DE89370400440532013000"]),
            ("call +1 (555) 123-4567!", vec!["555", "123-4567", "15551234567"]),
            ("pay $1250.00 by 2024-05-01", vec!["$1250.00", "1250.00", "2024-05-01"]),
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
