//! What every stage works with: the server as it is mounted at its addresses ([`Shared`], with a [`Site`] for each name that
//! clients on this machine may ask under, and every agent with its cards), and a request to one of them ([`Incoming`]).

use std::sync::Arc;

use http::HeaderMap;
use switchboard_core::call::{Caller, Endpoint, Owner, Request};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::detect::Mount;
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, AgentInterface, AgentName, Principal};
use switchboard_engine::ports::Tracer;
use switchboard_engine::supervisor::Supervisor;

use crate::agent_settings::Compat;
use crate::server::authentication::{Authentication, Identity, SchemeSet, SkillRules};
use crate::server::cards::ServedCards;
use crate::server::cards::current::CurrentCards;
use crate::server::cards::signing::SiteSigner;
use crate::server::compat_clients::CompatClients;
use crate::server::exchange::access_log::AccessLog;
use crate::server::exchange::authorize::{CardReader, Rules, Subject};
use crate::server::exchange::budgets::Budgets;
use crate::server::exchange::headers::{A2A_EXTENSIONS, IDEMPOTENCY_KEY, LAST_EVENT_ID, X_A2A_EXTENSIONS};
use crate::server::exchange::line_budget::LineBudget;
use crate::server::exchange::request::Head;
use crate::server::exchange::request_record::RequestIds;
use crate::server::exchange::respond::ReplyBody;
use crate::server::exposure::operator_check::OperatorKey;
use crate::server::exposure::origins::{Cors, HostCheck, MountPath, Origins};
use crate::server::exposure::peers::OpenPeers;
use crate::server::internal::Internal;
use crate::server::internal::door::CallDoor;
use crate::server::limits::ServerLimits;
use crate::server::metrics::{Metrics, MetricsSource};
use crate::server::organizations::Organizations;
use crate::server::ports::Downloads;
use crate::server::ports::Operations;
use crate::server::telemetry::Telemetry;
use crate::server::transport::tls::Tls;
use crate::server::transport::unread::UnreadWatch;
use crate::signing_keys::SigningKeys;

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
    /// What others count for `/metrics`.
    pub(crate) more_metrics: Vec<MetricsSource>,
    /// Set if traces and metrics are sent to a collector.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    /// What records traces, if they are.
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    /// None on a port that speaks plain HTTP.
    pub(crate) tls: Option<Tls>,
    pub(crate) request_ids: RequestIds,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) refusal_lines: Arc<LineBudget>,
    pub(crate) budgets: Budgets,
    pub(crate) unread: Arc<UnreadWatch<ReplyBody>>,
    /// Whether the server refuses every operation, because no setting says who may call.
    pub(crate) is_closed: bool,
    pub(crate) operator_key: Option<OperatorKey>,
    /// None if every caller needs a credential.
    pub(crate) open_peers: Option<OpenPeers>,
    pub(crate) internal: Internal,
    /// None if no agent starts programs that may call others.
    pub(crate) call_door: Option<CallDoor>,
    pub(crate) organizations: Organizations,
    /// None if every caller who is let in may do everything.
    pub(crate) rules: Option<Rules>,
    /// Whether tasks belong to tenants, and not to principals within them.
    pub(crate) shared_tenant: bool,
    /// Whether the public cards are for callers that are known.
    pub(crate) protect_cards: bool,
    /// Whose public parts are served.
    pub(crate) signing_keys: Option<SigningKeys>,
}

impl Shared {
    /// Whose tasks a caller sees that names this tenant, or none.
    pub(crate) fn owner(&self, identity: &Identity, tenant: Option<&str>) -> Result<Owner, ProtocolError> {
        let mut owner = identity.owner(tenant)?;
        if self.shared_tenant {
            if owner.tenant.as_str().is_empty() {
                let reason = "tasks belong to tenants here, and your credential names none".to_owned();
                return Err(ProtocolError::PermissionDenied { reason });
            }
            owner.principal = Principal::default();
        }
        Ok(owner)
    }

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
    pub(crate) cards: CurrentCards,
    /// What signs cards that are not among `cards`.
    pub(crate) signer: Option<SiteSigner>,
    /// What its skills ask of their callers.
    pub(crate) skill_rules: Arc<SkillRules>,
    pub(crate) compat: Compat,
    pub(crate) compat_clients: CompatClients,
    /// The compat dialect that claims its JSON-RPC endpoint.
    pub(crate) claim: Option<Dialect>,
}

impl Mounted {
    /// Its cards, as the agent has them now.
    pub(crate) fn cards(&self) -> Arc<ServedCards> {
        self.cards.of(self.endpoint.card())
    }
}

/// A request to an agent, without its body. The head is gone while the agent answers.
pub(crate) struct Incoming<'a, 'h> {
    pub(crate) shared: &'h Shared,
    pub(crate) agent: &'a Mounted,
    /// Which dialects may use its path.
    pub(crate) mount: Mount,
    pub(crate) head: Head<'h>,
    /// What the caller has proven itself by.
    pub(crate) proven: SchemeSet,
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
        // One pass finds all of them, of which most requests have none. The first of a name counts. A value that is not
        // ASCII is a value all the same: dropping it would turn a resume or a repeat into a new send.
        let (mut idempotency_key, mut last_event_id) = (None, None);
        let mut asks_for_extensions = false;
        let headers = if head.present.call { Some(head.headers) } else { None };
        for (name, value) in headers.into_iter().flatten() {
            let wanted = match name {
                name if *name == IDEMPOTENCY_KEY => &mut idempotency_key,
                name if *name == LAST_EVENT_ID => &mut last_event_id,
                name => {
                    asks_for_extensions |= *name == A2A_EXTENSIONS || *name == X_A2A_EXTENSIONS;
                    continue;
                }
            };
            wanted.get_or_insert_with(|| String::from_utf8_lossy(value.as_bytes()).into_owned());
        }
        let owner = self.shared.owner(identity, tenant)?;
        head.note.tenant(&owner.tenant);
        Ok(Caller {
            owner,
            authenticated: identity.authenticated,
            address: head.note.address(),
            scopes: identity.scopes.clone(),
            dialect,
            extensions: match asks_for_extensions {
                true => activated(&self.agent.endpoint.card(), head.headers),
                false => Vec::new(),
            },
            idempotency_key,
            last_event_id: last_event_id.or_else(|| head.query("after")),
            trace: head.note.trace(dialect),
            takes_frames: false,
        })
    }
}

impl Incoming<'_, '_> {
    /// Whether the caller may do what it asks for. Every binding and dialect comes by here, after its request was decoded.
    pub(crate) fn authorize(
        &self,
        identity: &Identity,
        caller: &Caller,
        request: &Request,
    ) -> Result<Option<Box<CardReader>>, ProtocolError> {
        let Some(rules) = &self.shared.rules else { return Ok(None) };
        let subject = Subject { identity, tenant: caller.owner.tenant.as_str() };
        rules.check(&subject, self.agent.name.as_str(), request)?;
        let reads_card = matches!(request, Request::GetExtendedAgentCard);
        Ok(reads_card.then(|| Box::new(CardReader::new(rules, identity, caller))))
    }
}

/// The extensions a client asked for that this agent has. Others are ignored, as the spec says.
fn activated(card: &AgentCard, headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(A2A_EXTENSIONS).iter().chain(headers.get_all(X_A2A_EXTENSIONS));
    let lines = lines.filter_map(|line| line.to_str().ok());
    let asked: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    let declared = card.capabilities.extensions.iter().map(|extension| &extension.uri);
    declared.filter(|uri| asked.contains(&uri.as_str())).cloned().collect()
}
