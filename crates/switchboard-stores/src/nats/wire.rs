//! The lines of the protocol that a server sends, from bytes as they arrive. Lines and payloads have limits: a payload that is too
//! large is skipped without being kept, and a line that is too long ends the connection.

use bytes::{Buf as _, BytesMut};
use serde::Deserialize;

/// The longest line; the longest that servers send describes themselves and their cluster.
const LINE_BYTES_MAX: usize = 64 << 10;
/// The largest payload that is read. Hints are smaller.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// The largest payload that a server may announce, as servers have it themselves.
const ANNOUNCED_BYTES_MAX: usize = 64 << 20;

/// What a server says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Info(Info),
    /// The payload of a message that was subscribed to.
    Message(BytesMut),
    Ping,
    Pong,
    /// Why it is about to close the connection, or what it did not do.
    Error(String),
    /// Anything that needs no answer.
    Other,
}

/// What a server says about itself.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct Info {
    pub(super) version: String,
    pub(super) tls_required: bool,
    pub(super) tls_available: bool,
    /// What a client with a key signs.
    pub(super) nonce: Option<String>,
    /// The server is going down, and its clients should go elsewhere.
    pub(super) ldm: bool,
}

/// Why a connection cannot be read any further.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// Bytes that have arrived and were not read yet.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) buffer: BytesMut,
    /// Bytes of a payload that is not wanted.
    skip: usize,
}

impl Incoming {
    /// The next thing that has arrived as a whole.
    pub(super) fn next(&mut self) -> Result<Option<Said>, Malformed> {
        let skipped = self.skip.min(self.buffer.len());
        self.buffer.advance(skipped);
        self.skip -= skipped;
        if self.skip > 0 {
            return Ok(None);
        }
        let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') else {
            let is_too_long = self.buffer.len() > LINE_BYTES_MAX;
            return if is_too_long { Err(Malformed("a line is too long")) } else { Ok(None) };
        };
        if end > LINE_BYTES_MAX {
            return Err(Malformed("a line is too long"));
        }
        let line = std::str::from_utf8(&self.buffer[..end]).map_err(|_| Malformed("a line is not text"))?.trim_end();
        let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let said = match word.to_ascii_uppercase().as_str() {
            "MSG" => return self.message(end),
            "INFO" => Said::Info(serde_json::from_str(rest).map_err(|_| Malformed("INFO is not JSON"))?),
            "PING" => Said::Ping,
            "PONG" => Said::Pong,
            "-ERR" => Said::Error(rest.trim().trim_matches('\'').to_owned()),
            "+OK" | "" => Said::Other,
            _ => return Err(Malformed("a line begins with an unknown word")),
        };
        self.buffer.advance(end + 1);
        Ok(Some(said))
    }

    /// `MSG subject subscription [reply] bytes`, then the payload and the end of a line.
    fn message(&mut self, end: usize) -> Result<Option<Said>, Malformed> {
        let line = String::from_utf8_lossy(&self.buffer[..end]);
        let length = line.split_ascii_whitespace().next_back().and_then(|word| word.parse::<usize>().ok());
        let length = length.filter(|length| *length <= ANNOUNCED_BYTES_MAX);
        let length = length.ok_or(Malformed("MSG says no length"))?;
        let begin = end + 1;
        if length > MESSAGE_BYTES_MAX {
            self.buffer.advance(begin);
            self.skip = length + 2;
            return self.next();
        }
        if self.buffer.len() < begin + length + 2 {
            return Ok(None);
        }
        self.buffer.advance(begin);
        let payload = self.buffer.split_to(length);
        if &self.buffer[..2] != b"\r\n" {
            return Err(Malformed("a payload does not end where it should"));
        }
        self.buffer.advance(2);
        Ok(Some(Said::Message(payload)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Incoming, MESSAGE_BYTES_MAX, Said};

    fn all(bytes: &[u8], piece: usize) -> Result<Vec<Said>, super::Malformed> {
        let (mut incoming, mut said) = (Incoming::default(), Vec::new());
        for piece in bytes.chunks(piece.max(1)) {
            incoming.buffer.extend_from_slice(piece);
            while let Some(next) = incoming.next()? {
                said.push(next);
            }
        }
        Ok(said)
    }

    const TALK: &[u8] = b"INFO {\"version\":\"2.15.1\",\"tls_required\":true,\"nonce\":\"abc\",\"max_payload\":1048576}\r\n+OK\r\nPING\r\n\
        MSG a.b 1 5\r\nhe\nlo\r\nMSG a.b 1 reply.to 0\r\n\r\nPONG\r\n-ERR 'Authorization Violation'\r\n";

    #[test]
    fn what_arrives_in_pieces_is_read_as_a_whole() {
        let whole = all(TALK, TALK.len()).unwrap();
        for piece in 1..TALK.len() {
            assert_eq!(all(TALK, piece).unwrap(), whole, "in pieces of {piece}");
        }
        let [
            Said::Info(info),
            Said::Other,
            Said::Ping,
            Said::Message(first),
            Said::Message(second),
            Said::Pong,
            Said::Error(why),
        ] = &whole[..]
        else {
            panic!("{whole:?}")
        };
        assert!(info.tls_required && !info.ldm && info.nonce.as_deref() == Some("abc"), "{info:?}");
        assert_eq!((&first[..], &second[..], &**why), (&b"he\nlo"[..], &b""[..], "Authorization Violation"));
    }

    #[test]
    fn a_payload_that_is_too_large_is_skipped_and_not_kept() {
        let length = MESSAGE_BYTES_MAX * 4;
        let mut bytes = format!("MSG a.b 1 {length}\r\n").into_bytes();
        bytes.resize(bytes.len() + length, b'x');
        bytes.extend_from_slice(b"\r\nPING\r\n");
        let (mut incoming, mut said) = (Incoming::default(), Vec::new());
        for piece in bytes.chunks(4_096) {
            incoming.buffer.extend_from_slice(piece);
            said.extend(incoming.next().unwrap());
            assert!(incoming.buffer.len() <= 4_096);
        }
        assert_eq!(said, [Said::Ping]);
    }

    #[test]
    fn what_is_no_protocol_ends_the_connection() {
        let endless = vec![b'x'; 100_000];
        for bytes in
            [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"MSG a 1 x\r\n", b"MSG a 1 1\r\nabc\r\n", b"INFO no\r\n", &endless]
        {
            assert!(all(bytes, 64).is_err(), "{:?}", bytes.escape_ascii().to_string());
        }
    }

    #[test]
    fn fuzz_lines_of_a_nats_server() {
        switchboard_fuzz::run("lines of a NATS server", &[TALK.to_vec(), b"MSG a 1 70000\r\n".to_vec()], |bytes| {
            // Whatever the pieces, the same is read.
            let (whole, single) = (all(bytes, bytes.len()), all(bytes, 1));
            if let (Ok(whole), Ok(single)) = (whole, single) {
                assert_eq!(whole, single);
            }
        });
    }
}
