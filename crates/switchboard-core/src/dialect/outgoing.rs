//! A call as a client sends it. The dialect says how it is spelled and, where it travels over HTTP without an envelope, to
//! which path; addresses, headers and the envelope of JSON-RPC are the sender's.

use crate::call::{Reply, Request};
use crate::error::ProtocolError;
use crate::model::{Task, TaskView};

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingCall<'a> {
    pub request: &'a Request,
    pub over: Transport,
    /// The tenant of the agent, if its card names one.
    pub tenant: Option<&'a str>,
    /// The name by which a repeat of a send is recognised. Dialects that have no member for it leave it out; over HTTP it is
    /// the header `Idempotency-Key`.
    pub idempotency_key: Option<&'a str>,
}

/// What carries a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One endpoint; the method stands in an envelope around the params.
    JsonRpc,
    /// One path for each operation.
    Http,
}

/// A call in the form that it is sent in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenCall {
    JsonRpc {
        method: &'static str,
        params: Vec<u8>,
    },
    Http {
        verb: &'static str,
        /// Path and query, below the address of the agent. It begins with a slash.
        path: String,
        /// Empty for a call without a body.
        body: Vec<u8>,
    },
}

impl OutgoingCall<'_> {
    /// The refusal of an operation that a dialect does not have.
    pub(super) fn not_in(&self, dialect: &str) -> ProtocolError {
        no_call(self.request, dialect)
    }

    /// Refuses a transport that a dialect does not travel over.
    pub(super) fn require(&self, over: Transport, dialect: &str) -> Result<(), ProtocolError> {
        if self.over == over {
            return Ok(());
        }
        let (has, asked) = (over.word(), self.over.word());
        Err(ProtocolError::unsupported(format!("{dialect} travels over {has}, not over {asked}")))
    }
}

/// The refusal of an operation that a dialect does not have, by the name that the protocol has for it.
#[cold]
fn no_call(request: &Request, dialect: &str) -> ProtocolError {
    ProtocolError::unsupported(format!("{dialect} has no call for {}", request.operation()))
}

/// The reply of a dialect whose every answer is a task, to a request that it has a call for.
pub(super) fn read_task_reply(
    request: &Request,
    dialect: &str,
    has_call: bool,
    read: impl FnOnce() -> Result<Task, ProtocolError>,
) -> Result<Reply, ProtocolError> {
    if !has_call {
        return Err(no_call(request, dialect));
    }
    let view = TaskView::whole(read()?.into());
    Ok(match request {
        Request::SendMessage(_) | Request::SendStreamingMessage(_) => Reply::SentTask(view),
        _ => Reply::Task(view),
    })
}

impl Transport {
    fn word(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSON-RPC",
            Self::Http => "HTTP",
        }
    }
}

/// Appends one segment of a path, or a value of a query: everything but letters, digits, `-`, `_`, `.` and `~` is escaped, so
/// nothing in it can be taken for a separator.
pub(super) fn push_segment(path: &mut String, segment: &str) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in segment.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => path.push(char::from(byte)),
            other => {
                let [high, low] = [other >> 4, other & 15].map(|digit| char::from(DIGITS[usize::from(digit)]));
                path.extend(['%', high, low]);
            }
        }
    }
}
