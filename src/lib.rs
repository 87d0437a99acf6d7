//! **lispbox**: a small, sandboxed Lisp that AI agents run their data pipelines in.
//!
//! An agent sends one program; the program calls the tools it was given, works on the results where they
//! are, and only the answer goes back. This page is the map of the code; `README.md` is for users,
//! `docs/values.md` says why values and the evaluator are as they are, `docs/security.md` what is promised,
//! `docs/tools.md` how programs find and call tools, `docs/performance.md` what is fast, `docs/http.md` and
//! `docs/stores.md` how a server for many is run.
//!
//! ```
//! use lispbox::lang::{Engine, Host, Request, ToolCall, ToolReply, meter::Metered};
//! use std::{sync::Arc, time::Duration};
//!
//! // Without this no memory limit can be kept.
//! #[global_allocator]
//! static ALLOCATOR: Metered<std::alloc::System> = Metered::new(std::alloc::System);
//!
//! /// A world without tools whose time stands still.
//! struct Nothing;
//!
//! impl Host for Nothing {
//!     fn call(&self, _: ToolCall) -> ToolReply { ToolReply::Denied("there are no tools".to_string()) }
//!     fn now_millis(&self) -> i64 { 0 }
//!     fn random(&self) -> u64 { 4 }
//!     fn monotonic(&self) -> Duration { Duration::ZERO }
//! }
//!
//! let mut session = Engine::builder().build().unwrap().session();
//! let reply = session.eval(Request::new("(->> [1 2 3] (map inc) (reduce +))"), Arc::new(Nothing));
//! assert_eq!(reply.value.as_deref(), Some("9"));
//! ```
//!
//! # Embedding
//! - **Install [`Metered`](lang::meter::Metered)** round the global allocator, as above: memory limits are counted
//!   there. Without it [`EngineBuilder::build`](lang::EngineBuilder::build) returns an error that says so
//!   (`tests/no_allocator.rs`), unless [`unlimited_memory`](lang::EngineBuilder::unlimited_memory) was said.
//! - **Write a [`Host`](lang::Host)**: the tools that programs may call, the clocks, and when to stop. One that is
//!   made for each evaluation knows whose it is. What needs no waiting and has no effects is better a function
//!   that is added to the language ([`EngineBuilder::functions`](lang::EngineBuilder::functions)).
//! - **Evaluate** with [`Limits`](lang::Limits), on a thread that may block ([`Session::eval`](lang::Session::eval)).
//!   The [`Reply`](lang::Reply) is a record, as JSON too; its [`text`](lang::Reply::text) is what a model reads.
//! - **Keep a session** as the text of [`Session::encode`](lang::Session::encode) wherever you keep things, when
//!   [`Session::changes`](lang::Session::changes) says that there is something new.
//!
//! Two programs to copy from, which `tests/embedding.rs` runs: `examples/embed_blocking.rs` needs no runtime and
//! keeps a session in a file; `examples/assistant/` is the back end of an assistant with tokio and axum, with a
//! session for each user in a table of its own, and evaluations that end when their client goes away.
//!
//! # Where things are
//! | room | what is in it |
//! |---|---|
//! | [`lang`] | the language; knows nothing of tokio, MCP, files, clocks |
//! | [`lang::lexer`], [`lang::reader`], [`lang::form`] | text to tokens to forms; one pass over the brackets finds every one that does not fit |
//! | [`lang::expand`] | macros: forms to the few forms that the resolver knows |
//! | [`lang::resolve`], [`lang::node`] | names looked up once: forms to nodes with slots and indices |
//! | [`lang::eval`] | the tree walk, calls, branches (`pmap`), tools as functions, vars and their bindings, stacks for evaluations |
//! | [`lang::value`] | what programs compute with; walking, comparing, printing, dropping without recursion |
//! | [`lang::heap`] | what changes: atoms, delays, lazy sequences; journal and sweep |
//! | [`lang::meter`] | the ledger of limits and the metering allocator |
//! | [`lang::error`] | errors, faults, halts; suggestions; rendering with carets |
//! | [`lang::builtin`] | one table entry for each function: name, arguments, doc, examples, code, and what a host adds; a folder for each larger area (`sequences`, `transducers`, `time`, `formats`, `dispatch`, `dialects`); `absent` says what to use instead of what does not exist |
//! | [`lang::prelude`], `stdlib/` | functions written in the language itself, compiled when they are first used; `stdlib/REFERENCE.md` is generated |
//! | [`lang::json`] | JSON in and out |
//! | [`lang::snapshot`] | sessions as s-expressions |
//! | [`lang::host`] | the one door out: the [`Host`](lang::Host) trait |
//! | [`lang::Session`], [`lang::reply`] | programs run form by form; the one record of an evaluation |
//! | `server` (feature `server`) | the MCP server: the two tools, sessions, downstream servers and tools without one, configuration, policy, audit, logs, metrics |
//! | `store` (feature `store`) | where sessions are kept between calls, processes and machines: leases, versions, SQLite; Redis and PostgreSQL (features `redis`, `postgres`) |
//! | `worker` (feature `worker`, Linux) | the second wall: sessions in worker processes that the kernel confines; `docs/security.md` |
//! | `src/bin/lispbox/` | the command line, one file a command |
//! | `grammar/` | the grammar, and its forms for constrained decoding and for editors, held to the reader by `tests/grammar/` |
//! | `tests/clojure/` | programs with what real Clojure answers, recorded by `record.clj` |
//! | `examples/` | programs that embed the crate, and measurements |
//! | `benches/` | how long the parts of the language take, how many instructions; round trips of the server and what it bears; what tools cost a model; `benches/peers/` compares with others |
//! | `tests/` | specs by area (`tests/spec/*.md`), sessions as text, of every version (`tests/snapshots/`), the points of `docs/values.md`, hostile and real peers, MCP's conformance suite (`tests/conformance/`) |
//!
//! # What holds everywhere
//! - Inside `lang` arrows go one way: `span ← lexer ← reader ← expand ← resolve ← eval`, with `value`,
//!   `meter`, `error`, `heap` beneath and `builtin` beside `eval`. `server` uses `lang`, never the
//!   other way round. `worker` stands between them: it needs `lang` and no runtime.
//! - Values have no cycles and hold no Rust closures: functions are a code and captured values. What
//!   changes lives in the session's heap.
//! - Nothing recurses in proportion to data. Nesting of programs (256), of expanded code (1,000), of
//!   keys (64) and of JSON (1,000) is bounded at the door.
//! - Every loop in a builtin goes through the meter, and asks for memory before it builds.
//! - Values are made and dropped inside an evaluation's account; work of the host runs outside of it.
//! - A limit or a cancellation is a `Halt`, which nothing catches.
//! - A top-level form is kept whole or leaves no trace.
//!
//! # What is deliberately absent
//! `eval` of data, I/O, an ambient clock or randomness, host reflection, threads of the program's own, an
//! interner, statics, thread-locals (but for the allocator's counter and the list of what a deep drop
//! has put aside), a cache of compiled programs.

pub mod lang;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "store")]
pub mod store;
#[cfg(all(feature = "worker", target_os = "linux"))]
pub mod worker;
