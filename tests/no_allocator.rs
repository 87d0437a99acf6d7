//! A process that does not allocate through the metering allocator cannot enforce a memory limit; building the engine
//! fails with an error that reports this.

use lispbox::lang::Engine;

#[test]
fn an_engine_without_the_metering_allocator_is_refused() {
    let error = Engine::builder().build().expect_err("it is refused");
    assert!(error.to_string().contains("install `lispbox::lang::Metered`"), "{error}");
    assert!(Engine::builder().unlimited_memory().build().is_ok());
}
