//! MCP messages as lines of JSON, checked before they are decoded, so that decoding costs a bounded amount of memory and
//! time.
//!
//! [`lines`] is the transport over a pair of streams, with [`backlog`] for back-pressure. [`envelope`] scans a message
//! for its id, method and size without decoding it, [`cursor`] detects cursors that rmcp ignores, and [`batch`] splits
//! batches of messages. [`lenient`] reads the messages of servers, [`frequent`] those that are sent most. [`unfit`] says
//! what a message of a client lacks. [`buffer_space`] is the memory held by messages that HTTP has received.

pub(in crate::server) mod backlog;
pub(in crate::server) mod batch;
pub(in crate::server) mod buffer_space;
pub(in crate::server) mod cursor;
pub(in crate::server) mod envelope;
pub(in crate::server) mod frequent;
pub(in crate::server) mod lenient;
pub(in crate::server) mod lines;
pub(in crate::server) mod unfit;
