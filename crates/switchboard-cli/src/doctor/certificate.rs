//! When a certificate expires. Of its DER form, only what leads to that date is read.

use switchboard_core::model::Timestamp;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The moment after which the certificate is no longer valid; none if the bytes are no certificate.
pub(super) fn not_after(der: &[u8]) -> Option<Timestamp> {
    let (_, certificate, _) = element(der).filter(|(tag, _, _)| *tag == SEQUENCE)?;
    let (_, mut rest, _) = element(certificate).filter(|(tag, _, _)| *tag == SEQUENCE)?;
    if let Some((VERSION, _, after)) = element(rest) {
        rest = after;
    }
    // The serial number, the algorithm and the issuer.
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    let (_, validity, _) = element(rest).filter(|(tag, _, _)| *tag == SEQUENCE)?;
    let (_, _, after_not_before) = element(validity)?;
    let (tag, time, _) = element(after_not_before)?;
    parse(tag, std::str::from_utf8(time).ok()?)
}

/// The tag, the contents, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, mut rest) = rest.split_first()?;
    let mut length = usize::from(*first);
    if length >= 0x80 {
        let count = length - 0x80;
        let (digits, after) = rest.split_at_checked(count).filter(|_| (1..=4).contains(&count))?;
        length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
        rest = after;
    }
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((*tag, contents, rest))
}

fn parse(tag: u8, text: &str) -> Option<Timestamp> {
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            // Two digits stand for the years from 1950 to 2049.
            let century = if year >= "50" { "19" } else { "20" };
            (format!("{century}{year}"), rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.to_owned(), rest)
        }
        _ => return None,
    };
    let digits = rest.strip_suffix('Z').filter(|it| it.len() == 10 && it.bytes().all(|byte| byte.is_ascii_digit()))?;
    let two = |at: usize| &digits[at..at + 2];
    let text = format!("{year}-{}-{}T{}:{}:{}Z", two(0), two(2), two(4), two(6), two(8));
    Timestamp::parse_rfc3339(&text)
}

#[cfg(test)]
mod tests {
    use super::{GENERALIZED_TIME, UTC_TIME, not_after, parse};

    #[test]
    fn both_spellings_of_a_date_are_read() {
        for (tag, text, expected) in [
            (UTC_TIME, "260131235959Z", "2026-01-31T23:59:59.000Z"),
            (UTC_TIME, "500101000000Z", "1950-01-01T00:00:00.000Z"),
            (GENERALIZED_TIME, "21240229120000Z", "2124-02-29T12:00:00.000Z"),
        ] {
            assert_eq!(parse(tag, text).unwrap().to_string(), expected);
        }
        for (tag, text) in
            [(UTC_TIME, "2601312359Z"), (GENERALIZED_TIME, "2"), (UTC_TIME, "ééééééZ"), (1, "260131235959Z")]
        {
            assert_eq!(parse(tag, text), None, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_certificate_have_no_date() {
        for bytes in [&[][..], &[0x30], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30, 2, 0x30, 0], &[0x30, 0x80]] {
            assert_eq!(not_after(bytes), None);
        }
    }
}
