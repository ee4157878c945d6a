//! One conversation in every version and binding: what is stored is the same, up to the losses that `docs/dialects` lists.
//!
//! The conversation is written down once, in the words of 1.0. `speakers` lists who says it: a further version or binding is
//! a further row there, which says a call (`json`, `grpc`, `compat`) and finds the task in the answer.

mod compat;
mod grpc;
mod json;
mod losses;
mod speakers;

use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use switchboard::{AgentBuilder, Artifact, Server, Turn};
use switchboard_core::call::Caller;
use switchboard_core::dialect::compat::selectools;
use switchboard_core::lifecycle::{Event, Inbound};
use switchboard_core::model::{Dialect, Json, Message, TaskId, TaskState, Timestamp};
use switchboard_engine::memory::MemoryStore;
use switchboard_engine::ports::TaskLog;
use switchboard_engine::ports::store::Scope;
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
    /// The id of the task that a message begins, where that is the client's choice.
    chosen_id: Option<fn(&Value) -> String>,
    /// What cannot be said this way.
    losses: &'static [Loss],
    /// The page that tells what is lost.
    page: &'static str,
}

impl Speaker {
    fn loses(&self, loss: Loss) -> bool {
        self.losses.contains(&loss)
    }
}

/// What came of a conversation: a task for each exchange, none for one that cannot be held.
type Tasks = [Option<String>; 5];

/// The context that a client names.
const CONTEXT: &str = "a-context";

/// A server of its own, and the store below it.
struct TestServer {
    edge: Edge,
    store: Arc<MemoryStore>,
}

impl TestServer {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock), 100));
        let agent = mirror()
            .input_modes(["text/plain", "text/csv", "application/json"])
            .compat(|compat| compat.default_project = true);
        let edge = Edge::new(Server::builder().agent(agent).store(store.clone()));
        Self { edge, store }
    }

    /// Everything that was committed for a task, without times and with ids in order of appearance, as it would be had it
    /// been said in this dialect with these losses.
    async fn log(&self, id: &str, dialect: Dialect, losses: &[Loss]) -> String {
        let commits = self.commits(id).await.into_iter();
        let said = commits.take_while(|events| !events.iter().any(|event| losses::is_unsaid(event, losses)));
        picture(said.flatten().map(|event| losses::said_in(dialect, event, losses)))
    }

    async fn log_as_it_is(&self, id: &str) -> String {
        picture(self.commits(id).await.into_iter().flatten())
    }

    /// What has been committed so far; nothing for a task that is not there yet.
    async fn commits(&self, id: &str) -> Vec<Vec<Event>> {
        let scope = Scope { owner: Caller::anonymous().owner, agent: "mirror".into() };
        let mut found = self.store.head(&scope, &TaskId::from(id)).await.unwrap();
        if found.is_none() {
            found = self.store.head(&scope, &TaskId::from(named_by_client(id))).await.unwrap();
        }
        let Some(stored) = found else { return Vec::new() };
        let page = self.store.log(stored.key, 0, 1000).await.unwrap();
        page.commits.iter().map(|commit| same_in_all(&commit.events).into_iter().map(timeless).collect()).collect()
    }

    /// Lets a task come as far as this many events: not every speaker waits for its end.
    async fn until(&self, id: &str, count: usize) {
        for _ in 0..10_000 {
            if self.commits(id).await.iter().flatten().count() >= count {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

fn picture(events: impl Iterator<Item = Event>) -> String {
    redacted(&dashed(&events.map(|event| format!("{event:?}\n")).collect::<String>()))
}

/// The text with ids of 32 digits, as selectools has them, in the usual form.
fn dashed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric()) {
        let id = word.get(..32).filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match id.filter(|_| word.len() <= 33) {
            Some(id) => {
                let dashes = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-");
                out.extend([&dashes, &word[32..]]);
            }
            None => out.push_str(word),
        }
    }
    out
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

/// The events without what one dialect alone has stored, for readers of its own: how a message was spelled, and that each
/// write is a step in time.
fn same_in_all(events: &[Event]) -> Vec<Event> {
    let mut kept: Vec<Event> = Vec::with_capacity(events.len());
    for event in events {
        match event {
            Event::Noted { .. } => {}
            Event::StatusChanged { state: TaskState::Working, message: None, .. }
                if matches!(kept.last(), Some(Event::ArtifactWritten { .. })) => {}
            Event::Opened { inbound, context_id, at } if inbound.dialect == Dialect::Selectools => {
                let mut message = Message::clone(&inbound.message);
                message.metadata = message.metadata.and_then(without_spelling);
                let inbound = Arc::new(Inbound { message: Arc::new(message), ..Inbound::clone(inbound) });
                kept.push(Event::Opened { inbound, context_id: context_id.clone(), at: *at });
            }
            event => kept.push(event.clone()),
        }
    }
    kept
}

/// Metadata as it was sent; none if it is all ours.
fn without_spelling(metadata: Json) -> Option<Json> {
    let mut members: serde_json::Map<String, Value> = serde_json::from_str(metadata.as_str()).unwrap();
    match members.remove(selectools::MESSAGE_KEY) {
        None => Some(metadata),
        Some(_) if members.is_empty() => None,
        Some(_) => Some(Json::from_trusted(Value::Object(members).to_string())),
    }
}

/// The id of the task that an anonymous client calls so. It must stay the same in later versions, or clients would lose their tasks.
fn named_by_client(alias: &str) -> String {
    let mut hash = Sha256::new();
    for part in ["task alias", "", "", "mirror", alias] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let hash = hash.finalize();
    let mut bytes: Vec<u8> = hash[..16].to_vec();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
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
        | Event::Noted { .. }
        | Event::Replied { .. }
        | Event::Checkpoint { .. }) => other,
    }
}

fn says(number: u32, parts: Value) -> Value {
    json!({"message": {"messageId": format!("m-{number}"), "role": "ROLE_USER", "parts": parts}})
}

/// Holds the conversation and gives the ids of its tasks.
async fn converse(server: &TestServer, speaker: &Speaker) -> Tasks {
    let say = async |call: Call| {
        let answer = server.edge.ask((speaker.request)(&call)).await;
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
    if !speaker.loses(Loss::Answers) {
        assert!(state.ends_with("input-required"), "{}: {state}", speaker.name);
        let mut answer = says(3, json!([{"text": "green"}]));
        answer["message"]["taskId"] = json!(asked);
        assert_eq!(send(answer).await.0, asked, "{}", speaker.name);
    }

    let chunks = says(4, json!([{"text": "chunks"}]));
    let call = if speaker.loses(Loss::Streams) { Call::Send(chunks) } else { Call::Stream(chunks) };
    let (streamed, _) = say(call).await;

    let canceled = wait_and_cancel(server, speaker, &say).await;

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
    parts["message"]["contextId"] = json!(CONTEXT);
    parts["message"]["referenceTaskIds"] = json!([hello]);
    let (given_back, _) = send(parts).await;
    [Some(hello), Some(asked), Some(streamed), canceled, Some(given_back)]
}

/// A task that goes on until it is canceled. A client that has to wait for its end must know its id beforehand to
/// cancel it.
async fn wait_and_cancel(
    server: &TestServer,
    speaker: &Speaker,
    say: &impl AsyncFn(Call) -> (String, String),
) -> Option<String> {
    let mut waiting = says(5, json!([{"text": "wait"}]));
    waiting["configuration"] = json!({"returnImmediately": true});
    let cancel = async |id: String| {
        server.until(&id, 2).await;
        let (_, state) = say(Call::Cancel(id.clone())).await;
        assert!(state.contains("cancel"), "{}: {state}", speaker.name);
    };
    match (speaker.loses(Loss::Immediacy), speaker.loses(Loss::Cancels)) {
        (false, false) => {
            let (id, _) = say(Call::Send(waiting)).await;
            cancel(id.clone()).await;
            Some(id)
        }
        (false, true) => Some(say(Call::Send(waiting)).await.0),
        (true, false) => {
            let chosen = speaker.chosen_id.expect("whoever waits and cancels chooses the id");
            let id = chosen(&waiting["message"]);
            tokio::join!(say(Call::Send(waiting)), cancel(id.clone()));
            Some(id)
        }
        (true, true) => None,
    }
}

#[tokio::test]
async fn a_conversation_leaves_the_same_logs_however_it_is_spelled() {
    let [first, others @ ..] = SPEAKERS else { panic!("there are speakers") };
    assert!(first.losses.is_empty(), "the first says everything");
    let server = TestServer::new();
    let said = converse(&server, first).await;
    for speaker in others {
        let other = TestServer::new();
        let tasks = converse(&other, speaker).await;
        let mut compared = 0;
        for (ours, theirs) in said.iter().zip(&tasks) {
            let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
            let expected = server.log(ours, speaker.dialect, speaker.losses).await;
            assert!(expected.contains("Opened"), "a log without events proves nothing: {expected}");
            other.until(theirs, expected.lines().count()).await;
            assert_eq!(other.log_as_it_is(theirs).await, expected, "{}", speaker.name);
            compared += 1;
        }
        let unsaid = usize::from(speaker.loses(Loss::Immediacy) && speaker.loses(Loss::Cancels));
        assert_eq!(compared, 5 - unsaid, "{}", speaker.name);
    }
}

#[tokio::test]
async fn each_loss_is_one_that_happens() {
    let server = TestServer::new();
    let said = converse(&server, &SPEAKERS[0]).await;
    for (speaker, loss) in SPEAKERS.iter().flat_map(|speaker| speaker.losses.iter().map(move |loss| (speaker, loss))) {
        let mut changed = 0;
        for id in said.iter().flatten() {
            let lossy = server.log(id, Dialect::V1_0, &[*loss]).await;
            changed += usize::from(lossy != server.log_as_it_is(id).await);
        }
        assert_eq!(changed == 0, loss.leaves_no_trace(), "{}: {loss:?}", speaker.name);
    }
}

/// The first cells of the table with this heading.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let cells = page.lines().map(|line| line.strip_prefix("| ").and_then(|line| line.split(" |").next()));
    let table = cells.skip_while(|cell| *cell != Some(heading)).skip(2);
    table.map_while(|cell| cell).collect()
}

#[test]
fn each_loss_is_a_row_of_the_page_that_tells_of_it() {
    for speaker in SPEAKERS.iter().filter(|speaker| !speaker.losses.is_empty()) {
        let lost: Vec<&str> = speaker.losses.iter().flat_map(|loss| loss.rows()).copied().collect();
        let [told, all_told] = ["1.0 has", "1.0 can say"].map(|heading| rows(speaker.page, heading));
        if all_told.is_empty() {
            assert!(lost.iter().all(|row| told.contains(row)), "{}: {lost:?} are in {told:?}", speaker.name);
        } else {
            assert_eq!(all_told, lost, "{}", speaker.name);
        }
    }
}
