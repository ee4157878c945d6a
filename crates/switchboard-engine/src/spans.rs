//! Spans of the engine: runs, calls to others, webhooks and commits. A span is made only if there is a tracer and the trace is
//! recorded; otherwise the trace is passed on as it came.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_core::model::TraceContext;

use crate::ports::trace::{Attribute, EndedSpan, SpanKind, Tracer};

/// How many commits of one record have a span, so that a run that writes much does not crowd out the spans of others.
const COMMIT_SPANS_MAX: u32 = 16;

/// A span that has not ended. It ends when it is dropped.
pub struct OpenSpan {
    tracer: Arc<dyn Tracer>,
    context: Arc<TraceContext>,
    parent: Option<[u8; 8]>,
    name: &'static str,
    kind: SpanKind,
    began_ns: u64,
    attributes: Vec<(&'static str, Attribute)>,
    error: Option<Cow<'static, str>>,
    is_wanted: bool,
}

impl OpenSpan {
    /// Begins a span under a place in a trace; none if the caller does not record that trace.
    #[must_use]
    pub fn begin(
        tracer: &Arc<dyn Tracer>,
        parent: &TraceContext,
        kind: SpanKind,
        name: &'static str,
    ) -> Option<Box<Self>> {
        let is_recorded = parent.is_sampled();
        is_recorded.then(|| Self::new(tracer, parent.under(tracer.span_id()), Some(parent.span_id()), kind, name))
    }

    /// Begins the first span of a trace; none if the caller does not record that trace.
    #[must_use]
    pub fn begin_trace(
        tracer: &Arc<dyn Tracer>,
        context: &TraceContext,
        kind: SpanKind,
        name: &'static str,
    ) -> Option<Box<Self>> {
        context.is_sampled().then(|| Self::new(tracer, context.clone(), None, kind, name))
    }

    fn new(
        tracer: &Arc<dyn Tracer>,
        context: TraceContext,
        parent: Option<[u8; 8]>,
        kind: SpanKind,
        name: &'static str,
    ) -> Box<Self> {
        Box::new(Self {
            tracer: tracer.clone(),
            context: Arc::new(context),
            parent,
            name,
            kind,
            began_ns: tracer.now_ns(),
            attributes: Vec::with_capacity(8),
            error: None,
            is_wanted: true,
        })
    }

    /// The place that work under this span belongs to.
    #[must_use]
    pub fn context(&self) -> &Arc<TraceContext> {
        &self.context
    }

    /// Whether it is the first of its trace.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.parent.is_none()
    }

    /// Gives the span another name, now that more is known.
    pub fn rename(&mut self, name: &'static str) {
        self.name = name;
    }

    /// Says something about the span.
    pub fn says(&mut self, name: &'static str, value: impl Into<Attribute>) {
        self.attributes.push((name, value.into()));
    }

    /// Says that what the span stands for did not succeed.
    pub fn fails(&mut self, error: impl Into<Cow<'static, str>>) {
        self.error = Some(error.into());
    }

    /// Drops the span without telling the tracer of it.
    pub fn discard(mut self) {
        self.is_wanted = false;
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if !self.is_wanted {
            return;
        }
        self.tracer.ended(EndedSpan {
            context: self.context.clone(),
            parent: self.parent,
            name: self.name,
            kind: self.kind,
            began_ns: self.began_ns,
            ended_ns: self.tracer.now_ns(),
            attributes: std::mem::take(&mut self.attributes),
            error: self.error.take(),
        });
    }
}

impl std::fmt::Debug for OpenSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSpan").field("name", &self.name).field("context", &self.context).finish_non_exhaustive()
    }
}

/// The place in a trace that the newest work on a record belongs to.
#[derive(Default)]
pub(crate) struct RecordTrace {
    /// Read before the lock, because most records have no trace.
    is_set: AtomicBool,
    context: Mutex<Option<Arc<TraceContext>>>,
    commit_spans: AtomicU32,
}

impl RecordTrace {
    pub(crate) fn set(&self, context: Option<&Arc<TraceContext>>) {
        if let Some(context) = context {
            *self.context.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.clone());
            self.is_set.store(true, Ordering::Release);
        }
    }

    pub(crate) fn get(&self) -> Option<Arc<TraceContext>> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        self.context.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The span of a commit of the record, for its first few commits.
    pub(crate) fn commit_span(&self, tracer: &Arc<dyn Tracer>) -> Option<Box<OpenSpan>> {
        let parent = self.get()?;
        let is_one_of_the_first = self.commit_spans.fetch_add(1, Ordering::Relaxed) < COMMIT_SPANS_MAX;
        is_one_of_the_first.then(|| OpenSpan::begin(tracer, &parent, SpanKind::Internal, "commit"))?
    }
}
