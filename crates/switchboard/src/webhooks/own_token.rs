//! The token by which the server proves to a receiver who posts, where the receiver wants the scheme `Bearer` and has given no
//! credentials: a JWT (RFC 7519) for the origin of the receiver, signed with a key that the server publishes.

use std::sync::{Arc, OnceLock};

use http::Uri;
use http::uri::Scheme;
use serde::Serialize;
use switchboard_engine::ports::{Clock, WebhookCall};
use switchboard_engine::sha256::sha256;

use crate::random;
use crate::signing_keys::SigningKeys;

/// How long a token is good for: a delivery is over sooner, and a token that was stolen is of little use.
const TOKEN_LIFETIME_S: i64 = 300;

/// Signs tokens for receivers.
pub(crate) struct OwnTokens {
    pub(crate) keys: SigningKeys,
    /// The address of the server, below which its keys are published. It is known when the server is mounted.
    pub(crate) issuer: Arc<OnceLock<String>>,
    pub(crate) clock: Arc<dyn Clock>,
}

#[derive(Serialize)]
struct Claims<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
    aud: String,
    sub: &'a str,
    iat: i64,
    exp: i64,
    jti: &'a str,
    #[serde(rename = "taskId")]
    task_id: &'a str,
    /// So that the token is of no use with another body.
    request_body_sha256: String,
}

impl OwnTokens {
    /// Adds the token to a call whose receiver wants one. Without a key, the call goes without.
    pub(super) fn authorize(&self, call: &mut WebhookCall, uri: &Uri) {
        if !call.scheme_without_credentials.as_ref().is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer")) {
            return;
        }
        let Some(aud) = origin(uri) else { return };
        let iat = self.clock.now().as_ms().div_euclid(1_000);
        let id = random::uuid();
        let claims = Claims {
            iss: self.issuer.get().map(String::as_str),
            aud,
            sub: call.task_id.as_str(),
            iat,
            exp: iat + TOKEN_LIFETIME_S,
            jti: &id,
            task_id: call.task_id.as_str(),
            request_body_sha256: sha256(&call.body).iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        if let Some(token) = self.keys.current().sign_token(&claims) {
            call.headers.push(("authorization", format!("Bearer {token}")));
        }
    }
}

/// Scheme, host and port of a URL, the port only if it is not that of the scheme.
fn origin(uri: &Uri) -> Option<String> {
    let scheme = uri.scheme()?;
    let usual = if *scheme == Scheme::HTTPS { 443 } else { 80 };
    let host = uri.host()?.to_ascii_lowercase();
    Some(match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}
