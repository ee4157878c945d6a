//! The tokens of requests that a server posts to itself. A token is bound to the row that the request is about: it is
//! `{time}.{mac}`, where the time is in milliseconds since 1970 and the mac is the HMAC-SHA256 of `{row}:{time}` in lower-case hex, under
//! the bytes of the shared secret. Apps of agent-native make and take the same tokens.

use std::fmt;

use aws_lc_rs::hmac;

/// How long a token is taken.
pub(crate) const TOKEN_AGE_MS_MAX: i64 = 5 * 60_000;
/// How far the clock that stamped a token may be ahead.
pub(crate) const TOKEN_AHEAD_MS_MAX: i64 = 60_000;
/// Milliseconds since 1970 have thirteen digits, and do for the next two centuries.
const TIME_DIGITS_MAX: usize = 15;

/// Makes and checks tokens under one secret.
#[derive(Clone)]
pub(crate) struct InternalTokens {
    key: hmac::Key,
}

impl InternalTokens {
    pub(crate) fn new(secret: &str) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()) }
    }

    /// A token for a row.
    pub(crate) fn make(&self, row: &str, now_ms: i64) -> String {
        let mac = hmac::sign(&self.key, format!("{row}:{now_ms}").as_bytes());
        let mut token = format!("{now_ms}.");
        mac.as_ref().iter().for_each(|byte| token.push_str(&format!("{byte:02x}")));
        token
    }

    /// Whether a token is for this row and is neither too old nor from the future. The mac is compared in constant time.
    pub(crate) fn verify(&self, token: &str, row: &str, now_ms: i64) -> bool {
        let Some((time, mac)) = token.split_once('.') else { return false };
        let is_number =
            !time.is_empty() && time.len() <= TIME_DIGITS_MAX && time.bytes().all(|byte| byte.is_ascii_digit());
        let Some(made_ms) = time.parse::<i64>().ok().filter(|_| is_number) else { return false };
        let age_ms = now_ms.saturating_sub(made_ms);
        let Some(mac) = from_hex(mac) else { return false };
        let is_genuine = hmac::verify(&self.key, format!("{row}:{time}").as_bytes(), &mac).is_ok();
        is_genuine && (-TOKEN_AHEAD_MS_MAX..=TOKEN_AGE_MS_MAX).contains(&age_ms)
    }
}

/// The bytes of a mac in lower-case hex.
fn from_hex(hex: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if hex.len() != 64 {
        return None;
    }
    let mut mac = [0; 32];
    for (byte, pair) in mac.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(mac)
}

impl fmt::Debug for InternalTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InternalTokens(..)")
    }
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
