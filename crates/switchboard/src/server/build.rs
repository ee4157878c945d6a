//! From settings to a server: checks what was set, opens the store, and puts the parts together.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use http::Uri;
use switchboard_core::call::Endpoint;
use switchboard_core::dialect::Dialect;
use switchboard_core::model::{AgentCard, SecurityRequirement, SecurityScheme, Tenant, Timestamp};
use switchboard_engine::ports::Clock;
use switchboard_engine::system::SystemClock;
use switchboard_engine::{Engine, EngineBuilder};

use super::builder::{ServedItem, ServerBuilder};
use super::cards::{AgentSettings, CardForm};
use super::edge::admit::{Cors, is_loopback_host};
use super::edge::authenticate::Authentication;
use super::edge::paths::check_name;
use super::edge::request_log::AccessLog;
use super::edge::shared::choice;
use super::edge::tokens::is_short;
use super::host::{Host, MountedEndpoint};
use super::limits::ServerLimits;
use super::serve_error::ServeError;
use super::serving::Server;
use super::transport::tls::Tls;
use crate::outbound::{AddressPolicy, Client};
use crate::protocol_binding::ProtocolBinding;
use crate::signing_keys::SigningKeys;
use crate::webhooks::{OwnTokens, WebhookSender};

pub(crate) struct Parts {
    pub(crate) host: Host,
    /// Where the tasks are kept, in words.
    pub(crate) data: String,
    /// Everything that is served, the default agent first.
    pub(crate) agents: Vec<ServedAgent>,
    pub(crate) authentication: Authentication,
    pub(crate) cors: Cors,
    pub(crate) limits: ServerLimits,
    pub(crate) public_url: Option<Uri>,
    pub(crate) host_check: bool,
    /// Whether the API key is short enough to be guessed.
    pub(crate) has_short_key: bool,
    /// Whether callers on other machines need no token.
    pub(crate) allow_unauthenticated: bool,
    pub(crate) default_version: Option<Dialect>,
    pub(crate) card_form: CardForm,
    pub(crate) interfaces: Option<Vec<ProtocolBinding>>,
    pub(crate) tls: Option<Tls>,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) signing_keys: Option<SigningKeys>,
    pub(crate) sign_cards: bool,
    /// Who the server is for receivers of webhooks: its address, which is set when it is known.
    pub(crate) webhook_issuer: Arc<OnceLock<String>>,
    pub(crate) since: Timestamp,
}

/// One agent or mounted endpoint.
pub(crate) struct ServedAgent {
    pub(crate) name: String,
    pub(crate) settings: Arc<AgentSettings>,
    pub(crate) endpoint: Arc<dyn Endpoint>,
}

impl ServerBuilder {
    /// Opens the store and puts everything together.
    ///
    /// # Errors
    /// When something is configured wrongly or the store cannot be opened; the error says what and where.
    pub fn build(mut self) -> Result<Server, ServeError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let public_url = self.check()?;
        let is_public = public_url.as_ref().and_then(Uri::host).is_some_and(|host| !is_loopback_host(host));
        let (authentication, has_short_key) = self.authentication(is_public)?;
        let schemes = security_schemes(&authentication, std::mem::take(&mut self.security_schemes));
        let served = std::mem::take(&mut self.served);
        let mut registered = Vec::new();
        let mut mounts = Vec::new();
        for served in served {
            match served {
                ServedItem::Agent(agent) => {
                    mounts.push((agent.slug_name().to_owned(), Arc::new(agent.settings().clone()), None));
                    registered.push(agent.register(|card| declare_security(card, &schemes)));
                }
                ServedItem::Endpoint(name, endpoint) => {
                    mounts.push((name, Arc::new(AgentSettings::of_mounted()), Some(endpoint)));
                }
            }
        }
        let data = match registered.is_empty() {
            false => self.store.place(),
            true => "none here; what is mounted keeps its own".to_owned(),
        };
        let webhook = self.webhook(&clock)?;
        let engine = match registered.is_empty() {
            true => None,
            false => {
                let store = self.store.open(&clock, &self.engine_limits)?;
                let engine = Engine::builder(store).clock(clock.clone()).webhook(Arc::new(webhook));
                let engine = engine.limits(self.engine_limits).log_completed_tasks(self.log_completed_tasks);
                Some(registered.into_iter().fold(engine, EngineBuilder::agent).build())
            }
        };
        let host = Host::new(engine);
        let agents = mounts.into_iter().filter_map(|(name, settings, endpoint)| {
            let endpoint = match endpoint {
                Some(endpoint) => {
                    let mut card = AgentCard::clone(&endpoint.card());
                    declare_security(&mut card, &schemes);
                    Arc::new(MountedEndpoint::new(endpoint, card, host.supervisor().clone()))
                }
                None => host.engine()?.endpoint(&name)?,
            };
            Some(ServedAgent { name, settings, endpoint })
        });
        let agents = agents.collect();
        let parts = Parts {
            host,
            data,
            agents,
            authentication,
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
            signing_keys: self.signing_keys,
            sign_cards: self.sign_cards,
            webhook_issuer: self.webhook_issuer,
            since: clock.now(),
        };
        Ok(Server::new(parts))
    }

    /// Checks what can be wrong with the settings by themselves; gives the public URL.
    fn check(&self) -> Result<Option<Uri>, ServeError> {
        if self.served.is_empty() {
            return Err(ServeError::new("no agent was given; add one with ServerBuilder::agent"));
        }
        let mut names = HashSet::new();
        for served in &self.served {
            check_name("agent slug", served.name()).map_err(ServeError::new)?;
            if !names.insert(served.name()) {
                return Err(ServeError::new(format!("two agents have the slug {:?}", served.name())));
            }
        }
        for tenant in &self.tenants {
            check_name("tenant", tenant).map_err(ServeError::new)?;
        }
        let public_url = self.public_url.as_deref().map(parse_public_url).transpose()?;
        let is_public = public_url.as_ref().and_then(Uri::host).is_some_and(|host| !is_loopback_host(host));
        let is_open = self.tokens.is_none() && self.api_key.is_none() && self.authenticator.is_none();
        if is_public && is_open && !self.allow_unauthenticated {
            let url = self.public_url.as_deref().unwrap_or_default();
            return Err(ServeError::new(format!(
                "the public URL {url:?} invites clients from other machines, and without tokens each of them could use every \
                 agent and read every task; give out tokens (ServerBuilder::tokens), or call \
                 ServerBuilder::allow_unauthenticated"
            )));
        }
        let of_mounted = AgentSettings::of_mounted();
        for (at, served) in self.served.iter().enumerate() {
            let settings = match served {
                ServedItem::Agent(agent) => agent.settings(),
                ServedItem::Endpoint(..) => &of_mounted,
            };
            let choice = choice(settings, self.interfaces.as_deref(), self.card_form, at == 0);
            choice.check(served.name(), public_url.as_ref()).map_err(ServeError::new)?;
        }
        Ok(public_url)
    }

    /// What posts to webhooks.
    fn webhook(&mut self, clock: &Arc<dyn Clock>) -> Result<WebhookSender, ServeError> {
        let policy = AddressPolicy::parse(&self.outbound_allow).map_err(ServeError::new)?;
        let client = Client::builder().policy(policy).build().map_err(|error| ServeError::new(error.to_string()))?;
        let webhook =
            WebhookSender::new(client).https_only(self.webhooks_https_only).challenging(self.challenge_webhooks);
        let webhook = match self.signing_keys.clone() {
            Some(keys) => {
                let issuer = self.webhook_issuer.clone();
                webhook.with_own_tokens(OwnTokens { keys, issuer, clock: clock.clone() })
            }
            None => webhook,
        };
        match self.signing_secrets.take() {
            Some(secrets) if secrets.is_empty() => Err(ServeError::new("the list of signing secrets is empty")),
            Some(secrets) => Ok(webhook.signing(secrets, clock.clone())),
            None => Ok(webhook),
        }
    }

    /// How callers are authenticated, and whether the API key is short enough to be guessed.
    fn authentication(&mut self, is_public: bool) -> Result<(Authentication, bool), ServeError> {
        let (tokens, api_key) = (self.tokens.take(), self.api_key.take());
        if let Some(authenticator) = self.authenticator.take() {
            if tokens.is_some() || api_key.is_some() {
                return Err(ServeError::new(
                    "both an authenticator and tokens or an API key were given, and only one of them can decide who calls; \
                     have the authenticator check the tokens, too",
                ));
            }
            return Ok((Authentication::Custom(authenticator), false));
        }
        let api_key = api_key.map(ApiKey::read).transpose()?;
        let has_short_key = api_key.as_deref().is_some_and(is_short);
        if has_short_key {
            if is_public {
                return Err(short_key("the public URL is not a loopback address"));
            }
            tracing::warn!(
                "the API key is shorter than 16 characters and can be guessed; use it on this machine alone"
            );
        }
        let tokens = match (tokens, &api_key) {
            (Some(tokens), _) if tokens.is_empty() => return Err(ServeError::new("the list of tokens is empty")),
            (tokens, Some(key)) => {
                let all = tokens.unwrap_or_default().with_api_key(key);
                Some(all.map_err(|why| ServeError::new(format!("the API key {why}")))?)
            }
            (tokens, None) => tokens,
        };
        let authentication = match tokens {
            Some(tokens) => Authentication::Tokens(tokens),
            None => Authentication::open(std::mem::take(&mut self.tenants).into_iter().map(Tenant::from).collect()),
        };
        Ok((authentication, has_short_key))
    }
}

/// The security schemes on the cards. Only the application knows what its authenticator accepts, so it declares its
/// own.
fn security_schemes(
    authentication: &Authentication,
    declared: Vec<(String, SecurityScheme)>,
) -> Vec<(String, SecurityScheme)> {
    match authentication {
        Authentication::Open(_) => Vec::new(),
        Authentication::Custom(_) => declared,
        Authentication::Tokens(_) => {
            let bearer = SecurityScheme::Http {
                description: Some("A token given out by the operator of this server".to_owned()),
                scheme: "Bearer".to_owned(),
                bearer_format: None,
            };
            vec![("bearer".to_owned(), bearer)]
        }
    }
}

/// The card states what is really enforced.
fn declare_security(card: &mut AgentCard, schemes: &[(String, SecurityScheme)]) {
    if !schemes.is_empty() {
        card.security_schemes = schemes.to_vec();
        let requirement =
            |(name, _): &(String, SecurityScheme)| SecurityRequirement { schemes: vec![(name.clone(), Vec::new())] };
        card.security_requirements = schemes.iter().map(requirement).collect();
    }
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

/// Where the key that all callers share comes from.
pub(crate) enum ApiKey {
    Given(String),
    /// The variable that holds it.
    Named(String),
}

impl ApiKey {
    /// The key. What is wrong with it is said without it.
    pub(crate) fn read(self) -> Result<String, ServeError> {
        let (key, name) = match self {
            Self::Given(key) => (key, None),
            Self::Named(name) => {
                let missing =
                    || ServeError::new(format!("the variable {name}, which is to hold the API key, is not set"));
                (std::env::var(&name).map_err(|_| missing())?, Some(name))
            }
        };
        // Files that variables are read from end with a line break.
        let key = key.trim();
        if key.is_empty() {
            let place = name.map_or("it".to_owned(), |name| format!("the variable {name}"));
            return Err(ServeError::new(format!("the API key is empty; set {place} to a long random text")));
        }
        Ok(key.to_owned())
    }
}

/// The refusal of an API key that can be guessed, on a server that other machines can reach.
pub(crate) fn short_key(why: &str) -> ServeError {
    ServeError::new(format!("the API key is shorter than 16 characters and {why}; use a longer one"))
}
