//! From what the user names (a base URL, the URL of a card, a file, or the card itself) to an agent card; and what all agents of a client
//! share ([`Shared`]), by which cards are found.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http::header::{ACCEPT, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderValue, Request, StatusCode};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::bindings::A2A_VERSION;
use super::card_cache::{CardCache, Keeping, Known, Validators};
use super::credentials::{Credentials, Proof, Prover};
use super::discovered_card::{CardReference, DiscoveredCard};
use super::http::{Http, Named, read};
use super::retry::RetryPolicy;
use super::signature::SignatureChecks;
use crate::call_error::{CallError, CallErrorKind};
use crate::outbound::{RequestLimits, check_url};

/// Where agents have their cards, newest name first.
const CARD_PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// How many unfinished fetches there may be before those without a waiting call are looked for.
const FETCHES_MAX: usize = 64;

/// What a fetch came to, once it is over.
type Fetch = tokio::sync::Mutex<Option<Result<Arc<DiscoveredCard>, CallError>>>;

/// Cards that are being fetched, by the reference that they are looked for with.
#[derive(Default)]
pub(super) struct Fetches(Mutex<HashMap<String, Arc<Fetch>>>);

impl Fetches {
    fn join(&self, key: &str) -> Arc<Fetch> {
        let mut fetches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if fetches.len() >= FETCHES_MAX {
            fetches.retain(|_, fetch| Arc::strong_count(fetch) > 1);
        }
        fetches.entry(key.to_owned()).or_default().clone()
    }

    /// The fetch is over: what is asked for from now on is fetched anew.
    fn leave(&self, key: &str, fetch: &Arc<Fetch>) {
        let mut fetches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if fetches.get(key).is_some_and(|known| Arc::ptr_eq(known, fetch)) {
            fetches.remove(key);
        }
    }
}

/// What all agents of a client share.
pub(super) struct Shared {
    pub(super) http: Http,
    pub(super) cards: CardCache,
    fetches: Fetches,
    pub(super) signatures: SignatureChecks,
    pub(super) credentials: Credentials,
    pub(super) retry: RetryPolicy,
    /// The version that cards are asked for in, if one is preferred.
    card_version: Option<HeaderValue>,
    /// The same under the stricter rule about addresses, once it was asked for.
    strict: OnceLock<Arc<Self>>,
}

impl Shared {
    pub(super) fn new(
        http: Http,
        signatures: SignatureChecks,
        credentials: Credentials,
        retry: RetryPolicy,
        card_version: Option<HeaderValue>,
    ) -> Self {
        let cards = CardCache::new(http.limits.cards_max);
        let (fetches, strict) = (Fetches::default(), OnceLock::new());
        Self { http, cards, fetches, signatures, credentials, retry, card_version, strict }
    }

    /// The same, for which no address is allowed because the user named it. Cards are its own.
    pub(super) fn strict(&self) -> &Arc<Self> {
        self.strict.get_or_init(|| {
            let (http, signatures) = (self.http.strict(), self.signatures.renewed());
            let (credentials, retry) = (self.credentials.clone(), self.retry.clone());
            Arc::new(Self::new(http, signatures, credentials, retry, self.card_version.clone()))
        })
    }

    pub(super) async fn discover(&self, reference: &CardReference) -> Result<Arc<DiscoveredCard>, CallError> {
        match reference {
            CardReference::Inline(json) => self.read_card(Bytes::copy_from_slice(json.as_bytes()), None),
            CardReference::File(path) => self.read_card(self.read_file(path).await?, None),
            CardReference::Card(url) => self.cached(url, std::slice::from_ref(url), reference).await,
            CardReference::Base(base) => {
                let urls = CARD_PATHS.map(|path| format!("{base}{path}"));
                self.cached(base, &urls, reference).await
            }
        }
    }

    /// A card that is kept, or fetched. Calls for the same card at the same time share one request.
    async fn cached(
        &self,
        key: &str,
        urls: &[String],
        reference: &CardReference,
    ) -> Result<Arc<DiscoveredCard>, CallError> {
        if let Known::Fresh(card) = self.cards.get(key, Instant::now()) {
            return Ok(card);
        }
        let fetch = self.fetches.join(key);
        // Held while the card is fetched: that is how the others wait for the same one. If this future is dropped, the next takes over.
        let mut outcome = fetch.lock().await;
        if let Some(outcome) = &*outcome {
            return outcome.clone();
        }
        let fetched = Box::pin(self.fetched(key, urls, reference)).await;
        *outcome = Some(fetched.clone());
        self.fetches.leave(key, &fetch);
        fetched
    }

    async fn fetched(
        &self,
        key: &str,
        urls: &[String],
        reference: &CardReference,
    ) -> Result<Arc<DiscoveredCard>, CallError> {
        let known = match self.cards.get(key, Instant::now()) {
            Known::Fresh(card) => return Ok(card),
            Known::Stale(card, validators) => Some((card, validators)),
            Known::Nothing => None,
        };
        let named = reference.named();
        if let Some((card, validators)) = known
            && let Some(url) = card.url().map(str::to_owned)
        {
            match self.fetch(&url, &named, Some(&validators)).await {
                Ok(Fetched::NotModified(mut keeping)) => {
                    if keeping.validators == Validators::default() {
                        keeping.validators = validators;
                    }
                    self.cards.put(key, card.clone(), keeping, Instant::now());
                    return Ok(card);
                }
                Ok(Fetched::Card(card, keeping)) => {
                    self.cards.put(key, card.clone(), keeping, Instant::now());
                    return Ok(card);
                }
                // The card may have moved to the other path.
                Err(_) => {}
            }
        }
        let mut first = None;
        for url in urls {
            match self.fetch(url, &named, None).await {
                Ok(Fetched::Card(card, keeping)) => {
                    self.cards.put(key, card.clone(), keeping, Instant::now());
                    return Ok(card);
                }
                Ok(Fetched::NotModified(_)) => {
                    return Err(CallError::invalid_answer(format!(
                        "{url} answered 304 to a request that asked for the card"
                    )));
                }
                Err(error) => {
                    let goes_on = is_missing(&error);
                    let error = first.get_or_insert(error);
                    if !goes_on {
                        return Err(error.clone());
                    }
                }
            }
        }
        Err(first.unwrap_or_else(|| CallError::new(CallErrorKind::NoCard, "there is no address of a card")))
    }

    /// Fetches a card. Credentials are shown only where the server asks for them: public cards need none.
    async fn fetch(&self, url: &str, named: &Named, known: Option<&Validators>) -> Result<Fetched, CallError> {
        match self.fetch_once(url, named, known, None).await {
            Err(error) if error.http_status() == Some(401) && !self.credentials.is_empty() => {
                // Nothing says yet in which form they are asked for, nor where tokens are issued.
                let prover = Prover::new(self.credentials.clone(), Arc::default(), named.clone());
                match prover.proof(&self.http).await {
                    Ok(proof) => self.fetch_once(url, named, known, Some(&proof)).await,
                    Err(_) => Err(error),
                }
            }
            outcome => outcome,
        }
    }

    async fn fetch_once(
        &self,
        url: &str,
        named: &Named,
        known: Option<&Validators>,
        proof: Option<&Proof>,
    ) -> Result<Fetched, CallError> {
        let uri = check_url(url).map_err(|why| CallError::new(CallErrorKind::InvalidRequest, why))?;
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        self.card_version.iter().for_each(|version| drop(headers.insert(A2A_VERSION, version.clone())));
        if let Some(Validators { etag, last_modified }) = known {
            etag.iter().for_each(|etag| drop(headers.insert(IF_NONE_MATCH, etag.clone())));
            last_modified.iter().for_each(|date| drop(headers.insert(IF_MODIFIED_SINCE, date.clone())));
        }
        if let Some(proof) = proof {
            headers.extend(proof.headers.clone());
        }
        let mut limits = RequestLimits::default();
        limits.total = Some(self.http.limits.call);
        limits.body_bytes_max = Some(self.http.limits.card_bytes_max);
        let answer = self.http.send(|| Ok(request.clone()), &limits, named, true).await?;
        let (head, mut body) = answer.into_parts();
        if head.status == StatusCode::NOT_MODIFIED && known.is_some() {
            return Ok(Fetched::NotModified(Keeping::of(&head.headers)));
        }
        if head.status != StatusCode::OK {
            body.discard().await;
            return Err(no_card(url, head.status.as_u16()));
        }
        let keeping = Keeping::of(&head.headers);
        Ok(Fetched::Card(self.read_card(read(body).await?, Some(url.to_owned()))?, keeping))
    }

    pub(super) async fn fetch_file(&self, url: &str, named: &Named) -> Result<Bytes, CallError> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = check_url(url).map_err(|why| CallError::new(CallErrorKind::InvalidRequest, why))?;
        let mut limits = RequestLimits::default();
        limits.total = Some(self.http.limits.send);
        limits.body_bytes_max = Some(self.http.limits.reply_bytes_max);
        let answer = self.http.send(|| Ok(request.clone()), &limits, named, true).await?;
        let (head, mut body) = answer.into_parts();
        if !head.status.is_success() {
            body.discard().await;
            return Err(CallError::refused(None, Some(head.status.as_u16()), None));
        }
        read(body).await
    }

    fn read_card(&self, json: Bytes, url: Option<String>) -> Result<Arc<DiscoveredCard>, CallError> {
        let at = url.clone().unwrap_or_else(|| "the card".to_owned());
        let read = DiscoveredCard::read(json, url, &self.http.limits.decode);
        read.map(Arc::new).map_err(|error| CallError::invalid_answer(format!("{at} is no agent card: {error}")))
    }

    async fn read_file(&self, path: &PathBuf) -> Result<Bytes, CallError> {
        let unread = |why: &dyn fmt::Display| {
            CallError::new(CallErrorKind::NoCard, format!("{}: cannot be read: {why}", path.display()))
        };
        let file = tokio::fs::File::open(path).await.map_err(|error| unread(&error))?;
        let mut json = Vec::new();
        let max = self.http.limits.card_bytes_max;
        file.take(max + 1).read_to_end(&mut json).await.map_err(|error| unread(&error))?;
        if json.len() as u64 > max {
            return Err(unread(&format!("it is larger than {max} bytes")));
        }
        Ok(json.into())
    }
}

enum Fetched {
    Card(Arc<DiscoveredCard>, Keeping),
    NotModified(Keeping),
}

fn no_card(url: &str, status: u16) -> CallError {
    CallError::new(CallErrorKind::NoCard, format!("{url} answered with HTTP {status} in place of an agent card"))
        .with_http_status(status)
}

/// Whether the card may be at the other path.
fn is_missing(error: &CallError) -> bool {
    match error.http_status() {
        Some(401 | 403 | 407 | 429) | None => error.kind() == CallErrorKind::InvalidAnswer,
        Some(status) => (400..500).contains(&status) || status == 501,
    }
}
