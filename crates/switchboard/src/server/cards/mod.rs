//! The public card of an agent, encoded once in each of its forms, with what HTTP caches need.
//!
//! By default the card holds the members of 1.0 and of 0.3 side by side: real clients of every version find theirs and
//! skip the rest. A client that names version 1.0 gets the card of 1.0 alone, because some clients refuse unknown
//! members.

pub(crate) mod current;
pub(crate) mod interfaces;
pub(crate) mod signing;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
#[cfg(feature = "grpc")]
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::dialect::json::merge_objects;
use switchboard_core::dialect::{Dialect, v0_3, v1_0};
#[cfg(feature = "grpc")]
use switchboard_core::model::AgentCardSignature;
use switchboard_core::model::{AgentCard, AgentInterface, Timestamp};
use switchboard_engine::ports::Clock;
use switchboard_engine::sha256::sha256;
use switchboard_engine::system::SystemClock;

use crate::agent_settings::{CardForm, Compat};
use crate::server::exchange::headers::names;
use crate::server::exchange::respond::ReplyBody;
use crate::signing_keys::KeySet;
use signing::{SiteSigner, Versions};

/// What a compat dialect has for a card.
pub(crate) trait CompatCard: Sync {
    fn dialect(&self) -> Dialect;

    /// Writes the card of an agent for whoever takes `base` for its root.
    fn encode_card(&self, subject: &Subject<'_>, base: &str, out: &mut Vec<u8>);

    /// The address that stands for an agent on a card of its own among the agents of the server; none if there is no such card.
    fn listed_card_base<'s>(&self, subject: &Subject<'s>) -> Option<&'s str> {
        let _ = subject;
        None
    }
}

/// The compat dialects that a server has cards for.
pub(crate) type CompatCards = &'static [&'static dyn CompatCard];

/// An agent's card in its forms.
pub(crate) struct ServedCards {
    all: ServedCard,
    v1_0: ServedCard,
    /// What each compat dialect has on its own mount.
    on_mounts: Vec<(Dialect, ServedCard)>,
    /// What some of them have among the agents of the server.
    listed: Vec<(Dialect, ServedCard)>,
}

/// What a card is made of.
pub(crate) struct Subject<'a> {
    pub(crate) card: &'a AgentCard,
    pub(crate) interfaces: &'a [AgentInterface],
    /// The address of the agent itself.
    pub(crate) url: &'a str,
    /// The address that names it among the agents of the server.
    pub(crate) own_url: &'a str,
    /// The address that it has below `/api`.
    pub(crate) api_url: &'a str,
    pub(crate) compat: &'a Compat,
    pub(crate) compat_cards: CompatCards,
    /// Whether the version on the card is its owner's choice.
    pub(crate) has_version: bool,
}

impl ServedCards {
    /// `signer` signs the cards of A2A itself; those of compat dialects have no place for signatures.
    pub(crate) fn new(
        form: CardForm,
        subject: &Subject<'_>,
        since: Timestamp,
        max_age_s: u32,
        signer: Option<&SiteSigner>,
    ) -> Self {
        let served = |body| ServedCard::new(body, since, max_age_s);
        let on_mount = |compat: &dyn CompatCard| {
            let dialect = compat.dialect();
            let url = format!("{}/dialects/{}", subject.url, dialect.name());
            (dialect, served(subject.encode_compat(compat, &url)))
        };
        let listed = |compat: &dyn CompatCard| {
            let base = compat.listed_card_base(subject)?;
            Some((compat.dialect(), served(subject.encode_compat(compat, base))))
        };
        let signed = |form| {
            let signing = signer.cloned().zip(subject.versions(form));
            ServedCard { signing, ..served(subject.encode(form, subject.url)) }
        };
        Self {
            all: signed(form),
            v1_0: signed(CardForm::V1_0),
            on_mounts: subject.compat_cards.iter().copied().map(on_mount).collect(),
            listed: subject.compat_cards.iter().copied().filter_map(listed).collect(),
        }
    }

    /// The card on the own mount of a compat dialect.
    pub(crate) fn on_mount(&self, dialect: Dialect) -> &ServedCard {
        self.find(&self.on_mounts, dialect)
    }

    /// The card that a compat dialect has for the agent among those of the server.
    pub(crate) fn listed(&self, dialect: Dialect) -> &ServedCard {
        self.find(&self.listed, dialect)
    }

    fn find<'a>(&'a self, cards: &'a [(Dialect, ServedCard)], dialect: Dialect) -> &'a ServedCard {
        cards.iter().find(|(own, _)| *own == dialect).map_or(&self.all, |(_, card)| card)
    }

    /// The card for clients of this dialect.
    pub(crate) fn of(&self, dialect: Dialect) -> &ServedCard {
        if dialect == Dialect::V1_0 { &self.v1_0 } else { &self.all }
    }
}

pub(crate) struct ServedCard {
    unsigned: Arc<EncodedCard>,
    max_age_s: u32,
    signing: Option<(SiteSigner, Versions)>,
    /// The signed card, and the keys that it was signed with.
    signed: Mutex<Option<(Arc<KeySet>, Arc<EncodedCard>)>>,
}

impl ServedCard {
    fn new(body: Bytes, since: Timestamp, max_age_s: u32) -> Self {
        let unsigned = Arc::new(EncodedCard::new(body, since, max_age_s));
        Self { unsigned, max_age_s, signing: None, signed: Mutex::default() }
    }

    pub(crate) fn answer(&self, headers: &HeaderMap, head_only: bool) -> Response<ReplyBody> {
        self.encoded().answer(headers, head_only)
    }

    /// The card, signed with the keys of this moment. It is signed when it is first asked for and after each change of keys.
    fn encoded(&self) -> Arc<EncodedCard> {
        let Some((signer, versions)) = &self.signing else { return self.unsigned.clone() };
        let keys = signer.keys();
        if keys.active().is_none() {
            return self.unsigned.clone();
        }
        let mut signed = self.signed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made_with, card)) = &*signed
            && Arc::ptr_eq(made_with, &keys)
        {
            return card.clone();
        }
        let body = signer.signed(&keys, &self.unsigned.body, versions);
        let card = Arc::new(EncodedCard::new(body, SystemClock.now(), self.max_age_s));
        *signed = Some((keys, card.clone()));
        card
    }
}

/// The bytes of a card, and its headers.
struct EncodedCard {
    body: Bytes,
    etag: HeaderValue,
    last_modified: HeaderValue,
    modified_s: i64,
    cache_control: HeaderValue,
}

impl EncodedCard {
    fn new(body: Bytes, since: Timestamp, max_age_s: u32) -> Self {
        let hex: String = sha256(&body).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let modified_s = since.as_ms() / 1000;
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(modified_s.unsigned_abs());
        let text = |text: String| HeaderValue::from_str(&text).expect("digits, hex and dates are legal in headers");
        Self {
            body,
            etag: text(format!("\"{hex}\"")),
            last_modified: text(httpdate::fmt_http_date(modified)),
            modified_s,
            cache_control: text(format!("public, max-age={max_age_s}")),
        }
    }

    fn answer(&self, headers: &HeaderMap, head_only: bool) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody::Empty);
        if self.is_known(headers) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else if !head_only {
            *response.body_mut() = ReplyBody::Whole(self.body.clone());
        }
        let out = response.headers_mut();
        out.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        out.insert(header::ETAG, self.etag.clone());
        out.insert(header::LAST_MODIFIED, self.last_modified.clone());
        out.insert(header::CACHE_CONTROL, self.cache_control.clone());
        out.insert(header::VARY, HeaderValue::from_static("a2a-version"));
        response
    }

    /// Whether the client has this card already. A tag outranks a date.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        if headers.contains_key(header::IF_NONE_MATCH) {
            let own = self.etag.as_bytes();
            return names(headers, header::IF_NONE_MATCH, |tag| tag.trim_start_matches("W/").as_bytes() == own);
        }
        let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|since| since.to_str().ok());
        let since = since.and_then(|since| httpdate::parse_http_date(since).ok());
        let since = since.and_then(|since| since.duration_since(std::time::UNIX_EPOCH).ok());
        since.is_some_and(|since| i64::try_from(since.as_secs()).is_ok_and(|since| since >= self.modified_s))
    }
}

/// A card for one who asked for it in this dialect, with the addresses it is served at.
pub(crate) fn encode_reply(
    dialect: Dialect,
    card: &AgentCard,
    interfaces: &[AgentInterface],
    signer: Option<&SiteSigner>,
) -> Bytes {
    let is_1_0 = dialect == Dialect::V1_0;
    let body = encode(card, interfaces, if is_1_0 { v1_0::encode_card } else { v0_3::encode_card });
    let Some(signer) = signer else { return body };
    let own = Some(body.clone());
    let versions = if is_1_0 { Versions { v1_0: own, v0_3: None } } else { Versions { v1_0: None, v0_3: own } };
    signer.signed(&signer.keys(), &body, &versions)
}

/// The signatures of a card that is written as protobuf, over what it is in JSON. It has the addresses that it is served at.
#[cfg(feature = "grpc")]
pub(crate) fn signatures(dialect: Dialect, card: &AgentCard, signer: Option<&SiteSigner>) -> Vec<AgentCardSignature> {
    let Some(signer) = signer else { return Vec::new() };
    let versions = if dialect == Dialect::V1_0 {
        Versions { v1_0: Some(encode(card, &card.supported_interfaces, v1_0::encode_card)), v0_3: None }
    } else {
        // The messages of 0.3 do not tell an empty text from none, so what is signed is what their reader gets to see.
        let mut message = Vec::new();
        v0_3::proto::write_card(card, &mut message);
        let seen = v0_3::proto::read_card(message.into(), &DecodeLimits::default());
        let seen = seen.map_or(Cow::Borrowed(card), Cow::Owned);
        Versions { v1_0: None, v0_3: Some(encode(&seen, &seen.supported_interfaces, v0_3::encode_card)) }
    };
    signer.signatures(&signer.keys(), &versions)
}

impl Subject<'_> {
    /// The card in one form, with addresses below `base`.
    fn encode(&self, form: CardForm, base: &str) -> Bytes {
        let Self { card, interfaces, .. } = self;
        let compat = match form {
            CardForm::V1_0 => return encode(card, interfaces, v1_0::encode_card),
            CardForm::Compat(dialect) => self.compat_card(dialect),
            CardForm::All => None,
        };
        match compat {
            Some(compat) => self.encode_compat(compat, base),
            None => {
                let v1_0 = encode(card, interfaces, v1_0::encode_card);
                merged(&v1_0, &encode(card, interfaces, v0_3::encode_card))
            }
        }
    }

    /// What is signed of the card in this form; none for the card of another system.
    fn versions(&self, form: CardForm) -> Option<Versions> {
        let Self { card, interfaces, .. } = self;
        let v1_0 = Some(encode(card, interfaces, v1_0::encode_card));
        match form {
            CardForm::V1_0 => Some(Versions { v1_0, v0_3: None }),
            CardForm::Compat(dialect) if self.compat_card(dialect).is_some() => None,
            CardForm::Compat(_) | CardForm::All => {
                Some(Versions { v1_0, v0_3: Some(encode(card, interfaces, v0_3::encode_card)) })
            }
        }
    }

    /// None for a version of A2A.
    fn compat_card(&self, dialect: Dialect) -> Option<&'static dyn CompatCard> {
        self.compat_cards.iter().copied().find(|compat| compat.dialect() == dialect)
    }

    fn encode_compat(&self, compat: &dyn CompatCard, base: &str) -> Bytes {
        let mut body = Vec::with_capacity(1024);
        compat.encode_card(self, base, &mut body);
        body.into()
    }

    /// The card with the version of this package, as some originals have it, unless the agent's owner has named one.
    pub(crate) fn with_package(&self) -> Cow<'_, AgentCard> {
        if self.has_version {
            return Cow::Borrowed(self.card);
        }
        Cow::Owned(AgentCard { version: env!("CARGO_PKG_VERSION").to_owned(), ..self.card.clone() })
    }
}

fn encode(card: &AgentCard, interfaces: &[AgentInterface], spell: fn(&AgentCard, &mut Vec<u8>)) -> Bytes {
    // A signature of the agent's owner was made over other addresses, and would not verify.
    let card = AgentCard { supported_interfaces: interfaces.to_vec(), signatures: Vec::new(), ..card.clone() };
    let mut body = Vec::with_capacity(2048);
    spell(&card, &mut body);
    body.into()
}

fn merged(first: &[u8], second: &[u8]) -> Bytes {
    let text = |bytes| std::str::from_utf8(bytes).expect("dialects write UTF-8");
    let mut body = Vec::with_capacity(first.len() + second.len());
    merge_objects(text(first), text(second), &mut body);
    body.into()
}
