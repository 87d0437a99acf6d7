//! Reads lists of e-mail addresses as strictly as all of their parsers together.
//!
//! Comments, groups, routes, quoted local parts and encoded words are read in several ways, and some parsers find an
//! address within a display name. Only lists are read here about which they agree. `tests/guards` compares this with
//! several of them.

use super::urls::{bare_host, is_host};

/// Longest local part.
const LONGEST_LOCAL: usize = 64;

/// An address of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'t> {
    /// The address, without the display name.
    pub text: &'t str,
    pub domain: &'t str,
}

/// Returns the addresses of a list such as `ann@example.org, Bob Ott <bob@example.org>`.
///
/// # Errors
/// Returns why parsers may read the text differently, as a clause.
pub fn addresses(text: &str) -> Result<Vec<Address<'_>>, &'static str> {
    let mut rest = text;
    let mut found = Vec::new();
    loop {
        let end = item_end(rest)?;
        found.push(address(&rest[..end])?);
        match rest[end..].strip_prefix([',', ';']) {
            Some(further) => rest = further.trim_start_matches(' '),
            None => return Ok(found),
        }
    }
}

/// Returns where the first item of a list ends: at a separator that is not in quotes.
fn item_end(text: &str) -> Result<usize, &'static str> {
    let mut is_quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' | ';' if !is_quoted => return Ok(at),
            _ => {}
        }
    }
    if is_quoted { Err("a quotation mark is not closed") } else { Ok(text.len()) }
}

fn address(item: &str) -> Result<Address<'_>, &'static str> {
    if item.is_empty() {
        return Err("an item is empty");
    }
    match item.strip_suffix('>').and_then(|item| item.split_once('<')) {
        Some((name, address)) => {
            is_display_name(name)?;
            plain(address)
        }
        None => plain(item),
    }
}

/// Checks the text before `<`: plain words, or a text in quotation marks, with a blank behind it.
fn is_display_name(text: &str) -> Result<(), &'static str> {
    let Some(name) = text.strip_suffix(' ') else {
        return if text.is_empty() { Ok(()) } else { Err("a display name has no blank behind it") };
    };
    let is_letter =
        |c: char| c.is_alphabetic() || c.is_ascii_digit() || matches!(c, ' ' | '.' | '\'' | '-' | '_' | '&');
    let quoted = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    let is_plain = match quoted {
        Some(name) => name.chars().all(|c| is_letter(c) || c == ','),
        None => name.chars().all(is_letter) && name.starts_with(|c: char| c != ' '),
    };
    if !is_plain {
        return Err("a display name has other characters than letters, digits and blanks");
    }
    if has_truncated_address(name) { Err("a display name is an address for parsers that drop bits") } else { Ok(()) }
}

/// Returns whether a text contains an address for a parser that keeps the lowest eight bits of each character, as in
/// `eveŀevil.example`.
fn has_truncated_address(text: &str) -> bool {
    let truncated: String = text.chars().map(|c| char::from(c as u8)).collect();
    let is_separator = |c: char| c.is_whitespace() || c.is_control() || ",;:<>()\"\\".contains(c);
    let is_address = |item: &str| {
        let domain = item.rsplit_once('@').map(|(_, domain)| domain.trim_end_matches(|c| !char::is_alphanumeric(c)));
        domain.is_some_and(|domain| domain.contains('.') && is_host(domain))
    };
    truncated.split(is_separator).any(is_address)
}

fn plain(text: &str) -> Result<Address<'_>, &'static str> {
    let (local, domain) = text.split_once('@').ok_or("an item is no address")?;
    let is_atom = |atom: &str| {
        !atom.is_empty() && atom.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-'=&".contains(&byte))
    };
    if local.len() > LONGEST_LOCAL || !local.split('.').all(is_atom) {
        return Err("the part before an `@` is written in an unusual form");
    }
    if local.starts_with('-') {
        return Err("an address begins like an option of a program");
    }
    let is_label = |label: &str| !label.starts_with('-') && !label.ends_with('-') && !label.contains('_');
    if bare_host(domain).is_none() || !domain.split('.').all(is_label) {
        return Err("a domain is written in an unusual form");
    }
    Ok(Address { text, domain })
}

/// Returns whether a parser of addresses may find several in a text, or another than the whole: it has an `@`, and
/// something that separates, quotes, comments or encodes. So may a relay or a program that sends mail, in an address
/// with a route or a sign that is one of theirs.
pub fn may_be_list(text: &str) -> bool {
    let is_special = |c: char| c.is_whitespace() || c.is_control() || ",;<>()\"\\".contains(c);
    text.contains('@')
        && (text.contains(is_special)
            || text.contains("=?")
            || text.chars().skip(1).filter(|c| *c == '@').count() > 1
            || is_relayed(text))
}

/// Returns whether a text that ends like an address is another one for a relay, a program that sends mail, or a parser
/// that normalizes or drops bits.
fn is_relayed(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_odd = |c: char| "%!:|`$".contains(c) || !c.is_ascii();
    is_host(domain) && (local.starts_with(['-', '|', '/']) || local.contains(is_odd))
}

/// Returns the URLs of a text that begins with one and has others, or the hosts of a text that is a list of hosts;
/// nothing of another text.
pub fn listed_hosts(text: &str) -> Vec<&str> {
    let is_separator = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ',' | ';' | '|');
    let mut items: Vec<&str> = text.split(is_separator).filter(|item| !item.is_empty()).collect();
    if items.first().is_some_and(|first| first.contains("://")) {
        items.retain(|item| item.contains("://"));
    } else if !items.iter().all(|item| item.contains('.') && is_host(item)) {
        items.clear();
    }
    if items.len() > 1 { items } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_only_if_all_parsers_agree_on_its_addresses() {
        for (text, expected) in [
            ("ann@example.org", &["ann@example.org"][..]),
            ("a.b+c_d-e'f@A.example.org", &["a.b+c_d-e'f@A.example.org"]),
            ("ann@example.org, bob@example.com", &["ann@example.org", "bob@example.com"]),
            ("ann@example.org;bob@example.com,c@d.example", &["ann@example.org", "bob@example.com", "c@d.example"]),
            ("<ann@example.org>", &["ann@example.org"]),
            (
                "Ann O'Neil-Ott Jr. <ann@example.org>, J\u{fc}rgen <j@example.org>",
                &["ann@example.org", "j@example.org"],
            ),
            ("\"Ott, Ann\" <ann@example.org>", &["ann@example.org"]),
            (
                "\u{41f}\u{435}\u{442}\u{440} \u{41c}\u{43e}\u{440}\u{43e}\u{437}\u{43e}\u{432} <p@example.org>",
                &["p@example.org"],
            ),
            ("\u{7530}\u{4e2d} \u{592a}\u{90ce} <t@xn--bcher-kva.example>", &["t@xn--bcher-kva.example"]),
            ("a-b@c-d.example", &["a-b@c-d.example"]),
        ] {
            let found = addresses(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(found.iter().map(|address| address.text).collect::<Vec<_>>(), expected, "{text}");
        }
        for text in [
            "",
            " ",
            ",",
            "ann",
            "ann@",
            "@example.org",
            "ann@example.org,",
            ",ann@example.org",
            "a@b.example,,c@d.example",
            " ann@example.org",
            "ann@example.org ",
            "ann@example.org\n",
            "a@b.example\nc@d.example",
            "a@b.example\r\nBcc: c@d.example",
            "a@b.example ,c@d.example",
            "a@b.example,\tc@d.example",
            "a@b.example c@d.example",
            "a@b.example\u{0}",
            "eve@evil.example <ann@example.org>",
            "\"eve@evil.example\" <ann@example.org>",
            "ann@example.org <eve@evil.example",
            "Ann <ann@example.org> x",
            "Ann <ann@example.org><eve@evil.example>",
            "Ann <<ann@example.org>>",
            "Ann<ann@example.org>",
            "\"eve\\\" <eve@evil.example>, \" <ann@example.org>",
            "\"Ann <ann@example.org>",
            "ann@example.org (eve@evil.example)",
            "(c)ann@example.org",
            "ann(c)@example.org",
            "friends: ann@example.org, eve@evil.example;",
            "friends:ann@example.org;",
            "\"ann\"@example.org",
            "\"eve@evil.example \"@example.org",
            "ann@[127.0.0.1]",
            "ann@evil.example@example.org",
            "<@evil.example:ann@example.org>",
            "@evil.example:ann@example.org",
            "ann%evil.example@example.org",
            "evil!ann@example.org",
            "=?utf-8?q?eve=40evil.example=2C?= <ann@example.org>",
            "=?utf-8?q?eve=40evil.example?=@example.org",
            "ann@example..org",
            "ann@example.org.",
            "ann@.example.org",
            ".ann@example.org",
            "ann.@example.org",
            "a..b@example.org",
            "\u{e4}nn@example.org",
            "ann@ex\u{e4}mple.org",
            "ann\u{ff20}example.org",
            "a\u{200b}nn@example.org",
            "\u{2474} <a@b.example>",
            "mailto:ann@example.org",
            "ann@example.org?cc=eve@evil.example",
            "ann@0x7f.1",
            "ann@127.1",
            "ann@exa_mple.org",
            "ann@xn--0049.example.org",
            "ann@xn--.example.org",
            "ann@XN--a.example.org",
            "ann@-x.example.org",
            "ann@x-.example.org",
            "-bi@example.org",
            "-OQueueDirectory=.@example.org",
            "Ann <-bi@example.org>",
            "@evil.example:ann@example.org",
            "evil.example!eve@example.org",
            "eve%evil.example@example.org",
            "|cmd@example.org",
            "/tmp/x@example.org",
            "eve\u{ff20}evil.example@example.org",
            "eve\u{4640}evil.example@example.org",
            "eve\u{140}evil.example\u{12c} <ann@example.org>",
            "\"eve\u{140}evil.example\u{12c} \" <ann@example.org>",
            "\"A\u{12c} eve\u{4640}evil\u{412e}example\" <ann@example.org>",
            "eve\u{440}evil.example <ann@example.org>",
        ] {
            assert!(addresses(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn several_hosts_or_urls_in_a_text_are_its_items() {
        for (text, items) in [
            ("https://a.example/ https://b.example/x", &["https://a.example/", "https://b.example/x"][..]),
            ("https://a.example/x,y", &[]),
            ("a.example", &[]),
            ("a.example,b.example", &["a.example", "b.example"]),
            ("see https://a.example/", &[]),
            ("1, 2", &[]),
            ("", &[]),
        ] {
            assert_eq!(listed_hosts(text), items, "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_lists() {
        for text in [
            "git@host.example:a/b",
            "@scope/pkg@1.2",
            "@scope/pkg@latest",
            "actions/checkout@main",
            "ann@example.org",
            "a, b",
            "x",
            "50%",
        ] {
            assert!(!may_be_list(text), "{text}");
        }
        for text in [
            "a@b,c@d",
            "a@b\n",
            "a@b@c",
            "x (a@b)",
            "=?u?q?x?=@b",
            "@evil.example:eve@home.example",
            "evil.example!eve@home.example",
            "eve%evil.example@home.example",
            "eve\u{ff20}evil.example@home.example",
            "eve\u{fe6b}evil.example@home.example",
            "eve\u{4640}evil.example@home.example",
            "-OQueueDirectory=.@home.example",
            "|cmd@home.example",
            "/tmp/x@home.example",
            "`cmd`@home.example",
        ] {
            assert!(may_be_list(text), "{text}");
        }
    }
}
