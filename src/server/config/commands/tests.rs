use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use super::*;

/// A name that no real folder has.
const SERVER: &str = "a-server-for-tests";

/// A home folder in an otherwise empty environment.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn write(&self, file: &str, text: &str) -> PathBuf {
        let file = self.path(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("created");
        fs::write(&file, text).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
        file
    }

    /// A search whose environment has this home folder, a shell without an answer, and these variables.
    fn commands(&self, variables: &[(&str, &Path)]) -> Commands {
        let mut all: BTreeMap<String, OsString> =
            BTreeMap::from([("HOME".to_owned(), self.0.path().into()), ("SHELL".to_owned(), "/bin/false".into())]);
        all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))));
        Commands::in_environment(move |name| all.get(name).cloned())
    }
}

async fn find(commands: &Commands) -> Taken {
    commands.find(SERVER, &BTreeMap::new(), true).await
}

#[tokio::test]
async fn each_usual_folder_is_found_in_an_empty_environment() {
    for (folder, owner) in [
        (".nvm/versions/node/v20.11.1/bin", "nvm"),
        (".local/share/fnm/node-versions/v22.1.0/installation/bin", "fnm"),
        (".local/share/fnm/aliases/default/bin", "fnm"),
        (".fnm/aliases/default/bin", "fnm"),
        ("Library/Application Support/fnm/aliases/default/bin", "fnm"),
        (".volta/bin", "Volta"),
        (".asdf/shims", "asdf"),
        (".local/share/mise/shims", "mise"),
        (".local/bin", "uv and pipx"),
        (".cargo/bin", "Cargo"),
        (".bun/bin", "Bun"),
        (".deno/bin", "Deno"),
        (".local/share/pnpm", "pnpm"),
        ("Library/pnpm", "pnpm"),
        (".npm-global/bin", "Node"),
        (".docker/bin", "Docker"),
        (".linuxbrew/bin", "Homebrew"),
    ] {
        let home = Home::new();
        let file = home.write(&format!("{folder}/{SERVER}"), "");
        let taken = find(&home.commands(&[])).await;
        assert_eq!(taken.program, file, "{folder}");
        let path = taken.path.clone().unwrap_or_default();
        let first = std::env::split_paths(&path).next();
        assert_eq!(first, Some(home.path(folder)), "its interpreter is beside it");
        assert!(std::env::split_paths(&path).any(|folder| folder == Path::new("/usr/bin")), "{path:?}");
        assert_eq!(taken.line(), Some(format!("{}, in the usual folder of {owner}", file.display())));
    }
}

#[tokio::test]
async fn variables_move_the_usual_folders() {
    for (variable, folder, owner) in [
        ("NVM_DIR", "versions/node/v20.11.1/bin", "nvm"),
        ("FNM_DIR", "aliases/default/bin", "fnm"),
        ("VOLTA_HOME", "bin", "Volta"),
        ("ASDF_DATA_DIR", "shims", "asdf"),
        ("MISE_DATA_DIR", "shims", "mise"),
        ("UV_TOOL_BIN_DIR", "", "uv and pipx"),
        ("PIPX_BIN_DIR", "", "uv and pipx"),
        ("CARGO_HOME", "bin", "Cargo"),
        ("PNPM_HOME", "", "pnpm"),
        ("HOMEBREW_PREFIX", "bin", "Homebrew"),
    ] {
        let (home, elsewhere) = (Home::new(), Home::new());
        let file = elsewhere.write(&Path::new(folder).join(SERVER).to_string_lossy(), "");
        let taken = find(&home.commands(&[(variable, elsewhere.0.path())])).await;
        assert_eq!(taken.line(), Some(format!("{}, in the usual folder of {owner}", file.display())), "{variable}");
    }
}

#[tokio::test]
async fn of_several_versions_the_default_is_taken_or_else_the_newest() {
    let home = Home::new();
    for version in ["v9.11.2", "v20.2.0", "v20.11.1", "v22.0.0", "not-a-version"] {
        home.write(&format!(".nvm/versions/node/{version}/bin/{SERVER}"), "");
    }
    let taken = async || find(&home.commands(&[])).await.program;
    assert_eq!(taken().await, home.path(&format!(".nvm/versions/node/v22.0.0/bin/{SERVER}")));
    // Names stand for others.
    for (name, text) in [
        ("lts/iron", "v20.2.0"),
        ("lts/argon", "v4.9.1"),
        ("lts/*", "lts/iron\n"),
        ("mine", "lts/*"),
        ("a", "b"),
        ("b", "a"),
    ] {
        home.write(&format!(".nvm/alias/{name}"), text);
    }
    for (default, version) in [
        ("20", "v20.11.1"),
        ("v20.2.0\n", "v20.2.0"),
        ("lts/iron", "v20.2.0"),
        ("lts/*", "v20.2.0"),
        ("mine", "v20.2.0"),
        ("node", "v22.0.0"),
        ("stable", "v22.0.0"),
        ("lts/argon", "v22.0.0"),
        ("lts/unknown", "v22.0.0"),
        ("a", "v22.0.0"),
    ] {
        home.write(".nvm/alias/default", default);
        assert_eq!(taken().await, home.path(&format!(".nvm/versions/node/{version}/bin/{SERVER}")), "{default}");
    }
}

#[tokio::test]
async fn the_login_shell_is_asked_once_and_before_the_usual_folders() {
    let home = Home::new();
    home.write(&format!(".cargo/bin/{SERVER}"), "");
    let file = home.write(&format!("of-shell/{SERVER}"), "");
    let shell = home.write(
        "my-shell",
        "#!/bin/sh\necho asked >> \"$HOME/asked\"\necho welcome\nPATH=\"$HOME/of-shell:/usr/bin:/bin\"\nexport PATH\neval \"$4\"\n",
    );
    let commands = home.commands(&[("SHELL", &shell)]);
    for _ in 0..2 {
        let taken = find(&commands).await;
        assert_eq!(taken.line(), Some(format!("{}, on the PATH of the login shell `my-shell`", file.display())));
        let path = taken.path.unwrap_or_default();
        assert_eq!(std::env::split_paths(&path).next(), Some(home.path("of-shell")));
    }
    assert_eq!(fs::read_to_string(home.path("asked")).expect("it was asked"), "asked\n");
}

#[tokio::test]
async fn a_command_on_path_is_taken_from_there_and_no_shell_is_asked() {
    let home = Home::new();
    let file = home.write(&format!("own/{SERVER}"), "");
    let shell = home.write("my-shell", "#!/bin/sh\necho asked > \"$HOME/asked\"\n");
    let commands = home.commands(&[("SHELL", &shell), ("PATH", &home.path("own"))]);
    let taken = find(&commands).await;
    assert_eq!(taken, Taken { program: SERVER.into(), path: None, place: Where::OnPath(file.clone()) });
    let own = BTreeMap::from([("PATH".to_owned(), home.path("own").display().to_string())]);
    let taken = home.commands(&[("SHELL", &shell)]).find(SERVER, &own, true).await;
    assert_eq!(taken.line(), Some(format!("{}, on the PATH of its `env`", file.display())));
    assert!(!home.path("asked").exists());
}

#[tokio::test]
async fn a_shell_that_does_not_answer_costs_two_seconds_where_a_usual_folder_has_the_command() {
    let home = Home::new();
    let file = home.write(&format!(".cargo/bin/{SERVER}"), "");
    let shell = home.write("my-shell", "#!/bin/sh\nexec sleep 600\n");
    let begun = Instant::now();
    let taken = find(&home.commands(&[("SHELL", &shell)])).await;
    assert_eq!(taken.program, file);
    let took = begun.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(20)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_missing_command_says_where_it_was_looked_for() {
    let home = Home::new();
    let silent = home.commands(&[]);
    assert_eq!(
        find(&silent).await.why_not("not found".to_owned()),
        "not found; it was looked for on PATH (the login shell `false` ended without saying its own) and in the usual \
         folders of Node, nvm, fnm, Volta, asdf, mise, Homebrew, uv, pipx, Cargo, Bun, Deno, pnpm and Docker; give its whole \
         path, or a `PATH` in `env`"
    );
    let shell = home.write("my-shell", "#!/bin/sh\nPATH=\"$PATH:/usr/bin:/bin\"\nexport PATH\neval \"$4\"\n");
    let commands = home.commands(&[("SHELL", &shell), ("PATH", &home.path("tools"))]);
    let missing = commands.find("uvx-of-tests", &BTreeMap::new(), true).await;
    assert_eq!(
        missing.missing().map(|places| places.split(" and in").next().unwrap_or_default()),
        Some("it was looked for on PATH, on the PATH of the login shell `my-shell`,")
    );
    let own = BTreeMap::from([("PATH".to_owned(), "/nowhere".to_owned())]);
    let missing = commands.find(SERVER, &own, true).await;
    assert_eq!(
        missing.missing(),
        Some(
            "it was looked for on the PATH that its `env` sets; add the folder of the command there, or `${PATH}`, the PATH of lispbox"
        )
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_run_is_passed_over() {
    let home = Home::new();
    let plain = home.write(&format!("own/{SERVER}"), "");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("plain");
    let commands = home.commands(&[("PATH", &home.path("own"))]);
    assert_eq!(find(&commands).await.unrunnable(), Some(&*plain));
    let file = home.write(&format!(".cargo/bin/{SERVER}"), "");
    assert_eq!(find(&commands).await.program, file);
}

#[tokio::test]
async fn an_interpreter_beside_a_command_is_found() {
    let home = Home::new();
    let commands = home.commands(&[]);
    let file = home.write(&format!("node/bin/{SERVER}"), "").display().to_string();
    let taken = commands.find(&file, &BTreeMap::new(), true).await;
    let expected = format!("/usr/bin:/bin:{}", home.path("node/bin").display());
    assert_eq!((taken.program, taken.path), (file.into(), Some(expected.into())));
    // A launcher starts others by name.
    home.write(&format!(".cargo/bin/{SERVER}"), "");
    let path = commands.find("sh", &BTreeMap::new(), true).await.path.expect("a longer PATH");
    assert!(std::env::split_paths(&path).any(|folder| folder == home.path(".cargo/bin")), "{path:?}");
}

#[test]
fn windows_has_endings() {
    let names = |file: &str, takes_scripts| -> Vec<String> {
        let spellings = spellings(PathBuf::from(file), takes_scripts, true);
        spellings.iter().map(|file| file.display().to_string()).collect()
    };
    assert_eq!(names("npx", true), ["npx.exe", "npx.com", "npx.cmd", "npx.bat"]);
    assert_eq!(names("npx", false), ["npx.exe", "npx.com"]);
    assert_eq!(names("npx.cmd", true), ["npx.cmd"]);
}
