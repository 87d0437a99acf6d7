//! Carries the thread-local context of the embedder's code over to the threads of branches.

/// The tokio runtime whose context a thread is in, if it is in one. The tools and functions of an embedder find it by
/// `Handle::current()`.
pub(crate) struct Surroundings {
    #[cfg(feature = "tokio")]
    runtime: Option<tokio::runtime::Handle>,
}

impl Surroundings {
    /// Returns those of this thread.
    pub(crate) fn here() -> Surroundings {
        Surroundings {
            #[cfg(feature = "tokio")]
            runtime: tokio::runtime::Handle::try_current().ok(),
        }
    }

    /// Does work in them.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        #[cfg(feature = "tokio")]
        let _inside = self.runtime.as_ref().map(tokio::runtime::Handle::enter);
        work()
    }
}
