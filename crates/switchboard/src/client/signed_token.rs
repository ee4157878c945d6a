//! Tokens that the caller signs itself with a secret that both sides know, as apps of the agent-native framework do: a JSON Web Token
//! with HS256 (RFC 7519).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use super::wall_clock::now_s;

/// How long a token is good for.
const LIFETIME_S: u64 = 900;
/// Who issues it, where the program has no address of its own.
const ISSUER_DEFAULT: &str = "http://localhost:3000";

/// Who calls, and the secrets that prove it: the one that all apps share (`A2A_SECRET`) and the one of the caller's organization. A
/// token is signed with the first; an agent that refuses it is shown one that is signed with the second.
///
/// ```
/// use switchboard::client::{Credentials, SignedTokens};
///
/// let tokens = SignedTokens::new("alice@example.com").with_secret("s3cret").with_org("example.com", None::<&str>);
/// let credentials = Credentials::signed(tokens);
/// assert!(!format!("{credentials:?}").contains("s3cret"));
/// ```
#[derive(Clone)]
pub struct SignedTokens {
    subject: String,
    org_domain: Option<String>,
    issuer: String,
    audience: Option<String>,
    secret: Option<String>,
    /// Of the organization, the newest first.
    org_secrets: Vec<String>,
    /// Which secret was believed last. Clones share it.
    believed: Arc<AtomicUsize>,
}

impl PartialEq for SignedTokens {
    fn eq(&self, other: &Self) -> bool {
        let facts = |own: &Self| {
            let Self { subject, org_domain, issuer, audience, secret, org_secrets, believed: _ } = own.clone();
            (subject, org_domain, issuer, audience, secret, org_secrets)
        };
        facts(self) == facts(other)
    }
}

impl Eq for SignedTokens {}

impl fmt::Debug for SignedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignedTokens")
            .field("subject", &self.subject)
            .field("org_domain", &self.org_domain)
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}

/// What a token says.
#[derive(Serialize)]
struct Claims<'a> {
    sub: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    org_domain: Option<&'a str>,
    iss: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<&'a str>,
    iat: u64,
    exp: u64,
}

/// Spaces around a secret do not count, and one of spaces alone is none.
fn secret_of(text: &str) -> Option<String> {
    Some(text.trim()).filter(|secret| !secret.is_empty()).map(str::to_owned)
}

impl SignedTokens {
    /// Tokens of this caller, who is named by an e-mail address (`sub`). Without a secret none is sent.
    #[must_use]
    pub fn new(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            org_domain: None,
            issuer: ISSUER_DEFAULT.to_owned(),
            audience: None,
            secret: None,
            org_secrets: Vec::new(),
            believed: Arc::default(),
        }
    }

    /// The secret that all apps share.
    #[must_use]
    pub fn with_secret(mut self, secret: impl AsRef<str>) -> Self {
        self.secret = secret_of(secret.as_ref());
        self
    }

    /// The organization of the caller (`org_domain`), and its own secret if it has one.
    #[must_use]
    pub fn with_org(mut self, domain: impl Into<String>, secret: Option<impl AsRef<str>>) -> Self {
        self.org_domain = Some(domain.into());
        self.org_secrets = secret.as_ref().and_then(|secret| secret_of(secret.as_ref())).into_iter().collect();
        self
    }

    /// A secret that the organization had before, for agents that were not told the newer one yet.
    #[must_use]
    pub fn with_earlier_org_secret(mut self, secret: impl AsRef<str>) -> Self {
        self.org_secrets.extend(secret_of(secret.as_ref()));
        self
    }

    /// The URL of the program that calls (`iss`).
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = issuer.into();
        self
    }

    /// The URL of the agent that tokens are for (`aud`); others refuse them.
    #[must_use]
    pub fn with_audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    fn secrets(&self) -> Vec<&str> {
        let mut secrets: Vec<&str> = Vec::new();
        for secret in self.secret.iter().chain(&self.org_secrets) {
            if !secrets.contains(&secret.as_str()) {
                secrets.push(secret);
            }
        }
        secrets
    }

    /// A token under each secret, signed now, for a program that makes its requests itself: if one is refused with 401, the next is
    /// tried.
    #[must_use]
    pub fn tokens_now(&self) -> Vec<String> {
        self.secrets().into_iter().map(|secret| self.sign(secret, now_s())).collect()
    }

    /// How many different tokens there are.
    pub(super) fn count(&self) -> usize {
        self.secrets().len()
    }

    /// A token that is signed now, and which of the secrets that was. The one that was believed last comes first.
    pub(super) fn token(&self, attempt: usize, now_s: u64) -> Option<(String, usize)> {
        let secrets = self.secrets();
        let at = (self.believed.load(Ordering::Relaxed) + attempt) % secrets.len().max(1);
        secrets.get(at).map(|secret| (self.sign(secret, now_s), at))
    }

    /// An agent believed the token of this secret.
    pub(super) fn remember(&self, secret: usize) {
        self.believed.store(secret, Ordering::Relaxed);
    }

    fn sign(&self, secret: &str, now_s: u64) -> String {
        let Self { subject, org_domain, issuer, audience, .. } = self;
        let claims = Claims {
            sub: subject,
            org_domain: org_domain.as_deref(),
            iss: issuer,
            aud: audience.as_deref(),
            iat: now_s,
            exp: now_s + LIFETIME_S,
        };
        let claims = serde_json::to_vec(&claims).expect("texts and numbers can be written as JSON");
        let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#), URL_SAFE_NO_PAD.encode(claims));
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, text.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::SignedTokens;

    fn claims(token: &str) -> String {
        String::from_utf8(URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn a_token_is_what_the_framework_signs() {
        // Made with @agent-native/core 0.133, but for `exp`.
        let reference = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZUBleGFtcGxlLmNvbSIsIm9yZ19kb21haW4iOiJleGFtcGxlLmNvbSIsImlzcyI6Imh0dHA6Ly9sb2NhbGhvc3Q6MzAwMCIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjo0MTAyNDQ0ODAwfQ.qv4ic1Bms2uWOtlIe46YDzXz2cn4oSzQ8Z3_-SQfQig";
        let tokens =
            SignedTokens::new("alice@example.com").with_secret(" s3cret\n").with_org("example.com", None::<&str>);
        let (token, _) = tokens.token(0, 1_700_000_000).unwrap();
        let expected = r#"{"sub":"alice@example.com","org_domain":"example.com","iss":"http://localhost:3000","iat":1700000000,"exp":1700000900}"#;
        assert_eq!(claims(&token), expected);
        assert_eq!(claims(reference), expected.replace("1700000900", "4102444800"));
        assert_eq!(token.split('.').next(), reference.split('.').next());
        // The same key over the same text gives the signature of the reference.
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"s3cret");
        for token in [reference, &token] {
            let (text, signature) = token.rsplit_once('.').unwrap();
            aws_lc_rs::hmac::verify(&key, text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        }
        let more = SignedTokens::new("a").with_secret("x").with_issuer("https://i").with_audience("https://b");
        assert_eq!(
            claims(&more.token(0, 0).unwrap().0),
            r#"{"sub":"a","iss":"https://i","aud":"https://b","iat":0,"exp":900}"#
        );
    }

    #[test]
    fn each_secret_is_a_candidate_and_the_one_that_was_believed_comes_first() {
        let both = SignedTokens::new("a").with_secret("one").with_org("o", Some("two"));
        let used = |tokens: &SignedTokens| [0, 1].map(|attempt| tokens.token(attempt, 0).unwrap().1);
        assert_eq!((both.count(), used(&both)), (2, [0, 1]));
        let clone = both.clone();
        both.remember(1);
        assert_eq!((used(&both), used(&clone)), ([1, 0], [1, 0]));
        let same = SignedTokens::new("a").with_secret("one").with_org("o", Some(" one "));
        assert_eq!(same.count(), 1);
        let none = SignedTokens::new("a").with_secret("  ").with_org("o", Some(""));
        assert_eq!((none.count(), none.token(0, 0)), (0, None));
    }
}
