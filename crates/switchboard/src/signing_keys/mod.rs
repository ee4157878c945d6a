//! The keys that the server signs with: agent cards, and the tokens that it shows to webhooks. Their public parts are served as a
//! JSON Web Key set (RFC 7517), where verifiers find them.
//!
//! [`SigningKeys`] is what a server is given; `folder` makes, activates and removes keys, and `pair` is one key.

mod folder;
mod pair;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use switchboard_core::call::BoxFuture;
use switchboard_engine::ports::audit::AuditEvent;

use crate::reloaded::{Reload, WatchedFiles};
pub use folder::{KeyFolder, SigningKeyInfo};
use pair::KeyPair;

/// How many keys a folder may hold. Each is published, and verifiers read a limited number of them.
const KEYS_MAX: usize = 32;

/// What a key signs with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAlgorithm {
    /// ECDSA on the curve P-256 with SHA-256. Every library that verifies has it.
    #[default]
    Es256,
    /// Ed25519.
    EdDsa,
}

impl KeyAlgorithm {
    /// Its name in a JOSE header (RFC 7518, RFC 8037).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why keys cannot be used or changed, in one sentence for the operator. Says nothing of what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeysError(String);

impl SigningKeysError {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for SigningKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SigningKeysError {}

/// Keys that a server signs with, as [`ServerBuilder::signing_keys`](crate::ServerBuilder::signing_keys) takes them. One of them is
/// active and signs; all are published, so that what earlier ones signed can still be verified.
///
/// ```
/// use switchboard::{KeyAlgorithm, KeyFolder, SigningKeys};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("keys");
/// let folder = KeyFolder::at(&path);
/// let first = folder.make(None, KeyAlgorithm::Es256).unwrap();
/// let keys = SigningKeys::open(&path).unwrap();
/// assert_eq!(keys.active_id().as_deref(), Some(first.id.as_str()));
///
/// let second = folder.rotate(None, KeyAlgorithm::Es256).unwrap();
/// keys.reload().unwrap();
/// assert_eq!(keys.active_id().as_deref(), Some(second.id.as_str()));
/// assert!(keys.jwk_set().contains(&first.id));
/// ```
#[derive(Clone)]
pub struct SigningKeys(Arc<Inner>);

struct Inner {
    /// The folder; none for a key in memory.
    files: Option<WatchedFiles>,
    current: RwLock<Arc<KeySet>>,
}

/// The keys of one moment; the active one is the first. It may be empty.
pub(crate) struct KeySet(Vec<KeyPair>);

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKeys").field("ids", &self.ids()).field("folder", &self.0.files).finish()
    }
}

impl SigningKeys {
    /// One new key that is kept in memory alone: cards that it signed cannot be verified after the process has ended.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, SigningKeysError> {
        let (pair, _) = KeyPair::generate(None, algorithm)?;
        Ok(Self::new(None, KeySet(vec![pair])))
    }

    /// The keys of a [`KeyFolder`]. One that is empty or not there has no keys; a server looks again once a minute.
    ///
    /// # Errors
    /// When a key cannot be read, or others than its owner can read it.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, SigningKeysError> {
        let folder = folder.as_ref();
        let files = WatchedFiles::new("signing keys", AuditEvent::Credentials, vec![folder.to_owned()]);
        let set = KeyFolder::at(folder).read()?;
        Ok(Self::new(Some(files), set))
    }

    fn new(files: Option<WatchedFiles>, set: KeySet) -> Self {
        Self(Arc::new(Inner { files, current: RwLock::new(Arc::new(set)) }))
    }

    /// Reads the folder again. If a key cannot be read, the keys stay as they were.
    ///
    /// # Errors
    /// As [`SigningKeys::open`].
    pub fn reload(&self) -> Result<(), SigningKeysError> {
        self.0.reload()
    }

    /// The keys as what can be read again.
    pub(crate) fn source(&self) -> Arc<dyn Reload> {
        self.0.clone()
    }

    /// The id of the key that signs; none if there are no keys.
    #[must_use]
    pub fn active_id(&self) -> Option<String> {
        self.current().active().map(|pair| pair.id.clone())
    }

    /// The ids of all keys, that of the active one first.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        self.current().0.iter().map(|pair| pair.id.clone()).collect()
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.current().0.len()
    }

    /// Whether there are no keys, so that nothing is signed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current().0.is_empty()
    }

    /// The public parts of all keys as a JSON Web Key set, the active one first.
    #[must_use]
    pub fn jwk_set(&self) -> String {
        self.current().jwk_set()
    }

    pub(crate) fn current(&self) -> Arc<KeySet> {
        self.0.current()
    }
}

impl Inner {
    fn current(&self) -> Arc<KeySet> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn reload(&self) -> Result<(), SigningKeysError> {
        let Some(folder) = &self.files else { return Ok(()) };
        folder.mark_read();
        let set = KeyFolder::at(folder.path()).read()?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
        Ok(())
    }
}

impl Reload for Inner {
    fn files(&self) -> Option<&WatchedFiles> {
        self.files.as_ref()
    }

    fn read_again(&self) -> BoxFuture<'_, Result<usize, String>> {
        let reloaded = self.reload().map(|()| self.current().0.len()).map_err(|error| error.to_string());
        Box::pin(std::future::ready(reloaded))
    }
}

/// What a signature says about itself.
#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    kid: &'a str,
    typ: &'static str,
    #[serde(flatten)]
    extra: &'a Extra<'a>,
}

/// What the header of a signature may say beside its key.
#[derive(Default, Serialize)]
pub(crate) struct Extra<'a> {
    /// Where the key is published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jku: Option<&'a str>,
    /// Which form of a card was signed, if not the one of the specification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) form: Option<&'static str>,
}

/// A signature in the form of RFC 7515, without what was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) protected: String,
    pub(crate) signature: String,
}

impl KeySet {
    pub(crate) fn active(&self) -> Option<&KeyPair> {
        self.0.first()
    }

    pub(crate) fn jwk_set(&self) -> String {
        let keys: Vec<serde_json::Value> = self.0.iter().map(KeyPair::jwk).collect();
        serde_json::json!({ "keys": keys }).to_string()
    }

    /// Signs with the active key. None if there is none, or the system gives no randomness.
    pub(crate) fn sign(&self, typ: &'static str, extra: &Extra<'_>, payload: &[u8]) -> Option<Signature> {
        let pair = self.active()?;
        let header = Header { alg: pair.algorithm().as_str(), kid: &pair.id, typ, extra };
        let protected = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&header).ok()?);
        let text = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(text.as_bytes())?);
        Some(Signature { protected, signature })
    }

    /// A token with these claims (RFC 7519), signed with the active key.
    pub(crate) fn sign_token(&self, claims: &impl Serialize) -> Option<String> {
        let payload = serde_json::to_vec(claims).ok()?;
        let Signature { protected, signature } = self.sign("JWT", &Extra::default(), &payload)?;
        Some(format!("{protected}.{}.{signature}", URL_SAFE_NO_PAD.encode(payload)))
    }
}

#[cfg(test)]
mod tests;
