//! Tests of the reader.

mod brackets;
mod programs;
