//! Streaming a message that was streamed before: its turn is played again as it was, and goes on if it still runs.

use std::sync::Arc;

use expect_test::expect;
use switchboard_core::model::{Task, TaskId, TaskState};
use switchboard_engine::runs::Traits;

use crate::support::callers::{Client, at_once, reply_to, say, soon};
use crate::support::gated_store::GatedStore;
use crate::support::on_both_stores;
use crate::support::pictures::{film, next_frame};
use crate::support::puppets::{Acts, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    a_later_turn_is_played_again_as_it_was,
    a_turn_that_still_runs_is_played_again_and_goes_on,
    a_message_that_waited_is_played_again_through_the_turns_before_it,
    a_later_turn_is_played_again_by_the_next_process,
);

fn playing(stock: Stock) -> (World, Client, Acts) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let alice = world.client().user("alice");
    (world, alice, acts)
}

/// A task whose first turn wrote something and ended in a question.
async fn asked(alice: &Client, acts: &Acts) -> Arc<Task> {
    let sending = alice.sending(say("paint it"));
    let act = acts.next().await;
    act.turn.working("looking").await.unwrap();
    act.turn.text_artifact("a sketch").await.unwrap();
    act.turn.ask("which?").await.unwrap();
    act.returns();
    soon(sending).await.unwrap().unwrap()
}

/// The second turn, which ends in a question of its own; what its stream showed.
async fn answered(alice: &Client, acts: &Acts, id: &TaskId) -> String {
    let stream = alice.stream(reply_to(id, "red")).await.unwrap();
    let act = acts.next().await;
    act.turn.working("painting").await.unwrap();
    act.turn.text_artifact("a red one").await.unwrap();
    act.turn.ask("and the frame?").await.unwrap();
    act.returns();
    film(stream).await
}

async fn a_later_turn_is_played_again_as_it_was(stock: Stock) {
    let (_world, alice, acts) = playing(stock);
    let task = asked(&alice, &acts).await;
    let first = answered(&alice, &acts, &task.id).await;
    expect![[r#"
        5 task submitted said [paint it, which?, red] made [a sketch]
        6 working "painting"
        7 artifact-2-1. a red one
        8 input-required "and the frame?"
    "#]]
    .assert_eq(&first);
    assert_eq!(film(alice.stream(reply_to(&task.id, "red")).await.unwrap()).await, first, "paused after it");
    let third = alice.stream(reply_to(&task.id, "none")).await.unwrap();
    let act = acts.next().await;
    assert_eq!(film(alice.stream(reply_to(&task.id, "red")).await.unwrap()).await, first, "at work on the next");
    act.returns();
    let third = film(third).await;
    assert_eq!(film(alice.stream(reply_to(&task.id, "red")).await.unwrap()).await, first, "ended since");
    assert_eq!(film(alice.stream(reply_to(&task.id, "none")).await.unwrap()).await, third);
    expect![[r#"
        9 task submitted said [paint it, which?, red, and the frame?, none] made [a sketch, a red one]
        10 completed
    "#]]
    .assert_eq(&third);
    assert!(acts.is_empty().await, "nothing was started anew");
    // With a number, what came after it; the last of the turn is its end, whatever became of the task.
    let resumed = |after: u64| {
        let client = alice.after(after);
        let id = task.id.clone();
        async move { film(client.stream(reply_to(&id, "red")).await.unwrap()).await }
    };
    assert_eq!(resumed(6).await, "7 artifact-2-1. a red one\n8 input-required \"and the frame?\"\n");
    assert_eq!(resumed(8).await, "");
}

async fn a_turn_that_still_runs_is_played_again_and_goes_on(stock: Stock) {
    let (_world, alice, acts) = playing(stock);
    let task = asked(&alice, &acts).await;
    let mut first = alice.stream(reply_to(&task.id, "red")).await.unwrap();
    let act = acts.next().await;
    act.turn.working("painting").await.unwrap();
    for _ in 0..2 {
        next_frame(&mut first).await.unwrap().unwrap();
    }
    drop(first);
    let mut again = alice.stream(reply_to(&task.id, "red")).await.unwrap();
    for _ in 0..2 {
        next_frame(&mut again).await.unwrap().unwrap();
    }
    act.turn.working("nearly there").await.unwrap();
    act.returns();
    assert_eq!(film(again).await, "7 working \"nearly there\"\n8 completed\n");
}

async fn a_message_that_waited_is_played_again_through_the_turns_before_it(stock: Stock) {
    let (_world, alice, acts) = playing(stock);
    let task = alice.start("first").await;
    let act = acts.next().await;
    act.turn.working("on the first").await.unwrap();
    let second = alice.stream(reply_to(&task.id, "second")).await.unwrap();
    act.turn.ask("which one?").await.unwrap();
    let third = alice.stream(reply_to(&task.id, "third")).await.unwrap();
    act.returns();
    acts.next().await.returns();
    let act = acts.next().await;
    act.turn.ask("and now?").await.unwrap();
    act.returns();
    let films = [film(second).await, film(third).await];
    expect![[r#"
        2 task working "on the first" said [first, second] made []
        3 input-required "which one?"
        4 submitted
        5 input-required "and now?"
    "#]]
    .assert_eq(&films[0]);
    expect![[r#"
        3 task input-required "which one?" said [first, second, third] made []
        4 submitted
        5 input-required "and now?"
    "#]]
    .assert_eq(&films[1]);
    for since in ["paused", "ended"] {
        if since == "ended" {
            alice.cancel(&task.id).await.unwrap();
        }
        for (text, film_of_first) in ["second", "third"].into_iter().zip(&films) {
            let again = alice.stream(reply_to(&task.id, text)).await.unwrap();
            assert_eq!(&film(again).await, film_of_first, "{text}, {since}");
        }
        // A question that was not its own does not end it when it is resumed there, either.
        let resumed = alice.after(3).stream(reply_to(&task.id, "second")).await.unwrap();
        assert_eq!(film(resumed).await, "4 submitted\n5 input-required \"and now?\"\n", "{since}");
    }
}

async fn a_later_turn_is_played_again_by_the_next_process(stock: Stock) {
    let (world, alice, acts) = playing(stock);
    let task = asked(&alice, &acts).await;
    let first = answered(&alice, &acts, &task.id).await;
    // A client holds on to the engine, and that to the file.
    drop((alice, acts));
    let (_world, alice, acts) = playing(world.crash().await);
    assert_eq!(film(alice.stream(reply_to(&task.id, "red")).await.unwrap()).await, first);
    assert!(acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_played_again_with_as_much_history_as_is_asked_for() {
    let (_world, alice, acts) = playing(Stock::memory());
    let task = asked(&alice, &acts).await;
    answered(&alice, &acts, &task.id).await;
    for (mut send, first) in [
        (say("paint it"), "1 task submitted said [] made []\n"),
        (reply_to(&task.id, "red"), "5 task submitted said [] made [a sketch]\n"),
    ] {
        send.history_length = Some(0);
        let again = film(alice.stream(send).await.unwrap()).await;
        assert!(again.starts_with(first), "{again}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_kept_of_a_turn_is_replaced_by_the_task_and_said_so() {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::new()
        .limits(|limits| {
            limits.retention_events_s = 3_600;
            limits.resume_window_s = 60;
        })
        .agent(registered("puppet", agent))
        .start();
    let alice = world.client().user("alice");
    let task = asked(&alice, &acts).await;
    let sending = alice.sending(reply_to(&task.id, "red"));
    acts.next().await.returns();
    soon(sending).await.unwrap().unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3_800)).await;
    let again = alice.stream(reply_to(&task.id, "red")).await.unwrap();
    let shown = "6 task completed said [paint it, which?, red] made [a sketch] (truncated)\n";
    assert_eq!(film(again).await, shown);
}

#[tokio::test(start_paused = true)]
async fn a_replay_reads_no_more_however_long_the_task_was_before() {
    let mut reads = Vec::new();
    for notes in [10, 5_000] {
        let mut gate = None;
        let stock = Stock::given(|clock| {
            let store = GatedStore::open(clock);
            gate = Some(store.clone());
            store
        });
        let (_world, alice, acts) = playing(stock);
        let task = alice.send(at_once(say("paint it"))).await.unwrap();
        let act = acts.next().await;
        for _ in 0..notes {
            act.turn.working("busy").await.unwrap();
        }
        act.turn.ask("which?").await.unwrap();
        act.returns();
        alice.task_in(&task.id, TaskState::InputRequired).await;
        let sending = alice.sending(reply_to(&task.id, "red"));
        acts.next().await.returns();
        soon(sending).await.unwrap().unwrap();
        let gate = gate.unwrap();
        let before = gate.log_reads();
        let again = film(alice.stream(reply_to(&task.id, "red")).await.unwrap()).await;
        assert_eq!(again.lines().count(), 2, "{again}");
        reads.push(gate.log_reads() - before);
    }
    assert_eq!(reads, [1, 1]);
}
