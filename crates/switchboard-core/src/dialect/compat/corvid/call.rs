//! The body of a send, and the calls of a client. What a send says may stand in `params` or at the top; if there are `params`, they
//! are what counts. What has no place in a message of the model is in the metadata of the send, under the same names both ways.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::{Request, SendMessage};
use crate::dialect::compat::{beginning_a_task, without_webhook};
use crate::dialect::json::{Check, DecodeLimits, LazyMember, Object, Raw, Text, append, read_body, read_params};
use crate::dialect::outgoing::{OutgoingCall, Transport, WrittenCall, push_segment};
use crate::error::ProtocolError;
use crate::model::{Json, Message, Part, Role, in_words};

use super::NAME;

/// How long a task may take if its caller does not say.
pub const TIMEOUT_MS_DEFAULT: u32 = 300_000;

/// How often a call may have been passed on from agent to agent.
pub const DEPTH_MAX: u32 = 3;

const TIMEOUT_MS: std::ops::RangeInclusive<u32> = 1_000..=600_000;
const DEPTHS: std::ops::RangeInclusive<u32> = 1..=10;

/// What was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub message: String,
    /// The skill that is asked for; agents find it in the metadata of the task.
    pub skill: Option<String>,
    pub timeout_ms: Option<u32>,
    /// How often the call has been passed on, this time included.
    pub depth: u32,
    /// The name that the caller gives itself. It is used to count calls and proves nothing.
    pub source_agent: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct SendBody<'a> {
    #[serde(borrow)]
    params: Option<LazyMember<'a, SendParams<'a>>>,
    #[serde(borrow)]
    source_agent: Option<Text<'a>>,
    #[serde(borrow)]
    depth: Option<Raw<'a>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct SendParams<'a> {
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    skill: Option<Text<'a>>,
    #[serde(borrow)]
    timeout_ms: Option<Raw<'a>>,
    #[serde(borrow)]
    depth: Option<Raw<'a>>,
}

/// The name in a send's metadata of how long the task may take. The engine counts whole seconds.
const TIMEOUT_S: &str = "switchboard.runTimeoutSeconds";

/// The metadata of a send for which this dialect has members of its own. A value of another type was not meant for this
/// dialect and is ignored.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendMetadata<'a> {
    #[serde(borrow, rename = "switchboard.runTimeoutSeconds")]
    timeout_s: Option<&'a RawValue>,
    #[serde(borrow)]
    skill: Option<&'a RawValue>,
    #[serde(borrow)]
    depth: Option<&'a RawValue>,
    #[serde(borrow)]
    source_agent: Option<&'a RawValue>,
}

/// Decodes the body of a send.
///
/// # Errors
/// [`ProtocolError::ParseError`], or [`ProtocolError::InvalidParams`] naming the fields.
pub fn decode_send(body: &[u8], limits: &DecodeLimits) -> Result<Sent, ProtocolError> {
    let outer: SendBody<'_> = read_body(body)?;
    let inner: SendParams<'_> = match outer.params {
        Some(LazyMember::Own(inner)) => inner,
        Some(LazyMember::Sent(params)) => read_params(params)?,
        None => read_body(body)?,
    };
    let mut check = Check::new(limits);
    let message = inner.message.map(String::from).unwrap_or_default();
    if message.is_empty() {
        check.violation(format_args!("message"), "is required and must not be empty");
    }
    let depth = number(&mut check, "depth", inner.depth.or(outer.depth).as_ref().map(Raw::get), DEPTHS);
    let sent = Sent {
        message,
        skill: check.id(format_args!("skill"), inner.skill),
        timeout_ms: number(&mut check, "timeoutMs", inner.timeout_ms.as_ref().map(Raw::get), TIMEOUT_MS),
        depth: depth.unwrap_or(1),
        source_agent: check.id(format_args!("sourceAgent"), outer.source_agent),
    };
    check.finish(sent)
}

/// A whole number within bounds.
fn number(
    check: &mut Check<'_>,
    field: &str,
    sent: Option<&str>,
    bounds: std::ops::RangeInclusive<u32>,
) -> Option<u32> {
    let number = serde_json::from_str::<f64>(sent?).ok();
    let fits = |number: f64| {
        let whole = number.fract() == 0.0 && (f64::from(*bounds.start())..=f64::from(*bounds.end())).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and within bounds of u32")]
        whole.then_some(number as u32)
    };
    let fitting = number.and_then(fits);
    if fitting.is_none() {
        let (least, most) = (bounds.start(), bounds.end());
        check.violation(format_args!("{field}"), format!("must be a whole number from {least} to {most}"));
    }
    fitting
}

/// Writes a call: a send or a look at a task.
///
/// # Errors
/// [`ProtocolError::UnsupportedOperation`] for a call that the dialect does not have, [`ProtocolError::InvalidParams`] naming what
/// a send cannot say.
pub fn write_call(call: &OutgoingCall<'_>) -> Result<WrittenCall, ProtocolError> {
    call.require(Transport::Http, NAME)?;
    match call.request {
        Request::SendMessage(send) => {
            let mut body = Vec::with_capacity(256);
            Sent::of(send)?.encode(&mut body);
            Ok(WrittenCall::Http { verb: "POST", path: "/a2a/tasks/send".to_owned(), body })
        }
        Request::GetTask { id, .. } => {
            let mut path = "/a2a/tasks/".to_owned();
            push_segment(&mut path, id.as_str());
            Ok(WrittenCall::Http { verb: "GET", path, body: Vec::new() })
        }
        Request::SendStreamingMessage(_)
        | Request::ListTasks(_)
        | Request::CancelTask { .. }
        | Request::SubscribeToTask { .. }
        | Request::CreatePushConfig(_)
        | Request::GetPushConfig { .. }
        | Request::ListPushConfigs { .. }
        | Request::DeletePushConfig { .. }
        | Request::GetExtendedAgentCard => Err(call.not_in(NAME)),
    }
}

impl Sent {
    /// What a send says here: its message in words, and what its metadata says about how it is to be done.
    fn of(send: &SendMessage) -> Result<Self, ProtocolError> {
        without_webhook(send, NAME)?;
        beginning_a_task(send, NAME)?;
        let words: Vec<&str> = send.message.parts.iter().filter_map(in_words).collect();
        let message = words.join("\n");
        if message.is_empty() {
            return Err(ProtocolError::invalid("message.parts", format!("{NAME} sends texts, and there is none")));
        }
        let metadata = send.metadata.as_ref().map(Json::as_str);
        let beside: SendMetadata<'_> = metadata.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let text = |sent: Option<&RawValue>| -> Option<String> {
            serde_json::from_str(sent?.get()).ok().filter(|text: &String| !text.is_empty())
        };
        let limits = DecodeLimits::default();
        let mut check = Check::new(&limits);
        let seconds = TIMEOUT_MS.start() / 1000..=TIMEOUT_MS.end() / 1000;
        let timeout_s =
            number(&mut check, "metadata.switchboard.runTimeoutSeconds", beside.timeout_s.map(RawValue::get), seconds);
        let depth = number(&mut check, "metadata.depth", beside.depth.map(RawValue::get), DEPTHS);
        check.finish(Self {
            message,
            skill: text(beside.skill),
            timeout_ms: timeout_s.map(|seconds| seconds * 1000),
            depth: depth.unwrap_or(1),
            source_agent: text(beside.source_agent),
        })
    }

    /// Writes the body of a send. The first in a chain of calls does not say so.
    fn encode(&self, out: &mut Vec<u8>) {
        let number = |number: u32| Raw(number.to_string().into());
        let params = SendParams {
            message: Some(Text::from(self.message.as_str())),
            skill: self.skill.as_deref().map(Text::from),
            timeout_ms: self.timeout_ms.map(number),
            depth: (self.depth > 1).then(|| number(self.depth)),
        };
        let source_agent = self.source_agent.as_deref().map(Text::from);
        let body = SendBody { params: Some(LazyMember::Own(params)), source_agent, depth: None };
        append(out, &body).expect("every key of a form is a text");
    }

    /// The send in the model: it is answered at once, and its run ends after the timeout.
    #[must_use]
    pub fn into_send(self, timeout_ms_default: u32) -> SendMessage {
        let metadata = self.metadata(timeout_ms_default);
        SendMessage {
            open_as: None,
            message: Message::new(Role::User, "", vec![Part::text(self.message)]),
            accepted_output_modes: Vec::new(),
            push_config: None,
            history_length: None,
            return_immediately: true,
            metadata: Some(metadata),
        }
    }

    /// What the agent and the engine may want to know beside the message.
    fn metadata(&self, timeout_ms_default: u32) -> Json {
        let mut text = Vec::with_capacity(128);
        let mut object = Object::open(&mut text);
        // A part of a second counts as one.
        let timeout_s = self.timeout_ms.unwrap_or(timeout_ms_default).div_ceil(1000);
        object.u64(TIMEOUT_S, timeout_s.max(1).into());
        object.str_if_set("skill", self.skill.as_deref());
        object.u64("depth", self.depth.into());
        object.str_if_set("sourceAgent", self.source_agent.as_deref());
        object.close();
        Json::from_trusted(String::from_utf8(text).expect("the writer writes UTF-8"))
    }
}
