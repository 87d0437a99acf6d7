//! `lispbox config show`: what is in force, and who said so.

use clap::Args;
use lispbox::lang::Limits;
use lispbox::server::{Endpoint, ServerConfig};

use crate::places::{Places, VARIABLE};
use crate::surroundings::Problem;

/// Prints what is in force, and where each of it comes from. Values of variables and headers are not shown.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    places: Places,
}

/// The settings that the environment gives, beside `--config`.
const VARIABLES: &[&str] = &["LISPBOX_STORE", "LISPBOX_TOKEN", "LISPBOX_CACHE", "LISPBOX_LOG"];

/// Those of them that are shown.
const OPEN: &[&str] = &["LISPBOX_CACHE", "LISPBOX_LOG"];

impl Show {
    /// Prints it.
    pub(super) fn run(self) -> Result<(), Problem> {
        let configuration = self.places.read().map_err(Problem::Usage)?;
        println!("files (later before earlier; flags before {VARIABLE} before the user's own)");
        let files = self.places.sources().files();
        if files.is_empty() {
            println!(
                "  none of {}",
                listed(self.places.sources().paths().iter().map(|path| path.display().to_string()))
            );
        }
        for file in files {
            println!("  {}", file.display());
        }
        println!("servers");
        for server in &configuration.servers {
            println!("  {}", line(server));
        }
        if configuration.servers.is_empty() {
            println!("  none");
        }
        let rules = configuration.policy.lines();
        if !rules.is_empty() {
            println!("policy of all servers");
            rules.iter().for_each(|rule| println!("  {rule}"));
        }
        println!("limits (a flag `--limit NAME=VALUE` goes before all of them)");
        for (name, usual) in Limits::default().shown() {
            match configuration.limits.get(name) {
                Some(value) => println!("  {name:<10} {value:<12} execution"),
                None => println!("  {name:<10} {usual:<12} default"),
            }
        }
        println!("environment");
        for name in VARIABLES {
            match std::env::var(name) {
                Ok(value) if OPEN.contains(name) => println!("  {name}={value}"),
                Ok(_) => println!("  {name} is set"),
                Err(_) => println!("  {name} is not set"),
            }
        }
        for warning in &configuration.warnings {
            eprintln!("lispbox: {warning}");
        }
        Ok(())
    }
}

/// `mail  npx -y mail-server (env KEY)  from FILE`
fn line(server: &ServerConfig) -> String {
    let (kind, place) = match &server.endpoint {
        Ok(Endpoint::Process { command, arguments, environment, .. }) => {
            let words = std::iter::once(command.clone()).chain(arguments.iter().cloned()).collect::<Vec<_>>().join(" ");
            let names = listed(environment.keys().cloned());
            ("stdio", if names.is_empty() { words } else { format!("{words} (env {names})") })
        }
        Ok(Endpoint::Http { url, headers }) => {
            let names = listed(headers.keys().cloned());
            ("http", if names.is_empty() { url.clone() } else { format!("{url} (headers {names})") })
        }
        Err(reason) => ("unusable", reason.clone()),
    };
    let mut line = format!("{:<16} {kind:<8} {place}  from {}", server.name, server.file);
    for rule in server.policy.lines() {
        line.push_str(&format!("\n    {rule}"));
    }
    line
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
