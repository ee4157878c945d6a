//! The public keys of an issuer, kept up to date: fetched from its address, found through its discovery document, or read from a
//! file. One task per issuer fetches them. It is asked to fetch again when a token names a key that is not known, because issuers
//! exchange their keys; tokens of strangers can make it do so only now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use serde::Deserialize;
use switchboard_core::call::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::outbound::{Client, RequestLimits};
use crate::public_keys::{Key, KeyError, read_jwk_set, read_pem};
use crate::reloaded::{Reload, WatchedFiles, read_file_now};
use crate::server::uri::is_loopback_host;

/// The size of a key set, and of a discovery document.
pub(super) const KEY_SET_BYTES_MAX: u64 = 256 << 10;
/// How long fetching one of them may take.
const KEY_SET_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long keys are used before they are fetched again, where the issuer does not say; and the bounds of what it may say.
const KEYS_FRESH_DEFAULT: Duration = Duration::from_secs(3_600);
const KEYS_FRESH_MIN: Duration = Duration::from_secs(300);
const KEYS_FRESH_MAX: Duration = Duration::from_secs(86_400);
/// How long keys that cannot be fetched again are used all the same.
const KEYS_KEPT_MAX: Duration = Duration::from_secs(86_400);
/// How soon after a fetch an unknown key makes for another one, and how soon after a failure it is tried again.
const KEYS_REFETCH_PAUSE: Duration = Duration::from_secs(30);
const KEYS_RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Where the keys come from.
#[derive(Clone, Debug)]
pub(super) enum KeySource {
    /// The discovery document of the issuer says where they are.
    Discovery {
        issuer: String,
    },
    Url(String),
    File(Arc<WatchedFiles>),
    Given,
}

impl KeySource {
    fn is_fetched(&self) -> bool {
        matches!(self, Self::Discovery { .. } | Self::Url(_))
    }
}

/// The keys of one issuer.
pub(super) struct KeySet {
    source: KeySource,
    state: watch::Sender<State>,
    /// Grows whenever the keys change. Kept apart from them, because it is read at each request.
    generation: AtomicU64,
    wanted: Notify,
}

#[derive(Clone)]
struct State {
    /// None before the first fetch, and when the keys are too old.
    keys: Option<Arc<Vec<Key>>>,
    /// How often it was tried to fetch them.
    tries: u64,
    fetched_at: Option<Instant>,
    /// Before this moment nothing makes for another fetch.
    may_fetch_at: Instant,
}

/// What was found for a token.
pub(super) enum FoundKeys {
    /// All keys, among which there is none that fits if the token names an unknown one.
    Keys(Arc<Vec<Key>>),
    /// There are newer keys to be had, perhaps, and asking for them is allowed.
    Ask,
    /// There are no keys at all, and it is too soon to ask again.
    None,
}

impl KeySet {
    pub(super) fn new(source: KeySource, keys: Option<Vec<Key>>) -> Self {
        let state = State { keys: keys.map(Arc::new), tries: 0, fetched_at: None, may_fetch_at: Instant::now() };
        Self { source, state: watch::Sender::new(state), generation: AtomicU64::new(1), wanted: Notify::new() }
    }

    pub(super) fn source(&self) -> &KeySource {
        &self.source
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn has_keys(&self) -> bool {
        self.state.borrow().keys.is_some()
    }

    /// The keys for a token that names this one, or none in particular.
    pub(super) fn find(&self, key_id: Option<&str>) -> FoundKeys {
        let state = self.state.borrow();
        let may_ask = || self.source.is_fetched() && Instant::now() >= state.may_fetch_at;
        match &state.keys {
            Some(keys) if keys.iter().any(|key| key.fits(key_id)) => FoundKeys::Keys(keys.clone()),
            _ if may_ask() => FoundKeys::Ask,
            Some(keys) => FoundKeys::Keys(keys.clone()),
            None => FoundKeys::None,
        }
    }

    /// Has the keys fetched, and waits until that was tried.
    pub(super) async fn ask(&self, wait_max: Duration) {
        let mut state = self.state.subscribe();
        let tries = state.borrow().tries;
        self.wanted.notify_one();
        // Whether it was in time shows when the keys are looked at.
        let _ = timeout(wait_max, state.wait_for(|state| state.tries > tries)).await;
    }

    /// Fetches the keys again and again until it is dropped. Those of a file are looked after with the other files.
    pub(super) async fn keep_fresh(self: Arc<Self>, client: Client) {
        match &self.source {
            KeySource::Given | KeySource::File(_) => {}
            KeySource::Discovery { .. } | KeySource::Url(_) => loop {
                let fetched = self.fetch(&client).await;
                let (pause, may_fetch_at) = self.took(fetched);
                tokio::select! {
                    biased;
                    () = self.wanted.notified() => sleep_until(may_fetch_at).await,
                    () = sleep(pause) => {}
                }
            },
        }
    }

    fn replace(&self, keys: Vec<Key>) {
        self.state.send_modify(|state| {
            if state.keys.as_ref().is_none_or(|known| **known != keys) {
                state.keys = Some(Arc::new(keys));
                self.generation.fetch_add(1, Ordering::AcqRel);
            }
        });
    }

    /// Takes what was fetched; says when to fetch again, and from when on it may be asked for.
    fn took(&self, fetched: Result<(Vec<Key>, Duration), String>) -> (Duration, Instant) {
        let (now, is_fetched) = (Instant::now(), fetched.is_ok());
        let (pause, may_fetch_at) = match fetched {
            Ok((keys, fresh)) => {
                tracing::debug!(keys = keys.len(), "keys of the issuer fetched");
                self.replace(keys);
                (fresh, now + KEYS_REFETCH_PAUSE)
            }
            Err(error) => {
                tracing::warn!(
                    error,
                    "the keys of the issuer could not be fetched; if its address is private, it must be in outbound_allow"
                );
                (KEYS_REFETCH_PAUSE, now + KEYS_RETRY_PAUSE)
            }
        };
        self.state.send_modify(|state| {
            state.tries += 1;
            state.may_fetch_at = may_fetch_at;
            if is_fetched {
                state.fetched_at = Some(now);
            } else if state.fetched_at.is_some_and(|at| now.duration_since(at) > KEYS_KEPT_MAX) {
                state.keys = None;
                self.generation.fetch_add(1, Ordering::AcqRel);
            }
        });
        (pause, may_fetch_at)
    }

    async fn fetch(&self, client: &Client) -> Result<(Vec<Key>, Duration), String> {
        let url = match &self.source {
            KeySource::Url(url) => url.clone(),
            KeySource::Discovery { issuer } => discover(client, issuer).await?,
            KeySource::File(_) | KeySource::Given => return Err("these keys are not fetched".to_owned()),
        };
        let (headers, body) = get(client, &url).await?;
        let keys = read_jwk_set(&body).map_err(|error| format!("{url}: {error}"))?;
        Ok((keys, fresh_for(&headers)))
    }
}

impl Reload for KeySet {
    fn files(&self) -> Option<&WatchedFiles> {
        match &self.source {
            KeySource::File(files) => Some(files),
            KeySource::Discovery { .. } | KeySource::Url(_) | KeySource::Given => None,
        }
    }

    fn read_again(&self) -> BoxFuture<'_, Result<usize, String>> {
        Box::pin(async {
            let Some(files) = self.files() else { return Err("these keys are not read from a file".to_owned()) };
            files.mark_read_now().await;
            let text = read_file_now(files.path(), KEY_SET_BYTES_MAX).await?;
            let keys = read_keys(&text).map_err(|error| error.to_string())?;
            let count = keys.len();
            self.replace(keys);
            Ok(count)
        })
    }
}

/// Reads a file of keys: a JSON Web Key set, or public keys in PEM form, which are for tokens with any key id.
pub(super) fn read_keys(text: &[u8]) -> Result<Vec<Key>, KeyError> {
    if text.len() as u64 > KEY_SET_BYTES_MAX {
        return Err(KeyError::new(format!("is larger than {KEY_SET_BYTES_MAX} bytes")));
    }
    if text.trim_ascii_start().starts_with(b"-----BEGIN") { read_pem(None, text) } else { read_jwk_set(text) }
}

/// Where the discovery document of an issuer is (OpenID Connect Discovery 1.0, 4).
pub(super) fn discovery_url(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
}

/// Where the keys of an issuer are. A document of another issuer is not believed.
async fn discover(client: &Client, issuer: &str) -> Result<String, String> {
    let url = discovery_url(issuer);
    let (_, body) = get(client, &url).await?;
    let found: Discovered = serde_json::from_slice(&body).map_err(|error| format!("{url}: {error}"))?;
    if found.issuer != issuer {
        return Err(format!("{url} is the document of another issuer: {:.200}", found.issuer));
    }
    check_key_url(&found.jwks_uri).map_err(|why| format!("{url}: jwks_uri {why}"))?;
    Ok(found.jwks_uri)
}

/// Keys that came without TLS could be those of anybody on the way; only this machine is near enough.
pub(super) fn check_key_url(url: &str) -> Result<(), String> {
    let parsed: Uri = url.parse().map_err(|_| format!("{url:.200} is not a URL"))?;
    match (parsed.scheme_str(), parsed.host()) {
        (Some("https"), Some(_)) => Ok(()),
        (Some("http"), Some(host)) if is_loopback_host(host) => Ok(()),
        _ => Err(format!("{url:.200} must begin with https://")),
    }
}

async fn get(client: &Client, url: &str) -> Result<(HeaderMap, Bytes), String> {
    let limits = RequestLimits {
        total: Some(KEY_SET_WAIT_MAX),
        body_bytes_max: Some(KEY_SET_BYTES_MAX),
        ..RequestLimits::default()
    };
    let request = Request::get(url).header(ACCEPT, HeaderValue::from_static("application/json"));
    let request = request.body(Bytes::new()).map_err(|_| format!("{url:.200} is not a URL"))?;
    let answer = client.send_repeatable(request, &limits).await.map_err(|error| format!("{url}: {error}"))?;
    if answer.status() != StatusCode::OK {
        return Err(format!("{url} answered {}", answer.status().as_u16()));
    }
    let (head, body) = answer.into_parts();
    Ok((head.headers, body.bytes().await.map_err(|error| format!("{url}: {error}"))?))
}

/// How long an answer says that it is fresh, within bounds.
fn fresh_for(headers: &HeaderMap) -> Duration {
    let said = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let said =
        said.and_then(|value| value.split(',').find_map(|part| part.trim().strip_prefix("max-age=")?.parse().ok()));
    said.map_or(KEYS_FRESH_DEFAULT, Duration::from_secs).clamp(KEYS_FRESH_MIN, KEYS_FRESH_MAX)
}
