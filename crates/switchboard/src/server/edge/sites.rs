//! A finished server at its addresses: every agent mounted with its cards, once for each name that clients on this machine
//! may ask under.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::model::redact::redact_card;
use switchboard_engine::ports::{Clock, Ids};
use switchboard_engine::supervisor::Kind;
use switchboard_engine::system::{RandomIds, SystemClock};

use crate::protocol_binding::ProtocolBinding;
use crate::server::build::{Parts, ServedAgent};
use crate::server::cards::interfaces::InterfaceChoice;
use crate::server::cards::{AgentSettings, CardForm, ServedCards, Subject};
use crate::server::edge::admit::{HostCheck, RequestIds};
use crate::server::edge::authenticate::Authentication;
use crate::server::edge::line_budget::LineBudget;
use crate::server::edge::origins::Origins;
use crate::server::edge::rebased::Rebased;
use crate::server::edge::route::MountPath;
use crate::server::edge::shared::{Mounted, Shared, Site};
use crate::server::edge::tokens;
use crate::server::operator::metrics::Metrics;

impl Parts {
    /// `origins` is where the server is reached if no public URL says otherwise.
    pub(crate) fn share(self, origins: Origins, certified_host: Option<String>) -> Shared {
        let origins = match &self.public_url {
            Some(url) => Origins::fixed(url.to_string().trim_end_matches('/').to_owned()),
            None => origins,
        };
        self.host.serve_artifacts_at(origins.own());
        let base_path = self.public_url.as_ref().map(|url| url.path().trim_end_matches('/').to_owned());
        let own_site = self.site(origins.own(), origins.own());
        let other_sites = origins.others().map(|base| self.site(base, origins.own())).collect();
        if let Authentication::Tokens(tokens) = &self.authentication {
            let every = Duration::from_secs(u64::from(self.limits.tokens_file_look_s.max(1)));
            self.host.supervisor().spawn(Kind::Sweep, tokens::reload_on_change(tokens.clone(), every));
        }
        let prefix: String = RandomIds.uuid(SystemClock.now()).chars().take(8).collect();
        Shared {
            gate: HostCheck::new(self.host_check, self.public_url.as_ref(), certified_host),
            supervisor: self.host.supervisor().clone(),
            operations: self.host.operations(),
            data: self.data,
            origins,
            own_site,
            other_sites,
            authentication: self.authentication,
            cors: self.cors,
            decode_limits: DecodeLimits { parts_max: self.limits.parts_max, ..DecodeLimits::default() },
            limits: self.limits,
            mount: MountPath::new(base_path.unwrap_or_default()),
            default_version: self.default_version,
            metrics: Arc::new(Metrics::new(self.agents.len(), self.since)),
            tls: self.tls,
            request_ids: RequestIds::new(prefix),
            access_log: self.access_log,
            refusal_lines: Arc::new(LineBudget::new()),
        }
    }

    /// Every agent at an address of the server; `own_base` is the one that links to artifacts are written with.
    fn site(&self, base: &str, own_base: &str) -> Site {
        let mount = |place: usize, url: String| Arc::new(self.mount(place, base, own_base, url));
        let root = (!self.agents.is_empty()).then(|| mount(0, base.to_owned()));
        let under = |(place, agent): (usize, &ServedAgent)| mount(place, format!("{base}/agents/{}", agent.name));
        Site { root, agents: self.agents.iter().enumerate().map(under).collect() }
    }

    /// The agent at this place of the list, at an address below that of the server.
    fn mount(&self, place: usize, base: &str, own_base: &str, url: String) -> Mounted {
        let ServedAgent { name, settings, endpoint } = &self.agents[place];
        let endpoint = match base == own_base {
            true => endpoint.clone(),
            false => Arc::new(Rebased::new(endpoint.clone(), own_base, base)),
        };
        let card = redact_card(endpoint.card());
        let choice = choice(settings, self.interfaces.as_deref(), self.card_form, place == 0);
        let interfaces = choice.interfaces(base, &url);
        let (own_url, api_url) = (&format!("{base}/agents/{name}"), &format!("{base}/api/agents/{name}"));
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
        let (downloads, compat) = (self.host.downloads(name), settings.compat.clone());
        let name = name.as_str().into();
        Mounted { name, place, endpoint, downloads, url, interfaces, cards, extensions, compat }
    }
}

/// What decides about the interfaces on an agent's card.
pub(crate) fn choice<'a>(
    settings: &'a AgentSettings,
    server: Option<&'a [ProtocolBinding]>,
    form: CardForm,
    is_default_agent: bool,
) -> InterfaceChoice<'a> {
    let card = &settings.card;
    InterfaceChoice { agent: card.interfaces.as_deref(), server, form: card.form.unwrap_or(form), is_default_agent }
}
