//! Fresh ids and the time as text, as cheaply as an honest server can make them.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

thread_local! {
    static STATE: Cell<u64> = Cell::new(seed());
}

/// A random id in the form of a UUID version 4.
pub(super) struct Id([u8; 36]);

impl Id {
    pub(super) fn fresh() -> Id {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut bits = (u128::from(random()) << 64) | u128::from(random());
        let mut text = [0_u8; 36];
        for (at, byte) in text.iter_mut().enumerate() {
            *byte = match at {
                8 | 13 | 18 | 23 => b'-',
                14 => b'4',
                _ => {
                    let digit = HEX[(bits & 0xf) as usize];
                    bits >>= 4;
                    digit
                }
            };
        }
        Id(text)
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("hex digits and dashes are ASCII")
    }
}

/// Now, as `2026-02-03T10:00:05.120Z`.
pub(super) fn timestamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (now.as_secs() / 86_400, now.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (at, width, mut value) in [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, second / 3600),
        (14, 2, second / 60 % 60),
        (17, 2, second % 60),
        (20, 3, u64::from(now.subsec_millis())),
    ] {
        for place in (at..at + width).rev() {
            text[place] = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar: years are counted from
/// March, so that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, of_year - (153 * from_march + 2) / 5 + 1)
}

/// SplitMix64: one addition and three multiplications per draw, and no system call.
fn random() -> u64 {
    STATE.with(|state| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

fn seed() -> u64 {
    getrandom::u64().unwrap_or(0x5eed)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_487), (2026, 2, 3));
    }
}
