//! Which protocol bindings a card names, in which order, and at which addresses.
//!
//! Every binding is served, named on the card or not; this decides only what clients are told. The specification (5.2)
//! wants all of them on the card. The default leaves gRPC off it, because google-adk refuses a card with an interface
//! whose URL is not an http or https URL, and the address of a gRPC interface is a host and a port: decision 0011.

use http::Uri;
use switchboard_core::model::AgentInterface;

use crate::agent_settings::{AgentSettings, CardForm};
use crate::protocol_binding::ProtocolBinding;

/// What the card of an agent names.
#[derive(Clone, Copy)]
pub(crate) struct InterfaceChoice<'a> {
    /// What the agent's own settings say.
    pub(crate) agent: Option<&'a [ProtocolBinding]>,
    /// What the server's settings say.
    pub(crate) server: Option<&'a [ProtocolBinding]>,
    pub(crate) form: CardForm,
    /// Whether gRPC calls that name no agent reach this one.
    pub(crate) is_default_agent: bool,
}

impl<'a> InterfaceChoice<'a> {
    /// What decides about the interfaces on an agent's card.
    pub(crate) fn of(
        settings: &'a AgentSettings,
        server: Option<&'a [ProtocolBinding]>,
        form: CardForm,
        is_default_agent: bool,
    ) -> Self {
        let card = &settings.card;
        Self { agent: card.interfaces.as_deref(), server, form: card.form.unwrap_or(form), is_default_agent }
    }

    /// Every binding to be named, in order. gRPC has no path that could name an agent, so another agent than the default
    /// one has none to declare.
    fn named(&self) -> Vec<ProtocolBinding> {
        use ProtocolBinding::{Grpc, HttpJson, JsonRpc};
        // An operator who sets the card of 1.0 alone wants what the specification says, and the official test kit looks
        // there for all three.
        let usual: &[ProtocolBinding] =
            if self.form == CardForm::V1_0 { &[JsonRpc, HttpJson, Grpc] } else { &[JsonRpc, HttpJson] };
        let chosen = self.agent.or(self.server).unwrap_or(usual);
        let fits = |binding: &ProtocolBinding| *binding != Grpc || (self.is_default_agent && cfg!(feature = "grpc"));
        chosen.iter().copied().filter(fits).collect()
    }

    /// What is wrong with the settings, for the person who wrote them.
    pub(crate) fn check(&self, slug: &str, public_url: Option<&Uri>) -> Result<(), String> {
        let Some(chosen) = self.agent.or(self.server) else { return Ok(()) };
        if chosen.is_empty() {
            let names = ProtocolBinding::ALL.map(ProtocolBinding::as_str).join(", ");
            return Err(format!("interfaces: the list is empty; name at least one of {names}"));
        }
        if let Some(twice) = (1..chosen.len()).find_map(|at| chosen[..at].contains(&chosen[at]).then(|| chosen[at])) {
            return Err(format!("interfaces: {twice} is named twice"));
        }
        let wants_grpc = chosen.contains(&ProtocolBinding::Grpc);
        if wants_grpc && !cfg!(feature = "grpc") {
            return Err("interfaces: GRPC is named, and this build has no gRPC (cargo feature `grpc`)".to_owned());
        }
        let path = public_url.map_or("", |url| url.path().trim_end_matches('/'));
        if wants_grpc && !path.is_empty() {
            return Err(format!(
                "interfaces: GRPC is named, and gRPC clients cannot send the path {path} of the public URL; leave GRPC out, \
                 or give the server a public URL without a path"
            ));
        }
        if wants_grpc && self.agent.is_some() && !self.is_default_agent {
            return Err(format!(
                "interfaces: agent {slug:?} names GRPC, which reaches only the first agent; leave it out"
            ));
        }
        if self.named().is_empty() {
            return Err(format!(
                "interfaces: the card of agent {slug:?} would name no interface, because GRPC reaches only the first agent"
            ));
        }
        Ok(())
    }

    /// The interfaces of an agent at `url`, on a server at `base`: those of 1.0 and then those of 0.3.
    pub(crate) fn interfaces(&self, base: &str, url: &str) -> Vec<AgentInterface> {
        let bindings = self.named();
        let of = |version: &str| {
            let interface = |binding: &ProtocolBinding| {
                let url = match (binding, version) {
                    // 0.2 looks for the extended card beside the endpoint, so the endpoint is one step below the agent.
                    (ProtocolBinding::JsonRpc, "0.3") => format!("{url}/rpc"),
                    (ProtocolBinding::JsonRpc | ProtocolBinding::HttpJson, _) => url.to_owned(),
                    // Clients of both versions hand it to gRPC as it is, and gRPC takes no scheme.
                    (ProtocolBinding::Grpc, _) => grpc_target(base)?,
                };
                let (protocol_binding, protocol_version) = (binding.to_string(), version.to_owned());
                Some(AgentInterface { url, protocol_binding, protocol_version, tenant: None })
            };
            bindings.iter().filter_map(interface).collect::<Vec<_>>()
        };
        [of("1.0"), of("0.3")].concat()
    }
}

/// Where a server at this URL is reached by gRPC: host and port. A gRPC client knows no path to put before its own, so
/// behind a path there is nothing to declare.
fn grpc_target(url: &str) -> Option<String> {
    let (scheme, authority) = url.split_once("://")?;
    if authority.contains('/') {
        return None;
    }
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = if has_port {
        ""
    } else if scheme == "https" {
        ":443"
    } else {
        ":80"
    };
    Some(format!("{authority}{port}"))
}
