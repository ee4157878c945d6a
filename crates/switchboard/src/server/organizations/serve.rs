//! Answers the requests about the secrets of organizations.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::Clock;
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::system::SystemClock;

use super::{OrgRoute, OrgSecretPush, OrgSecretPushed, Organizations};
use crate::jwt::Unverified;
use crate::random;
use crate::server::authentication::SharedSecret;
use crate::server::exchange::headers::bearer;
use crate::server::exchange::request::Head;
use crate::server::exchange::request::read;
use crate::server::exchange::respond::{JSON, ReplyBody, json as json_answer};
use crate::server::uri::query_pairs;

const ORG_BODY_BYTES_MAX: usize = 16 << 10;
const BODY_READ: Duration = Duration::from_secs(10);

/// Who asks, as far as it matters here.
pub(crate) struct Asking<'a> {
    pub(crate) principal: &'a str,
    /// Whose organization it is, if the request names none.
    pub(crate) tenant: &'a str,
    pub(crate) is_operator: bool,
}

/// What a request may say.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wanted {
    secret: Value,
    org_domain: Value,
    sign_secret: Value,
}

impl Wanted {
    fn text(value: &Value) -> Option<&str> {
        value.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    fn domain(&self) -> Option<String> {
        Self::text(&self.org_domain).map(str::to_ascii_lowercase)
    }
}

struct Refusal(StatusCode, String);

fn refusal(status: StatusCode, message: impl Into<String>) -> Refusal {
    Refusal(status, message.into())
}

type Answer = Result<Value, Refusal>;
type Record<'a> = &'a (dyn Fn(AuditEntry) + Sync);

/// Answers an operator.
pub(crate) async fn serve<B>(
    organizations: &Organizations,
    route: OrgRoute,
    head: &Head<'_>,
    asking: &Asking<'_>,
    body: B,
    record: Record<'_>,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: fmt::Display,
{
    let now = SystemClock.now();
    let answer = match (route, head.method) {
        (OrgRoute::Secret, &Method::GET) => {
            asking.may("read").and_then(|()| organizations.shown(&organizations.active(head, None, asking)?, now))
        }
        (OrgRoute::Secret, &Method::PUT) => match (asking.may("manage"), wanted(head, body).await) {
            (Err(refused), _) | (_, Err(refused)) => Err(refused),
            (Ok(()), Ok(wanted)) => organizations.replace(head, asking, &wanted, now, record).await,
        },
        (OrgRoute::Sync, &Method::POST) => match (asking.may("sync"), wanted(head, body).await) {
            (Err(refused), _) | (_, Err(refused)) => Err(refused),
            (Ok(()), Ok(wanted)) => organizations.sync(head, asking, &wanted, now, record).await,
        },
        (OrgRoute::Secret, _) => return not_allowed("GET, PUT"),
        (OrgRoute::Sync | OrgRoute::Receive, _) => return not_allowed("POST"),
    };
    answered(answer)
}

/// Takes a secret that another app passes on.
pub(crate) async fn receive<B>(
    organizations: &Organizations,
    head: &Head<'_>,
    body: B,
    record: Record<'_>,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: fmt::Display,
{
    if *head.method != Method::POST {
        return not_allowed("POST");
    }
    let Some(token) = bearer(head.headers) else {
        return answered(Err(refusal(StatusCode::UNAUTHORIZED, "Bearer token required")));
    };
    answered(match wanted(head, body).await {
        Ok(wanted) => organizations.take(token, &wanted, SystemClock.now(), record).await,
        Err(refused) => Err(refused),
    })
}

async fn wanted<B>(head: &Head<'_>, body: B) -> Result<Wanted, Refusal>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: fmt::Display,
{
    let body = read(head.headers, body, ORG_BODY_BYTES_MAX, BODY_READ).await;
    let body = body.map_err(|_| refusal(StatusCode::BAD_REQUEST, "the body is too large or did not arrive"))?;
    // As the original has it: what is no JSON says nothing.
    Ok(serde_json::from_slice(&body).unwrap_or_default())
}

impl Asking<'_> {
    fn may(&self, what: &str) -> Result<(), Refusal> {
        match self.is_operator {
            true => Ok(()),
            false => Err(refusal(StatusCode::FORBIDDEN, format!("Only owners and admins can {what} the A2A secret"))),
        }
    }
}

impl Organizations {
    /// The organization that a request is about: the one that it names, that of the caller, or the only one.
    fn active(&self, head: &Head<'_>, named: Option<String>, asking: &Asking<'_>) -> Result<String, Refusal> {
        let pairs = query_pairs(head.uri.query().unwrap_or_default()).unwrap_or_default();
        let in_query = pairs.iter().find(|(name, _)| name == "orgDomain").map(|(_, value)| value.to_ascii_lowercase());
        let domains = self.secrets.as_ref().map(SharedSecret::org_domains).unwrap_or_default();
        let of_caller = || Some(asking.tenant.to_ascii_lowercase()).filter(|tenant| domains.contains(tenant));
        let only = || domains.first().filter(|_| domains.len() == 1).cloned();
        let found = named.or(in_query).or_else(of_caller).or_else(only);
        found.ok_or_else(|| refusal(StatusCode::BAD_REQUEST, "No active organization"))
    }

    fn secrets(&self) -> Result<&SharedSecret, Refusal> {
        self.secrets.as_ref().ok_or_else(|| refusal(StatusCode::BAD_REQUEST, "No active organization"))
    }

    fn shown(&self, domain: &str, now: Timestamp) -> Answer {
        let known = self.secrets()?.org_secrets(domain, now);
        Ok(json!({"a2aSecret": known.map(|known| known.newest.to_string())}))
    }

    async fn replace(
        &self,
        head: &Head<'_>,
        asking: &Asking<'_>,
        wanted: &Wanted,
        now: Timestamp,
        record: Record<'_>,
    ) -> Answer {
        let domain = self.active(head, wanted.domain(), asking)?;
        let secret = Wanted::text(&wanted.secret).map_or_else(random::secret, str::to_owned);
        let previous = self.secrets()?.org_secrets(&domain, now).map(|known| known.newest.to_string());
        self.set(&domain, &secret, now, "organization secret replace", record).await?;
        Ok(json!({"a2aSecret": secret, "previousSecret": previous}))
    }

    async fn set(
        &self,
        domain: &str,
        secret: &str,
        now: Timestamp,
        operation: &'static str,
        record: Record<'_>,
    ) -> Result<(), Refusal> {
        let replaced = self.secrets()?.replace_org_secret(domain, secret, now).await;
        let decision = if replaced.is_ok() { Decision::Allowed } else { Decision::Failed };
        record(AuditEntry {
            on_behalf_of: domain.to_owned(),
            reason: replaced.as_ref().err().cloned().unwrap_or_default().into(),
            ..AuditEntry::new(now, AuditEvent::Credentials, decision, operation)
        });
        replaced.map_err(|why| {
            tracing::warn!(domain, why, "the secret of an organization was not replaced");
            refusal(StatusCode::BAD_REQUEST, why)
        })
    }

    async fn sync(
        &self,
        head: &Head<'_>,
        asking: &Asking<'_>,
        wanted: &Wanted,
        now: Timestamp,
        record: Record<'_>,
    ) -> Answer {
        let domain = self.active(head, wanted.domain(), asking)?;
        let known = self.secrets()?.org_secrets(&domain, now);
        let known = known.ok_or_else(|| refusal(StatusCode::NOT_FOUND, "Organization not found"))?;
        // Apps that were not told yet know the one before; those that were, the newest.
        let own = || known.previous.iter().chain([&known.newest]).map(|secret| secret.to_string()).collect();
        let push = OrgSecretPush {
            user: asking.principal.to_owned(),
            org_domain: domain.clone(),
            secret: known.newest.to_string(),
            sign_with: Wanted::text(&wanted.sign_secret).map_or_else(own, |given| vec![given.to_owned()]),
        };
        let pushed = match &self.peers {
            Some(peers) => peers.push(&push).await,
            None => Vec::new(),
        };
        let succeeded = pushed.iter().filter(|one| one.error.is_none()).count();
        let failed = pushed.len() - succeeded;
        record(AuditEntry {
            on_behalf_of: domain,
            count: Some(succeeded as u64),
            ..AuditEntry::new(
                now,
                AuditEvent::Credentials,
                if failed == 0 { Decision::Allowed } else { Decision::Failed },
                "organization secret sync",
            )
        });
        let results: Vec<Value> = pushed.iter().map(OrgSecretPushed::to_json).collect();
        Ok(json!({"total": pushed.len(), "succeeded": succeeded, "failed": failed, "results": results}))
    }

    /// Takes a secret from another app. One that was replaced here does not come back, so that a request which was read on its way is
    /// of no use later.
    async fn take(&self, token: &str, wanted: &Wanted, now: Timestamp, record: Record<'_>) -> Answer {
        let unauthorized = |why: &str| refusal(StatusCode::UNAUTHORIZED, why);
        let (Some(secret), Some(domain)) = (Wanted::text(&wanted.secret), wanted.domain()) else {
            return Err(refusal(StatusCode::BAD_REQUEST, "secret and orgDomain are required"));
        };
        let read = Unverified::read(token.as_bytes()).ok_or_else(|| unauthorized("Malformed JWT"))?;
        let claims: Value = serde_json::from_str(&read.claims).map_err(|_| unauthorized("Malformed JWT"))?;
        let claimed = claims["org_domain"].as_str().map(str::to_ascii_lowercase);
        if claimed.as_ref() != Some(&domain) {
            return Err(unauthorized("JWT org_domain does not match request body"));
        }
        let unknown = || refusal(StatusCode::NOT_FOUND, "No local org matches that domain");
        let secrets = self.secrets.as_ref().ok_or_else(unknown)?;
        let known = secrets.org_secrets(&domain, now).ok_or_else(unknown)?;
        if !secrets.is_of_org(token, &domain, now) {
            return Err(unauthorized("Invalid or expired JWT signature"));
        }
        let is_known = *known.newest == *secret || known.previous.iter().any(|before| **before == *secret);
        if !is_known {
            self.set(&domain, secret, now, "organization secret receive", record).await?;
        }
        Ok(json!({"ok": true, "orgId": domain}))
    }
}

impl OrgSecretPushed {
    fn to_json(&self) -> Value {
        let mut json = json!({"id": self.id, "name": self.name, "url": self.url, "ok": self.error.is_none()});
        if let Some(status) = self.status {
            json["status"] = status.into();
        }
        if let Some(error) = &self.error {
            json["error"] = error.as_str().into();
        }
        json
    }
}

fn answered(answer: Answer) -> Response<ReplyBody> {
    let (status, json) = match answer {
        Ok(json) => (StatusCode::OK, json),
        Err(Refusal(status, message)) => (status, json!({"statusCode": status.as_u16(), "message": message})),
    };
    let mut response = json_answer(status, JSON, json.to_string().into_bytes());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn not_allowed(methods: &'static str) -> Response<ReplyBody> {
    let error = json!({"error": "Method not allowed"});
    let mut response = json_answer(StatusCode::METHOD_NOT_ALLOWED, JSON, error.to_string().into_bytes());
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    response
}
