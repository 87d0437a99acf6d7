//! Connection slots: their number, their owners, and the eviction of idle connections to admit new ones.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use tokio_util::sync::CancellationToken;

use super::refusal::RetryLater;

/// A bounded set of connection slots.
pub(super) struct ConnectionSlots {
    most: usize,
    table: Arc<Mutex<Table>>,
}

/// The open connections.
#[derive(Default)]
struct Table {
    open: HashMap<u64, Entry>,
    /// The number of connections of each owner.
    owners: HashMap<Owner, usize>,
    /// The number of connections from each address.
    addresses: HashMap<IpAddr, usize>,
    /// Logical clock, advanced by each new connection and each end of a request; lower values are older.
    clock: u64,
}

/// An open connection.
struct Entry {
    owner: Owner,
    address: IpAddr,
    /// The number of open requests on it.
    requests: usize,
    /// The clock value at which it became idle.
    idle_since: u64,
    /// Cancelled when the connection is evicted.
    evicted: CancellationToken,
}

/// The owner to which a connection is charged.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Owner {
    /// The address, until a request on the connection has a known token.
    Address(IpAddr),
    /// The principal of the most recent request with a known token.
    Principal(Arc<str>),
}

/// The slot of a connection, released on drop.
pub(super) struct ConnectionSlot {
    slot: SlotHandle,
    /// Cancelled when the connection must be closed to make room for another.
    pub(super) evicted: CancellationToken,
}

/// A handle on a connection for its requests.
#[derive(Clone)]
pub(super) struct SlotHandle {
    table: Arc<Mutex<Table>>,
    id: u64,
}

/// An open request: its connection is not idle until this is dropped.
pub(super) struct OnConnection(SlotHandle);

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Decrements a count and removes it at zero.
fn less<Key: std::hash::Hash + Eq>(counts: &mut HashMap<Key, usize>, key: &Key) {
    match counts.get_mut(key) {
        Some(count) if *count > 1 => *count -= 1,
        _ => drop(counts.remove(key)),
    }
}

impl Table {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.open.remove(&id)?;
        less(&mut self.owners, &entry.owner);
        less(&mut self.addresses, &entry.address);
        Some(entry)
    }

    /// Evicts an idle connection among those that `may_go` accepts: of the owner with the most connections, the one
    /// that has been idle longest. Returns false if none is idle.
    fn evict(&mut self, may_go: impl Fn(&Entry) -> bool) -> bool {
        let idle = self.open.iter().filter(|(_, entry)| entry.requests == 0 && may_go(entry));
        let rank = |entry: &Entry| (Reverse(self.owners.get(&entry.owner).copied()), entry.idle_since);
        let Some(id) = idle.min_by_key(|(_, entry)| rank(entry)).map(|(id, _)| *id) else { return false };
        if let Some(entry) = self.remove(id) {
            entry.evicted.cancel();
        }
        true
    }
}

impl ConnectionSlots {
    /// Creates `most` slots.
    pub(super) fn new(most: usize) -> ConnectionSlots {
        ConnectionSlots { most, table: Arc::default() }
    }

    /// Takes a slot for a connection from an address that may have at most `each`. Evicts an idle connection, chosen by
    /// [`Table::evict`], if a limit is reached: one of the same address if `each` is, any one if all slots are taken.
    ///
    /// # Errors
    /// Returns `RetryLater` if a limit is reached and every connection that could be evicted has an open request.
    pub(super) fn take(&self, address: IpAddr, each: usize) -> Result<ConnectionSlot, RetryLater> {
        let mut table = lock(&self.table);
        let own = table.addresses.get(&address).copied().unwrap_or(0);
        if own >= each && !table.evict(|entry| entry.address == address) {
            let reason = format!(
                "{address} has {own} connections with an open request, the maximum for one address (`serve \
                 --connections-each`)"
            );
            return Err(RetryLater::in_a_moment(StatusCode::TOO_MANY_REQUESTS, &reason));
        }
        let all = table.open.len();
        if all >= self.most && !table.evict(|_| true) {
            let reason =
                format!("{all} connections have an open request, the maximum for this server (`serve --connections`)");
            return Err(RetryLater::in_a_moment(StatusCode::SERVICE_UNAVAILABLE, &reason));
        }
        let (id, evicted) = (table.tick(), CancellationToken::new());
        let owner = Owner::Address(address);
        *table.owners.entry(owner.clone()).or_default() += 1;
        *table.addresses.entry(address).or_default() += 1;
        table.open.insert(id, Entry { owner, address, requests: 0, idle_since: id, evicted: evicted.clone() });
        Ok(ConnectionSlot { slot: SlotHandle { table: Arc::clone(&self.table), id }, evicted })
    }
}

impl ConnectionSlot {
    /// Returns the handle on the connection for its requests.
    pub(super) fn slot(&self) -> SlotHandle {
        self.slot.clone()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.slot.table).remove(self.slot.id);
    }
}

impl SlotHandle {
    /// Begins a request on the connection.
    pub(super) fn begin(&self) -> OnConnection {
        if let Some(entry) = lock(&self.table).open.get_mut(&self.id) {
            entry.requests += 1;
        }
        OnConnection(self.clone())
    }

    /// Charges the connection to a principal from now on.
    pub(super) fn belongs_to(&self, principal: &Arc<str>) {
        let mut table = lock(&self.table);
        let Some(entry) = table.open.get_mut(&self.id) else { return };
        let owner = Owner::Principal(Arc::clone(principal));
        if entry.owner != owner {
            let former = std::mem::replace(&mut entry.owner, owner.clone());
            less(&mut table.owners, &former);
            *table.owners.entry(owner).or_default() += 1;
        }
    }
}

impl Drop for OnConnection {
    fn drop(&mut self) {
        let mut table = lock(&self.0.table);
        let now = table.tick();
        if let Some(entry) = table.open.get_mut(&self.0.id) {
            entry.requests -= 1;
            entry.idle_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn take(slots: &ConnectionSlots, last: u8) -> ConnectionSlot {
        slots.take(address(last), usize::MAX).unwrap_or_else(|later| panic!("{later:?}"))
    }

    fn evicted(slots: &[ConnectionSlot]) -> Vec<bool> {
        slots.iter().map(|place| place.evicted.is_cancelled()).collect()
    }

    #[test]
    fn the_longest_idle_connection_makes_room() {
        let slots = ConnectionSlots::new(3);
        let mut open: Vec<ConnectionSlot> = (0..3).map(|_| take(&slots, 1)).collect();
        drop(open[0].slot().begin());
        let busy = open[1].slot().begin();
        open.push(take(&slots, 2));
        assert_eq!(evicted(&open), [false, false, true, false], "the last is idle since it came");
        open.push(take(&slots, 2));
        assert_eq!(evicted(&open), [true, false, true, false, false], "the second has a request");
        drop(busy);
        // The slots of the evicted connections were reassigned, and are not released a second time.
        open.drain(..1);
        assert_eq!(lock(&slots.table).open.len(), 3);
    }

    #[test]
    fn whoever_has_the_most_makes_room() {
        let (slots, ann, bob) = (ConnectionSlots::new(6), Arc::<str>::from("ann"), Arc::<str>::from("bob"));
        // All connections come from one proxy and differ only in their tokens.
        let of_bob = [take(&slots, 1), take(&slots, 1)];
        let of_ann: Vec<ConnectionSlot> = (0..3).map(|_| take(&slots, 1)).collect();
        let unknown = [take(&slots, 1)];
        of_bob.iter().for_each(|place| place.slot().belongs_to(&bob));
        of_ann.iter().for_each(|place| place.slot().belongs_to(&ann));
        let new: Vec<ConnectionSlot> = (2..5).map(|last| take(&slots, last)).collect();
        assert_eq!(evicted(&of_ann), [true, true, false]);
        assert_eq!(evicted(&of_bob), [true, false]);
        assert_eq!((evicted(&unknown), evicted(&new)), (vec![false], vec![false; 3]));
        assert_eq!(lock(&slots.table).owners.values().sum::<usize>(), 6);
    }

    #[test]
    fn a_flood_from_one_address_costs_others_little() {
        let slots = ConnectionSlots::new(20);
        let others: Vec<ConnectionSlot> = (0..20).map(|last| take(&slots, last)).collect();
        let flood: Vec<ConnectionSlot> = (0..1_000).map(|_| take(&slots, 99)).collect();
        assert_eq!(evicted(&others).into_iter().filter(|is_evicted| *is_evicted).count(), 2);
        assert_eq!(evicted(&flood).into_iter().filter(|is_evicted| !is_evicted).count(), 2);
    }

    #[test]
    fn an_address_has_its_latest_connections() {
        let slots = ConnectionSlots::new(10);
        let other = take(&slots, 2);
        let mut own = Vec::new();
        for _ in 0..3 {
            own.push(slots.take(address(1), 2).expect("an idle one makes room"));
        }
        assert_eq!((evicted(&own), other.evicted.is_cancelled()), (vec![true, false, false], false));
        let busy: Vec<OnConnection> = own.iter().map(|place| place.slot().begin()).collect();
        let later = slots.take(address(1), 2).err().expect("no one is idle");
        assert_eq!(later.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(
            later.message,
            "192.0.2.1 has 2 connections with an open request, the maximum for one address (`serve \
             --connections-each`); try again in a moment"
        );
        drop(busy);
        assert!(slots.take(address(1), 2).is_ok());
    }
}
