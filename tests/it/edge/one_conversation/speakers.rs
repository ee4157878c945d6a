//! Who says the conversation.

use switchboard_core::model::Dialect;

use super::losses::Loss;
use super::{Speaker, compat, grpc, json};

const OVER_JSON_RPC: &str = include_str!("../../../../docs/dialects/1.0-and-0.3-over-json-rpc.md");
const OVER_HTTP_JSON: &str = include_str!("../../../../docs/dialects/1.0-and-0.3-over-http-json.md");

/// The first is what the others are compared with.
pub(super) const SPEAKERS: &[Speaker] = &[
    V1_0,
    Speaker { name: "1.0 HTTP+JSON", request: json::v1_0_http, task: json::task, ..V1_0 },
    Speaker { name: "1.0 gRPC", request: grpc::v1_0, task: grpc::task_of_1_0, ..V1_0 },
    V0_3,
    Speaker { name: "0.2 JSON-RPC", request: json::v0_2_rpc, ..V0_3 },
    V0_3_REST,
    Speaker { name: "0.3 gRPC", request: grpc::v0_3, task: grpc::task_of_0_3, ..V0_3_REST },
    Speaker {
        name: "agent-native",
        dialect: Dialect::AgentNative,
        request: compat::agent_native,
        task: json::task_in_result,
        losses: &[Loss::Names, Loss::MessageIds, Loss::References, Loss::OutputModes],
        page: include_str!("../../../../docs/dialects/agent-native.md"),
        ..V1_0
    },
    Speaker {
        name: "selectools",
        dialect: Dialect::Selectools,
        request: compat::selectools,
        task: json::task_in_result,
        losses: &[
            Loss::Names,
            Loss::References,
            Loss::RequestMetadata,
            Loss::OutputModes,
            Loss::Answers,
            Loss::Immediacy,
            Loss::Streams,
            Loss::Cancels,
        ],
        page: include_str!("../../../../docs/dialects/selectools.md"),
        ..V1_0
    },
    Speaker {
        name: "corvid",
        dialect: Dialect::Corvid,
        request: compat::corvid,
        task: compat::task_of_corvid,
        losses: &[
            Loss::Names,
            Loss::PartMetadata,
            Loss::OtherParts,
            Loss::MessageIds,
            Loss::MessageMetadata,
            Loss::Contexts,
            Loss::References,
            Loss::RequestMetadata,
            Loss::OutputModes,
            Loss::Answers,
            Loss::Streams,
            Loss::Cancels,
        ],
        page: include_str!("../../../../docs/dialects/corvid.md"),
        ..V1_0
    },
    Speaker {
        name: "NEXUS",
        dialect: Dialect::Nexus,
        request: compat::nexus,
        task: compat::task_of_nexus,
        chosen_id: Some(compat::nexus_id),
        losses: &[
            Loss::Names,
            Loss::PartMetadata,
            Loss::MessageIds,
            Loss::MessageMetadata,
            Loss::Contexts,
            Loss::References,
            Loss::RequestMetadata,
            Loss::OutputModes,
            Loss::Immediacy,
        ],
        page: include_str!("../../../../docs/dialects/nexus.md"),
    },
];

const V1_0: Speaker = Speaker {
    name: "1.0 JSON-RPC",
    dialect: Dialect::V1_0,
    request: json::v1_0_rpc,
    task: json::task_in_result,
    chosen_id: None,
    losses: &[],
    page: "",
};

const V0_3: Speaker = Speaker {
    name: "0.3 JSON-RPC",
    dialect: Dialect::V0_3,
    request: json::v0_3_rpc,
    losses: &[Loss::Names],
    page: OVER_JSON_RPC,
    ..V1_0
};

const V0_3_REST: Speaker = Speaker {
    name: "0.3 HTTP+JSON",
    dialect: Dialect::V0_3Rest,
    request: json::v0_3_http,
    task: json::task,
    losses: &[Loss::Names, Loss::References],
    page: OVER_HTTP_JSON,
    ..V1_0
};
