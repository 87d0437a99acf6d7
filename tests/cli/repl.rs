//! The REPL in a pseudo-terminal: key presses as input, terminal output as the result.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use rexpect::process::WaitStatus;
use rexpect::reader::Options;
use rexpect::session::{PtySession, spawn_with_options};
use tempfile::TempDir;

/// Maximum time to wait for output, with a margin for a busy machine.
const PATIENCE_MS: u64 = 120_000;

/// A REPL session on a terminal of 80 columns and unknown height.
struct Talk {
    terminal: PtySession,
    colour: bool,
    /// The folder of the history file, unless the test names one.
    _folder: TempDir,
}

/// The options of a REPL session.
#[derive(Default)]
struct Setting<'a> {
    arguments: &'a [&'a str],
    history: Option<&'a Path>,
    colour: bool,
}

impl Talk {
    fn begin() -> Talk {
        Talk::with(Setting::default())
    }

    /// Starts a REPL and waits for its first prompt.
    fn with(setting: Setting) -> Talk {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_lispbox"));
        command.arg("repl").args(setting.arguments);
        command.env("TERM", "xterm").env("XDG_STATE_HOME", folder.path()).env("HOME", folder.path());
        command.env("LISPBOX_CACHE", folder.path().join("cache"));
        command.env_remove("NO_COLOR").env_remove("LISPBOX_HISTORY");
        if let Some(history) = setting.history {
            command.arg("--history").arg(history);
        }
        if !setting.colour {
            command.env("NO_COLOR", "1");
        }
        let options = Options::new().timeout_ms(Some(PATIENCE_MS)).strip_ansi_escape_codes(!setting.colour);
        let terminal = spawn_with_options(command, options).expect("a terminal");
        let mut talk = Talk { terminal, colour: setting.colour, _folder: folder };
        talk.expect("Ctrl-D exits");
        talk.prompt();
        talk
    }

    /// Types a line and Enter.
    fn type_line(&mut self, text: &str) {
        self.press(text);
        self.press("\r");
    }

    /// Types keys without Enter. Control characters are sent as keys.
    fn press(&mut self, keys: &str) {
        self.terminal.send(keys).expect("it takes keys");
        self.terminal.flush().expect("it takes keys");
    }

    /// Waits for a text and returns the output before it.
    fn expect(&mut self, text: &str) -> String {
        self.terminal.exp_string(text).unwrap_or_else(|problem| panic!("`{text}`: {problem}"))
    }

    /// Waits for the next prompt after the output so far: only then does the editor read input.
    fn prompt(&mut self) {
        // The echo of typed input redraws its line, but never begins a new line.
        self.expect(if self.colour { "=> " } else { "\n\r=> " });
    }

    /// Waits for a line that consists of this value, which the echo of typed input never does, and for the next prompt.
    fn answers(&mut self, value: &str) {
        self.expect(&format!("\n{value}\r"));
        self.prompt();
    }

    /// Types a line and waits for its value.
    fn asks(&mut self, text: &str, value: &str) {
        self.type_line(text);
        self.answers(value);
    }

    /// Types a line and waits for texts that the line does not contain, and for the next prompt.
    fn hears(&mut self, text: &str, parts: &[&str]) {
        self.type_line(text);
        for part in parts {
            self.expect(part);
        }
        self.prompt();
    }

    /// Waits for the REPL to end and returns its exit code.
    fn ends(&mut self) -> i32 {
        self.terminal.exp_eof().expect("it ends");
        match self.terminal.process().wait().expect("it ended") {
            WaitStatus::Exited(_, code) => code,
            other => panic!("{other:?}"),
        }
    }
}

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const TAB: &str = "\t";
const UP: &str = "\u{1b}[A";

#[test]
fn an_entry_goes_on_until_its_brackets_close() {
    let mut talk = Talk::begin();
    talk.type_line("(defn twice [n]");
    talk.type_line("  (str n \"(\" ; )");
    talk.type_line("    n))");
    talk.prompt();
    talk.asks("(twice 7)", "\"7(7\"");
    talk.asks("(+ 1 2) (* 7 9)", "3\r\n63");
    talk.press(CTRL_D);
    assert_eq!(talk.ends(), 0);
}

#[test]
fn the_last_values_and_the_last_error_have_names() {
    let mut talk = Talk::begin();
    talk.asks("(* 6 7)", "42");
    talk.asks("(str *1 \"!\")", "\"42!\"");
    talk.asks("[*1 *2]", "[\"42!\" 42]");
    talk.asks("*3", "42");
    talk.hears("(throw (ex-info \"no way\" {:a 1}))", &["ExceptionInfo: no way"]);
    talk.asks("(ex-data *e)", "{:a 1}");
    talk.type_line(":quit");
    assert_eq!(talk.ends(), 0);
}

#[test]
fn an_error_points_at_its_place() {
    let mut talk = Talk::begin();
    talk.asks("(do (def total 1) :defined)", ":defined");
    let place = ["UnboundVariable: `totl` is not defined", "(+ totl 1)", "|", "here", "Did you mean total?"];
    talk.hears("(+ totl 1)", &place);
    // The REPL does not wait for more input if the line has a syntax error.
    talk.hears("(]", &["UnbalancedBrackets"]);
    talk.asks("(inc 41)", "42");
}

#[test]
fn tab_completes_whatever_has_a_name() {
    let mut talk = Talk::begin();
    talk.asks("(do (def quartz-of-the-session 5) :defined)", ":defined");
    talk.press("(inc quar");
    talk.press(TAB);
    talk.press(")\r");
    talk.answers("6");
    // Several candidates are listed, each with its call form.
    talk.press("(map");
    talk.press(TAB);
    talk.expect("(mapcat f coll)");
    talk.press("v inc [1 2])\r");
    talk.answers("[2 3]");
    // Local bindings of the unfinished entry are completed too.
    talk.press("(let [celestial 1] (dec celes");
    talk.press(TAB);
    talk.press("))\r");
    talk.answers("0");
    talk.press(":li");
    talk.press(TAB);
    talk.hears("", &["nested calls"]);
}

#[test]
fn tools_complete_with_their_parameters() {
    let folder = tempfile::tempdir().expect("a folder");
    let servers = folder.path().join("servers.json");
    let server = serde_json::json!({"command": env!("CARGO_BIN_EXE_lispbox"), "args": ["sample-mailbox"]});
    std::fs::write(&servers, serde_json::json!({"mcpServers": {"mail": server}}).to_string()).expect("written");
    let arguments = ["--config", servers.to_str().expect("UTF-8")];
    let mut talk = Talk::with(Setting { arguments: &arguments, ..Setting::default() });
    talk.press("(count (mail/fet");
    talk.press(TAB);
    talk.press(" :li");
    talk.press(TAB);
    talk.press(" 30))\r");
    talk.answers("30");
    talk.type_line(":quit");
    assert_eq!(talk.ends(), 0);
}

#[test]
fn history_lasts_from_one_conversation_to_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let history = folder.path().join("deep").join("history");
    let mut talk = Talk::with(Setting { history: Some(&history), ..Setting::default() });
    talk.asks("(str \"remem\"\r  \"bered\")", "\"remembered\"");
    talk.press(CTRL_D);
    assert_eq!(talk.ends(), 0);

    let mut talk = Talk::with(Setting { history: Some(&history), ..Setting::default() });
    talk.press(UP);
    talk.press("\r");
    talk.answers("\"remembered\"");
    talk.press(CTRL_D);
    assert_eq!(talk.ends(), 0);
}

#[test]
fn a_history_that_cannot_be_kept_is_no_hindrance() {
    let mut talk = Talk::with(Setting { history: Some(Path::new("/dev/null/history")), ..Setting::default() });
    talk.type_line("(* 6 7)");
    talk.expect("history is not kept");
    talk.answers("42");
    talk.asks("(* 6 8)", "48");
    let mut talk = Talk::with(Setting { arguments: &["--no-history"], ..Setting::default() });
    talk.asks("(* 6 7)", "42");
}

#[test]
fn ctrl_c_stops_what_runs_and_clears_what_was_typed() {
    let arguments = ["--limit", "compute=1000s", "--limit", "total=1000s", "--limit", "fuel=1e15"];
    let mut talk = Talk::with(Setting { arguments: &arguments, ..Setting::default() });
    talk.asks("(do (def kept 11) :defined)", ":defined");
    for _ in 0..2 {
        talk.type_line("(do (println (str \"run\" \"ning\")) (loop [] (recur)))");
        talk.expect("running");
        talk.press(CTRL_C);
        talk.expect("Cancelled");
        talk.prompt();
    }
    talk.asks("(* kept 2)", "22");
    talk.press("(never (closed");
    talk.expect("closed");
    talk.press(CTRL_C);
    talk.prompt();
    talk.asks("(* kept 3)", "33");
    talk.press(CTRL_D);
    assert_eq!(talk.ends(), 0);
}

#[test]
fn commands_tell_about_the_session() {
    let mut talk = Talk::begin();
    talk.hears(":help", &[":env", ":limits", ":time", ":more", ":quit", "Ctrl-D"]);
    talk.hears(":help map-indexed", &["(map-indexed f coll)"]);
    talk.hears(":help map-indxed", &["Did you mean map-indexed?"]);
    talk.hears(":env", &["nothing is defined"]);
    talk.asks("(def prices [3 4 5]) (defn total [items] (reduce + items)) :defined", ":defined");
    talk.hears(":env", &["vector of 3: [3 4 5]", "function [items]"]);
    talk.hears(":limits", &["50000000"]);
    talk.hears(":limits fuel 1000", &["nested calls"]);
    talk.hears("(reduce + (range 100000))", &["LimitExceeded", "`:limits fuel VALUE` allows more"]);
    talk.hears(":limits feul 1", &["Did you mean fuel?"]);
    talk.hears(":limits fuel 1e7", &["10000000"]);
    talk.asks("(reduce + (range 100000))", "4999950000");
    talk.hears(":time", &["now shows what it spent"]);
    talk.hears("(total prices)", &["\n12\r\n", " steps, "]);
    talk.hears(":time", &["no longer"]);
    talk.hears(":hlep", &["did you mean `:help`?"]);
    talk.asks(":sender", ":sender");
}

#[test]
fn a_long_result_is_folded() {
    let mut talk = Talk::begin();
    talk.type_line("(map (fn [n] {:number n, :name (apply str (repeat 60 \"x\"))}) (range 100))");
    talk.expect("{:number 0,");
    let shown = talk.expect("more lines; :more shows them");
    assert!(!shown.contains(":number 99"), "{shown}");
    assert!(shown.lines().count() < 24, "{shown}");
    talk.prompt();
    talk.hears(":more", &["{:number 50,", "{:number 99,"]);
    talk.hears(":more", &["nothing is folded"]);
}

#[test]
fn colour_is_for_who_wants_it() {
    let mut talk = Talk::with(Setting { colour: true, ..Setting::default() });
    talk.type_line("(str \"a\" 7)");
    talk.expect("\u{1b}[32m\"a7\"\u{1b}[0m");
    talk.type_line("(oops)");
    talk.expect("\u{1b}[1;31mUnboundVariable\u{1b}[0m");
}

#[test]
fn what_is_sent_at_once_is_evaluated_line_by_line() {
    let mut talk = Talk::begin();
    talk.press("(str \"a\" 1)\r(defn twice [n]\r  (* 2 n))\r(twice 21)\r(str \"the\" \" last\")\r");
    for value in ["\"a1\"", "42", "\"the last\""] {
        talk.expect(&format!("\n{value}\r"));
    }
    talk.prompt();
    // More input than the editor and the terminal buffer at once.
    let many: String = (0..400).map(|n| format!("(str \"n\" {n})\r")).collect();
    let mut sending = 0;
    for chunk in many.as_bytes().chunks(1_200) {
        talk.press(std::str::from_utf8(chunk).expect("ASCII"));
        let complete = many[..sending + chunk.len()].matches('\r').count();
        sending += chunk.len();
        talk.expect(&format!("\n\"n{}\"\r", complete - 1));
    }
    talk.prompt();
    talk.press(CTRL_D);
    assert_eq!(talk.ends(), 0);
}

/// A program that prints `word` and then reads the clock in a loop until `ms` milliseconds have passed.
fn busy(word: &str, ms: u64) -> String {
    let (first, rest) = word.split_at(1);
    format!(
        "(do (println (str \"{first}\" \"{rest}\")) (let [end (+ {ms} (time/epoch-millis (time/now)))] (loop [] (if (< (time/epoch-millis (time/now)) end) (recur) :done))))"
    )
}

#[test]
fn what_is_typed_while_an_entry_runs_is_evaluated_next() {
    let mut talk = Talk::begin();
    talk.type_line(&busy("running", 700));
    talk.expect("running");
    talk.press("(defn thrice [n]\r  (* 3 n))\r(thrice 14)\r(str \"unfin\"");
    talk.expect("\n:done\r");
    talk.expect("\n42\r");
    talk.prompt();
    talk.press(" \"ished\")\r");
    talk.answers("\"unfinished\"");
    // The end of input is also processed after the entries before it.
    talk.type_line(&busy("waiting", 700));
    talk.expect("waiting");
    talk.press("(str \"be\" \"fore\")\r");
    talk.press(CTRL_D);
    talk.expect("\n:done\r");
    talk.expect("\n\"before\"\r");
    assert_eq!(talk.ends(), 0);
}

#[test]
fn ctrl_c_discards_what_was_typed_before_it_and_nothing_behind_it() {
    let arguments = ["--limit", "compute=1000s", "--limit", "total=1000s", "--limit", "fuel=1e15"];
    let mut talk = Talk::with(Setting { arguments: &arguments, ..Setting::default() });
    talk.press("(never (closed\u{3}(str \"a\" \"b\")\r");
    talk.answers("\"ab\"");
    // Ctrl-C discards both the input that was sent with the entry and the input that was typed while it ran.
    talk.press("(do (println (str \"run\" \"ning\")) (loop [] (recur)))\r(def x (str \"first\" \"-lost\"))\r");
    talk.expect("running");
    talk.press("(def x (str \"second\" \"-lost\"))\r");
    talk.press(CTRL_C);
    talk.expect("Cancelled");
    talk.prompt();
    talk.hears("x", &["UnboundVariable"]);
    talk.asks("(str \"c\" \"d\")", "\"cd\"");
    talk.press(CTRL_D);
    assert_eq!(talk.ends(), 0);
}

#[test]
fn what_was_typed_ahead_does_not_answer_a_question() {
    let folder = tempfile::tempdir().expect("a folder");
    let servers = folder.path().join("servers.json");
    let server = serde_json::json!({"command": env!("CARGO_BIN_EXE_lispbox"), "args": ["sample-mailbox"]});
    let text = serde_json::json!({"mcpServers": {"mail": server}, "policy": {"ask": ["mail/list-labels"]}}).to_string();
    std::fs::write(&servers, text).expect("written");
    let arguments = ["--config", servers.to_str().expect("UTF-8")];
    let mut talk = Talk::with(Setting { arguments: &arguments, ..Setting::default() });
    // While the entry runs, a `y` and a further entry are typed.
    talk.type_line(&format!("(do {} (count (mail/list-labels)))", busy("running", 700)));
    talk.expect("running");
    talk.press("y\r(str \"typed\" \" ahead\")\r");
    talk.expect("(discarded: the input that was typed before this question)");
    talk.expect("Allow this call? [y/N/a/t] ");
    talk.press("n\r");
    talk.expect("ToolDenied");
    talk.prompt();
    // An entry that is sent together with the one that asks is kept, and does not answer the question.
    talk.press("(count (mail/list-labels))\r(str \"still\" \" there\")\r");
    talk.expect("Allow this call? [y/N/a/t] ");
    talk.press("y\r");
    talk.expect("\n10\r");
    talk.answers("\"still there\"");
    talk.press(CTRL_D);
    assert_eq!(talk.ends(), 0);
}
