//! Names without a namespace that functions of namespaces have: `join` for `str/join`.

use crate::common;

use common::{Scripted, engine, eval, host, moved, run, session, value};
use lispbox::lang::{Host, Request, ToolReply};
use serde_json::json;
use std::sync::Arc;

/// A host with tools of these qualified names, each of which returns its name.
fn with_tools(names: &[&str]) -> Arc<dyn Host> {
    let tools = names.iter().fold(Scripted::new(), |tools, name| {
        let returned = json!(name).to_string();
        tools.tool(name, json!({"type": "object"}), move |_| ToolReply::Json(returned.clone()))
    });
    Arc::new(tools)
}

/// Returns the code, message and suggestion of the error of a program.
fn failure(program: &str) -> (String, String, String) {
    let failure = eval(program).failure.unwrap_or_else(|| panic!("{program} has a value"));
    (failure.error, failure.message, failure.suggestion.unwrap_or_default())
}

#[test]
fn a_name_that_one_namespace_has_is_its_function() {
    let cases = [
        ("(join \", \" [1 2])", "\"1, 2\""),
        ("(split \"a,b\" #\",\")", "[\"a\" \"b\"]"),
        ("(trim \" a \")", "\"a\""),
        ("(index-of \"abc\" \"c\")", "2"),
        ("(includes? \"abc\" \"b\")", "true"),
        ("(upper-case \"a\")", "\"A\""),
        ("(blank? \" \")", "true"),
        ("(split-lines \"a\\nb\")", "[\"a\" \"b\"]"),
        ("(starts-with? \"abc\" \"a\")", "true"),
        ("(map upper-case [\"a\"])", "(\"A\")"),
        ("(->> [\"b\" \"a\"] sort (join \"-\"))", "\"a-b\""),
        ("(apply join [\"-\" [1 2]])", "\"1-2\""),
        ("((comp upper-case trim) \" a \")", "\"A\""),
        ("(let [f join] (f [1 2]))", "\"12\""),
        ("(#'join \"-\" [1 2])", "\"1-2\""),
        ("(resolve 'join)", "#'str/join"),
        ("(= join str/join)", "true"),
        ("(rename-keys {:a 1} {:a :b})", "{:b 1}"),
        ("(postwalk identity [1])", "[1]"),
        ("(defmacro m [x] `(join \"-\" ~x)) (m [1 2])", "\"1-2\""),
    ];
    for (program, expected) in cases {
        assert_eq!(value(program), expected, "{program}");
    }
}

#[test]
fn every_other_meaning_comes_first() {
    let cases = [
        ("(let [join 1] join)", "1"),
        ("((fn [join] join) 2)", "2"),
        ("(defn join [x] [:own x]) (join 1)", "[:own 1]"),
        ("(def join 5) join", "5"),
        ("(defn f [] (join 1)) (defn join [x] [:later x]) (f)", "[:later 1]"),
        ("(declare split) (defn g [] (split 1)) (defn split [x] [:declared x]) (g)", "[:declared 1]"),
        ("(letfn [(split [x] [:local x])] (split 1))", "[:local 1]"),
        ("(loop [trim 3] trim)", "3"),
        ("(defmacro split [x] :macro) (split 1)", ":macro"),
        ("(for [split [1]] split)", "(1)"),
        ("(replace {1 2} [1])", "[2]"),
        ("(reverse [1 2])", "(2 1)"),
    ];
    for (program, expected) in cases {
        assert_eq!(value(program), expected, "{program}");
    }
}

#[test]
fn a_name_that_several_namespaces_have_is_refused_with_all_of_them() {
    let (code, message, suggestion) = failure("(parse \"1\")");
    assert_eq!(code, "AmbiguousName");
    for name in ["`csv/parse`", "`json/parse`", "`time/parse`", "`url/parse`"] {
        assert!(message.starts_with("`parse` may mean ") && message.contains(name), "{message}");
    }
    assert_eq!(suggestion, "write the qualified name, such as `csv/parse`");
    assert_eq!(failure("(map parse [\"1\"])").0, "AmbiguousName");
    // Only where it is needed: a local or a definition is what is meant.
    assert_eq!(value("(let [parse inc] (parse 1))"), "2");
    assert_eq!(value("(defn parse [x] x) (parse 1)"), "1");
    assert_eq!(value("(require '[clojure.data.json :refer [parse]]) (parse \"1\")"), "1");
    assert_eq!(value("(use 'clojure.string) (join [1 2])"), "\"12\"");
}

#[test]
fn a_tool_of_the_same_bare_name_makes_it_ambiguous() {
    let host = with_tools(&["chat/join", "chat/post", "text/index_of"]);
    let mut session = session();
    let mut reply = |program: &str| session.eval(Request::new(program), host.clone());
    let failure = reply("(join {:room 1})").failure.expect("it is ambiguous");
    assert_eq!(failure.error, "AmbiguousName");
    assert_eq!(failure.message, "`join` may mean `str/join` or `chat/join`");
    assert_eq!(reply("(join {:room 1})").calls.len(), 0);
    assert_eq!(reply("(chat/join {})").value.as_deref(), Some("\"chat/join\""));
    assert_eq!(reply("(str/join [1 2])").value.as_deref(), Some("\"12\""));
    assert_eq!(reply("(post {})").value.as_deref(), Some("\"chat/post\""));
    assert_eq!(reply("(split \"a b\" #\" \")").value.as_deref(), Some("[\"a\" \"b\"]"));
    assert_eq!(reply("(let [join inc] (join 1))").value.as_deref(), Some("2"));
    let failure = reply("(index-of \"ab\" \"b\")").failure.expect("names agree up to `-` and `_`");
    assert_eq!(failure.message, "`index-of` may mean `str/index-of` or `text/index_of`");
    assert!(reply("(doc join)").prints.contains("(str/join") && reply("(doc join)").prints.contains("chat/join"));
}

#[test]
fn plans_and_snapshots_treat_it_as_the_function() {
    let tools = with_tools(&["chat/post"]);
    let plan = session().plan(&Request::new("(doseq [x (split \"a b\" #\" \")] (post {:text x}))"), &[], tools);
    let plan = plan.unwrap_or_else(|failure| panic!("{}", failure.rendered));
    assert!(plan.unknown.is_empty() && plan.calls.len() == 1);
    let mut first = session();
    run(&mut first, "(defn f [x] (join \"-\" x)) (def g join) (def h (comp upper-case trim)) (def v #'join)");
    let mut second = moved(&mut first);
    assert_eq!(run(&mut second, "[(f [1 2]) (g [1 2]) (h \" a\") (v [1 2])]"), "[\"1-2\" \"12\" \"A\" \"12\"]");
    // What was resolved keeps its meaning when the session defines the name.
    run(&mut second, "(defn join [& xs] :own)");
    let mut third = moved(&mut second);
    assert_eq!(run(&mut third, "[(f [1 2]) (join 1)]"), "[\"1-2\" :own]");
    let mut plain = engine().session();
    assert_eq!(plain.eval(Request::new("(bound? #'join)"), host()).value.as_deref(), Some("true"));
}

#[test]
fn doc_and_source_know_it() {
    assert!(eval("(doc join)").prints.starts_with("(str/join"));
    assert!(eval("(doc split)").prints.starts_with("(str/split"));
    let prints = eval("(doc parse)").prints;
    assert!(prints.contains("(json/parse s") && prints.contains("(time/parse s"), "{prints}");
    assert!(eval("(source split)").prints.contains("str/split"));
    assert!(eval("(source median)").prints.contains("defn stats/median"));
}

#[test]
fn suggestions_prefer_the_same_name_elsewhere() {
    let cases = [
        ("(clojure.string/sqrt 2)", "Did you mean sqrt?"),
        ("(math/last-index-of 1 2)", "Did you mean str/last-index-of?"),
        ("(clojure.string/cbrt 8)", "Did you mean math/cbrt?"),
        ("(str/map 1 2)", "Did you mean map?"),
        (
            "(strings/split-lines \"a\")",
            "Did you mean str/split-lines? Or: `Tools::tool(\"strings/split-lines\", …)` registers one",
        ),
        ("(jion [1])", "Did you mean str/join?"),
        ("(split-line \"a\")", "Did you mean split-lines?"),
        ("(upper-cas \"a\")", "Did you mean upper-case?"),
        ("(stats/mediann [1])", "Did you mean stats/median?"),
    ];
    for (program, expected) in cases {
        let (code, _, suggestion) = failure(program);
        assert_eq!((code.as_str(), suggestion.as_str()), ("UnboundVariable", expected), "{program}");
    }
}

#[test]
fn arity_errors_name_a_function_that_takes_that_many() {
    let cases = [
        ("(sort identity < [1])", "`(sort-by f comparator coll)` takes 3: The items sorted by `(f item)`"),
        ("(sort-by [1])", "`(sort coll)` takes 1: The sorted items"),
        ("(range 1 2 3 4)", "`(time/range from to n unit)` takes 4: "),
        // One argument is missing, and no other function is meant.
        ("(str/split \"a\")", ""),
        ("(str/replace \"a\" \"b\")", ""),
        ("(str/repeat \"a\")", ""),
        ("(update-in {:a 1} [:a])", ""),
        ("(inc 1 2)", ""),
        ("(edn/read-string 1 2 3)", ""),
    ];
    for (program, expected) in cases {
        let (code, _, suggestion) = failure(program);
        assert_eq!(code, "ArityError", "{program}");
        assert!(suggestion.starts_with(expected), "{program}: {suggestion}");
        assert_eq!(suggestion.is_empty(), expected.is_empty(), "{program}: {suggestion}");
    }
}
