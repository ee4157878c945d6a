//! Signatures of agent cards: who signed a card, and whether it is still what was signed (A2A 1.0, 8.4; RFC 7515).
//!
//! A signature is checked on the JSON of the card as it came (`signed_card`), with `keys` that the user gave or that are fetched from
//! hosts that the user named. A card is verified if valid signatures cover every member that it is used for: a card with the
//! members of 1.0 and 0.3 side by side may need one for each.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderValue, Request, StatusCode};
use serde::Deserialize;
use switchboard_core::dialect::json::{DecodeLimits, excerpt};
use switchboard_core::dialect::v1_0::encode_card;
use switchboard_core::model::{AgentCard, AgentCardSignature};
use tokio::time::Instant;

use super::discovered_card::DiscoveredCard;
use super::http::{Http, Named};
use crate::call_error::{CallError, CallErrorKind};
use crate::outbound::{RequestLimits, check_url};
pub use crate::public_keys::KeyError;
use crate::public_keys::{self, Algorithm, Key};
use crate::signed_card::{Cover, NON_EMPTY, Node, all_members, covered_members, forms};

/// How many signatures of one card are looked at.
const SIGNATURES_MAX: usize = 16;
/// The size of a key set that is fetched.
const KEY_SET_BYTES_MAX: u64 = 256 * 1_024;
/// How long a fetched key set is used, and how many are kept.
const KEY_SET_KEPT: Duration = Duration::from_secs(300);
const KEY_SETS_MAX: usize = 100;
/// What a card says is shown up to this length.
const SHOWN_BYTES_MAX: usize = 128;

/// Which keys verify the signatures of cards: pinned ones, and those that cards name, as far as their hosts are trusted.
///
/// ```
/// use switchboard::client::{CardKeys, Client};
///
/// let set = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
/// let keys = CardKeys::none().and_jwk_set(set).unwrap().and_fetched_from("keys.example");
/// let client = Client::builder().card_keys(keys).require_signed_cards().build().unwrap();
/// # let _ = client;
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CardKeys {
    pinned: Vec<Key>,
    /// In lower case.
    hosts: Vec<String>,
    any_host: bool,
}

impl fmt::Debug for CardKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardKeys")
            .field("pinned", &self.pinned.iter().map(|key| key.id.as_deref()).collect::<Vec<_>>())
            .field("hosts", &self.hosts)
            .field("any_host", &self.any_host)
            .finish()
    }
}

impl CardKeys {
    /// No keys: nothing can be verified.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds the keys of a JSON Web Key set, or a single one, as JSON.
    ///
    /// # Errors
    /// When it has no public key that is for signatures.
    pub fn and_jwk_set(mut self, json: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        self.pinned.extend(public_keys::read_jwk_set(json.as_ref())?);
        Ok(self)
    }

    /// Adds public keys in PEM form, for signatures with any key id.
    ///
    /// # Errors
    /// When the text has none.
    pub fn and_pem(mut self, pem: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        self.pinned.extend(public_keys::read_pem(None, pem.as_ref())?);
        Ok(self)
    }

    /// Adds a public key in PEM form, for signatures with this key id.
    ///
    /// # Errors
    /// When the text has none.
    pub fn and_pem_for(mut self, key_id: &str, pem: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        self.pinned.extend(public_keys::read_pem(Some(key_id), pem.as_ref())?);
        Ok(self)
    }

    /// Trusts key sets that cards name (`jku`) at this host. They are fetched over HTTPS, under the policy of the client for
    /// addresses that the user has not named.
    #[must_use]
    pub fn and_fetched_from(mut self, host: &str) -> Self {
        self.hosts.push(host.to_ascii_lowercase());
        self
    }

    /// Trusts key sets that cards name (`jku`) wherever they are. A signature then shows only that the owner of that host signed
    /// the card: read [`SignatureStatus::Verified`] for whose it is.
    #[must_use]
    pub fn and_fetched_from_any_host(mut self) -> Self {
        self.any_host = true;
        self
    }

    fn trusts(&self, host: &str) -> bool {
        self.any_host || self.hosts.iter().any(|trusted| trusted.eq_ignore_ascii_case(host))
    }
}

/// What the signatures of a card show.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignatureStatus {
    /// The card is as it was signed with a trusted key.
    Verified {
        /// The id of the key, as the signature names it.
        key_id: String,
        /// Where the key was fetched; none for a pinned key.
        key_url: Option<String>,
    },
    /// There are signatures, and none could be verified.
    Unverifiable {
        /// Why, in one sentence for people.
        reason: String,
    },
    /// The card is not signed.
    Absent,
}

impl SignatureStatus {
    /// Whether the card is as it was signed with a trusted key.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        matches!(self, Self::Verified { .. })
    }
}

/// What a signature says about itself, which it covers.
#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    jku: Option<String>,
    crit: Option<serde_json::Value>,
    form: Option<serde_json::Value>,
}

/// A signature whose header was read.
struct Claim {
    algorithm: Algorithm,
    key_id: Option<String>,
    key_url: Option<String>,
    protected: String,
    signature: Vec<u8>,
}

impl Claim {
    fn read(signature: &AgentCardSignature) -> Result<Self, String> {
        let AgentCardSignature { protected, signature, .. } = signature;
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('='));
        let header = decode(protected).map_err(|_| "its protected header is not base64url".to_owned())?;
        let header: Header =
            serde_json::from_slice(&header).map_err(|error| format!("its protected header cannot be read: {error}"))?;
        if header.crit.is_some() {
            return Err("its header demands extensions (crit), and none is known".to_owned());
        }
        if header.form.as_ref().is_some_and(|form| form == NON_EMPTY) {
            return Err("it says nothing about empty members, and the one beside it that does is missing".to_owned());
        }
        let Some(algorithm) = Algorithm::named(&header.alg) else {
            return Err(match header.alg.as_str() {
                name if name.eq_ignore_ascii_case("none") => "its algorithm is none, which proves nothing".to_owned(),
                name if name.starts_with("HS") => {
                    format!("its algorithm is {}, which is symmetric: all who verify could sign", shown(name))
                }
                name => {
                    format!("its algorithm is {}; expected ES256, ES384, RS256, PS256 or EdDSA", shown(name))
                }
            });
        };
        let signature = decode(signature).map_err(|_| "it is not base64url".to_owned())?;
        let (key_id, key_url) = (header.kid, header.jku);
        Ok(Self { algorithm, key_id, key_url, protected: protected.clone(), signature })
    }

    /// The keys that it may have been made with.
    fn fitting<'a>(&self, keys: &'a [Key]) -> Vec<&'a Key> {
        let fits = |key: &&Key| key.id.is_none() || self.key_id.is_none() || key.id == self.key_id;
        keys.iter().filter(fits).collect()
    }

    fn shown_key(&self) -> String {
        self.key_id.as_deref().map_or_else(|| "without an id".to_owned(), shown)
    }
}

fn shown(text: &str) -> String {
    format!("{:?}", excerpt(text, SHOWN_BYTES_MAX))
}

/// A card that signatures are checked on.
struct Signed {
    node: Node,
    /// What each form of it looks like in the text that is signed, and what a signature over that form covers.
    payloads: Vec<(String, Cover)>,
}

impl Signed {
    fn read(found: &DiscoveredCard) -> Result<Self, String> {
        let node = Node::read_card(found.json())?;
        let payloads = forms(&node).into_iter().map(|form| (URL_SAFE_NO_PAD.encode(form.bytes), form.cover)).collect();
        Ok(Self { node, payloads })
    }

    /// What the signature covers; none if it is not one of this card by one of these keys.
    fn verify(&self, claim: &Claim, keys: &[&Key]) -> Option<Cover> {
        let is_signed = |payload: &str| {
            let text = format!("{}.{payload}", claim.protected);
            keys.iter().any(|key| key.verifies(claim.algorithm, text.as_bytes(), &claim.signature))
        };
        self.payloads.iter().find(|(payload, _)| is_signed(payload)).map(|(_, cover)| *cover)
    }

    /// Whether the card means the same without the members that no signature covers. If it does not, the signatures say nothing
    /// about what the card is used for: anyone could have added the URL of another version.
    fn is_covered(&self, covers: &[Cover]) -> bool {
        if covers.contains(&Cover::Whole) {
            return true;
        }
        let read = |json: Vec<u8>| {
            let found = DiscoveredCard::read(Bytes::from(json), None, &DecodeLimits::default()).ok()?;
            let mut card = AgentCard::clone(found.card());
            // Not to say that there is an extended card, and to say that there is none, is the same.
            card.capabilities.extended_agent_card = card.capabilities.extended_agent_card.filter(|is_there| *is_there);
            Some((card, found.compat))
        };
        // Both are written anew, because free-form JSON is compared by its text.
        let covered = read(covered_members(&self.node, covers));
        covered.is_some() && covered == read(all_members(&self.node))
    }
}

impl DiscoveredCard {
    /// What the signatures of the card show, by pinned keys alone. [`Client::signature_status`](super::Client::signature_status)
    /// also fetches keys.
    #[must_use]
    pub fn signature_status(&self, keys: &CardKeys) -> SignatureStatus {
        self.judge(|claim, signed| {
            let fitting = claim.fitting(&keys.pinned);
            if fitting.is_empty() {
                return Err(format!("its key {} is not known", claim.shown_key()));
            }
            let cover = signed()?.verify(claim, &fitting).ok_or_else(|| mismatch(claim))?;
            let key_id = claim.key_id.clone().or(fitting[0].id.clone()).unwrap_or_default();
            Ok((cover, SignatureStatus::Verified { key_id, key_url: None }))
        })
    }

    /// The first signature that passes the check, if all that pass it cover the card together; or why not.
    fn judge(
        &self,
        mut check: impl FnMut(&Claim, &ReadCard<'_>) -> Result<(Cover, SignatureStatus), String>,
    ) -> SignatureStatus {
        let signatures = &self.card().signatures;
        let read = OnceCell::new();
        let signed = || read.get_or_init(|| Signed::read(self)).as_ref().map_err(Clone::clone);
        let (mut first_refusal, mut first_verified, mut covers) = (None, None, Vec::new());
        for signature in signatures.iter().take(SIGNATURES_MAX) {
            match Claim::read(signature).and_then(|claim| check(&claim, &signed)) {
                Ok((cover, status)) => {
                    covers.push(cover);
                    let status = first_verified.get_or_insert(status);
                    if signed().is_ok_and(|signed| signed.is_covered(&covers)) {
                        return status.clone();
                    }
                }
                Err(why) => drop(first_refusal.get_or_insert(why)),
            }
        }
        let reason = match (first_verified, first_refusal, signatures.len()) {
            (None, None, _) => return SignatureStatus::Absent,
            (Some(_), _, _) => {
                "members of the card that change what it means are covered by no valid signature; they were added, or one \
                 signature is missing"
                    .to_owned()
            }
            (None, Some(why), 1) => format!("the signature is not verified: {why}"),
            (None, Some(why), count) => {
                format!("none of the {count} signatures is verified; of the first: {why}")
            }
        };
        SignatureStatus::Unverifiable { reason }
    }
}

/// Reads the card for its signatures, once.
type ReadCard<'a> = dyn Fn() -> Result<&'a Signed, String> + 'a;

fn mismatch(claim: &Claim) -> String {
    format!(
        "it does not match the card under the key {}; the card was changed, or another key was used",
        claim.shown_key()
    )
}

/// The keys of a set, and when they were fetched.
type FetchedKeys = (Instant, Arc<Vec<Key>>);

/// Key sets that were fetched, by their URL.
#[derive(Default)]
pub(super) struct KeySets(Mutex<HashMap<String, FetchedKeys>>);

impl KeySets {
    fn get(&self, url: &str, now: Instant) -> Option<Arc<Vec<Key>>> {
        let sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sets.get(url).filter(|(since, _)| now < *since + KEY_SET_KEPT).map(|(_, keys)| keys.clone())
    }

    fn put(&self, url: &str, keys: Arc<Vec<Key>>, now: Instant) {
        let mut sets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sets.retain(|_, (since, _)| now < *since + KEY_SET_KEPT);
        if sets.len() < KEY_SETS_MAX {
            sets.insert(url.to_owned(), (now, keys));
        }
    }
}

/// What is asked of the signatures of cards, and the key sets that were fetched for it.
#[derive(Default)]
pub(super) struct SignatureChecks {
    keys: CardKeys,
    fetched: KeySets,
    /// Whether only agents with a verified card may be called.
    required: bool,
}

impl SignatureChecks {
    pub(super) fn new(keys: CardKeys, required: bool) -> Self {
        Self { keys, fetched: KeySets::default(), required }
    }

    /// The same, without what was fetched.
    pub(super) fn renewed(&self) -> Self {
        Self::new(self.keys.clone(), self.required)
    }

    /// What the signatures of a card show, with keys that are fetched where that is needed and allowed.
    pub(super) async fn status(&self, http: &Http, found: &DiscoveredCard) -> SignatureStatus {
        let pinned = found.signature_status(&self.keys);
        if !matches!(pinned, SignatureStatus::Unverifiable { .. }) {
            return pinned;
        }
        let mut fetched = HashMap::new();
        for signature in found.card().signatures.iter().take(SIGNATURES_MAX) {
            if let Ok(claim) = Claim::read(signature)
                && let Some(url) = &claim.key_url
                && !fetched.contains_key(url)
            {
                fetched.insert(url.clone(), self.key_set(http, url, &claim).await);
            }
        }
        if fetched.is_empty() {
            return pinned;
        }
        found.judge(|claim, signed| {
            let url = claim.key_url.as_ref().ok_or_else(|| format!("its key {} is not known", claim.shown_key()))?;
            let keys = fetched.get(url).ok_or("its key was not fetched")?.as_ref().map_err(Clone::clone)?;
            let fitting = claim.fitting(keys);
            if fitting.is_empty() {
                return Err(format!("its key {} is not among those at {}", claim.shown_key(), shown(url)));
            }
            let cover = signed()?.verify(claim, &fitting).ok_or_else(|| mismatch(claim))?;
            let key_id = claim.key_id.clone().unwrap_or_default();
            Ok((cover, SignatureStatus::Verified { key_id, key_url: Some(url.clone()) }))
        })
    }

    /// The key set that a signature names, if its host is trusted.
    async fn key_set(&self, http: &Http, url: &str, claim: &Claim) -> Result<Arc<Vec<Key>>, String> {
        let uri = check_url(url).map_err(|why| format!("its key set (jku) cannot be fetched: {why}"))?;
        if uri.scheme_str() != Some("https") {
            return Err(format!("its key set (jku) {} is not at an https URL", shown(url)));
        }
        let host = uri.host().unwrap_or_default();
        if !self.keys.trusts(host) {
            return Err(format!("its key set (jku) is at {}, which is not a trusted host", shown(host)));
        }
        // A set that lacks the key may have got it since.
        if let Some(keys) = self.fetched.get(url, Instant::now()).filter(|keys| !claim.fitting(keys).is_empty()) {
            return Ok(keys);
        }
        let unfetched = |why: &dyn fmt::Display| format!("its key set (jku) at {} was not fetched: {why}", shown(host));
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = uri.clone();
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/jwk-set+json, application/json"));
        let mut limits = RequestLimits::default();
        limits.total = Some(http.limits.call);
        limits.body_bytes_max = Some(KEY_SET_BYTES_MAX);
        // The card named the address, not the user. A redirect is an answer like any other: it is no key set.
        let client = http.client_for(&uri, &Named::Nothing);
        let answer = client.send_repeatable(request, &limits).await.map_err(|error| unfetched(&error))?;
        if answer.status() != StatusCode::OK {
            return Err(unfetched(&format_args!("HTTP {}", answer.status().as_u16())));
        }
        let json = answer.into_body().bytes().await.map_err(|error| unfetched(&error))?;
        let keys = Arc::new(public_keys::read_jwk_set(&json).map_err(|error| unfetched(&error))?);
        self.fetched.put(url, keys.clone(), Instant::now());
        Ok(keys)
    }

    /// What the signatures of an extended card show. It came as the answer to a call, so they are checked on the card as it was
    /// understood, written in the form of 1.0.
    pub(super) async fn extended_status(&self, http: &Http, card: &AgentCard) -> SignatureStatus {
        let mut json = Vec::new();
        encode_card(card, &mut json);
        match DiscoveredCard::read(Bytes::from(json), None, &http.limits.decode) {
            Ok(found) => self.status(http, &found).await,
            Err(error) => SignatureStatus::Unverifiable { reason: error.to_string() },
        }
    }

    /// Refuses a card that is not verified, where only verified ones are wanted.
    pub(super) async fn check(&self, http: &Http, found: &DiscoveredCard) -> Result<(), CallError> {
        match self.required {
            true => require_verified(self.status(http, found).await),
            false => Ok(()),
        }
    }

    /// The same for an extended card.
    pub(super) async fn check_extended(&self, http: &Http, card: &AgentCard) -> Result<(), CallError> {
        match self.required {
            true => require_verified(self.extended_status(http, card).await),
            false => Ok(()),
        }
    }
}

fn require_verified(status: SignatureStatus) -> Result<(), CallError> {
    let why = match status {
        SignatureStatus::Verified { .. } => return Ok(()),
        SignatureStatus::Unverifiable { reason } => reason,
        SignatureStatus::Absent => "the card is not signed".to_owned(),
    };
    let why = format!("only agents with a verified card may be called: {why}");
    Err(CallError::new(CallErrorKind::CardNotVerified, why))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
