//! Faults of downstream servers: the error that the program sees, and the time until calls work again.
//!
//! `cargo test --test server faults -- --nocapture` prints the table of `docs/operating.md`.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use crate::mcp_client::{Client, hostile, python};
use serde_json::json;

/// A fault: its description, the program that causes it, the start of the result that the program sees, and a program
/// that must work afterwards.
struct Fault {
    what: &'static str,
    program: &'static str,
    sees: &'static str,
    then: &'static str,
}

const FAULTS: &[Fault] = &[
    Fault {
        what: "dies in mid-call",
        program: "(hostile/die)",
        sees: "ServerUnavailable: server `hostile` went away during `hostile/die`; it ended with exit status: 3; it said: \"out of luck\"",
        then: "(hostile/pid)",
    },
    Fault {
        what: "hangs (with `timeout_seconds: 1`)",
        program: "(hanging/hang)",
        sees: "ToolTimeout: `hanging/hang` did not answer within 1 s",
        then: "(hanging/pid)",
    },
    Fault {
        what: "writes 4 MB to its standard error",
        program: "(hostile/flood)",
        sees: "\"after the flood\"",
        then: "(hostile/pid)",
    },
    Fault {
        what: "writes garbage before its answer",
        program: "(hostile/garbage)",
        sees: "\"after the garbage\"",
        then: "(hostile/pid)",
    },
    Fault {
        what: "answers with what is no JSON-RPC",
        program: "(hostile/odd)",
        sees: "ToolError: the reply of `hostile/odd` cannot be read: the message is not JSON-RPC: expected value",
        then: "(hostile/pid)",
    },
    Fault {
        what: "answers with 200 MB",
        program: "(hostile/large {:megabytes 200})",
        sees: "ToolResultTooLarge: the reply of `hostile/large` is too large: 209715",
        then: "(hostile/pid)",
    },
    Fault { what: "changes its tools", program: "(hostile/change)", sees: "\"changed\"", then: "(hostile/added)" },
    Fault { what: "needs 9 s to start", program: "(slow/pid)", sees: "[", then: "(slow/pid)" },
    Fault {
        what: "does not speak (with `start_timeout_seconds: 1`)",
        program: "(silent/pid)",
        sees: "ServerUnavailable: server `silent` did not start: it did not answer within 1 s (`start_timeout_seconds` allows more)",
        then: "(hostile/pid)",
    },
    Fault {
        what: "ends as soon as it is started",
        program: "(broken/pid)",
        sees: "ServerUnavailable: server `broken` did not start: it ended with exit status: 7; it said: \"the key is missing\"",
        then: "(hostile/pid)",
    },
];

#[test]
fn each_fault_is_seen_and_survived() {
    if python().is_none() {
        return;
    }
    let with = |arguments: &[&str], key: &str, seconds: u32| {
        let mut server = hostile(arguments);
        server[key] = json!(seconds);
        server
    };
    let servers = json!({"mcpServers": {
        "hostile": hostile(&[]),
        "hanging": with(&[], "timeout_seconds", 1),
        "slow": hostile(&["--start", "9"]),
        "silent": with(&["--start", "hang"], "start_timeout_seconds", 1),
        "broken": hostile(&["--start", "exit"]),
    }});
    println!("| the server | the program sees | after | the next call takes |\n|---|---|---|---|");
    for fault in FAULTS {
        let mut client = Client::start(&servers, &[]);
        if fault.then != "(slow/pid)" {
            // Starts the servers, so that the first start is not measured.
            assert!(!client.eval("[(hostile/pid) (hanging/pid)]").is_error);
        }
        let before = memory(&client);
        let begun = Instant::now();
        let answer = client.eval(fault.program);
        let seen_after = begun.elapsed();
        let saw = match answer.is_error {
            true => format!("{}: {}", text(&answer.record["error"]), text(&answer.record["message"])),
            false => answer.text.lines().next().unwrap_or_default().to_owned(),
        };
        assert!(saw.starts_with(fault.sees), "{}: {saw}", fault.what);
        let begun = Instant::now();
        let next = client.eval(fault.then);
        assert!(!next.is_error, "{}: {next:?}", fault.what);
        let recovered_after = begun.elapsed();
        println!("| {} | {saw} | {} | {} |", fault.what, brief(seen_after), brief(recovered_after));
        let grown = memory(&client).saturating_sub(before);
        assert!(grown < 64 << 10, "{}: the most that lispbox had grew by {grown} KiB", fault.what);
        assert!(recovered_after < Duration::from_secs(20), "{}: {recovered_after:?}", fault.what);
    }
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Formats a time: in milliseconds below a second, in seconds otherwise.
fn brief(time: Duration) -> String {
    match time.as_millis() {
        millis if millis < 1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// Peak resident memory of lispbox, in KiB.
fn memory(client: &Client) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.process.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
