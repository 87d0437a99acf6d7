//! Values of every type, built by calls: the printed text reads back as an equal value, and prints as the same text
#![no_main]

libfuzzer_sys::fuzz_target!(|input: lispbox_fuzz::checks::print_read::Made| lispbox_fuzz::checks::print_read::check(input));
