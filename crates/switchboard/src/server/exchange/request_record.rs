//! What is recorded about a request while it is answered: its name, the operation, the agent, the caller and the start time. When the
//! answer is ready, metrics and logs are made from this record (`request_log`), so that refusals at every stage are counted.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::json::write_u64;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentName, Principal, Tenant, TraceContext};
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::ports::{Clock, Tracer};
use switchboard_engine::system::SystemClock;
use tokio::time::Instant;
use tracing::Level;

use crate::server::authentication::{Identity, OnRefusal};
use crate::server::exchange::access_log::AccessLine;
use crate::server::exchange::refused::Refused;
use crate::server::exchange::request_trace::RequestTrace;
use crate::server::metrics::{BindingKind, Operation};
use crate::server::ports::Operations;

/// Written through a shared reference, because the head of a request is handed on by reference.
pub(crate) struct RequestRecord {
    pub(crate) began: Instant,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) operation: AtomicU8,
    pub(crate) binding: AtomicU8,
    /// One more than the place of the agent in the server's list; zero while no agent is known.
    pub(crate) agent: AtomicUsize,
    pub(crate) principal: OnceLock<Principal>,
    /// Set once the tenant that the request names was granted.
    pub(crate) tenant: OnceLock<Tenant>,
    /// Only if a line is to be written for this request.
    pub(crate) line: Option<Box<AccessLine>>,
    /// Only if the request comes in a trace, or traces are recorded.
    pub(crate) trace: Option<Box<RequestTrace>>,
}

impl RequestRecord {
    pub(crate) fn new(peer: Option<SocketAddr>) -> Self {
        Self {
            began: Instant::now(),
            peer,
            operation: AtomicU8::new(Operation::Unknown as u8),
            binding: AtomicU8::new(BindingKind::Http as u8),
            agent: AtomicUsize::new(0),
            principal: OnceLock::new(),
            tenant: OnceLock::new(),
            line: None,
            trace: None,
        }
    }

    /// Keeps what the access log, or a log at debug level, says about the request itself.
    pub(crate) fn keep_line(&mut self, is_for_access_log: bool, parts: &Parts, request_id: &HeaderValue) {
        if is_for_access_log || tracing::enabled!(Level::DEBUG) {
            self.line = Some(Box::new(AccessLine::of(parts, request_id, self.peer)));
        }
    }

    /// Notes the trace that the request belongs to.
    #[cold]
    pub(crate) fn begin_trace(&mut self, tracer: Option<&Arc<dyn Tracer>>, headers: &HeaderMap) {
        self.trace = RequestTrace::begin(tracer, headers);
    }

    /// The place in a trace that what a call in this dialect causes belongs to.
    pub(crate) fn trace(&self, dialect: Dialect) -> Option<Arc<TraceContext>> {
        self.trace.as_ref().map(|trace| trace.of_call(dialect))
    }

    pub(crate) fn operation(&self, operation: Operation) {
        self.operation.store(operation as u8, Relaxed);
    }

    pub(crate) fn binding(&self, binding: BindingKind) {
        self.binding.store(binding as u8, Relaxed);
    }

    /// Notes the agent, by its place in the server's list.
    pub(crate) fn agent(&self, place: usize) {
        self.agent.store(place + 1, Relaxed);
    }

    /// Notes who calls. The first one counts.
    pub(crate) fn principal(&self, identity: &Identity) {
        // The anonymous one is shown as such without being noted.
        if identity.authenticated {
            let _ = self.principal.set(identity.principal.clone());
        }
    }

    /// Notes for which tenant the call is made. The first one counts.
    pub(crate) fn tenant(&self, tenant: &Tenant) {
        if !tenant.as_str().is_empty() {
            let _ = self.tenant.set(tenant.clone());
        }
    }

    /// Where the request comes from, where that is known.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip())
    }

    /// Who has to answer for what the request takes.
    pub(crate) fn holder(&self) -> Holder {
        match (self.principal.get(), self.address()) {
            (Some(principal), _) => Holder::Principal(principal.clone()),
            (None, Some(address)) => Holder::of_address(address),
            (None, None) => Holder::Unknown,
        }
    }

    /// What puts into the audit log that a stream was ended with a refusal; none on a server without such a log.
    pub(crate) fn stream_audit(
        &self,
        operations: Option<&Arc<dyn Operations>>,
        agent: &AgentName,
    ) -> Option<OnRefusal> {
        let audit = StreamAudit {
            operations: operations?.clone(),
            operation: self.known_operation(),
            agent: agent.clone(),
            principal: self.principal.get().cloned(),
            tenant: self.tenant.get().cloned(),
            address: self.address(),
        };
        Some(Arc::new(move |error| audit.refused(error)))
    }

    pub(crate) fn known_operation(&self) -> Operation {
        Operation::ALL[usize::from(self.operation.load(Relaxed))]
    }
}

/// Whom a stream is for, in case that it is ended with a refusal after its answer had begun: its credential ends, or its client does not
/// read. Over SSE the refusal is an event, over gRPC it is in the trailers.
struct StreamAudit {
    operations: Arc<dyn Operations>,
    operation: Operation,
    agent: AgentName,
    principal: Option<Principal>,
    tenant: Option<Tenant>,
    address: Option<IpAddr>,
}

impl StreamAudit {
    #[cold]
    fn refused(&self, error: &ProtocolError) {
        let Some(refused) = Refused::of(error).filter(|refused| refused.audited) else { return };
        self.operations.record_refusal(refused.reason, &mut || AuditEntry {
            tenant: self.tenant.as_ref().map_or("", Tenant::as_str).to_owned(),
            principal: self.principal.as_ref().map_or("", Principal::as_str).to_owned(),
            address: self.address,
            agent: Some(self.agent.clone()),
            reason: refused.reason.into(),
            ..AuditEntry::new(SystemClock.now(), AuditEvent::Refusal, Decision::Refused, self.operation.word())
        });
    }
}

/// Who holds something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    Principal(Principal),
    Address(IpAddr),
    /// Without a credential, in an application that does not say where requests come from.
    Unknown,
}

impl Holder {
    /// One customer of a provider has a whole /64 of IPv6.
    pub(crate) fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::Address(address.into()),
            IpAddr::V6(address) => {
                let network = u128::from(address) & !u128::from(u64::MAX);
                Self::Address(IpAddr::V6(network.into()))
            }
        }
    }
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
    pub(crate) fn name(&self, own: Option<&HeaderValue>) -> HeaderValue {
        let fit = |id: &&HeaderValue| id.len() <= 128 && id.as_bytes().iter().all(u8::is_ascii_graphic);
        let mut named = match own.filter(fit) {
            // A copy: a reference into the read buffer would keep the connection from reusing the buffer.
            Some(id) => HeaderValue::from_bytes(id.as_bytes()).unwrap_or(UNNAMED),
            None => {
                let number = self.next.fetch_add(1, Relaxed);
                // Exactly the capacity it takes: spare capacity would cost a second allocation.
                let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
                let mut name = Vec::with_capacity(self.prefix.len() + 1 + digits);
                name.extend_from_slice(self.prefix.as_bytes());
                name.push(b'-');
                write_u64(&mut name, number);
                HeaderValue::from_maybe_shared(Bytes::from(name)).unwrap_or(UNNAMED)
            }
        };
        // Not a secret. The mark keeps HTTP/2 from putting a value that never comes again into its header table.
        named.set_sensitive(true);
        named
    }
}
