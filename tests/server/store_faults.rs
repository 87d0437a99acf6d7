//! Sessions under load during store failures, when processes are killed, and with several servers behind a proxy: no
//! acknowledged update is lost, and none is applied twice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::databases::{Database, Kind};
use crate::http_client::{Client, Server, handle};
use crate::relay::Relay;
use lispbox::store::{Key, open};

/// Maximum time until the server reports that its store is unavailable.
const IN_TIME: Duration = Duration::from_secs(7);

/// A program that increments the counter of its session.
const COUNT: &str = "(def n (inc n)) n";

/// A session with a counter that one client increments, and the replies so far.
struct Counter {
    client: Client,
    session: String,
    /// The last acknowledged value.
    last: i64,
    /// The number of increments since `last` that were evaluated but may not have been kept.
    uncertain: i64,
}

impl Counter {
    fn new(client: Client) -> Counter {
        Counter { client, session: handle(&client.eval("", "(def n 0)", None).0), last: 0, uncertain: 0 }
    }

    /// Increments the counter and checks the reply. Returns whether the increment was acknowledged.
    fn count(&mut self) -> bool {
        let begun = Instant::now();
        let result = self.client.try_to_eval(COUNT, Some(&self.session)).expect("the server answers");
        let text = result["content"][0]["text"].as_str().expect("a text");
        if result["isError"] != true {
            let count = number(text);
            assert!(self.last < count && count <= self.last + 1 + self.uncertain, "{count} after {}", self.last);
            (self.last, self.uncertain) = (count, 0);
            return true;
        }
        assert!(text.contains("the store of the sessions cannot be used: "), "{text}");
        assert!(!text.contains(crate::databases::PASSWORD), "{text}");
        assert!(begun.elapsed() < IN_TIME, "after {:?}: {text}", begun.elapsed());
        match result["structuredContent"]["error"].as_str() {
            Some("StoreUnavailable") => assert!(text.contains("nothing was evaluated"), "{text}"),
            Some("SessionNotKept") => self.uncertain += 1,
            _ => panic!("{text}"),
        }
        false
    }
}

/// The number in the first line of a reply; further lines list the definitions.
fn number(text: &str) -> i64 {
    text.lines().next().and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("no number: {text}"))
}

/// Polls until the condition holds. Panics after 60 s.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: it did not come to pass");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[test]
fn a_database_that_breaks_under_load_loses_nothing_acknowledged() {
    const CLIENTS: usize = 4;
    for kind in Kind::ALL {
        let Some(mut database) = Database::start(kind) else { continue };
        let url = database.url();
        let server = Server::start(&["--store", &url], &[]);
        let client = server.client;
        let ready = || client.request("GET", "/readyz", "", b"");
        assert_eq!(ready().status, 200);
        let over = AtomicBool::new(false);
        let (done, failed) = (<[AtomicUsize; CLIENTS]>::default(), <[AtomicUsize; CLIENTS]>::default());
        let more = |of: &[AtomicUsize; CLIENTS], count: usize| {
            let before: Vec<usize> = of.iter().map(|one| one.load(Ordering::SeqCst)).collect();
            until(&format!("{kind:?}, {count} more"), || {
                of.iter().zip(&before).all(|(now, before)| now.load(Ordering::SeqCst) >= before + count)
            });
        };
        let counters = std::thread::scope(|scope| {
            let load = |(done, failed)| {
                let (over, mut counter) = (&over, Counter::new(client));
                scope.spawn(move || {
                    while !over.load(Ordering::SeqCst) {
                        let counted: &AtomicUsize = if counter.count() { done } else { failed };
                        counted.fetch_add(1, Ordering::SeqCst);
                    }
                    counter
                })
            };
            let working: Vec<_> = done.iter().zip(&failed).map(load).collect();
            // Stops the load also if the test fails, so that the scope can end.
            let end = OnDrop(|| over.store(true, Ordering::SeqCst));
            more(&done, 5);
            database.kill();
            more(&failed, 1);
            let mut trouble = ready();
            // The result of a readiness check is cached for 250 ms.
            until("the store is in trouble", || {
                trouble = ready();
                trouble.status == 503
            });
            assert!(trouble.body.contains("the store of the sessions cannot be used: "), "{trouble:?}");
            database.restart();
            more(&done, 5);
            database.stop();
            more(&failed, 1);
            until("the store is in trouble again", || ready().status == 503);
            database.go_on();
            more(&done, 5);
            drop(end);
            working.into_iter().map(|one| one.join().expect("it counts rightly")).collect::<Vec<_>>()
        });
        assert_eq!(ready().status, 200);
        drop(server);
        let server = Server::start(&["--store", &url], &[]);
        for counter in counters {
            let (text, is_error) = server.eval("", "n", Some(&counter.session));
            assert!(!is_error, "{text}");
            let possible = counter.last..=counter.last + counter.uncertain;
            assert!(possible.contains(&number(&text)), "{text}, not {possible:?}");
        }
    }
}

#[test]
fn a_first_definition_that_was_written_unheard_is_not_taken_for_another_s() {
    for kind in Kind::ALL {
        let Some(database) = Database::start(kind) else { continue };
        let url = database.url();
        let server = Server::start(&["--store", &url], &[]);
        // An earlier write connects and loads the scripts or prepares the statements, so that the next one is executed
        // once the database resumes.
        handle(&server.eval("", "(def n 7)", None).0);
        database.stop();
        let (text, is_error) = server.eval("", "(def n 0)", None);
        database.go_on();
        assert!(is_error && text.contains("SessionNotKept: the session may not have been kept: "), "{text}");
        let session = handle(&text);
        until("the store is back", || server.request("GET", "/readyz", "", b"").status == 200);
        let key = Key { principal: "local".to_owned(), handle: session.clone() };
        until("it has been written", || open(&url).expect("it opens").read(&key, 0).is_ok());
        assert_eq!(number(&server.eval("", COUNT, Some(&session)).0), 1);
        drop(server);
        let server = Server::start(&["--store", &url], &[]);
        assert_eq!(server.eval("", "n", Some(&session)), ("1".to_owned(), false));
    }
}

/// Calls a function when it is dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn two_servers_behind_a_proxy_that_takes_turns_lose_no_update() {
    const SESSIONS: usize = 50;
    const EACH: usize = 40;
    const CLIENTS: usize = 8;
    crate::databases::on_each_store(|url| {
        let servers = [(); 2].map(|()| Server::start(&["--store", url], &[]));
        let proxy = Relay::to(servers.iter().map(|server| server.address).collect());
        let client = Client { address: proxy.address };
        let sessions: Vec<String> = (0..SESSIONS).map(|_| handle(&client.eval("", "(def n 0)", None).0)).collect();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    loop {
                        let turn = next.fetch_add(1, Ordering::SeqCst);
                        if turn >= SESSIONS * EACH {
                            return;
                        }
                        // Two consecutive turns use the same session, so clients contend for it.
                        let (text, is_error) = client.eval("", COUNT, Some(&sessions[turn / 2 % SESSIONS]));
                        assert!(!is_error, "{text}");
                    }
                });
            }
        });
        for session in &sessions {
            for server in &servers {
                assert_eq!(server.eval("", "n", Some(session)), (EACH.to_string(), false), "{url}");
            }
        }
    });
}

#[test]
fn a_hundred_kills_under_load_lose_nothing_acknowledged_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    hundred_kills(&format!("sqlite:{}", folder.path().join("sessions.db").display()));
}

#[test]
fn a_hundred_kills_under_load_lose_nothing_acknowledged_in_redis() {
    if let Some(database) = Database::start(Kind::Redis) {
        hundred_kills(&database.url());
    }
}

/// Kills servers while clients increment counters. Each round uses new sessions, since those of a killed server stay
/// leased for some seconds.
fn hundred_kills(url: &str) {
    const CLIENTS: usize = 3;
    let mut counted: Vec<(String, i64)> = Vec::new();
    for round in 0..100 {
        let mut server = Server::start(&["--store", url], &[]);
        let client = server.client;
        let acknowledged = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let load = || {
                let mut counter: Option<(String, i64)> = None;
                loop {
                    let (program, session) =
                        counter.as_ref().map_or(("(def n 0) n", None), |(session, _)| (COUNT, Some(session.as_str())));
                    let Some(result) = client.try_to_eval(program, session) else { return counter };
                    let text = result["content"][0]["text"].as_str().expect("a text");
                    assert_ne!(result["isError"], true, "{text}");
                    let session = counter.map_or_else(|| handle(text), |(session, _)| session);
                    counter = Some((session, number(text)));
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
            };
            let working = [(); CLIENTS].map(|()| scope.spawn(load));
            until("some are acknowledged", || acknowledged.load(Ordering::SeqCst) > round % 10);
            server.process.kill().expect("it runs");
            counted.extend(working.into_iter().filter_map(|one| one.join().expect("no error before the kill")));
        });
    }
    assert!(counted.len() >= 100, "{} sessions", counted.len());
    let server = Server::start(&["--store", url], &[]);
    for (session, last) in &counted {
        let (text, is_error) = server.eval("", "n", Some(session));
        assert!(!is_error && (*last..=last + 1).contains(&number(&text)), "{text} after {last} in {session}");
    }
    let all = open(url).expect("it opens").list().expect("a list");
    assert!(all.len() >= counted.len());
    for session in all {
        let (text, is_error) = server.eval("", "n", Some(&session.key.handle));
        assert!(!is_error && number(&text) >= 0, "{text} in {:?}", session.key);
    }
}
