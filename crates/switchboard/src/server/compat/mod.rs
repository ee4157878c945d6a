//! The accents of single systems at the edge: on the mount that is a dialect's own, and wherever an agent claims its paths
//! for one, a request is treated in that system's ways from the first check on. On paths that nobody claims, a request
//! whose shape tells comes here once its envelope has been read.
//!
//! Those that travel over JSON-RPC go one way, which is told here; what a system does its own way is in its file. Corvid has
//! no envelope and goes by itself.
//!
//! Adding one: a folder in core's `dialect/`, a row in `Dialect::COMPAT`, its places in `routes`, its card in `cards`, and
//! a file here with its `reply`.

mod agent_native;
mod corvid;
mod nexus;
pub(super) mod rate;
mod selectools;
mod tale;
pub(super) mod window;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::Body;
use switchboard_core::call::{Caller, Reply};
use switchboard_core::dialect::Dialect;
use switchboard_core::error::ProtocolError;

use super::auth::{Identified, Identity};
use super::binding::check_content_type;
use super::body::{ReplyBody, read};
use super::context::{Head, Mounted, Shared};
use super::envelope::Envelope;
use super::note::{Binding, Refused};
use super::respond::{JSON, events, json, not_allowed, with_hints};

pub(crate) use corvid::{At as CorvidAt, serve as serve_corvid};

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
    pub(crate) dialect: Dialect,
}

impl Visit<'_> {
    fn caller(&self) -> Result<Caller, ProtocolError> {
        let caller = self.shared.caller(self.agent, self.identity, None, self.dialect, self.head)?;
        // There is nothing to go on from: what these dialects answer is always the whole.
        Ok(Caller { last_event_id: None, ..caller })
    }
}

/// A request that is known from its path and headers to be in a dialect.
pub(crate) async fn serve<B>(
    shared: &Shared,
    agent: &Mounted,
    head: &Head<'_>,
    dialect: Dialect,
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
        return other_verb(dialect);
    }
    let refuse = |error: &ProtocolError, id: &str| refused(dialect, error, id);
    let received = match dialect {
        Dialect::Selectools => selectools::receive(shared, agent, head, body).await,
        _ => receive(shared, head, body).await,
    };
    let (identity, body) = match received {
        Ok(received) => received,
        Err(error) => return refuse(&error, "null"),
    };
    let asked = match dialect {
        Dialect::Selectools => selectools::open(&body),
        _ => Envelope::parse(&body).map(Asked::from),
    };
    match asked {
        Ok(asked) => answer(Visit { shared, agent, identity: &identity, head, dialect }, asked).await,
        Err((error, id)) => refuse(&error, &id),
    }
}

/// The refusal of a verb. Where it is a dialect's own endpoint, one is told so in its form.
fn other_verb(dialect: Dialect) -> Response<ReplyBody> {
    if dialect == Dialect::AgentNative {
        return agent_native::other_verb();
    }
    let error = ProtocolError::InvalidRequest { reason: "this path takes POST".to_owned() };
    not_allowed(dialect, &error, "POST", JSON)
}

/// Who calls, told from headers alone before a byte of the body is read; and the body.
async fn receive<'s, B>(shared: &'s Shared, head: &Head<'_>, body: B) -> Result<(Identified<'s>, Bytes), ProtocolError>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let identity = shared.identify(head)?;
    check_content_type(head.headers)?;
    let patience = Duration::from_secs(u64::from(shared.limits.body_read_s_max));
    let body = read(head.headers, body, shared.limits.body_bytes_max, patience).await?;
    Ok((identity, body))
}

/// A call that is known to be in a dialect, from where it came to or from its message.
pub(crate) async fn answer(visit: Visit<'_>, asked: Asked<'_>) -> Response<ReplyBody> {
    let replied = match visit.dialect {
        Dialect::Selectools => selectools::reply(visit, &asked).await,
        Dialect::Nexus => nexus::reply(visit, &asked).await,
        // Corvid and the versions do not come here: settings take accents that travel over JSON-RPC.
        Dialect::AgentNative | Dialect::Corvid | Dialect::V1_0 | Dialect::V0_3 | Dialect::V0_3Rest => {
            agent_native::reply(visit, &asked).await
        }
    };
    match replied {
        Ok(Reply::Stream(updates)) => events(tale::tell(visit, asked.id, updates)),
        Ok(reply) => {
            let mut body = Vec::with_capacity(1024);
            body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            body.extend_from_slice(asked.id.as_bytes());
            body.extend_from_slice(b",\"result\":");
            visit.dialect.write_reply(&reply, &mut body);
            body.push(b'}');
            json(StatusCode::OK, JSON, body)
        }
        Err(error) => refused(visit.dialect, &error, asked.id),
    }
}

fn refused(dialect: Dialect, error: &ProtocolError, id: &str) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(256);
    dialect.write_rpc_error(error, id, &mut body);
    let status = match (error, dialect) {
        (ProtocolError::Unauthenticated { .. }, _) => StatusCode::UNAUTHORIZED,
        (ProtocolError::PermissionDenied { .. }, _) => StatusCode::FORBIDDEN,
        (_, Dialect::Selectools) => StatusCode::OK,
        (ProtocolError::TooLarge { .. }, _) => StatusCode::PAYLOAD_TOO_LARGE,
        (ProtocolError::Unavailable { .. }, _) => StatusCode::SERVICE_UNAVAILABLE,
        (ProtocolError::InvalidRequest { .. } | ProtocolError::ParseError { .. }, Dialect::AgentNative) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    };
    let mut response = json(status, JSON, body);
    Refused::mark(&mut response, error);
    // The original of selectools has no headers for this.
    if dialect == Dialect::Selectools { response } else { with_hints(response, error) }
}
