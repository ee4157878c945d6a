//! What each dialect calls the things that a refusal from behind the door may have to name. Who refuses there has a caller
//! and knows what to say; how it is called is looked up here, so that nobody is told to use a method they do not have.

use crate::model::{Package, Vocabulary};

/// The words of those who call over gRPC.
#[must_use]
pub fn vocabulary_of_package(package: Package) -> &'static Vocabulary {
    match package {
        Package::V1_0 => &V1_0,
        Package::V0_3 => &V0_3_REST,
    }
}

pub(super) const V1_0: Vocabulary = Vocabulary {
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

/// What the dialects of single systems do not have, they are not told of either: their calls know no webhooks and no
/// streams to come back to.
pub(super) const V0_3: Vocabulary = Vocabulary {
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

/// Over HTTP+JSON and gRPC, operations are called as in the proto that both are made from.
pub(super) const V0_3_REST: Vocabulary = Vocabulary {
    send_message: "SendMessage",
    get_task: "GetTask",
    subscribe: "TaskSubscription",
    parts: "message.content",
    push_config_of_send: "configuration.pushNotification",
    push_config: "config.pushNotificationConfig.",
    ..V0_3
};
