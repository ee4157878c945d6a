//! The names that each dialect has for the methods, fields and headers that an error of the engine may mention. The
//! engine writes an error for a caller and looks the names up here, so that no client is told to use a method that its
//! dialect does not have.

use crate::model::{Package, Vocabulary};

/// The names for callers over gRPC.
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

/// Also used by the compat dialects. They have no webhooks and cannot resume streams, so no error names those to them.
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
