//! A finished server at its addresses: every agent mounted with its cards, once for each name that clients on this machine
//! may ask under.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::Endpoint;
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::model::redact::redact_card;
use switchboard_engine::ports::{Clock, Ids};
use switchboard_engine::supervisor::Kind;
use switchboard_engine::system::{RandomIds, SystemClock};

use crate::server::builder::Parts;
use crate::server::cards::agent_settings::AgentSettings;
use crate::server::cards::interfaces::{Choice, ProtocolBinding};
use crate::server::cards::{CardForm, ServedCards, Subject};
use crate::server::downloads;
use crate::server::edge::admit::Gate;
use crate::server::edge::authenticate::{self, Door};
use crate::server::edge::line_budget::LineBudget;
use crate::server::edge::mount_path::MountPath;
use crate::server::edge::origins::Origins;
use crate::server::edge::rebased::Rebased;
use crate::server::edge::shared::{Mounted, RequestIds, Shared, Site};
use crate::server::operator::metrics::Metrics;

impl Parts {
    /// `origins` is where the server is reached if no public URL says otherwise.
    pub(crate) fn share(self, origins: Origins, certified_host: Option<String>) -> Shared {
        let origins = match &self.public_url {
            Some(url) => Origins::fixed(url.to_string().trim_end_matches('/').to_owned()),
            None => origins,
        };
        downloads::announce(&self.engine, origins.own());
        let base_path = self.public_url.as_ref().map(|url| url.path().trim_end_matches('/').to_owned());
        let own_site = self.site(origins.own(), origins.own());
        let other_sites = origins.others().map(|base| self.site(base, origins.own())).collect();
        if let Door::Tokens(tokens) = &self.door {
            let every = Duration::from_secs(u64::from(self.limits.tokens_file_look_s.max(1)));
            self.engine.supervisor().spawn(Kind::Sweep, authenticate::keep_fresh(tokens.clone(), every));
        }
        let prefix: String = RandomIds.uuid(SystemClock.now()).chars().take(8).collect();
        Shared {
            gate: Gate::new(self.host_check, self.public_url.as_ref(), certified_host),
            engine: self.engine,
            data: self.data,
            origins,
            own_site,
            other_sites,
            door: self.door,
            cors: self.cors,
            decode_limits: DecodeLimits { parts_max: self.limits.parts_max, ..DecodeLimits::default() },
            limits: self.limits,
            mount: MountPath::new(base_path.unwrap_or_default()),
            default_version: self.default_version,
            metrics: Arc::new(Metrics::new(self.order.len(), self.since)),
            tls: self.tls,
            request_ids: RequestIds::new(prefix),
            access_log: self.access_log,
            refusal_lines: Arc::new(LineBudget::new()),
        }
    }

    /// Every agent at an address of the server; `own_base` is the one that links to artifacts are written with.
    fn site(&self, base: &str, own_base: &str) -> Site {
        let mount = |(slug, settings): &(String, Arc<AgentSettings>), url: String| {
            let endpoint = self.engine.endpoint(slug)?;
            let endpoint = if base == own_base { endpoint } else { Arc::new(Rebased::new(endpoint, own_base, base)) };
            Some(Arc::new(self.mount(slug, settings, endpoint, base, url)))
        };
        let root = self.order.first().and_then(|agent| mount(agent, base.to_owned()));
        let under = |agent: &(String, Arc<AgentSettings>)| mount(agent, format!("{base}/agents/{}", agent.0));
        Site { root, agents: self.order.iter().filter_map(under).collect() }
    }

    /// An agent at an address below that of the server.
    fn mount(
        &self,
        slug: &str,
        settings: &AgentSettings,
        endpoint: Arc<dyn Endpoint>,
        base: &str,
        url: String,
    ) -> Mounted {
        let card = redact_card(endpoint.card());
        let is_default_agent = self.order.first().is_some_and(|(first, _)| first == slug);
        let choice = choice(settings, self.interfaces.as_deref(), self.card_form, is_default_agent);
        let interfaces = choice.interfaces(base, &url);
        let (own_url, api_url) = (&format!("{base}/agents/{slug}"), &format!("{base}/api/agents/{slug}"));
        let subject = Subject {
            card: &card,
            interfaces: &interfaces,
            url: &url,
            own_url,
            api_url,
            compat: &settings.compat,
            has_version: settings.card.has_version,
        };
        let cards = ServedCards::new(choice.form, &subject, self.since, self.limits.card_max_age_s);
        let extensions = card.capabilities.extensions.iter().map(|extension| extension.uri.clone()).collect();
        let compat = settings.compat.clone();
        let place = self.order.iter().position(|(known, _)| known == slug).unwrap_or_default();
        Mounted { name: slug.into(), place, endpoint, url, interfaces, cards, extensions, compat }
    }
}

/// What decides about the interfaces on an agent's card.
pub(crate) fn choice<'a>(
    settings: &'a AgentSettings,
    server: Option<&'a [ProtocolBinding]>,
    form: CardForm,
    is_default_agent: bool,
) -> Choice<'a> {
    let card = &settings.card;
    Choice { agent: card.interfaces.as_deref(), server, form: card.form.unwrap_or(form), is_default_agent }
}
