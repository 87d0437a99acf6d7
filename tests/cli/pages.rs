//! Checks the consoles and configurations of README.md and docs/*.md: runs the commands, compares their output, and
//! parses the configurations.
//!
//! A block marked `console` has commands after `$ `, each followed by its output, including standard error. In a block
//! marked `sh`, `bash` or `shell`, and in an indented or unmarked one that begins with a known command, each command
//! must exit with 0. `lispbox serve --http` runs until the next such command or the end of the page. In expected
//! output, `…` matches any text within a line, and a line of only `…` matches any number of lines. A comment in the
//! line above a block gives further instructions: `<!-- not run: REASON -->` for commands that need more than this
//! machine, `<!-- file: NAME -->` for a text that is written to this file for the commands of the page.
//!
//! The commands of a page run in a temporary folder that is also HOME and contains the files of [`FILES`].
#![cfg(unix)]

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Files that exist in the folder of every page: names and contents.
const FILES: [(&str, &str); 4] = [
    ("servers.json", r#"{"mcpServers": {"mail": {"command": "lispbox", "args": ["sample-mailbox"]}}}"#),
    ("mailbox.json", r#"{"mcpServers": {"mail": {"command": "lispbox", "args": ["sample-mailbox"]}}}"#),
    ("report.lisp", "(count (mail/list-labels))"),
    (".cursor/mcp.json", r#"{"mcpServers": {"mail": {"command": "lispbox", "args": ["sample-mailbox"]}}}"#),
];

/// The address of an HTTP server in the pages.
const ADDRESS: &str = "127.0.0.1:8787";

/// A block of a page.
struct Block {
    place: String,
    /// The info string of the fence; `indented` for a block without a fence.
    language: String,
    text: String,
    /// The text of the comment above the block.
    remark: Option<String>,
}

impl Block {
    fn has_commands(&self) -> bool {
        match self.language.as_str() {
            "console" | "sh" | "bash" | "shell" => true,
            "" | "indented" => {
                let first = self.text.lines().next().unwrap_or_default();
                let first = first.trim_start_matches("$ ");
                // Assignments of variables may precede a command.
                let word = first.split(' ').find(|word| !word.contains('=')).unwrap_or_default();
                ["lispbox", "curl", "cargo", "claude", "openssl", "umask"].contains(&word)
            }
            _ => false,
        }
    }

    fn reason(&self) -> Option<&str> {
        self.remark.as_deref()?.strip_prefix("not run:").map(str::trim)
    }

    /// The commands, each with its expected output if the block is a `console`.
    fn commands(&self) -> Vec<(String, Option<String>)> {
        let mut out: Vec<(String, Option<String>)> = Vec::new();
        let mut goes_on = false;
        for line in self.text.lines() {
            let dollar = line.strip_prefix("$ ");
            let begins = if self.language == "console" { dollar } else { Some(dollar.unwrap_or(line)) };
            match (begins, out.last_mut()) {
                (_, Some((command, _))) if goes_on => _ = write!(command, "\n{line}"),
                (Some(command), _) if !command.trim().is_empty() && !command.starts_with('#') => {
                    let expected = (self.language == "console").then(String::new);
                    out.push((command.to_owned(), expected));
                }
                (None, Some((_, Some(expected)))) => _ = writeln!(expected, "{line}"),
                _ => {}
            }
            goes_on = line.ends_with('\\') && out.last().is_some_and(|(command, _)| command.ends_with('\\'));
        }
        out
    }
}

/// Reads the pages. Returns names and texts.
fn pages() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join("docs"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.push(root.join("README.md"));
    files.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root).expect("below the root").display().to_string();
        (name, std::fs::read_to_string(&path).expect("a text"))
    };
    files.into_iter().map(read).collect()
}

/// Extracts the blocks of a page.
fn blocks(name: &str, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<usize> = None;
    let mut remark = None;
    // True after a line of text: an indented line then continues the paragraph.
    let mut is_paragraph = false;
    let mut is_indented = false;
    for (at, line) in text.lines().enumerate() {
        let begin = |language: &str, remark: Option<String>| Block {
            place: format!("{name}:{}", at + 1),
            language: language.to_owned(),
            text: String::new(),
            remark,
        };
        if let Some(depth) = fence {
            if line.trim() == "```" {
                fence = None;
            } else if let Some(block) = blocks.last_mut() {
                block.text.push_str(line.get(depth..).unwrap_or_default());
                block.text.push('\n');
            }
        } else if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = Some(line.len() - line.trim_start().len());
            blocks.push(begin(language.trim(), remark.take()));
            (is_paragraph, is_indented) = (false, false);
        } else if line.trim().is_empty() {
            is_paragraph = false;
        } else if let Some(code) = line.strip_prefix("    ").filter(|_| !is_paragraph) {
            if !is_indented {
                blocks.push(begin("indented", remark.take()));
            }
            if let Some(block) = blocks.last_mut() {
                block.text.push_str(code);
                block.text.push('\n');
            }
            is_indented = true;
        } else {
            let comment = line.trim().strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
            remark = comment.map(|comment| comment.trim().to_owned());
            (is_paragraph, is_indented) = (comment.is_none(), false);
        }
    }
    assert!(fence.is_none(), "{name}: a block without an end");
    blocks
}

/// True if a text matches the expected one of a page, in which `…` matches any text within a line and, alone on a line,
/// any number of lines.
fn fits(expected: &str, got: &str) -> bool {
    let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    fits_lines(&lines(expected.trim_end()), &lines(got.trim_end()))
}

fn fits_lines(expected: &[String], got: &[String]) -> bool {
    match expected {
        [] => got.is_empty(),
        [any, rest @ ..] if any == "…" => (0..=got.len()).any(|skipped| fits_lines(rest, &got[skipped..])),
        [first, rest @ ..] => got.first().is_some_and(|line| fits_line(first, line)) && fits_lines(rest, &got[1..]),
    }
}

fn fits_line(expected: &str, got: &str) -> bool {
    match expected.split_once('…') {
        None => expected == got,
        Some((before, behind)) => got.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| fits_line(behind, &rest[at..]))
        }),
    }
}

/// The environment in which the commands of a page run.
struct Place {
    folder: TempDir,
    path: String,
    address: String,
    servers: Vec<Child>,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in FILES {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            std::fs::write(file, text).expect("written");
        }
        std::fs::create_dir(folder.path().join(".zfunc")).expect("made");
        let binary = Path::new(env!("CARGO_BIN_EXE_lispbox")).parent().expect("a folder").display().to_string();
        let path = format!("{binary}:{}", std::env::var("PATH").unwrap_or_default());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        Place { folder, path, address, servers: Vec::new() }
    }

    fn command(&self, text: &str) -> Command {
        let mut command = Command::new("bash");
        command.arg("-c").arg(text.replace(ADDRESS, &self.address)).current_dir(self.folder.path()).env_clear();
        command.env("HOME", self.folder.path()).env("PATH", &self.path).env("LANG", "C.UTF-8");
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command to its end, or starts a server and waits until it listens.
    ///
    /// # Errors
    /// Returns a description of the mismatch if the output differs from the expected one, or, if no output is expected,
    /// if the command fails.
    fn run(&mut self, text: &str, expected: Option<&str>) -> Result<(), String> {
        if text.contains("lispbox serve --http") {
            return self.serve(text);
        }
        let output = self.command(&format!("exec 2>&1\n{text}")).output().map_err(|problem| problem.to_string())?;
        let printed = String::from_utf8_lossy(&output.stdout).replace(&self.address, ADDRESS);
        match expected {
            Some(expected) if !fits(expected, &printed) => {
                Err(format!("$ {text}\n--- the page:\n{expected}--- printed:\n{printed}"))
            }
            None if !output.status.success() => Err(format!("$ {text}\n--- {}:\n{printed}", output.status)),
            _ => Ok(()),
        }
    }

    fn serve(&mut self, text: &str) -> Result<(), String> {
        // Stops the previous server: all servers of a page use one address.
        self.stop();
        let mut command = self.command(&format!("exec 2>&1\n{text}"));
        let mut server =
            command.process_group(0).stdout(Stdio::piped()).spawn().map_err(|problem| problem.to_string())?;
        let output = server.stdout.take().expect("piped");
        self.servers.push(server);
        let mut said = String::new();
        let mut lines = BufReader::new(output).lines();
        while let Some(Ok(line)) = lines.next() {
            if line.starts_with("listening on ") {
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(());
            }
            said.push_str(&line);
            said.push('\n');
        }
        Err(format!("$ {text}\n--- it does not listen:\n{said}"))
    }

    fn stop(&mut self) {
        for mut server in self.servers.drain(..) {
            // The shell may have started the server as a child process: both are in the process group of the shell.
            let _ = Command::new("kill").args(["-TERM", "--", &format!("-{}", server.id())]).status();
            let _ = server.wait();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn consoles_of_the_pages_print_what_they_say() {
    let mut wrong = Vec::new();
    let mut left_out = Vec::new();
    let mut count = 0;
    for (name, text) in pages() {
        let mut place = Place::new();
        for block in blocks(&name, &text) {
            if let Some(file) = block.remark.as_deref().and_then(|remark| remark.strip_prefix("file:")) {
                let text = block.text.replace(ADDRESS, &place.address);
                std::fs::write(place.folder.path().join(file.trim()), text).expect("written");
            }
            if !block.has_commands() {
                continue;
            }
            if let Some(reason) = block.reason() {
                assert!(!reason.is_empty(), "{}: why is it not run?", block.place);
                left_out.push(format!("{}: {reason}", block.place));
                continue;
            }
            for (command, expected) in block.commands() {
                count += 1;
                if let Err(problem) = place.run(&command, expected.as_deref()) {
                    wrong.push(format!("{}\n{problem}", block.place));
                }
            }
        }
    }
    println!("not run:\n{}", left_out.join("\n"));
    assert!(count > 10, "{count} commands");
    assert!(wrong.is_empty(), "{} of {count} commands:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn configurations_of_the_pages_can_be_read() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, text) in pages() {
        let place = Place::new();
        for block in blocks(&name, &text) {
            let keys = ["mcpServers", "mcp_servers", "servers", "local", "policy", "execution"];
            let is_one = keys.iter().any(|key| {
                let text = block.text.as_str();
                text.lines().any(|line| line.starts_with(&format!("{key}:"))) || text.contains(&format!("{{ \"{key}\""))
            });
            match block.language.as_str() {
                "yaml" | "toml" | "json" if is_one => {
                    count += 1;
                    let file = place.folder.path().join(format!("page.{}", block.language));
                    std::fs::write(&file, &block.text).expect("written");
                    let shown = place.command(&format!("lispbox config show --config {} 2>&1", file.display()));
                    let output = { shown }.output().expect("it runs");
                    let printed = String::from_utf8_lossy(&output.stdout);
                    if !output.status.success() || printed.contains("warning") {
                        wrong.push(format!("{}: {printed}", block.place));
                    }
                }
                "json" => {
                    count += 1;
                    let mut values = serde_json::Deserializer::from_str(&block.text).into_iter::<serde_json::Value>();
                    if let Some(Err(problem)) = values.find(Result::is_err) {
                        wrong.push(format!("{}: {problem}", block.place));
                    }
                }
                _ => {}
            }
        }
    }
    assert!(count > 5, "{count} configurations");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn wildcards_stand_for_text_and_for_lines() {
    assert!(fits("a … c\n", "a b b c") && !fits("a … c", "a b"));
    assert!(fits("a\n…\nd", "a\nb\nc\nd") && fits("a\n…", "a") && !fits("a\n…\nd", "a\nb"));
    assert!(fits("{\"ms\":…,\"x\":…}", "{\"ms\":10,\"x\":2}") && !fits("a", "a\nb"));
}

#[test]
fn blocks_are_found() {
    let page = "text\n    goes on\n\n    lispbox a\n\n    lispbox b\n\n<!-- not run: why -->\n```sh\nx\n```\n\n- item\n\n  ```json\n  {}\n  ```\n";
    let found: Vec<(String, String, bool)> =
        blocks("p", page).into_iter().map(|b| (b.language.clone(), b.text.clone(), b.reason().is_some())).collect();
    let one = |language: &str, text: &str, left: bool| (language.to_owned(), text.to_owned(), left);
    let expected =
        [one("indented", "lispbox a\nlispbox b\n", false), one("sh", "x\n", true), one("json", "{}\n", false)];
    assert_eq!(found, expected);
}
