//! MCP towards the client, independent of the transport.
//!
//! [`front`] handles the requests of one connection: [`tools`] defines our two tools, [`replies`] builds their results,
//! with tables by [`toon`], and [`quarantine`] marks results that read like instructions to the model. [`progress`]
//! reports progress, and [`elicitation`] asks the user of the client for approval.

pub(in crate::server) mod elicitation;
pub(in crate::server) mod front;
pub(in crate::server) mod progress;
pub(in crate::server) mod quarantine;
pub(in crate::server) mod replies;
mod tools;
mod toon;
