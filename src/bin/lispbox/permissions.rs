//! `--allow`, `--ask`, `--deny`, `--guards`: rules for tool calls, in addition to those of the configuration.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lispbox::server::{Policy, Verdict};

use crate::context::Problem;

/// Tools by name or pattern: `send-*`, `mail/send-*` or `mcp__mail__send_*`. These rules take precedence over the
/// `policy` of the configuration. A variable contains several patterns separated by blanks.
#[derive(Args)]
struct Lists {
    /// Tools that may be called without confirmation, such as `mail/send-*`; may be given several times.
    #[arg(long, value_name = "PATTERN", env = "LISPBOX_ALLOW", value_delimiter = ' ')]
    allow: Vec<String>,
    /// Tools for which a person must confirm every call.
    #[arg(long, value_name = "PATTERN", env = "LISPBOX_ASK", value_delimiter = ' ')]
    ask: Vec<String>,
    /// Tools that may not be called.
    #[arg(long, value_name = "PATTERN", env = "LISPBOX_DENY", value_delimiter = ' ')]
    deny: Vec<String>,
    /// Guards on the arguments of tools with effects: `careful` or `strict`, in addition to those of the configuration.
    #[arg(long, value_name = "PRESET", env = "LISPBOX_GUARDS")]
    guards: Option<String>,
}

/// The lists of the command line, each with the flag or variable from which it comes.
pub struct Permissions {
    lists: Lists,
    of_variables: Vec<Verdict>,
}

const VARIABLES: [(Verdict, &str); 3] =
    [(Verdict::Allow, "LISPBOX_ALLOW"), (Verdict::Ask, "LISPBOX_ASK"), (Verdict::Deny, "LISPBOX_DENY")];

impl Permissions {
    /// Builds the policy.
    ///
    /// # Errors
    /// Returns a usage error if a pattern is invalid.
    pub fn policy(&self) -> Result<Policy, Problem> {
        let mut policy = Policy::default();
        for (verdict, variable) in VARIABLES {
            let patterns = match verdict {
                Verdict::Allow => &self.lists.allow,
                Verdict::Ask => &self.lists.ask,
                Verdict::Deny => &self.lists.deny,
            };
            let added = match self.of_variables.contains(&verdict) {
                true => policy.add_variable(verdict, variable, patterns),
                false => policy.add_flag(verdict, patterns),
            };
            added.map_err(Problem::Usage)?;
        }
        if let Some(preset) = self.lists.guards.as_deref().filter(|preset| !preset.is_empty()) {
            policy.add_preset(preset, "--guards").map_err(Problem::Usage)?;
        }
        Ok(policy)
    }
}

impl FromArgMatches for Permissions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_of_variable = |verdict: &Verdict| matches.value_source(verdict.key()) == Some(ValueSource::EnvVariable);
        let of_variables = VARIABLES.map(|(verdict, _)| verdict).into_iter().filter(is_of_variable).collect();
        Ok(Permissions { lists: Lists::from_arg_matches(matches)?, of_variables })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Permissions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Permissions {
    fn augment_args(command: Command) -> Command {
        Lists::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Lists::augment_args_for_update(command)
    }
}
