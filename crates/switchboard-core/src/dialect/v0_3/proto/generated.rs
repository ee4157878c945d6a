//! Made by `cargo run -p xtask --features proto -- proto`, not by hand.
//! From `proto/a2a/v1/a2a.proto`; mark of both: 519695ef4ca6b4a8.

#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Task {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub context_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub status: ::core::option::Option<TaskStatus>,
    #[prost(message, repeated, tag = "4")]
    pub artifacts: ::prost::alloc::vec::Vec<Artifact>,
    #[prost(message, repeated, tag = "5")]
    pub history: ::prost::alloc::vec::Vec<Message>,
    #[prost(message, optional, tag = "6")]
    pub metadata: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TaskStatus {
    #[prost(enumeration = "TaskState", tag = "1")]
    pub state: i32,
    #[prost(message, optional, tag = "2")]
    pub update: ::core::option::Option<Message>,
    #[prost(message, optional, tag = "3")]
    pub timestamp: ::core::option::Option<::prost_types::Timestamp>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Message {
    #[prost(string, tag = "1")]
    pub message_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub context_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub task_id: ::prost::alloc::string::String,
    #[prost(enumeration = "Role", tag = "4")]
    pub role: i32,
    #[prost(message, repeated, tag = "5")]
    pub content: ::prost::alloc::vec::Vec<Part>,
    #[prost(message, optional, tag = "6")]
    pub metadata: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
    #[prost(string, repeated, tag = "7")]
    pub extensions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Part {
    #[prost(message, optional, tag = "4")]
    pub metadata: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
    #[prost(oneof = "part::Part", tags = "1, 2, 3")]
    pub part: ::core::option::Option<part::Part>,
}
/// Nested message and enum types in `Part`.
pub mod part {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Part {
        #[prost(string, tag = "1")]
        Text(::prost::alloc::string::String),
        #[prost(message, tag = "2")]
        File(super::FilePart),
        #[prost(message, tag = "3")]
        Data(super::DataPart),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct FilePart {
    #[prost(string, tag = "3")]
    pub mime_type: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub name: ::prost::alloc::string::String,
    #[prost(oneof = "file_part::File", tags = "1, 2")]
    pub file: ::core::option::Option<file_part::File>,
}
/// Nested message and enum types in `FilePart`.
pub mod file_part {
    #[derive(Clone, PartialEq, Eq, Hash, ::prost::Oneof)]
    pub enum File {
        #[prost(string, tag = "1")]
        FileWithUri(::prost::alloc::string::String),
        #[prost(bytes, tag = "2")]
        FileWithBytes(::prost::bytes::Bytes),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DataPart {
    #[prost(message, optional, tag = "1")]
    pub data: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct Artifact {
    #[prost(string, tag = "1")]
    pub artifact_id: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "4")]
    pub description: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "5")]
    pub parts: ::prost::alloc::vec::Vec<Part>,
    #[prost(message, optional, tag = "6")]
    pub metadata: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
    #[prost(string, repeated, tag = "7")]
    pub extensions: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TaskStatusUpdateEvent {
    #[prost(string, tag = "1")]
    pub task_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub context_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub status: ::core::option::Option<TaskStatus>,
    #[prost(bool, tag = "4")]
    pub r#final: bool,
    #[prost(message, optional, tag = "5")]
    pub metadata: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct TaskArtifactUpdateEvent {
    #[prost(string, tag = "1")]
    pub task_id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub context_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub artifact: ::core::option::Option<Artifact>,
    #[prost(bool, tag = "4")]
    pub append: bool,
    #[prost(bool, tag = "5")]
    pub last_chunk: bool,
    #[prost(message, optional, tag = "6")]
    pub metadata: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct StreamResponse {
    #[prost(oneof = "stream_response::Payload", tags = "1, 2, 3, 4")]
    pub payload: ::core::option::Option<stream_response::Payload>,
}
/// Nested message and enum types in `StreamResponse`.
pub mod stream_response {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Payload {
        #[prost(message, tag = "1")]
        Task(super::Task),
        #[prost(message, tag = "2")]
        Msg(super::Message),
        #[prost(message, tag = "3")]
        StatusUpdate(super::TaskStatusUpdateEvent),
        #[prost(message, tag = "4")]
        ArtifactUpdate(super::TaskArtifactUpdateEvent),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SendMessageRequest {
    #[prost(message, optional, tag = "1")]
    pub request: ::core::option::Option<Message>,
    #[prost(message, optional, tag = "2")]
    pub configuration: ::core::option::Option<SendMessageConfiguration>,
    #[prost(message, optional, tag = "3")]
    pub metadata: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct SendMessageConfiguration {
    #[prost(string, repeated, tag = "1")]
    pub accepted_output_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, optional, tag = "2")]
    pub push_notification: ::core::option::Option<PushNotificationConfig>,
    #[prost(int32, tag = "3")]
    pub history_length: i32,
    #[prost(bool, tag = "4")]
    pub blocking: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SendMessageResponse {
    #[prost(oneof = "send_message_response::Payload", tags = "1, 2")]
    pub payload: ::core::option::Option<send_message_response::Payload>,
}
/// Nested message and enum types in `SendMessageResponse`.
pub mod send_message_response {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Payload {
        #[prost(message, tag = "1")]
        Task(super::Task),
        #[prost(message, tag = "2")]
        Msg(super::Message),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetTaskRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(int32, tag = "2")]
    pub history_length: i32,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CancelTaskRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TaskSubscriptionRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct PushNotificationConfig {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub token: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "4")]
    pub authentication: ::core::option::Option<AuthenticationInfo>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AuthenticationInfo {
    #[prost(string, repeated, tag = "1")]
    pub schemes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, tag = "2")]
    pub credentials: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct TaskPushNotificationConfig {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub push_notification_config: ::core::option::Option<PushNotificationConfig>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct CreateTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub config_id: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub config: ::core::option::Option<TaskPushNotificationConfig>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct DeleteTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ListTaskPushNotificationConfigRequest {
    #[prost(string, tag = "1")]
    pub parent: ::prost::alloc::string::String,
    #[prost(int32, tag = "2")]
    pub page_size: i32,
    #[prost(string, tag = "3")]
    pub page_token: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ListTaskPushNotificationConfigResponse {
    #[prost(message, repeated, tag = "1")]
    pub configs: ::prost::alloc::vec::Vec<TaskPushNotificationConfig>,
    #[prost(string, tag = "2")]
    pub next_page_token: ::prost::alloc::string::String,
}
#[derive(Clone, Copy, PartialEq, Eq, Hash, ::prost::Message)]
pub struct GetAgentCardRequest {}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentCard {
    #[prost(string, tag = "16")]
    pub protocol_version: ::prost::alloc::string::String,
    #[prost(string, tag = "1")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "14")]
    pub preferred_transport: ::prost::alloc::string::String,
    #[prost(message, repeated, tag = "15")]
    pub additional_interfaces: ::prost::alloc::vec::Vec<AgentInterface>,
    #[prost(message, optional, tag = "4")]
    pub provider: ::core::option::Option<
        crate::dialect::protobuf::card::generated::AgentProvider,
    >,
    #[prost(string, tag = "5")]
    pub version: ::prost::alloc::string::String,
    #[prost(string, tag = "6")]
    pub documentation_url: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "7")]
    pub capabilities: ::core::option::Option<AgentCapabilities>,
    #[prost(btree_map = "string, message", tag = "8")]
    pub security_schemes: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        crate::dialect::protobuf::card::generated::SecurityScheme,
    >,
    #[prost(message, repeated, tag = "9")]
    pub security: ::prost::alloc::vec::Vec<
        crate::dialect::protobuf::card::generated::SecurityRequirement,
    >,
    #[prost(string, repeated, tag = "10")]
    pub default_input_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "11")]
    pub default_output_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "12")]
    pub skills: ::prost::alloc::vec::Vec<
        crate::dialect::protobuf::card::generated::AgentSkill,
    >,
    #[prost(bool, tag = "13")]
    pub supports_authenticated_extended_card: bool,
    #[prost(message, repeated, tag = "17")]
    pub signatures: ::prost::alloc::vec::Vec<
        crate::dialect::protobuf::card::generated::AgentCardSignature,
    >,
    #[prost(string, tag = "18")]
    pub icon_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AgentInterface {
    #[prost(string, tag = "1")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub transport: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentCapabilities {
    #[prost(bool, tag = "1")]
    pub streaming: bool,
    #[prost(bool, tag = "2")]
    pub push_notifications: bool,
    #[prost(message, repeated, tag = "3")]
    pub extensions: ::prost::alloc::vec::Vec<
        crate::dialect::protobuf::card::generated::AgentExtension,
    >,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum TaskState {
    Unspecified = 0,
    Submitted = 1,
    Working = 2,
    Completed = 3,
    Failed = 4,
    Cancelled = 5,
    InputRequired = 6,
    Rejected = 7,
    AuthRequired = 8,
}
impl TaskState {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "TASK_STATE_UNSPECIFIED",
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Failed => "TASK_STATE_FAILED",
            Self::Cancelled => "TASK_STATE_CANCELLED",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "TASK_STATE_UNSPECIFIED" => Some(Self::Unspecified),
            "TASK_STATE_SUBMITTED" => Some(Self::Submitted),
            "TASK_STATE_WORKING" => Some(Self::Working),
            "TASK_STATE_COMPLETED" => Some(Self::Completed),
            "TASK_STATE_FAILED" => Some(Self::Failed),
            "TASK_STATE_CANCELLED" => Some(Self::Cancelled),
            "TASK_STATE_INPUT_REQUIRED" => Some(Self::InputRequired),
            "TASK_STATE_REJECTED" => Some(Self::Rejected),
            "TASK_STATE_AUTH_REQUIRED" => Some(Self::AuthRequired),
            _ => None,
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::prost::Enumeration)]
#[repr(i32)]
pub enum Role {
    Unspecified = 0,
    User = 1,
    Agent = 2,
}
impl Role {
    /// String value of the enum field names used in the ProtoBuf definition.
    ///
    /// The values are not transformed in any way and thus are considered stable
    /// (if the ProtoBuf definition does not change) and safe for programmatic use.
    pub fn as_str_name(&self) -> &'static str {
        match self {
            Self::Unspecified => "ROLE_UNSPECIFIED",
            Self::User => "ROLE_USER",
            Self::Agent => "ROLE_AGENT",
        }
    }
    /// Creates an enum from field names used in the ProtoBuf definition.
    pub fn from_str_name(value: &str) -> ::core::option::Option<Self> {
        match value {
            "ROLE_UNSPECIFIED" => Some(Self::Unspecified),
            "ROLE_USER" => Some(Self::User),
            "ROLE_AGENT" => Some(Self::Agent),
            _ => None,
        }
    }
}
impl Task {
    pub const ID: u32 = 1;
    pub const CONTEXT_ID: u32 = 2;
    pub const STATUS: u32 = 3;
    pub const ARTIFACTS: u32 = 4;
    pub const HISTORY: u32 = 5;
    pub const METADATA: u32 = 6;
}
impl TaskStatus {
    pub const STATE: u32 = 1;
    pub const UPDATE: u32 = 2;
    pub const TIMESTAMP: u32 = 3;
}
impl Message {
    pub const MESSAGE_ID: u32 = 1;
    pub const CONTEXT_ID: u32 = 2;
    pub const TASK_ID: u32 = 3;
    pub const ROLE: u32 = 4;
    pub const CONTENT: u32 = 5;
    pub const METADATA: u32 = 6;
    pub const EXTENSIONS: u32 = 7;
}
impl Part {
    pub const TEXT: u32 = 1;
    pub const FILE: u32 = 2;
    pub const DATA: u32 = 3;
    pub const METADATA: u32 = 4;
}
impl FilePart {
    pub const FILE_WITH_URI: u32 = 1;
    pub const FILE_WITH_BYTES: u32 = 2;
    pub const MIME_TYPE: u32 = 3;
    pub const NAME: u32 = 4;
}
impl DataPart {
    pub const DATA: u32 = 1;
}
impl Artifact {
    pub const ARTIFACT_ID: u32 = 1;
    pub const NAME: u32 = 3;
    pub const DESCRIPTION: u32 = 4;
    pub const PARTS: u32 = 5;
    pub const METADATA: u32 = 6;
    pub const EXTENSIONS: u32 = 7;
}
impl TaskStatusUpdateEvent {
    pub const TASK_ID: u32 = 1;
    pub const CONTEXT_ID: u32 = 2;
    pub const STATUS: u32 = 3;
    pub const FINAL: u32 = 4;
    pub const METADATA: u32 = 5;
}
impl TaskArtifactUpdateEvent {
    pub const TASK_ID: u32 = 1;
    pub const CONTEXT_ID: u32 = 2;
    pub const ARTIFACT: u32 = 3;
    pub const APPEND: u32 = 4;
    pub const LAST_CHUNK: u32 = 5;
    pub const METADATA: u32 = 6;
}
impl StreamResponse {
    pub const TASK: u32 = 1;
    pub const MSG: u32 = 2;
    pub const STATUS_UPDATE: u32 = 3;
    pub const ARTIFACT_UPDATE: u32 = 4;
}
impl SendMessageRequest {
    pub const REQUEST: u32 = 1;
    pub const CONFIGURATION: u32 = 2;
    pub const METADATA: u32 = 3;
}
impl SendMessageConfiguration {
    pub const ACCEPTED_OUTPUT_MODES: u32 = 1;
    pub const PUSH_NOTIFICATION: u32 = 2;
    pub const HISTORY_LENGTH: u32 = 3;
    pub const BLOCKING: u32 = 4;
}
impl SendMessageResponse {
    pub const TASK: u32 = 1;
    pub const MSG: u32 = 2;
}
impl GetTaskRequest {
    pub const NAME: u32 = 1;
    pub const HISTORY_LENGTH: u32 = 2;
}
impl CancelTaskRequest {
    pub const NAME: u32 = 1;
}
impl TaskSubscriptionRequest {
    pub const NAME: u32 = 1;
}
impl PushNotificationConfig {
    pub const ID: u32 = 1;
    pub const URL: u32 = 2;
    pub const TOKEN: u32 = 3;
    pub const AUTHENTICATION: u32 = 4;
}
impl AuthenticationInfo {
    pub const SCHEMES: u32 = 1;
    pub const CREDENTIALS: u32 = 2;
}
impl TaskPushNotificationConfig {
    pub const NAME: u32 = 1;
    pub const PUSH_NOTIFICATION_CONFIG: u32 = 2;
}
impl CreateTaskPushNotificationConfigRequest {
    pub const PARENT: u32 = 1;
    pub const CONFIG_ID: u32 = 2;
    pub const CONFIG: u32 = 3;
}
impl GetTaskPushNotificationConfigRequest {
    pub const NAME: u32 = 1;
}
impl DeleteTaskPushNotificationConfigRequest {
    pub const NAME: u32 = 1;
}
impl ListTaskPushNotificationConfigRequest {
    pub const PARENT: u32 = 1;
    pub const PAGE_SIZE: u32 = 2;
    pub const PAGE_TOKEN: u32 = 3;
}
impl ListTaskPushNotificationConfigResponse {
    pub const CONFIGS: u32 = 1;
    pub const NEXT_PAGE_TOKEN: u32 = 2;
}
impl AgentCard {
    pub const PROTOCOL_VERSION: u32 = 16;
    pub const NAME: u32 = 1;
    pub const DESCRIPTION: u32 = 2;
    pub const URL: u32 = 3;
    pub const PREFERRED_TRANSPORT: u32 = 14;
    pub const ADDITIONAL_INTERFACES: u32 = 15;
    pub const PROVIDER: u32 = 4;
    pub const VERSION: u32 = 5;
    pub const DOCUMENTATION_URL: u32 = 6;
    pub const CAPABILITIES: u32 = 7;
    pub const SECURITY_SCHEMES: u32 = 8;
    pub const SECURITY: u32 = 9;
    pub const DEFAULT_INPUT_MODES: u32 = 10;
    pub const DEFAULT_OUTPUT_MODES: u32 = 11;
    pub const SKILLS: u32 = 12;
    pub const SUPPORTS_AUTHENTICATED_EXTENDED_CARD: u32 = 13;
    pub const SIGNATURES: u32 = 17;
    pub const ICON_URL: u32 = 18;
}
impl AgentInterface {
    pub const URL: u32 = 1;
    pub const TRANSPORT: u32 = 2;
}
impl AgentCapabilities {
    pub const STREAMING: u32 = 1;
    pub const PUSH_NOTIFICATIONS: u32 = 2;
    pub const EXTENSIONS: u32 = 3;
}
