//! Tests of one's own tools: a scripted model plays the programs that a model would write, and the test checks what the
//! tools were asked to do.
//!
//! ```sh
//! cargo test --no-default-features --example tested_tools
//! cargo run --no-default-features --example tested_tools     # prints the conversation
//! ```

use std::sync::Mutex;

use lispbox::lang::{Call, CallReport, Engine, Metered, ToolError, Tools, World};
use serde::{Deserialize, Serialize};

#[global_allocator]
static ALLOCATOR: Metered<std::alloc::System> = Metered::new(std::alloc::System);

/// The application under test: a mailbox.
#[derive(Default)]
struct Mailbox {
    mails: Vec<Mail>,
    sent: Mutex<Vec<Send>>,
}

#[derive(Clone, Serialize)]
struct Mail {
    from: String,
    subject: String,
}

#[derive(Deserialize)]
struct Search {
    text: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Send {
    to: String,
    subject: String,
}

impl Mailbox {
    fn tools(&self) -> Tools<'_> {
        let mut tools = Tools::new();
        let search = |search: Search, _: &Call| -> Result<Vec<Mail>, ToolError> {
            Ok(self.mails.iter().filter(|mail| mail.subject.contains(&search.text)).cloned().collect())
        };
        tools.tool("mail/search", search).doc("Mails with a text in their subject.").read_only();
        let send = |send: Send, _: &Call| {
            if !send.to.contains('@') {
                return Err(ToolError::failed(format!("{} is no address", send.to)));
            }
            self.sent.lock().expect("no test panics here").push(send);
            Ok("sent")
        };
        tools.tool("mail/send", send).doc("Sends a mail.").writes();
        tools
    }
}

/// The loop of an assistant: the model sees the text of each reply, and answers with the next program or ends.
fn converse(mailbox: &Mailbox, model: &mut dyn FnMut(&str) -> Option<&'static str>) -> Vec<CallReport> {
    let world = World::new(mailbox.tools());
    let mut session = Engine::builder().build().expect("the allocator is installed").session();
    let (mut calls, mut seen) = (Vec::new(), String::new());
    while let Some(program) = model(&seen) {
        seen = session.run(program).reply(&world).expect("there is no input").text(10_000);
        println!("{program}\n=> {seen}\n");
        calls.extend_from_slice(&session.report().calls);
    }
    calls
}

/// A model that plays these programs, whatever it sees.
fn scripted<const N: usize>(programs: [&'static str; N]) -> impl FnMut(&str) -> Option<&'static str> {
    let mut programs = programs.into_iter();
    move |_| programs.next()
}

fn invoices() -> Mailbox {
    let mails = [("ann@example.org", "Invoice 7"), ("bob", "Invoice 8"), ("eve@example.org", "Lunch?")];
    let mails = mails.map(|(from, subject)| Mail { from: from.into(), subject: subject.into() });
    Mailbox { mails: mails.into(), ..Mailbox::default() }
}

const THANKS: &str = r#"(for [{:keys [from subject]} (mail/search "Invoice")]
  (try (mail/send {:to from :subject (str "Re: " subject)}) :sent
    (catch Exception e (ex-message e))))"#;

fn main() {
    converse(&invoices(), &mut scripted(["(dir 'mail)", THANKS]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invoice_is_answered_once_and_a_bad_address_is_an_error() {
        let mailbox = invoices();
        let calls = converse(&mailbox, &mut scripted([THANKS]));
        let made: Vec<_> = calls.iter().map(|call| (&*call.tool, call.outcome)).collect();
        assert_eq!(made, [("search", "ok"), ("send", "ok"), ("send", "ToolError")]);
        let sent = Send { to: "ann@example.org".into(), subject: "Re: Invoice 7".into() };
        assert_eq!(*mailbox.sent.lock().expect("no test panics here"), [sent]);
    }

    #[test]
    fn the_model_reads_what_was_wrong_with_its_arguments() {
        let mut steps = 0;
        let mut model = |seen: &str| {
            steps += 1;
            match steps {
                1 => Some("(mail/send {:to \"ann@example.org\" :topic \"Hi\"})"),
                _ => {
                    assert!(seen.contains("has no argument `topic`"), "{seen}");
                    None
                }
            }
        };
        assert!(converse(&invoices(), &mut model).iter().all(|call| call.outcome == "ToolArgumentError"));
    }
}
