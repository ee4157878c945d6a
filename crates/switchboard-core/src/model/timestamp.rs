//! A moment, in milliseconds since 1970 UTC, and its RFC 3339 spelling. Hand-written, because it is two short functions
//! on a hot path and a calendar crate is larger and slower.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

const MS_PER_DAY: i64 = 86_400_000;

impl From<SystemTime> for Timestamp {
    /// A time before 1970 becomes 1970.
    fn from(time: SystemTime) -> Self {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        // Without 128 bits, which `as_millis` has: every commit reads the clock several times.
        let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
        Self::from_ms(seconds.saturating_mul(1000).saturating_add(since_epoch.subsec_millis().into()))
    }
}

impl Timestamp {
    /// The range RFC 3339 can spell: years 0001 to 9999.
    const MIN_MS: i64 = -62_135_596_800_000;
    const MAX_MS: i64 = 253_402_300_799_999;

    /// The moment so many milliseconds after 1970-01-01T00:00:00Z; what is outside the years 1 to 9999 becomes the nearest
    /// end.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        if ms < Self::MIN_MS {
            Self(Self::MIN_MS)
        } else if ms > Self::MAX_MS {
            Self(Self::MAX_MS)
        } else {
            Self(ms)
        }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z; negative before.
    #[must_use]
    pub fn as_ms(self) -> i64 {
        self.0
    }

    /// The moment so many milliseconds later, at most the end of year 9999.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self::from_ms(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to `self`, 0 if the clock went backwards.
    #[must_use]
    pub fn ms_since(self, earlier: Self) -> i64 {
        (self.0 - earlier.0).max(0)
    }

    /// Writes `YYYY-MM-DDTHH:MM:SS.mmmZ`, always 24 bytes.
    #[must_use]
    pub fn to_rfc3339(self) -> [u8; 24] {
        let (year, month, day) = civil_from_days(self.0.div_euclid(MS_PER_DAY));
        // It takes fewer instructions to divide small numbers that have no sign.
        let ms_of_day = u32::try_from(self.0.rem_euclid(MS_PER_DAY)).unwrap_or_default();
        let (second_of_day, ms) = (ms_of_day / 1000, ms_of_day % 1000);
        let (minute_of_day, second) = (second_of_day / 60, second_of_day % 60);
        let (hour, minute) = (minute_of_day / 60, minute_of_day % 60);
        let [y0, y1] = two_digits(year / 100);
        let [y2, y3] = two_digits(year % 100);
        let [m0, m1] = two_digits(month);
        let [d0, d1] = two_digits(day);
        let [h0, h1] = two_digits(hour);
        let [i0, i1] = two_digits(minute);
        let [s0, s1] = two_digits(second);
        let [f0, f1] = two_digits(ms / 10);
        let [_, f2] = two_digits(ms % 10);
        [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, b'T', h0, h1, b':', i0, i1, b':', s0, s1, b'.', f0, f1, f2, b'Z']
    }

    /// Reads RFC 3339 with any number of fraction digits and any offset; finer than a millisecond is cut off.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() < 20 || !text.is_ascii() {
            return None;
        }
        let number = |from: usize, to: usize| -> Option<i64> {
            let part = bytes.get(from..to)?;
            part.iter().try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
        };
        let fixed = |at: usize, allowed: &[u8]| bytes.get(at).is_some_and(|b| allowed.contains(b));
        if !(fixed(4, b"-") && fixed(7, b"-") && fixed(10, b"Tt ") && fixed(13, b":") && fixed(16, b":")) {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        // A leap second is real time that our count cannot name; it becomes the last millisecond before it ends.
        let in_range = year >= 1
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour <= 23
            && minute <= 59
            && second <= 60;
        if !in_range {
            return None;
        }
        let mut at = 19;
        let mut ms = 0;
        if fixed(19, b".") {
            let digits = bytes[20..].iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            for i in 0..3 {
                ms = ms * 10 + if i < digits { i64::from(bytes[20 + i] - b'0') } else { 0 };
            }
            at = 20 + digits;
        }
        let offset_minutes = match bytes.get(at)? {
            b'Z' | b'z' if bytes.len() == at + 1 => 0,
            sign @ (b'+' | b'-') if bytes.len() == at + 6 && fixed(at + 3, b":") => {
                let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
                if hours > 23 || minutes > 59 {
                    return None;
                }
                (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
            }
            _ => return None,
        };
        let second_ms = if second == 60 { 59_999 } else { second * 1000 + ms };
        let day_ms = hour * 3_600_000 + minute * 60_000 + second_ms - offset_minutes * 60_000;
        Some(Self::from_ms(days_from_civil(year, month, day) * MS_PER_DAY + day_ms))
    }
}

/// The digits of a number below 100.
fn two_digits(value: u32) -> [u8; 2] {
    let [value, ..] = value.to_le_bytes();
    [b'0' + value / 10, b'0' + value % 10]
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a civil date, counting years from March so that the leap day comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The civil date so many days after 1970-01-01, by the method of Neri and Schneider: the quotients are found by multiplying.
fn civil_from_days(days: i64) -> (u32, u32, u32) {
    // Counted from 1 March of year 0. No timestamp is earlier.
    let days = u32::try_from(days + 719_468).unwrap_or_default();
    let quarters = 4 * days + 3;
    let (century, day_of_century) = (quarters / 146_097, quarters % 146_097 / 4);
    let scaled = 2_939_745 * u64::from(4 * day_of_century + 3);
    let (year_of_century, of_year) = (scaled >> 32, scaled & 0xffff_ffff);
    let day_of_year = u32::try_from(of_year / 2_939_745 / 4).unwrap_or_default();
    let month_and_day = 2141 * day_of_year + 197_913;
    let (month, day) = (month_and_day >> 16, (month_and_day & 0xffff) / 2141 + 1);
    let is_next_year = day_of_year >= 306;
    let year = 100 * century + u32::try_from(year_of_century).unwrap_or_default() + u32::from(is_next_year);
    (year, if is_next_year { month - 12 } else { month }, day)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_rfc3339()).unwrap_or_default())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
#[path = "timestamp_tests.rs"]
mod tests;
