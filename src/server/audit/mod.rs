//! The audit log: tamper-evident records of all tool calls, evaluations, questions and resource reads.
//!
//! Each process writes its own chain, in a folder that several processes may share: lines of JSON, each with the
//! SHA-256 of the previous line, in numbered parts. The head of a chain, its length and last hash, is kept in a
//! separate file: without it, missing lines at the end would go unnoticed. [`AuditLog`] writes a chain, [`chains`]
//! finds the chains of a folder, and [`Chain::verify`] checks one.
//!
//! A call has two records: its intent, written before anything is sent, and its outcome, which refers to the number of
//! the intent. A call whose intent cannot be written is not made; an intent without an outcome means that the process
//! ended during the call. A program is likewise announced before it runs ([`Kind::Program`]), and its evaluation is
//! recorded when it has ended: no evaluation that was acknowledged is lost from the log if the process is killed.
//!
//! A chain proves only its own integrity. Anyone who can write to the folder and to the heads can forge a chain: keep
//! the heads where the audited machine cannot change them.

mod call;
mod chain;
mod record;
mod redaction;
mod write;

use serde::{Deserialize, Serialize};

pub(in crate::server) use call::{AuditedCall, Outcome};
pub use chain::{Chain, OpenIntents, Verified, chains};
pub use record::{Kind, Record};
pub use redaction::Redaction;
pub use write::{AuditFailure, AuditLog, AuditOptions};

/// The length and the last hash of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The name of the chain.
    pub chain: String,
    /// The number of records.
    pub records: u64,
    /// The SHA-256 of the last line.
    pub hash: String,
    /// True if the process has ended in order.
    pub ended: bool,
}

/// The suffix of a part: `CHAIN.0001.jsonl`.
const PART: &str = ".jsonl";
/// The suffix of a head: `CHAIN.head`.
const HEAD: &str = ".head";
