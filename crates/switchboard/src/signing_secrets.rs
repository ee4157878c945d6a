//! Secrets that webhooks are signed with, after Standard Webhooks 1.0 (<https://www.standardwebhooks.com>): who shares one with the
//! server can tell that a delivery came from it, was not changed on the way, and is not an old one sent once more. Of what is
//! posted, the id, the time of the attempt and the body are signed. `webhooks` signs, the receiver of the client verifies.

use std::fmt;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const PREFIX: &str = "whsec_";
/// What the standard asks of a secret.
const SECRET_BYTES_MIN: usize = 24;
const SECRET_BYTES_MAX: usize = 64;
/// Each adds a signature to each delivery, and a change of secrets needs two.
const SECRETS_MAX: usize = 8;
/// How many signatures of a delivery are compared: a sender has at most as many secrets as we have.
#[cfg(feature = "webhook-receiver")]
const SIGNATURES_MAX: usize = 16;

/// Secrets to sign webhooks with, as `ServerBuilder::sign_webhooks` takes them, and to verify them with, as
/// `client::WebhookReceiver` does.
///
/// Each is `whsec_` and the base64 of 24 to 64 random bytes. They are separated by white space or commas; `#` begins a
/// comment that ends with its line. Each delivery is signed with every one of them, the first one first, so that
/// receivers can be moved from one secret to the next without missing a delivery.
///
/// ```
/// let text = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD # since May\nwhsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr";
/// assert_eq!(switchboard::SigningSecrets::parse(text).unwrap().len(), 2);
/// ```
#[derive(Clone, Default)]
pub struct SigningSecrets {
    keys: Vec<hmac::Key>,
}

/// Why secrets cannot be signed with. Says nothing of what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningSecretsError(String);

impl fmt::Display for SigningSecretsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SigningSecretsError {}

impl SigningSecrets {
    /// Reads secrets.
    ///
    /// # Errors
    /// When one of them is no secret of this kind, one appears twice, or there are more than 8.
    pub fn parse(text: &str) -> Result<Self, SigningSecretsError> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words = lines.flat_map(|line| line.split(|letter: char| letter.is_whitespace() || letter == ','));
        let mut known: Vec<Vec<u8>> = Vec::new();
        for (index, word) in words.filter(|word| !word.is_empty()).enumerate() {
            let number = index + 1;
            let secret = decode(word).map_err(|got| {
                SigningSecretsError(format!(
                    "secret {number}: expected {PREFIX} and the base64 of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} \
                     random bytes, got {got}"
                ))
            })?;
            if known.contains(&secret) {
                return Err(SigningSecretsError(format!("secret {number}: is there twice")));
            }
            known.push(secret);
        }
        if known.len() > SECRETS_MAX {
            return Err(SigningSecretsError(format!("expected at most {SECRETS_MAX} secrets, got {}", known.len())));
        }
        Ok(Self { keys: known.iter().map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret)).collect() })
    }

    /// How many secrets sign each delivery.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none, so that deliveries are not signed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// One signature for each secret, with blanks between them.
    #[cfg(any(feature = "server", test))]
    pub(crate) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let mut signatures = String::with_capacity(self.keys.len() * 48);
        for key in &self.keys {
            if !signatures.is_empty() {
                signatures.push(' ');
            }
            signatures.push_str("v1,");
            STANDARD.encode_string(tag(key, id, timestamp, body), &mut signatures);
        }
        signatures
    }

    /// Whether one of these signatures, with blanks between them, is by one of the secrets.
    #[cfg(feature = "webhook-receiver")]
    pub(crate) fn verifies(&self, id: &str, timestamp: &str, body: &[u8], signatures: &str) -> bool {
        let theirs = signatures.split(' ').filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok());
        let theirs: Vec<Vec<u8>> = theirs.take(SIGNATURES_MAX).collect();
        self.keys.iter().any(|key| {
            let ours = tag(key, id, timestamp, body);
            let is_ours =
                |theirs: &Vec<u8>| aws_lc_rs::constant_time::verify_slices_are_equal(ours.as_ref(), theirs).is_ok();
            theirs.iter().any(is_ours)
        })
    }
}

fn tag(key: &hmac::Key, id: &str, timestamp: &str, body: &[u8]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    for piece in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        context.update(piece);
    }
    context.sign()
}

impl fmt::Debug for SigningSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} signing secrets", self.keys.len())
    }
}

/// The bytes of a secret, or what was found in their place.
fn decode(word: &str) -> Result<Vec<u8>, String> {
    let text = word.strip_prefix(PREFIX).ok_or_else(|| format!("something that does not begin with {PREFIX}"))?;
    let secret = STANDARD.decode(text).map_err(|_| "something that is not base64".to_owned())?;
    match secret.len() {
        SECRET_BYTES_MIN..=SECRET_BYTES_MAX => Ok(secret),
        bytes => Err(format!("{bytes} bytes")),
    }
}

#[cfg(test)]
#[path = "signing_secrets_tests.rs"]
mod tests;
