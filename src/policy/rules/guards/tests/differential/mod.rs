//! Compares what guards accept with what the parsers of servers find: whenever a guard accepts a URL or a list of
//! addresses, every parser finds accepted hosts and addresses only.
//!
//! The corpora are `tests/guards/*.txt`; `tests/guards/README.md` says how to search for an hour.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;
use random::Random;

#[path = "../../../../../../tests/peers/mod.rs"]
mod peers;
mod random;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/guards");
/// Texts that are generated in addition to the corpora without `LISPBOX_GUARD_SECONDS`, and in one round with it.
const TEXTS: usize = 4_000;

/// The guard of links, among those of URLs.
const LINKS: usize = 3;
/// The guard of domains, among those of addresses.
const DOMAINS: usize = 3;

/// The hosts that the guards accept.
const HOSTS: [&str; 5] = ["docs.example.org", "home.example", "xn--bcher-kva.example", "127.0.0.1", "::1"];
/// The addresses that the guards accept.
const ADDRESSES: [&str; 4] =
    ["ann@home.example", "bob.ott@home.example", "c+d@docs.example.org", "o'neil@home.example"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Url,
    Addresses,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::Url, Kind::Addresses];

    fn key(self) -> &'static str {
        match self {
            Kind::Url => "url",
            Kind::Addresses => "addresses",
        }
    }

    /// Returns whether the guards that have accepted a text accept what a parser has found in it.
    fn is_accepted(self, found: &str, by: &[usize]) -> bool {
        let found = found.to_ascii_lowercase();
        let is_in_domain = || found.split_once('@').is_some_and(|(_, domain)| HOSTS.contains(&domain));
        match self {
            Kind::Url => HOSTS.contains(&found.trim_matches(['[', ']'])),
            // Some parsers report an item that they could not read as an empty address, or without its local part.
            Kind::Addresses => {
                ["", "<>"].contains(&found.as_str())
                    || found.starts_with('@') && is_in_domain()
                    || ADDRESSES.contains(&found.as_str())
                    || by == [DOMAINS] && is_in_domain()
            }
        }
    }

    /// Returns whether a text that was accepted by these guards is one that parsers of this kind are given.
    fn is_parsed(self, text: &str, by: &[usize]) -> bool {
        match self {
            Kind::Url => by != [LINKS] || is_link_alone(text),
            // A domain alone is accepted too.
            Kind::Addresses => text.contains('@'),
        }
    }
}

/// The guards of each kind, each alone, with the sources of their values.
struct Guards {
    url: Vec<Policy>,
    addresses: Vec<Policy>,
    origins: Arc<Origins>,
}

impl Guards {
    fn new() -> Guards {
        let guard = |conditions: Value| {
            let mut guard = json!({"tool": "mail/send_email", "argument": "x"});
            for (key, value) in conditions.as_object().expect("an object") {
                guard[key] = value.clone();
            }
            policy(&json!({ "guards": [guard] }))
        };
        let url = vec![
            guard(json!({"part": "host", "one_of": HOSTS})),
            guard(json!({"part": "host", "one_of": HOSTS, "ports": "any"})),
            guard(json!({"domain": HOSTS})),
            guard(json!({"part": "links", "one_of": HOSTS})),
            guard(json!({"part": "host", "from": "contacts/*"})),
        ];
        let of_one = r"(?s)(.*[\s,;<])?(ann|bob\.ott|o'neil)@home\.example>?";
        let addresses = vec![
            guard(json!({"one_of": ADDRESSES})),
            guard(json!({"matches": of_one})),
            guard(json!({"from": "contacts/*"})),
            guard(json!({"part": "domain", "one_of": HOSTS})),
        ];
        let origins = Arc::new(Origins::default());
        let urls: Vec<String> = HOSTS.iter().map(|host| format!("https://{}/x", bracketed(host))).collect();
        let texts = json!([urls, ADDRESSES]);
        let standing = url[LINKS + 1].standing("contacts", "list");
        origins.add_reply(&"contacts".into(), &"list".into(), &ToolReply::Json(texts.to_string()), standing);
        Guards { url, addresses, origins }
    }

    /// Returns which guards accept a text.
    fn accepting(&self, kind: Kind, text: &str) -> Vec<usize> {
        let guards = match kind {
            Kind::Url => &self.url,
            Kind::Addresses => &self.addresses,
        };
        let accepts = |policy: &Policy| objection(policy, &json!({ "x": text }), Some(&self.origins)).is_none();
        guards.iter().enumerate().filter(|(_, policy)| accepts(policy)).map(|(index, _)| index).collect()
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// The parsers of another language: a process that answers each text with what each of its parsers finds.
struct Foreign(Command);

type Found = BTreeMap<String, Vec<String>>;

impl Foreign {
    /// Returns Python's and Node's parsers; `None` if a package is missing and need not be there.
    fn all() -> Option<Vec<Foreign>> {
        peers::installed("node_modules/nodemailer")?;
        peers::installed("node_modules/email-addresses")?;
        let mut python = Command::new("python3");
        python.arg(format!("{FOLDER}/parsers.py"));
        let mut node = Command::new("node");
        node.arg(format!("{FOLDER}/parsers.cjs")).arg(peers::folder());
        Some(vec![Foreign(python), Foreign(node)])
    }

    fn find(&mut self, texts: &[(Kind, String)]) -> Vec<Found> {
        let mut child = self.0.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut input = child.stdin.take().expect("it is piped");
        let lines: String = texts.iter().map(|(kind, text)| line(&json!([kind.key(), text]))).collect();
        let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let found: Vec<Found> = output.lines().map(|line| found(&line.expect("it is text"))).collect();
        writer.join().expect("it does not panic").expect("all is read");
        assert!(child.wait().expect("it ends").success());
        assert_eq!(found.len(), texts.len());
        found
    }
}

/// Writes a line of JSON in ASCII: some readers also end a line at U+2028.
fn line(value: &Value) -> String {
    let escaped =
        |c: char| -> String { c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect() };
    let text = value.to_string();
    text.chars().map(|c| if c.is_ascii() { c.to_string() } else { escaped(c) }).chain(["\n".to_owned()]).collect()
}

/// Reads what each parser found: a text, a list of texts, or null if it refused the text.
fn found(line: &str) -> Found {
    let answer: BTreeMap<String, Value> = serde_json::from_str(line).expect("a line of JSON");
    let texts = |value: Value| match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect(),
        other => vec![other.as_str().expect("a text").to_owned()],
    };
    answer.into_iter().map(|(name, value)| (name, texts(value))).collect()
}

/// Returns the hosts that the parsers of Rust find in a URL.
fn found_here(text: &str) -> Found {
    let whatwg = url::Url::parse(text).ok().and_then(|url| Some(url.host_str()?.to_owned()));
    let rfc3986 = fluent_uri::Uri::parse(text).ok().and_then(|uri| Some(uri.authority()?.host().to_owned()));
    let of = |name: &str, host: Option<String>| (name.to_owned(), host.into_iter().collect());
    [of("WHATWG (url)", whatwg), of("RFC 3986 (fluent-uri)", rfc3986)].into()
}

/// Figures of a search.
#[derive(Debug, Default)]
struct Figures {
    texts: usize,
    accepted: [usize; 2],
    /// Hosts and addresses found by each parser.
    found: BTreeMap<String, usize>,
    disagreements: Vec<String>,
}

impl Figures {
    /// Compares what guards accept of these texts with what the parsers find.
    fn compare(&mut self, guards: &Guards, foreign: &mut [Foreign], texts: impl Iterator<Item = (Kind, String)>) {
        let accepted: Vec<(Kind, String)> = texts
            .inspect(|_| self.texts += 1)
            .filter(|(kind, text)| !guards.accepting(*kind, text).is_empty())
            .collect();
        let mut all: Vec<Found> = accepted
            .iter()
            .map(|(kind, text)| if *kind == Kind::Url { found_here(text) } else { Found::new() })
            .collect();
        for parsers in foreign {
            all.iter_mut().zip(parsers.find(&accepted)).for_each(|(all, found)| all.extend(found));
        }
        for ((kind, text), found) in accepted.iter().zip(all) {
            self.accepted[*kind as usize] += 1;
            let by = guards.accepting(*kind, text);
            for (parser, found) in found.into_iter().filter(|_| kind.is_parsed(text, &by)) {
                *self.found.entry(parser.clone()).or_default() += found.len();
                if found.iter().any(|found| !kind.is_accepted(found, &by)) {
                    self.disagreements
                        .push(format!("{kind:?} {text:?}: {parser} finds {found:?}; guards {by:?} accept it"));
                }
            }
        }
    }
}

/// Returns whether a text in which a guard has looked for links is a link and nothing else, so that parsers of URLs can
/// read it.
fn is_link_alone(text: &str) -> bool {
    let is_of_url = |c: char| c.is_ascii_alphanumeric() || "-._~%:/?#[]@!$&'()*+,;=".contains(c);
    let is_link = ["http://", "https://", "//"].iter().any(|start| text.starts_with(start));
    is_link && text.chars().all(is_of_url) && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
}

/// The corpus of a kind: texts, each with the sign of what accepts it.
fn corpus(kind: Kind) -> Vec<(char, String)> {
    let file = format!("{FOLDER}/{}.txt", kind.key());
    let text = std::fs::read_to_string(&file).expect("there is a corpus");
    let line = |line: &str| {
        let (sign, text) = (line.chars().next().unwrap_or_default(), &line[1..]);
        let text = serde_json::from_str(text.trim()).unwrap_or_else(|problem| panic!("{file}: {line}: {problem}"));
        (sign, text)
    };
    text.lines().filter(|line| line.starts_with(['+', '-', '~'])).map(line).collect()
}

#[test]
fn guards_accept_of_the_corpora_exactly_the_marked_texts() {
    let guards = Guards::new();
    for kind in Kind::ALL {
        let verdict = |text: &str| match guards.accepting(kind, text)[..] {
            [] => '-',
            [LINKS] if kind == Kind::Url => '~',
            _ => '+',
        };
        let others = corpus(kind).into_iter().map(|(sign, text)| (sign, verdict(&text), text));
        let others: Vec<_> = others.filter(|(sign, verdict, _)| sign != verdict).collect();
        assert!(others.is_empty(), "{kind:?}, each with its sign and the verdict: {others:#?}");
    }
}

#[test]
fn the_parsers_of_servers_find_what_guards_have_accepted() {
    let Some(mut foreign) = Foreign::all() else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let end = number("LISPBOX_GUARD_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let (guards, mut figures) = (Guards::new(), Figures::default());
    let known = Kind::ALL.into_iter().flat_map(|kind| corpus(kind).into_iter().map(move |(_, text)| (kind, text)));
    let seeds: Vec<(Kind, String)> = known.collect();
    figures.compare(&guards, &mut foreign, seeds.iter().cloned());
    let mut seed = number("LISPBOX_GUARD_SEED").unwrap_or(1);
    loop {
        let mut random = Random::new(seed);
        figures.compare(&guards, &mut foreign, (0..TEXTS).map(|_| random.text(&seeds)));
        if seed.is_multiple_of(50) || end.is_none_or(|end| Instant::now() >= end) {
            println!("seed {seed}: {figures:?}");
        }
        if !figures.disagreements.is_empty() || end.is_none_or(|end| Instant::now() >= end) {
            break;
        }
        seed += 1;
    }
    assert!(figures.disagreements.is_empty(), "seed {seed}: {:#?}", figures.disagreements);
    // A generator of which nothing is accepted, or parsers that find nothing, would show nothing.
    assert!(figures.accepted.iter().all(|accepted| *accepted > 100), "{figures:?}");
    assert!(figures.found.len() >= 11 && figures.found.values().all(|found| *found > 50), "{figures:?}");
}
