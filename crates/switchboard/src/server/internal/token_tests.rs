//! Tokens as the original makes and takes them.

use super::InternalTokens;

/// Made by the original.
const ORIGINAL: &str = "1700000000000.86e63ac7de6a6cc4e31de94a96d80a3c305b5e48d47ed3b547d096c43b1684c4";
const MADE_AT: i64 = 1_700_000_000_000;

#[test]
fn tokens_are_those_of_the_original() {
    let tokens = InternalTokens::new("s3cret");
    assert_eq!(tokens.make("task-1", MADE_AT), ORIGINAL);
    for (after_ms, expected) in [(-60_001, false), (-60_000, true), (0, true), (300_000, true), (300_001, false)] {
        assert_eq!(tokens.verify(ORIGINAL, "task-1", MADE_AT + after_ms), expected, "{after_ms}");
    }
}

#[test]
fn a_token_is_for_one_row_under_one_secret_and_is_written_in_one_way() {
    let tokens = InternalTokens::new("s3cret");
    assert!(!tokens.verify(ORIGINAL, "task-2", MADE_AT));
    assert!(!InternalTokens::new("other").verify(ORIGINAL, "task-1", MADE_AT));
    let (time, mac) = ORIGINAL.split_once('.').unwrap();
    for wrong in [
        "",
        ".",
        "1700000000000",
        &format!("+{time}.{mac}"),
        &format!("0{time}.{mac}"),
        &format!("-{time}.{mac}"),
        &format!("{time}.{}", mac.to_uppercase()),
        &format!("{time}.{mac}00"),
        &format!("{time}.{}", &mac[..62]),
        &format!("1700000000001.{mac}"),
        &format!("99999999999999999999999999.{mac}"),
        &format!("{time}.{}é", &mac[..62]),
    ] {
        assert!(!tokens.verify(wrong, "task-1", MADE_AT), "{wrong}");
    }
}
