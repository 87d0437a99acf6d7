//! Regenerates the seeds of the corpora: `cargo run --example seeds` in `fuzz/`. Other files in the corpora, such as
//! earlier findings, are kept.

#[allow(dead_code, reason = "the cases themselves are not needed")]
#[path = "../../tests/common/literate.rs"]
mod literate;

use lispbox_fuzz::{evaluate, session, small_limits};
use std::path::Path;

/// Maximum number of documents that become seeds, and maximum length of a seed in bytes.
const PROGRAMS: usize = 40;
const LONGEST: usize = 800;

fn main() -> std::io::Result<()> {
    let documents = ["../tests/spec", "../tests/clojure"].map(literate::documents).concat();
    // One seed per document: its programs, as many as fit.
    let mut programs: Vec<String> = Vec::new();
    for (_, text) in &documents {
        let mut lines = String::new();
        let code = text.split("```clojure\n").skip(1).filter_map(|block| block.split("```").next());
        for line in code.flat_map(str::lines).filter(|line| !line.trim_start().starts_with(";lispbox=>")) {
            let line = line.split(";=>").next().unwrap_or_default();
            if lines.len() + line.len() < LONGEST {
                lines.push_str(line);
                lines.push('\n');
            }
        }
        programs.push(lines);
    }
    programs.truncate(PROGRAMS);
    for path in std::fs::read_dir("../stdlib")? {
        let path = path?.path();
        if path.extension().is_some_and(|extension| extension == "lisp") {
            let text = std::fs::read_to_string(path)?;
            programs.push(text[..text.floor_char_boundary(LONGEST)].to_string());
        }
    }
    for (number, program) in programs.iter().enumerate() {
        write("reader", &format!("program-{number:02}"), program)?;
    }
    for (number, definitions) in SESSIONS.iter().enumerate() {
        let mut session = session();
        evaluate(&mut session, definitions, None, small_limits());
        let text = session.encode().expect("a session can be written");
        write("session", &format!("program-{number:02}"), definitions)?;
        write("session", &format!("snapshot-{number:02}"), &text)?;
    }
    for (target, texts) in [("json", JSON), ("csv_dates", TEXTS), ("config", CONFIGURATIONS), ("messages", MESSAGES)] {
        for (number, text) in texts.iter().enumerate() {
            write(target, &format!("seed-{number:02}"), text)?;
        }
    }
    Ok(())
}

fn write(target: &str, name: &str, text: &str) -> std::io::Result<()> {
    let folder = Path::new("corpus").join(target);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(name), text)
}

const SESSIONS: &[&str] = &[
    "(def n 1) (def s \"text\") (def v [1 2.5 :k 'sym \\a nil true])",
    "(defn twice \"Doubles.\" [x & more] (* 2 x)) (def f (partial + 1)) (def g (comp inc twice))",
    "(def a (atom {:count 0})) (add-watch a :w (fn [k r o n] n)) (def d (delay (+ 1 2))) @d (def v (volatile! 1))",
    "(def lazy (lazy-seq (cons 1 (lazy-seq (list 2 (inc 2)))))) (def ends (map inc (range 5))) (def none (lazy-seq nil)) (second lazy)",
    "(def m (zipmap (range 40) (range))) (def sm (sorted-map :b 1 :a 2)) (def ss (sorted-set-by > 1 2 3))",
    "(defrecord Point [x y]) (def p (->Point 1 2)) (defprotocol Shape (area [s])) (extend-type Point Shape (area [s] 1))",
    "(defmulti kind :k) (defmethod kind :a [_] 1) (defmethod kind :default [_] 2) (derive :x/square :x/shape)",
    "(defmacro unless2 [test & body] `(if ~test nil (do ~@body))) (def ^:dynamic *depth* 3)",
    "(def e (try (throw (ex-info \"m\" {:a 1} (Exception. \"c\"))) (catch Exception e e)))",
    "(def t [#inst \"2024-02-29T00:00:00Z\" (LocalDate/of 2024 2 29) (Duration/ofSeconds 3) #\"a+\" 1.50M 12345678901234567890N])",
    "(letfn [(ev? [n] (if (zero? n) true (od? (dec n)))) (od? [n] (if (zero? n) false (ev? (dec n))))] (def ev ev?))",
    "(def j (json/parse \"[{\\\"a b\\\":1},{\\\"a b\\\":2}]\")) (def w (with-meta [1] {:m \"x\"})) (def q #'w)",
];

const JSON: &[&str] = &[
    "{\"a\":[1,2.5,-0.0,1e10,null,true,false],\"b\":{\"c\":\"\\u00e9\\n\\\"\"}}",
    "[{\"id\":1,\"n\":\"x\"},{\"id\":2,\"n\":\"y\"},{\"id\":3}]",
    "[123456789012345678901234567890,-9223372036854775808,18446744073709551615,1e308,5e-324]",
    "\"\\ud83d\\ude00 \\u0000 é😀\"",
    "{\"a\":1,\"a\":2,\"\":{},\"a/b\":[],\" \":[[[[]]]]}",
    " \t\r\n[ ] ",
    "-0",
    "[1,]",
    "0123",
    "\"\\ud800\"",
];

const TEXTS: &[&str] = &[
    "id,name,\"no\"\"te\"\r\n1,Ann,\"a, b\"\r\n2,\"B\nob\",\r\n\0;",
    "a;b;c\n1;2;3\n\0;",
    "2024-02-29T12:34:56.789+02:00[Europe/Paris]\0yyyy-MM-dd'T'HH:mm:ss",
    "Thu, 29 Feb 2024 12:34:56 GMT\0EEE, dd MMM yyyy HH:mm:ss zzz",
    "29.02.2024 3:04 PM\0dd.MM.yyyy h:mm a",
    "P1Y2M3DT4H5M6.7S",
    "{:a [1 2.5 3N 4.5M] #inst \"2024-01-01\" #{:x} \"s\" \\newline}",
    "#my/tag {:a 1} #_ skipped ^{:m 1} [x]",
    "<html><head><style>p{}</style></head><body><p>a &amp; b<br><a href='/x'>link</a><table><tr><td>1</td></tr></table>",
    "(?i)(\\w+)@([a-z.]+)\\s*\0 Ann@Example.org bob@x.y",
    "^(a|b)*?[^c-e\\d]{2,3}$|\\p{L}+\0abba xy ünïcode",
    "%5d|%-8s|%08.3f|%x|%,d|%+e|%%|%2$s|%n",
    "~a ~5,'0d ~:d ~{~a~^, ~} ~r ~,2f ~%",
    "https://user@example.org:8080/a%20b/c?q=1&x=a+b&q=2#top",
    "aGk_Pg==",
];

const CONFIGURATIONS: &[&str] = &[
    "{\"mcpServers\": {\"mail\": {\"command\": \"mail\", \"args\": [\"--port\", \"${PORT:-1}\"], \"env\": {\"K\": \"${KEY}\"}}}}",
    "{ // comments\n mcpServers: { 'My Server': { url: 'https://x.org/mcp', headers: { A: '${MISSING}' }, timeout: 5, }, }, }",
    "{\"mcpServers\": {\"off\": {\"command\": \"x\", \"disabled\": true}, \"sse\": {\"type\": \"sse\", \"url\": \"http://x\"}}}",
];

const MESSAGES: &[&str] = &[
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}
{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}
{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}
{\"jsonrpc\":\"2.0\",\"id\":\"3\",\"method\":\"tools/call\",\"params\":{\"name\":\"lisp_eval\",\"arguments\":{\"program\":\"(+ 1 1)\",\"limits\":{\"fuel\":1000}}}}
{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"lisp_env\",\"arguments\":{\"query\":\"map\"}}}
",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"lisp_eval\",\"arguments\":{\"program\":\"(def x 1)\"},\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"a\",\"version\":\"1\"},\"io.modelcontextprotocol/clientCapabilities\":{}}}}
{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"server/discover\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"a\",\"version\":\"1\"},\"io.modelcontextprotocol/clientCapabilities\":{}}}}
",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2024-11-05\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}
{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}
{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"lisp_eval\",\"arguments\":{\"program\":\"(loop [] (recur))\"}}}
{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":5,\"reason\":\"x\"}}
{\"id\":6,\"method\":\"nothing\"}
[[[[\u{feff}
{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}
",
];
