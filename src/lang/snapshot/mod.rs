//! Sessions as s-expressions: an environment as text that the language's own reader reads back.
//!
//! The text is a table of rows. What is shared, what changes and what nests deeply has a row of its
//! own, `(object 3 …)`, and is referred to as `(ref 3)`; everything else stands where it is used. Rows stand in the
//! order of their numbers, and what has a row keeps its number from one text to the next, here and wherever the text
//! is read: a small change of a session is a small change of its text.
//! `(counts 12 3)` says how many programs have run and how many names `gensym` has made.
//! The last row is always that of `*1 *2 *3 *e`, `(history …)`: a text without it has been cut off.
//! Within rows values are written as expressions that would build them: `[1 2]`, `{:a 1}`,
//! `(pair :a 1)`, `(list 1 2)`, `(quote x)`, `(record {…})`, `(builtin core/count)`, `(function 4 0 5)`. Functions keep
//! their expanded forms and what their names meant, so that they mean the same wherever they are read.

mod decode;
mod encode;
mod failure;

pub use decode::decode;
pub use encode::encode;
pub use failure::{EncodeError, EncodeReason};

/// The version that this code writes, in the first row: `(lispbox-session 2)`. It reads all from the first on; that
/// one had no `counts` and no `pair`.
const VERSION: i64 = 2;

/// How deep a value nests within a row.
const ROW_NESTING: u32 = 100;

/// How deep the forms of a text nest: expanded code is nested more deeply than programs may be, with up to two brackets
/// for each level.
const CODE_NESTING: usize = 2_100;

/// The largest number of a row, or of names made by `gensym`, that is kept for the next text.
const MOST_ROWS: i64 = 1 << 52;
