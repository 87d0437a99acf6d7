//! Options: every builtin that takes options refuses unknown ones and values of the wrong kind.

use crate::common;

use common::{eval, value};
use lispbox::lang::internal::all;

/// Returns the code, the message and the suggestion of the error that the program fails with.
fn failure(program: &str) -> (String, String, String) {
    failed(program).unwrap_or_else(|| panic!("{program} has a value"))
}

/// As [`failure`]; `None` if the program has a value.
fn failed(program: &str) -> Option<(String, String, String)> {
    let failure = eval(program).failure?;
    Some((failure.error, failure.message, failure.suggestion.unwrap_or_default()))
}

/// Calls of a builtin with one option in every place that its argument lists allow: in pairs and in a map, behind up to
/// four other arguments or before one.
fn calls(builtin: &lispbox::lang::Builtin, option: &str, value: &str) -> Vec<String> {
    let name = builtin.name;
    let behind = (0..=4).flat_map(|count| {
        let others = "[] ".repeat(count);
        let pairs = builtin.arity.accepts(count + 2).then(|| format!("({name} {others}:{option} {value})"));
        let map = builtin.arity.accepts(count + 1).then(|| format!("({name} {others}{{:{option} {value}}})"));
        pairs.into_iter().chain(map)
    });
    let before = builtin.arity.accepts(2).then(|| format!("({name} {{:{option} {value}}} \"1\")"));
    behind.chain(before).collect()
}

#[test]
fn every_builtin_with_options_declares_them() {
    for builtin in all().filter(|builtin| builtin.options.is_none()) {
        for list in builtin.arguments {
            let words: Vec<&str> = list.trim_matches(['[', ']']).split_whitespace().collect();
            let takes_options = words.iter().any(|word| matches!(*word, "options" | "opts") || word.starts_with(':'));
            assert!(!takes_options, "`{}` has the arguments {list} and declares no options", builtin.name);
        }
    }
    assert!(all().filter(|builtin| builtin.options.is_some()).count() >= 22);
}

#[test]
fn every_declared_option_is_documented() {
    for builtin in all() {
        let Some(options) = builtin.options else { continue };
        assert_eq!(options.function, builtin.name);
        let refers = ["Options as for", "with the options of"].iter().any(|words| builtin.doc.contains(words));
        for option in options.accepted.iter().filter(|option| option.name != "simple") {
            let is_shown = builtin.doc.contains(&format!(":{}", option.name));
            let is_argument = builtin.arguments.iter().any(|list| list.contains(&format!(":{}", option.name)));
            assert!(refers || is_shown || is_argument, "`{}`: nothing documents `:{}`", builtin.name, option.name);
        }
    }
}

#[test]
fn every_builtin_refuses_unknown_options_and_lists_its_own() {
    for builtin in all() {
        let Some(options) = builtin.options else { continue };
        let refusals: Vec<_> = calls(builtin, "unheard-of-option", "1")
            .into_iter()
            // A map in first place may be another argument.
            .filter_map(|program| Some((failed(&program)?, program)))
            .filter(|((code, ..), _)| code == "UnknownOption")
            .collect();
        assert!(!refusals.is_empty(), "`{}` does not refuse an unknown option", builtin.name);
        for ((_, message, suggestion), program) in refusals {
            assert!(message.ends_with("has no option `:unheard-of-option`"), "{program}: {message}");
            for option in options.accepted.iter().filter(|option| option.name != "simple") {
                assert!(suggestion.contains(&format!(":{}", option.name)), "{program}: {suggestion}");
            }
        }
    }
}

#[test]
fn every_builtin_suggests_the_option_that_was_misspelled() {
    for builtin in all() {
        let Some(options) = builtin.options else { continue };
        for option in options.accepted.iter().filter(|option| option.name != "simple") {
            let misspelled = format!("{}x", option.name);
            let wanted = format!("Did you mean :{}?", option.name);
            let found = calls(builtin, &misspelled, "1").iter().any(|program| {
                let refused = failed(program);
                refused.is_some_and(|(code, _, hint)| code == "UnknownOption" && hint.starts_with(&wanted))
            });
            assert!(found, "`{}` does not correct `:{misspelled}`", builtin.name);
        }
    }
}

#[test]
fn every_builtin_refuses_values_of_the_wrong_kind() {
    let wrong = ["1", "\"text that is nothing else\"", "-1.5", ":no-such-thing", "[1]"];
    for builtin in all() {
        let Some(options) = builtin.options else { continue };
        for option in options.accepted.iter().filter(|option| !option.kind.wanted.starts_with("a value")) {
            if option.name == "simple" {
                continue;
            }
            let found = wrong.iter().flat_map(|value| calls(builtin, option.name, value)).any(|program| {
                let failure = eval(&program).failure;
                failure.is_some_and(|failure| {
                    failure.error == "TypeError" && failure.message.contains(&format!("for `:{}`", option.name))
                })
            });
            assert!(found, "`{}` takes any value for `:{}`", builtin.name, option.name);
        }
    }
}

#[test]
fn unknown_options_are_refused_with_a_correction() {
    let cases = [
        ("(csv/parse \"a;b\\n1;2\" {:seperator \";\"})", "`csv/parse` has no option `:seperator`", ":separator"),
        ("(csv/parse \"a;b\\n1;2\" :seperator \";\")", "`csv/parse` has no option `:seperator`", ":separator"),
        ("(csv/parse \"a\\n1\" :trim true {:heders false})", "`csv/parse` has no option `:heders`", ":headers"),
        ("(csv/read-csv \"a\\n1\" {:number true})", "`csv/read-csv` has no option `:number`", ":numbers"),
        ("(csv/write [{:a 1}] {:colums [:a]})", "`csv/write` has no option `:colums`", ":columns"),
        ("(json/write {:a 1} :ident true)", "`json/write` has no option `:ident`", ":indent"),
        ("(json/write {:a 1} {:prety true})", "`json/write` has no option `:prety`", ":pretty"),
        ("(json/parse \"{}\" {:keyfn keyword})", "`json/parse` has no option `:keyfn`", ":key-fn"),
        ("(edn/read-string {:reader {}} \"1\")", "`edn/read-string` has no option `:reader`", ":readers"),
        ("(read-string {:readcond :allow} \"1\")", "`read-string` has no option `:readcond`", ":read-cond"),
        ("(atom 1 :validtor pos?)", "`atom` has no option `:validtor`", ":validator"),
        ("(iteration inc {:kff inc})", "`iteration` has no option `:kff`", ":kf"),
        ("(time/parse \"2024-01-01\" {:patern \"yyyy\"})", "`time/parse` has no option `:patern`", ":pattern"),
        ("(time/parse \"2024-01-01\" :zoen \"UTC\")", "`time/parse` has no option `:zoen`", ":zone"),
        ("(time/format (time/now) :iso :zoen \"UTC\")", "`time/format` has no option `:zoen`", ":zone"),
        ("(remove-duplicates [1] :tset =)", "`remove-duplicates` has no option `:tset`", ":test"),
        ("(sort [1] < :kye first)", "`sort` has no option `:kye`", ":key"),
        ("(reduce + [1] :initial-vaule 1)", "`reduce` has no option `:initial-vaule`", ":initial-value"),
        ("(top [{:n 1}] 1 :bye :n)", "`top` has no option `:bye`", ":by"),
        ("(bottom [{:n 1}] 1 :bx :n)", "`bottom` has no option `:bx`", ":by"),
        ("(left-join [{:a 1}] [{:a 1}] :a :a :ass :x)", "`left-join` has no option `:ass`", ":as"),
        ("(inner-join [{:a 1}] [{:a 1}] {:a :a} :az :x)", "`inner-join` has no option `:az`", ":as"),
        ("(defmulti f identity :defautl :x)", "`defmulti` has no option `:defautl`", ":default"),
        ("(require '[clojure.string :as s :refre [join]])", "`require` has no option `:refre`", ":refer"),
        ("(with-precision 3 :roundign UP (/ 1M 3))", "`with-precision` has no option `:roundign`", ":rounding"),
    ];
    for (program, message, nearest) in cases {
        let (code, said, suggestion) = failure(program);
        assert_eq!((code.as_str(), said.as_str()), ("UnknownOption", message), "{program}");
        assert!(suggestion.starts_with(&format!("Did you mean {nearest}?")), "{program}: {suggestion}");
    }
    let (.., suggestion) = failure("(csv/parse \"a\" {:seperator \";\"})");
    assert_eq!(suggestion, "Did you mean :separator? It takes :headers, :separator, :quote, :numbers, :trim, :key-fn");
}

#[test]
fn values_of_options_are_checked() {
    let cases = [
        ("(csv/parse \"a\" {:separator \"; \"})", "for `:separator`"),
        ("(csv/parse \"a\" {:numbers \"yes\"})", "`csv/parse` expected true or false for `:numbers`, got \"yes\""),
        ("(csv/parse \"a\" :headers 3)", "for `:headers`"),
        ("(csv/write [[1]] :newline \"x\")", "for `:newline`"),
        ("(json/write 1 :indent \"  \")", "for `:indent`"),
        ("(json/write 1 :indent -1)", "for `:indent`"),
        ("(json/parse \"1\" :keywords? false)", "for `:keywords?`"),
        ("(json/parse \"1\" :key-fn str)", "for `:key-fn`"),
        ("(read-string {:read-cond :alow} \"1\")", "expected :allow or :preserve for `:read-cond`"),
        ("(describe [1] :depth :all)", "for `:depth`"),
        ("(group-by [1] :key 5)", "expected a function for `:key`"),
        ("(base64/encode \"a\" :url 1)", "expected true or false for `:url`"),
        ("(csv/parse \"a\" {\"separator\" \";\"})", "expected a keyword as the name of an option, got \"separator\""),
    ];
    for (program, message) in cases {
        let (code, said, _) = failure(program);
        assert_eq!(code, "TypeError", "{program}: {said}");
        assert!(said.contains(message), "{program}: {said}");
    }
    for program in [
        "(csv/parse \"a\" :numbers)",
        "(csv/parse \"a\" :separator \\; :sep \\,)",
        "(atom 1 :meta)",
        "(left-join [] [] :a :b :as)",
    ] {
        assert_eq!(failure(program).0, "ArityError", "{program}");
    }
}

#[test]
fn options_are_given_as_pairs_as_a_map_or_as_both() {
    let cases = [
        ("(csv/parse \"a;b\\n1; 2\" {:separator \";\" :numbers true})", "[{:a 1, :b 2}]"),
        ("(csv/parse \"a;b\\n1; 2\" :sep \\; {:trim true})", "[{:a \"1\", :b \"2\"}]"),
        ("(csv/parse \"a,b\\n1,2\" {:header false})", "[[\"a\" \"b\"] [\"1\" \"2\"]]"),
        ("(csv/parse \"a\\n1\" nil)", "[{:a \"1\"}]"),
        ("(csv/parse \"a\\n1\" {:separator nil :key-fn nil :numbers nil})", "[{:a \"1\"}]"),
        ("(html/text \"<a href='x'>y</a>\" {:links true})", "\"y (x)\""),
        ("(describe 1 {:depth 1})", "1"),
        ("(member 2 [1 2 3] {:test <})", "(3)"),
        ("(time/format \"2024-03-05T14:00:00Z\" {:pattern \"%H:%M\" :zone \"Asia/Tokyo\"})", "\"23:00\""),
        ("(time/format \"2024-03-05T14:00:00Z\" :pattern \"%H:%M\")", "\"14:00\""),
        ("(str (time/parse \"2024-03-05\" {:pattern :date}))", "\"2024-03-05\""),
        ("(meta (atom 1 {:meta {:a 1}}))", "{:a 1}"),
        ("(edn/read-string {:eof nil} \"\")", "nil"),
        ("(json/parse \"{\\\"a\\\": 0.1}\" {:bigdec true})", "{:a 0.1M}"),
        ("(json/parse \"[1, 1e2, 0.10]\" :bigdec true)", "[1 1E+2M 0.10M]"),
        ("(json/write {:a 1} :indent 4)", "\"{\\n    \\\"a\\\": 1\\n}\""),
        ("(json/write {:a 1} :indent 0)", "\"{\\n\\\"a\\\": 1\\n}\""),
        ("(json/write {:a 1} :indent false)", "\"{\\\"a\\\":1}\""),
        ("(json/write {:a/b {:c 1}} :key-fn name)", "\"{\\\"b\\\":{\\\"c\\\":1}}\""),
        ("(json/write \"é𝄞\" :escape-unicode true)", "\"\\\"\\\\u00e9\\\\ud834\\\\udd1e\\\"\""),
        ("(json/write \"a/b\" {:escape-slash true})", "\"\\\"a\\\\/b\\\"\""),
        ("(json/write {:a 1 :b 2} :key-fn (constantly \"x\"))", ""),
        ("(remove-duplicates [1 4 2 5] :test (fn [a b] (= (mod a 3) (mod b 3))))", "(1 2)"),
        ("(remove-duplicates [1 4 2 5] :from-end false :test (fn [a b] (= (mod a 3) (mod b 3))))", "(4 5)"),
        ("(remove-duplicates [{:k 1 :v 1} {:k 1 :v 2}] :key :k :from-end false)", "({:k 1, :v 2})"),
        ("(remove-duplicates [1 3 2 4] :test <)", "(1)"),
        ("(top [{:n 1} {:n 2}] 1 :by :n)", "({:n 2})"),
        ("(top 1 :by :n [{:n 1} {:n 2}])", "({:n 2})"),
        ("(left-join [{:a 1}] [{:a 1 :b 2}] :a :as :r)", "({:a 1, :r {:a 1, :b 2}})"),
        ("(left-join [{:a 1}] [{:b 1 :c 2}] :on :a :b :as :r)", "({:a 1, :r {:b 1, :c 2}})"),
    ];
    for (program, expected) in cases {
        match expected {
            "" => assert_eq!(failure(program).0, "JsonError", "{program}"),
            expected => assert_eq!(value(program), expected, "{program}"),
        }
    }
}
