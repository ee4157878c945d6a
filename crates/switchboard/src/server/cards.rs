//! The public card of an agent, encoded once in each of its forms, with what HTTP caches need.
//!
//! By default the card holds the members of 1.0 and of 0.3 side by side: real clients of every version find theirs and skip
//! the rest. Whoever says that they speak 1.0 gets the card of 1.0 alone, since there are readers with a closed schema.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use switchboard_core::dialect::json::merge_objects;
use switchboard_core::dialect::compat::{agent_native, corvid, nexus, selectools};
use switchboard_core::dialect::{Dialect, v0_3, v1_0};
use switchboard_core::model::{AgentCard, AgentInterface, Timestamp};

use super::body::ReplyBody;
use super::ranges::names;

/// What the public card holds for those who do not say which version they speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardForm {
    /// The members of every version that is served, side by side.
    #[default]
    All,
    /// Those of 1.0 alone.
    V1_0,
    /// The card that agent-native generates.
    AgentNative,
    /// The card that selectools generates.
    Selectools,
    /// The card that corvid-agents generate.
    Corvid,
    /// The card that agents of NEXUS have.
    Nexus,
}

impl CardForm {
    /// The form that a single system's accent has.
    fn of_seed(dialect: Dialect) -> Option<Self> {
        match dialect {
            Dialect::V1_0 | Dialect::V0_3 | Dialect::V0_3Rest => None,
            Dialect::AgentNative => Some(Self::AgentNative),
            Dialect::Selectools => Some(Self::Selectools),
            Dialect::Corvid => Some(Self::Corvid),
            Dialect::Nexus => Some(Self::Nexus),
        }
    }
}

/// An agent's card in its forms.
pub(crate) struct ServedCards {
    all: ServedCard,
    v1_0: ServedCard,
    /// What each accent has on its own mount.
    seeds: Vec<(Dialect, ServedCard)>,
    /// What corvid has at `/api/agents/{name}/agent-card`.
    pub(crate) api: ServedCard,
}

/// What a card is made of.
pub(crate) struct Subject<'a> {
    pub(crate) card: &'a AgentCard,
    pub(crate) interfaces: &'a [AgentInterface],
    /// The address of the agent itself.
    pub(crate) url: &'a str,
    /// The address that names it among the agents of the server.
    pub(crate) own_url: &'a str,
    /// The address that corvid has for it.
    pub(crate) api_url: &'a str,
    /// What selectools has for it.
    pub(crate) selectools_url: &'a str,
    /// Whether it takes calls of corvid that name no agent.
    pub(crate) default_project: bool,
    /// Whether the version on the card is its owner's choice.
    pub(crate) has_version: bool,
}

impl ServedCards {
    pub(crate) fn new(form: CardForm, subject: &Subject<'_>, since: Timestamp, max_age_s: u32) -> Self {
        let served = |body| ServedCard::new(body, since, max_age_s);
        let own = |dialect: Dialect| {
            let form = CardForm::of_seed(dialect)?;
            let url = format!("{}/dialects/{}", subject.url, dialect.name());
            Some((dialect, served(subject.encode(form, &url))))
        };
        let mut api = Vec::with_capacity(1024);
        subject.encode_corvid(subject.api_url, subject.own_url, &mut api);
        Self {
            api: served(api.into()),
            all: served(subject.encode(form, subject.url)),
            v1_0: served(subject.encode(CardForm::V1_0, subject.url)),
            seeds: Dialect::COMPAT.into_iter().filter_map(own).collect(),
        }
    }

    /// The card on the own mount of an accent.
    pub(crate) fn on_mount(&self, dialect: Dialect) -> &ServedCard {
        self.seeds.iter().find(|(seed, _)| *seed == dialect).map_or(&self.all, |(_, card)| card)
    }

    /// The card for somebody who speaks this dialect.
    pub(crate) fn of(&self, dialect: Dialect) -> &ServedCard {
        match dialect {
            Dialect::V1_0 => &self.v1_0,
            Dialect::V0_3
            | Dialect::V0_3Rest
            | Dialect::AgentNative
            | Dialect::Selectools
            | Dialect::Corvid
            | Dialect::Nexus => &self.all,
        }
    }
}

pub(crate) struct ServedCard {
    body: Bytes,
    etag: HeaderValue,
    last_modified: HeaderValue,
    modified_s: i64,
    cache_control: HeaderValue,
}

impl ServedCard {
    fn new(body: Bytes, since: Timestamp, max_age_s: u32) -> Self {
        let digest = Sha256::digest(&body);
        let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
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

    pub(crate) fn answer(&self, headers: &HeaderMap, head_only: bool) -> Response<ReplyBody> {
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
pub(crate) fn encode_reply(dialect: Dialect, card: &AgentCard, interfaces: &[AgentInterface]) -> Bytes {
    match dialect {
        Dialect::V1_0 => encode(card, interfaces, v1_0::encode_card),
        Dialect::V0_3
        | Dialect::V0_3Rest
        | Dialect::AgentNative
        | Dialect::Selectools
        | Dialect::Corvid
        | Dialect::Nexus => encode(card, interfaces, v0_3::encode_card),
    }
}

impl Subject<'_> {
    /// The card in one form, for whoever takes `base` for the root of the agent.
    fn encode(&self, form: CardForm, base: &str) -> Bytes {
        let Self { card, interfaces, .. } = self;
        let mut body = Vec::with_capacity(1024);
        match form {
            CardForm::All => {
                let v1_0 = encode(card, interfaces, v1_0::encode_card);
                return merged(&v1_0, &encode(card, interfaces, v0_3::encode_card));
            }
            CardForm::V1_0 => return encode(card, interfaces, v1_0::encode_card),
            CardForm::AgentNative => agent_native::encode_card(card, &format!("{base}/_agent-native/a2a"), &mut body),
            CardForm::Selectools => selectools::encode_card(&self.with_package(), self.selectools_url, &mut body),
            CardForm::Corvid => self.encode_corvid(base, base, &mut body),
            CardForm::Nexus => nexus::encode_card(card, base, &mut body),
        }
        body.into()
    }

    /// The card of corvid. What is sent to the root of the server goes to the agent that takes such calls, so any other
    /// names the place that is its own.
    fn encode_corvid(&self, url: &str, base: &str, out: &mut Vec<u8>) {
        let base = if self.default_project { base } else { self.own_url };
        corvid::encode_card(&self.with_package(), url, &format!("{base}/a2a/tasks/send"), out);
    }

    /// The card with the version of this package, as some originals have it, unless the agent's owner has named one.
    fn with_package(&self) -> Cow<'_, AgentCard> {
        if self.has_version {
            return Cow::Borrowed(self.card);
        }
        Cow::Owned(AgentCard { version: env!("CARGO_PKG_VERSION").to_owned(), ..self.card.clone() })
    }
}

fn encode(card: &AgentCard, interfaces: &[AgentInterface], spell: fn(&AgentCard, &mut Vec<u8>)) -> Bytes {
    let card = AgentCard { supported_interfaces: interfaces.to_vec(), ..card.clone() };
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
