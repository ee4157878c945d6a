//! Settings that are one of a few words, spelled alike in flags, variables and the file.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object per line.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Synchronous {
    /// Every answered request is on disk: it survives power loss.
    #[default]
    Full,
    /// Power loss may take the last moments, and never damages the file.
    Normal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Card {
    /// The members of every version, side by side.
    #[default]
    All,
    /// Those of A2A 1.0 alone.
    #[value(name = "1.0")]
    #[serde(rename = "1.0")]
    V1_0,
    /// The card that agent-native generates.
    #[serde(rename = "agent-native")]
    AgentNative,
    /// The card that selectools generates.
    Selectools,
    /// The card that corvid-agents generate.
    Corvid,
    /// The card that agents of NEXUS have.
    Nexus,
}

/// What a message that is sent again is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Idempotency {
    /// Its id and its content.
    MessageId,
    /// The header Idempotency-Key alone.
    Key,
    /// As key: the header always counts.
    Off,
}

/// An accent of a single system, of those that travel over JSON-RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Seed {
    AgentNative,
    Selectools,
    Nexus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effects {
    /// It only computes an answer, so a message and its answer may be one commit.
    None,
    /// It may do things that last, so it starts only after its message is safe.
    Some,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Recovery {
    /// A run that was interrupted is started again.
    #[default]
    Retry,
    /// A run that was interrupted fails its task.
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KindName {
    #[default]
    Demo,
    Exec,
}
