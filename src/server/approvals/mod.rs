//! Runs as a person sees them who decides on their calls, and the decisions of that person. It is used by the approvals
//! page and by the card that clients show; it knows neither HTTP nor MCP.

pub(in crate::server) mod decide;
pub(in crate::server) mod decisions;
pub(in crate::server) mod forms;
pub(in crate::server) mod shown;
mod terms;

/// The style sheet.
pub(in crate::server) const STYLE: &str = include_str!("style.css");
