//! The JSON-RPC 2.0 binding: one endpoint, the method in the body. A call that turns out to be in a compat dialect is decoded and
//! answered by that dialect.

use bytes::Bytes;
use http::Response;
use switchboard_core::call::{Caller, Reply, UpdateStream};
use switchboard_core::dialect::detect::Detected;
use switchboard_core::dialect::json::Decoded;
use switchboard_core::dialect::{Dialect, for_open_reader, v0_3, v1_0};
use switchboard_core::error::ProtocolError;

use super::compat::alias::{First, ask_for_task, task_of};
use super::compat::{self, CompatBinding};
use super::envelope::{Envelope, only_events, rpc_error, rpc_result};
use super::sse::{Framing, SseBody};
use super::{Binding, CallAgent, Rejection};
use crate::server::cards;
use crate::server::exchange::request::check_content_type;
use crate::server::exchange::respond::{ReplyBody, events};
use crate::server::shared::{Incoming, Mounted, Shared};

pub(crate) struct JsonRpc {
    /// The id of the request, as it was written.
    id: String,
    verdict: Detected,
    /// Whether the client reads nothing but events.
    only_events: bool,
    /// The call, if it is in a compat dialect. Boxed, so that others do not carry its size.
    compat: Option<Box<CompatBinding>>,
    /// Whether the call is about a task that a client of NEXUS may have named itself.
    may_be_alias: bool,
}

impl JsonRpc {
    pub(crate) fn new() -> Self {
        let verdict = Detected { dialect: Dialect::V1_0, is_open: false };
        Self { id: String::new(), verdict, only_events: false, compat: None, may_be_alias: false }
    }
}

impl Binding for JsonRpc {
    fn learn(&mut self, request: &Incoming<'_, '_>, verdict: Detected, envelope: &Envelope<'_>) {
        // A request that is refused before its method is known is answered as JSON-RPC has it, whatever the default dialect is.
        let is_read = !envelope.method.is_empty();
        if is_read
            && verdict.dialect.is_compat_rpc()
            && let Some(dialect) = compat::of(verdict.dialect)
        {
            let mut compat = CompatBinding::call(dialect);
            compat.learn(request, verdict, envelope);
            self.compat = Some(Box::new(compat));
            return;
        }
        self.compat = None;
        self.verdict = verdict;
        self.id = envelope.id.to_owned();
        self.only_events = only_events(verdict.dialect, &envelope.method, request.head.headers);
    }

    fn check(&mut self, request: &Incoming<'_, '_>) -> Result<(), Rejection> {
        Ok(check_content_type(&request.head)?)
    }

    fn body_bytes_max(&self, request: &Incoming<'_, '_>) -> Option<usize> {
        Some(request.shared.limits.body_bytes_max)
    }

    /// On `/a2a` a body that is too large is an invalid request, answered with HTTP 200: clients of that path read the error of
    /// a JSON-RPC reply and nothing of any other. On the other paths of JSON-RPC it is HTTP 413.
    fn unread(&self, request: &Incoming<'_, '_>, error: ProtocolError) -> Rejection {
        let is_a2a = request.head.uri.path().trim_end_matches('/').ends_with("/a2a");
        match error {
            ProtocolError::TooLarge { bytes_max, .. } if is_a2a => {
                ProtocolError::InvalidRequest { reason: format!("body exceeds {bytes_max} bytes") }.into()
            }
            error => error.into(),
        }
    }

    fn open<'b>(&self, body: &'b [u8]) -> Result<Envelope<'b>, (ProtocolError, String)> {
        Envelope::parse(body)
    }

    fn open_quickly<'b>(&self, body: &'b [u8]) -> Option<Envelope<'b>> {
        Envelope::assume(body)
    }

    fn decode(
        &mut self,
        request: &Incoming<'_, '_>,
        envelope: &Envelope<'_>,
        body: &Bytes,
    ) -> Result<Decoded, Rejection> {
        if let Some(compat) = &mut self.compat {
            return compat.decode(request, envelope, body);
        }
        let limits = &request.shared.decode_limits;
        let decode = if self.verdict.dialect == Dialect::V1_0 { v1_0::decode_call } else { v0_3::rpc::decode_call };
        let decoded = decode(&envelope.method, envelope.params, limits)?;
        self.may_be_alias = self.verdict.is_open && task_of(&decoded.request).is_some();
        Ok(decoded)
    }

    fn set_caller(&mut self, caller: &mut Caller) {
        if let Some(compat) = &mut self.compat {
            compat.set_caller(caller);
        }
    }

    fn call_agent(&mut self) -> Option<CallAgent> {
        if self.may_be_alias {
            return Some(Box::new(|agent, caller, request| ask_for_task(agent, caller, request, First::Id)));
        }
        self.compat.as_mut()?.call_agent()
    }

    fn reply(&mut self, agent: &Mounted, reply: Reply) -> Result<Response<ReplyBody>, Rejection> {
        if let Some(compat) = &mut self.compat {
            return compat.reply(agent, reply);
        }
        let Detected { dialect, is_open } = self.verdict;
        let (dialect, reply) = match reply {
            Reply::Task(view) if is_open => {
                let (dialect, view) = for_open_reader(view);
                (dialect, Reply::Task(view))
            }
            reply => (dialect, reply),
        };
        Ok(rpc_result(&self.id, |body| match &reply {
            Reply::Deleted => body.extend_from_slice(b"null"),
            Reply::Card(card) => {
                body.extend_from_slice(&cards::encode_reply(dialect, card, &agent.interfaces, agent.signer.as_ref()));
            }
            _ => dialect.write_reply(&reply, body),
        }))
    }

    async fn stream(
        &mut self,
        shared: &Shared,
        agent: &Mounted,
        updates: UpdateStream,
    ) -> Result<Response<ReplyBody>, Rejection> {
        if let Some(compat) = &mut self.compat {
            return compat.events(shared, agent, updates);
        }
        let framing = Framing::JsonRpc { id: std::mem::take(&mut self.id) };
        Ok(events(SseBody::new(&shared.limits, shared.metrics.clone(), updates, framing, self.verdict.dialect)))
    }

    fn error(&self, error: &ProtocolError) -> Response<ReplyBody> {
        match &self.compat {
            Some(compat) => compat.error(error),
            None => rpc_error(self.verdict.dialect, error, &self.id, self.only_events),
        }
    }

    fn marks(&self, _: bool) -> bool {
        self.compat.is_none()
    }
}
