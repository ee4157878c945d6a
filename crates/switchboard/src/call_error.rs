//! Why a call to an agent has no result: what the agent refused, or what went wrong on the way to it and back.

use std::fmt;
use std::time::Duration;

use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskId;

/// Why a call to an agent has no result.
///
/// ```
/// use switchboard::{CallErrorKind, ProtocolError, TaskId};
///
/// let error = switchboard::CallError::from(ProtocolError::TaskNotFound { id: TaskId::from("t-1") });
/// assert_eq!(error.kind(), CallErrorKind::Refused);
/// assert!(matches!(error.protocol_error(), Some(ProtocolError::TaskNotFound { .. })));
/// assert!(!error.is_retryable());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CallError(Box<Facts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    kind: CallErrorKind,
    /// Ours; what the other side said is in `refusal` and `wire_text`.
    text: String,
    refusal: Option<ProtocolError>,
    http_status: Option<u16>,
    wire_code: Option<i64>,
    wire_text: Option<String>,
    is_retryable: bool,
    may_have_arrived: bool,
    retry_after: Option<Duration>,
    task_id: Option<TaskId>,
}

/// What kind of thing went wrong, for programs that react differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The agent answered with an error: [`CallError::protocol_error`] if it is one that the protocol has.
    Refused,
    /// The call cannot be made: a URL that is none, or an operation that the agent's version does not have.
    InvalidRequest,
    /// There is no agent card, or it names no interface that this client speaks.
    NoCard,
    /// Only agents with a verified card may be called, and this card is not signed, or not with a trusted key.
    CardNotVerified,
    /// The address may not be called ([`AddressPolicy`](crate::outbound::AddressPolicy)).
    NotAllowed,
    /// There is no token for the agent: its authorization server refused, or a login was denied or not confirmed in time. The word that
    /// the server has for it, such as `invalid_grant`, is [`CallError::wire_text`].
    NotAuthorized,
    /// No connection was made: the name has no address, nothing listens there, or TLS failed.
    Unreachable,
    /// The time was over before the result was there.
    TimedOut,
    /// The connection broke before the result was there.
    Broken,
    /// A message was sent, no answer came, and sending it again might do the work twice. To an agent that recognises repeats
    /// ([`IDEMPOTENT_SENDS`](crate::IDEMPOTENT_SENDS)) it was sent as often as the client makes attempts.
    OutcomeUnknown,
    /// The answer is not one of A2A, or is larger than the client takes.
    InvalidAnswer,
    /// A stream ended while the task was still being worked on, and could not be resumed.
    StreamEndedEarly,
    /// The task ended otherwise than completed, or waits for its user, where a text was asked for: `Client::call_text` of the
    /// feature `client`.
    NotCompleted,
}

impl CallError {
    pub(crate) fn new(kind: CallErrorKind, text: impl Into<String>) -> Self {
        Self(Box::new(Facts {
            kind,
            text: text.into(),
            refusal: None,
            http_status: None,
            wire_code: None,
            wire_text: None,
            is_retryable: false,
            may_have_arrived: false,
            retry_after: None,
            task_id: None,
        }))
    }

    pub(crate) fn timed_out(limit: Duration) -> Self {
        let error = Self::new(CallErrorKind::TimedOut, format!("no result within {limit:?}"));
        Self(Box::new(Facts { may_have_arrived: true, ..*error.0 }))
    }

    pub(crate) fn about_task(mut self, task_id: Option<&TaskId>) -> Self {
        self.0.task_id = task_id.cloned().or(self.0.task_id);
        self
    }

    /// What kind it is.
    #[must_use]
    pub fn kind(&self) -> CallErrorKind {
        self.0.kind
    }

    /// Whether the same call can be made again and may then succeed. False where the work might be done twice.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.is_retryable
    }

    /// Whether the agent may have received the call.
    #[must_use]
    pub fn may_have_arrived(&self) -> bool {
        self.0.may_have_arrived
    }

    /// The error as the protocol names it, if the agent answered with one.
    #[must_use]
    pub fn protocol_error(&self) -> Option<&ProtocolError> {
        self.0.refusal.as_ref()
    }

    /// The status of the HTTP answer, if there was one.
    #[must_use]
    pub fn http_status(&self) -> Option<u16> {
        self.0.http_status
    }

    /// The number that the agent gave for the error: a code of JSON-RPC or of gRPC.
    #[must_use]
    pub fn wire_code(&self) -> Option<i64> {
        self.0.wire_code
    }

    /// The text that the agent gave for the error, as it came. It may hold anything, control characters included.
    #[must_use]
    pub fn wire_text(&self) -> Option<&str> {
        self.0.wire_text.as_deref()
    }

    /// How long the agent asks to wait before the next attempt.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The task that the call was about, where it is known: a result that did not come in time can be asked for later.
    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        self.0.task_id.as_ref()
    }
}

#[cfg(feature = "client")]
mod of_remote_calls {
    use super::{CallError, CallErrorKind, Duration, Facts, ProtocolError};
    use crate::outbound;

    impl CallError {
        /// A call that has no answer.
        pub(crate) fn of_outbound(error: &outbound::Error) -> Self {
            use outbound::ErrorKind as E;
            let kind = match error.kind() {
                E::InvalidRequest => CallErrorKind::InvalidRequest,
                E::Refused => CallErrorKind::NotAllowed,
                E::Connect | E::Tls(_) => CallErrorKind::Unreachable,
                E::TimedOut if !error.may_have_arrived() => CallErrorKind::Unreachable,
                E::TimedOut => CallErrorKind::TimedOut,
                E::Broken => CallErrorKind::Broken,
                E::BodyTooLarge | E::NotHttp => CallErrorKind::InvalidAnswer,
            };
            let is_retryable = match error.kind() {
                E::Connect | E::TimedOut | E::Broken => true,
                E::InvalidRequest | E::Refused | E::Tls(_) | E::BodyTooLarge | E::NotHttp => false,
            };
            let new = Self::new(kind, error.to_string());
            Self(Box::new(Facts { is_retryable, may_have_arrived: error.may_have_arrived(), ..*new.0 }))
        }

        /// A call that the agent's version or dialect does not have, or cannot say.
        pub(crate) fn unwritable(refusal: ProtocolError) -> Self {
            let new = Self::new(CallErrorKind::InvalidRequest, refusal.to_string());
            Self(Box::new(Facts { refusal: Some(refusal), ..*new.0 }))
        }

        /// An answer that cannot be used.
        pub(crate) fn invalid_answer(text: impl Into<String>) -> Self {
            let new = Self::new(CallErrorKind::InvalidAnswer, text);
            Self(Box::new(Facts { may_have_arrived: true, ..*new.0 }))
        }

        /// A refusal as it was read, or a status that stands for one.
        pub(crate) fn refused(
            refusal: Option<ProtocolError>,
            http_status: Option<u16>,
            wire: Option<(i64, String)>,
        ) -> Self {
            let retry_after_s = refusal.as_ref().and_then(ProtocolError::retry_after_s);
            let is_retryable = retry_after_s.is_some();
            let retry_after = retry_after_s.filter(|seconds| *seconds > 0);
            let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds.into()));
            let text = match (&refusal, http_status) {
                (Some(error), _) => error.to_string(),
                (None, Some(status)) => format!("the agent answered with HTTP {status}"),
                (None, None) => "the agent refused the call".to_owned(),
            };
            let (wire_code, wire_text) = wire.unzip();
            let wire_text = wire_text.filter(|text: &String| !text.is_empty());
            let new = Self::new(CallErrorKind::Refused, text);
            Self(Box::new(Facts {
                refusal,
                http_status,
                wire_code: wire_code.filter(|code| *code != 0),
                wire_text,
                is_retryable,
                may_have_arrived: true,
                retry_after,
                ..*new.0
            }))
        }

        /// The same with what the other side said.
        pub(crate) fn with_wire_text(mut self, text: String) -> Self {
            self.0.wire_text = Some(text).filter(|text| !text.is_empty());
            self
        }

        /// The same for something that may go well the next time.
        pub(crate) fn retryable(mut self) -> Self {
            self.0.is_retryable = true;
            self
        }

        /// The same for what went wrong before the call itself was made.
        pub(crate) fn before_sending(mut self) -> Self {
            self.0.may_have_arrived = false;
            self
        }

        /// Whether the agent asks who calls, or does not believe what it was shown.
        pub(crate) fn is_unauthenticated(&self) -> bool {
            self.0.http_status == Some(401) || matches!(self.0.refusal, Some(ProtocolError::Unauthenticated { .. }))
        }

        pub(crate) fn with_http_status(mut self, status: u16) -> Self {
            self.0.http_status = Some(status);
            self
        }

        pub(crate) fn with_retry_after(mut self, pause: Option<Duration>) -> Self {
            self.0.retry_after = pause.or(self.0.retry_after);
            self
        }

        /// The same for a stream that broke: it had begun, so the call that it answers has arrived.
        pub(crate) fn having_arrived(mut self) -> Self {
            (self.0.may_have_arrived, self.0.is_retryable) = (true, true);
            self
        }

        /// The same for a send that must not be repeated.
        pub(crate) fn outcome_unknown(mut self) -> Self {
            if self.0.kind != CallErrorKind::TimedOut {
                self.0.kind = CallErrorKind::OutcomeUnknown;
            }
            self.0.is_retryable = false;
            self.0.refusal = None;
            self.0.text = format!(
                "the outcome is not known: {}; the message may have arrived, and an agent that gets it as a new one might do \
                 the work twice",
                self.0.text
            );
            self
        }

        /// The same for a stream that could not be resumed.
        pub(crate) fn ended_early(mut self) -> Self {
            self.0.kind = CallErrorKind::StreamEndedEarly;
            self.0.text = format!("the stream ended before the task did, and could not be resumed: {}", self.0.text);
            self
        }
    }
}

/// What the agent said is shown up to this many bytes, without control characters: it may end up in a terminal.
const SHOWN_BYTES_MAX: usize = 1_024;

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut end = self.0.text.len().min(SHOWN_BYTES_MAX);
        while !self.0.text.is_char_boundary(end) {
            end -= 1;
        }
        let shown = self.0.text[..end].chars().map(|letter| if letter.is_control() { ' ' } else { letter });
        f.write_str(&shown.collect::<String>())?;
        match &self.0.task_id {
            Some(id) => write!(f, " (task {})", id.as_str().escape_debug()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for CallError {}

/// A refusal of an agent in this process.
impl From<ProtocolError> for CallError {
    fn from(refusal: ProtocolError) -> Self {
        let new = Self::new(CallErrorKind::Refused, refusal.to_string());
        let is_retryable = refusal.retry_after_s().is_some();
        Self(Box::new(Facts { is_retryable, may_have_arrived: true, refusal: Some(refusal), ..*new.0 }))
    }
}

/// What a caller is told by a server that passes the call on. That an agent cannot be reached may be temporary; a message whose
/// outcome is not known is no invitation to send it again.
impl From<CallError> for ProtocolError {
    fn from(error: CallError) -> Self {
        let reason = error.to_string();
        match (error.0.refusal, error.0.kind) {
            (Some(refusal), _) => refusal,
            (None, CallErrorKind::InvalidRequest) => Self::UnsupportedOperation { reason },
            (None, CallErrorKind::Unreachable | CallErrorKind::TimedOut | CallErrorKind::Broken)
                if error.0.is_retryable =>
            {
                let retry_after_s = error.0.retry_after.map_or(1, |pause| pause.as_secs());
                Self::Unavailable { reason, retry_after_s: u32::try_from(retry_after_s).unwrap_or(u32::MAX) }
            }
            (
                None,
                CallErrorKind::Refused
                | CallErrorKind::NoCard
                | CallErrorKind::CardNotVerified
                | CallErrorKind::NotAllowed
                | CallErrorKind::NotAuthorized
                | CallErrorKind::Unreachable
                | CallErrorKind::TimedOut
                | CallErrorKind::Broken
                | CallErrorKind::OutcomeUnknown
                | CallErrorKind::InvalidAnswer
                | CallErrorKind::StreamEndedEarly
                | CallErrorKind::NotCompleted,
            ) => Self::InvalidAgentResponse { reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CallError, CallErrorKind, SHOWN_BYTES_MAX};

    #[test]
    fn what_an_agent_said_is_shown_without_control_characters_and_not_at_length() {
        let error = CallError::new(CallErrorKind::Refused, format!("\u{1b}[31mred\r\n{}", "ä".repeat(2_000)));
        let shown = error.to_string();
        assert!(shown.starts_with(" [31mred  ä"), "{shown}");
        assert!(shown.len() <= SHOWN_BYTES_MAX, "{}", shown.len());
        assert!(!shown.chars().any(char::is_control));
    }
}
