//! The parts of a server that was put together and has no address yet, and how they become what requests are served with.

use std::sync::{Arc, OnceLock};

use http::Uri;
use switchboard_core::call::Endpoint;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::{Clock, Ids};
use switchboard_engine::system::{RandomIds, SystemClock};

use super::authentication::{Authentication, SkillRules};
use super::bindings::compat;
use super::cards::current::{CardPlace, CurrentCards};
use super::cards::interfaces::InterfaceChoice;
use super::cards::signing::{CardSigner, SiteSigner};
use super::compat_clients::CompatClients;
use super::exchange::access_log::AccessLog;
use super::exchange::authorize::Access;
use super::exchange::budgets::Budgets;
use super::exchange::line_budget::LineBudget;
use super::exchange::request_record::RequestIds;
use super::exposure::BuiltExposure;
use super::exposure::origins::{Cors, HostCheck, HostRule, MountPath, Origins};
use super::exposure::rebased::Rebased;
use super::host::Host;
use super::internal::Internal;
use super::internal::dispatch::SelfPoster;
use super::internal::door::CallDoor;
use super::internal::token::InternalTokens;
use super::limits::ServerLimits;
use super::metrics::{Metrics, MetricsSource};
use super::organizations::{OrgPeers, Organizations};
use super::reloads::Reloads;
use super::serve_error::ServeError;
use super::shared::{Mounted, Shared, Site};
use super::telemetry::Telemetry;
use super::transport::tls::Tls;
use super::transport::unread::UnreadWatch;
use crate::agent_settings::{AgentSettings, CardForm};
use crate::outbound::Client;
use crate::protocol_binding::ProtocolBinding;
use crate::signing_keys::SigningKeys;
pub(crate) struct Parts {
    pub(crate) host: Host,
    /// Where the tasks are kept, in words.
    pub(crate) data: String,
    /// Everything that is served, the default agent first.
    pub(crate) agents: Vec<ServedAgent>,
    pub(crate) authentication: Authentication,
    /// What fetches the keys of issuers.
    pub(crate) outbound: Client,
    pub(crate) cors: Cors,
    pub(crate) limits: ServerLimits,
    pub(crate) public_url: Option<Uri>,
    pub(crate) host_check: bool,
    /// What is short enough to be guessed: the API key or the shared secret.
    pub(crate) short_key: Option<&'static str>,
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
    pub(crate) exposure: BuiltExposure,
    pub(crate) access: Access,
    /// None without a secret.
    pub(crate) internal_tokens: Option<InternalTokens>,
    pub(crate) reloads: Reloads,
    /// Set if asynchronous sends are started by posts.
    pub(crate) self_poster: Option<Arc<SelfPoster>>,
    pub(crate) call_door: Option<CallDoor>,
    /// The other apps of organizations.
    pub(crate) org_peers: Option<Arc<dyn OrgPeers>>,
    pub(crate) more_metrics: Vec<MetricsSource>,
    pub(crate) telemetry: Option<Arc<Telemetry>>,
}

/// One agent or mounted endpoint.
pub(crate) struct ServedAgent {
    pub(crate) name: String,
    pub(crate) settings: Arc<AgentSettings>,
    pub(crate) compat_clients: CompatClients,
    pub(crate) endpoint: Arc<dyn Endpoint>,
    pub(crate) skill_rules: Arc<SkillRules>,
}

impl Parts {
    /// `origins` is where the server is reached if no public URL says otherwise.
    pub(crate) fn share(self, origins: Origins, certified_host: Option<String>) -> Shared {
        if let Some(poster) = &self.self_poster {
            poster.served_at(origins.own());
        }
        let origins = match &self.public_url {
            Some(url) => Origins::fixed(url.to_string().trim_end_matches('/').to_owned()),
            None => origins,
        };
        self.host.serve_artifacts_at(origins.own());
        let _ = self.webhook_issuer.set(origins.own().to_owned());
        let base_path = self.public_url.as_ref().map(|url| url.path().trim_end_matches('/').to_owned());
        let signer = self.signing_keys.clone().filter(|_| self.sign_cards).map(|keys| Arc::new(CardSigner::new(keys)));
        let own_site = self.site(origins.own(), origins.own(), signer.as_ref());
        let other_sites = origins.others().map(|base| self.site(base, origins.own(), signer.as_ref())).collect();
        let host_rule = self.host_rule();
        let mut authentication = self.authentication;
        authentication.set_addresses(std::iter::once(origins.own()).chain(origins.others()));
        authentication.keep_fresh(self.host.supervisor(), &self.outbound);
        let organizations = Organizations { secrets: authentication.shared_secret().cloned(), peers: self.org_peers };
        let operations = self.host.operations();
        self.reloads.keep_fresh(self.host.supervisor(), operations.as_ref());
        let cors = self.cors.with_api_key_header(authentication.api_key_header().cloned());
        let budgets = Budgets::new(&self.limits, &self.host.share());
        let prefix: String = RandomIds.uuid(SystemClock.now()).chars().take(8).collect();
        Shared {
            gate: HostCheck::new(host_rule, self.public_url.as_ref(), certified_host)
                .with_hosts(self.exposure.allowed_hosts),
            supervisor: self.host.supervisor().clone(),
            operations,
            data: self.data,
            origins,
            own_site,
            other_sites,
            authentication,
            cors,
            decode_limits: DecodeLimits { parts_max: self.limits.parts_max, ..DecodeLimits::default() },
            limits: self.limits,
            mount: MountPath::new(base_path.unwrap_or_default()),
            default_version: self.default_version,
            metrics: Arc::new(Metrics::new(self.agents.len(), self.since)),
            more_metrics: self.more_metrics,
            tracer: self.telemetry.as_ref().map(|telemetry| telemetry.tracer()),
            telemetry: self.telemetry,
            tls: self.tls,
            request_ids: RequestIds::new(prefix),
            access_log: self.access_log,
            refusal_lines: Arc::new(LineBudget::new()),
            signing_keys: self.signing_keys,
            budgets,
            unread: Arc::new(UnreadWatch::new()),
            is_closed: self.exposure.is_closed,
            operator_key: self.exposure.operator_key,
            open_peers: self.exposure.open_peers,
            internal: Internal {
                tokens: self.internal_tokens,
                clock: Arc::new(SystemClock),
                tasks: self.host.task_processor(),
                continuations: self.host.continuation_processor(),
            },
            call_door: self.call_door,
            organizations,
            rules: self.access.rules,
            shared_tenant: self.access.shared_tenant,
            protect_cards: self.access.protect_cards,
        }
    }

    /// Which hosts and origins are checked. A server that knows its callers by a credential does not depend on it.
    fn host_rule(&self) -> HostRule {
        match self.host_check {
            true => HostRule::Loopback,
            false if self.authentication.is_open() || !self.exposure.allowed_hosts.is_empty() => HostRule::Addresses,
            false => HostRule::Any,
        }
    }

    /// Every agent at an address of the server; `own_base` is the one that links to artifacts are written with.
    fn site(&self, base: &str, own_base: &str, signer: Option<&Arc<CardSigner>>) -> Site {
        let signer = signer.map(|signer| SiteSigner::new(signer.clone(), base));
        let mount = |place: usize, url: String| Arc::new(self.mount(place, base, own_base, url, signer.clone()));
        let root = (!self.agents.is_empty()).then(|| mount(0, base.to_owned()));
        let under = |(place, agent): (usize, &ServedAgent)| mount(place, format!("{base}/agents/{}", agent.name));
        Site { root, agents: self.agents.iter().enumerate().map(under).collect() }
    }

    /// The agent at this place of the list, at an address below that of the server.
    fn mount(&self, place: usize, base: &str, own_base: &str, url: String, signer: Option<SiteSigner>) -> Mounted {
        let ServedAgent { name, settings, compat_clients, endpoint, skill_rules } = &self.agents[place];
        let endpoint = match base == own_base {
            true => endpoint.clone(),
            false => Arc::new(Rebased::new(endpoint.clone(), own_base, base)),
        };
        let choice = InterfaceChoice::of(settings, self.interfaces.as_deref(), self.card_form, place == 0);
        let interfaces = choice.interfaces(base, &url);
        let card_place = CardPlace {
            form: choice.form,
            interfaces: interfaces.clone(),
            url: url.clone(),
            own_url: format!("{base}/agents/{name}"),
            api_url: format!("{base}/api/agents/{name}"),
            compat: settings.compat.clone(),
            compat_cards: &compat::CARDS,
            has_version: settings.card.has_version,
            max_age_s: self.limits.card_max_age_s,
            signer: signer.clone(),
        };
        let cards = CurrentCards::new(card_place, endpoint.card(), self.since);
        let (downloads, compat) = (self.host.downloads(name), settings.compat.clone());
        let name = name.as_str().into();
        let claim = compat.claim.filter(|dialect| dialect.is_compat_rpc());
        let (compat_clients, skill_rules) = (compat_clients.clone(), skill_rules.clone());
        Mounted {
            name,
            place,
            endpoint,
            downloads,
            url,
            interfaces,
            cards,
            signer,
            skill_rules,
            compat,
            compat_clients,
            claim,
        }
    }
}

/// The refusal of a key or a secret that can be guessed, on a server that other machines can reach.
pub(crate) fn short_key(what: &str, why: &str) -> ServeError {
    ServeError::new(format!("{what} is shorter than 16 characters and {why}; use a longer one"))
}
