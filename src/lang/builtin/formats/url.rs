//! URLs: percent-encoding, query strings, and the components of an address.

use super::super::arguments::{map, string, take};
use super::super::text::{Builder, ask_for_copy, excerpt, pay, textual};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::map::record_key;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "url/encode",
        &["[s]", "[s charset]"],
        "Percent-encodes text for a component of a URL: all but ASCII letters, digits and `-_.~`.",
        &[("(url/encode \"a b&c/ü\")", "\"a%20b%26c%2F%C3%BC\"")],
        encode,
    ),
    Builtin::new(
        "url/decode",
        &["[s]", "[s charset]"],
        "Decodes percent-encoded text; `+` becomes a space.",
        &[("(url/decode \"a+b%26c%2F%C3%BC\")", "\"a b&c/ü\"")],
        decode,
    ),
    Builtin::new(
        "url/query",
        &["[m]"],
        "A map as the query string of a URL; a collection repeats its key for each item, nil is omitted.",
        &[("(url/query {:q \"a b\" :tag [\"x\" \"y\"] :page 2 :sort nil})", "\"q=a%20b&tag=x&tag=y&page=2\"")],
        query,
    ),
    Builtin::new(
        "url/parse-query",
        &["[s]"],
        "Parses the query string of a URL to a map of strings; a repeated key has a vector.",
        &[("(url/parse-query \"?q=a+b&tag=x&tag=y\")", "{:q \"a b\", :tag [\"x\" \"y\"]}")],
        |machine, arguments| {
            let value = take(arguments, 0);
            let text = string(&value)?;
            parse_query(machine, text.strip_prefix('?').unwrap_or(text))
        },
    ),
    Builtin::new(
        "url/parse",
        &["[s]"],
        "A map of the parts present in a URL: `:scheme :user :host :port :path :query :fragment`; `:query` is a map.",
        &[
            (
                "(url/parse \"https://example.org:8080/a/b?q=1#top\")",
                "{:scheme \"https\", :host \"example.org\", :port 8080, :path \"/a/b\", :query {:q \"1\"}, :fragment \"top\"}",
            ),
            ("(:host (url/parse \"mailto:ann@example.org\"))", "nil"),
        ],
        parse,
    ),
];

/// Aliases from Java, JavaScript, Python and Clojure's libraries, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("url-encode", "url/encode"),
    ("url-decode", "url/decode"),
    ("url/url-encode", "url/encode"),
    ("url/url-decode", "url/decode"),
    ("encodeURIComponent", "url/encode"),
    ("decodeURIComponent", "url/decode"),
    ("URLEncoder/encode", "url/encode"),
    ("URLDecoder/decode", "url/decode"),
    ("java.net.URLEncoder/encode", "url/encode"),
    ("java.net.URLDecoder/decode", "url/decode"),
    ("ring.util.codec/url-encode", "url/encode"),
    ("ring.util.codec/url-decode", "url/decode"),
    ("ring.util.codec/form-encode", "url/query"),
    ("ring.util.codec/form-decode", "url/parse-query"),
    ("url/map->query", "url/query"),
    ("url/query->map", "url/parse-query"),
    ("url/build-query", "url/query"),
    ("parse-url", "url/parse"),
    ("url/url", "url/parse"),
];

/// Characters to percent-encode: all but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn encode(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let text = textual(machine, &arguments[0])?;
    let mut builder = Builder::default();
    for part in utf8_percent_encode(&text, RESERVED) {
        machine.charge(1)?;
        builder.push(machine, part)?;
    }
    Ok(builder.finish())
}

fn decode(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let value = take(arguments, 0);
    decoded(machine, string(&value)?).map(|text| Value::string(&text))
}

fn decoded(machine: &mut Machine, text: &str) -> Outcome<String> {
    pay(machine, text)?;
    ask_for_copy(machine, text, 2)?;
    let blanks = text.replace('+', " ");
    match percent_decode_str(&blanks).decode_utf8() {
        Ok(decoded) => Ok(decoded.into_owned()),
        Err(_) => {
            Err(Error::new("InvalidText", format!("the percent-coded bytes of `{}` are not UTF-8 text", excerpt(text)))
                .into())
        }
    }
}

fn query(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let fields = map(take(arguments, 0))?;
    let mut builder = Builder::default();
    for position in 0..fields.positions() {
        machine.charge(1)?;
        let Some((key, value)) = fields.entry(position) else { continue };
        let key = match key {
            Value::Keyword(name) | Value::Symbol(name) => Value::string(name.as_str()),
            other => other.clone(),
        };
        match value {
            Value::Nil => {}
            Value::Vector(_) | Value::List(_) | Value::Set(_) | Value::Lazy(_) => {
                let mut items = machine.seq(value.clone())?;
                while let Some(item) = items.next(machine)? {
                    field(machine, &mut builder, &key, &item)?;
                }
            }
            single => field(machine, &mut builder, &key, single)?,
        }
    }
    Ok(builder.finish())
}

/// Appends one `key=value` pair of a query.
fn field(machine: &mut Machine, builder: &mut Builder, key: &Value, value: &Value) -> Outcome<()> {
    if !builder.as_str().is_empty() {
        builder.push(machine, "&")?;
    }
    for (value, after) in [(key, "="), (value, "")] {
        let text = match value {
            Value::Keyword(name) => name.as_str().to_string(),
            other => super::super::arguments::text(machine, other)?,
        };
        for part in utf8_percent_encode(&text, RESERVED) {
            machine.charge(1)?;
            builder.push(machine, part)?;
        }
        builder.push(machine, after)?;
    }
    Ok(())
}

fn parse_query(machine: &mut Machine, text: &str) -> Outcome<Value> {
    let mut fields = Map::default().into_record();
    for part in text.split(['&', ';']).filter(|part| !part.is_empty()) {
        machine.charge(2)?;
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let key = record_key(&decoded(machine, key)?);
        let value = Value::string(&decoded(machine, value)?);
        match fields.get(&key).cloned() {
            None => fields.insert(key, value),
            Some(Value::Vector(known)) => {
                machine.charge(known.change_cost())?;
                let mut more = known.changeable();
                more.push(value);
                fields.insert(key, Value::Vector(Arc::new(more)));
            }
            Some(first) => fields.insert(key, Value::vector(vec![first, value])),
        }
    }
    Ok(Value::Map(Arc::new(fields)))
}

fn parse(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let value = take(arguments, 0);
    let text = string(&value)?.trim();
    pay(machine, text)?;
    let mut parts = Map::default().into_record();
    let mut put = |name: &str, value: Value| parts.insert(Value::keyword(name), value);
    let (rest, fragment) = split_at_first(text, '#');
    let (rest, query) = split_at_first(rest, '?');
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, behind)) if is_scheme(scheme) => (Some(scheme), behind),
        _ => (None, rest),
    };
    if let Some(scheme) = scheme {
        put("scheme", Value::string(&scheme.to_ascii_lowercase()));
    }
    let path = match rest.strip_prefix("//") {
        Some(behind) => {
            let (authority, path) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
            let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
            if let Some(user) = user {
                put("user", Value::string(user));
            }
            // A bracketed IPv6 address contains colons itself.
            let (host, port) = match host.rsplit_once(':') {
                Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
                _ => (host, None),
            };
            put("host", Value::string(&host.to_lowercase()));
            match port.map(str::parse::<u16>) {
                Some(Ok(port)) => put("port", Value::Int(i64::from(port))),
                Some(Err(_)) if port != Some("") => {
                    return Err(Error::new(
                        "InvalidUrl",
                        format!("the port of `{}` is not a number up to 65535", excerpt(text)),
                    )
                    .into());
                }
                _ => {}
            }
            path
        }
        None => rest,
    };
    put("path", Value::string(path));
    if let Some(query) = query {
        let query = parse_query(machine, query)?;
        put("query", query);
    }
    if let Some(fragment) = fragment {
        put("fragment", Value::string(fragment));
    }
    Ok(Value::Map(Arc::new(parts)))
}

fn split_at_first(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}
