//! What every request of a server shares.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri};
use switchboard_core::call::{Caller, Endpoint};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::detect::{self, Clues, Door, Mount, Refusal, Verdict};
use switchboard_core::dialect::json::{DecodeLimits, write_u64};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentInterface, AgentName};
use switchboard_engine::Engine;

use crate::server::bindings::compat::AgentCompat;
use crate::server::cards::ServedCards;
use crate::server::edge::access_log::AccessLog;
use crate::server::edge::admit::Gate;
use crate::server::edge::authenticate::{self, Identified, Identity};
use crate::server::edge::cors::Cors;
use crate::server::edge::header_names::{
    A2A_EXTENSIONS, A2A_VERSION, IDEMPOTENCY_KEY, LAST_EVENT_ID, TRACEPARENT, X_A2A_EXTENSIONS, X_REQUEST_ID,
};
use crate::server::edge::line_budget::LineBudget;
use crate::server::edge::mount_path::MountPath;
use crate::server::edge::note::Note;
use crate::server::edge::origins::Origins;
use crate::server::edge::percent::query_pairs;
use crate::server::limits::ServerLimits;
use crate::server::operator::metrics::Metrics;
use crate::server::transport::tls::Tls;

/// What proxies add.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    /// Where the tasks are kept, in words.
    pub(crate) data: String,
    pub(crate) origins: Origins,
    /// The agents at the server's own address.
    pub(crate) own_site: Site,
    /// The agents at the other addresses of `origins`, in the same order.
    pub(crate) other_sites: Vec<Site>,
    pub(crate) door: authenticate::Door,
    pub(crate) gate: Gate,
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
    /// Its address, without a slash at its end.
    pub(crate) url: String,
    pub(crate) interfaces: Vec<AgentInterface>,
    pub(crate) cards: ServedCards,
    pub(crate) extensions: Vec<String>,
    pub(crate) compat: AgentCompat,
}

impl Shared {
    /// The agents at the address that a request names: what it is told leads back there.
    pub(crate) fn site(&self, authority: Option<&str>) -> &Site {
        self.origins.asked(authority).and_then(|number| self.other_sites.get(number)).unwrap_or(&self.own_site)
    }

    /// Who sends a request, told from its headers alone. Noted for the log lines about the request.
    pub(crate) fn identify(&self, head: &Head<'_>) -> Result<Identified<'_>, ProtocolError> {
        let identity = self.door.identify(head.headers)?;
        head.note.principal(&identity);
        Ok(identity)
    }

    /// The caller of a request, once its tenant is known. Identity comes from the credential alone.
    pub(crate) fn caller(
        &self,
        agent: &Mounted,
        identity: &Identity,
        tenant: Option<&str>,
        dialect: Dialect,
        head: &Head<'_>,
    ) -> Result<Caller, ProtocolError> {
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
            dialect,
            extensions: activated(&agent.extensions, head.headers),
            idempotency_key,
            last_event_id: last_event_id.or_else(|| head.query("after")),
            trace_parent,
            takes_frames: false,
        })
    }

    /// Whether a request comes from an operator: somebody with a token that says so or, where there are no tokens,
    /// somebody on this machine. A server that others reach through a proxy cannot tell the two apart, so there nobody
    /// is one without a token.
    pub(crate) fn operator(&self, headers: &HeaderMap) -> Result<(), ProtocolError> {
        let denied = |reason: &str| Err(ProtocolError::PermissionDenied { reason: reason.to_owned() });
        let identity = self.door.identify(headers)?;
        match &self.door {
            _ if identity.operator => Ok(()),
            authenticate::Door::Tokens(_) => denied("the token is not an operator's; its line must end with +operator"),
            authenticate::Door::Open(_) if !self.gate.is_for_this_machine() => {
                denied("without tokens, only a server for this machine alone has operators")
            }
            authenticate::Door::Open(_) if FORWARDED.iter().any(|name| headers.contains_key(*name)) => {
                denied("without tokens, operators are on this machine, and this request was forwarded")
            }
            authenticate::Door::Open(_) => Ok(()),
        }
    }

    /// Which dialect a request to this agent is in.
    pub(crate) fn dialect(&self, agent: &Mounted, head: &Head<'_>, door: Door<'_>) -> Result<Verdict, Refusal> {
        with_clues(head, door, Mount::FREE, self.default_of(agent), detect::dialect)
    }

    /// The dialect to refuse a request in before it is known what it asks for.
    pub(crate) fn spelling(&self, agent: &Mounted, head: &Head<'_>, door: Door<'_>) -> Dialect {
        with_clues(head, door, Mount::FREE, self.default_of(agent), detect::spelling)
    }

    fn default_of(&self, agent: &Mounted) -> Option<Dialect> {
        agent.compat.settings.default.or(self.default_version)
    }
}

/// The dialect in whose ways a request is treated from the first check on, if it is one's own.
pub(crate) fn claimed(head: &Head<'_>, mount: Mount) -> Option<Dialect> {
    // Most paths are nobody's, and then there is nothing to look for.
    if mount == Mount::FREE { None } else { with_clues(head, NO_METHOD, mount, None, detect::claimed) }
}

/// A call whose method is not known yet.
pub(crate) const NO_METHOD: Door<'static> = Door::JsonRpc { method: "", params: None };

/// The dialect of somebody who reads a card: by what they say alone. A default is about calls, and cards are for everybody.
pub(crate) fn card_dialect(head: &Head<'_>) -> Dialect {
    with_clues(head, NO_METHOD, Mount::FREE, None, detect::spelling)
}

fn with_clues<T>(
    head: &Head<'_>,
    door: Door<'_>,
    mount: Mount,
    default: Option<Dialect>,
    decide: impl FnOnce(&Clues<'_>) -> T,
) -> T {
    let header = named_version(head.headers);
    let query = if header.is_some() { None } else { head.query("A2A-Version") };
    decide(&Clues { header: header.as_deref(), query: query.as_deref(), default, mount, door })
}

/// The version that the headers name. A proxy or a client may send the line twice: lines that say the same count once,
/// and lines that differ are read together, so that the request is refused rather than taken for either version.
fn named_version(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    // Nearly every request has each of its headers once, and then there is nothing to compare.
    if headers.len() == headers.keys_len() {
        let line = headers.get(A2A_VERSION)?.to_str().unwrap_or("?").trim();
        return (!line.is_empty()).then_some(Cow::Borrowed(line));
    }
    let lines = headers.get_all(A2A_VERSION).iter().map(|line| line.to_str().unwrap_or("?").trim());
    let mut lines = lines.filter(|line| !line.is_empty());
    let first = lines.next()?;
    match lines.find(|line| *line != first) {
        None => Some(Cow::Borrowed(first)),
        Some(other) => Some(Cow::Owned(format!("{first}, {other}"))),
    }
}

/// The part of a request that is there before its body.
pub(crate) struct Head<'a> {
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) note: &'a Note,
}

impl Head<'_> {
    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let pairs = query_pairs(self.uri.query()?)?;
        pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
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

/// Names requests, so that a client's complaint finds its lines in a log at debug level.
pub(crate) struct RequestIds {
    prefix: String,
    next: AtomicU64,
}

const UNNAMED: HeaderValue = HeaderValue::from_static("unnamed");

impl RequestIds {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix, next: AtomicU64::new(1) }
    }

    /// The client's own id if it sent a fit one, else a new one.
    pub(crate) fn name(&self, headers: &HeaderMap) -> HeaderValue {
        let own = headers.get(X_REQUEST_ID);
        let fit = |id: &&HeaderValue| id.len() <= 128 && id.as_bytes().iter().all(u8::is_ascii_graphic);
        let mut named = match own.filter(fit) {
            // A copy of its own: a share of what was read would keep the connection from reading into the same room.
            Some(id) => HeaderValue::from_bytes(id.as_bytes()).unwrap_or(UNNAMED),
            None => {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                // Just as much room as it takes: what is over would cost a second piece of memory.
                let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
                let mut name = Vec::with_capacity(self.prefix.len() + 1 + digits);
                name.extend_from_slice(self.prefix.as_bytes());
                name.push(b'-');
                write_u64(&mut name, number);
                HeaderValue::from_maybe_shared(Bytes::from(name)).unwrap_or(UNNAMED)
            }
        };
        // Not a secret: this says that it never comes again, so that HTTP/2 does not file it in its table.
        named.set_sensitive(true);
        named
    }
}
