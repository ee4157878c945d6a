//! Requests of this binding: ids in the path, the rest in body and query. 1.0 has plain fields there and 0.3, under `/v1`,
//! ProtoJSON; where the two differ, an arm says so.

use http::Method;
use switchboard_core::call::Request;
use switchboard_core::dialect::json::{DecodeLimits, Decoded, check_id};
use switchboard_core::dialect::v0_3::rest;
use switchboard_core::dialect::{Dialect, v1_0};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{PushConfig, TaskId};

use super::Pairs;
use crate::server::edge::paths::{RestPath, TaskVerb};

/// A request, and the tenant it names outside its path.
pub(super) fn decode(
    dialect: Dialect,
    method: &Method,
    place: RestPath,
    pairs: &Pairs<'_>,
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<Decoded, ProtocolError> {
    // No compat dialect has these places, so what is not in 1.0 is in 0.3.
    let is_v1_0 = dialect == Dialect::V1_0;
    let query =
        |names: &[&str]| pairs.iter().find(|(key, _)| names.contains(&key.as_ref())).map(|(_, value)| value.as_ref());
    let query_tenant = || query(&["tenant"]).map(str::to_owned);
    let task_id = |id: TaskId| -> Result<TaskId, ProtocolError> {
        check_id("id", id.as_str(), limits)?;
        Ok(id)
    };
    let decode_send = if is_v1_0 { v1_0::decode_send_body } else { rest::decode_send_body };
    let decode_cancel = if is_v1_0 { v1_0::decode_cancel_body } else { rest::decode_cancel_body };
    let (tenant, request) = match place {
        RestPath::SendMessage => {
            let (tenant, send) = decode_send(body, limits)?;
            (tenant, Request::SendMessage(send.into()))
        }
        RestPath::StreamMessage => {
            let (tenant, send) = decode_send(body, limits)?;
            (tenant, Request::SendStreamingMessage(send.into()))
        }
        RestPath::Tasks if is_v1_0 => (query_tenant(), Request::ListTasks(v1_0::decode_list_query(pairs, limits)?)),
        RestPath::Tasks => {
            let hint = "A2A 0.3 has no way to list tasks; 1.0 has: GET /tasks with header A2A-Version: 1.0";
            let method = "GET /v1/tasks".to_owned();
            return Err(ProtocolError::MethodNotFound { method, hint: Some(hint.to_owned()) });
        }
        RestPath::Task { id, verb: None } => {
            let history_length = if is_v1_0 {
                query(&["historyLength"]).map(v1_0::decode_history_length).transpose()?
            } else {
                query(&["historyLength", "history_length"]).map(rest::decode_history_length).transpose()?.flatten()
            };
            (query_tenant(), Request::GetTask { id: task_id(id)?, history_length })
        }
        RestPath::Task { id, verb: Some(TaskVerb::Cancel) } => {
            let (tenant, metadata) = decode_cancel(body, limits)?;
            (tenant, Request::CancelTask { id: task_id(id)?, metadata })
        }
        RestPath::Task { id, verb: Some(TaskVerb::Subscribe) } => {
            // 0.3 has the same body here as for a cancel.
            let tenant = if is_v1_0 { query_tenant() } else { decode_cancel(body, limits)?.0 };
            (tenant, Request::SubscribeToTask { id: task_id(id)? })
        }
        RestPath::PushConfigs { task_id: id } if *method == Method::POST => {
            let (tenant, config) = if is_v1_0 {
                let (tenant, config) = v1_0::decode_push_config_body(body, limits)?;
                // The path outranks the body.
                (tenant, PushConfig { task_id: task_id(id)?, ..config })
            } else {
                rest::decode_push_config_body(task_id(id)?, body, limits)?
            };
            (tenant, Request::CreatePushConfig(config.into()))
        }
        RestPath::PushConfigs { task_id: id } => {
            let (page_size, page_token) =
                if is_v1_0 { v1_0::decode_push_list_query(pairs, limits)? } else { (None, None) };
            (query_tenant(), Request::ListPushConfigs { task_id: task_id(id)?, page_size, page_token })
        }
        RestPath::PushConfig { task_id: id, id: config } => {
            check_id("id", config.as_str(), limits)?;
            let (task_id, id) = (task_id(id)?, config);
            let request = match *method == Method::DELETE {
                true => Request::DeletePushConfig { task_id, id },
                false => Request::GetPushConfig { task_id, id },
            };
            (query_tenant(), request)
        }
        RestPath::ExtendedCard => (query_tenant(), Request::GetExtendedAgentCard),
    };
    Ok(Decoded { tenant, request })
}
