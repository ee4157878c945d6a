//! From a checked configuration to a server: each agent of it, the store, and the rules for callers.

use std::time::Duration;

use switchboard::{
    AgentBuilder, Cors, Effects, Limits, Recovery, ServeError, Server, ServerBuilder, ServerLimits, Skill,
    SqliteOptions, Synchronous, Traits,
};
use tokio::sync::Semaphore;

use crate::agents::demo::Demo;
use crate::agents::exec::{Exec, variables};
use crate::config::{
    self, AgentConfig, Config, ConfigError, DATABASE_NAME, Environment, Given, Kind, Origin, SkillConfig, Storage,
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
        builder = builder.agent(agent_of(agent, environment));
    }
    if let Some(url) = config.public_url {
        builder = builder.public_url(url);
    }
    if let Some(known) = config.tokens {
        builder = builder.tokens(known.tokens);
    }
    if let Some(dialect) = config.default_version {
        builder = builder.default_version(dialect);
    }
    let engine_limits = Limits {
        delivery_failures_max: config.webhook_attempts_max,
        delivery_coalesce_after: config.webhook_coalesce_after,
        ..Limits::default()
    };
    let mut limits = ServerLimits::default();
    limits.body_bytes_max = config.body_bytes_max;
    builder
        .tenants(config.tenants)
        .outbound_allow(config.outbound_allow.value)
        .cors(Cors::origins(config.cors_origins))
        .limits(limits)
        .engine_limits(engine_limits)
        .host_check(config::is_local(config.listen))
}

fn agent_of(agent: AgentConfig, environment: &Environment) -> AgentBuilder {
    let AgentConfig { kind, effects, recovery, run_timeout, .. } = agent;
    let recovery = match recovery {
        config::Recovery::Retry => Recovery::Retry { attempts_max: None },
        config::Recovery::Fail => Recovery::Fail { reason: INTERRUPTED.to_owned() },
    };
    let builder = match kind {
        Kind::Demo => {
            let change = |traits: Traits| {
                let traits = traits.with_recovery(recovery);
                match run_timeout {
                    Some(timeout) => traits.with_run_max(timeout),
                    None => traits,
                }
            };
            AgentBuilder::new(agent.name, Demo).traits(change)
        }
        Kind::Exec { program, env, processes_max, .. } => {
            let exec = Exec {
                program,
                environment: variables(&env, |name| environment.raw(name)),
                run_max: run_timeout.unwrap_or(Duration::from_secs(u64::from(Limits::default().run_s_max))),
                recovery,
                places: Semaphore::new(usize::try_from(processes_max).unwrap_or(Semaphore::MAX_PERMITS)),
            };
            AgentBuilder::new(agent.name, exec)
        }
    };
    let builder = match effects {
        None => builder,
        Some(config::Effects::None) => builder.traits(|traits| traits.with_effects(Effects::None)),
        Some(config::Effects::Some) => builder.traits(|traits| traits.with_effects(Effects::Some)),
    };
    let builder = builder
        .slug(agent.slug)
        .description(agent.description)
        .version(agent.version)
        .streaming(agent.streaming)
        .push_notifications(agent.push)
        .input_modes(agent.input_modes)
        .output_modes(agent.output_modes);
    agent.skills.into_iter().fold(builder, |builder, skill| builder.skill(skill_of(skill)))
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
