//! When a token is renewed.

use super::StoredToken;

#[test]
fn a_token_is_renewed_before_it_expires() {
    let mut token = StoredToken::new("https://l/t", "app", "x");
    assert!(!token.expires_by(u64::MAX));
    token.expires_at_s = Some(1_000);
    assert_eq!([0, 969, 970, 1_000, 2_000].map(|now| token.expires_by(now)), [false, false, true, true, true]);
}
