//! The extension of A2A by which an agent says on its card that a message may be sent to it again.

/// The URI of the extension by which the card of an agent says that it recognises messages that are sent again: a message with an
/// `Idempotency-Key` (a header, or metadata of gRPC) that was seen before, from the same caller, within the agent's window (24 hours
/// by default), is answered with what came of the first one. Agents of Switchboard have it; a client sends a message whose outcome
/// it does not know again only to agents that have it. Nothing needs to be activated.
pub const IDEMPOTENT_SENDS: &str = "https://github.com/switchboard-a2a/switchboard/blob/main/docs/idempotent-sends.md";
