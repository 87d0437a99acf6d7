//! `--audit`: the settings of the audit log.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::parse_size;
use lispbox::server::{AuditFailure, AuditLog, AuditOptions, Redaction};

use crate::context::{Problem, named_problem};

/// The location of the audit log, and the arguments that it omits.
#[derive(Args)]
pub struct Recording {
    /// The folder of the audit log, which records each tool call and each evaluation. By default, no log is written.
    #[arg(long, value_name = "FOLDER", env = "LISPBOX_AUDIT")]
    audit: Option<PathBuf>,
    /// A separate folder for the chain heads, which reveal a truncated log: best on another machine.
    #[arg(long, value_name = "FOLDER", env = "LISPBOX_AUDIT_HEADS", requires = "audit")]
    audit_heads: Option<PathBuf>,
    /// The size at which the log continues in a new file.
    #[arg(long, value_name = "SIZE", env = "LISPBOX_AUDIT_PART", default_value = "64MiB")]
    audit_part: String,
    /// Arguments to omit, in addition to those with names of secrets: `body`, or `mail/*:body` for those of some tools,
    /// in any spelling (`reply-to-id`, `reply_to_id`); may be given several times.
    #[arg(long, value_name = "PATTERN", env = "LISPBOX_AUDIT_REDACT", value_delimiter = ' ')]
    audit_redact: Vec<String>,
    /// Record the texts of programs too, without secrets of the configuration; their hashes are always recorded.
    #[arg(long, env = "LISPBOX_AUDIT_PROGRAMS", requires = "audit")]
    audit_programs: bool,
    /// Handling of programs and `lisp_env` queries while the log cannot be written: `refuse` them before they have any
    /// effect, or `warn` in their replies. Tools are not called in either case [default: `warn` for the user of this
    /// machine, `refuse` for principals with tokens]
    #[arg(long, value_name = "WHAT", env = "LISPBOX_AUDIT_FAILURE", requires = "audit")]
    audit_failure: Option<AuditFailure>,
    /// Flush each intent to disk before its call is made or its program runs, so that it survives a power failure;
    /// costs one disk write each.
    #[arg(long, env = "LISPBOX_AUDIT_SYNC", requires = "audit")]
    audit_sync: bool,
}

impl Recording {
    /// The options of the log, if one is requested; nothing is written yet.
    ///
    /// # Errors
    /// Returns an error if a pattern or the size is invalid, or if the folder is a file.
    pub fn options(&self) -> Result<Option<AuditOptions>, Problem> {
        let Some(folder) = &self.audit else { return Ok(None) };
        for folder in [Some(folder), self.audit_heads.as_ref()].into_iter().flatten() {
            if folder.exists() && !folder.is_dir() {
                return Err(Problem::Usage(format!("the audit log in {}: expected a folder", folder.display())));
            }
        }
        let mut options = AuditOptions::new(folder.clone());
        options.heads.clone_from(&self.audit_heads);
        options.part_bytes = parse_size(&self.audit_part, "`--audit-part`").map_err(Problem::Usage)?;
        (options.programs, options.sync) = (self.audit_programs, self.audit_sync);
        options.failure = self.audit_failure;
        options.redaction = self.redaction()?;
        Ok(Some(options))
    }

    /// The arguments to omit, whether a log is requested or not.
    ///
    /// # Errors
    /// Returns an error if a pattern is invalid.
    pub fn redaction(&self) -> Result<Redaction, Problem> {
        let mut redaction = Redaction::default();
        for rule in &self.audit_redact {
            redaction.add(rule).map_err(Problem::Usage)?;
        }
        Ok(redaction)
    }

    /// The reason why a server cannot run with these settings, if any.
    pub fn objection(&self) -> Option<Problem> {
        let is_for_nothing = self.audit.is_none() && !self.audit_redact.is_empty();
        let message =
            "`--audit-redact` (LISPBOX_AUDIT_REDACT) sets what an audit log omits: expected `--audit FOLDER` too";
        is_for_nothing.then(|| Problem::Usage(message.to_owned()))
    }
}

/// Begins the log.
///
/// # Errors
/// Returns an error if the files cannot be created.
pub fn begin(options: AuditOptions) -> Result<Arc<AuditLog>, Problem> {
    let folder = options.folder.clone();
    let log = AuditLog::begin(options);
    let unusable = |problem| named_problem(&problem, format!("the audit log in {}: {problem}", folder.display()));
    log.map(Arc::new).map_err(unusable)
}
