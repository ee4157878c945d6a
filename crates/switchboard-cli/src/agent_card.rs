//! The card of an agent, as far as settings say what is in it.

use switchboard::{AgentBuilder, CardForm, Dialect, Skill};

use crate::config::{AgentSettings, Card, SkillSettings};

/// What the card says beside what the agent does: who offers it, where to read on, extensions and skills. Skills that are
/// only for callers with a token, and a description for them, make an extended card.
pub(crate) fn with_card(
    mut builder: AgentBuilder,
    settings: AgentSettings,
    skills: Vec<SkillSettings>,
) -> AgentBuilder {
    if let Some(version) = settings.version.value {
        builder = builder.version(version);
    }
    if let (Some(organization), Some(url)) = (settings.provider_organization.value, settings.provider_url.value) {
        builder = builder.provider(organization, url);
    }
    if let Some(url) = settings.icon_url.value {
        builder = builder.icon_url(url);
    }
    if let Some(url) = settings.documentation_url.value {
        builder = builder.documentation_url(url);
    }
    let required = settings.extensions_required.value;
    for uri in settings.extensions.value.into_iter().filter(|uri| !required.contains(uri)) {
        builder = builder.extension(uri, "", false);
    }
    builder = required.into_iter().fold(builder, |builder, uri| builder.extension(uri, "", true));
    let (extended, shown): (Vec<_>, Vec<_>) = skills.into_iter().partition(|skill| *skill.extended);
    builder = shown.into_iter().fold(builder, |builder, skill| builder.skill(skill_of(skill)));
    let description = settings.extended_description.value;
    if extended.is_empty() && description.is_none() {
        return builder;
    }
    let builder = builder.extended_card(|card| card.description = description.unwrap_or(card.description.clone()));
    extended.into_iter().fold(builder, |builder, skill| builder.extended_skill(skill_of(skill)))
}

/// What the agent's card holds, if not what the server's settings say.
pub(crate) fn with_card_form(mut builder: AgentBuilder, settings: &AgentSettings) -> AgentBuilder {
    if let Some(card) = *settings.card {
        builder = builder.card_form(card_form(card));
    }
    if let Some(bindings) = settings.interfaces.value.clone() {
        builder = builder.interfaces(bindings);
    }
    builder
}

pub(crate) fn card_form(card: Card) -> CardForm {
    match card {
        Card::All => CardForm::All,
        Card::V1_0 => CardForm::V1_0,
        Card::AgentNative => CardForm::Compat(Dialect::AgentNative),
        Card::Selectools => CardForm::Compat(Dialect::Selectools),
        Card::Corvid => CardForm::Compat(Dialect::Corvid),
        Card::Nexus => CardForm::Compat(Dialect::Nexus),
    }
}

fn skill_of(skill: SkillSettings) -> Skill {
    let mut made =
        Skill::new(skill.id.value.unwrap_or_default(), skill.name.value.unwrap_or_default(), skill.description.value);
    made = skill.tags.value.into_iter().fold(made, Skill::tag);
    made = skill.examples.value.into_iter().fold(made, Skill::example);
    made = skill.input_modes.value.into_iter().fold(made, Skill::input_mode);
    skill.output_modes.value.into_iter().fold(made, Skill::output_mode)
}
