//! Cases that users of other engines have reported: a tool ends its run, runs nest, errors of asynchronous tools are
//! caught, errors name the calls that led to a tool, a runtime has shut down, and an optional argument is nil.

use crate::common::engine;
use lispbox::lang::{Call, CancelHandle, Engine, Error, Failure, NoArguments, Outcome, ToolError, Tools, World};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// bytecodealliance/wasmtime#7550: a tool ends the run, which the program cannot prevent.
#[test]
fn a_tool_ends_the_run_and_no_program_catches_that() {
    for program in [
        "(try (quota/spend) (catch Exception e :caught))",
        "(doall (pmap (fn [_] (try (quota/spend) (catch Exception e :caught))) [1 2 3]))",
        "(try (try (quota/spend) (finally (quota/spend))) (catch Exception e (quota/spend)))",
    ] {
        let (cancel, calls) = (CancelHandle::new(), AtomicUsize::new(0));
        let mut tools = Tools::new();
        tools.tool("quota/spend", |_: NoArguments, _: &Call| -> Result<i64, ToolError> {
            calls.fetch_add(1, Ordering::Relaxed);
            cancel.cancel();
            Err(ToolError::failed("the quota is used up"))
        });
        let world = World::new(tools).cancelled_by(&cancel);
        let outcome = engine().session().run(program).eval::<lispbox::lang::Value>(&world).expect("input");
        assert!(matches!(outcome, Outcome::Cancelled), "{program}: {outcome:?}");
        assert!(calls.load(Ordering::Relaxed) <= 3, "only calls that had begun were made: {program}");
    }
}

/// A world in which a tool runs the program that calls it, down to a level at which it panics.
fn nesting(engine: &Arc<Engine>, level: usize) -> World<'static> {
    let engine = Arc::clone(engine);
    let mut tools = Tools::new();
    tools.tool("t/inner", move |_: NoArguments, _: &Call| -> Result<String, ToolError> {
        assert!(level > 0, "deep enough");
        let inner = engine.session().run("(str \"<\" (t/inner) \">\")").eval::<String>(&nesting(&engine, level - 1));
        let failed = |failure: Box<Failure>| ToolError::failed(failure.message);
        inner.map_err(|error| ToolError::failed(error.to_string()))?.into_result().map_err(failed)
    });
    World::new(tools)
}

/// bytecodealliance/wasmtime#3571: host code that runs a program within a program, whose host code fails.
#[test]
fn a_panic_of_a_nested_run_is_an_error_of_each_level() {
    let engine = engine();
    let mut session = engine.session();
    for level in [1, 100] {
        let outcome = session.run("(t/inner)").eval::<String>(&nesting(&engine, level)).expect("input");
        let message = outcome.into_result().expect_err("the innermost one panics").to_string();
        assert_eq!(message, "ToolError: `t/inner` panicked: deep enough");
        assert_eq!(session.run("(+ 1 1)").eval::<i64>(&World::default()).expect("input").done(), Some(2));
    }
}

/// rhaiscript/rhai#984: the calls that led to code of the host are named, with their places.
#[test]
fn the_calls_that_led_to_a_tool_or_a_function_are_named() {
    let mut tools = Tools::new();
    tools.tool("t/fail", |_: NoArguments, _: &Call| -> Result<i64, ToolError> { Err(ToolError::failed("no")) });
    let world = World::new(tools);
    let mut builder = Engine::builder();
    builder.function("my/fail", || -> Result<i64, Error> { Err(Error::new("Mine", "no")) });
    let mut session = builder.build().expect("it succeeds").session();
    for call in ["(t/fail)", "(my/fail)"] {
        let program = format!("(defn f []\n  (inc {call}))\n(defn g [] (inc (f)))\n(g)");
        let outcome = session.run(program).name("it").eval::<i64>(&world).expect("input");
        let Failure { source, line, column, trace, .. } = *outcome.into_result().expect_err("it fails");
        assert_eq!((source.as_deref(), line, column), (Some("it"), Some(2), Some(8)));
        assert_eq!(trace, ["f (called at it:3:17)", "g (called at it:4:1)"]);
    }
}

/// denoland/deno#13185: a field with a default whose value is null.
#[test]
fn nil_for_an_argument_that_has_a_default_is_said_to_be_needless() {
    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only the reading matters")]
    struct Search {
        text: String,
        #[serde(default)]
        filter: BTreeMap<String, String>,
        #[serde(default)]
        limit: u8,
        page: Option<u8>,
    }
    let mut tools = Tools::new();
    tools.tool("mail/search", |_: Search, _: &Call| Ok(1));
    let world = World::new(tools);
    let search = |program: &str| {
        let outcome = engine().session().run(program).eval::<i64>(&world).expect("input");
        outcome.into_result().map_err(|failure| (failure.message, failure.suggestion))
    };
    assert_eq!(search("(mail/search {:text \"a\" :page nil})"), Ok(1));
    let unfit = |what: &str, expected: &str, suggestion: Option<&str>| {
        let message = format!("argument `{what}` of `mail/search`: expected {expected}, got nil");
        Err((message, suggestion.map(str::to_owned)))
    };
    let left_out = |what: &str| format!("`{what}` may be left out");
    for (program, refused) in [
        ("(mail/search {:text \"a\" :filter nil})", unfit("filter", "a map", Some(&left_out("filter")))),
        ("(mail/search \"a\" {} nil)", unfit("limit", "an integer", Some(&left_out("limit")))),
        ("(mail/search {:text nil})", unfit("text", "a string", None)),
        ("(mail/search {:text \"a\" :filter {:to nil}})", unfit("filter.to", "a string", None)),
    ] {
        assert_eq!(search(program), refused, "{program}");
    }
}

#[cfg(feature = "async")]
mod with_tokio {
    use super::*;
    use lispbox::lang::Limits;
    use std::time::Duration;

    /// pydantic/monty#323: errors of asynchronous tools can be caught as those of others, in branches too.
    #[test]
    fn each_error_of_an_asynchronous_tool_is_caught_where_it_is_called() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("it succeeds");
        let _inside = runtime.enter();
        let mut tools = Tools::new();
        tools.async_tool("t/fails", async |_: NoArguments, _: &Call| -> Result<i64, ToolError> {
            tokio::task::yield_now().await;
            Err(ToolError::failed("it failed"))
        });
        tools.async_tool("t/panics", async |_: NoArguments, _: &Call| -> Result<i64, ToolError> {
            tokio::task::yield_now().await;
            panic!("oh")
        });
        tools.async_tool("t/waits", async |_: NoArguments, _: &Call| std::future::pending::<Result<i64, _>>().await);
        let world = World::new(tools);
        let limits = Limits { tool: Duration::from_millis(30), ..Limits::default() };
        for (tool, message) in [
            ("t/fails", "it failed"),
            ("t/panics", "`t/panics` panicked: oh"),
            ("t/waits", "`t/waits` did not answer within 30 ms"),
        ] {
            let caught = format!("(try ({tool}) (catch Exception e (ex-message e)))");
            for program in [
                format!("[{caught}]"),
                format!("(pmap (fn [_] {caught}) [1])"),
                format!("(distinct (pmap (fn [_] {caught}) [1 2 3]))"),
                format!("[(try (doall (pmap (fn [_] ({tool})) [1 2 3])) (catch Exception e (ex-message e)))]"),
            ] {
                let run = engine().session().run(&program).limits(limits.clone()).eval::<Vec<String>>(&world);
                assert_eq!(run.expect("input").done(), Some(vec![message.to_owned()]), "{program}");
            }
        }
    }

    /// tauri-apps/tauri#5068: worlds and sessions are dropped on a thread of a runtime, and a runtime before its world.
    #[test]
    fn the_order_in_which_a_runtime_and_a_world_end_is_free() {
        let world = |runtime: &tokio::runtime::Runtime| {
            let _inside = runtime.enter();
            let mut tools = Tools::new();
            tools.async_tool("t/spawn", async |_: NoArguments, _: &Call| {
                tokio::spawn(async { 1 }).await.map_err(|error| ToolError::unavailable(error.to_string()))
            });
            tools.async_tool("t/sleep", async |_: NoArguments, _: &Call| {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok(1)
            });
            World::new(tools)
        };
        let runtime = tokio::runtime::Runtime::new().expect("it succeeds");
        let (kept, dropped) = (world(&runtime), world(&runtime));
        let mut session = engine().session();
        assert_eq!(session.run("(t/spawn)").eval::<i64>(&dropped).expect("input").done(), Some(1));
        runtime.block_on(async move { drop((dropped, session)) });
        drop(runtime);
        let mut session = engine().session();
        for program in ["(t/spawn)", "(t/sleep)"] {
            let outcome = session.run(program).eval::<i64>(&kept).expect("input");
            let message = outcome.into_result().expect_err("its runtime is gone").to_string();
            assert!(message.contains("was cancelled") || message.contains("is being shutdown"), "{message}");
        }
        assert_eq!(
            session.run("(try (t/sleep) (catch Exception e 2))").eval::<i64>(&kept).expect("input").done(),
            Some(2)
        );
    }
}
