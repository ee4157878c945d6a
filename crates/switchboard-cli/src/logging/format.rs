//! How a line of the log is written: as text for people, or as a JSON object for machines.
//!
//! The formats of `tracing-subscriber` look the same and cost several times as much, which a server that logs a line for
//! every task would feel.

use std::fmt::{self, Debug, Write};

use switchboard_core::dialect::json::{write_i64, write_str, write_u64};
use switchboard_core::model::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// The field that holds the line's own words.
const MESSAGE: &str = "message";

/// `2026-11-16T04:11:16.123Z  INFO task ended task=… agent="echo"`
pub(super) struct TextLine;

/// `{"timestamp":"2026-11-16T04:11:16.123Z","level":"INFO","message":"task ended","task":"…","agent":"echo"}`
pub(super) struct JsonLine;

impl<S, N> FormatEvent<S, N> for TextLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let level = *event.metadata().level();
        let is_coloured = line.has_ansi_escapes();
        line.write_str(if is_coloured { DIM } else { "" })?;
        line.write_str(ascii(&now()))?;
        line.write_str(if is_coloured { RESET } else { "" })?;
        line.write_char(' ')?;
        line.write_str(if is_coloured { colour(level) } else { "" })?;
        line.write_str(padded(level))?;
        line.write_str(if is_coloured { RESET } else { "" })?;
        line.write_char(' ')?;
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            line.write_str(span.name())?;
            with_fields::<S, N>(&span, |fields| write!(line, "{{{fields}}}"))?;
            line.write_str(": ")?;
        }
        let mut fields = TextMembers { line: Escaping(&mut line), is_coloured, is_first: true, result: Ok(()) };
        event.record(&mut fields);
        fields.result?;
        line.write_char('\n')
    }
}

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = JsonMembers { out: Vec::with_capacity(256) };
        fields.out.extend_from_slice(b"{\"timestamp\":\"");
        fields.out.extend_from_slice(&now());
        fields.out.extend_from_slice(b"\",\"level\":\"");
        fields.out.extend_from_slice(event.metadata().level().as_str().as_bytes());
        fields.out.push(b'"');
        event.record(&mut fields);
        let mut out = fields.out;
        let mut before: &[u8] = b",\"spans\":[";
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            out.extend_from_slice(before);
            out.extend_from_slice(b"{\"name\":");
            write_str(&mut out, span.name());
            // They are an object of their own: see `logging::start`.
            with_fields::<S, N>(&span, |fields| {
                let members = fields.trim_start_matches('{').trim_end_matches('}');
                if !members.is_empty() {
                    out.push(b',');
                    out.extend_from_slice(members.as_bytes());
                }
                Ok(())
            })?;
            out.push(b'}');
            before = b",";
        }
        if before == b"," {
            out.push(b']');
        }
        out.extend_from_slice(b"}\n");
        line.write_str(std::str::from_utf8(&out).map_err(|_| fmt::Error)?)
    }
}

#[expect(clippy::disallowed_methods, reason = "when a line is written decides nothing")]
fn now() -> [u8; 24] {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).to_rfc3339()
}

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or("?")
}

const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        _ => "\x1b[35m",
    }
}

fn padded(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => " WARN",
        Level::INFO => " INFO",
        Level::DEBUG => "DEBUG",
        _ => "TRACE",
    }
}

/// Hands over the fields of a span as they were formatted when it began, if it has any.
fn with_fields<S, N>(span: &SpanRef<'_, S>, write: impl FnOnce(&str) -> fmt::Result) -> fmt::Result
where
    S: for<'a> LookupSpan<'a>,
    N: 'static,
{
    let extensions = span.extensions();
    match extensions.get::<FormattedFields<N>>() {
        Some(fields) if !fields.is_empty() => write(fields),
        _ => Ok(()),
    }
}

/// Keeps what is written on one line, and from telling a terminal what to do.
struct Escaping<'a, 'w>(&'a mut Writer<'w>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One test of bytes for nearly all text: no byte below a blank, and none from 0x7f on, where the others may hide.
        if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            return self.0.write_str(text);
        }
        for letter in text.chars() {
            if letter.is_control() {
                write!(self.0, "{}", letter.escape_default())?;
            } else {
                self.0.write_char(letter)?;
            }
        }
        Ok(())
    }
}

struct TextMembers<'a, 'w> {
    line: Escaping<'a, 'w>,
    is_coloured: bool,
    is_first: bool,
    result: fmt::Result,
}

impl<'w> TextMembers<'_, 'w> {
    /// Writes a name and has its value written; of the message the value alone.
    fn field(&mut self, field: &Field, write: impl FnOnce(&mut Escaping<'_, 'w>) -> fmt::Result) {
        if self.result.is_ok() {
            self.result = self.try_field(field, write);
        }
    }

    fn try_field(&mut self, field: &Field, write: impl FnOnce(&mut Escaping<'_, 'w>) -> fmt::Result) -> fmt::Result {
        let line = &mut self.line;
        if !std::mem::take(&mut self.is_first) {
            line.0.write_char(' ')?;
        }
        if field.name() != MESSAGE {
            line.0.write_str(if self.is_coloured { DIM } else { "" })?;
            line.0.write_str(name(field))?;
            line.0.write_char('=')?;
            line.0.write_str(if self.is_coloured { RESET } else { "" })?;
        }
        write(line)
    }
}

impl Visit for TextMembers<'_, '_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\');
        self.field(field, |line| match field.name() {
            MESSAGE => line.write_str(value),
            _ if is_plain => {
                line.0.write_char('"')?;
                line.0.write_str(value)?;
                line.0.write_char('"')
            }
            _ => write!(line, "{value:?}"),
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.field(field, |line| write!(line, "{value:?}"));
    }
}

struct JsonMembers {
    out: Vec<u8>,
}

impl JsonMembers {
    fn name(&mut self, field: &Field) {
        self.out.push(b',');
        write_str(&mut self.out, name(field));
        self.out.push(b':');
    }
}

impl Visit for JsonMembers {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.name(field);
        write_str(&mut self.out, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        write_u64(&mut self.out, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.name(field);
        write_i64(&mut self.out, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.name(field);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Not a number and infinity, which JSON does not have, are null.
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.name(field);
        self.out.extend_from_slice(serde_json::Value::from(value).to_string().as_bytes());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

/// A field whose name is a word of the language is written with a mark in the code.
fn name(field: &Field) -> &str {
    field.name().strip_prefix("r#").unwrap_or(field.name())
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
