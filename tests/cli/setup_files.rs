//! What `setup` writes into the files of clients: the entry for lispbox, and nothing else that is not asked for.
#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::desktop::{CLAUDE, Home, LISPBOX, mailbox, said};

const BACKUP: &str = ".config/Claude/claude_desktop_config.json.backup";

fn text(home: &Home, file: &str) -> String {
    std::fs::read_to_string(home.path(file)).expect("it is there")
}

fn entry(home: &Home) -> Value {
    home.json(CLAUDE)["mcpServers"]["lispbox"].clone()
}

/// Runs `setup` with variables, and returns what it says.
fn with(home: &Home, code: i32, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = home.command(arguments).envs(variables.iter().copied()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    said(&output)
}

#[test]
fn a_key_that_is_there_twice_is_refused() {
    let home = Home::new();
    for (before, twice) in [
        ("{\"mcpServers\": {\"a\": {}}, \"theme\": 1, \"mcpServers\": {\"b\": {}}}", "mcpServers"),
        ("{\"theme\": 1, \"mcpServers\": {}, \"theme\": 2}", "theme"),
        ("{\"mcpServers\": {\"x\": {\"command\": \"a\"}, \"x\": {\"command\": \"b\"}}}", "x"),
    ] {
        home.write(CLAUDE, before);
        for option in [&[][..], &["--move"], &["--remove"]] {
            let refused = home.ends(1, &[&["setup", "claude-desktop"], option].concat());
            assert!(refused.contains(&format!("`{twice}` is there twice; leave one of the two")), "{refused}");
        }
        assert_eq!(text(&home, CLAUDE), before);
        assert!(!home.path(BACKUP).exists());
    }
}

#[test]
fn all_but_the_entry_keeps_its_bytes() {
    let home = Home::new();
    let before = "{\r\n\t\"id\": 12345678901234567890123, \"f\":1e400, \"cut\": [\"\\ud83d\", 1e5],\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\"command\":\"no-such-command\",   \"args\":[]}\r\n\t},\r\n\t\"s\": \"\\u00e9\"\r\n}\r\n";
    home.write(CLAUDE, before);
    home.ends(0, &["setup", "claude-desktop"]);
    let after = text(&home, CLAUDE);
    let (begin, end) = before.split_once("\r\n\t},").expect("the servers");
    assert!(after.starts_with(&format!("{begin},\r\n\t\t\"lispbox\": {{\r\n")), "{after}");
    assert!(after.ends_with(&format!("\r\n\t}},{end}")), "{after}");
    home.ends(0, &["setup", "claude-desktop", "--remove"]);
    assert_eq!(text(&home, CLAUDE), before);

    // A server returns as it was written, and what lispbox cannot read does not keep others from moving.
    let mailbox = format!("{{\"command\":\"{LISPBOX}\",  \"args\":[\"sample\\u002dmailbox\"]}}");
    let before = format!("{{\n  \"cut\": \"\\ud83d\",\n  \"mcpServers\": {{\n    \"mail\": {mailbox}\n  }}\n}}\n");
    home.write(CLAUDE, &before);
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    assert!(!text(&home, CLAUDE).contains("mail") && text(&home, CLAUDE).contains("\\ud83d"));
    home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert_eq!(text(&home, CLAUDE), before);
    assert!(home.ends(0, &["config", "import"]).contains("mail: added"));
}

#[test]
fn an_empty_file_is_none_and_only_comments_are_called_so() {
    let home = Home::new();
    for nothing in ["", "\n", "\u{feff}"] {
        home.write(CLAUDE, nothing);
        for option in [&[][..], &["--move"]] {
            home.write(CLAUDE, nothing);
            home.ends(0, &[&["setup", "claude-desktop"], option].concat());
            assert_eq!(entry(&home)["args"], json!(["serve", "--approve-tool"]));
        }
    }
    for (before, reason) in [
        ("{\"mcpServers\": {},}", "it has comments or trailing commas, which would be lost"),
        ("{\"mcpServers\": {}, 'theme': 'dark'}", "it is not plain JSON: "),
    ] {
        home.write(CLAUDE, before);
        let refused = home.ends(1, &["setup", "claude-desktop"]);
        assert!(refused.contains(reason) && refused.contains("add by hand:"), "{refused}");
    }
}

#[test]
fn a_link_is_followed_unless_it_leads_nowhere() {
    let home = Home::new();
    home.write("dot/x", "");
    home.write(".config/Claude/x", "");
    symlink(home.path("dot/claude.json"), home.path(CLAUDE)).expect("a link");
    for option in [&[][..], &["--move"]] {
        let refused = home.ends(1, &[&["setup", "claude-desktop"], option].concat());
        assert!(refused.contains("is a link to ") && refused.contains(", which is not there"), "{refused}");
    }
    assert!(!home.path("dot/claude.json").exists());
    home.write("dot/claude.json", "{}");
    home.ends(0, &["setup", "claude-desktop"]);
    assert!(home.path(CLAUDE).is_symlink() && text(&home, "dot/claude.json").contains("lispbox"));
}

#[test]
fn comments_in_a_file_in_toml_stay_or_return() {
    let home = Home::new();
    let file = ".codex/config.toml";
    let (command, args) = (mailbox()["command"].clone(), mailbox()["args"].clone());
    let server = format!(
        "# rotated in January\n[mcp_servers.mail]\n# pinned\ncommand = {command} # as of now\nargs = {args}\n\n\
         # for mail\n[mcp_servers.mail.env]\nA = \"1\"\n"
    );
    let (head, rest) = ("# Codex of Ann\n# do not delete\n\n", "\n# for work\n[profiles.work]\nmodel = \"o5\"\n");
    home.write(file, &format!("{head}{server}{rest}"));
    home.ends(0, &["setup", "codex", "--move"]);
    let moved = text(&home, file);
    assert!(moved.starts_with(head) && moved.contains(rest) && !moved.contains("rotated"), "{moved}");
    home.ends(0, &["setup", "codex", "--undo"]);
    assert_eq!(text(&home, file), format!("{head}{}\n{server}", rest.trim_start()));
}

#[test]
fn the_entry_keeps_its_meaning_where_the_variables_of_the_terminal_are_not() {
    let home = Home::new();
    let (settings, data) = (home.path("settings").display().to_string(), home.path("data").display().to_string());
    let usual = home.path(".config").display().to_string();
    let file = home.write("claude.json", &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    let setup = ["setup", "claude-desktop", "--file", "claude.json"];
    let entry = || -> Value { home.json("claude.json")["mcpServers"]["lispbox"].clone() };
    with(&home, 0, &setup, &[("XDG_CONFIG_HOME", &usual), ("XDG_DATA_HOME", "")]);
    assert_eq!(entry()["env"], Value::Null);
    with(&home, 0, &setup, &[("XDG_CONFIG_HOME", &settings), ("XDG_DATA_HOME", &data)]);
    assert_eq!(entry()["env"], json!({"XDG_CONFIG_HOME": settings, "XDG_DATA_HOME": data}));
    // Without the variable, servers would move to where that entry does not look.
    let move_it = [&setup[..], &["--move"]].concat();
    let refused = with(&home, 2, &move_it, &[]);
    assert!(refused.contains("lispbox has another XDG_CONFIG_HOME in Claude Desktop than here"), "{refused}");
    let before = text(&home, "claude.json");
    let refused = with(&home, 2, &move_it, &[("LISPBOX_CONFIG", "my.json"), ("XDG_CONFIG_HOME", &settings)]);
    assert!(refused.contains("lispbox reads LISPBOX_CONFIG, not the folder into which servers move, "), "{refused}");
    assert_eq!(text(&home, "claude.json"), before);
    with(&home, 0, &move_it, &[("XDG_CONFIG_HOME", &settings), ("XDG_DATA_HOME", &data)]);
    // Nor is lispbox taken away where nobody knows what has moved.
    for option in ["--undo", "--remove"] {
        let refused = with(&home, 2, &[&setup[..], &[option]].concat(), &[]);
        assert!(refused.contains("lispbox has another XDG_CONFIG_HOME in Claude Desktop than here"), "{refused}");
    }
    assert!(home.path("settings/lispbox/config.d/imported.json").exists() && file.exists());
}

#[test]
fn a_variable_that_a_server_needs_is_named() {
    let home = Home::new();
    let mut server = mailbox();
    server["env"] = json!({"TOKEN": "${env:MY_TOKEN}", "HOME_OF": "${HOME}", "OTHER": "${NOT_SET:-x}"});
    home.write(".cursor/mcp.json", &json!({"mcpServers": {"mail": server}}).to_string());
    let moved = with(&home, 0, &["setup", "cursor", "--move"], &[("MY_TOKEN", "s3cret"), ("MORE", "x")]);
    assert!(moved.contains("\nMY_TOKEN is set in this terminal; Cursor may not have it\n"), "{moved}");
    assert_eq!(moved.matches("is set in this terminal").count(), 1, "{moved}");
    assert!(!moved.contains("s3cret"), "{moved}");
}

#[test]
fn the_entry_names_what_stays_with_the_next_version() {
    let home = Home::new();
    let copied = |place: &str| -> PathBuf {
        let file = home.write(place, "");
        std::fs::remove_file(&file).expect("removed");
        std::fs::hard_link(LISPBOX, &file).or_else(|_| std::fs::copy(LISPBOX, &file).map(drop)).expect("a copy");
        file
    };
    let again = |program: &PathBuf, path: &str| {
        let mut command = std::process::Command::new(program);
        command.args(["setup", "claude-desktop"]).env_clear().env("HOME", home.0.path()).env("PATH", path);
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{}", said(&output));
        entry(&home)
    };
    let run = |program: &PathBuf, path: &str| {
        home.write(CLAUDE, "{}");
        again(program, path)
    };
    let bin = home.path("bin").display().to_string();
    let cellar = copied("brew/Cellar/lispbox/0.1.0/bin/lispbox");
    home.script("bin/npx", "#!/bin/sh\n");
    assert_eq!(run(&cellar, &bin)["command"], cellar.display().to_string());
    symlink(&cellar, home.path("bin/lispbox")).expect("a link");
    assert_eq!(run(&cellar, &format!("relative:{bin}"))["command"], format!("{bin}/lispbox"));
    let cached = copied(".npm/_npx/abc/node_modules/@lispbox/linux-x64/bin/lispbox");
    let entry = run(&cached, &bin);
    assert_eq!(entry["command"], format!("{bin}/npx"));
    assert_eq!(entry["env"]["PATH"], format!("{bin}:/usr/bin:/bin:/usr/sbin:/sbin"));
    // With another Node, it is that one; without, there is no such variable; one of a person's own stays.
    home.script("new/npx", "#!/bin/sh\n");
    let new = home.path("new").display().to_string();
    assert_eq!(again(&cached, &new)["env"]["PATH"], format!("{new}:/usr/bin:/bin:/usr/sbin:/sbin"));
    assert_eq!(again(&cellar, &new)["env"], Value::Null);
    home.write(
        CLAUDE,
        &json!({"mcpServers": {"lispbox": {"command": "lispbox", "env": {"PATH": "/mine"}}}}).to_string(),
    );
    assert_eq!(again(&cached, &new)["env"]["PATH"], "/mine");
}

#[test]
fn each_server_that_stays_is_named_with_the_reason() {
    let home = Home::new();
    let mut off = mailbox();
    off["disabled"] = json!(true);
    home.write(".cursor/mcp.json", &json!({"mcpServers": {"mail": mailbox(), "off": off}}).to_string());
    let moved = home.ends(0, &["setup", "cursor", "--move"]);
    assert!(moved.contains("  off: stays in Cursor: it is switched off there\n"), "{moved}");
    assert!(moved.contains("starting 1 server of Cursor\n") && moved.contains("1 of 2 servers moved"), "{moved}");
    // Where there are only such servers, lispbox is attached beside them.
    home.write(CLAUDE, &json!({"mcpServers": {"off": off}}).to_string());
    let attached = home.ends(0, &["setup", "claude-desktop", "--move"]);
    assert!(attached.contains("  off: stays in Claude Desktop: it is switched off there\n"), "{attached}");
    assert_eq!(entry(&home)["args"], json!(["serve", "--approve-tool"]));

    let project = json!({"mcpServers": {"a": mailbox(), "b": mailbox()}});
    home.write(".claude.json", &json!({"mcpServers": {}, "projects": {"/work/app": project}}).to_string());
    let attached = home.ends(0, &["setup", "claude-code", "--move"]);
    let expected = "2 servers of projects stay in Claude Code; `lispbox config import` gives them to lispbox too\n";
    assert!(attached.contains(expected), "{attached}");
    assert_eq!(home.json(".claude.json")["projects"]["/work/app"], project);
}

#[test]
fn servers_do_not_move_behind_a_lispbox_that_is_switched_off() {
    let home = Home::new();
    let lispbox = json!({"command": "/old/lispbox", "args": ["serve"], "disabled": true});
    let disabled = json!({"mcpServers": {"lispbox": lispbox, "mail": mailbox()}});
    let allowed = json!({"mcp": {"allowed": ["mail"]}, "mcpServers": {"mail": mailbox()}});
    for (client, file, key, before) in [
        ("cursor", ".cursor/mcp.json", "Cursor, by `disabled`", disabled),
        ("gemini-cli", ".gemini/settings.json", "Gemini CLI, by `mcp.allowed`", allowed),
    ] {
        home.write(file, &before.to_string());
        let refused = home.ends(2, &["setup", client, "--move"]);
        let expected = format!("lispbox is switched off in {key}; switch it on there, and repeat");
        assert!(refused.contains(&expected) && !refused.contains("starting"), "{refused}");
        assert_eq!(home.json(file), before);
        let attached = home.ends(0, &["setup", client]);
        assert!(attached.contains(&format!("lispbox is switched off in {key}; switch it on there\n")), "{attached}");
    }
}
