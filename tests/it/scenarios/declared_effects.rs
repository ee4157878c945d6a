//! What an agent declares about its effects decides how many commits an answer costs, and whether it may be asked before
//! its message is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use expect_test::expect;
use switchboard_core::model::TaskState;
use switchboard_engine::Engine;
use switchboard_engine::runs::{AgentSource, Traits, Turn};

use crate::support::callers::{reply_to, say, soon};
use crate::support::on_both_stores;
use crate::support::pictures::{film, picture};
use crate::support::puppets::{echo, from_fn};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    a_pure_answer_is_one_commit,
    an_undeclared_agent_is_accepted_first,
    a_pure_agent_that_waits_is_stored_when_it_first_waits,
    a_repeated_message_to_a_pure_agent_gets_the_first_answer,
);

fn pure_echo() -> AgentSource {
    from_fn(Traits::pure(), |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) })
}

async fn a_pure_answer_is_one_commit(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", pure_echo())).start();
    let before = world.commits();
    let task = world.client().send(say("hello")).await.unwrap();
    assert_eq!(world.commits() - before, 1);
    expect![[r#"
        completed
        user: hello
        artifact-1-1: hello
    "#]]
    .assert_eq(&picture(&task));
    // A follower sees three steps all the same.
    let stream = world.client().after(0).subscribe(&task.id).await.unwrap();
    expect![[r#"
        1 task submitted said [hello] made []
        2 artifact-1-1. hello
        3 completed
    "#]]
    .assert_eq(&film(stream).await);
}

async fn an_undeclared_agent_is_accepted_first(stock: Stock) {
    // The agent asks the engine how much is stored when it begins.
    let seen = Arc::new(AtomicU64::new(0));
    let engine: Arc<std::sync::OnceLock<Engine>> = Arc::default();
    let agent = from_fn(Traits::default(), {
        let (seen, engine) = (seen.clone(), engine.clone());
        move |turn: Turn| {
            seen.store(engine.get().unwrap().store_stats().commits, Ordering::SeqCst);
            async move { Ok(turn.answer("done").await?) }
        }
    });
    let world = Setup::on(stock).agent(registered("careful", agent)).start();
    assert!(engine.set(world.engine.clone()).is_ok());
    let before = world.commits();
    world.client().send(say("hello")).await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), before + 1, "the acceptance is stored before the agent begins");
    assert_eq!(world.commits(), before + 2, "the acceptance, and the answer with the end");
}

async fn a_pure_agent_that_waits_is_stored_when_it_first_waits(stock: Stock) {
    let agent = from_fn(Traits::pure(), |turn: Turn| async move {
        turn.working("thinking").await?;
        tokio::task::yield_now().await;
        assert_eq!(turn.task().state(), TaskState::Submitted, "the task as it was when the turn began");
        Ok(turn.answer("after a while").await?)
    });
    let world = Setup::on(stock).agent(registered("slow", agent)).start();
    let before = world.commits();
    let task = soon(world.client().send(say("hello"))).await.unwrap();
    assert_eq!(world.commits() - before, 2, "the acceptance with the first status, and the answer with the end");
    let stream = world.client().after(0).subscribe(&task.id).await.unwrap();
    expect![[r#"
        1 task submitted said [hello] made []
        2 working "thinking"
        3 artifact-1-1. after a while
        4 completed
    "#]]
    .assert_eq(&film(stream).await);
}

async fn a_repeated_message_to_a_pure_agent_gets_the_first_answer(stock: Stock) {
    let asked = Arc::new(AtomicU64::new(0));
    let agent = from_fn(Traits::pure(), {
        let asked = asked.clone();
        move |turn: Turn| {
            let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
            async move { Ok(turn.answer(format!("answer {number}")).await?) }
        }
    });
    let world = Setup::on(stock).agent(registered("counting", agent)).start();
    let alice = world.client().user("alice");
    let first = alice.send(say("hello")).await.unwrap();
    let second = alice.send(say("hello")).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(second.artifacts[0].text(), "answer 1", "what a discarded run wrote is nowhere");
}

#[tokio::test(start_paused = true)]
async fn a_pure_agent_may_ask_back_and_go_on() {
    let agent = from_fn(Traits::pure(), |turn: Turn| async move {
        if turn.number() == 1 {
            turn.ask("which one?").await?;
        } else {
            turn.answer(turn.text()).await?;
        }
        Ok(())
    });
    let world = World::of(registered("asking", agent));
    let before = world.commits();
    let task = world.client().send(say("one of them")).await.unwrap();
    assert_eq!(world.commits() - before, 1);
    assert_eq!(task.state(), TaskState::InputRequired);
    let task = world.client().send(reply_to(&task.id, "the red one")).await.unwrap();
    expect![[r#"
        completed
        user: one of them
        agent: which one?
        user: the red one
        artifact-2-1: the red one
    "#]]
    .assert_eq(&picture(&task));
}

#[tokio::test(start_paused = true)]
async fn an_agent_made_anew_for_each_turn_keeps_nothing_from_the_last() {
    struct Forgetful(AtomicU64);
    impl switchboard_engine::runs::Agent for Forgetful {
        async fn run(&self, turn: Turn) -> Result<(), switchboard_engine::runs::AgentError> {
            let seen = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(turn.answer(format!("message {seen} of mine")).await?)
        }
    }
    let fresh = registered("fresh", AgentSource::factory(|| Forgetful(AtomicU64::new(0))));
    let shared = registered("shared", AgentSource::shared(Forgetful(AtomicU64::new(0))));
    let world = Setup::new().agent(fresh).agent(shared).agent(registered("echo", echo())).start();
    let mut answers = Vec::new();
    for agent in ["fresh", "fresh", "shared", "shared"] {
        let task = world.client_of(agent).send(say("hello")).await.unwrap();
        answers.push(task.artifacts[0].text());
    }
    assert_eq!(answers, ["message 1 of mine", "message 1 of mine", "message 1 of mine", "message 2 of mine"]);
}
