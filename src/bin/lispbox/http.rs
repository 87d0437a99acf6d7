//! `--http`: the server over HTTP, and who may use it.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use lispbox::server::{HttpOptions, Principals, Secrets};

use crate::address::Address;
use crate::bounds::Bounds;
use crate::context::{Problem, read_file};

/// The addresses of a server over HTTP, and those who may use it.
#[derive(Args)]
pub struct Http {
    /// Serve over HTTP at this address, such as `127.0.0.1:8787` or `localhost:8787`, instead of standard input and output.
    #[arg(long, value_name = "ADDRESS", env = "LISPBOX_HTTP")]
    http: Option<Address>,
    /// The principals that may use the server over HTTP: a JSON file from names to bearer tokens, `{"ann":
    /// "${ANN_TOKEN}"}`, or to `{"token": "…", "limits": {…}, "sessions": N, "evaluations": N, "requests_per_minute":
    /// N}`. LISPBOX_TOKEN is the token of one principal, `default`. Only its owner may read the file; it is read again
    /// when it changes.
    #[arg(long, value_name = "FILE", env = "LISPBOX_TOKENS", requires = "http")]
    tokens: Option<PathBuf>,
    /// The operators that may decide at `/approvals` on calls that need approval: a JSON file from names to tokens,
    /// `{"olga": "${OLGA_TOKEN}"}`, none of which is the token of a principal. Only its owner may write the file; it is
    /// read again when it changes. Needs `--store`.
    #[arg(long, value_name = "FILE", env = "LISPBOX_APPROVALS_TOKENS", requires_all = ["http", "store"])]
    approvals_tokens: Option<PathBuf>,
    /// Serve without tokens at an address that other machines can reach.
    #[arg(long, env = "LISPBOX_WITHOUT_TOKENS", requires = "http")]
    without_tokens: bool,
    /// A name by which a proxy or other machines reach the server, in addition to `localhost`.
    #[arg(long = "host", value_name = "NAME", env = "LISPBOX_HOST", value_delimiter = ' ', requires = "http")]
    hosts: Vec<String>,
    /// An origin whose web pages may use the server, such as `https://app.example.com:443`.
    #[arg(long = "origin", value_name = "ORIGIN", env = "LISPBOX_ORIGIN", value_delimiter = ' ', requires = "http")]
    origins: Vec<String>,
    /// Serve metrics for Prometheus at this address, such as `127.0.0.1:9464`, at `/metrics` and without tokens. By
    /// default, they are at the address of `--http`, where tokens are required.
    #[arg(long, value_name = "ADDRESS", env = "LISPBOX_METRICS")]
    metrics: Option<Address>,
}

impl Http {
    /// Returns whether the server is one over HTTP.
    pub fn is_on(&self) -> bool {
        self.http.is_some()
    }

    /// Returns whether there are operators, who decide on calls.
    pub fn has_operators(&self) -> bool {
        self.approvals_tokens.is_some()
    }

    /// Returns the address of the metrics, if they have one of their own.
    ///
    /// # Errors
    /// Returns an error if the address cannot be resolved.
    pub fn metrics(&self) -> Result<Option<SocketAddr>, Problem> {
        match &self.metrics {
            Some(address) => Ok(address.resolve()?.first().copied()),
            None => Ok(None),
        }
    }

    /// Returns the options of the server over HTTP, if `--http` is given. Its tokens become secrets.
    ///
    /// # Errors
    /// Returns an error for an address or a file of tokens that cannot be used, and for an address without tokens that
    /// other machines can reach.
    pub fn options(&self, bounds: &Bounds, secrets: &Secrets) -> Result<Option<HttpOptions>, Problem> {
        let Some(address) = &self.http else { return Ok(None) };
        let resolved = address.resolve()?;
        let mut http = HttpOptions::new(resolved[0]);
        http.alternatives = resolved[1..].to_vec();
        http.hosts.clone_from(&self.hosts);
        http.hosts.extend(address.name().map(str::to_owned));
        http.origins.clone_from(&self.origins);
        http.open = self.without_tokens;
        bounds.of_http(&mut http);
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
            None => Ok(Some(http)),
        }
    }
}
