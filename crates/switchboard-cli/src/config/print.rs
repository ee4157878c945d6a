//! The configuration in effect, as a file that would give the same one. Secrets are left out: tokens, signing secrets and the
//! private key are named by their file, and those from elsewhere only counted.

use toml::Spanned;

use super::choices::{KindName, Recovery};
use super::file::{AgentTable, CommandForm, File, ServerTable, Setting, SkillTable, TlsTable};
use super::{AgentConfig, Config, ConfigError, Kind, RecoveryConfig, SkillConfig, Storage};
use crate::agents::exec::Invocation;

/// # Errors
/// When a path is not text, which TOML cannot hold.
pub(crate) fn print(config: &Config) -> Result<String, ConfigError> {
    let tls = TlsTable {
        cert: config.tls.as_ref().and_then(|known| set(known.cert.clone())),
        key: config.tls.as_ref().and_then(|known| set(known.key.clone())),
    };
    let file = File { server: server(config), tls, agent: config.agents.iter().map(agent).collect() };
    let body = toml::to_string(&file).map_err(|error| ConfigError(format!("cannot be printed: {error}")))?;
    let mut text = "# The configuration in effect.\n".to_owned();
    if let Some(known) = config.tokens.as_ref().filter(|known| known.file.is_none()) {
        text.push_str(&format!("# Left out: {} tokens from SWITCHBOARD_TOKENS.\n", known.tokens.len()));
    }
    if let Some(known) = config.webhook_signing_secrets.as_ref().filter(|known| known.file.is_none()) {
        text.push_str(&format!("# Left out: {} signing secrets from {}.\n", known.secrets.len(), known.from));
    }
    text.push_str(&body);
    Ok(text)
}

fn set<T>(value: T) -> Setting<T> {
    Some(Spanned::new(0..0, value))
}

fn server(config: &Config) -> ServerTable {
    let (memory, data, synchronous) = match &config.storage {
        Storage::Memory => (true, None, None),
        Storage::Sqlite { folder, synchronous } => (false, set(folder.clone()), set(*synchronous)),
    };
    ServerTable {
        listen: set(config.listen.to_string()),
        public_url: config.public_url.clone().and_then(set),
        data,
        memory: set(memory),
        synchronous,
        log_format: set(config.log_format),
        tokens_file: config.tokens.as_ref().and_then(|known| known.file.clone()).and_then(set),
        allow_unauthenticated: set(config.allow_unauthenticated),
        tenants: set(config.tenants.clone()),
        outbound_allow: set(config.outbound_allow.value.clone()),
        cors_origins: set(config.cors_origins.clone()),
        webhook_attempts_max: set(config.webhook_attempts_max.into()),
        webhook_coalesce_after: set(config.webhook_coalesce_after.into()),
        webhook_signing_secret: None,
        webhook_signing_secret_file: config
            .webhook_signing_secrets
            .as_ref()
            .and_then(|known| known.file.clone())
            .and_then(set),
        body_bytes_max: set(config.body_bytes_max as u64),
        reply_bytes_max: set(config.reply_bytes_max),
        default_version: config.default_version.and_then(|dialect| set(dialect.version().to_owned())),
        card: set(config.card),
        grace_s: set(config.grace.as_secs()),
        lease_s: set(config.lifetimes.lease_s.into()),
        queued_timeout_s: config.lifetimes.queued_s_max.and_then(|seconds| set(seconds.into())),
        processing_timeout_s: config.lifetimes.processing_s_max.and_then(|seconds| set(seconds.into())),
        resume_window_s: set(config.retention.resume_window_s.into()),
        retention_events_s: set(config.retention.events_s.into()),
        retention_tasks_s: set(config.retention.tasks_s.into()),
        retention_tasks_max: set(config.retention.tasks_max),
    }
}

fn agent(agent: &AgentConfig) -> AgentTable {
    let (kind, command, shell, env, processes_max) = match &agent.kind {
        Kind::Demo => (KindName::Demo, None, None, None, None),
        Kind::Exec { invocation, env, processes_max, .. } => {
            let (command, shell) = match invocation {
                Invocation::Words(words) => (CommandForm::Words(words.clone()), false),
                Invocation::Shell(line) => (CommandForm::Line(line.clone()), true),
            };
            (KindName::Exec, set(command), set(shell), set(env.clone()), set(*processes_max))
        }
    };
    let (recovery, reason, attempts_max, pause_s, pause_s_max) = match &agent.recovery {
        RecoveryConfig::Retry { attempts_max, pause_s, pause_s_max } => {
            (Recovery::Retry, None, *attempts_max, *pause_s, *pause_s_max)
        }
        RecoveryConfig::Fail { reason } => (Recovery::Fail, reason.clone(), None, None, None),
    };
    let number = |number: Option<u32>| number.and_then(|number| set(number.into()));
    AgentTable {
        name: Spanned::new(0..0, agent.name.clone()),
        slug: set(agent.slug.clone()),
        description: set(agent.description.clone()),
        version: set(agent.version.clone()),
        kind: set(kind),
        command,
        shell,
        env,
        processes_max,
        effects: agent.effects.and_then(set),
        idempotency: agent.idempotency.and_then(set),
        recovery: set(recovery),
        recovery_reason: reason.and_then(set),
        attempts_max: number(attempts_max),
        retry_pause_s: number(pause_s),
        retry_pause_s_max: number(pause_s_max),
        run_timeout_s: agent.run_timeout.and_then(|timeout| set(timeout.as_secs())),
        run_timeout_s_max: agent.run_timeout_max.and_then(|timeout| set(timeout.as_secs())),
        streaming: set(agent.streaming),
        push: set(agent.push),
        input_modes: set(agent.input_modes.clone()),
        output_modes: set(agent.output_modes.clone()),
        card: agent.accent.card.and_then(set),
        dialect: agent.accent.dialect.and_then(set),
        default_dialect: agent.accent.default_dialect.and_then(set),
        selectools_tasks_max: agent.accent.selectools_tasks_max.and_then(|number| set(number as u64)),
        selectools_body_bytes_max: agent.accent.selectools_body_bytes_max.and_then(|number| set(number as u64)),
        selectools_card_url: agent.accent.selectools_card_url.clone().and_then(set),
        default_project: set(agent.accent.default_project).filter(|_| agent.accent.default_project),
        corvid_sends_per_min: agent.accent.corvid_sends_per_min.and_then(|number| set(number as u64)),
        corvid_depth_max: agent.accent.corvid_depth_max.and_then(|number| set(number.into())),
        corvid_timeout_s: agent.accent.corvid_timeout_s.and_then(|number| set(number.into())),
        skill: agent.skills.iter().map(skill).collect(),
    }
}

fn skill(skill: &SkillConfig) -> SkillTable {
    SkillTable {
        id: Spanned::new(0..0, skill.id.clone()),
        name: set(skill.name.clone()),
        description: set(skill.description.clone()),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
    }
}
