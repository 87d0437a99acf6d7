//! monty, with its limits on.

use lispbox_peers::child::{LONGEST, Meaning, Peer, Session};
use lispbox_peers::workload::Language;
use monty::{MontyRepl, ReplProgress};
use monty_types::{
    CallArgs, CompileOptions, MontyObject, NameLookupResult, PrintWriter, ResourceLimits, ResourceTracker,
};

/// Creates environments, which share nothing.
pub struct Monty;

impl Peer for Monty {
    fn language(&self) -> Language {
        Language::Python
    }

    fn in_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<(), String>) -> Result<(), String> {
        let limits = ResourceLimits::default().max_feed_duration(LONGEST).max_suspensions(2_000_000);
        let tracker = ResourceTracker::new(limits);
        work(&mut Running(Some(MontyRepl::new("program.py", tracker, CompileOptions::default()))))
    }
}

/// A session, which each run takes and returns.
struct Running(Option<MontyRepl>);

impl Running {
    fn feed(&mut self, program: &str, inputs: Vec<(String, MontyObject)>) -> Result<String, String> {
        let repl = self.0.take().ok_or("an earlier program has ended this session")?;
        let mut progress = repl.feed_start(program, inputs, PrintWriter::Disabled);
        loop {
            progress = match progress.map_err(|failed| failed.error.to_string())? {
                ReplProgress::Complete { repl, value } => {
                    self.0 = Some(repl);
                    let text = value.as_ref().as_str().map(str::to_string);
                    return Ok(text.unwrap_or_else(|| value.py_repr()));
                }
                ReplProgress::FunctionCall(call) => {
                    let sum = add(&call.args)?;
                    call.resume(MontyObject::int(sum), PrintWriter::Disabled)
                }
                ReplProgress::NameLookup(lookup) if lookup.name == "host_add" => {
                    let function = MontyObject::function(lookup.name.clone(), None);
                    lookup.resume(NameLookupResult::Value(function), PrintWriter::Disabled)
                }
                other => return Err(format!("the program asks for what is not there: {other:?}")),
            };
        }
    }
}

fn add(arguments: &CallArgs) -> Result<i64, String> {
    let values = arguments.arg(0).and_then(|values| values.pairs()).unwrap_or_default();
    let number = |name: &str| values.iter().find(|(key, _)| key.as_str() == Some(name))?.1.as_int();
    number("a").zip(number("b")).map(|(a, b)| a + b).ok_or_else(|| "host_add takes two integers, a and b".to_string())
}

impl Session for Running {
    fn give(&mut self, text: String, _: Meaning) -> Result<(), String> {
        self.feed("text = given", vec![("given".to_string(), MontyObject::string(text))]).map(drop)
    }

    fn parse(&mut self) -> Result<(), String> {
        self.feed(include_str!("../../../programs/parse.py"), Vec::new()).map(drop)
    }

    fn run(&mut self, program: &str) -> Result<String, String> {
        self.feed(program, Vec::new())
    }
}
