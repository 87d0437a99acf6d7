//! What the runner and its children share: the workloads, their programs and inputs, and how a child measures.
//!
//! | room | what is in it |
//! |---|---|
//! | [`workload`] | the workloads, and the programs of each language |
//! | [`clock`] | what work takes: on the clock, and of the processors |
//! | [`growth`] | what grows in the second table |
//! | [`inputs`] | mails and lines from a fixed seed |
//! | [`child`] | a workload run once in this process, timed, told as one line of JSON |
//! | `src/bin/lispbox-child/` | lispbox, under the allocator of its binary |
//! | `src/bin/peers/` | the runner, and the children of the other Rust peers |

pub mod child;
pub mod clock;
pub mod growth;
pub mod inputs;
pub mod workload;
