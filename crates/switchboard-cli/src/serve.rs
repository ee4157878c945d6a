//! From a checked configuration to a server: each agent of it, the store, and the rules for callers.

use std::path::Path;
use std::time::Duration;

use switchboard::model::SecurityRequirement;
use switchboard::{
    AccessLog, AgentBuilder, AuditLevel, Backoff, CallDoor, Compat, Cors, Dialect, Effects, ErrorDetails, Idempotency,
    Limits, Recovery, Server, ServerBuilder, ServerLimits, SqliteOptions, Synchronous, Traits,
};
use switchboard_hub::directory::{Directory, WorkspacePeers};
use switchboard_hub::dispatch::{Dispatch, ServerAgents};
use switchboard_hub::relay::write_metrics;

use crate::agent_card::{card_form, with_card, with_card_form};
use crate::agent_context::{AgentContext, Relays};
use crate::agents::demo::{Demo, ServedAt};
use crate::agents::exec::{Exec, PASSWD, User, variables};
use crate::config::{
    self, AgentConfig, AgentSettings, CompatRpc, CompatSettings, Config, ConfigError, DATABASE_NAME, Environment, Kind,
    OPERATOR_KEY_NAME, RecoveryConfig, Storage,
};
use crate::failure::Failure;
use crate::neighbours::{Neighbours, workspace_sources};
use crate::process::Confinement;
use crate::relays::{self, OwnWords};
use crate::{operator_key, postgres_options};

/// What a client is told when a run was interrupted and is not to be tried again.
const INTERRUPTED: &str = "The server was interrupted while this agent was at work, and it is not run twice";

/// Texts that show the default agent off in the lines that are printed at start.
pub(crate) struct Examples {
    pub(crate) send: &'static str,
    pub(crate) stream: &'static str,
}

pub(crate) fn examples(config: &Config) -> Examples {
    match config.agents.first().map(|agent| &agent.kind) {
        Some(Kind::Demo) => Examples { send: "hello", stream: "stream 40" },
        Some(Kind::Exec { .. } | Kind::Relay(_) | Kind::Dispatch) | None => Examples { send: "hello", stream: "hello" },
    }
}

/// A server that is put together, and what its process looks after beside it.
pub(crate) struct Assembled {
    pub(crate) server: Server,
    pub(crate) relays: Relays,
    /// The agents elsewhere that its agents may call by name. It was not read yet.
    pub(crate) directory: Option<Directory>,
}

/// The same before it is built.
struct Assembling {
    builder: ServerBuilder,
    relays: Relays,
    directory: Option<Directory>,
}

/// Puts the server together and opens its store.
///
/// # Errors
/// When the store cannot be opened.
pub(crate) fn assemble(
    config: Config,
    environment: &Environment,
    access_log: Option<AccessLog>,
    served_at: &ServedAt,
) -> Result<Assembled, Failure> {
    let builder = match &config.storage {
        Storage::Memory => {
            let tasks_max = usize::try_from(*config.server.retention_tasks_max).unwrap_or(usize::MAX);
            Server::builder().memory_holding(tasks_max)
        }
        Storage::Sqlite { folder, synchronous } => {
            let synchronous = match synchronous {
                config::Synchronous::Full => Synchronous::Full,
                config::Synchronous::Normal => Synchronous::Normal,
            };
            let secrets = config.secret_keys.clone();
            let options = SqliteOptions { synchronous, secrets, ..SqliteOptions::default() };
            Server::builder().sqlite_with(folder.join(DATABASE_NAME), options)
        }
        Storage::Postgres { .. } => postgres_options::with_store(Server::builder(), &config, environment)?,
    };
    // A server without tokens cannot tell its operator from others by where a request comes from.
    let operator_key = match config.storage.folder() {
        Some(folder) if !config.has_authentication() => Some((folder.join(OPERATOR_KEY_NAME), operator_key::make()?)),
        Some(_) | None => None,
    };
    let assembling = with_rules(builder, config, environment, served_at).map_err(Failure::runtime)?;
    let Assembling { mut builder, relays, directory } = assembling;
    let counted = relays.clone();
    builder = builder.metrics(move |out| write_metrics(out, &counted));
    if let Some((_, key)) = &operator_key {
        builder = builder.operator_key(key);
    }
    let server = match access_log {
        Some(log) => builder.access_log(log).build(),
        None => builder.build(),
    }
    .map_err(Failure::runtime)?;
    // The store is open now, so no other server uses the folder.
    if let Some((path, key)) = &operator_key {
        operator_key::write(path, key)?;
    }
    Ok(Assembled { server, relays, directory })
}

/// Puts a server together that keeps nothing, so that its parts can refuse the configuration before it is used.
///
/// # Errors
/// When one of them refuses it.
pub(crate) fn check_build(config: &Config, environment: &Environment) -> Result<(), ConfigError> {
    let build = |config: Config| {
        let assembling = with_rules(Server::builder().memory(), config, environment, &ServedAt::default())?;
        assembling.builder.build().map(drop).map_err(|error| error.to_string())
    };
    let mut closed = config.clone();
    closed.server.outbound_allow.value.clear();
    build(closed).map_err(ConfigError::new)?;
    // Only the addresses for webhooks and relays were added since, so the error is about them.
    build(config.clone()).map_err(|error| config.server.outbound_allow.from.error(error))
}

/// The other apps of the workspace, to which the secrets of organizations are passed on.
fn workspace_peers(
    server: &config::ServerSettings,
    is_hosted: bool,
    environment: &Environment,
) -> Option<WorkspacePeers> {
    let peers = WorkspacePeers::new(workspace_sources(server, is_hosted, environment)?);
    // It fails only for certificates that were given to it.
    let peers = peers.ok()?.allow_plain_http(*server.allow_plain_http);
    Some(match &server.public_url.value {
        Some(url) => peers.with_issuer(url),
        None => peers,
    })
}

fn with_rules(
    mut builder: ServerBuilder,
    config: Config,
    environment: &Environment,
    served_at: &ServedAt,
) -> Result<Assembling, String> {
    let server = config.server;
    let retained = server.retain(Limits::default());
    let (mut relays, here, door) = (Relays::new(), ServerAgents::new(), CallDoor::new());
    let (data, is_hosted) = (config.storage.folder(), config.production.is_some());
    let neighbours = Neighbours::of(&server, data, is_hosted, environment, config.shared_secret.as_ref())?;
    let dispatchers = config.agents.iter().filter(|agent| matches!(agent.kind, Kind::Dispatch));
    dispatchers.for_each(|agent| here.add_dispatcher(&agent.slug));
    for (index, agent) in config.agents.into_iter().enumerate() {
        // The first agent is also reached without its name.
        let place = if index == 0 { String::new() } else { format!("/agents/{}", agent.slug) };
        let slug = agent.slug.clone();
        let context = AgentContext {
            server: &server,
            data,
            relays: &mut relays,
            here: &here,
            neighbours: neighbours.as_ref(),
            door: &door,
        };
        let agent = agent_of(agent, place, context, environment, served_at);
        builder = builder.agent(agent.map_err(|why| format!("agent {slug:?}: {why}"))?);
    }
    builder = builder.call_door(&door);
    if let Some(neighbours) = &neighbours {
        builder = builder.callees(neighbours.callees()?);
    }
    if let Some(peers) = workspace_peers(&server, is_hosted, environment) {
        builder = builder.org_peers(peers);
    }
    if let Some(url) = server.public_url.value {
        builder = builder.public_url(url);
    }
    if let Some(known) = config.tls {
        builder = builder.tls(known.tls);
    }
    if let Some(known) = config.tokens {
        builder = builder.tokens(known.tokens);
    }
    if let Some(rules) = config.rules {
        builder = builder.rules(rules);
    }
    if let Some(config::Secret(key)) = config.api_key {
        builder = builder.api_key(key);
    }
    if let Some(secret) = config.shared_secret {
        builder = builder.shared_secret(secret);
    }
    builder = config.issuers.into_iter().fold(builder, |builder, known| builder.issuer(known.issuer));
    if let Some(name) = server.api_key_header.value {
        builder = builder.api_key_header(name);
    }
    if let Some(name) = server.api_key_query.value {
        builder = builder.api_key_query(name);
    }
    if let Some(name) = server.api_key_cookie.value {
        builder = builder.api_key_cookie(name);
    }
    builder = server.require.value.iter().fold(builder, |builder, schemes| builder.require(requirement(schemes)));
    if let Some(known) = config.webhook_signing_secrets {
        builder = builder.sign_webhooks(known.secrets);
    }
    if let Some(secret) = environment.raw("A2A_SECRET").and_then(|secret| secret.into_string().ok()) {
        builder = builder.internal_secret(secret);
    }
    if let Some(url) = server.dispatch_url.value {
        builder = builder.self_fire_url(url);
    }
    if let Some(keys) = config.signing_keys {
        builder = builder.signing_keys(keys);
    }
    if let Some(otlp) = config.otlp {
        builder = builder.otlp(otlp);
    }
    if let Some(dialect) = server.default_version.value {
        builder = builder.default_version(dialect);
    }
    if let Some(bindings) = server.interfaces.value {
        builder = builder.interfaces(bindings);
    }
    let mut limits = ServerLimits::default();
    limits.body_bytes_max = *server.body_bytes_max;
    limits.body_bytes_held_max = *server.body_bytes_held_max;
    limits.body_bytes_held_per_caller_max = *server.body_bytes_held_per_caller_max;
    limits.reply_bytes_held_max = *server.reply_bytes_held_max;
    limits.reply_bytes_held_per_caller_max = *server.reply_bytes_held_per_caller_max;
    limits.streams_max = *server.streams_max;
    limits.streams_per_caller_max = *server.streams_per_caller_max;
    limits.caller_requests_per_second_max = *server.caller_requests_per_second_max;
    limits.address_requests_per_second_max = *server.address_requests_per_second_max;
    let engine_limits = Limits {
        reply_bytes_max: *server.reply_bytes_max,
        frame_bytes_max: *server.frame_bytes_max,
        queued_s_max: *server.queued_timeout_s,
        processing_s_max: *server.processing_timeout_s,
        runs_queued_max: *server.runs_queued_max,
        runs_queued_per_owner_max: *server.runs_queued_per_owner_max,
        run_message_bytes_max: *server.run_message_bytes_max,
        run_message_bytes_per_owner_max: *server.run_message_bytes_per_owner_max,
        storage_task_bytes_max: *server.storage_task_bytes_max,
        storage_owner_bytes_max: *server.storage_owner_bytes_max,
        storage_bytes_max: *server.storage_bytes_max,
        delivery_failures_max: *server.webhook_attempts_max,
        delivery_coalesce_after: *server.webhook_coalesce_after,
        ..retained
    };
    let builder = builder
        .card_form(card_form(*server.card))
        .basic(*server.basic)
        .sign_cards(*server.sign_cards)
        .webhooks_https_only(server.webhook_https_only.unwrap_or(environment.production_variable().is_some()))
        .challenge_webhooks(*server.webhook_challenge)
        .allow_unauthenticated(*server.allow_unauthenticated)
        .production(config.production.is_some())
        .self_fire(*server.dispatch == config::Dispatch::SelfFire)
        .shared_tenant(*server.shared_tenant)
        .protect_cards(*server.protect_cards)
        .allow_plain_http(*server.allow_plain_http)
        .allowed_hosts(server.allowed_hosts.value)
        .open_peers(server.open_peers.value)
        .tenants(server.tenants.value)
        .outbound_allow(server.outbound_allow.value)
        .cors(Cors::origins(server.cors_origins.value))
        .limits(limits)
        .engine_limits(engine_limits.with_lease_ms(*server.lease_s * 1000))
        .log_completed_tasks(*server.log_completed_tasks)
        .audit(match *server.audit {
            config::Audit::Off => AuditLevel::Off,
            config::Audit::Default => AuditLevel::Default,
            config::Audit::All => AuditLevel::All,
        })
        .host_check(config::is_local(*server.listen));
    let directory = neighbours.map(|neighbours| neighbours.directory);
    Ok(Assembling { builder, relays, directory })
}

/// Schemes that are needed together, as in `mtls+bearer`.
fn requirement(schemes: &str) -> SecurityRequirement {
    let names = schemes.split('+').map(str::trim).filter(|name| !name.is_empty());
    SecurityRequirement { schemes: names.map(|name| (name.to_owned(), Vec::new())).collect() }
}

fn agent_of(
    agent: AgentConfig,
    place: String,
    context: AgentContext<'_>,
    environment: &Environment,
    served_at: &ServedAt,
) -> Result<AgentBuilder, String> {
    let AgentConfig { name, slug, settings, compat, recovery, kind, skills } = agent;
    let data = context.data;
    let recovery = recovery_of(recovery);
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let run_timeout = settings.run_timeout_s.map(seconds);
    let run_timeout_max = settings.run_timeout_s_max.map(seconds);
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
            AgentBuilder::new(name, Demo::at(place, served_at.clone())).traits(change)
        }
        Kind::Exec { program, .. } => {
            if let Some(doubt) = &program.doubt {
                tracing::warn!(agent = name, "{doubt}");
            }
            let exec = Exec {
                program,
                data: data.map(Path::to_path_buf),
                environment: variables(&settings.env, |name| environment.raw(name)),
                run_max: run_timeout.unwrap_or(Duration::from_secs(u64::from(Limits::default().run_s_max))),
                run_max_per_call: run_timeout_max,
                recovery,
                processes_max: usize::try_from(*settings.processes_max).unwrap_or(usize::MAX),
                // It was found when the configuration was read.
                user: settings.user.as_deref().and_then(|user| User::find(user, Path::new(PASSWD)).ok()),
                confinement: Confinement {
                    no_new_privileges: !*settings.new_privileges,
                    memory_bytes_max: *settings.memory_bytes_max,
                    cpu_s_max: *settings.cpu_s_max,
                },
                door: settings.calls.then(|| context.door.clone()),
            };
            AgentBuilder::new(name, exec)
        }
        Kind::Relay(relay) => {
            let own = OwnWords { name, settings: &settings, skills: &skills };
            let builder = relays::relay(&relay, &slug, own, context)?;
            with_limits(builder, &settings, recovery)
        }
        Kind::Dispatch => {
            let agents = context.here.clone().only(settings.dispatch_to.value.iter().flatten());
            let agents = match context.neighbours {
                Some(neighbours) => neighbours.beside(agents, context.namespace(&slug))?,
                None => agents,
            };
            let builder = AgentBuilder::new(name, Dispatch::new(&slug, agents.clone(), agents));
            with_limits(builder, &settings, recovery)
        }
    };
    let builder = match *settings.effects {
        None => builder,
        Some(config::Effects::None) => builder.traits(|traits| traits.with_effects(Effects::Never)),
        Some(config::Effects::Some) => builder.traits(|traits| traits.with_effects(Effects::Possible)),
    };
    let builder = builder.error_details(match *settings.error_details {
        config::ErrorDetails::Incident => ErrorDetails::Incident,
        config::ErrorDetails::Full => ErrorDetails::Full,
    });
    let builder = match settings.idempotency.map(idempotency_of) {
        None => builder,
        Some(idempotency) => builder.traits(|traits| traits.with_idempotency(idempotency)),
    };
    let builder = with_card_form(builder, &settings)
        .compat(|chosen| set_compat(chosen, &compat))
        .slug(slug)
        .description(settings.description.value.clone().unwrap_or_default())
        .context_memory(*settings.context_messages_max)
        .streaming(*settings.streaming)
        .push_notifications(*settings.push)
        .input_modes(settings.input_modes.value.clone().unwrap_or_default())
        .output_modes(settings.output_modes.value.clone().unwrap_or_default())
        .strict_output_modes(*settings.strict_output_modes);
    Ok(with_card(builder, settings, skills))
}

/// Recovery and time of runs that an agent elsewhere works on: they have limits of their own unless the settings name some.
fn with_limits(builder: AgentBuilder, settings: &AgentSettings, recovery: Recovery) -> AgentBuilder {
    let builder = match settings.recovery.is_given() || settings.attempts_max.is_given() {
        true => builder.recovery(recovery),
        false => builder,
    };
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    match settings.run_timeout_s.map(seconds) {
        Some(timeout) => builder.run_max(timeout, settings.run_timeout_s_max.map_or(timeout, seconds)),
        None => builder,
    }
}

fn idempotency_of(idempotency: config::Idempotency) -> Idempotency {
    match idempotency {
        config::Idempotency::MessageId => Idempotency::MessageId,
        config::Idempotency::Key => Idempotency::Key,
        config::Idempotency::Off => Idempotency::Off,
    }
}

/// How the agent treats clients of the compat dialects.
fn set_compat(compat: &mut Compat, settings: &CompatSettings) {
    let dialect = |choice: CompatRpc| match choice {
        CompatRpc::AgentNative => Dialect::AgentNative,
        CompatRpc::Selectools => Dialect::Selectools,
        CompatRpc::Nexus => Dialect::Nexus,
    };
    compat.claim = settings.dialect.map(dialect);
    compat.default = settings.default_dialect.map(dialect);
    compat.default_project = *settings.default_project;
    let selectools = &mut compat.selectools;
    selectools.tasks_max = settings.selectools_tasks_max.unwrap_or(selectools.tasks_max);
    selectools.body_bytes_max = settings.selectools_body_bytes_max.unwrap_or(selectools.body_bytes_max);
    selectools.card_url = settings.selectools_card_url.value.clone().unwrap_or_default();
    let corvid = &mut compat.corvid;
    corvid.sends_per_min = settings.corvid_sends_per_min.unwrap_or(corvid.sends_per_min);
    corvid.depth_max = settings.corvid_depth_max.unwrap_or(corvid.depth_max);
    corvid.timeout_ms = settings.corvid_timeout_s.map_or(corvid.timeout_ms, |seconds| seconds * 1000);
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
            // If only one of the two was set, the default of the other is adjusted to it.
            let most = pause_s_max.map_or(usual(limits.retry_backoff_ms_max), seconds);
            let min = pause_s.map_or(usual(limits.retry_backoff_ms_min).min(most), seconds);
            Recovery::Retry { attempts_max, backoff: Some(Backoff { min, max: most.max(min) }) }
        }
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
