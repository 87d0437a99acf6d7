//! `--audit`: what tools were called is written down.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use lispbox::lang::parse_size;
use lispbox::server::{AuditLog, AuditOptions};

use crate::surroundings::Problem;

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
    /// some tools; may be given several times.
    #[arg(long, value_name = "PATTERN", env = "LISPBOX_AUDIT_REDACT", value_delimiter = ' ', requires = "audit")]
    audit_redact: Vec<String>,
}

impl Recording {
    /// Begins the log, if there is to be one.
    ///
    /// # Errors
    /// For a wrong pattern or size, and when the files cannot be made.
    pub fn begin(&self) -> Result<Option<Arc<AuditLog>>, Problem> {
        let Some(folder) = &self.audit else { return Ok(None) };
        let mut options = AuditOptions::new(folder.clone());
        options.heads.clone_from(&self.audit_heads);
        options.part_bytes = parse_size(&self.audit_part, "`--audit-part`").map_err(Problem::Usage)?;
        for rule in &self.audit_redact {
            options.redaction.add(rule).map_err(Problem::Usage)?;
        }
        let log = AuditLog::begin(options);
        let log =
            log.map_err(|problem| Problem::Failed(format!("the audit log in {}: {problem}", folder.display())))?;
        Ok(Some(Arc::new(log)))
    }
}
