//! Texts at random: URLs and lists of addresses from parts that parsers read differently, and changed texts of the corpora.

use super::{ADDRESSES, HOSTS, Kind, bracketed};

/// Characters and sequences that parsers treat differently.
const ODD: [&str; 58] = [
    "\\", "/", "//", "?", "#", "@", ":", ";", ",", ".", "..", "%", "%00", "%2e", "%2f", "%40", "%5c", "%0d%0a", "%25",
    " ", "\t", "\n", "\r", "\r\n", "\0", "\u{b}", "\u{c}", "\u{7f}", "\u{85}", "\u{a0}", "\u{ad}", "\u{200b}",
    "\u{2028}", "\u{3002}", "\u{ff0e}", "\u{ff0f}", "\u{ff20}", "\u{ff1a}", "\u{2100}", "\u{df}", "\u{130}",
    "\u{202e}", "[", "]", "(", ")", "<", ">", "\"", "'", "=", "&", "|", "^", "`", "{", "!", "*",
];

const SCHEMES: [&str; 22] = [
    "https://",
    "https://",
    "https://",
    "https://",
    "http://",
    "http://",
    "HTTPS://",
    "hTTp://",
    "ftp://",
    "ws://",
    "file://",
    "javascript://",
    "https:",
    "https:/",
    "https:///",
    "https:\\\\",
    "//",
    "",
    "x://",
    "https://https://",
    " https://",
    "view-source:https://",
];

const USERS: [&str; 7] =
    ["evil.example@", "u:p@", "@", "home.example:80@", "home.example\\@", "home.example%40", "home.example#@"];

const OTHER_HOSTS: [&str; 30] = [
    "evil.example",
    "home.example.evil.example",
    "evilhome.example",
    "home.example.",
    "home..example",
    ".home.example",
    "HOME.Example",
    "home\u{3002}example",
    "\u{ff48}ome.example",
    "hom\u{435}.example",
    "b\u{fc}cher.example",
    "xn--a.example",
    "0x7f.1",
    "127.1",
    "2130706433",
    "0177.0.0.1",
    "127.0.0.1.",
    "127.0.0.01",
    "0x7f000001",
    "[::ffff:127.0.0.1]",
    "[::1%25lo]",
    "[0:0:0:0:0:0:0:1]",
    "[::1",
    "::1",
    "home%2eexample",
    "home.example%00.evil.example",
    "home_example",
    "-home.example",
    "localhost",
    "",
];

const PORTS: [&str; 14] = ["", "", "", "", "", ":443", ":80", ":8443", ":", ":0", ":0443", ":99999", ":80:90", ":x"];

const TAILS: [&str; 26] = [
    "",
    "/",
    "/a",
    "/a/b.html?x=1&y=2#z",
    "?x=1",
    "#x",
    "/?q=a+b%20c",
    "/@evil.example",
    "/a@evil.example/b",
    "?@evil.example",
    "#@evil.example",
    "/..//evil.example/",
    "//evil.example/",
    "/;evil.example/",
    "/,evil.example",
    "/,https://evil.example/",
    "/ https://evil.example/",
    "/\nhttps://evil.example/",
    "?u=https://evil.example/",
    "/\\evil.example/",
    "/a,b;c",
    "/(a)",
    "/#a#b",
    "/%",
    "/\u{e9}",
    ":@evil.example/",
];

const OTHER_ADDRESSES: [&str; 26] = [
    "eve@evil.example",
    "ann@home.example.evil.example",
    "eve",
    "@evil.example",
    "ann@",
    "\"ann\"@home.example",
    "\"eve@evil.example \"@home.example",
    "\"eve@evil.example,\"@home.example",
    "ann@home.example@evil.example",
    "eve@evil.example@home.example",
    "eve%evil.example@home.example",
    "evil.example!eve@home.example",
    "<@evil.example:ann@home.example>",
    "ann@[127.0.0.1]",
    "ann@home.example.",
    "ann(eve@evil.example)@home.example",
    "ann@home.example(eve@evil.example)",
    "=?utf-8?q?eve=40evil.example=2C?=@home.example",
    "=?utf-8?b?ZXZlQGV2aWwuZXhhbXBsZQ==?=",
    "ANN@HOME.EXAMPLE",
    "\u{e4}nn@home.example",
    "ann\u{ff20}home.example",
    ".ann@home.example",
    "ann..b@home.example",
    "mailto:ann@home.example",
    "g:eve@evil.example;",
];

const NAMES: [&str; 20] = [
    "Ann",
    "Bob Ott",
    "C D",
    "\"Ott, Bob\"",
    "O'Neil-Ott Jr.",
    "J\u{fc}rgen",
    "\"\"",
    "eve@evil.example",
    "\"eve@evil.example\"",
    "\"a\\\" <eve@evil.example>,\"",
    "(eve@evil.example)",
    "=?utf-8?q?eve=40evil.example=2C?=",
    "group:",
    "a,b",
    "a;b",
    "\"",
    "\\",
    "<eve@evil.example>",
    "\u{2474}",
    "A & B",
];

const SEPARATORS: [&str; 14] = [", ", ", ", ",", ";", "; ", "\n", "\r\n", " ", ",,", ", ,", "\r\n ", "\t", " , ", ":"];

/// A generator of numbers, the same for each seed (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    /// Returns a text: a new one, or a changed one of these.
    pub(super) fn text(&mut self, seeds: &[(Kind, String)]) -> (Kind, String) {
        let (kind, mut text) = match self.below(4) {
            0 => seeds[self.below(seeds.len())].clone(),
            1 => (Kind::Addresses, self.addresses()),
            _ => (Kind::Url, self.url()),
        };
        for _ in 0..[0, 0, 1, 1, 2, 4][self.below(6)] {
            self.change(&mut text, seeds);
        }
        (kind, text)
    }

    fn url(&mut self) -> String {
        let scheme = if self.one_in(4) { self.of(&SCHEMES) } else { "https://" };
        let user = if self.one_in(10) { self.of(&USERS) } else { "" };
        let host = if self.one_in(6) { self.of(&OTHER_HOSTS).to_owned() } else { bracketed(self.of(&HOSTS)) };
        let port = if self.one_in(3) { self.of(&PORTS) } else { "" };
        let tail = self.of(&TAILS);
        format!("{scheme}{user}{host}{port}{tail}")
    }

    fn addresses(&mut self) -> String {
        let mut text = String::new();
        for index in 0..=self.below(4) {
            if index > 0 {
                text += if self.one_in(4) { self.of(&SEPARATORS) } else { ", " };
            }
            let address = if self.one_in(8) { self.of(&OTHER_ADDRESSES) } else { self.of(&ADDRESSES) };
            match self.below(3) {
                0 => {
                    text +=
                        &format!("{} <{address}>", if self.one_in(5) { self.of(&NAMES) } else { self.of(&NAMES[..6]) })
                }
                _ => text += address,
            }
        }
        text
    }

    fn change(&mut self, text: &mut String, seeds: &[(Kind, String)]) {
        let (from, to) = (self.place(text), self.place(text));
        let (from, to) = (from.min(to), from.max(to));
        match self.below(8) {
            0..=3 => text.insert_str(from, self.of(&ODD)),
            4 => {
                text.drain(from..to);
            }
            5 => text.replace_range(from..to, self.of(&ODD)),
            6 => {
                let copied = text[from..to].to_owned();
                text.insert_str(to, &copied);
            }
            _ => {
                let other = &seeds[self.below(seeds.len())].1;
                let end = self.place(other);
                text.insert_str(from, &other[..end]);
            }
        }
    }

    /// Returns the index of a character, or the end.
    fn place(&mut self, text: &str) -> usize {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        places[self.below(places.len())]
    }
}
