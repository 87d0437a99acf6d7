//! The setting that says which changed tools are held.

use std::fmt;

use serde_json::Value;

use crate::server::fields::{Wrong, wrong};

/// The treatment of tools that their server has changed since they were pinned. A tool whose annotations claim less harm
/// than before is held in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pinning {
    /// Holds every changed tool.
    Strict,
    /// Holds every changed tool, except one that only reads and that merely takes further optional arguments.
    #[default]
    Lenient,
    /// Pins the change, and holds nothing else.
    Off,
}

impl Pinning {
    /// Reads the setting at a path of keys.
    pub(super) fn read(path: &str, value: &Value) -> Result<Pinning, Wrong> {
        match value.as_str() {
            Some("strict") => Ok(Pinning::Strict),
            Some("lenient") => Ok(Pinning::Lenient),
            Some("off") => Ok(Pinning::Off),
            // YAML 1.1 reads `off` as false.
            None if *value == Value::Bool(false) => Ok(Pinning::Off),
            _ => wrong(path, "`strict`, `lenient` or `off`", value),
        }
    }
}

impl fmt::Display for Pinning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Pinning::Strict => "strict",
            Pinning::Lenient => "lenient",
            Pinning::Off => "off",
        })
    }
}
