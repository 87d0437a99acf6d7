//! Any text as input of the format parsers: CSV, dates, EDN, HTML, regexes, format strings. The part after the first
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lispbox_fuzz::checks::csv_dates::check(input));
