//! lispbox in a program without tokio: a tool and a function in Rust, limits, and a session that is stored as text in a
//! file.
//!
//! ```sh
//! cargo run --no-default-features --example embed_blocking -- session.lisp '(def open (orders/find :status "open"))'
//! cargo run --no-default-features --example embed_blocking -- session.lisp '(map :id open)'
//! cargo run --no-default-features --example embed_blocking -- session.lisp '(iban/valid? "GB82 WEST 1234 5698 7654 32")'
//! cargo run --no-default-features --example embed_blocking -- session.lisp '(reduce + (range 1e12))'
//! ```

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use lispbox::lang::Metered;
use lispbox::lang::{Builtin, arguments::string};
use lispbox::lang::{
    Engine, Host, Limits, Request, Server, Session, Tool, ToolCall, ToolError, ToolErrorKind, ToolReply, Value,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

// Without this allocator memory limits cannot be enforced, and `Engine::builder().build()` returns an error.
#[global_allocator]
static ALLOCATOR: Metered<std::alloc::System> = Metered::new(std::alloc::System);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, program] = &arguments[..] else {
        eprintln!("usage: embed_blocking SESSION-FILE PROGRAM");
        return ExitCode::FAILURE;
    };
    match run(Path::new(file), program) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a program in the session stored in the file; returns true if it returned a value.
fn run(file: &Path, program: &str) -> Result<bool, String> {
    let engine = Engine::builder().functions("Bank accounts", &FUNCTIONS).build().map_err(|error| error.to_string())?;
    let host: Arc<dyn Host> = Arc::new(Shop::new());
    let mut session = resume(file, &engine, &host)?;

    let limits = Limits { memory: 64 << 20, compute: Duration::from_secs(2), ..Limits::default() };
    let output = limits.output;
    let before = session.changes();
    let reply = session.eval(Request { limits, ..Request::new(program) }, host.clone());
    println!("{}", reply.text(output));

    // Stored after an error too, because the forms before the failed one have taken effect.
    if session.changes() != before {
        keep(file, &session.encode(host).map_err(|error| error.to_string())?)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(reply.failure.is_none())
}

/// Restores the session from the file, or creates one.
fn resume(file: &Path, engine: &Arc<Engine>, host: &Arc<dyn Host>) -> Result<Session, String> {
    let mut session = engine.session();
    match fs::read_to_string(file) {
        Ok(text) => session
            .decode(&text, host.clone())
            .map_err(|problem| format!("{} holds no session: {problem}", file.display()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(format!("cannot read {}: {error}", file.display())),
    }
    Ok(session)
}

/// Writes the session to a second file and renames it, so that the file is complete at any time.
fn keep(file: &Path, text: &str) -> io::Result<()> {
    let fresh = file.with_extension("new");
    fs::write(&fresh, text)?;
    fs::rename(fresh, file)
}

/// A function of the application: it works on values, returns immediately, and has no effects. A function that blocks
/// or has effects should be a tool instead.
static FUNCTIONS: [Builtin; 1] = [Builtin::new(
    "iban/valid?",
    &["[text]"],
    "True if the check digits of this account number fit.",
    &[("(iban/valid? \"GB82 WEST 1234 5698 7654 32\")", "true")],
    |machine, arguments| {
        let text = string(&arguments[0])?;
        machine.charge(text.len() as u64)?;
        Ok(Value::Bool(is_iban(text)))
    },
)];

/// Validates an IBAN: moves its first four characters to the end, and checks that the resulting number modulo 97 is 1.
fn is_iban(text: &str) -> bool {
    let characters: Vec<char> = text.chars().filter(|character| *character != ' ').collect();
    if !(5..=34).contains(&characters.len()) {
        return false;
    }
    let (country, account) = characters.split_at(4);
    let remainder = account.iter().chain(country).try_fold(0, |remainder, character| {
        let digit = character.to_digit(36)?;
        Some((remainder * if digit < 10 { 10 } else { 100 } + digit) % 97)
    });
    remainder == Some(1)
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Open,
    Paid,
}

#[derive(Serialize)]
struct Order {
    id: u32,
    status: Status,
    total: f64,
}

/// The arguments of `orders/find`, as in its schema.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    status: Option<Status>,
}

/// The host of the programs: one server with one tool, and the clocks of this machine.
struct Shop {
    find: Arc<Tool>,
    orders: Vec<Order>,
    begun: Instant,
}

impl Shop {
    fn new() -> Shop {
        let find = Tool {
            server: "orders".to_string(),
            name: "find".to_string(),
            description: "Orders, all or those of a status".to_string(),
            input_schema: json!({"type": "object", "properties": {"status": {"enum": ["open", "paid"]}}}),
            ..Tool::default()
        };
        let orders = vec![
            Order { id: 1, status: Status::Paid, total: 20.0 },
            Order { id: 2, status: Status::Open, total: 12.5 },
            Order { id: 3, status: Status::Open, total: 30.0 },
        ];
        Shop { find: Arc::new(find), orders, begun: Instant::now() }
    }

    fn find(&self, arguments: &str) -> Result<String, ToolError> {
        let find: Find = serde_json::from_str(arguments).map_err(|problem| {
            ToolError::new(ToolErrorKind::Arguments, format!("`orders/find` does not take this: {problem}"))
        })?;
        let is_meant = |order: &&Order| find.status.is_none_or(|status| order.status == status);
        let found: Vec<&Order> = self.orders.iter().filter(is_meant).collect();
        serde_json::to_string(&found).map_err(|problem| ToolError::failed(problem.to_string()))
    }
}

impl Host for Shop {
    fn servers(&self) -> Vec<Server> {
        vec![Server { name: "orders".to_string(), description: "the orders of the shop".to_string() }]
    }

    fn tools(&self, _: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        Ok(vec![self.find.clone()])
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        self.find(&call.arguments).map_or_else(ToolReply::Error, ToolReply::Json)
    }

    fn now_millis(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }

    // Sufficient for `rand`, but not for secrets.
    fn random(&self) -> u64 {
        RandomState::new().hash_one(self.begun)
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }
}
