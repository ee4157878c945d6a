//! What callers may have under way at once: bytes of bodies that arrive, bytes of answers that are not read yet, streams, and
//! requests per second. Each caller has a share of its own, and all together have no more than the server can hold.
//!
//! What is small is not counted ([`UNCOUNTED_BYTES_MAX`]), so an ordinary request touches none of this. A caller is a
//! principal; callers without a credential are told apart by their address.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use switchboard_core::error::ProtocolError;
use switchboard_engine::budget::{Budget, Charge, OverBudget};
use switchboard_engine::ports::Share;
use tokio::time::Instant;

use crate::server::authentication::OnRefusal;
use crate::server::exchange::request_record::Holder;
use crate::server::exchange::request_record::RequestRecord;
use crate::server::limits::ServerLimits;

/// A body or an answer of up to so many bytes is not counted: the number of connections bounds what they take together.
const UNCOUNTED_BYTES_MAX: usize = 16 << 10;

/// How long a caller is asked to wait when something is used up.
const RETRY_AFTER_S: u32 = 2;

/// How many seconds' worth of requests may come at once.
const RATE_BURST_S: u32 = 5;

/// Callers and addresses whose rate is remembered. With more, those that have not come lately are forgotten.
const RATES_MAX: usize = 65_536;

pub(crate) struct Budgets {
    pub(crate) bodies: Budget<Holder>,
    pub(crate) replies: Budget<Holder>,
    pub(crate) streams: Budget<Holder>,
    /// None where no rate is set.
    pub(crate) callers: Option<Rate>,
    pub(crate) addresses: Option<Rate>,
}

impl Budgets {
    /// The limits of one caller are for all servers with the same store together; those of bytes are for the memory of this one.
    pub(crate) fn new(limits: &ServerLimits, share: &Share) -> Self {
        let rate = |per_second| Rate::new(per_second, share.clone());
        Self {
            bodies: Budget::new(limits.body_bytes_held_max, limits.body_bytes_held_per_caller_max),
            replies: Budget::new(limits.reply_bytes_held_max, limits.reply_bytes_held_per_caller_max),
            streams: Budget::new(limits.streams_max.into(), limits.streams_per_caller_max.into()).shared(share.clone()),
            callers: limits.caller_requests_per_second_max.map(rate),
            addresses: limits.address_requests_per_second_max.map(rate),
        }
    }

    /// Counts a request of this address, as soon as its head is there.
    pub(crate) fn admit_address(&self, note: &RequestRecord) -> Result<(), ProtocolError> {
        match (&self.addresses, note.address()) {
            (Some(rate), Some(address)) => {
                rate.admit(&Holder::of_address(address), "from your address", Instant::now())
            }
            (None, _) | (_, None) => Ok(()),
        }
    }

    /// Counts a request of this caller, as soon as it is known who calls.
    pub(crate) fn admit_caller(&self, note: &RequestRecord) -> Result<(), ProtocolError> {
        match &self.callers {
            Some(rate) => rate.admit(&note.holder(), "of yours", Instant::now()),
            None => Ok(()),
        }
    }

    /// What was refused for want of anything of this, by the limit that was reached.
    pub(crate) fn refusals(&self) -> [(&'static str, u64); 8] {
        let [bodies, replies, streams] = [&self.bodies, &self.replies, &self.streams].map(Budget::usage);
        let rate = |rate: &Option<Rate>| rate.as_ref().map_or(0, |rate| rate.refused.load(Relaxed));
        [
            ("body_bytes_held_max", bodies.refused_all),
            ("body_bytes_held_per_caller_max", bodies.refused_each),
            ("reply_bytes_held_max", replies.refused_all),
            ("reply_bytes_held_per_caller_max", replies.refused_each),
            ("streams_max", streams.refused_all),
            ("streams_per_caller_max", streams.refused_each),
            ("caller_requests_per_second_max", rate(&self.callers)),
            ("address_requests_per_second_max", rate(&self.addresses)),
        ]
    }

    /// A place for a stream.
    pub(crate) fn stream(&self, note: &RequestRecord) -> Result<Charge<Holder>, ProtocolError> {
        self.streams.take(note.holder(), 1).map_err(|over| {
            refusal(match over {
                OverBudget::Each(max) => format!("you have {max} streams open, the most one caller may have"),
                OverBudget::All(max) => format!("{max} streams are open, the most that this server has"),
            })
        })
    }

    /// Counts bytes of an answer until its client has taken them.
    pub(crate) fn hold(&self, bytes: &mut Bytes, note: &RequestRecord) -> Result<(), ProtocolError> {
        match bytes.len() > UNCOUNTED_BYTES_MAX {
            true => hold(&self.replies, std::mem::take(bytes), note.holder()).map(|charged| *bytes = charged),
            false => Ok(()),
        }
    }

    /// Counts the piece of a download that is held at a time.
    pub(crate) fn hold_piece(&self, bytes: u64, note: &RequestRecord) -> Result<Charge<Holder>, ProtocolError> {
        self.replies.take(note.holder(), bytes).map_err(unread)
    }

    /// What a stream counts that has this place.
    pub(crate) fn hold_stream(
        &self,
        place: Charge<Holder>,
        note: &RequestRecord,
        on_refusal: Option<OnRefusal>,
    ) -> StreamHold {
        StreamHold { replies: self.replies.clone(), holder: note.holder(), on_refusal, _place: place }
    }
}

fn hold(replies: &Budget<Holder>, bytes: Bytes, holder: Holder) -> Result<Bytes, ProtocolError> {
    let charge = replies.take(holder, bytes.len() as u64).map_err(unread)?;
    Ok(Bytes::from_owner(Charged { bytes, _charge: charge }))
}

/// Bytes that count as long as something holds them.
struct Charged {
    bytes: Bytes,
    _charge: Charge<Holder>,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What a stream holds: its place among the streams, and what was written and is not read yet.
pub(crate) struct StreamHold {
    replies: Budget<Holder>,
    holder: Holder,
    on_refusal: Option<OnRefusal>,
    _place: Charge<Holder>,
}

impl StreamHold {
    /// Counts what is about to be written until its client has taken it. A stream that cannot be written ends with the refusal
    /// and can be resumed.
    pub(crate) fn write(&self, bytes: Bytes) -> Result<Bytes, ProtocolError> {
        match bytes.len() > UNCOUNTED_BYTES_MAX {
            true => hold(&self.replies, bytes, self.holder.clone()).inspect_err(|error| {
                if let Some(on_refusal) = &self.on_refusal {
                    on_refusal(error);
                }
            }),
            false => Ok(bytes),
        }
    }
}

/// The bytes of a body that is being read.
pub(crate) struct BodyHold<'a> {
    budgets: &'a Budgets,
    note: &'a RequestRecord,
    charge: Option<Charge<Holder>>,
}

impl<'a> BodyHold<'a> {
    pub(crate) fn new(budgets: &'a Budgets, note: &'a RequestRecord) -> Self {
        Self { budgets, note, charge: None }
    }

    /// Counts that so much has come in all. It is taken in steps, as it comes: what a client says its body will have counts
    /// nothing.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), ProtocolError> {
        if bytes <= UNCOUNTED_BYTES_MAX {
            return Ok(());
        }
        let bytes = bytes.next_multiple_of(UNCOUNTED_BYTES_MAX) as u64;
        let taken = match &mut self.charge {
            Some(charge) => charge.grow_to(bytes),
            None => self.budgets.bodies.take(self.note.holder(), bytes).map(|charge| self.charge = Some(charge)),
        };
        taken.map_err(|over| {
            refusal(match over {
                OverBudget::Each(max) => format!("the bodies that you send at once have more than {max} bytes"),
                OverBudget::All(max) => format!("the bodies that are being sent have more than {max} bytes together"),
            })
        })
    }

    /// What is counted for the body, to be kept as long as the request is held.
    pub(crate) fn into_charge(self) -> Option<Charge<Holder>> {
        self.charge
    }
}

fn unread(over: OverBudget) -> ProtocolError {
    refusal(match over {
        OverBudget::Each(max) => format!("the answers that you have not read yet have more than {max} bytes"),
        OverBudget::All(max) => format!("the answers that are not read yet have more than {max} bytes together"),
    })
}

fn refusal(reason: String) -> ProtocolError {
    ProtocolError::ResourceExhausted { reason, retry_after_s: RETRY_AFTER_S }
}

/// Requests per second of each holder: a bucket that fills at that rate, and holds what may come at once.
pub(crate) struct Rate {
    per_second: u32,
    /// What part of it is for this server.
    share: Share,
    hashing: RandomState,
    shards: Vec<Mutex<HashMap<Holder, Bucket>>>,
    pub(crate) refused: AtomicU64,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Rate {
    const SHARDS: usize = 16;

    fn new(per_second: u32, share: Share) -> Self {
        let shards = (0..Self::SHARDS).map(|_| Mutex::default()).collect();
        Self { per_second: per_second.max(1), share, hashing: RandomState::new(), shards, refused: AtomicU64::new(0) }
    }

    fn admit(&self, holder: &Holder, whose: &str, now: Instant) -> Result<(), ProtocolError> {
        let per_second = self.share.of_rate(f64::from(self.per_second));
        // A bucket that cannot hold one request would admit none.
        let full = (per_second * f64::from(RATE_BURST_S)).max(1.0);
        let shard = usize::try_from(self.hashing.hash_one(holder)).unwrap_or_default() % Self::SHARDS;
        let mut buckets = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        let filled = |bucket: &Bucket| {
            (bucket.left + now.saturating_duration_since(bucket.at).as_secs_f64() * per_second).min(full)
        };
        if buckets.len() >= RATES_MAX / Self::SHARDS && !buckets.contains_key(holder) {
            buckets.retain(|_, bucket| filled(bucket) < full);
            if buckets.len() >= RATES_MAX / Self::SHARDS {
                // Every holder has sent lately. Forgetting them all lets each send a burst more, and costs no memory.
                buckets.clear();
            }
        }
        let bucket = buckets.entry(holder.clone()).or_insert(Bucket { left: full, at: now });
        let left = filled(bucket);
        *bucket = Bucket { left: if left >= 1.0 { left - 1.0 } else { left }, at: now };
        drop(buckets);
        if left >= 1.0 {
            return Ok(());
        }
        self.refused.fetch_add(1, Relaxed);
        Err(ProtocolError::ResourceExhausted {
            reason: format!("more than {} requests per second came {whose}", self.per_second),
            retry_after_s: 1,
        })
    }
}

#[cfg(test)]
#[path = "budgets_tests.rs"]
mod tests;
