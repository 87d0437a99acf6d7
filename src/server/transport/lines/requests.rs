//! The requests to a server that have no reply yet, and the direct way of those that need no service.
//!
//! rmcp hands a request over to the task of its connection, which starts a task that writes it; the answer comes back by the
//! same way. A [`Direct`] request is written by the thread that makes it, and its answer is handed to that thread by the task
//! that reads: one change of thread in place of three.

use std::any::TypeId;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use rmcp::model::{RequestId, ServerResult};
use rmcp::service::ServiceError;
use rmcp::transport::DynamicTransportError;
use tokio::sync::oneshot;

use super::super::backlog::{Backlog, Kind};
use super::{Outlet, write_line};

/// The identity of the first direct request. rmcp counts its own from 0; both fit into 32 bits, signed.
const FIRST: i64 = 1 << 30;

/// The answer to a direct request.
type Answer = Result<ServerResult, ServiceError>;

/// The requests without a reply; the ones of rmcp, and the direct ones with what takes their answers.
#[derive(Default)]
pub(super) struct Requests(Mutex<Open>);

#[derive(Default)]
struct Open {
    waiting: HashMap<RequestId, Option<oneshot::Sender<Answer>>>,
    /// The number of direct requests so far.
    direct: i64,
    /// True once nothing is read any more.
    is_over: bool,
}

impl Requests {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request of rmcp.
    pub(super) fn begin(&self, id: RequestId) {
        self.open().waiting.insert(id, None);
    }

    /// Records a direct request.
    ///
    /// # Errors
    /// Fails if no reply will be read.
    fn begin_direct(&self) -> Result<(RequestId, oneshot::Receiver<Answer>), ServiceError> {
        let mut open = self.open();
        if open.is_over {
            return Err(ServiceError::TransportClosed);
        }
        let id = RequestId::Number(FIRST + open.direct);
        open.direct += 1;
        let (answer, answered) = oneshot::channel();
        open.waiting.insert(id.clone(), Some(answer));
        Ok((id, answered))
    }

    /// Removes a request that has its reply, or needs none. Returns what takes the answer if the request is a direct one.
    /// Some servers write a number as text, which rmcp accepts as well.
    pub(super) fn end(&self, id: &RequestId) -> Option<oneshot::Sender<Answer>> {
        let waiting = &mut self.open().waiting;
        let number = || match id {
            RequestId::String(text) => text.parse().ok().map(RequestId::Number),
            RequestId::Number(_) => None,
        };
        waiting.remove(id).or_else(|| waiting.remove(&number()?)).flatten()
    }

    /// Returns the request that waits, if it is the only one.
    pub(super) fn only(&self) -> Option<RequestId> {
        let open = self.open();
        let mut ids = open.waiting.keys();
        ids.next().filter(|_| open.waiting.len() == 1).cloned()
    }
}

/// The requests of a transport, which get no answer once this is dropped.
#[derive(Default)]
pub(super) struct OfTransport(Arc<Requests>);

impl std::ops::Deref for OfTransport {
    type Target = Requests;

    fn deref(&self) -> &Requests {
        &self.0
    }
}

impl Drop for OfTransport {
    fn drop(&mut self) {
        let mut open = self.open();
        open.is_over = true;
        open.waiting.clear();
    }
}

/// Makes requests on a connection whose service is another's.
pub(in crate::server) struct Direct<Out> {
    requests: Arc<Requests>,
    backlog: Arc<Backlog>,
    outlet: Out,
}

/// A direct request. Its answer is ignored once this is dropped.
pub(in crate::server) struct Begun<'d, Out> {
    by: &'d Direct<Out>,
    id: RequestId,
    answered: oneshot::Receiver<Answer>,
}

impl<Out: Outlet> Direct<Out> {
    pub(super) fn new(requests: &OfTransport, backlog: Arc<Backlog>, outlet: Out) -> Direct<Out> {
        Direct { requests: Arc::clone(&requests.0), backlog, outlet }
    }

    /// Begins a request.
    ///
    /// # Errors
    /// Fails if the connection is closed.
    pub(in crate::server) fn begin(&self) -> Result<Begun<'_, Out>, ServiceError> {
        let (id, answered) = self.requests.begin_direct()?;
        Ok(Begun { by: self, id, answered })
    }
}

impl<Out: Outlet> Begun<'_, Out> {
    /// The identity of the request.
    pub(in crate::server) fn id(&self) -> &RequestId {
        &self.id
    }

    /// Sends the text of the request, and waits for the answer. The text is written as a whole even if this is dropped; the
    /// caller then tells the server that it needs no answer.
    ///
    /// # Errors
    /// Returns the error reply, or why there is no answer.
    pub(in crate::server) async fn answer(mut self, text: Vec<u8>) -> Answer {
        let mut writing = Box::pin(write_line(&self.by.backlog, &self.by.outlet, Kind::Ours, text));
        match futures::poll!(writing.as_mut()) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(problem)) => return Err(unsent::<Out>(problem)),
            Poll::Pending => {
                let (requests, id) = (Arc::clone(&self.by.requests), self.id.clone());
                tokio::spawn(async move {
                    if let Err(problem) = writing.await
                        && let Some(answer) = requests.end(&id)
                    {
                        let _ = answer.send(Err(unsent::<Out>(problem)));
                    }
                });
            }
        }
        (&mut self.answered).await.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl<Out> Drop for Begun<'_, Out> {
    fn drop(&mut self) {
        self.by.requests.end(&self.id);
    }
}

/// Returns the error of a request that could not be written.
fn unsent<Out: 'static>(problem: io::Error) -> ServiceError {
    ServiceError::TransportSend(DynamicTransportError::from_parts("lines", TypeId::of::<Out>(), Box::new(problem)))
}
