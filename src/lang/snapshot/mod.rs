//! Sessions as s-expressions: an environment as text that the language's own reader reads back.
//!
//! The text is a table of rows. What is shared, what changes and what nests deeply has a row of its
//! own, `(object 3 …)`, and is referred to as `(ref 3)`; everything else stands where it is used. Rows stand in the
//! order of their numbers, and what has a row keeps its number from one text to the next, here and wherever the text
//! is read: a small change of a session is a small change of its text.
//! The last row is always that of `*1 *2 *3 *e`, `(history …)`: a text without it has been cut off.
//! Within rows values are written as expressions that would build them: `[1 2]`, `{:a 1}`,
//! `(list 1 2)`, `(quote x)`, `(record {…})`, `(builtin core/count)`, `(function 4 0 5)`. Functions keep
//! their expanded forms and what their names meant, so that they mean the same wherever they are read.

mod decode;
mod encode;

pub use decode::decode;
pub use encode::encode;

/// The version that this code writes, in the first row: `(lispbox-session 1)`.
const VERSION: i64 = 1;

/// How deep a value nests within a row.
const ROW_NESTING: u32 = 100;

/// The largest number of a row that is kept for the next text.
const MOST_ROWS: i64 = 1 << 52;
