//! Any text as JSON: `json/parse` accepts the texts that `serde_json` accepts, with the same result, and written JSON
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lispbox_fuzz::checks::json::check(input));
