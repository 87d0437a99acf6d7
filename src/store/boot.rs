//! The time since the machine was started, which cannot be set: a clock for leases shared by processes of one machine.

#[cfg(feature = "sqlite")]
use std::sync::OnceLock;
use std::time::Duration;

/// Identifies this boot of the machine, if the system can. Times since another boot are not comparable.
#[cfg(feature = "sqlite")]
pub(super) fn id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    })
}

/// The time since the machine was started, including suspension where the clock counts it. All processes of the machine
/// agree on it.
#[cfg(unix)]
pub(crate) fn elapsed() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local `timespec`, which the call fills in and does not retain.
    let told = unsafe { libc::clock_gettime(CLOCK, &raw mut time) };
    assert_eq!(told, 0, "the clock is one that the system has");
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The time of day, on systems without such a clock shared by all processes.
#[cfg(not(unix))]
pub(crate) fn elapsed() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_the_start_only_grows() {
        let first = elapsed();
        assert!(first > Duration::ZERO && elapsed() >= first);
        assert_eq!(id(), id());
    }
}
