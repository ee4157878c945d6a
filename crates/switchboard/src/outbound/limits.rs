//! How long a call may take and how large its answer may be.

use std::time::Duration;

/// Defaults of [`RequestLimits`].
const CONNECT_DEFAULT: Duration = Duration::from_secs(15);
const TOTAL_DEFAULT: Duration = Duration::from_secs(30);
const STREAM_HEAD_DEFAULT: Duration = Duration::from_secs(30);
const STREAM_IDLE_DEFAULT: Duration = Duration::from_secs(60);
const BODY_BYTES_MAX_DEFAULT: u64 = 4 << 20;

/// The limits of one call. Each field that is an option bounds nothing if it is `None`.
///
/// ```
/// use std::time::Duration;
/// use switchboard::outbound::RequestLimits;
///
/// let mut limits = RequestLimits::default();
/// limits.total = Some(Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestLimits {
    /// From the look-up of the name to the end of the TLS handshake: at most a third of it for the look-up, and at most
    /// a third for TCP.
    pub connect: Duration,
    /// From the start of the call to the status line and headers of the answer, connecting included.
    pub head: Option<Duration>,
    /// How long nothing of the body may arrive while it is read.
    pub idle: Option<Duration>,
    /// From the start of the call to the end of the body.
    pub total: Option<Duration>,
    /// The size of the body.
    pub body_bytes_max: Option<u64>,
    /// How many redirects a `GET` or `HEAD` follows. Other methods follow none, since their body would go to an address
    /// that the caller did not choose.
    pub redirects_max: u8,
}

/// For an answer that is read whole: 30 seconds in all, and a body of 4 MiB.
impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            connect: CONNECT_DEFAULT,
            head: None,
            idle: None,
            total: Some(TOTAL_DEFAULT),
            body_bytes_max: Some(BODY_BYTES_MAX_DEFAULT),
            redirects_max: 0,
        }
    }
}

impl RequestLimits {
    /// For an answer that may go on for ever, such as server-sent events: 30 seconds until it begins, then no minute without
    /// a byte. The reader of the stream bounds what it keeps of it.
    #[must_use]
    pub fn stream() -> Self {
        Self {
            head: Some(STREAM_HEAD_DEFAULT),
            idle: Some(STREAM_IDLE_DEFAULT),
            total: None,
            body_bytes_max: None,
            ..Self::default()
        }
    }
}
