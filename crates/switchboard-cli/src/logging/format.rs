//! How a line of the log is written: as text for people, or as a JSON object for machines.
//!
//! The formats of `tracing-subscriber` look the same. With them the line of a completed task took about 14,500 instructions,
//! a third of the send itself; with these it takes about 3,000.

use std::fmt::{self, Debug, Write};

use switchboard_core::dialect::json::{write_i64, write_str, write_u64};
use switchboard_core::model::Timestamp;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// The field that holds the line's own words.
const MESSAGE: &str = "message";

/// What a line looks like.
#[derive(Clone, Copy)]
pub(super) enum LineForm {
    /// `2026-11-16T04:11:16.123Z  INFO task ended task=… agent="echo"`
    Text { colours: bool },
    /// `{"timestamp":"2026-11-16T04:11:16.123Z","level":"INFO","message":"task ended","task":"…","agent":"echo"}`
    Json,
}

/// Hands over a line for each event, and whether it is a warning or worse.
pub(super) struct LogLines<W> {
    form: LineForm,
    write: W,
}

/// The fields of a span, as they are written in a line.
struct SpanFields(Vec<u8>);

impl<W: Fn(&[u8], bool)> LogLines<W> {
    pub(super) fn new(form: LineForm, write: W) -> Self {
        Self { form, write }
    }

    fn add_fields<S>(&self, span: &Id, context: &Context<'_, S>, record: impl FnOnce(&mut dyn Visit))
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let mut written = match self.form {
            LineForm::Text { colours } => {
                let mut members = TextMembers { line: Vec::new(), colours };
                record(&mut members);
                members.line
            }
            LineForm::Json => {
                let mut members = JsonMembers { out: Vec::new() };
                record(&mut members);
                members.out
            }
        };
        let Some(span) = context.span(span) else { return };
        let mut extensions = span.extensions_mut();
        match extensions.get_mut::<SpanFields>() {
            Some(SpanFields(earlier)) => earlier.append(&mut written),
            None => extensions.insert(SpanFields(written)),
        }
    }
}

impl<S, W> Layer<S> for LogLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Fn(&[u8], bool) + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, span: &Id, context: Context<'_, S>) {
        self.add_fields(span, &context, |members| attributes.record(members));
    }

    fn on_record(&self, span: &Id, values: &Record<'_>, context: Context<'_, S>) {
        self.add_fields(span, &context, |members| values.record(members));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let line = match self.form {
            LineForm::Text { colours } => text_line(event, &context, colours),
            LineForm::Json => json_line(event, &context),
        };
        (self.write)(&line, *event.metadata().level() <= Level::WARN);
    }
}

fn text_line<S>(event: &Event<'_>, context: &Context<'_, S>, colours: bool) -> Vec<u8>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let level = *event.metadata().level();
    let mut members = TextMembers { line: Vec::with_capacity(256), colours };
    members.coloured(DIM, &now());
    members.line.push(b' ');
    members.coloured(colour(level), padded(level).as_bytes());
    for span in spans(event, context) {
        members.line.push(b' ');
        members.line.extend_from_slice(span.name().as_bytes());
        if let Some(SpanFields(fields)) = span.extensions().get()
            && let Some(fields) = fields.strip_prefix(b" ")
        {
            for piece in [b"{", fields, b"}"] {
                members.line.extend_from_slice(piece);
            }
        }
        members.line.push(b':');
    }
    event.record(&mut members);
    members.line
}

fn json_line<S>(event: &Event<'_>, context: &Context<'_, S>) -> Vec<u8>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let mut members = JsonMembers { out: Vec::with_capacity(256) };
    members.out.extend_from_slice(b"{\"timestamp\":\"");
    members.out.extend_from_slice(&now());
    members.out.extend_from_slice(b"\",\"level\":\"");
    members.out.extend_from_slice(event.metadata().level().as_str().as_bytes());
    members.out.push(b'"');
    event.record(&mut members);
    let mut out = members.out;
    let mut before: &[u8] = b",\"spans\":[";
    for span in spans(event, context) {
        out.extend_from_slice(before);
        out.extend_from_slice(b"{\"name\":");
        write_str(&mut out, span.name());
        if let Some(SpanFields(fields)) = span.extensions().get() {
            out.extend_from_slice(fields);
        }
        out.push(b'}');
        before = b",";
    }
    if before == b"," {
        out.push(b']');
    }
    out.push(b'}');
    out
}

/// The spans that an event happens in, the outermost first.
fn spans<'a, S>(event: &Event<'_>, context: &'a Context<'_, S>) -> impl Iterator<Item = SpanRef<'a, S>>
where
    S: Subscriber + for<'b> LookupSpan<'b>,
{
    context.event_scope(event).into_iter().flat_map(|scope| scope.from_root())
}

#[expect(clippy::disallowed_methods, reason = "when a line is written decides nothing")]
fn now() -> [u8; 24] {
    Timestamp::from(std::time::SystemTime::now()).to_rfc3339()
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
