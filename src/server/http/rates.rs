//! How often somebody may ask.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, NotUntil, Quota};

use crate::server::allowances::Allowances;

/// Addresses that have not asked for a while are forgotten when there are more than so many, and twice as many as were
/// left the last time.
const REMEMBERED: usize = 10_000;

/// What is counted of those who ask: what each principal has asked, where it may ask so often and no more, and what each
/// address has asked without a token.
pub(super) struct Rates {
    principals: HashMap<String, (NonZeroU32, DefaultDirectRateLimiter)>,
    per_minute: NonZeroU32,
    addresses: DefaultKeyedRateLimiter<IpAddr>,
    left: AtomicUsize,
    clock: DefaultClock,
}

/// That somebody has asked too often.
pub(super) struct TooOften {
    /// Who has, how often it may, and which setting says so.
    pub(super) message: String,
    /// When it may ask again.
    pub(super) wait: Duration,
}

impl Rates {
    /// Rates for principals as they are allowed, and so many requests a minute for each address.
    pub(super) fn new(allowances: &Allowances, per_minute: NonZeroU32) -> Rates {
        let principals = allowances.principals().filter_map(|name| {
            let per_minute = allowances.of(name).requests_per_minute?;
            Some((name.clone(), (per_minute, DefaultDirectRateLimiter::direct(Quota::per_minute(per_minute)))))
        });
        Rates {
            principals: principals.collect(),
            per_minute,
            addresses: DefaultKeyedRateLimiter::keyed(Quota::per_minute(per_minute)),
            left: AtomicUsize::new(0),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a request of a principal.
    ///
    /// # Errors
    /// When it has asked too often.
    pub(super) fn of_principal(&self, name: &str) -> Result<(), TooOften> {
        let Some((per_minute, rate)) = self.principals.get(name) else { return Ok(()) };
        rate.check().map_err(|until| {
            self.too_often(
                &format!("`{name}` may send {per_minute} requests a minute (`requests_per_minute` in the tokens file)"),
                &until,
            )
        })
    }

    /// Counts a request without a token.
    ///
    /// # Errors
    /// When its address has asked too often.
    pub(super) fn of_address(&self, address: IpAddr) -> Result<(), TooOften> {
        if self.addresses.len() > REMEMBERED.max(2 * self.left.load(Ordering::Relaxed)) {
            self.addresses.retain_recent();
            self.left.store(self.addresses.len(), Ordering::Relaxed);
        }
        self.addresses.check_key(&address).map_err(|until| {
            let per_minute = self.per_minute;
            self.too_often(
                &format!(
                    "{address} may send {per_minute} requests a minute without a token (`serve --requests-per-minute`)"
                ),
                &until,
            )
        })
    }

    fn too_often(&self, who: &str, until: &NotUntil<<DefaultClock as Clock>::Instant>) -> TooOften {
        let wait = until.wait_time_from(self.clock.now());
        // Whole seconds, as `Retry-After` has them.
        let wait = Duration::from_secs(wait.as_secs() + 1);
        TooOften { message: format!("{who}; try again in {} s", wait.as_secs()), wait }
    }
}
