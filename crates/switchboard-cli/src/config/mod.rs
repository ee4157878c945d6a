//! What the server is to do, from four layers: flag, environment, `switchboard.toml`, default. The first that says
//! something about a setting decides it. Every value remembers where it came from, so that a wrong one is refused in
//! one sentence that names the flag, the variable, or the file with line and key; one run reports all that is wrong.
//!
//! [`table`] has a row for every setting, [`row`] is what such a row holds. [`flags`], [`layers`] and [`file`] read the
//! layers by the rows, [`typed`] turns values into Rust types, and [`resolve`] checks settings against each other and
//! makes a [`Config`] that is known to be good.

mod agent_table;
mod agents;
mod choices;
mod environment;
mod file;
mod file_rights;
mod flags;
mod headings;
mod issuers;
mod layer;
mod layers;
mod listen;
mod origin;
mod print;
mod relay;
mod resolve;
mod row;
mod secrets;
mod table;
mod typed;
mod values;

use std::path::{Path, PathBuf};

use switchboard::{Otlp, Rules, SecretKeySource, SharedSecret, SigningKeys, SigningSecrets, Tls, Tokens};

use crate::agents::exec::{Invocation, Program};

pub(crate) use agent_table::{AgentSettings, CompatSettings, SkillSettings};
pub(crate) use choices::{
    Audit, Card, CompatRpc, Dispatch, Effects, ErrorDetails, Idempotency, LogFormat, Synchronous,
};
pub(crate) use environment::Environment;
pub(crate) use flags::SettingFlags;
pub(crate) use issuers::KnownIssuer;
pub(crate) use layers::{layers_without_file, read_layers};
pub(crate) use listen::{is_local, is_local_url, local_url};
pub(crate) use origin::{ConfigError, ConfigErrors, Given, Origin};
pub(crate) use print::print;
pub(crate) use relay::RelayConfig;
pub(crate) use resolve::resolve;
pub(crate) use secrets::secret_keys;
pub(crate) use table::{ServerSettings, TlsSettings};
pub(crate) use typed::Secret;
pub(crate) use values::{path_name, slug_of};

/// The name of the configuration file that is looked for in the current folder.
pub(crate) const FILE_NAME: &str = "switchboard.toml";

/// The file inside the data folder that holds the key of operators of a server without tokens.
pub(crate) const OPERATOR_KEY_NAME: &str = "operator-key";

/// The database inside the data folder.
pub(crate) const DATABASE_NAME: &str = "switchboard.db";

/// The folder inside the data folder that holds the agents that `switchboard agents add` accepted.
pub(crate) const REMOTE_AGENTS_NAME: &str = "remote-agents";
/// The folder of signing keys inside the data folder.
const KEYS_NAME: &str = "keys";

/// A configuration that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) server: ServerSettings,
    pub(crate) tls_settings: TlsSettings,
    /// None is a port without TLS.
    pub(crate) tls: Option<KnownTls>,
    pub(crate) storage: Storage,
    pub(crate) tokens: Option<KnownTokens>,
    /// The key that all callers share.
    pub(crate) api_key: Option<Secret>,
    /// What callers sign their tokens with.
    pub(crate) shared_secret: Option<SharedSecret>,
    /// The identity providers whose tokens are accepted.
    pub(crate) issuers: Vec<KnownIssuer>,
    pub(crate) webhook_signing_secrets: Option<KnownSecrets>,
    pub(crate) rules: Option<Rules>,
    /// Where the keys are that secrets of webhooks are encrypted with.
    pub(crate) secret_keys: SecretKeySource,
    /// The text of the credentials for NATS.
    #[cfg_attr(
        not(feature = "postgres"),
        allow(dead_code, reason = "hints are between servers that share a database")
    )]
    pub(crate) hints_credentials: Option<Secret>,
    /// Where traces and metrics are sent.
    pub(crate) otlp: Option<Otlp>,
    /// The keys that cards are signed with, which may be none yet.
    pub(crate) signing_keys: Option<SigningKeys>,
    /// The first is the default one. Never empty.
    pub(crate) agents: Vec<AgentConfig>,
    /// The variable that says that this is production.
    pub(crate) production: Option<&'static str>,
    /// What is unsafe and does not keep the server from starting.
    pub(crate) doubts: Vec<ConfigError>,
}

impl Config {
    /// Whether callers are known by something that they show.
    pub(crate) fn has_authentication(&self) -> bool {
        self.tokens.is_some()
            || self.api_key.is_some()
            || self.shared_secret.is_some()
            || !self.issuers.is_empty()
            || self.tls_settings.client_authority.is_some()
    }

    /// Whether the server refuses every call, because this is production and no setting says who may call.
    pub(crate) fn is_closed(&self) -> bool {
        self.production.is_some() && !self.has_authentication() && !*self.server.allow_unauthenticated
    }

    /// Where clients on other machines find this server and need no token: the address of the port, or the public URL.
    pub(crate) fn open_to_others_at(&self) -> Option<String> {
        if self.has_authentication() {
            return None;
        }
        let public = self.server.public_url.as_ref().filter(|url| !is_local_url(url));
        let listen = *self.server.listen;
        public.cloned().or_else(|| (!is_local(listen)).then(|| listen.to_string()))
    }
}

/// Where tasks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Memory,
    Sqlite { folder: PathBuf, synchronous: Synchronous },
    Postgres { url: Secret, schema: String },
}

impl Storage {
    /// The data folder, if there is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Memory | Self::Postgres { .. } => None,
            Self::Sqlite { folder, .. } => Some(folder),
        }
    }
}

/// A certificate and its key.
#[derive(Clone, Debug)]
pub(crate) struct KnownTls {
    pub(crate) tls: Tls,
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
    /// What the layers say, with the gaps filled that depend on the kind of agent.
    pub(crate) settings: AgentSettings,
    pub(crate) compat: CompatSettings,
    pub(crate) recovery: RecoveryConfig,
    pub(crate) kind: Kind,
    pub(crate) skills: Vec<SkillSettings>,
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
    },
    Relay(Box<RelayConfig>),
    /// Passes each message on to the agent that fits it.
    Dispatch,
}

#[cfg(test)]
mod tests;
