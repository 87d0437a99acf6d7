//! How often somebody may ask.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, NotUntil, Quota};
use http::StatusCode;

use super::refusal::Later;
use crate::server::allowances::Allowances;

/// Addresses that have not asked for a while are forgotten when there are more than so many, and twice as many as were
/// left the last time.
const REMEMBERED: usize = 10_000;

/// What is counted of those who ask: what each principal has asked, where it may ask so often and no more, and what each
/// address has asked without a token.
pub(super) struct Rates {
    allowances: Arc<Allowances>,
    principals: Mutex<HashMap<String, (NonZeroU32, Arc<DefaultDirectRateLimiter>)>>,
    per_minute: NonZeroU32,
    addresses: DefaultKeyedRateLimiter<IpAddr>,
    left: AtomicUsize,
    clock: DefaultClock,
}

impl Rates {
    /// Counts principals as they are allowed, and so many requests a minute for each address.
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

    /// The rate of a principal, as the operator has it now.
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
    /// When it has asked too often.
    pub(super) fn of_principal(&self, name: &str) -> Result<(), Later> {
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
    /// When its address has asked too often.
    pub(super) fn of_address(&self, address: IpAddr) -> Result<(), Later> {
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

    fn too_often(&self, message: &str, until: &NotUntil<<DefaultClock as Clock>::Instant>) -> Later {
        let wait = until.wait_time_from(self.clock.now());
        // Whole seconds, as `Retry-After` has them.
        let wait = Duration::from_secs(wait.as_secs() + 1);
        let message = format!("{message}; try again in {} s", wait.as_secs());
        Later { status: StatusCode::TOO_MANY_REQUESTS, message, wait }
    }
}
