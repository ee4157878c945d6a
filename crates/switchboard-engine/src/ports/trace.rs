//! The port for spans: what took how long, in which trace. Without a tracer nothing is recorded, and a trace that comes with a call
//! is only passed on.

use std::borrow::Cow;
use std::sync::Arc;

use switchboard_core::model::TraceContext;

/// Makes ids of spans and takes the spans that have ended. It must not block: a tracer that cannot keep up drops spans.
pub trait Tracer: Send + Sync {
    /// A trace that begins with a call that came without one. Whether it is recorded is decided here, once for all its spans.
    fn root(&self) -> TraceContext;

    /// The id of a new span.
    fn span_id(&self) -> [u8; 8];

    /// The time now, in nanoseconds since 1970.
    fn now_ns(&self) -> u64;

    /// Takes a span that has ended.
    fn ended(&self, span: EndedSpan);
}

/// What a span has to do with its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work within this process.
    Internal,
    /// The answer to a request from outside.
    Server,
    /// A request to another server.
    Client,
    /// A message whose answer the client does not wait for.
    Producer,
}

/// What is said about a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    Text(Cow<'static, str>),
    Number(i64),
}

impl From<&'static str> for Attribute {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<i64> for Attribute {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Attribute {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

/// One span, after its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSpan {
    /// Its trace and its own id.
    pub context: Arc<TraceContext>,
    /// The span that it belongs under; none for the first of a trace.
    pub parent: Option<[u8; 8]>,
    pub name: &'static str,
    pub kind: SpanKind,
    pub began_ns: u64,
    pub ended_ns: u64,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Why what it stands for did not succeed.
    pub error: Option<Cow<'static, str>>,
}

/// The names of what is said about spans.
pub mod attribute {
    pub const AGENT: &str = "switchboard.agent";
    pub const ATTEMPT: &str = "switchboard.attempt";
    pub const CALLEE: &str = "switchboard.callee";
    pub const COMMIT_EVENTS: &str = "switchboard.commit.events";
    pub const DELIVERY: &str = "switchboard.delivery.id";
    pub const DIALECT: &str = "switchboard.dialect";
    pub const BINDING: &str = "switchboard.binding";
    pub const OPERATION: &str = "switchboard.operation";
    pub const REASON: &str = "switchboard.reason";
    pub const RUN_END: &str = "switchboard.run.end";
    pub const STATE: &str = "switchboard.task.state";
    pub const STATUS: &str = "http.response.status_code";
    pub const TASK: &str = "switchboard.task.id";
    pub const TURN: &str = "switchboard.turn";
}
