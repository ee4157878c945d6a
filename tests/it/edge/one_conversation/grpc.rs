//! How both versions say a call over gRPC, and where their answers keep the task. Messages are made by our own encoders:
//! that these are right is shown elsewhere, here it matters what becomes of them.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use prost::Message as _;
use switchboard_core::call::{self, SendMessage};
use switchboard_core::dialect::Package;
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::dialect::v0_3::proto::generated as v0_3_wire;
use switchboard_core::dialect::v1_0::decode_call;
use switchboard_core::dialect::v1_0::proto::generated as v1_0_wire;
use switchboard_core::model::{Message, Update};

use super::Call;
use crate::support::edge::{Answer, unversioned};
use crate::support::grpc::{V0_3, V1_0, grpc_request};

/// What the words of 1.0 mean.
fn meant(params: &serde_json::Value) -> SendMessage {
    match decode_call("SendMessage", Some(&params.to_string()), &DecodeLimits::default()).unwrap().request {
        call::Request::SendMessage(send) => *send,
        other => panic!("{other:?}"),
    }
}

/// A message as the update that holds it, in protobuf.
fn encoded(package: Package, message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    package.write_update(&Update::Message(Arc::new(message.clone())), &mut out);
    out
}

/// A message that holds nothing but these metadata, whose protobuf form is the same everywhere.
fn holding_metadata(send: &SendMessage) -> Message {
    Message { metadata: send.metadata.clone(), ..send.message.clone() }
}

/// The message of the only frame, or of the first.
fn first(answer: &Answer) -> Bytes {
    let length = answer.body.get(1..5).unwrap_or_else(|| panic!("no message in {answer:?}"));
    let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
    answer.body.slice(5..5 + length)
}

pub(super) fn v1_0(call: &Call) -> Request<Full<Bytes>> {
    let message = |message: &Message| match v1_0_wire::StreamResponse::decode(&*encoded(Package::V1_0, message)) {
        Ok(v1_0_wire::StreamResponse { payload: Some(v1_0_wire::stream_response::Payload::Message(message)) }) => {
            message
        }
        other => panic!("{other:?}"),
    };
    let request = |params: &serde_json::Value| {
        let send = meant(params);
        v1_0_wire::SendMessageRequest {
            message: Some(message(&send.message)),
            configuration: Some(v1_0_wire::SendMessageConfiguration {
                accepted_output_modes: send.accepted_output_modes.clone(),
                return_immediately: send.return_immediately,
                ..Default::default()
            }),
            metadata: message(&holding_metadata(&send)).metadata,
            ..Default::default()
        }
    };
    match call {
        Call::Send(params) => grpc_request(&format!("{V1_0}/SendMessage"), &request(params)),
        Call::Stream(params) => grpc_request(&format!("{V1_0}/SendStreamingMessage"), &request(params)),
        Call::Cancel(id) => {
            let cancel = v1_0_wire::CancelTaskRequest { id: id.clone(), ..Default::default() };
            grpc_request(&format!("{V1_0}/CancelTask"), &cancel)
        }
    }
}

pub(super) fn task_of_1_0(call: &Call, answer: &Answer) -> (String, String) {
    use v1_0_wire::{Task, TaskState, send_message_response as sent, stream_response as streamed};
    let bytes = first(answer);
    let task: Option<Task> = match call {
        Call::Send(_) => match v1_0_wire::SendMessageResponse::decode(bytes).unwrap().payload {
            Some(sent::Payload::Task(task)) => Some(task),
            _ => None,
        },
        Call::Stream(_) => match v1_0_wire::StreamResponse::decode(bytes).unwrap().payload {
            Some(streamed::Payload::Task(task)) => Some(task),
            _ => None,
        },
        Call::Cancel(_) => Some(Task::decode(bytes).unwrap()),
    };
    let task = task.unwrap_or_else(|| panic!("no task in {answer:?}"));
    let state = TaskState::try_from(task.status.unwrap().state).unwrap();
    (task.id, state.as_str_name().to_owned())
}

pub(super) fn v0_3(call: &Call) -> Request<Full<Bytes>> {
    let message = |message: &Message| match v0_3_wire::StreamResponse::decode(&*encoded(Package::V0_3, message)) {
        Ok(v0_3_wire::StreamResponse { payload: Some(v0_3_wire::stream_response::Payload::Msg(message)) }) => message,
        other => panic!("{other:?}"),
    };
    let request = |params: &serde_json::Value| {
        let send = meant(params);
        v0_3_wire::SendMessageRequest {
            request: Some(message(&send.message)),
            configuration: Some(v0_3_wire::SendMessageConfiguration {
                accepted_output_modes: send.accepted_output_modes.clone(),
                blocking: !send.return_immediately,
                ..Default::default()
            }),
            metadata: message(&holding_metadata(&send)).metadata,
        }
    };
    unversioned(match call {
        Call::Send(params) => grpc_request(&format!("{V0_3}/SendMessage"), &request(params)),
        Call::Stream(params) => grpc_request(&format!("{V0_3}/SendStreamingMessage"), &request(params)),
        Call::Cancel(id) => {
            let cancel = v0_3_wire::CancelTaskRequest { name: format!("tasks/{id}") };
            grpc_request(&format!("{V0_3}/CancelTask"), &cancel)
        }
    })
}

pub(super) fn task_of_0_3(call: &Call, answer: &Answer) -> (String, String) {
    use v0_3_wire::{Task, TaskState, send_message_response as sent, stream_response as streamed};
    let bytes = first(answer);
    let task: Option<Task> = match call {
        Call::Send(_) => match v0_3_wire::SendMessageResponse::decode(bytes).unwrap().payload {
            Some(sent::Payload::Task(task)) => Some(task),
            _ => None,
        },
        Call::Stream(_) => match v0_3_wire::StreamResponse::decode(bytes).unwrap().payload {
            Some(streamed::Payload::Task(task)) => Some(task),
            _ => None,
        },
        Call::Cancel(_) => Some(Task::decode(bytes).unwrap()),
    };
    let task = task.unwrap_or_else(|| panic!("no task in {answer:?}"));
    let state = TaskState::try_from(task.status.unwrap().state).unwrap();
    (task.id, state.as_str_name().to_owned())
}
