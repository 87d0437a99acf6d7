//! Tests of the chain: no call is sent that any of its layers refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use super::*;
use crate::lang::{self, Entry, Journal, Keep, RunLog, Tools};
use crate::server::approvals::{Consent, Grants, LaterCalls, Take, TakenCall, no_approver};
use crate::server::audit::{AuditLog, AuditOptions};
use crate::server::config::Configuration;
use crate::server::downstream::{DownstreamOptions, Downstreams};
use crate::server::guards::Guarded;
use crate::server::identity::Identity;
use crate::server::pins::Pins;
use crate::server::runs::Repeats;
use crate::server::secrets::Secrets;
use crate::server::sessions::leases::HeldLease;
use crate::server::sessions::requests::SessionRequests;
use crate::store::{Key, Lease, TakenLease};
use lispbox_policy::Rehearsal;
use lispbox_policy::internal::Origins;

/// A reason for which a call is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    LeaseLost,
    AuditFails,
    RunLogFails,
    Rehearsal,
    NoServer,
    DeniedByName,
    NoTool,
    BadArguments,
    Repeated,
    Guard,
    DeniedByEffect,
    LimitReached,
    NeedsPerson,
    GrantRevoked,
    Cancelled,
    TimeIsUp,
}

const OBSTACLES: [Obstacle; 16] = [
    Obstacle::LeaseLost,
    Obstacle::AuditFails,
    Obstacle::RunLogFails,
    Obstacle::Rehearsal,
    Obstacle::NoServer,
    Obstacle::DeniedByName,
    Obstacle::NoTool,
    Obstacle::BadArguments,
    Obstacle::Repeated,
    Obstacle::Guard,
    Obstacle::DeniedByEffect,
    Obstacle::LimitReached,
    Obstacle::NeedsPerson,
    Obstacle::GrantRevoked,
    Obstacle::Cancelled,
    Obstacle::TimeIsUp,
];

/// A journal that can store nothing.
struct Full;

impl Journal for Full {
    fn store(&self, _: &Entry) -> Result<(), String> {
        Err("the disk is full".to_owned())
    }
}

/// A grant for every call that is revoked directly after a call has been taken from it.
struct Revoked;

impl Grants for Revoked {
    fn covering(&self, asked: &[lang::Question]) -> Result<Vec<Option<String>>, String> {
        Ok(vec![Some("a grant".to_owned()); asked.len()])
    }

    fn take(&self, _: &lang::Question) -> Result<Take, String> {
        Ok(Take::Taken(TakenCall { by: "a grant".to_owned(), holds: Arc::new(|| Ok(false)) }))
    }

    fn give(&self, _: &lang::Question, _: LaterCalls) -> Result<(), String> {
        Ok(())
    }
}

/// An evaluation with layers that may be on without refusing anything, and with obstacles.
struct World {
    calls: Calls,
    sent: Arc<AtomicUsize>,
    given: ToolCall,
    _audit: Option<tempfile::TempDir>,
}

fn policy(with: &dyn Fn(Obstacle) -> bool) -> Value {
    let mut policy = json!({"allow": [], "ask": [], "deny": [], "defaults": {}, "limits": [], "guards": []});
    if with(Obstacle::NeedsPerson) || with(Obstacle::GrantRevoked) {
        policy["ask"] = json!(["mail/send"]);
    }
    if with(Obstacle::DeniedByName) {
        policy["deny"] = json!(["mail/send"]);
    }
    if with(Obstacle::DeniedByEffect) {
        policy["defaults"]["writes"] = json!("deny");
    }
    if with(Obstacle::LimitReached) {
        policy["limits"] = json!([{"tools": "mail/send", "per_minute": 0}]);
    }
    if with(Obstacle::Guard) {
        policy["guards"] = json!([{"tool": "mail/send", "argument": "to", "one_of": ["ann"], "otherwise": "deny"}]);
    }
    policy
}

impl World {
    /// Creates an evaluation; `layers` says which of audit, session and guards are on although nothing there refuses.
    fn new(runtime: &Handle, obstacles: &[Obstacle], layers: (bool, bool, bool)) -> World {
        let with = |obstacle| obstacles.contains(&obstacle);
        let sent = Arc::new(AtomicUsize::new(0));
        let mut tools = Tools::new();
        let counted = Arc::clone(&sent);
        let send = move |arguments: Map<String, Value>, _: &lang::Call| match arguments.get("to") {
            Some(Value::String(to)) if to == "panic" => panic!("it was asked to"),
            _ => {
                counted.fetch_add(1, Ordering::SeqCst);
                Ok(arguments)
            }
        };
        let schema = json!({
            "type": "object",
            "properties": {"to": {"type": "string"}, "subject": {"default": "none"}},
            "required": ["to"],
            "additionalProperties": false
        });
        tools.tool("mail/send", send).schema(schema).writes();
        let mut policy = policy(&with);
        if layers.2 {
            let guard =
                json!({"tool": "mail/send", "argument": "to", "one_of": ["ann", "bob", "panic"], "otherwise": "deny"});
            policy["guards"].as_array_mut().expect("a list").push(guard);
        }
        let text = json!({"mcpServers": {}, "policy": policy}).to_string();
        let mut configuration =
            Configuration::parse(&text, "servers.json", &|_| None).unwrap_or_else(|problem| panic!("{problem}"));
        configuration.add_tools(tools).expect("a name of its own");
        let folder = (layers.0 || with(Obstacle::AuditFails)).then(|| tempfile::tempdir().expect("a folder"));
        let audit = folder.as_ref().map(|folder| {
            let part_bytes = if with(Obstacle::AuditFails) { 1 } else { 1 << 20 };
            let options = AuditOptions { part_bytes, ..AuditOptions::new(folder.path().join("audit")) };
            Arc::new(AuditLog::begin(options).expect("a new folder"))
        });
        if let Some(folder) = folder.as_ref().filter(|_| with(Obstacle::AuditFails)) {
            std::fs::remove_dir_all(folder.path().join("audit")).expect("the folder is there");
        }
        let options = DownstreamOptions {
            cache: None,
            pins: Pins::none(),
            logins: None,
            secrets: Secrets::default(),
            audit,
            ..DownstreamOptions::default()
        };
        let downstreams = Arc::new(Downstreams::new(configuration, options));
        let needs_session = with(Obstacle::LeaseLost) || with(Obstacle::RunLogFails);
        let requests = (layers.1 || needs_session).then(Arc::<SessionRequests>::default);
        let cancel = CancellationToken::new();
        if with(Obstacle::LeaseLost) {
            let key = Key { principal: "ann".to_owned(), handle: "session".to_owned() };
            let lease = Lease { holder: "this".to_owned(), token: 1 };
            // Requested when the machine was started, it has expired.
            let taken = TakenLease { lease, asked: Duration::ZERO };
            let held = HeldLease::new(key, taken, CancellationToken::new());
            if let Some(requests) = &requests {
                requests.run_under(Arc::new(held));
            }
        }
        let given = ToolCall {
            id: CallId::default(),
            server: if with(Obstacle::NoServer) { "post" } else { "mail" }.into(),
            tool: if with(Obstacle::NoTool) { "sned" } else { "send" }.into(),
            arguments: if with(Obstacle::BadArguments) { json!({"to": "bob", "at": 1}) } else { json!({"to": "bob"}) }
                .to_string(),
            remaining: if with(Obstacle::TimeIsUp) { Duration::ZERO } else { Duration::from_secs(60) },
            timeout: Duration::from_secs(60),
            fuel: 0,
            memory: 0,
            approved: None,
            values: None,
            room: u64::MAX,
        };
        if with(Obstacle::RunLogFails) {
            let question = lang::Question {
                id: given.id.clone(),
                server: Arc::clone(&given.server),
                tool: Arc::clone(&given.tool),
                arguments: given.arguments.clone(),
                reason: String::new(),
                is_guarded: false,
            };
            let logged =
                lang::Logged { calls: vec![Entry::asked(question, given.arguments.clone())], ..Default::default() };
            let log = RunLog::new(logged, Keep::Run, 1 << 20).kept_by(Arc::new(Full));
            if let Some(requests) = &requests {
                requests.log_in(Arc::new(log));
            }
        }
        let given_arguments = given.arguments.clone();
        let identity = Arc::new(Identity { principal: "ann".to_owned(), ..Identity::default() });
        let origins = Arc::new(Origins::default());
        let guarded = Guarded::new(&downstreams, &origins);
        let grants = with(Obstacle::GrantRevoked).then(|| Arc::new(Revoked) as Arc<dyn Grants>);
        let consent = Consent::new(Arc::clone(&identity), Arc::new(no_approver()));
        let consent =
            consent.with_grants(grants).with_origins(guarded.as_ref().map(|guarded| Arc::clone(guarded.origins())));
        if with(Obstacle::Cancelled) {
            cancel.cancel();
        }
        let calls = Calls::new(Parts {
            downstreams,
            runtime: runtime.clone(),
            cancel,
            slots: 1,
            identity,
            activity: Arc::default(),
            consent: Arc::new(consent),
            requests,
            features: Features {
                guarded,
                rehearsal: with(Obstacle::Rehearsal).then(Arc::<Rehearsal>::default),
                repeats: with(Obstacle::Repeated).then(|| Repeats::of_one_call("mail", "send", &given_arguments)),
            },
        });
        World { calls, sent, given, _audit: folder }
    }

    /// Makes the call, and once more if a grant covers it.
    fn call(&self) -> ToolReply {
        let reply = self.calls.make(&self.given);
        let ToolReply::Ask(question) = &reply else { return reply };
        match &self.calls.decide(std::slice::from_ref(&**question))[..] {
            [Decision::Covered(_)] => self.calls.make(&self.given),
            _ => reply,
        }
    }
}

/// The layers take time-outs and connections from a runtime with threads of its own.
fn with_runtime<T>(work: impl FnOnce(&Handle) -> T) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    work(runtime.handle())
}

#[test]
fn each_obstacle_alone_stops_a_call() {
    with_runtime(|runtime| {
        for obstacle in OBSTACLES {
            let world = World::new(runtime, &[obstacle], (false, false, false));
            let reply = world.call();
            let expected = match obstacle {
                Obstacle::LeaseLost | Obstacle::Cancelled => "stopped",
                // Where it is noticed depends on the speed of the machine.
                Obstacle::TimeIsUp => reply.outcome(),
                Obstacle::Rehearsal => "rehearsed",
                Obstacle::Repeated => "EffectRepeated",
                Obstacle::NoServer => "ServerUnavailable",
                Obstacle::NoTool | Obstacle::BadArguments => "ToolArgumentError",
                Obstacle::NeedsPerson | Obstacle::GrantRevoked => "asked",
                _ => "ToolDenied",
            };
            assert_eq!((reply.outcome(), world.sent.load(Ordering::SeqCst)), (expected, 0), "{obstacle:?}: {reply:?}");
        }
    });
}

#[test]
fn a_function_gets_its_defaults_and_may_panic() {
    with_runtime(|runtime| {
        let mut world = World::new(runtime, &[], (true, true, true));
        let reply = world.call();
        assert_eq!(reply, ToolReply::Json(json!({"to": "bob", "subject": "none"}).to_string()));
        world.given.arguments = json!({"to": "panic"}).to_string();
        let ToolReply::Error(error) = world.call() else { panic!("an error") };
        assert_eq!(error.message, "`mail/send` panicked: it was asked to");
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// Without a layer, a call is sent that this layer alone refuses, so that the test before this one fails. With several
    /// obstacles, and with layers that refuse nothing, the order of the layers must make no difference to that.
    #[test]
    fn a_call_is_sent_if_nothing_refuses_it(
        obstacles in prop::sample::subsequence(OBSTACLES.to_vec(), 0..4),
        layers in any::<(bool, bool, bool)>(),
    ) {
        let (sent, reply) = with_runtime(|runtime| {
            let world = World::new(runtime, &obstacles, layers);
            let reply = world.call();
            (world.sent.load(Ordering::SeqCst), reply)
        });
        prop_assert_eq!(sent, usize::from(obstacles.is_empty()), "{:?}", reply);
    }
}
