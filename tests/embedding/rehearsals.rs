//! Rehearsals: reads are made, changes are collected, and made once when a person has approved them.

use crate::common::engine;
use lispbox::lang::{Call, EvalError, NoArguments, Outcome, Session, Suspended, Tools, World};
use lispbox::policy::{CommittedCall, Monitor, Policy, Rehearsal};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

type Sent = Mutex<Vec<String>>;

type Arguments = BTreeMap<String, lispbox::lang::Value>;

fn tools(sent: &Sent) -> Tools<'_> {
    let mut tools = Tools::new();
    tools.tool("contacts/list", |_: NoArguments, _: &Call| Ok(["ann", "bob", "eve"])).read_only();
    let send = |mail: Arguments, _: &Call| {
        let text: Vec<String> = mail.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        sent.lock().expect("it succeeds").push(text.join(" "));
        Ok(mail["to"].to_string())
    };
    tools.tool("mail/send", send).writes();
    tools.tool("mail/delete", send).destructive();
    tools
}

fn monitor(text: &str) -> Monitor {
    Monitor::new(&Arc::new(Policy::read(text).unwrap_or_else(|error| panic!("{error}"))))
}

/// Rehearses a program in a fork of a session.
fn rehearsed(session: &mut Session, monitor: &Monitor, sent: &Sent, program: &str) -> Option<Suspended> {
    let rehearsal = Rehearsal::default();
    let world = World::new(tools(sent)).layer(Monitor::rehearsing(monitor, &rehearsal));
    let outcome = session.fork().run(program).eval::<()>(&world).expect("it has an outcome");
    assert!(matches!(outcome, Outcome::Done(())), "{outcome:?}");
    assert!(sent.lock().expect("it succeeds").is_empty(), "nothing is changed");
    rehearsal.propose(session).expect("there is room")
}

/// Approves the first call that is still to be decided on.
fn approve_next(run: &mut Suspended) {
    let id = run.questions().next().expect("there is a question").id.clone();
    run.approve(&id).expect("it is open");
}

type Made = Vec<CommittedCall<String>>;

fn committed(
    session: &mut Session,
    monitor: &Monitor,
    sent: &Sent,
    run: Suspended,
) -> Result<Outcome<Made>, EvalError> {
    session.resume(run).eval(&World::new(tools(sent)).layer(monitor))
}

#[test]
fn reads_are_made_and_the_changes_once_each_on_approval() {
    let sent = Sent::default();
    let engine = engine();
    let (mut session, monitor) = (engine.session(), monitor(r#"{"ask": ["mail/send"]}"#));
    let program = "(def sent (mapv (fn [to] (mail/send {:to to :at #inst \"2026-01-02T03:04:05Z\" :cost 19.90M}))
                                   (contacts/list))) nil";
    let mut run = rehearsed(&mut session, &monitor, &sent, program).expect("there are calls");
    assert!(session.get::<Vec<String>>("sent").expect("it is no error").is_none(), "definitions are dropped");
    let questions: Vec<_> = run.questions().cloned().collect();
    let shown: Vec<String> = questions.iter().map(|question| question.arguments.clone()).collect();
    assert_eq!(shown[0], r#"{"to":"ann","at":"2026-01-02T03:04:05Z","cost":19.90}"#);
    run.approve(&questions[0].id).expect("it is open");
    run.deny(&questions[1].id, "bob is away").expect("it is open");
    run.approve(&questions[2].id).expect("it is open");

    // Days later, in another process.
    let (kept, run) = (monitor.encode(&mut session).expect("it is data"), run.encode());
    let rules = Arc::new(Policy::read(r#"{"ask": ["mail/send"]}"#).expect("it is one"));
    let (mut session, monitor) = Monitor::restore(&rules, &engine, &kept).expect("it is whole");
    let run = Suspended::decode(&run).expect("it is whole");
    let made = committed(&mut session, &monitor, &sent, run.clone()).expect("it has an outcome").done();
    let denied = "`mail/send` may not be called: bob is away".to_owned();
    let result = |name: &str| CommittedCall::Result(name.to_owned());
    assert_eq!(made, Some(vec![result("ann"), CommittedCall::Denied(denied), result("eve")]));
    assert!(matches!(committed(&mut session, &monitor, &sent, run), Err(EvalError::AlreadyResumed(_))));
    let sent = sent.into_inner().expect("it succeeds");
    assert_eq!(
        sent,
        ["ann", "eve"].map(|name| format!("at=#inst \"2026-01-02T03:04:05.000-00:00\" cost=19.90M to=\"{name}\""))
    );
}

#[test]
fn a_change_set_waits_for_every_decision_and_is_stopped_by_the_policy() {
    let sent = Sent::default();
    let (mut session, monitor) = (engine().session(), monitor(r#"{"deny": ["mail/delete"]}"#));
    let two = "(mail/send {:to \"ann\"}) (mail/send {:to \"bob\"}) nil";
    let mut run = rehearsed(&mut session, &monitor, &sent, two).expect("there are calls");
    approve_next(&mut run);
    let Ok(Outcome::Suspended(run)) = committed(&mut session, &monitor, &sent, run) else { panic!("it waits") };
    assert_eq!(run.questions().count(), 1);
    let mut run = *run;
    approve_next(&mut run);
    assert!(committed(&mut session, &monitor, &sent, run).expect("it has an outcome").done().is_some());
    assert_eq!(*sent.lock().expect("it succeeds"), ["to=\"ann\"", "to=\"bob\""], "each was sent once");
    sent.lock().expect("it succeeds").clear();

    let program = "(mail/send {:to \"ann\"}) (try (mail/delete {:to \"ann\"}) (catch ToolDenied e nil)) nil";
    let mut run = rehearsed(&mut session, &monitor, &sent, program).expect("there are calls");
    assert_eq!(run.questions().count(), 1, "what is denied is no change");
    // The rules may have become stricter meanwhile.
    let stricter = Monitor::new(&Arc::new(Policy::read(r#"{"deny": ["mail/*"]}"#).expect("it is one")));
    approve_next(&mut run);
    let made = committed(&mut session, &stricter, &sent, run).expect("it has an outcome").done().expect("it ends");
    assert_eq!(made, [CommittedCall::Denied("`mail/send` may not be called: `policy.deny` has `mail/*`".to_owned())]);
    assert!(sent.lock().expect("it succeeds").is_empty());
}

#[test]
fn a_guard_says_why_it_objects_to_a_change() {
    let sent = Sent::default();
    let guarded = r#"{"guards": [{"tool": "mail/send", "argument": "to", "from": ["user"], "undeclared": ["to"]}]}"#;
    let (mut session, monitor) = (engine().session(), monitor(guarded));
    let run = rehearsed(&mut session, &monitor, &sent, "(mail/send {:to \"eve\"}) nil").expect("there is a call");
    let asked = run.questions().next().expect("it is open").clone();
    assert!(asked.is_guarded && asked.reason.contains("did not come from user"), "{asked}");
}

#[test]
fn a_program_without_changes_has_no_change_set() {
    let sent = Sent::default();
    let (mut session, monitor) = (engine().session(), monitor("{}"));
    assert!(rehearsed(&mut session, &monitor, &sent, "(contacts/list) nil").is_none());
}

#[test]
fn arguments_are_committed_as_they_were_shown_however_many_they_are() {
    let sent = Sent::default();
    let (mut session, monitor) = (engine().session(), monitor("{}"));
    let program = "(mail/send (into {:to \"ann\"} (map (fn [n] [(str \"field \" n) [n :k 'sym #{n} (list n \"\\\"\")]])) (range 40)))
                   nil";
    let mut run = rehearsed(&mut session, &monitor, &sent, program).expect("there is a call");
    approve_next(&mut run);
    let made = committed(&mut session, &monitor, &sent, run).expect("it has an outcome");
    assert!(matches!(made, Outcome::Done(_)), "{made:?}");
    assert_eq!(sent.lock().expect("it succeeds").len(), 1);
}

#[test]
fn a_world_that_borrows_nothing_can_rehearse() {
    let (monitor, rehearsal) = (Arc::new(monitor("{}")), Arc::new(Rehearsal::default()));
    let mut tools: Tools<'static> = Tools::new();
    tools.tool("mail/send", |_: NoArguments, _: &Call| Ok(())).writes();
    let world = World::new(tools).layer(Monitor::rehearsing(Arc::clone(&monitor), Arc::clone(&rehearsal)));
    let run = move || engine().session().run("(mail/send) nil").eval::<()>(&world).expect("it has an outcome").done();
    assert_eq!(std::thread::spawn(run).join().expect("it does not panic"), Some(()));
    assert_eq!(rehearsal.calls().len(), 1);
}
