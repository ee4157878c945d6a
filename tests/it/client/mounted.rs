//! A server that mounts a remote agent passes calls on, streams and refusals included.

use std::sync::Arc;

use switchboard::{ProtocolError, Server, TaskId, TaskState};

use super::{agent, served};
use crate::support::callers::soon;
use crate::support::edge::echo;

#[tokio::test]
async fn a_server_that_mounts_a_remote_agent_passes_calls_on() {
    let (_behind, url) = served(Server::builder().agent(echo())).await;
    let remote = Arc::new(agent(&url).await);
    let (_front, url) = served(Server::builder().mount("relay", remote)).await;
    let relay = agent(&url).await;
    assert_eq!(relay.card().name, "Echo");
    assert_eq!(soon(relay.send_text("hello")).await.unwrap().text(), "hello");
    let mut stream = soon(relay.stream_text("chunks 3")).await.unwrap();
    let mut seqs = Vec::new();
    while let Some(frame) = soon(stream.next()).await {
        seqs.extend(frame.unwrap().seq);
    }
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
    let task = stream.task().unwrap();
    assert_eq!((task.state(), task.artifacts[0].text().as_str()), (TaskState::Completed, "1 2 3 "));
    let refused = soon(relay.task(&TaskId::from("nowhere"))).await.unwrap_err();
    assert!(matches!(refused.protocol_error(), Some(ProtocolError::TaskNotFound { .. })), "{refused:?}");
}
