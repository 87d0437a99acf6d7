//! The audit log: records of each tool call, evaluation, question and resource, in files that show it if one is taken out.
//!
//! Every process writes a chain of its own, in a folder that several may share: lines of JSON, each with the SHA-256 of
//! the line before it, in parts that are numbered. The head of a chain, its length and last hash, is in a file apart:
//! without it, missing last lines would not show. [`AuditLog`] writes, [`chains`] finds the chains of a folder, and
//! [`Chain::verify`] reads one again.
//!
//! A call leaves two records: its intent, written before anything is sent, and its outcome, which has the number of the
//! intent. A call whose intent cannot be written is not made; an intent without an outcome says that the process ended
//! while the call was under way. A program is announced alike before it runs ([`Kind::Program`]), and its evaluation has
//! a record when it has ended: a kill leaves no evaluation unmentioned that was acknowledged.
//!
//! A chain proves no more than that it is whole. Who can write to the folder and to the heads can write another one:
//! keep the heads where the machine that is audited cannot change them.

mod call;
mod chain;
mod record;
mod redaction;
mod write;

pub(super) use call::{Announcement, Announcer, AuditedCall, Outcome};
pub use chain::{Chain, OpenIntents, Verified, chains};
pub use record::{Kind, Record};
pub use redaction::Redaction;
pub use write::{AuditFailure, AuditLog, AuditOptions};

use serde::{Deserialize, Serialize};

/// The length and the end of a chain.
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
