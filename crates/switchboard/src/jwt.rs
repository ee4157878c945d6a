//! JSON Web Tokens (RFC 7519) in their compact form: taking one apart, without believing anything it says yet. For servers, and for
//! receivers of webhooks.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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
    pub(crate) claims: Vec<u8>,
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
const HS256_ALONE: &str = "eyJhbGciOiJIUzI1NiJ9";

impl<'a> Unverified<'a> {
    /// None for what is not a token at all.
    pub(crate) fn read(token: &'a str) -> Option<Self> {
        if token.len() > JWT_BYTES_MAX {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header = match header {
            // The most common header is compared without parsing it.
            HS256_ALONE => Header { alg: Cow::Borrowed("HS256"), kid: None, typ: None, crit: None },
            header => serde_json::from_slice(&decode(header)?).ok().filter(Header::is_of_access_token)?,
        };
        Some(Self { header, signed: signed.as_bytes(), claims: decode(claims)?, signature: decode(signature)? })
    }
}

/// A further dot is no letter of base64, so a token of more than three parts is refused here.
fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
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
    !text.is_empty() && text.len() <= CLAIM_BYTES_MAX && !text.chars().any(char::is_control)
}
