//! What each dialect calls the things that a refusal from behind the door may have to name. Who refuses there has a caller
//! and knows what to say; how it is called is looked up here, so that nobody is told to use a method they do not have.

use crate::model::{Dialect, Package};

/// Names of operations, fields and headers in one dialect.
#[derive(Debug, PartialEq, Eq)]
pub struct Vocabulary {
    pub send_message: &'static str,
    pub get_task: &'static str,
    /// What follows a task that is there already.
    pub subscribe: &'static str,
    /// The context a message names.
    pub context_id: &'static str,
    /// The parts of a message.
    pub parts: &'static str,
    /// The media type in one of the parts.
    pub media_type: &'static str,
    /// The webhook that is registered with a send.
    pub push_config_of_send: &'static str,
    /// In front of the members of a webhook that is registered by itself.
    pub push_config: &'static str,
    /// Where a client says by which name a send is to be known again.
    pub idempotency_key: &'static str,
    /// Where a client says which extensions it knows.
    pub extensions: &'static str,
}

/// The words of a dialect.
#[must_use]
pub fn vocabulary(dialect: Dialect) -> &'static Vocabulary {
    match dialect {
        Dialect::V1_0 => &V1_0,
        Dialect::V0_3 | Dialect::Selectools | Dialect::Corvid => &V0_3,
        Dialect::V0_3Rest => &V0_3_REST,
        Dialect::AgentNative => &AGENT_NATIVE,
        Dialect::Nexus => &NEXUS,
    }
}

/// The words of those who call over gRPC.
#[must_use]
pub fn vocabulary_of_package(package: Package) -> &'static Vocabulary {
    match package {
        Package::V1_0 => &V1_0,
        Package::V0_3 => &V0_3_REST,
    }
}

static V1_0: Vocabulary = Vocabulary {
    send_message: "SendMessage",
    get_task: "GetTask",
    subscribe: "SubscribeToTask",
    context_id: "message.contextId",
    parts: "message.parts",
    media_type: "mediaType",
    push_config_of_send: "configuration.taskPushNotificationConfig",
    push_config: "",
    idempotency_key: "Idempotency-Key",
    extensions: "A2A-Extensions",
};

/// What the accents do not have, they are not told of either: their calls know no webhooks and no streams to come back to.
const V0_3_WORDS: Vocabulary = Vocabulary {
    send_message: "message/send",
    get_task: "tasks/get",
    subscribe: "tasks/resubscribe",
    context_id: "message.contextId",
    parts: "message.parts",
    media_type: "file.mimeType",
    push_config_of_send: "configuration.pushNotificationConfig",
    push_config: "pushNotificationConfig.",
    idempotency_key: "Idempotency-Key",
    extensions: "X-A2A-Extensions",
};

static V0_3: Vocabulary = V0_3_WORDS;

/// Over HTTP+JSON and gRPC, operations are called as in the proto that both are made from.
static V0_3_REST: Vocabulary = Vocabulary {
    send_message: "SendMessage",
    get_task: "GetTask",
    subscribe: "TaskSubscription",
    parts: "message.content",
    push_config_of_send: "configuration.pushNotification",
    push_config: "config.pushNotificationConfig.",
    ..V0_3_WORDS
};

static AGENT_NATIVE: Vocabulary = Vocabulary { idempotency_key: "idempotencyKey", ..V0_3_WORDS };

/// The id that a client chooses for a task is what its repeats are known by.
static NEXUS: Vocabulary = Vocabulary { idempotency_key: "id", ..V0_3_WORDS };
