//! The spelling of 0.3's JSON schema: what travels over JSON-RPC and to webhooks.

use crate::call::{Reply, Request};
use crate::dialect::json::{Check, DecodeLimits, Decoded, params_or_empty, read_params, unknown_method};
use crate::error::ProtocolError;
use crate::model::{Dialect, Message, TaskView, Update};

use crate::dialect::wire::{self, BareParams, PushConfig, PushParams, SendParams, TaskParams, TaskPushConfig, V0_3};

use crate::dialect::codes;
use crate::dialect::outgoing::Transport;
use crate::dialect::row::{Forms, Row, in_0_3};

use super::{NAME, RULES, encode_card, encode_http_error, encode_rpc_error};

/// The methods that a mistyped one is compared with; the names of 0.1 are left out, since no new client should use them.
const METHODS: [&str; 10] = [
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
];

/// Decodes a JSON-RPC call. Absent params, and null, are an empty object.
///
/// # Errors
/// [`ProtocolError::MethodNotFound`], or [`ProtocolError::InvalidParams`] naming the fields at fault.
pub fn decode_call(method: &str, params: Option<&str>, limits: &DecodeLimits) -> Result<Decoded, ProtocolError> {
    let text = params_or_empty(params);
    let mut check = Check::new(limits);
    let (tenant, request) = match method {
        // The second name is that of 0.1, which some of its clients still use.
        "message/send" | "tasks/send" => {
            let (tenant, send) = read_params::<SendParams<'_>>(text)?.read(&mut check, &V0_3);
            (tenant, Request::SendMessage(send.into()))
        }
        "message/stream" | "tasks/sendSubscribe" => {
            let (tenant, send) = read_params::<SendParams<'_>>(text)?.read(&mut check, &V0_3);
            (tenant, Request::SendStreamingMessage(send.into()))
        }
        "tasks/get" => match read_params::<TaskParams<'_>>(text)?.read_get(&mut check) {
            // "A positive number", says 7.3.1: none is not a way to ask for no history.
            (tenant, Request::GetTask { id, history_length: Some(0) }) => {
                (tenant, Request::GetTask { id, history_length: None })
            }
            asked => asked,
        },
        "tasks/cancel" => read_params::<TaskParams<'_>>(text)?.read_cancel(&mut check),
        "tasks/resubscribe" => read_params::<TaskParams<'_>>(text)?.read_subscribe(&mut check),
        "tasks/pushNotificationConfig/set" => {
            let params: TaskPushConfig<'_> = read_params(text)?;
            let tenant = check.id(format_args!("tenant"), params.tenant);
            let task_id = check.only(format_args!("taskId"), params.task_id);
            let task_id = check.required_id(format_args!("taskId"), task_id);
            let (at, config) = ("pushNotificationConfig", params.push_notification_config);
            let config = PushConfig::read_required(config, &mut check, at, task_id, &V0_3);
            (tenant, Request::CreatePushConfig(config.into()))
        }
        "tasks/pushNotificationConfig/get" => {
            let params: PushParams<'_> = read_params(text)?;
            let task_id = check.required_id(format_args!("id"), params.id);
            // Without one, the server picks.
            let id = check.only(format_args!("pushNotificationConfigId"), params.push_notification_config_id);
            let id = check.id(format_args!("pushNotificationConfigId"), id);
            let request = Request::GetPushConfig { task_id, id: id.unwrap_or_default() };
            (check.id(format_args!("tenant"), params.tenant), request)
        }
        "tasks/pushNotificationConfig/list" => {
            let params: PushParams<'_> = read_params(text)?;
            let task_id = check.required_id(format_args!("id"), params.id);
            let request = Request::ListPushConfigs { task_id, page_size: None, page_token: None };
            (check.id(format_args!("tenant"), params.tenant), request)
        }
        "tasks/pushNotificationConfig/delete" => {
            let params: PushParams<'_> = read_params(text)?;
            let task_id = check.required_id(format_args!("id"), params.id);
            let id = check.only(format_args!("pushNotificationConfigId"), params.push_notification_config_id);
            let id = check.required_id(format_args!("pushNotificationConfigId"), id);
            (check.id(format_args!("tenant"), params.tenant), Request::DeletePushConfig { task_id, id })
        }
        "agent/getAuthenticatedExtendedCard" => read_params::<BareParams<'_>>(text)?.read_extended_card(&mut check),
        _ => return Err(unknown_method(method, &METHODS)),
    };
    check.finish(Decoded { tenant, request })
}

/// Writes the result of a call. A deletion has none, so nothing is written and the binding decides how that is spelled;
/// a stream is written frame by frame with [`encode_update`]. There is no call that lists tasks.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Card(card) => encode_card(card, out),
        reply => wire::write_reply(reply, &V0_3, out),
    }
}

/// Writes one update of a stream.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    wire::write_update(update, &V0_3, out);
}

/// Writes a task, as much of it as the view shows.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    wire::write_task(view, &V0_3, out);
}

/// Writes a message.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    wire::write_message(message, &V0_3, out);
}

/// What is particular to 0.3 over JSON-RPC.
pub(in crate::dialect) static ROW: Row = Row {
    rules: RULES,
    forms: Forms {
        reply: encode_reply,
        update: encode_update,
        pushed_task: encode_task,
        rpc_error: encode_rpc_error,
        http_error: encode_http_error,
        http_status: codes::http_of_0_3,
        for_open_reader: in_0_3,
        call: |call| {
            call.require(Transport::JsonRpc, NAME)?;
            wire::write_outgoing(call, &V0_3, NAME)
        },
        read_reply: |request, text, limits| wire::read_reply(request, text, &V0_3, Dialect::V0_3, limits),
        read_update: |text, limits| wire::read_update(text, &V0_3, Dialect::V0_3, limits),
        read_error: |body, _| wire::read_error(body),
        read_card: wire::read_card,
    },
};
