//! A command as a tool: one process for each call, without a shell, that ends with the call.

use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

use super::{Answering, Function, others, too_large, unfit};
use crate::lang::{Tool, ToolError, ToolReply};
use crate::server::config::{Action, LocalTool, Words, rounds};
use crate::server::downstream::result::text_or_json;
use crate::server::platform::{self, Lifeline, Started};

/// The variables that every command has of ours: without them few programs find what belongs to them.
const VARIABLES: &[&str] = &["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "TEMP", "USERPROFILE"];

/// How much of the end of what a command says is kept, in bytes.
const WORDS_KEPT: usize = 2_000;

/// A command of the configuration.
pub(super) struct Command {
    tool: LocalTool,
    lifeline: Arc<Lifeline>,
    most_output: usize,
}

impl Command {
    /// That command; its answers have so many bytes at most.
    pub(super) fn new(tool: LocalTool, lifeline: Arc<Lifeline>, most_output: usize) -> Command {
        Command { tool, lifeline, most_output }
    }

    async fn run(&self, arguments: Map<String, Value>) -> Result<ToolReply, ToolError> {
        let Action::Command { program, words, environment, folder, takes_json } = &self.tool.action else {
            return Err(ToolError::failed("it is no command"));
        };
        // Never a shell, as servers need one on Windows: words from a program would be read by it.
        let mut command = tokio::process::Command::new(program);
        command.args(filled(words, &arguments)?).env_clear();
        command.envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)))).envs(environment);
        command.stdin(if *takes_json { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let input = takes_json.then(|| others(&arguments, &self.tool.action.placed()).to_string());
        // A child dies with the thread that started it: that has to be one of the runtime's own.
        let lifeline = Arc::clone(&self.lifeline);
        let started = tokio::spawn(async move { lifeline.start(&mut command) }).await;
        let started = started.map_err(|_| ToolError::failed("the runtime is ending"))?;
        let Started { mut child, group } =
            started.map_err(|problem| ToolError::failed(platform::start_problem(program, &problem)))?;
        let (given, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let ended = async {
            let status = child.wait().await;
            // Whatever it has left behind holds its streams open.
            group.kill();
            status.map_err(|problem| ToolError::failed(format!("nobody knows how it ended: {problem}")))
        };
        let (status, output, errors, ()) =
            tokio::try_join!(ended, whole(output, self.most_output), end(errors), write(given, input))?;
        if !status.success() {
            let said = [errors, last(&output)].into_iter().find(|said| !said.is_empty());
            let said = said.map(|said| format!("; it said: {said}")).unwrap_or_default();
            return Err(ToolError::failed(format!("it ended with {status}{said}")));
        }
        let text = String::from_utf8(output).unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into());
        Ok(text_or_json(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

impl Function for Command {
    fn describe(&self) -> Tool {
        self.tool.tool.clone()
    }

    fn call(self: Arc<Self>, arguments: Map<String, Value>) -> Answering {
        Box::pin(async move { self.run(arguments).await })
    }
}

/// The words of a command with these arguments in their places, each of which stays one word.
///
/// A text that would be taken for an option because it begins with `-` is refused, but where an option stands before it
/// in its group, or `--` anywhere before it.
fn filled(words: &[Words], arguments: &Map<String, Value>) -> Result<Vec<String>, ToolError> {
    let mut filled = Vec::new();
    let mut options_ended = false;
    for group in words {
        if group.condition.as_ref().is_some_and(|name| arguments.get(name) != Some(&Value::Bool(true))) {
            continue;
        }
        for round in rounds(group.arguments(), arguments).map_err(unfit)? {
            for (index, template) in group.templates.iter().enumerate() {
                let word = template.filled(&round);
                let first = template.arguments().next();
                if word.contains('\0') {
                    return Err(unfit(format!("argument `{}` has a character 0", first.unwrap_or_default())));
                }
                if let Some(name) = first
                    && index == 0
                    && !options_ended
                    && word.starts_with('-')
                    && template.beginning().is_empty()
                    && !arguments.get(name).is_some_and(Value::is_number)
                {
                    return Err(unfit(format!(
                        "argument `{name}` begins with `-`, which the command would take for an option"
                    )));
                }
                options_ended |= word == "--" && first.is_none();
                filled.push(word);
            }
        }
    }
    Ok(filled)
}

/// All of a stream.
async fn whole(stream: Option<impl AsyncRead + Unpin>, most: usize) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // What cannot be read any more is at its end.
        let _ = stream.take(most as u64 + 1).read_to_end(&mut bytes).await;
    }
    if bytes.len() > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// The end of a stream, which is read whole so that nobody waits for us.
async fn end(stream: Option<impl AsyncRead + Unpin>) -> Result<String, ToolError> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 8 << 10];
    if let Some(mut stream) = stream {
        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
            kept.extend_from_slice(&buffer[..length]);
            kept.drain(..kept.len().saturating_sub(2 * WORDS_KEPT));
        }
    }
    Ok(last(&kept))
}

/// The end of what was said, without blanks round it.
fn last(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    let from = text.ceil_char_boundary(text.len().saturating_sub(WORDS_KEPT));
    if from == 0 { text.to_owned() } else { format!("…{}", &text[from..]) }
}

/// Writes the input and closes it. A command that does not read it has its reasons.
async fn write(stream: Option<ChildStdin>, input: Option<String>) -> Result<(), ToolError> {
    if let (Some(mut stream), Some(input)) = (stream, input) {
        let _ = stream.write_all(input.as_bytes()).await;
    }
    Ok(())
}
