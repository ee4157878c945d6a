//! What the specification 1.0.1 says for each check, word for word but without its markup. Where a section is a table made of the
//! protobuf definition, the words are those of the definition.

/// One sentence, its section, and the checks that stand on it.
struct Sentence {
    section: &'static str,
    words: &'static str,
    checks: &'static [&'static str],
}

const fn says(section: &'static str, words: &'static str, checks: &'static [&'static str]) -> Sentence {
    Sentence { section, words, checks }
}

/// The section and the words for a check. A test holds that every check has them.
pub(crate) fn of(check: &str) -> Option<(&'static str, &'static str)> {
    let found = SENTENCES.iter().find(|sentence| sentence.checks.contains(&check));
    found.map(|sentence| (sentence.section, sentence.words))
}

const SENTENCES: &[Sentence] = &[
    says("8.1", "A2A Servers MUST make an Agent Card available.", &["card-well-known"]),
    says(
        "8.2",
        "Well-Known URI: Accessing https://{server_domain}/.well-known/agent-card.json",
        &["card-content-type"],
    ),
    says(
        "5.7",
        "Fields marked with [(google.api.field_behavior) = REQUIRED] indicate that the field MUST be present \
         and set in valid messages.",
        &["card-members", "card-skills", "task-members", "task-messages"],
    ),
    says("8.3", "The AgentCard MUST properly declare supported protocols", &["card-interfaces"]),
    says(
        "8.3.1",
        "Each interface MUST accurately declare its transport protocol and URL",
        &["card-interface-members", "interface-answers"],
    ),
    says(
        "3.6",
        "Patch version numbers SHOULD NOT be used in requests, responses and Agent Cards",
        &["card-version-numbers"],
    ),
    says(
        "7.3",
        "The client discovers the server's required authentication schemes via the securitySchemes field in \
         the AgentCard.",
        &["card-security-names"],
    ),
    says("8.4.2", "The protected header MUST include", &["card-signatures"]),
    says("8.4.2", "typ: SHOULD be set to \"JOSE\" for JWS", &["card-signature-type"]),
    says(
        "8.4.1",
        "Before signing, the Agent Card content MUST be canonicalized using the JSON Canonicalization Scheme \
         (JCS) as defined in RFC 8785.",
        &["card-signature-verified"],
    ),
    says(
        "8.6.1",
        "Agent Card HTTP endpoints SHOULD include a Cache-Control response header with a max-age directive \
         appropriate for the agent's expected update frequency",
        &["card-cache-control"],
    ),
    says(
        "8.6.1",
        "Agent Card HTTP endpoints SHOULD include an ETag response header derived from the Agent Card's \
         version field or a hash of the card content",
        &["card-etag"],
    ),
    says("8.6.1", "Agent Card HTTP endpoints MAY include a Last-Modified response header", &["card-last-modified"]),
    says(
        "3.1.1",
        "Clients send a message to an agent and receive either a task that tracks the processing or a direct \
         response message.",
        &["send-answers"],
    ),
    says(
        "3.2.2",
        "The operation MUST wait until the task reaches a terminal state (TASK_STATE_COMPLETED, \
         TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_REJECTED) or an interrupted state \
         (TASK_STATE_INPUT_REQUIRED, TASK_STATE_AUTH_REQUIRED) before returning.",
        &["send-blocks"],
    ),
    says(
        "3.2.2",
        "The operation MUST return immediately after creating the task, even if processing is still in progress.",
        &["send-returns-immediately"],
    ),
    says("3.4.2", "Agents MUST generate a unique taskId for each new task they create", &["send-new-task-id"]),
    says(
        "3.4.1",
        "If an agent generates a new contextId, it MUST be included in the response (either Task or Message)",
        &["send-context-made"],
    ),
    says(
        "3.4.1",
        "If an agent cannot accept a client-provided contextId, it MUST reject the request with an error and \
         MUST NOT generate a new contextId for the response",
        &["send-context-kept"],
    ),
    says("3.4.3", "Agents MUST infer contextId from the task if only taskId is provided", &["send-context-inferred"]),
    says(
        "3.4.3",
        "Agents MUST reject messages containing mismatching contextId and taskId",
        &["send-context-mismatch"],
    ),
    says(
        "3.4.2",
        "Agents MUST return a TaskNotFoundError if the provided taskId does not correspond to an existing task",
        &["send-unknown-task"],
    ),
    says(
        "3.1.1",
        "UnsupportedOperationError: Messages sent to Tasks that are in a terminal state \
         (TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_REJECTED) cannot accept \
         further messages.",
        &["send-terminal-task"],
    ),
    says(
        "3.1.1",
        "ContentTypeNotSupportedError: A Media Type provided in the request's message parts is not supported \
         by the agent.",
        &["send-media-type"],
    ),
    says(
        "3.3.2",
        "Servers MUST validate all input parameters before processing",
        &["send-no-message", "list-page-token", "http-malformed"],
    ),
    says("5.7", "Arrays marked as required MUST contain at least one element.", &["send-no-parts"]),
    says(
        "5.7",
        "Implementations SHOULD validate these requirements and reject messages with missing required fields.",
        &["send-no-message-id"],
    ),
    says(
        "5.7",
        "Implementations SHOULD ignore unrecognized fields in messages, allowing for forward compatibility as \
         the protocol evolves.",
        &["send-unknown-fields"],
    ),
    says(
        "3.2.4",
        "No history should be returned; the history field SHOULD be omitted",
        &["send-history-length", "get-history-zero"],
    ),
    says(
        "5.5",
        "Enum values MUST be represented according to the ProtoJSON specification",
        &["task-state", "task-roles"],
    ),
    says(
        "5.6.1",
        "Timestamps MUST NOT include timezone offsets other than 'Z' (all times are UTC)",
        &["task-timestamp"],
    ),
    says("4.1.6", "Part represents a container for a section of communication content.", &["task-parts"]),
    says("4.1.7", "The content of the artifact. Must contain at least one part.", &["task-artifacts"]),
    says(
        "5.5",
        "All JSON serializations of the A2A protocol data model MUST use camelCase naming for field names, \
         not the snake_case convention used in Protocol Buffer definitions.",
        &["task-camel-case"],
    ),
    says(
        "5.7",
        "The Protocol Buffer optional keyword is used to distinguish between a field being explicitly set \
         versus omitted.",
        &["task-no-nulls"],
    ),
    says(
        "3.1.3",
        "Retrieves the current state (including status, artifacts, and optionally history) of a previously \
         initiated task.",
        &["get-task"],
    ),
    says("3.1.3", "TaskNotFoundError: The task ID does not exist or is not accessible.", &["get-unknown"]),
    says("3.2.4", "Return at most this many recent messages from the task's history", &["get-history-limit"]),
    says("6.5", "Must be non-negative integer, got -5", &["get-history-negative"]),
    says(
        "3.7",
        "Agents MAY choose to persist all Messages that contain important information in the Task history to \
         ensure clients can retrieve it later.",
        &["get-history-kept"],
    ),
    says(
        "3.1.5",
        "The operation attempts to cancel the specified task and returns its updated state.",
        &["cancel-running"],
    ),
    says(
        "3.1.5",
        "TaskNotCancelableError: The task is not in a cancelable state (e.g., already completed, failed, or \
         canceled).",
        &["cancel-terminal"],
    ),
    says("3.1.5", "TaskNotFoundError: The task ID does not exist or is not accessible.", &["cancel-unknown"]),
    says("3.1.4", "The nextPageToken field MUST always be present in the response.", &["list-members"]),
    says(
        "3.1.4",
        "Filter tasks by context ID to get tasks from a specific conversation or session.",
        &["list-context"],
    ),
    says(
        "3.1.4",
        "Implementations MUST return tasks sorted by their status timestamp time in descending order (most \
         recently updated tasks first).",
        &["list-order"],
    ),
    says(
        "3.1.4",
        "The operation MUST return only tasks visible to the authenticated client and MUST use cursor-based \
         pagination for performance and consistency.",
        &["list-pages"],
    ),
    says(
        "3.1.4",
        "When includeArtifacts is false (the default), the artifacts field MUST be omitted entirely from each \
         Task object in the response.",
        &["list-no-artifacts"],
    ),
    says(
        "3.1.4",
        "When includeArtifacts is true, the artifacts field should be included with its actual content (which \
         may be an empty array if the task has no artifacts).",
        &["list-artifacts"],
    ),
    says("3.1.4", "Filter tasks by their current status state.", &["list-status"]),
    says("3.2.4", "This parameter follows consistent semantics across all operations", &["list-history"]),
    says("6.5", "Must be between 1 and 100 inclusive, got 150", &["list-page-size"]),
    says("3.1.2", "The operation MUST establish a streaming connection for real-time updates.", &["stream-opens"]),
    says("9.1", "Streaming: Server-Sent Events (text/event-stream)", &["stream-content-type"]),
    says(
        "11.7",
        "REST streaming uses Server-Sent Events with the data field containing JSON serializations of the \
         protocol data objects",
        &["stream-framing"],
    ),
    says("9.1", "Protocol: JSON-RPC 2.0 over HTTP(S)", &["stream-rpc-id", "jsonrpc-envelope"]),
    says(
        "4.3.3",
        "The webhook payload is a StreamResponse object containing exactly one of the following",
        &["stream-one-payload", "push-delivered-payload"],
    ),
    says(
        "3.1.2",
        "If the agent returns a Task, the stream MUST begin with the Task object, followed by zero or more \
         TaskStatusUpdateEvent or TaskArtifactUpdateEvent objects.",
        &["stream-first"],
    ),
    says(
        "3.1.2",
        "If the agent returns a Message, the stream MUST contain exactly one Message object and then close \
         immediately.",
        &["stream-message-alone"],
    ),
    says("4.2.1", "The ID of the context that the task belongs to.", &["stream-same-task"]),
    says("3.5.2", "All implementations MUST deliver events in the order they were generated.", &["stream-order"]),
    says(
        "3.1.2",
        "The stream MUST close when the task reaches a terminal state (TASK_STATE_COMPLETED, \
         TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_REJECTED).",
        &["stream-ends"],
    ),
    says(
        "3.1.3",
        "This is typically used for polling the status of a task initiated with Send Message, or for fetching \
         the final state of a task after being notified via a push notification or after a stream has ended.",
        &["stream-equals-task"],
    ),
    says(
        "3.3.2",
        "Servers MUST return appropriate errors and SHOULD provide actionable information to help clients \
         resolve issues.",
        &["stream-refused-plainly"],
    ),
    says(
        "3.3.4",
        "If AgentCard.capabilities.streaming is false or not present, attempts to use SendStreamingMessage or \
         SubscribeToTask operations MUST return UnsupportedOperationError.",
        &["stream-not-declared"],
    ),
    says(
        "3.1.6",
        "The operation MUST return a Task object as the first event in the stream, representing the current \
         state of the task at the time of subscription.",
        &["subscribe-first"],
    ),
    says(
        "3.1.6",
        "The stream MUST terminate when the task reaches a terminal state (TASK_STATE_COMPLETED, \
         TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_REJECTED).",
        &["subscribe-ends"],
    ),
    says("3.5.2", "Each stream MUST receive the same events in the same order", &["subscribe-alike"]),
    says("3.5.2", "Closing one stream MUST NOT affect other active streams for the same task", &["subscribe-leaving"]),
    says(
        "3.1.6",
        "UnsupportedOperationError: The operation is attempted on a task that is in a terminal state \
         (TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_REJECTED).",
        &["subscribe-terminal"],
    ),
    says("3.1.6", "TaskNotFoundError: The task ID does not exist or is not accessible.", &["subscribe-unknown"]),
    says("3.1.7", "The operation MUST establish a webhook endpoint for task update notifications.", &["push-create"]),
    says(
        "3.1.8",
        "The operation MUST return configuration details including webhook URL and notification settings.",
        &["push-get"],
    ),
    says(
        "3.1.8",
        "The operation MUST fail if the configuration does not exist or the client lacks access.",
        &["push-get-unknown"],
    ),
    says(
        "3.1.9",
        "The operation MUST return all active push notification configurations for the specified task and MAY \
         support pagination for tasks with many configurations.",
        &["push-list"],
    ),
    says(
        "3.1.10",
        "The operation MUST permanently remove the specified push notification configuration.",
        &["push-delete"],
    ),
    says(
        "3.1.10",
        "This operation MUST be idempotent - multiple deletions of the same config have the same effect.",
        &["push-delete-twice"],
    ),
    says("3.1.7", "TaskNotFoundError: The task ID does not exist or is not accessible.", &["push-unknown-task"]),
    says(
        "3.3.4",
        "If AgentCard.capabilities.pushNotifications is false or not present, operations related to push \
         notification configuration (Create, Get, List, Delete) MUST return \
         PushNotificationNotSupportedError.",
        &["push-not-declared"],
    ),
    says("4.3.3", "Agents MUST attempt delivery at least once for each configured webhook", &["push-delivered"]),
    says(
        "4.3.3",
        "The agent MUST include authentication credentials in the request headers as specified in the \
         PushNotificationConfig.authentication field.",
        &["push-delivered-credentials"],
    ),
    says("4.3.3", "Content-Type: application/a2a+json", &["push-delivered-content-type"]),
    says(
        "3.1.10",
        "No further notifications will be sent to the configured webhook after deletion.",
        &["push-delete-stops"],
    ),
    says(
        "3.6.2",
        "If the version is not supported by the interface, agents MUST return a VersionNotSupportedError.",
        &["version-unsupported"],
    ),
    says(
        "3.6",
        "Patch version numbers SHOULD NOT be used in requests, responses and Agent Cards, and MUST not be \
         considered when clients and servers negotiate protocol versions.",
        &["version-patch"],
    ),
    says("3.6.2", "Agents MUST interpret empty value as 0.3 version.", &["version-absent"]),
    says(
        "4.6.3",
        "If a client requests a versions of an extension that the agent does not support, the agent SHOULD \
         ignore the extension for that interaction and proceed without it",
        &["extension-unknown"],
    ),
    says(
        "3.3.4",
        "When a server requests use of an extension marked as required: true in the Agent Card but the client \
         does not declare support for it, the agent MUST return ExtensionSupportRequiredError.",
        &["extension-required"],
    ),
    says(
        "3.3.4",
        "If the agent declares support but has not configured an extended card, it MUST return \
         ExtendedAgentCardNotConfiguredError.",
        &["extended-card"],
    ),
    says("13.3", "The Get Extended Agent Card operation MUST require authentication", &["extended-card-secret"]),
    says(
        "3.3.4",
        "If AgentCard.capabilities.extendedAgentCard is false or not present, attempts to call the Get \
         Extended Agent Card operation MUST return UnsupportedOperationError.",
        &["extended-card-not-declared"],
    ),
    says(
        "7.4",
        "MUST authenticate every incoming request based on the provided credentials and its declared \
         authentication requirements.",
        &["auth-required"],
    ),
    says(
        "3.3.2",
        "Servers SHOULD include authentication challenge information in the error response",
        &["auth-challenge"],
    ),
    says(
        "8.3.2",
        "Set the tenant field in every request message to exactly the value declared in the selected \
         AgentInterface entry (omit the field if tenant is not set in that entry)",
        &["tenant-accepted"],
    ),
    says(
        "3.3.2",
        "All error responses in the A2A protocol, regardless of binding, MUST convey the following information",
        &["error-message"],
    ),
    says(
        "9.1",
        "Content-Type: application/json for requests and responses",
        &["jsonrpc-content-type", "jsonrpc-wrong-content-type"],
    ),
    says(
        "9.5",
        "JSON-RPC error responses use the standard JSON-RPC 2.0 error object structure",
        &["jsonrpc-error-object"],
    ),
    says(
        "9.5",
        "Implementations SHOULD use well-known types such as google.rpc.ErrorInfo to refine error reporting, \
         or google.rpc.BadRequest to attach structured data to validation errors.",
        &["jsonrpc-error-info"],
    ),
    says("9.5", "The server received invalid JSON", &["jsonrpc-malformed"]),
    says("9.5", "The JSON sent is not a valid Request object", &["jsonrpc-no-request"]),
    says("9.5", "The requested method does not exist or is not available", &["jsonrpc-unknown-method"]),
    says(
        "11.1",
        "Content-Type: application/a2a+json SHOULD be used for requests and responses",
        &["http-content-type"],
    ),
    says("11.1", "Methods: Standard HTTP verbs (GET, POST, PUT, DELETE)", &["http-success-status"]),
    says("11.6", "HTTP error responses use the google.rpc.Status JSON representation", &["http-error-body"]),
    says(
        "11.6",
        "implementations MUST include a google.rpc.ErrorInfo object in the details array for A2A-specific errors",
        &["http-error-info"],
    ),
    says(
        "3.3.2",
        "Servers MUST return a not found error when a requested resource does not exist or is not accessible \
         to the authenticated client",
        &["http-unknown-path"],
    ),
    says("10.1", "Service: Implement the A2AService gRPC service", &["grpc-status"]),
    says(
        "10.6",
        "For A2A-specific errors, implementations MUST include a google.rpc.ErrorInfo message in the \
         status.details array",
        &["grpc-error-info"],
    ),
    says("10.6", "gRPC error responses use the standard gRPC status structure", &["grpc-unknown-method"]),
    says("5.1", "Consistent Behavior: Return semantically equivalent results for the same requests", &["equal-task"]),
    says(
        "5.1",
        "Same Error Handling: Map errors consistently using appropriate protocol-specific codes",
        &["equal-errors"],
    ),
    says(
        "3.3.2",
        "Example scenarios: Invalid task ID format, missing required message parts, unsupported content type",
        &["send-parts-absent"],
    ),
];

#[cfg(test)]
pub(crate) fn named() -> impl Iterator<Item = &'static str> {
    SENTENCES.iter().flat_map(|sentence| sentence.checks.iter().copied())
}
