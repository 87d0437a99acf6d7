//! The back end of a small assistant. Each user has a session in which programs written by a model run under limits,
//! with Rust functions as tools; the session is stored as text in a database table of the application.
//!
//! ```sh
//! cargo run --example assistant -- assistant.db 127.0.0.1:8080
//! curl --data '(def open (orders/find :status "open"))' http://127.0.0.1:8080/users/ann/programs
//! curl --data '(map :id open)' http://127.0.0.1:8080/users/ann/programs
//! ```
//!
//! The response is the record of the evaluation as JSON; its field `text` is for the model. In this example the path
//! names the user; a real back end takes the user from its login.

mod tools;

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::extract::rejection::StringRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header::CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::post};
use lispbox::lang::{CancelHandle, Engine, Limits, Metered, Reply, World};
use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};
use tokio::sync::{Mutex as Turn, Semaphore};

// Without this allocator memory limits cannot be enforced, and `Engine::builder().build()` returns an error.
#[global_allocator]
static ALLOCATOR: Metered<std::alloc::System> = Metered::new(std::alloc::System);

/// Maximum number of programs that run at once: with the memory limit below, they use at most 512 MiB.
const RUNNING: usize = 8;
/// Maximum time that a program waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// The limits of a program.
fn limits() -> Limits {
    let (compute, total) = (Duration::from_secs(5), Duration::from_secs(30));
    Limits { fuel: 1_000_000_000, memory: 64 << 20, compute, total, calls: 50, session: 8 << 20, ..Limits::default() }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, address] = &arguments[..] else {
        return Err("usage: assistant DATABASE ADDRESS, such as assistant.db 127.0.0.1:8080".into());
    };
    let database = Connection::open(file)?;
    database.execute_batch(
        "CREATE TABLE IF NOT EXISTS session (user TEXT PRIMARY KEY, version INTEGER NOT NULL, text TEXT NOT NULL) STRICT",
    )?;
    let back_end = BackEnd {
        engine: Engine::builder().build()?,
        database: Mutex::new(database),
        turns: Mutex::default(),
        running: Arc::new(Semaphore::new(RUNNING)),
    };
    let other = || async {
        let message = "expected POST /users/{user}/programs, with the program as body".to_string();
        Refused(StatusCode::NOT_FOUND, "BadRequest", message)
    };
    let router = Router::new()
        .route("/users/{user}/programs", post(program))
        .fallback(other)
        .method_not_allowed_fallback(other)
        .with_state(Arc::new(back_end));
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}

/// State shared by all requests.
struct BackEnd {
    engine: Arc<Engine>,
    database: Mutex<Connection>,
    /// One lock per user, so that at most one evaluation of a user runs at a time.
    turns: Mutex<HashMap<String, Weak<Turn<()>>>>,
    running: Arc<Semaphore>,
}

/// The reason why no program ran or nothing was stored, reported in the form of a failed evaluation.
struct Refused(StatusCode, &'static str, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Refused(status, error, message) = self;
        (status, as_json(json!({"status": "error", "error": error, "message": message}))).into_response()
    }
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Refused {
        internal(format!("the database of sessions: {error}"))
    }
}

fn internal(problem: impl Display) -> Refused {
    Refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", problem.to_string())
}

fn as_json(value: Value) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], value.to_string())
}

async fn program(
    State(back_end): State<Arc<BackEnd>>,
    Path(user): Path<String>,
    program: Result<String, StringRejection>,
) -> Result<Response, Refused> {
    let program = program.map_err(|problem| Refused(problem.status(), "BadRequest", problem.body_text()))?;
    let busy = |_| {
        let message = format!("no program could begin within {} s; try again", PATIENCE.as_secs());
        Refused(StatusCode::SERVICE_UNAVAILABLE, "Busy", message)
    };
    let turn = back_end.turn(&user);
    let waiting = async { (turn.lock_owned().await, Arc::clone(&back_end.running).acquire_owned().await) };
    let places = tokio::time::timeout(PATIENCE, waiting).await.map_err(busy)?;
    // This future and the guard are dropped when the client disconnects, which cancels the evaluation.
    let cancel = CancelHandle::new();
    let _guard = cancel.cancel_on_drop();
    let evaluation = tokio::task::spawn_blocking(move || {
        // The user's next program waits for this one to end, even if the client no longer waits for the response.
        let _places = places;
        back_end.evaluate(&program, &user, &cancel)
    });
    let reply = evaluation.await.map_err(internal)??;
    let mut record = serde_json::to_value(&reply).map_err(internal)?;
    record["text"] = json!(reply.text(limits().output));
    Ok(as_json(record).into_response())
}

impl BackEnd {
    fn turn(&self, user: &str) -> Arc<Turn<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        turns.get(user).and_then(Weak::upgrade).unwrap_or_else(|| {
            let turn = Arc::default();
            turns.insert(user.to_owned(), Arc::downgrade(&turn));
            turn
        })
    }

    /// Restores the user's session from its text, runs the program, and stores the changes.
    fn evaluate(&self, program: &str, user: &str, cancel: &CancelHandle) -> Result<Reply, Refused> {
        let (mut session, version) = match self.read(user)? {
            Some((version, text)) => (self.engine.restore(&text).map_err(internal)?, version),
            None => (self.engine.session(), 0),
        };
        let before = session.changes();
        let world = World::new(tools::of(user)).cancelled_by(cancel);
        let reply = session.run(program).limits(limits()).reply(&world).map_err(internal)?;
        // Stored after an error or a cancellation too, because the preceding forms have taken effect.
        if session.changes() != before {
            self.write(user, version, &session.encode().map_err(internal)?)?;
        }
        Ok(reply)
    }

    fn read(&self, user: &str) -> rusqlite::Result<Option<(i64, String)>> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let row = "SELECT version, text FROM session WHERE user = ?1";
        database.query_row(row, [user], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    /// Stores the session, unless another process with the same database has stored it since it was read.
    fn write(&self, user: &str, known: i64, text: &str) -> Result<(), Refused> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let row = "INSERT INTO session VALUES (?1, ?2 + 1, ?3) ON CONFLICT (user)
                   DO UPDATE SET version = excluded.version, text = excluded.text WHERE version = ?2";
        if database.execute(row, (user, known, text))? == 0 {
            let message = "the session was changed meanwhile, and nothing of this program is kept; tools that it called have done their work";
            return Err(Refused(StatusCode::CONFLICT, "SessionChanged", message.to_string()));
        }
        Ok(())
    }
}
