//! The audit log: one record for each tool call and each evaluation, in files that show it if one is taken out.
//!
//! Every process writes a chain of its own, in a folder that several may share: lines of JSON, each with the SHA-256 of
//! the line before it, in parts that are numbered. What the chain has come to, its head, stands in a file apart: without
//! it, nobody would see that the last lines are missing. [`AuditLog`] writes, [`chains`] finds what was written, and
//! [`Chain::verify`] reads it again.
//!
//! A chain proves no more than that it is whole. Who can write to the folder and to the heads can write another one:
//! keep the heads where the machine that is audited cannot change them.

mod chain;
mod record;
mod write;

pub use chain::{Chain, Verified, chains};
pub use record::{Kind, Record, Redaction};
pub use write::{AuditLog, AuditOptions};

use serde::{Deserialize, Serialize};

/// What a chain has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The name of the chain.
    pub chain: String,
    /// How many records there are.
    pub records: u64,
    /// The SHA-256 of the last line.
    pub hash: String,
    /// True once the process has ended in order.
    pub ended: bool,
}

/// The ending of a part: `CHAIN.0001.jsonl`.
const PART: &str = ".jsonl";
/// The ending of a head: `CHAIN.head`.
const HEAD: &str = ".head";
