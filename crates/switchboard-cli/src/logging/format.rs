//! How a line of the log is written: as text for people, or as a JSON object for machines.
//!
//! The formats of `tracing-subscriber` look the same. With them the line of a completed task took about 14,500 instructions,
//! a third of the send itself; with these it takes about 3,400.

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
        let mut members = TextMembers { line: String::with_capacity(256), colours: writer.has_ansi_escapes() };
        members.coloured(DIM, ascii(&now()));
        members.line.push(' ');
        members.coloured(colour(level), padded(level));
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            members.line.push(' ');
            members.line.push_str(span.name());
            with_fields::<S, N>(&span, |fields| write!(members.line, "{{{fields}}}"))?;
            members.line.push(':');
        }
        event.record(&mut members);
        members.line.push('\n');
        writer.write_str(&members.line)
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
    Timestamp::from(std::time::SystemTime::now()).to_rfc3339()
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

/// Whether all bytes of a text are as asked. It does not stop at the first that is not, because then the compiler can compare many
/// bytes at once, and nearly every text of a log has none.
fn is_all(text: &str, is_so: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(true, |all, byte| all & is_so(byte))
}

/// Keeps what is written on one line, and from telling a terminal what to do.
struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One test of bytes for nearly all text: no byte below a blank, and none from 0x7f on, where the others may hide.
        if is_all(text, |byte| (0x20..0x7f).contains(&byte)) {
            self.0.push_str(text);
            return Ok(());
        }
        for letter in text.chars() {
            if letter.is_control() {
                self.0.extend(letter.escape_default());
            } else {
                self.0.push(letter);
            }
        }
        Ok(())
    }
}

/// A line of text in the making.
struct TextMembers {
    line: String,
    colours: bool,
}

impl TextMembers {
    fn coloured(&mut self, colour: &str, text: &str) {
        if !self.colours {
            return self.line.push_str(text);
        }
        for piece in [colour, text, RESET] {
            self.line.push_str(piece);
        }
    }

    /// Writes a blank and the name; of the message the blank alone.
    fn name(&mut self, field: &Field) {
        self.line.push(' ');
        if field.name() == MESSAGE {
            return;
        }
        if self.colours {
            self.line.push_str(DIM);
        }
        self.line.push_str(name(field));
        self.line.push('=');
        if self.colours {
            self.line.push_str(RESET);
        }
    }

    /// Writes a member whose value is an integer, without the formatter.
    fn number(&mut self, field: &Field, write: impl FnOnce(&mut Vec<u8>)) {
        self.name(field);
        let mut digits = Vec::with_capacity(20);
        write(&mut digits);
        self.line.push_str(ascii(&digits));
    }
}

impl Visit for TextMembers {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            return self.record_debug(field, &format_args!("{value}"));
        }
        if !is_all(value, |byte| (0x20..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\')) {
            return self.record_debug(field, &value);
        }
        self.name(field);
        self.line.push('"');
        self.line.push_str(value);
        self.line.push('"');
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, |digits| write_u64(digits, value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, |digits| write_i64(digits, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.name(field);
        // Writing into a string fails only if the value itself does, and then the line says less.
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
