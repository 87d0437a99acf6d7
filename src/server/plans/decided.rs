//! The decisions of the policy on the calls of a plan.

use crate::lang::{DecidedCall, DecidedPlan, Host, Plan, PlannedCall};
use crate::server::policy::Effect;

use crate::server::downstream::Downstreams;

impl Downstreams {
    /// Returns a plan with what the policy decides on its calls; `host` lists the tools.
    pub fn decided(&self, plan: &Plan, host: &dyn Host) -> DecidedPlan {
        let call = |call: &PlannedCall| {
            let PlannedCall { server, tool, most, hints, .. } = call;
            let tools = host.tools(server).unwrap_or_default();
            let decision = tools.iter().find(|listed| listed.name == *tool).and_then(|tool| self.decide(tool));
            DecidedCall {
                server: server.clone(),
                tool: tool.clone(),
                effect: Effect::of(hints).key().to_owned(),
                most: *most,
                decision: decision.as_ref().map(|decision| decision.verdict.key().to_owned()),
                rule: decision.map(|decision| decision.rule),
                guards: self.guarding().map_or_else(Vec::new, |policy| policy.guards_of(server, tool)),
            }
        };
        DecidedPlan { calls: plan.calls.iter().map(call).collect(), unknown: plan.unknown.clone(), next: String::new() }
    }
}
