//! The documentation of checks and templates.

use super::{SyntaxEntry, entry};

/// The forms defined in this file.
pub const TABLE: &[SyntaxEntry] = &[
    entry(
        "is",
        &["[check]", "[check message]"],
        "The value of a check. One that fails is printed, and so is an error, which goes no further; `(thrown? E …)` as the check is the error that the forms raise.",
        &[
            ("(is (= 4 (+ 2 2)))", "true"),
            ("(is (thrown? Exception (inc nil)) \"no number\") :done", ":done"),
            ("[(is (inc nil)) (is (= 2 (inc 1)))]", "[nil true]"),
        ],
    ),
    entry(
        "are",
        &["[[names] check & values]"],
        "The check with each row of values in place of the names.",
        &[("(are [x y] (= x (inc y)) 2 1, 3 2)", "true")],
    ),
    entry(
        "testing",
        &["[what & forms]"],
        "The forms, one after another: a text says what they check.",
        &[("(testing \"sums\" (is (= 4 (+ 2 2))))", "true")],
    ),
    entry(
        "deftest",
        &["[name & checks]"],
        "Defines a function without parameters that makes the checks: `(name)` runs them.",
        &[("(deftest sums (is (= 4 (+ 2 2)))) (sums)", "true")],
    ),
    entry(
        "use-fixtures",
        &["[kind & functions]"],
        "Functions that are called with what runs the tests, by `run-tests` and `test-vars`: of the kind `:once` around \
         all tests, of `:each` around each of them.",
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
        "The form with each row of values in place of the names.",
        &[("(do-template [name n] (def name n) a 1, b 2) (+ a b)", "3")],
    ),
];
