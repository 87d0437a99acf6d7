//! An MCP server whose tools are functions of this program, in addition to those of configured servers.
//!
//! ```sh
//! cargo run --example rust_tools                                          # serves a client on standard input and output
//! cargo run --example rust_tools -- '(map :name (shop/find {:text "tea"}))'   # evaluates one program with the same tools
//! ```

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use lispbox::lang::Metered;
use lispbox::lang::{Engine, Limits, Request, Tool, ToolError, ToolHints, ToolReply};
use lispbox::server::{
    Answering, CancellationToken, Configuration, Connections, Function, ServeOptions, blocking, serve_stdio,
};
use serde_json::{Map, Value, json};

// Without this allocator memory limits cannot be enforced, and `Engine::builder().build()` returns an error.
#[global_allocator]
static ALLOCATOR: Metered<std::alloc::System> = Metered::new(std::alloc::System);

/// The goods of the shop and their remaining quantities.
struct Shop {
    goods: Vec<(&'static str, u32)>,
}

/// A tool that finds goods. It blocks, as a database query would, so it runs on a thread that may block.
struct Find(Arc<Shop>);

impl Function for Find {
    fn describe(&self) -> Tool {
        Tool {
            name: "find".to_owned(),
            description: "Goods with a text in their name.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"text": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "default": 10}},
                "required": ["text"],
                "additionalProperties": false
            }),
            hints: ToolHints { read_only: Some(true), ..ToolHints::default() },
            ..Tool::default()
        }
    }

    fn call(self: Arc<Self>, arguments: Map<String, Value>) -> Answering {
        blocking(move || {
            let text = arguments["text"].as_str().unwrap_or_default();
            let limit = arguments["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
            let found = self.0.goods.iter().filter(|(name, _)| name.contains(text)).take(limit);
            let found: Vec<Value> = found.map(|(name, left)| json!({"name": name, "left": left})).collect();
            Ok(ToolReply::Json(Value::from(found).to_string()))
        })
    }
}

/// A tool that orders goods. It awaits another party, so it is asynchronous: a cancelled call is dropped at its await
/// point.
struct Order(Arc<Shop>);

impl Function for Order {
    fn describe(&self) -> Tool {
        Tool {
            name: "order".to_owned(),
            description: "Orders goods by their name.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": false
            }),
            hints: ToolHints { read_only: Some(false), destructive: Some(false), ..ToolHints::default() },
            ..Tool::default()
        }
    }

    fn call(self: Arc<Self>, arguments: Map<String, Value>) -> Answering {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let name = arguments["name"].as_str().unwrap_or_default();
            match self.0.goods.iter().find(|(known, _)| *known == name) {
                Some((_, 1..)) => Ok(ToolReply::Text(format!("ordered {name}"))),
                Some(_) => Err(ToolError::failed(format!("there is no {name} left"))),
                None => Err(ToolError::failed(format!("there is no {name:?}"))),
            }
        })
    }
}

fn main() -> ExitCode {
    let programs: Vec<String> = std::env::args().skip(1).collect();
    run(programs.first()).map_or_else(
        |problem| {
            eprintln!("{problem}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

fn run(program: Option<&String>) -> Result<(), String> {
    let engine = Engine::builder().build().map_err(|problem| problem.to_string())?;
    let shop = Arc::new(Shop { goods: vec![("green tea", 4), ("black tea", 0), ("coffee", 2)] });
    let mut configuration = Configuration::default();
    configuration.add_functions(
        "shop",
        "goods and orders",
        vec![Arc::new(Find(Arc::clone(&shop))), Arc::new(Order(shop))],
    )?;
    let Some(program) = program else {
        return serve_stdio(engine, ServeOptions::new(configuration)).map_err(|problem| problem.to_string());
    };
    let connections = Connections::open(configuration).map_err(|problem| problem.to_string())?;
    let host = connections.host(CancellationToken::new(), &Limits::default());
    let reply = engine.session().eval(Request::new(program), host);
    println!("{}", reply.text(Limits::default().output));
    match reply.failure {
        None => Ok(()),
        Some(failure) => Err(failure.error),
    }
}
