//! Matches replies to requests: every request has one entry, and every incoming reply is checked against it.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use serde_json::Value;

/// Maximum number of faults whose descriptions are kept.
const TOLD: usize = 20;

/// A reply and the time of its arrival.
#[derive(Debug)]
pub struct Reply {
    /// The message.
    pub message: Value,
    /// The time of arrival.
    pub came: Instant,
}

/// The requests made so far; those without a reply are kept by number.
#[derive(Default)]
pub struct Ledger {
    begun: u64,
    open: HashMap<u64, Waiting>,
    replies: u64,
    withdrawn: u64,
    withdrawn_answered: u64,
    faults: Vec<String>,
    faults_in_all: u64,
    ended: bool,
}

enum Waiting {
    For(Sender<Reply>),
    /// The request was cancelled: at most one reply may arrive.
    Withdrawn,
}

/// A summary of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The number of requests made.
    pub requests: u64,
    /// The number of replies that match a request.
    pub replies: u64,
    /// The number of requests that were cancelled.
    pub withdrawn: u64,
    /// The number of cancelled requests that were answered nevertheless.
    pub withdrawn_answered: u64,
    /// The number of requests that were not cancelled and have no reply.
    pub unanswered: u64,
    /// The number of second replies, replies to no request, and messages that are not replies.
    pub faults: u64,
    /// The descriptions of the first faults.
    pub told: Vec<String>,
}

impl Ledger {
    /// Registers a new request; returns its number and the receiver of its reply.
    pub fn begin(&mut self) -> (u64, Receiver<Reply>) {
        self.begun += 1;
        let (sender, receiver) = channel();
        if !self.ended {
            self.open.insert(self.begun, Waiting::For(sender));
        }
        (self.begun, receiver)
    }

    /// Marks a request as cancelled, so that its reply is optional. Returns false if the reply has already arrived.
    pub fn withdraw(&mut self, number: u64) -> bool {
        let Some(waiting) = self.open.get_mut(&number) else { return false };
        *waiting = Waiting::Withdrawn;
        self.withdrawn += 1;
        true
    }

    /// Records one line of the server's output.
    pub fn file(&mut self, line: &str, came: Instant) {
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(problem) => return self.fault(format!("a line that is no JSON ({problem}): {}", beginning(line))),
        };
        if message.get("method").is_some() || (message.get("result").is_none() == message.get("error").is_none()) {
            return self.fault(format!("a message that is no reply: {}", beginning(line)));
        }
        let Some(number) = message["id"].as_u64().filter(|number| (1..=self.begun).contains(number)) else {
            return self.fault(format!("a reply to a request that was never made: {}", beginning(line)));
        };
        match self.open.remove(&number) {
            None => self.fault(format!("a second reply to request {number}: {}", beginning(line))),
            Some(Waiting::Withdrawn) => {
                self.replies += 1;
                self.withdrawn_answered += 1;
            }
            Some(Waiting::For(sender)) => {
                self.replies += 1;
                // The receiver may be gone: its timeout has already been reported.
                let _ = sender.send(Reply { message, came });
            }
        }
    }

    /// Marks the end of the server's output and disconnects all receivers.
    pub fn end(&mut self) {
        self.ended = true;
        for waiting in self.open.values_mut() {
            if let Waiting::For(sender) = waiting {
                *sender = channel().0;
            }
        }
    }

    /// Summarizes the ledger.
    pub fn account(&self) -> Account {
        let unanswered = self.open.values().filter(|waiting| matches!(waiting, Waiting::For(_))).count();
        Account {
            requests: self.begun,
            replies: self.replies,
            withdrawn: self.withdrawn,
            withdrawn_answered: self.withdrawn_answered,
            unanswered: unanswered as u64,
            faults: self.faults_in_all,
            told: self.faults.clone(),
        }
    }

    fn fault(&mut self, fault: String) {
        self.faults_in_all += 1;
        if self.faults.len() < TOLD {
            self.faults.push(fault);
        }
    }
}

/// The first 300 characters of a text, with its length if it is longer.
pub fn beginning(text: &str) -> String {
    const SHOWN: usize = 300;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(number: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#)
    }

    #[test]
    fn one_reply_for_each_request_is_right() {
        let mut ledger = Ledger::default();
        let (one, for_one) = ledger.begin();
        let (other, for_other) = ledger.begin();
        ledger.file(&reply(other), Instant::now());
        ledger.file(&reply(one), Instant::now());
        assert_eq!(for_one.recv().expect("a reply").message["id"], one);
        assert_eq!(for_other.recv().expect("a reply").message["id"], other);
        assert_eq!(ledger.account(), Account { requests: 2, replies: 2, ..Account::default() });
    }

    #[test]
    fn what_is_wrong_with_replies_is_told() {
        let mut ledger = Ledger::default();
        let (number, _receiver) = ledger.begin();
        for line in [&reply(number), &reply(number), &reply(7), "nonsense", r#"{"method":"x"}"#] {
            ledger.file(line, Instant::now());
        }
        let (_, for_lost) = ledger.begin();
        ledger.end();
        let account = ledger.account();
        assert_eq!((account.requests, account.replies, account.unanswered, account.faults), (2, 1, 1, 4));
        let told = ["a second reply to request 1", "a request that was never made", "no JSON", "no reply"];
        for (fault, part) in account.told.iter().zip(told) {
            assert!(fault.contains(part), "{fault}");
        }
        assert!(for_lost.recv().is_err());
    }

    #[test]
    fn what_was_withdrawn_is_answered_once_or_not_at_all() {
        let mut ledger = Ledger::default();
        let numbers: Vec<u64> = (0..3).map(|_| ledger.begin().0).collect();
        assert!(numbers.iter().all(|number| ledger.withdraw(*number)));
        ledger.file(&reply(1), Instant::now());
        assert!(!ledger.withdraw(1));
        ledger.file(&reply(2), Instant::now());
        ledger.file(&reply(2), Instant::now());
        let account = ledger.account();
        assert_eq!((account.withdrawn, account.withdrawn_answered), (3, 2));
        assert_eq!((account.unanswered, account.faults), (0, 1));
    }
}
