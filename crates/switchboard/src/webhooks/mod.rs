//! Posts to webhooks: the engine's `Webhook` port over the outbound client. Keeps nothing of an answer but its status and
//! when to come back. `signature` signs each post.

mod signature;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
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
}

impl WebhookSender {
    pub(crate) fn new(client: Client) -> Self {
        // The engine bounds an attempt as a whole, by `delivery_timeout_ms`.
        let limits = RequestLimits { total: None, ..RequestLimits::default() };
        Self { client, limits, signer: None }
    }

    /// Signs each call, with the time at which it goes out.
    pub(crate) fn signing(self, secrets: SigningSecrets, clock: Arc<dyn Clock>) -> Self {
        Self { signer: Some(Signer { secrets, clock }), ..self }
    }

    async fn post_once(&self, mut call: WebhookCall) -> Result<WebhookAnswer, WebhookError> {
        if let Some(signer) = &self.signer {
            signer.sign(&mut call);
        }
        let request = request(call).map_err(WebhookError::Refused)?;
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
        check_url(url).map(drop)
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
fn request(call: WebhookCall) -> Result<Request<Bytes>, String> {
    let uri = check_url(&call.url)?;
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
