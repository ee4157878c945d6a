//! SendMessage: when it answers, and that the work does not depend on who waits for it.

use std::time::Duration;

use expect_test::expect;
use futures_util::poll;
use switchboard_core::call::Request;
use switchboard_core::model::{Json, Part, TaskState};
use switchboard_engine::runs::Traits;

use crate::support::callers::{at_once, say, soon, still_waits, trace};
use crate::support::gated_store::GatedStore;
use crate::support::on_both_stores;
use crate::support::pictures::{picture, wire};
use crate::support::puppets::{echo, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    a_blocking_send_answers_with_the_finished_task,
    a_send_that_returns_at_once_answers_before_the_work_is_done,
    a_vanished_caller_does_not_stop_the_work,
    any_text_survives,
    the_agent_is_told_everything_the_request_said,
);

async fn a_blocking_send_answers_with_the_finished_task(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let mut sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.working("reading").await.unwrap();
    act.turn.text_artifact("good day").await.unwrap();
    assert!(poll!(&mut sending).is_pending(), "answered while the agent was at work");
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    expect![[r#"
        completed
        user: hello
        artifact-1-1: good day
    "#]]
    .assert_eq(&picture(&task));
    assert_eq!(world.client().task(&task.id).await.unwrap(), task);
}

async fn a_send_that_returns_at_once_answers_before_the_work_is_done(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let task = soon(world.client().send(at_once(say("hello")))).await.unwrap();
    expect![[r#"
        submitted
        user: hello
    "#]]
    .assert_eq(&picture(&task));
    let act = acts.next().await;
    act.turn.text_artifact("later").await.unwrap();
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    expect![[r#"
        completed
        user: hello
        artifact-1-1: later
    "#]]
    .assert_eq(&picture(&task));
}

async fn a_vanished_caller_does_not_stop_the_work(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    sending.abort();
    assert!(sending.await.unwrap_err().is_cancelled());
    act.turn.text_artifact("to nobody").await.unwrap();
    let id = act.turn.task().id.clone();
    act.returns();
    let task = world.client().task_in(&id, TaskState::Completed).await;
    assert_eq!(task.artifacts[0].text(), "to nobody");
}

async fn any_text_survives(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    for text in
        ["", "\u{0}", "a\u{0}b", "\u{7f}\u{85}\u{2028}", "it's \"quoted\" \\ and; DROP TABLE task", "😀 é\r\n\t"]
    {
        let task = world.client().send(say(text)).await.unwrap();
        let read = world.client().task(&task.id).await.unwrap();
        assert_eq!((read.artifacts[0].text().as_str(), read.history[0].text().as_str()), (text, text), "{text:?}");
    }
}

async fn the_agent_is_told_everything_the_request_said(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let mut send = say("hello");
    send.metadata = Some(Json::from_trusted(r#"{"of":"the request"}"#));
    send.message.metadata = Some(Json::from_trusted(r#"{"of":"the message"}"#));
    send.message.parts.push(Part::json(Json::from_trusted("[1,2]")).with_filename("numbers.json"));
    let client = world.client().with(|caller| caller.trace = Some(trace()));
    let sending = client.sending(send.clone());
    let act = acts.next().await;
    let turn = &act.turn;
    assert_eq!(turn.metadata(), send.metadata.as_ref());
    assert_eq!((&turn.message().metadata, &turn.message().parts), (&send.message.metadata, &send.message.parts));
    assert_eq!(turn.trace(), Some(&trace()));
    assert_eq!((turn.number(), turn.attempt(), turn.history().len(), turn.is_cancelled()), (1, 1, 1, false));
    assert_eq!(turn.fencing_token(), format!("{}:1", turn.task().id));
    act.returns();
    soon(sending).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_send_is_the_task_in_its_envelope() {
    let world = World::of(registered("echo", echo()));
    let reply = world.client().call(Request::SendMessage(say("hello").into())).await.unwrap();
    expect![[r#"
        {
          "task": {
            "artifacts": [
              {
                "artifactId": "artifact-1-1",
                "parts": [
                  {
                    "text": "hello"
                  }
                ]
              }
            ],
            "contextId": "00000000-0000-4000-8000-000000000002",
            "history": [
              {
                "contextId": "00000000-0000-4000-8000-000000000002",
                "messageId": "m-hello",
                "parts": [
                  {
                    "text": "hello"
                  }
                ],
                "role": "ROLE_USER",
                "taskId": "00000000-0000-4000-8000-000000000001"
              }
            ],
            "id": "00000000-0000-4000-8000-000000000001",
            "status": {
              "state": "TASK_STATE_COMPLETED",
              "timestamp": "2026-01-01T00:00:00.000Z"
            }
          }
        }
    "#]]
    .assert_eq(&format!("{:#}\n", wire(&reply)));
}

#[tokio::test(start_paused = true)]
async fn a_blocking_send_gives_up_waiting_and_answers_with_the_task_as_it_is() {
    let (agent, acts) = puppet(Traits::default().with_run_max(Duration::from_secs(3600)));
    let world = Setup::new().limits(|limits| limits.settle_wait_s_max = 20).agent(registered("puppet", agent)).start();
    let began = world.now();
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.working("this takes long").await.unwrap();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(world.now().ms_since(began), 20_000);
    expect![[r#"
        working "this takes long"
        user: hello
    "#]]
    .assert_eq(&picture(&task));
    act.returns();
    world.client().task_in(&task.id, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_vanishes_while_the_message_is_being_stored_does_not_stop_the_work() {
    let (agent, acts) = puppet(Traits::default());
    let mut gate = None;
    let stock = Stock::given(|clock| gate.insert(GatedStore::held(clock)).clone());
    let gate = gate.unwrap();
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let mut sending = world.client().sending(say("hello"));
    assert!(still_waits(&mut sending).await, "the commit is not answered yet");
    sending.abort();
    assert!(sending.await.unwrap_err().is_cancelled());
    gate.release();
    let act = acts.next().await;
    assert_eq!(act.turn.attempt(), 1, "nothing died, so this is the first attempt");
    let id = act.turn.task().id.clone();
    act.returns();
    world.client().task_in(&id, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_stored_is_refused_and_not_worked_on() {
    let (agent, acts) = puppet(Traits::default());
    let mut gate = None;
    let stock = Stock::given(|clock| gate.insert(GatedStore::open(clock)).clone());
    let gate = gate.unwrap();
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    gate.fail(true);
    let refused = world.client().send(say("hello")).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("Temporarily unavailable: the store does not answer (incident "), "{text}");
    assert!(!text.contains("disk"), "the cause is for the log: {text}");
    assert!(acts.is_empty().await);
    gate.fail(false);
    let sending = world.client().sending(say("again"));
    acts.next().await.returns();
    assert_eq!(soon(sending).await.unwrap().unwrap().state(), TaskState::Completed);
}
