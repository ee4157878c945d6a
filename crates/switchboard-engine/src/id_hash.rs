//! Quick hashes. [`IdHash`] is for keys that no client can choose: numbers made by this server, digests, configured names.
//! [`SeededHash`] is for ids that a client may choose: each process hashes them in its own way, so that nobody can make
//! many that meet in one place.

use std::hash::{BuildHasherDefault, Hasher};

pub type SeededHash = foldhash::fast::RandomState;

pub type IdHash = BuildHasherDefault<IdHasher>;

#[derive(Default)]
pub struct IdHasher(u64);

/// Odd, and with bits all over: multiplying by it spreads every bit of a key upwards.
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
        // A table takes the low bits; the high ones are the well-mixed ones.
        self.0 ^ (self.0 >> 32)
    }
}
