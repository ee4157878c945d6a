//! Re-posting a streaming message with `Last-Event-ID`: its own turn goes on, found by the caller's key or by the
//! message's id; it never starts a new one.

use expect_test::expect;
use switchboard_core::call::ListTasks;
use switchboard_core::model::Part;
use switchboard_engine::runs::{Idempotency, Replies, Traits, Turn};

use crate::support::callers::{Client, reply_to, say, soon};
use crate::support::on_both_stores;
use crate::support::pictures::{film, next_frame};
use crate::support::puppets::{from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(a_send_resumes_by_key_and_by_message_id);

async fn a_send_resumes_by_key_and_by_message_id(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    for client in [world.client().keyed("k-1"), world.client().user("alice"), world.client().user("bob").keyed("k-1")] {
        let mut broken = client.stream(say("hello")).await.unwrap();
        let act = acts.next().await;
        act.turn.working("one").await.unwrap();
        for _ in 0..2 {
            next_frame(&mut broken).await.unwrap().unwrap();
        }
        drop(broken);
        act.turn.working("two").await.unwrap();
        let resumed = client.after(2).stream(say("hello")).await.unwrap();
        act.returns();
        expect![[r#"
            3 working "two"
            4 completed
        "#]]
        .assert_eq(&film(resumed).await);
        assert!(acts.is_empty().await, "nothing was started anew");
        assert_eq!(film(client.after(4).stream(say("hello")).await.unwrap()).await, "");
        assert_eq!(client.list(ListTasks::default()).await.unwrap().total_size, 1);
    }
}

async fn cannot_resume(client: &Client, send: switchboard_core::call::SendMessage) -> String {
    client.after(1).stream(send).await.err().unwrap().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_not_found_is_refused_and_never_run() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let (anybody, alice) = (world.client(), world.client().user("alice"));
    for client in [anybody.clone(), alice.clone(), anybody.keyed("k-1")] {
        drop(client.stream(say("hello")).await.unwrap());
        acts.next().await.returns();
    }
    let expected = "Invalid parameters: Last-Event-ID: there is no earlier send of this message to resume; \
                    use SubscribeToTask with the task's id";
    // An anonymous caller has no identity, so its message id says nothing.
    assert_eq!(cannot_resume(&anybody, say("hello")).await, expected);
    assert_eq!(cannot_resume(&alice, say("another message")).await, expected);
    assert_eq!(cannot_resume(&anybody.keyed("another key"), say("hello")).await, expected);
    assert_eq!(cannot_resume(&world.client().user("bob"), say("hello")).await, expected);
    assert!(acts.is_empty().await);
    // The key of an earlier send with another message is a mistake of its own.
    let mixed = cannot_resume(&anybody.keyed("k-1"), say("another message")).await;
    let expected =
        "Invalid parameters: Idempotency-Key: was used before for another message; use a new key for a new message";
    assert_eq!(mixed, expected);
}

#[tokio::test(start_paused = true)]
async fn a_later_turn_resumes_as_itself() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let alice = world.client().user("alice");
    let sending = alice.sending(say("hello"));
    let act = acts.next().await;
    act.turn.ask("which?").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    drop(alice.stream(reply_to(&task.id, "red")).await.unwrap());
    let act = acts.next().await;
    act.turn.working("painting").await.unwrap();
    act.returns();
    // From its own beginning, not from the task's: the question that ended the turn before is not repeated.
    let resumed = alice.after(0).stream(reply_to(&task.id, "red")).await.unwrap();
    expect![[r#"
        3 submitted
        4 working "painting"
        5 completed
    "#]]
    .assert_eq(&film(resumed).await);
    let resumed = alice.after(4).stream(reply_to(&task.id, "red")).await.unwrap();
    assert_eq!(film(resumed).await, "5 completed\n");
}

#[tokio::test(start_paused = true)]
async fn a_send_that_was_answered_directly_resumes_with_that_answer() {
    let agent = from_fn(Traits::default().with_replies(Replies::Either), |turn: Turn| async move {
        Ok(turn.reply(vec![Part::text("yes")]).await?)
    });
    let world = World::of(registered("brief", agent));
    let alice = world.client().user("alice");
    assert_eq!(film(alice.stream(say("will you?")).await.unwrap()).await, "- message yes\n");
    assert_eq!(film(alice.after(0).stream(say("will you?")).await.unwrap()).await, "- message yes\n");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_know_messages_by_id_resumes_by_key_only() {
    let (agent, acts) = puppet(Traits::default().with_idempotency(Idempotency::Off));
    let world = World::of(registered("puppet", agent));
    let alice = world.client().user("alice");
    drop(alice.keyed("k").stream(say("hello")).await.unwrap());
    acts.next().await.returns();
    assert!(cannot_resume(&alice, say("hello")).await.contains("no earlier send"));
    assert_eq!(film(alice.keyed("k").after(1).stream(say("hello")).await.unwrap()).await, "2 completed\n");
}
