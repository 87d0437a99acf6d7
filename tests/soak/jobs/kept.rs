//! The contents of a session, and programs that change them or read them.

use std::time::Duration;

use serde_json::json;

use super::good::{numbers, spaced};
use super::{Expected, Job, tools};
use crate::mailbox::Mailbox;
use crate::mailbox::chance::Chance;

/// The expected contents of a session: a vector `log`, an atom `total`, a vector `ballast`, and two functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    log: Vec<i64>,
    total: i64,
    factor: i64,
    shift: i64,
    /// The length of `ballast`, a vector that takes a while to serialize; 0 in some sessions.
    ballast: u64,
}

/// Maximum time for which a session may stay busy after the cancellation of its program: two hundred times the
/// documented bound, to allow for a busy machine, and a third of the time limit of the program.
pub const WITHDRAWN: Duration = Duration::from_secs(10);

/// A fuel limit that soon stops an endless loop.
const LITTLE: u64 = 200_000;

impl Kept {
    /// Chooses contents for a new session, and the program that defines them.
    pub fn begin(chance: &mut Chance) -> (Kept, Job) {
        let kept = Kept {
            factor: 1 + chance.below(9) as i64,
            shift: chance.below(100) as i64,
            ballast: if chance.below(3) == 0 { 1_000 + chance.below(10_000) } else { 0 },
            ..Kept::default()
        };
        let program = format!(
            "(def log [])
(def total (atom 0))
(def ballast (vec (range {})))
(defn scale [x] (+ (* {} x) {}))
(defn record [n]
  (swap! total + n)
  (def log (conj log n))
  [(count log) @total])
(scale 1)",
            kept.ballast, kept.factor, kept.shift
        );
        let answer = kept.scaled(1).to_string();
        (kept, Job::good(program, answer))
    }

    /// A program that clears most of the contents: the server keeps abandoned sessions, and their memory must not grow
    /// with the duration of the soak.
    pub fn leave() -> Job {
        Job::good("(def ballast nil) (def log nil) :left", ":left")
    }

    /// A program that returns all contents.
    pub fn look() -> Job {
        Job::good("[log @total (scale 1) (count ballast)]", "")
    }

    /// The expected answer of [`Kept::look`].
    pub fn shown(&self) -> String {
        format!("[[{}] {} {} {}]", spaced(&self.log), self.total, self.scaled(1), self.ballast)
    }

    /// A program that changes the contents, or tries to.
    pub fn change(&self, chance: &mut Chance, mailbox: &Mailbox) -> Job {
        let (one, other) = (chance.below(1_000) as i64, chance.below(1_000) as i64);
        let first = self.with(&[one]);
        match chance.below(13) {
            0..=3 => self.becomes(first, format!("(record {one})")),
            4 => self.becomes(self.with(&[one, other]), format!("(record {one}) (record {other})")),
            // A form that fails has no effect; the forms before it keep theirs.
            5 => self.fails(None, format!("(do (record {one}) (throw (ex-info \"no\" {{}})))"), "error: ExceptionInfo"),
            6 => self.fails(None, format!("(record {one}) (let [x"), "error: UnbalancedBrackets"),
            7 => self.fails(None, format!("(do (record {one}) (loop [] (recur)))"), "limit: fuel"),
            8 => self.fails(Some(first), format!("(record {one}) (loop [] (recur))"), "limit: fuel"),
            9 => self.fails(
                Some(first),
                format!("(record {one}) (do (record {other}) (throw (ex-info \"no\" {{}})))"),
                "error: ExceptionInfo",
            ),
            10 => {
                let (server, (id, size)) = (chance.of(&tools::SERVERS), tools::message(chance, mailbox));
                self.becomes(self.with(&[size]), format!("(record (:size ({server}/get-email :id \"{id}\")))"))
            }
            11 => {
                let numbers = numbers(chance, 12);
                let after = Kept { total: self.total + numbers.iter().sum::<i64>(), ..self.clone() };
                let program =
                    format!("(do (dorun (pmap #(swap! total + %) [{}])) [(count log) @total])", spaced(&numbers));
                self.becomes(after, program)
            }
            _ => {
                let after = Kept { log: Vec::new(), total: 0, ..self.clone() };
                self.becomes(after, "(do (reset! total 0) (def log []) [(count log) @total])".to_owned())
            }
        }
    }

    /// A program that uses the contents.
    pub fn use_it(&self, chance: &mut Chance) -> Job {
        match chance.below(5) {
            0 => Job::good("(reduce + 0 log)", self.log.iter().sum::<i64>().to_string()),
            1 => Job::good("(count log)", self.log.len().to_string()),
            2 => {
                let answer = spaced(self.log.iter().rev().take(5).map(|number| self.scaled(*number)));
                Job::good("(vec (map scale (take 5 (rseq log))))", format!("[{answer}]"))
            }
            3 => {
                let numbers = numbers(chance, 40);
                let answer = spaced(numbers.iter().map(|number| self.scaled(*number)));
                Job::good(format!("(mapv scale [{}])", spaced(&numbers)), format!("[{answer}]"))
            }
            _ => self.becomes(self.clone(), "[(count log) @total]".to_owned()),
        }
    }

    /// A program that records a number and then runs until it is cancelled, for longer than [`WITHDRAWN`].
    pub fn endless(&self, chance: &mut Chance) -> Job {
        const ENDLESS: [&str; 6] = [
            "(loop [] (recur))",
            "(dotimes [i 1000000000] (println \"flood\" i))",
            "(loop [] (rand) (recur))",
            "(pmap (fn [x] (loop [] (recur))) (range 4))",
            "(loop [] (sort (fn [a b] (compare b a)) (range 500)) (recur))",
            "(loop [] (mail/list-labels) (recur))",
        ];
        let number = chance.below(1_000) as i64;
        let program = format!("(record {number}) {}", chance.of(&ENDLESS));
        let limits = json!({"compute": "30s", "fuel": 1e9, "calls": 5000});
        let expected = Expected::OneOf(&["limit: compute", "limit: fuel", "limit: calls", "error: ServerUnavailable"]);
        Job { after: Some(self.with(&[number])), ..Job::bad(program, limits, expected) }
    }

    fn becomes(&self, after: Kept, program: String) -> Job {
        let answer = format!("[{} {}]", after.log.len(), after.total);
        Job { after: Some(after), ..Job::good(program, answer) }
    }

    fn fails(&self, after: Option<Kept>, program: String, outcome: &str) -> Job {
        let limits = json!({"fuel": LITTLE, "compute": super::AMPLE});
        Job { after, ..Job::bad(program, limits, Expected::Only(outcome.to_owned())) }
    }

    fn with(&self, numbers: &[i64]) -> Kept {
        let mut after = self.clone();
        after.log.extend(numbers);
        after.total += numbers.iter().sum::<i64>();
        after
    }

    fn scaled(&self, number: i64) -> i64 {
        self.factor * number + self.shift
    }
}
