//! The spelling of 0.3's proto in protobuf's JSON mapping: what travels over HTTP+JSON under `/v1`. Ids stand in the path.

use crate::call::{Reply, SendMessage};
use crate::dialect::json::{Check, DecodeLimits, Int, Obj, read_body};
use crate::error::ProtocolError;
use crate::model::{Dialect, Json, Message, PushConfig, Rules, TaskId, TaskView, Update};

use crate::dialect::wire::{self, BareParams, PushConfig as WireConfig, SendParams, TaskPushConfig, V0_3_REST};

use crate::dialect::codes;
use crate::dialect::outgoing::Transport;
use crate::dialect::row::{Forms, Row, WORDS_V0_3_REST, in_0_3};

use super::{NAME, RULES, encode_card, encode_http_error, encode_rpc_error};

/// Decodes the body of a send or a streaming send.
///
/// # Errors
/// [`ProtocolError::ParseError`] when the body is not JSON, [`ProtocolError::InvalidParams`] when a field is wrong.
pub fn decode_send_body(body: &[u8], limits: &DecodeLimits) -> Result<(Option<String>, SendMessage), ProtocolError> {
    let mut check = Check::new(limits);
    let decoded = read_body::<SendParams<'_>>(body)?.read(&mut check, &V0_3_REST);
    check.finish(decoded)
}

/// Decodes the body of a cancel or a subscription, which may be missing, empty or null.
///
/// # Errors
/// As [`decode_send_body`].
pub fn decode_cancel_body(body: &[u8], limits: &DecodeLimits) -> Result<(Option<String>, Option<Json>), ProtocolError> {
    let body = body.trim_ascii();
    if body.is_empty() || body == b"null" {
        return Ok((None, None));
    }
    let mut check = Check::new(limits);
    let body: BareParams<'_> = read_body(body)?;
    let metadata = check.object(format_args!("metadata"), body.metadata);
    let tenant = check.id(format_args!("tenant"), body.tenant);
    check.finish((tenant, metadata))
}

/// Decodes the body that registers a webhook of the task its path names.
///
/// # Errors
/// As [`decode_send_body`].
pub fn decode_push_config_body(
    task_id: TaskId,
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<(Option<String>, PushConfig), ProtocolError> {
    let mut check = Check::new(limits);
    let body: TaskPushConfig<'_> = read_body(body)?;
    let tenant = check.id(format_args!("tenant"), body.tenant);
    let (at, config) = match check.only(format_args!("config"), body.config) {
        Some(Obj(config)) => ("config.pushNotificationConfig", config.push_notification_config),
        None => ("pushNotificationConfig", body.push_notification_config),
    };
    let mut config = WireConfig::read_required(config, &mut check, at, task_id, &V0_3_REST);
    if config.id.is_empty()
        && let Some(id) = check.only(format_args!("configId"), body.config_id)
        && let Some(id) = check.id(format_args!("configId"), Some(id))
    {
        config.id = id;
    }
    check.finish((tenant, config))
}

/// Decodes the value of `historyLength`; 0 is no limit.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming the parameter.
pub fn decode_history_length(value: &str) -> Result<Option<u32>, ProtocolError> {
    let wrong = |why: &str| Err(ProtocolError::invalid("historyLength", why));
    match Int::parse(value).map(|Int(number)| u32::try_from(number)) {
        Some(Ok(length)) => Ok(Some(length).filter(|length| *length > 0)),
        Some(Err(_)) => wrong("must not be negative"),
        None => wrong("must be a whole number of 32 bits"),
    }
}

/// Writes the result of a call. A deletion has none, so nothing is written and the binding decides how that is spelled;
/// a stream is written frame by frame with [`encode_update`]. There is no call that lists tasks. A card is written as
/// the schema has it: that is what clients of this binding try first.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Card(card) => encode_card(card, out),
        reply => wire::write_reply(reply, &V0_3_REST, out),
    }
}

/// Writes one update of a stream.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    wire::write_update(update, &V0_3_REST, out);
}

/// Writes a task, as much of it as the view shows.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    wire::write_task(view, &V0_3_REST, out);
}

/// Writes a message.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    wire::write_message(message, &V0_3_REST, out);
}

/// What is particular to 0.3 over HTTP. A webhook is sent the schema's form, whatever the binding.
pub(in crate::dialect) static ROW: Row = Row {
    rules: Rules { words: WORDS_V0_3_REST, ..RULES },
    forms: Forms {
        reply: encode_reply,
        update: encode_update,
        pushed_task: super::rpc::encode_task,
        rpc_error: encode_rpc_error,
        http_error: encode_http_error,
        http_status: codes::http_of_0_3,
        for_open_reader: in_0_3,
        call: |call| {
            call.require(Transport::Http, NAME)?;
            wire::write_outgoing(call, &V0_3_REST, NAME)
        },
        read_reply: |request, text, limits| wire::read_reply(request, text, &V0_3_REST, Dialect::V0_3Rest, limits),
        read_update: |text, limits| wire::read_update(text, &V0_3_REST, Dialect::V0_3Rest, limits),
        read_error: |body, _| wire::read_error(body),
        read_card: wire::read_card,
    },
};
