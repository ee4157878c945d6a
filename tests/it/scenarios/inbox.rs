//! Messages to a task that is at work: each waits as the next turn, and the task completes only when none is left.

use expect_test::expect;
use switchboard_core::model::TaskState;
use switchboard_engine::runs::Traits;

use crate::support::callers::{at_once, reply_to, soon, still_waits};
use crate::support::on_both_stores;
use crate::support::pictures::{film, film_so_far, picture};
use crate::support::puppets::puppet;
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    a_message_to_a_working_task_is_its_next_turn,
    completing_waits_for_the_inbox,
    a_question_with_a_message_waiting_goes_on_with_that_message,
    failing_ends_the_task_and_leaves_unread_messages_in_history,
);

async fn a_message_to_a_working_task_is_its_next_turn(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    let more = client.send(at_once(reply_to(&task.id, "second"))).await.unwrap();
    assert_eq!(picture(&more), "submitted\nuser: first\nuser: second\n");
    assert!(acts.is_empty().await, "one turn at a time");
    first.turn.text_artifact("one").await.unwrap();
    first.returns();
    let second = acts.next().await;
    assert_eq!((second.turn.text().as_str(), second.turn.number(), second.turn.attempt()), ("second", 2, 1));
    assert_eq!(second.turn.history().len(), 2);
    second.turn.text_artifact("two").await.unwrap();
    second.returns();
    let task = client.task_in(&task.id, TaskState::Completed).await;
    expect![[r#"
        completed
        user: first
        user: second
        artifact-1-1: one
        artifact-2-1: two
    "#]]
    .assert_eq(&picture(&task));
}

async fn completing_waits_for_the_inbox(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    client.send(at_once(reply_to(&task.id, "second"))).await.unwrap();
    first.turn.complete("done, I think").await.unwrap();
    first.returns();
    let second = acts.next().await;
    second.turn.complete("done indeed").await.unwrap();
    second.returns();
    client.task_in(&task.id, TaskState::Completed).await;
    let stream = client.after(0).subscribe(&task.id).await.unwrap();
    expect![[r#"
        1 task submitted said [first] made []
        2 working "done, I think"
        3 completed "done indeed"
    "#]]
    .assert_eq(&film(stream).await);
}

async fn a_question_with_a_message_waiting_goes_on_with_that_message(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    client.send(at_once(reply_to(&task.id, "second"))).await.unwrap();
    first.turn.ask("which one?").await.unwrap();
    first.returns();
    let second = acts.next().await;
    assert_eq!(second.turn.text(), "second");
    second.returns();
    let task = client.task_in(&task.id, TaskState::Completed).await;
    expect![[r#"
        completed
        user: first
        user: second
        agent: which one?
    "#]]
    .assert_eq(&picture(&task));
}

async fn failing_ends_the_task_and_leaves_unread_messages_in_history(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    client.send(at_once(reply_to(&task.id, "second"))).await.unwrap();
    first.turn.fail("broken").await.unwrap();
    first.returns();
    let task = client.task_in(&task.id, TaskState::Failed).await;
    expect![[r#"
        failed "broken"
        user: first
        user: second
    "#]]
    .assert_eq(&picture(&task));
    assert!(acts.is_empty().await, "nobody works for an ended task");
}

#[tokio::test(start_paused = true)]
async fn a_blocking_send_to_a_working_task_waits_for_its_own_turn() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    let mut sending = client.sending(reply_to(&task.id, "second"));
    assert!(still_waits(&mut sending).await);
    first.returns();
    let second = acts.next().await;
    assert!(still_waits(&mut sending).await, "the first turn's end is not the second's");
    second.turn.text_artifact("two").await.unwrap();
    second.returns();
    assert_eq!(soon(sending).await.unwrap().unwrap().state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_message_to_a_run_that_waits_for_authorization_is_its_next_turn() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    first.turn.require_auth("sign in").await.unwrap();
    let mut sending = client.sending(reply_to(&task.id, "I have"));
    assert!(still_waits(&mut sending).await, "the pause is the first message's, not this one's");
    first.returns();
    let second = acts.next().await;
    assert_eq!(second.turn.text(), "I have");
    second.returns();
    let task = soon(sending).await.unwrap().unwrap();
    // The message came while the run was still waiting, so that is where it stands.
    assert_eq!(picture(&task), "completed\nuser: first\nuser: I have\nagent: sign in\n");
}

#[tokio::test(start_paused = true)]
async fn an_inbox_has_a_limit_that_is_said() {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::new().limits(|limits| limits.inbox_messages_max = 2).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    for text in ["second", "third"] {
        client.send(at_once(reply_to(&task.id, text))).await.unwrap();
    }
    let refused = client.send(at_once(reply_to(&task.id, "fourth"))).await.unwrap_err();
    let expected = format!("Temporarily unavailable: task {} has 2 unread messages, the most it keeps", task.id);
    assert_eq!(refused.to_string(), expected);
    first.returns();
    acts.next().await.returns();
    acts.next().await.returns();
    let task = client.task_in(&task.id, TaskState::Completed).await;
    assert_eq!(picture(&task), "completed\nuser: first\nuser: second\nuser: third\n");
}

#[tokio::test(start_paused = true)]
async fn a_question_is_not_lost_when_its_agent_dies_with_a_message_waiting() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    client.send(at_once(reply_to(&task.id, "second"))).await.unwrap();
    first.turn.ask("which one?").await.unwrap();
    // The process dies before the agent has returned: the waiting message must find a worker.
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(world.crash().await).agent(registered("puppet", agent)).start();
    let again = acts.next().await;
    again.returns();
    acts.next().await.returns();
    world.client().task_in(&task.id, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_waiting_message_does_not_end_with_somebody_elses_question() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    let mut stream = client.stream(reply_to(&task.id, "second")).await.unwrap();
    first.turn.ask("which one?").await.unwrap();
    let shown = "1 task submitted said [first, second] made []\n2 input-required \"which one?\"\nopen\n";
    assert_eq!(film_so_far(&mut stream).await, shown);
    // And one that comes while the question stands and another message waits is not closed at once.
    let third = client.stream(reply_to(&task.id, "third")).await.unwrap();
    first.returns();
    acts.next().await.returns();
    let act = acts.next().await;
    act.turn.ask("and which now?").await.unwrap();
    act.returns();
    let rest = "3 submitted\n4 input-required \"and which now?\"\n";
    assert_eq!(film(stream).await, rest);
    let snapshot = "2 task input-required \"which one?\" said [first, second, third] made []\n";
    assert_eq!(film(third).await, format!("{snapshot}{rest}"));
}
