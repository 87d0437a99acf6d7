//! Finding out what there is.

use super::Builtin;
use crate::lang::error::Outcome;
use crate::lang::eval::Machine;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[];

/// What `lisp_env` answers.
///
/// # Errors
/// Limits.
pub fn describe_environment(_machine: &mut Machine, _query: Option<&str>) -> Outcome<String> {
    Ok(String::new())
}
