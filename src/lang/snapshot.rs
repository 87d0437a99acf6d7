//! snapshot
use crate::lang::error::Outcome;
use crate::lang::eval::Machine;
use crate::lang::span::Source;
use std::sync::Arc;
/// x
pub fn encode(_machine: &mut Machine) -> Outcome<String> {
    Ok(String::new())
}
/// x
pub fn decode(_machine: &mut Machine, _source: &Arc<Source>) -> Outcome<()> {
    Ok(())
}
