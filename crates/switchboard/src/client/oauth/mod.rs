//! Tokens of OAuth 2.0 and OpenID Connect: where they are issued (`metadata`), how they are asked for (`token`), the logins of
//! people (`login`, with `redirect` for the way back from a browser), and tokens that renew themselves (`source`).

mod login;
mod metadata;
mod redirect;
mod source;
mod token;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use login::{AuthorizationLogin, DeviceLogin, DevicePoll, OAuthLogin};
pub use redirect::RedirectListener;
pub(super) use source::TokenSource;

use super::wall_clock;
use crate::call_error::{CallError, CallErrorKind};

/// A token is renewed when it expires within this time.
const EXPIRY_MARGIN_S: u64 = 30;

/// The application that calls agents, as authorization servers know it.
///
/// Where tokens are issued is read from the card of the agent, unless [`with_token_url`](Self::with_token_url) says it. An agent
/// thereby chooses where the secret of the application goes: give it to agents that you trust, or name the URL yourself.
#[derive(Clone, PartialEq, Eq)]
pub struct OAuthClient {
    id: String,
    secret: Option<String>,
    secret_in_body: bool,
    scopes: Option<Vec<String>>,
    token_url: Option<String>,
}

impl fmt::Debug for OAuthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthClient")
            .field("id", &self.id)
            .field("secret", &self.secret.as_ref().map(|_| "(hidden)"))
            .field("scopes", &self.scopes)
            .field("token_url", &self.token_url)
            .finish_non_exhaustive()
    }
}

impl OAuthClient {
    /// An application without a secret, as those on people's machines are.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), secret: None, secret_in_body: false, scopes: None, token_url: None }
    }

    /// The secret of the application. It is sent as user name and password (`client_secret_basic`).
    #[must_use]
    pub fn with_secret(mut self, secret: impl Into<String>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Sends the secret among the parameters (`client_secret_post`), for servers that take no other form.
    #[must_use]
    pub fn with_secret_in_body(mut self) -> Self {
        self.secret_in_body = true;
        self
    }

    /// The scopes to ask for, in place of those that the card requires.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Where tokens are issued, whatever cards say. It may be a private address.
    #[must_use]
    pub fn with_token_url(mut self, url: impl Into<String>) -> Self {
        self.token_url = Some(url.into());
        self
    }
}

/// A token as a program keeps it, with what is needed to renew it. It is a secret: `Debug` does not show it, and a file that it is
/// written to is for its owner alone.
///
/// ```
/// use switchboard::client::StoredToken;
///
/// let mut token = StoredToken::new("https://login.example/token", "my-app", "t0ken");
/// token.expires_at_s = Some(1_900_000_000);
/// assert!(!format!("{token:?}").contains("t0ken"));
/// let kept = serde_json::to_string(&token).unwrap();
/// assert_eq!(serde_json::from_str::<StoredToken>(&kept).unwrap(), token);
/// ```
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredToken {
    /// What agents are shown.
    pub access_token: String,
    /// What renews it; none if it cannot be renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// When it expires, in seconds since 1970; none if the server does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_s: Option<u64>,
    /// Where it is renewed: the only place that the refresh token is sent to.
    pub token_endpoint: String,
    /// The application that it was issued to.
    pub client_id: String,
    /// What it allows, as far as the server says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

impl fmt::Debug for StoredToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredToken")
            .field("access_token", &"(hidden)")
            .field("refresh_token", &self.refresh_token.as_ref().map(|_| "(hidden)"))
            .field("expires_at_s", &self.expires_at_s)
            .field("token_endpoint", &self.token_endpoint)
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish()
    }
}

impl StoredToken {
    /// A token that cannot be renewed and does not say when it expires.
    #[must_use]
    pub fn new(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        access_token: impl Into<String>,
    ) -> Self {
        Self {
            access_token: access_token.into(),
            refresh_token: None,
            expires_at_s: None,
            token_endpoint: token_endpoint.into(),
            client_id: client_id.into(),
            scopes: Vec::new(),
        }
    }

    /// Whether it has expired, or is about to.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.expires_by(wall_clock::now_s())
    }

    fn expires_by(&self, now_s: u64) -> bool {
        self.expires_at_s.is_some_and(|end| end <= now_s.saturating_add(EXPIRY_MARGIN_S))
    }
}

fn not_authorized(why: impl Into<String>) -> CallError {
    CallError::new(CallErrorKind::NotAuthorized, why)
}

#[cfg(test)]
mod tests {
    use super::StoredToken;

    #[test]
    fn a_token_is_renewed_before_it_expires() {
        let mut token = StoredToken::new("https://l/t", "app", "x");
        assert!(!token.expires_by(u64::MAX));
        token.expires_at_s = Some(1_000);
        assert_eq!([0, 969, 970, 1_000, 2_000].map(|now| token.expires_by(now)), [false, false, true, true, true]);
    }
}
