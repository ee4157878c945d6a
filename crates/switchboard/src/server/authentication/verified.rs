//! Tokens whose signature was verified, so that it is not verified at each request. A token is kept until it expires or the keys that it
//! was verified with are replaced. Only good tokens get in here, so strangers cannot fill it; and only those that are seen a second time, so
//! that callers who sign a new token for each request do not fill it either.
//!
//! A token is found by a fast hash of its end, where its signature is, and is the same only if all its bytes are. So an attacker who
//! finds collisions of the hash gains nothing: two tokens with the same hash are in each other's way, and neither is ever taken for the
//! other. The bytes are compared in constant time, so that an answer does not tell how much of a guess was right.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_core::model::Timestamp;
use switchboard_engine::id_hash::{IdHash, SeededHash};

use super::identity::Identity;
use super::schemes::SchemeSet;

/// Threads that serve requests at the same time rarely meet at the same shard.
const SHARDS: usize = 16;
/// How many tokens one half of a shard keeps; the older half is dropped when the younger one is full.
const SHARD_TOKENS_MAX: usize = 512;
/// How many bytes they and the identities of their callers may have together.
const SHARD_BYTES_MAX: usize = 256 << 10;
/// How many of its last bytes a token is found by. Two tokens hardly ever end alike: what differs before makes another signature.
const HASHED_BYTES: usize = 64;
/// How many of the tokens that were seen once are remembered, by four bytes of their hash.
const SEEN_ONCE_MAX: usize = 4_096;

/// A token that was found to be good.
#[derive(Clone)]
pub(super) struct Verified {
    pub(super) identity: Arc<Identity>,
    pub(super) scheme: SchemeSet,
    /// Of the keys; a token that was verified with other ones is verified again.
    pub(super) generation: u64,
}

/// A token of a request, and its hash.
#[derive(Clone, Copy)]
pub(super) struct Hashed<'a> {
    token: &'a [u8],
    hash: u64,
}

/// The tokens.
#[derive(Default)]
pub(super) struct VerifiedTokens {
    seed: SeededHash,
    shards: [Mutex<Shard>; SHARDS],
    seen_once: SeenOnce,
}

impl VerifiedTokens {
    pub(super) fn hashed<'a>(&self, token: &'a [u8]) -> Hashed<'a> {
        let end = token.last_chunk::<HASHED_BYTES>().map_or(token, <[u8; HASHED_BYTES]>::as_slice);
        Hashed { token, hash: self.seed.hash_one(end) }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        let [first, ..] = hash.to_le_bytes();
        &self.shards[usize::from(first) % SHARDS]
    }

    pub(super) fn get(&self, Hashed { token, hash }: Hashed<'_>, now: Timestamp) -> Option<Verified> {
        self.shard(hash).lock().unwrap_or_else(PoisonError::into_inner).get(token, hash, now)
    }

    /// Takes a token that was verified just now. It is kept if it is not the first time.
    pub(super) fn saw(&self, Hashed { token, hash }: Hashed<'_>, verified: Verified) {
        if self.seen_once.is_second(hash) {
            let kept = Kept::new(token, verified);
            self.shard(hash).lock().unwrap_or_else(PoisonError::into_inner).insert(hash, kept);
        }
    }

    /// How many tokens are kept, and how many bytes they count.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        let halves = self.shards.iter().flat_map(|shard| {
            let shard = shard.lock().unwrap();
            [&shard.young, &shard.old].map(|half| (half.tokens.len(), half.bytes))
        });
        halves.fold((0, 0), |(tokens, bytes), half| (tokens + half.0, bytes + half.1))
    }
}

/// Which tokens were seen once lately. A token that was crowded out by others is verified once more before it is kept.
struct SeenOnce(Box<[AtomicU32]>);

impl Default for SeenOnce {
    fn default() -> Self {
        Self((0..SEEN_ONCE_MAX).map(|_| AtomicU32::new(0)).collect())
    }
}

impl SeenOnce {
    /// Whether a token with this hash was seen before; if not, it was now.
    fn is_second(&self, hash: u64) -> bool {
        let [_, first, second, _, mark @ ..] = hash.to_le_bytes();
        // Zero is a place that nothing was written to.
        let mark = u32::from_le_bytes(mark) | 1;
        let place = usize::from(u16::from_le_bytes([first, second])) % SEEN_ONCE_MAX;
        self.0[place].swap(mark, Ordering::Relaxed) == mark
    }
}

/// A token that is kept.
struct Kept {
    token: Box<[u8]>,
    verified: Verified,
    /// What it counts.
    bytes: usize,
}

impl Kept {
    fn is_good(&self, now: Timestamp) -> bool {
        self.verified.identity.expires.is_none_or(|expires| expires > now)
    }

    fn new(token: &[u8], verified: Verified) -> Self {
        let bytes = token.len() + size_of::<Self>() + verified.identity.bytes();
        Self { token: token.into(), verified, bytes }
    }
}

#[derive(Default)]
struct Shard {
    young: Half,
    old: Half,
}

impl Shard {
    fn get(&mut self, token: &[u8], hash: u64, now: Timestamp) -> Option<Verified> {
        match self.young.find(token, hash) {
            Some(kept) if kept.is_good(now) => return Some(kept.verified.clone()),
            Some(_) => {
                self.young.remove(hash);
                return None;
            }
            None => {}
        }
        self.old.find(token, hash)?;
        let kept = self.old.remove(hash).filter(|kept| kept.is_good(now))?;
        let verified = kept.verified.clone();
        self.insert(hash, kept);
        Some(verified)
    }

    fn insert(&mut self, hash: u64, kept: Kept) {
        if kept.bytes > SHARD_BYTES_MAX {
            return;
        }
        self.young.remove(hash);
        self.old.remove(hash);
        if self.young.tokens.len() >= SHARD_TOKENS_MAX || self.young.bytes + kept.bytes > SHARD_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.bytes += kept.bytes;
        self.young.tokens.insert(hash, kept);
    }
}

/// Tokens by their hashes.
#[derive(Default)]
struct Half {
    tokens: HashMap<u64, Kept, IdHash>,
    bytes: usize,
}

impl Half {
    fn find(&self, token: &[u8], hash: u64) -> Option<&Kept> {
        self.tokens.get(&hash).filter(|kept| is_equal(&kept.token, token))
    }

    fn remove(&mut self, hash: u64) -> Option<Kept> {
        let kept = self.tokens.remove(&hash)?;
        self.bytes -= kept.bytes;
        Some(kept)
    }
}

/// Whether two secrets are the same. How long it takes depends on their lengths alone.
pub(super) fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
#[path = "verified_tests.rs"]
mod tests;
