//! The compat dialects at the edge: what four older systems speak. On the mount that is a dialect's own, and wherever an agent
//! claims its paths for one, a request is treated in that system's ways from the first check on. On paths that nobody claims, a
//! request whose shape tells comes here once its envelope has been read.
//!
//! [`CompatDialect`] is what each of them says about itself; the rest of the edge asks it and knows none of them by name.
//! [`CompatBinding`] takes their requests in and their replies out. What an agent's owner may choose is in
//! `agent_settings`, and what is remembered of clients in `server/compat_clients`.
//!
//! CONTRIBUTING.md has the list of files that a new one touches.

mod agent_native;
pub(crate) mod alias;
mod corvid;
mod nexus;
mod selectools;
mod tale;

use std::borrow::Cow;
use std::sync::Arc;

use alias::Alias;
use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use switchboard_core::call::{Caller, Owner, Reply, Request, UpdateStream};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::detect::Detected;
use switchboard_core::dialect::json::Decoded;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskId;
use tale::{Reader, WholeTaskStream};

use super::envelope::{Envelope, rpc_result};
use super::sse::{Framing, SseBody};
use super::{Binding, CallAgent, Rejection};
use crate::server::cards::CompatCard;
use crate::server::exchange::refused::Refused;
use crate::server::exchange::request::check_content_type;
use crate::server::exchange::respond::{JSON, ReplyBody, events, json, not_allowed, with_hints};
use crate::server::shared::{Incoming, Mounted, Shared, Site};

/// One compat dialect at the edge: where it is found, what it checks, and how it answers.
pub(crate) trait CompatDialect: CompatCard {
    /// The place that a path names below the dialect's own mount, which a client may take for the root of a server. Its card is
    /// there in any case.
    fn own_place(&self, segments: &[&str]) -> Option<CompatPath>;

    /// The place that a path names below an agent, if it is one that nobody else has.
    fn shared_place(&self, segments: &[&str]) -> Option<CompatPath> {
        let _ = segments;
        None
    }

    /// The agent and the place that a path below `/api` names.
    fn api_place<'a>(&self, segments: &[&'a str]) -> Option<(Cow<'a, str>, CompatPath)> {
        let _ = segments;
        None
    }

    /// The agent that a place without an envelope belongs to.
    fn agent<'s>(&self, site: &'s Site, name: Option<&str>) -> Option<&'s Arc<Mounted>> {
        site.agent(name)
    }

    /// Whether the credential of a request is spelled as the original takes it; asked on a server that has tokens.
    fn takes_credential(&self, headers: &HeaderMap) -> bool {
        let _ = headers;
        true
    }

    /// Whether the body must say that it is JSON.
    fn checks_content_type(&self) -> bool {
        true
    }

    /// How large a body may be.
    fn body_bytes_max(&self, shared: &Shared, agent: &Mounted) -> usize {
        let _ = agent;
        shared.limits.body_bytes_max
    }

    /// Reads the envelope of a call; a refusal comes with the id to answer it under.
    fn open<'b>(&self, body: &'b [u8]) -> Result<Envelope<'b>, (ProtocolError, String)> {
        Envelope::parse(body)
    }

    /// What is asked for, and how the call goes on.
    fn decode(&self, sent: Sent<'_>) -> Result<(Request, Box<dyn CompatCall>), Rejection>;

    /// How a stream that is asked for under `id` is told, and under which id; none in a dialect without streams.
    fn narrate<'a>(&self, id: &'a str) -> Option<(Box<dyn WholeTaskStream>, &'a str)> {
        let _ = id;
        None
    }

    /// The answer with a whole reply.
    fn answer(&self, reply: &Reply, id: &str) -> Response<ReplyBody> {
        rpc_result(id, |body| self.dialect().write_reply(reply, body))
    }

    /// The answer that refuses a request.
    fn refuse(&self, error: &ProtocolError, id: &str) -> Response<ReplyBody> {
        let mut body = Vec::with_capacity(256);
        self.dialect().write_rpc_error(error, id, &mut body);
        let mut response = json(self.refusal_status(error), JSON, body);
        Refused::mark(&mut response, error);
        if self.has_hints() { with_hints(response, error) } else { response }
    }

    /// The answer at a place of an agent that there is not.
    fn no_agent(&self) -> Response<ReplyBody> {
        self.refuse(&ProtocolError::MethodNotFound { method: "/".to_owned(), hint: None }, "null")
    }

    /// The refusal of a verb at a place, which takes another one.
    fn refuse_verb(&self, place: &CompatPath) -> Response<ReplyBody> {
        let allowed = place.verb();
        let error = ProtocolError::InvalidRequest { reason: format!("this path takes {allowed}") };
        not_allowed(self.dialect(), &error, allowed, JSON)
    }

    /// Whether somebody who sends OPTIONS looks if there is an endpoint, which one tells by the refusal of a verb. Elsewhere it is a
    /// browser that asks for a page.
    fn answers_probes(&self) -> bool {
        false
    }

    /// The HTTP status of a refusal over JSON-RPC.
    fn refusal_status(&self, error: &ProtocolError) -> StatusCode {
        refusal_status(error)
    }

    /// Whether a refusal says in its headers what to do about it.
    fn has_hints(&self) -> bool {
        true
    }
}

/// The HTTP status of a refusal where the dialect has no other.
fn refusal_status(error: &ProtocolError) -> StatusCode {
    match error {
        ProtocolError::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        ProtocolError::PermissionDenied { .. } => StatusCode::FORBIDDEN,
        ProtocolError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        ProtocolError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        ProtocolError::ResourceExhausted { .. } => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::OK,
    }
}

/// A call in a compat dialect, from the moment it has been decoded.
pub(crate) trait CompatCall: Send + Sync {
    /// Changes what the dialect has its own rules for.
    fn set_caller(&mut self, caller: &mut Caller) {
        let _ = caller;
    }

    /// What calls the agent, where that takes more than one call.
    fn call_agent(&mut self) -> Option<CallAgent> {
        None
    }

    /// The reply as the dialect has it.
    fn reply(&mut self, agent: &Mounted, reply: Reply) -> Result<Reply, ProtocolError> {
        let _ = agent;
        Ok(reply)
    }

    /// The name that the client gave the task of a stream.
    fn alias(&self) -> Option<&Alias> {
        None
    }
}

/// A call about which nothing is special.
struct PlainCall;

impl CompatCall for PlainCall {}

/// What was sent.
pub(crate) struct Sent<'a> {
    pub(crate) request: &'a Incoming<'a, 'a>,
    pub(crate) place: &'a CompatPath,
    pub(crate) envelope: &'a Envelope<'a>,
    pub(crate) body: &'a [u8],
    pub(crate) addressee: Addressee,
}

/// Whether there is an agent that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressee {
    Found,
    /// There is none of the name in the path. The request is refused once it has been read.
    Unknown,
    /// The path names none, and no agent takes such requests.
    Unnamed,
}

/// Every compat dialect, in the order of [`Dialect::COMPAT`].
pub(crate) static ALL: [&dyn CompatDialect; 4] =
    [&agent_native::AgentNative, &selectools::Selectools, &corvid::Corvid, &nexus::Nexus];

/// What each of them has for a card.
pub(crate) static CARDS: [&dyn CompatCard; ALL.len()] = [ALL[0], ALL[1], ALL[2], ALL[3]];

/// The compat dialect of this name in core; none for a version of A2A.
pub(crate) fn of(dialect: Dialect) -> Option<&'static dyn CompatDialect> {
    ALL.into_iter().find(|compat| compat.dialect() == dialect)
}

/// What compat dialects have at their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompatPath {
    /// Where calls over JSON-RPC go.
    Endpoint,
    /// The card of the agent that the path leads to.
    Card,
    /// Where a message is sent without an envelope.
    Send,
    /// A task that is asked for without an envelope.
    Task { id: TaskId },
    /// The card of one agent among others, under a name of the server's.
    ListedCard,
}

impl CompatPath {
    /// Whether everybody may read it.
    pub(crate) fn is_public(&self) -> bool {
        matches!(self, Self::Card | Self::ListedCard)
    }

    /// The verb that it takes.
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::Endpoint | Self::Send => "POST",
            Self::Task { .. } | Self::Card | Self::ListedCard => "GET",
        }
    }
}

/// The place below the own mount of a dialect.
pub(crate) fn own_place(compat: &dyn CompatDialect, segments: &[&str]) -> Option<CompatPath> {
    match segments {
        [".well-known", "agent-card.json" | "agent.json"] => Some(CompatPath::Card),
        _ => compat.own_place(segments),
    }
}

/// Whether this is somebody who looks if there is an endpoint here, and not a browser that asks for a page.
pub(crate) fn is_probe(dialect: Dialect, headers: &HeaderMap) -> bool {
    of(dialect).is_some_and(CompatDialect::answers_probes)
        && !headers.contains_key(http::header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The binding of a request in a compat dialect.
pub(crate) struct CompatBinding {
    compat: &'static dyn CompatDialect,
    place: CompatPath,
    addressee: Addressee,
    /// The id of the request, as it was written; `null` without an envelope.
    id: String,
    call: Box<dyn CompatCall>,
    /// Whose tasks the call sees.
    owner: Owner,
}

impl CompatBinding {
    pub(crate) fn dialect(&self) -> Dialect {
        self.compat.dialect()
    }

    /// A request over JSON-RPC.
    pub(crate) fn call(compat: &'static dyn CompatDialect) -> Self {
        Self::at(compat, CompatPath::Endpoint, Addressee::Found)
    }

    /// A request at a place.
    pub(crate) fn at(compat: &'static dyn CompatDialect, place: CompatPath, addressee: Addressee) -> Self {
        Self { compat, place, addressee, id: String::new(), call: Box::new(PlainCall), owner: Owner::default() }
    }

    /// The answer with a stream, in which whole tasks are told.
    pub(crate) fn events(
        &self,
        shared: &Shared,
        agent: &Mounted,
        updates: UpdateStream,
    ) -> Result<Response<ReplyBody>, Rejection> {
        let Some((whole_task_stream, id)) = self.compat.narrate(&self.id) else {
            return Err(ProtocolError::unsupported("there are no streams here").into());
        };
        let reader = Reader { owner: self.owner.clone(), alias: self.call.alias().cloned() };
        let told = tale::told(updates, whole_task_stream, agent.downloads.clone(), reader);
        let framing = Framing::JsonRpc { id: id.to_owned() };
        Ok(events(SseBody::new(&shared.limits, shared.metrics.clone(), told, framing, self.compat.dialect())))
    }
}

impl Binding for CompatBinding {
    fn learn(&mut self, _: &Incoming<'_, '_>, _: Detected, envelope: &Envelope<'_>) {
        self.id = envelope.id.to_owned();
    }

    fn check(&mut self, request: &Incoming<'_, '_>) -> Result<(), Rejection> {
        if self.place.verb() == Method::POST.as_str() && self.compat.checks_content_type() {
            check_content_type(&request.head)?;
        }
        Ok(())
    }

    fn body_bytes_max(&self, request: &Incoming<'_, '_>) -> Option<usize> {
        let posts = self.place.verb() == Method::POST.as_str();
        posts.then(|| self.compat.body_bytes_max(request.shared, request.agent))
    }

    fn open<'b>(&self, body: &'b [u8]) -> Result<Envelope<'b>, (ProtocolError, String)> {
        match self.place {
            CompatPath::Endpoint => self.compat.open(body),
            _ => Ok(Envelope::NONE),
        }
    }

    fn decode(
        &mut self,
        request: &Incoming<'_, '_>,
        envelope: &Envelope<'_>,
        body: &Bytes,
    ) -> Result<Decoded, Rejection> {
        let sent = Sent { request, place: &self.place, envelope, body, addressee: self.addressee };
        let (request, call) = self.compat.decode(sent)?;
        self.call = call;
        Ok(Decoded { tenant: None, request })
    }

    fn set_caller(&mut self, caller: &mut Caller) {
        // There is nothing to go on from: what these dialects answer is always the whole.
        caller.last_event_id = None;
        self.call.set_caller(caller);
        self.owner = caller.owner.clone();
    }

    fn call_agent(&mut self) -> Option<CallAgent> {
        self.call.call_agent()
    }

    fn reply(&mut self, agent: &Mounted, reply: Reply) -> Result<Response<ReplyBody>, Rejection> {
        let reply = self.call.reply(agent, reply)?;
        Ok(self.compat.answer(&reply, &self.id))
    }

    async fn stream(
        &mut self,
        shared: &Shared,
        agent: &Mounted,
        updates: UpdateStream,
    ) -> Result<Response<ReplyBody>, Rejection> {
        self.events(shared, agent, updates)
    }

    fn error(&self, error: &ProtocolError) -> Response<ReplyBody> {
        self.compat.refuse(error, &self.id)
    }

    /// The originals know of no extensions.
    fn marks(&self, _: bool) -> bool {
        false
    }
}
