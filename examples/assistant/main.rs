//! The back end of a small assistant. Each user has a session, stored in a table of the application, in which programs
//! written by a model run under limits, with Rust functions as tools.
//!
//! ```sh
//! cargo run --example assistant -- assistant.db 127.0.0.1:8080
//! curl --data '(def open (orders/find :status "open"))' http://127.0.0.1:8080/users/ann/programs
//! curl --data '(mail/send {:to "bob@example.org" :text "hello"})' http://127.0.0.1:8080/users/ann/programs
//! curl http://127.0.0.1:8080/users/ann/runs
//! curl --data 'approve' http://127.0.0.1:8080/users/ann/runs/3
//! ```
//!
//! A program whose call the user has to approve waits in the database. It goes on after the decision, in any process, and
//! each mail is sent once; `always` also allows the same mail for an hour. A program that fails after it has sent a mail is
//! stored too: the corrected one, sent to `/users/ann/retries`, does not send that mail again. `/users/ann/plans` says what
//! a program can call, `/users/ann/rehearsals` collects its mails as a run that waits, and `/metrics` counts calls.
//!
//! The response is the record of the evaluation as JSON; its field `text` is for the model. Here the path names the user;
//! a real back end takes the user from its login.

mod tools;

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::extract::rejection::StringRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header::CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::get, routing::post};
use lispbox::lang::{CallReport, CancelHandle, Engine, FailedRun, Limits, Metered, Question, Suspended, World};
use lispbox::policy::{GrantTerms, Monitor, Policy, Rehearsal};
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

/// The rules: the user is asked about each mail, and no text of others names a recipient without a word of it.
const POLICY: &str = r#"{
    "ask": ["mail/send"],
    "trusted": ["orders/*"],
    "guards": [{"tool": "mail/send", "argument": "to", "from": ["orders/*", "program"]}],
    "limits": [{"tools": "mail/send", "per_minute": 20}]
}"#;

/// The number under which the run of a user is stored that has failed; those of others begin with 1.
const FAILED: u32 = 0;

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
        "CREATE TABLE IF NOT EXISTS session (user TEXT PRIMARY KEY, version INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
         CREATE TABLE IF NOT EXISTS run (user TEXT, number INTEGER, text TEXT NOT NULL, claimed INTEGER NOT NULL,
                                         PRIMARY KEY (user, number)) STRICT;",
    )?;
    let back_end = BackEnd {
        engine: Engine::builder().build()?,
        policy: Arc::new(Policy::read(POLICY)?),
        counts: Mutex::default(),
        database: Mutex::new(database),
        turns: Mutex::default(),
        running: Arc::new(Semaphore::new(RUNNING)),
    };
    let other = || async {
        let message = "expected POST /users/{user}/programs, /plans, /rehearsals or /retries with the program as body, GET \
                       /users/{user}/runs, or POST /users/{user}/runs/{number} with `approve`, `always` or `deny REASON`";
        Refused(StatusCode::NOT_FOUND, "BadRequest", message.to_owned())
    };
    let router = Router::new()
        .route("/users/{user}/programs", post(|back_end, user, body| program(back_end, user, body, Work::Program)))
        .route("/users/{user}/plans", post(|back_end, user, body| program(back_end, user, body, Work::Plan)))
        .route("/users/{user}/rehearsals", post(|back_end, user, body| program(back_end, user, body, Work::Rehearsal)))
        .route("/users/{user}/retries", post(|back_end, user, body| program(back_end, user, body, Work::Retry)))
        .route("/users/{user}/runs", get(runs))
        .route("/users/{user}/runs/{number}", post(decision))
        .route("/metrics", get(metrics))
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
    policy: Arc<Policy>,
    /// The calls so far, by tool and outcome.
    counts: Mutex<BTreeMap<String, u64>>,
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

impl<E: Error> From<E> for Refused {
    fn from(error: E) -> Refused {
        Refused(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", error.to_string())
    }
}

fn as_json(value: Value) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], value.to_string())
}

/// The work of an evaluation.
enum Work {
    Program(String),
    /// Says what the program can call.
    Plan(String),
    /// Collects the changes that the program would make.
    Rehearsal(String),
    /// Goes on with the program that failed last, corrected.
    Retry(String),
    /// Continues the suspended run of that number with the decision of the user.
    Run(u32, Choice),
}

enum Choice {
    Approve,
    Always,
    Deny(String),
}

type Body = Result<String, StringRejection>;
type Shared = State<Arc<BackEnd>>;

fn text(body: Body) -> Result<String, Refused> {
    body.map_err(|problem| Refused(problem.status(), "BadRequest", problem.body_text()))
}

async fn program(
    State(back_end): Shared,
    Path(user): Path<String>,
    body: Body,
    work: fn(String) -> Work,
) -> Result<Response, Refused> {
    evaluated(back_end, user, work(text(body)?)).await
}

async fn decision(
    State(back_end): Shared,
    Path((user, number)): Path<(String, u32)>,
    body: Body,
) -> Result<Response, Refused> {
    let body = text(body)?;
    let choice = match (body.trim(), body.trim().strip_prefix("deny")) {
        ("approve", _) => Choice::Approve,
        ("always", _) => Choice::Always,
        (_, Some(reason)) => Choice::Deny(reason.trim().to_owned()),
        (other, None) => {
            let message = format!("expected `approve`, `always` or `deny REASON`, got {other:?}");
            return Err(Refused(StatusCode::BAD_REQUEST, "BadRequest", message));
        }
    };
    evaluated(back_end, user, Work::Run(number, choice)).await
}

/// The numbers of calls, as Prometheus reads them.
async fn metrics(State(back_end): Shared) -> String {
    let counts = back_end.counts.lock().unwrap_or_else(PoisonError::into_inner);
    counts.iter().map(|(labels, count)| format!("assistant_calls_total{{{labels}}} {count}\n")).collect()
}

/// Lists the calls on which a user has to decide.
async fn runs(State(back_end): Shared, Path(user): Path<String>) -> Result<Response, Refused> {
    let asked = |question: &Question| question.to_string();
    let run =
        |run: Suspended| json!({"run": run.number(), "questions": run.questions().map(asked).collect::<Vec<_>>()});
    let waiting = tokio::task::spawn_blocking(move || back_end.waiting(&user)).await??;
    Ok(as_json(waiting.into_iter().map(run).collect()).into_response())
}

async fn evaluated(back_end: Arc<BackEnd>, user: String, work: Work) -> Result<Response, Refused> {
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
        back_end.evaluate(work, &user, &cancel)
    });
    Ok(as_json(evaluation.await??).into_response())
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

    /// The audit log, and the metrics.
    fn called(&self, user: &str, call: &CallReport) {
        eprintln!("{user}: {call}");
        let labels = format!("tool=\"{}/{}\",outcome=\"{}\"", call.server, call.tool, call.outcome);
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(labels).or_default() += 1;
    }

    /// Restores the user's session and its monitor from their text, runs a program, and stores the changes.
    fn evaluate(&self, work: Work, user: &str, cancel: &CancelHandle) -> Result<Value, Refused> {
        let (version, text) = self.read(user)?.unwrap_or_default();
        let (mut session, monitor) = match version {
            0 => (self.engine.session(), Monitor::new(&self.policy)),
            _ => Monitor::restore(&self.policy, &self.engine, &text)?,
        };
        let (before, rehearsal) = ((session.changes(), monitor.changes()), Rehearsal::default());
        let world = World::new(tools::of(user))
            .cancelled_by(cancel)
            .on_progress(|progress| eprintln!("{user}: {}: {}", progress.tool, progress.message))
            .on_call(|call| self.called(user, call));
        let (world, is_rehearsal) = match work {
            Work::Rehearsal(_) => (world.layer(Monitor::rehearsing(&monitor, &rehearsal)), true),
            _ => (world.layer(&monitor), false),
        };
        let mut copy = if is_rehearsal { Some(session.fork()) } else { None };
        let mut claimed = None;
        let run = match work {
            Work::Plan(program) => {
                let plan = session.run(program).limits(limits()).plan(&world);
                return Ok(plan.map_or_else(|failure| json!({"text": failure.rendered}), |plan| json!(plan)));
            }
            Work::Program(program) | Work::Rehearsal(program) => {
                copy.as_mut().unwrap_or(&mut session).run(program).limits(limits()).retryable()
            }
            Work::Retry(program) => {
                let failed = FailedRun::decode(&self.claim(user, FAILED)?)?;
                claimed = Some(FAILED);
                session.retry(failed, program).limits(limits()).checkpoint(|run| self.checkpoint(user, FAILED, run))
            }
            Work::Run(number, choice) => {
                let mut run = Suspended::decode(&self.claim(user, number)?)?;
                claimed = Some(number);
                let unknown: Vec<_> = run.unknown().cloned().collect();
                for question in run.questions().cloned().collect::<Vec<_>>() {
                    // The process may have died during the call: the user has looked whether it was made.
                    match (&choice, unknown.contains(&question.id)) {
                        (Choice::Deny(reason), false) => run.deny(&question.id, reason)?,
                        (Choice::Deny(told), true) => run.happened(&question.id, told)?,
                        (_, true) => run.did_not_happen(&question.id)?,
                        (_, false) => run.approve(&question.id)?,
                    }
                    if matches!(choice, Choice::Always) {
                        let period = Duration::from_secs(3_600);
                        let terms = GrantTerms { period, count: None, is_for_these_arguments: true };
                        monitor.grant(&question, terms, user)?;
                    }
                }
                session.resume(run).checkpoint(move |run| self.checkpoint(user, number, run)).retryable()
            }
        };
        let reply = run.reply(&world)?;
        let changes = if is_rehearsal { rehearsal.propose(&mut session)? } else { None };
        let waits = changes.or_else(|| session.report().suspended.as_deref().cloned());
        // Stored after an error or a cancellation too, because the preceding forms have taken effect.
        let is_changed = (session.changes(), monitor.changes()) != before;
        if is_changed || claimed.is_some() || session.report().failed.is_some() {
            let text = monitor.encode(&mut session)?;
            self.write(user, (version, text), claimed, waits.as_ref(), session.report().failed.as_deref())?;
        }
        let mut record = serde_json::to_value(&reply)?;
        record["text"] = json!(reply.text(limits().output));
        Ok(record)
    }

    /// Returns the runs of a user that wait.
    fn waiting(&self, user: &str) -> Result<Vec<Suspended>, Refused> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = database.prepare("SELECT text FROM run WHERE user = ?1 AND number > 0 ORDER BY number")?;
        let texts = rows.query_map([user], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(texts.iter().map(|text| Suspended::decode(text)).collect::<Result<_, _>>()?)
    }

    /// Takes a run for this process. A claim expires: no evaluation takes as long, so that its process has died.
    fn claim(&self, user: &str, number: u32) -> Result<String, Refused> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let row = "UPDATE run SET claimed = unixepoch()
                   WHERE user = ?1 AND number = ?2 AND claimed < unixepoch() - 60 RETURNING text";
        let none = || match number {
            FAILED => "no program has failed after it has changed something".to_owned(),
            _ => format!("run {number} does not wait"),
        };
        let text: Option<String> = database.query_row(row, (user, number), |row| row.get(0)).optional()?;
        text.ok_or_else(|| Refused(StatusCode::NOT_FOUND, "UnknownRun", none()))
    }

    /// Stores the calls that a claimed run makes.
    fn checkpoint(&self, user: &str, number: u32, run: &Suspended) -> Result<(), String> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let row = "UPDATE run SET text = ?3 WHERE user = ?1 AND number = ?2";
        database.execute(row, (user, number, run.encode())).map(|_| ()).map_err(|error| error.to_string())
    }

    fn read(&self, user: &str) -> rusqlite::Result<Option<(i64, String)>> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let row = "SELECT version, text FROM session WHERE user = ?1";
        database.query_row(row, [user], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    /// Stores the session, unless another process with the same database has stored it since it was read. The run that was
    /// claimed is gone, and the one that waits or has failed is there, in the same transaction.
    fn write(
        &self,
        user: &str,
        (known, text): (i64, String),
        claimed: Option<u32>,
        waits: Option<&Suspended>,
        failed: Option<&FailedRun>,
    ) -> Result<(), Refused> {
        let mut database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = database.transaction()?;
        let row = "INSERT INTO session VALUES (?1, ?2 + 1, ?3) ON CONFLICT (user)
                   DO UPDATE SET version = excluded.version, text = excluded.text WHERE version = ?2";
        if transaction.execute(row, (user, known, text))? == 0 {
            let message = "the session was changed meanwhile, and nothing of this program is kept; tools that it called have done their work";
            return Err(Refused(StatusCode::CONFLICT, "SessionChanged", message.to_string()));
        }
        transaction.execute("DELETE FROM run WHERE user = ?1 AND number = ?2", (user, claimed))?;
        let (waits, failed) = (waits.map(|run| (run.number(), run.encode())), failed.map(|run| (FAILED, run.encode())));
        for (number, text) in waits.into_iter().chain(failed) {
            transaction.execute("REPLACE INTO run VALUES (?1, ?2, ?3, 0)", (user, number, text))?;
        }
        Ok(transaction.commit()?)
    }
}
