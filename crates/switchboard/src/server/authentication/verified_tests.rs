//! Which tokens are kept, and for how long.

use std::sync::Arc;

use switchboard_core::model::Timestamp;

use super::{
    Kept, SEEN_ONCE_MAX, SHARD_BYTES_MAX, SHARD_TOKENS_MAX, SHARDS, Shard, Verified, VerifiedTokens, is_equal,
};
use crate::server::authentication::{Identity, SchemeSet};

const NOW: Timestamp = Timestamp::from_ms(0);

fn verified(expires_ms: i64) -> Verified {
    let identity = Arc::new(Identity::new("alice").expires(Timestamp::from_ms(expires_ms)));
    Verified { identity, scheme: SchemeSet::SHARED_SECRET, generation: 0 }
}

fn saw(tokens: &VerifiedTokens, token: &str, times: usize) {
    for _ in 0..times {
        tokens.saw(tokens.hashed(token.as_bytes()), verified(1_000));
    }
}

fn is_kept(tokens: &VerifiedTokens, token: &str, now: Timestamp) -> bool {
    tokens.get(tokens.hashed(token.as_bytes()), now).is_some()
}

#[test]
fn a_token_is_kept_from_the_second_time_on_until_it_expires() {
    let tokens = VerifiedTokens::default();
    saw(&tokens, "one", 1);
    assert!(!is_kept(&tokens, "one", NOW), "seen once");
    assert_eq!(tokens.size(), (0, 0));
    saw(&tokens, "one", 1);
    assert!(is_kept(&tokens, "one", Timestamp::from_ms(999)));
    assert!(!is_kept(&tokens, "two", Timestamp::from_ms(999)));
    assert!(!is_kept(&tokens, "one", Timestamp::from_ms(1_000)));
    assert_eq!(tokens.size(), (0, 0), "an expired one is forgotten");
}

#[test]
fn tokens_that_are_seen_once_take_no_room() {
    let tokens = VerifiedTokens::default();
    for number in 0..SEEN_ONCE_MAX * 4 {
        saw(&tokens, &format!("token {number}"), 1);
    }
    // A hash of 32 bits in the same place would be a coincidence; one of 16 bits would not be.
    assert!(tokens.size().0 <= 2, "{:?}", tokens.size());
}

#[test]
fn tokens_that_are_used_stay_and_all_together_are_bounded() {
    let tokens = VerifiedTokens::default();
    for number in 0..SHARDS * SHARD_TOKENS_MAX * 5 {
        saw(&tokens, &format!("token {number}"), 2);
        assert!(is_kept(&tokens, "token 0", NOW), "dropped after {number} others");
    }
    let (count, bytes) = tokens.size();
    assert!(count > SHARDS * SHARD_TOKENS_MAX / 2 && count <= SHARDS * SHARD_TOKENS_MAX * 2, "{count}");
    assert!(bytes <= SHARDS * SHARD_BYTES_MAX * 2, "{bytes}");
}

#[test]
fn long_tokens_and_those_with_many_scopes_are_bounded_by_their_bytes() {
    let tokens = VerifiedTokens::default();
    let long = "x".repeat(16 << 10);
    for number in 0..SHARDS * 100 {
        saw(&tokens, &format!("{long} {number}"), 2);
    }
    let (count, bytes) = tokens.size();
    assert!(count >= SHARDS && bytes >= count * long.len(), "{count} tokens count {bytes} bytes");
    assert!(bytes <= SHARDS * SHARD_BYTES_MAX * 2, "{bytes}");
    let identity = Arc::new(Identity::new("alice").scopes((0..8_000).map(|number| number.to_string())));
    let many = Verified { identity, scheme: SchemeSet::SHARED_SECRET, generation: 0 };
    for _ in 0..2 {
        tokens.saw(tokens.hashed(b"many"), many.clone());
    }
    assert!(!is_kept(&tokens, "many", NOW), "it alone is more than a shard keeps");
    assert_eq!(tokens.size(), (count, bytes), "and the others stay");
}

#[test]
fn a_token_with_the_same_hash_is_another_token() {
    let mut shard = Shard::default();
    shard.insert(7, Kept::new(b"one", verified(1_000)));
    for other in ["two", "on", "one more", ""] {
        assert!(shard.get(other.as_bytes(), 7, NOW).is_none(), "{other:?}");
    }
    assert!(shard.get(b"one", 7, NOW).is_some());
    shard.insert(7, Kept::new(b"two", verified(1_000)));
    assert!(shard.get(b"two", 7, NOW).is_some() && shard.get(b"one", 7, NOW).is_none());
    assert_eq!(shard.young.bytes, Kept::new(b"two", verified(1_000)).bytes, "what it replaced is not counted");
}

#[test]
fn secrets_are_equal_only_as_a_whole() {
    let secret = b"a-secret-that-is-longer-than-a-register-of-the-processor-is-wide";
    assert!(is_equal(secret, secret) && is_equal(b"", b""));
    for at in 0..secret.len() {
        let mut other = secret.to_vec();
        other[at] ^= 1;
        assert!(!is_equal(secret, &other), "{at}");
        assert!(!is_equal(secret, &secret[..at]) && !is_equal(&secret[..at], secret), "{at}");
    }
}
