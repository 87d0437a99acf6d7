//! An MCP server whose tools are closures of this program, in addition to those of configured servers.
//!
//! ```sh
//! cargo run --example rust_tools                                          # serves a client on standard input and output
//! cargo run --example rust_tools -- '(map :name (shop/find {:text "tea"}))'   # evaluates one program with the same tools
//! ```

use std::error::Error;
use std::time::Duration;

use lispbox::lang::{Call, Engine, Limits, Metered, Request, ToolError, Tools};
use lispbox::server::{CancellationToken, Configuration, Connections, ServeOptions, serve_stdio};
use serde::Deserialize;
use serde_json::json;

// Without this allocator memory limits cannot be enforced, and `Engine::builder().build()` returns an error.
#[global_allocator]
static ALLOCATOR: Metered<std::alloc::System> = Metered::new(std::alloc::System);

/// The goods of the shop and their remaining quantities.
const GOODS: [(&str, u32); 3] = [("green tea", 4), ("black tea", 0), ("coffee", 2)];

#[derive(Deserialize)]
struct Find {
    text: String,
    limit: usize,
}

#[derive(Deserialize)]
struct Order {
    name: String,
}

fn tools() -> Tools<'static> {
    let mut tools = Tools::new();
    tools.describe_server("shop", "goods and orders");
    // This tool may block, as a database query would.
    let find = |find: Find, _: &Call| {
        let found = GOODS.into_iter().filter(|(name, _)| name.contains(&find.text)).take(find.limit);
        Ok(found.map(|(name, left)| json!({"name": name, "left": left})).collect::<Vec<_>>())
    };
    tools.tool("shop/find", find).doc("Goods with a text in their name.").read_only().schema(json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "default": 10}},
        "required": ["text"],
        "additionalProperties": false
    }));
    // This one awaits another party: a cancelled call is dropped at its await point.
    let order = async |order: Order, _: &Call| {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let name = order.name;
        match GOODS.iter().find(|(known, _)| *known == name) {
            Some((_, 1..)) => Ok(format!("ordered {name}")),
            Some(_) => Err(ToolError::failed(format!("there is no {name} left"))),
            None => Err(ToolError::failed(format!("there is no {name:?}"))),
        }
    };
    tools.async_tool("shop/order", order).doc("Orders goods by their name.").writes();
    tools
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut configuration = Configuration::default();
    configuration.add_tools(tools())?;
    tokio::task::spawn_blocking(|| run(configuration, std::env::args().nth(1))).await?
}

fn run(configuration: Configuration, program: Option<String>) -> Result<(), Box<dyn Error + Send + Sync>> {
    let engine = Engine::builder().build()?;
    let Some(program) = program else { return Ok(serve_stdio(engine, ServeOptions::new(configuration))?) };
    let connections = Connections::open(configuration)?;
    let host = connections.host(CancellationToken::new(), &Limits::default());
    let reply = engine.session().eval(Request::new(program), host);
    println!("{}", reply.text(Limits::default().output));
    reply.failure.map_or(Ok(()), |failure| Err(failure.into()))
}
