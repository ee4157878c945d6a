//! The adapters for the system's clock and random number generator, and for hints in a process that is alone with its
//! store. A simulation replaces all three.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::SystemTime;

use switchboard_core::model::Timestamp;

use crate::ports::{Clock, Hint, HintSink, Hints, Ids};

/// The system's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

/// The time now, in nanoseconds since 1970, for the spans of traces.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Version 7 UUIDs: the time in front, 74 bits of the system's randomness behind. They are hard enough to guess, and
/// ordered by time, so that a store appends to its index instead of writing all over it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

const POOL_BYTES: usize = 512;

struct Pool {
    bytes: [u8; POOL_BYTES],
    used: usize,
}

thread_local! {
    // One system call fetches the random bytes for 32 ids. Each byte is used once.
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], used: POOL_BYTES }) };
}

impl Ids for RandomIds {
    fn uuid(&self, now: Timestamp) -> Arc<str> {
        format_uuid(now, draw())
    }

    fn any(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = draw();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that draws randomness")]
fn draw() -> [u8; 16] {
    POOL.with_borrow_mut(|pool| {
        if pool.used == POOL_BYTES {
            getrandom::fill(&mut pool.bytes).expect("the system has a source of randomness");
            pool.used = 0;
        }
        let mut id = [0; 16];
        id.copy_from_slice(&pool.bytes[pool.used..pool.used + 16]);
        pool.used += 16;
        id
    })
}

/// Sets the time, version and variant bits and writes the usual 8-4-4-4-12 form.
fn format_uuid(now: Timestamp, mut bytes: [u8; 16]) -> Arc<str> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    // Where each byte's two digits go.
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    bytes[..6].copy_from_slice(&now.as_ms().to_be_bytes()[2..]);
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut text = [b'-'; 36];
    for (byte, place) in bytes.into_iter().zip(PLACES) {
        text[place] = HEX[usize::from(byte >> 4)];
        text[place + 1] = HEX[usize::from(byte & 0x0f)];
    }
    std::str::from_utf8(&text).expect("digits and dashes are text").into()
}

/// Hints for a process that does not share its store: there is no other process to notify.
#[derive(Debug, Default)]
pub struct NoHints;

impl Hints for NoHints {
    fn notify(&self, _: Hint<'_>) {}

    fn listen(&self, _: Arc<dyn HintSink>) {}
}

#[cfg(test)]
mod tests {
    use super::{Clock, Ids, RandomIds, SystemClock};

    #[test]
    fn ids_are_uuids_in_order_of_time_and_never_the_same() {
        let ids: Vec<_> = (0..2_000).map(|_| RandomIds.uuid(SystemClock.now())).collect();
        let now = SystemClock.now().as_ms();
        for id in &ids {
            let bytes = id.as_bytes();
            assert_eq!(
                (id.len(), bytes[8], bytes[13], bytes[14], bytes[18], bytes[23]),
                (36, b'-', b'-', b'7', b'-', b'-')
            );
            assert!(b"89ab".contains(&bytes[19]), "{id}");
            let made = i64::from_str_radix(&id.replace('-', "")[..12], 16).unwrap();
            assert!((now - 60_000..=now).contains(&made), "{id}");
        }
        let mut distinct = ids.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), ids.len());
    }
}
