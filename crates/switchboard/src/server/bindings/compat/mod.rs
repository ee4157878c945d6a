//! The compat dialects at the edge: what four older systems speak. On the mount that is a dialect's own, and wherever an agent
//! claims its paths for one, a request is treated in that system's ways from the first check on. On paths that nobody claims, a
//! request whose shape tells comes here once its envelope has been read.
//!
//! [`CompatDialect`] is what each of them says about itself; the rest of the edge asks it and knows none of them by name. Those
//! that travel over JSON-RPC go one way, which is told here; a dialect without an envelope answers its places by itself. What an
//! agent's owner may choose, and what is remembered of clients, is in `settings`.
//!
//! CONTRIBUTING.md has the list of files that a new one touches.

mod agent_native;
mod corvid;
mod nexus;
mod rate;
mod selectools;
mod settings;
mod tale;
mod window;

use std::borrow::Cow;
use std::future::ready;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::Body;
use switchboard_core::call::{BoxFuture, Caller, Reply};
use switchboard_core::dialect::Dialect;
use switchboard_core::error::ProtocolError;

use crate::server::bindings::check_content_type;
use crate::server::bindings::envelope::Envelope;
use crate::server::cards::Subject;
use crate::server::edge::authenticate::{Identified, Identity};
use crate::server::edge::body::{ReplyBody, read};
use crate::server::edge::note::{Binding, Refused};
use crate::server::edge::respond::{JSON, events, http_error, json, not_allowed, with_hints};
use crate::server::edge::shared::{Head, Mounted, Shared, Site};

pub(crate) use settings::AgentCompat;
pub use settings::{Compat, CorvidOptions, SelectoolsOptions};
use tale::Narrator;
#[cfg(test)]
pub(crate) use window::Window;

/// One compat dialect at the edge: where it is found, what it checks, and how it answers.
pub(crate) trait CompatDialect: Sync {
    fn dialect(&self) -> Dialect;

    /// The place that a path names below the dialect's own mount, which a client may take for the root of a server. Its card is
    /// there in any case.
    fn own_place<'a>(&self, segments: &[&'a str]) -> Option<CompatPlace<'a>>;

    /// The place that a path names below an agent, if it is one that nobody else has.
    fn shared_place<'a>(&self, segments: &[&'a str]) -> Option<CompatPlace<'a>> {
        let _ = segments;
        None
    }

    /// The agent and the place that a path below `/api` names.
    fn api_place<'a>(&self, segments: &[&'a str]) -> Option<(Cow<'a, str>, CompatPlace<'a>)> {
        let _ = segments;
        None
    }

    /// Writes the card of an agent for whoever takes `base` for its root.
    fn encode_card(&self, subject: &Subject<'_>, base: &str, out: &mut Vec<u8>);

    /// The address that stands for an agent on a card of its own among the agents of the server; none if there is no such card.
    fn listed_card_base<'s>(&self, subject: &Subject<'s>) -> Option<&'s str> {
        let _ = subject;
        None
    }

    /// Who calls, told from headers alone.
    fn identify<'s>(&self, shared: &'s Shared, head: &Head<'_>) -> Result<Identified<'s>, ProtocolError> {
        let identity = shared.identify(head)?;
        check_content_type(head.headers)?;
        Ok(identity)
    }

    /// How large a body may be.
    fn body_bytes_max(&self, shared: &Shared, agent: &Mounted) -> usize {
        let _ = agent;
        shared.limits.body_bytes_max
    }

    /// Reads the envelope of a call; a refusal comes with the id to answer it under.
    fn open<'b>(&self, body: &'b [u8]) -> Result<Asked<'b>, (ProtocolError, String)> {
        Envelope::parse(body).map(Asked::from)
    }

    /// Answers a call out of its envelope. A dialect that does not travel over JSON-RPC has none.
    fn reply<'v>(&self, visit: Visit<'v>, asked: &'v Asked<'v>) -> BoxFuture<'v, Result<Reply, ProtocolError>> {
        let _ = (visit, asked);
        let reason = format!("{} does not travel over JSON-RPC", self.dialect().name());
        Box::pin(ready(Err(ProtocolError::InvalidRequest { reason })))
    }

    /// How a stream that is asked for under `id` is told, and under which id; none in a dialect without streams.
    fn narrate<'a>(&self, id: &'a str) -> Option<(Box<dyn Narrator>, &'a str)> {
        let _ = id;
        None
    }

    /// Answers a place that is reached without an envelope; nothing is there in a dialect that travels over JSON-RPC.
    fn serve_place<'v>(&self, visit: PlaceVisit<'v>) -> BoxFuture<'v, Response<ReplyBody>> {
        let method = format!("{} {:.200}", visit.method, visit.head.uri.path());
        let error = ProtocolError::MethodNotFound { method, hint: None };
        Box::pin(ready(http_error(self.dialect(), &error, JSON)))
    }

    /// The refusal of a verb at the endpoint.
    fn refuse_verb(&self) -> Response<ReplyBody> {
        let error = ProtocolError::InvalidRequest { reason: "this path takes POST".to_owned() };
        not_allowed(self.dialect(), &error, "POST", JSON)
    }

    /// Whether somebody who sends OPTIONS looks if there is an endpoint, which one tells by the refusal of a verb. Elsewhere it is a
    /// browser that asks for a page.
    fn answers_probes(&self) -> bool {
        false
    }

    /// The HTTP status of a refusal over JSON-RPC.
    fn refusal_status(&self, error: &ProtocolError) -> StatusCode {
        match error {
            ProtocolError::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
            ProtocolError::PermissionDenied { .. } => StatusCode::FORBIDDEN,
            ProtocolError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            ProtocolError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        }
    }

    /// Whether a refusal says in its headers what to do about it.
    fn has_hints(&self) -> bool {
        true
    }
}

/// Every compat dialect, in the order of [`Dialect::COMPAT`].
pub(crate) static ALL: [&dyn CompatDialect; 4] =
    [&agent_native::AgentNative, &selectools::Selectools, &corvid::Corvid, &nexus::Nexus];

/// The compat dialect of this name in core; none for a version of A2A.
pub(crate) fn of(dialect: Dialect) -> Option<&'static dyn CompatDialect> {
    ALL.into_iter().find(|compat| compat.dialect() == dialect)
}

/// The same, if it travels over JSON-RPC.
pub(crate) fn over_rpc(dialect: Dialect) -> Option<&'static dyn CompatDialect> {
    Dialect::COMPAT_RPC.contains(&dialect).then(|| of(dialect)).flatten()
}

/// What compat dialects have at their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompatPlace<'a> {
    /// Where calls over JSON-RPC go.
    Endpoint,
    /// The card of the agent that the path leads to.
    Card,
    /// Where a message is sent without an envelope.
    Send,
    /// A task that is asked for without an envelope.
    Task { id: Cow<'a, str> },
    /// The card of one agent among others, under a name of the server's.
    ListedCard,
}

impl CompatPlace<'_> {
    /// Whether everybody may read it.
    pub(crate) fn is_public(&self) -> bool {
        matches!(self, Self::Card | Self::ListedCard)
    }
}

/// The place below the own mount of a dialect.
pub(crate) fn own_place<'a>(compat: &dyn CompatDialect, segments: &[&'a str]) -> Option<CompatPlace<'a>> {
    match segments {
        [".well-known", "agent-card.json" | "agent.json"] => Some(CompatPlace::Card),
        _ => compat.own_place(segments),
    }
}

/// A call out of its envelope.
pub(crate) struct Asked<'a> {
    method: Cow<'a, str>,
    params: Option<&'a str>,
    /// As it was written, `null` if there was none.
    id: &'a str,
}

impl<'a> From<Envelope<'a>> for Asked<'a> {
    fn from(Envelope { id, method, params }: Envelope<'a>) -> Self {
        Self { method, params, id }
    }
}

/// Who asks whom, in which dialect.
#[derive(Clone, Copy)]
pub(crate) struct Visit<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) agent: &'a Mounted,
    pub(crate) identity: &'a Identity,
    pub(crate) head: &'a Head<'a>,
    pub(crate) compat: &'static dyn CompatDialect,
}

impl Visit<'_> {
    fn caller(&self) -> Result<Caller, ProtocolError> {
        let caller = self.shared.caller(self.agent, self.identity, None, self.compat.dialect(), self.head)?;
        // There is nothing to go on from: what these dialects answer is always the whole.
        Ok(Caller { last_event_id: None, ..caller })
    }
}

/// Who calls, and the body. It is read when it is asked for.
type Received<'a> = BoxFuture<'a, Result<(Identified<'a>, Bytes), ProtocolError>>;

/// Somebody at a place without an envelope.
pub(crate) struct PlaceVisit<'a> {
    shared: &'a Shared,
    head: &'a Head<'a>,
    method: &'a Method,
    at: At<'a>,
    received: Received<'a>,
}

/// Where a request came to.
pub(crate) struct At<'a> {
    /// The agents at the address that the request names.
    pub(crate) site: &'a Site,
    /// The agent that its path names, if it names one.
    pub(crate) agent: Option<&'a str>,
    pub(crate) place: CompatPlace<'a>,
}

/// A request to a place that a dialect answers without an envelope.
pub(crate) async fn serve_place<B>(
    compat: &'static dyn CompatDialect,
    shared: &Shared,
    head: &Head<'_>,
    method: &Method,
    at: At<'_>,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let received = Box::pin(receive(compat, shared, shared.limits.body_bytes_max, head, body));
    compat.serve_place(PlaceVisit { shared, head, method, at, received }).await
}

/// A request that is known from its path and headers to be in a dialect.
pub(crate) async fn serve<B>(
    compat: &'static dyn CompatDialect,
    shared: &Shared,
    agent: &Mounted,
    head: &Head<'_>,
    method: &Method,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    head.note.binding(Binding::JsonRpc);
    head.note.agent(agent);
    if *method != Method::POST {
        return compat.refuse_verb();
    }
    let bytes_max = compat.body_bytes_max(shared, agent);
    let (identity, body) = match receive(compat, shared, bytes_max, head, body).await {
        Ok(received) => received,
        Err(error) => return refused(compat, &error, "null"),
    };
    match compat.open(&body) {
        Ok(asked) => answer(Visit { shared, agent, identity: &identity, head, compat }, asked).await,
        Err((error, id)) => refused(compat, &error, &id),
    }
}

/// Who calls, told from headers alone before a byte of the body is read; and the body.
async fn receive<'s, B>(
    compat: &'static dyn CompatDialect,
    shared: &'s Shared,
    bytes_max: usize,
    head: &Head<'_>,
    body: B,
) -> Result<(Identified<'s>, Bytes), ProtocolError>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let identity = compat.identify(shared, head)?;
    let patience = Duration::from_secs(u64::from(shared.limits.body_read_s_max));
    let body = read(head.headers, body, bytes_max, patience).await?;
    Ok((identity, body))
}

/// A call that is known to be in a dialect, from where it came to or from its message.
pub(crate) async fn answer(visit: Visit<'_>, asked: Asked<'_>) -> Response<ReplyBody> {
    match visit.compat.reply(visit, &asked).await {
        Ok(Reply::Stream(updates)) => match visit.compat.narrate(asked.id) {
            Some((narrator, id)) => events(tale::tell(visit, narrator, id, updates)),
            None => refused(visit.compat, &ProtocolError::unsupported("there are no streams here"), asked.id),
        },
        Ok(reply) => {
            let mut body = Vec::with_capacity(1024);
            body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            body.extend_from_slice(asked.id.as_bytes());
            body.extend_from_slice(b",\"result\":");
            visit.compat.dialect().write_reply(&reply, &mut body);
            body.push(b'}');
            json(StatusCode::OK, JSON, body)
        }
        Err(error) => refused(visit.compat, &error, asked.id),
    }
}

fn refused(compat: &dyn CompatDialect, error: &ProtocolError, id: &str) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(256);
    compat.dialect().write_rpc_error(error, id, &mut body);
    let mut response = json(compat.refusal_status(error), JSON, body);
    Refused::mark(&mut response, error);
    if compat.has_hints() { with_hints(response, error) } else { response }
}

/// Whether this is somebody who looks if there is an endpoint here, and not a browser that asks for a page.
pub(crate) fn is_probe(dialect: Dialect, headers: &HeaderMap) -> bool {
    of(dialect).is_some_and(CompatDialect::answers_probes)
        && !headers.contains_key(http::header::ACCESS_CONTROL_REQUEST_METHOD)
}
