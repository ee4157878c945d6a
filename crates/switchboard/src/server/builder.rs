//! The settings of a server: agents, a store, who may call, and the address. `build` checks them and puts the server together.

pub(super) mod authentication;
mod exposure;
mod internal;

use std::fmt;
#[cfg(feature = "sqlite")]
use std::path::Path;
use std::sync::{Arc, OnceLock};

use switchboard_core::call::Endpoint;
use switchboard_core::dialect::Dialect;
use switchboard_core::model::{SecurityRequirement, SecurityScheme};
use switchboard_engine::AuditLevel;
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::{STORAGE_BYTES_MAX_DEFAULT, TASKS_MAX_DEFAULT as MEMORY_TASKS_MAX_DEFAULT};
use switchboard_engine::ports::{Callees, Store};

use self::authentication::ApiKey;
use super::authentication::tokens::Tokens;
use super::authentication::{ApiKeyNames, Authenticator, Issuer, SharedSecret};
use super::exchange::access_log::AccessLog;
use super::exchange::authorize::Access;
use super::exposure::Exposure;
use super::exposure::origins::Cors;
use super::host::StoreChoice;
use super::internal::door::CallDoor;
use super::internal::settings::SelfFire;
use super::limits::ServerLimits;
use super::metrics::MetricsSource;
use super::organizations::OrgPeers;
use super::telemetry::Otlp;
use super::transport::tls::Tls;
use crate::agent::AgentBuilder;
use crate::agent_settings::CardForm;
use crate::protocol_binding::ProtocolBinding;
use crate::signing_keys::SigningKeys;
use crate::signing_secrets::SigningSecrets;

/// What a server serves under one name.
pub(crate) enum ServedItem {
    /// Run by the server's own engine.
    Agent(Box<AgentBuilder>),
    Endpoint(String, Arc<dyn Endpoint>),
}

impl ServedItem {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Agent(agent) => agent.slug_name(),
            Self::Endpoint(name, _) => name,
        }
    }
}

/// Puts a [`Server`](crate::Server) together.
pub struct ServerBuilder {
    pub(super) served: Vec<ServedItem>,
    pub(super) store: StoreChoice,
    pub(super) public_url: Option<String>,
    pub(super) tokens: Option<Tokens>,
    pub(super) authenticator: Option<Arc<dyn Authenticator>>,
    pub(super) security_schemes: Vec<(String, SecurityScheme)>,
    pub(super) api_key: Option<ApiKey>,
    pub(super) api_key_places: ApiKeyNames,
    pub(super) basic: bool,
    pub(super) shared_secret: Option<SharedSecret>,
    pub(super) org_peers: Option<Arc<dyn OrgPeers>>,
    pub(super) issuers: Vec<Issuer>,
    pub(super) client_certificates: bool,
    pub(super) requirements: Vec<SecurityRequirement>,
    pub(super) allow_unauthenticated: bool,
    pub(super) tenants: Vec<String>,
    pub(super) outbound_allow: Vec<String>,
    pub(super) signing_secrets: Option<SigningSecrets>,
    pub(super) signing_keys: Option<SigningKeys>,
    pub(super) sign_cards: bool,
    pub(super) webhook_issuer: Arc<OnceLock<String>>,
    pub(super) webhooks_https_only: bool,
    pub(super) challenge_webhooks: bool,
    pub(super) cors: Cors,
    pub(super) limits: ServerLimits,
    pub(super) engine_limits: Limits,
    pub(super) host_check: bool,
    pub(super) default_version: Option<Dialect>,
    pub(super) card_form: CardForm,
    pub(super) interfaces: Option<Vec<ProtocolBinding>>,
    pub(super) tls: Option<Tls>,
    pub(super) access_log: Option<AccessLog>,
    pub(super) log_completed_tasks: bool,
    pub(super) audit: AuditLevel,
    pub(super) exposure: Exposure,
    pub(super) access: Access,
    pub(super) self_fire: SelfFire,
    pub(super) call_door: Option<CallDoor>,
    pub(super) more_metrics: Vec<MetricsSource>,
    pub(super) callees: Option<Arc<dyn Callees>>,
    pub(super) otlp: Option<Otlp>,
}

impl ServerBuilder {
    /// Begins with no agent and the memory store.
    pub(super) fn new() -> Self {
        Self {
            served: Vec::new(),
            store: StoreChoice::Memory(MEMORY_TASKS_MAX_DEFAULT),
            public_url: None,
            tokens: None,
            authenticator: None,
            security_schemes: Vec::new(),
            api_key: None,
            api_key_places: ApiKeyNames::default(),
            basic: false,
            shared_secret: None,
            issuers: Vec::new(),
            client_certificates: false,
            requirements: Vec::new(),
            allow_unauthenticated: false,
            tenants: Vec::new(),
            outbound_allow: Vec::new(),
            signing_secrets: None,
            signing_keys: None,
            sign_cards: true,
            webhook_issuer: Arc::default(),
            webhooks_https_only: false,
            challenge_webhooks: false,
            cors: Cors::default(),
            limits: ServerLimits::default(),
            engine_limits: Limits::default(),
            host_check: false,
            default_version: None,
            card_form: CardForm::default(),
            interfaces: None,
            tls: None,
            access_log: None,
            log_completed_tasks: true,
            audit: AuditLevel::default(),
            exposure: Exposure::default(),
            access: Access::default(),
            self_fire: SelfFire::default(),
            call_door: None,
            org_peers: None,
            more_metrics: Vec::new(),
            callees: None,
            otlp: None,
        }
    }

    /// How many tasks [`ServerBuilder::memory`] keeps.
    pub const MEMORY_TASKS_MAX_DEFAULT: usize = MEMORY_TASKS_MAX_DEFAULT;
    /// How many bytes of tasks [`ServerBuilder::memory`] keeps: what [`Limits::storage_bytes_max`](crate::Limits) is there, unless it
    /// is set to another value than its default, which is for a disk.
    pub const MEMORY_STORAGE_BYTES_MAX_DEFAULT: u64 = STORAGE_BYTES_MAX_DEFAULT;

    /// Adds to what `/metrics` says: `write` is called for each request, and appends whole families in Prometheus' text form. Their
    /// names and labels should be few, and the same each time.
    #[must_use]
    pub fn metrics(mut self, write: impl Fn(&mut String) + Send + Sync + 'static) -> Self {
        self.more_metrics.push(Arc::new(write));
        self
    }

    /// Sends traces and metrics to a collector of OpenTelemetry. Without it, traces that come with calls are passed on, and none
    /// are made.
    #[must_use]
    pub fn otlp(mut self, otlp: Otlp) -> Self {
        self.otlp = Some(otlp);
        self
    }

    /// Writes one line per request to this log: who asked for what, when, and how it was answered.
    #[must_use]
    pub fn access_log(mut self, log: AccessLog) -> Self {
        self.access_log = Some(log);
        self
    }

    /// Whether a line is logged for each completed task, which it is unless switched off. Tasks that end otherwise always
    /// have one.
    #[must_use]
    pub fn log_completed_tasks(mut self, on: bool) -> Self {
        self.log_completed_tasks = on;
        self
    }

    /// What is written to the audit log, which is part of the store: by default refusals, changes of credentials and what
    /// operators do. A server that only mounts endpoints has no store and so no audit log.
    ///
    /// ```
    /// use switchboard::{AuditLevel, Server};
    ///
    /// let server = Server::builder().audit(AuditLevel::All);
    /// ```
    #[must_use]
    pub fn audit(mut self, level: AuditLevel) -> Self {
        self.audit = level;
        self
    }

    /// Where the agents of this server find the agents outside that they call with [`Turn::call`](crate::Turn::call), such as
    /// the directory of `switchboard-hub`. The agents of the server can call each other without it.
    #[must_use]
    pub fn callees(mut self, callees: Arc<dyn Callees>) -> Self {
        self.callees = Some(callees);
        self
    }

    /// Adds an agent, served under `/agents/{slug}`. The first one is the default and also served at the root.
    #[must_use]
    pub fn agent(mut self, agent: AgentBuilder) -> Self {
        self.served.push(ServedItem::Agent(Box::new(agent)));
        self
    }

    /// Serves any [`Endpoint`] under `/agents/{name}`, beside the agents of this server or instead of them: a remote agent, a
    /// gateway, a test double. The first agent or endpoint that was added is the default one and also served at the root.
    ///
    /// Every binding and dialect is served for it. Its card is read once, when the server is built, and shown with the
    /// addresses of this server. Its tasks are its own: nothing of them is stored here, there are no downloads below
    /// its path, and a server that only mounts endpoints opens no store. When the server stops, its streams end.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use switchboard::call::{BoxFuture, Caller, Endpoint, Reply, Request};
    /// use switchboard::model::{AgentCard, Message, Part, Role};
    /// use switchboard::{ProtocolError, Server};
    ///
    /// /// Answers every message with the same word.
    /// struct Parrot;
    ///
    /// impl Endpoint for Parrot {
    ///     fn call(&self, _: Caller, request: Request) -> BoxFuture<'_, Result<Reply, ProtocolError>> {
    ///         Box::pin(async move {
    ///             match request {
    ///                 Request::SendMessage(_) => {
    ///                     let word = Message::new(Role::Agent, "1", vec![Part::text("hello")]);
    ///                     Ok(Reply::SentMessage(Arc::new(word)))
    ///                 }
    ///                 _ => Err(ProtocolError::unsupported("this parrot only answers")),
    ///             }
    ///         })
    ///     }
    ///
    ///     fn card(&self) -> Arc<AgentCard> {
    ///         Arc::new(AgentCard { name: "Parrot".to_owned(), ..AgentCard::default() })
    ///     }
    /// }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let server = Server::builder().mount("parrot", Arc::new(Parrot)).build()?;
    /// let answer = server.local("parrot").unwrap().send_text("who is a good bird?").await.unwrap();
    /// assert_eq!(answer.into_message().unwrap().text(), "hello");
    /// # Ok::<(), switchboard::ServeError>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn mount(mut self, name: impl Into<String>, endpoint: Arc<dyn Endpoint>) -> Self {
        self.served.push(ServedItem::Endpoint(name.into(), endpoint));
        self
    }

    /// Keeps tasks in memory: at most 10,000, or [`Limits::retention_tasks_max`](crate::Limits) if that is fewer, and at most
    /// [1 GiB](Self::MEMORY_STORAGE_BYTES_MAX_DEFAULT) of them; gone when the process stops. This is the default.
    #[must_use]
    pub fn memory(self) -> Self {
        self.memory_holding(MEMORY_TASKS_MAX_DEFAULT)
    }

    /// As [`ServerBuilder::memory`], for at most `tasks_max` tasks. One more removes the oldest that has ended.
    #[must_use]
    pub fn memory_holding(mut self, tasks_max: usize) -> Self {
        self.store = StoreChoice::Memory(tasks_max);
        self
    }

    /// Keeps tasks in a SQLite database at this path. Nothing acknowledged is lost by a crash or a power cut.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn sqlite(self, path: impl AsRef<Path>) -> Self {
        self.sqlite_with(path, switchboard_stores::sqlite::SqliteOptions::default())
    }

    /// As [`ServerBuilder::sqlite`], with settings.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn sqlite_with(mut self, path: impl AsRef<Path>, options: switchboard_stores::sqlite::SqliteOptions) -> Self {
        self.store = StoreChoice::Sqlite(path.as_ref().to_owned(), options);
        self
    }

    /// Keeps tasks in PostgreSQL, which several processes may share: a task that one of them accepted can be read, followed,
    /// continued and canceled through any other, and is taken over if its process dies. Building the server connects to the database and
    /// waits for it.
    ///
    /// ```no_run
    /// use switchboard::{PostgresOptions, SecretKeys, Server};
    ///
    /// let keys = SecretKeys::parse(&std::env::var("SWITCHBOARD_SECRETS_KEY")?)?;
    /// let options = PostgresOptions::new("postgres://switchboard@db.example/switchboard?sslmode=require").secrets(keys);
    /// let server = Server::builder().postgres(options);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn postgres(mut self, options: switchboard_stores::postgres::PostgresOptions) -> Self {
        self.store = StoreChoice::Postgres(options, None);
        self
    }

    /// As [`ServerBuilder::postgres`], with hints between the processes over NATS in place of PostgreSQL. A hint that is lost costs time and no
    /// data, so a server that cannot reach NATS works on and connects later.
    ///
    /// ```no_run
    /// use switchboard::{NatsOptions, PostgresOptions, Server};
    ///
    /// let options = PostgresOptions::new("postgres://switchboard@db.example/switchboard?sslmode=require");
    /// let server = Server::builder().postgres_with_hints(options, NatsOptions::new("tls://nats.example"));
    /// ```
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn postgres_with_hints(
        mut self,
        options: switchboard_stores::postgres::PostgresOptions,
        hints: switchboard_stores::nats::NatsOptions,
    ) -> Self {
        self.store = StoreChoice::Postgres(options, Some(hints));
        self
    }

    /// Keeps tasks in a store that a test has made. The port that stores implement is not part of the API: it changes
    /// without notice.
    #[doc(hidden)]
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = StoreChoice::Given(store);
        self
    }

    /// The address clients use, path included (`https://agents.example/a2a`). It goes into the cards. One that is not on
    /// this machine needs [tokens](Self::tokens), or [`allow_unauthenticated`](Self::allow_unauthenticated). Without it the
    /// cards name the address of the port; a client that asks under another loopback name (`localhost` for `127.0.0.1`)
    /// gets a card with that name.
    #[must_use]
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        self.public_url = Some(url.into());
        self
    }

    /// As [`ServerBuilder::public_url`], unless one was given already.
    #[must_use]
    pub fn public_url_or(mut self, url: impl Into<String>) -> Self {
        self.public_url.get_or_insert_with(|| url.into());
        self
    }

    /// Speaks TLS on the port, and nothing else: [`Server::bind`](crate::Server::bind) with this certificate and key. A service that you mount
    /// in a server of yours ([`Server::into_service`](crate::Server::into_service)) leaves it to that server.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Private addresses that webhooks may go to: `10.0.0.0/8`, `127.0.0.1:9000`, `hooks.internal:443`. None by default.
    #[must_use]
    pub fn outbound_allow<T: Into<String>>(mut self, targets: impl IntoIterator<Item = T>) -> Self {
        self.outbound_allow = targets.into_iter().map(Into::into).collect();
        self
    }

    /// Signs webhooks, so that receivers who share a secret can tell that a delivery came from here, was not changed, and
    /// is not an old one sent again. They verify it with any library for [Standard Webhooks].
    ///
    /// [Standard Webhooks]: https://www.standardwebhooks.com
    #[must_use]
    pub fn sign_webhooks(mut self, secrets: SigningSecrets) -> Self {
        self.signing_secrets = Some(secrets);
        self
    }

    /// The keys of this server: its cards are signed with the active one, and the public parts of all are served at
    /// `/.well-known/jwks.json`. A webhook that wants the scheme `Bearer` and comes without credentials is posted to with a token
    /// that is signed with the active key. A folder that has no key yet may be given: the server looks for new keys once a minute.
    ///
    /// ```
    /// use switchboard::{AgentBuilder, AgentError, KeyAlgorithm, Server, SigningKeys, Turn};
    ///
    /// async fn run(turn: Turn) -> Result<(), AgentError> {
    ///     turn.answer(turn.text()).await?;
    ///     Ok(())
    /// }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    /// let server = Server::builder().agent(AgentBuilder::from_fn("Echo", run)).signing_keys(keys).build().unwrap();
    /// # let _ = server;
    /// # });
    /// ```
    #[must_use]
    pub fn signing_keys(mut self, keys: SigningKeys) -> Self {
        self.signing_keys = Some(keys);
        self
    }

    /// Takes webhooks at https URLs alone, as servers in production should. Off by default.
    #[must_use]
    pub fn webhooks_https_only(mut self, on: bool) -> Self {
        self.webhooks_https_only = on;
        self
    }

    /// Asks the receiver of a webhook whether it wants it before the webhook is registered: a GET of its URL with a random
    /// `validationToken`, which it must return as the body of its answer. Off by default.
    #[must_use]
    pub fn challenge_webhooks(mut self, on: bool) -> Self {
        self.challenge_webhooks = on;
        self
    }

    /// Whether cards are signed where there are [keys](Self::signing_keys), which they are unless switched off.
    #[must_use]
    pub fn sign_cards(mut self, on: bool) -> Self {
        self.sign_cards = on;
        self
    }

    /// Web pages that may call from a browser. None by default; only cards may be read from anywhere.
    #[must_use]
    pub fn cors(mut self, cors: Cors) -> Self {
        self.cors = cors;
        self
    }

    /// What the server allows a client: sizes, times, connections.
    #[must_use]
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// What the engine allows: runs, leases, retention, deliveries.
    #[must_use]
    pub fn engine_limits(mut self, limits: Limits) -> Self {
        self.engine_limits = limits;
        self
    }

    /// Turns requests away whose `Host` or `Origin` is neither loopback nor the public URL's own. A server bound to
    /// loopback does this anyway; switch it on when you mount the service in a server of yours on loopback.
    #[must_use]
    pub fn host_check(mut self, on: bool) -> Self {
        self.host_check = on;
        self
    }

    /// What the public card holds for clients that do not name a version. [`CardForm::All`] is the default; a client
    /// that asks with `A2A-Version: 1.0` gets the card of 1.0 alone in any case.
    #[must_use]
    pub fn card_form(mut self, form: CardForm) -> Self {
        self.card_form = form;
        self
    }

    /// Which protocol bindings the cards name, in which order: clients without a preference take the first that they
    /// support. Every binding is served all the same. By default JSON-RPC and HTTP+JSON, and gRPC only with
    /// [`CardForm::V1_0`], because google-adk refuses a card with gRPC's address on it. gRPC calls reach the first
    /// agent, so the other agents' cards never name it.
    #[must_use]
    pub fn interfaces(mut self, bindings: impl IntoIterator<Item = ProtocolBinding>) -> Self {
        self.interfaces = Some(bindings.into_iter().collect());
        self
    }

    /// What a request without `A2A-Version` means where its method or path does not tell. The spec says 0.3; on a closed
    /// network it may mean 1.0.
    #[must_use]
    pub fn default_version(mut self, dialect: Dialect) -> Self {
        self.default_version = Some(dialect);
        self
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<&str> = self.served.iter().map(ServedItem::name).collect();
        f.debug_struct("ServerBuilder")
            .field("agents", &agents)
            .field("public_url", &self.public_url)
            .finish_non_exhaustive()
    }
}
