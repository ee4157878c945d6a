//! The outbox of a database that no server has open: the same questions, the same answers, no socket and no loops.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use switchboard_core::dialect::Dialect;
use switchboard_core::error::ProtocolError;
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent};

use crate::server::exchange::headers::PresentHeaders;
use crate::server::exchange::request::Head;
use crate::server::exchange::request_record::RequestRecord;
use crate::server::exchange::respond::{JSON, http_error};
use crate::server::host::Host;
use crate::server::operator::outbox::{self, OutboxPath};
use crate::server::ports::Operations;
use crate::server::serve_error::ServeError;
use crate::server::uri::segments;

/// The outbox in a SQLite database, while no server uses it. A process that may read the file acts as its operator.
pub struct OfflineOutbox {
    operations: Arc<dyn Operations>,
    /// Who acts, for the audit log.
    who: String,
}

impl fmt::Debug for OfflineOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfflineOutbox").finish_non_exhaustive()
    }
}

impl OfflineOutbox {
    /// Takes the database until this is dropped.
    ///
    /// # Errors
    /// When a server has it open, or it cannot be read or written.
    pub fn open(database: impl AsRef<Path>) -> Result<Self, ServeError> {
        Ok(Self { operations: Host::offline(database.as_ref())?, who: String::new() })
    }

    /// Who acts, as the audit log is to name them.
    #[must_use]
    pub fn acting_as(mut self, who: impl Into<String>) -> Self {
        self.who = who.into();
        self
    }

    /// Answers a request to `/api/outbox` as a running server would.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let note = RequestRecord::new(None);
        let present = PresentHeaders::of(&parts.headers);
        let head = Head { method: &parts.method, uri: &parts.uri, headers: &parts.headers, present, note: &note };
        let response = match place_of(parts.uri.path()) {
            Some(place) => {
                let record = |entry| {
                    let (event, principal) = (AuditEvent::Offline, self.who.clone());
                    self.operations.record_audit(AuditEntry { event, principal, ..entry });
                };
                outbox::serve(Some(&self.operations.outbox()), &head, place, Full::new(body), &record).await
            }
            None => {
                let method = format!("{:.200}", parts.uri.path());
                http_error(Dialect::V1_0, &ProtocolError::MethodNotFound { method, hint: None }, JSON)
            }
        };
        let (parts, body) = response.into_parts();
        // Such an answer is whole already.
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Response::from_parts(parts, body)
    }
}

fn place_of(path: &str) -> Option<OutboxPath> {
    match segments(path).as_slice() {
        ["api", rest @ ..] => OutboxPath::at(rest),
        _ => None,
    }
}
