//! Tests of the language through its public API: one file per subject, all in one binary to save link time.

#[path = "../common/mod.rs"]
mod common;

mod ambient;
mod atoms;
mod bare_names;
mod branches;
mod clojure_corpus;
mod collections;
mod damaged_snapshots;
mod discovery;
mod error_codes;
mod evaluation;
mod examples;
mod forks;
mod growth;
mod host_functions;
mod large_programs;
mod letting_go;
mod limits;
mod moved_sessions;
mod notes;
mod options;
mod pages;
mod partly;
mod pipelines;
mod plans;
mod prelude;
mod previews;
mod printing;
mod reference;
mod rehearsals;
mod replays;
mod runs;
mod searches;
mod shortcuts;
mod snapshots;
mod spec;
mod suspended;
mod time;
mod tool_arguments;
mod transactions;
mod values;
mod vars;
mod views;
mod wrong_programs;
