//! `lispbox approvals grants` and `revoke`, and the options of `approve` that give a grant.

use std::time::{Duration, SystemTime};

use clap::Args;
use lispbox::server::{Grant, GrantTerms, GrantedCall, LONGEST_GRANT, ListedGrant, StoredGrants};
use lispbox::store::Key;
use serde_json::{Value, json};

use crate::bounds::Time;
use crate::context::Problem;
use crate::output::{errln, outln};
use crate::terminal::for_stdout;

/// Bounds of a grant.
#[derive(Args)]
pub struct GrantOptions {
    /// Also allow later calls of the tool by this principal for this time, such as `1h`, at most `30d` [default: 1h with
    /// `--count`, 7d with `--session`].
    #[arg(long = "for", value_name = "TIME")]
    period: Option<Time>,
    /// Also allow this number of later calls of the tool.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: Option<u32>,
    /// Allow later calls only with the same arguments and in the same session.
    #[arg(long)]
    session: bool,
}

const HOUR: Duration = Duration::from_secs(60 * 60);
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl GrantOptions {
    /// Returns the terms, if a grant is asked for.
    ///
    /// # Errors
    /// Returns a usage error if the time is too long.
    pub fn terms(&self) -> Result<Option<GrantTerms>, Problem> {
        if self.period.is_none() && self.count.is_none() && !self.session {
            return Ok(None);
        }
        let usual = if self.session { WEEK } else { HOUR };
        let period = self.period.map_or(usual, |time| time.0);
        if period > LONGEST_GRANT {
            return Err(Problem::Usage("a grant lasts for at most 30 days: `--for 30d`".to_owned()));
        }
        Ok(Some(GrantTerms { period, count: self.count, is_for_these_arguments: self.session }))
    }
}

/// Lists the grants that have not ended.
pub fn list(grants: &StoredGrants, as_json: bool) -> Result<(), Problem> {
    let listed = grants.list().map_err(|problem| Problem::Failed(problem.to_string()))?;
    if listed.is_empty() && !as_json {
        errln!("there are no grants");
    }
    for (Key { principal, handle }, grant) in listed {
        let grant = match grant {
            Ok(grant) => grant,
            Err(problem) => {
                errln!("lispbox: grant {handle} of {principal}: {problem}");
                continue;
            }
        };
        if as_json {
            let Grant { server, tool, call, until, left, at, by, .. } = &grant;
            let arguments = call.as_ref().map(|call| parsed(&call.arguments));
            outln!(
                "{}",
                json!({
                    "grant": handle, "principal": principal, "server": server, "tool": tool, "arguments": arguments,
                    "until": until, "left": left, "since": at, "by": by,
                })
            );
            continue;
        }
        outln!("{handle}  {principal:<10}  {}", for_stdout(&words(&grant)));
    }
    Ok(())
}

/// Ends grants.
pub fn revoke(grants: &StoredGrants, chosen: &[String], all: bool) -> Result<(), Problem> {
    let listed = grants.list().map_err(|problem| Problem::Failed(problem.to_string()))?;
    let chosen: Vec<&ListedGrant> = match all {
        true => listed.iter().collect(),
        false => chosen.iter().map(|beginning| find(&listed, beginning)).collect::<Result<_, _>>()?,
    };
    for (key, _) in &chosen {
        grants.revoke(key).map_err(|problem| Problem::Failed(format!("{}: {problem}", key.handle)))?;
        outln!("{} is revoked", key.handle);
    }
    if chosen.is_empty() {
        errln!("there are no grants");
    }
    Ok(())
}

/// Finds the grant with this identity or this unambiguous prefix.
fn find<'g>(listed: &'g [ListedGrant], beginning: &str) -> Result<&'g ListedGrant, Problem> {
    let mut fitting = listed.iter().filter(|(key, _)| key.handle.starts_with(beginning));
    match (fitting.next(), fitting.count()) {
        (Some(grant), 0) => Ok(grant),
        (None, _) => {
            Err(Problem::Failed(format!("there is no grant `{beginning}`; `lispbox approvals grants` lists them")))
        }
        (Some(_), more) => Err(Problem::Usage(format!(
            "`{beginning}` is ambiguous: {} grants match; give more of the grant",
            more + 1
        ))),
    }
}

/// `mail/send: 4 calls, for 52 min (…)`
pub fn words(grant: &Grant) -> String {
    let Grant { server, tool, call, session, left, by, .. } = grant;
    let count = match left {
        None => "any number of calls".to_owned(),
        Some(1) => "1 call".to_owned(),
        Some(left) => format!("{left} calls"),
    };
    let in_session = if session.is_some() { " in one session" } else { "" };
    let which = call.as_ref().map_or(in_session.to_owned(), |GrantedCall { arguments, .. }| {
        let end = arguments.floor_char_boundary(200);
        format!(" in one session with {}{}", &arguments[..end], if end < arguments.len() { "…" } else { "" })
    });
    format!("{server}/{tool}: {count}{which}, for {} ({by})", until(grant.end()))
}

/// `52 min`, `6 hours`, `12 days`: the time until then.
pub fn until(end: SystemTime) -> String {
    let left = end.duration_since(SystemTime::now()).map_or(0, |left| left.as_secs());
    match left {
        0..7_200 => format!("{} min", left.div_ceil(60)),
        7_200..172_800 => format!("{} hours", (left + 1_800) / 3_600),
        _ => format!("{} days", (left + 43_200) / 86_400),
    }
}

fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned()))
}
