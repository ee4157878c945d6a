//! What the server is to do, from four layers: flag, environment, `switchboard.toml`, default. The first that says
//! something about a setting decides it. Every value remembers where it came from, so that a wrong one is refused in
//! one sentence that names the flag, the variable, or the file with line and key.
//!
//! [`file`] is the form of the file, [`layer`] what one layer says, [`settle`] turns the layers into a [`Config`] that
//! is known to be good.

mod agents;
mod choices;
mod environment;
mod file;
mod layer;
mod listen;
mod origin;
mod print;
mod recovery;
mod secrets;
mod settle;
mod tls;
mod values;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use switchboard::{Limits, SigningSecrets, Tls, Tokens};

use crate::agents::exec::{Invocation, Program};

pub(crate) use choices::{Card, Effects, Idempotency, LogFormat, Seed, Synchronous};
pub(crate) use environment::Environment;
pub(crate) use layer::{Command, Layer, gather};
pub(crate) use listen::{is_local, local_url, reachable};
pub(crate) use origin::{ConfigError, Given, Origin};
pub(crate) use print::print;
pub(crate) use settle::settle;

/// The name of the configuration file that is looked for in the current folder.
pub(crate) const FILE_NAME: &str = "switchboard.toml";

/// The database inside the data folder.
pub(crate) const DATABASE_NAME: &str = "switchboard.db";

/// A configuration that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) public_url: Option<String>,
    /// None is a port without TLS.
    pub(crate) tls: Option<KnownTls>,
    pub(crate) storage: Storage,
    pub(crate) log_format: LogFormat,
    pub(crate) tokens: Option<KnownTokens>,
    pub(crate) allow_unauthenticated: bool,
    /// Tenants of callers without a token.
    pub(crate) tenants: Vec<String>,
    /// Judged by the client that calls them, so it is not known here whether they are good.
    pub(crate) outbound_allow: Given<Vec<String>>,
    pub(crate) cors_origins: Vec<String>,
    /// Attempts at a webhook before it is given up on.
    pub(crate) webhook_attempts_max: u32,
    /// How far behind a receiver gets the newest state instead; 0 is never.
    pub(crate) webhook_coalesce_after: u32,
    pub(crate) webhook_signing_secrets: Option<KnownSecrets>,
    pub(crate) body_bytes_max: usize,
    pub(crate) reply_bytes_max: u64,
    /// What a request that names no version means; none is what the specification says.
    pub(crate) default_version: Option<switchboard::Dialect>,
    /// What the cards hold for those who name no version.
    pub(crate) card: Card,
    pub(crate) grace: Duration,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) retention: Retention,
    /// The first is the default one. Never empty.
    pub(crate) agents: Vec<AgentConfig>,
}

/// What is kept of tasks that have ended, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) resume_window_s: u32,
    pub(crate) events_s: u32,
    pub(crate) tasks_s: u32,
    pub(crate) tasks_max: u64,
}

impl Retention {
    /// The limits of an engine that keeps so much.
    pub(crate) fn limit(self, limits: Limits) -> Limits {
        Limits {
            resume_window_s: self.resume_window_s,
            retention_events_s: self.events_s,
            retention_tasks_s: self.tasks_s,
            retention_tasks_max: self.tasks_max,
            ..limits
        }
    }
}

/// How long things about runs last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetimes {
    pub(crate) lease_s: u32,
    /// None is without limit, like the next.
    pub(crate) queued_s_max: Option<u32>,
    pub(crate) processing_s_max: Option<u32>,
}

/// Where tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Memory,
    Sqlite { folder: PathBuf, synchronous: Synchronous },
}

impl Storage {
    /// The data folder, if there is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::Sqlite { folder, .. } => Some(folder),
        }
    }
}

/// A certificate and its key, and where they were found.
#[derive(Clone, Debug)]
pub(crate) struct KnownTls {
    pub(crate) tls: Tls,
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    /// What is not wrong, but should not be left so.
    pub(crate) doubt: Option<ConfigError>,
}

/// Tokens and where they were found. Their text is not kept.
#[derive(Clone, Debug)]
pub(crate) struct KnownTokens {
    pub(crate) tokens: Tokens,
    /// None if they came from the environment.
    pub(crate) file: Option<PathBuf>,
}

/// Secrets to sign webhooks with, and where they were found. Their text is not kept.
#[derive(Clone, Debug)]
pub(crate) struct KnownSecrets {
    pub(crate) secrets: SigningSecrets,
    pub(crate) from: Origin,
    /// None if they were the setting itself.
    pub(crate) file: Option<PathBuf>,
}

#[derive(Clone, Debug)]
pub(crate) struct AgentConfig {
    pub(crate) name: String,
    pub(crate) slug: String,
    pub(crate) description: String,
    pub(crate) version: String,
    pub(crate) kind: Kind,
    /// None is what the kind of agent declares.
    pub(crate) effects: Option<Effects>,
    /// None is by message id for callers who have a name, by key for the others.
    pub(crate) idempotency: Option<Idempotency>,
    pub(crate) recovery: RecoveryConfig,
    pub(crate) run_timeout: Option<Duration>,
    /// The most that a call may ask for; none is `run_timeout`.
    pub(crate) run_timeout_max: Option<Duration>,
    pub(crate) streaming: bool,
    pub(crate) push: bool,
    pub(crate) input_modes: Vec<String>,
    pub(crate) output_modes: Vec<String>,
    pub(crate) skills: Vec<SkillConfig>,
    pub(crate) accent: AccentConfig,
}

/// How an agent deals with the accents of single systems. What is not said is the server's to decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AccentConfig {
    pub(crate) card: Option<Card>,
    pub(crate) dialect: Option<Seed>,
    pub(crate) default_dialect: Option<Seed>,
    pub(crate) selectools_tasks_max: Option<usize>,
    pub(crate) selectools_body_bytes_max: Option<usize>,
    pub(crate) selectools_card_url: Option<String>,
    pub(crate) default_project: bool,
    pub(crate) corvid_sends_per_min: Option<usize>,
    pub(crate) corvid_depth_max: Option<u32>,
    pub(crate) corvid_timeout_s: Option<u32>,
}

/// What happens to a run that was interrupted. What is not said is the engine's to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryConfig {
    Retry { attempts_max: Option<u32>, pause_s: Option<u32>, pause_s_max: Option<u32> },
    Fail { reason: Option<String> },
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Demo,
    Exec {
        invocation: Invocation,
        program: Program,
        /// Variables passed on to the command beside the usual ones.
        env: Vec<String>,
        /// How many may run at once.
        processes_max: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SkillConfig {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) tags: Vec<String>,
    pub(crate) examples: Vec<String>,
    pub(crate) input_modes: Vec<String>,
    pub(crate) output_modes: Vec<String>,
}

#[cfg(test)]
mod tests;
