//! Timestamps: the spelling is exact both ways.

use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use super::Timestamp;

fn check(text: &str, canonical: &str) {
    let parsed = Timestamp::parse_rfc3339(text).unwrap_or_else(|| panic!("{text} should parse"));
    assert_eq!(parsed.to_string(), canonical, "{text}");
}

#[test]
fn every_legal_spelling_is_read_and_the_canonical_one_written() {
    check("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z");
    check("2026-02-03T10:00:05.120Z", "2026-02-03T10:00:05.120Z");
    check("2026-02-03T10:00:05.123456789Z", "2026-02-03T10:00:05.123Z");
    check("2026-02-03T10:00:05.1Z", "2026-02-03T10:00:05.100Z");
    check("2026-02-03T10:00:05+02:00", "2026-02-03T08:00:05.000Z");
    check("2024-02-29T23:59:60Z", "2024-02-29T23:59:59.999Z");
    check("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z");
    check("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z");
    check("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z");
}

#[test]
fn what_is_not_a_moment_is_refused() {
    for text in [
        "",
        "2026-02-03",
        "2026-02-30T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-02-03T24:00:00Z",
        "2026-02-03T10:00:05",
        "2026-02-03T10:00:05.Z",
        "2026-02-03T10:00:05Zx",
        "2026-02-03T10:00:05+2:00",
        "0000-01-01T00:00:00Z",
        "２０26-02-03T10:00:05Z",
    ] {
        assert_eq!(Timestamp::parse_rfc3339(text), None, "{text}");
    }
}

#[test]
fn the_calendar_agrees_with_itself_on_every_day_of_five_centuries() {
    for day in -150_000..60_000i64 {
        let moment = Timestamp::from_ms(day * 86_400_000 + 1);
        assert_eq!(Timestamp::parse_rfc3339(&moment.to_string()), Some(moment));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_moment_survives_being_written_and_read(ms in Timestamp::MIN_MS..=Timestamp::MAX_MS) {
        let moment = Timestamp::from_ms(ms);
        prop_assert_eq!(Timestamp::parse_rfc3339(&moment.to_string()), Some(moment));
    }

    #[test]
    fn order_in_time_is_order_in_spelling(
        a in Timestamp::MIN_MS..=Timestamp::MAX_MS,
        b in Timestamp::MIN_MS..=Timestamp::MAX_MS,
    ) {
        let (a, b) = (Timestamp::from_ms(a), Timestamp::from_ms(b));
        prop_assert_eq!(a.cmp(&b), a.to_rfc3339().cmp(&b.to_rfc3339()));
    }

    #[test]
    fn nothing_that_looks_like_a_moment_makes_the_reader_panic(text in "[0-9]{2,4}[-:.T0-9]{10,20}[Z+:.0-9ä-]{0,8}") {
        if let Some(moment) = Timestamp::parse_rfc3339(&text) {
            prop_assert_eq!(Timestamp::parse_rfc3339(&moment.to_string()), Some(moment));
        }
    }
}
