//! Results that a rehearsal does not know: a program passes them on, and stops where it depends on one.

use std::sync::Arc;

use crate::common;

use common::{Scripted, engine};
use lispbox::lang::{Reply, Request, ToolReply};
use serde_json::json;

/// Evaluates a program with the tool `mail/send`, whose calls are not made, and `mail/list`, which answers.
fn rehearsed(program: &str) -> (Reply, Arc<Scripted>) {
    let host = Scripted::new().tool("mail/send", json!({}), |_| ToolReply::Rehearsed);
    let host = Arc::new(host.tool("mail/list", json!({}), |_| ToolReply::Json("[1, 2, 3]".to_owned())));
    let reply = engine().session().eval(Request::new(program), host.clone());
    (reply, host)
}

#[test]
fn an_unknown_result_can_be_passed_on_stored_and_returned() {
    for (program, value) in [
        ("(mail/send {})", "#<unknown result \"mail/send\">"),
        ("[(mail/send {}) 1]", "[#<unknown result \"mail/send\"> 1]"),
        ("(let [sent (mail/send {})] {:sent sent})", "{:sent #<unknown result \"mail/send\">}"),
        ("(def sent (mail/send {})) (def all [sent]) (count all)", "1"),
        ("(let [a (atom [])] (swap! a conj (mail/send {})) (count @a))", "1"),
        ("(let [a (atom nil)] (reset! a (mail/send {})) 1)", "1"),
        ("(count (map (fn [n] (mail/send {:n n})) (mail/list {})))", "3"),
        ("(count (mapv (fn [n] {:n n :sent (mail/send {:n n})}) (mail/list {})))", "3"),
        ("(count (pmap (fn [n] (mail/send {:n n})) (mail/list {})))", "3"),
        ("(mapv :n (mapv (fn [n] {:n n :sent (mail/send {:n n})}) (mail/list {})))", "[1 2 3]"),
        ("(doseq [n (mail/list {})] (mail/send {:n n}))", "nil"),
        ("(run! (fn [n] (mail/send {:n n})) (mail/list {}))", "nil"),
        ("(dotimes [n 3] (mail/send {:n n}))", "nil"),
        ("(count (into [] (map (fn [n] (mail/send {:n n}))) [1 2]))", "2"),
        ("(count (reduce (fn [done n] (conj done (mail/send {:n n}))) [] [1 2]))", "2"),
        ("(count ((comp vector identity) (mail/send {})))", "1"),
        ("(count (apply vector (mail/send {}) [1]))", "2"),
        ("(count (assoc {} :a (mail/send {})))", "1"),
        ("(do (mail/send {}) :done)", ":done"),
        ("(try (mail/send {}) :done (finally (mail/list {})))", ":done"),
    ] {
        let (reply, _) = rehearsed(program);
        assert_eq!(common::outcome(reply), value, "{program}");
    }
}

#[test]
fn a_program_that_depends_on_an_unknown_result_stops() {
    for program in [
        "(:id (mail/send {}))",
        "(get (mail/send {}) :id)",
        "(get (mail/send {}) :id 7)",
        "(get-in (mail/send {}) [:id])",
        "(get-in {:a (mail/send {})} [:a :id])",
        "(let [{:keys [id]} (mail/send {})] id)",
        "(let [[id] (mail/send {})] id)",
        "((mail/send {}) :id)",
        "({:a 1} (mail/send {}))",
        "(if (mail/send {}) 1 2)",
        "(when-let [sent (mail/send {})] sent)",
        "(or (mail/send {}) 1)",
        "(and (mail/send {}) 1)",
        "(cond (mail/send {}) 1 :else 2)",
        "(case (mail/send {}) 1 2 3)",
        "(not (mail/send {}))",
        "(nil? (mail/send {}))",
        "(some? (mail/send {}))",
        "(map? (mail/send {}))",
        "(string? (mail/send {}))",
        "(= (mail/send {}) 1)",
        "(= [(mail/send {})] [1])",
        "(= {:a (mail/send {})} {:a nil})",
        "(not= [(mail/send {})] [(mail/send {})])",
        "(+ 1 (mail/send {}))",
        "(reduce + [1 (mail/send {})])",
        "(apply + [1 (mail/send {})])",
        "((partial + 1) (mail/send {}))",
        "(str (mail/send {}))",
        "(str [(mail/send {})])",
        "(pr-str {:a (mail/send {})})",
        "(println (mail/send {}))",
        "(println [(mail/send {})])",
        "(format \"%s\" (mail/send {}))",
        "(json/write {:a (mail/send {})})",
        "(count (mail/send {}))",
        "(first (mail/send {}))",
        "(seq (mail/send {}))",
        "(empty? (mail/send {}))",
        "(map inc (mail/send {}))",
        "(vec (map inc [(mail/send {})]))",
        "(doseq [x (mail/send {})] x)",
        "(sort [(mail/send {}) 1])",
        "(sort-by :a [{:a (mail/send {})} {:a 1}])",
        "(filterv :a [{:a (mail/send {})}])",
        "(filterv identity [(mail/send {})])",
        "(vec (keep identity [(mail/send {})]))",
        "(into [] (filter identity) [(mail/send {})])",
        "(some identity [(mail/send {})])",
        "(group-by :a [{:a (mail/send {})} {:a (mail/send {})}])",
        "(frequencies [(mail/send {}) (mail/send {})])",
        "(distinct [(mail/send {}) (mail/send {})])",
        "(count (set [(mail/send {}) (mail/send {})]))",
        "(every? :a [{:a (mail/send {})}])",
        "(conj (mail/send {}) 1)",
        "(assoc (mail/send {}) :a 1)",
        "(deref (mail/send {}))",
        "(def sent (mail/send {})) (if sent 1 2)",
        "(mail/list {:after (mail/send {})})",
        "(mail/send {:after [{:a (mail/send {})}]})",
        "(mail/list (mail/send {}))",
        // A handler would take the error for one of the tool.
        "(try (:id (mail/send {})) (catch Exception e 1))",
        "(try (if (mail/send {}) 1 2) (catch Exception e 1) (finally 2))",
    ] {
        let (reply, host) = rehearsed(program);
        assert_eq!(common::outcome(reply.clone()), "error: RehearsedResult", "{program}: {reply:?}");
        let message = reply.failure.expect("it fails").message;
        assert!(message.starts_with("the result of `mail/send` is not known in a rehearsal"), "{program}: {message}");
        let calls = host.calls.lock().expect("not poisoned");
        let passed = calls.iter().filter(|call| call.arguments != "{}").count();
        assert_eq!(passed, 0, "{program}: no call depends on the result");
    }
}
