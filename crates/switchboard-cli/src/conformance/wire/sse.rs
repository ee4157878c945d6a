//! Server-sent events, read to the letter: what is not as the standard has it is a fault of the event, not a reason to skip it.

/// One event as it was framed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) data: Option<String>,
    /// What is not as the standard has it.
    pub(crate) fault: Option<String>,
}

/// Splits bytes into events. Lines end with LF, CRLF or CR.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    frame: Frame,
    after_cr: bool,
}

impl Parser {
    /// The events that these bytes complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for byte in bytes {
            let is_second_half = *byte == b'\n' && self.after_cr;
            self.after_cr = *byte == b'\r';
            match byte {
                b'\n' if is_second_half => {}
                b'\n' | b'\r' => frames.extend(self.end_line()),
                _ => self.line.push(*byte),
            }
        }
        frames
    }

    /// What the stream ended in the middle of.
    pub(crate) fn rest(&self) -> Option<String> {
        let has_more = !self.line.is_empty() || self.frame.data.is_some();
        has_more.then(|| "the stream ended in the middle of an event (no blank line after it)".to_owned())
    }

    fn end_line(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            return (frame.data.is_some() || frame.fault.is_some()).then_some(frame);
        }
        let Ok(line) = String::from_utf8(line) else {
            self.frame.fault = Some("a line is not UTF-8".to_owned());
            return None;
        };
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.frame.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.frame.data = Some(value.to_owned()),
            },
            // Comments, and fields that say nothing about the payload.
            "" | "event" | "id" | "retry" => {}
            other => {
                let shown = super::shown(other);
                self.frame.fault = Some(format!("a line is no field of an event: {shown}"));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Frame, Parser};

    fn data(text: &str) -> Frame {
        Frame { data: Some(text.to_owned()), fault: None }
    }

    #[test]
    fn events_end_with_a_blank_line_whatever_ends_lines() {
        for end in ["\n", "\r\n", "\r"] {
            let text = [": hi", "id: 7", "data: a", "data:b", "", "data: c", "", ""].join(end);
            let mut parser = Parser::default();
            let mut frames = Vec::new();
            // Byte by byte, so that every place where a read may end is one.
            for byte in text.as_bytes() {
                frames.extend(parser.feed(&[*byte]));
            }
            assert_eq!(frames, [data("a\nb"), data("c")], "{end:?}");
            assert_eq!(parser.rest(), None);
        }
    }

    #[test]
    fn what_is_no_event_is_a_fault() {
        let mut parser = Parser::default();
        let frames = parser.feed(b"{\"task\":{}}\n\n");
        assert!(frames[0].fault.as_ref().unwrap().contains("no field of an event"), "{frames:?}");
        assert_eq!(parser.feed(b"data: cut off"), []);
        assert!(parser.rest().is_some());
    }
}
