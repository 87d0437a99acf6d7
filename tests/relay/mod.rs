//! A relay of TCP connections for tests: to several servers in turn, with answers that get lost and requests that are
//! held up.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A relay that goes on until it is dropped; connections that it has made go on until one side ends them.
pub struct Relay {
    pub address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Bytes that clients have said.
    said: AtomicU64,
    loses: AtomicBool,
    ended: AtomicBool,
    /// How many things that clients say pass before the next ones are held up, if any are to be.
    passing: Mutex<Option<u32>>,
    changed: Condvar,
}

impl State {
    /// Waits while requests are held up.
    fn pass(&self) {
        let mut passing = self.passing.lock().expect("nobody panics");
        while *passing == Some(0) {
            passing = self.changed.wait(passing).expect("nobody panics");
        }
        if let Some(left) = &mut *passing {
            *left -= 1;
        }
    }
}

impl Relay {
    /// Relays each new connection to the next of the servers.
    pub fn to(servers: Vec<SocketAddr>) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for (client, server) in listener.incoming().zip(servers.iter().cycle()) {
                if shared.ended.load(Ordering::SeqCst) {
                    return;
                }
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) {
                    connect(client, server, &shared);
                }
            }
        });
        Relay { address, state }
    }

    /// How many bytes the clients have said so far.
    pub fn said(&self) -> u64 {
        self.state.said.load(Ordering::SeqCst)
    }

    /// Lets the next thing that a server says be lost, and its connection with it.
    pub fn lose_an_answer(&self) {
        self.state.loses.store(true, Ordering::SeqCst);
    }

    /// Holds up what clients say, from so many more things on: they reach the server when [`Relay::go_on`] is called, also
    /// if whoever said them has gone.
    pub fn hold_up_after(&self, count: u32) {
        *self.state.passing.lock().expect("nobody panics") = Some(count);
    }

    /// Lets everything pass again, both ways.
    pub fn go_on(&self) {
        self.state.loses.store(false, Ordering::SeqCst);
        *self.state.passing.lock().expect("nobody panics") = None;
        self.state.changed.notify_all();
    }

    /// True while nothing has been lost since [`Relay::lose_an_answer`].
    pub fn is_to_lose(&self) -> bool {
        self.state.loses.load(Ordering::SeqCst)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        // It waits for somebody to come.
        let _ = TcpStream::connect(self.address);
    }
}

/// Passes on what both say until either has ended.
fn connect(client: TcpStream, server: TcpStream, state: &Arc<State>) {
    let both = |stream: &TcpStream| (stream.try_clone().expect("another handle"), stream.try_clone().expect("another"));
    let ((mut said, mut heard), (mut asked, mut answers)) = (both(&client), both(&server));
    let (state, counted) = (Arc::clone(state), Arc::clone(state));
    std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while let Ok(length @ 1..) = said.read(&mut buffer) {
            counted.said.fetch_add(length as u64, Ordering::SeqCst);
            counted.pass();
            if asked.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = asked.shutdown(Shutdown::Write);
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while let Ok(length @ 1..) = answers.read(&mut buffer) {
            if state.loses.swap(false, Ordering::SeqCst) || heard.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    });
}
