//! What both HTTP bindings do with a decoded request: say who calls, call the agent, count it.

use http::{HeaderMap, HeaderValue, Response, header};
use switchboard_core::call::{BoxFuture, Caller, Reply, Request};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Dialect;

use super::body::ReplyBody;
use super::context::{Mounted, Shared};
use super::metrics::Outcome;
use super::names::A2A_EXTENSIONS;
use super::respond::outcome;

/// A call that has been handed to its agent. What was asked is no longer held here, so waiting costs little room.
pub(crate) struct Calling<'a> {
    agent: &'a Mounted,
    operation: &'static str,
    pub(crate) dialect: Dialect,
    /// The extensions that were activated.
    pub(crate) extensions: Vec<String>,
    reply: BoxFuture<'a, Result<Reply, ProtocolError>>,
}

impl<'a> Calling<'a> {
    pub(crate) fn begin(agent: &'a Mounted, caller: Caller, request: Request) -> Self {
        let (operation, dialect, extensions) = (request.operation(), caller.dialect, caller.extensions.clone());
        Self { agent, operation, dialect, extensions, reply: agent.endpoint.call(caller, request) }
    }

    /// Waits for the reply and counts how it went.
    pub(crate) async fn reply(&mut self, shared: &Shared) -> Result<Reply, ProtocolError> {
        let reply = (&mut self.reply).await;
        let counted = reply.as_ref().map_or_else(outcome, |_| Outcome::Ok);
        shared.metrics.request(self.operation, counted);
        if let Err(error) = &reply {
            tracing::debug!(operation = self.operation, agent = %self.agent.name, %error, "request refused");
        }
        reply
    }
}

/// Spec, extensions: what was activated is said in the answer.
pub(crate) fn echo_extensions(extensions: &[String], response: &mut Response<ReplyBody>) {
    if !extensions.is_empty()
        && let Ok(value) = HeaderValue::from_str(&extensions.join(", "))
    {
        response.headers_mut().insert(A2A_EXTENSIONS, value);
    }
}

/// Whether a body says it is JSON. One that says nothing is believed; a form or plain text is not, which also keeps
/// pages that may not call from posting without asking first.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), ProtocolError> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let value = value.to_str().unwrap_or("?");
    let bare = value.split(';').next().unwrap_or_default().trim();
    if ["application/json", "application/a2a+json"].iter().any(|json| bare.eq_ignore_ascii_case(json)) {
        return Ok(());
    }
    let reason = format!("Content-Type {bare:.100} is not supported; send application/json");
    Err(ProtocolError::ContentTypeNotSupported { reason })
}
