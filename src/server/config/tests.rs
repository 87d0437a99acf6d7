//! Tests of valid and invalid configuration files.

use crate::lang::ToolHints;

use super::*;

fn parse(text: &str) -> Result<Configuration, String> {
    parse_as("servers.json", text)
}

/// Parses a text as the file of that name.
fn parse_as(file: &str, text: &str) -> Result<Configuration, String> {
    let variable = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
    Configuration::parse(text, file, &variable).map_err(|error| error.to_string())
}

/// Returns why a file cannot be used, or else why an entry of it cannot.
fn refusal(file: &str, text: &str) -> String {
    match parse_as(file, text) {
        Err(error) => error,
        Ok(configuration) => configuration.wrong_entries.first().map(ToString::to_string).expect(text),
    }
}

fn names(configuration: &Configuration) -> Vec<&str> {
    configuration.servers.iter().map(|server| server.name.as_str()).collect()
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
            transport: HttpTransport::Streamable,
            headers: BTreeMap::from([("Authorization".into(), "Bearer secret".into())]),
        })
    );
}

#[test]
fn wrong_shapes_are_named() {
    let cases = [
        ("[]", "servers.json: expected an object with `mcpServers` or `servers`, got an array of 0"),
        ("{\"theme\": {}}", "servers.json: expected the key `mcpServers` or `servers`, got `theme`"),
        (
            "{\"mcpServers\": 5}",
            "servers.json: `mcpServers`: expected an object or a list of servers, got the number `5`",
        ),
        ("{\"servers\": [{}]}", "servers.json: `servers[0]`: a server in a list needs the key `name`"),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"b\", {}]}}}",
            "servers.json: `mcpServers.a.args[1]`: expected a string, got an object of 0",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": \"b\"}}}",
            "servers.json: `mcpServers.a.args`: expected an array of strings, got the string \"b\"",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"type\": \"ws\", \"url\": \"x\"}}}",
            "servers.json: `mcpServers.a.type`: expected `stdio`, `http`, `streamable-http` or `sse`, got `ws`",
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
            "servers.json: `mcpServers.a-b`: expected a unique name, got that of `a-b`",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal("servers.json", text), expected);
    }
    assert!(parse("{\"mcpServers\": {").expect_err("cut").starts_with("servers.json: not readable as JSON: "));
}

#[test]
fn one_server_that_cannot_work_does_not_stop_the_others() {
    let configuration = parse(
        r#"{"mcpServers": {"odd": {"type": "sse", "url": "ftp://x/sse"},
                           "unset": {"command": "x", "env": {"K": "${NO_SUCH}"}},
                           "good": {"command": "x"},
                           "shape": {"command": "x", "args": {}}, "none": 5, "": {"command": "x"}}}"#,
    )
    .expect("a valid file");
    let reasons: Vec<Option<&str>> =
        configuration.servers.iter().map(|server| server.endpoint.as_ref().err().map(String::as_str)).collect();
    assert!(reasons[0].is_some_and(|reason| reason.starts_with("expected a `url` that begins with `http://`")));
    assert!(reasons[1].is_some_and(|reason| reason.starts_with("the environment variable `NO_SUCH` is not set")));
    assert_eq!(reasons[2], None);
    assert_eq!(
        reasons[3..],
        [
            Some("`mcpServers.shape.args`: expected an array of strings, got an object of 0"),
            Some("`mcpServers.none`: expected an object, got the number `5`")
        ]
    );
    assert_eq!(
        configuration.warnings.last().map(String::as_str),
        Some("servers.json: `mcpServers.`: expected a server name of 1 to 100 characters; this server is not used")
    );
    let twins = parse(r#"{"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "y"}}}"#).expect("a valid file");
    assert_eq!(names(&twins), ["a-b"]);
}

#[test]
fn keys_of_codex_and_gemini_are_taken_over() {
    let codex = r#"
        [mcp_servers.a]
        command = "srv"
        tool_timeout_sec = 5
        startup_timeout_sec = 90.5
        env_vars = ["GH_TOKEN"]
        disabled_tools = ["rm"]
        [mcp_servers.b]
        url = "https://x.test/mcp"
        bearer_token_env_var = "TOKEN"
        enabled_tools = []
        [mcp_servers.c]
        url = "https://x.test/mcp"
        scopes = ["read"]"#;
    let configuration = parse_as("config.toml", codex).expect("a file of Codex");
    let [a, b, c] = configuration.servers.as_slice() else { panic!("three servers: {:?}", names(&configuration)) };
    assert_eq!((a.timeout, a.start_timeout), (Some(Duration::from_secs(5)), Some(Duration::from_millis(90_500))));
    assert_ne!(a.inherit, Inherit::default());
    let denies = |server: &ServerConfig, tool| server.policy.decide(&server.name, tool, &ToolHints::default()).denies();
    assert!(denies(a, "rm") && !denies(a, "ls"));
    assert!(denies(b, "ls"), "no tool is enabled");
    let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer secret".to_owned())]);
    assert!(matches!(&b.endpoint, Ok(Endpoint::Http { headers: sent, .. }) if *sent == headers));
    assert!(c.endpoint.as_ref().is_err_and(|reason| reason.starts_with("`mcp_servers.c.scopes`: ")));
    let gemini = r#"{"mcp": {"excluded": ["b"]}, "mcpServers": {
        "a": {"command": "a", "env": {"K": "$TOKEN"}, "timeout": 3000}, "b": {"command": "b"},
        "c": {"command": "c", "args": ["$NO_SUCH"]}}}"#;
    let configuration = parse_as("/home/ann/.gemini/settings.json", gemini).expect("a file of Gemini CLI");
    assert_eq!(names(&configuration), ["a", "c"]);
    assert!(configuration.warnings[0].ends_with("server `b` is left out, as `mcp.excluded` says"));
    let [a, c] = configuration.servers.as_slice() else { panic!("two servers") };
    assert_eq!(a.timeout, Some(Duration::from_secs(3)));
    assert!(matches!(&a.endpoint, Ok(Endpoint::Process { environment, .. }) if environment["K"] == "secret"));
    assert!(c.endpoint.as_ref().is_err_and(|reason| reason.contains("`NO_SUCH` is not set")));
}

#[test]
fn an_environment_file_is_read_literally_and_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(".env"), "A=pa$$w0rd ${TOKEN}\nsecret-line\n").expect("written");
    std::fs::write(folder.path().join("bad.env"), b"A=1\nB=secret-\xff\n").expect("written");
    let file = folder.path().join("servers.json").display().to_string();
    let text =
        r#"{"mcpServers": {"a": {"command": "a", "envFile": ".env"}, "b": {"command": "b", "envFile": "bad.env"}}}"#;
    let configuration = parse_as(&file, text).expect("a valid file");
    let environment = BTreeMap::from([("A".to_owned(), "pa$$w0rd ${TOKEN}".to_owned())]);
    assert!(
        matches!(&configuration.servers[0].endpoint, Ok(Endpoint::Process { environment: read, .. }) if *read == environment)
    );
    assert_eq!(
        configuration.warnings,
        [format!("{file}: server `a`: `envFile` .env: line 2 was skipped: expected `NAME=VALUE`")]
    );
    assert_eq!(configuration.servers[1].endpoint, Err("its `envFile` bad.env: line 2 is not UTF-8".to_owned()));
}

#[test]
fn files_of_other_clients() {
    let cursor = r#"{"mcpServers": {
        "a": {"url": "https://example.org/mcp", "headers": {"K": "${env:TOKEN}"}, "autoApprove": ["x"]},
        "b": {"type": "stdio", "command": "b", "envFile": "", "timeout": 60}}}"#;
    let configuration = parse(cursor).expect("a file of Cursor");
    assert_eq!(names(&configuration), ["a", "b"]);
    assert_eq!(
        configuration.warnings,
        [
            "servers.json: server `a`: ignored `autoApprove`",
            "servers.json: server `b`: ignored `timeout` (its unit differs by client: `timeout_seconds` is ours)"
        ]
    );
    let code = r#"{
        "inputs": [{"type": "promptString", "id": "where", "default": "eu", "password": true}],
        "servers": {"a": {"type": "http", "url": "https://${input:where}.example.org/mcp"},
                    "b": {"command": "b", "args": ["${input:key}"], "dev": {"watch": "x"}}}}"#;
    let configuration = parse(code).expect("a file of VS Code");
    let endpoints: Vec<_> = configuration.servers.iter().map(|server| server.endpoint.clone()).collect();
    assert_eq!(
        endpoints,
        [
            Ok(Endpoint::Http {
                url: "https://eu.example.org/mcp".into(),
                transport: HttpTransport::Streamable,
                headers: BTreeMap::new()
            }),
            Err("no one can be asked for `${input:key}` here; set the environment variable `LISPBOX_INPUT_KEY`".into())
        ]
    );
    let settings = r#"{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "a"}}}}"#;
    assert_eq!(names(&parse(settings).expect("settings of VS Code")), ["a"]);
    let codex = "model = \"x\"\n[tools]\nweb_search = true\n[mcp_servers.a]\ncommand = \"a\"\nstartup_timeout_ms = 5\n[mcp_servers.a.env]\nK = \"v\"";
    assert_eq!(names(&parse_as("config.toml", codex).expect("a file of Codex")), ["a"]);
    let gemini = r#"{"theme": "x", "mcpServers": {"a": {"httpUrl": "https://example.org", "excludeTools": ["rm*"]}}}"#;
    let configuration = parse(gemini).expect("a file of Gemini CLI");
    let decision = configuration.servers[0].policy.decide("a", "rm-all", &ToolHints::default());
    assert!(decision.denies());
    assert_eq!(decision.rule, "`excludeTools` of servers.json has `rm*`");
}

#[test]
fn files_of_ours() {
    let yaml = "
servers:
  - name: mail
    transport: stdio
    command: npx
    args: [-y, mail, 5]
    timeout_seconds: 10
    tool_timeout_seconds: {search: 60}
    tools:
      block: ['delete-*']
  - {name: web, transport: http, url: 'https://example.org/mcp'}
tools:
  block: ['web/post*']
execution:
  timeout_seconds: 60
  max_output_bytes: 65536
  limits: {memory: 64MiB}
";
    let toml = "
[execution]
timeout_seconds = 60
max_output_bytes = 65536
limits = {memory = \"64MiB\"}
[tools]
block = [\"web/post*\"]
[[servers]]
name = \"mail\"
transport = \"stdio\"
command = \"npx\"
args = [\"-y\", \"mail\", 5]
timeout_seconds = 10
tool_timeout_seconds = {search = 60}
tools = {block = [\"delete-*\"]}
[servers2]
";
    let toml = toml
        .replace("[servers2]", "[[servers]]\nname = \"web\"\ntransport = \"http\"\nurl = \"https://example.org/mcp\"");
    for (file, text) in [("servers.yaml", yaml), ("servers.toml", &toml)] {
        let configuration = parse_as(file, text).expect("a file of ours");
        assert_eq!(names(&configuration), ["mail", "web"]);
        let [mail, web] = &configuration.servers[..] else { panic!("two servers") };
        assert_eq!(mail.timeout, Some(Duration::from_secs(10)));
        assert_eq!(mail.tool_timeouts["search"], Duration::from_secs(60));
        let decision = mail.policy.decide("mail", "delete-all", &ToolHints::default());
        assert!(decision.denies());
        assert_eq!(decision.rule, format!("`tools.block` of {file} has `delete-*`"));
        assert!(!mail.policy.denies("mail", "search", &ToolHints::default()));
        assert!(web.endpoint.is_ok());
        assert!(configuration.policy.denies("web", "post-it", &ToolHints::default()));
        assert!(!configuration.policy.denies("mail", "post-it", &ToolHints::default()));
        let limits: Vec<(&str, &str)> =
            configuration.limits.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(limits, [("memory", "64MiB"), ("output", "65536"), ("total", "60s")]);
        assert_eq!(configuration.warnings, [""; 0]);
    }
}

#[test]
fn slips_in_our_own_keys_are_named() {
    let cases = [
        (
            "a.yaml",
            "servers: [{name: a, comand: b}]",
            "a.yaml: `servers[0].comand`: there is no such key; did you mean `command`?",
        ),
        ("a.yaml", "server: []\nexecution: {}", "a.yaml: `server`: there is no such key; did you mean `servers`?"),
        (
            "a.yaml",
            "execution: {timeout: 5}",
            "a.yaml: `execution.timeout`: there is no such key; known are `timeout_seconds`, `max_output_bytes`, `idle_seconds`, `prefetch`, `inherit`, `limits`",
        ),
        (
            "a.yaml",
            "execution: {timeout_seconds: soon}",
            "a.yaml: `execution.timeout_seconds`: expected a number of seconds, got the string \"soon\"",
        ),
        (
            "a.yaml",
            "servers: [{name: a, command: b, tools: {allow: [x], block: [y]}}]",
            "a.yaml: `servers[0].tools`: expected either `allow` or `block`, got both",
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"command": "x", "timeout_secnds": 5}}}"#,
            "a.json: `mcpServers.a.timeout_secnds`: there is no such key; did you mean `timeout_seconds`?",
        ),
    ];
    for (file, text, expected) in cases {
        assert_eq!(refusal(file, text), expected);
    }
    assert!(parse_as("a.yaml", "servers: [").expect_err("cut").starts_with("a.yaml: not readable as YAML: "));
    assert!(parse_as("a.toml", "servers = [").expect_err("cut").starts_with("a.toml: not readable as TOML: "));
}

#[test]
fn an_allowed_list_keeps_all_else_from_being_called() {
    let configuration =
        parse_as("a.yaml", "servers: [{name: a, command: b, tools: {allow: ['get-*', 'a/list']}}]").expect("ours");
    let rules = &configuration.servers[0].policy;
    for (tool, is_denied) in [("get-x", false), ("list", false), ("put", true)] {
        assert_eq!(rules.denies("a", tool, &ToolHints::default()), is_denied, "{tool}");
    }
    assert_eq!(rules.decide("a", "put", &ToolHints::default()).rule, "`tools.allow` of a.yaml does not have it");
    assert!(!rules.denies("a", "GET_x", &ToolHints::default()), "spellings are one name");
    assert!(rules.denies("a", "getter", &ToolHints::default()), "a separator beside a wildcard ends a word");
}

#[test]
fn files_and_folders_are_read_one_after_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let drop_in = folder.path().join("config.d");
    std::fs::create_dir(&drop_in).expect("a folder");
    write("config.yaml", "servers: [{name: a, command: first}]");
    write("config.d/one.json", r#"{"mcpServers": {"a": {"command": "second"}, "b": {"command": "b"}}}"#);
    write("config.d/broken.json", "{");
    write("config.d/notes.txt", "{");
    let sources = Sources::new(vec![folder.path().join("config.yaml"), drop_in]);
    let mut configuration = sources.read().expect("they can be used");
    assert_eq!(names(&configuration), ["a", "b"]);
    assert!(matches!(&configuration.servers[0].endpoint, Ok(Endpoint::Process { command, .. }) if command == "second"));
    let [broken, replaced] = &configuration.warnings[..] else { panic!("{:?}", configuration.warnings) };
    assert!(broken.starts_with("ignored ") && broken.contains("broken.json: not readable as JSON"), "{broken}");
    assert!(replaced.contains("`a` overrides the one in "), "{replaced}");
    let mut origin = configuration.origin.take().expect("it was read from files");
    assert!(origin.reread().expect("nothing is wrong").is_none(), "nothing has changed");
    write("config.d/two.toml", "[[servers]]\nname = \"c\"\ncommand = \"c\"");
    let again = origin.reread().expect("nothing is wrong").expect("a file has come");
    assert_eq!(names(&again), ["a", "b", "c"]);
    write("config.yaml", "servers: 5");
    assert!(origin.reread().is_err(), "a file that was named has to be right");
}

#[test]
fn tools_without_a_server_make_up_namespaces() {
    let text = "local:
  - { name: git/log, command: git, args: [log, '{ref}'], timeout_seconds: 5, read_only: true,
      parameters: { properties: { ref: { type: string } } } }
  - { name: date, command: date }
  - { name: git/off, command: x, disabled: true }
  - { name: web/get, url: 'https://example.org/{page}?key=${TOKEN}', parameters: { required: [page], properties: { page: {} } } }
  - { name: unset/one, command: x, env: { A: '${NO}' } }
";
    let configuration = parse_as("lispbox.yaml", text).expect("a valid file");
    assert_eq!(names(&configuration), ["git", "local", "web", "unset"]);
    let tools = |index: usize| match &configuration.servers[index].endpoint {
        Ok(Endpoint::Local(tools)) => tools.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(configuration.servers[0].tool_timeouts["log"], Duration::from_secs(5));
    let log = &tools(0)[0].tool;
    assert_eq!((log.server.as_str(), log.name.as_str(), log.hints.read_only), ("git", "log", Some(true)));
    assert_eq!(
        log.input_schema,
        serde_json::json!({"properties": {"ref": {"type": "string"}}, "type": "object", "additionalProperties": false})
    );
    assert!(matches!(&tools(2)[0].action, Action::Request { method, .. } if method == "GET"));
    let reason = configuration.servers[3].endpoint.as_ref().expect_err("a variable is not set");
    assert!(reason.starts_with("`unset/one`: the environment variable `NO` is not set"), "{reason}");
}

#[test]
fn slips_in_tools_without_a_server_are_named() {
    let cases = [
        ("{ command: x }", "lispbox.yaml: `local[0]`: a tool in a list needs the key `name`"),
        ("{ name: a }", "lispbox.yaml: `local[0]`: a tool needs the key `command` or `url`"),
        ("{ name: a, comand: x }", "lispbox.yaml: `local[0].comand`: there is no such key; did you mean `command`?"),
        ("{ name: a, command: x, query: {} }", "lispbox.yaml: `local[0].query`: a command has no `query`"),
        (
            "{ name: a, command: x, args: ['{b}'] }",
            "lispbox.yaml: `local[0]`: `{b}` is not one of the `properties` of `parameters`",
        ),
        (
            "{ name: a, command: x, args: ['{b'] }",
            "lispbox.yaml: `local[0].args[0]`: expected `}` after `{`, or `{{` for a literal brace",
        ),
        ("{ name: a, command: x, stdin: xml }", "lispbox.yaml: `local[0].stdin`: expected `json`, got `xml`"),
        (
            "{ name: a, url: 'https://{host}/x', parameters: { properties: { host: {} } } }",
            "lispbox.yaml: `local[0].url`: expected an address that begins with `http://` or `https://` and a host without arguments",
        ),
        (
            "{ name: a, url: 'https://h/{b}', parameters: { properties: { b: {} } } }",
            "lispbox.yaml: `local[0].parameters`: the address needs `b`: expected it in `required`, or with a `default`",
        ),
        (
            "{ name: a, url: 'https://h/', method: get }",
            "lispbox.yaml: `local[0].method`: expected `GET`, `POST`, `PUT`, `PATCH`, `DELETE`, `HEAD`, got `get`",
        ),
    ];
    for (tool, expected) in cases {
        let file = format!("local: [{tool}]");
        assert_eq!(parse_as("lispbox.yaml", &file).err().as_deref(), Some(expected), "{tool}");
    }
    let invalid = "local: [{ name: a, command: x, parameters: { properties: { b: { type: 5 } } } }]";
    let message = parse_as("lispbox.yaml", invalid).expect_err("no schema");
    assert!(message.starts_with("lispbox.yaml: `local[0].parameters`: expected a JSON Schema: "), "{message}");
    let twice = "local: [{ name: mail/x, command: x }]\nservers: [{ name: mail, command: y }]";
    let message = parse_as("lispbox.yaml", twice).expect_err("one name twice");
    assert_eq!(message, "lispbox.yaml: `local`: expected a unique name, got that of server `mail`");
}
