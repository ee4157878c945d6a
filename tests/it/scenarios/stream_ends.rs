//! Where a stream ends: for each way to open one and each state a task can be in.

use expect_test::expect;
use switchboard_core::call::UpdateStream;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{TaskId, TaskState};
use switchboard_engine::runs::Traits;

use crate::support::callers::{Client, reply_to, say, soon};
use crate::support::pictures::{film_so_far, next_frame};
use crate::support::puppets::{Act, Acts, puppet};
use crate::support::world::{World, registered};

/// A run brought into a state, still held by the test.
async fn in_state(acts: &Acts, state: TaskState) -> Act {
    let act = acts.next().await;
    if state != TaskState::Submitted {
        act.turn.status(state, Vec::new()).await.unwrap();
    }
    act
}

/// The last thing a stream shows, and whether it is still open then.
async fn last_of(stream: &mut UpdateStream) -> String {
    let film = film_so_far(stream).await;
    let lines: Vec<&str> = film.lines().collect();
    lines[lines.len().saturating_sub(2)..].join(", ")
}

#[tokio::test(start_paused = true)]
async fn a_sends_stream_ends_as_the_table_says() {
    let mut table = String::new();
    for state in TaskState::ALL {
        if state == TaskState::Canceled {
            continue;
        }
        let (agent, acts) = puppet(Traits::default());
        let world = World::of(registered("puppet", agent));
        let mut stream = world.client().stream(say("hello")).await.unwrap();
        let act = in_state(&acts, state).await;
        table.push_str(&format!("{}: {}\n", state.word(), last_of(&mut stream).await));
        act.returns();
    }
    expect![[r#"
        submitted: 1 task submitted said [hello] made [], open
        working: 2 working, open
        completed: 2 completed, closed
        failed: 2 failed, closed
        input-required: 2 input-required, closed
        rejected: 2 rejected, closed
        auth-required: 2 auth-required, open
    "#]]
    .assert_eq(&table);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_as_the_table_says() {
    let mut table = String::new();
    for state in TaskState::ALL {
        if state == TaskState::Canceled {
            continue;
        }
        let (agent, acts) = puppet(Traits::default());
        let world = World::of(registered("puppet", agent));
        let task = world.client().start("hello").await;
        let mut stream = world.client().subscribe(&task.id).await.unwrap();
        next_frame(&mut stream).await.unwrap().unwrap();
        let act = in_state(&acts, state).await;
        table.push_str(&format!("{}: {}\n", state.word(), last_of(&mut stream).await));
        act.returns();
    }
    expect![[r#"
        submitted: open
        working: 2 working, open
        completed: 2 completed, closed
        failed: 2 failed, closed
        input-required: 2 input-required, open
        rejected: 2 rejected, closed
        auth-required: 2 auth-required, open
    "#]]
    .assert_eq(&table);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_a_task_in_each_state_is_answered_as_the_table_says() {
    let mut table = String::new();
    for state in TaskState::ALL {
        if state == TaskState::Canceled {
            continue;
        }
        let (agent, acts) = puppet(Traits::default());
        let world = World::of(registered("puppet", agent));
        let task = world.client().start("hello").await;
        let act = in_state(&acts, state).await;
        let shown = subscribed(&world.client(), &task.id).await;
        let resumed = match world.client().after(0).subscribe(&task.id).await {
            Ok(mut stream) => last_of(&mut stream).await,
            Err(error) => error.to_string(),
        };
        table.push_str(&format!("{}: {shown}; resumed: {resumed}\n", state.word()));
        act.returns();
    }
    expect![[r#"
        submitted: 1 task submitted said [hello] made [], open; resumed: 1 task submitted said [hello] made [], open
        working: 2 task working said [hello] made [], open; resumed: 2 working, open
        completed: Task TASK is completed and has no more updates; read it with GetTask, or resume with Last-Event-ID; resumed: 2 completed, closed
        failed: Task TASK is failed and has no more updates; read it with GetTask, or resume with Last-Event-ID; resumed: 2 failed, closed
        input-required: 2 task input-required said [hello] made [], open; resumed: 2 input-required, open
        rejected: Task TASK is rejected and has no more updates; read it with GetTask, or resume with Last-Event-ID; resumed: 2 rejected, closed
        auth-required: 2 task auth-required said [hello] made [], open; resumed: 2 auth-required, open
    "#]]
    .assert_eq(&table);
}

async fn subscribed(client: &Client, id: &TaskId) -> String {
    match client.subscribe(id).await {
        Ok(mut stream) => last_of(&mut stream).await,
        Err(error @ ProtocolError::UnsupportedOperation { .. }) => error.to_string().replace(id.as_str(), "TASK"),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn canceling_ends_every_stream() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let mut sent = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    let id = act.turn.task().id.clone();
    let mut followed = world.client().subscribe(&id).await.unwrap();
    let canceling = tokio::spawn({
        let (client, id) = (world.client(), id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    soon(canceling).await.unwrap().unwrap();
    assert_eq!(last_of(&mut sent).await, "2 canceled, closed");
    assert_eq!(last_of(&mut followed).await, "2 canceled, closed");
    let refused = subscribed(&world.client(), &id).await;
    assert!(refused.starts_with("Task TASK is canceled and has no more updates"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_follower_stays_through_a_question_into_the_next_turn() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let task = world.client().start("hello").await;
    let mut followed = world.client().subscribe(&task.id).await.unwrap();
    let act = acts.next().await;
    act.turn.ask("which?").await.unwrap();
    act.returns();
    let sending = world.client().sending(reply_to(&task.id, "red"));
    let act = acts.next().await;
    act.turn.text_artifact("red it is").await.unwrap();
    act.returns();
    soon(sending).await.unwrap().unwrap();
    expect![[r#"
        1 task submitted said [hello] made []
        2 input-required "which?"
        3 submitted
        4 artifact-2-1. red it is
        5 completed
        closed
    "#]]
    .assert_eq(&film_so_far(&mut followed).await);
}

#[tokio::test(start_paused = true)]
async fn a_sends_stream_that_waits_for_authorization_goes_on_when_it_comes() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let mut stream = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    act.turn.require_auth("sign in").await.unwrap();
    assert_eq!(last_of(&mut stream).await, "2 auth-required \"sign in\", open");
    act.turn.working("thank you").await.unwrap();
    act.returns();
    assert_eq!(film_so_far(&mut stream).await, "3 working \"thank you\"\n4 completed\nclosed\n");
}
