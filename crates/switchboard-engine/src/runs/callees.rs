//! Whom a run can call, and as whom it calls.

use std::sync::Arc;

use switchboard_core::call::{Caller, Owner};
use switchboard_core::model::TraceContext;

use super::call_error::AgentCallError;
use crate::ports::{Callee, CalleeError};
use crate::state::EngineState;

/// How many names are in the answer to a name that is not known.
const CALLEES_LISTED_MAX: usize = 50;

/// The agent of this name: one of this server, or one outside.
pub(crate) async fn find_callee(engine: &EngineState, owner: &Owner, name: &str) -> Result<Callee, AgentCallError> {
    engine.callees.find(owner, name).await.map_err(|error| match error {
        CalleeError::Unknown => {
            let mut known = engine.callees.names();
            known.truncate(CALLEES_LISTED_MAX);
            AgentCallError::UnknownAgent { agent: name.to_owned(), known }
        }
        CalleeError::Unavailable(reason) => AgentCallError::Unreachable { agent: name.to_owned(), reason },
    })
}

/// Who calls: the owner of the task whose run makes the call, in the trace of that run.
pub(crate) fn caller(owner: &Owner, trace: Option<&Arc<TraceContext>>) -> Caller {
    let authenticated = *owner != Owner::default();
    Caller { owner: owner.clone(), authenticated, trace: trace.cloned(), ..Caller::anonymous() }
}
