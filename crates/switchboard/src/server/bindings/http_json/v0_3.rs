//! Requests as 0.3 has them, under `/v1`: ids in the path, ProtoJSON in the body.

use http::Method;
use switchboard_core::call::Request;
use switchboard_core::dialect::json::{DecodeLimits, Decoded, check_id};
use switchboard_core::dialect::v0_3::rest;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskId;

use super::Pairs;
use crate::server::edge::paths::{RestPlace, TaskVerb};

/// A request, and the tenant it names.
pub(super) fn decode(
    method: &Method,
    place: RestPlace,
    pairs: &Pairs<'_>,
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<Decoded, ProtocolError> {
    let query =
        |names: &[&str]| pairs.iter().find(|(key, _)| names.contains(&key.as_ref())).map(|(_, value)| value.as_ref());
    let task_id = |id: TaskId| -> Result<TaskId, ProtocolError> {
        check_id("id", id.as_str(), limits)?;
        Ok(id)
    };
    let request = match place {
        RestPlace::SendMessage => {
            let (tenant, send) = rest::decode_send_body(body, limits)?;
            return Ok(Decoded { tenant, request: Request::SendMessage(send.into()) });
        }
        RestPlace::StreamMessage => {
            let (tenant, send) = rest::decode_send_body(body, limits)?;
            return Ok(Decoded { tenant, request: Request::SendStreamingMessage(send.into()) });
        }
        RestPlace::Task { id, verb: Some(TaskVerb::Cancel) } => {
            let (tenant, metadata) = rest::decode_cancel_body(body, limits)?;
            return Ok(Decoded { tenant, request: Request::CancelTask { id: task_id(id)?, metadata } });
        }
        RestPlace::Task { id, verb: Some(TaskVerb::Subscribe) } => {
            let (tenant, _) = rest::decode_cancel_body(body, limits)?;
            return Ok(Decoded { tenant, request: Request::SubscribeToTask { id: task_id(id)? } });
        }
        RestPlace::PushConfigs { task_id: id } if *method == Method::POST => {
            let (tenant, config) = rest::decode_push_config_body(task_id(id)?, body, limits)?;
            return Ok(Decoded { tenant, request: Request::CreatePushConfig(config.into()) });
        }
        RestPlace::Tasks => {
            let hint = "A2A 0.3 has no way to list tasks; 1.0 has: GET /tasks with header A2A-Version: 1.0";
            return Err(ProtocolError::MethodNotFound {
                method: "GET /v1/tasks".to_owned(),
                hint: Some(hint.to_owned()),
            });
        }
        RestPlace::Task { id, verb: None } => {
            let length = query(&["historyLength", "history_length"]).map(rest::decode_history_length).transpose()?;
            Request::GetTask { id: task_id(id)?, history_length: length.flatten() }
        }
        RestPlace::PushConfigs { task_id: id } => {
            Request::ListPushConfigs { task_id: task_id(id)?, page_size: None, page_token: None }
        }
        RestPlace::PushConfig { task_id: id, id: config } => {
            check_id("id", config.as_str(), limits)?;
            let (task_id, id) = (task_id(id)?, config);
            if *method == Method::DELETE {
                Request::DeletePushConfig { task_id, id }
            } else {
                Request::GetPushConfig { task_id, id }
            }
        }
        RestPlace::ExtendedCard => Request::GetExtendedAgentCard,
    };
    Ok(Decoded { tenant: query(&["tenant"]).map(str::to_owned), request })
}
