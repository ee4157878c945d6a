//! Tokens whose signature was verified, so that it is verified once and not at each request. A token is kept by its digest, until it
//! expires or the keys that it was verified with are replaced. Only good tokens get in here, so strangers cannot fill it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_core::model::Timestamp;

use super::Identity;
use super::schemes::SchemeSet;

/// Threads that serve requests at the same time rarely meet at the same shard.
const SHARDS: usize = 16;
/// How many tokens one half of a shard keeps; the older half is dropped when the younger one is full.
const SHARD_TOKENS_MAX: usize = 512;

/// A token that was found to be good.
#[derive(Clone)]
pub(super) struct Verified {
    pub(super) identity: Arc<Identity>,
    pub(super) scheme: SchemeSet,
    /// Of the keys; a token that was verified with other ones is verified again.
    pub(super) generation: u64,
}

type Half = HashMap<[u8; 32], Verified>;

#[derive(Default)]
struct Shard {
    young: Half,
    old: Half,
}

/// The tokens, each by its digest.
#[derive(Default)]
pub(super) struct VerifiedTokens {
    shards: [Mutex<Shard>; SHARDS],
}

impl VerifiedTokens {
    fn shard(&self, digest: &[u8; 32]) -> &Mutex<Shard> {
        &self.shards[usize::from(digest[0]) % SHARDS]
    }

    pub(super) fn get(&self, digest: &[u8; 32], now: Timestamp) -> Option<Verified> {
        let mut shard = self.shard(digest).lock().unwrap_or_else(PoisonError::into_inner);
        let found = match shard.young.get(digest) {
            Some(found) => found.clone(),
            None => {
                let found = shard.old.remove(digest)?;
                shard.insert(*digest, found.clone());
                found
            }
        };
        let is_good = found.identity.expires.is_none_or(|expires| expires > now);
        if !is_good {
            shard.young.remove(digest);
        }
        is_good.then_some(found)
    }

    pub(super) fn insert(&self, digest: [u8; 32], verified: Verified) {
        self.shard(&digest).lock().unwrap_or_else(PoisonError::into_inner).insert(digest, verified);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let of = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap();
            shard.young.len() + shard.old.len()
        };
        self.shards.iter().map(of).sum()
    }
}

impl Shard {
    fn insert(&mut self, digest: [u8; 32], verified: Verified) {
        if self.young.len() >= SHARD_TOKENS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, verified);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use switchboard_core::model::Timestamp;

    use super::{SHARD_TOKENS_MAX, SHARDS, Verified, VerifiedTokens};
    use crate::server::authentication::{Identity, SchemeSet};

    fn verified(expires_ms: i64) -> Verified {
        let identity = Arc::new(Identity::new("alice").expires(Timestamp::from_ms(expires_ms)));
        Verified { identity, scheme: SchemeSet::SHARED_SECRET, generation: 0 }
    }

    fn digest(number: usize) -> [u8; 32] {
        let mut digest = [0; 32];
        digest[0] = u8::try_from(number % 256).unwrap();
        digest[8..16].copy_from_slice(&number.to_be_bytes());
        digest
    }

    #[test]
    fn a_token_is_kept_until_it_expires() {
        let tokens = VerifiedTokens::default();
        tokens.insert(digest(1), verified(1_000));
        assert!(tokens.get(&digest(1), Timestamp::from_ms(999)).is_some());
        assert!(tokens.get(&digest(2), Timestamp::from_ms(999)).is_none());
        assert!(tokens.get(&digest(1), Timestamp::from_ms(1_000)).is_none());
        assert_eq!(tokens.len(), 0, "an expired one is forgotten");
    }

    #[test]
    fn tokens_that_are_used_stay_and_all_together_are_bounded() {
        let tokens = VerifiedTokens::default();
        let now = Timestamp::from_ms(0);
        for number in 0..SHARDS * SHARD_TOKENS_MAX * 5 {
            tokens.insert(digest(number + 1), verified(1));
            if number == 0 {
                continue;
            }
            assert!(tokens.get(&digest(1), now).is_some(), "dropped after {number} others");
        }
        assert!(tokens.len() <= SHARDS * SHARD_TOKENS_MAX * 2, "{}", tokens.len());
    }
}
