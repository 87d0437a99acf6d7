//! Strings and regular expressions.

use super::{DATA, Program, TIMES, each, whole};

const LINE: &str = "(def numbers (vec (range 10000))) (def line (str/join \",\" numbers))";

/// The programs of this file.
pub fn programs() -> Vec<Program> {
    let over = |name, text, answer| whole(name, LINE, text, answer, TIMES);
    vec![
        each("str", "", "(str \"id-\" i)", "\"id-9999\""),
        each("str of a long text", "", "(count (str \"Customer number \" i \" of the company\"))", "35"),
        each("subs", "", "(subs \"customer-17@example.org\" 0 8)", "\"customer\""),
        each("str/upper-case", "", "(str/upper-case \"customer-17@example.org\")", "\"CUSTOMER-17@EXAMPLE.ORG\""),
        each("str/includes?", "", "(str/includes? \"customer-17@example.org\" \"example\")", "true"),
        each("str/replace", "", "(str/replace \"2025-06-10\" \"-\" \"/\")", "\"2025/06/10\""),
        each("format", "", "(format \"%05d %s %.2f\" i \"x\" 1.5)", "\"09999 x 1.50\""),
        each("parse-long", "", "(parse-long \"12345\")", "12345"),
        each("keyword", "", "(keyword (str \"k\" i))", ":k9999"),
        each("re-find", "", "(re-find #\"\\d+\" \"customer-17@example.org\")", "\"17\""),
        each(
            "re-find with groups",
            "",
            "(re-find #\"(\\w+)@(\\w+)\" \"mail of ann@example.org\")",
            "[\"ann@example\" \"ann\" \"example\"]",
        ),
        each("str/split of 3 parts", "", "(str/split \"2025-06-10\" #\"-\")", "[\"2025\" \"06\" \"10\"]"),
        over("str/split of 10,000 parts", "(count (str/split line #\",\"))", "10000"),
        over("str/join of 10,000", "(count (str/join \",\" numbers))", "48889"),
        over("re-seq of 10,000", "(count (re-seq #\"\\d+\" line))", "10000"),
        over("characters of a text", "(count (filter #(= \\, %) line))", "9999"),
        Program {
            given: DATA,
            ..over("lower case of every subject", "(count (map (comp str/lower-case :subject) mails))", "10000")
        },
    ]
}
