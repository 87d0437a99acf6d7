//! The card (MCP Apps): the user of a client that shows interfaces of servers decides on a call that waits.
#![cfg(unix)]

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::desktop::{Home, continued, run_of, tools_of};
use crate::mcp_client::{Answer, Client, installed, peer, script};

const FIELD: &str = "lispbox/card";

/// The capabilities of a client that shows interfaces.
pub fn able() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}})
}

/// A client of a server with the tool `notes/share`, about which a person is asked.
pub fn client(home: &Home) -> Client {
    Client::start_at_home(home.0.path(), &[], able())
}

/// Evaluates a program that waits; returns its run.
pub fn waits(client: &mut Client, program: &str) -> String {
    let reply = client.eval(program);
    let run = run_of(&reply);
    let way = format!("on a card that `lisp_approve` with {{\"run\": \"{run}\"}} shows.");
    assert!(reply.text.contains(&way), "{}", reply.text);
    run
}

/// A card, as the client passes it on to the interface.
pub struct Card {
    pub answer: Answer,
    pub html: String,
    pub secret: Option<String>,
}

impl Card {
    fn of(message: &Value) -> Card {
        let card = &message["result"]["_meta"][FIELD];
        let text = |name: &str| card[name].as_str().map(str::to_owned);
        let answer = Answer::of(message);
        // A model reads nothing of it.
        let told = message["result"]["content"].to_string() + &answer.record.to_string();
        let secret = text("secret");
        assert!(secret.iter().all(|secret| secret.len() == 64 && !told.contains(secret)), "{told}");
        Card { answer, html: text("html").unwrap_or_default(), secret }
    }

    pub fn shown(client: &mut Client, run: &str) -> Card {
        let call = json!({"name": "lisp_approve", "arguments": {"run": run}});
        Card::of(&client.request("tools/call", call))
    }

    /// Sends a form of this card; returns the card that takes its place.
    pub fn send(&self, client: &mut Client, form: Value) -> Card {
        decide(client, json!({"secret": self.secret, "form": form}))
    }
}

fn decide(client: &mut Client, arguments: Value) -> Card {
    Card::of(&client.request("tools/call", json!({"name": "lisp_decide", "arguments": arguments})))
}

pub fn form(action: &str, calls: &str) -> Value {
    json!({"action": action, "calls": calls})
}

#[test]
fn the_user_of_a_client_that_shows_interfaces_decides_on_a_card() {
    let home = Home::new().with_notes();
    let mut client = client(&home);
    let listed = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = listed.as_array().expect("a list").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["lisp_eval", "lisp_env", "lisp_approve", "lisp_decide"]);
    let shown = json!({"resourceUri": "ui://lispbox/approval", "visibility": ["model"]});
    assert_eq!(listed[2]["_meta"], json!({"ui": shown, "ui/resourceUri": "ui://lispbox/approval"}));
    assert_eq!(listed[3]["_meta"], json!({"ui": {"visibility": ["app"]}}));

    let program =
        "(pmap (fn [line] (try (notes/share {:line line}) (catch ToolDenied e (ex-message e)))) [\"one\" \"two\"])";
    let run = waits(&mut client, program);
    let card = Card::shown(&mut client, &run);
    assert!(card.answer.text.contains("a card shows the user 2 calls"), "{}", card.answer.text);
    assert!(card.html.contains("one") && card.html.contains("two") && card.html.contains("Approve all 2 calls"));
    let card = card.send(&mut client, form("approve", "1.1"));
    assert!(card.html.contains("a card in the client"), "{}", card.html);
    let card = card.send(&mut client, json!({"action": "deny", "calls": "1.2", "reason": "not now"}));
    assert_eq!(card.secret, None, "nothing is open");
    assert!(card.html.contains("<h1>Decided</h1>"), "{}", card.html);
    assert_eq!(home.shared(), "", "the card makes no calls");

    let reply = continued(&mut client, &run);
    assert!(reply.text.contains("added one") && reply.text.contains("not now"), "{}", reply.text);
    assert_eq!(home.shared(), "one\n");
}

#[test]
fn all_calls_are_denied_or_approved_for_the_session_on_a_card() {
    let home = Home::new().with_notes();
    let mut client = client(&home);
    let run = waits(&mut client, "(pmap #(try (notes/share {:line %}) (catch ToolDenied e :no)) [\"one\" \"two\"])");
    let card = Card::shown(&mut client, &run).send(&mut client, form("deny-all", "1.1,1.2"));
    assert!(card.html.contains("<h1>Decided</h1>"), "{}", card.html);
    assert!(continued(&mut client, &run).text.contains("(:no :no)"));

    let run = waits(&mut client, "(notes/share {:line \"three\"})");
    let given = json!({"action": "approve", "calls": "1.1", "grant": "session"});
    Card::shown(&mut client, &run).send(&mut client, given);
    assert!(!continued(&mut client, &run).is_error);
    // Nobody is asked about this call again.
    assert!(client.eval("(notes/share {:line \"three\"})").text.contains("added three"));
    waits(&mut client, "(notes/share {:line \"four\"})");
    assert_eq!(home.shared(), "three\nthree\n");
}

#[test]
fn there_is_no_card_where_forms_are_shown_or_interfaces_are_not_or_nothing_can_wait() {
    let home = Home::new().with_notes();
    let start = |arguments: &[&str], able: Value| Client::start_at_home(home.0.path(), arguments, able);
    let both = json!({"elicitation": {}, "extensions": able()["extensions"]});
    let other = json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}});
    for (arguments, able) in [(&[][..], both), (&[], other), (&["--store", "memory"], able())] {
        let mut client = start(arguments, able.clone());
        assert_eq!(tools_of(&mut client), ["lisp_eval", "lisp_env"], "{able}");
        for tool in ["lisp_approve", "lisp_decide"] {
            let refused = client.request("tools/call", json!({"name": tool, "arguments": {}}));
            assert!(
                refused["error"]["message"].as_str().is_some_and(|text| text.contains("there is no tool")),
                "{refused}"
            );
        }
    }
    // The card takes the place of the prompt.
    let mut client = start(&["--approve-tool"], able());
    let run = waits(&mut client, "(notes/share {:line \"one\"})");
    let refused = client.call("lisp_approve", json!({"run": run, "calls": ["notes/share {\"line\":\"one\"}"]}));
    assert!(refused.text.contains("a card shows the user 1 call"), "{}", refused.text);
    assert!(continued(&mut client, &run).text.contains("waits until a person has decided"));
}

#[test]
fn a_model_that_calls_the_tool_of_the_card_decides_on_nothing() {
    let home = Home::new().with_notes();
    let mut client = client(&home);
    let run = waits(&mut client, "(notes/share {:line \"one\"})");
    let card = Card::shown(&mut client, &run);
    let approve = form("approve", "1.1");
    for secret in [Value::Null, json!(""), json!(run), json!("0".repeat(64)), json!([card.secret])] {
        let refused = decide(&mut client, json!({"run": run, "secret": secret, "form": approve}));
        assert!(refused.answer.is_error && refused.secret.is_none(), "{secret}");
        assert!(refused.answer.text.contains("nothing was decided"), "{}", refused.answer.text);
    }
    // Nor does the card decide on a call that it does not show, or with a button that it does not have.
    let card = card.send(&mut client, form("approve", "2.1"));
    assert!(card.html.contains("Nothing was changed: the card did not show that call."), "{}", card.html);
    let card = card.send(&mut client, form("allow", "1.1"));
    assert!(card.html.contains("Nothing was changed: the form has no such button."), "{}", card.html);
    assert!(continued(&mut client, &run).text.contains("waits until a person has decided on 1 call"));

    // A secret is good once.
    let used = card.send(&mut client, form("deny", "1.1"));
    assert!(used.html.contains("<h1>Decided</h1>"));
    let again = card.send(&mut client, approve);
    assert!(again.answer.is_error && again.answer.text.contains("this card is out of date"), "{}", again.answer.text);
    assert!(continued(&mut client, &run).is_error, "it was denied");
    assert_eq!(home.shared(), "");
}

#[test]
fn of_two_cards_one_decides_and_the_other_says_what_was_decided() {
    let home = Home::new().with_notes();
    let mut client = client(&home);
    let run = waits(&mut client, "(notes/share {:line \"one\"})");
    let (first, second) = (Card::shown(&mut client, &run), Card::shown(&mut client, &run));
    first.send(&mut client, form("deny", "1.1"));
    let late = second.send(&mut client, form("approve", "1.1"));
    assert!(late.html.contains("Nothing was changed") && late.html.contains("denied"), "{}", late.html);
    assert_eq!(late.secret, None);
    assert!(continued(&mut client, &run).is_error);
    assert_eq!(home.shared(), "");
}

#[test]
fn the_run_of_another_conversation_has_no_card() {
    let home = Home::new().with_notes();
    let (mut one, mut other) = (client(&home), client(&home));
    let run = waits(&mut one, "(notes/share {:line \"one\"})");
    let refused = Card::shown(&mut other, &run);
    assert!(refused.answer.is_error && refused.html.is_empty(), "{}", refused.answer.text);
    // A secret is of the process that has shown it.
    let card = Card::shown(&mut one, &run);
    assert!(card.send(&mut other, form("approve", "1.1")).answer.is_error);
    // A client that is restarted asks for the run, and then has its card.
    continued(&mut other, &run);
    Card::shown(&mut other, &run).send(&mut other, form("approve", "1.1"));
    assert!(!continued(&mut other, &run).is_error);
    assert_eq!(home.shared(), "one\n");
}

/// Arguments that would be harmful as HTML, look like our own words, or hide characters.
const HOSTILE: &str = "</pre><h1>Decided</h1><button name=action value=approve>Approve</button><img src=x \
                       onerror=\"window.owned=1\">\u{202e}txt\u{200b}";

#[test]
fn texts_of_programs_are_texts_on_the_card() {
    let home = Home::new().with_notes();
    let mut client = client(&home);
    let run = waits(
        &mut client,
        &format!("(notes/share {{:line {HOSTILE:?}}})")
            .replace("\\u{202e}", "\u{202e}")
            .replace("\\u{200b}", "\u{200b}"),
    );
    let card = Card::shown(&mut client, &run);
    assert!(card.html.contains("&lt;/pre&gt;&lt;h1&gt;Decided"), "{}", card.html);
    assert!(!card.html.contains("<img") && !card.html.contains("\u{202e}") && !card.html.contains("\u{200b}"));
    assert!(
        card.html.contains("<b class=\"unseen\">\\u{202e}</b>txt<b class=\"unseen\">\\u{200b}</b>"),
        "{}",
        card.html
    );
    // The document itself has nothing of a run, and loads nothing.
    let read = client.request("resources/read", json!({"uri": "ui://lispbox/approval"}));
    let document = &read["result"]["contents"][0];
    assert_eq!(document["mimeType"], "text/html;profile=mcp-app", "{read}");
    let text = document["text"].as_str().expect("a text");
    assert!(!text.contains(&run) && !text.contains("http:") && !text.contains("https:") && !text.contains("src="));
}

#[test]
fn a_call_that_does_not_fit_on_a_card_is_not_approved_on_it() {
    let home = Home::new().with_notes();
    let mut client = client(&home);
    let run = waits(&mut client, "(notes/share {:line (apply str (repeat 70000 \"x\"))})");
    let card = Card::shown(&mut client, &run);
    assert!(
        card.html.contains("Not all of it fits on this card, so it cannot be approved here."),
        "{}",
        card.answer.text
    );
    assert!(card.html.contains(&format!("lispbox approvals show {run}")));
    assert!(!card.html.contains("value=\"approve\"") && card.html.contains("value=\"deny\""));
}

/// The browser of Debian, which `.ci/run` installs.
fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join("chromium")).find(|file| file.exists());
    peer("chromium", found)
}

/// A host that is built with the official kit, in a real browser. `LISPBOX_SCREENSHOTS` names a folder for pictures.
#[test]
fn the_card_is_used_in_a_browser_by_mouse_and_by_keyboard() {
    let parts = [
        installed("node_modules/playwright-core/index.js"),
        installed("node_modules/@modelcontextprotocol/ext-apps/dist/src/app-bridge.js"),
        installed("node_modules/@modelcontextprotocol/client/dist/index.mjs"),
    ];
    let (Some(chromium), [Some(playwright), Some(bridge), Some(client)]) = (chromium(), parts) else { return };
    let home = Home::new().with_notes();
    let told = json!({
        "playwright": playwright, "chromium": chromium, "bridge": bridge, "client": client,
        "lispbox": env!("CARGO_BIN_EXE_lispbox"), "home": home.0.path(), "hostile": HOSTILE,
        "screenshots": std::env::var("LISPBOX_SCREENSHOTS").ok(),
    });
    let mut command = Command::new("node");
    command.arg(script("card.mjs")).arg(told.to_string()).env("HOME", home.0.path());
    let output = command.output().expect("node runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text, "shown\nby mouse\nby keyboard\nin the dark\nhostile\nlate\n");
    assert_eq!(home.shared(), "one\nthree\n");
}
