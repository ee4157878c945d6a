//! Server-sent events as they are read (the event stream of the HTML standard). Pure: bytes in, events out. Lines may end in LF, CR
//! or CRLF, wherever the bytes are cut.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The newest id that was given, by this event or an earlier one.
    pub(super) id: Option<String>,
    /// What kind of event it is; empty is the usual.
    pub(super) kind: String,
    /// The lines of its data, joined by line breaks.
    pub(super) data: String,
}

/// An event, or a line, that is larger than is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Splits bytes into events.
#[derive(Debug)]
pub(super) struct SseParser {
    event_bytes_max: usize,
    /// What has come and is not a whole line yet.
    line: Vec<u8>,
    /// Whether the last byte was a CR, whose LF may still come.
    after_cr: bool,
    is_first_line: bool,
    last_id: Option<String>,
    kind: String,
    data: Option<String>,
}

impl SseParser {
    pub(super) fn new(event_bytes_max: usize) -> Self {
        Self {
            event_bytes_max,
            line: Vec::new(),
            after_cr: false,
            is_first_line: true,
            last_id: None,
            kind: String::new(),
            data: None,
        }
    }

    pub(super) fn event_bytes_max(&self) -> usize {
        self.event_bytes_max
    }

    /// Takes bytes up to the end of the next event; says how many it took, and the event if there was one. To be called again
    /// with the rest.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<SseEvent>), TooLarge> {
        let mut at = 0;
        while at < bytes.len() {
            if std::mem::take(&mut self.after_cr) && bytes[at] == b'\n' {
                at += 1;
                continue;
            }
            let rest = &bytes[at..];
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            self.check(end.unwrap_or(rest.len()))?;
            let Some(end) = end else {
                self.line.extend_from_slice(rest);
                return Ok((bytes.len(), None));
            };
            self.line.extend_from_slice(&rest[..end]);
            self.after_cr = rest[end] == b'\r';
            at += end + 1;
            let line = std::mem::take(&mut self.line);
            if let Some(event) = self.take_line(&line) {
                return Ok((at, Some(event)));
            }
            self.line = line;
            self.line.clear();
        }
        Ok((at, None))
    }

    fn check(&self, more: usize) -> Result<(), TooLarge> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held.saturating_add(more) > self.event_bytes_max { Err(TooLarge) } else { Ok(()) }
    }

    fn take_line(&mut self, line: &[u8]) -> Option<SseEvent> {
        let line = match std::mem::take(&mut self.is_first_line) {
            true => line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            return self.data.take().map(|data| SseEvent { id: self.last_id.clone(), kind, data });
        }
        let line = String::from_utf8_lossy(line);
        // A line that begins with a colon is a comment.
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => value.clone_into(&mut self.kind),
            "id" if !value.contains('\0') => self.last_id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
