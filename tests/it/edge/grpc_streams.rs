//! Streams over gRPC: their numbers, resuming, deadlines, clients that go away, and shutdown.

use switchboard::Server;
use switchboard_core::dialect::v1_0::proto::generated as wire;
use wire::TaskState;
use wire::stream_response::Payload;

use super::grpc_calls::say;
use crate::support::callers::soon;
use crate::support::edge::echo;
use crate::support::grpc::{Client, Served, Stream, Whole};

async fn served() -> Served {
    Served::start(Server::builder().agent(echo())).await
}

fn subscribe(id: &str) -> wire::SubscribeToTaskRequest {
    wire::SubscribeToTaskRequest { id: id.to_owned(), ..Default::default() }
}

async fn first_task(stream: &mut Stream) -> wire::Task {
    match stream.next_of::<wire::StreamResponse>().await.unwrap().payload {
        Some(Payload::Task(task)) => task,
        other => panic!("{other:?}"),
    }
}

/// The numbers of the updates of a whole stream: the first is in the head, the last in the trailers, and they are dense.
fn numbers(stream: &Whole) -> Vec<u64> {
    stream.ending().unwrap();
    let (first, last) =
        (Whole::number(&stream.head, "first-event-id"), Whole::number(&stream.trailers, "last-event-id"));
    let all: Vec<u64> = first.into_iter().flat_map(|first| first..first + stream.messages.len() as u64).collect();
    assert_eq!(all.last().copied(), last);
    all
}

async fn chunks(client: &Client) -> (String, Whole) {
    let mut stream = client.open("SendStreamingMessage", &say("chunks 4")).await;
    let task = first_task(&mut stream).await;
    let mut whole = stream.whole().await;
    whole.messages.insert(0, bytes::Bytes::new());
    (task.id, whole)
}

#[tokio::test]
async fn the_numbers_of_a_stream_are_known_at_both_ends() {
    let served = served().await;
    let (_, stream) = chunks(&served.client().await).await;
    assert_eq!(numbers(&stream), [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_stream_resumes_by_metadata() {
    let served = served().await;
    let client = served.client().await;
    let (id, _) = chunks(&client).await;
    for (after, expected) in [(0, vec![1, 2, 3, 4, 5, 6]), (4, vec![5, 6]), (6, Vec::new())] {
        let resumed = client.with("last-event-id", after).open("SubscribeToTask", &subscribe(&id)).await;
        assert_eq!(numbers(&resumed.whole().await), expected, "after {after}");
    }
    for wrong in ["7", "x", "-1"] {
        let refused = client.with("last-event-id", wrong).refusal("SubscribeToTask", &subscribe(&id)).await;
        assert_eq!(refused.gist(), "3 INVALID_PARAMS", "{wrong}");
    }
}

#[tokio::test]
async fn a_resumed_stream_with_nothing_new_begins_all_the_same() {
    let served = served().await;
    let client = served.client().await;
    let mut stream = client.open("SendStreamingMessage", &say("ask which?")).await;
    let id = first_task(&mut stream).await.id;
    let stream = stream.whole().await;
    let last = Whole::number(&stream.trailers, "last-event-id").unwrap();
    let resumed = client.with("last-event-id", last).open("SubscribeToTask", &subscribe(&id)).await;
    assert_eq!(Whole::number(&resumed.head, "first-event-id"), None, "whoever resumes knows it");
    let cancel = wire::CancelTaskRequest { id, ..Default::default() };
    client.call::<wire::Task>("CancelTask", &cancel).await.unwrap();
    let resumed = resumed.whole().await;
    assert_eq!(resumed.messages.len(), 1);
    assert_eq!(Whole::number(&resumed.trailers, "last-event-id"), Some(last + 1));
}

async fn state(client: &Client, id: &str) -> TaskState {
    let get = wire::GetTaskRequest { id: id.to_owned(), ..Default::default() };
    client.call::<wire::Task>("GetTask", &get).await.unwrap().status.unwrap().state()
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_the_run_alone() {
    let served = served().await;
    let client = served.client().await;
    let mut stream = client.open("SendStreamingMessage", &say("wait")).await;
    let id = first_task(&mut stream).await.id;
    let mut follower = client.open("SubscribeToTask", &subscribe(&id)).await;
    first_task(&mut follower).await;
    drop(stream);
    assert_eq!(state(&client, &id).await, TaskState::Working);
    let cancel = wire::CancelTaskRequest { id: id.clone(), ..Default::default() };
    client.call::<wire::Task>("CancelTask", &cancel).await.unwrap();
    follower.whole().await.ending().unwrap();
    assert_eq!(state(&client, &id).await, TaskState::Canceled);
}

#[tokio::test]
async fn a_deadline_ends_the_waiting_and_not_the_task() {
    let served = served().await;
    let client = served.client().await;
    let mut stream = client.open("SendStreamingMessage", &say("wait")).await;
    let id = first_task(&mut stream).await.id;
    // Another message waits until the first one is done, which it never is.
    let mut another = say("and this");
    another.message.as_mut().unwrap().task_id = id.clone();
    let hurried = client.with("grpc-timeout", "50m");
    assert_eq!(hurried.refusal("SendMessage", &another).await.code, 4);
    let followed = hurried.open("SubscribeToTask", &subscribe(&id)).await.whole().await;
    assert_eq!(followed.ending().unwrap_err().code, 4);
    assert_eq!(state(&client, &id).await, TaskState::Working);
}

#[tokio::test]
async fn a_shutdown_ends_streams_in_order() {
    let served = served().await;
    let client = served.client().await;
    let mut stream = client.open("SendStreamingMessage", &say("wait")).await;
    first_task(&mut stream).await;
    let stopping = served.stop();
    let rest = stream.whole().await;
    rest.ending().unwrap();
    assert!(Whole::number(&rest.trailers, "last-event-id").is_some(), "where to go on from");
    soon(stopping).await.unwrap();
}
