//! One conversation in every version and binding: what is stored is the same, up to the losses that `docs/dialects` lists.
//!
//! The conversation is written down once, in the words of 1.0. `speakers` lists who says it: a further version or binding is
//! a further row there, which says a call (`json`, `grpc`) and finds the task in the answer.

mod grpc;
mod json;
mod losses;
mod speakers;

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, Artifact, Server, Turn};
use switchboard_core::call::Caller;
use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Dialect, TaskId, Timestamp};
use switchboard_engine::memory::MemoryStore;
use switchboard_engine::ports::Store;
use switchboard_engine::ports::store::{LogPage, Scope};
use switchboard_engine::system::SystemClock;

use crate::support::edge::{Answer, Edge, redacted};
use losses::Loss;
use speakers::SPEAKERS;

/// Something a client says, in the words of 1.0.
enum Call {
    Send(Value),
    Stream(Value),
    Cancel(String),
}

/// One version over one binding.
struct Speaker {
    name: &'static str,
    /// What its tasks remember.
    dialect: Dialect,
    /// How it says a call.
    request: fn(&Call) -> Request<Full<Bytes>>,
    /// The id and the state of the task in what is answered to a send or a cancel, or in the first event of a stream.
    task: fn(&Call, &Answer) -> (String, String),
    /// What cannot be said this way.
    losses: &'static [Loss],
}

/// A server of its own, and the store below it.
struct House {
    edge: Edge,
    store: Arc<MemoryStore>,
}

impl House {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock), 100));
        let agent = mirror().input_modes(["text/plain", "text/csv", "application/json"]);
        let edge = Edge::new(Server::builder().agent(agent).store(store.clone()));
        Self { edge, store }
    }

    /// Everything that was committed for a task, without times and with ids in order of appearance, as it would be had it
    /// been said in this dialect with these losses.
    async fn log(&self, id: &str, dialect: Dialect, losses: &[Loss]) -> String {
        let page = self.page(id).await;
        picture(&page, |event| losses::said_in(dialect, event, losses))
    }

    async fn log_as_it_is(&self, id: &str) -> String {
        picture(&self.page(id).await, |event| event)
    }

    async fn page(&self, id: &str) -> LogPage {
        let scope = Scope { owner: Caller::anonymous().owner, agent: "mirror".into() };
        let stored = self.store.head(&scope, &TaskId::from(id)).await.unwrap().expect("the task is stored");
        self.store.log(stored.key, 0, 1000).await.unwrap()
    }
}

fn picture(page: &LogPage, as_if: impl Fn(Event) -> Event) -> String {
    let events = page.commits.iter().flat_map(|commit| commit.events.iter());
    redacted(&events.map(|event| format!("{:?}\n", as_if(timeless(event.clone())))).collect::<String>())
}

/// Does what the first part says: `ask`, `wait` (for its cancellation), `chunks`, or else gives all parts back.
fn mirror() -> AgentBuilder {
    AgentBuilder::from_fn("Mirror", |turn: Turn| async move {
        match turn.text().as_str() {
            "ask" => turn.ask("which colour?").await?,
            "wait" => {
                turn.working("waiting").await?;
                turn.cancelled().await;
            }
            "chunks" => {
                let mut writer = turn.artifact_writer().with_name("chunks");
                writer.text("one ").await?;
                writer.text("two").await?;
            }
            _ => {
                let parts = turn.message().parts.clone();
                turn.artifact(Artifact::new("", parts)).await?;
            }
        }
        Ok(())
    })
}

fn timeless(event: Event) -> Event {
    let at = Timestamp::from_ms(0);
    match event {
        Event::Opened { inbound, context_id, .. } => Event::Opened { inbound, context_id, at },
        Event::StatusChanged { state, message, metadata, .. } => Event::StatusChanged { state, message, metadata, at },
        Event::CancelRequested { metadata, .. } => Event::CancelRequested { metadata, at },
        Event::Claimed { fence, attempt, .. } => Event::Claimed { fence, attempt, at },
        other @ (Event::Received { .. }
        | Event::MessageAdded { .. }
        | Event::TurnBegan { .. }
        | Event::TurnEnded
        | Event::ArtifactWritten { .. }
        | Event::Replied { .. }
        | Event::Checkpoint { .. }) => other,
    }
}

fn says(number: u32, parts: Value) -> Value {
    json!({"message": {"messageId": format!("m-{number}"), "role": "ROLE_USER", "parts": parts}})
}

/// Holds the conversation and gives the ids of its tasks.
async fn converse(edge: &Edge, speaker: &Speaker) -> Vec<String> {
    let say = async |call: Call| {
        let answer = edge.ask((speaker.request)(&call)).await;
        assert!(answer.status.is_success(), "{}: {answer:?}", speaker.name);
        let (id, state) = (speaker.task)(&call, &answer);
        (id, state.to_ascii_lowercase().replace('_', "-"))
    };
    let send = async |params: Value| say(Call::Send(params)).await;

    let mut plain = says(1, json!([{"text": "hello"}]));
    plain["metadata"] = json!({"trace": "abc"});
    plain["configuration"] = json!({"acceptedOutputModes": ["text/plain"]});
    let (hello, _) = send(plain).await;

    let (asked, state) = send(says(2, json!([{"text": "ask"}]))).await;
    assert!(state.ends_with("input-required"), "{}: {state}", speaker.name);
    let mut answer = says(3, json!([{"text": "green"}]));
    answer["message"]["taskId"] = json!(asked);
    assert_eq!(send(answer).await.0, asked, "{}", speaker.name);

    let (streamed, _) = say(Call::Stream(says(4, json!([{"text": "chunks"}])))).await;

    let mut waiting = says(5, json!([{"text": "wait"}]));
    waiting["configuration"] = json!({"returnImmediately": true});
    let (canceled, _) = send(waiting).await;
    let (_, state) = say(Call::Cancel(canceled.clone())).await;
    assert!(state.contains("cancel"), "{}: {state}", speaker.name);

    let mut parts = says(
        6,
        json!([
            {"text": "see these", "mediaType": "text/plain", "filename": "note.txt"},
            {"raw": "YSxiCjEsMgo=", "mediaType": "text/csv", "filename": "t.csv"},
            {"url": "https://files.example/big.csv", "mediaType": "text/csv", "filename": "big.csv"},
            {"data": {"a": [1, null]}, "mediaType": "application/json", "metadata": {"p": 1}},
            {"data": [1, 2]},
        ]),
    );
    parts["message"]["metadata"] = json!({"k": {"deep": [true]}});
    parts["message"]["contextId"] = json!("a-context");
    parts["message"]["referenceTaskIds"] = json!([hello]);
    let (given_back, _) = send(parts).await;
    vec![hello, asked, streamed, canceled, given_back]
}

#[tokio::test]
async fn a_conversation_leaves_the_same_logs_however_it_is_spelled() {
    let [first, others @ ..] = SPEAKERS else { panic!("there are speakers") };
    assert!(first.losses.is_empty(), "the first says everything");
    let (house, mut logs) = (House::new(), Vec::new());
    let said = converse(&house.edge, first).await;
    for speaker in others {
        let other = House::new();
        let tasks = converse(&other.edge, speaker).await;
        for (ours, theirs) in said.iter().zip(&tasks) {
            let expected = house.log(ours, speaker.dialect, speaker.losses).await;
            assert_eq!(other.log_as_it_is(theirs).await, expected, "{}", speaker.name);
            logs.push(expected);
        }
    }
    assert_eq!(logs.len(), 5 * others.len());
    assert!(logs.iter().all(|log| log.contains("Opened")), "a log without events proves nothing: {logs:?}");
}

#[tokio::test]
async fn each_loss_is_one_that_happens() {
    let house = House::new();
    let said = converse(&house.edge, &SPEAKERS[0]).await;
    let last = said.last().unwrap();
    let whole = house.log_as_it_is(last).await;
    for speaker in SPEAKERS {
        for loss in speaker.losses {
            assert_ne!(house.log(last, Dialect::V1_0, &[*loss]).await, whole, "{}: {loss:?}", speaker.name);
        }
    }
}
