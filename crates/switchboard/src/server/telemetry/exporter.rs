//! Sends spans and metrics to the collector, beside all other work: one loop for each. A request that fails in passing is tried
//! again a few times; after that its content is given up and counted. When the server stops in order, what is left is sent once.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, StatusCode, Uri};
use switchboard_core::call::BoxFuture;
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::{Clock, Ids, Tracer};
use switchboard_engine::supervisor::{Kind, Supervisor};
use switchboard_engine::system::{RandomIds, SystemClock, now_ns};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::Otlp;
use super::encode::{self, Period, Resource};
use super::read_metrics::read;
use super::spans::SpanQueue;
use crate::outbound::{AddressPolicy, Client, RequestLimits, retry_after_ms};
use crate::server::metrics::{family, read as count_of, sample, single};
use crate::server::serve_error::ServeError;

/// How often one request is sent at most.
const OTLP_TRIES_MAX: u32 = 4;
/// The pause before the second try; each one after it is twice as long.
const OTLP_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that a collector can ask for.
const OTLP_PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long one request may take.
const OTLP_REQUEST_MAX: Duration = Duration::from_secs(10);
/// How much of an answer is read.
const OTLP_ANSWER_BYTES_MAX: u64 = 64 << 10;
/// How long sending what is left may delay the end of the server.
const OTLP_FLUSH_MAX: Duration = Duration::from_secs(3);

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// The metrics of a server.
pub(crate) trait MetricsPage: Send + Sync {
    /// What `/metrics` says, without the endpoints of webhooks.
    fn page(&self) -> BoxFuture<'_, String>;

    /// When the server began to count.
    fn counted_from(&self) -> Timestamp;
}

/// The exporter of a server.
pub(crate) struct Telemetry {
    settings: Otlp,
    client: Client,
    resource: Resource,
    queue: Arc<SpanQueue>,
    spans_sent: AtomicU64,
    /// Spans of requests that the collector did not take.
    spans_lost: AtomicU64,
    /// Requests that were given up: traces, metrics.
    failures: [AtomicU64; 2],
    /// Whether the last request failed, so that the log says it once.
    is_failing: [std::sync::atomic::AtomicBool; 2],
    /// Where the metrics are read, once the server has an address.
    metrics: OnceLock<Weak<dyn MetricsPage>>,
}

#[derive(Clone, Copy)]
enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    const WORDS: [&'static str; 2] = ["traces", "metrics"];
}

/// Why a request was not taken.
enum Refused {
    /// It may be taken later, but not before this pause.
    Later(String, Option<Duration>),
    Never(String),
}

impl Telemetry {
    /// # Errors
    /// When no client can be made.
    pub(crate) fn new(settings: Otlp) -> Result<Arc<Self>, ServeError> {
        // The operator has named the URL, which is mostly a private one.
        let client = Client::builder().policy(AddressPolicy::any()).build();
        let client = client.map_err(|error| ServeError::new(error.to_string()))?;
        let instance_id = RandomIds.uuid(SystemClock.now()).to_string();
        Ok(Arc::new(Self {
            resource: Resource { service_name: settings.service_name.clone(), instance_id },
            queue: Arc::new(SpanQueue::new(settings.sample_ratio)),
            settings,
            client,
            spans_sent: AtomicU64::new(0),
            spans_lost: AtomicU64::new(0),
            failures: Default::default(),
            is_failing: Default::default(),
            metrics: OnceLock::new(),
        }))
    }

    pub(crate) fn tracer(&self) -> Arc<dyn Tracer> {
        self.queue.clone()
    }

    /// Starts the loop that sends spans.
    pub(crate) fn start(self: &Arc<Self>, supervisor: &Supervisor) {
        let telemetry = self.clone();
        supervisor.spawn(Kind::Sweep, async move {
            loop {
                telemetry.queue.wait().await;
                telemetry.send_spans(OTLP_TRIES_MAX).await;
            }
        });
    }

    /// Starts the loop that sends the metrics of a server.
    pub(crate) fn start_metrics(self: &Arc<Self>, metrics: Weak<dyn MetricsPage>, supervisor: &Supervisor) {
        if self.metrics.set(metrics).is_err() {
            return;
        }
        let telemetry = self.clone();
        supervisor.spawn(Kind::Sweep, async move {
            let mut ticks = interval(telemetry.settings.interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            // The first one is at once, when nothing was counted yet.
            ticks.tick().await;
            loop {
                ticks.tick().await;
                telemetry.send_metrics(OTLP_TRIES_MAX).await;
            }
        });
    }

    /// Sends what is left, once. Called when nothing runs any more.
    pub(crate) async fn flush(&self) {
        let sending = async {
            while self.queue.len() > 0 && self.send_spans(1).await {}
            self.send_metrics(1).await;
        };
        if timeout(OTLP_FLUSH_MAX, sending).await.is_err() {
            tracing::warn!(spans = self.queue.len(), "the last traces and metrics could not be sent in time");
        }
    }

    /// Sends the oldest spans; false if they were not taken.
    async fn send_spans(&self, tries_max: u32) -> bool {
        let batch = self.queue.take();
        let count = batch.spans.len() as u64;
        let body = encode::traces(&self.resource, &batch.spans);
        let is_taken = self.send(Signal::Traces, body, tries_max).await;
        batch.end();
        (if is_taken { &self.spans_sent } else { &self.spans_lost }).fetch_add(count, Relaxed);
        is_taken
    }

    async fn send_metrics(&self, tries_max: u32) {
        let Some(metrics) = self.metrics.get().and_then(Weak::upgrade) else { return };
        let page = metrics.page().await;
        let began_ns = u64::try_from(metrics.counted_from().as_ms()).unwrap_or_default().saturating_mul(1_000_000);
        drop(metrics);
        let body = encode::metrics(&self.resource, &read(&page), Period { began_ns, now_ns: now_ns() });
        self.send(Signal::Metrics, body, tries_max).await;
    }

    /// Sends one request until it is taken, it is known that it will not be, or it was tried often enough.
    async fn send(&self, signal: Signal, body: Vec<u8>, tries_max: u32) -> bool {
        let body = Bytes::from(body);
        let url = match signal {
            Signal::Traces => &self.settings.traces,
            Signal::Metrics => &self.settings.metrics,
        };
        let mut pause = OTLP_PAUSE;
        for tries_left in (0..tries_max).rev() {
            let error = match self.post(url, body.clone()).await {
                Ok(()) => {
                    self.note(signal, None);
                    return true;
                }
                Err(Refused::Later(error, asked)) if tries_left > 0 => {
                    self.note(signal, Some(&error));
                    sleep(asked.map_or(pause, |asked| asked.clamp(pause, OTLP_PAUSE_MAX))).await;
                    pause *= 2;
                    continue;
                }
                Err(Refused::Later(error, _) | Refused::Never(error)) => error,
            };
            self.note(signal, Some(&error));
            break;
        }
        self.failures[signal as usize].fetch_add(1, Relaxed);
        false
    }

    async fn post(&self, url: &Uri, body: Bytes) -> Result<(), Refused> {
        let mut request = Request::post(url).header(CONTENT_TYPE, PROTOBUF);
        for (name, value) in &self.settings.headers {
            request = request.header(name, value);
        }
        let request = request.body(body).map_err(|error| Refused::Never(error.to_string()))?;
        let (total, body_bytes_max) = (Some(OTLP_REQUEST_MAX), Some(OTLP_ANSWER_BYTES_MAX));
        let limits = RequestLimits { total, body_bytes_max, ..RequestLimits::default() };
        let sent = self.client.send_repeatable(request, &limits).await;
        let answer = sent.map_err(|error| Refused::Later(error.to_string(), None))?;
        let (status, asked) = (answer.status(), retry_after_ms(answer.headers()).map(Duration::from_millis));
        // Read to its end, so that the connection can be used again.
        let _ = answer.into_body().bytes().await;
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(Refused::Later(format!("the collector answered {status}"), asked)),
            status => Err(Refused::Never(format!("the collector answered {status}"))),
        }
    }

    /// Logs that sending begins to fail, and that it succeeds again.
    fn note(&self, signal: Signal, error: Option<&str>) {
        let was_failing = self.is_failing[signal as usize].swap(error.is_some(), Relaxed);
        let what = Signal::WORDS[signal as usize];
        match error {
            Some(error) if !was_failing => {
                tracing::warn!(
                    what,
                    error,
                    "the collector does not take what is sent; see switchboard_otlp_… in /metrics"
                );
            }
            None if was_failing => tracing::info!(what, "the collector takes what is sent again"),
            _ => {}
        }
    }

    /// What is counted about the export itself.
    pub(crate) fn write_metrics(&self, out: &mut String) {
        single(
            out,
            "otlp_spans_sent_total",
            "counter",
            "Spans that the collector has taken.",
            count_of(&self.spans_sent),
        );
        family(out, "otlp_spans_dropped_total", "counter", "Spans that were not sent, by the reason.");
        sample(out, "otlp_spans_dropped_total", &[("reason", "queue_full")], count_of(&self.queue.dropped));
        sample(out, "otlp_spans_dropped_total", &[("reason", "not_taken")], count_of(&self.spans_lost));
        single(out, "otlp_spans_queued", "gauge", "Spans that wait to be sent.", self.queue.len());
        family(
            out,
            "otlp_failures_total",
            "counter",
            "Requests to the collector that were given up, by their content.",
        );
        for (word, count) in Signal::WORDS.iter().zip(&self.failures) {
            sample(out, "otlp_failures_total", &[("signal", word)], count_of(count));
        }
    }
}
