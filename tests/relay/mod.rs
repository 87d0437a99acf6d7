//! A TCP relay for tests: distributes connections over several servers, loses answers, and delays requests.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A relay that accepts connections until it is dropped. Its connections remain open until one side closes them.
pub struct Relay {
    pub address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// The number of bytes received from clients.
    said: AtomicU64,
    loses: AtomicBool,
    ended: AtomicBool,
    /// The number of chunks from clients that pass before further ones are held back; `None` if none are.
    passing: Mutex<Option<u32>>,
    changed: Condvar,
}

impl State {
    /// Waits while requests are held back, and counts down the chunks that may pass.
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
    /// Starts a relay that connects its clients to the servers in turn.
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

    /// Returns the number of bytes received from clients so far.
    pub fn said(&self) -> u64 {
        self.state.said.load(Ordering::SeqCst)
    }

    /// Drops the next chunk that a server sends, and closes its connection.
    pub fn lose_an_answer(&self) {
        self.state.loses.store(true, Ordering::SeqCst);
    }

    /// Holds back data from clients after `count` more chunks. It reaches the server when [`Relay::go_on`] is called,
    /// even if its client has disconnected.
    pub fn hold_up_after(&self, count: u32) {
        *self.state.passing.lock().expect("nobody panics") = Some(count);
    }

    /// Lets data pass again in both directions.
    pub fn go_on(&self) {
        self.state.loses.store(false, Ordering::SeqCst);
        *self.state.passing.lock().expect("nobody panics") = None;
        self.state.changed.notify_all();
    }

    /// Returns true while an answer is still to be lost after [`Relay::lose_an_answer`].
    pub fn is_to_lose(&self) -> bool {
        self.state.loses.load(Ordering::SeqCst)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        // Wakes the listener, which is blocked until the next connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// Copies data in both directions until either side closes.
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
