//! The public card of an agent, encoded once in each of its forms, with what HTTP caches need.
//!
//! By default the card holds the members of 1.0 and of 0.3 side by side: real clients of every version find theirs and skip
//! the rest. Whoever says that they speak 1.0 gets the card of 1.0 alone, since there are readers with a closed schema.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use switchboard_core::dialect::json::merge_objects;
use switchboard_core::dialect::{Dialect, v0_3, v1_0};
use switchboard_core::model::{AgentCard, AgentInterface, Timestamp};

use super::body::ReplyBody;

/// What the public card holds for those who do not say which version they speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardForm {
    /// The members of every version that is served, side by side.
    #[default]
    All,
    /// Those of 1.0 alone.
    V1_0,
}

/// An agent's card in its forms.
pub(crate) struct ServedCards {
    all: ServedCard,
    v1_0: ServedCard,
}

impl ServedCards {
    pub(crate) fn new(
        form: CardForm,
        card: &AgentCard,
        interfaces: &[AgentInterface],
        since: Timestamp,
        max_age_s: u32,
    ) -> Self {
        let v1_0 = encode(card, interfaces, v1_0::encode_card);
        let all = match form {
            CardForm::All => merged(&v1_0, &encode(card, interfaces, v0_3::encode_card)),
            CardForm::V1_0 => v1_0.clone(),
        };
        let served = |body| ServedCard::new(body, since, max_age_s);
        Self { all: served(all), v1_0: served(v1_0) }
    }

    /// The card for somebody who speaks this dialect.
    pub(crate) fn of(&self, dialect: Dialect) -> &ServedCard {
        match dialect {
            Dialect::V1_0 => &self.v1_0,
            Dialect::V0_3 | Dialect::V0_3Rest => &self.all,
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
        if let Some(tags) = headers.get(header::IF_NONE_MATCH) {
            let own = self.etag.as_bytes();
            return tags.to_str().is_ok_and(|tags| {
                let bare = |tag: &str| tag.trim().trim_start_matches("W/").as_bytes() == own || tag.trim() == "*";
                tags.split(',').any(bare)
            });
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
        Dialect::V0_3 | Dialect::V0_3Rest => encode(card, interfaces, v0_3::encode_card),
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
