//! Tokens by which servers show a receiver of webhooks who posts: a JWT for the receiver alone, signed with a key that the server
//! publishes, and bound to the body of its post (`docs/webhooks.md`). Unlike with a signing secret, nothing has to be shared, and
//! one receiver cannot sign for another.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest;
use bytes::Bytes;
use http::{Request, StatusCode};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::jwt::{Unverified, has_audience, seconds};
use crate::outbound::{AddressPolicy, Client, RequestLimits, check_url};
use crate::public_keys::{Algorithm, Key, KeyError, read_jwk_set};

/// How long keys that were fetched are used before they are fetched again.
const WEBHOOK_KEYS_KEPT: Duration = Duration::from_secs(3_600);
/// How soon after a fetch an unknown key makes for another one.
const WEBHOOK_KEYS_PAUSE: Duration = Duration::from_secs(30);
/// How long a fetch may take, and how large the keys may be.
const WEBHOOK_KEYS_WAIT_MAX: Duration = Duration::from_secs(10);
const WEBHOOK_KEYS_BYTES_MAX: u64 = 256 << 10;
/// How many keys are tried for a token that names none.
const WEBHOOK_KEYS_TRIED_MAX: usize = 8;

/// A server whose posts are believed because of the tokens that it signs. It sends them to webhooks whose push config asks for the
/// scheme `Bearer` and has no credentials.
///
/// ```
/// use switchboard::client::{WebhookReceiver, WebhookServer, WebhookUpdate};
///
/// let agents = WebhookServer::new("https://agents.example", "https://hooks.example");
/// let receiver = WebhookReceiver::builder().server(agents).build(|update: WebhookUpdate| async move {
///     println!("{:?}", update.update);
///     Ok(())
/// });
/// assert!(receiver.is_ok());
/// ```
#[derive(Clone)]
pub struct WebhookServer {
    issuer: String,
    audience: String,
    keys: Arc<Keys>,
}

enum Keys {
    Pinned(Vec<Key>),
    At { url: String, client: Option<Client>, fetched: Mutex<Fetched> },
}

#[derive(Default)]
struct Fetched {
    keys: Arc<Vec<Key>>,
    /// When they were fetched, and from when on they may be fetched again.
    at: Option<Instant>,
    may_fetch_at: Option<Instant>,
}

/// Why a post is not believed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Disbelief {
    /// The token is missing, or is not for this receiver at this moment, or not by this server.
    Bad,
    /// The keys of the server are not to be had at the moment.
    NoKeys,
}

/// What a token says that was believed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Believed {
    body_sha256: String,
    /// Of this token alone.
    pub(super) id: String,
}

impl Believed {
    /// Whether the token is for this body.
    pub(super) fn is_for(&self, body: &[u8]) -> bool {
        let digest = digest::digest(&digest::SHA256, body);
        let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        self.body_sha256.eq_ignore_ascii_case(&hex)
    }
}

impl fmt::Debug for WebhookServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { issuer, audience, .. } = self;
        f.debug_struct("WebhookServer").field("issuer", issuer).field("audience", audience).finish_non_exhaustive()
    }
}

impl WebhookServer {
    /// The server at this address (`iss`), and the scheme, host and port of the receiver (`aud`), as in `https://hooks.example`. Its keys are
    /// fetched from `/.well-known/jwks.json` below its address, over HTTPS or from this machine, and again after an hour or when
    /// a token names an unknown one.
    #[must_use]
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        let issuer = issuer.into().trim_end_matches('/').to_owned();
        let url = format!("{issuer}/.well-known/jwks.json");
        Self { issuer, audience: audience.into().trim_end_matches('/').to_owned(), keys: Arc::new(Keys::at(url)) }
    }

    /// Fetches the keys from this URL.
    #[must_use]
    pub fn keys_at(self, url: impl Into<String>) -> Self {
        Self { keys: Arc::new(Keys::at(url.into())), ..self }
    }

    /// Takes these keys, a JSON Web Key set, and fetches none.
    ///
    /// # Errors
    /// When it has no key for signatures.
    pub fn keys(self, jwk_set: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        Ok(Self { keys: Arc::new(Keys::Pinned(read_jwk_set(jwk_set.as_ref())?)), ..self })
    }

    /// What the token in an `Authorization` header proves.
    pub(super) async fn believe(
        &self,
        authorization: &str,
        now: SystemTime,
        leeway: Duration,
    ) -> Result<Believed, Disbelief> {
        let (scheme, token) = authorization.split_once(' ').ok_or(Disbelief::Bad)?;
        let token = Unverified::read(token.trim().as_bytes()).filter(|_| scheme.eq_ignore_ascii_case("bearer"));
        let token = token.ok_or(Disbelief::Bad)?;
        let claims: Map<String, Value> = serde_json::from_str(&token.claims).map_err(|_| Disbelief::Bad)?;
        // Looked at first, so that tokens for others make for no fetch.
        let believed = self.read(&claims, now, leeway).ok_or(Disbelief::Bad)?;
        let algorithm = Algorithm::named(&token.header.alg).ok_or(Disbelief::Bad)?;
        let keys = self.keys.find(token.header.kid.as_deref()).await?;
        let is_signed = |key: &Key| key.verifies(algorithm, token.signed, &token.signature);
        if keys.iter().take(WEBHOOK_KEYS_TRIED_MAX).any(is_signed) { Ok(believed) } else { Err(Disbelief::Bad) }
    }

    /// What the claims say, if they are for this receiver at this moment.
    fn read(&self, claims: &Map<String, Value>, now: SystemTime, leeway: Duration) -> Option<Believed> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let is_ours = text("iss")?.trim_end_matches('/') == self.issuer
            && has_audience(claims.get("aud")?, |one| one == self.audience);
        let now_s = i64::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()?;
        let leeway_s = i64::try_from(leeway.as_secs()).ok()?;
        let is_now = seconds(claims.get("exp")?)?.saturating_add(leeway_s) > now_s
            && seconds(claims.get("iat")?)? <= now_s.saturating_add(leeway_s);
        let believed = Believed { body_sha256: text("request_body_sha256")?.to_owned(), id: text("jti")?.to_owned() };
        (is_ours && is_now).then_some(believed)
    }
}

impl Keys {
    fn at(url: String) -> Self {
        // The person who wrote the program has named the address.
        let client = Client::builder().policy(AddressPolicy::any()).build().ok();
        Self::At { url, client, fetched: Mutex::default() }
    }

    /// The keys that a token may be signed with which names this one, or none in particular.
    async fn find(&self, key_id: Option<&str>) -> Result<Vec<Key>, Disbelief> {
        let fitting = |keys: &[Key]| -> Vec<Key> { keys.iter().filter(|key| key.fits(key_id)).cloned().collect() };
        let (url, client, fetched) = match self {
            Self::Pinned(keys) => return Ok(fitting(keys)),
            Self::At { url, client, fetched } => (url, client, fetched),
        };
        let now = Instant::now();
        let known = {
            let mut state = fetched.lock().unwrap_or_else(PoisonError::into_inner);
            let known = fitting(&state.keys);
            let is_fresh = state.at.is_some_and(|at| now < at + WEBHOOK_KEYS_KEPT);
            if (is_fresh && !known.is_empty()) || state.may_fetch_at.is_some_and(|at| now < at) {
                // Another post fetches them, or it is too soon: without any keys the server posts again later.
                return if state.at.is_none() { Err(Disbelief::NoKeys) } else { Ok(known) };
            }
            state.may_fetch_at = Some(now + WEBHOOK_KEYS_PAUSE);
            known
        };
        let got = match client {
            Some(client) => fetch(client, url).await,
            None => None,
        };
        let mut state = fetched.lock().unwrap_or_else(PoisonError::into_inner);
        match got {
            Some(keys) => {
                state.keys = Arc::new(keys);
                state.at = Some(now);
                Ok(fitting(&state.keys))
            }
            // Known keys stay good while the server cannot be reached.
            None if known.is_empty() => Err(Disbelief::NoKeys),
            None => Ok(known),
        }
    }
}

async fn fetch(client: &Client, url: &str) -> Option<Vec<Key>> {
    let uri = check_url(url).ok()?;
    let is_local = matches!(uri.host()?, "localhost" | "127.0.0.1" | "[::1]");
    if uri.scheme_str() != Some("https") && !is_local {
        return None;
    }
    let limits = RequestLimits {
        total: Some(WEBHOOK_KEYS_WAIT_MAX),
        body_bytes_max: Some(WEBHOOK_KEYS_BYTES_MAX),
        ..RequestLimits::default()
    };
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = uri;
    let answer = client.send_repeatable(request, &limits).await.ok()?;
    if answer.status() != StatusCode::OK {
        return None;
    }
    read_jwk_set(&answer.into_body().bytes().await.ok()?).ok()
}
