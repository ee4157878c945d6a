//! Downloads: what the link in the place of a large artifact leads to. Not part of A2A, so no version is asked for; who
//! may have it is asked as everywhere. What people and agents wrote is handed out as a file to keep and never as a page
//! of ours.

pub(crate) mod download_body;
pub(crate) mod filenames;
pub(crate) mod ranges;

use std::ops::Range;
use std::sync::Arc;

use http::{HeaderValue, Method, Response, StatusCode, header};
use switchboard_core::call::Owner;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::json::check_id;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{ArtifactId, TaskId};
use switchboard_engine::Engine;
use switchboard_engine::ports::Links;
use switchboard_engine::ports::download::{StoredArtifact, WrittenUpdate};
use switchboard_engine::ports::store::Scope;

use crate::server::downloads::download_body::DownloadBody;
use crate::server::downloads::filenames::disposition;
use crate::server::downloads::ranges::{Wanted, wanted};
use crate::server::edge::body::ReplyBody;
use crate::server::edge::percent::encode;
use crate::server::edge::respond::{A2A_JSON, http_error, not_allowed};
use crate::server::edge::route::ArtifactPlace;
use crate::server::edge::shared::{Head, Mounted, Shared};
use crate::server::operator::metrics::Operation;

/// Every agent is served under its name, and there its artifacts are.
pub(crate) struct ServedAt {
    base: String,
}

impl ServedAt {
    /// `base` is the public URL, without a slash at its end.
    pub(crate) fn new(base: String) -> Self {
        Self { base }
    }
}

impl Links for ServedAt {
    fn artifact(&self, scope: &Scope, task: &TaskId, artifact: &ArtifactId, part: Option<u64>) -> String {
        let Self { base } = self;
        let (agent, task, artifact) = (encode(scope.agent.as_str()), encode(task.as_str()), encode(artifact.as_str()));
        let tenant = scope.owner.tenant.as_str();
        let tenant = (!tenant.is_empty()).then(|| format!("tenant={}", encode(tenant)));
        let query: Vec<String> = tenant.into_iter().chain(part.map(|part| format!("part={part}"))).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{base}/agents/{agent}/tasks/{task}/artifacts/{artifact}{mark}{}", query.join("&"))
    }
}

pub(crate) async fn serve(
    shared: &Shared,
    agent: &Mounted,
    head: &Head<'_>,
    method: &Method,
    place: ArtifactPlace<'_>,
) -> Response<ReplyBody> {
    let refuse = |error: ProtocolError| http_error(Dialect::V1_0, &error, A2A_JSON);
    head.note.operation(Operation::DownloadArtifact);
    head.note.agent(agent);
    let identity = match shared.identify(head) {
        Ok(identity) => identity,
        Err(error) => return refuse(error),
    };
    if *method != Method::GET && *method != Method::HEAD {
        let error = ProtocolError::MethodNotFound { method: format!("{method} {:.200}", head.uri.path()), hint: None };
        return not_allowed(Dialect::V1_0, &error, "GET, HEAD", A2A_JSON);
    }
    let asked = Asked::of(shared, head, place).and_then(|asked| {
        let owner = identity.owner(asked.tenant.as_deref())?;
        Ok((owner, asked))
    });
    let found = match asked {
        Ok((owner, asked)) => asked.find(shared, agent, &owner).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(found) => answer(shared, head, *method == Method::HEAD, &found),
        Err(error) => refuse(error),
    }
}

/// What a request names.
struct Asked {
    tenant: Option<String>,
    task: TaskId,
    artifact: ArtifactId,
    part: Option<u64>,
    /// The number of the update whose own bytes are wanted.
    update: Option<u64>,
}

/// What there is to send.
enum Found {
    Stored(StoredArtifact),
    Written(WrittenUpdate),
}

impl Found {
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

    fn body(&self, shared: &Shared, range: Range<u64>) -> ReplyBody {
        match self {
            Self::Stored(stored) => {
                let (engine, read_bytes) = (shared.engine.clone(), shared.limits.download_read_bytes);
                ReplyBody::Download(Box::new(DownloadBody::new(engine, stored.cursor(range), read_bytes)))
            }
            Self::Written(written) => {
                let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(written.bytes.len());
                ReplyBody::Whole(written.bytes.slice(at(range.start)..at(range.end)))
            }
        }
    }
}

impl Asked {
    fn of(shared: &Shared, head: &Head<'_>, place: ArtifactPlace<'_>) -> Result<Self, ProtocolError> {
        let ArtifactPlace { tenant, task, artifact } = place;
        check_id("id", &task, &shared.decode_limits)?;
        let number = |name: &str, what: &str| {
            let wrong = |_| ProtocolError::invalid(name, what);
            head.query(name).map(|number| number.parse::<u64>().map_err(wrong)).transpose()
        };
        Ok(Self {
            tenant: tenant.map(|tenant| tenant.into_owned()).or_else(|| head.query("tenant")),
            task: task.as_ref().into(),
            artifact: artifact.as_ref().into(),
            part: number("part", "must be the number of a part, counted from 0")?,
            update: number("update", "must be the number of an update, as a stream has it in `id:`")?,
        })
    }

    async fn find(&self, shared: &Shared, agent: &Mounted, owner: &Owner) -> Result<Found, ProtocolError> {
        let Self { task, artifact, part, update, .. } = self;
        let (engine, agent) = (&shared.engine, agent.name.as_str());
        match update {
            None => engine.artifact(agent, owner, task, artifact, *part).await.map(Found::Stored),
            Some(seq) => engine.artifact_update(agent, owner, task, artifact, *seq, *part).await.map(Found::Written),
        }
    }
}

fn answer(shared: &Shared, head: &Head<'_>, head_only: bool, found: &Found) -> Response<ReplyBody> {
    let (bytes, etag) = (found.bytes(), found.etag());
    let (status, range) = match wanted(head.headers, &etag, bytes, !head_only) {
        Wanted::Whole => (StatusCode::OK, Some(0..bytes)),
        Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, Some(range)),
        Wanted::NotModified => (StatusCode::NOT_MODIFIED, None),
        Wanted::ConditionFailed => (StatusCode::PRECONDITION_FAILED, None),
        Wanted::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, None),
    };
    let mut response = Response::new(ReplyBody::Empty);
    *response.status_mut() = status;
    let text = |text: String| HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("?"));
    let headers = response.headers_mut();
    headers.insert(header::ETAG, text(etag));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // It is somebody's own, and may have grown by the next time.
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
        *response.body_mut() = found.body(shared, range);
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

/// Whoever builds the server says where its artifacts are.
pub(crate) fn announce(engine: &Engine, base: &str) {
    engine.serve_artifacts_at(Arc::new(ServedAt::new(base.to_owned())));
}
