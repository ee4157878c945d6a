//! The public card of an agent, encoded once, with what HTTP caches need.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use switchboard_core::dialect::v1_0;
use switchboard_core::model::{AgentCard, AgentInterface, Timestamp};

use super::body::ReplyBody;

pub(crate) struct ServedCard {
    body: Bytes,
    etag: HeaderValue,
    last_modified: HeaderValue,
    modified_s: i64,
    cache_control: HeaderValue,
}

impl ServedCard {
    pub(crate) fn new(card: &AgentCard, interfaces: &[AgentInterface], since: Timestamp, max_age_s: u32) -> Self {
        let body = encode(card, interfaces);
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

/// A card with the addresses it is served at.
pub(crate) fn encode(card: &AgentCard, interfaces: &[AgentInterface]) -> Bytes {
    let card = AgentCard { supported_interfaces: interfaces.to_vec(), ..card.clone() };
    let mut body = Vec::with_capacity(2048);
    v1_0::encode_card(&card, &mut body);
    body.into()
}
