//! Protocol bindings: how a call travels over HTTP. Each one decodes requests and encodes replies ([`Binding`]); [`begin`] and
//! [`finish`] take a request through it, the same way for all. Bindings know neither the engine nor each other. The
//! dialect of a request is decided in `version`; the `envelope` of JSON-RPC and the events of streams (`sse`) are shared by several.

pub(crate) mod compat;
pub(crate) mod envelope;
#[cfg(feature = "grpc")]
pub(crate) mod grpc;
pub(crate) mod http_json;
pub(crate) mod jsonrpc;
pub(crate) mod sse;
pub(crate) mod version;

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response};
use http_body::Body;
use switchboard_core::call::{BoxFuture, Caller, Reply, Request, UpdateStream};
use switchboard_core::dialect::detect::{DetectError, Detected, Ingress};
use switchboard_core::dialect::json::Decoded;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Dialect;
use switchboard_engine::budget::Charge;
use switchboard_engine::escaped::Escaped;

use self::envelope::Envelope;
use self::version::{decide, spelling};
use super::authentication::Identity;
use super::exchange::authorize::CardReader;
use super::exchange::budgets::BodyHold;
use super::exchange::headers::{A2A_EXTENSIONS, A2A_OUTPUT_MODES, X_A2A_EXTENSIONS};
use super::exchange::request::read_while;
use super::exchange::request_record::Holder;
use super::exchange::request_record::RequestRecord;
use super::exchange::respond::ReplyBody;
use super::metrics::Operation;
use super::shared::{Incoming, Mounted, Shared};

/// One protocol binding, made for one request. What it learns of the request on the way in it keeps for the way out, because the
/// request itself is gone while the agent answers.
pub(crate) trait Binding: Send + Sync {
    /// What the path tells about the version; none where only the body does.
    fn ingress(&self) -> Option<Ingress<'static>> {
        None
    }

    /// Keeps what the answer to this request depends on. Called before anything can answer the request, with what is
    /// known by then.
    fn learn(&mut self, request: &Incoming<'_, '_>, verdict: Detected, envelope: &Envelope<'_>);

    /// Checks verb and headers, once it is known who calls and before the body is read.
    fn check(&mut self, request: &Incoming<'_, '_>) -> Result<(), Rejection>;

    /// How many bytes of a body are read; none if there is no body to read.
    fn body_bytes_max(&self, request: &Incoming<'_, '_>) -> Option<usize>;

    /// Looks at what has come of the body so far; what is refused here is not read any further.
    fn watch(&self, request: &Incoming<'_, '_>, come: &[u8]) -> Result<(), ProtocolError> {
        let _ = (request, come);
        Ok(())
    }

    /// How long the client may take to send its body.
    fn patience(&self, request: &Incoming<'_, '_>) -> Duration {
        Duration::from_secs(u64::from(request.shared.limits.body_read_s_max))
    }

    /// The refusal of a body that was not read.
    fn unread(&self, request: &Incoming<'_, '_>, error: ProtocolError) -> Rejection {
        let _ = request;
        error.into()
    }

    /// Opens the envelope around a call; a refusal comes with the id to answer it under. Without one there is nothing to do.
    fn open<'b>(&self, body: &'b [u8]) -> Result<Envelope<'b>, (ProtocolError, String)> {
        let _ = body;
        Ok(Envelope::NONE)
    }

    /// Opens an envelope without a look at the parameters in it. What comes out holds only if they are read as an object.
    fn open_quickly<'b>(&self, body: &'b [u8]) -> Option<Envelope<'b>> {
        let _ = body;
        None
    }

    /// What is asked for.
    fn decode(
        &mut self,
        request: &Incoming<'_, '_>,
        envelope: &Envelope<'_>,
        body: &Bytes,
    ) -> Result<Decoded, Rejection>;

    /// Changes what the binding has its own rules for.
    fn set_caller(&mut self, caller: &mut Caller) {
        let _ = caller;
    }

    /// What calls the agent, where that takes more than one call.
    fn call_agent(&mut self) -> Option<CallAgent> {
        None
    }

    /// Waits for the agent as long as the client does.
    fn wait<T: Send>(
        &self,
        waiting: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> impl Future<Output = Result<T, Rejection>> + Send {
        async { Ok(waiting.await) }
    }

    /// The answer with a whole reply.
    fn reply(&mut self, agent: &Mounted, reply: Reply) -> Result<Response<ReplyBody>, Rejection>;

    /// The answer with a reply that goes on.
    fn stream(
        &mut self,
        shared: &Shared,
        agent: &Mounted,
        updates: UpdateStream,
    ) -> impl Future<Output = Result<Response<ReplyBody>, Rejection>> + Send;

    /// The answer that refuses a request.
    fn error(&self, error: &ProtocolError) -> Response<ReplyBody>;

    /// Whether the head of an answer says what was agreed ([`PendingCall::mark`]).
    fn marks(&self, refused: bool) -> bool {
        let _ = refused;
        true
    }
}

/// Calls an agent in place of a plain call of its endpoint.
pub(crate) type CallAgent =
    Box<dyn for<'a> FnOnce(&'a Mounted, Caller, Request) -> BoxFuture<'a, Result<Reply, ProtocolError>> + Send>;

/// Why a request goes no further.
pub(crate) enum Rejection {
    Error(ProtocolError),
    /// The binding has an answer of its own.
    Response(Box<Response<ReplyBody>>),
}

impl From<ProtocolError> for Rejection {
    fn from(error: ProtocolError) -> Self {
        Self::Error(error)
    }
}

impl From<Response<ReplyBody>> for Rejection {
    fn from(response: Response<ReplyBody>) -> Self {
        Self::Response(Box::new(response))
    }
}

impl Rejection {
    fn boxed_response(self, binding: &impl Binding) -> Box<Response<ReplyBody>> {
        match self {
            Self::Error(error) => Box::new(binding.error(&error)),
            Self::Response(response) => response,
        }
    }
}

/// The refusal of a request whose sender is not known.
pub(crate) fn refuse(
    mut binding: impl Binding,
    request: &Incoming<'_, '_>,
    error: &ProtocolError,
) -> Response<ReplyBody> {
    learn_spelling(&mut binding, request, Envelope::NONE.id);
    binding.error(error)
}

/// Before it is known what is asked for, refusals are in the dialect that path and headers tell.
fn learn_spelling(binding: &mut impl Binding, request: &Incoming<'_, '_>, id: &str) {
    let dialect = spelling(request, binding.ingress());
    binding.learn(request, Detected { dialect, is_open: false }, &Envelope { id, ..Envelope::NONE });
}

/// Takes a request in: checks its head, reads and decodes its body, and calls the agent. The dialect is decided here, once: before
/// the body is read if the path tells it, and else from the method in the body.
#[expect(clippy::manual_async_fn, reason = "an `async fn` holds each of its arguments twice")]
pub(crate) fn begin<'a, P, B>(
    binding: &mut P,
    request: &Incoming<'a, '_>,
    identity: &Identity,
    body: B,
) -> impl Future<Output = Result<PendingCall<'a>, Box<Response<ReplyBody>>>> + Send
where
    P: Binding,
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: fmt::Display,
{
    async move {
        let mut dialect = None;
        let decide = |binding: &mut P, ingress: Ingress<'_>, envelope: &Envelope<'_>| match decide(request, ingress) {
            Ok(verdict) => {
                binding.learn(request, verdict, envelope);
                Ok(verdict.dialect)
            }
            Err(DetectError { dialect, error }) => {
                binding.learn(request, Detected { dialect, is_open: false }, envelope);
                Err(Box::new(binding.error(&error)))
            }
        };
        if let Some(ingress) = binding.ingress() {
            dialect = Some(decide(binding, ingress, &Envelope::NONE)?);
        }
        let refuse = |binding: &mut P, rejection: Rejection| {
            if dialect.is_none() {
                learn_spelling(binding, request, Envelope::NONE.id);
            }
            rejection.boxed_response(binding)
        };
        if let Err(rejection) = binding.check(request) {
            return Err(refuse(binding, rejection));
        }
        let mut body_charge = None;
        let body = match binding.body_bytes_max(request) {
            None => Bytes::new(),
            Some(bytes_max) => {
                let watch = |come: &[u8]| binding.watch(request, come);
                let patience = binding.patience(request);
                let mut hold = BodyHold::new(&request.shared.budgets, request.head.note);
                let held = |bytes| hold.grow_to(bytes);
                match read_while(request.head.headers, body, bytes_max, patience, watch, held).await {
                    Ok(body) => {
                        body_charge = hold.into_charge();
                        body
                    }
                    Err(error) => {
                        let rejection = binding.unread(request, error);
                        return Err(refuse(binding, rejection));
                    }
                }
            }
        };
        let read = |binding: &mut P, envelope: &Envelope<'_>, is_assumed: bool| {
            let dialect = match dialect {
                Some(dialect) => dialect,
                None => decide(binding, envelope.ingress(), envelope)?,
            };
            if is_assumed && dialect.is_compat_rpc() {
                return Ok(None);
            }
            let decoded = binding.decode(request, envelope, &body);
            decoded.map(|decoded| Some((dialect, decoded))).map_err(|rejection| rejection.boxed_response(binding))
        };
        // A2A itself reads the parameters of every call as an object, which shows that the envelope was right. If anything is wrong,
        // the whole is read again, in order.
        let quickly = binding.open_quickly(&body).and_then(|envelope| read(binding, &envelope, true).ok().flatten());
        let (dialect, decoded) = match quickly {
            Some(read) => read,
            None => match binding.open(&body) {
                Ok(envelope) => read(binding, &envelope, false)?.expect("nothing was assumed"),
                Err((error, id)) => {
                    learn_spelling(binding, request, &id);
                    return Err(Box::new(binding.error(&error)));
                }
            },
        };
        let operation = Operation::of(&decoded.request);
        request.head.note.operation(operation);
        let allowed = request.agent.skill_rules.check(identity, request.proven, &decoded.request);
        let caller = allowed.and_then(|()| request.caller(identity, decoded.tenant.as_deref(), dialect));
        let called = caller.and_then(|mut caller| {
            let card_reader = request.authorize(identity, &caller, &decoded.request)?;
            binding.set_caller(&mut caller);
            let stream = match &decoded.request {
                Request::SendStreamingMessage(_) | Request::SubscribeToTask { .. } => {
                    Some(request.shared.budgets.stream(request.head.note)?)
                }
                _ => None,
            };
            let mut pending = PendingCall::begin(binding, request.agent, operation, caller, decoded.request);
            (pending.body, pending.stream, pending.card_reader) = (body_charge, stream, card_reader);
            Ok(pending)
        });
        called.map_err(|error| Rejection::Error(error).boxed_response(binding))
    }
}

/// Waits for the agent and encodes what it says.
pub(crate) async fn finish<P: Binding>(
    binding: &mut P,
    shared: &Shared,
    agent: &Mounted,
    note: &RequestRecord,
    identity: &Identity,
    pending: &mut PendingCall<'_>,
) -> Response<ReplyBody> {
    let reply = {
        let replying = pin!(pending.reply());
        binding.wait(replying).await
    };
    let mut on_refusal = None;
    let answered = match reply {
        Ok(Ok(Reply::Stream(updates))) => {
            on_refusal = note.stream_audit(shared.operations.as_ref(), &agent.name);
            let updates = shared.authentication.guard(updates, identity, on_refusal.clone());
            binding.stream(shared, agent, updates).await
        }
        Ok(Ok(reply)) => binding.reply(agent, reply),
        Ok(Err(error)) => Err(Rejection::Error(error)),
        Err(rejection) => Err(rejection),
    };
    let answered = answered.and_then(|mut response| {
        response.body_mut().hold(&shared.budgets, note, pending.stream.take(), on_refusal)?;
        Ok(response)
    });
    let refused = answered.is_err();
    let mut response = answered.unwrap_or_else(|rejection| *rejection.boxed_response(binding));
    if binding.marks(refused) {
        pending.mark(&mut response);
    }
    response
}

/// A call that has been handed to its agent. What was asked is no longer held here, so waiting costs little memory.
pub(crate) struct PendingCall<'a> {
    agent: &'a Mounted,
    operation: Operation,
    dialect: Dialect,
    asks_old_for_card: bool,
    /// The extensions that were activated.
    extensions: Vec<String>,
    /// The media types that the agent writes, if the client accepts none of them and is answered all the same.
    output_modes: Option<Box<str>>,
    /// What the body counts, until the agent has been given what it said.
    body: Option<Charge<Holder>>,
    /// The place of a stream among those that are open.
    stream: Option<Charge<Holder>>,
    reply: BoxFuture<'a, Result<Reply, ProtocolError>>,
    /// Who reads the extended card, if rules say what is shown on it.
    card_reader: Option<Box<CardReader>>,
}

impl<'a> PendingCall<'a> {
    fn begin(
        binding: &mut impl Binding,
        agent: &'a Mounted,
        operation: Operation,
        caller: Caller,
        request: Request,
    ) -> Self {
        let (dialect, extensions) = (caller.dialect, caller.extensions.clone());
        let asks_old_for_card = dialect != Dialect::V1_0 && matches!(request, Request::GetExtendedAgentCard);
        let output_modes = unaccepted_modes(agent, dialect, &request);
        let reply = match binding.call_agent() {
            Some(call) => call(agent, caller, request),
            None => agent.endpoint.call(caller, request),
        };
        let (body, stream, card_reader) = (None, None, None);
        Self {
            agent,
            operation,
            dialect,
            asks_old_for_card,
            extensions,
            output_modes,
            body,
            stream,
            reply,
            card_reader,
        }
    }

    /// Waits for the reply, and withholds what must not leave the server. Every binding and every dialect gets its replies
    /// here.
    async fn reply(&mut self) -> Result<Reply, ProtocolError> {
        let reply = &mut self.reply;
        // The first poll gives the agent what was sent. From then on the engine counts what it holds.
        let reply = match poll_fn(|cx| Poll::Ready(reply.as_mut().poll(cx))).await {
            Poll::Ready(reply) => reply,
            Poll::Pending => {
                self.body = None;
                reply.await
            }
        };
        let reply = reply.map(Reply::redacted);
        let reply = reply.map(|reply| match (reply, &self.card_reader) {
            (Reply::Card(card), Some(reader)) => Reply::Card(reader.shown(self.agent.name.as_str(), card)),
            (reply, _) => reply,
        });
        // Before 1.0 there was one error for this, whether the card declared it or not.
        let reply = reply.map_err(|error| match error {
            ProtocolError::UnsupportedOperation { .. } if self.asks_old_for_card => {
                ProtocolError::ExtendedAgentCardNotConfigured
            }
            error => error,
        });
        if let Err(error) = &reply {
            self.output_modes = None;
            if tracing::enabled!(tracing::Level::DEBUG) {
                let (operation, error) = (self.operation.word(), error.to_string());
                tracing::debug!(operation, agent = %self.agent.name, error = %Escaped::new(&error), "call refused");
            }
        }
        reply
    }

    /// Adds to the head of an answer what was agreed: the extensions that were activated, under the name the version has
    /// for them (spec, extensions), and what the agent writes if that is not what the client accepts.
    fn mark(&self, response: &mut Response<ReplyBody>) {
        if !self.extensions.is_empty()
            && let Ok(value) = HeaderValue::from_str(&self.extensions.join(", "))
        {
            let name = if self.dialect == Dialect::V1_0 { A2A_EXTENSIONS } else { X_A2A_EXTENSIONS };
            response.headers_mut().insert(name, value);
        }
        if let Some(value) = self.output_modes.as_deref().and_then(|modes| HeaderValue::from_str(modes).ok()) {
            response.headers_mut().insert(A2A_OUTPUT_MODES, value);
        }
    }
}

/// What an agent writes, if the client of a send accepts none of it. Dialects without output modes have nothing to say.
fn unaccepted_modes(agent: &Mounted, dialect: Dialect, request: &Request) -> Option<Box<str>> {
    let (Request::SendMessage(send) | Request::SendStreamingMessage(send)) = request else { return None };
    if send.accepted_output_modes.is_empty() || !dialect.rules().tells_modes {
        return None;
    }
    let card = agent.endpoint.card();
    (!card.writes_any(&send.accepted_output_modes)).then(|| card.default_output_modes.join(", ").into())
}
