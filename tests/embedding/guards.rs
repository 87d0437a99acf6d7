//! The origins of values, by which guards decide, belong to a session.

use crate::common::engine;
use lispbox::lang::{Call, Limits, NoArguments, Request, Session, Tools};
use lispbox::server::{CancellationToken, Configuration, Connections, NoApprover, SessionOrigins};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
struct Mail {
    to: String,
}

fn tools() -> Tools<'static> {
    let mut tools = Tools::new();
    tools.tool("contacts/list", |_: NoArguments, _: &Call| Ok(["ann@example.org"])).read_only();
    tools.tool("mail/send", |mail: Mail, _: &Call| Ok(format!("sent to {}", mail.to))).writes();
    tools
}

const POLICY: &str = r#"{
    "mcpServers": {},
    "policy": {
        "allow": ["mail/send"],
        "trusted": ["contacts/*", "mail/send"],
        "guards": [{"tool": "mail/send", "argument": "to", "from": ["contacts/*"], "otherwise": "deny"}]
    }
}"#;

fn text(connections: &Connections, session: &mut Session, origins: &SessionOrigins, program: &str) -> String {
    let limits = Limits::default();
    let nobody = Arc::new(NoApprover("nobody is there".to_owned()));
    let host = connections.host_asking(CancellationToken::new(), &limits, program, origins, nobody);
    session.eval(Request::new(program), host).text(10_000)
}

#[test]
fn an_address_that_one_session_was_given_is_not_accepted_from_another() {
    let mut configuration = Configuration::parse(POLICY, "policy.json", &|_: &str| None).expect("it is valid");
    configuration.add_tools(tools()).expect("the names are free");
    let connections = Connections::open(configuration).expect("there are threads");
    let (mut ann, mut bob) = (engine().session(), engine().session());
    let (of_ann, of_bob) = (SessionOrigins::default(), SessionOrigins::default());
    let send = "(mail/send {:to \"ann@example.org\"})";
    assert!(text(&connections, &mut ann, &of_ann, "(contacts/list)").starts_with("[\"ann@example.org\"]"));
    let refused = text(&connections, &mut bob, &of_bob, send);
    assert!(refused.starts_with("ToolDenied: ") && refused.contains("did not come from contacts/*"), "{refused}");
    assert!(text(&connections, &mut ann, &of_ann, send).starts_with("\"sent to ann@example.org\""));
    // Without the origins of a session, nothing is known.
    let host = connections.host(CancellationToken::new(), &Limits::default());
    let refused = ann.eval(Request::new(send), host).text(10_000);
    assert!(refused.starts_with("ToolDenied: "), "{refused}");
}
