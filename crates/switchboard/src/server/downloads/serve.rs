//! Answers requests for downloads. What people and agents wrote is sent as an attachment, so that a browser never shows it as a page of
//! this server.
//!
//! Which bytes of a file a request wants, and whether it wants them at all, is said by `Range` and the conditions around it,
//! as RFC 9110 has them.

use std::ops::Range;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use switchboard_core::call::Owner;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::json::check_id;
use switchboard_core::error::ProtocolError;
use switchboard_engine::ports::download::{StoredArtifact, WrittenUpdate};

use super::ArtifactPath;
use super::body::DownloadBody;
use crate::server::authentication::Identity;
use crate::server::exchange::authorize::Subject;
use crate::server::exchange::headers::names;
use crate::server::exchange::request::Head;
use crate::server::exchange::respond::{A2A_JSON, ReplyBody, http_error, not_allowed};
use crate::server::ports::{Downloads, WantedArtifact};
use crate::server::shared::Shared;
use crate::server::uri::encode;

pub(crate) fn refuse(error: &ProtocolError) -> Response<ReplyBody> {
    http_error(Dialect::V1_0, error, A2A_JSON)
}

pub(crate) async fn serve(
    shared: &Shared,
    agent: &str,
    downloads: &Arc<dyn Downloads>,
    head: &Head<'_>,
    identity: &Identity,
    place: ArtifactPath,
) -> Response<ReplyBody> {
    let method = head.method;
    if *method != Method::GET && *method != Method::HEAD {
        let error = ProtocolError::MethodNotFound { method: format!("{method} {:.200}", head.uri.path()), hint: None };
        return not_allowed(Dialect::V1_0, &error, "GET, HEAD", A2A_JSON);
    }
    let asked = DownloadRequest::of(shared, head, place).and_then(|asked| {
        let owner = shared.owner(identity, asked.tenant.as_deref())?;
        if let Some(rules) = &shared.rules {
            rules.check_download(&Subject { identity, tenant: owner.tenant.as_str() }, agent)?;
        }
        Ok((owner, asked))
    });
    let found = match asked {
        Ok((owner, asked)) => asked.find(downloads, &owner).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(found) => answer(shared, downloads, head, *method == Method::HEAD, &found),
        Err(error) => refuse(&error),
    }
}

/// What a request asks for.
struct DownloadRequest {
    tenant: Option<String>,
    wanted: WantedArtifact,
    /// The number of the update whose own bytes are wanted.
    update: Option<u64>,
}

/// What there is to send.
enum DownloadSource {
    Stored(StoredArtifact),
    Written(WrittenUpdate),
}

impl DownloadSource {
    fn bytes(&self) -> u64 {
        match self {
            Self::Stored(stored) => stored.bytes(),
            Self::Written(written) => written.bytes.len() as u64,
        }
    }

    /// Of an artifact: the commit that began it and how much there is; a write more, and it is another file. What one
    /// update wrote stays as it is.
    fn etag(&self) -> String {
        match self {
            Self::Stored(stored) => format!("\"{:x}-{:x}-{:x}\"", stored.begun, stored.range.start, stored.bytes()),
            Self::Written(written) => format!("\"u{:x}-{:x}\"", written.seq, written.bytes.len()),
        }
    }

    fn media_type(&self) -> HeaderValue {
        match self {
            Self::Stored(stored) => media_type(&stored.media_type),
            Self::Written(written) => media_type(&written.media_type),
        }
    }

    fn filename(&self) -> Option<&str> {
        match self {
            Self::Stored(stored) => stored.filename.as_deref(),
            Self::Written(written) => written.filename.as_deref(),
        }
    }

    fn body(&self, downloads: &Arc<dyn Downloads>, read_bytes: usize, range: Range<u64>) -> ReplyBody {
        match self {
            Self::Stored(stored) => {
                let body = DownloadBody::new(downloads.clone(), stored.cursor(range), read_bytes);
                ReplyBody::Streamed(Box::new(body))
            }
            Self::Written(written) => {
                let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(written.bytes.len());
                ReplyBody::Whole(written.bytes.slice(at(range.start)..at(range.end)))
            }
        }
    }
}

impl DownloadRequest {
    fn of(shared: &Shared, head: &Head<'_>, place: ArtifactPath) -> Result<Self, ProtocolError> {
        let ArtifactPath { tenant, task, artifact } = place;
        check_id("id", task.as_str(), &shared.decode_limits)?;
        let number = |name: &str, what: &str| {
            let wrong = |_| ProtocolError::invalid(name, what);
            head.query(name).map(|number| number.parse::<u64>().map_err(wrong)).transpose()
        };
        Ok(Self {
            tenant: tenant.or_else(|| head.query("tenant")),
            wanted: WantedArtifact {
                task,
                artifact,
                part: number("part", "must be the number of a part, counted from 0")?,
            },
            update: number("update", "must be the number of an update, as a stream has it in `id:`")?,
        })
    }

    async fn find(&self, downloads: &Arc<dyn Downloads>, owner: &Owner) -> Result<DownloadSource, ProtocolError> {
        match self.update {
            None => downloads.artifact(owner, &self.wanted).await.map(DownloadSource::Stored),
            Some(seq) => downloads.update(owner, &self.wanted, seq).await.map(DownloadSource::Written),
        }
    }
}

fn answer(
    shared: &Shared,
    downloads: &Arc<dyn Downloads>,
    head: &Head<'_>,
    head_only: bool,
    found: &DownloadSource,
) -> Response<ReplyBody> {
    let (bytes, etag) = (found.bytes(), found.etag());
    let (status, range) = match wanted(head.headers, &etag, bytes, !head_only) {
        RangeOutcome::Whole => (StatusCode::OK, Some(0..bytes)),
        RangeOutcome::Part(range) => (StatusCode::PARTIAL_CONTENT, Some(range)),
        RangeOutcome::NotModified => (StatusCode::NOT_MODIFIED, None),
        RangeOutcome::ConditionFailed => (StatusCode::PRECONDITION_FAILED, None),
        RangeOutcome::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, None),
    };
    let mut response = Response::new(ReplyBody::Empty);
    *response.status_mut() = status;
    let text = |text: String| HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("?"));
    let headers = response.headers_mut();
    headers.insert(header::ETAG, text(etag));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // The file belongs to one caller and may grow, so shared caches must not keep it.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    match (&range, status) {
        (Some(range), StatusCode::PARTIAL_CONTENT) => {
            let (first, last) = (range.start, range.end.saturating_sub(1));
            headers.insert(header::CONTENT_RANGE, text(format!("bytes {first}-{last}/{bytes}")));
        }
        (None, StatusCode::RANGE_NOT_SATISFIABLE) => {
            headers.insert(header::CONTENT_RANGE, text(format!("bytes */{bytes}")));
        }
        _ => {}
    }
    let Some(range) = range else { return response };
    headers.insert(header::CONTENT_TYPE, found.media_type());
    headers.insert(header::CONTENT_DISPOSITION, disposition(found.filename()));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    if !head_only {
        *response.body_mut() = found.body(downloads, shared.limits.download_read_bytes, range);
    }
    response
}

/// What an agent calls a media type is text of its own; what cannot be one is bytes.
fn media_type(named: &str) -> HeaderValue {
    let is_token = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    let bare = named.split(';').next().unwrap_or_default().trim();
    let is_type = bare.split_once('/').is_some_and(|(kind, sub)| is_token(kind) && is_token(sub) && !sub.contains('/'));
    let value = HeaderValue::from_str(named).ok().filter(|_| is_type);
    value.unwrap_or_else(|| HeaderValue::from_static("application/octet-stream"))
}

/// Longer names are cut; file systems do so anyway.
const NAME_CHARS_MAX: usize = 120;

/// What a downloaded file is to be called. The name comes from an agent, so it is only a name by the time it gets into a header:
/// no path, no control characters, nothing that ends a header early. Always a file to keep, never a page to show (RFC 6266).
pub(crate) fn disposition(filename: Option<&str>) -> HeaderValue {
    const UNNAMED: HeaderValue = HeaderValue::from_static("attachment");
    let Some(name) = filename.and_then(safe_name) else { return UNNAMED };
    let ascii: String = name.chars().map(|char| if char.is_ascii() { char } else { '_' }).collect();
    let value = if ascii == name {
        format!("attachment; filename=\"{name}\"")
    } else {
        format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{}", encode(&name))
    };
    HeaderValue::from_str(&value).unwrap_or(UNNAMED)
}

/// The last segment of the path, without characters that have a meaning to a shell, a header or a file system.
fn safe_name(filename: &str) -> Option<String> {
    let last = filename.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |char: &char| !char.is_control() && !is_invisible(*char);
    let replaced = |char| if matches!(char, '"' | '<' | '>' | ':' | '|' | '?' | '*' | '%' | ';') { '_' } else { char };
    let name: String = last.chars().filter(is_plain).map(replaced).take(NAME_CHARS_MAX).collect();
    let name = name.trim_matches(|char: char| char == '.' || char.is_whitespace());
    (!name.is_empty()).then(|| name.to_owned())
}

/// Marks that turn text round or hide in it, so that `gpj.exe` reads as `exe.jpg`.
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// What a request for a file comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RangeOutcome {
    Whole,
    Part(Range<u64>),
    /// The client has it already.
    NotModified,
    /// The client wanted another one than this.
    ConditionFailed,
    /// There are no such bytes.
    Unsatisfiable,
}

/// Weighs a request against a file of so many bytes. `etag` is strong and comes with its quotes; `ranges` is false where
/// a range has no meaning, as in HEAD.
pub(crate) fn wanted(headers: &HeaderMap, etag: &str, bytes: u64, ranges: bool) -> RangeOutcome {
    if headers.contains_key(header::IF_MATCH) && !names(headers, header::IF_MATCH, |tag| tag == etag) {
        return RangeOutcome::ConditionFailed;
    }
    if names(headers, header::IF_NONE_MATCH, |tag| tag.strip_prefix("W/").unwrap_or(tag) == etag) {
        return RangeOutcome::NotModified;
    }
    // A range of another file than the client thinks of would be patched into the wrong one. A date is never exact.
    let same = headers.get(header::IF_RANGE).is_none_or(|value| value.as_bytes() == etag.as_bytes());
    let mut lines = headers.get_all(header::RANGE).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) if ranges && same => line.to_str().map_or(RangeOutcome::Whole, |line| range(line, bytes)),
        _ => RangeOutcome::Whole,
    }
}

/// One range. Several at once, and what is not a range of bytes, may be ignored: then the whole file is the answer.
fn range(line: &str, bytes: u64) -> RangeOutcome {
    let Some(spec) = line.trim().strip_prefix("bytes=").map(str::trim) else { return RangeOutcome::Whole };
    let Some((first, last)) = spec.split_once('-') else { return RangeOutcome::Whole };
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than a number holds are a number beyond the end of everything.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (first, last) = (first.trim(), last.trim());
    match (number(first), number(last)) {
        (None, Some(suffix)) if first.is_empty() => match suffix.min(bytes) {
            0 => RangeOutcome::Unsatisfiable,
            suffix => RangeOutcome::Part(bytes - suffix..bytes),
        },
        (Some(first), last_given) if last.is_empty() || last_given.is_some() => {
            let end = last_given.map_or(bytes, |last| last.saturating_add(1).min(bytes));
            match () {
                () if last_given.is_some_and(|last| last < first) => RangeOutcome::Whole,
                () if first >= bytes => RangeOutcome::Unsatisfiable,
                () => RangeOutcome::Part(first..end),
            }
        }
        _ => RangeOutcome::Whole,
    }
}
