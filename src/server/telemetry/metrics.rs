//! Metrics of programs and tool calls, for Prometheus.
//!
//! Labels have few values: the names of configured servers, outcome codes, names of limits and of quarantine rules. No
//! text of a program, a client or a reply becomes a label.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::lang::Reply;
use crate::lang::ToolReply;

/// Upper bounds of the histogram buckets of times, in seconds: from an empty call to the longest evaluation.
const TIMES: [f64; 12] = [0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0];

/// Maximum number of outcome codes as labels, above the number of real ones; further codes are invented.
const MOST_OUTCOMES: usize = 80;

/// The media type of the metrics.
pub(in crate::server) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Label = (&'static str, String);
type Times<const LABELS: usize> = Family<[Label; LABELS], Histogram, fn() -> Histogram>;

/// All counters and histograms.
pub(in crate::server) struct Metrics {
    registry: Registry,
    evaluations: EvaluationMetrics,
    calls: CallMetrics,
    quarantined: Family<[Label; 1], Counter>,
    servers: ServerMetrics,
    load: LoadMetrics,
    tokens_stale: Gauge,
    resident: Gauge,
}

/// The metrics of evaluations that have ended.
struct EvaluationMetrics {
    ended: Family<[Label; 1], Counter>,
    times: Histogram,
    limits: Family<[Label; 1], Counter>,
    /// The codes that have become labels.
    outcomes: Mutex<HashSet<String>>,
}

/// The metrics of tool calls that have ended.
struct CallMetrics {
    ended: Family<[Label; 2], Counter>,
    times: Times<1>,
}

/// The metrics of the connections to downstream servers.
struct ServerMetrics {
    starts: Family<[Label; 1], Counter>,
    failed_starts: Family<[Label; 1], Counter>,
    up: Family<[Label; 1], Gauge>,
}

/// The metrics of what the server holds at the moment.
struct LoadMetrics {
    running: Gauge,
    waiting: Gauge,
    sessions: Gauge,
    session_bytes: Gauge,
}

/// Gauges that are read when the metrics are rendered.
pub(in crate::server) struct Now {
    /// Number of running evaluations.
    pub(in crate::server) running: usize,
    /// Number of evaluations that wait for their turn.
    pub(in crate::server) waiting: usize,
    /// Number of sessions in memory, and their total size in bytes.
    pub(in crate::server) sessions: (usize, u64),
    /// The downstream servers, each with a flag that is true if it is connected.
    pub(in crate::server) servers: Vec<(String, bool)>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::with_prefix("lispbox");
        registry.register("build", "The running version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let to = &mut registry;
        // They are rendered in the order of their registration.
        Metrics {
            evaluations: EvaluationMetrics::register(to),
            calls: CallMetrics::register(to),
            quarantined: counted(
                to,
                "quarantine_hits",
                "Replies that read like instructions, by the rule that matched",
            ),
            servers: ServerMetrics::register(to),
            load: LoadMetrics::register(to),
            tokens_stale: counted(
                to,
                "tokens_file_stale",
                "1 while the tokens file cannot be used and the previous tokens remain valid",
            ),
            resident: measured(to, "resident_memory", "Resident memory of the process", Unit::Bytes, Gauge::default()),
            registry,
        }
    }
}

impl EvaluationMetrics {
    fn register(to: &mut Registry) -> EvaluationMetrics {
        EvaluationMetrics {
            ended: counted(to, "evaluations", "Evaluations that have ended, by `ok` or the code of the error"),
            times: measured(
                to,
                "evaluation",
                "How long evaluations took, without the wait for their turn",
                Unit::Seconds,
                times(),
            ),
            limits: counted(to, "limits_hit", "Evaluations that a limit ended, by its name"),
            outcomes: Mutex::default(),
        }
    }

    /// Counts an evaluation that has ended.
    fn count(&self, reply: &Reply) {
        let failure = reply.failure.as_ref();
        let outcome = self.outcome(failure.map_or("ok", |failure| &failure.error));
        self.ended.get_or_create(&[("outcome", outcome)]).inc();
        // A refused evaluation took no time.
        if reply.spent.fuel > 0 {
            self.times.observe(Duration::from_millis(reply.spent.total_ms).as_secs_f64());
        }
        if let Some(limit) = failure.and_then(|failure| failure.limit.as_deref()) {
            self.limits.get_or_create(&[("limit", self.outcome(limit))]).inc();
        }
    }

    /// Maps an outcome to a label: a worker or a function of the host may use any code.
    fn outcome(&self, code: &str) -> String {
        let mut known = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(code) {
            return code.to_owned();
        }
        if known.len() >= MOST_OUTCOMES || code.len() > 40 {
            return "other".to_owned();
        }
        known.insert(code.to_owned());
        code.to_owned()
    }
}

impl CallMetrics {
    fn register(to: &mut Registry) -> CallMetrics {
        CallMetrics {
            ended: counted(
                to,
                "tool_calls",
                "Calls of tools that have ended, by server and by `ok` or the code of the error",
            ),
            times: measured(
                to,
                "tool_call",
                "How long calls of tools took, by server",
                Unit::Seconds,
                Family::new_with_constructor(times),
            ),
        }
    }
}

impl ServerMetrics {
    fn register(to: &mut Registry) -> ServerMetrics {
        ServerMetrics {
            starts: counted(to, "server_starts", "Connections made to servers"),
            failed_starts: counted(to, "server_start_failures", "Connections to servers that could not be made"),
            up: counted(to, "server_up", "1 for a server that is connected"),
        }
    }

    /// Sets which servers are connected; others are forgotten.
    fn set(&self, servers: &[(String, bool)]) {
        self.up.clear();
        for (server, is_up) in servers {
            self.up.get_or_create(&[("server", server.clone())]).set(i64::from(*is_up));
        }
    }
}

impl LoadMetrics {
    fn register(to: &mut Registry) -> LoadMetrics {
        LoadMetrics {
            running: counted(to, "evaluations_running", "Evaluations that are running"),
            waiting: counted(to, "evaluations_waiting", "Evaluations that are waiting for their turn"),
            sessions: counted(to, "sessions", "Sessions in memory"),
            session_bytes: measured(to, "sessions", "Memory of the sessions in memory", Unit::Bytes, Gauge::default()),
        }
    }

    /// Sets all gauges.
    fn set(&self, now: &Now) {
        self.running.set(amount(now.running as u64));
        self.waiting.set(amount(now.waiting as u64));
        self.sessions.set(amount(now.sessions.0 as u64));
        self.session_bytes.set(amount(now.sessions.1));
    }
}

/// Returns a count as the value of a gauge.
fn amount(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn times() -> Histogram {
    Histogram::new(TIMES)
}

/// Registers a metric under a name.
fn counted<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Registers a metric under a name, with its unit.
fn measured<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, unit: Unit, metric: M) -> M {
    registry.register_with_unit(name, help, unit, metric.clone());
    metric
}

impl Metrics {
    /// Records whether the tokens file is unusable in its current state.
    pub(in crate::server) fn tokens_stale(&self, is_stale: bool) {
        self.tokens_stale.set(i64::from(is_stale));
    }

    /// Counts an evaluation that has ended.
    pub(in crate::server) fn evaluation(&self, reply: &Reply) {
        self.evaluations.count(reply);
    }

    /// Counts a tool call of that server that has ended.
    pub(in crate::server) fn tool_call(&self, server: &str, took: Duration, reply: &ToolReply) {
        let server = ("server", server.to_owned());
        let outcome = ("outcome", reply.outcome().to_owned());
        self.calls.ended.get_or_create(&[server.clone(), outcome]).inc();
        self.calls.times.get_or_create(&[server]).observe(took.as_secs_f64());
    }

    /// Counts a reply in which those quarantine rules matched.
    pub(in crate::server) fn quarantined(&self, rules: &[&str]) {
        for rule in rules {
            self.quarantined.get_or_create(&[("rule", (*rule).to_owned())]).inc();
        }
    }

    /// Counts a connection attempt to a server, successful or not.
    pub(in crate::server) fn started(&self, server: &str, is_up: bool) {
        let starts = if is_up { &self.servers.starts } else { &self.servers.failed_starts };
        starts.get_or_create(&[("server", server.to_owned())]).inc();
    }

    /// Renders all metrics in the format of [`CONTENT_TYPE`].
    pub(in crate::server) fn text(&self, now: &Now) -> String {
        self.load.set(now);
        self.resident.set(amount(resident().unwrap_or_default()));
        self.servers.set(&now.servers);
        let mut text = String::new();
        text::encode(&mut text, &self.registry).expect("a text takes whatever is written to it");
        text
    }
}

/// Returns the resident memory of the process in bytes, as Linux reports it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(size.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::Failure;

    #[test]
    fn labels_cannot_be_made_up_without_end() {
        let metrics = Metrics::default();
        for number in 0..1_000 {
            let failure = Failure { error: format!("Code{number}"), ..Failure::default() };
            metrics.evaluation(&Reply { failure: Some(failure), ..Reply::default() });
        }
        let text = metrics.text(&Now { running: 0, waiting: 0, sessions: (0, 0), servers: Vec::new() });
        let series = text.lines().filter(|line| line.starts_with("lispbox_evaluations_total{")).count();
        assert_eq!(series, MOST_OUTCOMES + 1);
        assert!(
            text.contains(&format!("lispbox_evaluations_total{{outcome=\"other\"}} {}", 1_000 - MOST_OUTCOMES)),
            "{text}"
        );
    }
}
