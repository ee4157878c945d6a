//! The things A2A talks about, in the spec's own words. These are not wire types: they carry no serde, and only a
//! dialect knows how they are spelled.
#![warn(missing_docs, missing_debug_implementations)]

mod artifact;
mod card;
mod conversation;
mod dialect;
mod ids;
mod json;
mod message;
mod part;
mod push;
pub mod redact;
mod rules;
mod security;
mod task;
mod timestamp;
mod trace;
mod update;
mod weight;

pub use artifact::{Artifact, ArtifactDetails};
pub use card::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
};
pub use conversation::conversation;
pub(crate) use conversation::{from_conversation, in_words};
pub use dialect::{Dialect, Package};
pub use ids::{AgentName, ArtifactId, ConfigId, ContextId, MessageId, Principal, TaskId, Tenant};
pub use json::{Json, JsonError, JsonLimits};
pub use message::{Message, Role};
pub use part::{Part, PartContent, PartDetails};
pub use push::{AuthenticationInfo, PushConfig};
pub use rules::{PushBody, Rules, Vocabulary};
pub use security::{OAuthFlow, OAuthFlowKind, SecurityRequirement, SecurityScheme};
pub(crate) use task::push_exact;
pub use task::{FAILED_UNTOLD, TIMED_OUT, Task, TaskState, TaskStatus};
pub use timestamp::Timestamp;
pub use trace::{TRACE_STATE_BYTES_MAX, TraceContext};
pub use update::{ArtifactUpdate, ArtifactView, StatusUpdate, TaskView, Update};
pub use weight::{Measure, WEIGHT_PER_BYTE_MAX, content_bytes, outweighs};

#[cfg(test)]
mod weight_tests;
