//! Any lines from a client: each request with an id is answered exactly once, and nothing else is answered.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lispbox_fuzz::checks::messages::check(input));
