//! The program compiles a module from text, instantiates it and calls its function.

use std::error::Error;

use wasmtime::{Engine, Instance, Module, Store};

/// An engine, a module, a store, an instance.
pub fn hello() -> Result<i64, Box<dyn Error>> {
    let guest = r#"(module (func (export "run") (result i64) (i64.add (i64.const 1) (i64.const 1))))"#;
    let engine = Engine::default();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &Module::new(&engine, guest)?, &[])?;
    Ok(instance.get_typed_func::<(), i64>(&mut store, "run")?.call(&mut store, ())?)
}
