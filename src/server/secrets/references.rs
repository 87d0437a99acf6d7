//! Character names, as in HTML and Python.

/// The ASCII signs, each with its names in HTML and its name in Unicode.
#[rustfmt::skip]
const SIGNS: &[(char, &[&str], &str)] = &[
    ('\t', &["Tab"], "CHARACTER TABULATION"), ('\n', &["NewLine"], "LINE FEED"), (' ', &[], "SPACE"),
    ('!', &["excl"], "EXCLAMATION MARK"), ('"', &["quot", "QUOT"], "QUOTATION MARK"), ('#', &["num"], "NUMBER SIGN"),
    ('$', &["dollar"], "DOLLAR SIGN"), ('%', &["percnt"], "PERCENT SIGN"), ('&', &["amp", "AMP"], "AMPERSAND"),
    ('\'', &["apos"], "APOSTROPHE"), ('(', &["lpar"], "LEFT PARENTHESIS"), (')', &["rpar"], "RIGHT PARENTHESIS"),
    ('*', &["ast", "midast"], "ASTERISK"), ('+', &["plus"], "PLUS SIGN"), (',', &["comma"], "COMMA"),
    ('-', &[], "HYPHEN-MINUS"), ('.', &["period"], "FULL STOP"), ('/', &["sol"], "SOLIDUS"), (':', &["colon"], "COLON"),
    (';', &["semi"], "SEMICOLON"), ('<', &["lt", "LT"], "LESS-THAN SIGN"), ('=', &["equals"], "EQUALS SIGN"),
    ('>', &["gt", "GT"], "GREATER-THAN SIGN"), ('?', &["quest"], "QUESTION MARK"), ('@', &["commat"], "COMMERCIAL AT"),
    ('[', &["lsqb", "lbrack"], "LEFT SQUARE BRACKET"), ('\\', &["bsol"], "REVERSE SOLIDUS"),
    (']', &["rsqb", "rbrack"], "RIGHT SQUARE BRACKET"), ('^', &["Hat"], "CIRCUMFLEX ACCENT"),
    ('_', &["lowbar", "UnderBar"], "LOW LINE"), ('`', &["grave", "DiacriticalGrave"], "GRAVE ACCENT"),
    ('{', &["lcub", "lbrace"], "LEFT CURLY BRACKET"), ('|', &["verbar", "vert", "VerticalLine"], "VERTICAL LINE"),
    ('}', &["rcub", "rbrace"], "RIGHT CURLY BRACKET"), ('~', &[], "TILDE"),
];

/// Names that browsers also accept without a closing `;`.
const OPEN: &[&str] = &["amp", "AMP", "lt", "LT", "gt", "GT", "quot", "QUOT"];

const DIGITS: [&str; 10] = ["ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE"];

/// Returns the character of an HTML character reference and the length of its name within `name`: the whole of `name`
/// if a `;` follows, otherwise a prefix that needs none.
pub(super) fn named_reference(name: &[u8], is_closed: bool) -> Option<(usize, char)> {
    let sign = |name: &str| SIGNS.iter().find(|(_, names, _)| names.contains(&name)).map(|(c, ..)| (name.len(), *c));
    let whole = is_closed.then(|| std::str::from_utf8(name).ok().and_then(sign)).flatten();
    whole.or_else(|| OPEN.iter().find(|open| name.starts_with(open.as_bytes())).and_then(|open| sign(open)))
}

/// Returns the ASCII character with that Unicode name.
pub(super) fn named_character(name: &str) -> Option<char> {
    let name = name.to_uppercase();
    let letter = |prefix: &str| name.strip_prefix(prefix).and_then(|letter| letter.parse::<char>().ok());
    let digit = || DIGITS.into_iter().zip('0'..).find(|(word, _)| name.strip_prefix("DIGIT ") == Some(word));
    letter("LATIN CAPITAL LETTER ")
        .or_else(|| letter("LATIN SMALL LETTER ").map(|letter| letter.to_ascii_lowercase()))
        .or_else(|| digit().map(|(_, digit)| digit))
        .or_else(|| SIGNS.iter().find(|(_, _, unicode)| *unicode == name).map(|(c, ..)| *c))
}
