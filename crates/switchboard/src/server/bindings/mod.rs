//! What all bindings do with a decoded request: say who calls, note what is asked, call the agent.

pub(crate) mod compat;
pub(crate) mod envelope;
#[cfg(feature = "grpc")]
pub(crate) mod grpc;
pub(crate) mod http_json;
pub(crate) mod jsonrpc;
pub(crate) mod sse;

use http::{HeaderMap, HeaderValue, Response, header};
use switchboard_core::call::{BoxFuture, Caller, Reply, Request};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Dialect;
use switchboard_engine::escaped::Escaped;

use crate::server::edge::body::ReplyBody;
use crate::server::edge::header_names::{A2A_EXTENSIONS, A2A_OUTPUT_MODES, X_A2A_EXTENSIONS};
use crate::server::edge::note::Note;
use crate::server::edge::shared::Mounted;
use crate::server::operator::metrics::Operation;

/// A call that has been handed to its agent. What was asked is no longer held here, so waiting costs little room.
pub(crate) struct Calling<'a> {
    agent: &'a Mounted,
    operation: Operation,
    asks_old_for_card: bool,
    /// The extensions that were activated.
    extensions: Vec<String>,
    /// The media types that the agent writes, if the client accepts none of them and is answered all the same.
    output_modes: Option<Box<str>>,
    reply: BoxFuture<'a, Result<Reply, ProtocolError>>,
}

impl<'a> Calling<'a> {
    pub(crate) fn begin(note: &Note, agent: &'a Mounted, caller: Caller, request: Request) -> Self {
        let (operation, extensions) = (Operation::of(&request), caller.extensions.clone());
        note.operation(operation);
        let asks_old_for_card = caller.dialect != Dialect::V1_0 && matches!(request, Request::GetExtendedAgentCard);
        let output_modes = unaccepted_modes(agent, caller.dialect, &request);
        let reply = agent.endpoint.call(caller, request);
        Self { agent, operation, asks_old_for_card, extensions, output_modes, reply }
    }

    /// Waits for the reply, and withholds what must not leave the server. Every binding and every dialect gets its replies
    /// here.
    pub(crate) async fn reply(&mut self) -> Result<Reply, ProtocolError> {
        let reply = (&mut self.reply).await.map(Reply::redacted);
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
    pub(crate) fn mark(&self, dialect: Dialect, response: &mut Response<ReplyBody>) {
        if !self.extensions.is_empty()
            && let Ok(value) = HeaderValue::from_str(&self.extensions.join(", "))
        {
            let name = if dialect == Dialect::V1_0 { A2A_EXTENSIONS } else { X_A2A_EXTENSIONS };
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

/// Whether a body says it is JSON. One that says nothing is believed; a form or plain text is not, which also keeps
/// pages that may not call from posting without asking first.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), ProtocolError> {
    let Some(value) = headers.get(header::CONTENT_TYPE).filter(|value| *value != "application/json") else {
        return Ok(());
    };
    let value = value.to_str().unwrap_or("?");
    let bare = value.split(';').next().unwrap_or_default().trim();
    if ["application/json", "application/a2a+json"].iter().any(|json| bare.eq_ignore_ascii_case(json)) {
        return Ok(());
    }
    let reason = format!("Content-Type {bare:.100} is not supported; send application/json");
    Err(ProtocolError::ContentTypeNotSupported { reason })
}
