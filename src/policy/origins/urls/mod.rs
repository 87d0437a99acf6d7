//! Reads URLs as strictly as all of their parsers together.
//!
//! Parsers disagree on what the host of a text is: a browser takes `\` for `/` and drops line breaks, others do not;
//! some read `0x7f.1` as an address, decode `%2e`, or map characters of other widths. Only texts are read here about
//! which they agree. `tests/guards` compares this with several of them.

mod hidden;

use std::net::{Ipv4Addr, Ipv6Addr};

use url::Url;

/// Longest host, and longest label of one.
const LONGEST_HOST: (usize, usize) = (253, 63);

/// The URLs that are accepted beside those of http and https at their usual ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlRules {
    /// The schemes, in lowercase; http and https if there is none.
    pub schemes: Vec<String>,
    /// The ports that count as the host itself.
    pub ports: Ports,
}

/// Ports that are no part of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ports {
    /// These, and the usual one of the scheme.
    Only(Vec<u16>),
    /// All of them.
    Any,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports::Only(Vec::new())
    }
}

impl UrlRules {
    fn accepts_scheme(&self, scheme: &str) -> bool {
        let accepts = |known: &str| scheme.eq_ignore_ascii_case(known);
        if self.schemes.is_empty() {
            ["http", "https"].into_iter().any(accepts)
        } else {
            self.schemes.iter().any(|known| accepts(known))
        }
    }

    fn counts_as_host(&self, scheme: &str, port: u16) -> bool {
        usual_port(scheme) == Some(port)
            || match &self.ports {
                Ports::Any => true,
                Ports::Only(ports) => ports.contains(&port),
            }
    }
}

fn usual_port(scheme: &str) -> Option<u16> {
    let ports = [("http", 80), ("https", 443), ("ws", 80), ("wss", 443), ("ftp", 21)];
    ports.into_iter().find_map(|(known, port)| scheme.eq_ignore_ascii_case(known).then_some(port))
}

/// Returns the host of a URL in lowercase, with its port if that is another one than the rules accept.
///
/// # Errors
/// Returns why parsers may read the text differently, as a clause.
pub fn authority(text: &str, rules: &UrlRules) -> Result<String, &'static str> {
    let (scheme, rest) = text.split_once("://").ok_or("it has no scheme")?;
    if !is_scheme(scheme) {
        return Err("it has no scheme");
    }
    if !rules.accepts_scheme(scheme) {
        return Err("its scheme is not accepted");
    }
    let authority = read(scheme, rest)?;
    let same = Url::parse(text).is_ok_and(|url| {
        let is_same_port = authority.port.is_none() || url.port_or_known_default() == authority.port;
        is_same_port && url.host_str().is_some_and(|host| host.eq_ignore_ascii_case(authority.host))
    });
    if !same {
        return Err("its host is written in an unusual form");
    }
    Ok(authority.text(|port| rules.counts_as_host(scheme, port)))
}

/// Returns the host of a URL of a source, with its port if that is not the usual one of the scheme. Any scheme and any
/// user information are accepted, since the source is.
pub(super) fn authority_of_source(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let rest = rest[..end].rsplit('@').next().filter(|_| !rest[..end].contains('\\'))?;
    Some(read(scheme, rest).ok()?.text(|port| usual_port(scheme) == Some(port)))
}

/// Returns a host without a URL around it, in lowercase.
pub fn bare_host(text: &str) -> Option<String> {
    (is_host(text) && is_decodable(text)).then(|| text.to_ascii_lowercase())
}

/// Returns whether each label `xn--…` of a host is one: some libraries decode others to signs.
fn is_decodable(host: &str) -> bool {
    let has_code = host.split('.').any(|label| label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--")));
    let is_same = |url: Url| url.host_str().is_some_and(|read| read.eq_ignore_ascii_case(host));
    !has_code || Url::parse(&format!("https://{host}/")).is_ok_and(is_same)
}

/// Returns the host of a host with a port.
pub(super) fn without_port(text: &str) -> Option<&str> {
    let (host, port) = text.rsplit_once(':')?;
    (port_of(port).is_some() && is_host(host)).then_some(host)
}

struct Authority<'t> {
    /// The host; an IPv6 address in brackets.
    host: &'t str,
    port: Option<u16>,
}

impl Authority<'_> {
    fn text(&self, is_usual: impl Fn(u16) -> bool) -> String {
        let host = self.host.trim_matches(['[', ']']).to_ascii_lowercase();
        match self.port.filter(|port| !is_usual(*port)) {
            Some(port) => format!("{}:{port}", self.host.to_ascii_lowercase()),
            None => host,
        }
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Reads what follows `://`.
fn read<'t>(scheme: &str, rest: &'t str) -> Result<Authority<'t>, &'static str> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    check_characters(authority)?;
    check_characters(tail)?;
    if authority.contains('@') {
        return Err("it has user information");
    }
    if !tail.starts_with('/') && may_be_host(tail) {
        return Err("its host may go on behind a `?` or `#`");
    }
    if authority.contains('%') || tail.contains(['[', ']']) || tail.matches('#').count() > 1 {
        return Err("it has a character where a URL cannot have it");
    }
    if has_another_url(tail) {
        return Err("it may be a list of several URLs");
    }
    let (host, port) = match authority.find(']') {
        Some(bracket) => authority.split_at(bracket + 1),
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(digits) => Some(port_of(digits).ok_or("its port is not a plain number")?),
        None if port.is_empty() => None,
        None => return Err("its host is written in an unusual form"),
    };
    if scheme.eq_ignore_ascii_case("file") || !is_host(host) && !is_ipv6(host) {
        return Err("its host is written in an unusual form");
    }
    Ok(Authority { host, port })
}

/// Returns whether a query or a fragment directly behind the host may be part of it: old parsers end the authority at a
/// slash only, or at the last `@`.
fn may_be_host(tail: &str) -> bool {
    let before_path = tail.split('/').next().unwrap_or_default().to_ascii_lowercase();
    tail.contains('@') || [".", ":", "%2e", "%3a", "%40"].iter().any(|sign| before_path.contains(sign))
}

fn port_of(digits: &str) -> Option<u16> {
    let is_plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

/// Returns an error unless a text has only the characters of RFC 3986, each escape with two digits.
fn check_characters(text: &str) -> Result<(), &'static str> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%:/?#[]@!$&'()*+,;=".contains(&byte);
    if !text.bytes().all(is_known) {
        return Err("it has a character that a URL cannot have");
    }
    let is_escape = |piece: &str| piece.len() >= 2 && piece.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_escape) {
        return Err("it has a `%` without two digits");
    }
    Ok(())
}

/// Returns whether a path or a query has a separator of lists with something behind it that looks like a URL or a host.
fn has_another_url(tail: &str) -> bool {
    tail.split([',', ';']).skip(1).any(|piece| {
        let first = piece.split(['/', '?', '#', ':', '&', '=']).next().unwrap_or_default();
        piece.contains("://") || piece.starts_with("//") || first.contains('.') && is_host(first)
    })
}

/// Returns whether a text is a host in its usual form: labels of ASCII letters, digits, `-` and `_`, of which the last
/// one begins with a letter, or an IPv4 address of four decimal numbers.
pub(super) fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= LONGEST_HOST.1
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let is_name = text.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_alphabetic()))
        && text.len() <= LONGEST_HOST.0
        && text.split('.').all(is_label);
    is_name || text.parse::<Ipv4Addr>().is_ok_and(|address| address.to_string() == text)
}

fn is_ipv6(host: &str) -> bool {
    let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    // The last four bytes may also be written as those of an IPv4 address, which parsers write differently.
    inside.is_some_and(|inside| !inside.contains('.') && inside.parse::<Ipv6Addr>().is_ok())
}

/// Returns the hosts of the URLs in a text, also of those without a scheme that begin with `www.` or `//`, each with
/// its port if that is another one than the rules accept.
///
/// # Errors
/// Returns why parsers may read one of them differently, as a clause.
pub fn links(text: &str, rules: &UrlRules) -> Result<Vec<String>, &'static str> {
    if hidden::has_hidden_link(text) {
        return Err("it is a link only once breaks are removed, or references and escapes are decoded");
    }
    let is_end = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"');
    let mut found = Vec::new();
    for word in text.split(is_end) {
        let starts = link_starts(word);
        for (index, start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(word.len());
            let is_closing = |c: char| !c.is_ascii_alphanumeric() && c != '/' && c.is_ascii();
            let link = word[*start..end].trim_end_matches(is_closing);
            // To a parser of the whole word, the next URL is a part of this one, and of its host unless that has ended.
            let has_ended = |link: &str| link.split_once("//").map_or(link, |(_, rest)| rest).contains(['/', '?', '#']);
            if end < word.len() && (word[..end].ends_with(|c: char| c.is_alphanumeric()) || !has_ended(link)) {
                return Err("it may be a list of several URLs");
            }
            found.push(link_authority(link, rules)?);
        }
    }
    // A parser that takes more for the URL finds user information, or drops the character.
    let is_odd = |c: char| c.is_control() && !c.is_whitespace();
    if !found.is_empty() && (text.contains(is_odd) || ["\"@", "<@", ">@"].iter().any(|odd| text.contains(odd))) {
        return Err("it has a character that a URL cannot have");
    }
    Ok(found)
}

/// Returns where the URLs of a word begin.
fn link_starts(word: &str) -> Vec<usize> {
    let lowercase = word.to_ascii_lowercase();
    let scheme_start = |end: usize| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let scheme = lowercase[..end]
            .rfind(|c| !is_part(c))
            .map_or(0, |at| at + lowercase[at..].chars().next().map_or(1, char::len_utf8));
        scheme + lowercase[scheme..end].find(|c: char| c.is_ascii_alphabetic()).unwrap_or(end - scheme)
    };
    let with_scheme = lowercase.match_indices("://").map(|(end, _)| scheme_start(end));
    let others = lowercase.char_indices().map(|(at, _)| at).filter(|at| is_bare_link_start(&lowercase, *at));
    let mut starts: Vec<usize> = with_scheme.chain(others).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Returns whether a URL without `://` begins there.
fn is_bare_link_start(word: &str, at: usize) -> bool {
    let (before, rest) = word.split_at(at);
    if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return false;
    }
    if rest.starts_with("www.") {
        return !before.ends_with(['/', '@', '.', '-']);
    }
    if ["//", "\\\\", "/\\", "\\/"].iter().any(|slashes| rest.starts_with(slashes)) {
        return !before.ends_with(['/', '\\', ':', '.', '-', '?', '&', '#', '~', '%', '+']);
    }
    // A browser needs no slashes after these.
    let special = ["http:", "https:", "ftp:", "ws:", "wss:", "file:/", "file:\\"]
        .iter()
        .find(|scheme| rest.starts_with(**scheme));
    special.is_some_and(|scheme| rest.len() > scheme.len())
}

fn link_authority(link: &str, rules: &UrlRules) -> Result<String, &'static str> {
    let whole = match link {
        link if link.starts_with("//") => format!("https:{link}"),
        link if link.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www.")) => format!("https://{link}"),
        link => link.to_owned(),
    };
    let any = UrlRules { schemes: vec!["https".to_owned()], ports: rules.ports.clone() };
    authority(&whole, if whole.len() == link.len() { rules } else { &any })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_only_if_all_parsers_agree_on_its_host() {
        let rules = UrlRules::default();
        for (url, host) in [
            ("https://a.example", "a.example"),
            ("HTTPS://A.Example/x?y=1&z=(2)#t", "a.example"),
            ("http://a.example:80/", "a.example"),
            ("https://a.example:443", "a.example"),
            ("https://a.example:8443/", "a.example:8443"),
            ("https://a.example:80/", "a.example:80"),
            ("https://a.example/@user/x,y;z=1", "a.example"),
            ("https://a.example?x=1", "a.example"),
            ("https://a.example#x-1/b.c", "a.example"),
            ("https://a.example/?x=1.5&y=a:b#z.9", "a.example"),
            ("https://a.example/go?to=https://b.example/", "a.example"),
            ("https://xn--bcher-kva.example/%20", "xn--bcher-kva.example"),
            ("https://my_bucket.a.example/", "my_bucket.a.example"),
            ("http://localhost/", "localhost"),
            ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
            ("http://[::1]/", "::1"),
            ("http://[2001:db8::1]:8080/", "[2001:db8::1]:8080"),
        ] {
            assert_eq!(authority(url, &rules).as_deref(), Ok(host), "{url}");
        }
        for url in [
            "",
            "a.example",
            "a.example/x",
            "//a.example/",
            "https:a.example",
            "https:/a.example",
            "https:///a.example",
            "https://a.example\\@b.example/",
            "https://b.example\\.a.example/",
            "https://a.example/ https://b.example/",
            "https://a.example/\nhttps://b.example/",
            " https://a.example/",
            "https://a.example/ ",
            "https://a.example/\n",
            "https://a.example\t/",
            "https://a.example/\u{0}",
            "https://a.example/\u{7f}",
            "https://a.example\u{a0}",
            "https://a.example@b.example/",
            "https://user@a.example/",
            "https://a:b@a.example/",
            "https://@a.example/",
            "https://a.example?@b.example/",
            "https://a.example#@b.example/",
            "https://a.example#.b.example/",
            "https://a.example?.b.example",
            "https://a.example#:80/",
            "https://a.example?x.b.example/",
            "https://a.example#%2eb.example/",
            "https://a.example?u:p%40b.example/",
            "https://a.example:443#.b.example",
            "https://a.example:80@b.example/",
            "ftp://a.example/",
            "javascript://a.example/%0aalert(1)",
            "file://a.example/x",
            "://a.example",
            "1a://a.example",
            "https://a.example:/",
            "https://a.example:0443/",
            "https://a.example:99999/",
            "https://a.example:0/",
            "https://a.example:80:90/",
            "https://a.example:8x/",
            "https://a.example:+80/",
            "https://a.example:\u{665}/",
            "https://a.example./",
            "https://.a.example/",
            "https://a..example/",
            "https://a%2eexample/",
            "https://%61.example/",
            "https://a.example%00.b.example/",
            "https://\u{ff41}.example/",
            "https://a\u{3002}example/",
            "https://b\u{fc}cher.example/",
            "https://a.example\u{ff0f}b.example/",
            "https://a.ex\u{ad}ample/",
            "https://a.ex\u{200b}ample/",
            "https://xn--a.example/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://127.0.0.01/",
            "http://1.2.3.4.5/",
            "http://a.0x/",
            "http://a.1/",
            "http://256.0.0.1/",
            "http://[fe80::1%25eth0]/",
            "http://[fe80::1%eth0]/",
            "http://[::0001]/",
            "http://[::ffff:1.2.3.4]/",
            "http://[v1.a]/",
            "http://[::1",
            "http://::1/",
            "http://[::1]x/",
            "https://a.example[x]/",
            "https://a.example/[x]",
            "https://a.example/x#y#z",
            "https://a.example/%",
            "https://a.example/%2",
            "https://a.example/%zz",
            "https://a.example/{x}",
            "https://a.example/<b>",
            "https://a.example/\"",
            "https://a.example/|",
            "https://a.example/\u{e9}",
            "https://a.example/,https://b.example/",
            "https://a.example/;//b.example",
            "https://a.example/?x=1,b.example/",
            "https://a.example,b.example/",
            "https://a.example;b.example/",
            "https://a.example!/",
            "https://a.example&b.example/",
        ] {
            assert!(authority(url, &rules).is_err(), "{url:?}");
        }
    }

    #[test]
    fn rules_name_further_schemes_and_ports() {
        let rules = UrlRules { schemes: vec!["ftp".to_owned()], ports: Ports::Only(vec![2121]) };
        assert_eq!(authority("FTP://a.example:2121/x", &rules).as_deref(), Ok("a.example"));
        assert_eq!(authority("ftp://a.example:21/x", &rules).as_deref(), Ok("a.example"));
        assert_eq!(authority("ftp://a.example:2122/x", &rules).as_deref(), Ok("a.example:2122"));
        assert_eq!(authority("https://a.example/", &rules), Err("its scheme is not accepted"));
        let any = UrlRules { ports: Ports::Any, ..UrlRules::default() };
        assert_eq!(authority("https://a.example:1/", &any).as_deref(), Ok("a.example"));
    }

    #[test]
    fn links_are_found_in_texts_and_read_as_strictly() {
        let rules = UrlRules::default();
        let text =
            "see (https://a.org/x), www.B.org. or //c.org/y and [d](http://d.org:8080)! but no notes.txt, a//b or 3:4";
        assert_eq!(links(text, &rules), Ok(["a.org", "www.b.org", "c.org", "d.org:8080"].map(str::to_owned).to_vec()));
        let listed = Ok(["a.org", "b.org"].map(str::to_owned).to_vec());
        for text in ["https://a.org/,https://b.org", "https://a.org/x|https://b.org", "https://a.org, https://b.org"] {
            assert_eq!(links(text, &rules), listed, "{text}");
        }
        for text in
            ["a plain text, of words: and/or.", "file:line or file: x", "evil.example/?q=s and eve@evil.example"]
        {
            assert_eq!(links(text, &rules), Ok(Vec::new()), "{text}");
        }
        for text in [
            "https://a.org\\@b.org/",
            "http://3232235521/",
            "https:b.org",
            "https:/b.org",
            "https:\\\\b.org",
            "see \\\\b.org\\x",
            "/\\b.org",
            "https://a.org'@b.org/",
            "x (ftp://a.org)",
            "https://u@a.org",
            "https://a.org:x",
            "hTTps://\u{430}.org/",
            "javascript://a.org/%0aalert",
            "www.a.org@b.org",
            "//a.org@b.org",
            "=//u@b.org",
            "%5chttps://b.org",
            "xhttps://a.org",
            "https://a.org\"@b.org/",
            "https://a.org\u{0}.b.org/",
            "https://a.orghttps://a.org",
            "https://a.org:https://b.org#x",
            "https://a.org:@https://b.org#x",
            "https://a.org,https://b.org",
            "\u{e4}http(://a.org",
            "https://a.org/?u=https://b@c.org/",
            "file:\\\\b.org\\x",
            "file:/b.org/x",
            "<img src=\"/\t/b.org/p\">",
            "https&colon;&sol;&sol;b.org",
        ] {
            assert!(links(text, &rules).is_err(), "{text}: {:?}", links(text, &rules));
        }
    }

    #[test]
    fn a_bare_host_can_be_decoded() {
        for host in ["a.example", "xn--bcher-kva.example", "a-b.c_d.example", "127.0.0.1", "localhost"] {
            assert_eq!(bare_host(host).as_deref(), Some(host));
        }
        for text in ["xn--0049.a.example", "xn--.a.example", "XN--a.example", "a.xn--", "a.example.", "", "a b"] {
            assert_eq!(bare_host(text), None, "{text}");
        }
    }

    #[test]
    fn the_host_of_a_source_has_its_port() {
        for (url, host) in [
            ("https://me:pw@Pay.example:8443/a", Some("pay.example:8443")),
            ("https://pay.example:443/a", Some("pay.example")),
            ("ftp://pay.example/@x", Some("pay.example")),
            ("https://pay.example\\@b.example", None),
            ("pay.example/x", None),
        ] {
            assert_eq!(authority_of_source(url).as_deref(), host, "{url}");
        }
        assert_eq!(
            (without_port("a.example:80"), without_port("a.example:x"), without_port("a:b:80")),
            (Some("a.example"), None, None)
        );
    }
}
