//! Where commands are found: each login shell is asked by its own arguments, and has time for what it does at its start;
//! the names of nvm for its versions are followed.
#![cfg(unix)]

use std::path::Path;

use serde_json::json;

use crate::desktop::{Home, said};
use crate::mcp_client::until;

const LISPBOX: &str = env!("CARGO_BIN_EXE_lispbox");

/// Runs `config check` with a server whose command is in `tools` of the home folder, and with this shell.
fn checked(home: &Home, shell: &Path) -> String {
    home.script("tools/mail-of-tests", &format!("#!/bin/sh\nexec '{LISPBOX}' sample-mailbox\n"));
    home.write("servers.json", &json!({"mcpServers": {"mail": {"command": "mail-of-tests"}}}).to_string());
    let mut command = home.command(&["config", "check", "--config", "servers.json"]);
    said(&command.env("SHELL", shell).output().expect("it runs"))
}

fn finds(home: &Home, shell: &Path) {
    let checked = checked(home, shell);
    let name = shell.file_name().unwrap_or_default().to_string_lossy();
    let line = format!("on the PATH of the login shell `{name}`\n");
    assert!(checked.contains("ok      mail: 6 tools") && checked.contains(&line), "{}: {checked}", shell.display());
}

#[test]
fn a_shell_with_the_syntax_of_c_is_a_login_shell_by_its_name() {
    for name in ["tcsh", "csh"] {
        // It takes `-l` only if it is alone.
        let home = Home::new();
        let strict = "#!/bin/sh\n[ \"$1 $2\" = '-i -c' ] && [ $# = 3 ] || exit 1\n\
                      PATH=\"$HOME/tools:/usr/bin:/bin\"\nexport PATH\neval \"$3\"\n";
        finds(&home, &home.script(name, strict));
        // This one reads `.bash_profile` if its name begins with `-`, and not otherwise.
        let home = Home::new();
        home.write(".bash_profile", "export PATH=\"$HOME/tools:/usr/bin:/bin\"\n");
        let link = home.path(name);
        std::os::unix::fs::symlink("/bin/bash", &link).expect("made");
        finds(&home, &link);
    }
}

#[test]
fn a_shell_is_asked_by_one_program_with_its_words_in_quotes() {
    // Nushell and fish have other ways to separate commands and to name variables.
    let home = Home::new();
    let plain = "#!/bin/sh\n[ \"$1 $2 $3\" = '-l -i -c' ] && [ $# = 4 ] || exit 1\n\
                 inner=${4#\"/bin/sh -c '\"}\n[ \"$inner\" != \"$4\" ] || exit 1\ninner=${inner%\"'\"}\n\
                 case $inner in *\"'\"*) exit 1 ;; esac\n\
                 PATH=\"$HOME/tools:/usr/bin:/bin\" exec /bin/sh -c \"$inner\"\n";
    finds(&home, &home.script("nu", plain));
}

#[test]
fn the_shells_of_this_machine_are_understood() {
    let path = "$HOME/tools:/usr/bin:/bin";
    let list = "($env.HOME + '/tools') '/usr/bin' '/bin'";
    for (name, file, text) in [
        ("sh", ".profile", format!("PATH={path}; export PATH")),
        ("bash", ".bash_profile", format!("echo welcome; export PATH={path}")),
        ("zsh", ".zshrc", format!("echo welcome; export PATH={path}")),
        ("fish", ".config/fish/config.fish", "echo welcome; set -gx PATH $HOME/tools /usr/bin /bin".to_owned()),
        ("tcsh", ".tcshrc", "echo welcome; set path = ( $HOME/tools /usr/bin /bin )".to_owned()),
        ("tcsh", ".login", format!("setenv PATH {path}")),
        ("csh", ".login", format!("setenv PATH {path}")),
        ("nu", ".config/nushell/config.nu", format!("$env.PATH = [{list}]")),
    ] {
        let shells = ["/bin", "/usr/bin", "/usr/local/bin"].map(|folder| Path::new(folder).join(name));
        match shells.into_iter().find(|shell| shell.is_file()) {
            Some(shell) => {
                let home = Home::new();
                home.write(file, &format!("{text}\n"));
                finds(&home, &shell);
            }
            None => println!("SKIPPED: there is no {name} on this machine"),
        }
    }
}

#[test]
fn a_shell_has_time_for_what_it_does_at_its_start() {
    let home = Home::new();
    let answer = "PATH=\"$HOME/tools:/usr/bin:/bin\"\nexport PATH\neval \"$4\"\n";
    finds(&home, &home.script("slow", &format!("#!/bin/sh\nsleep 3\n{answer}")));
    let loud = format!("#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\n{answer}");
    finds(&home, &home.script("loud", &loud));
}

#[test]
fn a_shell_without_an_answer_is_told_from_one_that_has_ended() {
    let home = Home::new();
    for (name, text, why) in [
        ("ends", "exit 0", "ended without saying its own"),
        ("fails", "exit 1", "ended without saying its own"),
        ("hangs", "exec sleep 600", "did not say its own within 10 s"),
    ] {
        let shell = home.script(name, &format!("#!/bin/sh\n{text}\n"));
        let checked = checked(&home, &shell);
        let expected =
            format!("it was looked for on PATH (the login shell `{name}` {why}) and in the usual folders of");
        assert!(
            checked.contains("the command `mail-of-tests` was not found") && checked.contains(&expected),
            "{checked}"
        );
    }
    // A server with less time for its start does not wait longer.
    let server = json!({"command": "mail-of-tests", "start_timeout_seconds": 1});
    home.write("short.json", &json!({"mcpServers": {"mail": server}}).to_string());
    let mut command = home.command(&["config", "check", "--config", "short.json"]);
    let short = said(&command.env("SHELL", home.path("hangs")).output().expect("it runs"));
    assert!(short.contains("the login shell did not say within 1 s where it is"), "{short}");
}

#[test]
fn the_default_of_nvm_may_be_a_name_that_stands_for_another_one() {
    let home = Home::new();
    for version in ["v18.1.0", "v22.1.0"] {
        let file = format!(".nvm/versions/node/{version}/bin/mail-of-tests");
        home.script(&file, &format!("#!/bin/sh\nexec '{LISPBOX}' sample-mailbox\n"));
    }
    home.write(".nvm/alias/lts/hydrogen", "v18.1.0\n");
    home.write(".nvm/alias/lts/*", "lts/hydrogen\n");
    home.write("servers.json", &json!({"mcpServers": {"mail": {"command": "mail-of-tests"}}}).to_string());
    for (default, version) in [("lts/hydrogen", "v18.1.0"), ("lts/*", "v18.1.0"), ("node", "v22.1.0")] {
        home.write(".nvm/alias/default", &format!("{default}\n"));
        let mut command = home.command(&["config", "check", "--config", "servers.json"]);
        let checked = said(&command.env("SHELL", "/bin/false").output().expect("it runs"));
        let file = home.path(&format!(".nvm/versions/node/{version}/bin/mail-of-tests"));
        let line = format!("command mail: {}, in the usual folder of nvm\n", file.display());
        assert!(checked.contains(&line), "{default}: {checked}");
    }
}

#[test]
fn a_server_goes_on_while_a_slow_shell_is_asked() {
    let home = Home::new();
    home.script("tools/mail-of-tests", &format!("#!/bin/sh\nexec '{LISPBOX}' sample-mailbox\n"));
    let servers = json!({"mcpServers": {"mail": {"command": "mail-of-tests"}}});
    home.write(".config/lispbox/config.d/servers.json", &servers.to_string());
    // The usual shell of this system waits for a file.
    let waits =
        "touch \"$HOME/asked\"\nuntil [ -e \"$HOME/go\" ]; do sleep 0.1; done\nPATH=\"$HOME/tools:/usr/bin:/bin\"\n";
    for profile in [".bash_profile", ".zprofile", ".profile"] {
        home.write(profile, &format!("{waits}export PATH\n"));
    }
    let mut client = home.client();
    until(|| home.path("asked").exists());
    assert_eq!(client.eval("(+ 1 2)").text.lines().next(), Some("3"));
    home.write("go", "");
    let answer = client.eval("(count (mail/fetch-emails {:limit 2}))");
    assert!(answer.text.starts_with('2'), "{}", answer.text);
}
