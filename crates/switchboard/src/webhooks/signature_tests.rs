//! Ids as they are signed.

use super::webhook_id;

#[test]
fn an_id_cannot_pass_for_a_time_or_a_body() {
    for (id, written) in [
        ("0199a-4f:c:3", "0199a-4f:c:3"),
        ("t:c.1700000000.{}:3", "t:c%2E1700000000%2E{}:3"),
        ("t:100%:3", "t:100%25:3"),
        ("t:my hook:3", "t:my%20hook:3"),
        ("t:höök:3", "t:h%C3%B6%C3%B6k:3"),
    ] {
        assert_eq!(webhook_id(id), written);
    }
}
