//! The snapshot format. `tests/snapshots/NAME.md` contains definitions, and expressions with their answers;
//! `tests/snapshots/vVERSION/NAME.lisp` is the encoded session after the definitions.
//!
//! A snapshot must remain readable for all later versions. When the version of the format increases, the snapshots of
//! older versions are kept, and the tests continue to check their answers; programs with new features therefore belong
//! in a new document.

use crate::common;

use common::literate::{cases_of, documents};
use common::{engine, host, moved, outcome, session};
use lispbox::lang::{Request, Session};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "tests/snapshots";

/// A document: its name without the extension, and its text.
struct Document {
    name: String,
    text: String,
}

impl Document {
    fn all() -> Vec<Document> {
        let name = |path: &str| Path::new(path).file_stem().expect("a file").to_string_lossy().into_owned();
        documents(DIRECTORY).into_iter().map(|(path, text)| Document { name: name(&path), text }).collect()
    }

    /// Creates a session in which the definitions have run.
    fn session(&self) -> Session {
        let (_, behind) = self.text.split_once("```clojure definitions\n").expect("a block of definitions");
        let (definitions, _) = behind.split_once("\n```").expect("the block ends");
        let mut session = session();
        let reply = session.eval(Request::new(definitions), host());
        assert!(reply.failure.is_none(), "{}: {:?}", self.name, reply.failure);
        session
    }

    /// Returns the expressions whose answers differ from the document.
    fn wrong_answers(&self, session: &mut Session) -> String {
        let mut wrong = String::new();
        for case in cases_of(&self.name, &self.text, "clojure") {
            let got = outcome(session.eval(Request::new(&case.program), host()));
            if got != case.expected {
                let _ =
                    writeln!(wrong, "{}: {}\n  expected {}\n  got      {got}", case.place, case.program, case.expected);
            }
        }
        wrong
    }
}

/// Returns the directory for snapshots of the version that this text declares.
fn directory_of(text: &str) -> PathBuf {
    let version = text.strip_prefix("(lispbox-session ").and_then(|rest| rest.split_once(')')).expect("a first row").0;
    Path::new(env!("CARGO_MANIFEST_DIR")).join(DIRECTORY).join(format!("v{version}"))
}

#[test]
fn sessions_are_written_as_the_text_that_is_kept() {
    for document in Document::all() {
        let made = document.session().encode().expect("it encodes");
        let path = directory_of(&made).join(format!("{}.lisp", document.name));
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::create_dir_all(directory_of(&made)).expect("a directory can be made");
            std::fs::write(&path, &made).expect("the text can be written");
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let pairs = made.lines().zip(kept.lines());
        let different = pairs.enumerate().find(|(_, (made, kept))| made != kept);
        assert!(
            made == kept,
            "{}.lisp is not what this build writes: {different:#?}\nif sessions of users are written like this already, \
             raise the version of the format, so that the text stays; then run \
             `UPDATE_SNAPSHOTS=1 cargo test --test language snapshots` and commit what it writes",
            document.name
        );
    }
}

#[test]
fn what_was_ever_written_is_read_and_means_the_same() {
    let documents = Document::all();
    let mut texts = 0;
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(DIRECTORY)).expect("a directory") {
        let directory = entry.expect("an entry").path();
        if !directory.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a file").to_string_lossy();
            let document = documents.iter().find(|document| document.name == name);
            let document = document.unwrap_or_else(|| panic!("{} has no document", path.display()));
            let mut session = engine().session();
            let text = std::fs::read_to_string(&path).expect("a text");
            session.decode(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let wrong = document.wrong_answers(&mut moved(&mut session));
            assert!(wrong.is_empty(), "{}:\n{wrong}", path.display());
            texts += 1;
        }
    }
    assert!(texts >= documents.len(), "{texts} texts of {} documents", documents.len());
}

#[test]
fn a_session_that_was_never_written_answers_the_same() {
    let documents = Document::all();
    let wrong: String = documents.iter().map(|document| document.wrong_answers(&mut document.session())).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

/// Returns the number of rows of a text that do not occur in another.
fn new_rows(text: &str, before: &str) -> usize {
    let before: std::collections::HashSet<&str> = before.lines().collect();
    text.lines().filter(|row| !before.contains(row)).count()
}

#[test]
fn a_small_change_of_a_session_is_a_small_change_of_its_text() {
    let mut here = session();
    let definitions = "(def mails (mapv (fn [n] {:id n :labels [n] :seen (atom false)}) (range 200)))
                       (def by-parity (group-by (comp odd? :id) mails))
                       (def state (atom {:last (first mails)}))
                       (defn about [mail] [(:id mail) @state])";
    assert!(here.eval(Request::new(definitions), host()).failure.is_none());
    let mut before = here.encode().expect("it encodes");
    assert!(before.lines().count() > 400, "each mail and each atom has a row");
    let mut there = moved(&mut here);
    let changes = [
        "(def small 1)",
        "(first mails)",
        "(def labels (:labels (nth mails 100)))",
        "(swap! state assoc :count 3)",
        "(reset! (:seen (nth mails 7)) [(nth mails 8)])",
        "(defn about [mail] (:labels mail))",
        "(session/forget 'small)",
    ];
    for change in changes {
        for session in [&mut here, &mut there] {
            // Functions record the name of their program. By default this is its sequence number since the session was
            // decoded.
            let request = Request { name: Some("program".to_owned()), ..Request::new(change) };
            assert!(session.eval(request, host()).failure.is_none(), "{change}");
        }
        let after = here.encode().expect("it encodes");
        let changed = new_rows(&after, &before);
        assert!((1..=8).contains(&changed), "{changed} rows are new after {change}");
        let same = there.encode().expect("it encodes") == after;
        assert!(same, "where it was read it is another text after {change}");
        before = after;
    }
}

#[test]
fn what_had_rows_gives_way_when_the_session_is_full() {
    let mut session = session();
    let eval = |session: &mut Session, program: &str| {
        let mut request = Request::new(program);
        request.limits.set("session", "8MiB").expect("a known limit");
        session.eval(request, host()).failure.map(|failure| failure.error)
    };
    // Both vectors share their items, so that each item has a row.
    let full = "(def xs (mapv (fn [n] [n]) (range 60000))) (def ys (vec (reverse xs)))";
    assert_eq!(eval(&mut session, full), None);
    session.encode().expect("it encodes");
    assert_eq!(eval(&mut session, "(def xs nil) (def ys nil)"), None);
    assert_eq!(eval(&mut session, full), None, "what the last text was about does not count");
}

#[test]
fn functions_of_deeply_nested_code_are_read() {
    let mut here = session();
    let steps = "inc ".repeat(600);
    let binds: String = (0..400).map(|n| format!("b{n} x ")).collect();
    for program in [
        format!("(defn threaded [x] (-> x {steps}))"),
        format!("(defn bound [x] (let [{binds}] (some->> x {steps})))"),
        "(defmacro nest [n x] (reduce (fn [inner _] (list 'let ['y inner] 'y)) x (range n)))".to_string(),
        "(defn nested [x] (nest 450 (inc x)))".to_string(),
        "(defmacro quoted [n] (list 'quote (reduce (fn [inner _] [inner]) 1 (range n))))".to_string(),
        "(defn data [] (quoted 900))".to_string(),
    ] {
        let failure = here.eval(Request::new(&program), host()).failure;
        assert!(failure.is_none(), "{program}: {failure:?}");
    }
    let mut there = moved(&mut here);
    for session in [&mut here, &mut there] {
        let value =
            session.eval(Request::new("[(threaded 1) (bound 1) (nested 1) (count (flatten (data)))]"), host()).value;
        assert_eq!(value.as_deref(), Some("[601 601 2 1]"));
    }
}

#[test]
fn a_regex_is_the_same_wherever_it_is_read() {
    let mut here = session();
    let eval = |session: &mut Session, program: &str| session.eval(Request::new(program), host()).value;
    eval(&mut here, "(def digits #\"[0-9]+\") (def same [digits]) (def other #\"[0-9]+\")");
    let mut there = moved(&mut here);
    for session in [&mut here, &mut there] {
        let asked =
            "[(= digits (first same)) (identical? digits (first same)) (= digits other) (re-find digits \"a12\")]";
        assert_eq!(eval(session, asked).as_deref(), Some("[true true false \"12\"]"));
    }
}
