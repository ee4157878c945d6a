//! Describing an agent: who it is, what it can do, and the code that does it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::model::{
    AgentCapabilities, AgentCard, AgentExtension, AgentProvider, AgentSkill, Json, SecurityRequirement,
};
use switchboard_engine::runs::{Agent, AgentError, AgentSource, ErrorDetails, Recovery, Traits, Turn};
use switchboard_engine::{CurrentCard, Registered};

use crate::agent_settings::{AgentSettings, CardForm, Compat};
use crate::idempotent_sends::IDEMPOTENT_SENDS;
use crate::live_card::LiveCard;
use crate::protocol_binding::ProtocolBinding;

/// What a card says in `version` if its agent names none.
const VERSION_DEFAULT: &str = "1.0.0";

/// An agent and its card, ready to be served.
///
/// ```
/// use switchboard::{AgentBuilder, Skill, Turn};
///
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move {
///     turn.answer(turn.text()).await?;
///     Ok(())
/// })
/// .description("Says what you said")
/// .skill(Skill::new("echo", "Echo", "Repeats the text of a message").tag("demo").example("hello"));
/// assert_eq!(echo.slug_name(), "echo");
/// ```
pub struct AgentBuilder {
    slug: String,
    source: AgentSource,
    card: AgentCard,
    extended: Option<AgentCard>,
    extended_for_anyone: bool,
    live: Option<LiveCard>,
    settings: AgentSettings,
}

impl fmt::Debug for AgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentBuilder").field("slug", &self.slug).field("source", &self.source).finish_non_exhaustive()
    }
}

impl AgentBuilder {
    /// One instance of an agent serves every turn.
    pub fn new(name: impl Into<String>, agent: impl Agent) -> Self {
        Self::from_source(name.into(), AgentSource::shared(agent))
    }

    /// A fresh instance for each turn.
    pub fn factory<A: Agent>(name: impl Into<String>, make: impl Fn() -> A + Send + Sync + 'static) -> Self {
        Self::from_source(name.into(), AgentSource::factory(make))
    }

    /// An `async fn` is an agent, too.
    pub fn from_fn<F, Fut>(name: impl Into<String>, run: F) -> Self
    where
        F: Fn(Turn) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), AgentError>> + Send + 'static,
    {
        Self::new(name, FnAgent { run })
    }

    fn from_source(name: String, source: AgentSource) -> Self {
        let card = AgentCard {
            description: format!("{name}, served by Switchboard"),
            version: VERSION_DEFAULT.to_owned(),
            capabilities: AgentCapabilities {
                streaming: Some(true),
                push_notifications: Some(true),
                extended_agent_card: Some(false),
                extensions: vec![AgentExtension {
                    uri: IDEMPOTENT_SENDS.to_owned(),
                    description: Some("A message with an Idempotency-Key may be sent again".to_owned()),
                    required: false,
                    params: None,
                }],
            },
            default_input_modes: vec!["text/plain".to_owned()],
            default_output_modes: vec!["text/plain".to_owned()],
            name: name.clone(),
            ..AgentCard::default()
        };
        Self {
            slug: slug(&name),
            source,
            card,
            extended: None,
            extended_for_anyone: false,
            live: None,
            settings: AgentSettings::default(),
        }
    }

    /// The name in the URL, `/agents/{slug}/…`. Made from the agent's name if not given.
    #[must_use]
    pub fn slug(mut self, slug: impl Into<String>) -> Self {
        self.slug = slug.into();
        self
    }

    /// The slug as it will be: the agent's name in paths (`/agents/{slug}`).
    #[must_use]
    pub fn slug_name(&self) -> &str {
        &self.slug
    }

    /// What the agent is for, on its card.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.card.description = description.into();
        self
    }

    /// The agent's own version, not the protocol's. 1.0.0 if not given; on the cards of selectools and corvid, whose
    /// originals name their package, it is then the version of this crate.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.card.version = version.into();
        self.settings.card.has_version = true;
        self
    }

    /// Who offers the agent, on its card.
    #[must_use]
    pub fn provider(mut self, organization: impl Into<String>, url: impl Into<String>) -> Self {
        self.card.provider = Some(AgentProvider { organization: organization.into(), url: url.into() });
        self
    }

    /// A page about the agent, on its card.
    #[must_use]
    pub fn documentation_url(mut self, url: impl Into<String>) -> Self {
        self.card.documentation_url = Some(url.into());
        self
    }

    /// A picture of the agent, on its card.
    #[must_use]
    pub fn icon_url(mut self, url: impl Into<String>) -> Self {
        self.card.icon_url = Some(url.into());
        self
    }

    /// Whether clients may stream. On unless switched off.
    #[must_use]
    pub fn streaming(mut self, on: bool) -> Self {
        self.card.capabilities.streaming = Some(on);
        self
    }

    /// Whether clients may register webhooks. On unless switched off.
    #[must_use]
    pub fn push_notifications(mut self, on: bool) -> Self {
        self.card.capabilities.push_notifications = Some(on);
        self
    }

    /// Media types the agent reads; `text/plain` unless said otherwise.
    #[must_use]
    pub fn input_modes<T: Into<String>>(mut self, modes: impl IntoIterator<Item = T>) -> Self {
        self.card.default_input_modes = modes.into_iter().map(Into::into).collect();
        self
    }

    /// Media types the agent writes; `text/plain` unless said otherwise.
    #[must_use]
    pub fn output_modes<T: Into<String>>(mut self, modes: impl IntoIterator<Item = T>) -> Self {
        self.card.default_output_modes = modes.into_iter().map(Into::into).collect();
        self
    }

    /// Whether a message is refused (`ContentTypeNotSupported`) if its client accepts none of the media types that the
    /// card says the agent writes. Off by default: what a client accepts is a preference, so the agent answers all the
    /// same, and the reply names what it writes in the header `A2A-Output-Modes`.
    #[must_use]
    pub fn strict_output_modes(self, strict: bool) -> Self {
        self.traits(|traits| traits.with_strict_output_modes(strict))
    }

    /// Adds an ability to the card. A card without any says that the agent takes messages.
    #[must_use]
    pub fn skill(mut self, skill: Skill) -> Self {
        self.card.skills.push(skill.0);
        self
    }

    /// Declares an extension. A required one is refused service without.
    #[must_use]
    pub fn extension(mut self, uri: impl Into<String>, description: impl Into<String>, required: bool) -> Self {
        let extension = AgentExtension {
            uri: uri.into(),
            description: Some(description.into()).filter(|text: &String| !text.is_empty()),
            required,
            params: None::<Json>,
        };
        self.card.capabilities.extensions.push(extension);
        self
    }

    /// A richer card for authenticated callers, made from the public one.
    #[must_use]
    pub fn extended_card(mut self, change: impl FnOnce(&mut AgentCard)) -> Self {
        self.card.capabilities.extended_agent_card = Some(true);
        let mut extended = self.card.clone();
        change(&mut extended);
        self.extended = Some(extended);
        self
    }

    /// A skill that only the extended card lists, for callers who have proved who they are. Without an extended card yet,
    /// one is made from the public one.
    #[must_use]
    pub fn extended_skill(mut self, skill: Skill) -> Self {
        if self.extended.is_none() {
            self = self.extended_card(|_| {});
        }
        if let Some(extended) = &mut self.extended {
            extended.skills.push(skill.0);
        }
        self
    }

    /// Shows the extended card to callers without a credential, too. The spec (13.3) does not allow this; it is for
    /// servers that have no authentication at all.
    #[must_use]
    pub fn extended_card_for_anyone(mut self) -> Self {
        self.extended_for_anyone = true;
        self
    }

    /// Changes anything else on the card.
    #[must_use]
    pub fn card(mut self, change: impl FnOnce(&mut AgentCard)) -> Self {
        change(&mut self.card);
        self
    }

    /// Lets the card be changed while the agent is served. It begins as what else is said here.
    #[must_use]
    pub fn live_card(mut self, live: &LiveCard) -> Self {
        self.live = Some(live.clone());
        self
    }

    /// How long one run may take, and how long one may take if its call asks for it: see
    /// [`Traits::run_max`](crate::Traits) and `switchboard.runTimeoutSeconds` in the metadata of a request.
    #[must_use]
    pub fn run_max(self, own: Duration, per_call: Duration) -> Self {
        self.traits(|traits| traits.with_run_max(own).with_run_max_per_call(per_call))
    }

    /// How much clients read of a failure that the agent did not choose.
    #[must_use]
    pub fn error_details(self, details: ErrorDetails) -> Self {
        self.traits(|traits| traits.with_error_details(details))
    }

    /// Remembers contexts: each turn is given up to so many messages of the caller's earlier tasks in the same context, and
    /// what they were answered ([`Turn::context`]). Without it, every task stands by itself.
    #[must_use]
    pub fn context_memory(self, messages_max: usize) -> Self {
        self.traits(|traits| traits.with_context_messages_max(messages_max))
    }

    /// What happens to a run whose process died.
    #[must_use]
    pub fn recovery(self, recovery: Recovery) -> Self {
        self.traits(|traits| traits.with_recovery(recovery))
    }

    /// How this agent treats clients of the compat dialects: what older systems speak instead of A2A 1.0 or 0.3.
    ///
    /// ```
    /// use switchboard::{AgentBuilder, Dialect, Turn};
    ///
    /// let agent = AgentBuilder::from_fn("Echo", |turn: Turn| async move {
    ///     turn.answer(turn.text()).await?;
    ///     Ok(())
    /// })
    /// .compat(|compat| {
    ///     compat.claim = Some(Dialect::Selectools);
    ///     compat.selectools.tasks_max = 100;
    /// });
    /// ```
    #[must_use]
    pub fn compat(mut self, change: impl FnOnce(&mut Compat)) -> Self {
        change(&mut self.settings.compat);
        self
    }

    /// What this agent's card holds for clients that do not name a version, if not what
    /// [`ServerBuilder::card_form`](crate::ServerBuilder::card_form) says.
    #[must_use]
    pub fn card_form(mut self, form: CardForm) -> Self {
        self.settings.card.form = Some(form);
        self
    }

    /// Which protocol bindings this agent's card names, in which order, if not what
    /// [`ServerBuilder::interfaces`](crate::ServerBuilder::interfaces) says.
    #[must_use]
    pub fn interfaces(mut self, bindings: impl IntoIterator<Item = ProtocolBinding>) -> Self {
        self.settings.card.interfaces = Some(bindings.into_iter().collect());
        self
    }

    /// Every skill, those of the extended card included.
    pub(crate) fn skills(&self) -> impl Iterator<Item = &AgentSkill> {
        self.card.skills.iter().chain(self.extended.iter().flat_map(|card| &card.skills))
    }

    pub(crate) fn settings(&self) -> &AgentSettings {
        &self.settings
    }

    /// Overrides what the agent declares about itself.
    #[must_use]
    pub fn traits(mut self, change: impl FnOnce(Traits) -> Traits) -> Self {
        self.source = self.source.with_traits(change);
        self
    }

    /// The finished registration; `finish` adds what the server says about its callers.
    pub(crate) fn register(self, finish: Arc<dyn Fn(&mut AgentCard) + Send + Sync>) -> Registered {
        let Self { slug, source, mut card, mut extended, extended_for_anyone, live, settings: _ } = self;
        if card.skills.is_empty() && live.is_none() {
            tracing::warn!(agent = slug, "the card lists no skills; other agents will not know what to ask for");
        }
        finish(&mut card);
        if let Some(extended) = &mut extended {
            finish(extended);
        }
        let card = Arc::new(CurrentCard::from(card));
        if let Some(live) = live {
            live.serve(card.clone(), finish);
        }
        Registered {
            name: slug.into(),
            source,
            card,
            extended_card: extended.map(Arc::new),
            extended_card_for_anyone: extended_for_anyone,
        }
    }
}

/// One thing an agent can do, as its card describes it.
#[derive(Clone, Debug)]
pub struct Skill(AgentSkill);

impl Skill {
    /// An ability with an id that is unique on the card.
    pub fn new(id: impl Into<String>, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self(AgentSkill { id: id.into(), name: name.into(), description: description.into(), ..AgentSkill::default() })
    }

    /// Adds a keyword to find the skill by.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.0.tags.push(tag.into());
        self
    }

    /// Adds a message that makes use of the skill.
    #[must_use]
    pub fn example(mut self, example: impl Into<String>) -> Self {
        self.0.examples.push(example.into());
        self
    }

    /// A media type this skill reads beside the agent's own.
    #[must_use]
    pub fn input_mode(mut self, mode: impl Into<String>) -> Self {
        self.0.input_modes.push(mode.into());
        self
    }

    /// A media type this skill writes beside the agent's own.
    #[must_use]
    pub fn output_mode(mut self, mode: impl Into<String>) -> Self {
        self.0.output_modes.push(mode.into());
        self
    }

    /// What a caller of this skill must present beside what the server asks of everybody; of several, any one. It is checked for
    /// messages that name the skill (`skill` or `skillId` in their metadata), before they are accepted. The schemes are those of the
    /// server, under the names that its cards have for them.
    #[must_use]
    pub fn security(mut self, requirement: SecurityRequirement) -> Self {
        self.0.security_requirements.push(requirement);
        self
    }
}

struct FnAgent<F> {
    run: F,
}

impl<F, Fut> Agent for FnAgent<F>
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), AgentError>> + Send + 'static,
{
    fn run(&self, turn: Turn) -> impl Future<Output = Result<(), AgentError>> + Send {
        (self.run)(turn)
    }
}

/// Lower-case letters and digits of a name, everything between them as one dash.
fn slug(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "agent".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
