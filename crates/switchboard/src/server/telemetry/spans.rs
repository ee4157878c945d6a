//! Where spans are made and wait to be sent. A span that finds the queue full is dropped and counted: nothing waits for a collector.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_core::model::TraceContext;
use switchboard_engine::ports::Tracer;
use switchboard_engine::ports::trace::EndedSpan;
use switchboard_engine::system::now_ns;
use tokio::sync::Notify;

use crate::random;

/// Spans that wait to be sent.
pub(super) const OTLP_SPANS_QUEUED_MAX: usize = 8_192;
/// Spans in one request.
pub(super) const OTLP_SPANS_BATCH_MAX: usize = 512;
/// How long a span waits for others to be sent with it.
const OTLP_SPANS_DELAY: Duration = Duration::from_secs(1);

/// Makes the ids of spans and collects those that have ended.
pub(super) struct SpanQueue {
    spans: Mutex<VecDeque<EndedSpan>>,
    /// Notified when there is a first span, and when there are enough for a request.
    due: Notify,
    /// Traces that begin here are recorded if the lower half of their id is below this.
    sampled_below: u64,
    samples_all: bool,
    pub(super) dropped: AtomicU64,
}

impl SpanQueue {
    /// `ratio` of the traces that begin here are recorded.
    pub(super) fn new(ratio: f64) -> Self {
        Self {
            spans: Mutex::default(),
            due: Notify::new(),
            // The cast saturates.
            sampled_below: (ratio * u64::MAX as f64) as u64,
            samples_all: ratio >= 1.0,
            dropped: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<EndedSpan>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Waits until there are enough spans for a request, or the first of them has waited long enough.
    pub(super) async fn wait(&self) {
        while self.len() == 0 {
            self.due.notified().await;
        }
        let is_enough = async {
            while self.len() < OTLP_SPANS_BATCH_MAX {
                self.due.notified().await;
            }
        };
        let _ = tokio::time::timeout(OTLP_SPANS_DELAY, is_enough).await;
    }

    /// Takes the oldest spans.
    pub(super) fn take(&self) -> Batch<'_> {
        let mut spans = self.lock();
        let count = spans.len().min(OTLP_SPANS_BATCH_MAX);
        Batch { queue: self, spans: spans.drain(..count).collect() }
    }
}

/// Spans on their way. If whatever sends them is dropped meanwhile, as when the server stops, they are put back.
pub(super) struct Batch<'a> {
    queue: &'a SpanQueue,
    pub(super) spans: Vec<EndedSpan>,
}

impl Batch<'_> {
    /// The spans were sent, or are given up.
    pub(super) fn end(mut self) {
        self.spans.clear();
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let mut queued = self.queue.lock();
        for span in self.spans.drain(..).rev() {
            queued.push_front(span);
        }
        let excess = queued.len().saturating_sub(OTLP_SPANS_QUEUED_MAX);
        queued.drain(..excess);
        self.queue.dropped.fetch_add(excess as u64, Relaxed);
    }
}

impl Tracer for SpanQueue {
    fn root(&self) -> TraceContext {
        loop {
            let (trace_id, span_id): ([u8; 16], [u8; 8]) = (random::draw(), random::draw());
            let lower = u64::from_be_bytes(trace_id[8..].try_into().unwrap_or_default());
            let is_sampled = self.samples_all || lower < self.sampled_below;
            // An id of zeros stands for none, and is drawn about never.
            if let Some(context) = TraceContext::new(trace_id, span_id, is_sampled) {
                return context;
            }
        }
    }

    fn span_id(&self) -> [u8; 8] {
        loop {
            let id = random::draw();
            if id != [0; 8] {
                return id;
            }
        }
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn ended(&self, span: EndedSpan) {
        let mut spans = self.lock();
        if spans.len() >= OTLP_SPANS_QUEUED_MAX {
            drop(spans);
            self.dropped.fetch_add(1, Relaxed);
            return;
        }
        spans.push_back(span);
        let count = spans.len();
        drop(spans);
        if count == 1 || count == OTLP_SPANS_BATCH_MAX {
            self.due.notify_one();
        }
    }
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;
