//! Mutations of a corpus entry: bits, ranges and words are changed, doubled, removed and put in, and two entries are joined.

use crate::INPUT_BYTES_MAX;

/// Random numbers that depend on nothing but the name of the target, the seed and the number of the input (SplitMix64).
pub struct Dice(u64);

impl Dice {
    #[must_use]
    pub fn new(name: &str, seed: u64, at: u64) -> Self {
        let of_name = name.bytes().fold(seed, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Self(of_name ^ at.wrapping_mul(0xD1B5_4A32_D192_ED03))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end as u64).max(1)).unwrap_or(0)
    }
}

/// What decoders trip over, in the languages that are read here.
const WORDS: [&[u8]; 40] = [
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"\"",
    b"\"\\ud800\"",
    b"\"\\u0000\"",
    b"-0",
    b"1e400",
    b"1e-400",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"0.1",
    b"\"a\":",
    b",",
    b":",
    b"\\",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf0\x9f\xa6\x80",
    b"\r\n",
    b"\n\n",
    b"\n",
    b"data: ",
    b"id: ",
    b"%00",
    b"%2F",
    b"%",
    b"../",
    b"//",
    b"?a=b&a=",
    b"=",
    b"==",
    b".",
    b"'",
    b"#",
    b"\x08\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80",
];

/// One mutation, or a few on top of each other, of an entry.
#[must_use]
pub fn mutated(corpus: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut input = corpus[dice.below(corpus.len())].clone();
    for _ in 0..=dice.below(4) {
        change(&mut input, corpus, dice);
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], dice: &mut Dice) {
    let at = dice.below(input.len() + 1);
    let end = (at + dice.below(32) + 1).min(input.len()).max(at);
    match dice.below(10) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        1 => drop(input.drain(at..end)),
        2 => input.truncate(at),
        3 | 4 => drop(input.splice(at..at, WORDS[dice.below(WORDS.len())].iter().copied())),
        5 => drop(input.splice(at..end, WORDS[dice.below(WORDS.len())].iter().copied())),
        6 => {
            let twice = input[at..end].to_vec();
            drop(input.splice(at..at, twice));
        }
        // Deep nesting and long runs.
        7 => {
            let byte = [b'[', b'{', b'(', b'"', b'\\', b'9', b'a', 0xff, b'/', b'\n'][dice.below(10)];
            let count = 1 << dice.below(15);
            drop(input.splice(at..at, std::iter::repeat_n(byte, count)));
        }
        8 => {
            let other = &corpus[dice.below(corpus.len())];
            input.truncate(at);
            input.extend_from_slice(&other[dice.below(other.len() + 1)..]);
        }
        _ => {
            // A number becomes another one.
            if let Some(digit) = input.iter().skip(at).position(u8::is_ascii_digit) {
                let extreme: &[u8] = [&b"-1"[..], b"0", b"256", b"4294967296", b"99999999999999999999"][dice.below(5)];
                drop(input.splice(at + digit..=at + digit, extreme.iter().copied()));
            }
        }
    }
}
