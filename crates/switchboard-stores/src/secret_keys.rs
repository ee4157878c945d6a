//! The keys that the secrets of webhooks are encrypted with (AES-256-GCM), as both stores use them. A secret is bound to its row
//! and column, so that one who can write the database cannot have it sent to another receiver.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// What a key begins with as text, and an encrypted secret.
pub(crate) const KEY_PREFIX: &str = "swkey_";
pub(crate) const SEALED_PREFIX: &str = "sealed1.";
const KEY_BYTES: usize = 32;
/// A change of keys needs two.
const SECRET_KEYS_MAX: usize = 8;

/// Keys that the secrets of webhooks are encrypted with: the first encrypts, all decrypt.
///
/// As text, each is `swkey_` and the base64 of 32 random bytes, separated by white space or commas; `#` begins a comment that ends
/// with its line.
#[derive(Clone)]
pub struct SecretKeys {
    pub(crate) keys: Vec<[u8; KEY_BYTES]>,
}

/// Why keys cannot be used. Says nothing of what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretKeysError(pub(crate) String);

impl fmt::Display for SecretKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SecretKeysError {}

impl fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

impl SecretKeys {
    /// Reads keys.
    ///
    /// # Errors
    /// When there is none, one of them is no key, or there are more than 8.
    pub fn parse(text: &str) -> Result<Self, SecretKeysError> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words = lines.flat_map(|line| line.split(|letter: char| letter.is_whitespace() || letter == ','));
        let mut keys = Vec::new();
        for (index, word) in words.filter(|word| !word.is_empty()).enumerate() {
            let key = word.strip_prefix(KEY_PREFIX).and_then(|text| STANDARD.decode(text).ok()?.try_into().ok());
            keys.push(key.ok_or_else(|| {
                SecretKeysError(format!(
                    "key {}: expected {KEY_PREFIX} and the base64 of {KEY_BYTES} random bytes",
                    index + 1
                ))
            })?);
        }
        match keys.len() {
            1..=SECRET_KEYS_MAX => Ok(Self { keys }),
            0 => Err(SecretKeysError(format!(
                "no key in it; expected {KEY_PREFIX} and the base64 of {KEY_BYTES} random bytes"
            ))),
            count => Err(SecretKeysError(format!("expected at most {SECRET_KEYS_MAX} keys, got {count}"))),
        }
    }

    /// A new key.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn generate() -> Result<Self, SecretKeysError> {
        let mut key = [0; KEY_BYTES];
        let failed = |_| SecretKeysError("no key could be made: the system gives no randomness".to_owned());
        aws_lc_rs::rand::fill(&mut key).map_err(failed)?;
        Ok(Self { keys: vec![key] })
    }

    /// These keys with those behind them.
    #[must_use]
    pub fn before(mut self, older: &Self) -> Self {
        let new: Vec<_> = older.keys.iter().filter(|key| !self.keys.contains(key)).copied().collect();
        self.keys.extend(new);
        self.keys.truncate(SECRET_KEYS_MAX);
        self
    }

    /// The first key alone.
    #[must_use]
    pub fn newest(&self) -> Self {
        Self { keys: self.keys[..1].to_vec() }
    }

    /// How many keys there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// What encrypted secrets call the keys. It tells nothing about them.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.keys.iter().map(key_id).collect()
    }

    pub(crate) fn seal(&self, place: &Place<'_>, secret: &str) -> Option<String> {
        let key = self.keys.first()?;
        let mut bytes = secret.as_bytes().to_vec();
        let sealing = RandomizedNonceKey::new(&AES_256_GCM, key).ok()?;
        let nonce = sealing.seal_in_place_append_tag(place.aad(), &mut bytes).ok()?;
        let sealed = [&nonce.as_ref()[..], &bytes].concat();
        Some(format!("{SEALED_PREFIX}{}.{}", key_id(key), STANDARD_NO_PAD.encode(sealed)))
    }

    pub(crate) fn open(&self, place: &Place<'_>, sealed: &str) -> Option<String> {
        let (id, text) = sealed.strip_prefix(SEALED_PREFIX)?.split_once('.')?;
        let key = self.keys.iter().find(|key| key_id(key) == id)?;
        let bytes = STANDARD_NO_PAD.decode(text).ok()?;
        let (nonce, rest) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let opening = RandomizedNonceKey::new(&AES_256_GCM, key).ok()?;
        let mut rest = rest.to_vec();
        let secret = opening.open_in_place(Nonce::from(nonce), place.aad(), &mut rest).ok()?;
        String::from_utf8(secret.to_vec()).ok()
    }
}

/// The beginning of a digest: enough to tell keys apart, and too little to find one.
pub(crate) fn key_id(key: &[u8; KEY_BYTES]) -> String {
    digest(&SHA256, key).as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Where a secret is.
pub(crate) struct Place<'a> {
    pub(crate) task_no: i64,
    pub(crate) config_id: &'a str,
    pub(crate) column: &'static str,
}

impl Place<'_> {
    fn aad(&self) -> Aad<String> {
        Aad::from(format!("push/{}/{}/{}", self.task_no, self.column, self.config_id))
    }
}
