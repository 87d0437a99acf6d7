//! Rehearsals: a program is evaluated in a copy of its session, and the calls that may change something are collected.
//!
//! [`layers`] has what withholds these calls, [`dry_run`] the evaluation, and [`keep`] the run that makes them once a person
//! has approved each. What collects the calls, and the program that makes them, are in `lispbox-policy`, which embedders
//! use as well.

pub(in crate::server) mod dry_run;
mod keep;
pub(in crate::server) mod layers;
mod terminal;
