//! `lispbox doctor`: what it says of each way in which a client does not have lispbox, or has another one than the
//! terminal.
#![cfg(unix)]

use std::process::Output;

use serde_json::{Value, json};

use crate::desktop::{Home, mailbox, said};

const LISPBOX: &str = env!("CARGO_BIN_EXE_lispbox");
const CURSOR: &str = ".cursor/mcp.json";
const CODE: &str = ".claude.json";

/// An entry that starts lispbox, with other keys.
fn entry(more: Value) -> Value {
    let mut entry = json!({"command": LISPBOX, "args": ["serve"]});
    for (key, value) in more.as_object().into_iter().flatten() {
        entry[key] = value.clone();
    }
    entry
}

fn servers(lispbox: &Value) -> String {
    json!({"mcpServers": {"lispbox": lispbox}}).to_string()
}

/// Runs `doctor` with variables, checks its exit code, and returns its output.
fn examined(home: &Home, code: i32, variables: &[(&str, &str)]) -> String {
    let mut command = home.command(&["doctor"]);
    let output: Output = command.envs(variables.iter().copied()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    said(&output)
}

/// Checks that there is a line with these beginnings and parts.
fn has_line(examined: &str, beginning: &str, parts: &[&str]) {
    let fits = |line: &str| line.starts_with(beginning) && parts.iter().all(|part| line.contains(part));
    assert!(examined.lines().any(fits), "{beginning} {parts:?}: {examined}");
}

#[test]
fn an_entry_that_the_client_does_not_use_is_not_attached() {
    let gemini = ".gemini/settings.json";
    let with = |list: Value| {
        let mut root: Value = serde_json::from_str(&servers(&entry(json!({})))).expect("JSON");
        list.as_object().into_iter().flatten().for_each(|(key, value)| root[key] = value.clone());
        root.to_string()
    };
    for (file, text, title, why) in [
        (CURSOR, servers(&entry(json!({"disabled": true}))), "Cursor", "its entry `lispbox` has `disabled: true`"),
        (CURSOR, servers(&entry(json!({"enabled": false}))), "Cursor", "its entry `lispbox` has `enabled: false`"),
        (
            ".codex/config.toml",
            format!("[mcp_servers.lispbox]\ncommand = {:?}\nargs = [\"serve\"]\nenabled = false\n", LISPBOX),
            "Codex",
            "its entry `lispbox` has `enabled: false`",
        ),
        (gemini, with(json!({"mcp": {"allowed": ["a"]}})), "Gemini CLI", "`mcp.allowed` leaves `lispbox` out; add it"),
        (gemini, with(json!({"mcp": {"excluded": ["lispbox"]}})), "Gemini CLI", "`mcp.excluded` names `lispbox`"),
        (CODE, with(json!({"disabledMcpServers": ["lispbox"]})), "Claude Code", "`disabledMcpServers` names `lispbox`"),
    ] {
        let home = Home::new();
        let place = home.write(file, &text);
        let examined = examined(&home, 1, &[]);
        has_line(&examined, &format!("broken  {title}: "), &[why, &place.display().to_string()]);
        assert!(!examined.contains("attached") && !examined.contains("all is well"), "{examined}");
    }
    for allowed in [json!({"mcp": {"allowed": ["lispbox"], "excluded": ["a"]}}), json!({})] {
        let home = Home::new();
        home.write(gemini, &with(allowed));
        has_line(&examined(&home, 0, &[]), "ok      Gemini CLI: attached", &[]);
    }
}

#[test]
fn a_command_without_its_folder_has_to_be_where_the_client_looks() {
    // A name of lispbox that no machine has.
    let bare = |command: &str| servers(&json!({"command": command, "args": ["serve"]}));
    let home = Home::new();
    home.write(CURSOR, &bare("lispbox.cmd"));
    let broken = examined(&home, 1, &[]);
    let why = "`lispbox.cmd` is neither on the PATH of a program with a window nor in the usual folders of commands";
    has_line(&broken, "broken  Cursor: ", &[why, "`lispbox setup cursor` names this one"]);
    // The PATH of this terminal is not that of Cursor.
    home.script("tools/lispbox.cmd", "#!/bin/sh\n");
    let path = home.path("tools").display().to_string();
    examined(&home, 1, &[("PATH", &path)]);
    // Claude Code has it, as it is started in a terminal.
    let terminal = Home::new();
    terminal.write(CODE, &bare("lispbox.cmd"));
    has_line(&examined(&terminal, 1, &[]), "broken  Claude Code: ", &["is neither on PATH nor in the usual folders"]);
    has_line(&examined(&terminal, 0, &[("PATH", &path)]), "ok      Claude Code: attached", &[]);
    home.script(".local/bin/lispbox.cmd", "#!/bin/sh\n");
    has_line(&examined(&home, 0, &[]), "ok      Cursor: attached", &[]);
    // A file that nobody can start, and a path in which the client puts something.
    let plain = home.write("plain/lispbox", "");
    home.write(CURSOR, &bare(&plain.display().to_string()));
    has_line(&examined(&home, 1, &[]), "broken  Cursor: ", &["plain/lispbox cannot be run"]);
    home.write(CURSOR, &bare("${env:TOOLS}/lispbox"));
    has_line(&examined(&home, 0, &[]), "ok      Cursor: attached", &[]);
}

#[test]
fn a_file_that_cannot_be_read_is_broken_whatever_the_reason() {
    let wide: Vec<u8> = "\u{feff}{\"mcpServers\": {}}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (content, why) in [
        (&*wide, "it is in UTF-16"),
        (b"{\"mcpServers\": {\"caf\xe9\": {}}}", "it is not in UTF-8"),
        (b"{\"mcpServers\": {", "not closed"),
        (b"[]", "expected an object"),
        (b"{\"mcpServers\": []}", "expected an object in `mcpServers`"),
    ] {
        let home = Home::new();
        let file = home.write(CURSOR, "");
        std::fs::write(&file, content).expect("written");
        let broken = examined(&home, 1, &[]);
        has_line(&broken, "broken  Cursor: its configuration ", &[&file.display().to_string(), why]);
        assert!(broken.contains("; correct it\n"), "{broken}");
        assert!(!broken.contains("none found") && !broken.contains("all is well"), "{broken}");
    }
    let home = Home::new();
    std::fs::create_dir_all(home.path(CURSOR)).expect("made");
    has_line(&examined(&home, 1, &[]), "broken  Cursor: its configuration ", &["directory"]);
    let home = Home::new();
    std::os::unix::fs::symlink("nowhere", home.path(CODE)).expect("made");
    has_line(&examined(&home, 1, &[]), "broken  Claude Code: its configuration ", &["No such file"]);
    // Comments are no reason: clients read them.
    home.write("nowhere", "\u{feff}{\"mcpServers\": {}} // mine");
    has_line(&examined(&home, 0, &[]), "        Claude Code: not attached", &[]);
}

#[test]
fn a_file_is_read_as_setup_reads_it() {
    // An empty file counts as none, and half of a surrogate pair elsewhere says nothing about servers.
    for text in ["", " \n", r#"{"cut": ["\ud83d"], "mcpServers": {}}"#] {
        let home = Home::new();
        home.write(CURSOR, text);
        has_line(&examined(&home, 0, &[]), "        Cursor: not attached; `lispbox setup cursor` attaches it", &[]);
        home.ends(0, &["setup", "cursor"]);
        has_line(&examined(&home, 0, &[]), "ok      Cursor: attached", &[]);
    }
    // Clients read these, and `setup` does not change them.
    for (text, why) in [
        (r#"{"mcpServers": {"a": {}, "a": {}}}"#, "`a`"),
        (r#"{"mcpServers": null}"#, "expected an object in `mcpServers`"),
        (r#"{"mcpServers": {}} // mine"#, "it has comments"),
    ] {
        let home = Home::new();
        let file = home.write(CURSOR, text).display().to_string();
        let by_hand =
            "        Cursor: not attached; `lispbox setup cursor` says what to add by hand, since it cannot change ";
        has_line(&examined(&home, 0, &[]), by_hand, &[&file, why]);
        let refused = home.ends(1, &["setup", "cursor"]);
        assert!(refused.contains(why) && refused.contains("add by hand"), "{refused}");
    }
}

#[test]
fn an_entry_that_is_off_counts_for_nothing_beside_one_that_works() {
    let home = Home::new();
    let off = entry(json!({"disabled": true, "env": {"LISPBOX_STORE": "memory"}}));
    home.write(CURSOR, &json!({"mcpServers": {"lispbox": off, "second": entry(json!({}))}}).to_string());
    let well = examined(&home, 0, &[]);
    has_line(&well, "ok      Cursor: attached", &[]);
    assert!(well.contains("all is well"), "{well}");
}

#[test]
fn a_store_that_cannot_be_created_is_broken() {
    let home = Home::new();
    assert!(examined(&home, 0, &[]).contains("ok      store: none yet; the first client creates it"));
    assert!(!home.path(".local").exists(), "nothing was created");
    has_line(&examined(&home, 1, &[("XDG_DATA_HOME", "/proc/nope")]), "broken  store: none can be created", &["/proc"]);
    home.write(".local/share", "a file where a folder should be");
    let broken = examined(&home, 1, &[]);
    has_line(&broken, "broken  store: none can be created", &[".local/share cannot be written to"]);
}

#[test]
fn a_client_whose_lispbox_reads_or_keeps_elsewhere_than_the_terminal_is_broken() {
    let home = Home::new();
    let place = |file: &str| home.path(file).display().to_string();
    let (settings, data, other) = (place("settings"), place("data"), place("other.json"));
    home.write("other.json", "{\"mcpServers\": {}}");
    let usual = format!("{}, this terminal ", place(".config/lispbox"));
    let stored = format!("keeps sessions in {}, this terminal in ", place(".local/share/lispbox/sessions.db"));
    home.write(CURSOR, &servers(&entry(json!({}))));
    for (variable, value, difference, here) in [
        ("XDG_CONFIG_HOME", &*settings, format!("Cursor's lispbox reads {usual}"), format!("{settings}/lispbox")),
        ("LISPBOX_CONFIG", &other, format!("Cursor's lispbox reads {usual}"), other.clone()),
        ("XDG_DATA_HOME", &data, format!("Cursor's lispbox {stored}"), format!("{data}/lispbox/sessions.db")),
        ("LISPBOX_STORE", "memory", format!("Cursor's lispbox {stored}"), "memory".to_owned()),
    ] {
        home.write(CURSOR, &servers(&entry(json!({}))));
        let broken = examined(&home, 1, &[(variable, value)]);
        let mend = format!("give `{variable}` to its entry in {}", place(CURSOR));
        has_line(&broken, &format!("broken  {difference}"), &[&here, &mend]);
        home.write(CURSOR, &servers(&entry(json!({"env": {variable: value}}))));
        has_line(&examined(&home, 0, &[(variable, value)]), "ok      Cursor: attached", &[]);
        // The other way round.
        let broken = examined(&home, 1, &[]);
        has_line(&broken, "broken  Cursor's lispbox ", &[&here, &format!("set `{variable}` here as well")]);
        // Both have it, with different values.
        home.write(CURSOR, &servers(&entry(json!({"env": {variable: "/elsewhere"}}))));
        let broken = examined(&home, 1, &[(variable, value)]);
        let mend = format!("make `{variable}` the same in both, here and in its entry in {}", place(CURSOR));
        has_line(&broken, "broken  Cursor's lispbox ", &[&here, &mend]);
        // What the client puts in cannot be told.
        home.write(CURSOR, &servers(&entry(json!({"env": {variable: "${env:HOME}/x"}}))));
        examined(&home, 0, &[]);
    }
    // The arguments of the entry count before variables.
    let with = |arguments: Value| home.write(CURSOR, &servers(&entry(json!({"args": arguments}))));
    with(json!(["serve", "--store", "postgres://ann:a-secret@example/db"]));
    let broken = examined(&home, 1, &[]);
    has_line(&broken, "broken  Cursor's lispbox keeps sessions in a store of postgres", &["set `LISPBOX_STORE` here"]);
    assert!(!broken.contains("a-secret"), "{broken}");
    // A configuration that the entry names is no fault.
    with(json!(["serve", "--config", other]));
    let well = examined(&home, 0, &[]);
    let looks = format!("reads {other}; `lispbox doctor --config {other}` looks at that");
    has_line(&well, "        Cursor's lispbox ", &[&looks]);
    assert!(home.ends(0, &["doctor", "--config", &other]).contains("all is well"));
    // It is one if servers were moved into the usual configuration.
    let moved = json!({"servers": {"mail": {"entry": mailbox(), "imported": "mail"}}});
    let record = home.write(".config/lispbox/moved/cursor.json", &moved.to_string());
    let broken = examined(&home, 1, &[]);
    has_line(&broken, &format!("broken  Cursor's lispbox reads {other}, this terminal "), &[]);
    std::fs::remove_file(record).expect("removed");
    let second = place("second.json");
    home.write("second.json", "{\"mcpServers\": {}}");
    let broken = examined(&home, 1, &[("LISPBOX_CONFIG", &second)]);
    has_line(
        &broken,
        &format!("broken  Cursor's lispbox reads {other}, this terminal {second}; "),
        &["set `LISPBOX_CONFIG` here"],
    );
}

#[test]
fn variables_move_the_files_of_clients() {
    let home = Home::new();
    let (claude, codex) = (home.path("claude"), home.path("codex"));
    std::fs::create_dir(&codex).expect("made");
    let variables = [("CLAUDE_CONFIG_DIR", &claude), ("CODEX_HOME", &codex)];
    home.write("claude/.claude.json", "{}");
    for (client, file) in [("claude-code", "claude/.claude.json"), ("codex", "codex/config.toml")] {
        let mut command = home.command(&["setup", client]);
        let output = command.envs(variables).output().expect("it runs");
        assert!(output.status.success() && said(&output).contains(file), "{}", said(&output));
        assert!(std::fs::read_to_string(home.path(file)).expect("it is there").contains("lispbox"));
    }
    let output = home.command(&["doctor"]).envs(variables).output().expect("it runs");
    for title in ["Claude Code", "Codex"] {
        has_line(&said(&output), &format!("ok      {title}: attached"), &[]);
    }
    assert!(!home.path(CODE).exists() && !home.path(".codex").exists());
    assert!(examined(&home, 0, &[]).contains("clients: none found on this machine"));
}

#[test]
fn clients_that_are_installed_and_their_variants_are_listed() {
    let home = Home::new();
    let found = examined(&home, 0, &[]);
    assert!(found.contains("clients: none found on this machine") && !found.contains("Cursor"), "{found}");
    for folder in [".cursor", ".config/Code - Insiders/User", ".var/app/com.visualstudio.code/config/Code/User"] {
        std::fs::create_dir_all(home.path(folder)).expect("made");
    }
    let profile = ".config/Code/User/profiles/5552b383/mcp.json";
    home.write(profile, &json!({"servers": {"mail": mailbox()}}).to_string());
    let found = examined(&home, 0, &[]);
    has_line(&found, "        Cursor: not attached; `lispbox setup cursor` attaches it", &[]);
    has_line(&found, "        VS Code: not attached; `lispbox setup vscode` attaches it", &[]);
    let insiders = home.path(".config/Code - Insiders/User/mcp.json").display().to_string();
    for (title, file, moves) in [
        ("VS Code Insiders", &insiders, ""),
        (
            "VS Code of Flatpak",
            &home.path(".var/app/com.visualstudio.code/config/Code/User/mcp.json").display().to_string(),
            "",
        ),
        ("VS Code (profile 5552b383)", &home.path(profile).display().to_string(), " --move"),
    ] {
        let command = format!("`lispbox setup vscode --file '{file}'{moves}` attaches lispbox there");
        has_line(&found, &format!("        {title} has its own file {file}; "), &[&command]);
    }
    home.ends(0, &["setup", "vscode", "--file", &insiders]);
    has_line(&examined(&home, 0, &[]), "ok      VS Code Insiders: attached", &[]);
}

#[test]
fn moved_servers_that_nobody_has_any_more_are_named() {
    let home = Home::new();
    let moved = || home.write(CURSOR, &json!({"mcpServers": {"mail": mailbox(), "more": mailbox()}}).to_string());
    let before = moved();
    home.ends(0, &["setup", "cursor", "--move"]);
    has_line(&examined(&home, 0, &[]), "ok      Cursor: attached", &[]);
    let attached = home.json(CURSOR);

    // lispbox has lost one of them.
    let imported = ".config/lispbox/config.d/imported.json";
    let mut fewer = home.json(imported);
    fewer["mcpServers"].as_object_mut().expect("servers").remove("mail");
    let whole = home.json(imported);
    home.write(imported, &fewer.to_string());
    let broken = examined(&home, 1, &[]);
    let undo = "`lispbox setup cursor --undo` puts back what was moved";
    has_line(&broken, "broken  Cursor: moved out of it, and not in lispbox any more: mail; ", &[undo]);

    // Another file of lispbox has it, or the client has it again.
    let own = home.write(".config/lispbox/config.d/own.json", &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    examined(&home, 0, &[]);
    std::fs::remove_file(own).expect("removed");
    let mut returned = attached.clone();
    returned["mcpServers"]["mail"] = mailbox();
    home.write(CURSOR, &returned.to_string());
    examined(&home, 0, &[]);

    // The client does not have lispbox any more, nor its servers.
    home.write(imported, &whole.to_string());
    for gone in [true, false] {
        if gone {
            std::fs::remove_file(&before).expect("removed");
        } else {
            home.write(CURSOR, "{\"mcpServers\": {}}");
        }
        let broken = examined(&home, 1, &[]);
        let begins = "broken  Cursor: moved into lispbox, which it does not have any more: mail, more; ";
        has_line(&broken, begins, &[undo, "`lispbox setup cursor` attaches it again"]);
    }
    home.write(CURSOR, &attached.to_string());
    home.write(".config/lispbox/moved/cursor.json", "{");
    let broken = examined(&home, 1, &[]);
    let mend = "move it away; the `.backup` beside the file of Cursor has the servers";
    has_line(&broken, "broken  Cursor: the record of its moved servers cannot be read: ", &["moved/cursor.json", mend]);
    for arguments in [&["config", "import"][..], &["setup", "cursor", "--undo"]] {
        assert!(home.ends(1, arguments).contains(mend));
    }
}
