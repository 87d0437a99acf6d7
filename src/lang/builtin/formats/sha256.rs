//! SHA-256 digests: short, portable identifiers for long texts.

use super::bytes;
use crate::error::Outcome;
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use sha2::{Digest, Sha256};

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[Builtin::new(
    "hash/sha256",
    &["[s]"],
    "The SHA-256 digest of a string (as UTF-8) or a vector of bytes, as 64 hexadecimal digits.",
    &[("(subs (hash/sha256 \"abc\") 0 16)", "\"ba7816bf8f01cfea\""), ("(count (sha256 \"\"))", "64")],
    sha256,
)];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("sha256", "hash/sha256"),
    ("sha-256", "hash/sha256"),
    ("hash/sha-256", "hash/sha256"),
    ("digest/sha-256", "hash/sha256"),
    ("buddy.core.hash/sha256", "hash/sha256"),
];

fn sha256(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    const PIECE: usize = 1 << 16;
    let content = bytes(machine, &arguments[0])?;
    let mut digest = Sha256::new();
    for piece in content.chunks(PIECE) {
        machine.charge(piece.len() as u64 / 16 + 1)?;
        digest.update(piece);
    }
    let digits: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Value::string(&digits))
}
