//! Rate limits of requests.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, NotUntil, Quota};
use http::StatusCode;

use crate::server::admission::allowances::Allowances;

use super::refusal::RetryLater;

/// Number of addresses above which those without recent requests are dropped, provided that there are also more than
/// twice as many as were left the last time.
const REMEMBERED: usize = 10_000;

/// Request counts: for each principal with a rate limit, and for each address without a known token.
pub(super) struct Rates {
    allowances: Arc<Allowances>,
    principals: Mutex<HashMap<String, (NonZeroU32, Arc<DefaultDirectRateLimiter>)>>,
    per_minute: NonZeroU32,
    addresses: DefaultKeyedRateLimiter<IpAddr>,
    left: AtomicUsize,
    clock: DefaultClock,
}

impl Rates {
    /// Creates counters with the rate limits of the allowances for principals, and with `per_minute` for each address.
    pub(super) fn new(allowances: Arc<Allowances>, per_minute: NonZeroU32) -> Rates {
        Rates {
            allowances,
            principals: Mutex::default(),
            per_minute,
            addresses: DefaultKeyedRateLimiter::keyed(Quota::per_minute(per_minute)),
            left: AtomicUsize::new(0),
            clock: DefaultClock::default(),
        }
    }

    /// Returns the rate limiter of a principal for its current allowance.
    fn rate(&self, name: &str) -> Option<(NonZeroU32, Arc<DefaultDirectRateLimiter>)> {
        let per_minute = self.allowances.find(name)?.requests_per_minute?;
        let mut principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
        match principals.get(name).filter(|(known, _)| *known == per_minute) {
            Some(rate) => Some(rate.clone()),
            None => {
                let rate = Arc::new(DefaultDirectRateLimiter::direct(Quota::per_minute(per_minute)));
                principals.insert(name.to_owned(), (per_minute, Arc::clone(&rate)));
                Some((per_minute, rate))
            }
        }
    }

    /// Counts a request of a principal.
    ///
    /// # Errors
    /// Returns `RetryLater` if its rate limit is exceeded.
    pub(super) fn of_principal(&self, name: &str) -> Result<(), RetryLater> {
        let Some((per_minute, rate)) = self.rate(name) else { return Ok(()) };
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
    /// Returns `RetryLater` if the rate limit of its address is exceeded.
    pub(super) fn of_address(&self, address: IpAddr) -> Result<(), RetryLater> {
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

    fn too_often(&self, message: &str, until: &NotUntil<<DefaultClock as Clock>::Instant>) -> RetryLater {
        let wait = until.wait_time_from(self.clock.now());
        // Round up to whole seconds, the unit of `Retry-After`.
        let wait = Duration::from_secs(wait.as_secs() + 1);
        let message = format!("{message}; try again in {} s", wait.as_secs());
        RetryLater { status: StatusCode::TOO_MANY_REQUESTS, message, wait }
    }
}
