//! Tests of the translation: every key of each client is taken over or refused.

use super::*;

fn translate(dialect: Dialect, fields: Value) -> Result<Value, String> {
    dialect.translate(fields.as_object().expect("an entry")).map(Value::Object)
}

#[test]
fn a_server_of_codex() {
    let fields = json!({
        "command": "srv", "args": ["x"], "cwd": "/srv", "env": {"A": "1"}, "enabled": true, "required": true,
        "env_vars": ["GH_TOKEN", {"name": "B", "source": "local"}], "supports_parallel_tool_calls": true,
        "startup_timeout_sec": 90, "tool_timeout_sec": 2.5, "enabled_tools": ["read", "write"],
        "disabled_tools": ["write"], "default_tools_approval_mode": "auto", "name": "old",
        "tools": {"read": {"approval_mode": "approve"}, "send": {"approval_mode": "prompt"}},
    });
    let ours = json!({
        "command": "srv", "args": ["x"], "cwd": "/srv", "env": {"A": "1"}, "enabled": true,
        "inherit": ["GH_TOKEN", "B"], "start_timeout_seconds": 90, "timeout_seconds": 2.5,
        "includeTools": ["read", "write"], "excludeTools": ["write"], "policy": {"ask": ["send"]},
    });
    assert_eq!(translate(Dialect::Codex, fields), Ok(ours));
    let fields = json!({
        "url": "https://x.test/mcp", "bearer_token_env_var": "MY_TOKEN", "http_headers": {"X-A": "a"},
        "env_http_headers": {"X-B": "B_KEY"}, "startup_timeout_ms": 1500, "default_tools_approval_mode": "prompt",
    });
    let ours = json!({
        "url": "https://x.test/mcp", "start_timeout_seconds": 1.5, "policy": {"ask": ["*"]},
        "headers": {"Authorization": "Bearer ${MY_TOKEN}", "X-A": "a", "X-B": "${B_KEY}"},
    });
    assert_eq!(translate(Dialect::Codex, fields), Ok(ours));
}

#[test]
fn a_server_of_gemini() {
    let fields = json!({
        "httpUrl": "https://x.test/$PLACE", "url": "https://x.test/sse", "headers": {"Authorization": "Bearer $TOKEN"},
        "timeout": 30000, "includeTools": ["a"], "excludeTools": ["b"], "extensionName": "e",
        "authProviderType": "dynamic_discovery", "oauth": {"enabled": false, "clientId": "x"},
    });
    let ours = json!({
        "url": "https://x.test/${PLACE}", "type": "http", "headers": {"Authorization": "Bearer ${TOKEN}"},
        "timeout_seconds": 30.0, "includeTools": ["a"], "excludeTools": ["b"],
    });
    assert_eq!(translate(Dialect::Gemini, fields), Ok(ours));
}

#[test]
fn keys_without_an_equivalent_are_refused() {
    for (dialect, key, value) in [
        (Dialect::Codex, "scopes", json!(["read"])),
        (Dialect::Codex, "oauth", json!({"client_id": "x"})),
        (Dialect::Codex, "oauth_resource", json!("https://x.test")),
        (Dialect::Codex, "bearer_token", json!("secret-1")),
        (Dialect::Codex, "experimental_environment", json!("remote")),
        (Dialect::Codex, "env_vars", json!([{"name": "A", "source": "remote"}])),
        (Dialect::Codex, "bearer_token_env_var", json!("Bearer secret=1")),
        (Dialect::Codex, "tools", json!({"a": {"approval_mode": "never"}})),
        (Dialect::Gemini, "authProviderType", json!("google_credentials")),
        (Dialect::Gemini, "oauth", json!({"clientId": "x"})),
        (Dialect::Gemini, "targetAudience", json!("x")),
        (Dialect::Gemini, "targetServiceAccount", json!("x")),
        (Dialect::Gemini, "tcp", json!("localhost:1")),
        (Dialect::ClaudeCode, "headersHelper", json!("./secret-1.sh")),
        (Dialect::ClaudeCode, "oauth", json!({"clientId": "x"})),
        (Dialect::VsCode, "sandboxEnabled", json!(true)),
        (Dialect::Cursor, "auth", json!({"CLIENT_ID": "x"})),
        (Dialect::Other, "headersHelper", json!("x")),
    ] {
        let refused = translate(dialect, json!({"url": "https://x.test", key: value})).expect_err(key);
        assert!(refused.starts_with(&format!("`{key}")) && !refused.contains("secret"), "{refused}");
    }
}

#[test]
fn keys_of_others_stay() {
    let fields = json!({"command": "x", "timeout_seconds": 5, "timeout": 9, "trust": true, "tools": {"block": ["a"]}});
    assert_eq!(translate(Dialect::Other, fields.clone()), Ok(fields));
    let ours = json!({"command": "x", "tools": {"block": ["a"]}, "start_timeout_seconds": 5});
    let both = json!({"command": "x", "tools": {"block": ["a"]}, "start_timeout_seconds": 5, "startup_timeout_sec": 9});
    assert_eq!(translate(Dialect::Codex, both), Ok(ours), "our own key counts");
}

#[test]
fn a_server_that_gemini_excludes_is_known() {
    let root = json!({"mcp": {"excluded": ["a"], "allowed": ["a", "b"]}});
    let excludes = |dialect: Dialect, name| dialect.excludes(root.as_object().expect("an object"), name);
    assert_eq!(excludes(Dialect::Gemini, "a"), Some("mcp.excluded"));
    assert_eq!(excludes(Dialect::Gemini, "b"), None);
    assert_eq!(excludes(Dialect::Gemini, "c"), Some("mcp.allowed"));
    assert_eq!(excludes(Dialect::Other, "a"), None);
}

#[test]
fn a_file_belongs_to_a_client() {
    for (file, key, root, dialect) in [
        ("config.toml", "mcp_servers", json!({}), Dialect::Codex),
        ("/home/ann/.gemini/settings.json", "mcpServers", json!({}), Dialect::Gemini),
        ("/work/app/.vscode/mcp.json", "servers", json!({}), Dialect::VsCode),
        (".cursor/mcp.json", "mcpServers", json!({}), Dialect::Cursor),
        ("/work/app/.mcp.json", "mcpServers", json!({}), Dialect::ClaudeCode),
        ("settings.json", "mcpServers", json!({"mcp": {"excluded": []}}), Dialect::Gemini),
        ("settings.json", "mcpServers", json!({"mcpServers": {"a": {"httpUrl": "x"}}}), Dialect::Gemini),
        ("servers.json", "mcpServers", json!({"mcpServers": {"a": {"url": "x"}}}), Dialect::Other),
    ] {
        assert_eq!(Dialect::of(file, key, root.as_object().expect("an object")), dialect, "{file} {root}");
    }
}
