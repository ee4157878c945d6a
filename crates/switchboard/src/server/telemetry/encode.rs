//! Spans and metrics in the protobuf form of OTLP. The numbers are those of the fields in `opentelemetry/proto`.

use switchboard_engine::ports::trace::{Attribute, EndedSpan, SpanKind};

use super::protobuf::Message;
use super::read_metrics::{Family, Points, Series};

/// The longest text that is said about a span; the rest is cut off.
const ATTRIBUTE_BYTES_MAX: usize = 1_024;
/// The name of what makes the spans and metrics.
const SCOPE: &str = "switchboard";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A value since a beginning, and not since the last export.
const CUMULATIVE: i64 = 2;
const STATUS_ERROR: i64 = 2;

/// Which process the spans and metrics are of.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) service_name: String,
    /// No other process has it.
    pub(super) instance_id: String,
}

/// When the counting began, and now, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    pub(super) began_ns: u64,
    pub(super) now_ns: u64,
}

/// The body of a request to `/v1/traces`.
pub(super) fn traces(resource: &Resource, spans: &[EndedSpan]) -> Vec<u8> {
    whole(resource, |scope_spans| {
        for span in spans {
            scope_spans.nested(2, |message| write_span(message, span));
        }
    })
}

/// The body of a request to `/v1/metrics`.
pub(super) fn metrics(resource: &Resource, families: &[Family<'_>], period: Period) -> Vec<u8> {
    whole(resource, |scope_metrics| {
        for family in families {
            scope_metrics.nested(2, |message| write_family(message, family, period));
        }
    })
}

/// Both requests have the same shell: what is told of one resource, by one scope.
fn whole(resource: &Resource, write: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut request = Message::default();
    request.nested(1, |of_resource| {
        of_resource.nested(1, |message| {
            text_attribute(message, 1, "service.name", &resource.service_name);
            text_attribute(message, 1, "service.version", VERSION);
            text_attribute(message, 1, "service.instance.id", &resource.instance_id);
        });
        of_resource.nested(2, |of_scope| {
            of_scope.nested(1, |scope| {
                scope.text(1, SCOPE);
                scope.text(2, VERSION);
            });
            write(of_scope);
        });
    });
    request.into_bytes()
}

fn write_span(message: &mut Message, span: &EndedSpan) {
    let context = &span.context;
    message.bytes(1, &context.trace_id());
    message.bytes(2, &context.span_id());
    message.text(3, context.trace_state().unwrap_or_default());
    message.bytes(4, span.parent.as_ref().map_or(&[], |parent| &parent[..]));
    message.text(5, span.name);
    message.number(
        6,
        match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Server => 2,
            SpanKind::Client => 3,
            SpanKind::Producer => 4,
        },
    );
    message.fixed_64(7, span.began_ns);
    message.fixed_64(8, span.ended_ns.max(span.began_ns));
    for (name, value) in &span.attributes {
        match value {
            Attribute::Text(text) => text_attribute(message, 9, name, text),
            Attribute::Number(number) => message.nested(9, |pair| {
                pair.text(1, name);
                pair.nested(2, |value| value.number_as_is(3, *number));
            }),
        }
    }
    if let Some(error) = &span.error {
        message.nested(15, |status| {
            status.text(2, shortened(error));
            status.number(3, STATUS_ERROR);
        });
    }
    message.fixed_32(16, u32::from(context.is_sampled()));
}

fn write_family(message: &mut Message, family: &Family<'_>, period: Period) {
    message.text(1, family.name);
    message.text(2, family.help);
    message.text(3, unit(family.name));
    match &family.points {
        Points::Gauge(series) => message.nested(5, |data| write_numbers(data, series, 0, period.now_ns)),
        Points::Counter(series) => message.nested(7, |data| {
            write_numbers(data, series, period.began_ns, period.now_ns);
            data.number(2, CUMULATIVE);
            data.number(3, 1);
        }),
        Points::Histogram(series) => message.nested(9, |data| {
            for histogram in series {
                data.nested(1, |point| {
                    point.fixed_64(2, period.began_ns);
                    point.fixed_64(3, period.now_ns);
                    point.fixed_64(4, histogram.value.count);
                    point.double_as_is(5, histogram.value.sum);
                    point.packed_64(6, histogram.value.counts().into_iter());
                    let bounds: Vec<u64> = histogram.value.bounds().map(f64::to_bits).collect();
                    point.packed_64(7, bounds.into_iter());
                    write_labels(point, 9, &histogram.labels);
                });
            }
            data.number(2, CUMULATIVE);
        }),
    }
}

fn write_numbers(data: &mut Message, series: &[Series<f64>], began_ns: u64, now_ns: u64) {
    for number in series {
        data.nested(1, |point| {
            point.fixed_64(2, began_ns);
            point.fixed_64(3, now_ns);
            point.double_as_is(4, number.value);
            write_labels(point, 7, &number.labels);
        });
    }
}

fn write_labels(message: &mut Message, field: u64, labels: &[(String, String)]) {
    for (name, value) in labels {
        text_attribute(message, field, name, value);
    }
}

fn text_attribute(message: &mut Message, field: u64, name: &str, text: &str) {
    message.nested(field, |pair| {
        pair.text(1, name);
        pair.nested(2, |value| value.bytes_as_is(1, shortened(text).as_bytes()));
    });
}

fn shortened(text: &str) -> &str {
    let mut ends = (0..=text.len().min(ATTRIBUTE_BYTES_MAX)).rev();
    ends.find(|end| text.is_char_boundary(*end)).map_or("", |end| &text[..end])
}

/// The unit that the name of a metric ends with.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "",
    }
}
