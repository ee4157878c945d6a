//! A collector of OpenTelemetry: an HTTP server that decodes what it is sent by definitions of its own, and keeps it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prost::Message as _;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// One span, with the name of the service that it is of.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) service: String,
    pub(crate) name: String,
    pub(crate) kind: i32,
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) state: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) error: Option<String>,
}

impl Span {
    pub(crate) fn says(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

/// One metric: its kind, and the values of its series by their labels. Of a histogram the value is the count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metric {
    pub(crate) kind: &'static str,
    pub(crate) series: BTreeMap<String, f64>,
}

#[derive(Default)]
struct Kept {
    spans: Vec<Span>,
    metrics: BTreeMap<String, Metric>,
    /// The heads of all requests.
    heads: Vec<String>,
    /// What the next requests are answered with, in place of 200.
    answers: VecDeque<&'static str>,
}

pub(crate) struct Collector {
    pub(crate) addr: SocketAddr,
    kept: Arc<(Mutex<Kept>, Condvar)>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
        let (addr, kept) = (listener.local_addr().unwrap(), Arc::<(Mutex<Kept>, Condvar)>::default());
        let kept_by = kept.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = kept_by.clone();
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Self { addr, kept }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Answers the next request with this status line and these headers, and keeps nothing of it.
    pub(crate) fn answer_next(&self, answer: &'static str) {
        self.kept.0.lock().unwrap().answers.push_back(answer);
    }

    /// Looks at what has come until there is something to see.
    fn until<T>(&self, what: &str, mut look: impl FnMut(&Kept) -> Option<T>) -> T {
        let (kept, came) = &*self.kept;
        let deadline = Instant::now() + PATIENCE;
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(seen) = look(&kept) {
                return seen;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "never came: {what}\n{:#?}", kept.spans);
            kept = came.wait_timeout(kept, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The first span that this is true of.
    pub(crate) fn span(&self, what: &str, is_it: impl Fn(&Span) -> bool) -> Span {
        self.until(what, |kept| kept.spans.iter().find(|span| is_it(span)).cloned())
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.kept.0.lock().unwrap().spans.clone()
    }

    /// All metrics, once there are any.
    pub(crate) fn metrics(&self) -> BTreeMap<String, Metric> {
        self.until("metrics", |kept| (!kept.metrics.is_empty()).then(|| kept.metrics.clone()))
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.kept.0.lock().unwrap().heads.clone()
    }
}

fn serve(stream: TcpStream, kept: &(Mutex<Kept>, Condvar)) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket has two ends"));
    let mut stream = stream;
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
            head.push_str(&line);
            line.clear();
        }
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let Some(length) = length else { return };
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let mut of_all = kept.0.lock().unwrap();
        let answer = of_all.answers.pop_front();
        if answer.is_none() {
            take(&mut of_all, &head, &body);
        }
        of_all.heads.push(head);
        kept.1.notify_all();
        drop(of_all);
        let answer = answer.unwrap_or("200 OK");
        if stream.write_all(format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n").as_bytes()).is_err() {
            return;
        }
    }
}

fn take(kept: &mut Kept, head: &str, body: &[u8]) {
    let path = head.split(' ').nth(1).unwrap_or_default();
    match path {
        "/v1/traces" => {
            let request = wire::ExportTraces::decode(body).expect("spans are decoded");
            for of_resource in request.resource_spans {
                let service = value_of(&of_resource.resource.unwrap_or_default().attributes, "service.name");
                let spans = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                kept.spans.extend(spans.map(|span| read_span(&service, span)));
            }
        }
        "/v1/metrics" => {
            let request = wire::ExportMetrics::decode(body).expect("metrics are decoded");
            let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
            for metric in scopes.flat_map(|scope| scope.metrics) {
                kept.metrics.insert(metric.name.clone(), read_metric(metric));
            }
        }
        path => panic!("a collector has no path {path}"),
    }
}

fn read_span(service: &str, span: wire::Span) -> Span {
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano && span.start_time_unix_nano > 0, "{span:?}");
    Span {
        service: service.to_owned(),
        name: span.name,
        kind: span.kind,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        state: span.trace_state,
        attributes: span.attributes.iter().map(|pair| (pair.key.clone(), shown(pair))).collect(),
        error: span.status.filter(|status| status.code == 2).map(|status| status.message),
    }
}

fn read_metric(metric: wire::Metric) -> Metric {
    let labels = |attributes: &[wire::KeyValue]| -> String {
        attributes.iter().map(|pair| format!("{}={} ", pair.key, shown(pair))).collect()
    };
    let numbers = |points: Vec<wire::NumberPoint>| {
        points.iter().map(|point| (labels(&point.attributes), point.as_double.unwrap_or_default())).collect()
    };
    match (metric.gauge, metric.sum, metric.histogram) {
        (Some(gauge), None, None) => Metric { kind: "gauge", series: numbers(gauge.data_points) },
        (None, Some(sum), None) => {
            assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
            Metric { kind: "counter", series: numbers(sum.data_points) }
        }
        (None, None, Some(histogram)) => {
            let points = histogram.data_points.iter().map(|point| {
                assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count, "{point:?}");
                assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1, "{point:?}");
                assert!(point.explicit_bounds.is_sorted());
                (labels(&point.attributes), point.count as f64)
            });
            Metric { kind: "histogram", series: points.collect() }
        }
        other => panic!("{}: {other:?}", metric.name),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn value_of(attributes: &[wire::KeyValue], name: &str) -> String {
    attributes.iter().find(|pair| pair.key == name).map(shown).unwrap_or_default()
}

fn shown(pair: &wire::KeyValue) -> String {
    let value = pair.value.clone().unwrap_or_default();
    value.string_value.unwrap_or_else(|| value.int_value.map(|number| number.to_string()).unwrap_or_default())
}

/// The messages of OTLP, as far as a server sends them. A `oneof` is read as fields of which one is there.
mod wire {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ExportTraces {
        #[prost(message, repeated, tag = "1")]
        pub(super) resource_spans: Vec<ResourceSpans>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ResourceSpans {
        #[prost(message, optional, tag = "1")]
        pub(super) resource: Option<Resource>,
        #[prost(message, repeated, tag = "2")]
        pub(super) scope_spans: Vec<ScopeSpans>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Resource {
        #[prost(message, repeated, tag = "1")]
        pub(super) attributes: Vec<KeyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct KeyValue {
        #[prost(string, tag = "1")]
        pub(super) key: String,
        #[prost(message, optional, tag = "2")]
        pub(super) value: Option<AnyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct AnyValue {
        #[prost(string, optional, tag = "1")]
        pub(super) string_value: Option<String>,
        #[prost(int64, optional, tag = "3")]
        pub(super) int_value: Option<i64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ScopeSpans {
        #[prost(message, repeated, tag = "2")]
        pub(super) spans: Vec<Span>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Span {
        #[prost(bytes = "vec", tag = "1")]
        pub(super) trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) span_id: Vec<u8>,
        #[prost(string, tag = "3")]
        pub(super) trace_state: String,
        #[prost(bytes = "vec", tag = "4")]
        pub(super) parent_span_id: Vec<u8>,
        #[prost(string, tag = "5")]
        pub(super) name: String,
        #[prost(int32, tag = "6")]
        pub(super) kind: i32,
        #[prost(fixed64, tag = "7")]
        pub(super) start_time_unix_nano: u64,
        #[prost(fixed64, tag = "8")]
        pub(super) end_time_unix_nano: u64,
        #[prost(message, repeated, tag = "9")]
        pub(super) attributes: Vec<KeyValue>,
        #[prost(message, optional, tag = "15")]
        pub(super) status: Option<Status>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Status {
        #[prost(string, tag = "2")]
        pub(super) message: String,
        #[prost(int32, tag = "3")]
        pub(super) code: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ExportMetrics {
        #[prost(message, repeated, tag = "1")]
        pub(super) resource_metrics: Vec<ResourceMetrics>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ResourceMetrics {
        #[prost(message, repeated, tag = "2")]
        pub(super) scope_metrics: Vec<ScopeMetrics>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ScopeMetrics {
        #[prost(message, repeated, tag = "2")]
        pub(super) metrics: Vec<Metric>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Metric {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        #[prost(message, optional, tag = "5")]
        pub(super) gauge: Option<Gauge>,
        #[prost(message, optional, tag = "7")]
        pub(super) sum: Option<Sum>,
        #[prost(message, optional, tag = "9")]
        pub(super) histogram: Option<Histogram>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Gauge {
        #[prost(message, repeated, tag = "1")]
        pub(super) data_points: Vec<NumberPoint>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Sum {
        #[prost(message, repeated, tag = "1")]
        pub(super) data_points: Vec<NumberPoint>,
        #[prost(int32, tag = "2")]
        pub(super) aggregation_temporality: i32,
        #[prost(bool, tag = "3")]
        pub(super) is_monotonic: bool,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct NumberPoint {
        #[prost(double, optional, tag = "4")]
        pub(super) as_double: Option<f64>,
        #[prost(message, repeated, tag = "7")]
        pub(super) attributes: Vec<KeyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Histogram {
        #[prost(message, repeated, tag = "1")]
        pub(super) data_points: Vec<HistogramPoint>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct HistogramPoint {
        #[prost(fixed64, tag = "4")]
        pub(super) count: u64,
        #[prost(double, optional, tag = "5")]
        pub(super) sum: Option<f64>,
        #[prost(fixed64, repeated, tag = "6")]
        pub(super) bucket_counts: Vec<u64>,
        #[prost(double, repeated, tag = "7")]
        pub(super) explicit_bounds: Vec<f64>,
        #[prost(message, repeated, tag = "9")]
        pub(super) attributes: Vec<KeyValue>,
    }
}
