//! The form of `switchboard.toml`. Keys nobody knows are refused, since a misspelled setting is worse than none. The
//! same form is printed by `--print-config`, so that what is printed can be read back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_path_to_error::Segment;
use toml::Spanned;

use super::ConfigError;
use super::choices::{Card, Effects, Idempotency, KindName, LogFormat, Recovery, Seed, Synchronous};

/// A setting that may be there, and where.
pub(super) type Setting<T> = Option<Spanned<T>>;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) server: ServerTable,
    #[serde(skip_serializing_if = "TlsTable::is_empty")]
    pub(super) tls: TlsTable,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) agent: Vec<AgentTable>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServerTable {
    pub(super) listen: Setting<String>,
    pub(super) public_url: Setting<String>,
    pub(super) data: Setting<PathBuf>,
    pub(super) memory: Setting<bool>,
    pub(super) synchronous: Setting<Synchronous>,
    pub(super) log_format: Setting<LogFormat>,
    pub(super) tokens_file: Setting<PathBuf>,
    pub(super) allow_unauthenticated: Setting<bool>,
    pub(super) tenants: Setting<Vec<String>>,
    pub(super) outbound_allow: Setting<Vec<String>>,
    pub(super) cors_origins: Setting<Vec<String>>,
    pub(super) webhook_attempts_max: Setting<u64>,
    pub(super) webhook_coalesce_after: Setting<u64>,
    pub(super) webhook_signing_secret: Setting<SecretForm>,
    pub(super) webhook_signing_secret_file: Setting<PathBuf>,
    pub(super) body_bytes_max: Setting<u64>,
    pub(super) reply_bytes_max: Setting<u64>,
    pub(super) default_version: Setting<String>,
    pub(super) card: Setting<Card>,
    pub(super) grace_s: Setting<u64>,
    pub(super) lease_s: Setting<u64>,
    pub(super) queued_timeout_s: Setting<u64>,
    pub(super) processing_timeout_s: Setting<u64>,
    pub(super) resume_window_s: Setting<u64>,
    pub(super) retention_events_s: Setting<u64>,
    pub(super) retention_tasks_s: Setting<u64>,
    pub(super) retention_tasks_max: Setting<u64>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsTable {
    pub(super) cert: Setting<PathBuf>,
    pub(super) key: Setting<PathBuf>,
}

impl TlsTable {
    fn is_empty(&self) -> bool {
        self.cert.is_none() && self.key.is_none()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentTable {
    pub(super) name: Spanned<String>,
    pub(super) slug: Setting<String>,
    pub(super) description: Setting<String>,
    pub(super) version: Setting<String>,
    pub(super) kind: Setting<KindName>,
    pub(super) command: Setting<CommandForm>,
    pub(super) shell: Setting<bool>,
    pub(super) env: Setting<Vec<String>>,
    pub(super) processes_max: Setting<u64>,
    pub(super) effects: Setting<Effects>,
    pub(super) idempotency: Setting<Idempotency>,
    pub(super) recovery: Setting<Recovery>,
    pub(super) recovery_reason: Setting<String>,
    pub(super) attempts_max: Setting<u64>,
    pub(super) retry_pause_s: Setting<u64>,
    pub(super) retry_pause_s_max: Setting<u64>,
    pub(super) run_timeout_s: Setting<u64>,
    pub(super) run_timeout_s_max: Setting<u64>,
    pub(super) streaming: Setting<bool>,
    pub(super) push: Setting<bool>,
    pub(super) input_modes: Setting<Vec<String>>,
    pub(super) output_modes: Setting<Vec<String>>,
    pub(super) card: Setting<Card>,
    pub(super) dialect: Setting<Seed>,
    pub(super) default_dialect: Setting<Seed>,
    pub(super) selectools_tasks_max: Setting<u64>,
    pub(super) selectools_body_bytes_max: Setting<u64>,
    pub(super) selectools_card_url: Setting<String>,
    pub(super) default_project: Setting<bool>,
    pub(super) corvid_sends_per_min: Setting<u64>,
    pub(super) corvid_depth_max: Setting<u64>,
    pub(super) corvid_timeout_s: Setting<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) skill: Vec<SkillTable>,
}

/// A command line to be split into words, or the words.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of strings")]
pub(super) enum CommandForm {
    Line(String),
    Words(Vec<String>),
}

/// A secret, or several. Whatever else is found is refused in words of ours, since those of the parser quote it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a string, or a list of strings")]
pub(super) enum SecretForm {
    One(String),
    Several(Vec<String>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SkillTable {
    pub(super) id: Spanned<String>,
    pub(super) name: Setting<String>,
    pub(super) description: Setting<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) examples: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) input_modes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) output_modes: Vec<String>,
}

/// A file that was read, and what is needed to say where something is in it.
pub(super) struct Source {
    pub(super) path: Arc<Path>,
    text: String,
}

impl Source {
    pub(super) fn new(path: &Path, text: String) -> Self {
        Self { path: Arc::from(path), text }
    }

    /// Reads the form; what is wrong is said with line and key.
    pub(super) fn parse(&self) -> Result<File, ConfigError> {
        let parser = toml::Deserializer::parse(&self.text).map_err(|error| self.error(&error, ""))?;
        serde_path_to_error::deserialize(parser).map_err(|error| {
            let key = key_of(error.path());
            self.error(error.inner(), &key)
        })
    }

    /// The line of a place in the text, from 1.
    pub(super) fn line_at(&self, at: usize) -> usize {
        let before = self.text.as_bytes().iter().take(at);
        before.filter(|byte| **byte == b'\n').count() + 1
    }

    fn error(&self, error: &toml::de::Error, key: &str) -> ConfigError {
        let line = error.span().map_or(1, |span| self.line_at(span.start));
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        let why = error.message().replace('\n', "; ");
        ConfigError(format!("{}:{line}: {key}{why}", self.path.display()))
    }
}

/// The dotted key of a place, without the scaffolding that spans add.
fn key_of(path: &serde_path_to_error::Path) -> String {
    let mut key = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => key.push_str(&format!("[{index}]")),
            Segment::Map { key: name } if name.starts_with("$__") => {}
            Segment::Map { key: name } => {
                if !key.is_empty() {
                    key.push('.');
                }
                key.push_str(name);
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    key
}
