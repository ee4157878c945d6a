//! One key that signs: made, read from PKCS#8 in PEM form, and its public part as a JSON Web Key.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

use super::{KeyAlgorithm, SigningKeysError};

/// The characters of a line in PEM form.
const PEM_LINE: usize = 64;

pub(crate) struct KeyPair {
    pub(crate) id: String,
    secret: Secret,
}

enum Secret {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
}

impl KeyPair {
    /// A new key, and its text in PEM form. Without an id it is named after its public part.
    pub(super) fn generate(id: Option<&str>, algorithm: KeyAlgorithm) -> Result<(Self, String), SigningKeysError> {
        let failed = |_| SigningKeysError::new("no key could be made: the system gives no randomness");
        let random = SystemRandom::new();
        let der = match algorithm {
            KeyAlgorithm::Es256 => EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random),
            KeyAlgorithm::EdDsa => Ed25519KeyPair::generate_pkcs8v1(&random),
        };
        let der = der.map_err(failed)?;
        let secret = Secret::read(der.as_ref()).ok_or_else(|| SigningKeysError::new("the new key cannot be read"))?;
        let id = id.map_or_else(|| secret.name(), str::to_owned);
        Ok((Self { id, secret }, pem(der.as_ref())))
    }

    /// Reads a key in PEM form (`-----BEGIN PRIVATE KEY-----`), as `openssl genpkey` writes it too.
    pub(super) fn read(id: &str, text: &[u8]) -> Result<Self, String> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(text)
            .map_err(|_| "is no private key in PEM form (-----BEGIN PRIVATE KEY-----)".to_owned())?;
        let secret = Secret::read(der.secret_pkcs8_der())
            .ok_or("is neither a key for ES256 (the curve P-256) nor one for EdDSA (Ed25519)")?;
        Ok(Self { id: id.to_owned(), secret })
    }

    pub(crate) fn algorithm(&self) -> KeyAlgorithm {
        match self.secret {
            Secret::Es256(_) => KeyAlgorithm::Es256,
            Secret::EdDsa(_) => KeyAlgorithm::EdDsa,
        }
    }

    /// None if the system gives no randomness.
    pub(super) fn sign(&self, text: &[u8]) -> Option<Vec<u8>> {
        match &self.secret {
            Secret::Es256(key) => Some(key.sign(&SystemRandom::new(), text).ok()?.as_ref().to_vec()),
            Secret::EdDsa(key) => Some(key.sign(text).as_ref().to_vec()),
        }
    }

    /// The public part (RFC 7517).
    pub(super) fn jwk(&self) -> serde_json::Value {
        let mut jwk = match &self.secret {
            Secret::Es256(key) => {
                // The point is uncompressed: a byte that says so, and its two coordinates.
                let point = &key.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let [x, y] = [x, y].map(|coordinate| URL_SAFE_NO_PAD.encode(coordinate));
                serde_json::json!({"kty": "EC", "crv": "P-256", "x": x, "y": y})
            }
            Secret::EdDsa(key) => {
                serde_json::json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(key.public_key())})
            }
        };
        jwk["kid"] = self.id.as_str().into();
        jwk["alg"] = self.algorithm().as_str().into();
        jwk["use"] = "sig".into();
        jwk
    }
}

impl Secret {
    fn read(der: &[u8]) -> Option<Self> {
        let es256 = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).ok().map(Self::Es256);
        es256.or_else(|| Ed25519KeyPair::from_pkcs8(der).ok().map(Self::EdDsa))
    }

    /// A name made of the public part, so that no two keys have the same.
    fn name(&self) -> String {
        let public = match self {
            Self::Es256(key) => digest(&SHA256, key.public_key().as_ref()),
            Self::EdDsa(key) => digest(&SHA256, key.public_key().as_ref()),
        };
        public.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN PRIVATE KEY-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(PEM_LINE));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    pem
}
