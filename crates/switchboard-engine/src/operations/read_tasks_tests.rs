//! Page tokens of lists.

use switchboard_core::call::ListTasks;
use switchboard_core::model::Timestamp;

use super::{decode_token, encode_token};
use crate::ports::store::{ListCursor, TaskKey};

/// A page token is refused, or means the position that it was made from.
#[test]
fn fuzz_page_tokens() {
    let list = ListTasks::default();
    let cursors = [(0, 1), (1_700_000_000_000, 42), (i64::MAX, i64::MAX), (i64::MIN, -1)];
    let tokens = cursors.map(|(at, key)| {
        let cursor = ListCursor { status_at: Timestamp::from_ms(at), key: TaskKey(key) };
        let token = encode_token(cursor, &list);
        assert_eq!(decode_token(&token, &list).unwrap(), cursor);
        token.into_bytes()
    });
    switchboard_fuzz::run("page tokens", &tokens, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        if let Ok(cursor) = decode_token(text, &list) {
            // A time beyond the year 9999 is read as its end.
            assert_eq!(decode_token(&encode_token(cursor, &list), &list).unwrap(), cursor, "{text}");
            assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
        }
    });
}
