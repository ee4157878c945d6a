//! How a line of the log is written: as text for people, or as a JSON object for machines.
//!
//! The formats of `tracing-subscriber` look the same. With them the line of a completed task took about 14,500 instructions,
//! a third of the send itself; with these it takes about 2,900.

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
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let level = *event.metadata().level();
        let mut members = TextMembers { line: Vec::with_capacity(256), colours: writer.has_ansi_escapes() };
        members.coloured(DIM, &now());
        members.line.push(b' ');
        members.coloured(colour(level), padded(level).as_bytes());
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            members.line.push(b' ');
            members.line.extend_from_slice(span.name().as_bytes());
            with_fields::<S, N>(&span, |fields| {
                for piece in ["{", fields, "}"] {
                    members.line.extend_from_slice(piece.as_bytes());
                }
            });
            members.line.push(b':');
        }
        event.record(&mut members);
        members.line.push(b'\n');
        writer.write_str(text(&members.line)?)
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
                let members = fields.strip_prefix('{').and_then(|fields| fields.strip_suffix('}'));
                if let Some(members) = members.filter(|members| !members.is_empty()) {
                    out.push(b',');
                    out.extend_from_slice(members.as_bytes());
                }
            });
            out.push(b'}');
            before = b",";
        }
        if before == b"," {
            out.push(b']');
        }
        out.extend_from_slice(b"}\n");
        line.write_str(text(&out)?)
    }
}

#[expect(clippy::disallowed_methods, reason = "when a line is written decides nothing")]
fn now() -> [u8; 24] {
    Timestamp::from(std::time::SystemTime::now()).to_rfc3339()
}

fn text(line: &[u8]) -> Result<&str, fmt::Error> {
    std::str::from_utf8(line).map_err(|_| fmt::Error)
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
fn with_fields<S, N>(span: &SpanRef<'_, S>, write: impl FnOnce(&str))
where
    S: for<'a> LookupSpan<'a>,
    N: 'static,
{
    let extensions = span.extensions();
    if let Some(fields) = extensions.get::<FormattedFields<N>>().filter(|fields| !fields.is_empty()) {
        write(fields);
    }
}

/// The bytes that are in a line of text as they are, also between quotes.
const NEEDS_NO_ESCAPE: [bool; 256] = {
    let mut needs_none = [false; 256];
    let mut byte = 0x20;
    while byte < 0x7f {
        needs_none[byte] = byte != b'"' as usize && byte != b'\\' as usize;
        byte += 1;
    }
    needs_none
};

/// Keeps what is written on one line, and from telling a terminal what to do.
struct Escaping<'a>(&'a mut Vec<u8>);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One test of bytes for nearly all text: no byte below a blank, and none from 0x7f on, where the others may hide. It does not stop
        // at the first of those, because then the compiler can compare many bytes at once.
        if text.bytes().fold(true, |all, byte| all & (0x20..0x7f).contains(&byte)) {
            self.0.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        for letter in text.chars() {
            if letter.is_control() {
                self.0.extend_from_slice(letter.escape_default().to_string().as_bytes());
            } else {
                self.0.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        Ok(())
    }
}

/// A line of text in the making.
struct TextMembers {
    line: Vec<u8>,
    colours: bool,
}

impl TextMembers {
    fn coloured(&mut self, colour: &str, text: &[u8]) {
        if !self.colours {
            return self.line.extend_from_slice(text);
        }
        for piece in [colour.as_bytes(), text, RESET.as_bytes()] {
            self.line.extend_from_slice(piece);
        }
    }

    /// Writes a blank and the name; of the message the blank alone.
    fn name(&mut self, field: &Field) {
        self.line.push(b' ');
        if field.name() == MESSAGE {
            return;
        }
        if self.colours {
            self.line.extend_from_slice(DIM.as_bytes());
        }
        self.line.extend_from_slice(name(field).as_bytes());
        self.line.push(b'=');
        if self.colours {
            self.line.extend_from_slice(RESET.as_bytes());
        }
    }
}

impl Visit for TextMembers {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_message = field.name() == MESSAGE;
        if !value.bytes().all(|byte| NEEDS_NO_ESCAPE[usize::from(byte)]) {
            return match is_message {
                true => self.record_debug(field, &format_args!("{value}")),
                false => self.record_debug(field, &value),
            };
        }
        self.name(field);
        if is_message {
            return self.line.extend_from_slice(value.as_bytes());
        }
        self.line.push(b'"');
        self.line.extend_from_slice(value.as_bytes());
        self.line.push(b'"');
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        write_u64(&mut self.line, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.name(field);
        write_i64(&mut self.line, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.name(field);
        // Writing into a line fails only if the value itself does, and then the line says less.
        let _ = write!(Escaping(&mut self.line), "{value:?}");
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
