//! Any text as a program: it is read, or the error points into the text.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lispbox_fuzz::checks::reader::check(input));
