//! Made by `cargo run -p xtask --features proto -- proto`, not by hand.
//! From `proto/lf/a2a/v1/a2a.proto`; mark of both: d96674fd94bf00df.

#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct AgentProvider {
    #[prost(string, tag = "1")]
    pub url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub organization: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentExtension {
    #[prost(string, tag = "1")]
    pub uri: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub description: ::prost::alloc::string::String,
    #[prost(bool, tag = "3")]
    pub required: bool,
    #[prost(message, optional, tag = "4")]
    pub params: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentSkill {
    #[prost(string, tag = "1")]
    pub id: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub name: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, repeated, tag = "4")]
    pub tags: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "5")]
    pub examples: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "6")]
    pub input_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(string, repeated, tag = "7")]
    pub output_modes: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
    #[prost(message, repeated, tag = "8")]
    pub security_requirements: ::prost::alloc::vec::Vec<SecurityRequirement>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AgentCardSignature {
    #[prost(string, tag = "1")]
    pub protected: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub signature: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "3")]
    pub header: ::core::option::Option<crate::dialect::protobuf::Verbatim>,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct StringList {
    #[prost(string, repeated, tag = "1")]
    pub list: ::prost::alloc::vec::Vec<::prost::alloc::string::String>,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SecurityRequirement {
    #[prost(btree_map = "string, message", tag = "1")]
    pub schemes: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        StringList,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct SecurityScheme {
    #[prost(oneof = "security_scheme::Scheme", tags = "1, 2, 3, 4, 5")]
    pub scheme: ::core::option::Option<security_scheme::Scheme>,
}
/// Nested message and enum types in `SecurityScheme`.
pub mod security_scheme {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Scheme {
        #[prost(message, tag = "1")]
        ApiKeySecurityScheme(super::ApiKeySecurityScheme),
        #[prost(message, tag = "2")]
        HttpAuthSecurityScheme(super::HttpAuthSecurityScheme),
        #[prost(message, tag = "3")]
        Oauth2SecurityScheme(super::OAuth2SecurityScheme),
        #[prost(message, tag = "4")]
        OpenIdConnectSecurityScheme(super::OpenIdConnectSecurityScheme),
        #[prost(message, tag = "5")]
        MtlsSecurityScheme(super::MutualTlsSecurityScheme),
    }
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct ApiKeySecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub location: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub name: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct HttpAuthSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub scheme: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub bearer_format: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OAuth2SecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(message, optional, tag = "2")]
    pub flows: ::core::option::Option<OAuthFlows>,
    #[prost(string, tag = "3")]
    pub oauth2_metadata_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct OpenIdConnectSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub open_id_connect_url: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, Eq, Hash, ::prost::Message)]
pub struct MutualTlsSecurityScheme {
    #[prost(string, tag = "1")]
    pub description: ::prost::alloc::string::String,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct OAuthFlows {
    #[prost(oneof = "o_auth_flows::Flow", tags = "1, 2, 3, 4, 5")]
    pub flow: ::core::option::Option<o_auth_flows::Flow>,
}
/// Nested message and enum types in `OAuthFlows`.
pub mod o_auth_flows {
    #[derive(Clone, PartialEq, ::prost::Oneof)]
    pub enum Flow {
        #[prost(message, tag = "1")]
        AuthorizationCode(super::AuthorizationCodeOAuthFlow),
        #[prost(message, tag = "2")]
        ClientCredentials(super::ClientCredentialsOAuthFlow),
        #[prost(message, tag = "3")]
        Implicit(super::ImplicitOAuthFlow),
        #[prost(message, tag = "4")]
        Password(super::PasswordOAuthFlow),
        #[prost(message, tag = "5")]
        DeviceCode(super::DeviceCodeOAuthFlow),
    }
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct AuthorizationCodeOAuthFlow {
    #[prost(string, tag = "1")]
    pub authorization_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(btree_map = "string, string", tag = "4")]
    pub scopes: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
    #[prost(bool, tag = "5")]
    pub pkce_required: bool,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ClientCredentialsOAuthFlow {
    #[prost(string, tag = "1")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub scopes: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct ImplicitOAuthFlow {
    #[prost(string, tag = "1")]
    pub authorization_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub scopes: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct PasswordOAuthFlow {
    #[prost(string, tag = "1")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub scopes: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
#[derive(Clone, PartialEq, ::prost::Message)]
pub struct DeviceCodeOAuthFlow {
    #[prost(string, tag = "1")]
    pub device_authorization_url: ::prost::alloc::string::String,
    #[prost(string, tag = "2")]
    pub token_url: ::prost::alloc::string::String,
    #[prost(string, tag = "3")]
    pub refresh_url: ::prost::alloc::string::String,
    #[prost(btree_map = "string, string", tag = "4")]
    pub scopes: ::prost::alloc::collections::BTreeMap<
        ::prost::alloc::string::String,
        ::prost::alloc::string::String,
    >,
}
