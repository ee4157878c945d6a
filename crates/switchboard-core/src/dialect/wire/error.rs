//! Refusals. 1.0 has a list of details, over JSON-RPC and over HTTP: always an `ErrorInfo`, the fields at fault when
//! parameters are wrong, and when to come back when that is known. 0.3 has no shape for `data`; ours is one flat object: the
//! reason, what else is known, and which fields are wrong. Over HTTP, 0.3 is the bare error object, which is what the clients
//! of both languages that speak it can read.
//!
//! A refusal that is read may come from any server, so only its code is required, and details that are not understood
//! are skipped.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde::{Deserialize as Read, Serialize as Write};

use crate::dialect::codes::{self, Codes, DOMAIN};
use crate::dialect::json::{List, Obj, Raw, Text, append};
use crate::error::{ProtocolError, Violation};
use crate::model::TaskState;

use super::Spelling;

/// A JSON-RPC response that refuses, or the body of an HTTP error of 1.0, which has the `error` alone.
#[derive(Default, Read, Write)]
struct ErrorBody<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Raw<'a>>,
    #[serde(borrow)]
    error: Option<Obj<Error<'a>>>,
}

#[derive(Default, Read, Write)]
struct Error<'a> {
    /// The code of JSON-RPC or, over HTTP in 1.0, the HTTP status.
    code: Option<i64>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Data<'a>>,
    #[serde(borrow)]
    details: Option<Data<'a>>,
}

/// What a program may want to know.
enum Data<'a> {
    /// As 1.0 has it.
    Details(Vec<Obj<Detail<'a>>>),
    /// As 0.3 has it.
    Flat(Box<Flat<'a>>),
    /// In a form that neither version has.
    Unknown,
}

#[derive(Default, Read, Write)]
#[serde(rename_all = "camelCase")]
struct Detail<'a> {
    #[serde(borrow, rename = "@type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
    #[serde(borrow)]
    domain: Option<Text<'a>>,
    #[serde(borrow)]
    metadata: Option<Facts<'a>>,
    #[serde(borrow)]
    field_violations: Option<List<Obj<FieldViolation<'a>>>>,
    #[serde(borrow)]
    retry_delay: Option<Text<'a>>,
}

#[derive(Default)]
struct Flat<'a> {
    /// The reason, and what else is known.
    facts: Facts<'a>,
    violations: Option<List<Obj<FieldViolation<'a>>>>,
    retry_after_s: Option<u32>,
}

#[derive(Read, Write)]
struct FieldViolation<'a> {
    #[serde(borrow)]
    field: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
}

/// Names and texts. A value that is no text is passed over.
#[derive(Default)]
struct Facts<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// Appends a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it had none.
pub fn write_rpc_error(error: &ProtocolError, id: &str, spelling: &Spelling, out: &mut Vec<u8>) {
    let message = error.to_string();
    let body = Error { code: Some(codes::of(error).jsonrpc.into()), ..Error::of(error, &message, spelling) };
    let refusal =
        ErrorBody { jsonrpc: Some(Text::from("2.0")), id: Some(Raw(Cow::Borrowed(id))), error: Some(Obj(body)) };
    append(out, &refusal).expect("a refusal is JSON");
}

/// Appends the body of an HTTP error that is answered with the status `http`, or the data of a stream's error event.
pub fn write_http_error(error: &ProtocolError, http: u16, spelling: &Spelling, out: &mut Vec<u8>) {
    let message = error.to_string();
    let codes = codes::of(error);
    let body = Error::of(error, &message, spelling);
    let written = match spelling.error_details {
        true => {
            let error = Error {
                code: Some(http.into()),
                status: Some(Text::from(codes.status)),
                details: body.data,
                data: None,
                message: body.message,
            };
            append(out, &ErrorBody { error: Some(Obj(error)), ..ErrorBody::default() })
        }
        false => append(out, &Error { code: Some(codes.jsonrpc.into()), ..body }),
    };
    written.expect("a refusal is JSON");
}

impl<'a> Error<'a> {
    /// All but the code.
    fn of(error: &'a ProtocolError, message: &'a str, spelling: &Spelling) -> Self {
        let codes = codes::of(error);
        let facts = codes::facts(error, |state| spelling.state(state));
        let facts = facts.into_iter().map(|(name, value)| (Cow::Borrowed(name), Cow::Owned(value)));
        let violations = match error {
            ProtocolError::InvalidParams { violations } => Some(violations.iter().map(FieldViolation::of).collect()),
            _ => None,
        };
        let retry_after_s = error.retry_after_s().filter(|seconds| *seconds > 0);
        let data = match spelling.error_details {
            true => Data::Details(details(codes, Facts(facts.collect()), violations, retry_after_s)),
            false => {
                let reason = (Cow::Borrowed("reason"), Cow::Borrowed(codes.reason));
                let facts = Facts(std::iter::once(reason).chain(facts).collect());
                Data::Flat(Box::new(Flat { facts, violations, retry_after_s }))
            }
        };
        Self { message: Some(Text::from(message)), data: Some(data), ..Self::default() }
    }
}

impl<'a> FieldViolation<'a> {
    fn of(violation: &'a Violation) -> Obj<Self> {
        let Violation { field, description } = violation;
        Obj(Self { field: Some(Text::from(field.as_str())), description: Some(Text::from(description.as_str())) })
    }

    fn read(self) -> Violation {
        let text = |text: Option<Text<'_>>| text.map(String::from).unwrap_or_default();
        Violation { field: text(self.field), description: text(self.description) }
    }
}

fn details<'a>(
    codes: Codes,
    facts: Facts<'a>,
    violations: Option<List<Obj<FieldViolation<'a>>>>,
    retry_after_s: Option<u32>,
) -> Vec<Obj<Detail<'a>>> {
    let info = Detail {
        kind: Some(Text::from(ERROR_INFO)),
        reason: Some(Text::from(codes.reason)),
        domain: Some(Text::from(DOMAIN)),
        metadata: (!facts.0.is_empty()).then_some(facts),
        ..Detail::default()
    };
    let fields = violations.map(|violations| Detail {
        kind: Some(Text::from(BAD_REQUEST)),
        field_violations: Some(violations),
        ..Detail::default()
    });
    let retry = retry_after_s.map(|seconds| Detail {
        kind: Some(Text::from(RETRY_INFO)),
        retry_delay: Some(Text(Cow::Owned(format!("{seconds}s")))),
        ..Detail::default()
    });
    [Some(info), fields, retry].into_iter().flatten().map(Obj).collect()
}

/// A refusal as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedError {
    /// The code of JSON-RPC. Zero if there was none, which over HTTP is the rule.
    pub code: i64,
    /// What is written for people. It may be empty.
    pub message: String,
    /// The reason by its name in an `ErrorInfo`, such as `TASK_NOT_FOUND`.
    pub reason: Option<String>,
    /// What else is known, as names and texts.
    pub facts: Vec<(String, String)>,
    /// Which fields are wrong.
    pub violations: Vec<Violation>,
    /// After how many seconds to try again.
    pub retry_after_s: Option<u32>,
}

/// Reads the body of a refusal: a JSON-RPC response with an error, the body of an HTTP error of either version, or the bare
/// error object. None if it is none of these.
#[must_use]
pub fn read_error(body: &[u8]) -> Option<ReceivedError> {
    let text = std::str::from_utf8(body).ok()?;
    let Obj(outer) = serde_json::from_str::<Obj<ErrorBody<'_>>>(text).ok()?;
    let error = match outer.error {
        Some(Obj(error)) => error,
        None => serde_json::from_str::<Obj<Error<'_>>>(text).ok()?.0,
    };
    if error.code.is_none() && error.message.is_none() {
        return None;
    }
    let is_http = error.details.is_some() || error.status.is_some();
    let mut read = ReceivedError {
        code: error.code.filter(|_| !is_http).unwrap_or_default(),
        message: error.message.map(String::from).unwrap_or_default(),
        ..ReceivedError::default()
    };
    match error.details.or(error.data) {
        Some(Data::Details(details)) => details.into_iter().for_each(|Obj(detail)| read.take(detail)),
        Some(Data::Flat(flat)) => {
            let Flat { facts, violations, retry_after_s } = *flat;
            read.take_facts(facts);
            if let Some(at) = read.facts.iter().position(|(name, _)| name == "reason") {
                read.reason = Some(read.facts.remove(at).1);
            }
            read.violations = violations.map(read_violations).unwrap_or_default();
            read.retry_after_s = retry_after_s;
        }
        Some(Data::Unknown) | None => {}
    }
    Some(read)
}

fn read_violations(violations: List<Obj<FieldViolation<'_>>>) -> Vec<Violation> {
    violations.items.into_iter().map(|Obj(violation)| violation.read()).collect()
}

impl ReceivedError {
    fn take(&mut self, detail: Detail<'_>) {
        match detail.kind.as_ref().map(|kind| &*kind.0) {
            Some(ERROR_INFO) => {
                self.reason = detail.reason.map(String::from);
                self.take_facts(detail.metadata.unwrap_or_default());
            }
            Some(BAD_REQUEST) => {
                self.violations = detail.field_violations.map(read_violations).unwrap_or_default();
            }
            Some(RETRY_INFO) => {
                let seconds = detail.retry_delay.as_ref().and_then(|delay| delay.0.strip_suffix('s'));
                // A part of a second is waited for as a whole one.
                self.retry_after_s = seconds.and_then(|seconds| seconds.parse::<f64>().ok()).map(|s| s.ceil() as u32);
            }
            Some(_) | None => {}
        }
    }

    fn take_facts(&mut self, Facts(facts): Facts<'_>) {
        self.facts.extend(facts.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())));
    }

    fn fact(&self, name: &str) -> String {
        self.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// The refusal in the protocol's own terms, if it is one that the protocol has. `http` is the status that it came with,
    /// which decides where neither the reason nor the code is known.
    ///
    /// What a foreign server does not tell is empty; a task that cannot be canceled and whose state is not told counts as
    /// completed.
    #[must_use]
    pub fn protocol_error(&self, http: Option<u16>) -> Option<ProtocolError> {
        use ProtocolError as E;
        let reason = self.reason.as_deref().or_else(|| codes::reason_of(self.code));
        let reason = reason.or_else(|| codes::reason_of_http(http?))?;
        let said = |prefix: &str| self.message.strip_prefix(prefix).unwrap_or(&self.message).to_owned();
        Some(match reason {
            "AGENT_FAILED" => E::AgentFailed { reason: said("") },
            "TASK_NOT_FOUND" => {
                let is_config = |(name, _): &(String, String)| name == "configId";
                match self.facts.iter().any(is_config) {
                    true => E::PushConfigNotFound {
                        task_id: self.fact("taskId").as_str().into(),
                        id: self.fact("configId").as_str().into(),
                    },
                    false => E::TaskNotFound { id: self.fact("taskId").as_str().into() },
                }
            }
            "TASK_NOT_CANCELABLE" => {
                let state = read_state(&self.fact("state")).unwrap_or(TaskState::Completed);
                E::TaskNotCancelable { id: self.fact("taskId").as_str().into(), state }
            }
            "PUSH_NOTIFICATION_NOT_SUPPORTED" => E::PushNotificationNotSupported,
            "UNSUPPORTED_OPERATION" => E::UnsupportedOperation { reason: said("") },
            "CONTENT_TYPE_NOT_SUPPORTED" => E::ContentTypeNotSupported { reason: said("") },
            "INVALID_AGENT_RESPONSE" => E::InvalidAgentResponse { reason: said("The agent answered wrongly: ") },
            "EXTENDED_AGENT_CARD_NOT_CONFIGURED" => E::ExtendedAgentCardNotConfigured,
            "EXTENSION_SUPPORT_REQUIRED" => {
                let uri = self.fact("extension");
                let header = self.message.rsplit_once("send header ").and_then(|(_, rest)| rest.split_once(':'));
                let header = header.map_or("A2A-Extensions", |(header, _)| header).to_owned();
                E::ExtensionSupportRequired { uri, header: header.into() }
            }
            "VERSION_NOT_SUPPORTED" => {
                let supported = self.fact("supported");
                let supported = supported.split(',').filter(|version| !version.is_empty());
                let supported = supported.map(|version| version.to_owned().into()).collect();
                let plain = E::VersionNotSupported { requested: self.fact("requested"), supported, fix: None };
                match (plain.to_string() == self.message, plain) {
                    (false, E::VersionNotSupported { requested, supported, .. }) => {
                        E::VersionNotSupported { requested, supported, fix: Some(self.message.clone()) }
                    }
                    (_, plain) => plain,
                }
            }
            "PARSE_ERROR" => E::ParseError { reason: said("Invalid JSON payload: ") },
            "INVALID_REQUEST" => E::InvalidRequest { reason: said("Invalid request: ") },
            "METHOD_NOT_FOUND" => {
                let method = self.fact("method");
                let hint = self.message.strip_prefix(&format!("Method not found: {method}; ")).map(str::to_owned);
                E::MethodNotFound { method, hint }
            }
            "INVALID_PARAMS" if self.violations.is_empty() => {
                E::invalid("", said("Invalid parameters: ").trim_start_matches("Invalid parameters"))
            }
            "INVALID_PARAMS" => E::InvalidParams { violations: self.violations.clone() },
            "INTERNAL_ERROR" => E::Internal { incident: self.fact("incident") },
            "UNAUTHENTICATED" => E::Unauthenticated { reason: said("Authentication required: ") },
            "PERMISSION_DENIED" => E::PermissionDenied { reason: said("Permission denied: ") },
            "UNAVAILABLE" => E::Unavailable {
                reason: said("Temporarily unavailable: "),
                retry_after_s: self.retry_after_s.unwrap_or_default(),
            },
            "RESOURCE_EXHAUSTED" => E::ResourceExhausted {
                reason: said("Too much at once: "),
                retry_after_s: self.retry_after_s.unwrap_or_default(),
            },
            "PAYLOAD_TOO_LARGE" => {
                let what = self.message.strip_prefix("The ").and_then(|rest| rest.split_once(" is larger than "));
                let what = what.map_or("request", |(what, _)| what).to_owned();
                E::TooLarge { what: what.into(), bytes_max: self.fact("bytesMax").parse().unwrap_or_default() }
            }
            _ => return None,
        })
    }
}

/// A state in any spelling that there is.
fn read_state(word: &str) -> Option<TaskState> {
    let bare = word.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-");
    let bare = if bare == "cancelled" { "canceled" } else { bare.as_str() };
    TaskState::ALL.into_iter().find(|state| state.word() == bare)
}

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Details(details) => details.serialize(serializer),
            Self::Flat(flat) => flat.serialize(serializer),
            Self::Unknown => serializer.serialize_none(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Data<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&serde_json::value::RawValue>::deserialize(deserializer)?.get();
        let read = match text.as_bytes().first() {
            Some(b'[') => serde_json::from_str(text).ok().map(Self::Details),
            Some(b'{') => serde_json::from_str(text).ok().map(Self::Flat),
            Some(_) | None => None,
        };
        Ok(read.unwrap_or(Self::Unknown))
    }
}

impl Serialize for Flat<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        for (name, value) in &self.facts.0 {
            members.serialize_entry(name, value)?;
        }
        if let Some(violations) = &self.violations {
            members.serialize_entry("violations", violations)?;
        }
        if let Some(seconds) = self.retry_after_s {
            members.serialize_entry("retryAfterS", &seconds)?;
        }
        members.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Flat<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Flat<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Flat<'de>, A::Error> {
                let mut flat = Flat::default();
                while let Some((Text(name), Raw(value))) = map.next_entry::<Text<'de>, Raw<'de>>()? {
                    let Cow::Borrowed(value) = value else { continue };
                    match &*name {
                        "violations" => flat.violations = serde_json::from_str(value).ok(),
                        "retryAfterS" => flat.retry_after_s = serde_json::from_str(value).ok(),
                        _ => flat.facts.0.extend(serde_json::from_str(value).ok().map(|Text(text)| (name, text))),
                    }
                }
                Ok(flat)
            }
        }

        deserializer.deserialize_map(Members)
    }
}

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Facts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Flat::deserialize(deserializer).map(|flat| flat.facts)
    }
}
