//! How an answer is marked that refuses its request.

use http::Response;
use switchboard_core::dialect::codes;
use switchboard_core::error::ProtocolError;

use crate::server::metrics::Outcome;

/// A refusal, as the answer that carries it is marked with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    /// The JSON-RPC code; for refusals outside the protocol the HTTP status or gRPC code.
    pub(crate) code: i32,
    pub(crate) reason: &'static str,
    pub(crate) outcome: Outcome,
    /// Whether it is about who asked or how much was asked, and so belongs into the audit log.
    pub(crate) audited: bool,
}

impl Refused {
    /// None for the failure of an agent, which is an answer and no refusal.
    pub(crate) fn of(error: &ProtocolError) -> Option<Self> {
        let codes = codes::of(error);
        let outcome = if codes.http >= 500 { Outcome::Failed } else { Outcome::Refused };
        let audited = is_audited(codes.http);
        let refused = Self { code: codes.jsonrpc, reason: codes.reason, outcome, audited };
        (!matches!(error, ProtocolError::AgentFailed { .. })).then_some(refused)
    }

    /// Marks the answer that refuses a request with this error.
    pub(crate) fn mark<B>(response: &mut Response<B>, error: &ProtocolError) {
        if let Some(refused) = Self::of(error) {
            response.extensions_mut().insert(refused);
        }
    }

    /// Has a marked refusal be in the audit log, whatever it is about.
    pub(crate) fn audit<B>(response: &mut Response<B>) {
        if let Some(refused) = response.extensions_mut().get_mut::<Self>() {
            refused.audited = true;
        }
    }

    /// Takes the mark off an answer. An answer without one is judged by its status.
    pub(crate) fn taken_from<B>(response: &mut Response<B>) -> Option<Self> {
        if !response.extensions().is_empty()
            && let Some(refused) = response.extensions_mut().remove::<Self>()
        {
            return Some(refused);
        }
        let status = response.status();
        let outcome = if status.is_server_error() { Outcome::Failed } else { Outcome::Refused };
        let audited = is_audited(status.as_u16());
        let refused = Self { code: i32::from(status.as_u16()), reason: "HTTP", outcome, audited };
        (status.is_client_error() || status.is_server_error()).then_some(refused)
    }
}

/// Whether a refusal with this status is about who asked or how much was asked: not known, not allowed, a foreign Host or
/// Origin, too often.
fn is_audited(status: u16) -> bool {
    matches!(status, 401 | 403 | 421 | 429)
}
