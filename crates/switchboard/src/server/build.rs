//! From settings to a server: checks what was set, opens the store, and puts the parts together.

use std::collections::HashSet;
use std::sync::Arc;

use http::Uri;
use switchboard_core::model::{AgentCard, Tenant};
use switchboard_engine::ports::Clock;
use switchboard_engine::system::SystemClock;
use switchboard_engine::{Engine, EngineBuilder};

use super::authentication::tokens::is_short;
use super::authentication::{Authentication, Schemes, SkillRules, Verifiers};
use super::builder::authentication::ApiKey;
use super::builder::{ServedItem, ServerBuilder};
use super::cards::interfaces::InterfaceChoice;
use super::compat_clients::CompatClients;
use super::exchange::authorize::Rules;
use super::host::{Host, MountedEndpoint};
use super::parts::{Parts, ServedAgent, short_key};
use super::reloads::Reloads;
use super::serve_error::ServeError;
use super::serving::Server;
use super::telemetry::Telemetry;
use super::transport::tls::Tls;
use super::uri::{check_name, is_loopback_host};
use crate::agent_settings::AgentSettings;
use crate::outbound::{AddressPolicy, Client};
use crate::signing_keys::SigningKeys;
use crate::webhooks::{OwnTokens, WebhookSender};

impl ServerBuilder {
    /// Opens the store and puts everything together.
    ///
    /// # Errors
    /// When something is configured wrongly or the store cannot be opened; the error says what and where.
    pub fn build(mut self) -> Result<Server, ServeError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let public_url = self.check()?;
        let is_public = public_url.as_ref().and_then(Uri::host).is_some_and(|host| !is_loopback_host(host));
        let (authentication, short_key) = self.authentication(is_public)?;
        let exposure =
            self.exposure.build(authentication.is_open(), self.allow_unauthenticated, public_url.as_ref())?;
        self.access.check(authentication.is_open())?;
        let schemes = Arc::new(authentication.schemes(std::mem::take(&mut self.security_schemes)));
        let served = std::mem::take(&mut self.served);
        let mut registered = Vec::new();
        let mut mounts = Vec::new();
        for served in served {
            match served {
                ServedItem::Agent(agent) => {
                    let rules = SkillRules::new(&schemes, agent.skills())
                        .map_err(|why| ServeError::new(format!("agent {:?}, {why}", agent.slug_name())))?;
                    let settings = Arc::new(agent.settings().clone());
                    mounts.push((agent.slug_name().to_owned(), settings, Arc::new(rules), None));
                    let declared = schemes.clone();
                    registered.push(agent.register(Arc::new(move |card| declared.declare(card))));
                }
                ServedItem::Endpoint(name, endpoint) => {
                    let settings = Arc::new(AgentSettings::of_mounted());
                    mounts.push((name, settings, Arc::default(), Some(endpoint)));
                }
            }
        }
        let data = match registered.is_empty() {
            false => self.store.place(),
            true => "none here; what is mounted keeps its own".to_owned(),
        };
        let outbound = self.outbound()?;
        let webhook = self.webhook(outbound.clone(), &clock)?;
        let (internal_tokens, self_poster) =
            self.self_fire.build(self.exposure.production, self.tls.as_ref(), &clock)?;
        let telemetry = self.otlp.map(Telemetry::new).transpose()?;
        let engine = match registered.is_empty() {
            true => None,
            false => {
                let limits = self.store.adapt(self.engine_limits);
                let opened = self.store.open(&clock, &limits)?;
                let engine = Engine::builder(opened.store).clock(clock.clone()).webhook(Arc::new(webhook));
                let engine = match opened.hints {
                    Some(hints) => engine.hints(hints),
                    None => engine,
                };
                let engine = match &self_poster {
                    Some(poster) => engine.self_fire(poster.clone()),
                    None => engine,
                };
                let engine = engine.limits(limits).log_completed_tasks(self.log_completed_tasks);
                let engine = engine.audit(self.audit);
                let engine = match &telemetry {
                    Some(telemetry) => engine.tracer(telemetry.tracer()),
                    None => engine,
                };
                let engine = match self.callees {
                    Some(callees) => engine.callees(callees),
                    None => engine,
                };
                Some(registered.into_iter().fold(engine, EngineBuilder::agent).build())
            }
        };
        let host = Host::new(engine, telemetry.clone());
        let agents = mounts.into_iter().filter_map(|(name, settings, skill_rules, endpoint)| {
            let endpoint = match endpoint {
                Some(endpoint) => {
                    let mut card = AgentCard::clone(&endpoint.card());
                    schemes.declare(&mut card);
                    schemes.strip_skills(&mut card);
                    Arc::new(MountedEndpoint::new(endpoint, card, host.supervisor().clone()))
                }
                None => host.engine()?.endpoint(&name)?,
            };
            Some(ServedAgent { name, settings, compat_clients: CompatClients::default(), endpoint, skill_rules })
        });
        let agents = agents.collect();
        let mut sources = authentication.sources();
        sources.extend(self.access.rules.as_ref().map(Rules::source));
        sources.extend(self.signing_keys.as_ref().map(SigningKeys::source));
        let reloads = Reloads::new(sources, self.tls.as_ref().map(Tls::source), &self.limits);
        let parts = Parts {
            host,
            data,
            agents,
            authentication,
            outbound,
            cors: self.cors,
            limits: self.limits,
            public_url,
            // With a key that can be guessed, only this machine may call, however the service is mounted.
            host_check: self.host_check || short_key.is_some(),
            short_key,
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
            exposure,
            access: self.access,
            internal_tokens,
            reloads,
            self_poster,
            call_door: self.call_door,
            org_peers: self.org_peers,
            more_metrics: self.more_metrics,
            telemetry,
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
        let is_open = !self.has_credentials() && self.authenticator.is_none();
        let is_closed = self.exposure.closes(is_open, self.allow_unauthenticated);
        if is_public && is_open && !is_closed && !self.allow_unauthenticated {
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
            let choice = InterfaceChoice::of(settings, self.interfaces.as_deref(), self.card_form, at == 0);
            choice.check(served.name(), public_url.as_ref()).map_err(ServeError::new)?;
        }
        Ok(public_url)
    }

    /// What calls other servers.
    fn outbound(&self) -> Result<Client, ServeError> {
        let policy = AddressPolicy::parse(&self.outbound_allow).map_err(ServeError::new)?;
        Client::builder().policy(policy).build().map_err(|error| ServeError::new(error.to_string()))
    }

    /// What posts to webhooks.
    fn webhook(&mut self, client: Client, clock: &Arc<dyn Clock>) -> Result<WebhookSender, ServeError> {
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

    /// Whether something is configured that callers can prove themselves by.
    fn has_credentials(&self) -> bool {
        self.takes_certificates()
            || self.tokens.is_some()
            || self.api_key.is_some()
            || self.shared_secret.is_some()
            || !self.issuers.is_empty()
    }

    fn takes_certificates(&self) -> bool {
        self.client_certificates || self.tls.as_ref().is_some_and(Tls::asks_clients)
    }

    /// How callers are authenticated, and which key or secret is short enough to be guessed.
    fn authentication(&mut self, is_public: bool) -> Result<(Authentication, Option<&'static str>), ServeError> {
        if let Some(authenticator) = self.authenticator.take() {
            if self.has_credentials() {
                return Err(ServeError::new(
                    "both an authenticator and tokens or an API key were given, and only one of them can decide who calls; \
                     have the authenticator check the tokens, too",
                ));
            }
            return Ok((Authentication::Custom(authenticator), None));
        }
        let mut short_one = None;
        let mut short = |what: &'static str, is_short: bool| {
            short_one = is_short.then_some(what).or(short_one);
            if is_short && is_public {
                return Err(short_key(what, "the public URL is not a loopback address"));
            }
            if is_short {
                tracing::warn!("{what} is shorter than 16 characters and can be guessed; use it on this machine alone");
            }
            Ok(())
        };
        let api_key = self.api_key.take().map(ApiKey::read).transpose()?;
        short("the API key", api_key.as_deref().is_some_and(is_short))?;
        let tokens = match (self.tokens.take(), &api_key) {
            (Some(tokens), _) if tokens.is_empty() => return Err(ServeError::new("the list of tokens is empty")),
            (tokens, Some(key)) => {
                let all = tokens.unwrap_or_default().with_api_key(key);
                Some(all.map_err(|why| ServeError::new(format!("the API key {why}")))?)
            }
            (tokens, None) => tokens,
        };
        let takes_tokens = tokens.is_some();
        let mut verifiers = Verifiers::default();
        if let Some(tokens) = tokens {
            verifiers.add_tokens(tokens);
        }
        if let Some(secret) = self.shared_secret.take() {
            if secret.is_empty() {
                return Err(ServeError::new("the shared secret is empty; use a long random text"));
            }
            short("the shared secret", secret.is_short())?;
            verifiers.add_shared_secret(secret);
        }
        for issuer in std::mem::take(&mut self.issuers) {
            verifiers.add_issuer(issuer).map_err(ServeError::new)?;
        }
        let places = std::mem::take(&mut self.api_key_places).resolve().map_err(ServeError::new)?;
        if (self.basic || places.is_some()) && !takes_tokens {
            return Err(ServeError::new(
                "HTTP Basic and API keys take the tokens of this server, and it has none; give out tokens \
                 (ServerBuilder::tokens)",
            ));
        }
        if self.basic {
            verifiers.add_basic();
        }
        if let Some(places) = places {
            verifiers.add_api_keys(places);
        }
        if self.takes_certificates() {
            verifiers.add_certificates();
        }
        let requirements = std::mem::take(&mut self.requirements);
        if verifiers.is_empty() {
            if let Some(requirement) = requirements.into_iter().next() {
                let why = Schemes::default().resolve(requirement).err().unwrap_or_default();
                return Err(ServeError::new(why));
            }
            let tenants = std::mem::take(&mut self.tenants).into_iter().map(Tenant::from).collect();
            return Ok((Authentication::open(tenants), short_one));
        }
        verifiers.require(requirements).map_err(ServeError::new)?;
        Ok((Authentication::Configured(Box::new(verifiers)), short_one))
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
