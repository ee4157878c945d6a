//! The webhook deliveries of all callers, under `/api/outbox`. Only requests of operators get here. Answers are plain
//! JSON of our own, because A2A has nothing for this. A server that keeps no tasks has an empty outbox.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::Body;
use serde_json::{Value, json};
use switchboard_core::dialect::Dialect;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::Clock;
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::ports::outbox::{OutboxEntry, OutboxState};
use switchboard_engine::ports::store::DeliveryKey;
use switchboard_engine::push::{
    Changed, EndpointHealth, OutboxAdmin, OutboxDetail, OutboxFilter, OutboxList, WebhookEndpoint,
};

use switchboard_engine::system::SystemClock;

use crate::server::exchange::request::Head;
use crate::server::exchange::request::check_content_type;
use crate::server::exchange::request::read;
use crate::server::exchange::respond::{JSON, ReplyBody, http_error, http_error_as, json as json_answer, not_allowed};
use crate::server::uri::query_pairs;

const PAGE_SIZE_DEFAULT: usize = 50;
const PAGE_SIZE_MAX: usize = 100;
const BODY_BYTES_MAX: usize = 4 << 10;
const BODY_READ: Duration = Duration::from_secs(10);

/// The paths under `/api/outbox`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutboxPath {
    List,
    Endpoints,
    /// Many at once.
    Change(OutboxChange),
    One(String),
    ChangeOne(String, OutboxChange),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutboxChange {
    Redrive,
    Purge,
}

impl OutboxChange {
    fn from_verb(verb: &str) -> Option<Self> {
        match verb {
            "redrive" => Some(Self::Redrive),
            "purge" => Some(Self::Purge),
            _ => None,
        }
    }
}

impl OutboxPath {
    /// What the segments behind `/api` name.
    pub(crate) fn at(segments: &[&str]) -> Option<Self> {
        match segments {
            ["outbox"] => Some(Self::List),
            ["outbox", "endpoints"] => Some(Self::Endpoints),
            ["outbox", one] => match one.split_once(':') {
                Some((id, verb)) => Some(Self::ChangeOne(id.to_owned(), OutboxChange::from_verb(verb)?)),
                None => Some(Self::One((*one).to_owned())),
            },
            [all] => Some(Self::Change(OutboxChange::from_verb(all.strip_prefix("outbox:")?)?)),
            _ => None,
        }
    }
}

/// Answers an operator. `record` gets an entry of the audit log for each change, without who made it.
pub(crate) async fn serve<B>(
    outbox: Option<&OutboxAdmin>,
    head: &Head<'_>,
    place: OutboxPath,
    body: B,
    record: &(dyn Fn(AuditEntry) + Sync),
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let (allowed, fits) = match place {
        OutboxPath::List | OutboxPath::Endpoints | OutboxPath::One(_) => {
            ("GET", *head.method == Method::GET || *head.method == Method::HEAD)
        }
        OutboxPath::Change(_) | OutboxPath::ChangeOne(..) => ("POST", *head.method == Method::POST),
    };
    if !fits {
        let error = ProtocolError::InvalidRequest { reason: format!("this path takes {allowed}") };
        return not_allowed(Dialect::V1_0, &error, allowed, JSON);
    }
    let answered = match place {
        OutboxPath::List => list(outbox, head).await,
        OutboxPath::Endpoints => Ok(endpoints(outbox)),
        OutboxPath::One(id) => show(outbox, &id).await,
        OutboxPath::ChangeOne(id, change) => change_one(outbox, &id, change, record).await,
        OutboxPath::Change(change) => match bulk(head, body).await {
            Ok(bulk) => change_many(outbox, bulk, change, record).await,
            Err(error) => Err(error.into()),
        },
    };
    match answered {
        Ok(value) => json_answer(StatusCode::OK, JSON, value.to_string().into_bytes()),
        Err(OutboxError { status: Some(status), error }) => http_error_as(Dialect::V1_0, status, &error, JSON),
        Err(OutboxError { status: None, error }) => http_error(Dialect::V1_0, &error, JSON),
    }
}

struct OutboxError {
    /// Where the error's own would mislead.
    status: Option<StatusCode>,
    error: ProtocolError,
}

impl From<ProtocolError> for OutboxError {
    fn from(error: ProtocolError) -> Self {
        Self { status: None, error }
    }
}

fn no_such(id: &str) -> OutboxError {
    let why = format!("{id:.40?} is no delivery that waits or was given up on");
    OutboxError { status: Some(StatusCode::NOT_FOUND), error: ProtocolError::invalid("id", why) }
}

async fn list(outbox: Option<&OutboxAdmin>, head: &Head<'_>) -> Result<Value, OutboxError> {
    let query = head.uri.query().unwrap_or_default();
    let pairs = query_pairs(query).ok_or_else(|| ProtocolError::invalid("query", "is not valid UTF-8"))?;
    let mut filter = OutboxFilter::default();
    let (mut after, mut page_size) = (None, PAGE_SIZE_DEFAULT);
    for (name, value) in &pairs {
        match name.as_ref() {
            "state" => filter.state = state_from(value)?,
            "endpoint" => filter.endpoint = Some(endpoint_from(value)?),
            "pageSize" => page_size = page_size_from(value)?,
            "pageToken" => after = token_from(value)?,
            _ => {
                let why = "is not known here; expected state, endpoint, pageSize or pageToken";
                return Err(ProtocolError::invalid(name.clone().into_owned(), why).into());
            }
        }
    }
    let page = match outbox {
        Some(outbox) => outbox.list(&filter, after, page_size).await?,
        None => OutboxList { entries: Vec::new(), next: None },
    };
    let deliveries: Vec<Value> = page.entries.iter().map(entry_json).collect();
    Ok(json!({"deliveries": deliveries, "nextPageToken": next_token(page.next)}))
}

fn state_from(text: &str) -> Result<Option<OutboxState>, ProtocolError> {
    match text {
        "all" => Ok(None),
        "dead" => Ok(Some(OutboxState::Dead)),
        "waiting" => Ok(Some(OutboxState::Waiting)),
        "under-way" => Ok(Some(OutboxState::UnderWay)),
        _ => Err(ProtocolError::invalid("state", "must be dead, waiting, under-way or all")),
    }
}

fn endpoint_from(text: &str) -> Result<WebhookEndpoint, ProtocolError> {
    if text.starts_with("http://") || text.starts_with("https://") {
        Ok(WebhookEndpoint::of(text))
    } else {
        Err(ProtocolError::invalid("endpoint", "must be scheme, host and port, as in https://hooks.example:443"))
    }
}

fn page_size_from(text: &str) -> Result<usize, ProtocolError> {
    let size = text.parse().ok().filter(|size| (1..=PAGE_SIZE_MAX).contains(size));
    size.ok_or_else(|| ProtocolError::invalid("pageSize", format!("must be a number from 1 to {PAGE_SIZE_MAX}")))
}

fn token_from(text: &str) -> Result<Option<DeliveryKey>, ProtocolError> {
    if text.is_empty() {
        return Ok(None);
    }
    let key = text.parse().map_err(|_| ProtocolError::invalid("pageToken", "is not a token this server gave out"))?;
    Ok(Some(DeliveryKey(key)))
}

fn next_token(next: Option<DeliveryKey>) -> String {
    next.map(|key| key.0.to_string()).unwrap_or_default()
}

fn key_from(id: &str) -> Result<DeliveryKey, OutboxError> {
    id.parse().map(DeliveryKey).map_err(|_| no_such(id))
}

async fn show(outbox: Option<&OutboxAdmin>, id: &str) -> Result<Value, OutboxError> {
    let (key, Some(outbox)) = (key_from(id)?, outbox) else { return Err(no_such(id)) };
    let Some(OutboxDetail { entry, next }) = outbox.show(key).await? else { return Err(no_such(id)) };
    let mut value = entry_json(&entry);
    value["next"] =
        next.map_or(Value::Null, |next| json!({"seq": next.seq, "deliveryId": next.delivery_id, "kind": next.kind}));
    Ok(value)
}

fn audit_of(change: OutboxChange, decision: Decision) -> AuditEntry {
    let operation = match change {
        OutboxChange::Redrive => "outbox redrive",
        OutboxChange::Purge => "outbox purge",
    };
    AuditEntry::new(SystemClock.now(), AuditEvent::Operator, decision, operation)
}

async fn change_one(
    outbox: Option<&OutboxAdmin>,
    id: &str,
    change: OutboxChange,
    record: &(dyn Fn(AuditEntry) + Sync),
) -> Result<Value, OutboxError> {
    let (key, Some(outbox)) = (key_from(id)?, outbox) else { return Err(no_such(id)) };
    let shown = outbox.show(key).await?;
    let changed = match change {
        OutboxChange::Redrive => outbox.redrive(key).await?,
        OutboxChange::Purge => outbox.purge(key).await?,
    };
    if let Some(OutboxDetail { entry, .. }) = &shown {
        let owner = &entry.scope.owner;
        record(AuditEntry {
            agent: Some(entry.scope.agent.clone()),
            task: Some(entry.task_id.clone()),
            on_behalf_of: format!("{}/{}", owner.tenant, owner.principal),
            count: Some(changed.into()),
            ..audit_of(change, if changed { Decision::Allowed } else { Decision::Failed })
        });
    }
    if changed {
        return Ok(json!({"changed": 1}));
    }
    if outbox.show(key).await?.is_none() {
        return Err(no_such(id));
    }
    let why = match change {
        OutboxChange::Redrive => "is under way already",
        OutboxChange::Purge => "is no dead letter; only those can be dropped",
    };
    Err(OutboxError { status: Some(StatusCode::CONFLICT), error: ProtocolError::invalid("id", why) })
}

/// Which dead letters to change.
struct BulkChange {
    endpoint: Option<WebhookEndpoint>,
    after: Option<DeliveryKey>,
}

/// `{"all": true}` or `{"endpoint": "https://hooks.example:443"}`, and where to go on.
async fn bulk<B>(head: &Head<'_>, body: B) -> Result<BulkChange, ProtocolError>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    check_content_type(head)?;
    let body = read(head.headers, body, BODY_BYTES_MAX, BODY_READ).await?;
    let value: Value = serde_json::from_slice(&body)
        .map_err(|error| ProtocolError::ParseError { reason: format!("the body is not JSON: {error}") })?;
    let Value::Object(members) = value else {
        return Err(ProtocolError::InvalidRequest { reason: "the body must be a JSON object".to_owned() });
    };
    let mut bulk = BulkChange { endpoint: None, after: None };
    let mut all = false;
    for (name, value) in &members {
        match (name.as_str(), value) {
            ("all", Value::Bool(value)) => all = *value,
            ("endpoint", Value::String(text)) => bulk.endpoint = Some(endpoint_from(text)?),
            ("pageToken", Value::String(text)) => bulk.after = token_from(text)?,
            ("all", _) => return Err(ProtocolError::invalid("all", "must be true or false")),
            ("endpoint" | "pageToken", _) => return Err(ProtocolError::invalid(name.as_str(), "must be a string")),
            _ => return Err(ProtocolError::invalid(name.as_str(), "is not known here")),
        }
    }
    // Either `all` or `endpoint` must be given, so that an empty body does not change every delivery.
    if all == bulk.endpoint.is_some() {
        return Err(ProtocolError::invalid("endpoint", "say either endpoint or \"all\": true"));
    }
    Ok(bulk)
}

async fn change_many(
    outbox: Option<&OutboxAdmin>,
    bulk: BulkChange,
    change: OutboxChange,
    record: &(dyn Fn(AuditEntry) + Sync),
) -> Result<Value, OutboxError> {
    let BulkChange { endpoint, after } = bulk;
    let which = endpoint.as_ref().map_or_else(|| "all".to_owned(), |endpoint| endpoint.as_str().to_owned());
    let changed = match (outbox, change) {
        (Some(outbox), OutboxChange::Redrive) => outbox.redrive_dead(endpoint, after).await?,
        (Some(outbox), OutboxChange::Purge) => outbox.purge_dead(endpoint, after).await?,
        (None, _) => Changed { changed: 0, next: None },
    };
    let count = Some(changed.changed as u64);
    record(AuditEntry { on_behalf_of: which, count, ..audit_of(change, Decision::Allowed) });
    Ok(json!({"changed": changed.changed, "nextPageToken": next_token(changed.next)}))
}

fn endpoints(outbox: Option<&OutboxAdmin>) -> Value {
    let endpoints = outbox.map(OutboxAdmin::endpoints).unwrap_or_default();
    let endpoints: Vec<Value> = endpoints.iter().map(endpoint_json).collect();
    json!({"endpoints": endpoints})
}

fn endpoint_json(health: &EndpointHealth) -> Value {
    json!({
        "endpoint": health.endpoint.as_str(),
        "state": if health.open { "down" } else { "up" },
        "failures": health.failures,
        "downSince": time(health.down_since),
        "nextProbeAt": time(health.next_probe_at),
        "lastError": health.last_error,
        "underWay": health.under_way,
        "waiting": health.waiting,
    })
}

/// What stands behind the host in the URL, the token and the credentials are often secrets; they are not shown.
fn entry_json(entry: &OutboxEntry) -> Value {
    let state = match entry.state {
        OutboxState::Dead => "dead",
        OutboxState::Waiting => "waiting",
        OutboxState::UnderWay => "under-way",
    };
    json!({
        "id": entry.key.0.to_string(),
        "state": state,
        "endpoint": WebhookEndpoint::of(&entry.url).as_str(),
        "taskId": entry.task_id.as_str(),
        "configId": entry.config_id.as_str(),
        "agent": entry.scope.agent.as_str(),
        "tenant": entry.scope.owner.tenant.as_str(),
        "principal": entry.scope.owner.principal.as_str(),
        "deliveredSeq": entry.delivered_seq,
        "newestSeq": entry.task_seq,
        "failures": entry.failures,
        "nextAttemptAt": time(entry.due),
        "lastAttemptAt": time(entry.last_attempt_at),
        "lastError": entry.last_error,
        "createdAt": time(Some(entry.created_at)),
    })
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| String::from_utf8_lossy(&at.to_rfc3339()).into_owned())
}
