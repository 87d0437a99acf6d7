//! Finds links that a text has only once it is decoded.
//!
//! A browser drops tabs and line breaks from a URL, HTML and Markdown have references for characters, and Markdown,
//! CSS and scripts have escapes: `/&Tab;/b.example`, `ht⏎tps:b.example` and `https\:b.example` are links for them.

/// Beginnings of links. Those of the first group need no check of what is before them.
const ANYWHERE: [&str; 1] = ["://"];
const SLASHES: [&str; 4] = ["//", "\\\\", "/\\", "\\/"];
/// Beginnings behind which something has to follow.
const SCHEMES: [&str; 6] = ["http:", "https:", "ftp:", "ws:", "wss:", "www."];

/// Named references of the characters that separate the parts of a URL.
const REFERENCES: [(&str, char); 9] = [
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("colon", ':'),
    ("sol", '/'),
    ("bsol", '\\'),
    ("period", '.'),
    ("quest", '?'),
    ("num", '#'),
    ("commat", '@'),
];

/// Most digits of a reference that are read.
const MOST_DIGITS: usize = 64;

/// A character as a reader of URLs sees it.
#[derive(Clone, Copy)]
struct Seen {
    c: char,
    /// True if something else stands for it in the text.
    is_decoded: bool,
    /// True if something was removed before it.
    is_joined: bool,
}

/// Returns whether a text has a link that is found only once tabs and line breaks are removed, or references and
/// escapes are decoded.
pub(super) fn has_hidden_link(text: &str) -> bool {
    if !text.contains(['\t', '\n', '\r', '&', '\\']) {
        return false;
    }
    let plain = text.chars().map(|c| Seen { c, is_decoded: false, is_joined: false }).collect();
    let decoded = without_breaks(decoded(plain, reference));
    let unescaped = without_breaks(self::decoded(decoded.clone(), escape));
    has_altered_start(&decoded) || has_altered_start(&unescaped) || continues_host(text)
}

/// Replaces each sequence that `read` finds: it returns the character, if any, and the number of characters behind the
/// first one.
fn decoded(text: Vec<Seen>, read: impl Fn(&[Seen]) -> Option<(Option<char>, usize)>) -> Vec<Seen> {
    let (mut out, mut at, mut is_joined) = (Vec::with_capacity(text.len()), 0, false);
    while let Some(seen) = text.get(at) {
        match read(&text[at..]) {
            Some((Some(c), more)) => {
                out.push(Seen { c, is_decoded: true, is_joined: seen.is_joined });
                at += more;
            }
            Some((None, more)) => {
                is_joined = true;
                at += more;
                at += 1;
                continue;
            }
            None => out.push(Seen { is_joined: seen.is_joined || is_joined, ..*seen }),
        }
        is_joined = false;
        at += 1;
    }
    out
}

fn without_breaks(text: Vec<Seen>) -> Vec<Seen> {
    decoded(text, |rest| matches!(rest.first()?.c, '\t' | '\n' | '\r').then_some((None, 0)))
}

/// Reads a reference of HTML, such as `&#x2f;`, `&#47` and `&sol;`.
fn reference(rest: &[Seen]) -> Option<(Option<char>, usize)> {
    let [Seen { c: '&', .. }, rest @ ..] = rest else { return None };
    let [Seen { c: '#', .. }, rest @ ..] = rest else {
        return REFERENCES.iter().find_map(|(name, c)| {
            let is_it = name.chars().chain([';']).zip(rest).all(|(c, seen)| c == seen.c) && rest.len() > name.len();
            is_it.then_some((Some(*c), name.len() + 1))
        });
    };
    let is_hex = rest.first().is_some_and(|seen| matches!(seen.c, 'x' | 'X'));
    let start = usize::from(is_hex);
    let (c, digits) = number(&rest[start..], if is_hex { 16 } else { 10 }, MOST_DIGITS)?;
    let end = usize::from(rest.get(start + digits).is_some_and(|seen| seen.c == ';'));
    Some((Some(c), 1 + start + digits + end))
}

/// Reads an escape of Markdown (`\/`), of CSS (`\2f `) or of scripts (`\x2f`, `\u002f`).
fn escape(rest: &[Seen]) -> Option<(Option<char>, usize)> {
    let [Seen { c: '\\', .. }, rest @ ..] = rest else { return None };
    let first = rest.first()?.c;
    if let Some((c, digits)) = number(rest, 16, 6) {
        let blank = usize::from(rest.get(digits).is_some_and(|seen| seen.c == ' '));
        return Some((Some(c), digits + blank));
    }
    if matches!(first, 'x' | 'u') {
        let is_braced = rest.get(1).is_some_and(|seen| seen.c == '{');
        let start = 1 + usize::from(is_braced);
        let most = match (first, is_braced) {
            (_, true) => 6,
            ('x', false) => 2,
            (_, false) => 4,
        };
        let (c, digits) = number(&rest[start..], 16, most)?;
        return Some((Some(c), start + digits + usize::from(is_braced)));
    }
    first.is_ascii_punctuation().then_some((Some(first), 1))
}

/// Reads a number of at most so many digits, and returns its character.
fn number(text: &[Seen], base: u32, most: usize) -> Option<(char, usize)> {
    let digits: String = text.iter().take(most).map_while(|seen| seen.c.is_digit(base).then_some(seen.c)).collect();
    let c = u32::from_str_radix(&digits, base).ok().and_then(char::from_u32)?;
    Some((c, digits.len()))
}

/// Returns whether a link begins with characters that are not next to each other in the text, or that others stand for.
fn has_altered_start(text: &[Seen]) -> bool {
    let begins = |at: usize, start: &str| {
        let mut characters = start.chars().zip(&text[at..]);
        text.len() - at >= start.len() && characters.all(|(c, seen)| c == seen.c.to_ascii_lowercase())
    };
    let is_altered = |at: usize, end: usize| {
        text[at].is_decoded || text[at + 1..end].iter().any(|seen| seen.is_decoded || seen.is_joined)
    };
    (0..text.len()).any(|at| {
        let before = at.checked_sub(1).map(|at| text[at].c);
        let is_behind_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        // The word before it was another one in the text.
        let is_start = !is_behind_word || text[at].is_joined || text[at].is_decoded;
        let starts = |starts: &[&str], more: usize| {
            starts.iter().any(|start| {
                let end = at + start.len() + more;
                begins(at, start) && end <= text.len() && is_altered(at, end) && !text[end - 1].c.is_whitespace()
            })
        };
        starts(&ANYWHERE, 0) || is_start && (starts(&SLASHES, 0) || starts(&SCHEMES, 1))
    })
}

/// Returns whether a URL ends with its host at a tab or a line break, and goes on behind it in the same attribute.
fn continues_host(text: &str) -> bool {
    let is_break = |c: char| matches!(c, '\t' | '\n' | '\r');
    text.match_indices("//").any(|(at, _)| {
        let authority = &text[at + 2..];
        let end = authority.find(|c: char| c.is_whitespace() || c.is_control() || "/?#\\\"'<>".contains(c));
        let Some(end) = end.filter(|end| authority[*end..].starts_with(is_break)) else { return false };
        let behind = authority[end..].trim_start_matches(is_break);
        let before = text[..at].trim_end_matches(|c: char| !c.is_whitespace() && !"\"'`".contains(c));
        let is_quoted = before.trim_end().ends_with(['"', '\'', '`']);
        behind.starts_with(['.', '@', ':']) || is_quoted && behind.starts_with(|c: char| !c.is_whitespace())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_behind_breaks_references_and_escapes() {
        for text in [
            "<img src=\"/\t/b.example/p\">",
            "<img src=\"/\n/b.example/p\">",
            "<img src=\"/\r\n\t\\b.example/p\">",
            "<img src=\"\\\n/b.example/p\">",
            "<img src=\"https:\nb.example/p\">",
            "<img src=\"ht\ntps:b.example/p\">",
            "<img src=\"h\tt\tt\tp:b.example/p\">",
            "<img src=\"https\n://b.example\">",
            "<img src=\"https:\n/\n/b.example\">",
            "<img srcset=\"a 1x,/\t/b.example 2x\">",
            "<a href=w\nww.b.example>",
            "<img src=\"&#x68;ttps&#58;&#47;&#47;b.example/p\">",
            "<img src=\"&#104ttps:b.example/p\">",
            "<img src=\"&#x000000000000068;ttps:b.example/p\">",
            "<img src=\"https&#58b.example\">",
            "<img src=\"&sol;/b.example\">",
            "<img src=\"/&sol;b.example\">",
            "<img src=\"/&bsol;b.example\">",
            "<img src=\"/&Tab;/b.example\">",
            "<img src=\"/&#10;/b.example\">",
            "<img src=\"https&NewLine;&colon;b.example\">",
            "<a href=www&period;b.example>",
            "![x](&#47;&#47;b.example/p)",
            "![x](https\\:b.example/p)",
            "![x](https&colon;b.example)",
            "@import \"\\2f\\2f b.example\"",
            "@import \"\\00002f/b.example\"",
            "background:url(\\68 ttps:b.example)",
            "x.src='\\x2f/b.example'",
            "x.src='\\u002f\\u{2f}b.example'",
            "<a href=\"https://a.example\n.b.example/\">",
            "<a href=\"https://a.example\nb.example/\">",
            "<a href=' https://a.example\t@b.example/'>",
            "https://a.example\r\n:x@b.example",
        ] {
            assert!(has_hidden_link(text), "{text:?}");
        }
    }

    #[test]
    fn usual_texts_have_no_hidden_links() {
        for text in [
            "",
            "one\ntwo\tthree",
            "see https://a.example\nNext line",
            "see \"https://a.example\"\nNext line",
            "https://a.example/x\nhttps://a.example/y",
            "https://a.example\n\nhttps://b.example\thttps://c.example",
            "a.\nhttp: is a scheme, and\nwww is none",
            "yes/\n/no, and/or",
            "Q&A, R&D &amp; more &#8364; &#128512;",
            "C:\\Users\\ann\\file.txt \\_escaped\\_ 1\\. item",
            "{\"a\\/b\": \"\\u00e9\\n\"}",
            "\\alpha \\2 \\d+\\.\\d+",
            "key:\tvalue\r\nother: 1",
            "[a](https://a.example/x)\n\n- b\n- c",
        ] {
            assert!(!has_hidden_link(text), "{text:?}");
        }
    }
}
