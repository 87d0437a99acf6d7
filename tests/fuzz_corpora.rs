//! The inputs of the fuzz targets that were found interesting, `fuzz/corpus`: none of them is a finding. `fuzz/run` looks
//! for further ones.

#[path = "../fuzz/src/lib.rs"]
#[allow(dead_code, reason = "the examples of the fuzz targets use the rest")]
mod fuzz;

use arbitrary::{Arbitrary, Unstructured};
use fuzz::checks;
use std::path::{Path, PathBuf};

/// Checks all inputs of a target, each with its name on the output: a panic ends the test there.
fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let inputs = std::fs::read_dir(&folder).expect("the target has a corpus");
    let mut inputs: Vec<PathBuf> = inputs.map(|input| input.expect("it is readable").path()).collect();
    inputs.sort_unstable();
    assert!(!inputs.is_empty(), "the corpus of {target} is empty");
    for input in inputs {
        println!("{}", input.display());
        check(&std::fs::read(&input).expect("it is readable"));
    }
}

/// Makes the structured input of a target, as libFuzzer's macro does.
fn made<T: for<'b> Arbitrary<'b>>(check: impl Fn(T)) -> impl Fn(&[u8]) {
    move |bytes| T::arbitrary_take_rest(Unstructured::new(bytes)).into_iter().for_each(&check)
}

#[test]
fn texts_are_read_or_refused() {
    replay("reader", checks::reader::check);
}

#[test]
fn printed_values_are_read_back() {
    replay("print_read", made(checks::print_read::check));
}

#[test]
fn programs_keep_the_invariants_of_an_evaluation() {
    replay("evaluate", made(checks::evaluate::check));
}

#[test]
fn collections_behave_like_their_model() {
    replay("collections", checks::collections::check);
}

#[test]
fn json_is_what_another_parser_says() {
    replay("json", checks::json::check);
}

#[test]
fn tables_and_dates_are_read_or_refused() {
    replay("csv_dates", checks::csv_dates::check);
}

#[test]
fn texts_of_sessions_are_decoded_or_refused() {
    replay("session", checks::session::check);
}

#[test]
fn sessions_that_have_moved_answer_alike() {
    replay("moves", made(checks::moves::check));
}

#[test]
fn configurations_are_read_or_refused() {
    replay("config", checks::config::check);
}

#[test]
fn every_request_is_answered_once() {
    replay("messages", checks::messages::check);
}
