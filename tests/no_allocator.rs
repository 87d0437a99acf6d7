//! A process that does not allocate through the metering allocator cannot keep a memory limit, and is
//! told so when the engine is built.

use lispbox::lang::Engine;

#[test]
fn an_engine_without_the_metering_allocator_is_refused() {
    let error = Engine::builder().build().err().expect("it is refused");
    assert!(error.to_string().contains("install `lispbox::lang::Metered`"), "{error}");
    assert!(Engine::builder().unlimited_memory().build().is_ok());
}
