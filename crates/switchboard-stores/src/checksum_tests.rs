//! The hash equals the published XXH64, and content that moves from one column to the next changes the checksum.

use super::{Checksum, ContentHash, xxh64};

/// The bytes of the reference implementation's own self-test (`xsum_sanity_check.c` of xxHash): each is the top byte of
/// a number that is multiplied by a prime from one to the next.
fn sanity_bytes(length: usize) -> Vec<u8> {
    const PRIME_32: u64 = 2_654_435_761;
    const PRIME_64: u64 = 11_400_714_785_074_694_797;
    let mut state = PRIME_32;
    (0..length)
        .map(|_| {
            let byte = state.to_be_bytes()[0];
            state = state.wrapping_mul(PRIME_64);
            byte
        })
        .collect()
}

/// Origin: the table XXH64 in `xsum_sanity_check.c` of xxHash, and the widely published hashes of short texts.
#[test]
fn the_hash_is_the_published_xxh64() {
    const SEED: u64 = 2_654_435_761;
    let published = [
        (0, 0, 0xEF46_DB37_51D8_E999),
        (0, SEED, 0xAC75_FDA2_929B_17EF),
        (1, 0, 0xE934_A84A_DB05_2768),
        (1, SEED, 0x5014_6076_43A9_B4C3),
        (4, 0, 0x9136_A0DC_A574_57EE),
        (14, 0, 0x8282_DCC4_994E_35C8),
        (14, SEED, 0xC3BD_6BF6_3DEB_6DF0),
        (222, 0, 0xB641_AE8C_B691_C174),
        (222, SEED, 0x20CB_8AB7_AE10_C14A),
    ];
    for (length, seed, hash) in published {
        assert_eq!(xxh64(&sanity_bytes(length), seed), hash, "{length} bytes, seed {seed}");
    }
    assert_eq!(xxh64(b"a", 0), 0xD24E_C4F1_A98C_6E5B);
    assert_eq!(xxh64(b"abc", 0), 0x44BC_2CF5_AD77_0999);
}

/// A file outlives the build that wrote it.
#[test]
fn the_checksum_of_a_row_never_changes() {
    let row = Checksum::of_table(3).number(-7).optional_number(None).optional_number(Some(9)).text("crab \u{1F980}");
    let row = row.optional_text(None).content(ContentHash::of(&[1; 100]));
    assert_eq!(row.finish(), ROW);
}

const ROW: i64 = 6_988_200_738_652_232_705;

#[test]
fn columns_are_told_apart() {
    let rows = [
        Checksum::of_table(1).text("ab").text("c"),
        Checksum::of_table(1).text("a").text("bc"),
        Checksum::of_table(1).text("abc").text(""),
        Checksum::of_table(2).text("ab").text("c"),
        Checksum::of_table(1).number(1).number(2),
        Checksum::of_table(1).number(2).number(1),
        Checksum::of_table(1).optional_number(None).optional_number(Some(0)),
        Checksum::of_table(1).optional_number(Some(0)).optional_number(None),
        Checksum::of_table(1).optional_text(None),
        Checksum::of_table(1).optional_text(Some("")),
    ];
    let mut found: Vec<i64> = rows.into_iter().map(Checksum::finish).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), rows.len());
}

#[test]
fn every_flipped_bit_changes_the_hash() {
    for length in [1, 3, 4, 7, 8, 31, 32, 33, 100, 257] {
        let bytes = sanity_bytes(length);
        let whole = xxh64(&bytes, 0);
        for bit in 0..length * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(xxh64(&flipped, 0), whole, "bit {bit} of {length} bytes");
        }
    }
}
