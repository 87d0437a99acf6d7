//! `lispbox serve`: the MCP server, on standard input and output or over HTTP.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use lispbox::server::{
    AuditFailure, AuditOptions, HttpOptions, LogStream, LogWriter, Quarantine, Redaction, ReplyForm, ServeOptions,
    serve_http, serve_stdio,
};

use crate::bounds::Bounds;
use crate::config_paths::ConfigPaths;
use crate::context::{Problem, read_file};
use crate::http::Http;
use crate::logging::{self, log_to};
use crate::output::{self, errln};
use crate::permissions::Permissions;
use crate::process;
use crate::recording::{self, Recording};
use crate::storage::Storage;
use crate::telemetry::Telemetry;
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
    #[command(flatten, next_help_heading = "Limits")]
    resources: Resources,
    /// Do not start servers whose tools are not known before they are needed. Without this, they start in the background
    /// as soon as the client has connected on standard input and output.
    #[arg(long, env = "LISPBOX_NO_PREFETCH", help_heading = "Servers")]
    no_prefetch: bool,
    #[command(flatten, next_help_heading = "HTTP")]
    http: Http,
    #[command(flatten, next_help_heading = "Replies")]
    checks: ReplyChecks,
    #[command(flatten, next_help_heading = "Sessions")]
    pub storage: Storage,
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

/// Limits of evaluations, and the memory of all of them.
#[derive(Args)]
struct Resources {
    /// A limit of every evaluation, such as `memory=64MiB`; no call can exceed it. May be given several times; a
    /// variable contains several limits separated by blanks.
    #[arg(long = "limit", value_name = "NAME=VALUE", env = "LISPBOX_LIMIT", value_delimiter = ' ')]
    limits: Vec<String>,
    /// The memory of the server as a whole: half for concurrent evaluations, half for sessions.
    #[arg(long, value_name = "SIZE", env = "LISPBOX_TOTAL_MEMORY", default_value = "4GiB")]
    total_memory: String,
}

impl Resources {
    /// Applies the limits.
    ///
    /// # Errors
    /// Returns a usage error for an unknown limit or an invalid value.
    fn apply(&self, options: &mut ServeOptions) -> Result<(), Problem> {
        for limit in &self.limits {
            let (name, value) = limit
                .split_once('=')
                .ok_or_else(|| Problem::Usage(format!("expected a limit as `NAME=VALUE`, got `{limit}`")))?;
            options.set_limit(name, value).map_err(Problem::Usage)?;
        }
        options.set_total_memory(&self.total_memory).map_err(Problem::Usage)
    }
}

/// The checks of replies before a model reads them.
#[derive(Args)]
struct ReplyChecks {
    /// The rules against which replies are checked before a model reads them, instead of the built-in rules against
    /// text that reads like instructions: a file with a name and a regular expression on each line.
    #[arg(long, value_name = "FILE", env = "LISPBOX_QUARANTINE")]
    quarantine: Option<PathBuf>,
    /// Do not check replies.
    #[arg(long, env = "LISPBOX_NO_QUARANTINE", conflicts_with = "quarantine")]
    no_quarantine: bool,
}

impl ReplyChecks {
    /// Returns the rules of a file, or none; `None` if neither was asked for.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or a rule in it is invalid.
    fn rules(&self) -> Result<Option<Quarantine>, Problem> {
        if self.no_quarantine {
            return Ok(Some(Quarantine::none()));
        }
        let Some(file) = &self.quarantine else { return Ok(None) };
        let rules = Quarantine::read(&read_file(file)?);
        rules.map(Some).map_err(|problem| Problem::Usage(format!("{}: {problem}", file.display())))
    }
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
        let log = logging::writer(if self.http.is_on() { LogStream::Output } else { LogStream::Errors });
        let telemetry = match Telemetry::of_environment() {
            Ok(telemetry) => telemetry,
            Err(problem) => return Problem::Usage(problem).report(),
        };
        if !self.http.is_on() && std::io::stdin().is_terminal() {
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
        options.replies.form = self.reply;
        options.downstream.policy = self.permissions.policy()?;
        options.downstream.prefetch &= !self.no_prefetch;
        options.approve_tool = self.approve_tool;
        options.metrics = self.http.metrics()?;
        self.resources.apply(&mut options)?;
        options.storage.record = self.storage.recording()?;
        self.bounds.of_sessions(&mut options.sessions);
        options.grace = self.bounds.grace();
        options.replies.within = self.bounds.reply_within();
        if let Some(rules) = self.checks.rules()? {
            options.replies.quarantine = rules;
        }
        // The password of a store is a secret like those of the servers, and so are the tokens of principals.
        let secrets = options.downstream.secrets.clone();
        self.storage.conceal(&secrets);
        if !self.storage.is_named() && (options.storage.record.is_some() || self.http.has_operators()) {
            let message =
                "`--record` and `--approvals-tokens` need a store: expected `--store` with another value than `memory`";
            return Err(Problem::Usage(message.to_owned()));
        }
        let mut audit = self.recording.options()?;
        let http = self.http.options(&self.bounds, &secrets)?;
        if let (Some(audit), Some(http)) = (&mut audit, &http)
            && !http.principals.is_empty()
        {
            // A principal may have any name, including that of the user of this machine.
            audit.failure.get_or_insert(AuditFailure::Refuse);
        }
        let redaction = self.recording.redaction()?;
        Ok(Prepared { options, http, log, audit, redaction })
    }

    fn serve(&self, prepared: Prepared, log: &LogWriter) -> Result<(), Problem> {
        let Prepared { mut options, http, audit, .. } = prepared;
        log.redact(&options.downstream.secrets);
        options.configuration.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        self.storage.open(&mut options, self.http.is_on())?;
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
}
