//! Programs from the project itself, and texts that are not programs.

use std::path::{Path, PathBuf};

use lispbox::lang::internal;

/// A program and its origin.
pub struct Program {
    /// File and line, or the builtin whose example it is.
    pub place: String,
    /// The text.
    pub text: String,
}

/// Collects the programs of the specs, the Clojure corpus, the documentation and the standard library, and the examples
/// of the builtins and special forms with their printed values.
pub fn programs() -> Vec<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut programs = Vec::new();
    for file in ["tests/spec", "tests/clojure", "docs"].iter().flat_map(|folder| files(&root.join(folder), "md")) {
        from_markdown(&file, &mut programs);
    }
    from_markdown(&root.join("README.md"), &mut programs);
    for file in files(&root.join("stdlib"), "lisp") {
        programs.push(Program { place: file.display().to_string(), text: text_of(&file) });
    }
    let builtins = internal::all().map(|entry| (entry.name, entry.examples));
    let forms = internal::syntax::all().map(|entry| (entry.name, entry.examples));
    for (name, examples) in builtins.chain(forms) {
        // The printed values are mostly programs too.
        for text in examples.iter().flat_map(|(program, printed)| [*program, *printed]) {
            programs.push(Program { place: format!("the example of {name}"), text: text.to_string() });
        }
    }
    programs
}

fn text_of(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Returns the files with that extension below a folder; none if the folder does not exist.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = Vec::new();
    for path in entries.map(|entry| entry.expect("a file").path()) {
        if path.is_dir() {
            files.extend(self::files(&path, ending));
        } else if path.extension().is_some_and(|found| found == ending) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Collects the blocks marked `clojure` or `lisp`: each as a whole, with its expectations as comments, and each of its
/// programs.
fn from_markdown(file: &Path, programs: &mut Vec<Program>) {
    let mut block: Option<String> = None;
    let mut program = String::new();
    for (at, line) in text_of(file).lines().enumerate() {
        let place = || format!("{}:{}", file.display(), at + 1);
        if line.starts_with("```") {
            programs.extend(block.take().map(|text| Program { place: place(), text }));
            program.clear();
            if matches!(line, "```clojure" | "```lisp") {
                block = Some(String::new());
            }
        } else if let Some(block) = &mut block {
            block.push_str(line);
            block.push('\n');
            let (code, expected) = line.split_once(";=>").map_or((line, None), |(code, value)| (code, Some(value)));
            program.push_str(code);
            program.push('\n');
            if let Some(value) = expected {
                programs.push(Program { place: place(), text: std::mem::take(&mut program) });
                programs.push(Program { place: place(), text: value.to_string() });
            }
        }
    }
}

/// Texts that are not programs.
pub const BROKEN: &[&str] = &[
    "(",
    ")",
    "(+ 1 2",
    "(+ 1 2))",
    "[1 2)",
    "(let [x 1] x]",
    "{:a 1",
    "#{1 2",
    "#(inc %",
    "#?(:clj 1",
    "{:a}",
    "{:a 1 :b}",
    "\"abc",
    "\"a\\",
    "\"\\q\"",
    "\"\\x41\"",
    "\"\\u12\"",
    "\"\\uD800\"",
    "\"\\u{1F600}\"",
    "\"\\400\"",
    "#\"abc",
    "#\"a\\\"",
    "1a",
    "1.2.3",
    "1_000",
    "0b101",
    "0o17",
    "08",
    "0x",
    "0xG",
    "1e",
    "1e+",
    "1/0",
    "3.5N",
    "1..2",
    "2r2",
    "37r1",
    "1r0",
    "16r",
    "##inf",
    "##Foo",
    "##",
    "'",
    "`",
    "~",
    "~@",
    "@",
    "#'",
    "^",
    "^:a",
    "#_",
    "'()'",
    "(')",
    "[#_]",
    "{:a '}",
    ":",
    "::",
    ":a:",
    ":::a",
    ":a::b",
    ":/a",
    ":a/",
    "a:",
    "a/",
    "/a",
    "a::b",
    "//",
    "/* a */",
    "// a",
    "#|",
    "#| #| |#",
    "\\",
    "\\ab",
    "\\newlin",
    "\\u00",
    "\\uD800",
    "\\o400",
    "\\\n",
    "#\\spac",
    "#foo",
    "#foo {}",
    "#js {}",
    "#inst",
    "#inst 5",
    "#inst \"x\"",
    "#inst \"2023-02-29\"",
    "#uuid \"1\"",
    "#time/date \"2024-02-30\"",
    "#t1",
    "#true1",
    "#",
    "# a",
    "#=(+ 1 2)",
    "#<Object>",
    "#[1 2]",
    "#;(a)",
    "#?",
    "#?[:clj 1]",
    "#?(:clj)",
    "#?(clj 1)",
    "#?@(:clj 1)",
    "#:a",
    "#:a/b [1]",
    "#: [1]",
    "#:a/b {:c 1}",
    "#: {:a 1}",
    "^1 [2]",
    "^:a 5",
    "^:a nil",
    "^:a \"s\"",
    "^[",
    "```",
    "```clojure\n(+ 1 2)\n```",
    "(print “a”)",
    "‘a’",
    "（+ 1 2）",
    "\u{200b}",
    "a\u{0}",
    "f(x) { return x; }",
    "a\\",
    "1a(b)",
    "nil1)",
    "[1 2}",
    "(defn f [x] (* x x)",
    "(map #(inc %foo) [1])",
    "1N2",
    "1M2",
    "1.5e3.2",
    "+1a",
    "-0x",
    "5%",
];
