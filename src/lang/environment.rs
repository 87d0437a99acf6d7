//! Environments: an interface to sessions, in this process or in a worker process.

use crate::engine::Engine;
use crate::failure::Failure;
use crate::host::Host;
use crate::plan::Plan;
use crate::reply::Reply;
use crate::session::{Request, Session};
use std::sync::Arc;

/// A session of this process or of a sandboxed worker process: the interface that a server uses for either.
pub trait Environment: Send {
    /// See [`Session::eval`].
    fn eval(&mut self, request: Request, host: Arc<dyn Host>) -> Reply;

    /// See [`Session::bind`].
    ///
    /// # Errors
    /// See [`Session::bind`].
    fn bind(&mut self, name: &str, text: &str, host: Arc<dyn Host>) -> Result<(), String>;

    /// See [`Session::describe`].
    ///
    /// # Errors
    /// Returns a reply with the failure if the process of the session is lost.
    fn describe(&mut self, query: Option<&str>, host: Arc<dyn Host>) -> Result<String, Box<Reply>>;

    /// See [`Session::plan`].
    ///
    /// # Errors
    /// Returns the failure of a run of the program, if it cannot be read or resolved, or if the process of the session is
    /// lost.
    fn plan(&mut self, request: &Request, inputs: &[String], host: Arc<dyn Host>) -> Result<Plan, Box<Failure>>;

    /// See [`Session::names`].
    fn names(&self) -> Vec<String>;

    /// See [`Session::defines`].
    fn defines(&self, name: &str) -> bool;

    /// See [`Session::bindings`].
    fn bindings(&self) -> usize;

    /// See [`Session::live_bytes`].
    fn live_bytes(&self) -> u64;

    /// See [`Session::changes`].
    fn changes(&self) -> u64;

    /// See [`Session::encode`].
    ///
    /// # Errors
    /// See [`Session::encode`].
    fn encode(&mut self) -> Result<String, String>;

    /// See [`Engine::restore`].
    ///
    /// # Errors
    /// See [`Engine::restore`].
    fn decode(&mut self, text: &str) -> Result<(), String>;

    /// Makes [`encode`](Environment::encode) exact after each evaluation, also as to what is no definition, such as the last
    /// values. Without it, an environment in another process may be encoded as it was after its last definition.
    fn report_exactly(&mut self) {}

    /// Returns the reason why the state is lost with the process that it lives in, if that process may end before this
    /// one.
    fn unkept(&self) -> Option<String> {
        None
    }
}

/// A factory of environments: an [`Engine`], or worker processes.
pub trait Sandbox: Send + Sync {
    /// Creates an environment without definitions.
    fn environment(self: Arc<Self>) -> Box<dyn Environment>;
}

impl Sandbox for Engine {
    fn environment(self: Arc<Self>) -> Box<dyn Environment> {
        Box::new(self.session())
    }
}

impl Environment for Session {
    fn eval(&mut self, request: Request, host: Arc<dyn Host>) -> Reply {
        Session::eval(self, request, host)
    }

    fn bind(&mut self, name: &str, text: &str, host: Arc<dyn Host>) -> Result<(), String> {
        Session::bind(self, name, text, host)
    }

    fn describe(&mut self, query: Option<&str>, host: Arc<dyn Host>) -> Result<String, Box<Reply>> {
        Ok(Session::describe(self, query, host))
    }

    fn plan(&mut self, request: &Request, inputs: &[String], host: Arc<dyn Host>) -> Result<Plan, Box<Failure>> {
        Session::plan(self, request, inputs, host)
    }

    fn names(&self) -> Vec<String> {
        Session::names(self)
    }

    fn defines(&self, name: &str) -> bool {
        Session::defines(self, name)
    }

    fn bindings(&self) -> usize {
        Session::bindings(self)
    }

    fn live_bytes(&self) -> u64 {
        Session::live_bytes(self)
    }

    fn changes(&self) -> u64 {
        Session::changes(self)
    }

    fn encode(&mut self) -> Result<String, String> {
        Session::encode(self).map_err(|error| error.to_string())
    }

    fn decode(&mut self, text: &str) -> Result<(), String> {
        Session::decode(self, text).map_err(|error| error.to_string())
    }
}
