//! What every request of a server shares, and what is known of a request before its body.

use std::sync::Arc;

use http::{HeaderMap, Method, Uri};
use switchboard_core::call::{Caller, Endpoint};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::detect::Mount;
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentInterface, AgentName};
use switchboard_engine::supervisor::Supervisor;

use crate::server::bindings::compat::AgentCompat;
use crate::server::cards::ServedCards;
use crate::server::downloads::Downloads;
use crate::server::edge::access_log::AccessLog;
use crate::server::edge::admit::{Cors, HostCheck, RequestIds};
use crate::server::edge::authenticate::{Authentication, Identity};
use crate::server::edge::header_names::{
    A2A_EXTENSIONS, IDEMPOTENCY_KEY, LAST_EVENT_ID, TRACEPARENT, X_A2A_EXTENSIONS,
};
use crate::server::edge::line_budget::LineBudget;
use crate::server::edge::origins::Origins;
use crate::server::edge::percent::query_pairs;
use crate::server::edge::request_record::RequestRecord;
use crate::server::edge::route::MountPath;
use crate::server::limits::ServerLimits;
use crate::server::operator::Operations;
use crate::server::operator::metrics::Metrics;
use crate::server::transport::tls::Tls;

pub(crate) struct Shared {
    /// Starts and stops what runs beside requests: connections, and looks at files.
    pub(crate) supervisor: Supervisor,
    /// What an operator may see and do; none on a server that keeps no tasks itself.
    pub(crate) operations: Option<Arc<dyn Operations>>,
    /// Where the tasks are kept, in words.
    pub(crate) data: String,
    pub(crate) origins: Origins,
    /// The agents at the server's own address.
    pub(crate) own_site: Site,
    /// The agents at the other addresses of `origins`, in the same order.
    pub(crate) other_sites: Vec<Site>,
    pub(crate) authentication: Authentication,
    pub(crate) gate: HostCheck,
    pub(crate) cors: Cors,
    pub(crate) limits: ServerLimits,
    pub(crate) decode_limits: DecodeLimits,
    pub(crate) mount: MountPath,
    /// The version of requests that name none, on closed networks.
    pub(crate) default_version: Option<Dialect>,
    pub(crate) metrics: Arc<Metrics>,
    /// None on a port that speaks plain HTTP.
    pub(crate) tls: Option<Tls>,
    pub(crate) request_ids: RequestIds,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) refusal_lines: Arc<LineBudget>,
}

impl Shared {
    /// The agents at the address that a request names: what it is told leads back there.
    pub(crate) fn site(&self, authority: Option<&str>) -> &Site {
        self.origins.asked(authority).and_then(|number| self.other_sites.get(number)).unwrap_or(&self.own_site)
    }
}

/// All agents at one address of the server.
pub(crate) struct Site {
    /// The default agent, at the root; none on a server without agents.
    pub(crate) root: Option<Arc<Mounted>>,
    /// Every agent, under its name.
    pub(crate) agents: Vec<Arc<Mounted>>,
}

impl Site {
    pub(crate) fn agent(&self, name: Option<&str>) -> Option<&Arc<Mounted>> {
        match name {
            None => self.root.as_ref(),
            Some(name) => self.agents.iter().find(|agent| agent.name.as_str() == name),
        }
    }
}

/// One agent and where it is served.
pub(crate) struct Mounted {
    pub(crate) name: AgentName,
    /// Where it stands in the server's list.
    pub(crate) place: usize,
    pub(crate) endpoint: Arc<dyn Endpoint>,
    /// The bytes of its artifacts; none for an endpoint that has no such place.
    pub(crate) downloads: Option<Arc<dyn Downloads>>,
    /// Its address, without a slash at its end.
    pub(crate) url: String,
    pub(crate) interfaces: Vec<AgentInterface>,
    pub(crate) cards: ServedCards,
    pub(crate) extensions: Vec<String>,
    pub(crate) compat: AgentCompat,
}

/// The part of a request that is there before its body.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) note: &'a RequestRecord,
}

impl Head<'_> {
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let pairs = query_pairs(self.uri.query()?)?;
        pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

/// A request to an agent, without its body. The head is gone while the agent answers.
pub(crate) struct Incoming<'a, 'h> {
    pub(crate) shared: &'h Shared,
    pub(crate) agent: &'a Mounted,
    /// Which dialects may use its path.
    pub(crate) mount: Mount,
    pub(crate) head: Head<'h>,
}

impl Incoming<'_, '_> {
    /// The caller of a request, once its tenant is known. Identity comes from the credential alone.
    pub(crate) fn caller(
        &self,
        identity: &Identity,
        tenant: Option<&str>,
        dialect: Dialect,
    ) -> Result<Caller, ProtocolError> {
        let head = &self.head;
        // One pass finds all three, of which most requests have none. The first of a name counts. A value that is not
        // ASCII is a value all the same: dropping it would turn a resume or a repeat into a new send.
        let (mut idempotency_key, mut last_event_id, mut trace_parent) = (None, None, None);
        for (name, value) in head.headers {
            let wanted = match name {
                name if *name == IDEMPOTENCY_KEY => &mut idempotency_key,
                name if *name == LAST_EVENT_ID => &mut last_event_id,
                name if *name == TRACEPARENT => &mut trace_parent,
                _ => continue,
            };
            wanted.get_or_insert_with(|| String::from_utf8_lossy(value.as_bytes()).into_owned());
        }
        Ok(Caller {
            owner: identity.owner(tenant)?,
            authenticated: identity.authenticated,
            scopes: identity.scopes.clone(),
            dialect,
            extensions: activated(&self.agent.extensions, head.headers),
            idempotency_key,
            last_event_id: last_event_id.or_else(|| head.query("after")),
            trace_parent,
            takes_frames: false,
        })
    }
}

/// The extensions a client asked for that this agent has. Others are ignored, as the spec says.
fn activated(declared: &[String], headers: &HeaderMap) -> Vec<String> {
    if declared.is_empty() {
        return Vec::new();
    }
    let lines = headers.get_all(A2A_EXTENSIONS).iter().chain(headers.get_all(X_A2A_EXTENSIONS));
    let lines = lines.filter_map(|line| line.to_str().ok());
    let asked: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    declared.iter().filter(|uri| asked.contains(&uri.as_str())).cloned().collect()
}
