//! Sessions that are encoded and decoded between programs: the decoded session answers later programs like the
#![no_main]

libfuzzer_sys::fuzz_target!(|input: lispbox_fuzz::checks::moves::Programs| lispbox_fuzz::checks::moves::check(input));
