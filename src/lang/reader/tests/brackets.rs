//! Tests which bracket is reported as faulty, by complete messages.

use crate::reader::{ReadError, read};

/// Returns the error, its message with the suggestion, and the text at its position.
fn blamed(source: &str) -> (ReadError, String, &str) {
    let error = read(source).expect_err("it is not balanced");
    assert_eq!(error.code, "UnbalancedBrackets");
    let span = error.span.start as usize..error.span.end as usize;
    let message = error.to_string();
    (error, message, &source[span])
}

fn check(source: &str, culprit: &str, message: &str) {
    let (_, found, place) = blamed(source);
    assert_eq!((place, found.as_str()), (culprit, message));
}

#[test]
fn what_is_unclosed_is_named_with_what_is_missing() {
    check(
        "(+ 1 (f 2)",
        "(+",
        "`(+` opened at line 1, column 1 is not closed: 1 closing bracket `)` is missing at the end of the program",
    );
    check(
        "a\n{:b [#{c",
        "{",
        "`{` opened at line 2, column 1 is not closed: 3 closing brackets `}]}` are missing at the end of the program",
    );
    let (error, ..) = blamed("(a [b");
    let related: Vec<&str> = error.related.iter().map(|(_, message)| message.as_str()).collect();
    assert_eq!(related, ["`[` opened at line 1, column 4 is not closed either"]);
}

#[test]
fn a_new_top_level_form_shows_which_one_before_it_is_unclosed() {
    check(
        "(def a 1)\n\n(defn total [xs]\n  (reduce + (map :x xs)\n\n(defn avg [xs]\n  (/ (total xs) (count xs)))",
        "(defn total",
        "`(defn total` opened at line 3, column 1 is not closed: 2 closing brackets `))` are missing; \
         going by the indentation of line 6, `))` belong at the end of line 4",
    );
    check(
        "(defn a []\n  (f)\n\n(defn b []\n  (g)\n\n; c\n(h)",
        "(defn a",
        "`(defn a` opened at line 1, column 1 is not closed: 1 closing bracket `)` is missing, 2 in the whole program; \
         going by the indentation of line 4, `)` belongs at the end of line 2",
    );
}

#[test]
fn the_indentation_shows_which_inner_form_is_unclosed() {
    check(
        "(defn f [x]\n  (when (pos? x\n    (println x))\n  (+ x 1))",
        "(pos?",
        "`(pos?` opened at line 2, column 9 is not closed: 1 closing bracket `)` is missing; \
         going by the indentation of line 3, `)` belongs at the end of line 2",
    );
    check(
        "(let [a 1\n      b 2\n  (+ a b))",
        "[",
        "`[` opened at line 1, column 6 is not closed: 1 closing bracket `]` is missing; \
         going by the indentation of line 3, `]` belongs at the end of line 2",
    );
    // Continuation lines under a quoted list are not evidence.
    check(
        "'(1 2\n 3",
        "(",
        "`(` opened at line 1, column 2 is not closed: 1 closing bracket `)` is missing at the end of the program",
    );
}

#[test]
fn code_without_indentation_is_not_held_against_its_forms() {
    check(
        "(defn f [x]\n(let [y 1]\n(+ x y))\n(f 1)",
        "(defn f",
        "`(defn f` opened at line 1, column 1 is not closed: 1 closing bracket `)` is missing at the end of the program; \
         `(let` at line 2, column 1 looks like a new top-level form, but `(defn f` at line 1, column 1 is still open \
         there: look between the two",
    );
}

#[test]
fn a_bracket_of_the_wrong_kind_is_named_at_both_ends() {
    check(
        "(let [x (f 1) y 2) body)",
        ")",
        "`[` opened at line 1, column 6 is closed by `)` at line 1, column 18; expected `]`",
    );
    check(
        "(foo [1 2 3)",
        "[",
        "`[` opened at line 1, column 6 is not closed before `)` at line 1, column 12: `]` is missing",
    );
    check(
        "[a (b c]",
        "(b",
        "`(b` opened at line 1, column 4 is not closed before `]` at line 1, column 8: `)` is missing",
    );
    check(
        "(a] (b]",
        "]",
        "`(a` opened at line 1, column 1 is closed by `]` at line 1, column 3; expected `)` \
         (and 1 more bracket is out of place)",
    );
}

#[test]
fn what_is_too_many_is_counted() {
    check("(+ 1 2))", ")", "1 closing bracket `)` too many at line 1, column 8: nothing is open there");
    check("(f)\n)])", ")])", "3 closing brackets `)])` too many at line 2, column 1: nothing is open there");
    check(
        "(a [b) c] d)",
        ")",
        "1 closing bracket `)` too many at line 1, column 6: `[` opened at line 1, column 4 is open there",
    );
}

#[test]
fn a_form_that_ended_too_early_is_named() {
    check(
        "(defn f [x]\n  (println x))\n  (+ x 1))\n(f 1)",
        ")",
        "1 closing bracket `)` too many at line 3, column 10: nothing is open there; \
         `(defn f` opened at line 1, column 1 already ends at line 2, column 14, but line 3 is indented as if it were \
         inside: perhaps there is a closing bracket too many",
    );
    check(
        "(defn f [x]\n  (let [y 1])\n    (g y)))",
        ")",
        "1 closing bracket `)` too many at line 3, column 11: nothing is open there; \
         `(let` opened at line 2, column 3 already ends at line 2, column 13, but line 3 is indented as if it were \
         inside: perhaps there is a closing bracket too many",
    );
    check(
        "(let [x 1]) (+ x 1))",
        ")",
        "1 closing bracket `)` too many at line 1, column 20: nothing is open there; \
         `(let` opened at line 1, column 1 already ends at line 1, column 11, but more follows on its line: \
         perhaps there is a closing bracket too many",
    );
}

#[test]
fn only_what_more_text_can_complete_is_incomplete() {
    for source in ["(", "(a [b", "{:a #(", "(a \"b"] {
        assert!(read(source).is_err_and(|error| error.incomplete), "{source}");
    }
    for source in [")", "(]", "(a [b)", "(a) ) (b", "'", "12a"] {
        assert!(read(source).is_err_and(|error| !error.incomplete), "{source}");
    }
}
