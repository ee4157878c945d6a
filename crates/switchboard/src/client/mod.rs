//! Calls to other agents, whatever version, binding or dialect they speak.
//!
//! A [`Client`] finds the card of an agent (`discovery`, kept by `card_cache`, verified by `signature`), chooses where and how to call
//! it (`negotiation`), and gives an [`AgentClient`], which has the calls. `remote` makes them: `bindings` writes a request and reads
//! its answer, `retry` decides whether it is made again, `stream` follows a stream and resumes it when it breaks, `credentials`
//! proves who calls, with tokens of `oauth` and `signed_token`. All of it leaves through the guarded client of
//! [`outbound`](crate::outbound), seen by every [`Interceptor`].
//!
//! Beside the calls there are shorter ways: [`Client::call_text`] (text in, text out), [`Client::invoke`] (a result that is never an
//! error), [`blocking`] (for programs that are not asynchronous), and `WebhookReceiver` (feature `webhook-receiver`), which takes what
//! agents post.
//!
//! | to | use |
//! | --- | --- |
//! | show a token, a key or a password | [`Credentials`], of the client or of one call |
//! | get tokens of OAuth 2.0 or OpenID Connect | [`Credentials::oauth`] for the application itself, [`Client::login`] for people |
//! | sign tokens with a shared secret | [`SignedTokens`] |
//! | show a certificate, trust another authority | [`ClientBuilder::trust`] |
//! | know who signed a card, or demand it | [`ClientBuilder::card_keys`], [`ClientBuilder::require_signed_cards`] |
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

mod asking;
mod bindings;
pub mod blocking;
mod call_text;
mod card_cache;
pub(crate) mod credentials;
mod discovered_card;
mod discovery;
mod http;
mod interceptor;
mod invoke;
mod limits;
mod negotiation;
mod oauth;
mod remote;
mod remote_agent;
mod retry;
mod signature;
mod signed_token;
mod sse;
mod stream;
mod task_result;
mod wall_clock;
#[cfg(feature = "webhook-receiver")]
mod webhook_deliveries;
#[cfg(feature = "webhook-receiver")]
mod webhook_receiver;
#[cfg(feature = "webhook-receiver")]
mod webhook_tokens;

use std::fmt;
use std::sync::Arc;

use ::http::HeaderValue;
use bytes::Bytes;
use switchboard_core::dialect::Dialect;
use switchboard_core::model::{AgentCard, MessageId};

use crate::agent_client::AgentClient;
use crate::call_agent::CallOptions;
pub use crate::call_agent::Spoken;
use crate::call_error::{CallError, CallErrorKind};
use crate::outbound::{AddressPolicy, BuildError, Trust};
use crate::protocol_binding::ProtocolBinding;
pub use call_text::CallTextOptions;
pub use credentials::Credentials;
pub use discovered_card::{CardReference, DiscoveredCard};
use discovery::Shared;
use http::Http;
use interceptor::Interceptors;
pub use interceptor::{Interceptor, Observed, OutgoingRequest, Received};
pub use invoke::{Invocation, InvokeOptions};
pub use limits::ClientLimits;
use negotiation::{Form, Preferences, targets};
pub use oauth::{AuthorizationLogin, DeviceLogin, DevicePoll, OAuthClient, OAuthLogin, RedirectListener, StoredToken};
use remote::Remote;
use remote_agent::RemoteAgent;
pub use retry::RetryPolicy;
use signature::SignatureChecks;
pub use signature::{CardKeys, KeyError, SignatureStatus};
pub use signed_token::SignedTokens;
pub use task_result::TaskResult;
#[cfg(feature = "webhook-receiver")]
pub use webhook_receiver::{WebhookReceiver, WebhookReceiverBuilder, WebhookReceiverError, WebhookUpdate};
#[cfg(feature = "webhook-receiver")]
pub use webhook_tokens::WebhookServer;

/// An id for a message that is made by hand: random, so that no two are alike.
#[must_use]
pub fn new_message_id() -> MessageId {
    crate::random::uuid().into()
}

/// Finds agents and calls them. Clones share connections and the cards that were found. The API is in beta: it may change in a
/// minor version.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    preferences: Preferences,
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
    card_keys: CardKeys,
    requires_signed_cards: bool,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            interceptors,
            credentials,
            preferences,
            retry,
            limits,
            policy,
            trust,
            card_keys,
            requires_signed_cards,
        } = self;
        f.debug_struct("ClientBuilder")
            .field("interceptors", &interceptors.len())
            .field("credentials", credentials)
            .field("preferences", preferences)
            .field("retry", retry)
            .field("limits", limits)
            .field("policy", policy)
            .field("trust", trust)
            .field("card_keys", card_keys)
            .field("requires_signed_cards", requires_signed_cards)
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

    /// The versions of the protocol that may be used, such as `1.0` and `0.3`, best first. By default all, newest first. The first
    /// is also what cards are asked for in.
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

    /// The keys that verify the signatures of cards; by default none.
    #[must_use]
    pub fn card_keys(self, card_keys: CardKeys) -> Self {
        Self { card_keys, ..self }
    }

    /// Refuses to call agents whose card is not signed with a key of [`card_keys`](Self::card_keys), and extended cards that are not,
    /// with [`CallErrorKind::CardNotVerified`].
    #[must_use]
    pub fn require_signed_cards(self) -> Self {
        Self { requires_signed_cards: true, ..self }
    }

    /// Reads the certificates and puts the client together.
    ///
    /// # Errors
    /// When a file of certificates cannot be read or used.
    pub fn build(self) -> Result<Client, BuildError> {
        let Self {
            interceptors,
            credentials,
            preferences,
            retry,
            limits,
            policy,
            trust,
            card_keys,
            requires_signed_cards,
        } = self;
        let http = Http::new(policy, trust, Interceptors::new(interceptors), limits)?;
        let card_version = preferences.versions.iter().flatten().next();
        let card_version = card_version.and_then(|version| HeaderValue::from_str(version).ok());
        let signatures = SignatureChecks::new(card_keys, requires_signed_cards);
        let shared = Shared::new(http, signatures, credentials, retry, card_version);
        Ok(Client { shared: Arc::new(shared), preferences })
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
        self.agent_as(&CardReference::parse(reference)?, None).await
    }

    /// The same for an agent whose card is known to be in a certain place.
    ///
    /// # Errors
    /// As of [`Client::agent`].
    pub async fn agent_at(&self, reference: &CardReference) -> Result<AgentClient, CallError> {
        self.agent_as(reference, None).await
    }

    /// The same for an agent of which is known what it speaks. For a dialect of an older system its card need not tell; for a
    /// version of A2A, interfaces of that version are used.
    ///
    /// # Errors
    /// As of [`Client::agent`].
    pub async fn agent_in(&self, reference: &str, dialect: Dialect) -> Result<AgentClient, CallError> {
        self.agent_as(&CardReference::parse(reference)?, Some(dialect)).await
    }

    async fn agent_as(&self, reference: &CardReference, dialect: Option<Dialect>) -> Result<AgentClient, CallError> {
        self.open(reference, dialect).await.map(|(agent, _)| agent)
    }

    /// An agent, and the form of the place where it is called first.
    async fn open(
        &self,
        reference: &CardReference,
        dialect: Option<Dialect>,
    ) -> Result<(AgentClient, Form), CallError> {
        let found = self.shared.discover(reference).await?;
        self.shared.signatures.check(&self.shared.http, &found).await?;
        let targets = targets(&found, reference, dialect, &self.preferences)?;
        let form = targets.first().map(|target| target.form);
        let form = form.ok_or_else(|| CallError::invalid_answer("the agent has no address"))?;
        let agent = RemoteAgent::new(Remote::new(self.shared.clone(), &found, targets, reference));
        Ok((AgentClient::of(Arc::new(agent), CallOptions::default()), form))
    }

    /// The same; where there is no card, with one that is made from the address of the agent.
    async fn agent_or(&self, reference: &str, card: fn(&str) -> String) -> Result<(AgentClient, Form), CallError> {
        let reference = CardReference::parse(reference)?;
        // Boxed, so that the futures of the calls above stay small.
        match (Box::pin(self.open(&reference, None)).await, &reference) {
            (Err(error), CardReference::Base(base)) if error.kind() == CallErrorKind::NoCard => {
                let made = CardReference::Inline(card(base));
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
        Self { shared: self.shared.strict().clone(), preferences: self.preferences.clone() }
    }

    /// The card of an agent, which is named as for [`Client::agent`]. It is kept for as long as HTTP allows, and for five minutes
    /// where the server says nothing about it.
    ///
    /// # Errors
    /// When there is no card, or what is there is none.
    pub async fn discover(&self, reference: &str) -> Result<Arc<DiscoveredCard>, CallError> {
        self.shared.discover(&CardReference::parse(reference)?).await
    }

    /// The same for a card that is known to be in a certain place.
    ///
    /// # Errors
    /// As of [`Client::discover`].
    pub async fn discover_at(&self, reference: &CardReference) -> Result<Arc<DiscoveredCard>, CallError> {
        self.shared.discover(reference).await
    }

    /// The same client for agents that are called over these bindings, best first. It shares connections and cards.
    #[must_use]
    pub fn with_bindings(mut self, bindings: impl IntoIterator<Item = ProtocolBinding>) -> Self {
        self.preferences.bindings = Some(bindings.into_iter().collect());
        self
    }

    /// Fetches a file that an agent links to. It is sent no credentials, and its address must be public unless it is at the origin
    /// of the agent.
    ///
    /// # Errors
    /// When it cannot be had, or is larger than an answer may be.
    pub async fn fetch_file(&self, url: &str, agent: &CardReference) -> Result<Bytes, CallError> {
        self.shared.fetch_file(url, &agent.named()).await
    }

    /// As [`Client::discover`]; none where that fails.
    pub async fn try_discover(&self, reference: &str) -> Option<Arc<DiscoveredCard>> {
        self.discover(reference).await.ok()
    }

    /// What the signatures of a card show, by the keys of [`ClientBuilder::card_keys`]. Keys that a signature names are fetched where
    /// their host is trusted.
    pub async fn signature_status(&self, card: &DiscoveredCard) -> SignatureStatus {
        self.shared.signatures.status(&self.shared.http, card).await
    }

    /// The same for the card that [`AgentClient::extended_card`] gives. Its signatures are checked on the card as it was understood: one
    /// that covers members which A2A does not have is not verified.
    pub async fn extended_signature_status(&self, card: &AgentCard) -> SignatureStatus {
        self.shared.signatures.extended_status(&self.shared.http, card).await
    }

    /// A login at the authorization server that the card of an agent names, for an application that is known there. The agent is named as
    /// for [`Client::agent`].
    ///
    /// ```no_run
    /// use switchboard::client::{Client, Credentials, OAuthClient};
    ///
    /// # async fn run() -> Result<(), switchboard::CallError> {
    /// # let client = Client::builder().build().unwrap();
    /// let app = OAuthClient::new("my-app");
    /// let login = client.login("https://agent.example", app.clone()).await?.device().await?;
    /// println!("Open {} and enter {}", login.verification_url(), login.user_code());
    /// let credentials = Credentials::token(app, login.wait().await?);
    /// let agent = client.agent("https://agent.example").await?.with_credentials(credentials.clone());
    /// agent.send_text("hello").await?;
    /// let to_keep = credentials.stored_token();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When there is no card.
    pub async fn login(&self, reference: &str, application: OAuthClient) -> Result<OAuthLogin, CallError> {
        self.login_at(&CardReference::parse(reference)?, application).await
    }

    /// The same for an agent whose card is known to be in a certain place.
    ///
    /// # Errors
    /// As of [`Client::login`].
    pub async fn login_at(&self, reference: &CardReference, application: OAuthClient) -> Result<OAuthLogin, CallError> {
        let found = self.shared.discover(reference).await?;
        self.shared.signatures.check(&self.shared.http, &found).await?;
        Ok(OAuthLogin::new(self.shared.http.clone(), found.card().clone(), reference.named(), application))
    }

    /// Forgets all cards, so that the next call for one fetches it.
    pub fn forget_cards(&self) {
        self.shared.cards.clear();
    }
}
