//! `lispbox audit verify`: is anything missing or changed?

use std::process::ExitCode;

use clap::Args;
use lispbox::server::{Chain, Verified};

use crate::surroundings::Problem;

/// Reads the log as a whole and says what is missing or changed in it. Fails if something is.
#[derive(Args)]
pub struct Verify {}

impl Verify {
    /// Verifies each chain.
    pub(super) fn run(self, chains: &[Chain]) -> Result<ExitCode, Problem> {
        let mut broken = 0;
        for chain in chains {
            let verified = chain.verify().map_err(|problem| Problem::Failed(format!("{}: {problem}", chain.name)))?;
            let Verified { records, from, to, ended, problems } = verified;
            let end = if ended { "ended" } else { "without an end: it is being written, or its process was killed" };
            let mark = if problems.is_empty() { "whole " } else { "BROKEN" };
            println!("{mark}  {}: {records} records from {from} to {to}, {end}", chain.name);
            problems.iter().for_each(|problem| println!("        {problem}"));
            broken += usize::from(!problems.is_empty());
        }
        if broken == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        println!("{broken} of {} cannot be trusted", chains.len());
        Ok(ExitCode::FAILURE)
    }
}
