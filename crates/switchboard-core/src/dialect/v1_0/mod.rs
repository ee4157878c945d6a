//! A2A 1.0 in JSON, as spoken over JSON-RPC and HTTP+JSON: protobuf's JSON mapping of the 1.0 messages. What its objects look
//! like is in [`wire`]; here are its methods, its query parameters and its refusals.
//! - Requests: [`decode_call`]; for HTTP [`decode_send_body`], [`decode_cancel_body`], [`decode_push_config_body`],
//!   [`decode_list_query`], [`decode_history_length`], [`decode_push_list_query`].
//! - Replies: [`encode_reply`], [`encode_update`], [`encode_card`].
//! - Refusals: [`encode_rpc_error`], [`encode_http_error`].
//!
//! With the feature `protobuf`, `proto` has the same for what travels over gRPC.
//!
//! LOSSES: none; the model was made after this dialect. Unknown members are ignored on the way in.
//!
//! Text is read once, by borrowing structs, and checked while it is moved into the model. Query parameters come split and
//! percent-decoded and hold what the fields of the same name hold in a body; unknown ones are ignored, as unknown fields
//! are, and a repeated one is refused.

#[cfg(feature = "protobuf")]
pub mod proto;

use std::borrow::Cow;

use super::json::{
    Check, DecodeLimits, Decoded, Int, NameOrNumber, Text, params_or_empty, read_body, read_params, unknown_method,
};
use super::row::{Forms, Row, USUAL, WORDS_V1_0, in_0_3, usual_http_status};
use super::wire::{
    self, BareParams, ListTasksParams, PushConfig as WireConfig, PushParams, SendParams, TaskParams, V1_0,
};
use crate::call::{ListTasks, Reply, Request, SendMessage};
use crate::error::ProtocolError;
use crate::model::{Dialect, Json, Message, PushBody, PushConfig, Rules, TaskView, Update};

pub use super::wire::write_card_1_0 as encode_card;

/// Writes the result of a call. A deletion has none, so nothing is written and the binding decides how that is spelled;
/// a stream is written frame by frame with [`encode_update`].
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Card(card) => encode_card(card, out),
        reply => wire::write_reply(reply, &V1_0, out),
    }
}

/// Writes one update of a stream or a webhook.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    wire::write_update(update, &V1_0, out);
}

/// Writes a task, as much of it as the view shows.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    wire::write_task(view, &V1_0, out);
}

/// Writes a message.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    wire::write_message(message, &V1_0, out);
}

/// Writes a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it had none.
pub fn encode_rpc_error(error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    wire::write_rpc_error(error, id, &V1_0, out);
}

/// Writes the body of an HTTP error that is answered with this status, or the data of a stream's error event.
pub fn encode_http_error(error: &ProtocolError, http: u16, out: &mut Vec<u8>) {
    wire::write_http_error(error, http, &V1_0, out);
}

/// What is particular to 1.0.
pub(super) static ROW: Row = Row {
    rules: Rules {
        words: WORDS_V1_0,
        tells_modes: true,
        cancels_again: true,
        push_body: PushBody::Update,
        push_media_type: "application/a2a+json",
        // How a stream was asked for decides where it ends, and the engine knows that.
        ..USUAL
    },
    forms: Forms {
        reply: encode_reply,
        update: encode_update,
        pushed_task: encode_task,
        rpc_error: encode_rpc_error,
        http_error: encode_http_error,
        http_status: usual_http_status,
        for_open_reader: in_0_3,
        call: |call| wire::write_outgoing(call, &V1_0, "A2A 1.0"),
        read_reply: |request, text, limits| wire::read_reply(request, text, &V1_0, Dialect::V1_0, limits),
        read_update: |text, limits| wire::read_update(text, &V1_0, Dialect::V1_0, limits),
        read_error: |body, _| wire::read_error(body),
        read_card: wire::read_card,
    },
};

/// The operations, by the names that JSON-RPC and gRPC have for them.
const METHODS: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

/// Decodes a JSON-RPC call. Absent params, and null, are an empty object.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], or [`ProtocolError::InvalidParams`] naming the fields at fault.
pub fn decode_call(method: &str, params: Option<&str>, limits: &DecodeLimits) -> Result<Decoded, ProtocolError> {
    let text = params_or_empty(params);
    let mut check = Check::new(limits);
    let (tenant, request) = match method {
        "SendMessage" => {
            let (tenant, send) = read_params::<SendParams<'_>>(text)?.read(&mut check, &V1_0);
            (tenant, Request::SendMessage(send.into()))
        }
        "SendStreamingMessage" => {
            let (tenant, send) = read_params::<SendParams<'_>>(text)?.read(&mut check, &V1_0);
            (tenant, Request::SendStreamingMessage(send.into()))
        }
        "GetTask" => read_params::<TaskParams<'_>>(text)?.read_get(&mut check),
        "ListTasks" => {
            let mut params: ListTasksParams<'_> = read_params(text)?;
            let tenant = check.id(format_args!("tenant"), params.tenant.take());
            (tenant, Request::ListTasks(params.read(&mut check, &V1_0)))
        }
        "CancelTask" => read_params::<TaskParams<'_>>(text)?.read_cancel(&mut check),
        "SubscribeToTask" => read_params::<TaskParams<'_>>(text)?.read_subscribe(&mut check),
        "CreateTaskPushNotificationConfig" => {
            let (tenant, config) = read_params::<WireConfig<'_>>(text)?.read(&mut check, format_args!(""), &V1_0);
            if config.task_id.is_empty() {
                check.violation(format_args!("taskId"), "is required and must not be empty");
            }
            (tenant, Request::CreatePushConfig(config.into()))
        }
        "GetTaskPushNotificationConfig" => {
            let params: PushParams<'_> = read_params(text)?;
            let task_id = check.only(format_args!("taskId"), params.task_id);
            let task_id = check.required_id(format_args!("taskId"), task_id);
            let id = check.required_id(format_args!("id"), params.id);
            (check.id(format_args!("tenant"), params.tenant), Request::GetPushConfig { task_id, id })
        }
        "ListTaskPushNotificationConfigs" => {
            let params: PushParams<'_> = read_params(text)?;
            let task_id = check.only(format_args!("taskId"), params.task_id);
            let task_id = check.required_id(format_args!("taskId"), task_id);
            let page_size = check.only(format_args!("pageSize"), params.page_size);
            let page_size = check.implicit_page_size(page_size);
            let page_token = check.only(format_args!("pageToken"), params.page_token);
            let page_token = check.optional_line(format_args!("pageToken"), page_token);
            (
                check.id(format_args!("tenant"), params.tenant),
                Request::ListPushConfigs { task_id, page_size, page_token },
            )
        }
        "DeleteTaskPushNotificationConfig" => {
            let params: PushParams<'_> = read_params(text)?;
            let task_id = check.only(format_args!("taskId"), params.task_id);
            let task_id = check.required_id(format_args!("taskId"), task_id);
            let id = check.required_id(format_args!("id"), params.id);
            (check.id(format_args!("tenant"), params.tenant), Request::DeletePushConfig { task_id, id })
        }
        "GetExtendedAgentCard" => read_params::<BareParams<'_>>(text)?.read_extended_card(&mut check),
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(Decoded { tenant, request })
}

/// Decodes the body of a send or a streaming send over HTTP+JSON.
///
/// # Errors
/// [`ProtocolError::ParseError`] when the body is not JSON, [`ProtocolError::InvalidParams`] when a field is wrong.
pub fn decode_send_body(body: &[u8], limits: &DecodeLimits) -> Result<(Option<String>, SendMessage), ProtocolError> {
    let mut check = Check::new(limits);
    let decoded = read_body::<SendParams<'_>>(body)?.read(&mut check, &V1_0);
    check.finish(decoded)
}

/// Decodes the body of a cancel over HTTP+JSON: a tenant and metadata, both optional, as the body itself is.
///
/// # Errors
/// As [`decode_send_body`].
pub fn decode_cancel_body(body: &[u8], limits: &DecodeLimits) -> Result<(Option<String>, Option<Json>), ProtocolError> {
    if body.trim_ascii().is_empty() {
        return Ok((None, None));
    }
    let mut check = Check::new(limits);
    let params: BareParams<'_> = read_body(body)?;
    let metadata = check.object(format_args!("metadata"), params.metadata);
    let tenant = check.id(format_args!("tenant"), params.tenant);
    check.finish((tenant, metadata))
}

/// Decodes the body that registers a webhook over HTTP+JSON. The path names the task and wins over the body, so the
/// config's `task_id` is empty if the body has none.
///
/// # Errors
/// As [`decode_send_body`].
pub fn decode_push_config_body(
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<(Option<String>, PushConfig), ProtocolError> {
    let mut check = Check::new(limits);
    let decoded = read_body::<WireConfig<'_>>(body)?.read(&mut check, format_args!(""), &V1_0);
    check.finish(decoded)
}

/// Decodes the query of `GET /tasks`.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming each wrong parameter.
pub fn decode_list_query(
    pairs: &[(Cow<'_, str>, Cow<'_, str>)],
    limits: &DecodeLimits,
) -> Result<ListTasks, ProtocolError> {
    let mut check = Check::new(limits);
    let mut query = Query { pairs, check: &mut check };
    let params = ListTasksParams {
        tenant: None,
        context_id: query.take("contextId", "context_id").map(text),
        status: query.take("status", "status").map(name_or_number),
        page_size: query.int("pageSize", "page_size"),
        page_token: query.take("pageToken", "page_token").map(text),
        history_length: query.int("historyLength", "history_length"),
        status_timestamp_after: query.take("statusTimestampAfter", "status_timestamp_after").map(text),
        include_artifacts: query.bool("includeArtifacts", "include_artifacts"),
    };
    let list = params.read(&mut check, &V1_0);
    check.finish(list)
}

/// Decodes the query of a list of push configs: the page size and the page token.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming each wrong parameter.
pub fn decode_push_list_query(
    pairs: &[(Cow<'_, str>, Cow<'_, str>)],
    limits: &DecodeLimits,
) -> Result<(Option<u32>, Option<String>), ProtocolError> {
    let mut check = Check::new(limits);
    let mut query = Query { pairs, check: &mut check };
    let page_size = query.int("pageSize", "page_size");
    let page_token = query.take("pageToken", "page_token").map(str::to_owned);
    let page_size = check.implicit_page_size(page_size);
    let page_token = check.optional_line(format_args!("pageToken"), page_token);
    check.finish((page_size, page_token))
}

/// Decodes the value of `historyLength`.
///
/// # Errors
/// [`ProtocolError::InvalidParams`] naming the parameter.
pub fn decode_history_length(value: &str) -> Result<u32, ProtocolError> {
    match Int::parse(value).map(|Int(number)| u32::try_from(number)) {
        Some(Ok(length)) => Ok(length),
        Some(Err(_)) => Err(ProtocolError::invalid("historyLength", "must not be negative")),
        None => Err(ProtocolError::invalid("historyLength", NOT_AN_INT)),
    }
}

const NOT_AN_INT: &str = "must be a whole number of 32 bits";

struct Query<'q, 'c, 'l> {
    pairs: &'q [(Cow<'q, str>, Cow<'q, str>)],
    check: &'c mut Check<'l>,
}

impl<'q> Query<'q, '_, '_> {
    /// The one value of a parameter, under either of its spellings.
    fn take(&mut self, name: &'static str, proto_name: &'static str) -> Option<&'q str> {
        let mut values = self.pairs.iter().filter(|(key, _)| key == name || key == proto_name);
        let (_, value) = values.next()?;
        if values.next().is_some() {
            self.check.violation(format_args!("{name}"), "must be given once");
        }
        Some(value)
    }

    fn int(&mut self, name: &'static str, proto_name: &'static str) -> Option<Int> {
        let number = Int::parse(self.take(name, proto_name)?);
        if number.is_none() {
            self.check.violation(format_args!("{name}"), NOT_AN_INT);
        }
        number
    }

    fn bool(&mut self, name: &'static str, proto_name: &'static str) -> Option<bool> {
        let value = self.take(name, proto_name)?.parse().ok();
        if value.is_none() {
            self.check.violation(format_args!("{name}"), "must be true or false");
        }
        value
    }
}

fn text(value: &str) -> Text<'_> {
    Text(Cow::Borrowed(value))
}

fn name_or_number(value: &str) -> NameOrNumber<'_> {
    value.parse().map_or(NameOrNumber::Name(Cow::Borrowed(value)), NameOrNumber::Number)
}

#[cfg(test)]
mod tests;
