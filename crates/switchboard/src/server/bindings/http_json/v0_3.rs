//! Requests as 0.3 has them, under `/v1`: ids in the path, ProtoJSON in the body.

use std::borrow::Cow;

use http::Method;
use switchboard_core::call::Request;
use switchboard_core::dialect::json::{DecodeLimits, check_id};
use switchboard_core::dialect::v0_3::rest;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskId;

use super::Pairs;
use crate::server::edge::route::RestPlace;

/// The tenant a request names, and the request.
pub(super) fn decode(
    method: &Method,
    place: RestPlace<'_>,
    pairs: &Pairs<'_>,
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<(Option<String>, Request), ProtocolError> {
    let query =
        |names: &[&str]| pairs.iter().find(|(key, _)| names.contains(&key.as_ref())).map(|(_, value)| value.as_ref());
    let task_id = |id: Cow<'_, str>| -> Result<TaskId, ProtocolError> {
        check_id("id", &id, limits)?;
        Ok(TaskId::from(id.as_ref()))
    };
    let request = match place {
        RestPlace::SendMessage => {
            let (tenant, send) = rest::decode_send_body(body, limits)?;
            return Ok((tenant, Request::SendMessage(send.into())));
        }
        RestPlace::StreamMessage => {
            let (tenant, send) = rest::decode_send_body(body, limits)?;
            return Ok((tenant, Request::SendStreamingMessage(send.into())));
        }
        RestPlace::Task { id, verb: Some("cancel") } => {
            let (tenant, metadata) = rest::decode_cancel_body(body, limits)?;
            return Ok((tenant, Request::CancelTask { id: task_id(id)?, metadata }));
        }
        RestPlace::Task { id, verb: Some(_) } => {
            let (tenant, _) = rest::decode_cancel_body(body, limits)?;
            return Ok((tenant, Request::SubscribeToTask { id: task_id(id)? }));
        }
        RestPlace::PushConfigs { task_id: id } if *method == Method::POST => {
            let (tenant, config) = rest::decode_push_config_body(task_id(id)?, body, limits)?;
            return Ok((tenant, Request::CreatePushConfig(config.into())));
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
            check_id("id", &config, limits)?;
            let (task_id, id) = (task_id(id)?, config.as_ref().into());
            if *method == Method::DELETE {
                Request::DeletePushConfig { task_id, id }
            } else {
                Request::GetPushConfig { task_id, id }
            }
        }
        RestPlace::ExtendedCard => Request::GetExtendedAgentCard,
    };
    Ok((query(&["tenant"]).map(str::to_owned), request))
}
