//! `lispbox serve`: the MCP server, on standard input and output or over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lispbox::server::{
    HttpOptions, LogStream, LogWriter, Principals, Quarantine, ReplyForm, SPANS, ServeOptions, serve_http, serve_stdio,
};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::bounds::Bounds;
use crate::permissions::Permissions;
use crate::places::Places;
use crate::process;
use crate::recording::Recording;
use crate::surroundings::{Problem, read_file};
use crate::telemetry::Telemetry;
use crate::worker::Isolation;

/// Serves the two tools `lisp_eval` and `lisp_env` to an MCP client, on standard input and output, or to many over HTTP.
#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    places: Places,
    /// What a successful reply consists of: `text`, `structured` or `toon`.
    #[arg(long, value_name = "FORM", env = "LISPBOX_REPLY", default_value = "text")]
    reply: ReplyForm,
    /// A limit of every evaluation, such as `memory=64MiB`; no call can ask for more. May be given several times; a
    /// variable holds several with blanks between them.
    #[arg(long = "limit", value_name = "NAME=VALUE", env = "LISPBOX_LIMIT", value_delimiter = ' ')]
    limits: Vec<String>,
    /// The memory of the server as a whole: a half for evaluations at once, a half for sessions.
    #[arg(long, value_name = "SIZE", env = "LISPBOX_TOTAL_MEMORY", default_value = "4GiB")]
    total_memory: String,
    /// Serve over HTTP at this address, such as `127.0.0.1:8787`, instead of standard input and output.
    #[arg(long, value_name = "ADDRESS", env = "LISPBOX_HTTP")]
    http: Option<SocketAddr>,
    /// Who may use it over HTTP: a JSON file from names to bearer tokens, `{"ann": "${ANN_TOKEN}"}`, or to
    /// `{"token": "…", "limits": {…}, "sessions": N, "evaluations": N, "requests_per_minute": N}`. LISPBOX_TOKEN is the
    /// token of one principal, `default`.
    #[arg(long, value_name = "FILE", env = "LISPBOX_TOKENS", requires = "http")]
    tokens: Option<PathBuf>,
    /// Serve everybody who reaches an address that other machines reach.
    #[arg(long, env = "LISPBOX_WITHOUT_TOKENS", requires = "http")]
    without_tokens: bool,
    /// A name under which a proxy or other machines reach the server, beside `localhost`.
    #[arg(long = "host", value_name = "NAME", env = "LISPBOX_HOST", value_delimiter = ' ', requires = "http")]
    hosts: Vec<String>,
    /// An origin whose web pages may use the server, such as `https://app.example.com:443`.
    #[arg(long = "origin", value_name = "ORIGIN", env = "LISPBOX_ORIGIN", value_delimiter = ' ', requires = "http")]
    origins: Vec<String>,
    /// Serve metrics for Prometheus at this address, such as `127.0.0.1:9464`, to whoever reaches it, at `/metrics`.
    /// Without it they are at the address of `--http`, where the tokens hold.
    #[arg(long, value_name = "ADDRESS", env = "LISPBOX_METRICS")]
    metrics: Option<SocketAddr>,
    /// What replies are held against before a model reads them, in place of the usual rules against text that reads
    /// like instructions: a file with a name and a regular expression on each line.
    #[arg(long, value_name = "FILE", env = "LISPBOX_QUARANTINE")]
    quarantine: Option<PathBuf>,
    /// Hold replies against nothing.
    #[arg(long, env = "LISPBOX_NO_QUARANTINE", conflicts_with = "quarantine")]
    no_quarantine: bool,
    /// Where sessions are kept beyond the life of the process: `sqlite:sessions.db`, `redis://HOST:PORT/NUMBER` or
    /// `postgres://USER:PASSWORD@HOST/DATABASE`. It holds what tools returned, unencrypted unless the store encrypts it.
    #[arg(long, value_name = "URL", env = "LISPBOX_STORE", hide_env_values = true)]
    store: Option<String>,
    #[command(flatten)]
    permissions: Permissions,
    #[command(flatten)]
    recording: Recording,
    #[command(flatten)]
    bounds: Bounds,
    #[command(flatten)]
    isolation: Isolation,
}

impl Serve {
    /// Serves until the client goes or the process is told to end.
    pub fn run(self) -> ExitCode {
        process::without_huge_pages();
        // Standard output is the client's, unless clients come over HTTP.
        let log = LogWriter::new(if self.http.is_some() { LogStream::Output } else { LogStream::Errors });
        let telemetry = match Telemetry::of_environment() {
            Ok(telemetry) => telemetry,
            Err(problem) => return Problem::Usage(problem).report(),
        };
        log_to(&log, telemetry.as_ref());
        let outcome = self.serve(&log);
        if let Some(telemetry) = telemetry {
            telemetry.end();
        }
        log.flush_within(Duration::from_millis(200));
        outcome.map_or_else(Problem::report, |()| ExitCode::SUCCESS)
    }

    fn serve(self, log: &LogWriter) -> Result<(), Problem> {
        let configuration = self.places.read().map_err(Problem::Usage)?;
        configuration.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let limits = configuration.limits.clone();
        let mut options = ServeOptions::new(configuration);
        for (name, value) in &limits {
            options.set_limit(name, value).map_err(Problem::Usage)?;
        }
        options.reply = self.reply;
        options.downstream.policy = self.permissions.policy()?;
        options.metrics = self.metrics;
        for limit in &self.limits {
            let (name, value) = limit
                .split_once('=')
                .ok_or_else(|| Problem::Usage(format!("expected a limit as `NAME=VALUE`, got `{limit}`")))?;
            options.set_limit(name, value).map_err(Problem::Usage)?;
        }
        options.set_total_memory(&self.total_memory).map_err(Problem::Usage)?;
        self.bounds.of_sessions(&mut options.sessions);
        options.store = self.store.as_deref().map(lispbox::store::open).transpose().map_err(Problem::Failed)?;
        if self.no_quarantine {
            options.quarantine = Quarantine::none();
        } else if let Some(file) = &self.quarantine {
            let rules = Quarantine::read(&read_file(file)?);
            options.quarantine = rules.map_err(|problem| Problem::Usage(format!("{}: {problem}", file.display())))?;
        }
        // The password of a store is a secret as those of the servers are.
        let password = self.store.as_deref().and_then(password);
        options.downstream.secrets.add(password);
        let audit = self.recording.begin()?;
        options.downstream.audit.clone_from(&audit);
        let engine = process::engine(process::CONNECTIONS)?;
        let http = self.http.map(|address| self.http_options(address)).transpose()?;
        let sandbox = self.isolation.sandbox(engine)?;
        let served = match http {
            None => log.begin().and_then(|()| serve_stdio(sandbox, options)),
            Some(http) => serve_http(sandbox, options, http, |address| {
                // The first line on standard output: whoever started us may wait for it. Behind it comes the log.
                println!("listening on http://{address}/mcp");
                if let Err(problem) = log.begin() {
                    eprintln!("lispbox: there is no log: {problem}");
                }
            }),
        };
        if let Some(audit) = audit {
            audit.end();
        }
        served.map_err(|problem| Problem::Failed(problem.to_string()))
    }

    fn http_options(&self, address: SocketAddr) -> Result<HttpOptions, Problem> {
        let mut http = HttpOptions::new(address);
        http.hosts.clone_from(&self.hosts);
        http.origins.clone_from(&self.origins);
        http.open = self.without_tokens;
        self.bounds.of_http(&mut http);
        if let Some(file) = &self.tokens {
            let text = read_file(file)?;
            http.principals = Principals::read(&text, &|name| std::env::var(name).ok())
                .map_err(|problem| Problem::Usage(format!("{}: {problem}", file.display())))?;
        }
        if let Ok(token) = std::env::var("LISPBOX_TOKEN") {
            http.principals.add("default", token.trim()).map_err(Problem::Usage)?;
        }
        Ok(http)
    }
}

/// The password in `postgres://USER:PASSWORD@HOST/DATABASE`.
fn password(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let (user, _) = rest.rsplit_once('@')?;
    Some(user.split_once(':')?.1)
}

/// Log lines are JSON; `LISPBOX_LOG` says which (`debug`, `warn,lispbox::call=info`, …).
fn log_to(writer: &LogWriter, telemetry: Option<&Telemetry>) {
    let wanted = std::env::var("LISPBOX_LOG").unwrap_or_else(|_| "warn,lispbox=info".to_owned());
    // The protocol's library logs whole messages, handles of sessions among them: only who names it hears more of it.
    let filter = EnvFilter::try_new(format!("rmcp=error,{SPANS}=off,{wanted}"));
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(format!("rmcp=error,{SPANS}=off,warn,lispbox=info")));
    let lines = writer.clone();
    let log = tracing_subscriber::fmt::layer().json().with_current_span(false).with_span_list(false);
    let all = tracing_subscriber::registry().with(log.with_writer(move || lines.clone()).with_filter(filter));
    // A second subscriber in one process is refused; the first one then stays.
    let _ = all.with(telemetry.map(Telemetry::layer)).try_init();
}
