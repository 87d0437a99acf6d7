//! The documentation of checks and templates.

use super::{SyntaxEntry, entry};

/// The forms defined in this file.
pub const TABLE: &[SyntaxEntry] = &[
    entry(
        "is",
        &["[check]", "[check message]"],
        "Evaluates a check and returns its value. A failure is printed, and so is an error, which is caught; `(thrown? \
         E …)` as the check returns the error that the forms raise.",
        &[
            ("(is (= 4 (+ 2 2)))", "true"),
            ("(is (thrown? Exception (inc nil)) \"no number\") :done", ":done"),
            ("[(is (inc nil)) (is (= 2 (inc 1)))]", "[nil true]"),
        ],
    ),
    entry(
        "are",
        &["[[names] check & values]"],
        "The check repeated for each row of values in place of the names.",
        &[("(are [x y] (= x (inc y)) 2 1, 3 2)", "true")],
    ),
    entry(
        "testing",
        &["[what & forms]"],
        "Evaluates the forms; the text describes the checks.",
        &[("(testing \"sums\" (is (= 4 (+ 2 2))))", "true")],
    ),
    entry(
        "deftest",
        &["[name & checks]"],
        "Defines a function without parameters that makes the checks; `(name)` runs them.",
        &[("(deftest sums (is (= 4 (+ 2 2)))) (sums)", "true")],
    ),
    entry(
        "use-fixtures",
        &["[kind & functions]"],
        "Functions that `run-tests` and `test-vars` call with a function that runs the tests: kind `:once` around all \
         tests, `:each` around each one.",
        &[
            ("(use-fixtures :each (fn [f] (f)))", "nil"),
            (
                "(deftest sums (is true)) (use-fixtures :each (fn [f] (print \"before \") (f))) (with-out-str (sums) (test-vars [sums]))",
                "\"before \"",
            ),
        ],
    ),
    entry(
        "do-template",
        &["[[names] form & values]"],
        "The form repeated for each row of values in place of the names.",
        &[("(do-template [name n] (def name n) a 1, b 2) (+ a b)", "3")],
    ),
];
