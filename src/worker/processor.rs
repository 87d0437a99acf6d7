//! The time for which a processor has run a thread.

use std::time::Duration;

/// Returns the time for which a processor has run this thread, as a host tells it for the limit `compute`; `None` if the
/// system does not tell.
///
/// ```
/// let before = lispbox::worker::processor_time();
/// assert!(lispbox::worker::processor_time() >= before);
/// ```
pub fn processor_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local `timespec`, which the call fills in and does not retain.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
    (told == 0).then(|| Duration::new(time.tv_sec.unsigned_abs(), nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_thread_that_waits_has_no_processor() {
        let (begun, before) = (Instant::now(), processor_time().expect("Linux tells"));
        let (_kept, closed) = std::sync::mpsc::channel::<()>();
        assert!(closed.recv_timeout(Duration::from_millis(200)).is_err());
        let waited = processor_time().expect("Linux tells") - before;
        assert!(begun.elapsed() >= Duration::from_millis(200) && waited < Duration::from_millis(100), "{waited:?}");
    }
}
