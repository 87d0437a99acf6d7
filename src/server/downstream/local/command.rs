//! A command as a tool: one process per call, without a shell, that ends with the call.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

use crate::lang::internal::foreign_text::shows_nothing;
use crate::lang::{Tool, ToolError, ToolErrorKind, ToolReply};
use crate::server::config::{Action, Commands, Inherit, LocalTool, Round, Template, Words, rounds};
use crate::server::config::{Answering, Function};
use crate::server::downstream::result::text_or_json;
use crate::server::downstream::uncertain;
use crate::server::secrets::Secrets;
use crate::server::system::platform::{self, Lifeline, Started};

use super::{others, too_large, unfit};

/// Maximum size of the reported end of a command's output, in bytes.
const WORDS_KEPT: usize = 2_000;
/// Number of bytes of that end that are read, so that a secret is complete when it is redacted before the cut.
const END_READ: usize = 16 << 10;

/// A configured command.
pub(super) struct Command {
    tool: LocalTool,
    /// The environment variables that all tools of the configuration inherit.
    inherit: Inherit,
    lifeline: Arc<Lifeline>,
    commands: Arc<Commands>,
    most_output: usize,
    /// The secrets that are redacted from its output in error messages.
    secrets: Secrets,
}

impl Command {
    /// Creates the command; its results have at most `most_output` bytes.
    pub(super) fn new(
        tool: LocalTool,
        inherit: Inherit,
        (lifeline, commands): (Arc<Lifeline>, Arc<Commands>),
        most_output: usize,
        secrets: Secrets,
    ) -> Command {
        Command { tool, inherit, lifeline, commands, most_output, secrets }
    }

    async fn run(&self, arguments: Map<String, Value>) -> Result<ToolReply, ToolError> {
        let Action::Command { program, words, environment, inherit, folder, takes_json } = &self.tool.action else {
            return Err(ToolError::failed("it is not a command"));
        };
        let words = filled(words, &arguments)?;
        // No scripts, unlike servers on Windows: its shell would interpret the words from a program.
        let (commands, name, own) = (Arc::clone(&self.commands), program.clone(), environment.clone());
        // The login shell that may be asked dies with the thread that started it, so this is a thread of the runtime.
        let taken = tokio::spawn(async move { commands.find(&name, &own, false).await });
        let taken = taken.await.map_err(|_| ToolError::failed("the runtime is ending"))?;
        let mut command = tokio::process::Command::new(&taken.program);
        let mut inherited = self.inherit.clone();
        inherited.extend(inherit);
        command.args(words).env_clear().envs(inherited.of(std::env::vars_os()));
        command.envs(taken.path.iter().map(|path| ("PATH", path))).envs(environment);
        command.stdin(if *takes_json { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = folder {
            if !folder.is_dir() {
                return Err(ToolError::failed("its `cwd` is not a folder"));
            }
            command.current_dir(folder);
        }
        let input = takes_json.then(|| others(&arguments, &self.tool.action.placed()).to_string());
        // On Linux a child dies with the thread that started it, so the child is started on a thread of the runtime.
        let lifeline = Arc::clone(&self.lifeline);
        let started = tokio::spawn(async move { lifeline.start(&mut command) }).await;
        let started = started.map_err(|_| ToolError::failed("the runtime is ending"))?;
        let Started { mut child, group } =
            started.map_err(|problem| ToolError::failed(taken.why_not(platform::start_problem(program, &problem))))?;
        let (given, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let ended = async {
            let status = child.wait().await;
            // Processes that it has left running hold its streams open.
            group.kill();
            status.map_err(|problem| ToolError::failed(format!("its exit status is unknown: {problem}")))
        };
        let (status, output, errors, ()) =
            tokio::try_join!(ended, whole(output, self.most_output), end(errors), write(given, input))?;
        if !status.success() {
            let said = [errors, (output, false)].into_iter().map(|(said, was_cut)| last(&said, was_cut, &self.secrets));
            let said = said.into_iter().find(|said| !said.is_empty());
            let said = said.map(|said| format!("; it said: {said}")).unwrap_or_default();
            // One that was killed may have been in the middle of its work.
            let kind = if status.code().is_none() { ToolErrorKind::Uncertain } else { uncertain::kind(&said) };
            return Err(ToolError::new(kind, format!("it ended with {status}{said}")));
        }
        let text = String::from_utf8(output).unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into());
        Ok(text_or_json(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

impl Function for Command {
    fn describe(&self) -> Tool {
        self.tool.tool.clone()
    }

    fn call(self: Arc<Self>, arguments: Map<String, Value>, _: Duration) -> Answering {
        Box::pin(async move { self.run(arguments).await })
    }
}

/// Fills the arguments into the words of a command; each stays one word.
///
/// # Errors
/// Returns an error if an argument would be taken for an option or a response file; see [`check_beginning`].
fn filled(words: &[Words], arguments: &Map<String, Value>) -> Result<Vec<String>, ToolError> {
    let mut filled = Vec::new();
    let mut options_ended = false;
    for group in words {
        if group.condition.as_ref().is_some_and(|name| arguments.get(name) != Some(&Value::Bool(true))) {
            continue;
        }
        for round in rounds(group.arguments(), arguments).map_err(unfit)? {
            let mut behind_option = false;
            for template in &group.templates {
                let word = template.filled(&round);
                let Some(name) = template.arguments().next() else {
                    options_ended |= word == "--";
                    behind_option = !options_ended && takes_the_next_word(&word);
                    filled.push(word);
                    continue;
                };
                if word.contains('\0') {
                    return Err(unfit(format!("argument `{name}` contains a NUL character")));
                }
                let is_number = template.is_one_argument() && arguments.get(name).is_some_and(is_numeric);
                if !options_ended && !is_number {
                    check_beginning(name, template, &round, &word, behind_option)?;
                }
                behind_option = false;
                filled.push(word);
            }
        }
    }
    Ok(filled)
}

/// True for a number or a list of only numbers: `-5` is not an option where the schema admits numbers.
fn is_numeric(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(Value::is_number),
        value => value.is_number(),
    }
}

/// True for an option of the configuration whose value is the next word: `-n`, `--author`, but neither `--` nor
/// `--a=b`.
fn takes_the_next_word(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word != "--" && !word.contains('=')
}

/// Rejects a word whose arguments turn it into an option, or change which option it is.
///
/// Before `--`, a word that begins with an argument must begin neither with `@`, which many commands use for a file of
/// further arguments, nor with a dash, unless the configuration puts an option directly before it in its group.
/// Leading blanks and invisible characters are skipped, and dashes of all scripts count: some commands trim, and some
/// systems convert them to `-`. After the beginning of an option's name (`--{a}`, `--no-{a}`) an argument can only be
/// a part of that name, up to a `=` of the template itself.
fn check_beginning(
    name: &str,
    template: &Template,
    round: &Round,
    word: &str,
    behind_option: bool,
) -> Result<(), ToolError> {
    let beginning = template.beginning();
    if beginning.is_empty() {
        let first = word.chars().find(|c| !c.is_whitespace() && !shows_nothing(*c));
        // The soft hyphen is invisible, and becomes `-` in some conversions.
        if !behind_option && (word.contains('\u{AD}') || first.is_some_and(is_dash)) {
            return Err(unfit(format!(
                "argument `{name}` begins with `-`, which the command would take for an option"
            )));
        }
        if first.is_some_and(|c| matches!(c, '@' | '\u{FF20}' | '\u{FE6B}')) {
            return Err(unfit(format!(
                "argument `{name}` begins with `@`, which the command may take for a file of arguments"
            )));
        }
        return Ok(());
    }
    let is_open = beginning == "-" || (beginning.starts_with("--") && !beginning.contains('='));
    if !is_open {
        return Ok(());
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_wrong = |name: &&str| round.get(*name).is_some_and(|text| !text.chars().all(is_part));
    let given = &word[beginning.len()..];
    // `-` is standard input to many commands, and `--` ends the options.
    if beginning.chars().all(|c| c == '-') && (given.is_empty() || given.starts_with('=')) {
        return Err(unfit(format!("argument `{name}` is empty, where an option needs a name")));
    }
    let begins_with_dash = given.starts_with('-').then_some(name);
    match begins_with_dash.or_else(|| template.arguments_before_equals().find(is_wrong)) {
        Some(name) => Err(unfit(format!(
            "argument `{name}` continues the name of an option, where only letters, digits, `-`, `_` and `.` are \
             allowed"
        ))),
        None => Ok(()),
    }
}

/// True for a character that is a dash, or that looks like one or is converted to one.
fn is_dash(c: char) -> bool {
    matches!(
        c,
        '-' | '\u{AD}' | '\u{58A}' | '\u{5BE}' | '\u{1400}' | '\u{1806}' | '\u{2010}'
            ..='\u{2015}'
                | '\u{2043}'
                | '\u{207B}'
                | '\u{208B}'
                | '\u{2212}'
                | '\u{2E17}'
                | '\u{2E1A}'
                | '\u{2E3A}'
                | '\u{2E3B}'
                | '\u{2E40}'
                | '\u{301C}'
                | '\u{3030}'
                | '\u{30A0}'
                | '\u{FE31}'
                | '\u{FE32}'
                | '\u{FE58}'
                | '\u{FE63}'
                | '\u{FF0D}'
                | '\u{10EAD}'
    )
}

/// Reads a stream to its end; returns an error if it has more than `most` bytes.
async fn whole(stream: Option<impl AsyncRead + Unpin>, most: usize) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // A read error counts as the end of the stream.
        let _ = stream.take(most as u64 + 1).read_to_end(&mut bytes).await;
    }
    if bytes.len() > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// Reads a stream to its end, so that the writer does not block; returns the last bytes and whether earlier ones were
/// dropped.
async fn end(stream: Option<impl AsyncRead + Unpin>) -> Result<(Vec<u8>, bool), ToolError> {
    let (mut kept, mut was_cut) = (Vec::new(), false);
    let mut buffer = vec![0; 8 << 10];
    if let Some(mut stream) = stream {
        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
            kept.extend_from_slice(&buffer[..length]);
            let surplus = kept.len().saturating_sub(END_READ);
            kept.drain(..surplus);
            was_cut |= surplus > 0;
        }
    }
    Ok((kept, was_cut))
}

/// Returns the end of the output, trimmed; secrets are redacted before it is cut.
fn last(bytes: &[u8], was_cut: bool, secrets: &Secrets) -> String {
    let text = secrets.redact_cut(&String::from_utf8_lossy(bytes), was_cut, false);
    let text = text.trim();
    let from = text.ceil_char_boundary(text.len().saturating_sub(WORDS_KEPT));
    if from == 0 { text.to_owned() } else { format!("…{}", &text[from..]) }
}

/// Writes the input and closes the stream. A command may ignore its input, so write errors are ignored.
async fn write(stream: Option<ChildStdin>, input: Option<String>) -> Result<(), ToolError> {
    if let (Some(mut stream), Some(input)) = (stream, input) {
        let _ = stream.write_all(input.as_bytes()).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// The filled words for groups of templates.
    fn words(groups: &[&[&str]], arguments: Value) -> Result<Vec<String>, String> {
        let template = |text: &&str| Template::parse(text).expect("a template");
        let groups: Vec<Words> = groups
            .iter()
            .map(|group| Words { condition: None, templates: group.iter().map(template).collect() })
            .collect();
        let Value::Object(arguments) = arguments else { panic!("an object") };
        filled(&groups, &arguments).map_err(|error| error.message)
    }

    #[test]
    fn no_word_of_a_group_becomes_an_option() {
        let option = "--target-directory=/etc";
        for (groups, arguments) in [
            (&[&["{a}", "{b}"][..]][..], json!({"a": "x", "b": option})),
            (&[&["{a}", "{b}"]], json!({"a": ["x", option], "b": "y"})),
            (&[&["{a}", "{b}"]], json!({"a": "y", "b": ["x", option]})),
            (&[&["{a}{b}"]], json!({"a": "", "b": option})),
            (&[&["{a}{b}"]], json!({"a": -5, "b": "x"})),
            (&[&["--name", "{a}", "{b}"]], json!({"a": "x", "b": option})),
            (&[&["copy", "{a}"]], json!({"a": option})),
            (&[&["--name=x", "{a}"]], json!({"a": option})),
            (&[&["-", "{a}"]], json!({"a": option})),
            (&[&["--name"], &["{a}"]], json!({"a": option})),
            (&[&["{a}"]], json!({"a": ["-5"]})),
        ] {
            let message = words(groups, arguments.clone()).expect_err("an option");
            assert!(message.contains("begins with `-`"), "{groups:?} {arguments}: {message}");
        }
        for given in [" -x", "\t-x", "\u{200B}-x", "\u{2212}x", "\u{FF0D}x", "\u{2014}", "\u{AD}x", "\u{FEFF}--x"] {
            assert!(words(&[&["{a}"]], json!({"a": given})).is_err(), "{given:?}");
        }
        for given in ["@/etc/passwd", " @x", "\u{FF20}x"] {
            assert!(words(&[&["-d", "{a}"]], json!({"a": given})).expect_err("a file").contains("begins with `@`"));
        }
        for given in ["output=/etc/x", "-x", "a b", "\u{2212}"] {
            for template in ["-{a}", "--{a}", "--no-{a}", "--{a}={b}", "-{a}:={b}", "--{a}.{b}"] {
                let message = words(&[&[template]], json!({"a": given, "b": "b"})).expect_err(template);
                assert!(
                    message.contains("argument `a` continues the name of an option"),
                    "{template} {given}: {message}"
                );
            }
        }
        for template in ["-{a}", "--{a}", "--{a}={b}", "--{a}{c}"] {
            let message = words(&[&[template]], json!({"a": "", "b": "b", "c": ""})).expect_err(template);
            assert!(message.contains("argument `a` is empty, where an option needs a name"), "{template}: {message}");
        }
        for (template, b) in [("--{a}{b}={c}", "x=y"), ("--{a}.{b}={c}", "x y"), ("--{a}:{b}", "/etc")] {
            let message = words(&[&[template]], json!({"a": "a", "b": b, "c": "c"})).expect_err(template);
            assert!(message.contains("argument `b` continues the name of an option"), "{template}: {message}");
        }
    }

    #[test]
    fn other_words_are_as_they_were_given() {
        for (groups, arguments, expected) in [
            (&[&["--x={a}"][..]][..], json!({"a": "-y"}), &["--x=-y"][..]),
            (&[&["-I{a}"]], json!({"a": "-y"}), &["-I-y"]),
            (&[&["--name", "{a}"]], json!({"a": ["-x", "--y"]}), &["--name", "-x", "--name", "--y"]),
            (&[&["--", "{a}", "{b}"]], json!({"a": "-x", "b": "@y"}), &["--", "-x", "@y"]),
            (&[&["--"], &["{a}"]], json!({"a": "-x"}), &["--", "-x"]),
            (&[&["{a}"]], json!({"a": [-5, -0.5]}), &["-5", "-0.5"]),
            (&[&["-{a}"]], json!({"a": 5}), &["-5"]),
            (&[&["--{a}"]], json!({"a": "one-line"}), &["--one-line"]),
            (&[&["--{a}={b}"]], json!({"a": "name", "b": "x y=-z"}), &["--name=x y=-z"]),
            (&[&["--no-{a}.{c}={b}"]], json!({"a": "x", "b": ["-1", "@2"], "c": "y"}), &["--no-x.y=-1", "--no-x.y=@2"]),
            (&[&["-{a}={b}={b}"]], json!({"a": "o", "b": "a/b"}), &["-o=a/b=a/b"]),
            (&[&["--{a}:{b}"]], json!({"a": "x", "b": "y"}), &["--x:y"]),
            (&[&["./{a}"]], json!({"a": "-x"}), &["./-x"]),
            (&[&["@{a}/x"]], json!({"a": "scope"}), &["@scope/x"]),
            (&[&["{a}"]], json!({"a": "a-b @c"}), &["a-b @c"]),
        ] {
            assert_eq!(words(groups, arguments.clone()).expect("words"), expected, "{groups:?} {arguments}");
        }
    }

    proptest! {
        #[test]
        fn no_text_becomes_an_option_wherever_it_is_placed(
            a in "[-@= a\u{AD}\u{2212}\u{200B}]{0,4}", b in "[-@= b]{0,4}", shape in 0..4usize
        ) {
            const SHAPES: [&[&[&str]]; 4] =
                [&[&["{a}", "{b}"]], &[&["{a}{b}"]], &[&["x", "{b}", "{a}"]], &[&["{b}"], &["{a}"]]];
            let groups = SHAPES[shape];
            if let Ok(words) = words(groups, json!({"a": a, "b": b})) {
                prop_assert!(words.iter().all(|word| !word.trim().starts_with(['-', '@'])), "{words:?}");
            }
        }
    }
}
