//! `--allow`, `--ask`, `--deny`: what programs may call, beside what the configuration says.

use clap::Args;
use lispbox::server::{Policy, Verdict};

use crate::surroundings::Problem;

/// Tools by name or pattern, `send-*`, `mail/send-*` or `mcp__mail__send_*`; these go before the configuration's `policy`. A variable holds
/// several with blanks between them.
#[derive(Args)]
pub struct Permissions {
    /// Tools that may be called without asking, such as `mail/send-*`; may be given several times.
    #[arg(long, value_name = "PATTERN", env = "LISPBOX_ALLOW", value_delimiter = ' ')]
    allow: Vec<String>,
    /// Tools of which a person is asked at every call.
    #[arg(long, value_name = "PATTERN", env = "LISPBOX_ASK", value_delimiter = ' ')]
    ask: Vec<String>,
    /// Tools that may not be called.
    #[arg(long, value_name = "PATTERN", env = "LISPBOX_DENY", value_delimiter = ' ')]
    deny: Vec<String>,
}

impl Permissions {
    /// The policy that they make.
    ///
    /// # Errors
    /// For a pattern that is none.
    pub fn policy(&self) -> Result<Policy, Problem> {
        let mut policy = Policy::default();
        for (verdict, patterns) in
            [(Verdict::Allow, &self.allow), (Verdict::Ask, &self.ask), (Verdict::Deny, &self.deny)]
        {
            policy.add_flag(verdict, patterns).map_err(Problem::Usage)?;
        }
        Ok(policy)
    }
}
