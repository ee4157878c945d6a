//! Checksums of stored rows. They find changes by a faulty disk, faulty memory or manual edits. They do not protect
//! against deliberate manipulation, because they can be computed without a secret.
//!
//! The hash is XXH64, which has an exact specification, so a file can be read by every build on every platform. It is
//! implemented here because sixty lines of safe Rust that hash several gigabytes a second need no dependency.

/// XXH64 of some bytes.
pub(crate) fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let (stripes, mut rest) = bytes.as_chunks::<32>();
    let mut hash = if stripes.is_empty() {
        seed.wrapping_add(PRIME_5)
    } else {
        let mut lanes = [
            seed.wrapping_add(PRIME_1).wrapping_add(PRIME_2),
            seed.wrapping_add(PRIME_2),
            seed,
            seed.wrapping_sub(PRIME_1),
        ];
        for stripe in stripes {
            let (words, _) = stripe.as_chunks::<8>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = round(*lane, u64::from_le_bytes(*word));
            }
        }
        let [first, second, third, fourth] = lanes;
        let joined = first
            .rotate_left(1)
            .wrapping_add(second.rotate_left(7))
            .wrapping_add(third.rotate_left(12))
            .wrapping_add(fourth.rotate_left(18));
        lanes.into_iter().fold(joined, |hash, lane| (hash ^ round(0, lane)).wrapping_mul(PRIME_1).wrapping_add(PRIME_4))
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let (words, tail) = rest.as_chunks::<8>();
    for word in words {
        hash = take_word(hash, u64::from_le_bytes(*word));
    }
    rest = tail;
    if let Some((word, tail)) = rest.split_first_chunk::<4>() {
        hash ^= u64::from(u32::from_le_bytes(*word)).wrapping_mul(PRIME_1);
        hash = hash.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3);
        rest = tail;
    }
    for byte in rest {
        hash ^= u64::from(*byte).wrapping_mul(PRIME_5);
        hash = hash.rotate_left(11).wrapping_mul(PRIME_1);
    }
    avalanche(hash)
}

/// The checksum of a row, to which the columns are added in a fixed order. Every step maps different states to
/// different states, so a change of one number is always found, and any other change is missed with probability 2^-64.
#[derive(Clone, Copy)]
pub(crate) struct Checksum(u64);

impl Checksum {
    /// Begins a row. Each table has its own number, so that a row of one table never matches the checksum of another
    /// table's row.
    pub(crate) const fn of_table(number: u64) -> Self {
        Self(number.wrapping_add(PRIME_5))
    }

    pub(crate) fn number(self, number: i64) -> Self {
        Self(take_word(self.0, number.cast_unsigned()))
    }

    pub(crate) fn optional_number(self, number: Option<i64>) -> Self {
        match number {
            Some(number) => self.number(1).number(number),
            None => self.number(0),
        }
    }

    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        Self(xxh64(bytes, self.0))
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn optional_text(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.number(1).text(text),
            None => self.number(0),
        }
    }

    /// Adds the hash of a large content that another thread has computed, so that the writer thread need not.
    pub(crate) fn content(self, hash: ContentHash) -> Self {
        self.number(hash.0.cast_signed())
    }

    /// As a column holds it.
    pub(crate) fn finish(self) -> i64 {
        avalanche(self.0).cast_signed()
    }
}

/// The hash of a record's text or of a chunk's bytes, without the other columns of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentHash(u64);

impl ContentHash {
    pub(crate) fn of(content: &[u8]) -> Self {
        Self(xxh64(content, 0))
    }
}

const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME_5: u64 = 0x27D4_EB2F_1656_67C5;

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIME_2)).rotate_left(31).wrapping_mul(PRIME_1)
}

fn take_word(hash: u64, word: u64) -> u64 {
    (hash ^ round(0, word)).rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4)
}

fn avalanche(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(PRIME_2);
    let hash = (hash ^ (hash >> 29)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
#[path = "checksum_tests.rs"]
mod tests;
