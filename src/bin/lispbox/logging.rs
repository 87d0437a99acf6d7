//! `LISPBOX_LOG`: which log lines `serve` writes.

use lispbox::server::{LogWriter, SPANS};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::surroundings::Problem;
use crate::telemetry::Telemetry;

/// The variable.
pub const VARIABLE: &str = "LISPBOX_LOG";

/// The lines that are written where the variable says nothing.
const USUAL: &str = "warn,lispbox=info";

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The lines that the environment asks for: `debug`, `warn,lispbox::call=info`, ….
///
/// # Errors
/// For a level that is none, with those that there are. Left to itself the filter takes such a word for the name of a
/// component, and nothing is logged.
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
    for part in text.split(',').map(str::trim) {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        let is_level = LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level.trim()));
        // `lispbox::call` alone is all of that component, `lispbox[span]` all within a span.
        let is_component = !part.contains('=') && (part.contains("::") || part.contains('[') || part == "lispbox");
        if !is_level && !is_component {
            return Err(problem(part));
        }
    }
    EnvFilter::try_new(text).map(drop).map_err(|_| problem(text))
}

/// Writes the lines that are `wanted` as JSON.
pub fn log_to(writer: &LogWriter, wanted: &str, telemetry: Option<&Telemetry>) {
    // The protocol's library logs whole messages, handles of sessions among them: only who names it hears more of it.
    let filter = EnvFilter::new(format!("rmcp=error,{SPANS}=off,{wanted}"));
    let lines = writer.clone();
    let log = tracing_subscriber::fmt::layer().json().with_current_span(false).with_span_list(false);
    let all = tracing_subscriber::registry().with(log.with_writer(move || lines.clone()).with_filter(filter));
    // A second subscriber in one process is refused; the first one then stays.
    let _ = all.with(telemetry.map(Telemetry::layer)).try_init();
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for wrong in ["debgu", "verbose", "lispbox=debgu", "warn,debgu", "warning", "=", "lispbox=", "1debug", ","] {
            let problem = check(wrong).expect_err(wrong);
            assert!(LEVELS.iter().all(|level| problem.contains(level)), "{wrong}: {problem}");
        }
    }
}
