//! A relay: an agent elsewhere, behind our own server. `cards` is about what its card says, `passing` has our own server as the upstream, `restarted` the same while the
//! gateway or the upstream goes away, `hostile` an upstream that answers what no relay expects, `guarded` who may use a relay, and what it
//! asks of its upstream.
//!
//! What an upstream or a manifest may do wrong, and the test for it:
//!
//! | | |
//! | --- | --- |
//! | garbage; 200 MB and more; a redirect to a private address | `hostile::garbage_an_endless_answer_and_a_redirect_fail_the_task` |
//! | another task's id | `hostile::an_update_of_another_task_fails_the_task` |
//! | a card for another host | `guarded::a_card_that_leads_to_a_private_address_elsewhere_fails_the_task` |
//! | never ends | `hostile::an_upstream_that_never_ends_can_be_canceled` |
//! | ends twice | `hostile::an_upstream_that_ends_twice_has_ended_once` |
//! | a loop of three gateways | `guarded::three_gateways_in_a_circle_end_in_a_named_error` |
//! | a manifest with a wrong line | `a_wrong_entry_is_named_with_its_line_and_costs_itself_alone` in the directory of the hub |
//! | two apps with one name | `two_agents_of_one_name_are_reported_and_the_first_is_kept`, there too |

mod cards;
mod guarded;
mod hostile;
mod passing;
mod restarted;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use switchboard::client::Client;
use switchboard::model::{ArtifactUpdate, Message, Update};
use switchboard::{
    AgentBuilder, AgentClient, AgentError, Part, Replies, Role, Server, ServerBuilder, TaskState, TaskStream, Turn,
};
use switchboard_hub::relay::{Relay, RelayHandle, RelayOptions};
use tokio::sync::Semaphore;

use crate::support::callers::soon;
use crate::support::grpc::Served;

/// What the agents read.
const MODES: [&str; 3] = ["text/plain", "application/octet-stream", "application/json"];

/// The options of a relay whose pauses are short.
fn quick() -> RelayOptions {
    let mut options = RelayOptions::default();
    (options.pause_first, options.pause_max) = (Duration::from_millis(1), Duration::from_millis(2));
    options.down_max = Duration::ZERO;
    options
}

/// A gateway in front of the agent at `url`.
fn gateway(url: &str, options: RelayOptions) -> (Server, AgentClient, RelayHandle) {
    let relay = Relay::new(url, Client::builder(), options).unwrap();
    let handle = relay.handle();
    let agent = AgentBuilder::new("Relay", relay).input_modes(MODES);
    let server = Server::builder().agent(agent).build().unwrap();
    let client = server.local("relay").unwrap();
    (server, client, handle)
}

/// An upstream that does what its messages say, and what it was asked.
struct Upstream {
    _served: Served,
    url: String,
    seen: Arc<Mutex<Vec<Message>>>,
    /// One for each step that `steps` may take.
    permits: Arc<Semaphore>,
}

impl Upstream {
    async fn start() -> Self {
        Self::start_with(|agent| agent).await
    }

    /// One whose card is signed.
    async fn start_signed(keys: switchboard::SigningKeys) -> Self {
        Self::start_as(|agent| agent, |server| server.signing_keys(keys)).await
    }

    async fn start_with(change: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Self {
        Self::start_as(change, |server| server).await
    }

    async fn start_as(
        change: impl FnOnce(AgentBuilder) -> AgentBuilder,
        set: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let (seen, permits) = (Arc::<Mutex<Vec<Message>>>::default(), Arc::new(Semaphore::new(0)));
        let (all, steps) = (seen.clone(), permits.clone());
        let agent = AgentBuilder::from_fn("Upstream", move |turn: Turn| {
            all.lock().unwrap().push(turn.message().clone());
            act(turn, steps.clone())
        });
        let agent = agent.traits(|traits| traits.with_replies(Replies::Either)).input_modes(MODES);
        let served = Served::start(set(Server::builder().agent(change(agent)))).await;
        let url = format!("http://{}", served.address);
        Self { _served: served, url, seen, permits }
    }

    fn seen(&self) -> Vec<Message> {
        self.seen.lock().unwrap().clone()
    }

    /// The upstream itself, for looking at its tasks.
    async fn client(&self) -> AgentClient {
        Client::builder().build().unwrap().agent(&self.url).await.unwrap()
    }
}

async fn act(turn: Turn, permits: Arc<Semaphore>) -> Result<(), AgentError> {
    let text = turn.text();
    match text.split(' ').next().unwrap_or_default() {
        "reply" => turn.reply(vec![Part::text("directly")]).await?,
        "fail" => turn.fail("broken").await?,
        "reject" => turn.reject("not this").await?,
        "ask" if turn.number() == 1 => turn.ask("which?").await?,
        "auth" => {
            turn.require_auth("log in").await?;
            permits.acquire().await?.forget();
            turn.working("").await?;
            turn.answer("in").await?;
        }
        "silence" => turn.cancelled().await,
        "wait" => {
            turn.working("waiting").await?;
            turn.cancelled().await;
        }
        "steps" => {
            turn.working("starting").await?;
            let count: usize = text.split(' ').nth(1).unwrap_or("3").parse()?;
            let mut writer = turn.artifact_writer().with_id("out").with_name("Out");
            for step in 1..=count {
                permits.acquire().await?.forget();
                if step == count {
                    writer.finish(vec![Part::text(format!("{step};"))]).await?;
                    break;
                }
                writer.text(format!("{step};")).await?;
            }
            turn.complete("finished").await?;
        }
        _ => turn.answer(text).await?,
    }
    Ok(())
}

/// What a stream shows, in short.
fn shown(update: &Update) -> String {
    match update {
        Update::Task(view) => format!("task {}", view.task.state().word()),
        Update::Message(message) => format!("message {}", message.text()),
        Update::Status(update) => {
            let text = update.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
            format!("{} {text}", update.status.state.word()).trim().to_owned()
        }
        Update::Artifact(ArtifactUpdate { artifact, append, last_chunk, .. }) => {
            let (append, last) = (if *append { "+" } else { "=" }, if *last_chunk { " last" } else { "" });
            format!("{}{append}{}{last}", artifact.artifact_id, artifact.text())
        }
    }
}

async fn rest(stream: &mut TaskStream) -> Vec<String> {
    let all = stream.map(|frame| shown(&frame.unwrap().update.update)).collect::<Vec<_>>();
    soon(all).await
}

/// The state and the text of the status of what a message came to.
async fn outcome(agent: &AgentClient, text: &str) -> (TaskState, String) {
    let task = soon(agent.send_text(text)).await.unwrap().into_task().expect("a task");
    let text = task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
    (task.state(), text)
}

fn message(id: &str, text: &str) -> Message {
    Message::new(Role::User, id, vec![Part::text(text)])
}
