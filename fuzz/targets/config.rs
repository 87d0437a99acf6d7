//! Any text as a configuration file: it is accepted, or the error names the file and the expected content.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lispbox_fuzz::checks::config::check(input));
