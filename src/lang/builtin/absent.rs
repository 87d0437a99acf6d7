//! Names of powers that do not exist here, each with what to do instead.

/// What to say of names that models reach for and that the language leaves out on purpose.
const ADVICE: &[(&[&str], &str)] = &[
    (
        &[
            "slurp",
            "open-file",
            "read-file",
            "read-line",
            "line-seq",
            "file-seq",
            "clojure.java.io/file",
            "io/file",
            "io/reader",
            "open",
            "with-open",
            "load-file",
            "load",
        ],
        "programs cannot read files; a tool can: see (dir) for the servers and (apropos \"read\")",
    ),
    (
        &["spit", "write-file", "delete-file", "io/writer", "io/copy", "with-open-file"],
        "programs cannot write files; a tool can: see (dir) for the servers and (apropos \"write\")",
    ),
    (
        &["sh", "shell", "exec", "system", "clojure.java.shell/sh", "shell/sh", "run-program", "subprocess"],
        "programs cannot run commands; call a tool: see (dir)",
    ),
    (
        &["eval", "load-string", "read-string*", "compile"],
        "data is never evaluated as code here; write the code in the program itself, or use functions",
    ),
    (
        &["http/get", "http/post", "client/get", "clj-http.client/get", "curl", "fetch", "requests/get", "http-get"],
        "programs have no network; call a tool: see (dir) and (apropos \"fetch\")",
    ),
    (
        &["import", "use", "load-library", "refer"],
        "everything is loaded already; write the function's name, such as str/join or json/parse",
    ),
    (
        &[
            "future",
            "agent",
            "send",
            "send-off",
            "promise",
            "deliver",
            "thread",
            "async/go",
            "go",
            "chan",
            "Thread/sleep",
            "sleep",
        ],
        "there are no threads; pmap and pcalls overlap tool calls",
    ),
    (
        &["setf", "setq", "set!", "incf", "decf", "push", "push!", "alter-var-root", "var-set"],
        "names are not assigned here; use loop/recur or reduce, for example (reduce + 0 xs), or an atom: (def a (atom 0)) (swap! a inc)",
    ),
    (
        &["make-hash-table", "gethash", "puthash", "hash-set!", "hash-ref", "dict"],
        "maps are immutable: (assoc m k v) gives a new map, (get m k) looks up, (atom {}) holds one that changes",
    ),
    (
        &["add-watch", "remove-watch", "set-validator!", "get-validator"],
        "atoms have no watches and validators; do it where the atom is changed, for example in the function given to swap!",
    ),
    (&["re-matcher", "re-groups"], "there are no matchers: (re-seq #\"…\" s) gives all matches, each with its groups"),
    (
        &["numerator", "denominator", "rationalize"],
        "there are no ratios: (/ 1 4) is 0.25, and decimals such as 0.25M are exact",
    ),
    (
        &["aset", "aset-int", "aset-long", "aset-double", "make-array"],
        "arrays are vectors here, which do not change: (assoc v 0 x) gives a new one",
    ),
    (&["getenv", "System/getenv", "System/getProperty", "*command-line-args*"], "programs cannot see the environment"),
    (&["exit", "System/exit", "quit"], "a program ends with its last form"),
    (
        &["return", "break", "continue"],
        "the last form of a function is its value; leave a reduce with (reduced x), or choose with if and cond",
    ),
    (&["null", "None", "undefined", "NIL", "Nil"], "it is written nil"),
    (&["True", "TRUE"], "it is written true"),
    (&["False", "FALSE", "#false"], "it is written false"),
    (&["print!", "console.log", "printf!", "echo", "puts", "display!"], "print with println"),
    (&["def!", "var", "const", "let!"], "define with (def name value), bind locally with (let [name value] …)"),
];

/// What to do instead of using that name; `None` for all other names.
pub fn advice(name: &str) -> Option<&'static str> {
    ADVICE.iter().find(|(names, _)| names.contains(&name)).map(|(_, advice)| *advice)
}
