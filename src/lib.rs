//! **lispbox**: a small, sandboxed Lisp in which AI agents run their data pipelines.
//!
//! An agent sends one program. The program calls the tools it was given and processes their results in place; only
//! the answer returns to the agent. This page is the map of the code. `README.md` is for users, `docs/values.md`
//! explains the design of values and the evaluator, `docs/security.md` the security guarantees, `docs/tools.md` how
//! programs find and call tools, `docs/performance.md` the performance characteristics, and `docs/http.md` and
//! `docs/stores.md` how to operate a server for many users.
//!
//! ```
//! use lispbox::lang::{Engine, Metered, World};
//!
//! // Without this no memory limit can be kept.
//! #[global_allocator]
//! static ALLOCATOR: Metered<std::alloc::System> = Metered::new(std::alloc::System);
//!
//! let mut session = Engine::builder().build().unwrap().session();
//! let outcome = session.run("(->> [1 2 3] (map inc) (reduce +))").eval::<i64>(&World::default()).unwrap();
//! assert_eq!(outcome.done(), Some(9));
//! ```
//!
//! # Embedding
//! `docs/embedding.md` is the guide. In short:
//! - **Install [`Metered`](lang::Metered)** around the global allocator, as above: it counts memory for the
//!   limits. Without it [`EngineBuilder::build`](lang::EngineBuilder::build) returns an error that explains this
//!   (`tests/no_allocator.rs`), unless [`unlimited_memory`](lang::EngineBuilder::unlimited_memory) was set.
//! - **Give programs [`Tools`](lang::Tools)**, which are closures, in a [`World`](lang::World) that is created for each
//!   request. An operation that neither waits nor has effects is better added to the language as a
//!   [function](lang::EngineBuilder::function).
//! - **[Run](lang::Session::run)** a program with [`Limits`](lang::Limits), on a thread that may block. Its
//!   [`Outcome`](lang::Outcome) has the type that you ask for; a [`Reply`](lang::Reply) is text for a model.
//! - **Persist a session** as the text of [`Session::encode`](lang::Session::encode), in any storage, whenever
//!   [`Session::changes`](lang::Session::changes) reports a change.
//! - **Implement a [`Host`](lang::Host)** instead of using a `World` only at the boundary of a process, as the server and
//!   the workers do.
//!
//! Four example programs serve as templates; `tests/embedding.rs` runs them. `examples/embed_blocking.rs` needs no
//! async runtime and keeps a session in a file. `examples/assistant/` is the back end of an assistant with tokio and
//! axum; it keeps the users' sessions in its own table, one per user, and ends evaluations when their client
//! disconnects. `examples/rust_tools.rs` serves closures as tools over MCP. `examples/tested_tools.rs` tests one's own
//! tools with a scripted model.
//!
//! # Code layout
//! The crates and modules are layers: `lang` ← `policy`, `store`, `worker` ← `server` ← the command line. The compiler
//! enforces that of `lang` and `policy`, which are crates of their own; `tests/layers.rs` enforces the layers within them
//! and within the server. A module with submodules is `x/mod.rs`; the unit tests of a module are its submodule `tests`, in the same
//! file or, if they are long, in `tests.rs`.
//! - [`lang`] (crate `lispbox-lang`, `src/lang`): the language; independent of tokio, MCP, files and clocks. Its page
//!   lists its layers and explains the terms used in its code.
//! - [`lang::internal::lexer`], [`lang::internal::reader`], [`lang::internal::form`]: text to tokens to forms; one pass reports all unbalanced
//!   brackets.
//! - `lang::expand`: macro expansion: forms to the few special forms that the resolver knows.
//! - `lang::resolve`, `lang::node`: name resolution, done once: forms to nodes with slots and indices.
//! - `lang::eval`, `lang::machine`: the tree walk, calls, branches (`pmap`), tools as functions, vars and their
//!   bindings; the state it runs on.
//! - [`lang::value`]: the values; traversal, comparison, printing and dropping without recursion.
//! - `lang::heap`: mutable cells: atoms, delays, lazy sequences; undo log and cycle collector.
//! - `lang::meter`: the ledger of limits and the metering allocator.
//! - `lang::error`: errors, faults, halts; suggestions; rendering with carets.
//! - `lang::native`, `lang::registry`: the contract of a builtin, and the table of everything that has a name.
//! - `lang::builtin`: one table entry per function with its name, arguments, doc, examples and code, and the
//!   functions that a host adds. Each larger area has a folder (`sequences`, `transducers`, `time`, `formats`,
//!   `dispatch`, `dialects`).
//! - `lang::prelude`, `stdlib/`: functions written in the language itself, compiled on first use;
//!   `stdlib/REFERENCE.md` is generated.
//! - `lang::json`: JSON input and output.
//! - `lang::snapshot`: sessions serialized as s-expressions.
//! - `lang::host`: the only interface to the outside: the [`Host`](lang::Host) trait, and clocks.
//! - `lang::convert`: conversion between values and Rust types by serde.
//! - `lang::embed`: the interface for Rust programs: closures as functions and tools, worlds, runs and their outcomes.
//! - `lang::runs`: the log of a run's host calls, and the host that answers logged calls, by which a run that waits for
//!   a person is suspended and resumed.
//! - [`lang::Session`], `lang::evaluation`, `lang::reply`: programs run form by form; the single record of an evaluation.
//! - `policy` (crate `lispbox-policy`, `src/policy`, feature `policy`): decides on tool calls: rules, guards by the origins
//!   of values, grants, rehearsals; for the server, and as a layer of the calls of an embedder.
//! - `server` (feature `server`): the MCP server: the two tools, sessions, downstream servers and tools without one,
//!   configuration, consent, audit, logs, metrics. Its page lists its layers.
//! - `store` (feature `store`): session storage across calls, processes and machines: leases and versions; SQLite, Redis
//!   and PostgreSQL (features `sqlite`, `redis`, `postgres`).
//! - `worker` (feature `worker`, Linux): the second layer of isolation: sessions in worker processes that the kernel
//!   confines; see `docs/security.md`.
//! - `src/bin/lispbox/`: the command line, one file per command.
//! - `grammar/`: the grammar, with variants for constrained decoding and for editors; `tests/grammar/` checks them
//!   against the reader.
//! - `tests/clojure/`: programs with the results of real Clojure, recorded by `record.clj`.
//! - `examples/`: programs that embed the crate, and measurements.
//! - `benches/`: time and instruction counts of the language; round trips and load of the server; the token cost of
//!   tools for a model; comparisons with other systems (`benches/peers/`).
//! - `tests/`: specs by area (`tests/spec/*.md`), serialized sessions of every version (`tests/snapshots/`), the
//!   claims of `docs/values.md`, hostile and real peers, MCP's conformance suite (`tests/conformance/`).
//!
//! # Invariants
//! - No file imports from a layer above its own. `server` uses `lang`, never the other way round; `worker` lies between
//!   them and needs no async runtime.
//! - Values have no cycles: a function is code plus captured values, or a closure of the embedder that its engine owns. Mutable state lives in
//!   the session's heap.
//! - No recursion depth is proportional to the size of data. The nesting of programs (256), of expanded code (1,000),
//!   of keys (64) and of JSON (1,000) is bounded and checked on entry.
//! - Every loop in a builtin charges the meter, and checks memory before it allocates.
//! - Values are created and dropped inside an evaluation's account; work of the host runs outside it.
//! - A limit or a cancellation is a `Halt`, which programs cannot catch.
//! - A top-level form is atomic: its effects on the session are kept entirely or undone entirely.
//!
//! # Deliberate omissions
//! `eval` of data, I/O, ambient clocks or randomness, host reflection, program-created threads, an interner, a cache
//! of compiled programs, and mutable global state. The exceptions to the last are bookkeeping: per thread, the
//! allocator's counter and maximum, deferred charges, deferred drops, and the value that serde passes through; per
//! process, the number of threads with large deferred charges, and the descriptions of functions of embedders.

#[doc(inline)]
pub use lispbox_lang as lang;
#[cfg(feature = "policy")]
#[doc(inline)]
pub use lispbox_policy as policy;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "store")]
pub mod store;
#[cfg(all(feature = "worker", target_os = "linux"))]
pub mod worker;

/// The examples of the guide are compiled and run like those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct EmbeddingGuide;
