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
fn the_comments_of_an_entry_in_toml_stay() {
    let home = Home::new();
    let file = ".codex/config.toml";
    let before = "# My Codex settings, keep\n\n# lispbox is ours\n[mcp_servers.lispbox] # here\n# why: careful\n\
                  command = \"/old/lispbox\" # pinned\nargs = [\n  \"serve\", # first\n  \"--deny\", \"x\",\n]\n\
                  # slow\nstartup_timeout_sec = 20\n\n# mine\n[mcp_servers.lispbox.env]\n# one\nA = \"1\"\n\n\
                  [tui]\nx = 1\n";
    home.write(file, before);
    let data = home.path("data").display().to_string();
    with(&home, 0, &["setup", "codex", "--guards", "careful"], &[("XDG_DATA_HOME", &data)]);
    let expected = before
        .replace("/old/lispbox", LISPBOX)
        .replace("\"x\",\n", "\"x\", \"--guards\", \"careful\",\n")
        .replace("A = \"1\"\n", &format!("A = \"1\"\nXDG_DATA_HOME = \"{data}\"\n"));
    assert_eq!(text(&home, file), expected);
    for (before, after) in [
        (
            "mcp_servers.lispbox = { command = \"/old/lispbox\", args = [\"serve\"] } # here\n",
            "mcp_servers.lispbox = { command = \"L\", args = [\"serve\"] , env = { XDG_DATA_HOME = \"D\" } } # here\n",
        ),
        (
            "[mcp_servers]\n# ours\nlispbox.command = \"/old/lispbox\" # old\nlispbox.args = [\"serve\"]\n",
            "[mcp_servers]\n# ours\nlispbox.command = \"L\" # old\nlispbox.args = [\"serve\"]\n\n\
             [mcp_servers.lispbox.env]\nXDG_DATA_HOME = \"D\"\n",
        ),
    ] {
        home.write(file, before);
        with(&home, 0, &["setup", "codex"], &[("XDG_DATA_HOME", &data)]);
        assert_eq!(
            text(&home, file),
            after.replace("\"L\"", &format!("\"{LISPBOX}\"")).replace("\"D\"", &format!("\"{data}\""))
        );
        assert!(with(&home, 0, &["setup", "codex"], &[("XDG_DATA_HOME", &data)]).contains("has lispbox already"));
    }
}

#[test]
fn what_starts_lispbox_in_its_own_way_stays() {
    let home = Home::new();
    let lispbox = |entry: Value| json!({"mcpServers": {"lispbox": entry, "mail": mailbox()}}).to_string();
    // Variables of `env` become those of the entry.
    let words = json!(["LISPBOX_CONFIG=/own", "A=2", "/old/lispbox", "serve", "--deny", "x"]);
    home.write(CLAUDE, &lispbox(json!({"command": "env", "args": words, "env": {"A": "1", "B": "1"}})));
    let shown = home.ends(0, &["setup", "claude-desktop"]);
    assert!(shown.contains("LISPBOX_CONFIG=(not shown)") && !shown.contains("/own"), "{shown}");
    let expected = json!({"command": LISPBOX, "args": ["serve", "--deny", "x", "--approve-tool"],
                          "env": {"A": "2", "B": "1", "LISPBOX_CONFIG": "/own"}});
    assert_eq!(entry(&home), expected);
    let refused = home.ends(2, &["setup", "claude-desktop", "--move"]);
    assert!(refused.contains("lispbox reads LISPBOX_CONFIG in Claude Desktop"), "{refused}");
    for (command, before) in [
        ("docker", json!(["run", "-i", "--rm", "-v", "/home/ann/cfg:/config", "ghcr.io/x/lispbox:1"])),
        ("/usr/bin/podman", json!(["run", "-i", "ghcr.io/x/lispbox"])),
        ("sudo", json!(["-u", "ann", "/old/lispbox"])),
        ("env", json!(["-u", "HOME", "/old/lispbox"])),
    ] {
        let with = |more: &[&str]| {
            [before.as_array().expect("words"), &more.iter().map(|word| json!(word)).collect::<Vec<_>>()[..]].concat()
        };
        let original = lispbox(json!({"command": command, "args": with(&["serve", "--deny", "x"])}));
        home.write(CLAUDE, &original);
        let refused = home.ends(2, &["setup", "claude-desktop", "--move"]);
        let name = command.trim_start_matches("/usr/bin/");
        assert!(
            refused.contains(&format!("`{name}` starts lispbox in Claude Desktop, which may not read")),
            "{refused}"
        );
        assert_eq!(text(&home, CLAUDE), original);
        home.ends(0, &["setup", "claude-desktop", "--guards", "careful"]);
        let args = with(&["serve", "--deny", "x", "--guards", "careful", "--approve-tool"]);
        assert_eq!(entry(&home), json!({"command": command, "args": args}));
    }
}

#[test]
fn secrets_in_arguments_are_not_shown() {
    let home = Home::new();
    let args = json!([
        "serve",
        "--store",
        "postgres://u:p%40w@h/db?password=pw2",
        "--store=redis://:pw3@h",
        "--deny",
        "x=y@z"
    ]);
    home.write(CLAUDE, &json!({"mcpServers": {"lispbox": {"command": "/old/lispbox", "args": args}}}).to_string());
    for option in [&["--dry-run"][..], &[], &["--remove"]] {
        let shown = home.ends(0, &[&["setup", "claude-desktop"], option].concat());
        assert!(!["p%40w", "pw2", "pw3"].iter().any(|secret| shown.contains(secret)), "{shown}");
        assert!(shown.contains("\"postgres://(not shown)@h/db?(not shown)\""), "{shown}");
        assert!(shown.contains("\"--store=redis://(not shown)@h\""), "{shown}");
    }
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
    // The folder of the settings lies in the home folder too.
    let before = json!({"mcpServers": {"mail": mailbox(), "lispbox": {"command": "/old/lispbox", "env": {"HOME": "/elsewhere"}}}});
    home.write("claude.json", &before.to_string());
    for option in ["--move", "--remove"] {
        let refused = with(&home, 2, &[&setup[..], &[option]].concat(), &[]);
        assert!(refused.contains("lispbox has another HOME in Claude Desktop than here"), "{refused}");
    }
    assert_eq!(home.json("claude.json"), before);
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
    // What starts in a terminal has the PATH of that.
    let mut command = std::process::Command::new(&cached);
    command.args(["setup", "claude-code"]).env_clear().env("HOME", home.0.path()).env("PATH", &bin);
    assert!(command.output().expect("it runs").status.success());
    let of_terminal = home.json(".claude.json")["mcpServers"]["lispbox"].clone();
    assert_eq!((&of_terminal["command"], &of_terminal["env"]), (&json!(format!("{bin}/npx")), &Value::Null));
    // A link that fnm removes with the terminal is followed.
    std::fs::create_dir_all(home.path("run/fnm_multishells")).expect("a folder");
    home.script("node/v22/bin/npx", "#!/bin/sh\n");
    let link = home.path("run/fnm_multishells/77_1");
    symlink(home.path("node/v22"), &link).expect("a link");
    let entry = run(&cached, &format!("{}/bin", link.display()));
    let real = std::fs::canonicalize(home.path("node/v22/bin")).expect("it is there").display().to_string();
    assert_eq!(entry["command"], format!("{real}/npx"));
    assert_eq!(entry["env"]["PATH"], format!("{real}:/usr/bin:/bin:/usr/sbin:/sbin"));
    // With another Node, it is that one; without, there is no such variable; one of a person's own stays.
    home.script("new/npx", "#!/bin/sh\n");
    let new = home.path("new").display().to_string();
    assert_eq!(again(&cached, &new)["env"]["PATH"], format!("{new}:/usr/bin:/bin:/usr/sbin:/sbin"));
    assert_eq!(again(&cellar, &new)["env"], Value::Null);
    for mine in ["/mine", "/mine:/usr/bin:/bin:/usr/sbin:/sbin"] {
        let lispbox = json!({"command": "/mine/lispbox", "env": {"PATH": mine}});
        home.write(CLAUDE, &json!({"mcpServers": {"lispbox": lispbox}}).to_string());
        assert_eq!(again(&cellar, &new)["env"]["PATH"], mine);
        assert_eq!(again(&cached, &new)["env"]["PATH"], mine);
    }
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
