//! Sending the same message again: what counts as the same, and what a repeat is answered with.

use std::time::Duration;

use expect_test::expect;
use switchboard_core::call::{ListTasks, Reply, Request, SendMessage};
use switchboard_core::model::{Part, TaskState};
use switchboard_engine::runs::{Idempotency, Replies, Traits, Turn};

use crate::support::callers::{Client, at_once, reply_to, say, soon, still_waits};
use crate::support::on_both_stores;
use crate::support::pictures::{film, picture, refusal};
use crate::support::puppets::{echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    a_repeat_waits_on_the_same_turn,
    a_repeated_stream_is_played_again_from_its_turns_beginning,
    a_repeat_of_a_direct_reply_gets_the_stored_message,
    who_is_recognised_by_what,
    a_key_used_for_another_message_is_refused,
    a_repeat_is_recognised_by_the_next_process,
);

async fn tasks_of(client: &Client) -> u64 {
    client.list(ListTasks::default()).await.unwrap().total_size
}

/// The same message id, another text.
fn reworded(send: SendMessage, text: &str) -> SendMessage {
    let mut send = send;
    send.message.parts = vec![Part::text(text)];
    send
}

async fn a_repeat_waits_on_the_same_turn(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let alice = world.client().user("alice");
    let first = alice.sending(say("hello"));
    let act = acts.next().await;
    let second = alice.sending(say("hello"));
    let at_once = soon(alice.send(at_once(say("hello")))).await.unwrap();
    act.turn.text_artifact("once").await.unwrap();
    act.returns();
    let (first, second) = (soon(first).await.unwrap().unwrap(), soon(second).await.unwrap().unwrap());
    assert_eq!((&first, &at_once.id), (&second, &first.id));
    assert_eq!(alice.send(say("hello")).await.unwrap(), first, "an answered message is answered again");
    assert!(acts.is_empty().await);
    assert_eq!(tasks_of(&alice).await, 1);
}

async fn a_repeated_stream_is_played_again_from_its_turns_beginning(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let alice = world.client().user("alice");
    let first = alice.stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    act.turn.working("one").await.unwrap();
    let during = alice.stream(say("hello")).await.unwrap();
    act.turn.ask("which?").await.unwrap();
    act.returns();
    let id = alice.list(ListTasks::default()).await.unwrap().tasks[0].task.id.clone();
    let film_of_first = film(first).await;
    expect![[r#"
        1 task submitted said [hello] made []
        2 working "one"
        3 input-required "which?"
    "#]]
    .assert_eq(&film_of_first);
    assert_eq!(film(during).await, film_of_first);

    let answer = alice.stream(reply_to(&id, "red")).await.unwrap();
    acts.next().await.returns();
    assert_eq!(film(answer).await, "4 task submitted said [hello, which?, red] made []\n5 completed\n");
    assert_eq!(film(alice.stream(say("hello")).await.unwrap()).await, film_of_first, "the first turn, not the second");
    let again = alice.stream(reply_to(&id, "red")).await.unwrap();
    assert_eq!(film(again).await, "4 task submitted said [hello, which?, red] made []\n5 completed\n");
    assert!(acts.is_empty().await);
}

async fn a_repeat_of_a_direct_reply_gets_the_stored_message(stock: Stock) {
    let agent = from_fn(Traits::default().with_replies(Replies::Message), |turn: Turn| async move {
        Ok(turn.reply(vec![Part::text("yes")]).await?)
    });
    let world = Setup::on(stock).agent(registered("brief", agent)).start();
    let alice = world.client().user("alice");
    let mut ids = Vec::new();
    for _ in 0..2 {
        match alice.call(Request::SendMessage(say("will you?").into())).await.unwrap() {
            Reply::SentMessage(message) => ids.push(message.message_id.clone()),
            _ => panic!("a message was expected"),
        }
        assert_eq!(film(alice.stream(say("will you?")).await.unwrap()).await, "- message yes\n");
    }
    assert_eq!(ids[0], ids[1]);
}

async fn who_is_recognised_by_what(stock: Stock) {
    let off = registered("off", from_fn(Traits::default().with_idempotency(Idempotency::Off), complete));
    let always = registered("always", from_fn(Traits::default().with_idempotency(Idempotency::MessageId), complete));
    let usual = registered("usual", from_fn(Traits::default(), complete));
    let world = Setup::on(stock).agent(usual).agent(off).agent(always).start();
    let mut table = String::new();
    for agent in ["usual", "off", "always"] {
        let anybody = world.client_of(agent);
        let alice = anybody.user("alice");
        for (who, client) in [
            ("anybody", anybody.clone()),
            ("anybody with a key", anybody.keyed("k")),
            ("alice", alice.clone()),
            ("alice with a key", alice.keyed("k")),
        ] {
            let send = |text: &str| say(&format!("{who}: {text}"));
            let first = client.send(send("hello")).await.unwrap();
            let repeat = client.send(send("hello")).await.unwrap();
            table.push_str(&format!("{agent}, {who}: repeat {}", same(&first.id, &repeat.id)));
            if client.caller.idempotency_key.is_none() {
                let reworded = client.send(reworded(send("hello"), "good day")).await.unwrap();
                table.push_str(&format!(", reworded {}", same(&first.id, &reworded.id)));
            }
            table.push('\n');
        }
    }
    expect![[r#"
        usual, anybody: repeat new, reworded new
        usual, anybody with a key: repeat same
        usual, alice: repeat same, reworded new
        usual, alice with a key: repeat same
        off, anybody: repeat new, reworded new
        off, anybody with a key: repeat same
        off, alice: repeat new, reworded new
        off, alice with a key: repeat same
        always, anybody: repeat same, reworded new
        always, anybody with a key: repeat same
        always, alice: repeat same, reworded new
        always, alice with a key: repeat same
    "#]]
    .assert_eq(&table);
}

async fn complete(_: Turn) -> Result<(), switchboard_engine::runs::AgentError> {
    Ok(())
}

fn same<T: PartialEq>(one: &T, other: &T) -> &'static str {
    if one == other { "same" } else { "new" }
}

async fn a_key_used_for_another_message_is_refused(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    let client = world.client().keyed("k-1");
    let task = client.send(say("hello")).await.unwrap();
    let error = client.send(say("good day")).await.unwrap_err();
    expect![[r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"Invalid parameters: Idempotency-Key: was used before for another message; use a new key for a new message","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"Idempotency-Key","description":"was used before for another message; use a new key for a new message"}]}]}}"#]]
    .assert_eq(&refusal(&error));
    assert_eq!(refusal(&client.stream(say("good day")).await.err().unwrap()), refusal(&error));
    assert_eq!(refusal(&client.send(reply_to(&task.id, "hello")).await.unwrap_err()), refusal(&error));
    assert_eq!(tasks_of(&client).await, 1);
    // Another caller's key is another key.
    let bob = world.client().user("bob").keyed("k-1");
    assert_eq!(bob.send(say("good day")).await.unwrap().state(), TaskState::Completed);
}

async fn a_repeat_is_recognised_by_the_next_process(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    let task = world.client().user("alice").send(say("hello")).await.unwrap();
    let world = Setup::on(world.crash().await).agent(registered("echo", echo())).start();
    assert_eq!(world.client().user("alice").send(say("hello")).await.unwrap(), task);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_the_message_that_ended_its_task_finds_its_answer() {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        if turn.number() == 1 {
            turn.ask("which?").await?;
        } else {
            turn.answer(turn.text()).await?;
        }
        Ok(())
    });
    let world = World::of(registered("asking", agent));
    let alice = world.client().user("alice");
    let task = alice.send(say("hello")).await.unwrap();
    let ended = alice.send(reply_to(&task.id, "red")).await.unwrap();
    assert_eq!(picture(&ended), "completed\nuser: hello\nagent: which?\nuser: red\nartifact-2-1: red\n");
    assert_eq!(alice.send(reply_to(&task.id, "red")).await.unwrap(), ended);
    let refused = alice.send(reply_to(&task.id, "blue")).await.unwrap_err();
    assert!(refused.to_string().ends_with("is completed and takes no more messages"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_message_is_forgotten_after_the_window() {
    let world =
        Setup::new().limits(|limits| limits.idempotency_window_s = 60).agent(registered("echo", echo())).start();
    let alice = world.client().user("alice");
    let first = alice.send(say("hello")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(alice.send(say("hello")).await.unwrap().id, first.id);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_ne!(alice.send(say("hello")).await.unwrap().id, first.id);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_may_still_be_answered_directly_waits_for_that() {
    let (agent, acts) = puppet(Traits::default().with_replies(Replies::Either));
    let world = World::of(registered("puppet", agent));
    let alice = world.client().user("alice");
    let ask =
        |client: Client| tokio::spawn(async move { client.call(Request::SendMessage(say("hello").into())).await });
    let first = ask(alice.clone());
    let act = acts.next().await;
    let mut second = ask(alice.clone());
    assert!(still_waits(&mut second).await);
    act.turn.reply(vec![Part::text("yes")]).await.unwrap();
    act.returns();
    for sent in [first, second] {
        match soon(sent).await.unwrap().unwrap() {
            Reply::SentMessage(message) => assert_eq!(message.text(), "yes"),
            _ => panic!("a message was expected"),
        }
    }
}

/// The first send waits for an answer, which may be no task. A repeat that does not wait is told of a task at once, and then the first
/// is, too.
#[tokio::test(start_paused = true)]
async fn a_repeat_that_does_not_wait_makes_a_task_of_what_may_be_answered_directly() {
    let (agent, acts) = puppet(Traits::default().with_replies(Replies::Either));
    let world = World::of(registered("puppet", agent));
    let alice = world.client().user("alice");
    let ask = |send: SendMessage| {
        let client = alice.clone();
        tokio::spawn(async move { client.call(Request::SendMessage(send.into())).await })
    };
    let mut first = ask(say("hello"));
    let act = acts.next().await;
    let repeated = soon(ask(at_once(say("hello")))).await.unwrap().unwrap();
    let Reply::SentTask(view) = repeated else { panic!("a task was expected") };
    assert_eq!((view.task.id.clone(), view.task.state()), (act.turn.task().id.clone(), TaskState::Submitted));
    assert!(still_waits(&mut first).await);
    act.turn.answer("yes").await.unwrap();
    act.returns();
    let Reply::SentTask(view) = soon(first).await.unwrap().unwrap() else { panic!("a task was expected") };
    assert_eq!(view.task.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn two_sends_of_one_message_at_the_same_moment_are_one_task() {
    let world = World::of(registered("echo", echo()));
    let alice = world.client().user("alice");
    let sends: Vec<_> = (0..20).map(|_| alice.sending(say("hello"))).collect();
    let mut ids = Vec::new();
    for send in sends {
        ids.push(soon(send).await.unwrap().unwrap().id.clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(tasks_of(&alice).await, 1);
}
