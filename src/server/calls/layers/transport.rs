//! Sends a call to its server and receives the reply, with its secrets redacted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::server::approvals::Consent;

use crate::server::calls::layer::{Answer, Call, Layer, Next};

pub(in crate::server::calls) struct Sent(pub(in crate::server::calls) Arc<Consent>);

impl Layer for Sent {
    fn call(&self, call: &mut Call<'_>, _: Next<'_>) -> Answer {
        let server = call.server();
        let left = call.times.timeout.saturating_sub(call.times.sent.map_or(Duration::ZERO, |sent| sent.elapsed()));
        call.times.sent.get_or_insert_with(Instant::now);
        let (tool, transport) = call.target.as_ref().expect("the tool is found before this layer");
        let arguments = std::mem::take(&mut call.arguments.given);
        let delivered = call.wait.run(server.deliver(self.0.principal(), (tool, transport), arguments, left))?;
        let (reply, note) = delivered?;
        note.into_iter().for_each(|note| call.add_note(note));
        Ok(reply)
    }
}
