//! Base64 in the standard and the URL-safe alphabet.

use super::super::arguments::{string, take};
use super::super::options::FLAG;
use super::super::text::{ask_for_copy, excerpt, pay};
use super::{bytes, text_or_bytes};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, OptionSet, OptionSpec};
use crate::value::Value;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "base64/encode",
        &["[s & options]"],
        "Encodes a string (as UTF-8) or a vector of bytes as base64; `:url true`: URL-safe alphabet, no padding.",
        &[("(base64/encode \"hi?>\")", "\"aGk/Pg==\""), ("(base64/encode \"hi?>\" :url true)", "\"aGk_Pg\"")],
        encode,
    )
    .with_options(&ENCODE),
    Builtin::new(
        "base64/decode",
        &["[s & options]"],
        "Decodes base64 text in either alphabet, padded or not, to a string; with `:bytes true`, to a vector of bytes. \
         `:url true` is accepted, and not needed.",
        &[
            ("(base64/decode \"SGVsbG8gd29ybGQ\")", "\"Hello world\""),
            ("(base64/decode \"_w==\" :bytes true)", "[255]"),
        ],
        decode,
    )
    .with_options(&DECODE),
];

static ENCODE: OptionSet = OptionSet { function: "base64/encode", accepted: &[OptionSpec::new("url", &FLAG)] };

static DECODE: OptionSet = OptionSet {
    function: "base64/decode",
    accepted: &[OptionSpec::new("bytes", &FLAG), OptionSpec::new("url", &FLAG)],
};

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("base64-encode", "base64/encode"),
    ("base64/encode-string", "base64/encode"),
    ("b64/encode", "base64/encode"),
    ("b64encode", "base64/encode"),
    ("base64/b64encode", "base64/encode"),
    ("btoa", "base64/encode"),
    ("base64-encode-string", "base64/encode"),
    ("base64-decode", "base64/decode"),
    ("base64/decode-string", "base64/decode"),
    ("base64/decode-url", "base64/decode"),
    ("b64/decode", "base64/decode"),
    ("b64decode", "base64/decode"),
    ("base64/b64decode", "base64/decode"),
    ("base64/urlsafe_b64decode", "base64/decode"),
    ("atob", "base64/decode"),
    ("base64-decode-string", "base64/decode"),
];

fn encode(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = ENCODE.read(&mut arguments[1..])?;
    let content = bytes(machine, &arguments[0])?;
    if content.len() >= 4_096 {
        machine.charge(content.len() as u64 / 16)?;
        machine.reserve(content.len() as u64 * 3)?;
    }
    let for_urls = given.is_on("url");
    let text = if for_urls { URL_SAFE_NO_PAD.encode(&content) } else { STANDARD.encode(&content) };
    Ok(Value::string(&text))
}

fn decode(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = DECODE.read(&mut arguments[1..])?;
    let value = take(arguments, 0);
    let text = string(&value)?;
    pay(machine, text)?;
    machine.charge(text.len() as u64 / 16)?;
    ask_for_copy(machine, text, 2)?;
    let plain: String = text
        .chars()
        .filter(|c| !c.is_ascii_whitespace() && *c != '=')
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    let engine = STANDARD_NO_PAD;
    let decoded = engine.decode(&plain).map_err(|problem| {
        Error::new("InvalidBase64", format!("`{}` is not base64: {}", excerpt(text), reason(&problem)))
    })?;
    text_or_bytes(machine, &decoded, given.is_on("bytes"))
}

/// Describes a decoding error in words.
fn reason(problem: &base64::DecodeError) -> String {
    match problem {
        base64::DecodeError::InvalidByte(at, byte) => {
            format!("{:?} at position {at} is not in its alphabet", char::from(*byte))
        }
        base64::DecodeError::InvalidLength(length) => {
            format!("its {length} digits are one too many or too few; the text may be cut off")
        }
        _ => "its end is invalid; the text may be cut off".to_string(),
    }
}
