//! Code shared by the runner and its child processes: the workloads, their programs and inputs, and the measurement.
//!
//! | module | contents |
//! |---|---|
//! | [`workload`] | the workloads, and the programs of each language |
//! | [`clock`] | wall-clock time and processor time |
//! | [`growth`] | the quantities that grow in the second table |
//! | [`inputs`] | mails and lines from a fixed seed |
//! | [`child`] | runs a workload once in this process, and reports its time as one line of JSON |
//! | `src/bin/lispbox-child/` | lispbox, with the allocator of its binary |
//! | `src/bin/peers/` | the runner, and the child processes of the other Rust peers |

pub mod child;
pub mod clock;
pub mod growth;
pub mod inputs;
pub mod workload;
