//! The result of a soak, as text.

use super::ledger::Account;
use super::tally::{Spread, Tally};
use super::watch::{Trend, Watch};

/// All results of a soak.
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// Time during which requests were made, in seconds.
    pub seconds: f64,
    /// The number of concurrent sessions.
    pub sessions: usize,
    /// True if programs ran in worker processes.
    pub isolated: bool,
    /// Counts of requests and replies.
    pub account: Account,
    /// Counts of the outcomes, and the distributions of times.
    pub tally: Tally,
    /// The number of workers killed.
    pub killed_workers: u64,
    /// The number of downstream servers killed.
    pub killed_servers: u64,
    /// Resource usage of the processes over time.
    pub watch: Watch,
    /// The end of the server.
    pub ending: Ending,
}

/// The end of the server.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Time from the end of the server's input to its exit, in seconds; `None` if it did not exit.
    pub seconds: Option<f64>,
    /// True if its exit status is success.
    pub is_success: bool,
    /// The number of its child processes that outlived it.
    pub left: usize,
    /// The beginning of its standard error.
    pub complaints: String,
}

impl Summary {
    /// The failed checks; empty if the soak passed.
    pub fn failings(&self) -> Vec<String> {
        let mut failings = Vec::new();
        let mut check = |is_wrong: bool, text: String| {
            if is_wrong {
                failings.push(text);
            }
        };
        check(self.tally.values == 0, "no program came to a value".to_owned());
        check(self.account.unanswered > 0, format!("{} requests have no reply", self.account.unanswered));
        check(self.account.faults > 0, format!("{} messages are no reply to anybody", self.account.faults));
        check(self.tally.wrong > 0, format!("{} wrong answers", self.tally.wrong));
        let (lost, killed) = (self.tally.lost, self.killed_workers);
        check(lost > killed, format!("{lost} programs lost their worker, and {killed} workers were killed"));
        for (name, trend, is_bytes) in self.trends() {
            let shown = |amount| if is_bytes { mebibytes(amount) } else { amount.to_string() };
            let Trend { early, late, allowed, .. } = trend;
            let text =
                format!("{name} grew from {} to {}, and {} are allowed", shown(early), shown(late), shown(allowed));
            check(!trend.is_flat(), text);
        }
        check(self.ending.seconds.is_none(), "the server did not end with its input".to_owned());
        check(self.ending.seconds.is_some() && !self.ending.is_success, "the server ended with an error".to_owned());
        check(self.ending.left > 0, format!("{} processes outlived the server", self.ending.left));
        check(self.ending.complaints.contains("panicked at"), "something panicked in the server".to_owned());
        failings
    }

    /// All trends: the name, the trend, and whether the quantity is in bytes.
    fn trends(&self) -> Vec<(&'static str, Trend, bool)> {
        let watch = &self.watch;
        let all = [
            ("memory of the server", watch.server(), true),
            ("memory of a worker", watch.worker(), true),
            ("workers", watch.workers(), false),
            ("threads of the server", watch.threads(), false),
            ("descriptors of the server", watch.descriptors(), false),
            ("zombies", watch.zombies(), false),
        ];
        let seen = all.into_iter().filter_map(|(name, trend, is_bytes)| Some((name, trend?, is_bytes)));
        seen.filter(|(_, trend, _)| trend.most > 0).collect()
    }

    /// Prints the summary; the test harness shows it if the test fails.
    pub fn show(&self) {
        let row = |name: &str, text: String| println!("  {name:12}{text}");
        let (account, tally) = (&self.account, &self.tally);
        println!("soak");
        let walls = if self.isolated { "in worker processes" } else { "in the server's process" };
        row("plan", format!("seed {}, {} sessions at once, {:.0} s, {walls}", self.seed, self.sessions, self.seconds));
        row(
            "replies",
            format!(
                "{} requests, {} replies, {} missing, {} too many; {} withdrawn, {} of these answered",
                account.requests,
                account.replies,
                account.unanswered,
                account.faults,
                account.withdrawn,
                account.withdrawn_answered
            ),
        );
        row(
            "of them",
            format!(
                "{} values, {} limits, {} errors, {} refused, {} lost with a worker, {} without a server",
                tally.values, tally.limits, tally.errors, tally.refused, tally.lost, tally.unavailable
            ),
        );
        row("answers", format!("{} wrong", tally.wrong));
        row("sessions", format!("{} begun, looked at whole {} times", tally.sessions, tally.looks));
        row("killed", format!("{} workers, {} servers behind", self.killed_workers, self.killed_servers));
        row("latency", told(tally.latency(), "of programs that come to a value"));
        row("lateness", told(tally.lateness(), "over the clock that stops a program"));
        row("withdrawal", told(tally.freeing(), "until the session goes on"));
        self.show_trends(&row);
        let seconds = self.ending.seconds.map_or("never".to_owned(), |seconds| format!("after {seconds:.1} s"));
        row("end", format!("{seconds}, {} processes left", self.ending.left));
        for mistake in &tally.told {
            println!("wrong");
            for (name, text) in [("program", &mistake.program), ("expected", &mistake.expected), ("got", &mistake.got)]
            {
                row(name, text.replace('\n', "\n              "));
            }
        }
        for fault in &account.told {
            println!("reply: {fault}");
        }
        if !self.ending.complaints.is_empty() {
            println!("the server's log: {}", self.ending.complaints);
        }
        let failings = self.failings();
        if failings.is_empty() {
            println!("passed");
        } else {
            println!("failed: {}", failings.join("; "));
        }
    }

    fn show_trends(&self, row: &dyn Fn(&str, String)) {
        let trends = self.trends();
        if trends.is_empty() {
            row("over time", "this system does not tell what processes take (there is no /proc)".to_owned());
            return;
        }
        row("over time", format!("{:28}{:>10}{:>10}{:>10}{:>10}", "", "start", "early", "late", "most"));
        for (name, trend, is_bytes) in trends {
            let shown = |amount| if is_bytes { mebibytes(amount) } else { amount.to_string() };
            let numbers: String = [trend.start, trend.early, trend.late, trend.most]
                .map(|amount| format!("{:>10}", shown(amount)))
                .concat();
            row("", format!("{name:28}{numbers}{}", if trend.is_flat() { "" } else { "  grew" }));
        }
        let rule = "early and late are medians of the second and the last fifth; flat is";
        row("", rule.to_owned());
        let rule = "late <= early + 10 % + 16 MiB (+ 16 of what is counted), in runs of 30 s and more";
        row("", rule.to_owned());
    }
}

fn told(spread: Spread, of_what: &str) -> String {
    let Spread { p50, p99, max, count } = spread;
    format!("p50 {p50:.0} ms, p99 {p99:.0} ms, max {max:.0} ms {of_what} ({count})")
}

/// Formats a number of bytes in mebibytes.
pub fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", (bytes + (1 << 19)) >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Mistake;

    fn passed() -> Summary {
        let mut tally = Tally::default();
        (tally.values, tally.lost) = (10, 2);
        Summary {
            seed: 1,
            seconds: 60.0,
            sessions: 16,
            isolated: true,
            account: Account { requests: 10, replies: 10, ..Account::default() },
            tally,
            killed_workers: 2,
            killed_servers: 0,
            watch: Watch::default(),
            ending: Ending { seconds: Some(1.0), is_success: true, ..Ending::default() },
        }
    }

    #[test]
    fn all_well_is_passed() {
        assert_eq!(passed().failings(), Vec::<String>::new());
    }

    #[test]
    fn whatever_is_wrong_fails() {
        let failing = |change: &dyn Fn(&mut Summary)| {
            let mut summary = passed();
            change(&mut summary);
            summary.failings().join("; ")
        };
        assert_eq!(failing(&|summary| summary.account.faults = 1), "1 messages are no reply to anybody");
        assert_eq!(failing(&|summary| summary.account.unanswered = 3), "3 requests have no reply");
        let mistake = Mistake { program: "(+ 1 2)".into(), expected: "3".into(), got: "4".into() };
        assert_eq!(failing(&|summary| summary.tally.mistake(mistake.clone())), "1 wrong answers");
        assert_eq!(
            failing(&|summary| summary.killed_workers = 1),
            "2 programs lost their worker, and 1 workers were killed"
        );
        assert_eq!(failing(&|summary| summary.ending.left = 1), "1 processes outlived the server");
        assert_eq!(failing(&|summary| summary.ending.seconds = None), "the server did not end with its input");
    }
}
