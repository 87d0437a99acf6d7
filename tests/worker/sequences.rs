//! Programs with changing limits in one worker, one after the other: whatever the earlier programs used and left, the
//! outcome of each is that of a session in this process.

use crate::common::{Scripted, engine, outcome};
use crate::workers;
use lispbox::lang::{
    Catalogue, Decision, Environment, Host, Limits, Question, Request, Server, Tool, ToolCall, ToolError, ToolReply,
};
use proptest::prelude::*;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// One program.
#[derive(Clone, Debug)]
enum Step {
    /// Calls a tool in branches; a person is asked about each call if `is_asked`. The tool waits until as many calls
    /// are under way as can be.
    Branches { width: usize, parallel: u32, is_asked: bool },
    /// Calls a tool in branches, and is cancelled when the first call arrives.
    Cancelled { width: usize, parallel: u32 },
    /// Nests calls, of which a limit allows fewer in some cases.
    Nested { calls: u32, depth: u32 },
    /// Holds that many MiB under that limit.
    Held { mebibytes: u64, memory: u64, parallel: u32 },
    /// Holds many small values, whose release takes time.
    Released { items: u32, parallel: u32 },
    /// A small program, after a pause in which threads of the pool may end.
    Small { parallel: u32, pause: Duration },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let parallel = || prop_oneof![Just(1_u32), Just(2), 3..=40_u32, Just(70)];
    let step = prop_oneof![
        3 => (2..80_usize, parallel(), any::<bool>())
            .prop_map(|(width, parallel, is_asked)| Step::Branches { width, parallel, is_asked }),
        1 => (2..40_usize, parallel()).prop_map(|(width, parallel)| Step::Cancelled { width, parallel }),
        1 => (1..2_000_u32, prop_oneof![Just(100_u32), Just(5_000)])
            .prop_map(|(calls, depth)| Step::Nested { calls, depth }),
        2 => (1..200_u64, prop_oneof![Just(8_u64), Just(64), Just(256)], parallel())
            .prop_map(|(mebibytes, memory, parallel)| Step::Held { mebibytes, memory, parallel }),
        1 => (1_000..400_000_u32, parallel()).prop_map(|(items, parallel)| Step::Released { items, parallel }),
        2 => (parallel(), prop_oneof![9 => Just(0_u64), 3 => 1..20_u64, 1 => 4_950..5_050_u64])
            .prop_map(|(parallel, pause)| Step::Small { parallel, pause: Duration::from_millis(pause) }),
    ];
    proptest::collection::vec(step, 1..12)
}

impl Step {
    fn request(&self) -> Request {
        let mut limits = Limits { compute: Duration::from_secs(60), ..Limits::default() };
        let program = match self {
            Step::Branches { width, parallel, is_asked } => {
                limits.parallel = *parallel;
                let tool = if *is_asked { "asked" } else { "meet" };
                format!("(reduce + (pmap (fn [n] (:n (site/{tool} {{:n n}}))) (range {width})))")
            }
            Step::Cancelled { width, parallel } => {
                limits.parallel = *parallel;
                format!("(pmap (fn [n] (site/cancel {{:n n}})) (range {width}))")
            }
            Step::Nested { calls, depth } => {
                limits.depth = *depth;
                format!("(do (defn nested [n] (if (= n 0) 0 (+ 1 (nested (- n 1))))) (nested {calls}))")
            }
            Step::Held { mebibytes, memory, parallel } => {
                (limits.memory, limits.parallel) = (memory << 20, *parallel);
                format!("(count (str/repeat \"x\" {}))", mebibytes << 20)
            }
            Step::Released { items, parallel } => {
                limits.parallel = *parallel;
                format!("(count (mapv (fn [n] {{:n n}}) (range {items})))")
            }
            Step::Small { parallel, .. } => {
                limits.parallel = *parallel;
                "(reduce + (map identity (range 1000)))".to_string()
            }
        };
        Request { limits, ..Request::new(program) }
    }

    /// Returns whether the outcome depends on the bytes that an allocator counts, or on the clock.
    fn is_close(&self) -> bool {
        match self {
            Step::Held { mebibytes, memory, .. } => (memory / 2..=memory * 2).contains(mebibytes),
            Step::Nested { calls, depth } => (depth / 2..=depth * 2).contains(calls),
            _ => false,
        }
    }

    /// The host of one evaluation.
    fn host(&self) -> Arc<Site> {
        let (width, parallel) = match self {
            Step::Branches { width, parallel, .. } | Step::Cancelled { width, parallel } => {
                (*width, *parallel as usize)
            }
            _ => (0, 0),
        };
        let schema = || json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let quorum = Arc::new(Quorum { wanted: width.min(parallel), ..Quorum::default() });
        let meeting = Arc::clone(&quorum);
        let tools = Scripted::new()
            .tool("site/meet", schema(), move |arguments| {
                meeting.meet();
                ToolReply::Json(json!({"n": arguments["n"]}).to_string())
            })
            .tool("site/asked", schema(), |arguments| ToolReply::Json(json!({"n": arguments["n"]}).to_string()))
            .tool("site/cancel", schema(), |_| ToolReply::Stopped);
        Arc::new(Site { tools, cancelled: AtomicBool::new(false), is_decided: AtomicBool::new(false) })
    }
}

/// Holds the first calls back until as many of them are under way as can be at the same time.
#[derive(Default)]
struct Quorum {
    wanted: usize,
    present: Mutex<usize>,
    changed: Condvar,
}

impl Quorum {
    fn meet(&self) {
        let mut present = self.present.lock().expect("not poisoned");
        *present += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(present, |present| *present < self.wanted).expect("not poisoned"));
    }
}

/// A site with three tools: `meet`, `asked`, about which a person is asked, who approves, and `cancel`, which cancels
/// the evaluation.
struct Site {
    tools: Scripted,
    cancelled: AtomicBool,
    is_decided: AtomicBool,
}

impl Host for Site {
    fn servers(&self) -> Vec<Server> {
        self.tools.servers()
    }

    fn tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, ToolError> {
        self.tools.tools(server)
    }

    fn catalogue(&self) -> Catalogue {
        self.tools.catalogue()
    }

    fn call(&self, call: ToolCall) -> ToolReply {
        if &*call.tool == "cancel" {
            self.cancelled.store(true, Ordering::Relaxed);
        }
        if &*call.tool == "asked" && call.approved.is_none() && !self.is_decided.load(Ordering::Relaxed) {
            let ToolCall { id, server, tool, arguments, .. } = call;
            let reason = "a person decides".to_string();
            return ToolReply::Ask(Box::new(Question { id, server, tool, arguments, reason, is_guarded: false }));
        }
        self.tools.call(call)
    }

    fn decide(&self, questions: &[Question]) -> Vec<Decision> {
        self.is_decided.store(true, Ordering::Relaxed);
        questions.iter().map(|_| Decision::Approved).collect()
    }

    fn now_millis(&self) -> i64 {
        self.tools.now_millis()
    }

    fn random(&self) -> u64 {
        self.tools.random()
    }

    fn monotonic(&self) -> Duration {
        self.tools.monotonic()
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Waits: nothing is ever sent.
fn pause(time: Duration) {
    let (sender, receiver) = channel::<()>();
    let _ = receiver.recv_timeout(time);
    drop(sender);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn any_order_of_programs_and_limits_has_the_outcomes_of_a_session_in_this_process(steps in steps()) {
        let (mut there, mut here) = (workers().session(), engine().session());
        for step in steps {
            if let Step::Small { pause: time, .. } = step {
                pause(time);
            }
            let got = outcome(there.eval(step.request(), step.host()));
            if step.is_close() {
                prop_assert!(!got.starts_with("error"), "{step:?}: {got}");
            } else {
                prop_assert_eq!(&got, &outcome(here.eval(step.request(), step.host())), "{:?}", step);
            }
        }
    }
}
