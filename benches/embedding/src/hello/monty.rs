//! The program compiles a script and runs it.

use std::error::Error;

use monty::MontyRun;
use monty_types::{CompileOptions, PrintWriter, ResourceTracker};

/// A script, a run.
pub fn hello() -> Result<i64, Box<dyn Error>> {
    let mut script = MontyRun::new("1 + 1".into(), "script", vec![], CompileOptions::default())?;
    let answer = script.run(vec![], ResourceTracker::default(), PrintWriter::Disabled)?;
    Ok(i64::try_from(&answer)?)
}
