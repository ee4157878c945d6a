//! Fast hashes. [`IdHash`] is for keys that no client can choose: numbers made by this server, digests, configured
//! names. [`SeededHash`] is for ids that a client may choose: each process has its own seed, so that a client cannot
//! construct ids that collide.

use std::hash::{BuildHasherDefault, Hasher};

pub type SeededHash = foldhash::fast::RandomState;

pub type IdHash = BuildHasherDefault<IdHasher>;

#[derive(Default)]
pub struct IdHasher(u64);

/// An odd number with bits set throughout, so that multiplication spreads every bit of a key to the higher bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            self.write_u64(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(SPREAD);
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word.cast_unsigned());
    }

    fn finish(&self) -> u64 {
        // Hash tables use the low bits, and multiplication mixes the high bits best.
        self.0 ^ (self.0 >> 32)
    }
}
