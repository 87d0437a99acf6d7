//! `LISPBOX_LOG`: the filter for the log of `serve`.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::time::SystemTime;

use lispbox::lang::internal::closest;
use lispbox::server::{LogStream, LogWriter, SPANS};
use serde::ser::{SerializeMap, Serializer};
use tracing::Event;
use tracing_serde::AsSerde;
use tracing_serde::fields::AsMap;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::context::Problem;
use crate::telemetry::Telemetry;

/// The environment variable.
pub const VARIABLE: &str = "LISPBOX_LOG";

/// The default filter.
const USUAL: &str = "warn,lispbox=info";

/// The usual length of a line of the log, in bytes.
const USUAL_LINE: usize = 512;

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The components of lispbox that log.
const PARTS: &[&str] = &["audit", "call", "evaluation", "quarantine", "serve", "server", "telemetry", "worker"];

/// Lispbox and the libraries that log.
const COMPONENTS: &[&str] = &[
    "lispbox",
    "axum",
    "deadpool_postgres",
    "hyper",
    "hyper_rustls",
    "hyper_util",
    "mio",
    "opentelemetry",
    "opentelemetry_otlp",
    "opentelemetry_sdk",
    "redis",
    "reqwest",
    "rmcp",
    "rustls",
    "rustls_platform_verifier",
    "sse_stream",
    "tokio",
    "tokio_postgres",
    "tokio_util",
    "tower",
    "tower_http",
];

/// Reads and checks the filter in the environment: `debug`, `warn,lispbox::call=info`, ….
///
/// # Errors
/// Returns a usage error for an unknown level or component, with the known ones or the nearest one. Without this check,
/// the filter would accept any word as the name of a component, and nothing would be logged.
pub fn wanted() -> Result<String, Problem> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => check(&text).map(|()| text).map_err(Problem::Usage),
        Ok(_) | Err(std::env::VarError::NotPresent) => Ok(USUAL.to_owned()),
        Err(std::env::VarError::NotUnicode(_)) => Err(Problem::Usage(format!("{VARIABLE}: expected UTF-8"))),
    }
}

fn check(text: &str) -> Result<(), String> {
    let problem = |came: &str| {
        format!(
            "{VARIABLE}: expected one of the levels `{}`, or levels of components such as `warn,lispbox::call=debug`, got `{came}`",
            LEVELS.join("`, `")
        )
    };
    let is_level = |text: &str| LEVELS.iter().any(|known| known.eq_ignore_ascii_case(text));
    for part in text.split(',').map(str::trim) {
        let component = match part.rsplit_once('=') {
            Some((component, level)) if is_level(level.trim()) => component.trim(),
            Some(_) => return Err(problem(part)),
            None if is_level(part) => continue,
            // All levels of this component.
            None => part,
        };
        check_component(component).map_err(|reason| format!("{}{reason}", problem(part)))?;
    }
    EnvFilter::try_new(text).map(drop).map_err(|_| problem(text))
}

/// Checks the name of a component; the error is the end of a sentence.
fn check_component(name: &str) -> Result<(), String> {
    if name.contains('[') {
        return Err("; filtering by span is not supported".to_owned());
    }
    let mut segments = name.split("::");
    let is_known = segments.next().is_some_and(|first| COMPONENTS.contains(&first));
    let is_part_known = !name.starts_with("lispbox::") || segments.next().is_some_and(|part| PARTS.contains(&part));
    if is_known && is_part_known {
        return Ok(());
    }
    let parts: Vec<String> = PARTS.iter().map(|part| format!("lispbox::{part}")).collect();
    let known = LEVELS.iter().chain(COMPONENTS).copied().chain(parts.iter().map(String::as_str));
    Err(match closest(name, known) {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => "; no component that logs has this name".to_owned(),
    })
}

/// Returns a writer to a stream: of text for a person if the stream is a terminal, or else of JSON.
pub fn writer(stream: LogStream) -> LogWriter {
    let is_terminal = match stream {
        LogStream::Output => std::io::stdout().is_terminal(),
        LogStream::Errors => std::io::stderr().is_terminal(),
    };
    if is_terminal { LogWriter::of_text(stream) } else { LogWriter::new(stream) }
}

/// Writes the log lines that the filter `wanted` selects.
pub fn log_to(writer: &LogWriter, wanted: &str, telemetry: Option<&Telemetry>) {
    // The MCP library logs whole messages, including session handles, so it is limited to errors unless the filter
    // names it. A filter that names only components leaves the defaults of the others unchanged.
    let filter = EnvFilter::new(format!("warn,rmcp=error,{SPANS}=off,{wanted}"));
    let lines = writer.clone();
    let log = match writer.is_json() {
        true => JsonLines(lines).boxed(),
        // In colours, a secret would not be recognised behind the name of its field.
        false => {
            let log = tracing_subscriber::fmt::layer().compact().with_target(false).with_ansi(false);
            log.with_writer(move || lines.clone()).boxed()
        }
    };
    let all = tracing_subscriber::registry().with(log.with_filter(filter));
    // A second subscriber in the same process is refused, and the first one is kept.
    let _ = all.with(telemetry.map(Telemetry::layer)).try_init();
}

/// Writes each event as a line of JSON, with one write. The formatter of `tracing-subscriber` writes the same text in
/// many pieces, which takes twice as long.
struct JsonLines(LogWriter);

impl JsonLines {
    fn line(event: &Event<'_>) -> serde_json::Result<Vec<u8>> {
        let time = timestamp(SystemTime::now());
        let mut line = Vec::with_capacity(USUAL_LINE);
        let mut serializer = serde_json::Serializer::new(&mut line);
        let mut entries = serializer.serialize_map(None)?;
        entries.serialize_entry("timestamp", &time)?;
        entries.serialize_entry("level", &event.metadata().level().as_serde())?;
        entries.serialize_entry("fields", &event.field_map())?;
        entries.serialize_entry("target", event.metadata().target())?;
        entries.end()?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Formats a time as RFC 3339 with microseconds, in UTC. The part down to the second is formatted once a second.
fn timestamp(time: SystemTime) -> String {
    thread_local! {
        static SECOND: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
    }
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let second = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    SECOND.with_borrow_mut(|(cached, text)| {
        if *cached != second {
            let formatted = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX).to_string();
            (*cached, *text) = (second, formatted.get(..19).unwrap_or_default().to_owned());
        }
        format!("{text}.{:06}Z", since.subsec_micros())
    })
}

impl<S: tracing::Subscriber> Layer<S> for JsonLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // There is nowhere to report a line that cannot be written.
        let _ = JsonLines::line(event).map(|line| self.0.clone().write_all(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_microseconds() {
        let time = |micros| SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(micros);
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_007, "2000-02-29T00:00:00.000007Z"),
            (951_782_400_999_999, "2000-02-29T00:00:00.999999Z"),
            (951_782_399_000_000, "2000-02-28T23:59:59.000000Z"),
        ] {
            assert_eq!(timestamp(time(micros)), text);
        }
    }

    #[test]
    fn levels_are_told_from_slips() {
        for right in [
            "debug",
            "DEBUG",
            "warn,lispbox=info",
            "off",
            "lispbox::call=trace, warn",
            "lispbox::call",
            "warn,rmcp=debug",
        ] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for wrong in [
            "debgu",
            "verbose",
            "lispbox=debgu",
            "warn,debgu",
            "warning",
            "=",
            "lispbox=",
            "1debug",
            ",",
            "x[",
            "[x]=debug",
        ] {
            let problem = check(wrong).expect_err(wrong);
            assert!(LEVELS.iter().all(|level| problem.contains(level)), "{wrong}: {problem}");
        }
        for (wrong, meant) in [
            ("lispbx=debug", "lispbox"),
            ("Lispbox=debug", "lispbox"),
            ("warn, lispbox::cal=debug", "lispbox::call"),
            ("lispbox::evalution", "lispbox::evaluation"),
            ("tokio-postgres=debug", "tokio_postgres"),
            ("debug,rcmp=warn", "rmcp"),
            ("debgu", "debug"),
        ] {
            let problem = check(wrong).expect_err(wrong);
            assert!(problem.ends_with(&format!("; did you mean `{meant}`?")), "{wrong}: {problem}");
        }
        for wrong in [
            "foo=debug",
            "lispbox::zzzzzzzz=debug",
            "lispboxes=debug",
            "lispbox::=debug",
            "lispbox=info=debug",
            "=debug",
        ] {
            check(wrong).expect_err(wrong);
        }
    }
}
