//! `--audit`: what tools were called is written down.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::parse_size;
use lispbox::server::{AuditFailure, AuditLog, AuditOptions, Redaction};

use crate::surroundings::{Problem, named_problem};

/// Where the audit log is written, and what is left out of it.
#[derive(Args)]
pub struct Recording {
    /// The folder of the audit log, in which each tool call and each evaluation is written down. Without it none is.
    #[arg(long, value_name = "FOLDER", env = "LISPBOX_AUDIT")]
    audit: Option<PathBuf>,
    /// Another folder for the heads, which tell when the end of a log is missing: best on another machine.
    #[arg(long, value_name = "FOLDER", env = "LISPBOX_AUDIT_HEADS", requires = "audit")]
    audit_heads: Option<PathBuf>,
    /// The size at which the log goes on in a further file.
    #[arg(long, value_name = "SIZE", env = "LISPBOX_AUDIT_PART", default_value = "64MiB")]
    audit_part: String,
    /// Arguments that are not written, beside those that are named like secrets: `body`, or `mail/*:body` for those of
    /// some tools, in any spelling (`reply-to-id`, `reply_to_id`); may be given several times.
    #[arg(long, value_name = "PATTERN", env = "LISPBOX_AUDIT_REDACT", value_delimiter = ' ')]
    audit_redact: Vec<String>,
    /// Write the texts of programs too, without secrets of the configuration; their hashes always are.
    #[arg(long, env = "LISPBOX_AUDIT_PROGRAMS", requires = "audit")]
    audit_programs: bool,
    /// What becomes of programs and questions (`lisp_env`) while the log cannot be written: `refuse` them before they do
    /// anything, or `warn` in their replies. Tools are not called in either case [default: `warn` for the user of this
    /// machine, `refuse` for principals with tokens]
    #[arg(long, value_name = "WHAT", env = "LISPBOX_AUDIT_FAILURE", requires = "audit")]
    audit_failure: Option<AuditFailure>,
    /// Force each intent to the disk before its call is made or its program runs, so that it survives the loss of power;
    /// costs each a write of the disk.
    #[arg(long, env = "LISPBOX_AUDIT_SYNC", requires = "audit")]
    audit_sync: bool,
}

impl Recording {
    /// The log that is wanted, if there is to be one; nothing is written yet.
    ///
    /// # Errors
    /// For a wrong pattern or size, and for a folder that is a file.
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

    /// The arguments that are not written, whether there is to be a log or not.
    ///
    /// # Errors
    /// For a wrong pattern.
    pub fn redaction(&self) -> Result<Redaction, Problem> {
        let mut redaction = Redaction::default();
        for rule in &self.audit_redact {
            redaction.add(rule).map_err(Problem::Usage)?;
        }
        Ok(redaction)
    }

    /// Why a server cannot be run with these settings.
    pub fn objection(&self) -> Option<Problem> {
        let is_for_nothing = self.audit.is_none() && !self.audit_redact.is_empty();
        let message =
            "`--audit-redact` (LISPBOX_AUDIT_REDACT) says what an audit log leaves out: expected `--audit FOLDER` too";
        is_for_nothing.then(|| Problem::Usage(message.to_owned()))
    }
}

/// Begins the log.
///
/// # Errors
/// When the files cannot be made.
pub fn begin(options: AuditOptions) -> Result<Arc<AuditLog>, Problem> {
    let folder = options.folder.clone();
    let log = AuditLog::begin(options);
    let unusable = |problem| named_problem(&problem, format!("the audit log in {}: {problem}", folder.display()));
    log.map(Arc::new).map_err(unusable)
}
