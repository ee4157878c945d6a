//! The trace that a request belongs to. It is read once, here: a `traceparent` that follows the grammar continues the trace of the
//! client, everything else begins a new one if traces are recorded, and none otherwise.

use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderValue};
use switchboard_core::dialect::Dialect;
use switchboard_core::model::TraceContext;
use switchboard_engine::ports::Tracer;
use switchboard_engine::ports::trace::{SpanKind, attribute};
use switchboard_engine::spans::OpenSpan;

use crate::server::exchange::headers::{TRACEPARENT, TRACESTATE};
use crate::server::exchange::refused::Refused;
use crate::server::metrics::{Operation, Outcome};

pub(crate) struct RequestTrace {
    /// What the request causes belongs here: under its span, or where the client said.
    context: Arc<TraceContext>,
    /// Only if the trace is recorded.
    span: Option<Box<OpenSpan>>,
    dialect: OnceLock<Dialect>,
}

/// What is known about a request when it is answered.
pub(crate) struct SpanEnd {
    pub(crate) operation: Operation,
    pub(crate) agent: String,
    pub(crate) binding: &'static str,
    pub(crate) refused: Option<Refused>,
    pub(crate) status: u16,
}

impl RequestTrace {
    pub(crate) fn begin(tracer: Option<&Arc<dyn Tracer>>, headers: &HeaderMap) -> Option<Box<Self>> {
        let (context, span) = match (read(headers), tracer) {
            (Some(context), Some(tracer)) => {
                let span = OpenSpan::begin(tracer, &context, SpanKind::Server, "request");
                (context, span)
            }
            (None, Some(tracer)) => {
                let context = tracer.root();
                let span = OpenSpan::begin_trace(tracer, &context, SpanKind::Server, "request");
                (context, span)
            }
            (Some(context), None) => (context, None),
            (None, None) => return None,
        };
        let context = span.as_ref().map_or_else(|| Arc::new(context), |span| span.context().clone());
        Some(Box::new(Self { context, span, dialect: OnceLock::new() }))
    }

    /// The place that a call in this dialect belongs to.
    pub(crate) fn of_call(&self, dialect: Dialect) -> Arc<TraceContext> {
        let _ = self.dialect.set(dialect);
        self.context.clone()
    }

    /// The id of the trace, for logs.
    pub(crate) fn id(&self) -> String {
        self.context.trace_id_text()
    }

    pub(crate) fn end(self, end: SpanEnd) {
        let Some(mut span) = self.span else { return };
        let is_noise = matches!(end.operation, Operation::Probe | Operation::Metrics | Operation::AgentCall);
        if is_noise && span.is_first() {
            return span.discard();
        }
        span.rename(end.operation.word());
        span.says(attribute::OPERATION, end.operation.word());
        span.says(attribute::BINDING, end.binding);
        span.says(attribute::STATUS, u32::from(end.status));
        if !end.agent.is_empty() {
            span.says(attribute::AGENT, end.agent);
        }
        if let Some(dialect) = self.dialect.get() {
            span.says(attribute::DIALECT, dialect.name());
        }
        if let Some(refused) = end.refused {
            span.says(attribute::REASON, refused.reason);
            // The mistake of a client is no error of this server.
            if refused.outcome == Outcome::Failed {
                span.fails(refused.reason);
            }
        }
    }
}

/// The trace that the headers name, if they name exactly one and follow the grammar.
fn read(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none())?;
    let states = headers.get_all(TRACESTATE).iter().map(HeaderValue::as_bytes);
    Some(TraceContext::parse(parent.as_bytes())?.with_state(states))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::read;

    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn one_trace_is_read_with_all_lines_of_its_state() {
        let mut headers = HeaderMap::new();
        headers.append("tracestate", HeaderValue::from_static("a=1"));
        assert_eq!(read(&headers), None, "a state alone is no trace");
        headers.append("traceparent", HeaderValue::from_static(TRACE));
        headers.append("tracestate", HeaderValue::from_static("b=2"));
        let context = read(&headers).unwrap();
        assert_eq!((context.trace_parent().as_str(), context.trace_state()), (TRACE, Some("a=1,b=2")));
        headers.append("traceparent", HeaderValue::from_static(TRACE));
        assert_eq!(read(&headers), None, "which of two it belongs to cannot be told");
    }
}
