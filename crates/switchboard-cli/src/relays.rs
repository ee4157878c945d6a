//! Relays of a server: from their settings to agents, and what looks after their cards while the server runs.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use switchboard::client::Client;
use switchboard::model::AgentCard;
use switchboard::outbound::{AddressPolicy, Trust};
use switchboard::{AgentBuilder, Dialect};
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_hub::relay::{AcceptedCard, PinnedAgent, Relay};

use crate::agent_card::with_card;
use crate::agent_context::{AgentContext, Relays};
use crate::agents::demo::{Demo, ServedAt};
use crate::config::{AgentSettings, REMOTE_AGENTS_NAME, RelayConfig, SkillSettings};

/// The folder inside the data folder that holds the last known cards of upstreams.
const CARDS_NAME: &str = "relay-cards";
/// A larger file is none of an agent.
const REMOTE_AGENT_BYTES_MAX: u64 = 2 << 20;

/// What the settings of an agent say about its card.
pub(crate) struct OwnWords<'a> {
    pub(crate) name: String,
    pub(crate) settings: &'a AgentSettings,
    pub(crate) skills: &'a [SkillSettings],
}

/// The agent that passes messages on.
///
/// # Errors
/// When the settings name what cannot be used: certificates, or addresses that are none.
pub(crate) fn relay(
    config: &RelayConfig,
    slug: &str,
    own: OwnWords<'_>,
    context: AgentContext<'_>,
) -> Result<AgentBuilder, String> {
    let namespace = context.namespace(slug);
    let AgentContext { server, data, relays, here, .. } = context;
    let trust = match &config.settings.authorities.value {
        Some(file) => Trust::PublicAuthoritiesAnd(file.clone()),
        None => Trust::PublicAuthorities,
    };
    let policy = AddressPolicy::parse(&*server.outbound_allow)?;
    let mut client = Client::builder().trust(trust).policy(policy).credentials(config.credentials.clone());
    client = client.card_keys(config.card_keys.clone());
    if *config.settings.require_signed_card {
        client = client.require_signed_cards();
    }
    let accepted = data.map(|data| {
        let (data, url) = (data.to_owned(), config.url.clone());
        AcceptedCard::new(move || accepted_card(&data, &url))
    });
    let mut options = config.options(namespace, accepted);
    options.card_file = data.map(|data| data.join(CARDS_NAME).join(format!("{slug}.json")));
    let name = own.name.clone();
    let relay = Relay::showing(&config.url, client, options, own_words(own)).map_err(|error| error.to_string())?;
    relays.push((slug.to_owned(), relay.handle()));
    here.add_relay(slug, &relay);
    Ok(relay.agent(name))
}

/// What the settings say stays, whatever the upstream says about itself.
fn own_words(own: OwnWords<'_>) -> impl Fn(&mut AgentCard) + Send + Sync + use<> {
    let OwnWords { name, settings, skills } = own;
    let mut said = AgentCard::default();
    let builder = AgentBuilder::new(name, Demo::at("", ServedAt::default()))
        .description(settings.description.value.clone().unwrap_or_default())
        .input_modes(settings.input_modes.value.clone().unwrap_or_default())
        .output_modes(settings.output_modes.value.clone().unwrap_or_default());
    let _ = with_card(builder, settings.clone(), skills.to_vec()).card(|card| said = card.clone());
    let has_name = settings.name.is_given();
    let has_description = settings.description.is_given();
    let has_version = settings.version.is_given();
    let has_input = settings.input_modes.is_given();
    let has_output = settings.output_modes.is_given();
    move |card| {
        let put = |is_said: bool, own: &String, shown: &mut String| {
            if is_said {
                shown.clone_from(own);
            }
        };
        put(has_name, &said.name, &mut card.name);
        put(has_description, &said.description, &mut card.description);
        put(has_version, &said.version, &mut card.version);
        if has_input {
            card.default_input_modes.clone_from(&said.default_input_modes);
        }
        if has_output {
            card.default_output_modes.clone_from(&said.default_output_modes);
        }
        if !said.skills.is_empty() {
            card.skills.clone_from(&said.skills);
        }
        card.provider = said.provider.clone().or(card.provider.take());
        card.icon_url = said.icon_url.clone().or(card.icon_url.take());
        card.documentation_url = said.documentation_url.clone().or(card.documentation_url.take());
        let extensions = &mut card.capabilities.extensions;
        for own in &said.capabilities.extensions {
            extensions.retain(|known| known.uri != own.uri);
            extensions.push(own.clone());
        }
    }
}

/// The card that an operator has accepted for the agent at a URL.
fn accepted_card(data: &Path, url: &str) -> Option<Arc<AgentCard>> {
    let agents = match remote_agents(data) {
        Ok(agents) => agents,
        Err(error) => {
            tracing::warn!(error, "accepted cards of upstreams could not be read");
            return None;
        }
    };
    let (_, pinned) = agents.into_iter().find(|(_, agent)| same_url(&agent.url, url))?;
    read_card(&pinned).map_err(|why| tracing::warn!(agent = pinned.id, why, "an accepted card is none")).ok()?
}

/// Whether two URLs name the same agent.
pub(crate) fn same_url(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The card of an accepted agent; none in a file that was written by hand.
pub(crate) fn read_card(pinned: &PinnedAgent) -> Result<Option<Arc<AgentCard>>, String> {
    let Some(card) = &pinned.card else { return Ok(None) };
    let read = Dialect::V1_0.read_card(card.to_string().as_bytes(), &DecodeLimits::default());
    read.map(|card| Some(Arc::new(card))).map_err(|error| error.to_string())
}

/// The accepted agents with their files, by their ids.
///
/// # Errors
/// When the folder or a file of it cannot be read, or a file is none of an agent.
pub(crate) fn remote_agents(data: &Path) -> Result<Vec<(PathBuf, PinnedAgent)>, String> {
    let mut agents = Vec::new();
    for path in remote_agent_files(data)? {
        agents.push((path.clone(), read_remote_agent(&path)?));
    }
    agents.sort_by(|(_, one), (_, other)| one.id.cmp(&other.id));
    Ok(agents)
}

/// The files of accepted agents.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn remote_agent_files(data: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = data.join(REMOTE_AGENTS_NAME);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{} cannot be read: {error}", folder.display())),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| format!("{} cannot be read: {error}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(files)
}

fn read_remote_agent(path: &Path) -> Result<PinnedAgent, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let length = std::fs::metadata(path).map_err(|error| wrong(&error))?.len();
    if length > REMOTE_AGENT_BYTES_MAX {
        return Err(wrong(&format!("it is larger than {REMOTE_AGENT_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let mut json: serde_json::Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    // A file that was written by hand is called as its file.
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(members) = json.as_object_mut().filter(|members| !members.contains_key("id")) {
        members.insert("id".to_owned(), stem.into());
    }
    serde_json::from_value(json).map_err(|error| wrong(&error))
}

/// Makes the cards of relays known before they are served.
pub(crate) async fn begin(relays: &Relays) {
    join_all(relays.iter().map(|(_, relay)| relay.begin())).await;
}

/// Looks after the cards of relays for as long as it is polled.
pub(crate) async fn keep_fresh(relays: &Relays) -> std::convert::Infallible {
    if relays.is_empty() {
        return pending().await;
    }
    match join_all(relays.iter().map(|(_, relay)| relay.keep_card_fresh())).await.pop() {
        Some(never) => match never {},
        None => pending().await,
    }
}
