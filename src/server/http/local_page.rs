//! The approvals page for the person at this machine, on a loopback address, until it is no longer used.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use tokio::net::TcpListener;

use crate::server::admission::shutdown::Shutdown;
use crate::server::identity::hexadecimal;
use crate::server::serve::signals::until_told_to_end;
use crate::server::system::random;
use crate::store::Store;

use super::approvals::{Approvals, Site};
use super::tokens::Directory;
use super::{HttpOptions, Principals, connections, heads};

/// Serves the approvals page of a store at a free port of 127.0.0.1 until a termination signal, or until it was not used for
/// `idle`. `listening` is called with its address, which signs in as `person` once; that of `run` opens its page.
///
/// # Errors
/// Returns an error if no address can be bound, or if the system has no randomness.
pub fn serve_approvals(
    store: Arc<dyn Store>,
    person: &str,
    run: Option<&str>,
    idle: Duration,
    listening: impl FnOnce(&str),
) -> io::Result<()> {
    let random = || random::key().map(|key| hexadecimal(&key)).map_err(io::Error::other);
    let (key, token) = (random()?, random()?);
    let mut operators = Principals::default();
    operators.add(person, &token).map_err(io::Error::other)?;
    until_told_to_end(async |stop| {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let address = listener.local_addr()?;
        let bounds = HttpOptions::new(address);
        let site = Site { hosts: Vec::new(), origins: Vec::new(), arrival: bounds.arrival };
        let operators = Arc::new(Directory::new(operators, Arc::default()));
        let principals = Arc::new(Directory::new(Principals::default(), Arc::default()));
        let page = Approvals::new(store, operators, principals, site, Shutdown::new(Duration::ZERO));
        let (begun, used) = (Instant::now(), Arc::new(AtomicU64::new(0)));
        let noted = Arc::clone(&used);
        let note = move |request: Request, next: Next| {
            noted.store(begun.elapsed().as_secs(), Ordering::Relaxed);
            next.run(request)
        };
        let router = page.opened_by(key.clone(), token).route().layer(from_fn(note)).layer(from_fn(heads::of_one_host));
        let run = run.map(|run| format!("&run={run}")).unwrap_or_default();
        listening(&format!("http://{address}/approvals/open?key={key}{run}"));
        let ending = stop.told.clone();
        let unused = async move {
            loop {
                let since = begun.elapsed().saturating_sub(Duration::from_secs(used.load(Ordering::Relaxed)));
                if since >= idle {
                    return ending.cancel();
                }
                tokio::time::sleep(idle - since).await;
            }
        };
        tokio::select! {
            () = connections::listen(router, listener, bounds.bounds(), stop.told.clone()) => {}
            () = unused => {}
        }
        Ok(())
    })
}
