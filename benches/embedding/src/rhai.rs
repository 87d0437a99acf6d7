//! rhai, with its features `sync` (engines and scripts can be shared by threads) and `serde`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rhai::serde::{from_dynamic, to_dynamic};
use rhai::{Engine, EvalAltResult, Scope};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Handle, Runtime};

use crate::{DEADLINE, Done, Outcome, mails};

/// A closure becomes a function of the script.
pub fn typed_function() -> Outcome {
    let calls = Arc::new(AtomicU64::new(0));
    let counter = calls.clone();
    let mut engine = Engine::new();
    engine.register_fn("double", move |n: i64| {
        counter.fetch_add(1, Relaxed);
        n * 2
    });
    assert_eq!(engine.eval::<i64>("double(21)")?, 42);
    assert_eq!(calls.load(Relaxed), 1);
    Ok(Done::Yes)
}

/// serde converts the structs to dynamic values and back.
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
    let mut scope = Scope::new();
    scope.push("mails", to_dynamic(mails!())?);
    let script = "
        let kept = mails.filter(|mail| mail.sent != () && !mail.labels.is_empty());
        #{ count: kept.len(), senders: kept.map(|mail| mail.sender) }";
    let summary: Summary = from_dynamic(&Engine::new().eval_with_scope(&mut scope, script)?)?;
    assert_eq!(summary, Summary { count: 1, senders: vec!["ann".to_string()] });
    Ok(Done::Yes)
}

/// The tool blocks a thread of the pool for blocking work, on which the script runs.
pub fn async_tool() -> Outcome {
    let runtime = Runtime::new()?;
    let running = runtime.spawn_blocking(|| {
        let mut engine = Engine::new();
        engine.register_fn("fetch", |name: String| Handle::current().block_on(crate::fetch(name)));
        engine.eval::<String>(r#"fetch("rust")"#)
    });
    assert_eq!(runtime.block_on(running)??, "page of rust");
    Ok(Done::Partly("no asynchronous evaluation: the script and its call block a thread"))
}

/// A callback between operations compares the clock.
pub fn deadline() -> Outcome {
    for script in ["loop { try { loop {} } catch {} }", "loop { nap() }"] {
        let end = Instant::now() + DEADLINE;
        let mut engine = Engine::new();
        engine.register_fn("nap", crate::nap);
        engine.on_progress(move |_| (Instant::now() > end).then(|| "timeout".into()));
        let error = engine.run(script).unwrap_err();
        assert!(matches!(*error, EvalAltResult::ErrorTerminated(token, _) if token.to_string() == "timeout"));
    }
    Ok(Done::Yes)
}

/// A callback between operations reads a flag.
pub fn cancel() -> Outcome {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let mut engine = Engine::new();
    engine.on_progress(move |_| flag.load(Relaxed).then(|| "cancelled".into()));
    crate::soon(move || cancelled.store(true, Relaxed));
    let error = engine.run("loop { try { loop {} } catch {} }").unwrap_err();
    assert!(matches!(*error, EvalAltResult::ErrorTerminated(token, _) if token.to_string() == "cancelled"));
    Ok(Done::Yes)
}

/// The engine counts operations and measures values.
pub fn limits() -> Outcome {
    let mut engine = Engine::new();
    engine.set_max_operations(100_000).set_max_variables(100);
    engine.set_max_string_size(1 << 20).set_max_array_size(10_000).set_max_map_size(10_000);
    let error = engine.run("loop { try { loop {} } catch {} }").unwrap_err();
    assert!(matches!(*error, EvalAltResult::ErrorTooManyOperations(_)));
    let error = engine.run("let all = []; loop { all.push(`mail`) }").unwrap_err();
    assert!(matches!(*error, EvalAltResult::ErrorDataTooLarge(..)));
    Ok(Done::Partly("bounds the size of each string, array and map and the number of variables, not their total"))
}

/// serde writes the variables; the functions are kept as source text.
pub fn keep_and_restore() -> Outcome {
    let source = "let inbox = [3, 5]; fn total(inbox, more) { inbox.reduce(|sum, n| sum + n, more) }";
    let engine = Engine::new();
    let mut scope = Scope::new();
    engine.run_with_scope(&mut scope, source)?;
    engine.run_with_scope(&mut scope, "inbox.push(8)")?;
    let kept = serde_json::to_string(&(source, &scope))?;

    let (source, mut scope): (String, Scope) = serde_json::from_str(&kept)?;
    let engine = Engine::new();
    let functions = engine.compile(source)?.clone_functions_only();
    let call = functions.merge(&engine.compile("total(inbox, 1)")?);
    assert_eq!(engine.eval_ast_with_scope::<i64>(&mut scope, &call)?, 17);
    Ok(Done::Partly("the host keeps the source text of functions; a closure in a variable becomes a string"))
}

/// The variables are cloned, the functions shared.
pub fn fork() -> Outcome {
    let engine = Engine::new();
    let base = engine.compile("let inbox = [3, 5]; fn total(inbox) { inbox.reduce(|sum, n| sum + n, 0) }")?;
    let mut scope = Scope::new();
    engine.run_ast_with_scope(&mut scope, &base)?;
    let functions = base.clone_functions_only();
    let fork = |script| {
        let script = functions.merge(&engine.compile(script)?);
        engine.eval_ast_with_scope::<i64>(&mut scope.clone(), &script)
    };
    assert_eq!(fork("inbox.push(1); total(inbox)")?, 9);
    assert_eq!(fork("inbox.push(2); total(inbox)")?, 10);
    Ok(Done::Partly("a variable that a closure has captured is shared by all continuations"))
}

/// A syntax tree is compiled, and its function called.
pub fn compile_once() -> Outcome {
    let engine = Engine::new();
    let script = engine.compile("fn run(n) { n * 2 + 1 }")?;
    for n in 0..1_000 {
        assert_eq!(engine.call_fn::<i64>(&mut Scope::new(), &script, "run", (n,))?, n * 2 + 1);
    }
    Ok(Done::Yes)
}

/// Every tool records its own calls.
pub fn record_calls() -> Outcome {
    struct Call {
        name: &'static str,
        arguments: String,
        size: usize,
        time: Duration,
    }
    let (log, calls) = mpsc::channel();
    let mut engine = Engine::new();
    engine.register_fn("search", move |query: &str, limit: i64| {
        let start = Instant::now();
        let result = crate::search(query, limit);
        let (arguments, size) = (format!("[{query:?},{limit}]"), result.len());
        let _ = log.send(Call { name: "search", arguments, size, time: start.elapsed() });
        result
    });
    engine.run(r#"search("rust", 2); search("lua", 1)"#)?;
    let calls: Vec<Call> = calls.try_iter().collect();
    assert_eq!(calls.len(), 2);
    assert_eq!((calls[0].name, &*calls[0].arguments, calls[0].size), ("search", r#"["rust",2]"#, 18));
    assert!(calls[1].time < Duration::from_secs(1));
    Ok(Done::Yes)
}

/// The host catches the panic, which unwinds through the engine.
pub fn panic_in_tool() -> Outcome {
    fn message(panic: Box<dyn Any + Send>) -> String {
        let text = panic.downcast::<String>().map(|text| *text);
        text.or_else(|panic| panic.downcast::<&str>().map(|text| text.to_string())).unwrap_or_default()
    }
    let mut engine = Engine::new();
    engine.register_fn("broken", || -> i64 { panic!("the disk is full") });
    let run = |script| match catch_unwind(AssertUnwindSafe(|| engine.eval::<i64>(script))) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(message(panic)),
    };
    assert_eq!(run("broken()"), Err("the disk is full".to_string()));
    assert_eq!(run("1 + 1"), Ok(2));
    Ok(Done::Yes)
}

/// The threads share the engine and the syntax tree.
pub fn two_threads() -> Outcome {
    let both = Barrier::new(2);
    let mut engine = Engine::new();
    engine.register_fn("meet", move || crate::meet(&both));
    let script = engine.compile("fn run(n) { meet(); n * 2 }")?;
    let run = |n: i64| engine.call_fn::<i64>(&mut Scope::new(), &script, "run", (n,));
    let (one, two) = thread::scope(|scope| {
        let (one, two) = (scope.spawn(|| run(1)), scope.spawn(|| run(2)));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one?, two?), (2, 4));
    Ok(Done::Yes)
}
