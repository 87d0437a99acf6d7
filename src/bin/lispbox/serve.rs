//! `lispbox serve`: the MCP server, on standard input and output or over HTTP.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lispbox::lang::parse_size;
use lispbox::server::{
    AuditFailure, AuditOptions, HttpOptions, LogStream, LogWriter, Pins, Principals, Quarantine, RecordOptions,
    Redaction, ReplyForm, Secrets, ServeOptions, serve_http, serve_stdio,
};

use crate::address::Address;
use crate::bounds::{Bounds, Time};
use crate::config_paths::ConfigPaths;
use crate::context::{Problem, read_file, store_problem};
use crate::logging::{self, log_to};
use crate::output::{self, errln};
use crate::permissions::Permissions;
use crate::process;
use crate::recording::{self, Recording};
use crate::telemetry::Telemetry;
use crate::usual_store::{self, MEMORY};
use crate::welcome;
use crate::worker::Isolation;

/// Serves the two tools `lisp_eval` and `lisp_env` to one MCP client on standard input and output, or to many over
/// HTTP.
#[derive(Args)]
pub struct Serve {
    #[command(flatten, next_help_heading = "Servers")]
    config: ConfigPaths,
    /// The form of a successful reply: `text`, `structured` or `toon`.
    #[arg(long, value_name = "FORM", env = "LISPBOX_REPLY", default_value = "text", help_heading = "Replies")]
    reply: ReplyForm,
    /// A limit of every evaluation, such as `memory=64MiB`; no call can exceed it. May be given several times; a
    /// variable contains several limits separated by blanks.
    #[arg(
        long = "limit",
        value_name = "NAME=VALUE",
        env = "LISPBOX_LIMIT",
        value_delimiter = ' ',
        help_heading = "Limits"
    )]
    limits: Vec<String>,
    /// The memory of the server as a whole: half for concurrent evaluations, half for sessions.
    #[arg(long, value_name = "SIZE", env = "LISPBOX_TOTAL_MEMORY", default_value = "4GiB", help_heading = "Limits")]
    total_memory: String,
    /// Do not start servers whose tools are not known before they are needed. Without this, they start in the background
    /// as soon as the client has connected on standard input and output.
    #[arg(long, env = "LISPBOX_NO_PREFETCH", help_heading = "Servers")]
    no_prefetch: bool,
    /// Serve over HTTP at this address, such as `127.0.0.1:8787` or `localhost:8787`, instead of standard input and output.
    #[arg(long, value_name = "ADDRESS", env = "LISPBOX_HTTP", help_heading = "HTTP")]
    http: Option<Address>,
    /// The principals that may use the server over HTTP: a JSON file from names to bearer tokens, `{"ann":
    /// "${ANN_TOKEN}"}`, or to `{"token": "…", "limits": {…}, "sessions": N, "evaluations": N, "requests_per_minute":
    /// N}`. LISPBOX_TOKEN is the token of one principal, `default`. Only its owner may read the file; it is read again
    /// when it changes.
    #[arg(long, value_name = "FILE", env = "LISPBOX_TOKENS", requires = "http", help_heading = "HTTP")]
    tokens: Option<PathBuf>,
    /// The operators that may decide at `/approvals` on calls that need approval: a JSON file from names to tokens,
    /// `{"olga": "${OLGA_TOKEN}"}`, none of which is the token of a principal. Only its owner may write the file; it is
    /// read again when it changes. Needs `--store`.
    #[arg(long, value_name = "FILE", env = "LISPBOX_APPROVALS_TOKENS", requires_all = ["http", "store"], help_heading = "HTTP")]
    approvals_tokens: Option<PathBuf>,
    /// Serve without tokens at an address that other machines can reach.
    #[arg(long, env = "LISPBOX_WITHOUT_TOKENS", requires = "http", help_heading = "HTTP")]
    without_tokens: bool,
    /// A name by which a proxy or other machines reach the server, in addition to `localhost`.
    #[arg(
        long = "host",
        value_name = "NAME",
        env = "LISPBOX_HOST",
        value_delimiter = ' ',
        requires = "http",
        help_heading = "HTTP"
    )]
    hosts: Vec<String>,
    /// An origin whose web pages may use the server, such as `https://app.example.com:443`.
    #[arg(
        long = "origin",
        value_name = "ORIGIN",
        env = "LISPBOX_ORIGIN",
        value_delimiter = ' ',
        requires = "http",
        help_heading = "HTTP"
    )]
    origins: Vec<String>,
    /// Serve metrics for Prometheus at this address, such as `127.0.0.1:9464`, at `/metrics` and without tokens. By
    /// default, they are at the address of `--http`, where tokens are required.
    #[arg(long, value_name = "ADDRESS", env = "LISPBOX_METRICS", help_heading = "HTTP")]
    metrics: Option<Address>,
    /// The rules against which replies are checked before a model reads them, instead of the built-in rules against
    /// text that reads like instructions: a file with a name and a regular expression on each line.
    #[arg(long, value_name = "FILE", env = "LISPBOX_QUARANTINE", help_heading = "Replies")]
    quarantine: Option<PathBuf>,
    /// Do not check replies.
    #[arg(long, env = "LISPBOX_NO_QUARANTINE", conflicts_with = "quarantine", help_heading = "Replies")]
    no_quarantine: bool,
    /// The store in which sessions outlive the process: `sqlite:sessions.db`, `redis://HOST:PORT/NUMBER` or
    /// `postgres://USER:PASSWORD@HOST/DATABASE`. It contains what tools returned, unencrypted unless the store encrypts
    /// it. By default, a server on standard input and output uses a SQLite file among the user's data, which only its
    /// owner can read; `memory` means no store.
    #[arg(long, value_name = "URL", env = "LISPBOX_STORE", hide_env_values = true, help_heading = "Sessions")]
    store: Option<String>,
    /// Record whole runs in the store, with what their tools returned, so that `lispbox runs` can show and replay them.
    /// They are kept for this time, such as `30d`; without a time, for 7 days.
    #[arg(
        long, value_name = "TIME", env = "LISPBOX_RECORD", requires = "store", num_args = 0..=1,
        default_missing_value = "7d",
        help_heading = "Sessions"
    )]
    record: Option<Time>,
    /// Maximum size of the record of one run. Of a larger one, only the reply is kept.
    #[arg(long, value_name = "SIZE", env = "LISPBOX_RECORD_SIZE", default_value = "16MiB", help_heading = "Sessions")]
    record_size: String,
    /// Add the tool `lisp_approve` for a client that shows no forms: the prompt with which the client asks a person before
    /// a call of a tool then decides on calls that wait. It is as safe as that prompt: a client that always allows
    /// the tool does not ask.
    #[arg(long, env = "LISPBOX_APPROVE_TOOL", conflicts_with = "http", help_heading = "Policy")]
    approve_tool: bool,
    #[command(flatten, next_help_heading = "Policy")]
    permissions: Permissions,
    #[command(flatten, next_help_heading = "Audit")]
    recording: Recording,
    #[command(flatten, next_help_heading = "Sessions")]
    bounds: Bounds,
    #[command(flatten, next_help_heading = "Limits")]
    isolation: Isolation,
}

/// All settings of a server, validated before anything is started.
pub struct Prepared {
    pub options: ServeOptions,
    pub http: Option<HttpOptions>,
    /// The log filter.
    log: String,
    audit: Option<AuditOptions>,
    /// The arguments that an audit log omits.
    pub redaction: Redaction,
}

impl Serve {
    /// Serves until the client disconnects or the process receives a termination signal.
    pub fn run(self) -> ExitCode {
        process::without_huge_pages();
        let prepared = match self.prepare() {
            Ok(prepared) => prepared,
            Err(problem) => return problem.report(),
        };
        if let Some(objection) = self.recording.objection() {
            return objection.report();
        }
        // Without `--http`, standard output carries the protocol, so the log is written to standard error.
        let log = logging::writer(if self.http.is_some() { LogStream::Output } else { LogStream::Errors });
        let telemetry = match Telemetry::of_environment() {
            Ok(telemetry) => telemetry,
            Err(problem) => return Problem::Usage(problem).report(),
        };
        if self.http.is_none() && std::io::stdin().is_terminal() {
            welcome::show(&prepared.options.downstream.secrets);
        }
        log_to(&log, &prepared.log, telemetry.as_ref());
        let outcome = self.serve(prepared, &log);
        if let Some(telemetry) = telemetry {
            telemetry.end();
        }
        log.flush_within(Duration::from_millis(200));
        outcome.map_or_else(Problem::report, |()| ExitCode::SUCCESS)
    }

    /// Reads the configuration and all settings; starts nothing and creates no file.
    ///
    /// # Errors
    /// Returns an error for an invalid setting of a flag, a variable or a file.
    pub fn prepare(&self) -> Result<Prepared, Problem> {
        let log = logging::wanted()?;
        let configuration = self.config.read().map_err(Problem::Usage)?;
        let limits = configuration.limits.clone();
        let mut options = ServeOptions::new(configuration);
        for (name, value) in &limits {
            options.set_limit(name, value).map_err(Problem::Usage)?;
        }
        options.reply = self.reply;
        options.downstream.policy = self.permissions.policy()?;
        options.downstream.prefetch &= !self.no_prefetch;
        options.approve_tool = self.approve_tool;
        options.metrics = match &self.metrics {
            Some(address) => address.resolve()?.first().copied(),
            None => None,
        };
        for limit in &self.limits {
            let (name, value) = limit
                .split_once('=')
                .ok_or_else(|| Problem::Usage(format!("expected a limit as `NAME=VALUE`, got `{limit}`")))?;
            options.set_limit(name, value).map_err(Problem::Usage)?;
        }
        options.set_total_memory(&self.total_memory).map_err(Problem::Usage)?;
        let largest = parse_size(&self.record_size, "the size of a record").map_err(Problem::Usage)?;
        let largest = usize::try_from(largest).unwrap_or(usize::MAX);
        options.record = self.record.map(|keep| RecordOptions { keep: keep.0, largest });
        self.bounds.of_sessions(&mut options.sessions);
        options.grace = self.bounds.grace();
        options.reply_within = self.bounds.reply_within();
        if self.no_quarantine {
            options.quarantine = Quarantine::none();
        } else if let Some(file) = &self.quarantine {
            let rules = Quarantine::read(&read_file(file)?);
            options.quarantine = rules.map_err(|problem| Problem::Usage(format!("{}: {problem}", file.display())))?;
        }
        // The password of a store is a secret like those of the servers, and so are the tokens of principals.
        let secrets = options.downstream.secrets.clone();
        self.store.iter().for_each(|url| secrets.add_credentials_in(url));
        if self.named_store().is_none() && (self.record.is_some() || self.approvals_tokens.is_some()) {
            let message =
                "`--record` and `--approvals-tokens` need a store: expected `--store` with another value than `memory`";
            return Err(Problem::Usage(message.to_owned()));
        }
        let mut audit = self.recording.options()?;
        let http = self.http.as_ref().map(|address| self.http_options(address, &secrets)).transpose()?;
        if let (Some(audit), Some(http)) = (&mut audit, &http)
            && !http.principals.is_empty()
        {
            // A principal may have any name, including that of the user of this machine.
            audit.failure.get_or_insert(AuditFailure::Refuse);
        }
        let redaction = self.recording.redaction()?;
        Ok(Prepared { options, http, log, audit, redaction })
    }

    /// Checks that the store can be used. A missing SQLite file is not created; a server is connected to.
    ///
    /// # Errors
    /// Returns the reason why it cannot.
    pub fn check_store(&self) -> Result<(), Problem> {
        let Some(url) = self.named_store() else { return Ok(()) };
        match url.strip_prefix("sqlite:").filter(|path| !path.is_empty()).map(Path::new) {
            Some(path) if !path.exists() => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let missing = || Problem::Usage(format!("{url}: there is no folder {}", folder.display()));
                if folder.is_dir() { Ok(()) } else { Err(missing()) }
            }
            _ => lispbox::store::open(url).map(drop).map_err(|message| store_problem(url, message)),
        }
    }

    /// Returns true if a store is named.
    pub fn has_store(&self) -> bool {
        self.named_store().is_some()
    }

    /// Returns the URL of the store, if one is named.
    fn named_store(&self) -> Option<&String> {
        self.store.as_ref().filter(|url| *url != MEMORY)
    }

    /// Opens the store that is named, or the usual one.
    ///
    /// # Errors
    /// Returns the reason why a store that is named cannot be used.
    fn open_store(&self, options: &mut ServeOptions) -> Result<(), Problem> {
        if let Some(url) = self.named_store() {
            let store = lispbox::store::open(url).map_err(|message| store_problem(url, message))?;
            options.store = Some(store);
        } else if self.store.is_none() && self.http.is_none() {
            let store = usual_store::open_usual().unwrap_or_else(|problem| {
                let since = "sessions and waiting programs end with this process, since the usual store cannot be used";
                tracing::warn!(problem, "{since}");
                std::sync::Arc::new(usual_store::Unusable(problem))
            });
            options.store = Some(store);
            options.sessions.stored_bytes = usual_store::MOST;
            options.is_usual_store = true;
        }
        Ok(())
    }

    /// Returns the pins of tools in the store, if one is named and exists. A SQLite file is not created.
    ///
    /// # Errors
    /// Returns the reason why the store cannot be used.
    pub fn pins(&self) -> Result<Option<Pins>, Problem> {
        let Some(url) = self.named_store() else { return Ok(None) };
        if url.strip_prefix("sqlite:").is_some_and(|path| !Path::new(path).exists()) {
            return Ok(None);
        }
        let store = lispbox::store::open(url).map_err(|message| store_problem(url, message))?;
        Ok(Some(Pins::in_store(store)))
    }

    fn serve(&self, prepared: Prepared, log: &LogWriter) -> Result<(), Problem> {
        let Prepared { mut options, http, audit, .. } = prepared;
        log.redact(&options.downstream.secrets);
        options.configuration.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        self.open_store(&mut options)?;
        let audit = audit.map(recording::begin).transpose()?;
        options.downstream.audit.clone_from(&audit);
        let engine = process::engine(process::CONNECTIONS)?;
        let sandbox = self.isolation.sandbox(engine)?;
        let served = match http {
            None => log.begin().and_then(|()| serve_stdio(sandbox, options)),
            Some(http) => serve_http(sandbox, options, http, |address| {
                // The first line on standard output, for which a parent process may wait. The log follows it.
                output::announce(&format!("listening on http://{address}/mcp"));
                if let Err(problem) = log.begin() {
                    errln!("lispbox: there is no log: {problem}");
                }
            }),
        };
        if let Some(audit) = audit {
            audit.end();
        }
        served.map_err(|problem| Problem::Failed(problem.to_string()))
    }

    fn http_options(&self, address: &Address, secrets: &Secrets) -> Result<HttpOptions, Problem> {
        let resolved = address.resolve()?;
        let mut http = HttpOptions::new(resolved[0]);
        http.alternatives = resolved[1..].to_vec();
        http.hosts.clone_from(&self.hosts);
        http.hosts.extend(address.name().map(str::to_owned));
        http.origins.clone_from(&self.origins);
        http.open = self.without_tokens;
        self.bounds.of_http(&mut http);
        let read = |file: &PathBuf| {
            let variable = |name: &str| std::env::var(name).ok();
            let principals = match file.as_os_str() == "-" {
                true => Principals::read_concealing(&read_file(file)?, &variable, secrets),
                false => Principals::open(file, variable, secrets),
            };
            principals.map_err(|problem| Problem::Usage(format!("{}: {problem}", file.display())))
        };
        if let Some(file) = &self.tokens {
            http.principals = read(file)?;
        }
        if let Some(file) = &self.approvals_tokens {
            http.operators = read(file)?;
        }
        if let Ok(token) = std::env::var("LISPBOX_TOKEN") {
            secrets.add([token.trim()]);
            http.principals.add("default", token.trim()).map_err(Problem::Usage)?;
        }
        match http.objection() {
            Some(objection) => Err(Problem::Usage(objection)),
            None => Ok(http),
        }
    }
}
