use std::time::Duration;

use serde_json::json;

use crate::lang::{Engine, Limits};
use crate::server::admission::Admission;
use crate::server::approvals::no_approver;
use crate::server::config::Configuration;
use crate::server::downstream::DownstreamOptions;
use crate::server::runs::{Free, Retry, Runs};
use crate::server::sessions::SessionBounds;

use super::*;

fn evaluations(runtime: &tokio::runtime::Runtime, configuration: Configuration) -> Evaluations {
    let engine = Engine::builder().unlimited_memory().build().expect("an engine without a memory limit");
    let options = DownstreamOptions { cache: None, ..DownstreamOptions::default() };
    Evaluations::new(
        engine,
        Arc::new(Downstreams::new(configuration, options)),
        Sessions::new(SessionBounds::default(), Arc::default()),
        Runs::new(None, None),
        runtime.handle().clone(),
        Gate::new(Admission::default(), Arc::default()),
        Shutdown::new(Duration::ZERO),
    )
}

fn called(text: &str, resumed: Option<(Resumption, RunSession)>) -> Box<CalledProgram> {
    let arguments = json!({"program": text}).as_object().cloned().unwrap_or_default();
    let request = EvalRequest::read(arguments, &Limits::default(), &Limits::default()).expect("right");
    Box::new(CalledProgram { request, resumed, key: None, dry_run: None })
}

/// A caller outside of sessions, with tokens of its evaluation and of its request.
fn caller(withdrawn: &CancellationToken, request: &CancellationToken) -> Box<Caller> {
    Box::new(Caller {
        name: "somebody".to_owned(),
        own: None,
        handles: None,
        withdrawn: withdrawn.clone(),
        left: withdrawn.clone(),
        request: Arc::new(ClientRequest::new(request.clone(), None)),
        activity: Arc::default(),
        approver: Arc::new(no_approver()),
        can_wait: false,
        words: None,
    })
}

#[test]
fn a_call_that_was_withdrawn_before_its_turn_does_not_begin() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let evaluations = evaluations(&runtime, Configuration::default());
    let withdrawn = CancellationToken::new();
    withdrawn.cancel();
    runtime.block_on(async {
        // If the two were checked in arbitrary order, half of these would begin.
        for _ in 0..40 {
            let caller = caller(&withdrawn, &CancellationToken::new());
            let reply = evaluations.evaluate(called("(def x 1)", None), caller).await.0;
            assert_eq!(reply.failure.expect("it was withdrawn").message, "the call was cancelled before it started");
        }
    });
}

#[cfg(unix)]
#[test]
fn a_program_whose_client_has_gone_when_it_ends_well_is_told_of_and_goes_on() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let text = r#"{
        "local": {"notes/add": {"command": "echo", "args": ["added {line}"], "parameters":
            {"properties": {"line": {"type": "string"}}, "required": ["line"]}}},
        "policy": {"allow": ["notes/add"]}
    }"#;
    let configuration = Configuration::parse(text, "servers.json", &|_| None).expect("a configuration");
    let evaluations = evaluations(&runtime, configuration);
    let (stays, gone) = (CancellationToken::new(), CancellationToken::new());
    gone.cancel();
    let adds = "(notes/add {:line \"1\"})";
    runtime.block_on(async {
        let lost = evaluations.evaluate(called(adds, None), caller(&stays, &gone)).await.0;
        assert_eq!((lost.status, lost.cut_off), (crate::lang::Status::Ok, None));
        let run = lost.run.expect("it is kept");
        let next = evaluations.evaluate(called("1", None), caller(&stays, &stays)).await.0;
        let told = next.cut_off.expect("it is told");
        assert_eq!((told.run.as_str(), told.made.len()), (run.as_str(), 1));
        let found = evaluations.runs().find(&run, "somebody").expect("it is kept");
        let Free::Now(Some(found)) = found else { panic!("it is kept") };
        let retry = Retry { program: Some(adds.to_owned()), ..Retry::default() };
        let again = Resumption { run, answers: None, retry: Some(retry) };
        let again = Some((again, found.session));
        let again = evaluations.evaluate(called(adds, again), caller(&stays, &stays)).await.0;
        assert_eq!(again.attempt.expect("a further one").answered, 1);
        // A reply that is received leaves nothing behind.
        let received = evaluations.evaluate(called(adds, None), caller(&stays, &stays)).await.0;
        assert_eq!((received.status, received.run), (crate::lang::Status::Ok, None));
    });
}
