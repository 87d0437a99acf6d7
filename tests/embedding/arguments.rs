//! Errors of arguments name the argument, in the words of the server.

use crate::common::engine;
use lispbox::lang::{Call, Failure, Limits, NoArguments, Tools, World};
use serde::Deserialize;

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the reading matters")]
struct Mail {
    to: String,
    subject: Option<String>,
    #[serde(default)]
    options: Options,
}

#[derive(Default, Deserialize)]
#[serde(default)]
#[allow(dead_code, reason = "only the reading matters")]
struct Options {
    urgent: bool,
    copies: Vec<Copy>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the reading matters")]
struct Copy {
    to: String,
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Open,
    Blind,
}

fn refused(program: &str) -> (String, Option<String>) {
    let mut tools = Tools::new();
    tools.tool("mail/send", |_: Mail, _: &Call| Ok("sent"));
    tools.tool("mail/unread", |_: NoArguments, _: &Call| Ok(3));
    let outcome = engine().session().run(program).eval::<String>(&World::new(tools)).expect("it succeeds");
    let Failure { error, message, suggestion, .. } = *outcome.into_result().expect_err("it is refused");
    assert_eq!(error, "ToolArgumentError", "{message}");
    (message, suggestion)
}

fn message(program: &str) -> String {
    refused(program).0
}

#[test]
fn a_misspelt_argument_is_named_with_the_one_that_was_meant() {
    assert_eq!(
        refused("(mail/send {:to \"ann\" :subjct \"hi\"})"),
        (
            "`mail/send` has no argument `subjct`; it takes `to`, `subject`, `options`".to_owned(),
            Some("Did you mean subject?".to_owned())
        )
    );
}

#[test]
fn an_extra_argument_is_refused() {
    assert_eq!(
        refused("(mail/send {:to \"ann\" :colour \"red\"})"),
        ("`mail/send` has no argument `colour`; it takes `to`, `subject`, `options`".to_owned(), None)
    );
    assert_eq!(message("(mail/unread {:since 1})"), "`mail/unread` has no argument `since`; it takes none");
    // Fields of arguments too.
    assert_eq!(
        message("(mail/send {:to \"ann\" :options {:urgnt true}})"),
        "argument `options` of `mail/send`: there is no field `urgnt` among `urgent`, `copies`"
    );
}

#[test]
fn a_missing_argument_is_named() {
    assert_eq!(message("(mail/send {:subject \"hi\"})"), "`mail/send` needs the argument `to`");
    assert_eq!(
        message("(mail/send {:to \"ann\" :options {:copies [{:kind \"open\"}]}})"),
        "`mail/send` needs the argument `to` in `options.copies[0]`"
    );
}

#[test]
fn a_wrong_argument_is_named_with_its_place() {
    assert_eq!(message("(mail/send {:to 7})"), "argument `to` of `mail/send`: expected a string, got 7 (an integer)");
    assert_eq!(
        message("(mail/send {:to \"ann\" :options {:copies [{:to \"bob\" :kind \"blnd\"}]}})"),
        "argument `options.copies[0].kind` of `mail/send`: unknown variant `blnd`, expected `open` or `blind`"
    );
}

#[test]
fn nobody_is_asked_about_a_call_whose_arguments_do_not_fit() {
    let asked = std::sync::Mutex::new(Vec::new());
    let decide = |question: &lispbox::lang::Question| {
        asked.lock().expect("no test panics here").push(question.arguments.clone());
        lispbox::lang::Decision::Approved
    };
    let mut tools = Tools::new();
    tools.tool("mail/send", |_: Mail, _: &Call| Ok("sent")).needs_approval();
    let world = World::new(tools).on_question(decide);
    let mut session = engine().session();
    for program in ["(mail/send {:to 7})", "(mail/send {:too \"ann\"})", "(mail/send {:to \"ann\"})"] {
        let _ = session.run(program).eval::<String>(&world).expect("input");
    }
    assert_eq!(*asked.lock().expect("no test panics here"), [r#"{"to":"ann"}"#]);
}

#[test]
fn arguments_are_read_into_the_memory_that_is_left() {
    let largest = std::sync::Mutex::new(0);
    let mut tools = Tools::new();
    tools.tool("t/take", |arguments: serde_json::Value, _: &Call| {
        let rows = arguments["rows"].as_array().map_or(0, Vec::len);
        *largest.lock().expect("no test panics here") = rows;
        Ok(rows)
    });
    tools.tool("t/asked", |_: serde_json::Value, _: &Call| Ok(0)).needs_approval();
    let world = World::new(tools);
    let limits = Limits { memory: 4 << 20, ..Limits::default() };
    let mut session = engine().session();
    // A number takes 16 bytes in a program, which shares its rows, two as text, and 32 as JSON in Rust.
    let mut rows = |tool: &str, rows: u32| {
        let program = format!("(t/{tool} {{:rows (vec (repeat {rows} (vec (repeat 1000 1))))}})");
        session.run(program).limits(limits.clone()).eval::<u32>(&world).expect("input").into_result()
    };
    assert_eq!(rows("take", 20).expect("there is room"), 20);
    for tool in ["take", "asked"] {
        let message = rows(tool, 300).expect_err("there is no room").to_string();
        assert!(message.starts_with(&format!("ToolArgumentError: the arguments of `t/{tool}` take more than the ")));
        assert!(message.ends_with(" of memory that are left"), "{message}");
    }
    assert_eq!(*largest.lock().expect("no test panics here"), 20);
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(dead_code, reason = "only the reading matters")]
enum Trip {
    Train { seats: u8, class: Option<u8>, notes: Option<Id> },
    Bus(Options),
    Foot,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the reading matters")]
struct Id(Vec<u8>);

#[test]
fn an_enum_with_its_tag_inside_takes_the_arguments_of_its_variant_alone() {
    let mut tools = Tools::new();
    tools.tool("trip/book", |_: Trip, _: &Call| Ok("booked"));
    tools.tool("trip/ask", |_: Trip, _: &Call| Ok("booked")).needs_approval();
    let world = World::new(tools);
    let booked = |program: &str| {
        let outcome = engine().session().run(program).eval::<String>(&world).expect("input");
        outcome.into_result().map_err(|failure| failure.to_string())
    };
    for program in [
        "(trip/book {:kind \"train\" :seats 2})",
        "(trip/book {:seats 2 :class 1 :kind :train :notes [1 2]})",
        "(trip/book :kind :train :seats 2 :notes nil)",
        "(trip/book {:kind \"bus\" :urgent true :copies []})",
        "(trip/book {:kind \"bus\"})",
        "(trip/book {:kind \"foot\"})",
    ] {
        assert_eq!(booked(program).as_deref(), Ok("booked"), "{program}");
    }
    for (arguments, unknown) in [
        ("{:kind \"train\" :seats 2 :clas 1}", "clas"),
        ("{:kind \"train\" :seats 2 :urgent true}", "urgent"),
        ("{:kind \"bus\" :urgnt true}", "urgnt"),
        ("{:kind \"foot\" :seats 2}", "seats"),
    ] {
        for tool in ["book", "ask"] {
            let message = booked(&format!("(trip/{tool} {arguments})")).expect_err("it is refused");
            let expected = format!(
                "ToolArgumentError: `trip/{tool}` has no argument `{unknown}` beside the others that it was given"
            );
            assert_eq!(message, expected);
        }
    }
}
