//! `lispbox config show`: prints the effective configuration with the origin of each setting.

use clap::Args;
use lispbox::lang::Limits;
use lispbox::server::{Endpoint, HttpTransport, Secrets, ServerConfig};

use crate::config_paths::{ConfigPaths, VARIABLE};
use crate::context::Problem;
use crate::output::{errln, outln};

/// Prints what is in force, and the origin of each setting. Values of variables and headers are not shown.
#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    config: ConfigPaths,
}

/// The settings that only environment variables provide, and whether the value may be shown.
const VARIABLES: &[(&str, bool)] = &[("LISPBOX_TOKEN", false), ("LISPBOX_CACHE", true), ("LISPBOX_LOG", true)];

impl Show {
    /// Prints the configuration; `command_line` declares the settings of `serve`.
    pub(super) fn run(self, command_line: &clap::Command) -> Result<(), Problem> {
        let configuration = self.config.read().map_err(Problem::Usage)?;
        let secrets = Secrets::of_environment();
        configuration.servers.iter().for_each(|server| secrets.add(server.secrets.texts()));
        outln!("files (later override earlier ones; flags override {VARIABLE}, which overrides the user's own)");
        let files = self.config.sources().files();
        if files.is_empty() {
            outln!("  none of {}", listed(self.config.sources().paths().iter().map(|path| path.display().to_string())));
        }
        for file in files {
            outln!("  {}", file.display());
        }
        outln!("servers");
        for server in &configuration.servers {
            outln!("  {}", secrets.redact(&line(server)));
        }
        if configuration.servers.is_empty() {
            outln!("  none");
        }
        let rules = configuration.policy.lines();
        if !rules.is_empty() {
            outln!("policy of all servers");
            rules.iter().for_each(|rule| outln!("  {rule}"));
        }
        outln!("pinning of tools: {}", configuration.pinning.unwrap_or_default());
        outln!("limits (a flag `--limit NAME=VALUE` overrides all of them)");
        for (name, usual) in Limits::default().shown() {
            match configuration.limits.get(name) {
                Some(value) => outln!("  {name:<10} {value:<12} execution"),
                None => outln!("  {name:<10} {usual:<12} default"),
            }
        }
        outln!("settings of `serve` (a flag overrides the variable)");
        for setting in command_line.find_subcommand("serve").into_iter().flat_map(clap::Command::get_arguments) {
            if let Some(line) = setting_line(setting) {
                outln!("  {}", secrets.redact(&line));
            }
        }
        for (name, is_shown) in VARIABLES {
            let value =
                std::env::var(name).map(|value| if *is_shown { secrets.redact_own(value) } else { HIDDEN.to_owned() });
            outln!("  {:<26} {:<14} {name}", "", value.as_deref().unwrap_or(NONE));
        }
        for warning in &configuration.warnings {
            errln!("lispbox: {}", secrets.redact(warning));
        }
        Ok(())
    }
}

/// Placeholders for a secret, and for an unset value.
const HIDDEN: &str = "(is set)";
const NONE: &str = "-";

/// `--keep-days                 30             default, LISPBOX_KEEP_DAYS`, for a setting that has a variable.
fn setting_line(setting: &clap::Arg) -> Option<String> {
    let (flag, variable) = (setting.get_long()?, setting.get_env()?.to_string_lossy());
    let (value, from) = match std::env::var(&*variable) {
        Ok(_) if setting.is_hide_env_values_set() => (HIDDEN.to_owned(), ""),
        Ok(value) => (value, ""),
        Err(_) => {
            let defaults = setting.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
            let usual = listed(defaults);
            if usual.is_empty() { (NONE.to_owned(), "default, ") } else { (usual, "default, ") }
        }
    };
    Some(format!("--{flag:<24} {value:<14} {from}{variable}"))
}

/// `mail  npx -y mail-server (env KEY)  from FILE`
fn line(server: &ServerConfig) -> String {
    let (kind, place) = match &server.endpoint {
        Ok(Endpoint::Process { command, arguments, environment, .. }) => {
            let words = std::iter::once(command.clone()).chain(arguments.iter().cloned()).collect::<Vec<_>>().join(" ");
            let names = listed(environment.keys().cloned());
            ("stdio", if names.is_empty() { words } else { format!("{words} (env {names})") })
        }
        Ok(Endpoint::Http { url, transport, headers }) => {
            let names = listed(headers.keys().cloned());
            let kind = if *transport == HttpTransport::Sse { "sse" } else { "http" };
            (kind, if names.is_empty() { url.clone() } else { format!("{url} (headers {names})") })
        }
        Ok(Endpoint::Local(tools)) => ("local", listed(tools.iter().map(|tool| tool.tool.name.clone()))),
        Ok(Endpoint::Functions(_)) => ("local", "functions of this program".to_owned()),
        Err(reason) => ("unusable", reason.clone()),
    };
    let mut line = format!("{:<16} {kind:<8} {place}  from {}", server.name, server.file);
    let secret = server.secrets.places();
    if !secret.is_empty() {
        line.push_str(&format!("\n    secret: {}", secret.join(", ")));
    }
    if let Some(pinning) = server.pinning {
        line.push_str(&format!("\n    pinning: {pinning}"));
    }
    for rule in server.policy.lines() {
        line.push_str(&format!("\n    {rule}"));
    }
    line
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
