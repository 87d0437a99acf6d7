//! Notes on silent mistakes: what gets one, and what does not.

use crate::common;

use common::Scripted;
use common::literate::{cases, documents};
use lispbox::lang::{Request, Session, ToolError, ToolErrorKind, ToolReply};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// Three records, as a tool returns them.
const MAIL: &str = r#"[{"id": "5", "sender": "ann", "subject": "a", "open": true, "thread_id": 1, "sizes": [1]},
    {"id": "6", "sender": "bob", "subject": "b", "open": false, "thread_id": 2, "sizes": [2]},
    {"id": "7", "sender": "eve", "subject": "c", "open": true, "thread_id": 3, "sizes": []}]"#;

fn run(session: &mut Session, program: &str) -> Vec<String> {
    let request = Request { data: Some(MAIL.to_string()), ..Request::new(program) };
    let reply = session.eval(request, common::host());
    assert!(reply.failure.is_none(), "{program}: {:?}", reply.failure);
    reply.notes
}

fn notes(program: &str) -> Vec<String> {
    run(&mut common::session(), program)
}

/// Asserts that each program gets exactly this note.
fn assert_note(note: &str, programs: &[&str]) {
    let got: Vec<_> = programs.iter().map(|program| (program, notes(program))).collect();
    let wrong: Vec<_> = got.iter().filter(|(_, notes)| *notes != [note]).collect();
    assert!(wrong.is_empty(), "expected {note}, got {wrong:#?}");
}

fn assert_none(programs: &[&str]) {
    let got: Vec<_> = programs.iter().map(|program| (program, notes(program))).collect();
    let wrong: Vec<_> = got.iter().filter(|(_, notes)| !notes.is_empty()).collect();
    assert!(wrong.is_empty(), "expected no notes: {wrong:#?}");
}

#[test]
fn text_that_a_page_hides_is_noted() {
    assert_note(
        "html/text left out 7 characters that the page does not display; `:hidden true` keeps them",
        &["(html/text \"<p hidden>Preview</p>x\")", "(html/text \"<i style='display: none'>Pre view</i>x\")"],
    );
    assert_none(&["(html/text \"<p hidden> </p>x\")", "(html/text \"<p hidden>Preview</p>x\" :hidden true)"]);
}

#[test]
fn a_key_that_no_record_has_is_noted() {
    assert_note(
        ":sendr is in none of 3 records; did you mean :sender?",
        &[
            "(map :sendr data)",
            "(mapv :sendr data)",
            "(for [m data] (:sendr m))",
            "(map #(get % :sendr) data)",
            "(map (fn [{:keys [sendr]}] sendr) data)",
            "(map #(select-keys % [:id :sendr]) data)",
            "(map (fn [{s :sendr}] s) data)",
            "(map (fn [m] (let [{:keys [sendr id]} m] [id sendr])) data)",
            "(map #(get-in % [:sendr]) data)",
            "(map #(-> % :sendr) data)",
            "(->> data (map :sendr) (remove nil?))",
            "(filter :sendr data)",
            "(sort-by :sendr data)",
            "(group-by :sendr data)",
            "(frequencies (map :sendr data))",
            "(keep :sendr data)",
            "(into [] (map :sendr) data)",
            "(map (juxt :id :sendr) data)",
            "(map (comp count :sendr) data)",
            "(map #(% :sendr) data)",
            "(reduce (fn [all m] (conj all (:sendr m))) [] data)",
            "(doseq [m data] (println (:sendr m)))",
            "(pmap :sendr data)",
            "(index-by :sendr data)",
            "(map #(:sendr (into {} %)) data)",
            "(map (fn [{:keys [id] {:keys [x]} :sendr}] [id x]) data)",
            "(map #(when-let [s (:sendr %)] s) data)",
            "(map #(cond-> % (:sendr %) (assoc :x 1)) data)",
            "(pmap (fn [m] (:sendr m)) data)",
            "(let [k :sendr] (map k data))",
            "(->> data (filter #(nil? (:sendr %))) count)",
            "(some #(= (:sendr %) \"ann\") data)",
            "(map #(or (:sendr %) \"nobody\") data)",
            "(defn f [m] (:sendr m)) (map f data)",
            "(map (fn [m] {:from (:sendr m) :title (:subject m)}) data)",
            "(loop [[m & more] data n 0] (if m (recur more (if (:sendr m) (inc n) n)) n))",
        ],
    );
    assert_note(":opn is in none of 3 records; did you mean :open?", &["(filter :opn data)", "(remove :opn data)"]);
    assert_note(":size is in none of 3 records; did you mean :sizes?", &["(map :size data)"]);
    assert_note(
        ":sendr is not in the record; did you mean :sender?",
        &[
            "(:sendr (first data))",
            "(get (first data) :sendr)",
            "(let [{:keys [sendr]} (first data)] sendr)",
            "(get-in data [0 :sendr])",
            "(-> data first :sendr)",
            "(:sendr {:sender \"ann\"})",
            "(some-> data last :sendr str)",
        ],
    );
    assert_note(
        ":userName is in none of 2 records; did you mean :user-name?",
        &["(map :userName [{:user-name 1} {:user-name 2}])"],
    );
    assert_note(
        ":titel is in none of 2 records; did you mean :title?",
        &["(map :titel [{:title 1} {:title 2}])", "(map #(:titel %) [{:title 1} {:title 2 :id 3}])"],
    );
}

#[test]
fn a_key_that_is_optional_or_another_field_is_not() {
    assert_none(&[
        // Found in a record, before or after the others, in the same place or another.
        "(map :sendr [{:sender 1} {:sendr 2}])",
        "(map :sendr [{:sendr 1} {:sender 2} {:sender 2}])",
        "(map #(:sendr %) [{:sender 1} {:sendr 2}])",
        "(map #(:sendr %) [{:sendr 1} {:sender 2} {:sender 2}])",
        "(map #(get % :sendr) [{:sendr 1} {:sender 2} {:sender 2}])",
        "(map #(get % :sendr) [{:sender 1} {:sender 2} {:sendr nil}])",
        "[(:sendr {:sender 1}) (:sendr {:sendr 1})]",
        "[(:sendr {:sendr 1}) (get {:sender 1} :sendr)]",
        "(let [f (fn [m] (:sendr m))] [(f {:x 1 :sendr 1}) (f {:sender 1})])",
        "(filter #(contains? % :sendr) [{:sendr 1}]) (:sendr {:sender 2})",
        "(map #(select-keys % [:sendr]) [{:sendr 1}]) (:sendr {:sender 2})",
        // With a default.
        "(map #(:sendr % \"nobody\") data)",
        "(map #(get % :sendr \"nobody\") data)",
        "(map #(get % :sendr nil) data)",
        "(map #(get-in % [:sendr] 0) data)",
        "(map (fn [{:keys [sendr] :or {sendr 1}}] sendr) data)",
        // Another field, which is used as well.
        "(map #(or (:size %) (first (:sizes %))) data)",
        "(map (fn [{:keys [size sizes]}] [size sizes]) data)",
        "(map #(if (:email %) (:email %) (:emails %)) [{:emails [1]} {:emails [2]}])",
        "(map #(vector (:emails %) (:email %)) [{:emails [1]} {}])",
        "(map (juxt :id :ids) [{:id 1} {:id 2}])",
        "(map (juxt :x :y) [{:x 1} {:x 2}])",
        "(map :y [{:x 1} {:x 2}])",
        "(map :cc [{:bcc 1}])",
        "(map :updated-by [{:updated-at 1}])",
        "(map :line2 [{:line1 1}])",
        "(map :max-size [{:min-size 1}])",
        // Nothing similar, or in few records.
        "(map :priority data)",
        "(map :sendr [{:sender 1} {:a 1} {:b 1} {:c 1}])",
        // Keys that are data.
        "(let [counts {:apple 1}] (map #(get counts (keyword %)) [\"appl\" \"aple\"]))",
        "(reduce (fn [all k] (update all k (fnil inc 0))) {:apple 1} [:apples])",
        "(reduce (fn [all k] (assoc all k (inc (get all k 0)))) {} [:apple :apples])",
        // Another spelling of a field of a tool's result.
        "(map :threadId data)",
        "(map :thread-id data)",
        // No records.
        "(map :sendr [])",
        "(:sendr nil)",
        "(:sendr {})",
        "(:sendr {1 2 :sender 3})",
    ]);
}

#[test]
fn a_record_may_have_many_keys() {
    let fields: String = (0..50).map(|n| format!(":{}{} {n} ", "abcdefghij".as_bytes()[n % 10] as char, n)).collect();
    let wide = format!("(def ms [{{{fields} :sender 1}} {{{fields} :sender 2}}])");
    let note = ":sendr is in none of 2 records; did you mean :sender?";
    for look_up in ["(map :sendr ms)", "(map #(:sendr %) ms)", "(map #(get % :sendr) ms)"] {
        assert_eq!(notes(&format!("{wide} {look_up}")), [note], "{look_up}");
        assert_eq!(notes(&format!("{wide} {look_up} (map :sender ms)")), [""; 0], "{look_up}");
        assert_eq!(notes(&format!("{wide} {look_up} (:sendr (assoc (first ms) :sendr 1))")), [""; 0], "{look_up}");
    }
}

#[test]
fn functions_of_earlier_programs_are_included() {
    let note = ":sendr is in none of 3 records; did you mean :sender?";
    let mut session = common::session();
    assert_eq!(
        run(&mut session, "(defn f [m] (:sendr m)) (defn g [m] (get m :sendr)) (defn h [m] (:sender m))"),
        [""; 0]
    );
    assert_eq!(run(&mut session, "(map f data)"), [note]);
    assert_eq!(run(&mut session, "(map f data)"), [note]);
    assert_eq!(run(&mut session, "(map g data)"), [note]);
    assert_eq!(run(&mut session, "(map (juxt f h) data)"), [""; 0]);
    assert_eq!(run(&mut session, "(f {:sendr 1})"), [""; 0]);
    assert_eq!(run(&mut session, "(f {:sendr 1}) (map f data)"), [""; 0]);
}

#[test]
fn a_keyword_looked_up_in_a_text_is_noted() {
    assert_note(
        ":id was looked up in a text, in which it is never found: a text has no keys; (json/parse s) reads JSON in one",
        &[
            "(:id \"[{'id': 1}]\")",
            "(get \"text\" :id)",
            "(map :id \"text\")",
            "(mapv :id [\"a\" \"b\"])",
            "(map #(:id %) [\"a\"])",
            "(sort-by :id [\"a\" \"b\"])",
            "(let [{:keys [id]} \"text\"] id)",
            "(get-in {:rows \"text\"} [:rows :id])",
            "(-> \"text\" :id)",
            "((juxt :id count) \"text\")",
            "(def rows \"text\") (defn ids [rows] (map :id rows)) (ids rows)",
        ],
    );
    assert_none(&[
        "(:id \"text\" 1)",
        "(get \"text\" :id nil)",
        "(get \"text\" 0)",
        "(map :id [{:id 1}])",
        "(:id nil)",
    ]);
}

#[test]
fn a_keyword_mapped_over_a_map_is_noted() {
    assert_note(
        ":a was looked up in each entry of a map; entries are pairs [key value], in which it is never found: use (:a m) \
         for the value of the key, or (vals m) for the values of the map",
        &[
            "(map :a {:a 1})",
            "(mapv :a {:a 1 :b 2})",
            "(->> {:a 1} (map :a))",
            "(filter :a {:x {:a 1}})",
            "(remove :a {:x {:a 1}})",
            "(sort-by :a {:x {:a 1}})",
            "(group-by :a {:x {:a 1}})",
            "(keep :a {:x {:a 1}})",
            "(some :a {:x {:a 1}})",
            "(every? :a {:x {:a 1}})",
            "(mapcat :a {:x {:a [1]}})",
            "(let [m {:a 1}] (doall (map :a m)))",
            "(frequencies (map :a (zipmap [:a] [1])))",
        ],
    );
    assert_none(&[
        "(map :a [{:a 1}])",
        "(map :a (vals {:x {:a 1}}))",
        "(map :a {})",
        "(update-vals {:x {:a 1}} :a)",
        "(map key {:a 1})",
        "(map (comp :a val) {:x {:a 1}})",
        "(sort-by val {:a 1})",
        "(map {:a 1} [:a])",
        "(map :a #{{:a 1}})",
    ]);
}

#[test]
fn a_number_compared_with_its_text_is_noted() {
    assert_note(
        "the number 5 was compared with the text \"5\", and the two are never equal: (parse-long s) converts a text to a \
         number, (str n) a number to a text",
        &[
            "(filter #(= (:id %) 5) data)",
            "(filter #(= 5 (:id %)) data)",
            "(remove #(= (:id %) 5) data)",
            "(first (filter (fn [m] (= (:id m) 5)) data))",
            "(filter (comp (partial = 5) :id) data)",
            "(some #(= 5 (:id %)) data)",
            "(filter #(not= (:id %) 5) data)",
            "(let [n 5] (count (filter #(= n (:id %)) data)))",
            "(for [m data :when (= (:id m) 5)] m)",
            "(if (= (:id (first data)) 5) 1 2)",
            "(sort-by #(= (:id %) 5) data)",
        ],
    );
    assert_none(&[
        "(filter #(= (:id %) \"5\") data)",
        "(filter #(= (parse-long (:id %)) 5) data)",
        "(filter #(= (:id %) 50) data)",
        "(filter #(= (:subject %) 5) data)",
        "(= 1 \"1\")",
        "(= \"1\" 1)",
        "(map #(= % 5) [\"05\" \"5.0\" \"+5\" \" 5\" \"five\" \"\"])",
        "(distinct [1 \"1\"])",
        "(get {\"5\" 1} 5)",
    ]);
}

/// A tool that names the values of its arguments in words only, and finds nothing for others.
fn tickets() -> Arc<Scripted> {
    let schema = json!({"type": "object", "properties": {
        "status": {"type": "string", "description": "Only tickets in this status: one of open, pending, closed."},
        "sort": {"type": "string", "description": "asc|desc"},
        "size": {"type": "integer", "description": "Page size, one of 10, 25, 50"},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags: \"vip\" or \"docs\"."},
        "owner": {"type": "string", "description": "The owner, such as \"ann\" or \"bob\""},
        "kind": {"type": "string", "enum": ["a", "b"], "description": "One of a, b"},
        "text": {"type": "string", "description": "Words of the text"}
    }});
    let script = |arguments: &Value| match arguments["text"].as_str() {
        Some("fail") => {
            ToolReply::Error(ToolError { kind: ToolErrorKind::Failed, message: "it fails".into(), suggestion: None })
        }
        _ => ToolReply::Json("[]".into()),
    };
    Arc::new(Scripted::new().tool("t/list", schema, script))
}

fn notes_on_calls(program: &str) -> Vec<String> {
    let reply = common::session().eval(Request::new(program), tickets());
    assert!(reply.failure.is_none(), "{program}: {:?}", reply.failure);
    reply.notes
}

#[test]
fn an_argument_whose_value_its_description_does_not_name_is_noted() {
    let status = |value: &str, meant: &str| {
        format!(
            ":status of t/list is {value:?}, but its description names only \"open\", \"pending\", \"closed\"{meant}"
        )
    };
    let case = status("Open", "; did you mean \"open\"?");
    for (program, note) in [
        ("(t/list {:status \"Open\"})", case.clone()),
        ("(t/list :status \"Open\")", case.clone()),
        ("(t/list \"Open\")", case.clone()),
        ("(count (mapcat (fn [s] (t/list {:status s})) [\"open\" \"Open\" \"Open\"]))", case.clone()),
        ("(pmap (fn [s] (t/list {:status s})) [\"open\" \"Open\"])", case.clone()),
        ("(defn find [s] (t/list {:status s :text \"x\"})) (find \"Open\")", case),
        ("(t/list {:status :solved})", status("solved", "")),
        ("(t/list {:status \"pendign\"})", status("pendign", "; did you mean \"pending\"?")),
        (
            "(t/list {:sort \"descending\"})",
            ":sort of t/list is \"descending\", but its description names only \"asc\", \"desc\"".to_owned(),
        ),
        (
            "(t/list {:size 20})",
            ":size of t/list is \"20\", but its description names only \"10\", \"25\", \"50\"".to_owned(),
        ),
        (
            "(t/list {:tags [\"vip\" \"doc\"]})",
            ":tags of t/list is \"doc\", but its description names only \"vip\", \"docs\"; did you mean \"docs\"?"
                .to_owned(),
        ),
    ] {
        assert_eq!(notes_on_calls(program), [note], "{program}");
    }
    let many = "(doseq [s [\"a\" \"b\" \"c\" \"d\" \"e\"]] (t/list {:status s}))";
    assert_eq!(notes_on_calls(many).len(), 3);
}

#[test]
fn named_values_and_open_descriptions_get_no_note() {
    for program in [
        "(t/list {:status \"open\"})",
        "(t/list {:status nil})",
        "(t/list {:sort \"asc\" :size 25 :tags [\"docs\" \"vip\"]})",
        "(t/list {:size \"25\" :tags []})",
        "(t/list {:owner \"eve\"})",
        // What may be several values, or an example of values.
        "(t/list {:status \"open,closed\" :sort \"-asc\" :tags [\"new\"]})",
        "(t/list {:kind \"a\" :text \"one of open, closed\"})",
        "(t/list)",
        // The error says what is wrong.
        "(try (t/list {:status \"Open\" :text \"fail\"}) (catch Exception e 1))",
    ] {
        assert_eq!(notes_on_calls(program), [""; 0], "{program}");
    }
}

#[test]
fn notes_are_few_and_in_the_text_of_a_reply() {
    let program = "(map (juxt :sendr :subjet :opn :sizs) data)";
    assert_eq!(notes(program).len(), 3);
    let reply = common::session()
        .eval(Request { data: Some(MAIL.to_string()), ..Request::new("(count (map :sendr data))") }, common::host());
    assert_eq!(reply.text(4_000), "3\n[note: :sendr is in none of 3 records; did you mean :sender?]");
    // A program that fails has an error to attend to.
    let failed = common::eval("(map :sendr [{:sender 1}]) (inc nil)");
    assert!(failed.failure.is_some() && failed.notes.is_empty());
}

#[test]
fn notes_cost_no_fuel() {
    let fuel = |program: &str| common::eval(program).spent.fuel;
    assert_eq!(
        fuel("(map #(:sendr %) [{:sender 1} {:sender 2}])"),
        fuel("(map #(:sendx %) [{:sendxx 1} {:zzzzzz 2}])")
    );
}

#[test]
fn what_is_remembered_is_bounded() {
    // More keys than are remembered: no note, and no error.
    let keys: String = (0..500).map(|n| format!(":key{n} ")).collect();
    let program = format!("(def m {{:a 1}}) (doseq [k [{keys}]] (k m) (k {{k 1}})) (map :sendr data)");
    assert_eq!(notes(&program), [""; 0]);
    let program = format!("(def m {{:sender 1}}) (doseq [k [{keys}]] (k m)) (map :sendr data)");
    assert_eq!(notes(&program), [""; 0]);
}

#[test]
fn keywords_made_at_run_time_are_seen() {
    let program = "(dotimes [n 1000] (get {:sendr 1} (keyword \"sendr\"))) (map :sendr data)";
    assert_eq!(notes(program), [""; 0]);
    let program = "(dotimes [n 1000] (get {:id 1} (keyword \"id\"))) (map :sendr data)";
    assert_eq!(notes(program), [":sendr is in none of 3 records; did you mean :sender?"]);
}

#[test]
fn no_right_program_gets_a_note() {
    let mut wrong = String::new();
    let mut count = 0;
    for case in ["tests/clojure", "tests/spec"].iter().flat_map(|directory| cases(directory)) {
        count += 1;
        let mut notes = common::eval(&case.program).notes;
        // Such a note is about the page, not about the program.
        notes.retain(|note| !note.starts_with("html/text left out"));
        // These show that nothing is found in a text, which is what the note says.
        let is_about_texts =
            ["(let [{:keys [a]} \"str\"] a)", "(:a \"text\")", "(:a \"abc\")"].contains(&case.program.trim());
        notes.retain(|note| !(is_about_texts && note.contains(" was looked up in a text, ")));
        if !notes.is_empty() {
            let _ = writeln!(wrong, "{}: {}\n  {notes:?}", case.place, case.program);
        }
    }
    assert!(count > 6_500 && documents("tests/pipelines").len() > 5, "{count}");
    assert!(wrong.is_empty(), "{wrong}");
}
