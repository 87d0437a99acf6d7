//! The program builds an engine, which counts memory with the allocator of the process.

use std::error::Error;

use lispbox::lang::{Engine, World};

/// An engine, a session, a program.
pub fn hello() -> Result<i64, Box<dyn Error>> {
    let mut session = Engine::builder().build()?.session();
    Ok(session.run("(+ 1 1)").eval::<i64>(&World::default())?.into_result()?)
}
