//! From a checked configuration to a server: each agent of it, the store, and the rules for callers.

use std::path::Path;
use std::time::Duration;

use switchboard::{
    AgentBuilder, Backoff, CardForm, Cors, CorvidOptions, Dialect, Effects, Idempotency, Limits, Recovery,
    SelectoolsOptions, ServeError, Server, ServerBuilder, ServerLimits, Skill, SqliteOptions, Synchronous, Traits,
};
use tokio::sync::Semaphore;

use crate::agents::demo::Demo;
use crate::agents::exec::{Exec, variables};
use crate::config::{
    self, AccentConfig, AgentConfig, Card, Config, ConfigError, DATABASE_NAME, Environment, Given, Kind, Lifetimes,
    Origin, RecoveryConfig, Seed, SkillConfig, Storage,
};

/// What a client is told when a run was interrupted and is not to be tried again.
const INTERRUPTED: &str = "The server was interrupted while this agent was at work, and it is not run twice";

/// Puts the server together and opens its store.
///
/// # Errors
/// When the store cannot be opened.
pub(crate) fn assemble(config: Config, environment: &Environment) -> Result<Server, ServeError> {
    let builder = match &config.storage {
        Storage::Memory => Server::builder().memory(),
        Storage::Sqlite { folder, synchronous } => {
            let synchronous = match synchronous {
                config::Synchronous::Full => Synchronous::Full,
                config::Synchronous::Normal => Synchronous::Normal,
            };
            let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
            Server::builder().sqlite_with(folder.join(DATABASE_NAME), options)
        }
    };
    with_rules(builder, config, environment).build()
}

/// Puts a server together that keeps nothing, to hear what its parts say to the configuration.
///
/// # Errors
/// When one of them refuses it.
pub(crate) fn rehearse(config: &Config, environment: &Environment) -> Result<(), ConfigError> {
    let build = |config: Config| with_rules(Server::builder().memory(), config, environment).build().map(drop);
    let outbound = config.outbound_allow.clone();
    let closed = Config { outbound_allow: Given::new(Vec::new(), Origin::Default), ..config.clone() };
    build(closed).map_err(|error| ConfigError(error.to_string()))?;
    // What works without these and not with them is their fault.
    build(config.clone()).map_err(|error| outbound.from.error(error))
}

fn with_rules(mut builder: ServerBuilder, config: Config, environment: &Environment) -> ServerBuilder {
    for agent in config.agents {
        builder = builder.agent(agent_of(agent, config.storage.folder(), environment));
    }
    if let Some(url) = config.public_url {
        builder = builder.public_url(url);
    }
    if let Some(known) = config.tls {
        builder = builder.tls(known.tls);
    }
    if let Some(known) = config.tokens {
        builder = builder.tokens(known.tokens);
    }
    if let Some(known) = config.webhook_signing_secrets {
        builder = builder.sign_webhooks(known.secrets);
    }
    if let Some(dialect) = config.default_version {
        builder = builder.default_version(dialect);
    }
    let card = card_form(config.card);
    let mut limits = ServerLimits::default();
    limits.body_bytes_max = config.body_bytes_max;
    let Lifetimes { lease_s, queued_s_max, processing_s_max } = config.lifetimes;
    let engine_limits = Limits {
        reply_bytes_max: config.reply_bytes_max,
        queued_s_max,
        processing_s_max,
        delivery_failures_max: config.webhook_attempts_max,
        delivery_coalesce_after: config.webhook_coalesce_after,
        ..Limits::default()
    };
    let engine_limits = config.retention.limit(engine_limits).with_lease_ms(lease_s * 1000);
    builder
        .card_form(card)
        .tenants(config.tenants)
        .outbound_allow(config.outbound_allow.value)
        .cors(Cors::origins(config.cors_origins))
        .limits(limits)
        .engine_limits(engine_limits)
        .host_check(config::is_local(config.listen))
}

fn agent_of(agent: AgentConfig, data: Option<&Path>, environment: &Environment) -> AgentBuilder {
    let AgentConfig { kind, effects, idempotency, recovery, run_timeout, run_timeout_max, .. } = agent;
    let recovery = recovery_of(recovery);
    let builder = match kind {
        Kind::Demo => {
            let change = |traits: Traits| {
                let mut traits = traits.with_recovery(recovery);
                if let Some(timeout) = run_timeout {
                    traits = traits.with_run_max(timeout);
                }
                match run_timeout_max {
                    Some(timeout) => traits.with_run_max_per_call(timeout),
                    None => traits,
                }
            };
            AgentBuilder::new(agent.name, Demo).traits(change)
        }
        Kind::Exec { program, env, processes_max, .. } => {
            let exec = Exec {
                program,
                data: data.map(Path::to_path_buf),
                environment: variables(&env, |name| environment.raw(name)),
                run_max: run_timeout.unwrap_or(Duration::from_secs(u64::from(Limits::default().run_s_max))),
                run_max_per_call: run_timeout_max,
                recovery,
                places: Semaphore::new(usize::try_from(processes_max).unwrap_or(Semaphore::MAX_PERMITS)),
            };
            AgentBuilder::new(agent.name, exec)
        }
    };
    let builder = match effects {
        None => builder,
        Some(config::Effects::None) => builder.traits(|traits| traits.with_effects(Effects::Never)),
        Some(config::Effects::Some) => builder.traits(|traits| traits.with_effects(Effects::Possible)),
    };
    let builder = match idempotency.map(idempotency_of) {
        None => builder,
        Some(idempotency) => builder.traits(|traits| traits.with_idempotency(idempotency)),
    };
    let builder = builder
        .slug(agent.slug)
        .description(agent.description)
        .version(agent.version)
        .streaming(agent.streaming)
        .push_notifications(agent.push)
        .input_modes(agent.input_modes)
        .output_modes(agent.output_modes);
    let builder = with_accent(builder, agent.accent);
    agent.skills.into_iter().fold(builder, |builder, skill| builder.skill(skill_of(skill)))
}

fn idempotency_of(idempotency: config::Idempotency) -> Idempotency {
    match idempotency {
        config::Idempotency::MessageId => Idempotency::MessageId,
        config::Idempotency::Key => Idempotency::Key,
        config::Idempotency::Off => Idempotency::Off,
    }
}

fn card_form(card: Card) -> CardForm {
    match card {
        Card::All => CardForm::All,
        Card::V1_0 => CardForm::V1_0,
        Card::AgentNative => CardForm::AgentNative,
        Card::Selectools => CardForm::Selectools,
        Card::Corvid => CardForm::Corvid,
        Card::Nexus => CardForm::Nexus,
    }
}

fn with_accent(mut builder: AgentBuilder, accent: AccentConfig) -> AgentBuilder {
    let dialect = |seed: Seed| match seed {
        Seed::AgentNative => Dialect::AgentNative,
        Seed::Selectools => Dialect::Selectools,
        Seed::Nexus => Dialect::Nexus,
    };
    if let Some(card) = accent.card {
        builder = builder.card_form(card_form(card));
    }
    if let Some(seed) = accent.dialect {
        builder = builder.dialect(dialect(seed));
    }
    if let Some(seed) = accent.default_dialect {
        builder = builder.default_dialect(dialect(seed));
    }
    let mut options = SelectoolsOptions::default();
    options.tasks_max = accent.selectools_tasks_max.unwrap_or(options.tasks_max);
    options.body_bytes_max = accent.selectools_body_bytes_max.unwrap_or(options.body_bytes_max);
    options.card_url = accent.selectools_card_url.unwrap_or(options.card_url);
    let mut corvid = CorvidOptions::default();
    corvid.sends_per_min = accent.corvid_sends_per_min.unwrap_or(corvid.sends_per_min);
    corvid.depth_max = accent.corvid_depth_max.unwrap_or(corvid.depth_max);
    corvid.timeout_ms = accent.corvid_timeout_s.map_or(corvid.timeout_ms, |seconds| seconds * 1000);
    builder.selectools(options).corvid(corvid).default_project(accent.default_project)
}

fn recovery_of(recovery: RecoveryConfig) -> Recovery {
    match recovery {
        RecoveryConfig::Fail { reason } => Recovery::Fail { reason: reason.unwrap_or(INTERRUPTED.to_owned()) },
        RecoveryConfig::Retry { attempts_max, pause_s: None, pause_s_max: None } => {
            Recovery::Retry { attempts_max, backoff: None }
        }
        RecoveryConfig::Retry { attempts_max, pause_s, pause_s_max } => {
            let limits = Limits::default();
            let seconds = |seconds: u32| Duration::from_secs(seconds.into());
            let usual = |ms: u32| Duration::from_millis(ms.into());
            // Whichever of the two was not said gives way to the other.
            let most = pause_s_max.map_or(usual(limits.retry_backoff_ms_max), seconds);
            let min = pause_s.map_or(usual(limits.retry_backoff_ms_min).min(most), seconds);
            Recovery::Retry { attempts_max, backoff: Some(Backoff { min, max: most.max(min) }) }
        }
    }
}

fn skill_of(skill: SkillConfig) -> Skill {
    let mut made = Skill::new(skill.id, skill.name, skill.description);
    made = skill.tags.into_iter().fold(made, Skill::tag);
    made = skill.examples.into_iter().fold(made, Skill::example);
    made = skill.input_modes.into_iter().fold(made, Skill::input_mode);
    skill.output_modes.into_iter().fold(made, Skill::output_mode)
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
