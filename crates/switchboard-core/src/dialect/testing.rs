//! What the tests of every dialect throw at it: messages with anything in them, and requests with something wrong in them.

use std::sync::Arc;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};

use crate::call::{ListTasks, Request, SendMessage};
use crate::error::{ProtocolError, Violation};
use crate::model::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    Artifact, ArtifactDetails, ArtifactUpdate, AuthenticationInfo, ConfigId, Dialect, Json, Message, OAuthFlow,
    OAuthFlowKind, Part, PartContent, PartDetails, PushConfig, Role, SecurityRequirement, SecurityScheme, StatusUpdate,
    Task, TaskId, TaskState, TaskStatus, TaskView, Timestamp, Update,
};

use super::json::DecodeLimits;
use super::outgoing::{OutgoingCall, Transport, WrittenCall};

/// Small, quick and the same on every run.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("smaller than sides")
    }
}

/// As [`mutate`], of a protobuf message: bits flipped, ends cut, and bytes put in that mean much in a length.
#[cfg(feature = "protobuf")]
pub(super) fn mutate_message(dice: &mut Dice, sample: &[u8]) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        match dice.roll(3) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes.truncate(at),
            _ => bytes.insert(at, [0x00, 0x7f, 0x80, 0xff][dice.roll(4)]),
        }
    }
    bytes
}

/// Changes a few places of a valid request: bytes flipped, cut, doubled or replaced by what parsers trip over.
pub(super) fn mutate(dice: &mut Dice, sample: &str) -> Vec<u8> {
    const TRAPS: [&str; 17] = [
        "null",
        "{}",
        "[]",
        "\"\"",
        "-1",
        "1e999",
        "9999999999999999999",
        "\"\\ud800\"",
        "\\u0000",
        "\"",
        "{",
        "}",
        "[",
        ",",
        ":",
        "\u{feff}",
        "\"data_part_compat\":true",
    ];
    let mut bytes = sample.as_bytes().to_vec();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len() + 1);
        match dice.roll(5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes.truncate(at),
            2 => {
                let end = (at + dice.roll(20)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => {
                let end = (at + dice.roll(6)).min(bytes.len());
                bytes.splice(at..end, TRAPS[dice.roll(TRAPS.len())].bytes());
            }
            _ => {
                let end = (at + dice.roll(6)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
    bytes
}

fn id() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 äß\"\\\\/🙂-]{1,40}"
}

fn line() -> impl Strategy<Value = String> {
    "[a-z:/\"\\\\ü.+-]{1,30}"
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<String>().prop_map(|value| serde_json::to_string(&value).unwrap()),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(", "))), object(inner)]
    })
}

fn object(value: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    let members = vec((any::<String>(), value), 0..5).prop_map(|members| {
        let members: std::collections::BTreeMap<_, _> = members.into_iter().collect();
        let write = |(key, value): (&String, &String)| format!("{}:{value}", serde_json::to_string(key).unwrap());
        format!("{{{}}}", members.iter().map(write).collect::<Vec<_>>().join(","))
    });
    members.boxed()
}

fn metadata() -> impl Strategy<Value = Option<Json>> {
    option::of(object(json()).prop_map(Json::from_trusted))
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        any::<String>().prop_map(PartContent::Text),
        any::<Vec<u8>>().prop_map(|bytes| PartContent::Raw(Bytes::from(bytes))),
        line().prop_map(PartContent::Url),
        json().prop_map(|text| PartContent::Data(Json::from_trusted(text))),
    ];
    (content, metadata(), option::of(id()), option::of(line())).prop_map(|(content, metadata, filename, media_type)| {
        Part::new(content).with_details(PartDetails { metadata, filename, media_type })
    })
}

/// A message with anything in it.
pub(super) fn message() -> impl Strategy<Value = Message> {
    let ids = (id(), option::of(id()), option::of(id()), vec(id(), 0..3));
    let rest = (any::<bool>(), vec(part(), 1..4), metadata(), vec(line(), 0..3));
    (ids, rest).prop_map(|((message_id, context_id, task_id, referenced), (agent, parts, metadata, extensions))| {
        Message {
            message_id: message_id.into(),
            context_id: context_id.map(Into::into),
            task_id: task_id.map(Into::into),
            role: if agent { Role::Agent } else { Role::User },
            parts,
            metadata,
            extensions,
            reference_task_ids: referenced.into_iter().map(Into::into).collect(),
        }
    })
}

fn state() -> impl Strategy<Value = TaskState> {
    (0..TaskState::ALL.len()).prop_map(|place| TaskState::ALL[place])
}

fn status() -> impl Strategy<Value = TaskStatus> {
    (state(), option::of(message()), 0..4_000_000_000_000i64).prop_map(|(state, message, at)| TaskStatus {
        state,
        message: message.map(Arc::new),
        timestamp: Timestamp::default().plus_ms(at),
    })
}

fn artifact() -> impl Strategy<Value = Artifact> {
    let named = (id(), option::of(id()), option::of(any::<String>()));
    (named, vec(part(), 1..4), metadata(), vec(line(), 0..3)).prop_map(
        |((artifact_id, name, description), parts, metadata, extensions)| {
            let details = ArtifactDetails { name, description, metadata, extensions };
            Artifact::new(artifact_id, parts).with_details(details)
        },
    )
}

/// A task with anything in it.
pub(super) fn task() -> impl Strategy<Value = Task> {
    let lists = (vec(artifact(), 0..3), vec(message(), 0..3));
    ((id(), id()), status(), lists, metadata()).prop_map(
        |((id, context_id), status, (artifacts, history), metadata)| Task {
            id: id.into(),
            context_id: context_id.into(),
            artifacts: artifacts.into_iter().map(Arc::new).collect(),
            history: history.into_iter().map(Arc::new).collect(),
            metadata,
            // What is told of a task does not say when it was begun.
            created_at: status.timestamp,
            status,
            dialect: Dialect::V1_0,
        },
    )
}

/// Anything that a stream says.
pub(super) fn update() -> impl Strategy<Value = Update> {
    let status_update = ((id(), id()), status(), metadata()).prop_map(|((task_id, context_id), status, metadata)| {
        let (task_id, context_id) = (task_id.into(), context_id.into());
        Update::Status(StatusUpdate { task_id, context_id, status, metadata })
    });
    let artifact_update = ((id(), id()), artifact(), any::<[bool; 2]>(), metadata()).prop_map(
        |((task_id, context_id), artifact, [append, last_chunk], metadata)| {
            let (task_id, context_id, artifact) = (task_id.into(), context_id.into(), artifact.into());
            Update::Artifact(ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata })
        },
    );
    prop_oneof![
        task().prop_map(|task| Update::Task(TaskView::whole(Arc::new(task)))),
        message().prop_map(|message| Update::Message(message.into())),
        status_update,
        artifact_update,
    ]
}

/// A webhook as a client registers it with a send.
pub(super) fn push_config() -> impl Strategy<Value = PushConfig> {
    let authentication =
        (line(), option::of(line())).prop_map(|(scheme, credentials)| AuthenticationInfo { scheme, credentials });
    (option::of(id()), "[a-z]{1,9}", option::of(line()), option::of(authentication)).prop_map(
        |(id, host, token, authentication)| PushConfig {
            id: id.unwrap_or_default().into(),
            task_id: "".into(),
            url: format!("https://{host}.example/hook"),
            token,
            authentication,
        },
    )
}

/// A send with anything in it.
pub(super) fn send() -> impl Strategy<Value = SendMessage> {
    let settings = (vec(line(), 0..3), option::of(push_config()), option::of(1..1_000u32), any::<bool>());
    (message(), settings, metadata()).prop_map(|(message, settings, metadata)| {
        let (accepted_output_modes, push_config, history_length, return_immediately) = settings;
        let open_as = None;
        SendMessage {
            message,
            open_as,
            accepted_output_modes,
            push_config,
            history_length,
            return_immediately,
            metadata,
        }
    })
}

/// Any of the eleven operations.
pub(super) fn request() -> impl Strategy<Value = Request> {
    let list = ((option::of(id()), option::of(state())), option::of(1..=100u32), option::of(line()), any::<bool>())
        .prop_map(|((context_id, state), page_size, page_token, include_artifacts)| {
            Request::ListTasks(ListTasks {
                context_id: context_id.map(Into::into),
                state,
                page_size,
                page_token,
                history_length: page_size,
                status_since: page_size.map(|n| Timestamp::default().plus_ms(i64::from(n) * 1_234_567)),
                include_artifacts,
            })
        });
    let registering = (push_config(), id()).prop_map(|(config, task_id)| {
        Request::CreatePushConfig(PushConfig { task_id: task_id.into(), ..config }.into())
    });
    let ids = || (id(), id()).prop_map(|(task_id, id)| (TaskId::from(task_id), ConfigId::from(id)));
    prop_oneof![
        send().prop_map(|send| Request::SendMessage(send.into())),
        send().prop_map(|send| Request::SendStreamingMessage(send.into())),
        (id(), option::of(1..1_000u32))
            .prop_map(|(id, history_length)| Request::GetTask { id: id.into(), history_length }),
        list,
        (id(), metadata()).prop_map(|(id, metadata)| Request::CancelTask { id: id.into(), metadata }),
        id().prop_map(|id| Request::SubscribeToTask { id: id.into() }),
        registering,
        ids().prop_map(|(task_id, id)| Request::GetPushConfig { task_id, id }),
        (id(), option::of(1..=100u32), option::of(line())).prop_map(|(task_id, page_size, page_token)| {
            Request::ListPushConfigs { task_id: task_id.into(), page_size, page_token }
        }),
        ids().prop_map(|(task_id, id)| Request::DeletePushConfig { task_id, id }),
        Just(Request::GetExtendedAgentCard),
    ]
}

fn url() -> impl Strategy<Value = String> {
    "https://[a-z]{1,9}\\.example/[a-z0-9/]{0,9}"
}

fn flow() -> impl Strategy<Value = OAuthFlow> {
    let kinds = prop_oneof![
        Just(OAuthFlowKind::AuthorizationCode),
        Just(OAuthFlowKind::ClientCredentials),
        Just(OAuthFlowKind::Implicit),
        Just(OAuthFlowKind::Password),
        Just(OAuthFlowKind::DeviceCode),
    ];
    (kinds, url(), option::of(url()), vec((line(), line()), 0..3), any::<bool>()).prop_map(
        |(kind, url, refresh_url, scopes, pkce)| {
            use OAuthFlowKind::{AuthorizationCode, DeviceCode, Implicit};
            let has = |kinds: &[OAuthFlowKind]| kinds.contains(&kind).then(|| url.clone());
            OAuthFlow {
                kind,
                authorization_url: has(&[AuthorizationCode, Implicit]),
                device_authorization_url: has(&[DeviceCode]),
                token_url: (kind != Implicit).then(|| url.clone()),
                refresh_url,
                scopes,
                pkce_required: pkce && kind == AuthorizationCode,
            }
        },
    )
}

fn scheme() -> impl Strategy<Value = SecurityScheme> {
    let description = || option::of(line());
    prop_oneof![
        (description(), line(), line()).prop_map(|(description, location, name)| SecurityScheme::ApiKey {
            description,
            location,
            name
        }),
        (description(), line(), option::of(line())).prop_map(|(description, scheme, bearer_format)| {
            SecurityScheme::Http { description, scheme, bearer_format }
        }),
        any::<bool>().prop_map(|is_jwt| SecurityScheme::Http {
            description: None,
            scheme: "Bearer".to_owned(),
            bearer_format: is_jwt.then(|| "JWT".to_owned()),
        }),
        (description(), flow(), option::of(url())).prop_map(|(description, flow, metadata_url)| {
            SecurityScheme::OAuth2 { description, flow, metadata_url }
        }),
        (description(), url()).prop_map(|(description, url)| SecurityScheme::OpenIdConnect { description, url }),
        description().prop_map(|description| SecurityScheme::MutualTls { description }),
    ]
}

fn requirements() -> impl Strategy<Value = Vec<SecurityRequirement>> {
    let requirement = vec((id(), vec(line(), 0..3)), 1..3).prop_map(|schemes| SecurityRequirement { schemes });
    vec(requirement, 0..3)
}

fn skill() -> impl Strategy<Value = AgentSkill> {
    let lists = (vec(line(), 0..3), vec(any::<String>(), 0..2), vec(line(), 0..2), vec(line(), 0..2));
    ((id(), id(), any::<String>()), lists, requirements()).prop_map(
        |((id, name, description), (tags, examples, input_modes, output_modes), security_requirements)| AgentSkill {
            id,
            name,
            description,
            tags,
            examples,
            input_modes,
            output_modes,
            security_requirements,
        },
    )
}

/// A card with anything in it, served in these versions.
pub(super) fn card(versions: &'static [&'static str]) -> impl Strategy<Value = AgentCard> {
    let interface = (url(), "[A-Z+]{1,9}", 0..versions.len()).prop_map(move |(url, protocol_binding, version)| {
        AgentInterface { url, protocol_binding, protocol_version: versions[version].to_owned(), tenant: None }
    });
    let extension = (line(), option::of(line()), any::<bool>(), metadata())
        .prop_map(|(uri, description, required, params)| AgentExtension { uri, description, required, params });
    let capabilities =
        (any::<[bool; 3]>(), vec(extension, 0..2)).prop_map(|([streaming, push, extended], extensions)| {
            AgentCapabilities {
                streaming: Some(streaming),
                push_notifications: Some(push),
                extended_agent_card: Some(extended),
                extensions,
            }
        });
    let provider = (id(), url()).prop_map(|(organization, url)| AgentProvider { organization, url });
    let signature = (line(), line(), metadata()).prop_map(|(protected, signature, header)| AgentCardSignature {
        protected,
        signature,
        header,
    });
    let texts = (id(), any::<String>(), line(), option::of(url()), option::of(url()));
    let security = (vec((id(), scheme()), 0..3), requirements());
    let lists = (vec(line(), 0..3), vec(line(), 0..3), vec(skill(), 0..3), vec(signature, 0..2));
    (texts, vec(interface, 1..4), option::of(provider), capabilities, security, lists).prop_map(
        |(texts, supported_interfaces, provider, capabilities, security, lists)| {
            let (name, description, version, documentation_url, icon_url) = texts;
            let (security_schemes, security_requirements) = security;
            let (default_input_modes, default_output_modes, skills, signatures) = lists;
            AgentCard {
                name,
                description,
                version,
                supported_interfaces,
                provider,
                documentation_url,
                icon_url,
                capabilities,
                security_schemes,
                security_requirements,
                default_input_modes,
                default_output_modes,
                skills,
                signatures,
            }
        },
    )
}

/// One of each refusal there is.
pub(super) fn every_refusal() -> Vec<ProtocolError> {
    use ProtocolError as E;
    let because = || "because \u{2028} \"of\" that".to_owned();
    let violation = |field: &str| Violation { field: field.to_owned(), description: because() };
    vec![
        E::AgentFailed { reason: because() },
        E::TaskNotFound { id: "t".into() },
        E::PushConfigNotFound { task_id: "t".into(), id: "p".into() },
        E::PushConfigNotFound { task_id: "t".into(), id: "".into() },
        E::TaskNotCancelable { id: "t".into(), state: TaskState::Canceled },
        E::TaskNotCancelable { id: "t".into(), state: TaskState::InputRequired },
        E::PushNotificationNotSupported,
        E::UnsupportedOperation { reason: because() },
        E::ContentTypeNotSupported { reason: because() },
        E::InvalidAgentResponse { reason: because() },
        E::ExtendedAgentCardNotConfigured,
        E::ExtensionSupportRequired { uri: "https://e.example/x".to_owned(), header: "X-A2A-Extensions".into() },
        E::VersionNotSupported { requested: "9".to_owned(), supported: vec!["1.0".into(), "0.3".into()], fix: None },
        E::VersionNotSupported { requested: "9".to_owned(), supported: vec!["1.0".into()], fix: Some(because()) },
        E::ParseError { reason: because() },
        E::InvalidRequest { reason: because() },
        E::MethodNotFound { method: "tasks/gte".to_owned(), hint: None },
        E::MethodNotFound { method: "tasks/gte".to_owned(), hint: Some("did you mean tasks/get?".to_owned()) },
        E::InvalidParams { violations: vec![violation("message.parts[0]"), violation("")] },
        E::Internal { incident: "i-1".to_owned() },
        E::Unauthenticated { reason: because() },
        E::PermissionDenied { reason: because() },
        E::Unavailable { reason: because(), retry_after_s: 7 },
        E::ResourceExhausted { reason: because(), retry_after_s: 7 },
        E::TooLarge { what: "request body".into(), bytes_max: 42 },
    ]
}

/// What a client sends over JSON-RPC: a method and its params.
pub(super) fn sent_over_rpc(
    dialect: Dialect,
    request: &Request,
    idempotency_key: Option<&str>,
) -> Result<(&'static str, String), ProtocolError> {
    let call = OutgoingCall { request, over: Transport::JsonRpc, tenant: None, idempotency_key };
    match dialect.write_call(&call)? {
        WrittenCall::JsonRpc { method, params } => Ok((method, String::from_utf8(params).expect("params are UTF-8"))),
        other @ WrittenCall::Http { .. } => panic!("{other:?} does not travel over JSON-RPC"),
    }
}

/// The request without what a send cannot ask in a compat dialect: a webhook, and to go on with a task.
pub(super) fn sendable(mut request: Request) -> Request {
    if let Request::SendMessage(send) | Request::SendStreamingMessage(send) = &mut request {
        (send.push_config, send.message.task_id) = (None, None);
    }
    request
}

/// The params of a call in a golden file, to the byte.
pub(super) fn params_of(golden: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        params: &'a serde_json::value::RawValue,
    }
    serde_json::from_str::<Call<'_>>(golden).expect("a golden file is JSON").params.get().to_owned()
}

/// The result of a reply in a golden file, to the byte.
pub(super) fn result_of(golden: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Reply<'a> {
        #[serde(borrow)]
        result: &'a serde_json::value::RawValue,
    }
    serde_json::from_str::<Reply<'_>>(golden).expect("a golden file is JSON").result.get().to_owned()
}

/// Reads replies of `dialect` with something wrong in them: none does harm, and what is refused is named.
pub(super) fn read_broken_replies(dialect: Dialect, samples: &[String], seed: u64) {
    let mut dice = Dice::new(seed);
    let limits = DecodeLimits::default();
    for _ in 0..10_000 {
        let sample = &samples[dice.roll(samples.len())];
        let text = mutate(&mut dice, sample);
        let _ = dialect.read_error(&text, Some(400));
        for error in [dialect.read_update(&text, &limits).err(), dialect.read_card(&text, &limits).err()] {
            match error {
                None | Some(ProtocolError::ParseError { .. }) => {}
                Some(ProtocolError::InvalidParams { violations }) => {
                    assert!(violations.iter().all(|wrong| !wrong.field.is_empty()), "{violations:?}");
                }
                Some(other) => panic!("{}: {other:?}", String::from_utf8_lossy(&text)),
            }
        }
    }
}
