//! monty. A script is suspended at each call of a tool; the host runs the tool in a loop, and resumes the script.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use monty::{Dump, MontyRepl, MontyRun, RunProgress, Session, SessionRef, dump};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyException, MontyObject, PrintWriter, ResourceLimits,
    ResourceTracker, memory_limit_with_headroom,
};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::{DEADLINE, Done, Failed, Outcome, mails};

/// The loop of the host calls the closure.
pub fn typed_function() -> Outcome {
    let calls = Cell::new(0);
    let double = |n: i64| {
        calls.set(calls.get() + 1);
        n * 2
    };
    let script = MontyRun::new("double(21)".into(), "script", vec!["double".into()], CompileOptions::default())?;
    let inputs = vec![MontyObject::function("double", None)];
    let mut progress = script.start(inputs, ResourceTracker::default(), PrintWriter::Disabled)?;
    let answer = loop {
        progress = match progress {
            RunProgress::FunctionCall(call) => {
                let n = call.args.arg(0).ok_or("double takes a number")?.try_into()?;
                call.resume(MontyObject::int(double(n)), PrintWriter::Disabled)?
            }
            RunProgress::Complete(answer) => break answer,
            other => return Err(format!("unexpected: {other:?}").into()),
        };
    };
    assert_eq!(i64::try_from(&answer)?, 42);
    assert_eq!(calls.get(), 1);
    Ok(Done::Yes)
}

/// serde converts the structs to JSON text and back, and so does the script.
pub fn structs() -> Outcome {
    #[derive(Serialize)]
    struct Mail {
        id: u64,
        sender: String,
        labels: Vec<String>,
        sent: Option<String>,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    struct Summary {
        count: u64,
        senders: Vec<String>,
    }
    let script = r#"
import json
kept = [mail for mail in json.loads(mails) if mail["sent"] is not None and mail["labels"]]
json.dumps({"count": len(kept), "senders": [mail["sender"] for mail in kept]})
"#;
    let mut script = MontyRun::new(script.into(), "script", vec!["mails".into()], CompileOptions::default())?;
    let inputs = vec![MontyObject::string(serde_json::to_string(&mails!())?)];
    let answer = script.run(inputs, ResourceTracker::default(), PrintWriter::Disabled)?;
    let summary: Summary = serde_json::from_str(&String::try_from(&answer)?)?;
    assert_eq!(summary, Summary { count: 1, senders: vec!["ann".to_string()] });
    Ok(Done::Yes)
}

/// The loop of the host awaits the call.
pub fn async_tool() -> Outcome {
    let script = MontyRun::new("fetch('rust')".into(), "script", vec!["fetch".into()], CompileOptions::default())?;
    let inputs = vec![MontyObject::function("fetch", None)];
    let mut progress = script.start(inputs, ResourceTracker::default(), PrintWriter::Disabled)?;
    let answer = Runtime::new()?.block_on(async {
        loop {
            progress = match progress {
                RunProgress::FunctionCall(call) => {
                    let name = call.args.arg(0).ok_or("fetch takes a text")?.try_into()?;
                    call.resume(MontyObject::string(crate::fetch(name).await), PrintWriter::Disabled)?
                }
                RunProgress::Complete(answer) => break Ok::<_, Failed>(answer),
                other => return Err(format!("unexpected: {other:?}").into()),
            };
        }
    });
    assert_eq!(String::try_from(&answer?)?, "page of rust");
    Ok(Done::Yes)
}

/// The interpreter compares its own time; the loop of the host compares the clock, because that excludes calls.
pub fn deadline() -> Outcome {
    let endless = "
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
";
    for script in [endless, "while True: nap()"] {
        let end = Instant::now() + DEADLINE;
        let script = MontyRun::new(script.into(), "script", vec!["nap".into()], CompileOptions::default())?;
        let tracker = ResourceTracker::new(ResourceLimits::default().max_feed_duration(DEADLINE));
        let inputs = vec![MontyObject::function("nap", None)];
        let mut progress = script.start(inputs, tracker, PrintWriter::Disabled);
        let error = loop {
            progress = match progress {
                Ok(RunProgress::FunctionCall(call)) => {
                    crate::nap();
                    if Instant::now() < end {
                        call.resume(MontyObject::none(), PrintWriter::Disabled)
                    } else {
                        call.abort(MontyException::new(ExcType::TimeoutError, None), PrintWriter::Disabled)
                    }
                }
                Ok(other) => return Err(format!("unexpected: {other:?}").into()),
                Err(error) => break error,
            };
        };
        assert_eq!(error.exc_type(), ExcType::TimeoutError);
    }
    Ok(Done::Yes)
}

/// The loop of the host reads a flag.
pub fn cancel() -> Outcome {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let script = MontyRun::new("while True: nap()".into(), "script", vec!["nap".into()], CompileOptions::default())?;
    let inputs = vec![MontyObject::function("nap", None)];
    let mut progress = script.start(inputs, ResourceTracker::default(), PrintWriter::Disabled);
    crate::soon(move || flag.store(true, Relaxed));
    let error = loop {
        progress = match progress {
            Ok(RunProgress::FunctionCall(call)) if cancelled.load(Relaxed) => {
                call.abort(MontyException::new(ExcType::KeyboardInterrupt, None), PrintWriter::Disabled)
            }
            Ok(RunProgress::FunctionCall(call)) => call.resume(MontyObject::none(), PrintWriter::Disabled),
            Ok(other) => return Err(format!("unexpected: {other:?}").into()),
            Err(error) => break error,
        };
    };
    assert_eq!(error.exc_type(), ExcType::KeyboardInterrupt);
    Ok(Done::Partly("only at a call of a tool; between calls, only a limit of time ends a script"))
}

/// The interpreter compares its time and the memory of the process, which an allocator counts.
pub fn limits() -> Outcome {
    #[global_allocator]
    static ALLOCATOR: lispbox::lang::Metered<monty_alloc::LimitedAllocator> =
        lispbox::lang::Metered::new(monty_alloc::LimitedAllocator);
    let most = 32 << 20;
    monty_alloc::set_hard_limit(memory_limit_with_headroom(Some(most), false))?;
    let run = |script: &str| {
        let limits = ResourceLimits::default().max_memory(most).max_feed_duration(Duration::from_secs(1));
        let mut script = MontyRun::new(script.into(), "script", vec![], CompileOptions::default())?;
        script.run(vec![], ResourceTracker::new(limits), PrintWriter::Disabled)
    };
    assert_eq!(run("while True: pass").unwrap_err().exc_type(), ExcType::TimeoutError);
    assert_eq!(run("all = []\nwhile True: all.append([1])").unwrap_err().exc_type(), ExcType::MemoryError);
    monty_alloc::set_hard_limit(None)?;
    Ok(Done::Partly("time instead of instructions; memory is that of the whole process, with the allocator of monty"))
}

/// The session is written as bytes.
pub fn keep_and_restore() -> Outcome {
    let script = "
inbox = [3, 5]
def total(more):
    return sum(inbox) + more
";
    let mut session = MontyRepl::new("script", ResourceTracker::default(), CompileOptions::default());
    session.feed_run(script, vec![], PrintWriter::Disabled)?;
    session.feed_run("inbox.append(8)", vec![], PrintWriter::Disabled)?;
    let kept = dump("script", None, &[], SessionRef::Idle(&session))?;

    let Session::Idle(mut session) = Dump::load(&kept)?.state else { return Err("not between two scripts".into()) };
    let answer = session.call_function("total", vec![MontyObject::int(1)], PrintWriter::Disabled)?;
    assert_eq!(i64::try_from(&answer)?, 17);
    Ok(Done::Yes)
}

/// The session is written as bytes, and read back for each continuation.
pub fn fork() -> Outcome {
    let script = "
inbox = [3, 5]
def total():
    return sum(inbox)
";
    let mut session = MontyRepl::new("script", ResourceTracker::default(), CompileOptions::default());
    session.feed_run(script, vec![], PrintWriter::Disabled)?;
    let state = dump("script", None, &[], SessionRef::Idle(&session))?;
    let fork = |script| -> Result<i64, Failed> {
        let Session::Idle(mut session) = Dump::load(&state)?.state else {
            return Err("not between two scripts".into());
        };
        Ok(i64::try_from(&session.feed_run(script, vec![], PrintWriter::Disabled)?)?)
    };
    assert_eq!(fork("inbox.append(1)\ntotal()")?, 9);
    assert_eq!(fork("inbox.append(2)\ntotal()")?, 10);
    Ok(Done::Yes)
}

/// A script with inputs is compiled.
pub fn compile_once() -> Outcome {
    let mut script = MontyRun::new("n * 2 + 1".into(), "script", vec!["n".into()], CompileOptions::default())?;
    for n in 0..1_000 {
        let inputs = vec![MontyObject::int(n)];
        let answer = script.run(inputs, ResourceTracker::default(), PrintWriter::Disabled)?;
        assert_eq!(answer, MontyObject::int(n * 2 + 1));
    }
    Ok(Done::Yes)
}

/// The loop of the host sees all calls.
pub fn record_calls() -> Outcome {
    struct Call {
        name: String,
        arguments: String,
        size: usize,
        time: Duration,
    }
    let script = "search('rust', 2)\nsearch('lua', 1)";
    let script = MontyRun::new(script.into(), "script", vec!["search".into()], CompileOptions::default())?;
    let inputs = vec![MontyObject::function("search", None)];
    let mut progress = script.start(inputs, ResourceTracker::default(), PrintWriter::Disabled)?;
    let mut calls = Vec::new();
    loop {
        progress = match progress {
            RunProgress::FunctionCall(call) => {
                let start = Instant::now();
                let (query, limit) = call.args.arg(0).zip(call.args.arg(1)).ok_or("search takes two arguments")?;
                let result = MontyObject::string(crate::search(&String::try_from(query)?, limit.try_into()?));
                let arguments = call.args.args().map(|argument| argument.py_repr()).collect::<Vec<_>>().join(",");
                let (name, size) = (call.function_name.clone(), result.py_repr().len());
                calls.push(Call { name, arguments, size, time: start.elapsed() });
                call.resume(result, PrintWriter::Disabled)?
            }
            RunProgress::Complete(_) => break,
            other => return Err(format!("unexpected: {other:?}").into()),
        };
    }
    assert_eq!(calls.len(), 2);
    assert_eq!((&*calls[0].name, &*calls[0].arguments, calls[0].size), ("search", "'rust',2", 20));
    assert!(calls[1].time < Duration::from_secs(1));
    Ok(Done::Yes)
}

/// The loop of the host catches the panic, and resumes the script with an exception.
pub fn panic_in_tool() -> Outcome {
    fn message(panic: Box<dyn Any + Send>) -> String {
        let text = panic.downcast::<String>().map(|text| *text);
        text.or_else(|panic| panic.downcast::<&str>().map(|text| text.to_string())).unwrap_or_default()
    }
    let broken = || -> i64 { panic!("the disk is full") };
    let run = |script: &str| {
        let script = MontyRun::new(script.into(), "script", vec!["broken".into()], CompileOptions::default())?;
        let inputs = vec![MontyObject::function("broken", None)];
        let mut progress = script.start(inputs, ResourceTracker::default(), PrintWriter::Disabled)?;
        loop {
            progress = match progress {
                RunProgress::FunctionCall(call) => {
                    let result: ExtFunctionResult = match catch_unwind(AssertUnwindSafe(broken)) {
                        Ok(n) => MontyObject::int(n).into(),
                        Err(panic) => MontyException::new(ExcType::RuntimeError, Some(message(panic))).into(),
                    };
                    call.resume(result, PrintWriter::Disabled)?
                }
                RunProgress::Complete(answer) => break Ok(answer),
                _ => break Err(MontyException::new(ExcType::RuntimeError, None)),
            };
        }
    };
    assert_eq!(run("broken()").unwrap_err().message(), Some("the disk is full"));
    assert_eq!(run("1 + 1")?, MontyObject::int(2));
    Ok(Done::Yes)
}

/// Each thread runs a clone of the script, which shares the bytecode.
pub fn two_threads() -> Outcome {
    let both = Barrier::new(2);
    let names = vec!["n".into(), "meet".into()];
    let script = MontyRun::new("meet()\nn * 2".into(), "script", names, CompileOptions::default())?;
    let run = |script: MontyRun, n| {
        let inputs = vec![MontyObject::int(n), MontyObject::function("meet", None)];
        let mut progress = script.start(inputs, ResourceTracker::default(), PrintWriter::Disabled)?;
        while let RunProgress::FunctionCall(call) = progress {
            crate::meet(&both);
            progress = call.resume(MontyObject::none(), PrintWriter::Disabled)?;
        }
        Ok::<_, MontyException>(progress.into_complete())
    };
    let (one, two) = thread::scope(|scope| {
        let (first, second) = (script.clone(), script.clone());
        let (one, two) = (scope.spawn(|| run(first, 1)), scope.spawn(|| run(second, 2)));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one?, two?), (Some(MontyObject::int(2)), Some(MontyObject::int(4))));
    Ok(Done::Yes)
}
