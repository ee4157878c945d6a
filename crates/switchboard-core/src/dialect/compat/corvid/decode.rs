//! The body of a send. What it says may stand in `params` or at the top; if there are `params`, they are what counts.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::SendMessage;
use crate::dialect::json::{Check, DecodeLimits, Object, Text, read_body, read_params};
use crate::error::ProtocolError;
use crate::model::{Json, Message, Part, Role};

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
    /// Who says to be calling. It is a name to count by, no proof of anything.
    pub source_agent: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outer<'a> {
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    source_agent: Option<Text<'a>>,
    #[serde(borrow)]
    depth: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inner<'a> {
    message: Option<String>,
    #[serde(borrow)]
    skill: Option<Text<'a>>,
    #[serde(borrow)]
    timeout_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    depth: Option<&'a RawValue>,
}

/// Decodes the body of a send.
///
/// # Errors
/// [`ProtocolError::ParseError`], or [`ProtocolError::InvalidParams`] naming the fields.
pub fn decode_send(body: &[u8], limits: &DecodeLimits) -> Result<Sent, ProtocolError> {
    let outer: Outer<'_> = read_body(body)?;
    let inner: Inner<'_> = match outer.params {
        Some(params) => read_params(params.get())?,
        None => read_body(body)?,
    };
    let mut check = Check::new(limits);
    let message = inner.message.unwrap_or_default();
    if message.is_empty() {
        check.violation(format_args!("message"), "is required and must not be empty");
    }
    let depth = number(&mut check, "depth", inner.depth.or(outer.depth), DEPTHS);
    let sent = Sent {
        message,
        skill: check.id(format_args!("skill"), inner.skill),
        timeout_ms: number(&mut check, "timeoutMs", inner.timeout_ms, TIMEOUT_MS),
        depth: depth.unwrap_or(1),
        source_agent: check.id(format_args!("sourceAgent"), outer.source_agent),
    };
    check.finish(sent)
}

/// A whole number within bounds.
fn number(
    check: &mut Check<'_>,
    field: &str,
    sent: Option<&RawValue>,
    bounds: std::ops::RangeInclusive<u32>,
) -> Option<u32> {
    let number = serde_json::from_str::<f64>(sent?.get()).ok();
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

impl Sent {
    /// The send as the house knows it: answered at once, and given up after its time.
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

    /// What the agent, and whoever runs it, may want to know beside the message.
    fn metadata(&self, timeout_ms_default: u32) -> Json {
        let mut text = Vec::with_capacity(128);
        let mut object = Object::open(&mut text);
        // The house counts whole seconds; a part of one counts as one.
        let timeout_s = self.timeout_ms.unwrap_or(timeout_ms_default).div_ceil(1000);
        object.u64("switchboard.runTimeoutSeconds", timeout_s.max(1).into());
        object.str_if_set("skill", self.skill.as_deref());
        object.u64("depth", self.depth.into());
        object.str_if_set("sourceAgent", self.source_agent.as_deref());
        object.close();
        Json::from_trusted(String::from_utf8(text).expect("the writer writes UTF-8"))
    }
}
