//! Names, observers and decisions: the parts of the interface that an embedder combines.

use crate::common::engine;
use lispbox::lang::{
    Access, Call, CallId, CallReport, Decision, Engine, ErrorCode, EvalError, Limits, NoArguments, Outcome,
    RegisterError, TestClock, ToolError, Tools, World,
};
use serde::Deserialize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Deserialize)]
struct Mail {
    to: String,
}

/// A tool that sends mail, and the recipients.
fn mailbox(sent: &Mutex<Vec<String>>) -> Tools<'_> {
    let mut tools = Tools::new();
    tools.tool("mail/send", |mail: Mail, _: &Call| {
        sent.lock().expect("it succeeds").push(mail.to);
        Ok("sent")
    });
    tools
}

#[test]
fn a_function_does_not_take_the_place_of_a_tool() {
    let sent = Mutex::default();
    for name in ["mail/send", "mail/SEND", "Mail/se-nd"] {
        let mut builder = Engine::builder();
        builder.function(name, || "unasked");
        let mut session = builder.build().unwrap().session();
        let conflict = session.run("1").eval::<i64>(&World::new(mailbox(&sent)));
        let Err(EvalError::Conflict(tool)) = conflict else { panic!("{name}: {conflict:?}") };
        assert_eq!(tool, "mail/send");
    }
}

#[test]
fn names_that_cannot_be_used_are_refused() {
    for name in ["send", "/send", "mail/", "mail/send it", "mail/a/b", "1/2", "mail/(a", "", "mail send/x", "mail/:x;"]
    {
        let mut tools = Tools::new();
        let refused = tools.try_tool(name, |_: NoArguments, _: &Call| Ok(1)).err();
        assert_eq!(refused, Some(RegisterError::Name(name.to_owned())));
        assert!(Engine::builder().try_function(name, || 1).is_err(), "{name}");
    }
    let taken = Tools::new().try_tool("a b", |_: NoArguments, _: &Call| Ok(1)).err().map(|error| error.to_string());
    let expected = "expected a name with two parts that a program can write, such as `mail/search`, got `a b`";
    assert_eq!(taken.as_deref(), Some(expected));
}

#[test]
fn a_tool_whose_type_no_arguments_fit_is_refused() {
    fn refusal<A: serde::de::DeserializeOwned>() -> Option<String> {
        let mut tools = Tools::new();
        let refused = tools.try_tool("t/it", |_: A, _: &Call| Ok(1)).err().map(|error| error.to_string());
        let advice = "and arguments are a map of names and values: let it take a struct with a field for each argument, or \
                      `NoArguments`";
        refused.map(|message| {
            let kind = message.strip_prefix("`t/it` takes ").and_then(|rest| rest.strip_suffix(advice));
            kind.unwrap_or(&message).trim_end_matches(", ").to_owned()
        })
    }
    #[derive(Deserialize)]
    struct Unit;
    #[derive(Deserialize)]
    #[allow(dead_code, reason = "nothing is read")]
    struct Pair(i64, i64);
    #[derive(Deserialize)]
    #[allow(dead_code, reason = "nothing is read")]
    struct Wrapped<T>(T);
    #[derive(Deserialize)]
    #[allow(dead_code, reason = "nothing is read")]
    enum Step {
        Move { to: i64 },
    }
    assert_eq!(refusal::<u8>().as_deref(), Some("a number"));
    assert_eq!(refusal::<f64>().as_deref(), Some("a number"));
    assert_eq!(refusal::<String>().as_deref(), Some("a text"));
    assert_eq!(refusal::<bool>().as_deref(), Some("a boolean"));
    assert_eq!(refusal::<char>().as_deref(), Some("a character"));
    assert_eq!((refusal::<()>().as_deref(), refusal::<Unit>().as_deref()), (Some("nothing"), Some("nothing")));
    assert_eq!(refusal::<Vec<Mail>>().as_deref(), Some("a list"));
    assert_eq!((refusal::<(i64, i64)>().as_deref(), refusal::<Pair>().as_deref()), (Some("a list"), Some("a list")));
    assert_eq!(refusal::<Wrapped<Option<Vec<u8>>>>().as_deref(), Some("a list"));
    assert_eq!((refusal::<Mail>(), refusal::<Option<Mail>>(), refusal::<Wrapped<Mail>>()), (None, None, None));
    assert_eq!((refusal::<serde_json::Value>(), refusal::<lispbox::lang::Value>()), (None, None));
    assert_eq!((refusal::<std::collections::HashMap<String, i64>>(), refusal::<Step>()), (None, None));
    assert_eq!(refusal::<Box<serde_json::value::RawValue>>(), None);
}

#[test]
#[should_panic(expected = "the name `mail/Send` is taken")]
fn a_second_tool_of_a_name_panics() {
    let sent = Mutex::default();
    mailbox(&sent).tool("mail/Send", |_: NoArguments, _: &Call| Ok(1));
}

#[test]
fn a_panic_of_an_observer_is_no_failure_of_the_program() {
    let mut tools = Tools::new();
    tools.tool("t/work", |_: NoArguments, call: &Call| {
        call.progress(1.0, None, "half");
        Ok(1)
    });
    let world = World::new(tools)
        .on_print(|_| panic!("no paper"))
        .on_call(|_| panic!("no ink"))
        .on_progress(|_| panic!("no light"));
    let mut session = engine().session();
    let outcome = session.run("(println \"a\") (t/work)").eval::<u32>(&world).unwrap();
    assert_eq!(outcome.into_result().map_err(|failure| failure.rendered), Ok(1));
    assert_eq!(session.report().prints, "a\n");
}

#[test]
fn each_call_is_decided_on_before_it_is_made() {
    let sent = Mutex::default();
    let seen = Mutex::new(Vec::new());
    let world = World::new(mailbox(&sent)).on_request(|request| {
        let name = format!("{} {}/{} {}", request.id, request.server, request.tool, request.arguments);
        seen.lock().unwrap().push((name, request.is_approved, request.plan.is_some()));
        match request.arguments {
            arguments if arguments.contains("ann") => Access::Allow,
            arguments if arguments.contains("bob") => Access::Ask("bob is new".to_owned()),
            _ => Access::Deny("it is a stranger".to_owned()),
        }
    });
    let mut session = engine().session();
    let send = |to: &str| format!("(mail/send {{:to \"{to}\"}})");
    assert!(session.run(send("ann")).eval::<String>(&world).unwrap().done().is_some());
    let denied = session.run(send("eve")).eval::<String>(&world).unwrap().into_result().unwrap_err();
    assert_eq!(denied.to_string(), "ToolDenied: `mail/send` may not be called: it is a stranger");
    let Outcome::Suspended(mut run) = session.run(send("bob")).eval::<String>(&world).unwrap() else { panic!() };
    let question = run.questions().next().unwrap().clone();
    assert_eq!(question.to_string(), r#"mail/send {"to":"bob"}, because bob is new"#);
    run.approve(&question.id).unwrap();
    assert!(session.resume(run).eval::<String>(&world).unwrap().done().is_some());
    let plan = session.run(send("ann")).plan(&world).unwrap();
    assert!(session.run(send("ann")).within(&plan).eval::<String>(&world).unwrap().done().is_some());
    drop(world);
    let seen = seen.into_inner().unwrap();
    let expected = [
        (r#"0//0 mail/send {"to":"ann"}"#, false, false),
        (r#"0//0 mail/send {"to":"eve"}"#, false, false),
        (r#"0//0 mail/send {"to":"bob"}"#, false, false),
        (r#"0//0 mail/send {"to":"bob"}"#, true, false),
        (r#"0//0 mail/send {"to":"ann"}"#, false, true),
    ];
    assert_eq!(seen, expected.map(|(text, is_approved, is_planned)| (text.to_owned(), is_approved, is_planned)));
    assert_eq!(*sent.lock().unwrap(), ["ann", "bob", "ann"]);
}

#[test]
fn a_tool_that_needs_approval_needs_it_though_the_call_is_allowed() {
    let mut tools = Tools::new();
    tools.tool("disk/format", |_: NoArguments, _: &Call| Ok(())).needs_approval();
    let world = World::new(tools).on_request(|_| Access::Allow);
    let outcome = engine().session().run("(disk/format)").eval::<()>(&world).unwrap();
    assert!(matches!(outcome, Outcome::Suspended(_)));
}

#[test]
fn a_panic_of_a_decision_denies() {
    let sent = Mutex::default();
    let world = World::new(mailbox(&sent)).on_request(|_| panic!("no database"));
    let outcome = engine().session().run("(mail/send {:to \"ann\"})").eval::<String>(&world).unwrap();
    let message = outcome.into_result().unwrap_err().to_string();
    assert_eq!(message, "ToolDenied: `mail/send` may not be called: the decision on it panicked: no database");
    assert!(sent.lock().unwrap().is_empty());
}

#[test]
fn an_observer_sees_each_state_of_a_call() {
    let sent = Mutex::default();
    let seen = Mutex::new(Vec::<CallReport>::new());
    let world = World::new(mailbox(&sent))
        .on_request(|request| match request.arguments {
            arguments if arguments.contains("eve") => Access::Deny("no".to_owned()),
            arguments if arguments.contains("bob") => Access::Ask("really?".to_owned()),
            _ => Access::Allow,
        })
        .on_question(|_| Decision::Approved)
        .on_call(|call| seen.lock().unwrap().push(call.clone()));
    let mut session = engine().session();
    let program = "(mail/send {:to \"ann\"}) (mail/send {:to \"bob\"}) (mail/send {:to \"eve\"})";
    assert!(session.run(program).eval::<String>(&world).unwrap().into_result().is_err());
    // The report has those that were made.
    let made: Vec<&str> = session.report().calls.iter().map(|call| call.outcome).collect();
    assert_eq!(made, ["ok", "ok"]);
    drop(world);
    let seen = seen.into_inner().unwrap();
    let states: Vec<(String, &str)> = seen.iter().map(|call| (call.id.to_string(), call.outcome)).collect();
    let expected = [("0//0", "ok"), ("1//0", "asked"), ("1//0", "ok"), ("2//0", "ToolDenied")];
    assert_eq!(states, expected.map(|(id, outcome)| (id.to_owned(), outcome)));
    assert!(seen[0].to_string().starts_with(r#"0//0 mail/send {"to":"ann"}: ok after "#), "{}", seen[0]);
    let json = serde_json::to_value(&seen[0]).unwrap();
    assert_eq!((&json["tool"], &json["outcome"]), (&serde_json::json!("send"), &serde_json::json!("ok")));
}

#[test]
fn a_late_result_of_a_synchronous_tool_is_still_its_result() {
    let clock = Arc::new(TestClock::at_millis(0));
    let mut tools = Tools::new();
    tools.tool("t/slow", |_: NoArguments, call: &Call| {
        assert_eq!(call.deadline(), Duration::from_millis(100));
        clock.advance(Duration::from_millis(1_500));
        Ok(call.cancelled())
    });
    let world = World::new(tools).clock(Arc::clone(&clock));
    let limits = Limits { tool: Duration::from_millis(100), ..Limits::default() };
    let outcome = engine().session().run("(t/slow)").limits(limits).eval::<bool>(&world).unwrap();
    assert_eq!(outcome.done(), Some(true));
}

#[test]
fn identities_of_calls_are_read_from_their_texts() {
    for (text, branch) in [("0//0", vec![]), ("2/0/1", vec![0]), ("7/0.3.12/40", vec![0, 3, 12])] {
        let id: CallId = text.parse().unwrap();
        assert_eq!((id.to_string().as_str(), id.branch), (text, branch));
    }
    for text in ["", "1", "1/2", "1/2/3/4", "01//0", "-1//0", "1/./2", "1/a/2", "+1//2"] {
        assert!(text.parse::<CallId>().is_err(), "{text}");
    }
}

#[cfg(feature = "async")]
mod with_tokio {
    use super::*;
    use lispbox::lang::{CancelHandle, Session};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("it succeeds")
    }

    #[test]
    fn an_asynchronous_tool_has_its_call() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (session, outcome) = runtime().block_on(async {
            let mut tools = Tools::new();
            tools.async_tool("t/slow", async |_: NoArguments, call: &Call| {
                call.progress(1.0, Some(2.0), "half");
                tokio::task::yield_now().await;
                assert!(!call.cancelled() && call.deadline() > Duration::ZERO);
                Ok((call.name(), call.id().to_string()))
            });
            let reports = seen.clone();
            let world = World::new(tools).on_progress(move |progress| reports.lock().unwrap().push(progress.message));
            let run =
                |session: &mut Session, world: &World<'_>| session.run("(t/slow)").eval::<(String, String)>(world);
            engine().session().run_async(world, run).await
        });
        assert_eq!(outcome.unwrap().done(), Some(("t/slow".to_owned(), "0//0".to_owned())));
        assert_eq!(session.report().calls.len(), 1);
        assert_eq!(*seen.lock().unwrap(), ["half"]);
    }

    /// Evaluates a call of an asynchronous tool.
    fn on_this_thread() -> Result<Outcome<i64>, EvalError> {
        let mut tools = Tools::new();
        tools.async_tool("t/slow", async |_: NoArguments, _: &Call| Ok(1));
        engine().session().run("(t/slow)").eval::<i64>(&World::new(tools))
    }

    #[test]
    fn a_run_on_a_thread_of_the_runtime_is_refused_without_a_panic() {
        let panics = Arc::new(Mutex::new(Vec::new()));
        let (seen, before) = (Arc::clone(&panics), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |info| {
            seen.lock().expect("no panic here").push(std::thread::current().id());
            before(info);
        }));
        let refused = |outcome| matches!(outcome, Err(EvalError::OnRuntime));
        assert!(runtime().block_on(async {
            let is_left = (0..100).all(|_| refused(on_this_thread()));
            // The operations of the task are as many as before.
            is_left && tokio::task::coop::has_budget_remaining()
        }));
        let single = tokio::runtime::Builder::new_current_thread().build().expect("it succeeds");
        assert!(single.block_on(async { refused(on_this_thread()) }));
        assert!(single.block_on(tokio::task::LocalSet::new().run_until(async { refused(on_this_thread()) })));
        let own = std::thread::current().id();
        assert!(!panics.lock().expect("no panic here").contains(&own));
        // Where blocking is allowed, it runs.
        let runtime = runtime();
        let blocking = runtime.block_on(async { tokio::task::spawn_blocking(on_this_thread).await.expect("it ends") });
        assert_eq!(blocking.expect("it runs").done(), Some(1));
        let in_place = async { tokio::task::block_in_place(on_this_thread) };
        assert_eq!(runtime.block_on(in_place).expect("it runs").done(), Some(1));
    }

    #[test]
    fn a_thread_of_the_runtime_does_not_wait_for_its_own_tools() {
        let outcome = runtime().block_on(async { on_this_thread() });
        assert!(matches!(outcome, Err(EvalError::OnRuntime)), "{outcome:?}");
        let outcome = runtime().block_on(tokio::task::unconstrained(async { on_this_thread() }));
        assert!(matches!(outcome, Err(EvalError::OnRuntime)), "{outcome:?}");
        let advice = "asynchronous tools cannot be waited for on a thread of a tokio runtime: use `Session::run_async`, \
                      or evaluate within `tokio::task::spawn_blocking`";
        assert_eq!(EvalError::OnRuntime.to_string(), advice);
    }

    #[test]
    fn blocking_work_is_awaited_until_the_deadline_only() {
        let sent = Arc::new(AtomicBool::new(false));
        // Dropped after the channel: the runtime waits for its blocking threads.
        let runtime = runtime();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let (mut session, outcome) = runtime.block_on(async {
            let mut tools = Tools::new();
            let sent = sent.clone();
            tools.async_tool("mail/send", async move |_: NoArguments, _: &Call| {
                let (sent, held) = (sent.clone(), held.clone());
                let work = tokio::task::spawn_blocking(move || {
                    held.lock().expect("it succeeds").recv().expect("it is released");
                    sent.store(true, Ordering::Release);
                    "sent"
                });
                work.await.map_err(|error| ToolError::unavailable(error.to_string()))
            });
            let limits = Limits { tool: Duration::from_millis(50), ..Limits::default() };
            let run = move |session: &mut Session, world: &World<'_>| {
                session.run("(mail/send)").limits(limits).retryable().eval::<String>(world)
            };
            engine().session().run_async(World::new(tools), run).await
        });
        let failure = outcome.unwrap().into_result().unwrap_err();
        assert_eq!(failure.to_string(), "ToolTimeout: `mail/send` did not answer within 50 ms");
        assert!(!sent.load(Ordering::Acquire), "the program did not wait for it");
        // Whether the mail will be sent is not known, so it is not sent again.
        let failed = session.report().failed.clone().expect("it may have changed something");
        assert_eq!(failed.unknown().map(ToString::to_string).collect::<Vec<_>>(), ["0//0"]);
        let mut tools = Tools::new();
        tools.tool("mail/send", |_: NoArguments, _: &Call| -> Result<String, ToolError> { panic!("it is sent again") });
        let again = session.retry(*failed, "(mail/send)").eval::<String>(&World::new(tools)).unwrap();
        assert_eq!(again.into_result().unwrap_err().code(), ErrorCode::EffectRepeated);
        // The work goes on, and its result is dropped. The runtime waits for its blocking threads.
        release.send(()).expect("it still waits");
        drop(runtime);
        assert!(sent.load(Ordering::Acquire));
    }

    #[test]
    fn a_run_ends_when_its_future_is_dropped() {
        /// Tells that it was dropped.
        struct Ends(Arc<AtomicBool>);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Release);
            }
        }
        let ended = Arc::new(AtomicBool::new(false));
        let runtime = runtime();
        let begun = Arc::new(tokio::sync::Notify::new());
        let cancel = CancelHandle::new();
        runtime.block_on(async {
            let mut tools = Tools::new();
            let (begins, ends) = (begun.clone(), ended.clone());
            tools.async_tool("t/forever", async move |_: NoArguments, _: &Call| {
                let _ends = Ends(ends.clone());
                begins.notify_one();
                std::future::pending::<()>().await;
                Ok(())
            });
            let world = World::new(tools).cancelled_by(&cancel);
            let run = |session: &mut Session, world: &World<'_>| session.run("(t/forever)").eval::<()>(world).is_ok();
            let running = tokio::spawn(engine().session().run_async(world, run));
            begun.notified().await;
            running.abort();
            assert!(running.await.is_err());
        });
        // The runtime waits for its blocking threads.
        drop(runtime);
        assert!(cancel.is_cancelled() && ended.load(Ordering::Acquire));
    }

    #[test]
    fn a_tool_on_a_runtime_that_nothing_drives_ends_at_its_limit() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it succeeds");
        let _inside = runtime.enter();
        let mut tools = Tools::new();
        tools.async_tool("t/wait", async |_: NoArguments, _: &Call| {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(1)
        });
        let limits = Limits { tool: Duration::from_millis(50), ..Limits::default() };
        let failure = engine().session().run("(t/wait)").limits(limits).eval::<i64>(&World::new(tools)).expect("input");
        let message = failure.into_result().expect_err("it takes its time").message;
        assert_eq!(
            message,
            "`t/wait` did not answer within 50 ms; its runtime has one thread, and does nothing unless that is in `block_on`"
        );
    }

    #[test]
    fn the_runtime_of_the_thread_is_that_of_its_branches_too() {
        let runtime = runtime();
        let _inside = runtime.enter();
        let spawn = || {
            let (sender, answer) = std::sync::mpsc::channel();
            tokio::spawn(async move { sender.send(tokio::runtime::Handle::current().id()).expect("it waits") });
            answer.recv().expect("it is sent").to_string()
        };
        let mut tools = Tools::new();
        tools.tool("t/spawn", move |_: NoArguments, _: &Call| Ok(spawn()));
        let mut builder = Engine::builder();
        builder.function("my/spawn", spawn);
        let mut session = builder.build().expect("it succeeds").session();
        let program = "(distinct (pmap (fn [n] (if (odd? n) (t/spawn) (my/spawn))) (range 4)))";
        let outcome = session.run(program).eval::<Vec<String>>(&World::new(tools)).expect("input");
        assert_eq!(outcome.into_result().expect("it succeeds"), [runtime.handle().id().to_string()]);
    }

    #[test]
    fn an_asynchronous_tool_is_added_within_a_runtime() {
        let refused = Tools::new().try_async_tool("t/wait", async |_: NoArguments, _: &Call| Ok(1)).map(|_| ());
        assert_eq!(refused, Err(lispbox::lang::RegisterError::NoRuntime("t/wait".to_owned())));
    }
}
