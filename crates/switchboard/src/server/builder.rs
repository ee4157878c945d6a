//! Putting a server together: agents, a store, who may call, and the address.

use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
#[cfg(feature = "sqlite")]
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Uri;
use switchboard_core::dialect::Dialect;
use switchboard_core::model::{AgentCard, SecurityRequirement, SecurityScheme, Tenant, Timestamp};
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::{MemoryStore, TASKS_MAX_DEFAULT as MEMORY_TASKS_MAX_DEFAULT};
use switchboard_engine::ports::{Clock, Store};
use switchboard_engine::system::SystemClock;
use switchboard_engine::{Engine, Registered};
use tokio::net::TcpListener;

use crate::agent::AgentBuilder;
use crate::local::Local;
use crate::outbound::{GuardedClient, OutboundPolicy, SigningSecrets};
use crate::server::api_key::{ApiKey, short_key};
use crate::server::cards::CardForm;
use crate::server::cards::agent_settings::AgentSettings;
use crate::server::cards::interfaces::ProtocolBinding;
use crate::server::edge::access_log::AccessLog;
use crate::server::edge::admit::is_loopback_host;
use crate::server::edge::authenticate::{Door, Tokens, is_short};
use crate::server::edge::cors::Cors;
use crate::server::edge::origins::{Origins, reachable};
use crate::server::edge::route::check_name;
use crate::server::edge::service::A2aService;
use crate::server::edge::sites::choice;
use crate::server::handle::ServerHandle;
use crate::server::limits::ServerLimits;
use crate::server::serve_error::{ServeError, ServeErrorKind};
use crate::server::transport::listener::Bound;
use crate::server::transport::tls::Tls;

enum StoreChoice {
    /// So many tasks at most.
    Memory(usize),
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf, switchboard_stores::sqlite::SqliteOptions),
    Given(Arc<dyn Store>),
}

/// Puts a [`Server`] together.
pub struct ServerBuilder {
    agents: Vec<AgentBuilder>,
    store: StoreChoice,
    public_url: Option<String>,
    tokens: Option<Tokens>,
    api_key: Option<ApiKey>,
    allow_unauthenticated: bool,
    tenants: Vec<String>,
    outbound_allow: Vec<String>,
    signing_secrets: Option<SigningSecrets>,
    cors: Cors,
    limits: ServerLimits,
    engine_limits: Limits,
    host_check: bool,
    default_version: Option<Dialect>,
    card_form: CardForm,
    interfaces: Option<Vec<ProtocolBinding>>,
    tls: Option<Tls>,
    access_log: Option<AccessLog>,
    log_completed_tasks: bool,
}

impl ServerBuilder {
    /// How many tasks [`ServerBuilder::memory`] keeps.
    pub const MEMORY_TASKS_MAX_DEFAULT: usize = MEMORY_TASKS_MAX_DEFAULT;

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

    /// Adds an agent, served under `/agents/{slug}`. The first one is the default and also served at the root.
    #[must_use]
    pub fn agent(mut self, agent: AgentBuilder) -> Self {
        self.agents.push(agent);
        self
    }

    /// Keeps tasks in memory: at most 10,000, or [`Limits::retention_tasks_max`](crate::Limits) if that is fewer; gone when
    /// the process stops. This is the default.
    #[must_use]
    pub fn memory(self) -> Self {
        self.memory_holding(MEMORY_TASKS_MAX_DEFAULT)
    }

    /// As [`ServerBuilder::memory`], with room for `tasks_max` tasks. One more pushes out the oldest that has ended.
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

    /// Speaks TLS on the port, and nothing else: [`Server::bind`] with this certificate and key. A service that you mount
    /// in a server of yours ([`Server::into_service`]) leaves it to that server.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Only holders of one of these tokens may call.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Only holders of this key may call, or of one of the [`tokens`](Self::tokens). All of them are the same principal,
    /// `api-key`, and see the same tasks. A key of fewer than 16 characters can be guessed: it is taken, with a warning, only
    /// while nobody but this machine can reach the server.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(ApiKey::Given(key.into()));
        self
    }

    /// As [`api_key`](Self::api_key), with the key in an environment variable of this name, which is read when the server is
    /// built.
    #[must_use]
    pub fn api_key_env(mut self, name: impl Into<String>) -> Self {
        self.api_key = Some(ApiKey::Named(name.into()));
        self
    }

    /// Lets every client call that reaches a public URL beyond this machine, without a token. All of them are one
    /// principal and share all tasks. Say so where an app of yours, or a proxy, has checked who calls.
    #[must_use]
    pub fn allow_unauthenticated(mut self, allowed: bool) -> Self {
        self.allow_unauthenticated = allowed;
        self
    }

    /// Tenants that callers without a token may name. The first is the default one.
    #[must_use]
    pub fn tenants<T: Into<String>>(mut self, tenants: impl IntoIterator<Item = T>) -> Self {
        self.tenants = tenants.into_iter().map(Into::into).collect();
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

    /// What the public card holds for those who do not say which version they speak. [`CardForm::All`] is the default;
    /// whoever asks with `A2A-Version: 1.0` gets the card of 1.0 alone in any case.
    #[must_use]
    pub fn card_form(mut self, form: CardForm) -> Self {
        self.card_form = form;
        self
    }

    /// Which protocol bindings the cards name, in which order: clients without a wish of their own take the first they
    /// can. Every binding is served all the same. By default JSON-RPC and HTTP+JSON, and gRPC only with
    /// [`CardForm::V1_0`], because google-adk refuses a card with gRPC's address on it. gRPC calls reach the first agent,
    /// so the other agents' cards never name it.
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

    /// Opens the store and puts everything together.
    ///
    /// # Errors
    /// When something is configured wrongly or the store cannot be opened; the error says what and where.
    pub fn build(self) -> Result<Server, ServeError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        if self.agents.is_empty() {
            return Err(ServeError::new("no agent was given; add one with ServerBuilder::agent"));
        }
        let mut names = HashSet::new();
        for agent in &self.agents {
            check_name("agent slug", agent.slug_name()).map_err(ServeError::new)?;
            if !names.insert(agent.slug_name().to_owned()) {
                return Err(ServeError::new(format!("two agents have the slug {:?}", agent.slug_name())));
            }
        }
        for tenant in &self.tenants {
            check_name("tenant", tenant).map_err(ServeError::new)?;
        }
        let public_url = self.public_url.as_deref().map(parse_public_url).transpose()?;
        let is_public = public_url.as_ref().and_then(Uri::host).is_some_and(|host| !is_loopback_host(host));
        if is_public && self.tokens.is_none() && self.api_key.is_none() && !self.allow_unauthenticated {
            let url = self.public_url.unwrap_or_default();
            return Err(ServeError::new(format!(
                "the public URL {url:?} invites clients from other machines, and without tokens each of them could use every \
                 agent and read every task; give out tokens (ServerBuilder::tokens), or call \
                 ServerBuilder::allow_unauthenticated"
            )));
        }
        for (at, agent) in self.agents.iter().enumerate() {
            let choice = choice(agent.settings(), self.interfaces.as_deref(), self.card_form, at == 0);
            choice.check(agent.slug_name(), public_url.as_ref()).map_err(ServeError::new)?;
        }
        let policy = OutboundPolicy::parse(&self.outbound_allow).map_err(ServeError::new)?;
        let webhook = GuardedClient::new(policy).map_err(ServeError::new)?;
        let webhook = match self.signing_secrets {
            Some(secrets) if secrets.is_empty() => return Err(ServeError::new("the list of signing secrets is empty")),
            Some(secrets) => webhook.signing(secrets, clock.clone()),
            None => webhook,
        };
        let data = match &self.store {
            StoreChoice::Memory(_) => "in memory, gone when it stops".to_owned(),
            #[cfg(feature = "sqlite")]
            StoreChoice::Sqlite(path, _) => path.display().to_string(),
            StoreChoice::Given(_) => "in a store of its own".to_owned(),
        };
        let store: Arc<dyn Store> = match self.store {
            StoreChoice::Memory(tasks_max) => {
                // One that prunes in batches must be able to hold the task that is too many.
                let Limits { retention_tasks_max, retention_tasks_batch, .. } = self.engine_limits;
                let kept_max = retention_tasks_max.saturating_add(retention_tasks_batch);
                let kept_max = usize::try_from(kept_max).unwrap_or(usize::MAX);
                Arc::new(MemoryStore::new(clock.clone(), tasks_max.min(kept_max)))
            }
            #[cfg(feature = "sqlite")]
            StoreChoice::Sqlite(path, options) => {
                let opened = switchboard_stores::sqlite::SqliteStore::open(&path, clock.clone(), options);
                Arc::new(opened.map_err(ServeError::store)?)
            }
            StoreChoice::Given(store) => store,
        };
        let api_key = self.api_key.map(ApiKey::read).transpose()?;
        let has_short_key = api_key.as_deref().is_some_and(is_short);
        if has_short_key {
            if is_public {
                return Err(short_key("the public URL is not a loopback address"));
            }
            tracing::warn!(
                "the API key is shorter than 16 characters and can be guessed; use it on this machine alone"
            );
        }
        let tokens = match (self.tokens, &api_key) {
            (Some(tokens), _) if tokens.is_empty() => return Err(ServeError::new("the list of tokens is empty")),
            (tokens, Some(key)) => {
                let all = tokens.unwrap_or_default().with_api_key(key);
                Some(all.map_err(|why| ServeError::new(format!("the API key {why}")))?)
            }
            (tokens, None) => tokens,
        };
        let door = match tokens {
            Some(tokens) => Door::Tokens(tokens),
            None => Door::open(self.tenants.into_iter().map(Tenant::from).collect()),
        };
        let engine = Engine::builder(store).clock(clock.clone()).webhook(Arc::new(webhook));
        let mut engine = engine.limits(self.engine_limits).log_completed_tasks(self.log_completed_tasks);
        let served = |agent: &AgentBuilder| (agent.slug_name().to_owned(), Arc::new(agent.settings().clone()));
        let order = self.agents.iter().map(served).collect();
        let open = door.is_open();
        for agent in self.agents {
            let registered: Registered = agent.register(|card| declare_security(card, open));
            engine = engine.agent(registered);
        }
        let parts = Parts {
            engine: engine.build(),
            data,
            order,
            door,
            cors: self.cors,
            limits: self.limits,
            public_url,
            // With a key that can be guessed, only this machine may call, however the service is mounted.
            host_check: self.host_check || has_short_key,
            has_short_key,
            allow_unauthenticated: self.allow_unauthenticated,
            default_version: self.default_version,
            card_form: self.card_form,
            interfaces: self.interfaces,
            tls: self.tls,
            access_log: self.access_log,
            since: clock.now(),
        };
        Ok(Server { parts, started: Arc::new(AtomicBool::new(false)) })
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<&str> = self.agents.iter().map(AgentBuilder::slug_name).collect();
        f.debug_struct("ServerBuilder")
            .field("agents", &agents)
            .field("public_url", &self.public_url)
            .finish_non_exhaustive()
    }
}

pub(crate) struct Parts {
    pub(crate) engine: Engine,
    /// Where the tasks are kept, in words.
    pub(crate) data: String,
    /// Each agent and how it is served, the default one first.
    pub(crate) order: Vec<(String, Arc<AgentSettings>)>,
    pub(crate) door: Door,
    pub(crate) cors: Cors,
    pub(crate) limits: ServerLimits,
    pub(crate) public_url: Option<Uri>,
    pub(crate) host_check: bool,
    /// Whether the one key of all callers can be guessed.
    pub(crate) has_short_key: bool,
    /// Whether callers on other machines need no token.
    pub(crate) allow_unauthenticated: bool,
    pub(crate) default_version: Option<Dialect>,
    pub(crate) card_form: CardForm,
    pub(crate) interfaces: Option<Vec<ProtocolBinding>>,
    pub(crate) tls: Option<Tls>,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) since: Timestamp,
}

/// Agents, a store and the rules for calling them; not yet at any address.
pub struct Server {
    parts: Parts,
    started: Arc<AtomicBool>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<&str> = self.parts.order.iter().map(|(slug, _)| slug.as_str()).collect();
        f.debug_struct("Server").field("agents", &agents).finish_non_exhaustive()
    }
}

impl Server {
    /// Begins with no agent and the memory store.
    #[must_use]
    pub fn builder() -> ServerBuilder {
        ServerBuilder {
            agents: Vec::new(),
            store: StoreChoice::Memory(MEMORY_TASKS_MAX_DEFAULT),
            public_url: None,
            tokens: None,
            api_key: None,
            allow_unauthenticated: false,
            tenants: Vec::new(),
            outbound_allow: Vec::new(),
            signing_secrets: None,
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
        }
    }

    /// Takes the port.
    ///
    /// # Errors
    /// When the address cannot be had. Also when other machines can reach it and callers need no token, unless
    /// [`ServerBuilder::allow_unauthenticated`] says that this is meant.
    pub async fn bind(mut self, addr: SocketAddr) -> Result<Bound, ServeError> {
        let is_open = matches!(self.parts.door, Door::Open(_)) && !self.parts.allow_unauthenticated;
        if is_open && !addr.ip().to_canonical().is_loopback() {
            return Err(ServeError::new(format!(
                "{addr} can be reached from other machines, and every client that reaches it could use every agent and read \
                 every task; give out tokens (ServerBuilder::tokens), or call ServerBuilder::allow_unauthenticated"
            )));
        }
        if self.parts.has_short_key && !addr.ip().is_loopback() {
            return Err(short_key(&format!("{addr} is not a loopback address")));
        }
        let cannot = |error: std::io::Error| {
            ServeError::caused(ServeErrorKind::Address, format!("cannot listen on {addr}: {error}"), error)
        };
        let listener = TcpListener::bind(addr).await.map_err(cannot)?;
        let local_addr = listener.local_addr().map_err(cannot)?;
        if local_addr.ip().is_loopback() {
            self.parts.host_check = true;
        }
        self.start();
        let (url, certified_host) = match &self.parts.tls {
            None => (format!("http://{}", reachable(local_addr)), None),
            Some(tls) => secure_url(tls, local_addr, self.parts.public_url.as_ref()),
        };
        let origins = Origins::of_port(url.clone(), local_addr.port());
        let shared = Arc::new(self.parts.share(origins, certified_host));
        Ok(Bound::new(listener, local_addr, url, shared))
    }

    /// The server as a tower service, for a server of yours. Needs a tokio runtime.
    ///
    /// The listener is yours, and so is the decision who can reach it: nothing here knows its address, so only a public URL
    /// on another machine is refused without [tokens](ServerBuilder::tokens).
    ///
    /// # Errors
    /// Without [`ServerBuilder::public_url`]: a service does not know the address at which it is mounted, and its cards
    /// must name it.
    pub fn into_service(self) -> Result<A2aService, ServeError> {
        let Some(url) = self.parts.public_url.as_ref().map(Uri::to_string) else {
            return Err(ServeError::new(
                "the cards must name the address at which clients reach this server, and a mounted server does not know \
                 it; set ServerBuilder::public_url, such as \"https://agents.example/a2a\", with the path of the mount",
            ));
        };
        self.start();
        Ok(A2aService::new(Arc::new(self.parts.share(Origins::fixed(url), None))))
    }

    /// The server as an axum router, to be nested in an app of yours or merged with it. Take a [handle](Self::handle)
    /// first, so that the app can stop it in order.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use switchboard::{AgentBuilder, Server, Turn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
    /// let agents = Server::builder().agent(echo).public_url("http://127.0.0.1:3000/a2a").build()?;
    /// let handle = agents.handle();
    /// let app: Router = Router::new().route("/", get(|| async { "my app" })).nest("/a2a", agents.into_router()?);
    /// // axum::serve(listener, app).with_graceful_shutdown(handle.drain_when(switchboard::stop_signal())).await?;
    /// handle.shutdown(std::time::Duration::from_secs(10)).await;
    /// # drop(app);
    /// # Ok::<(), switchboard::ServeError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// The listener is yours: [`Server::bind`] refuses an address that other machines can reach if callers need no token,
    /// and here nothing can. Give out [tokens](ServerBuilder::tokens) before you listen beyond this machine.
    ///
    /// **Nested** under a path (`Router::nest`), it answers everything below that path; the public URL ends with the same
    /// path. **Merged** (`Router::merge`), it answers what no route of the app does: it is the fallback of the app, which
    /// therefore cannot have another one (axum panics), and a route of the app at `/` hides the JSON-RPC endpoint there
    /// (clients find `/rpc` and `/a2a`, too). Requests that come by another path than the public URL's are answered, and
    /// the log says once that cards and mount disagree.
    ///
    /// # Errors
    /// As [`Server::into_service`].
    pub fn into_router<S>(self) -> Result<axum::Router<S>, ServeError>
    where
        S: Clone + Send + Sync + 'static,
    {
        Ok(axum::Router::new().fallback_service(self.into_service()?))
    }

    /// Stops this server in order, wherever it is mounted by then.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle::new(self.parts.engine.clone())
    }

    /// An agent of this server, called in this process without a socket.
    #[must_use]
    pub fn local(&self, slug: &str) -> Option<Local> {
        self.start();
        self.parts.engine.endpoint(slug).map(Local::new)
    }

    /// The engine behind it, for those who need more.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.parts.engine
    }

    /// Ends what [`Server::local`] started: as [`ServerHandle::shutdown`].
    pub async fn shutdown(&self, grace: Duration) {
        self.handle().shutdown(grace).await;
    }

    fn start(&self) {
        if !self.started.swap(true, Ordering::AcqRel) {
            self.parts.engine.start();
        }
    }
}

/// The card states what is really enforced.
fn declare_security(card: &mut AgentCard, open: bool) {
    if !open {
        let bearer = SecurityScheme::Http {
            description: Some("A token given out by the operator of this server".to_owned()),
            scheme: "Bearer".to_owned(),
            bearer_format: None,
        };
        card.security_schemes = vec![("bearer".to_owned(), bearer)];
        let requirement = SecurityRequirement { schemes: vec![("bearer".to_owned(), Vec::new())] };
        card.security_requirements = vec![requirement];
    }
}

/// The URL of a port that speaks TLS, and the host in it if the certificate is for it. What clients are likely to stumble
/// over is said in the log.
fn secure_url(tls: &Tls, local_addr: SocketAddr, public_url: Option<&Uri>) -> (String, Option<String>) {
    let addr = reachable(local_addr);
    let host = tls.host_at(addr.ip());
    let url = match &host {
        Some(host) => format!("https://{host}:{}", addr.port()),
        None => format!("https://{addr}"),
    };
    if tls.key_is_exposed() {
        tracing::warn!("everybody on this machine can read the private key; make its file readable to its owner alone");
    }
    match public_url {
        None if host.is_none() => {
            tracing::warn!(url, "the certificate names no host, so clients will refuse it at this URL");
        }
        Some(public) if public.scheme_str() == Some("http") => {
            tracing::warn!(%public, "the port speaks TLS, and the public URL in the cards begins with http://");
        }
        Some(_) | None => {}
    }
    (url, host)
}

fn parse_public_url(url: &str) -> Result<Uri, ServeError> {
    let wrong = |why: &str| ServeError::new(format!("public URL {url:?} {why}"));
    let parsed: Uri = url.parse().map_err(|_| wrong("is not a URL"))?;
    if !matches!(parsed.scheme_str(), Some("http" | "https")) || parsed.host().is_none() {
        return Err(wrong("must begin with http:// or https:// and name a host"));
    }
    if parsed.query().is_some() {
        return Err(wrong("must not have a query"));
    }
    Ok(parsed)
}
