//! The shapes of configuration files, right and wrong.

use super::*;

fn parse(text: &str) -> Result<Configuration, String> {
    let variable = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
    Configuration::parse(text, "servers.json", &variable).map_err(|error| error.to_string())
}

#[test]
fn a_file_of_claude_desktop() {
    let configuration = parse(
        r#"{
          // a comment
          "globalShortcut": "",
          "mcpServers": {
            "mail": {"command": "npx", "args": ["-y", "mail"], "env": {"KEY": "${TOKEN}", "PORT": 80}, "alwaysAllow": []},
            "off": {"command": "x", "disabled": true},
            "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
                    "description": "search\nthe web", "timeout_seconds": 2.5},
          },
        }"#,
    )
    .expect("a valid file");
    let names: Vec<&str> = configuration.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["mail", "web"]);
    assert_eq!(
        configuration.servers[0].endpoint,
        Ok(Endpoint::Process {
            command: "npx".into(),
            arguments: vec!["-y".into(), "mail".into()],
            environment: BTreeMap::from([("KEY".into(), "secret".into()), ("PORT".into(), "80".into())]),
            folder: None,
        })
    );
    assert_eq!(configuration.servers[1].description, "search the web");
    assert_eq!(configuration.servers[1].timeout, Some(Duration::from_millis(2500)));
    assert_eq!(
        configuration.servers[1].endpoint,
        Ok(Endpoint::Http {
            url: "https://example.org/mcp".into(),
            headers: BTreeMap::from([("Authorization".into(), "Bearer secret".into())]),
        })
    );
}

#[test]
fn wrong_shapes_are_named() {
    let cases = [
        ("[]", "servers.json: expected an object with `mcpServers`, got an array of 0"),
        ("{\"servers\": {}}", "servers.json: expected the key `mcpServers`, got `servers`"),
        ("{\"mcpServers\": 5}", "servers.json: `mcpServers`: expected an object of servers, got the number `5`"),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"b\", {}]}}}",
            "servers.json: `mcpServers.a.args[1]`: expected text, got an object of 0",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": \"b\"}}}",
            "servers.json: `mcpServers.a.args`: expected an array of texts, got the text \"b\"",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"type\": \"ws\", \"url\": \"x\"}}}",
            "servers.json: `mcpServers.a.type`: expected `stdio`, `http` or `streamable-http`, got `ws`",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"cmd\": \"x\"}}}",
            "servers.json: `mcpServers.a`: a server needs the key `command` or `url`, got `cmd`",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"url\": \"y\"}}}",
            "servers.json: `mcpServers.a`: expected either `command` or `url`, got both",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"timeout_seconds\": 0}}}",
            "servers.json: `mcpServers.a.timeout_seconds`: expected a number of seconds above 0, got the number `0`",
        ),
        (
            "{\"mcpServers\": {\"a b\": {\"command\": \"x\"}, \"a-b\": {\"command\": \"y\"}}}",
            "servers.json: `mcpServers.a-b`: expected a name of its own, got that of `a-b`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text).expect_err(text), expected);
    }
    assert!(parse("{\"mcpServers\": {").expect_err("cut").starts_with("servers.json: not readable as JSON: "));
}

#[test]
fn one_server_that_cannot_work_does_not_stop_the_others() {
    let configuration = parse(
        r#"{"mcpServers": {"old": {"type": "sse", "url": "http://x/sse"},
                           "unset": {"command": "x", "env": {"K": "${NO_SUCH}"}},
                           "good": {"command": "x"}}}"#,
    )
    .expect("a valid file");
    let reasons: Vec<Option<&str>> =
        configuration.servers.iter().map(|server| server.endpoint.as_ref().err().map(String::as_str)).collect();
    assert!(reasons[0].is_some_and(|reason| reason.starts_with("the `sse` transport is not supported")));
    assert!(reasons[1].is_some_and(|reason| reason.starts_with("the environment variable `NO_SUCH` is not set")));
    assert_eq!(reasons[2], None);
}
