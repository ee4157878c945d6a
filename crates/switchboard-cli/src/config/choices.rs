//! Settings that are one of a few words, spelled alike in flags, variables and the file.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Readable text.
    Text,
    /// One object per line.
    Json,
}

/// What is written to the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Audit {
    /// Nothing.
    Off,
    /// Refusals, changes of credentials and rules, what operators do.
    Default,
    /// Every accepted message as well.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Synchronous {
    /// Every answered request is on disk: it survives power loss.
    Full,
    /// Power loss may take the last moments, and never damages the file.
    Normal,
}

/// What starts the runs of asynchronous sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Dispatch {
    /// The process that has accepted the message.
    Direct,
    /// A request that the server posts to itself.
    SelfFire,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Card {
    /// The members of every version, side by side.
    All,
    /// Those of A2A 1.0 alone.
    #[value(name = "1.0")]
    V1_0,
    /// The card that agent-native generates.
    AgentNative,
    /// The card that selectools generates.
    Selectools,
    /// The card that corvid-agents generate.
    Corvid,
    /// The card that agents of NEXUS have.
    Nexus,
}

/// How the engine recognises a message that is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Idempotency {
    /// By its id and its content.
    MessageId,
    /// By the header Idempotency-Key alone.
    Key,
    /// As key: the header always counts.
    Off,
}

/// A compat dialect, of those that travel over JSON-RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompatRpc {
    AgentNative,
    Selectools,
    Nexus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Effects {
    /// The agent only computes an answer, so a message and its answer may be one commit.
    None,
    /// The agent may do things that last, so it starts only after its message is durable.
    Some,
}

/// What a client reads of a failure that the agent did not choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ErrorDetails {
    /// A reason and an incident id; the log has the cause under that id.
    Incident,
    /// The whole text.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Recovery {
    /// A run that was interrupted is started again.
    Retry,
    /// A run that was interrupted fails its task.
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindName {
    Demo,
    Exec,
    Relay,
    Dispatch,
}

/// What a relay shows its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CredentialKind {
    Bearer,
    ApiKey,
    Basic,
    /// The secret of an application.
    Oauth,
}

/// What an upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RelayDialect {
    #[value(name = "1.0")]
    V1_0,
    #[value(name = "0.3")]
    V0_3,
    AgentNative,
    Selectools,
    Corvid,
    Nexus,
}

/// When a message is sent again of which is not known whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResendName {
    IfRecognised,
    Always,
}

/// What happens when the card of an upstream has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CardChangesName {
    Show,
    Refuse,
}
