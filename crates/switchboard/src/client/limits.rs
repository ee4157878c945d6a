//! How long calls may take and how large answers may be.

use std::time::Duration;

use switchboard_core::dialect::json::DecodeLimits;

/// Defaults of [`ClientLimits`].
const CALL_DEFAULT: Duration = Duration::from_secs(30);
const SEND_DEFAULT: Duration = Duration::from_secs(300);
const STREAM_IDLE_DEFAULT: Duration = Duration::from_secs(300);
const REPLY_BYTES_MAX_DEFAULT: u64 = 64 << 20;
const EVENT_BYTES_MAX_DEFAULT: usize = 64 << 20;
const CARD_BYTES_MAX_DEFAULT: u64 = 1 << 20;
const CARDS_MAX_DEFAULT: usize = 1_000;

/// The limits of a [`Client`](super::Client).
///
/// ```
/// use std::time::Duration;
/// use switchboard::client::{Client, ClientLimits};
///
/// let mut limits = ClientLimits::default();
/// limits.send = Duration::from_secs(20);
/// let client = Client::builder().limits(limits).build().unwrap();
/// # let _ = client;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientLimits {
    /// From the beginning of a call to its result, attempts and pauses included; for a stream, until it begins. A deadline of
    /// the call itself counts in its place.
    pub call: Duration,
    /// The same for a message that is sent and waited for, which takes as long as the agent does.
    pub send: Duration,
    /// How long a stream may be silent before it counts as lost.
    pub stream_idle: Duration,
    /// The size of an answer.
    pub reply_bytes_max: u64,
    /// The size of one event of a stream.
    pub event_bytes_max: usize,
    /// The size of an agent card.
    pub card_bytes_max: u64,
    /// How many cards are kept.
    pub cards_max: usize,
    /// What an answer may hold.
    pub(super) decode: DecodeLimits,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            call: CALL_DEFAULT,
            send: SEND_DEFAULT,
            stream_idle: STREAM_IDLE_DEFAULT,
            reply_bytes_max: REPLY_BYTES_MAX_DEFAULT,
            event_bytes_max: EVENT_BYTES_MAX_DEFAULT,
            card_bytes_max: CARD_BYTES_MAX_DEFAULT,
            cards_max: CARDS_MAX_DEFAULT,
            decode: DecodeLimits::default(),
        }
    }
}
