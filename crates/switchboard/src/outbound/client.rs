//! The HTTP client behind the Webhook port: posts once, follows nothing, keeps nothing of the answer but its status.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::ConfigBuilderExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use switchboard_core::call::BoxFuture;
use switchboard_engine::ports::{Webhook, WebhookCall, WebhookError};
use tokio::time::timeout;

use super::connector::{Connector, Resolve, SystemResolver};
use super::policy::OutboundPolicy;
use super::target::check_url;
use super::trouble::DialError;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
const IDLE_PER_HOST_MAX: usize = 2;
const IDLE: Duration = Duration::from_secs(30);
const ANSWER_HEAD_BYTES_MAX: usize = 32 * 1_024;
/// A short answer is read to its end, so that the connection can serve the next call; a long one costs its connection.
const ANSWER_BODY_BYTES_MAX: usize = 4 * 1_024;
const ANSWER_BODY_WAIT: Duration = Duration::from_millis(500);

/// Calls out under one policy, for as long as it lives.
///
/// Connections are kept for a while and shared by calls to the same scheme, host and port. None of them can get round
/// the policy: each was dialled under it, the policy never changes, and the peer of an open socket does not either.
pub(crate) struct GuardedClient {
    http: Client<Connector, Full<Bytes>>,
}

impl GuardedClient {
    /// Trusts the certificate authorities that ship with the program. The text of an error is for operators.
    pub(crate) fn new(policy: OutboundPolicy) -> Result<Self, String> {
        // The provider is named, because a process-wide default is for the program to install, and it may not have.
        let tls = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS for outbound calls could not be set up: {error}"))?
            .with_webpki_roots()
            .with_no_client_auth();
        Ok(Self::assemble(policy, Arc::new(SystemResolver), tls))
    }

    pub(super) fn assemble(policy: OutboundPolicy, resolver: Arc<dyn Resolve>, tls: ClientConfig) -> Self {
        // The executor drives open connections and sweeps idle ones. The pool owns them: they end with the client, or
        // with the call that was dropped, so none is left for a shutdown to wait for.
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
            .http1_max_buf_size(ANSWER_HEAD_BYTES_MAX)
            .build(Connector::new(policy, resolver, tls));
        Self { http }
    }

    async fn post_once(&self, call: WebhookCall) -> Result<u16, WebhookError> {
        let answer = self.http.request(request(call).map_err(WebhookError::Refused)?).await;
        let answer = answer.map_err(|error| match DialError::from_client(&error) {
            DialError::Refused(why) => WebhookError::Refused(why),
            DialError::Failed(why) => WebhookError::Failed(why),
        })?;
        // A redirect is a status like any other: to follow it would carry the credentials to a place nobody chose.
        let status = answer.status().as_u16();
        // The status is known, and with it the outcome; whatever becomes of the body does not change it.
        let _ = timeout(ANSWER_BODY_WAIT, discard(answer.into_body())).await;
        Ok(status)
    }
}

impl Webhook for GuardedClient {
    fn check(&self, url: &str) -> Result<(), String> {
        check_url(url).map(drop)
    }

    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<u16, WebhookError>> {
        Box::pin(self.post_once(call))
    }
}

/// The errors name no value: among them are credentials, and a URL often is one.
fn request(call: WebhookCall) -> Result<Request<Full<Bytes>>, String> {
    let mut request = Request::post(check_url(&call.url)?)
        .header(USER_AGENT, AGENT)
        .body(Full::new(call.body))
        .map_err(|_| "the call could not be written as HTTP".to_owned())?;
    for (name, value) in call.headers {
        let unfit = || format!("header {name} cannot be sent");
        let mut value = HeaderValue::try_from(value).map_err(|_| unfit())?;
        value.set_sensitive(true);
        let name = HeaderName::try_from(name).map_err(|_| unfit())?;
        request.headers_mut().insert(name, value);
    }
    Ok(request)
}

async fn discard(mut body: Incoming) {
    let mut room = ANSWER_BODY_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let read = frame.data_ref().map_or(0, Bytes::len);
        if read >= room {
            return;
        }
        room -= read;
    }
}
