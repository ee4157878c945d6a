//! Calls to other agents, whatever version, binding or dialect they speak.
//!
//! A [`Client`] finds the card of an agent (`discovery`, kept by `card_cache`), chooses where and how to call it (`negotiation`), and
//! gives an [`AgentClient`], which has the calls. `remote` makes them: `bindings` writes a request and reads its answer, `retry`
//! decides whether it is made again, `stream` follows a stream and resumes it when it breaks, `credentials` proves who calls. All
//! of it leaves through the guarded client of [`outbound`](crate::outbound).
//!
#![cfg_attr(
    feature = "server",
    doc = r#"
```
use switchboard::client::Client;
use switchboard::{AgentBuilder, Server, Turn};

# tokio::runtime::Runtime::new().unwrap().block_on(async {
// An agent to call; any A2A agent will do.
let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
let bound = Server::builder().agent(echo).build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
let url = format!("http://{}", bound.local_addr());
tokio::spawn(bound.run_until(std::future::pending(), std::time::Duration::ZERO));

let client = Client::builder().build().unwrap();
let echo = client.agent(&url).await.unwrap();
assert_eq!(echo.card().name, "Echo");
let answer = echo.send_text("hello").await.unwrap();
assert_eq!(answer.text(), "hello");
# });
```
"#
)]

mod bindings;
pub mod blocking;
mod call_text;
mod card_cache;
mod credentials;
mod discovery;
mod http;
mod interceptor;
mod invoke;
mod limits;
mod negotiation;
mod remote;
mod retry;
mod sse;
mod stream;
mod task_result;
#[cfg(feature = "webhook-receiver")]
mod webhook_receiver;

use std::fmt;
use std::sync::{Arc, OnceLock};

use switchboard_core::dialect::Dialect;

pub use crate::agent_client::Spoken;
use crate::agent_client::{AgentClient, CallOptions};
use crate::call_error::{CallError, CallErrorKind};
use crate::outbound::{AddressPolicy, BuildError, Trust};
use crate::protocol_binding::ProtocolBinding;
pub use call_text::CallTextOptions;
use card_cache::CardCache;
pub use credentials::Credentials;
pub use discovery::DiscoveredCard;
use discovery::Reference;
use http::Http;
use interceptor::Interceptors;
pub use interceptor::{Interceptor, Observed, OutgoingRequest, Received};
pub use invoke::{Invocation, InvokeOptions};
pub use limits::ClientLimits;
use negotiation::{Form, Preferences, targets};
use remote::RemoteAgent;
pub use retry::RetryPolicy;
pub use task_result::TaskResult;
#[cfg(feature = "webhook-receiver")]
pub use webhook_receiver::{WebhookReceiver, WebhookReceiverBuilder, WebhookReceiverError, WebhookUpdate};

/// What a call to a remote agent has beside what calls to every agent have.
#[derive(Clone, Debug, Default)]
pub(crate) struct RemoteOptions {
    /// In place of the client's.
    pub(crate) credentials: Option<Credentials>,
    /// In place of the client's.
    pub(crate) attempts_max: Option<u32>,
}

/// Finds agents and calls them. Clones share connections and the cards that were found. The API is in beta: it may change in a
/// minor version.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

/// What all agents of a client share.
struct Shared {
    http: Http,
    cards: CardCache,
    credentials: Credentials,
    preferences: Preferences,
    retry: RetryPolicy,
    limits: ClientLimits,
    /// The same under the stricter rule about addresses, once it was asked for.
    strict: OnceLock<Arc<Shared>>,
}

impl Shared {
    /// The same, for which no address is allowed because the user named it. Cards are its own.
    fn strict(&self) -> Self {
        Self {
            http: self.http.strict(),
            cards: CardCache::new(self.limits.cards_max),
            credentials: self.credentials.clone(),
            preferences: self.preferences.clone(),
            retry: self.retry.clone(),
            limits: self.limits.clone(),
            strict: OnceLock::new(),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("credentials", &self.shared.credentials)
            .field("cards", &self.shared.cards.len())
            .finish_non_exhaustive()
    }
}

/// What a [`Client`] is built from.
#[derive(Clone, Default)]
pub struct ClientBuilder {
    interceptors: Vec<Arc<dyn Interceptor>>,
    credentials: Credentials,
    preferences: Preferences,
    retry: RetryPolicy,
    limits: ClientLimits,
    policy: AddressPolicy,
    trust: Trust,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interceptors, credentials, preferences, retry, limits, policy, trust } = self;
        f.debug_struct("ClientBuilder")
            .field("interceptors", &interceptors.len())
            .field("credentials", credentials)
            .field("preferences", preferences)
            .field("retry", retry)
            .field("limits", limits)
            .field("policy", policy)
            .field("trust", trust)
            .finish()
    }
}

impl ClientBuilder {
    /// Adds code that sees every exchange and may add headers. Several are called in the order in which they were added.
    #[must_use]
    pub fn interceptor(mut self, interceptor: Arc<dyn Interceptor>) -> Self {
        self.interceptors.push(interceptor);
        self
    }

    /// What proves to agents who calls, unless a call has its own.
    #[must_use]
    pub fn credentials(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// The bindings that may be used, best first. By default all, in the order of each card.
    #[must_use]
    pub fn bindings(mut self, bindings: impl IntoIterator<Item = ProtocolBinding>) -> Self {
        self.preferences.bindings = Some(bindings.into_iter().collect());
        self
    }

    /// The versions of the protocol that may be used, such as `1.0` and `0.3`, best first. By default all, newest first.
    #[must_use]
    pub fn versions<V: Into<String>>(mut self, versions: impl IntoIterator<Item = V>) -> Self {
        self.preferences.versions = Some(versions.into_iter().map(Into::into).collect());
        self
    }

    /// How often a call is attempted.
    #[must_use]
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// How long calls may take and how large answers may be.
    #[must_use]
    pub fn limits(self, limits: ClientLimits) -> Self {
        Self { limits, ..self }
    }

    /// Which addresses may be called that the user has not named: those that cards and redirects lead to. By default public ones
    /// only. What is named, and its own origin, may be private.
    #[must_use]
    pub fn policy(self, policy: AddressPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Which certificates are trusted; by default those of the public authorities.
    #[must_use]
    pub fn trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Reads the certificates and puts the client together.
    ///
    /// # Errors
    /// When a file of certificates cannot be read or used.
    pub fn build(self) -> Result<Client, BuildError> {
        let Self { interceptors, credentials, preferences, retry, limits, policy, trust } = self;
        let http = Http::new(policy, trust, Interceptors::new(interceptors))?;
        let cards = CardCache::new(limits.cards_max);
        let strict = OnceLock::new();
        Ok(Client { shared: Arc::new(Shared { http, cards, credentials, preferences, retry, limits, strict }) })
    }
}

impl Client {
    /// A client without credentials that calls agents in any version, unless told otherwise.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// An agent to call: finds its card and chooses how to call it. It is named by its base URL, the URL of its card, the path of
    /// a file with its card, or the card itself as JSON.
    ///
    /// # Errors
    /// When there is no card, or it names no interface that this client speaks and may use.
    pub async fn agent(&self, reference: &str) -> Result<AgentClient, CallError> {
        self.agent_as(reference, None).await
    }

    /// The same for an agent of which is known what it speaks. For a dialect of an older system its card need not tell; for a
    /// version of A2A, interfaces of that version are used.
    ///
    /// # Errors
    /// As of [`Client::agent`].
    pub async fn agent_in(&self, reference: &str, dialect: Dialect) -> Result<AgentClient, CallError> {
        self.agent_as(reference, Some(dialect)).await
    }

    async fn agent_as(&self, reference: &str, dialect: Option<Dialect>) -> Result<AgentClient, CallError> {
        self.open(&Reference::parse(reference)?, dialect).await.map(|(agent, _)| agent)
    }

    /// An agent, and the form of the place where it is called first.
    async fn open(&self, reference: &Reference, dialect: Option<Dialect>) -> Result<(AgentClient, Form), CallError> {
        let found = self.shared.discover(reference).await?;
        let targets = targets(&found, reference, dialect, &self.shared.preferences)?;
        let form = targets.first().map(|target| target.form);
        let form = form.ok_or_else(|| CallError::invalid_answer("the agent has no address"))?;
        let agent = RemoteAgent::new(self.shared.clone(), &found, targets, reference.named());
        Ok((AgentClient::of(Arc::new(agent), CallOptions::default()), form))
    }

    /// The same; where there is no card, with one that is made from the address of the agent.
    async fn agent_or(&self, reference: &str, card: fn(&str) -> String) -> Result<(AgentClient, Form), CallError> {
        let reference = Reference::parse(reference)?;
        // Boxed, so that the futures of the calls above stay small.
        match (Box::pin(self.open(&reference, None)).await, &reference) {
            (Err(error), Reference::Base(base)) if error.kind() == CallErrorKind::NoCard => {
                let made = Reference::Inline(card(base));
                Box::pin(self.open(&made, None)).await.map_err(|_| error)
            }
            (opened, _) => opened,
        }
    }

    /// The same client under a stricter rule: the addresses that the user names must be ones that the policy allows
    /// ([`ClientBuilder::policy`]), as those that cards and redirects lead to. For programs that call what others name. It has
    /// cards of its own.
    #[must_use]
    pub fn strict_addresses(&self) -> Self {
        let strict = self.shared.strict.get_or_init(|| {
            let strict = self.shared.strict();
            Arc::new(strict)
        });
        Self { shared: strict.clone() }
    }

    /// The card of an agent, which is named as for [`Client::agent`]. It is kept for as long as HTTP allows, and for five minutes
    /// where the server says nothing about it.
    ///
    /// # Errors
    /// When there is no card, or what is there is none.
    pub async fn discover(&self, reference: &str) -> Result<Arc<DiscoveredCard>, CallError> {
        self.shared.discover(&Reference::parse(reference)?).await
    }

    /// As [`Client::discover`]; none where that fails.
    pub async fn try_discover(&self, reference: &str) -> Option<Arc<DiscoveredCard>> {
        self.discover(reference).await.ok()
    }

    /// Forgets all cards, so that the next call for one fetches it.
    pub fn forget_cards(&self) {
        self.shared.cards.clear();
    }
}
