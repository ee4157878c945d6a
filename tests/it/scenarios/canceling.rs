//! CancelTask: runs that obey, runs that do not, and tasks without a run.

use expect_test::expect;
use switchboard_core::call::Request;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Json, TaskState};
use switchboard_engine::runs::{Traits, Turn, TurnError};

use crate::support::callers::{at_once, reply_to, say, soon, still_waits};
use crate::support::gated_store::GatedStore;
use crate::support::on_both_stores;
use crate::support::pictures::{film, picture, refusal};
use crate::support::puppets::{echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    a_run_that_obeys_is_canceled_at_once,
    a_paused_task_is_canceled_at_once,
    canceling_twice_answers_twice,
    an_ended_task_cannot_be_canceled,
    an_agent_may_finish_while_it_is_being_canceled,
);

async fn a_run_that_obeys_is_canceled_at_once(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let sending = client.sending(say("hello"));
    let act = acts.next().await;
    act.turn.text_artifact("half of it").await.unwrap();
    let id = act.turn.task().id.clone();
    let canceling = tokio::spawn({
        let (client, id) = (client.clone(), id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    let task = soon(canceling).await.unwrap().unwrap();
    expect![[r#"
        canceled
        user: hello
        artifact-1-1: half of it
    "#]]
    .assert_eq(&picture(&task));
    assert_eq!(soon(sending).await.unwrap().unwrap(), task, "whoever waits is told");
}

async fn a_paused_task_is_canceled_at_once(stock: Stock) {
    let agent = from_fn(Traits::default(), |turn: Turn| async move { Ok(turn.ask("which?").await?) });
    let world = Setup::on(stock).agent(registered("asking", agent)).start();
    let task = world.client().send(say("hello")).await.unwrap();
    assert_eq!(task.state(), TaskState::InputRequired);
    let task = world.client().cancel(&task.id).await.unwrap();
    assert_eq!(picture(&task), "canceled\nuser: hello\nagent: which?\n");
}

async fn canceling_twice_answers_twice(stock: Stock) {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        turn.cancelled().await;
        Ok(())
    });
    let world = Setup::on(stock).agent(registered("obedient", agent)).start();
    let client = world.client();
    let task = client.start("hello").await;
    let (one, other) = tokio::join!(client.cancel(&task.id), client.cancel(&task.id));
    let canceled = client.cancel(&task.id).await.unwrap();
    assert_eq!(canceled.state(), TaskState::Canceled);
    assert_eq!((one.unwrap(), other.unwrap()), (canceled.clone(), canceled));
    let stream = client.after(0).subscribe(&task.id).await.unwrap();
    expect![[r#"
        1 task submitted said [hello] made []
        2 canceled
    "#]]
    .assert_eq(&film(stream).await);
}

async fn an_ended_task_cannot_be_canceled(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    let task = world.client().send(say("hello")).await.unwrap();
    let error = world.client().cancel(&task.id).await.unwrap_err();
    expect![[r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"Task cannot be canceled: it is completed","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_CANCELABLE","domain":"a2a-protocol.org","metadata":{"taskId":"TASK","state":"TASK_STATE_COMPLETED"}}]}}"#]]
    .assert_eq(&refusal(&error).replace(task.id.as_str(), "TASK"));
    assert_eq!(world.client().task(&task.id).await.unwrap(), task);
}

async fn an_agent_may_finish_while_it_is_being_canceled(stock: Stock) {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        turn.working("").await?;
        turn.cancelled().await;
        Ok(turn.complete("it was done anyway").await?)
    });
    let world = Setup::on(stock).agent(registered("quick", agent)).start();
    let task = world.client().start("hello").await;
    world.client().task_in(&task.id, TaskState::Working).await;
    let error = world.client().cancel(&task.id).await.unwrap_err();
    assert_eq!(error, ProtocolError::TaskNotCancelable { id: task.id.clone(), state: TaskState::Completed });
    let task = world.client().task(&task.id).await.unwrap();
    assert_eq!(picture(&task), "completed \"it was done anyway\"\nuser: hello\n");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ignores_the_cancel_is_cut_off_and_its_late_writes_are_dropped() {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::new().limits(|limits| limits.cancel_grace_ms = 3_000).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("hello").await;
    let act = acts.next().await;
    act.turn.working("busy").await.unwrap();
    let began = world.now();
    let canceled = soon(client.cancel(&task.id)).await.unwrap();
    assert_eq!(world.now().ms_since(began), 3_000, "the grace period");
    assert_eq!(picture(&canceled), "canceled\nuser: hello\n");
    assert_eq!(act.turn.text_artifact("too late").await, Err(TurnError::Stopped));
    assert_eq!(act.turn.working("still here").await, Err(TurnError::Stopped));
    assert_eq!(client.task(&task.id).await.unwrap(), canceled);
    assert_eq!(world.engine.runs_alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_may_still_write_while_it_winds_down() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let task = client.start("hello").await;
    let act = acts.next().await;
    let canceling = tokio::spawn({
        let (client, id) = (client.clone(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.turn.text_artifact("what I had so far").await.unwrap();
    act.returns();
    let task = soon(canceling).await.unwrap().unwrap();
    assert_eq!(picture(&task), "canceled\nuser: hello\nartifact-1-1: what I had so far\n");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_asks_while_it_is_being_canceled_is_canceled() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let task = client.start("hello").await;
    let act = acts.next().await;
    let mut canceling = tokio::spawn({
        let (client, id) = (client.clone(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.turn.ask("are you sure?").await.unwrap();
    assert!(still_waits(&mut canceling).await, "a question is not an end");
    act.returns();
    assert_eq!(soon(canceling).await.unwrap().unwrap().state(), TaskState::Canceled);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_authorization_is_told() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let sending = client.sending(say("hello"));
    let act = acts.next().await;
    act.turn.require_auth("sign in").await.unwrap();
    let task = soon(sending).await.unwrap().unwrap();
    let canceling = tokio::spawn({
        let (client, id) = (client.clone(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    let task = soon(canceling).await.unwrap().unwrap();
    assert_eq!(picture(&task), "canceled\nuser: hello\nagent: sign in\n");
}

#[tokio::test(start_paused = true)]
async fn messages_in_the_inbox_of_a_canceled_task_are_not_worked_on() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let task = client.start("first").await;
    let act = acts.next().await;
    client.send(at_once(reply_to(&task.id, "second"))).await.unwrap();
    let canceling = tokio::spawn({
        let (client, id) = (client.clone(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    let task = soon(canceling).await.unwrap().unwrap();
    assert_eq!(picture(&task), "canceled\nuser: first\nuser: second\n");
    assert!(acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_canceled_before_it_began_never_begins() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let began = world.now();
    // Nothing here waits for anything, so the run has had no chance to begin.
    let task = world.client().start("hello").await;
    let canceled = world.client().cancel(&task.id).await.unwrap();
    assert_eq!(picture(&canceled), "canceled\nuser: hello\n");
    assert_eq!(world.now().ms_since(began), 0, "nobody had to be cut off");
    assert!(acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_is_faster_than_the_run_it_is_for_finds_it() {
    // The second turn's commit is answered late, so the cancel is recorded before the registry knows of the run.
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        if turn.number() == 1 {
            turn.ask("which?").await?;
        } else {
            turn.cancelled().await;
        }
        Ok(())
    });
    let mut gate = None;
    let stock = Stock::given(|clock| gate.insert(GatedStore::open(clock)).clone());
    let gate = gate.unwrap();
    let world = Setup::on(stock).agent(registered("asking", agent)).start();
    let client = world.client();
    let task = client.send(say("first")).await.unwrap();
    gate.hold();
    let mut sending = client.sending(reply_to(&task.id, "second"));
    assert!(still_waits(&mut sending).await);
    let began = world.now();
    let mut canceling = tokio::spawn({
        let (client, id) = (client.clone(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    assert!(still_waits(&mut canceling).await);
    gate.release();
    assert_eq!(soon(canceling).await.unwrap().unwrap().state(), TaskState::Canceled);
    assert!(world.now().ms_since(began) < 1_000, "nobody had to be cut off");
    assert_eq!(soon(sending).await.unwrap().unwrap().state(), TaskState::Canceled);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_vanishes_while_its_cancel_is_being_stored_has_still_canceled() {
    let (agent, acts) = puppet(Traits::default());
    let mut gate = None;
    let stock = Stock::given(|clock| gate.insert(GatedStore::open(clock)).clone());
    let gate = gate.unwrap();
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    gate.hold();
    let mut canceling = tokio::spawn({
        let (client, id) = (world.client(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    assert!(still_waits(&mut canceling).await);
    canceling.abort();
    assert!(canceling.await.unwrap_err().is_cancelled());
    gate.release();
    soon(act.turn.cancelled()).await;
    act.returns();
    world.client().task_in(&task.id, TaskState::Canceled).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_with_metadata_is_recorded_once() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let task = client.start("hello").await;
    let act = acts.next().await;
    let before = world.commits();
    let canceling = tokio::spawn({
        let (client, id) = (client.clone(), task.id.clone());
        let metadata = Some(Json::from_trusted(r#"{"why":"too slow"}"#));
        async move { client.call(Request::CancelTask { id, metadata }).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    soon(canceling).await.unwrap().unwrap();
    assert_eq!(world.commits() - before, 2, "the intent, and the end");
}

#[tokio::test(start_paused = true)]
async fn whichever_of_cancel_and_completion_is_committed_first_is_the_end() {
    let (agent, acts) = puppet(Traits::default());
    let mut gate = None;
    let stock = Stock::given(|clock| gate.insert(GatedStore::open(clock)).clone());
    let gate = gate.unwrap();
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let cancel = |id: &switchboard_core::model::TaskId| {
        let (client, id) = (client.clone(), id.clone());
        tokio::spawn(async move { client.cancel(&id).await })
    };
    // The completion is written; its answer is on its way when the cancel comes.
    let task = client.start("first").await;
    let act = acts.next().await;
    gate.hold();
    act.returns();
    let error = soon(cancel(&task.id)).await.unwrap().unwrap_err();
    assert_eq!(error, ProtocolError::TaskNotCancelable { id: task.id.clone(), state: TaskState::Completed });
    gate.release();
    assert_eq!(client.task_in(&task.id, TaskState::Completed).await.state(), TaskState::Completed);
    // The intent is written, and answered late; the agent returns before it has heard of it.
    let task = client.start("second").await;
    let act = acts.next().await;
    gate.hold();
    let mut canceling = cancel(&task.id);
    assert!(still_waits(&mut canceling).await);
    assert!(!act.turn.is_cancelled());
    act.returns();
    gate.release();
    assert_eq!(soon(canceling).await.unwrap().unwrap().state(), TaskState::Canceled);
    let story = film(client.after(0).subscribe(&task.id).await.unwrap()).await;
    assert_eq!(story, "1 task submitted said [second] made []\n2 canceled\n");
}
