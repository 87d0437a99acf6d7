//! `all-settled`: many effects, of which each has its outcome.

use crate::failed_runs::configuration;
use crate::mcp_client::Client;
use crate::waiting_runs::lines;
use serde_json::json;

#[test]
fn each_effect_has_its_outcome_and_only_what_surely_did_not_happen_is_repeated() {
    for options in [&[][..], &["--isolate"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = Client::start(&configuration(folder.path()), options);
        // One is made, one fails at its tool, one has no answer in time, one fails after a change, and one before any.
        let program = r#"
            (defn step [x]
              (case x
                :added (notes/add {:line "a"})
                :tried (notes/try {:line "t"})
                :held (notes/hold {:line "h"})
                :after (do (notes/add {:line "b"}) (/ 1 0))
                :before (if (:ready? data) (notes/add {:line "c"}) (throw (ex-info "not yet" {})))))
            (def outcomes (all-settled step [:added :tried :held :after :before]))
            outcomes"#;
        let arguments = json!({"program": program, "data": {}, "limits": {"tool": "300ms"}});
        let settled = client.call("lisp_eval", arguments);
        let line = settled.text.lines().next().unwrap_or_default();
        assert!(line.starts_with("1 ok (\"added a\"), 3 failed: :tried ("), "{}", settled.text);
        assert!(line.contains(":after (divide by zero), :before (not yet), 1 unknown: :held ("), "{}", settled.text);
        assert!(line.ends_with("; (all-settled f outcomes) repeats 2"), "{}", settled.text);
        let kinds = client.eval("(mapv (juxt :item :outcome :changed) outcomes)");
        let expected = "[[:added :ok nil] [:tried :failed false] [:held :unknown nil] [:after :failed true] \
                        [:before :failed false]]";
        assert!(kinds.text.starts_with(expected), "{}", kinds.text);
        for file in ["ready", "go"] {
            std::fs::write(folder.path().join(file), "").expect("written");
        }
        let again = "(all-settled step outcomes)";
        let again = client.call("lisp_eval", json!({"program": again, "data": {"ready?": true}}));
        let line = again.text.lines().next().unwrap_or_default();
        assert!(line.starts_with("3 ok (\"added a\", "), "{}", again.text);
        assert!(line.contains("), 1 failed: :after (divide by zero), 1 unknown: :held ("), "{}", again.text);
        assert_eq!(lines(folder.path(), "added"), ["a", "b", "c"]);
        assert_eq!((lines(folder.path(), "tried").len(), lines(folder.path(), "held").len()), (1, 1));
    }
}

#[test]
fn effects_run_at_most_so_many_at_once_and_those_of_branches_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut client = Client::start(&configuration(folder.path()), &[]);
    let program = r#"
        (def outcomes
          (all-settled (fn [n]
                         (doall (pmap #(notes/add {:line (str n "-" %)}) (range 2)))
                         (when (odd? n) (throw (ex-info "odd" {:n n}))))
            (range 4) :parallel 2))
        (mapv (juxt :item :outcome :changed) outcomes)"#;
    let settled = client.eval(program);
    assert!(
        settled.text.starts_with("[[0 :ok nil] [1 :failed true] [2 :ok nil] [3 :failed true]]"),
        "{}",
        settled.text
    );
    assert_eq!(lines(folder.path(), "added").len(), 8);
    let limited = client.call(
        "lisp_eval",
        json!({"program": "(all-settled #(notes/add {:line (str %)}) (range 10))", "limits": {"calls": 3}}),
    );
    assert!(limited.is_error && limited.text.starts_with("LimitExceeded: "), "no limit is caught: {}", limited.text);
    let asked = client.eval("(:outcome (first (all-settled #(notes/share {:line (str %)}) [1])))");
    assert!(asked.text.starts_with(":failed"), "{}", asked.text);
}
