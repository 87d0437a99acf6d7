//! Rust functions of the embedding application, as tools without a server.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::lang::{Tool, ToolError, ToolReply};

/// The future outcome of a [`Function`].
pub type Answering = BoxFuture<'static, Result<ToolReply, ToolError>>;

/// A Rust function that programs call as a tool;
/// [`Configuration::add_functions`](crate::server::Configuration::add_functions) registers it.
///
/// ```
/// use lispbox::lang::{Tool, ToolReply};
/// use lispbox::server::{Answering, Configuration, Function, blocking};
/// use serde_json::{Map, Value, json};
/// use std::sync::Arc;
///
/// /// Adds what it is given, at once.
/// struct Sum;
///
/// impl Function for Sum {
///     fn describe(&self) -> Tool {
///         let schema = json!({
///             "type": "object",
///             "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
///             "required": ["numbers"]
///         });
///         Tool { name: "sum".into(), description: "Adds numbers.".into(), input_schema: schema, ..Tool::default() }
///     }
///
///     fn call(self: Arc<Self>, arguments: Map<String, Value>) -> Answering {
///         Box::pin(async move {
///             let numbers = arguments["numbers"].as_array().into_iter().flatten();
///             Ok(ToolReply::Json(numbers.filter_map(Value::as_f64).sum::<f64>().to_string()))
///         })
///     }
/// }
///
/// /// Asks a database that makes its callers wait.
/// struct Stock;
///
/// impl Function for Stock {
///     fn describe(&self) -> Tool {
///         Tool { name: "stock".into(), input_schema: json!({"type": "object"}), ..Tool::default() }
///     }
///
///     fn call(self: Arc<Self>, _: Map<String, Value>) -> Answering {
///         blocking(|| Ok(ToolReply::Json("[]".into())))
///     }
/// }
///
/// let mut configuration = Configuration::default();
/// configuration.add_functions("shop", "what the shop has", vec![Arc::new(Sum), Arc::new(Stock)]).unwrap();
/// ```
pub trait Function: Send + Sync {
    /// Describes the tool to programs: the name, the description, the JSON Schema of its arguments (an object schema),
    /// and hints about its effects. `server` is filled in. Called once.
    fn describe(&self) -> Tool;

    /// Carries out a call on a Tokio runtime, with arguments that the schema allows. The future is dropped when the
    /// call times out or is cancelled.
    ///
    /// # Errors
    /// Returns any failure, which a program can catch; usually [`ToolError::failed`].
    fn call(self: Arc<Self>, arguments: Map<String, Value>) -> Answering;
}

/// Runs blocking work on a thread for it. The work cannot be interrupted; its result is dropped if the caller no
/// longer waits for it.
pub fn blocking(work: impl FnOnce() -> Result<ToolReply, ToolError> + Send + 'static) -> Answering {
    Box::pin(async move {
        let outcome = tokio::task::spawn_blocking(work).await;
        outcome.unwrap_or_else(|_| Err(ToolError::failed("the function panicked")))
    })
}

/// The functions of a namespace.
#[derive(Clone)]
pub struct Functions(pub(in crate::server) Vec<Arc<dyn Function>>);

impl PartialEq for Functions {
    fn eq(&self, other: &Functions) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl Eq for Functions {}

impl fmt::Debug for Functions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|function| function.describe().name)).finish()
    }
}
