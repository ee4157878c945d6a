//! Who says the conversation.

use switchboard_core::model::Dialect;

use super::losses::Loss;
use super::{Speaker, grpc, json};

/// The first is what the others are compared with.
pub(super) const SPEAKERS: &[Speaker] = &[
    Speaker {
        name: "1.0 JSON-RPC",
        dialect: Dialect::V1_0,
        request: json::v1_0_rpc,
        task: json::task_in_result,
        losses: &[],
    },
    Speaker { name: "1.0 HTTP+JSON", dialect: Dialect::V1_0, request: json::v1_0_http, task: json::task, losses: &[] },
    Speaker { name: "1.0 gRPC", dialect: Dialect::V1_0, request: grpc::v1_0, task: grpc::task_of_1_0, losses: &[] },
    Speaker {
        name: "0.3 JSON-RPC",
        dialect: Dialect::V0_3,
        request: json::v0_3_rpc,
        task: json::task_in_result,
        losses: &[Loss::Names],
    },
    Speaker {
        name: "0.2 JSON-RPC",
        dialect: Dialect::V0_3,
        request: json::v0_2_rpc,
        task: json::task_in_result,
        losses: &[Loss::Names],
    },
    Speaker {
        name: "0.3 HTTP+JSON",
        dialect: Dialect::V0_3Rest,
        request: json::v0_3_http,
        task: json::task,
        losses: &[Loss::Names, Loss::References],
    },
    Speaker {
        name: "0.3 gRPC",
        dialect: Dialect::V0_3Rest,
        request: grpc::v0_3,
        task: grpc::task_of_0_3,
        losses: &[Loss::Names, Loss::References],
    },
];
