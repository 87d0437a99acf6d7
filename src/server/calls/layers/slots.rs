//! Limits the number of calls of an evaluation that are under way at once.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;

use crate::server::calls::layer::{Answer, Call, Layer, Next};

pub(in crate::server::calls) struct Limited(Arc<Semaphore>);

impl Limited {
    /// Creates the layer for at most `slots` calls at once, at least one.
    pub(in crate::server::calls) fn new(slots: u32) -> Limited {
        Limited(Arc::new(Semaphore::new((slots.max(1) as usize).min(Semaphore::MAX_PERMITS))))
    }
}

impl Layer for Limited {
    fn call(&self, call: &mut Call<'_>, next: Next<'_>) -> Answer {
        let _slot = call.wait.run(self.0.acquire())?.expect("the slots are never closed");
        call.times.begun = Some(Instant::now());
        next.call(call)
    }
}
