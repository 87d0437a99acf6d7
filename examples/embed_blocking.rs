//! lispbox in a program without tokio: a tool and a function in Rust, limits, and a session that is stored as text in a
//! file.
//!
//! ```sh
//! cargo run --no-default-features --example embed_blocking -- session.lisp '(def open (orders/find :status "open"))'
//! cargo run --no-default-features --example embed_blocking -- session.lisp '(map :id open)'
//! cargo run --no-default-features --example embed_blocking -- session.lisp '(iban/valid? "GB82 WEST 1234 5698 7654 32")'
//! cargo run --no-default-features --example embed_blocking -- session.lisp '(reduce + (range 1e12))'
//! ```

use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use lispbox::lang::{Call, Engine, Limits, Metered, ToolError, Tools, World};
use serde::{Deserialize, Serialize};

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
            eprintln!("{}: {problem}", file);
            ExitCode::FAILURE
        }
    }
}

/// Runs a program in the session stored in the file; returns true if it returned a value.
fn run(file: &Path, program: &str) -> Result<bool, Box<dyn Error>> {
    let mut builder = Engine::builder();
    builder
        .function("iban/valid?", |text: String| is_iban(&text))
        .arguments("[text]")
        .doc("True if the check digits of this account number fit.");
    let engine = builder.build()?;
    let mut session = match fs::read_to_string(file) {
        Ok(text) => engine.restore(&text)?,
        Err(error) if error.kind() == ErrorKind::NotFound => engine.session(),
        Err(error) => return Err(error.into()),
    };
    let limits = Limits { memory: 64 << 20, compute: Duration::from_secs(2), ..Limits::default() };
    let before = session.changes();
    let reply = session.run(program).limits(limits.clone()).reply(&World::new(tools()))?;
    println!("{}", reply.text(limits.output));

    // Stored after an error too, because the forms before the failed one have taken effect. The file is complete at any
    // time.
    if session.changes() != before {
        let fresh = file.with_extension("new");
        fs::write(&fresh, session.encode()?)?;
        fs::rename(fresh, file)?;
    }
    Ok(reply.failure.is_none())
}

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

#[derive(Clone, Serialize)]
struct Order {
    id: u32,
    status: Status,
    total: f64,
}

/// The arguments of `orders/find`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Find {
    status: Option<Status>,
}

/// The tools of the programs.
fn tools() -> Tools<'static> {
    let orders = [(1, Status::Paid, 20.0), (2, Status::Open, 12.5), (3, Status::Open, 30.0)];
    let orders = orders.map(|(id, status, total)| Order { id, status, total });
    let mut tools = Tools::new();
    tools.describe_server("orders", "the orders of the shop");
    tools
        .tool("orders/find", move |find: Find, _: &Call| -> Result<Vec<Order>, ToolError> {
            let is_meant = |order: &&Order| find.status.is_none_or(|status| order.status == status);
            Ok(orders.iter().filter(is_meant).cloned().collect())
        })
        .doc("Orders, all or those of a status: `open` or `paid`.")
        .read_only();
    tools
}
