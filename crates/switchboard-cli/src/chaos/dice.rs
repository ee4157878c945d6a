//! Repeatable chance: everything that is drawn comes from the seed. When things happen is up to the machine, so a seed
//! repeats the plan of a run and not each interleaving of it.

use std::hash::{BuildHasher, Hasher, RandomState};

#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that nobody chose. Short enough to be typed.
    pub(super) fn fresh_seed() -> u64 {
        RandomState::new().build_hasher().finish() % 1_000_000_000
    }

    /// Dice of one's own, so that who rolls first does not change what others roll.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.roll())
    }

    pub(super) fn roll(&mut self) -> u64 {
        // SplitMix64: small, fast, and good enough to be unfair with.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    pub(super) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
