//! Programs under small limits: no panic, no internal error, and no more fuel than allowed. A second run of the program
#![no_main]

libfuzzer_sys::fuzz_target!(|input: lispbox_fuzz::expression::Program| lispbox_fuzz::checks::evaluate::check(input));
