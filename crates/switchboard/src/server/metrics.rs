//! What is counted at the edge, and the functions that write it, and what others count, as Prometheus' text form. `exposition` puts the
//! page `/metrics` together. Every label has a closed set of values: the operations, the outcomes, the bindings, the reasons of
//! refusals, and the agents that this server was built with. Every family is described in `docs/metrics.md`, which a test compares
//! with this.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use switchboard_core::call::Request;
use switchboard_core::model::Timestamp;
use switchboard_engine::runs::{Histogram, MICROS_BOUNDS};

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
    /// The secret of an organization.
    OrgSecret,
    /// A call that a program makes which an agent has started.
    AgentCall,
    /// It could not be told, or there is none of that name.
    Unknown,
}

impl Operation {
    pub(crate) const ALL: [Self; 19] = [
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
        Self::OrgSecret,
        Self::AgentCall,
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
            Self::OrgSecret => "OrgSecret",
            Self::AgentCall => "AgentCall",
            Self::Unknown => "unknown",
        }
    }
}

/// The way a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BindingKind {
    JsonRpc,
    HttpJson,
    Grpc,
    /// Cards, downloads, and what is for operators.
    Http,
}

impl BindingKind {
    pub(crate) const ALL: [Self; 4] = [Self::JsonRpc, Self::HttpJson, Self::Grpc, Self::Http];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::JsonRpc => "jsonrpc",
            Self::HttpJson => "http_json",
            Self::Grpc => "grpc",
            Self::Http => "http",
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
pub(crate) const REASONS: [&str; 21] = [
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
    "RESOURCE_EXHAUSTED",
    "GRPC",
    "HTTP",
];

type Requests = [[AtomicU64; Outcome::WORDS.len()]; Operation::ALL.len()];

/// What others count: appends whole families.
pub(crate) type MetricsSource = Arc<dyn Fn(&mut String) + Send + Sync>;

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
    /// Connections whose socket took no more bytes for too long.
    pub(crate) unread_sockets: AtomicU64,
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
            unread_sockets: AtomicU64::default(),
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

    /// A connection ended because its client did not read.
    pub(crate) fn was_not_read(&self) {
        add(&self.unread_sockets);
    }

    pub(crate) fn shook_hands(&self, how: Handshake) {
        add(&self.handshakes[how as usize]);
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

pub(crate) fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP switchboard_{name} {help}\n# TYPE switchboard_{name} {kind}");
}

pub(crate) fn single(out: &mut String, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
    family(out, name, kind, help);
    let _ = writeln!(out, "switchboard_{name} {value}");
}

pub(crate) fn sample(out: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    let _ = writeln!(out, "switchboard_{name}{{{}}} {value}", written(labels));
}

/// Series without an observation are left out: most combinations of labels never occur.
pub(crate) fn histogram(out: &mut String, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
    let counts = histogram.buckets();
    if counts.iter().any(|count| *count > 0) {
        buckets(out, name, &written(labels), &in_seconds(&MICROS_BOUNDS), &counts, histogram.seconds_sum());
    }
}

/// Bounds in microseconds, as Prometheus wants them.
pub(crate) fn in_seconds(micros_bounds: &[u64]) -> Vec<f64> {
    micros_bounds.iter().map(|bound| *bound as f64 / 1e6).collect()
}

/// `counts` has one more than there are bounds, for what is above all of them.
pub(crate) fn buckets(out: &mut String, name: &str, labels: &str, bounds: &[f64], counts: &[u64], values_sum: f64) {
    let comma = if labels.is_empty() { "" } else { "," };
    let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let mut sum = 0;
    for (bound, count) in bounds.iter().zip(counts) {
        sum += count;
        let _ = writeln!(out, "switchboard_{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {sum}");
    }
    sum += counts.last().copied().unwrap_or_default();
    let _ = writeln!(out, "switchboard_{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {sum}");
    let _ = writeln!(out, "switchboard_{name}_sum{braces} {values_sum}");
    let _ = writeln!(out, "switchboard_{name}_count{braces} {sum}");
}

/// Labels as they stand between braces, their values escaped as the format asks.
fn written(labels: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in labels {
        let comma = if out.is_empty() { "" } else { "," };
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{comma}{name}=\"{value}\"");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{BindingKind, Operation, REASONS};

    #[test]
    fn every_label_has_a_place_of_its_own() {
        assert!(Operation::ALL.iter().enumerate().all(|(place, operation)| *operation as usize == place));
        assert!(BindingKind::ALL.iter().enumerate().all(|(place, binding)| *binding as usize == place));
    }

    #[test]
    fn every_refusal_of_the_protocol_is_counted_under_its_reason() {
        let page = include_str!("../../../switchboard-core/src/dialect/codes.rs");
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
