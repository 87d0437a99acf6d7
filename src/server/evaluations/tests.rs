use std::time::Duration;

use serde_json::json;

use crate::lang::{Engine, Limits};
use crate::server::admission::Admission;
use crate::server::config::Configuration;
use crate::server::downstream::DownstreamOptions;
use crate::server::policy::no_approver;
use crate::server::runs::Runs;
use crate::server::sessions::SessionBounds;

use super::*;

#[test]
fn a_call_that_was_withdrawn_before_its_turn_does_not_begin() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let engine = Engine::builder().unlimited_memory().build().expect("an engine without a memory limit");
    let options = DownstreamOptions { cache: None, ..DownstreamOptions::default() };
    let evaluations = Evaluations::new(
        engine,
        Arc::new(Downstreams::new(Configuration::default(), options)),
        Sessions::new(SessionBounds::default(), Arc::default()),
        Runs::new(None, None),
        runtime.handle().clone(),
        Gate::new(Admission::default(), Arc::default()),
        Shutdown::new(Duration::ZERO),
    );
    let withdrawn = CancellationToken::new();
    withdrawn.cancel();
    runtime.block_on(async {
        // If the two were checked in arbitrary order, half of these would begin.
        for _ in 0..40 {
            let arguments = json!({"program": "(def x 1)"}).as_object().cloned().unwrap_or_default();
            let request = EvalRequest::read(arguments, &Limits::default(), &Limits::default()).expect("right");
            let (name, withdrawn, left) = ("somebody".to_owned(), withdrawn.clone(), withdrawn.clone());
            let caller = Caller {
                name,
                own: None,
                handles: None,
                withdrawn,
                left,
                activity: Arc::default(),
                approver: Arc::new(no_approver()),
                can_wait: false,
                words: None,
            };
            let failure = evaluations.evaluate(request, None, None, caller).await.0.failure.expect("it was withdrawn");
            assert_eq!(failure.message, "the call was cancelled before it started");
        }
    });
}
