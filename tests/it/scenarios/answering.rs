//! `Turn::answer`: the artifact and the end of the task are one commit, and nothing comes after it.

use expect_test::expect;
use switchboard_core::model::TaskState;
use switchboard_engine::runs::{Traits, Turn, TurnError};

use crate::support::callers::{at_once, reply_to, say, soon};
use crate::support::on_both_stores;
use crate::support::pictures::{film, picture};
use crate::support::puppets::{from_fn, puppet};
use crate::support::world::{Setup, Stock, registered};

on_both_stores!(
    an_answer_and_the_end_of_the_task_are_one_commit,
    nothing_is_written_after_an_answer,
    an_answer_while_a_message_waits_ends_its_turn_alone,
    an_answer_to_a_canceled_task_is_kept_and_the_task_is_canceled,
    an_answer_outlives_the_panic_of_its_agent,
);

async fn an_answer_and_the_end_of_the_task_are_one_commit(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    let before = world.commits();
    act.turn.answer("good day").await.unwrap();
    assert_eq!(world.commits(), before + 1);
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(task.state(), TaskState::Completed, "the caller need not wait for the agent to return");
    act.returns();
    let stream = world.client().after(0).subscribe(&task.id).await.unwrap();
    expect![[r#"
        1 task submitted said [hello] made []
        2 artifact-1-1. good day
        3 completed
    "#]]
    .assert_eq(&film(stream).await);
    assert_eq!(world.commits(), before + 1, "returning adds nothing");
}

async fn nothing_is_written_after_an_answer(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("first").await;
    let act = acts.next().await;
    client.send(at_once(reply_to(&task.id, "second"))).await.unwrap();
    act.turn.answer("one").await.unwrap();
    assert_eq!(act.turn.text_artifact("and this").await, Err(TurnError::Stopped), "also while its turn goes on");
    assert_eq!(act.turn.answer("and this").await, Err(TurnError::Stopped));
    act.returns();
    acts.next().await.turn.answer("two").await.unwrap();
    assert_eq!(client.task(&task.id).await.unwrap().artifacts.len(), 2);
}

async fn an_answer_while_a_message_waits_ends_its_turn_alone(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("first").await;
    let first = acts.next().await;
    client.send(at_once(reply_to(&task.id, "second"))).await.unwrap();
    first.turn.answer("one").await.unwrap();
    assert_eq!(client.task(&task.id).await.unwrap().state(), TaskState::Submitted);
    first.returns();
    let second = acts.next().await;
    assert_eq!(second.turn.text(), "second");
    second.turn.answer("two").await.unwrap();
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

async fn an_answer_to_a_canceled_task_is_kept_and_the_task_is_canceled(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("hello").await;
    let act = acts.next().await;
    let canceling = tokio::spawn({
        let (client, id) = (client.clone(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.turn.answer("what I had").await.unwrap();
    act.returns();
    let task = soon(canceling).await.unwrap().unwrap();
    expect![[r#"
        canceled
        user: hello
        artifact-1-1: what I had
    "#]]
    .assert_eq(&picture(&task));
}

async fn an_answer_outlives_the_panic_of_its_agent(stock: Stock) {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        turn.answer("done").await?;
        tokio::task::yield_now().await;
        std::panic::resume_unwind(Box::new("as told"));
    });
    let world = Setup::on(stock).agent(registered("clumsy", agent)).start();
    let task = soon(world.client().send(say("hello"))).await.unwrap();
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: done\n");
}
