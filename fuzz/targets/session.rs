//! Snapshots: any text is rejected or decoded to a session that can be encoded again, and the session of any program
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lispbox_fuzz::checks::session::check(input));
