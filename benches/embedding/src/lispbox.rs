//! lispbox, with its feature `async`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use lispbox::lang::{Call, CancelHandle, Engine, Limits, NoArguments, Outcome as Ended, Tools, World};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::{DEADLINE, Done, Outcome, mails};

/// A closure becomes a function of the language.
pub fn typed_function() -> Outcome {
    let calls = Arc::new(AtomicU64::new(0));
    let counter = calls.clone();
    let mut builder = Engine::builder();
    builder.function("my/double", move |n: i64| {
        counter.fetch_add(1, Relaxed);
        n * 2
    });
    let mut session = builder.build()?.session();
    assert_eq!(session.run("(my/double 21)").eval::<i64>(&World::default())?.done(), Some(42));
    assert_eq!(calls.load(Relaxed), 1);
    Ok(Done::Yes)
}

/// serde converts the structs to values and back.
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
    let script = "(let [kept (filter #(and (:sent %) (seq (:labels %))) data)]
        {:count (count kept) :senders (map :sender kept)})";
    let mut session = Engine::builder().build()?.session();
    let summary = session.run(script).data(&mails!()).eval::<Summary>(&World::default())?.done();
    assert_eq!(summary, Some(Summary { count: 1, senders: vec!["ann".to_string()] }));
    Ok(Done::Yes)
}

/// The tool blocks a thread of the pool for blocking work, on which the script runs; its future is dropped at the
/// deadline.
pub fn async_tool() -> Outcome {
    #[derive(Deserialize)]
    struct Fetch {
        name: String,
    }
    let runtime = Runtime::new()?;
    let engine = Engine::builder().build()?;
    let _within = runtime.enter();
    let running = runtime.spawn_blocking(move || {
        let mut tools = Tools::new();
        tools.async_tool("web/fetch", async |fetch: Fetch, _: &Call| Ok(crate::fetch(fetch.name).await));
        engine.session().run(r#"(web/fetch "rust")"#).eval::<String>(&World::new(tools)).map(Ended::done)
    });
    assert_eq!(runtime.block_on(running)??.as_deref(), Some("page of rust"));
    Ok(Done::Partly("no asynchronous evaluation: the script and its call block a thread"))
}

/// A limit of the run.
pub fn deadline() -> Outcome {
    let engine = Engine::builder().build()?;
    let mut tools = Tools::new();
    tools.tool("my/nap", |_: NoArguments, _| Ok(crate::nap()));
    let world = World::new(tools);
    for script in ["(loop [] (try (loop [] (recur)) (catch Exception e nil)) (recur))", "(loop [] (my/nap) (recur))"] {
        let limits = Limits { total: DEADLINE, ..Limits::default() };
        let ended = engine.session().run(script).limits(limits).eval::<()>(&world)?;
        assert!(matches!(ended, Ended::Limited(failure) if failure.limit.as_deref() == Some("total")));
    }
    Ok(Done::Yes)
}

/// A handle of the world.
pub fn cancel() -> Outcome {
    let handle = CancelHandle::new();
    let world = World::default().cancelled_by(&handle);
    crate::soon(move || handle.cancel());
    let mut session = Engine::builder().build()?.session();
    let ended = session.run("(loop [] (try (loop [] (recur)) (catch Exception e nil)) (recur))").eval::<()>(&world)?;
    assert!(matches!(ended, Ended::Cancelled));
    Ok(Done::Yes)
}

/// Limits of the run; memory is counted by the allocator.
pub fn limits() -> Outcome {
    #[cfg(not(feature = "monty"))]
    #[global_allocator]
    static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    let limits = Limits { fuel: 10_000_000, memory: 32 << 20, ..Limits::default() };
    let mut session = Engine::builder().build()?.session();
    for (script, limit) in [("(loop [] (recur))", "fuel"), ("(loop [all [\"mail\"]] (recur (into all all)))", "memory")]
    {
        let ended = session.run(script).limits(limits.clone()).eval::<()>(&World::default())?;
        assert!(matches!(ended, Ended::Limited(failure) if failure.limit.as_deref() == Some(limit)));
    }
    Ok(Done::Yes)
}

/// The session as text, closures and atoms included.
pub fn keep_and_restore() -> Outcome {
    let engine = Engine::builder().build()?;
    let mut session = engine.session();
    let script = "(def inbox [3 5]) (defn total [inbox more] (reduce + more inbox)) (def inbox (conj inbox 8))";
    session.run(script).eval::<serde::de::IgnoredAny>(&World::default())?.into_result()?;
    let kept = session.encode()?;

    let mut session = Engine::builder().build()?.restore(&kept)?;
    assert_eq!(session.run("(total inbox 1)").eval::<i64>(&World::default())?.done(), Some(17));
    Ok(Done::Yes)
}

/// The continuations share the values of the session.
pub fn fork() -> Outcome {
    let mut session = Engine::builder().build()?.session();
    let script = "(def inbox (atom [3 5])) (defn total [] (reduce + @inbox)) nil";
    session.run(script).eval::<()>(&World::default())?.into_result()?;
    for (more, total) in [(1, 9), (2, 10)] {
        let mut fork = session.fork();
        let run = fork.run("(swap! inbox conj more) (total)").set("more", &more);
        assert_eq!(run.eval::<i64>(&World::default())?.done(), Some(total));
    }
    Ok(Done::Yes)
}

/// A program with a parameter.
pub fn compile_once() -> Outcome {
    let engine = Engine::builder().build()?;
    let (program, mut session, world) = (engine.compile("(inc (* 2 n))")?, engine.session(), World::default());
    for n in 0..1_000 {
        assert_eq!(session.run(&program).set("n", &n).eval::<i64>(&world)?.done(), Some(n * 2 + 1));
    }
    Ok(Done::Yes)
}

/// The report of the run has them.
pub fn record_calls() -> Outcome {
    #[derive(Deserialize)]
    struct Search {
        query: String,
        limit: i64,
    }
    let mut tools = Tools::new();
    tools.tool("mail/search", |search: Search, _| Ok(crate::search(&search.query, search.limit)));
    let mut session = Engine::builder().build()?.session();
    session.run(r#"(mail/search "rust" 2) (mail/search "lua" 1)"#).eval::<String>(&World::new(tools))?.into_result()?;
    let calls = &session.report().calls;
    assert_eq!(calls.len(), 2);
    assert_eq!((&*calls[0].tool, &*calls[0].arguments), ("search", r#"{"query":"rust","limit":2}"#));
    assert_eq!(calls[0].result_bytes, 20);
    assert!(calls[1].time < Duration::from_secs(1));
    Ok(Done::Yes)
}

/// The panic is an error of the call.
pub fn panic_in_tool() -> Outcome {
    let mut tools = Tools::new();
    tools.tool("my/broken", |_: NoArguments, _| -> Result<i64, _> { panic!("the disk is full") });
    let world = World::new(tools);
    let mut session = Engine::builder().build()?.session();
    let failure = session.run("(my/broken)").eval::<i64>(&world)?.into_result().unwrap_err();
    assert_eq!(failure.message, "`my/broken` panicked: the disk is full");
    assert_eq!(session.run("(+ 1 1)").eval::<i64>(&world)?.done(), Some(2));
    Ok(Done::Yes)
}

/// The threads share the engine and the program.
pub fn two_threads() -> Outcome {
    let both = Barrier::new(2);
    let mut builder = Engine::builder();
    builder.function("my/meet", move || crate::meet(&both));
    let engine = builder.build()?;
    let program = engine.compile("(my/meet) (* 2 n)")?;
    let run = |n: i64| engine.session().run(&program).set("n", &n).eval::<i64>(&World::default()).map(Ended::done);
    let (one, two) = thread::scope(|scope| {
        let (one, two) = (scope.spawn(|| run(1)), scope.spawn(|| run(2)));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one?, two?), (Some(2), Some(4)));
    Ok(Done::Yes)
}
