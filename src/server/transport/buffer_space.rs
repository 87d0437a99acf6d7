//! The buffer space of messages that were received over HTTP and are not decoded yet.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::Extensions;
use tokio::sync::OwnedSemaphorePermit;

/// The buffer space that a message holds until it has been decoded; an extension of its request.
#[derive(Clone, Default)]
pub(in crate::server) struct BufferSpace(Arc<Mutex<Vec<OwnedSemaphorePermit>>>);

impl BufferSpace {
    /// Holds the space of these permits.
    pub(in crate::server) fn new(permits: Vec<OwnedSemaphorePermit>) -> BufferSpace {
        BufferSpace(Arc::new(Mutex::new(permits)))
    }

    /// Adds the space of another permit.
    pub(in crate::server) fn add(&self, permit: OwnedSemaphorePermit) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(permit);
    }

    /// Releases the space that the message of a request holds, which has been decoded. A request that did not come over
    /// HTTP holds none.
    pub(in crate::server) fn release(extensions: &Extensions) {
        let parts = extensions.get::<http::request::Parts>();
        if let Some(BufferSpace(permits)) = parts.and_then(|parts| parts.extensions.get::<BufferSpace>()) {
            permits.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}
