//! The HTTP client behind the Webhook port: posts once, follows nothing, keeps nothing of the answer but its status and
//! when to come back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::{HeaderName, HeaderValue, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_rustls::ConfigBuilderExt;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use switchboard_core::call::BoxFuture;
use switchboard_engine::ports::{Clock, Webhook, WebhookAnswer, WebhookCall, WebhookError};
use tokio::time::timeout;

use super::connector::{Connector, Resolve, SystemResolver};
use super::policy::OutboundPolicy;
use super::pool::{Key, Line, Pool};
use super::retry_after::retry_after_ms;
use super::signature::{Signer, SigningSecrets};
use super::target::check_url;
use super::trouble::{DialError, broke};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
const ANSWER_HEAD_BYTES_MAX: usize = 32 * 1_024;
/// A short answer is read to its end, so that the connection can serve the next call; a long one costs its connection.
const ANSWER_BODY_BYTES_MAX: usize = 4 * 1_024;
const ANSWER_BODY_WAIT: Duration = Duration::from_millis(500);

/// Calls out under one policy, for as long as it lives.
///
/// Connections are kept for a while and shared by calls to the same scheme, host and port. None of them can get round
/// the policy: each was dialled under it, the policy never changes, and the peer of an open socket does not either.
pub(crate) struct GuardedClient {
    connector: Connector,
    pool: Pool,
    signer: Option<Signer>,
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
        Self { connector: Connector::new(policy, resolver, tls), pool: Pool::default(), signer: None }
    }

    /// Signs each call, with the time at which it goes out.
    pub(crate) fn signing(self, secrets: SigningSecrets, clock: Arc<dyn Clock>) -> Self {
        Self { signer: Some(Signer { secrets, clock }), ..self }
    }

    async fn post_once(&self, mut call: WebhookCall) -> Result<WebhookAnswer, WebhookError> {
        let uri = check_url(&call.url).map_err(WebhookError::Refused)?;
        let key = Key::of(&uri).ok_or_else(|| WebhookError::Refused("URL has no host".to_owned()))?;
        if let Some(signer) = &self.signer {
            signer.sign(&mut call);
        }
        let request = request(&uri, call).map_err(WebhookError::Refused)?;
        if let Some(line) = self.pool.take(&key).await
            && let Ok(answer) = self.send(key.clone(), line, request.clone()).await
        {
            return Ok(answer);
        }
        // Nothing was kept, or what was kept broke before an answer came, as it does when the other side closes it at
        // that very moment. A receiver that took the call all the same sees its delivery id again.
        let dialled = self.dial(&uri).await.map_err(|error| match error {
            DialError::Refused(why) => WebhookError::Refused(why),
            DialError::Failed(why) => WebhookError::Failed(why),
        })?;
        self.send(key, dialled, request).await.map_err(|error| WebhookError::Failed(broke(&error).to_owned()))
    }

    async fn dial(&self, uri: &Uri) -> Result<Line, DialError> {
        let stream = self.connector.open(uri).await?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(ANSWER_HEAD_BYTES_MAX);
        let shaken = builder.handshake(stream).await;
        let (sender, connection) = shaken.map_err(|error| DialError::Failed(broke(&error).to_owned()))?;
        Ok(Line::new(sender, connection))
    }

    async fn send(&self, key: Key, mut line: Line, request: Request<Full<Bytes>>) -> hyper::Result<WebhookAnswer> {
        let response = line.send(request).await?;
        // A redirect is a status like any other: to follow it would carry the credentials to a place nobody chose.
        let status = response.status().as_u16();
        let answer = WebhookAnswer { status, retry_after_ms: retry_after_ms(response.headers()) };
        // The status is known, and with it the outcome; whatever becomes of the body does not change it.
        let reading = line.drive(discard(response.into_body()));
        if timeout(ANSWER_BODY_WAIT, reading).await.unwrap_or(false) {
            let _ = timeout(ANSWER_BODY_WAIT, self.pool.give(key, line)).await;
        }
        Ok(answer)
    }
}

impl Webhook for GuardedClient {
    fn check(&self, url: &str) -> Result<(), String> {
        check_url(url).map(drop)
    }

    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, WebhookError>> {
        Box::pin(self.post_once(call))
    }

    fn tidy(&self) {
        self.pool.tidy();
    }
}

/// The errors name no value: among them are credentials, and a URL often is one.
fn request(uri: &Uri, call: WebhookCall) -> Result<Request<Full<Bytes>>, String> {
    let unwritable = || "the call could not be written as HTTP".to_owned();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let host = uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let mut request =
        Request::post(path).header(USER_AGENT, AGENT).body(Full::new(call.body)).map_err(|_| unwritable())?;
    for (name, value) in call.headers {
        let unfit = || format!("header {name} cannot be sent");
        let mut value = HeaderValue::try_from(value).map_err(|_| unfit())?;
        value.set_sensitive(true);
        let name = HeaderName::try_from(name).map_err(|_| unfit())?;
        request.headers_mut().insert(name, value);
    }
    request.headers_mut().insert(HOST, host.ok_or_else(unwritable)?);
    Ok(request)
}

/// Reads an answer that nobody will look at; says whether it was read to its end.
async fn discard(mut body: Incoming) -> bool {
    let mut room = ANSWER_BODY_BYTES_MAX;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let read = frame.data_ref().map_or(0, Bytes::len);
        if read >= room {
            return false;
        }
        room -= read;
    }
    true
}
