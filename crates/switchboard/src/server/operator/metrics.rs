//! What is counted at the edge for `/metrics`. The engine and the store count their own; `exposition` writes all of it down.
//! Every label has a closed set of values: the operations, the outcomes, the bindings, the reasons of refusals, and the
//! agents that this server was built with.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use switchboard_core::call::Request;
use switchboard_core::model::Timestamp;
use switchboard_engine::histogram::Histogram;

use crate::server::edge::request_record::BindingKind;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Operation {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    GetExtendedAgentCard,
    GetAgentCard,
    DownloadArtifact,
    /// `/healthz` and `/readyz`.
    Probe,
    Metrics,
    Outbox,
    /// It could not be told, or there is none of that name.
    Unknown,
}

impl Operation {
    pub(crate) const ALL: [Self; 17] = [
        Self::SendMessage,
        Self::SendStreamingMessage,
        Self::GetTask,
        Self::ListTasks,
        Self::CancelTask,
        Self::SubscribeToTask,
        Self::CreatePushConfig,
        Self::GetPushConfig,
        Self::ListPushConfigs,
        Self::DeletePushConfig,
        Self::GetExtendedAgentCard,
        Self::GetAgentCard,
        Self::DownloadArtifact,
        Self::Probe,
        Self::Metrics,
        Self::Outbox,
        Self::Unknown,
    ];

    pub(crate) fn of(request: &Request) -> Self {
        match request {
            Request::SendMessage(_) => Self::SendMessage,
            Request::SendStreamingMessage(_) => Self::SendStreamingMessage,
            Request::GetTask { .. } => Self::GetTask,
            Request::ListTasks(_) => Self::ListTasks,
            Request::CancelTask { .. } => Self::CancelTask,
            Request::SubscribeToTask { .. } => Self::SubscribeToTask,
            Request::CreatePushConfig(_) => Self::CreatePushConfig,
            Request::GetPushConfig { .. } => Self::GetPushConfig,
            Request::ListPushConfigs { .. } => Self::ListPushConfigs,
            Request::DeletePushConfig { .. } => Self::DeletePushConfig,
            Request::GetExtendedAgentCard => Self::GetExtendedAgentCard,
        }
    }

    /// The name in the spec, if it has one there.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::SendMessage => "SendMessage",
            Self::SendStreamingMessage => "SendStreamingMessage",
            Self::GetTask => "GetTask",
            Self::ListTasks => "ListTasks",
            Self::CancelTask => "CancelTask",
            Self::SubscribeToTask => "SubscribeToTask",
            Self::CreatePushConfig => "CreateTaskPushNotificationConfig",
            Self::GetPushConfig => "GetTaskPushNotificationConfig",
            Self::ListPushConfigs => "ListTaskPushNotificationConfigs",
            Self::DeletePushConfig => "DeleteTaskPushNotificationConfig",
            Self::GetExtendedAgentCard => "GetExtendedAgentCard",
            Self::GetAgentCard => "GetAgentCard",
            Self::DownloadArtifact => "DownloadArtifact",
            Self::Probe => "Probe",
            Self::Metrics => "Metrics",
            Self::Outbox => "Outbox",
            Self::Unknown => "unknown",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Outcome {
    Ok,
    /// The client's mistake, or a refusal it was told about.
    Refused,
    /// A failure of the server.
    Failed,
}

impl Outcome {
    pub(crate) const WORDS: [&'static str; 3] = ["ok", "refused", "failed"];
}

/// How a TLS handshake ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Handshake {
    Done,
    Failed,
    /// It did not end in time.
    Late,
    /// The client spoke HTTP without TLS.
    Plain,
}

impl Handshake {
    pub(crate) const WORDS: [&'static str; 4] = ["done", "failed", "late", "plain_http"];
}

/// The reasons of refusals in the protocol's table, then those outside it.
pub(crate) const REASONS: [&str; 20] = [
    "TASK_NOT_FOUND",
    "TASK_NOT_CANCELABLE",
    "PUSH_NOTIFICATION_NOT_SUPPORTED",
    "UNSUPPORTED_OPERATION",
    "CONTENT_TYPE_NOT_SUPPORTED",
    "INVALID_AGENT_RESPONSE",
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    "EXTENSION_SUPPORT_REQUIRED",
    "VERSION_NOT_SUPPORTED",
    "PARSE_ERROR",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "INVALID_PARAMS",
    "INTERNAL_ERROR",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "UNAVAILABLE",
    "PAYLOAD_TOO_LARGE",
    "GRPC",
    "HTTP",
];

type Requests = [[AtomicU64; Outcome::WORDS.len()]; Operation::ALL.len()];

pub(crate) struct Metrics {
    pub(crate) started_at: Timestamp,
    /// Of each agent by its place in the server's list; before them, those of no agent.
    pub(crate) requests: Box<[Requests]>,
    pub(crate) request_seconds: [[Histogram; BindingKind::ALL.len()]; Operation::ALL.len()],
    pub(crate) refusals: [AtomicU64; REASONS.len()],
    pub(crate) streams_opened: AtomicU64,
    pub(crate) streams_closed: AtomicU64,
    pub(crate) encodes: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) handshakes: [AtomicU64; Handshake::WORDS.len()],
}

impl Metrics {
    pub(crate) fn new(agents: usize, started_at: Timestamp) -> Self {
        Self {
            started_at,
            requests: (0..=agents).map(|_| Requests::default()).collect(),
            request_seconds: Default::default(),
            refusals: Default::default(),
            streams_opened: AtomicU64::default(),
            streams_closed: AtomicU64::default(),
            encodes: AtomicU64::default(),
            connections: AtomicU64::default(),
            handshakes: Default::default(),
        }
    }

    /// `place` is one more than that of the agent in the server's list, or zero for none.
    pub(crate) fn request(&self, place: usize, operation: Operation, outcome: Outcome) {
        if let Some(requests) = self.requests.get(place) {
            add(&requests[operation as usize][outcome as usize]);
        }
    }

    /// The head of an answer was ready after this time.
    pub(crate) fn answered_in(&self, operation: Operation, binding: u8, took: Duration) {
        if let Some(histogram) = self.request_seconds[operation as usize].get(usize::from(binding)) {
            histogram.observe(took);
        }
    }

    pub(crate) fn refused(&self, reason: &str) {
        let place = REASONS.iter().position(|known| *known == reason).unwrap_or(REASONS.len() - 1);
        add(&self.refusals[place]);
    }

    pub(crate) fn stream_opened(&self) {
        add(&self.streams_opened);
    }

    pub(crate) fn stream_closed(&self) {
        add(&self.streams_closed);
    }

    /// An update was encoded: once per update and dialect, however many follow.
    pub(crate) fn encoded(&self) {
        add(&self.encodes);
    }

    pub(crate) fn connected(&self) {
        add(&self.connections);
    }

    pub(crate) fn shook_hands(&self, how: Handshake) {
        add(&self.handshakes[how as usize]);
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::{Operation, REASONS};
    use crate::server::edge::request_record::BindingKind;

    #[test]
    fn every_label_has_a_place_of_its_own() {
        assert!(Operation::ALL.iter().enumerate().all(|(place, operation)| *operation as usize == place));
        assert!(BindingKind::ALL.iter().enumerate().all(|(place, binding)| *binding as usize == place));
    }

    #[test]
    fn every_refusal_of_the_protocol_is_counted_under_its_reason() {
        let page = include_str!("../../../../switchboard-core/src/dialect/codes.rs");
        let rows = page.lines().filter(|line| line.contains("row(-"));
        let mut known = 0;
        for row in rows {
            let reason = row.rsplit('"').nth(1).unwrap();
            assert!(reason == "AGENT_FAILED" || REASONS.contains(&reason), "{reason}");
            known += 1;
        }
        assert_eq!(known, REASONS.len() - 2 + 1, "the last two are not the protocol's; a failed agent is an answer");
    }
}
