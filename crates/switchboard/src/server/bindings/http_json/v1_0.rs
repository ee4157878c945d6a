//! Requests as 1.0 has them: ids in the path, plain fields in body and query.

use http::Method;
use switchboard_core::call::Request;
use switchboard_core::dialect::json::{DecodeLimits, Decoded, check_id};
use switchboard_core::dialect::v1_0;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{PushConfig, TaskId};

use super::Pairs;
use crate::server::edge::paths::{RestPlace, TaskVerb};

/// A request, and the tenant it names outside its path.
pub(super) fn decode(
    method: &Method,
    place: RestPlace,
    pairs: &Pairs<'_>,
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<Decoded, ProtocolError> {
    let query = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref());
    let tenant = query("tenant").map(str::to_owned);
    let task_id = |id: TaskId| -> Result<TaskId, ProtocolError> {
        check_id("id", id.as_str(), limits)?;
        Ok(id)
    };
    let request = match place {
        RestPlace::SendMessage => {
            let (tenant, send) = v1_0::decode_send_body(body, limits)?;
            return Ok(Decoded { tenant, request: Request::SendMessage(send.into()) });
        }
        RestPlace::StreamMessage => {
            let (tenant, send) = v1_0::decode_send_body(body, limits)?;
            return Ok(Decoded { tenant, request: Request::SendStreamingMessage(send.into()) });
        }
        RestPlace::Task { id, verb: Some(TaskVerb::Cancel) } => {
            let (tenant, metadata) = v1_0::decode_cancel_body(body, limits)?;
            return Ok(Decoded { tenant, request: Request::CancelTask { id: task_id(id)?, metadata } });
        }
        RestPlace::PushConfigs { task_id: id } if *method == Method::POST => {
            let (tenant, config) = v1_0::decode_push_config_body(body, limits)?;
            // The path outranks the body.
            let config = PushConfig { task_id: task_id(id)?, ..config };
            return Ok(Decoded { tenant, request: Request::CreatePushConfig(config.into()) });
        }
        RestPlace::Tasks => Request::ListTasks(v1_0::decode_list_query(pairs, limits)?),
        RestPlace::Task { id, verb: None } => {
            let history_length = query("historyLength").map(v1_0::decode_history_length).transpose()?;
            Request::GetTask { id: task_id(id)?, history_length }
        }
        RestPlace::Task { id, verb: Some(TaskVerb::Subscribe) } => Request::SubscribeToTask { id: task_id(id)? },
        RestPlace::PushConfigs { task_id: id } => {
            let (page_size, page_token) = v1_0::decode_push_list_query(pairs, limits)?;
            Request::ListPushConfigs { task_id: task_id(id)?, page_size, page_token }
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
    Ok(Decoded { tenant, request })
}
