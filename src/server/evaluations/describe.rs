//! Queries about the environment of programs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::lang::{Environment, Limits, Reply};
use crate::server::admission::request::EnvRequest;
use crate::server::identity::Identity;
use crate::server::telemetry::log;

use super::{Caller, Evaluations, Hosted, unwritten};

/// A description of the environment, with the changes that are not stored and the reason, as a clause.
pub(in crate::server) struct Described {
    pub(in crate::server) text: String,
    pub(in crate::server) unkept: Option<String>,
}

impl Evaluations {
    /// Answers a query about the environment, or returns the reply that explains the refusal. Also returns the identity
    /// of the evaluation.
    pub(in crate::server) async fn describe(
        &self,
        request: EnvRequest,
        caller: Caller,
    ) -> (Result<Described, Box<Reply>>, Identity) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let mut identity = Identity { evaluation: number, principal: caller.name.clone(), ..Identity::default() };
        let answer = tokio::select! {
            biased;
            answer = self.describe_in_turn(request, &caller, &mut identity) => answer,
            () = self.shutdown.over().cancelled() => Err(self.shutdown.too_late().into()),
        };
        (answer, identity)
    }

    async fn describe_in_turn(
        &self,
        request: EnvRequest,
        caller: &Caller,
        identity: &mut Identity,
    ) -> Result<Described, Box<Reply>> {
        let texts = request.query.as_ref().map_or(0, String::len);
        let _slot = self.gate.admit(&caller.name, texts as u64)?;
        let entry = self.entry(request.session.as_deref(), caller)?;
        let is_named = request.session.is_some();
        let turn = self.turn(&entry, caller, Limits::default().memory).await?;
        let refused = |refused| caller.refused(&entry, is_named, refused);
        if let Some(problem) = self.unrecorded(&caller.name) {
            return Err(unwritten(problem).into());
        }
        self.is_usable(&entry, caller, is_named).map_err(refused)?;
        self.downstreams.refresh();
        let (query, persistence, kept) = (request.query, self.persistence.clone(), Arc::clone(&entry));
        identity.session = Some(log::hashed(&entry.handle));
        let identity = Arc::new(identity.clone());
        let hosted = Hosted { slots: 1, identity, ..Hosted::default() };
        let work = move |session: &mut Box<dyn Environment>, host| {
            if let Some(persistence) = persistence {
                persistence.refresh(&kept, &mut **session)?;
            }
            let described = session.describe(query.as_deref(), host);
            // It shows values.
            described.iter().for_each(|text| kept.origins().add_reading("", text));
            Ok(described.map(|text| Described { text, unkept: kept.unkept() }))
        };
        let described = self.blocking(turn, caller, hosted, work).await;
        caller.has_read(&entry);
        described?.map_err(refused)?
    }
}
