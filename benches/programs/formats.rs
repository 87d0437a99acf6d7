//! Reading and writing ten thousand records as text, each record an operation.

use super::{DATA, Program, TIMES, whole};

/// The programs of this file.
pub fn programs() -> Vec<Program> {
    let over = |name, text, answer| whole(name, DATA, text, answer, TIMES);
    vec![
        over("JSON in", "(count (json/parse json))", "10000"),
        over("JSON out", "(count (json/write mails))", "1300176"),
        whole(
            "CSV in",
            "(def csv (csv/write (for [i (range 10000)] {:id i :name (str \"Customer \" i) :total (* i 1.25)})))",
            "(count (csv/parse csv))",
            "10000",
            TIMES,
        ),
        over("CSV out", "(count (csv/write mails :columns [:id :subject :unread :size]))", "292276"),
        over("printed", "(count (pr-str mails))", "1280176"),
        // The text of a program may have at most 256 KiB.
        whole(
            "EDN in",
            "(def edn (pr-str (for [i (range 2500)]
               {:id i :name (str \"Customer \" i) :tags [\"new\" :paid] :total (* i 1.25) :unread (even? i)})))",
            "(count (edn/read-string edn))",
            "2500",
            2_500,
        ),
    ]
}
