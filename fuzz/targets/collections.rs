//! Checks programs over maps, sets, sorted collections, records from JSON and sequences against a simple model.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lispbox_fuzz::checks::collections::check(input));
