//! Logins: of an application, and of a person on this device or on another one (RFC 8628), with proof that the one who began it is the
//! one who ends it (PKCE, RFC 7636).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;
use switchboard_core::model::{AgentCard, OAuthFlowKind};
use tokio::time::{Instant, sleep};

use super::super::http::{Http, Named, escaped};
use super::metadata::Endpoints;
use super::token::Refusal;
use super::{OAuthClient, StoredToken, not_authorized};
use crate::call_error::CallError;
use crate::outbound::check_url;
use crate::random;

/// How often the authorization server is asked whether a person has confirmed: unless it says, at the most, and how much less often
/// when it asks for that.
const DEVICE_PAUSE_DEFAULT: Duration = Duration::from_secs(5);
const DEVICE_PAUSE_MIN: Duration = Duration::from_secs(1);
const DEVICE_PAUSE_MAX: Duration = Duration::from_secs(60);
const DEVICE_PAUSE_STEP: Duration = Duration::from_secs(5);
/// How long a person has to confirm: unless the server says, and at most.
const DEVICE_WAIT_DEFAULT: Duration = Duration::from_secs(900);
const DEVICE_WAIT_MAX: Duration = Duration::from_secs(3_600);

const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A login at the authorization server of an agent, of which [`Client::login`](super::super::Client::login) is the beginning.
#[derive(Clone)]
pub struct OAuthLogin {
    http: Http,
    card: Arc<AgentCard>,
    named: Named,
    client: OAuthClient,
}

impl fmt::Debug for OAuthLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthLogin")
            .field("agent", &self.card.name)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

impl OAuthLogin {
    pub(in crate::client) fn new(http: Http, card: Arc<AgentCard>, named: Named, client: OAuthClient) -> Self {
        Self { http, card, named, client }
    }

    async fn endpoints(&self, kind: OAuthFlowKind) -> Result<Endpoints, CallError> {
        self.http.endpoints(&self.card, kind, &self.client, &self.named).await
    }

    /// A token for the application itself. [`Credentials::oauth`](super::super::Credentials::oauth) does the same when it is needed.
    ///
    /// # Errors
    /// When the card names no authorization server for it, or that server refuses.
    pub async fn client_credentials(&self) -> Result<StoredToken, CallError> {
        let endpoints = self.endpoints(OAuthFlowKind::ClientCredentials).await?;
        self.http.for_itself(&self.client, &endpoints, &self.named).await
    }

    /// A new token in place of one that expires. [`Credentials::token`](super::super::Credentials::token) does the same when it is
    /// needed; this is for programs that send the token themselves.
    ///
    /// # Errors
    /// When the token cannot be renewed, or the server where it is renewed refuses.
    pub async fn renewed(&self, token: &StoredToken) -> Result<StoredToken, CallError> {
        if token.refresh_token.is_none() {
            return Err(not_authorized("the token has expired, and it cannot be renewed; log in again"));
        }
        let renewed = self.http.refreshed(&self.client, Some(token), &self.named).await?;
        renewed.map_err(Refusal::into_error)
    }

    /// Begins the login of a person who confirms it on another device, or in any browser.
    ///
    /// # Errors
    /// When the card names no authorization server for it, or that server refuses.
    pub async fn device(&self) -> Result<DeviceLogin, CallError> {
        let endpoints = self.endpoints(OAuthFlowKind::DeviceCode).await?;
        let Some(url) = &endpoints.device_authorization else {
            return Err(not_authorized("the authorization server has no login with a device code"));
        };
        endpoints.token_url()?;
        let scopes = endpoints.scopes.join(" ");
        let form = if scopes.is_empty() { Vec::new() } else { vec![("scope", scopes.as_str())] };
        let posted = self.http.posted(&self.client, url, &self.named, endpoints.secret_in_body, &form).await?;
        let begun = DeviceAuthorization::read(&posted.map_err(Refusal::into_error)?)?;
        let until = Instant::now() + begun.expires_in;
        Ok(DeviceLogin { login: self.clone(), endpoints, pause: begun.interval, begun, until })
    }

    /// Begins the login of a person in a browser, which comes back to this address: that of a
    /// [`RedirectListener`](super::RedirectListener), or one of the program's own.
    ///
    /// # Errors
    /// When the card names no authorization server for it.
    pub async fn authorization_code(&self, redirect_url: &str) -> Result<AuthorizationLogin, CallError> {
        let endpoints = self.endpoints(OAuthFlowKind::AuthorizationCode).await?;
        let Some(authorization) = endpoints.authorization.clone() else {
            return Err(not_authorized("the authorization server has no login in a browser"));
        };
        check_url(&authorization).map_err(|why| not_authorized(format!("the login page {authorization:?}: {why}")))?;
        endpoints.token_url()?;
        let (state, verifier) = (random::secret(), random::secret());
        let scopes = endpoints.scopes.join(" ");
        let challenge = challenge(&verifier);
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", &self.client.id),
            ("redirect_uri", redirect_url),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if !scopes.is_empty() {
            parameters.push(("scope", &scopes));
        }
        let query = parameters.iter().map(|(name, value)| format!("{name}={}", escaped(value)));
        let joint = if authorization.contains('?') { '&' } else { '?' };
        let url = format!("{authorization}{joint}{}", query.collect::<Vec<_>>().join("&"));
        let redirect_url = redirect_url.to_owned();
        Ok(AuthorizationLogin { login: self.clone(), endpoints, url, redirect_url, state, verifier })
    }
}

/// What proves at the end of a login who began it: the server is shown it only then.
fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()))
}

/// What a device was told.
struct DeviceAuthorization {
    device_code: String,
    user_code: String,
    verification_url: String,
    verification_url_complete: Option<String>,
    expires_in: Duration,
    interval: Duration,
}

#[derive(Deserialize)]
struct DeviceAnswer {
    device_code: String,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    #[serde(alias = "verification_url_complete")]
    verification_uri_complete: Option<String>,
    expires_in: Option<Value>,
    interval: Option<Value>,
}

impl DeviceAuthorization {
    fn read(json: &[u8]) -> Result<Self, CallError> {
        let unfit = |why: &str| CallError::invalid_answer(format!("the answer of the authorization server {why}"));
        let answer: DeviceAnswer = serde_json::from_slice(json)
            .map_err(|_| unfit("lacks one of device_code, user_code and verification_uri"))?;
        // A person is asked to open it.
        check_url(&answer.verification_uri).map_err(|why| unfit(&format!("names no page to confirm at: {why}")))?;
        let seconds = |value: Option<Value>| value?.as_u64().map(Duration::from_secs);
        Ok(Self {
            device_code: answer.device_code,
            user_code: answer.user_code,
            verification_url: answer.verification_uri,
            verification_url_complete: answer.verification_uri_complete.filter(|url| check_url(url).is_ok()),
            expires_in: seconds(answer.expires_in).unwrap_or(DEVICE_WAIT_DEFAULT).min(DEVICE_WAIT_MAX),
            interval: seconds(answer.interval)
                .unwrap_or(DEVICE_PAUSE_DEFAULT)
                .clamp(DEVICE_PAUSE_MIN, DEVICE_PAUSE_MAX),
        })
    }
}

/// A login that waits for a person to confirm it at [`verification_url`](Self::verification_url) with the code
/// [`user_code`](Self::user_code). Both come from the server: a program that shows them in a terminal removes control characters.
pub struct DeviceLogin {
    login: OAuthLogin,
    endpoints: Endpoints,
    begun: DeviceAuthorization,
    pause: Duration,
    until: Instant,
}

impl fmt::Debug for DeviceLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceLogin").field("verification_url", &self.begun.verification_url).finish_non_exhaustive()
    }
}

/// What a look at a [`DeviceLogin`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DevicePoll {
    /// Not confirmed yet. The server wants this pause before the next look.
    Pending(Duration),
    /// Confirmed.
    Done(StoredToken),
}

impl DeviceLogin {
    /// Where the person confirms the login.
    #[must_use]
    pub fn verification_url(&self) -> &str {
        &self.begun.verification_url
    }

    /// The same with the code in it, where the server has such a page.
    #[must_use]
    pub fn verification_url_complete(&self) -> Option<&str> {
        self.begun.verification_url_complete.as_deref()
    }

    /// What the person types in there.
    #[must_use]
    pub fn user_code(&self) -> &str {
        &self.begun.user_code
    }

    /// How long the person has left.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Waits until the login is confirmed.
    ///
    /// # Errors
    /// When it is denied, or not confirmed in time.
    pub async fn wait(mut self) -> Result<StoredToken, CallError> {
        loop {
            if self.time_left() < self.pause {
                return Err(expired());
            }
            sleep(self.pause).await;
            match self.poll().await? {
                DevicePoll::Pending(pause) => self.pause = pause,
                DevicePoll::Done(token) => return Ok(token),
            }
        }
    }

    /// Looks once. The server wants pauses in between: one before the first look, too.
    ///
    /// # Errors
    /// When the login is denied, or was not confirmed in time.
    pub async fn poll(&mut self) -> Result<DevicePoll, CallError> {
        let OAuthLogin { http, named, client, .. } = &self.login;
        let form = [("grant_type", DEVICE_GRANT), ("device_code", self.begun.device_code.as_str())];
        let url = self.endpoints.token_url()?;
        let scopes = &self.endpoints.scopes;
        let outcome = http.issued(client, url, named, self.endpoints.secret_in_body, scopes, &form).await;
        let outcome = match outcome {
            Ok(Ok(token)) => return Ok(DevicePoll::Done(self.endpoints.kept(token)?)),
            Ok(Err(refusal)) => Outcome::Refused(refusal),
            Err(error) => Outcome::Failed(error),
        };
        if self.time_left().is_zero() {
            return Err(expired());
        }
        self.pause = next_pause(self.pause, outcome)?;
        Ok(DevicePoll::Pending(self.pause))
    }
}

fn expired() -> CallError {
    Refusal { error: "expired_token".to_owned(), error_description: String::new() }.into_error()
}

/// What came of a look.
enum Outcome {
    Refused(Refusal),
    Failed(CallError),
}

/// How long to wait before the next look, or why there is none (RFC 8628, 3.5).
fn next_pause(pause: Duration, outcome: Outcome) -> Result<Duration, CallError> {
    match outcome {
        Outcome::Refused(refusal) => match refusal.error.as_str() {
            "authorization_pending" => Ok(pause),
            "slow_down" => Ok((pause + DEVICE_PAUSE_STEP).min(DEVICE_PAUSE_MAX)),
            _ => Err(refusal.into_error()),
        },
        // The connection may come back. The server may have too much to do, so it is asked less often.
        Outcome::Failed(error) if error.is_retryable() => Ok((pause * 2).min(DEVICE_PAUSE_MAX)),
        Outcome::Failed(error) => Err(error),
    }
}

/// A login that a person confirms in a browser, which is opened at [`url`](Self::url).
pub struct AuthorizationLogin {
    login: OAuthLogin,
    endpoints: Endpoints,
    url: String,
    redirect_url: String,
    state: String,
    verifier: String,
}

impl fmt::Debug for AuthorizationLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationLogin").field("redirect_url", &self.redirect_url).finish_non_exhaustive()
    }
}

impl AuthorizationLogin {
    /// Where the person logs in.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the login with the URL that the browser came back to, or with its query alone.
    ///
    /// # Errors
    /// When the URL is not of this login, when access was denied, or when the server refuses the code.
    pub async fn finish(self, came_back_to: &str) -> Result<StoredToken, CallError> {
        let code = self.code(came_back_to)?;
        let OAuthLogin { http, named, client, .. } = &self.login;
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", self.redirect_url.as_str()),
            ("code_verifier", self.verifier.as_str()),
        ];
        let url = self.endpoints.token_url()?;
        let scopes = &self.endpoints.scopes;
        let issued = http.issued(client, url, named, self.endpoints.secret_in_body, scopes, &form).await?;
        self.endpoints.kept(issued.map_err(Refusal::into_error)?)
    }

    fn code(&self, came_back_to: &str) -> Result<String, CallError> {
        let query = came_back_to.split_once('?').map_or(came_back_to, |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        let parameters: Vec<(String, String)> = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(name, value)| (unescaped(name), unescaped(value)))
            .collect();
        let find = |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        // A page of another site could send the browser here with a code of its own.
        let state = find("state").unwrap_or_default();
        if verify_slices_are_equal(state.as_bytes(), self.state.as_bytes()).is_err() {
            return Err(not_authorized(
                "the browser came back from another login: its state is not the one of this login",
            ));
        }
        // RFC 9207: the server says who it is, so that one cannot pass for another.
        if let (Some(said), Some(expected)) = (find("iss"), &self.endpoints.issuer)
            && said.trim_end_matches('/') != expected.trim_end_matches('/')
        {
            return Err(not_authorized("the browser came back from another authorization server than it was sent to"));
        }
        if let Some(error) = find("error") {
            let error_description = find("error_description").unwrap_or_default().to_owned();
            return Err(Refusal { error: error.to_owned(), error_description }.into_error());
        }
        let code = find("code").filter(|code| !code.is_empty());
        code.map(str::to_owned).ok_or_else(|| not_authorized("the browser came back without a code"))
    }
}

/// A part of a query as it was meant. What is no escape is left as it is.
fn unescaped(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        let (byte, taken) = match (first, hex) {
            (b'%', Some(byte)) => (byte, 3),
            (b'+', _) => (b' ', 1),
            (byte, _) => (*byte, 1),
        };
        bytes.push(byte);
        rest = &rest[taken..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
