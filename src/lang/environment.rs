//! What programs run in, one after the other, wherever that is.

use crate::lang::host::Host;
use crate::lang::reply::Reply;
use crate::lang::session::{Engine, Request, Session};
use std::sync::Arc;

/// A session of this process, or one behind a wall: what a server needs of either.
pub trait Environment: Send {
    /// As [`Session::eval`].
    fn eval(&mut self, request: Request, host: Arc<dyn Host>) -> Reply;

    /// As [`Session::bind`].
    ///
    /// # Errors
    /// As [`Session::bind`].
    fn bind(&mut self, name: &str, text: &str, host: Arc<dyn Host>) -> Result<(), String>;

    /// As [`Session::describe`].
    ///
    /// # Errors
    /// When what the session runs in is lost: the reply that says so.
    fn describe(&mut self, query: Option<&str>, host: Arc<dyn Host>) -> Result<String, Box<Reply>>;

    /// As [`Session::names`].
    fn names(&self) -> Vec<String>;

    /// As [`Session::defines`].
    fn defines(&self, name: &str) -> bool;

    /// As [`Session::bindings`].
    fn bindings(&self) -> usize;

    /// As [`Session::live_bytes`].
    fn live_bytes(&self) -> u64;

    /// As [`Session::changes`].
    fn changes(&self) -> u64;

    /// As [`Session::encode`].
    ///
    /// # Errors
    /// As [`Session::encode`].
    fn encode(&mut self, host: Arc<dyn Host>) -> Result<String, String>;

    /// As [`Session::decode`].
    ///
    /// # Errors
    /// As [`Session::decode`].
    fn decode(&mut self, text: &str, host: Arc<dyn Host>) -> Result<(), String>;

    /// Why what it has is lost with the process that it runs in, where that may end before this one.
    fn unkept(&self) -> Option<String> {
        None
    }
}

/// What makes environments: an [`Engine`], or worker processes.
pub trait Sandbox: Send + Sync {
    /// An environment with nothing defined.
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

    fn encode(&mut self, host: Arc<dyn Host>) -> Result<String, String> {
        Session::encode(self, host).map_err(|error| error.to_string())
    }

    fn decode(&mut self, text: &str, host: Arc<dyn Host>) -> Result<(), String> {
        Session::decode(self, text, host)
    }
}
