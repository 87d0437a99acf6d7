//! Regular expressions: linear in time, bounded in size.

use super::Builtin;
use crate::lang::error::Error;
use regex::{Regex, RegexBuilder};
use std::sync::Arc;

/// The entries of this file.
pub const TABLE: &[Builtin] = &[];

/// How large a compiled expression may be.
const SIZE: usize = 1 << 20;

/// Compiles an expression.
///
/// # Errors
/// `InvalidRegex` with what the library says of it.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, Error> {
    let built = RegexBuilder::new(pattern).size_limit(SIZE).dfa_size_limit(SIZE).nest_limit(100).build();
    built.map(Arc::new).map_err(|error| {
        let said = error.to_string();
        let last = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
        Error::new("InvalidRegex", format!("the regex `{pattern}` is not valid: {last}"))
            .suggest("the syntax is that of Rust's regex crate: no look-around and no back-references")
    })
}
