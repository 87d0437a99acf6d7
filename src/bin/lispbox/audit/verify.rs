//! `lispbox audit verify`: checks the integrity of the log.

use std::process::ExitCode;

use clap::Args;
use lispbox::server::{Chain, Kind, Record, Verified};

use super::show::plain;
use crate::context::Problem;
use crate::output::outln;

/// Verifies the whole log and reports missing or changed records; fails if there are any. Calls and programs without an
/// outcome are listed: they may have run, or may still be in progress.
#[derive(Args)]
pub struct Verify {}

impl Verify {
    /// Verifies each chain.
    pub(super) fn run(self, chains: &[Chain]) -> Result<ExitCode, Problem> {
        let (mut broken, mut calls, mut programs) = (0, 0, 0);
        for chain in chains {
            let verified = chain.verify().map_err(|problem| Problem::Failed(format!("{}: {problem}", chain.name)))?;
            let Verified { records, from, to, ended, cut, open, lost, problems } = verified;
            let end = if ended { "ended" } else { "without an end: it is being written, or its process was killed" };
            let mark = if problems.is_empty() { "whole " } else { "BROKEN" };
            outln!("{mark}  {}: {records} records from {from} to {to}, {end}", chain.name);
            problems.iter().for_each(|problem| outln!("        {problem}"));
            if cut {
                outln!("        its last line is truncated: the process was killed while writing it");
            }
            if lost > 0 {
                outln!("        {lost} records were dropped while the log could not be written");
            }
            open.iter().for_each(|intent| outln!("        {}", line(intent)));
            let of_programs = open.iter().filter(|intent| intent.kind == Kind::Program).count();
            programs += of_programs;
            calls += open.len() - of_programs;
            broken += usize::from(!problems.is_empty());
        }
        if calls > 0 {
            let calls = if calls == 1 { "1 call has" } else { &format!("{calls} calls have") };
            outln!("{calls} no outcome: each may have been made, or is under way");
        }
        if programs > 0 {
            let programs = if programs == 1 { "1 program has" } else { &format!("{programs} programs have") };
            outln!("{programs} no outcome: each may have run to its end, or is running");
        }
        if broken == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        outln!("{broken} of {} cannot be trusted", chains.len());
        Ok(ExitCode::FAILURE)
    }
}

/// `open    record 7 of 2026-11-23T10:04:11.392Z: mail/send by ann, outcome unknown`
fn line(intent: &Record) -> String {
    let Record { number, time, server, tool, principal, program, .. } = intent;
    let what = match intent.kind {
        Kind::Program => format!("program {}", program.get(..8).unwrap_or_default()),
        _ => format!("{server}/{tool}"),
    };
    plain(&format!("open    record {number} of {time}: {what} by {principal}, outcome unknown"))
}
