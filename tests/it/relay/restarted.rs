//! The gateway or the upstream goes away in the middle: the task goes on, and no event is lost or comes twice.

use std::sync::Arc;

use std::time::Duration;
use switchboard::call::ListTasks;
use switchboard::client::Client;
use switchboard::{AgentBuilder, AgentClient, Server};
use switchboard_engine::memory::MemoryStore;
use switchboard_engine::ports::Store;
use switchboard_engine::system::SystemClock;
use switchboard_hub::relay::Relay;

use super::{Upstream, quick, rest, shown};
use crate::support::callers::soon;

/// What is left of a gateway that is gone.
pub(super) fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(SystemClock), 100))
}

pub(super) fn gateway_on(store: &Arc<dyn Store>, url: &str) -> (Server, AgentClient) {
    let relay = Relay::new(url, Client::builder(), quick()).unwrap();
    let server = Server::builder().store(store.clone()).agent(AgentBuilder::new("Relay", relay)).build().unwrap();
    server.engine().unwrap().start();
    let client = server.local("relay").unwrap();
    (server, client)
}

/// Stops the gateway after so many events, starts another one on the same store, and gives what the caller sees in all.
async fn restarted_after(events: usize) -> Vec<String> {
    const STEPS: usize = 3;
    let upstream = Upstream::start().await;
    let store = store();
    let (first, agent) = gateway_on(&store, &upstream.url);
    let mut stream = soon(agent.stream_text("steps 3")).await.unwrap();
    let mut seen = Vec::new();
    let mut last = None;
    while seen.len() < events {
        let frame = soon(stream.next()).await.unwrap().unwrap();
        last = frame.seq;
        seen.push(shown(&frame.update.update));
        // The upstream takes the next step when the one before has come through.
        upstream.permits.add_permits(usize::from(seen.len() >= 2));
    }
    let id = stream.task().unwrap().id.clone();
    drop(stream);
    first.shutdown(Duration::ZERO).await;
    let (_second, agent) = gateway_on(&store, &upstream.url);
    upstream.permits.add_permits(STEPS);
    let agent = agent.with_caller(|caller| caller.last_event_id = last.map(|last| last.to_string()));
    seen.extend(rest(&mut soon(agent.subscribe(&id)).await.unwrap()).await);
    let theirs = upstream.client().await.tasks(ListTasks::default()).await.unwrap().tasks;
    assert_eq!((theirs.len(), upstream.seen().len()), (1, 1), "the message was worked on once");
    seen
}

#[tokio::test]
async fn a_gateway_that_is_restarted_after_any_event_goes_on_with_the_task_of_the_upstream() {
    let expected = ["task submitted", "working starting", "out=1;", "out+2;", "out+3; last", "completed finished"];
    for events in 1..=5 {
        assert_eq!(restarted_after(events).await, expected, "restarted after {events}");
    }
}
