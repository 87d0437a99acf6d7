//! Any text as input of the format parsers: CSV, dates, EDN, HTML, regexes, format strings. The part after the first
//! NUL is a second text, such as the pattern of a date or the text that a regex searches.

use super::super::{evaluate, session, small_limits};

const PROGRAMS: &[&str] = &[
    "(let [rows (csv/parse one)] [(count rows) (= rows (csv/parse (csv/write rows)))])",
    "(csv/read-csv one)",
    "(csv/parse one :separator (first two))",
    "(time/parse one)",
    "(time/parse one two)",
    "(time/format (time/parse \"2024-02-29T12:34:56Z\") one)",
    "(LocalDate/parse one (DateTimeFormatter/ofPattern two))",
    "(Duration/parse one)",
    "(edn/read-string one)",
    "(edn/read-string {:default vector} one)",
    "(html/text one)",
    "(html/links one)",
    "(re-find (re-pattern one) two)",
    "(re-seq (re-pattern one) two)",
    "(str/replace two (re-pattern one) \"$1-$0\")",
    "(str/replace \"a1b2\" #\"([a-z])(\\\\d)\" one)",
    "(str/split two (re-pattern one) 3)",
    "(format one 1 \"two\" 3.5 nil [:a] 12345678901234567890N 1.5M)",
    "(cl-format nil one 1 \"two\" [3 4] 5.5)",
    "(parse-long one)",
    "(parse-double one)",
    "(bigdec one)",
    "(url/parse one)",
    "(url/parse-query one)",
    "(base64/decode one)",
    "(read-string one)",
];

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut session = session();
    let split =
        "(def one (first (str/split data #\"\\u0000\" 2))) (def two (or (second (str/split data #\"\\u0000\" 2)) one))";
    evaluate(&mut session, split, Some(&text), small_limits());
    for program in PROGRAMS {
        evaluate(&mut session, program, None, small_limits());
    }
}
