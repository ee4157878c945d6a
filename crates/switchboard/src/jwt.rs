//! JSON Web Tokens (RFC 7519) in their compact form: taking one apart, without believing anything it says yet. For servers, and for
//! receivers of webhooks.

use std::borrow::Cow;

use base64_simd::URL_SAFE_NO_PAD;
use memchr::{memchr, memrchr};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Longer tokens are refused unread.
pub(crate) const JWT_BYTES_MAX: usize = 16 << 10;

/// How long the names in a token may be: callers become principals, which are stored with each task.
#[cfg(feature = "server")]
pub(crate) const CLAIM_BYTES_MAX: usize = 512;

/// A token whose signature nobody has looked at.
#[derive(Debug)]
pub(crate) struct Unverified<'a> {
    pub(crate) header: Header,
    /// What the signature is over.
    pub(crate) signed: &'a [u8],
    /// What it says, as JSON.
    pub(crate) claims: String,
    pub(crate) signature: Vec<u8>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    pub(crate) alg: Cow<'static, str>,
    pub(crate) kid: Option<String>,
    typ: Option<String>,
    crit: Option<IgnoredAny>,
}

impl Header {
    /// Whether it is the header of a token for access. Identity providers sign other things with the same keys, and say so here
    /// (RFC 8725, 3.11). What must be understood (`crit`) is not.
    fn is_of_access_token(&self) -> bool {
        const KINDS: [&str; 4] = ["jwt", "at+jwt", "application/jwt", "application/at+jwt"];
        let is_known = |typ: &String| KINDS.iter().any(|kind| typ.eq_ignore_ascii_case(kind));
        self.crit.is_none() && self.typ.as_ref().is_none_or(is_known)
    }
}

/// `{"alg":"HS256"}`, as the apps of agent-native write it.
const HS256_ALONE: &[u8] = b"eyJhbGciOiJIUzI1NiJ9";

impl<'a> Unverified<'a> {
    /// None for what is not a token at all.
    pub(crate) fn read(token: &'a [u8]) -> Option<Self> {
        if token.len() > JWT_BYTES_MAX {
            return None;
        }
        let (signed, signature) = around(token, memrchr(b'.', token)?);
        let (header, claims) = around(signed, memchr(b'.', signed)?);
        let header = match header {
            // The most common header is compared without parsing it.
            HS256_ALONE => Header { alg: Cow::Borrowed("HS256"), kid: None, typ: None, crit: None },
            header => serde_json::from_slice(&decode(header)?).ok().filter(Header::is_of_access_token)?,
        };
        let claims = String::from_utf8(decode(claims)?).ok()?;
        Some(Self { header, signed, claims, signature: decode(signature)? })
    }
}

/// A further dot is no letter of base64, so a token of more than three parts is refused here.
fn decode(part: &[u8]) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode_to_vec(part).ok()
}

/// What is before and behind the byte at this place.
fn around(text: &[u8], place: usize) -> (&[u8], &[u8]) {
    (&text[..place], &text[place + 1..])
}

/// Whether one of the audiences of a token is ours: there is one text, or a list of texts.
pub(crate) fn has_audience(aud: &Value, is_ours: impl Fn(&str) -> bool) -> bool {
    match aud {
        Value::String(audience) => is_ours(audience),
        Value::Array(audiences) => {
            audiences.iter().all(Value::is_string) && audiences.iter().filter_map(Value::as_str).any(is_ours)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// A time in seconds since 1970, which may have a fraction.
pub(crate) fn seconds(value: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "a cast of a float stops at the ends of the range")]
    let whole = |fraction: f64| fraction.is_finite().then_some(fraction as i64);
    value.as_i64().or_else(|| value.as_f64().and_then(whole))
}

/// The texts of a claim: a list of them, or one text with spaces between them (`scope`, RFC 8693, 4.2).
#[cfg(feature = "server")]
pub(crate) fn words(claim: &Value) -> Vec<String> {
    match claim {
        Value::String(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// Whether a name in a token may become that of a principal.
#[cfg(feature = "server")]
pub(crate) fn is_name(text: &str) -> bool {
    let is_plain = || text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    !text.is_empty() && text.len() <= CLAIM_BYTES_MAX && (is_plain() || !text.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::Unverified;

    #[test]
    fn a_token_is_taken_apart_at_its_dots() {
        let token = b"eyJhbGciOiJFUzI1NiIsImtpZCI6ImEifQ.eyJzdWIiOiJcdTAwNjEifQ._-8";
        let read = Unverified::read(token).unwrap();
        assert_eq!((&*read.header.alg, read.header.kid.as_deref()), ("ES256", Some("a")));
        assert_eq!((&*read.claims, &*read.signature), (r#"{"sub":"\u0061"}"#, &[0xff, 0xef][..]));
        assert_eq!(read.signed, &token[..token.len() - 4]);
    }

    #[test]
    fn what_is_not_three_parts_of_base64_is_no_token() {
        let (header, not_text) = ("eyJhbGciOiJIUzI1NiJ9", URL_SAFE_NO_PAD.encode(b"{\"a\":\"\xff\"}"));
        let of = |claims: &str, signature: &str| format!("{header}.{claims}.{signature}");
        assert!(Unverified::read(of("e30", "").as_bytes()).is_some());
        for token in [
            of("e30=", "e30"),
            of("e30", "e30="),
            of("e3 0", "e30"),
            of("e30\n", "e30"),
            of("e+30", "e30"),
            of("e/30", "e30"),
            // The last letter stands for more bits than there are.
            of("e31", "e30"),
            of("e30", "e31"),
            of("e30", "_-9"),
            of("e", "e30"),
            of("e30", "e3012"),
            of("e30.e30", "e30"),
            of("e30", "ü"),
            of(&not_text, "e30"),
            format!("{header}.e30"),
            format!("{header}..."),
            header.to_owned(),
            ".".to_owned(),
            "..".to_owned(),
            String::new(),
        ] {
            assert!(Unverified::read(token.as_bytes()).is_none(), "{token}");
        }
        assert!(Unverified::read(b"\xff\xfe.e30.e30").is_none());
    }
}
