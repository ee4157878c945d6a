//! The queue of spans: bounded, in order, and nothing lost that was on its way when the server stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use switchboard_engine::ports::Tracer;
use switchboard_engine::ports::trace::SpanKind;
use switchboard_engine::spans::OpenSpan;

use super::{OTLP_SPANS_BATCH_MAX, OTLP_SPANS_QUEUED_MAX, SpanQueue};

fn end_spans(queue: &Arc<SpanQueue>, count: usize) {
    let tracer: Arc<dyn Tracer> = queue.clone();
    let root = queue.root();
    for _ in 0..count {
        drop(OpenSpan::begin(&tracer, &root, SpanKind::Internal, "test"));
    }
}

#[test]
fn a_full_queue_drops_what_comes_and_counts_it() {
    let queue = Arc::new(SpanQueue::new(1.0));
    end_spans(&queue, OTLP_SPANS_QUEUED_MAX + 3);
    assert_eq!((queue.len(), queue.dropped.load(Relaxed)), (OTLP_SPANS_QUEUED_MAX, 3));
}

#[test]
fn spans_that_were_on_their_way_are_put_back_in_order() {
    let queue = Arc::new(SpanQueue::new(1.0));
    end_spans(&queue, OTLP_SPANS_BATCH_MAX + 1);
    let first = queue.lock()[0].clone();
    let batch = queue.take();
    assert_eq!((batch.spans.len(), queue.len()), (OTLP_SPANS_BATCH_MAX, 1));
    drop(batch);
    assert_eq!((queue.len(), queue.lock()[0].clone()), (OTLP_SPANS_BATCH_MAX + 1, first));
    queue.take().end();
    assert_eq!(queue.len(), 1);
}

#[test]
fn spans_that_are_put_back_into_a_full_queue_take_no_more_room() {
    let queue = Arc::new(SpanQueue::new(1.0));
    end_spans(&queue, OTLP_SPANS_BATCH_MAX);
    let batch = queue.take();
    end_spans(&queue, OTLP_SPANS_QUEUED_MAX);
    drop(batch);
    assert_eq!((queue.len(), queue.dropped.load(Relaxed)), (OTLP_SPANS_QUEUED_MAX, OTLP_SPANS_BATCH_MAX as u64));
}

#[test]
fn as_many_traces_begin_recorded_as_the_ratio_says() {
    let recorded = |ratio| {
        let queue = SpanQueue::new(ratio);
        (0..4_000).filter(|_| queue.root().is_sampled()).count()
    };
    assert_eq!((recorded(0.0), recorded(1.0)), (0, 4_000));
    assert!((600..1_400).contains(&recorded(0.25)), "a quarter of them");
}

#[tokio::test(start_paused = true)]
async fn a_span_waits_for_others_but_not_for_long() {
    let queue = Arc::new(SpanQueue::new(1.0));
    end_spans(&queue, 1);
    let began = tokio::time::Instant::now();
    queue.wait().await;
    assert_eq!(began.elapsed(), super::OTLP_SPANS_DELAY);
    end_spans(&queue, OTLP_SPANS_BATCH_MAX);
    let began = tokio::time::Instant::now();
    queue.wait().await;
    assert_eq!(began.elapsed(), std::time::Duration::ZERO, "there are enough for a request");
}
