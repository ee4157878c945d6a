//! Posts to webhooks: the engine's `Webhook` port over the outbound client. Keeps nothing of an answer but its status and
//! when to come back. `signature` signs each post, `own_token` proves who posts to receivers that have given no credentials, and
//! `challenge` asks a receiver whether it wants webhooks.

mod challenge;
mod own_token;
mod signature;

use std::sync::Arc;

use bytes::Bytes;
use http::uri::Scheme;
use http::{HeaderName, HeaderValue, Request, Uri};
pub(crate) use own_token::OwnTokens;
use signature::Signer;
use switchboard_core::call::BoxFuture;
use switchboard_engine::ports::{Clock, Webhook, WebhookAnswer, WebhookCall, WebhookError};

use crate::outbound::{Client, Error, ErrorKind, RequestLimits, check_url, retry_after_ms};
use crate::signing_secrets::SigningSecrets;

/// Sends webhooks under the policy of its client.
pub(crate) struct WebhookSender {
    client: Client,
    limits: RequestLimits,
    signer: Option<Signer>,
    own_tokens: Option<OwnTokens>,
    https_only: bool,
    challenges: bool,
}

impl WebhookSender {
    pub(crate) fn new(client: Client) -> Self {
        // The engine bounds an attempt as a whole, by `delivery_timeout_ms`.
        let limits = RequestLimits { total: None, ..RequestLimits::default() };
        Self { client, limits, signer: None, own_tokens: None, https_only: false, challenges: false }
    }

    /// Signs each call, with the time at which it goes out.
    pub(crate) fn signing(self, secrets: SigningSecrets, clock: Arc<dyn Clock>) -> Self {
        Self { signer: Some(Signer { secrets, clock }), ..self }
    }

    /// Proves to receivers that have given a scheme and no credentials who posts.
    pub(crate) fn with_own_tokens(self, own_tokens: OwnTokens) -> Self {
        Self { own_tokens: Some(own_tokens), ..self }
    }

    /// Posts to https URLs alone.
    pub(crate) fn https_only(self, https_only: bool) -> Self {
        Self { https_only, ..self }
    }

    /// Asks receivers whether they want webhooks.
    pub(crate) fn challenging(self, challenges: bool) -> Self {
        Self { challenges, ..self }
    }

    /// The URL of a receiver, if it may be one.
    fn target(&self, url: &str) -> Result<Uri, String> {
        let uri = check_url(url)?;
        if self.https_only && uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(
                "URL must begin with https://: this server posts what tasks hold over TLS alone; the operator can \
                        change it (webhook_https_only)"
                    .to_owned(),
            );
        }
        Ok(uri)
    }

    async fn post_once(&self, mut call: WebhookCall) -> Result<WebhookAnswer, WebhookError> {
        if let Some(signer) = &self.signer {
            signer.sign(&mut call);
        }
        let uri = self.target(&call.url).map_err(WebhookError::Refused)?;
        if let Some(own_tokens) = &self.own_tokens {
            own_tokens.authorize(&mut call, &uri);
        }
        let request = request(call, uri).map_err(WebhookError::Refused)?;
        // A receiver that gets a call twice sees the same delivery id, so a call may be repeated.
        let answer = self.client.send_repeatable(request, &self.limits).await.map_err(refused_or_failed)?;
        // A redirect is a status like any other: following it would carry the credentials to an address that the
        // subscriber did not register.
        let status = answer.status().as_u16();
        let retry_after_ms = retry_after_ms(answer.headers());
        // The status is known, and with it the outcome. What becomes of the body does not change it.
        answer.into_body().discard().await;
        Ok(WebhookAnswer { status, retry_after_ms })
    }
}

impl Webhook for WebhookSender {
    fn check(&self, url: &str) -> Result<(), String> {
        let uri = self.target(url)?;
        let private = |why| format!("{why} (outbound_allow)");
        self.client.check_written_address(&uri).map_err(private)
    }

    fn challenge<'a>(&'a self, url: &'a str) -> Option<BoxFuture<'a, Result<(), String>>> {
        self.challenges.then(|| -> BoxFuture<'a, _> { Box::pin(challenge::ask(&self.client, url)) })
    }

    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, WebhookError>> {
        Box::pin(self.post_once(call))
    }

    fn tidy(&self) {
        self.client.close_idle();
    }
}

/// Whether waiting can help: what the policy or the URL itself forbids stays forbidden.
fn refused_or_failed(error: Error) -> WebhookError {
    match error.kind() {
        ErrorKind::InvalidRequest | ErrorKind::Refused => WebhookError::Refused(error.to_string()),
        _ => WebhookError::Failed(error.to_string()),
    }
}

/// The errors name no value: among them are credentials, and a URL often is one.
fn request(call: WebhookCall, uri: Uri) -> Result<Request<Bytes>, String> {
    let mut request = Request::new(call.body);
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = uri;
    for (name, value) in call.headers {
        let unfit = || format!("header {name} cannot be sent");
        let mut value = HeaderValue::try_from(value).map_err(|_| unfit())?;
        value.set_sensitive(true);
        let name = HeaderName::try_from(name).map_err(|_| unfit())?;
        request.headers_mut().insert(name, value);
    }
    Ok(request)
}

#[cfg(test)]
mod tests;
