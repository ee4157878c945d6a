//! The keys that verify signatures: from a JSON Web Key set (RFC 7517) or in PEM form, and the algorithms they are for.

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;

/// How many keys of one set are looked at.
const SET_KEYS_MAX: usize = 100;

/// The algorithms that are accepted. All are asymmetric: with a symmetric one, everyone who can verify could also sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Es256,
    Es384,
    Es512,
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    EdDsa,
}

impl Algorithm {
    pub(crate) const ALL: [Self; 10] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::Es512,
        Self::EdDsa,
    ];

    /// By its name in a header (RFC 7518, RFC 8037, RFC 9864).
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "ES256" => Some(Self::Es256),
            "ES384" => Some(Self::Es384),
            "ES512" => Some(Self::Es512),
            "RS256" => Some(Self::Rs256),
            "RS384" => Some(Self::Rs384),
            "RS512" => Some(Self::Rs512),
            "PS256" => Some(Self::Ps256),
            "PS384" => Some(Self::Ps384),
            "PS512" => Some(Self::Ps512),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }

    /// How RSA is used; none for the others.
    fn rsa(self) -> Option<&'static RsaParameters> {
        match self {
            Self::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
            Self::Es256 | Self::Es384 | Self::Es512 | Self::EdDsa => None,
        }
    }
}

/// One public key.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) id: Option<String>,
    /// What the key is for, where it says so; none is whatever its kind fits.
    algorithm: Option<Algorithm>,
    material: Material,
    /// The key for each algorithm that it fits. It is parsed once, because to parse it takes about as long as to verify a signature.
    parsed: Vec<(Algorithm, ParsedPublicKey)>,
}

impl PartialEq for Key {
    /// What was parsed follows from the rest.
    fn eq(&self, other: &Self) -> bool {
        let Self { id, algorithm, material, parsed: _ } = self;
        (id, algorithm, material) == (&other.id, &other.algorithm, &other.material)
    }
}

impl Eq for Key {}

#[derive(Clone, PartialEq, Eq)]
enum Material {
    /// Of any kind: it says itself of which (`SubjectPublicKeyInfo`).
    Spki(Vec<u8>),
    P256(Vec<u8>),
    P384(Vec<u8>),
    P521(Vec<u8>),
    Ed25519(Vec<u8>),
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
}

impl Material {
    /// The key as this algorithm needs it; none if it is of another kind.
    fn parse(&self, algorithm: Algorithm) -> Option<ParsedPublicKey> {
        let parsed = match (self, algorithm) {
            (Self::P256(key) | Self::Spki(key), Algorithm::Es256) => {
                ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key)
            }
            (Self::P384(key) | Self::Spki(key), Algorithm::Es384) => {
                ParsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, key)
            }
            (Self::P521(key) | Self::Spki(key), Algorithm::Es512) => {
                ParsedPublicKey::new(&ECDSA_P521_SHA512_FIXED, key)
            }
            (Self::Ed25519(key) | Self::Spki(key), Algorithm::EdDsa) => ParsedPublicKey::new(&ED25519, key),
            (Self::Spki(key), rsa) => ParsedPublicKey::new(rsa.rsa()?, key),
            (Self::Rsa { n, e }, rsa) => RsaPublicKeyComponents { n, e }.to_parsed_public_key(rsa.rsa()?),
            (Self::P256(_) | Self::P384(_) | Self::P521(_) | Self::Ed25519(_), _) => return None,
        };
        parsed.ok()
    }
}

impl Key {
    fn new(id: Option<String>, algorithm: Option<Algorithm>, material: Material) -> Self {
        let fitting = Algorithm::ALL.into_iter().filter(|one| algorithm.is_none_or(|own| own == *one));
        let parsed = fitting.filter_map(|algorithm| Some((algorithm, material.parse(algorithm)?))).collect();
        Self { id, algorithm, material, parsed }
    }

    /// Whether a token may be signed with it which names this key, or none in particular.
    #[cfg(any(feature = "server", feature = "webhook-receiver"))]
    pub(crate) fn fits(&self, key_id: Option<&str>) -> bool {
        key_id.is_none() || self.id.is_none() || self.id.as_deref() == key_id
    }

    /// Whether this is the signature of this text by this key.
    pub(crate) fn verifies(&self, algorithm: Algorithm, text: &[u8], signature: &[u8]) -> bool {
        let parsed = self.parsed.iter().find(|(fitting, _)| *fitting == algorithm);
        parsed.is_some_and(|(_, key)| key.verify_sig(text, signature).is_ok())
    }
}

/// Why keys cannot be used, in one sentence for the person who gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError(String);

impl KeyError {
    #[cfg(feature = "server")]
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyError {}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

/// The keys of a set, or a single key, that verify signatures. Keys of other kinds, and for other uses, are left out.
pub(crate) fn read_jwk_set(json: &[u8]) -> Result<Vec<Key>, KeyError> {
    let unread = |error: serde_json::Error| KeyError(format!("the keys are no JSON Web Key set: {error}"));
    let keys = match serde_json::from_slice::<serde_json::Value>(json).map_err(unread)? {
        key if key.get("kty").is_some() => vec![key],
        set => serde_json::from_value::<JwkSet>(set).map_err(unread)?.keys,
    };
    let keys: Vec<Key> = keys.into_iter().take(SET_KEYS_MAX).filter_map(read_jwk).collect();
    if keys.is_empty() {
        let why = "the JSON Web Key set has no public key for signatures with ES, RS or PS (256, 384, 512) or EdDSA";
        return Err(KeyError(why.to_owned()));
    }
    Ok(keys)
}

fn read_jwk(json: serde_json::Value) -> Option<Key> {
    let Jwk { kty, kid, alg, used_for, key_ops, crv, x, y, n, e } = serde_json::from_value(json).ok()?;
    if used_for.is_some_and(|used_for| used_for != "sig") {
        return None;
    }
    if key_ops.is_some_and(|ops| !ops.iter().any(|op| op == "verify")) {
        return None;
    }
    let algorithm = match alg {
        // A key for an algorithm that is not accepted is of no use.
        Some(name) => Some(Algorithm::named(&name)?),
        None => None,
    };
    let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?.trim_end_matches('=')).ok();
    let point = |length: usize| {
        let (x, y) = (bytes(x.clone())?, bytes(y)?);
        (x.len() == length && y.len() == length).then(|| [&[4], &*x, &*y].concat())
    };
    let material = match (kty.as_str(), crv.as_deref()) {
        ("EC", Some("P-256")) => Material::P256(point(32)?),
        ("EC", Some("P-384")) => Material::P384(point(48)?),
        ("EC", Some("P-521")) => Material::P521(point(66)?),
        ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(x).filter(|key| key.len() == 32)?),
        ("RSA", _) => {
            let number = |text| {
                let bytes: Vec<u8> = bytes(text)?;
                Some(bytes.into_iter().skip_while(|byte| *byte == 0).collect::<Vec<u8>>())
            };
            Material::Rsa { n: number(n)?, e: number(e)? }
        }
        _ => return None,
    };
    Some(Key::new(kid, algorithm, material))
}

/// The public keys of a text in PEM form (`-----BEGIN PUBLIC KEY-----`).
pub(crate) fn read_pem(id: Option<&str>, pem: &[u8]) -> Result<Vec<Key>, KeyError> {
    let unread = |error| KeyError(format!("the keys are not in PEM form: {error}"));
    let keys = SubjectPublicKeyInfoDer::pem_slice_iter(pem).map(|key| {
        let material = Material::Spki(key.map_err(unread)?.as_ref().to_vec());
        Ok(Key::new(id.map(str::to_owned), None, material))
    });
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() {
        return Err(KeyError("the text has no public key in PEM form (-----BEGIN PUBLIC KEY-----)".to_owned()));
    }
    Ok(keys)
}
