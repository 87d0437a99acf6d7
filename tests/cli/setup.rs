//! `setup` beside whatever else writes the files of clients and of lispbox: the client, a person, another `setup`.
#![cfg(unix)]

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::desktop::{CLAUDE, Home, LISPBOX, mailbox, said};

const IMPORTED: &str = ".config/lispbox/config.d/imported.json";
const BACKUP: &str = ".config/Claude/claude_desktop_config.json.backup";
const CURSOR: &str = ".cursor/mcp.json";

/// A server that runs a script of the shell before it starts.
fn after(script: &str) -> Value {
    json!({"command": "sh", "args": ["-c", format!("{script}; exec '{LISPBOX}' sample-mailbox")]})
}

fn names(home: &Home, file: &str) -> Vec<String> {
    let root = home.json(file);
    root["mcpServers"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// The options behind `serve` in the entry for lispbox.
fn options(home: &Home, name: &str) -> Value {
    home.json(CLAUDE)["mcpServers"][name]["args"].clone()
}

#[test]
fn what_a_client_writes_while_its_servers_start_stays() {
    let home = Home::new();
    let (changed, file) = (home.path("changed.json"), home.path(CLAUDE));
    let server = after(&format!("cp '{}' '{}'", changed.display(), file.display()));
    let other = json!({"command": "sh", "args": ["-c", format!("exec '{LISPBOX}' sample-mailbox")]});
    home.write(CLAUDE, &json!({"starts": 5, "mcpServers": {"a": server, "edited": other}}).to_string());
    let later = json!({"starts": 6, "mcpServers": {"a": server, "edited": {"command": "x"}, "new": {"command": "y"}}});
    home.write("changed.json", &later.to_string());
    let moved = home.ends(0, &["setup", "claude-desktop", "--move"]);
    assert!(moved.contains("  edited: stays in Claude Desktop: it changed meanwhile\n"), "{moved}");
    assert!(moved.contains("1 of 2 servers moved into "), "{moved}");
    assert_eq!(names(&home, CLAUDE), ["edited", "new", "lispbox"]);
    assert_eq!(home.json(CLAUDE)["starts"], 6);
    assert_eq!(names(&home, IMPORTED), ["a"]);
    // If nothing is left to move, nothing is changed.
    let home = Home::new();
    let server = after(&format!("echo '{{}}' > '{}'", home.path(CLAUDE).display()));
    home.write(CLAUDE, &json!({"mcpServers": {"a": server}}).to_string());
    let refused = home.ends(1, &["setup", "claude-desktop", "--move"]);
    assert!(refused.contains("no server of Claude Desktop was moved, and nothing is changed"), "{refused}");
    assert!(home.json(CLAUDE) == json!({}) && !home.path(IMPORTED).exists());
}

/// Gives a folder and what is in it to another user.
fn give_away(folder: &Path, user: u32) {
    std::os::unix::fs::chown(folder, Some(user), Some(user)).expect("it is ours");
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        give_away(&entry.path(), user);
    }
}

/// The number of a user without rights, as whom the administrator can run a command.
const NOBODY: u32 = 65534;

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_a_server_starts() {
    let home = Home::new();
    let mark = home.path("marks/started");
    home.write("marks/x", "");
    home.write(CLAUDE, &json!({"mcpServers": {"a": after(&format!("touch '{}'", mark.display()))}}).to_string());
    let is_administrator = std::fs::metadata(home.0.path()).expect("a folder").uid() == 0;
    let program = home.path("lispbox");
    std::fs::copy(LISPBOX, &program).expect("a copy that every user can start");
    if is_administrator {
        give_away(home.0.path(), NOBODY);
    }
    let folder = home.path(CLAUDE).parent().expect("a folder").to_owned();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).expect("it is ours");
    let mut command = Command::new(program);
    command.args(["setup", "claude-desktop", "--move"]).env_clear().env("HOME", home.0.path());
    if is_administrator {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().expect("it runs");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("claude_desktop_config.json: Permission denied"), "{}", said(&output));
    assert!(!mark.exists() && !home.path(".config/lispbox").exists());
}

#[test]
fn the_files_of_another_user_are_left_to_that_user() {
    let home = Home::new();
    if std::fs::metadata(home.0.path()).expect("a folder").uid() != 0 {
        return;
    }
    let file = home.write(CLAUDE, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    // A file keeps its owner.
    std::os::unix::fs::chown(&file, Some(NOBODY), Some(NOBODY)).expect("it is ours");
    home.ends(0, &["setup", "claude-desktop"]);
    for file in [file, home.path(BACKUP)] {
        let metadata = std::fs::metadata(file).expect("it is there");
        assert_eq!((metadata.uid(), metadata.gid()), (NOBODY, NOBODY));
    }
    // In the home folder of another user, nothing is written.
    give_away(home.0.path(), NOBODY);
    for arguments in [&["setup", "claude-desktop", "--move"][..], &["setup", "cursor"], &["config", "import"]] {
        let refused = home.ends(2, arguments);
        assert!(refused.contains("the home folder belongs to another user; run it without sudo"), "{refused}");
    }
    assert_eq!(of_administrator(home.0.path()), Vec::<PathBuf>::new());
}

/// The files in a folder that belong to the administrator.
fn of_administrator(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.flat_map(|entry| of_administrator(&entry.path())).collect();
    if std::fs::metadata(folder).is_ok_and(|metadata| metadata.uid() == 0) {
        found.push(folder.to_owned());
    }
    found
}

#[test]
fn a_file_that_is_mounted_by_itself_is_written_in_its_place() {
    let is_possible =
        Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|output| output.status.success());
    if !is_possible {
        return;
    }
    let before = json!({"mcpServers": {"mail": mailbox()}});
    let run = |mount: &str| {
        let home = Home::new();
        let file = home.write(CLAUDE, &before.to_string());
        let script = format!("{mount} && exec \"$0\" setup claude-desktop --move");
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script, LISPBOX]).arg(file).env("HOME", home.0.path());
        command.env_remove("XDG_CONFIG_HOME").env_remove("LISPBOX_CONFIG");
        (command.output().expect("it runs"), home)
    };
    let (output, home) = run("mount --bind \"$1\" \"$1\"");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!((names(&home, CLAUDE), names(&home, IMPORTED)), (vec!["lispbox".into()], vec!["mail".to_owned()]));
    assert_eq!(home.json(BACKUP), before);
    // If that is not possible either, lispbox has no more than before.
    let (output, home) = run("mount --bind \"$1\" \"$1\" && mount -o remount,ro,bind \"$1\"");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("Read-only file system"), "{}", said(&output));
    assert_eq!(home.json(CLAUDE), before);
    assert!(!home.path(IMPORTED).exists() && !home.path(BACKUP).exists());
    assert!(!home.path(".config/lispbox/moved/claude-desktop.json").exists());
}

#[test]
fn two_setups_at_once_lose_no_server() {
    let home = Home::new();
    for pipe in ["first", "second"] {
        assert!(Command::new("mkfifo").arg(home.path(pipe)).status().expect("it runs").success());
    }
    // Each waits until the server of the other one is starting, so that both write at about the same time.
    let (first, second) = (home.path("first").display().to_string(), home.path("second").display().to_string());
    let one = after(&format!("echo > '{first}'; read line < '{second}'"));
    let two = after(&format!("read line < '{first}'; echo > '{second}'"));
    home.write(CLAUDE, &json!({"mcpServers": {"one": one}}).to_string());
    home.write(CURSOR, &json!({"mcpServers": {"two": two}}).to_string());
    let start =
        |client: &str| home.command(&["setup", client, "--move"]).stdout(Stdio::null()).spawn().expect("it runs");
    let running = [start("claude-desktop"), start("cursor")];
    for mut process in running {
        assert!(process.wait().expect("it ends").success());
    }
    let mut moved = names(&home, IMPORTED);
    moved.sort();
    assert_eq!(moved, ["one", "two"]);
}

#[test]
fn an_import_beside_a_setup_loses_no_server() {
    let home = Home::new();
    home.write(CURSOR, &json!({"mcpServers": {"imported": mailbox()}}).to_string());
    // While its server starts, servers of another client are imported.
    let import = format!("'{LISPBOX}' config import --from cursor > '{}'", home.path("said").display());
    home.write(CLAUDE, &json!({"mcpServers": {"moved": after(&import)}}).to_string());
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    assert_eq!(names(&home, IMPORTED), ["imported", "moved"]);
    // An import waits while another process writes.
    let lock = std::fs::File::create(home.path(".config/lispbox/setup.lock")).expect("it is ours");
    lock.lock().expect("nobody else has it");
    home.write(CURSOR, &json!({"mcpServers": {"late": mailbox()}}).to_string());
    let mut import = home.command(&["config", "import"]).stdout(Stdio::null()).spawn().expect("it runs");
    home.write(IMPORTED, &json!({"mcpServers": {"meanwhile": mailbox()}}).to_string());
    drop(lock);
    assert!(import.wait().expect("it ends").success());
    assert_eq!(names(&home, IMPORTED), ["meanwhile", "late"]);
}

#[test]
fn what_several_clients_have_moved_stays_until_the_last_takes_it_back() {
    let home = Home::new();
    let before = json!({"mcpServers": {"mail": mailbox()}});
    home.write(CLAUDE, &before.to_string());
    home.write(CURSOR, &before.to_string());
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    home.ends(0, &["setup", "cursor", "--move"]);
    home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert_eq!((names(&home, IMPORTED), home.json(CLAUDE)), (vec!["mail".to_owned()], before.clone()));
    home.ends(0, &["setup", "cursor", "--undo"]);
    assert_eq!((names(&home, IMPORTED), home.json(CURSOR)), (Vec::new(), before.clone()));
    // What was imported before stays.
    home.ends(0, &["config", "import", "--from", "cursor"]);
    home.ends(0, &["setup", "cursor", "--move"]);
    home.ends(0, &["setup", "cursor", "--undo"]);
    assert_eq!((names(&home, IMPORTED), home.json(CURSOR)), (vec!["mail".to_owned()], before));
}

#[test]
fn undo_cleans_up_after_a_person_who_has_put_the_servers_back() {
    let home = Home::new();
    let before = json!({"mcpServers": {"mail": mailbox()}}).to_string();
    home.write(CLAUDE, &before);
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    home.write(CLAUDE, &before);
    let undone = home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert!(undone.contains("it has its servers; what lispbox had of them is removed"), "{undone}");
    assert_eq!(std::fs::read_to_string(home.path(CLAUDE)).expect("it is there"), before);
    assert!(names(&home, IMPORTED).is_empty());
    assert!(home.ends(2, &["setup", "claude-desktop", "--undo"]).contains("no servers were moved"));
}

#[test]
fn undo_says_what_lispbox_keeps() {
    let home = Home::new();
    let before = json!({"mcpServers": {"mail": mailbox()}}).to_string();
    home.write(CLAUDE, &before);
    home.ends(0, &["config", "import"]);
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    home.write(CLAUDE, &before);
    let undone = home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert!(undone.contains("it has its servers; lispbox keeps `mail` too\n"), "{undone}");
    assert_eq!(names(&home, IMPORTED), ["mail"]);
}

#[test]
fn lispbox_is_not_to_be_removed_by_hand_while_servers_are_behind_it() {
    let home = Home::new();
    let commented = |home: &Home| {
        let text = std::fs::read_to_string(home.path(CLAUDE)).expect("it is there");
        home.write(CLAUDE, &format!("// mine\n{text}"));
        text
    };
    home.write(CLAUDE, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    let text = commented(&home);
    for option in ["--undo", "--remove"] {
        let refused = home.ends(1, &["setup", "claude-desktop", option]);
        let expected = "would be lost; take them out, and repeat: servers of Claude Desktop are behind lispbox";
        assert!(refused.contains(expected) && !refused.contains("by hand"), "{refused}");
    }
    home.write(CLAUDE, &text);
    home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert_eq!(names(&home, CLAUDE), ["mail"]);
    home.ends(0, &["setup", "claude-desktop"]);
    commented(&home);
    assert!(home.ends(1, &["setup", "claude-desktop", "--remove"]).contains("; remove `mcpServers.lispbox` by hand"));
}

#[test]
fn undo_keeps_what_it_does_not_put_back() {
    let home = Home::new();
    home.write(CLAUDE, &json!({"mcpServers": {"a": mailbox(), "b": after("true"), "c": after(":")}}).to_string());
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    // Meanwhile the client has another `a`, and a person has edited `b` where it is now.
    let mut root = home.json(CLAUDE);
    root["mcpServers"]["a"] = json!({"command": "another"});
    home.write(CLAUDE, &root.to_string());
    let mut imported = home.json(IMPORTED);
    imported["mcpServers"]["b"]["tools"] = json!({"block": ["send-*"]});
    home.write(IMPORTED, &imported.to_string());

    let dry = home.ends(0, &["setup", "claude-desktop", "--undo", "--dry-run"]);
    assert!(dry.contains("  a: not put back, Claude Desktop has another server of that name\n"), "{dry}");
    let undone = home.ends(0, &["setup", "claude-desktop", "--undo"]);
    for part in [
        "  a: not put back, Claude Desktop has another server of that name\n",
        "imported.json too, since it was changed there\n",
        "+     \"b\": …",
        "+     \"c\": …",
        "the previous file of lispbox is ",
    ] {
        assert!(undone.contains(part), "{part}: {undone}");
    }
    assert!(!undone.contains("\"a\": …"), "{undone}");
    assert_eq!(names(&home, CLAUDE), ["a", "b", "c"]);
    assert_eq!(names(&home, IMPORTED), ["a", "b"]);

    // As soon as the name is free, it can be put back.
    let mut root = home.json(CLAUDE);
    root["mcpServers"].as_object_mut().expect("servers").remove("a");
    home.write(CLAUDE, &root.to_string());
    home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert_eq!(home.json(CLAUDE)["mcpServers"]["a"], mailbox());
    assert_eq!(names(&home, IMPORTED), ["b"]);
}

#[test]
fn each_file_of_a_client_gets_its_own_servers_back() {
    let home = Home::new();
    for (file, name) in [("one.json", "a"), ("two.json", "b")] {
        home.write(file, &json!({"mcpServers": {name: mailbox()}}).to_string());
        home.ends(0, &["setup", "cursor", "--file", file, "--move"]);
    }
    // The command that takes it back can be repeated as it is said.
    home.write("Ann's/servers.json", &json!({"mcpServers": {"c": mailbox()}}).to_string());
    let moved = home.ends(0, &["setup", "cursor", "--file", "Ann's/servers.json", "--move"]);
    let undo = format!(
        "setup cursor --file '{}' --undo",
        home.path("Ann's/servers.json").display().to_string().replace('\'', r"'\''")
    );
    assert!(moved.contains(&format!("`lispbox {undo}` takes this back")), "{moved}");
    let refused = home.ends(2, &["setup", "cursor", "--file", "Ann's/servers.json", "--remove"]);
    assert!(refused.contains(&format!("`lispbox {undo}` puts it back")), "{refused}");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("'{LISPBOX}' {undo}")]).env_clear().env("HOME", home.0.path()).current_dir("/");
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(names(&home, "Ann's/servers.json"), ["c"]);
    let refused = home.ends(2, &["setup", "cursor", "--undo"]);
    let (one, two) = (home.path("one.json"), home.path("two.json"));
    let expected = format!(
        "the servers of Cursor were moved out of {} and {}; give `--file {}`",
        one.display(),
        two.display(),
        one.display()
    );
    assert!(refused.contains(&expected), "{refused}");
    home.ends(0, &["setup", "cursor", "--file", "one.json", "--undo"]);
    assert_eq!((names(&home, "one.json"), names(&home, "two.json")), (vec!["a".into()], vec!["lispbox".to_owned()]));
    home.ends(0, &["setup", "cursor", "--file", "two.json", "--undo"]);
    assert_eq!((names(&home, "two.json"), names(&home, IMPORTED)), (vec!["b".to_owned()], Vec::new()));
}

#[test]
fn a_record_of_an_earlier_version_belongs_to_the_usual_file() {
    let home = Home::new();
    let record = json!({"servers": {"mail": {"entry": mailbox(), "imported": "mail"}}});
    home.write(".config/lispbox/moved/claude-desktop.json", &record.to_string());
    home.write(IMPORTED, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    home.write(CLAUDE, &json!({"mcpServers": {}}).to_string());
    home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert_eq!((names(&home, CLAUDE), names(&home, IMPORTED)), (vec!["mail".to_owned()], Vec::new()));
}

#[test]
fn what_a_person_has_added_to_the_entry_stays() {
    let home = Home::new();
    home.write("servers.json", "{}");
    let config = home.path("servers.json").display().to_string();
    let entry = json!({"command": "/old/lispbox", "env": {"A": "1"}, "args": ["serve", "--config", config, "--deny", "x", "--audit", "D"]});
    home.write(CLAUDE, &json!({"mcpServers": {"lispbox": entry, "mail": mailbox()}}).to_string());
    home.ends(0, &["setup", "claude-desktop", "--guards", "careful"]);
    let expected =
        json!(["serve", "--config", config, "--deny", "x", "--audit", "D", "--guards", "careful", "--approve-tool"]);
    assert_eq!(options(&home, "lispbox"), expected);
    assert_eq!(home.json(CLAUDE)["mcpServers"]["lispbox"]["command"], LISPBOX);
    assert_eq!(home.json(CLAUDE)["mcpServers"]["lispbox"]["env"], json!({"A": "1"}));
    assert!(home.ends(0, &["setup", "claude-desktop"]).contains("has lispbox already"));
    // Servers would move to where that lispbox does not look.
    let refused = home.ends(2, &["setup", "claude-desktop", "--move"]);
    assert!(refused.contains("lispbox has `--config` in Claude Desktop, and does not read the folder"), "{refused}");
    home.ends(0, &["setup", "claude-desktop", "--guards", "strict"]);
    assert_eq!(options(&home, "lispbox")[8], "strict");

    home.write(CLAUDE, &json!({"mcpServers": {"mail": mailbox()}}).to_string());
    home.ends(0, &["setup", "claude-desktop", "--guards", "careful"]);
    let moved = home.ends(0, &["setup", "claude-desktop", "--move"]);
    assert!(!moved.contains("with `--guards careful`"), "{moved}");
    assert_eq!(options(&home, "lispbox"), json!(["serve", "--guards", "careful", "--approve-tool"]));
}

#[test]
fn lispbox_is_attached_once_and_never_in_place_of_another_server() {
    let home = Home::new();
    let tools = json!({"command": "npx", "args": ["-y", "lispbox@0.0.1", "serve", "--deny", "x"]});
    home.write(CLAUDE, &json!({"mcpServers": {"tools": tools}}).to_string());
    let attached = home.ends(0, &["setup", "claude-desktop"]);
    assert!(attached.contains("    \"tools\": {"), "{attached}");
    assert_eq!(names(&home, CLAUDE), ["tools"]);
    assert_eq!(options(&home, "tools"), json!(["serve", "--deny", "x", "--approve-tool"]));
    home.ends(0, &["setup", "claude-desktop", "--remove"]);
    assert!(names(&home, CLAUDE).is_empty());
    for other in
        [json!({"type": "http", "url": "http://127.0.0.1:1/mcp"}), json!({"command": "other", "args": ["serve"]})]
    {
        let before = json!({"mcpServers": {"lispbox": other}}).to_string();
        home.write(CLAUDE, &before);
        for option in [&[][..], &["--move"]] {
            let refused = home.ends(1, &[&["setup", "claude-desktop"], option].concat());
            assert!(refused.contains("`lispbox` is another server there"), "{refused}");
        }
        assert!(home.ends(0, &["setup", "claude-desktop", "--remove"]).contains("does not have lispbox"));
        assert_eq!(std::fs::read_to_string(home.path(CLAUDE)).expect("it is there"), before);
    }
}

#[test]
fn this_binary_is_lispbox_whatever_its_name_is() {
    let home = Home::new();
    let renamed = home.path("other-name");
    std::os::unix::fs::symlink(LISPBOX, &renamed).expect("a link");
    let before = json!({"mcpServers": {"lispbox": {"command": renamed, "args": ["serve", "--deny", "x"]}, "mail": {"command": renamed, "args": ["sample-mailbox"]}}});
    home.write(CLAUDE, &before.to_string());
    let imported = home.ends(0, &["config", "import"]);
    assert!(
        imported.contains("lispbox: left out, it is lispbox itself") && imported.contains("mail: added"),
        "{imported}"
    );
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    assert_eq!(options(&home, "lispbox"), json!(["serve", "--deny", "x", "--approve-tool"]));
    assert_eq!((names(&home, CLAUDE), names(&home, IMPORTED)), (vec!["lispbox".into()], vec!["mail".to_owned()]));
}

#[test]
fn a_server_that_asks_for_a_login_stays_with_the_commands_that_log_in() {
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    home.write(CURSOR, &json!({"mcpServers": {"linear": {"url": url}, "mail": mailbox()}}).to_string());
    let moved = home.ends(0, &["setup", "cursor", "--move"]);
    let expected = "log in with `lispbox login linear`, after `lispbox config import --from cursor`; then repeat\n";
    assert!(moved.contains("  linear: stays in Cursor: ") && moved.contains(expected), "{moved}");
    home.ends(0, &["config", "import", "--from", "cursor"]);
    let login = home.ends(1, &["login", "linear"]);
    assert!(!login.contains("there is no server"), "{login}");
}

#[test]
fn moved_servers_are_neither_pruned_nor_left_behind() {
    let home = Home::new();
    let before = json!({"mcpServers": {"mail": mailbox()}});
    home.write(CLAUDE, &before.to_string());
    home.ends(0, &["setup", "claude-desktop", "--move"]);
    let pruned = home.ends(0, &["config", "import", "--prune"]);
    assert!(pruned.contains("  mail: kept, moved here from Claude Desktop\n"), "{pruned}");
    assert_eq!(names(&home, IMPORTED), ["mail"]);
    let refused = home.ends(2, &["setup", "claude-desktop", "--remove"]);
    let expected = "1 server of Claude Desktop moved into lispbox, and would be lost to it; `lispbox setup claude-desktop \
                    --undo` puts it back and removes lispbox";
    assert!(refused.contains(expected), "{refused}");
    assert_eq!(names(&home, CLAUDE), ["lispbox"]);
    home.ends(0, &["setup", "claude-desktop", "--undo"]);
    assert_eq!(home.json(CLAUDE), before);
    home.ends(0, &["setup", "claude-desktop"]);
    home.ends(0, &["setup", "claude-desktop", "--remove"]);
}
