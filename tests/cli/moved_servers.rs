//! Servers that `setup --move` has taken out of clients: nothing else takes their place, and `doctor` accounts for each.
#![cfg(unix)]

use std::process::Command;

use serde_json::{Value, json};

use crate::desktop::{CLAUDE, Home, LISPBOX, mailbox, said};

const IMPORTED: &str = ".config/lispbox/config.d/imported.json";
const CURSOR: &str = ".cursor/mcp.json";

/// Another server than the mailbox.
fn other() -> Value {
    json!({"command": "sh", "args": ["-c", format!("exec '{LISPBOX}' sample-mailbox")]})
}

fn names(home: &Home, file: &str) -> Vec<String> {
    let root = home.json(file);
    root["mcpServers"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

#[test]
fn those_of_each_file_are_compared_with_that_file() {
    for (client, key, file, title) in [
        ("vscode", "servers", ".config/Code - Insiders/User/mcp.json", "VS Code Insiders".to_owned()),
        ("cursor", "mcpServers", "work/mcp.json", "Cursor (FILE)".to_owned()),
    ] {
        let home = Home::new();
        let place = home.write(file, &json!({key: {"mail": mailbox()}}).to_string()).display().to_string();
        let title = title.replace("FILE", &place);
        home.ends(0, &["setup", client, "--file", &place, "--move"]);
        let well = home.ends(0, &["doctor"]);
        assert!(well.contains(&format!("ok      {title}: attached\n")) && well.contains("all is well"), "{well}");
        let (setup, attached) = (format!("`lispbox setup {client} --file '{place}'"), home.json(file));
        let undo = format!("{setup} --undo` puts back what was moved");

        // The client's file has lost lispbox.
        home.write(file, "{}");
        let broken = home.ends(1, &["doctor"]);
        let line =
            format!("broken  {title}: moved into lispbox, which it does not have any more: mail; {undo}, {setup}` ");
        assert!(broken.contains(&line) && !broken.contains("all is well"), "{broken}");

        // Lispbox has lost the server.
        home.write(file, &attached.to_string());
        let imported = home.json(IMPORTED);
        std::fs::remove_file(home.path(IMPORTED)).expect("removed");
        let broken = home.ends(1, &["doctor"]);
        let line = format!("broken  {title}: moved out of it, and not in lispbox any more: mail; {undo}\n");
        assert!(broken.contains(&line), "{broken}");

        // The usual file of the client says nothing about it.
        home.write(CURSOR, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
        home.ends(1, &["doctor"]);
        home.write(IMPORTED, &imported.to_string());
        home.ends(0, &["setup", client, "--file", &place, "--undo"]);
        assert_eq!(home.json(file)[key]["mail"], mailbox());
        home.ends(0, &["doctor"]);
    }
}

#[test]
fn lispbox_is_known_whatever_its_file_is_called() {
    let home = Home::new();
    home.write(CURSOR, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    let program = home.path("tools/lispbox-x86_64");
    std::fs::create_dir_all(home.path("tools")).expect("made");
    std::fs::copy(LISPBOX, &program).expect("copied");
    for (arguments, part) in [
        (&["setup", "cursor", "--move"][..], "1 of 1 servers moved into "),
        (&["doctor"], "ok      Cursor: attached\n"),
    ] {
        let mut command = Command::new(&program);
        let known = home.command(arguments);
        command.args(arguments).env_clear().current_dir(home.0.path());
        command.envs(known.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.output().expect("it runs");
        assert!(output.status.success() && said(&output).contains(part), "{}", said(&output));
    }
}

#[test]
fn those_of_an_earlier_record_stay_when_others_are_removed() {
    let home = Home::new();
    let cursor = home.write(CURSOR, &json!({"mcpServers": {"lispbox": {"command": LISPBOX}}}).to_string());
    let from = |key: &str| json!({"file": cursor, "key": format!("mcpServers.{key}")});
    let imported = json!({
        "mcpServers": {"mail": mailbox(), "post-cursor": mailbox(), "new": mailbox(), "gone": mailbox()},
        "importedFrom": {"mail": from("mail"), "post-cursor": from("post"), "new": from("new"), "gone": from("gone")},
    });
    home.write(IMPORTED, &imported.to_string());
    // The names of servers that lispbox had before were not recorded.
    let (before, added) = (json!({"entry": mailbox()}), json!({"entry": mailbox(), "imported": "new"}));
    let record = json!({"servers": {"mail": before, "post": before, "new": added}});
    home.write(".config/lispbox/moved/cursor.json", &record.to_string());
    home.ends(0, &["doctor"]);
    let pruned = home.ends(0, &["config", "import", "--prune"]);
    for name in ["mail", "post-cursor", "new"] {
        assert!(pruned.contains(&format!("  {name}: kept, moved here from Cursor\n")), "{pruned}");
    }
    assert_eq!(names(&home, IMPORTED), ["mail", "post-cursor", "new"], "{pruned}");
}

#[test]
fn another_server_of_the_name_gets_a_name_of_its_own() {
    for imports_first in [true, false] {
        let home = Home::new();
        home.write(CLAUDE, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
        home.ends(0, &["setup", "claude-desktop", "--move"]);
        let mut root = home.json(CLAUDE);
        root["mcpServers"]["mail"] = other();
        home.write(CLAUDE, &root.to_string());
        if imports_first {
            let imported = home.ends(0, &["config", "import"]);
            assert!(imported.contains("  mail: added as mail-claude-desktop, since another server has"), "{imported}");
            let again = home.ends(0, &["config", "import"]);
            assert!(again.contains("  mail: already present\n"), "{again}");
        }
        let moved = home.ends(0, &["setup", "claude-desktop", "--move"]);
        let note = "  mail: is mail-claude-desktop in lispbox, where another server has its name\n";
        assert!(moved.contains(note), "{moved}");
        let imported = home.json(IMPORTED)["mcpServers"].clone();
        assert_eq!(imported, json!({"mail": mailbox(), "mail-claude-desktop": other()}));
        home.ends(0, &["doctor"]);
        let undone = home.ends(0, &["setup", "claude-desktop", "--undo"]);
        assert!(undone.contains("  mail: put back as mail-claude-desktop, beside the other one\n"), "{undone}");
        assert_eq!(home.json(CLAUDE)["mcpServers"], imported);
        // What lispbox had from an import before stays.
        let left: &[&str] = if imports_first { &["mail-claude-desktop"] } else { &[] };
        assert_eq!(names(&home, IMPORTED), left);
    }
    // The first of them is in the record alone.
    let home = Home::new();
    home.write(CLAUDE, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    std::fs::remove_file(home.path(IMPORTED)).expect("removed");
    home.write(CLAUDE, &json!({"mcpServers": {"mail": other()}}).to_string());
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert_eq!(home.json(CLAUDE)["mcpServers"], json!({"mail": mailbox(), "mail-2": other()}));
}

#[test]
fn what_a_person_has_written_for_lispbox_stays_beside_them() {
    let home = Home::new();
    home.write(IMPORTED, &json!({"mcpServers": {"mail": other()}}).to_string());
    home.write(CLAUDE, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    let moved = home.ends(0, &["setup", "claude-desktop", "--move"]);
    let note = "  mail: is mail-claude-desktop in lispbox, where another server has its name\n";
    assert!(moved.contains(note), "{moved}");
    assert_eq!(home.json(IMPORTED)["mcpServers"], json!({"mail": other(), "mail-claude-desktop": mailbox()}));
    home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert_eq!(home.json(IMPORTED)["mcpServers"], json!({"mail": other()}));
    // One that was imported from the client follows it, and that is said.
    home.ends(0, &["config", "import"]);
    let mut root = home.json(CLAUDE);
    root["mcpServers"]["mail"]["env"] = json!({"X": "1"});
    home.write(CLAUDE, &root.to_string());
    let moved = home.ends(0, &["setup", "claude-desktop", "--move"]);
    let note = "  mail: lispbox had it with another env, and takes over that of Claude Desktop\n";
    assert!(moved.contains(note), "{moved}");
}

#[test]
fn a_damaged_record_of_one_client_keeps_no_other_from_its_servers() {
    let home = Home::new();
    let before = json!({"mcpServers": {"mail": mailbox()}});
    home.write(CLAUDE, &before.to_string());
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    home.write(CURSOR, "{}");
    home.ends(0, &["setup", "cursor"]);
    home.ends(0, &["setup", "windsurf"]);
    home.write(".config/lispbox/moved/windsurf.json", "{");
    home.ends(0, &["setup", "cursor", "--remove"]);
    let undone = home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert!(undone.contains("imported.json too, since not all records can be read\n"), "{undone}");
    assert_eq!((home.json(CLAUDE), names(&home, IMPORTED)), (before, vec!["mail".to_owned()]));
    assert!(home.ends(1, &["setup", "windsurf", "--remove"]).contains("move it away; the `.backup` beside"));
}
