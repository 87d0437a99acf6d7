//! Connects to the server, and finds the tool among those that it lists.

use crate::server::calls::layer::{Answer, Call, Layer, Next};

pub(in crate::server::calls) struct Connected;

impl Layer for Connected {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let server = call.server();
        // The connection counts as used until the attempt is over.
        call.target = Some(call.wait.run(server.target(&call.given.tool))??);
        let answer = next.call(call);
        call.target = None;
        answer
    }
}
