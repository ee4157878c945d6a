//! Signs the cards that are served (A2A 1.0, 8.4), with the keys of the server.
//!
//! A card with the members of 1.0 and 0.3 side by side has a signature over what a card of 1.0 alone would be, and one over what a
//! card of 0.3 alone would be: a client reads one of the two, and can verify what it reads. Where SDKs verify another form than that
//! of the specification, there is one more, which is marked. A signature is made once for each card and key, and kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use switchboard_core::model::AgentCardSignature;
use switchboard_engine::sha256::sha256;

use crate::signed_card::{NON_EMPTY, Payload, payloads_of_0_3, payloads_of_1_0};
use crate::signing_keys::{Extra, KeySet, Signature, SigningKeys};

/// How many signatures are kept: some for each agent under each name of the server. Beyond it they are forgotten and made anew.
const SIGNATURES_KEPT_MAX: usize = 1_024;

/// Where the keys are published, below the address of the server.
pub(crate) const JWK_SET_PATH: &str = "/.well-known/jwks.json";

/// The keys of a server, and what they have signed.
pub(crate) struct CardSigner {
    keys: SigningKeys,
    made: Mutex<Made>,
}

/// Signatures by what they are over, and the keys that they were made with.
struct Made {
    keys: Arc<KeySet>,
    signatures: HashMap<[u8; 32], Signature>,
}

/// What signs the cards at one address of the server.
#[derive(Clone)]
pub(crate) struct SiteSigner {
    signer: Arc<CardSigner>,
    /// Where the keys are. Verifiers fetch keys over HTTPS alone, so that at other addresses nothing is said.
    key_url: Option<Arc<str>>,
}

/// The versions of a card that are signed.
#[derive(Clone)]
pub(crate) struct Versions {
    /// The card as one of 1.0 alone.
    pub(crate) v1_0: Option<Bytes>,
    /// The card as one of 0.3 alone.
    pub(crate) v0_3: Option<Bytes>,
}

impl CardSigner {
    pub(crate) fn new(keys: SigningKeys) -> Self {
        let made = Mutex::new(Made { keys: keys.current(), signatures: HashMap::new() });
        Self { keys, made }
    }

    fn signature(&self, keys: &Arc<KeySet>, key_url: Option<&str>, payload: &Payload) -> Option<Signature> {
        let Payload { bytes, is_non_empty } = payload;
        let name = sha256([key_url.unwrap_or_default().as_bytes(), &[0, u8::from(*is_non_empty)], bytes].concat());
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&made.keys, keys) || made.signatures.len() >= SIGNATURES_KEPT_MAX {
            *made = Made { keys: keys.clone(), signatures: HashMap::new() };
        }
        if let Some(signature) = made.signatures.get(&name) {
            return Some(signature.clone());
        }
        let extra = Extra { jku: key_url, form: is_non_empty.then_some(NON_EMPTY) };
        let signature = keys.sign("JOSE", &extra, bytes)?;
        made.signatures.insert(name, signature.clone());
        Some(signature)
    }
}

impl SiteSigner {
    /// For the cards at this address of the server.
    pub(crate) fn new(signer: Arc<CardSigner>, base: &str) -> Self {
        let key_url = base.starts_with("https://").then(|| format!("{base}{JWK_SET_PATH}").into());
        Self { signer, key_url }
    }

    /// The keys of this moment.
    pub(crate) fn keys(&self) -> Arc<KeySet> {
        self.signer.keys.current()
    }

    /// The signatures of a card; none without a key.
    pub(crate) fn signatures(&self, keys: &Arc<KeySet>, card: &Versions) -> Vec<AgentCardSignature> {
        if keys.active().is_none() {
            return Vec::new();
        }
        let mut payloads = card.v1_0.as_ref().and_then(|json| payloads_of_1_0(json).ok()).unwrap_or_default();
        payloads.extend(card.v0_3.as_ref().and_then(|json| payloads_of_0_3(json).ok()).unwrap_or_default());
        let sign = |payload: Payload| self.signer.signature(keys, self.key_url.as_deref(), &payload);
        let signatures = payloads.into_iter().filter_map(sign);
        signatures
            .map(|Signature { protected, signature }| AgentCardSignature { protected, signature, header: None })
            .collect()
    }

    /// The card with its signatures as a last member.
    pub(crate) fn signed(&self, keys: &Arc<KeySet>, body: &Bytes, card: &Versions) -> Bytes {
        let signatures = self.signatures(keys, card);
        let Some(open) = body.strip_suffix(b"}").filter(|open| !signatures.is_empty() && open.len() > 1) else {
            return body.clone();
        };
        let signatures = signatures.iter().map(|AgentCardSignature { protected, signature, .. }| {
            // Both are base64url, which needs no escapes.
            format!(r#"{{"protected":"{protected}","signature":"{signature}"}}"#)
        });
        let signatures: Vec<String> = signatures.collect();
        let mut out = open.to_vec();
        out.extend_from_slice(format!(r#","signatures":[{}]}}"#, signatures.join(",")).as_bytes());
        out.into()
    }
}
