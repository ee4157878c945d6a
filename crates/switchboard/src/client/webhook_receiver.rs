//! A receiver of webhooks: verifies who posts, when, and that it is not a repeat, and gives each update to a handler. It is a service of
//! tower, which axum mounts like any other. What is posted is read in every version of A2A.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::constant_time;
use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::IgnoredAny;
use switchboard_core::call::BoxFuture;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::model::{TaskId, Update};
use tokio::time::timeout;

use super::webhook_deliveries::{Deliveries, IsBeingHandled, Key};
use super::webhook_tokens::{Believed, Disbelief, WebhookServer};
use crate::signing_secrets::SigningSecrets;

/// Defaults of [`WebhookReceiverBuilder`].
const WEBHOOK_BODY_BYTES_MAX_DEFAULT: usize = 16 << 20;
const WEBHOOK_TOLERANCE_DEFAULT: Duration = Duration::from_secs(300);
/// How long the body of a post may take to come.
const WEBHOOK_BODY_WAIT_MAX: Duration = Duration::from_secs(30);
/// A longer `validationToken` is not repeated.
const CHALLENGE_BYTES_MAX: usize = 256;

/// The two headers by which agents send the token of a webhook.
const TOKEN_HEADERS: [&str; 2] = ["x-a2a-notification-token", "a2a-notification-token"];

/// One update that an agent posted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WebhookUpdate {
    /// What happened: one step of a task, or the whole task. Agents of 0.x mostly post whole tasks.
    pub update: Update,
    /// The id of the delivery, which is the same if it comes again. Agents of Switchboard have it, others may not.
    pub delivery_id: Option<String>,
    /// The number of the update within its task and webhook, for agents that number them.
    pub seq: Option<u64>,
    /// What was posted, as it came.
    pub json: Bytes,
}

impl WebhookUpdate {
    /// The task that it is about; none for a message outside any task.
    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        match &self.update {
            Update::Task(view) => Some(&view.task.id),
            Update::Message(message) => message.task_id.as_ref(),
            Update::Status(update) => Some(&update.task_id),
            Update::Artifact(update) => Some(&update.task_id),
        }
    }
}

/// Receives webhooks. Answers 204 when the handler has taken an update, and when it has taken it before; everything else makes the agent
/// post it again later. What was taken is remembered in memory, the newest 10,000 deliveries, so after a restart of the receiver an
/// update may be handled once more. Clones are the same receiver.
#[cfg_attr(
    feature = "server",
    doc = r#"
```
use switchboard::SigningSecrets;
use switchboard::client::{WebhookReceiver, WebhookUpdate};

let receiver = WebhookReceiver::builder()
    .token("the token of the push config")
    .secrets(SigningSecrets::parse("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap())
    .build(|update: WebhookUpdate| async move {
        println!("{:?}", update.update);
        Ok(())
    })
    .unwrap();
let app: axum::Router = axum::Router::new().route_service("/hook", receiver);
# let _ = app;
```
"#
)]
#[derive(Clone)]
pub struct WebhookReceiver {
    shared: Arc<Shared>,
}

/// What a handler may fail with.
type HandlerError = Box<dyn std::error::Error + Send + Sync>;
type Handler = dyn Fn(WebhookUpdate) -> BoxFuture<'static, Result<(), HandlerError>> + Send + Sync;

struct Shared {
    settings: WebhookReceiverBuilder,
    handler: Box<Handler>,
    deliveries: Deliveries,
}

impl fmt::Debug for WebhookReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookReceiver").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

/// What a [`WebhookReceiver`] is built from.
#[derive(Clone)]
pub struct WebhookReceiverBuilder {
    tokens: Vec<String>,
    authorization: Vec<String>,
    secrets: SigningSecrets,
    servers: Vec<WebhookServer>,
    answers_challenges: bool,
    allows_unverified: bool,
    tolerance: Duration,
    body_bytes_max: usize,
    now: fn() -> SystemTime,
}

impl fmt::Debug for WebhookReceiverBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookReceiverBuilder")
            .field("tokens", &self.tokens.len())
            .field("secrets", &self.secrets)
            .field("tolerance", &self.tolerance)
            .field("body_bytes_max", &self.body_bytes_max)
            .finish_non_exhaustive()
    }
}

/// A receiver that would believe everyone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookReceiverError(());

impl fmt::Display for WebhookReceiverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anyone could post to this receiver; give it a token, an authorization, signing secrets or a server, or call allow_unverified")
    }
}

impl std::error::Error for WebhookReceiverError {}

impl WebhookReceiverBuilder {
    /// A token that a post must have: the `token` of a push config. With several, any one of them.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.tokens.push(token.into());
        self
    }

    /// What the header `Authorization` of a post must be, such as `Bearer s3cret`: scheme and credentials of a push config. With
    /// several, any one of them.
    #[must_use]
    pub fn authorization(mut self, authorization: impl Into<String>) -> Self {
        self.authorization.push(authorization.into());
        self
    }

    /// The secrets of the server: a post must be signed with one of them, and be new.
    #[must_use]
    pub fn secrets(self, secrets: SigningSecrets) -> Self {
        Self { secrets, ..self }
    }

    /// A server that signs tokens for its posts: a post must have one that is for this receiver and for its body, or one of the
    /// [authorizations](Self::authorization). With several servers, that of any one of them.
    #[must_use]
    pub fn server(mut self, server: WebhookServer) -> Self {
        self.servers.push(server);
        self
    }

    /// Answers servers that ask whether webhooks are wanted here, before they take the URL: the `validationToken` of a GET is
    /// the body of the answer. Every server may ask; what it posts is verified all the same.
    #[must_use]
    pub fn answer_challenges(self) -> Self {
        Self { answers_challenges: true, ..self }
    }

    /// How old a signature may be, and how far ahead; five minutes by default. Tokens of servers may be so long over, too.
    #[must_use]
    pub fn tolerance(self, tolerance: Duration) -> Self {
        Self { tolerance, ..self }
    }

    /// The largest body that is taken; 16 MiB by default.
    #[must_use]
    pub fn body_bytes_max(self, body_bytes_max: usize) -> Self {
        Self { body_bytes_max, ..self }
    }

    /// Takes posts without a token and without a signature: for receivers that only their agents can reach.
    #[must_use]
    pub fn allow_unverified(self) -> Self {
        Self { allows_unverified: true, ..self }
    }

    /// In place of the clock of the system, for tests.
    #[must_use]
    pub fn clock(self, now: fn() -> SystemTime) -> Self {
        Self { now, ..self }
    }

    /// Puts the receiver together. The handler is called with each update once; if it fails, the agent is told so and posts the update
    /// again.
    ///
    /// # Errors
    /// When nothing would verify a post, and [`allow_unverified`](Self::allow_unverified) was not called.
    pub fn build<H, F>(self, handler: H) -> Result<WebhookReceiver, WebhookReceiverError>
    where
        H: Fn(WebhookUpdate) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), HandlerError>> + Send + 'static,
    {
        let verifies = !self.tokens.is_empty()
            || !self.authorization.is_empty()
            || !self.secrets.is_empty()
            || !self.servers.is_empty();
        if !verifies && !self.allows_unverified {
            return Err(WebhookReceiverError(()));
        }
        let handler: Box<Handler> = Box::new(move |update| Box::pin(handler(update)));
        let deliveries = Deliveries::default();
        Ok(WebhookReceiver { shared: Arc::new(Shared { settings: self, handler, deliveries }) })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what the times of signatures are compared with, unless a test has its own"
)]
fn system_time() -> SystemTime {
    SystemTime::now()
}

/// Why a post is not taken.
#[derive(Debug, PartialEq, Eq)]
struct Refusal(StatusCode, String);

impl WebhookReceiver {
    /// Begins with nothing that verifies.
    #[must_use]
    pub fn builder() -> WebhookReceiverBuilder {
        WebhookReceiverBuilder {
            tokens: Vec::new(),
            authorization: Vec::new(),
            secrets: SigningSecrets::default(),
            servers: Vec::new(),
            answers_challenges: false,
            allows_unverified: false,
            tolerance: WEBHOOK_TOLERANCE_DEFAULT,
            body_bytes_max: WEBHOOK_BODY_BYTES_MAX_DEFAULT,
            now: system_time,
        }
    }

    /// Takes one post: verifies it and gives it to the handler, unless that had it before.
    async fn take(&self, head: http::request::Parts, body: Bytes, believed: Option<Believed>) -> Result<(), Refusal> {
        let shared = &*self.shared;
        if believed.as_ref().is_some_and(|believed| !believed.is_for(&body)) {
            return Err(Refusal(StatusCode::UNAUTHORIZED, "the token in Authorization is for another body".to_owned()));
        }
        let (update, key) = shared.settings.verify(&head.headers, body)?;
        // The headers are not signed by the token, so the id of a delivery may be changed; that of the token may not.
        let token = believed.map(|believed| Key::of(believed.id.as_bytes()));
        let busy = |IsBeingHandled| Refusal(StatusCode::CONFLICT, "the same delivery is being handled".to_owned());
        let Some(handling) = shared.deliveries.begin(key, token).map_err(busy)? else { return Ok(()) };
        match (shared.handler)(update).await {
            Ok(()) => {
                handling.done();
                Ok(())
            }
            // Why is the handler's to log: the agent cannot change it.
            Err(_) => Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, "the update was not taken".to_owned())),
        }
    }

    async fn answer<B>(self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<HandlerError>,
    {
        let (head, body) = request.into_parts();
        if head.method == Method::GET && self.shared.settings.answers_challenges {
            return answer_challenge(head.uri.query().unwrap_or_default());
        }
        if head.method != Method::POST {
            let mut answer = refusal(StatusCode::METHOD_NOT_ALLOWED, "webhooks are posted");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return answer;
        }
        // A post without the right token is refused before its body is read.
        let settings = &self.shared.settings;
        let outcome = async {
            settings.check_head(&head.headers)?;
            let believed = settings.check_authorization(&head.headers).await?;
            let body = settings.read(body).await?;
            self.take(head, body, believed).await
        };
        let outcome = outcome.await;
        match outcome {
            Ok(()) => {
                let mut answer = Response::new(Full::default());
                *answer.status_mut() = StatusCode::NO_CONTENT;
                answer
            }
            Err(Refusal(status, why)) => {
                let mut answer = refusal(status, &why);
                if status == StatusCode::UNAUTHORIZED {
                    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
                answer
            }
        }
    }
}

/// The value is repeated only if it is a word, as text that no browser takes for anything else.
fn answer_challenge(query: &str) -> Response<Full<Bytes>> {
    let is_word = |text: &&str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        !text.is_empty() && text.len() <= CHALLENGE_BYTES_MAX && text.bytes().all(is_letter)
    };
    let token = query.split('&').find_map(|pair| pair.strip_prefix("validationToken=")).filter(is_word);
    let Some(token) = token else {
        return refusal(StatusCode::BAD_REQUEST, "expected a validationToken of letters and digits in the query");
    };
    let mut answer = Response::new(Full::new(Bytes::copy_from_slice(token.as_bytes())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

fn refusal(status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{why}\n"))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

impl<B> tower::Service<Request<B>> for WebhookReceiver
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<HandlerError>,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let receiver = self.clone();
        Box::pin(async move { Ok(receiver.answer(request).await) })
    }
}

impl WebhookReceiverBuilder {
    async fn read<B>(&self, body: B) -> Result<Bytes, Refusal>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<HandlerError>,
    {
        let max = self.body_bytes_max;
        match timeout(WEBHOOK_BODY_WAIT_MAX, Limited::new(body, max).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                Err(Refusal(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {max} bytes")))
            }
            Ok(Err(_)) => Err(Refusal(StatusCode::BAD_REQUEST, "the body broke off".to_owned())),
            Err(_) => Err(Refusal(StatusCode::REQUEST_TIMEOUT, "the body did not come in time".to_owned())),
        }
    }

    fn check_head(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let is_one_of = |known: &[String], names: &[&str]| {
            let sent = names.iter().filter_map(|name| headers.get(*name));
            let is_known = |sent: &HeaderValue| {
                known
                    .iter()
                    .any(|known| constant_time::verify_slices_are_equal(known.as_bytes(), sent.as_bytes()).is_ok())
            };
            known.is_empty() || sent.into_iter().any(is_known)
        };
        let unauthorized = |why: &str| Err(Refusal(StatusCode::UNAUTHORIZED, why.to_owned()));
        if !is_one_of(&self.tokens, &TOKEN_HEADERS) {
            return unauthorized("X-A2A-Notification-Token is missing or another one than expected");
        }
        // Where there are servers, their tokens are looked at next.
        if self.servers.is_empty() && !is_one_of(&self.authorization, &[AUTHORIZATION.as_str()]) {
            return unauthorized("Authorization is missing or another one than expected");
        }
        Ok(())
    }

    /// What the token of a server proves; none without servers, or for a post with one of the fixed authorizations.
    async fn check_authorization(&self, headers: &HeaderMap) -> Result<Option<Believed>, Refusal> {
        if self.servers.is_empty() {
            return Ok(None);
        }
        let sent = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        let is_sent = |known: &String| constant_time::verify_slices_are_equal(known.as_bytes(), sent).is_ok();
        if self.authorization.iter().any(is_sent) {
            return Ok(None);
        }
        let sent = std::str::from_utf8(sent).unwrap_or_default();
        let mut refusal = Disbelief::Bad;
        for server in &self.servers {
            match server.believe(sent, (self.now)(), self.tolerance).await {
                Ok(believed) => return Ok(Some(believed)),
                Err(Disbelief::NoKeys) => refusal = Disbelief::NoKeys,
                Err(Disbelief::Bad) => {}
            }
        }
        Err(match refusal {
            Disbelief::Bad => {
                let why = "Authorization is missing, or not a token of a known server for this receiver".to_owned();
                Refusal(StatusCode::UNAUTHORIZED, why)
            }
            Disbelief::NoKeys => {
                let why = "the keys of the server that posts could not be fetched; try again later".to_owned();
                Refusal(StatusCode::SERVICE_UNAVAILABLE, why)
            }
        })
    }

    /// The update that was posted, and by what it is known if it comes again.
    fn verify(&self, headers: &HeaderMap, body: Bytes) -> Result<(WebhookUpdate, Key), Refusal> {
        self.check_head(headers)?;
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let delivery_id = match self.secrets.is_empty() {
            true => text("a2a-delivery-id"),
            // Of the headers, only these are signed.
            false => Some(self.check_signature(text, &body)?),
        };
        let update = decode(&body).map_err(|why| Refusal(StatusCode::BAD_REQUEST, why))?;
        let seq = delivery_id.as_deref().and_then(|id| id.rsplit_once(':')?.1.parse().ok());
        // A body that was posted before says nothing new.
        let key = Key::of(delivery_id.as_deref().map_or(&body[..], str::as_bytes));
        Ok((WebhookUpdate { update, delivery_id, seq, json: body }, key))
    }

    /// The id that was signed.
    fn check_signature(&self, text: impl Fn(&str) -> Option<String>, body: &[u8]) -> Result<String, Refusal> {
        let refuse = |why: &str| Refusal(StatusCode::UNAUTHORIZED, why.to_owned());
        let missing = || refuse("webhook-id, webhook-timestamp and webhook-signature are required");
        let id = text("webhook-id").ok_or_else(missing)?;
        let timestamp = text("webhook-timestamp").ok_or_else(missing)?;
        let signatures = text("webhook-signature").ok_or_else(missing)?;
        if !self.secrets.verifies(&id, &timestamp, body, &signatures) {
            return Err(refuse("webhook-signature is by none of the known secrets"));
        }
        let signed_s: u64 = timestamp.parse().map_err(|_| refuse("webhook-timestamp is no time"))?;
        let now_s = (self.now)().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if now_s.abs_diff(signed_s) > self.tolerance.as_secs() {
            return Err(refuse("webhook-timestamp is too old or too far ahead"));
        }
        Ok(id)
    }
}

/// Reads an update of 1.0, or of 0.3 and 0.2.
fn decode(body: &[u8]) -> Result<Update, String> {
    /// What only an update of 1.0 has.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Members {
        kind: Option<IgnoredAny>,
        task: Option<IgnoredAny>,
        message: Option<IgnoredAny>,
        status_update: Option<IgnoredAny>,
        artifact_update: Option<IgnoredAny>,
    }
    let members: Members =
        serde_json::from_slice(body).map_err(|error| format!("the body is not JSON of A2A: {error}"))?;
    let Members { kind, task, message, status_update, artifact_update } = members;
    let is_wrapped = [task, message, status_update, artifact_update].iter().any(Option::is_some);
    let dialect = if kind.is_none() && is_wrapped { Dialect::V1_0 } else { Dialect::V0_3 };
    dialect
        .read_update(body, &DecodeLimits::default())
        .map_err(|error| format!("the body is not an update of A2A: {error}"))
}

#[cfg(test)]
#[path = "webhook_receiver_tests.rs"]
mod tests;
