//! Dead letters: seen, tried again, dropped; and the newest state for receivers far behind.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use switchboard_core::call::SendMessage;
use switchboard_core::dialect::Dialect;
use switchboard_engine::limits::Limits;
use switchboard_engine::ports::outbox::{OutboxEntry, OutboxState};
use switchboard_engine::push::{NextUpdate, OutboxFilter, WebhookEndpoint};
use switchboard_engine::runs::Traits;

use crate::support::callers::{at_once, hook, say, soon};
use crate::support::hooks::{Answer, Call, Hooks};
use crate::support::on_both_stores;
use crate::support::puppets::{Acts, echo, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(a_dead_letter_is_seen_and_redriven, a_purged_dead_letter_is_not_sent);

fn with_hook(text: &str) -> SendMessage {
    SendMessage { push_config: Some(hook("", "c")), ..say(text) }
}

fn world(stock: Stock, hooks: &Arc<Hooks>, limits: impl FnOnce(&mut Limits)) -> (World, Acts) {
    let (agent, acts) = puppet(Traits::default());
    let setup = Setup::on(stock).limits(limits).webhook(hooks.clone());
    (setup.agent(registered("puppet", agent)).start(), acts)
}

/// The dead letters, once there are so many.
async fn dead(world: &World, count: usize) -> Vec<OutboxEntry> {
    let filter = OutboxFilter { state: Some(OutboxState::Dead), endpoint: None };
    let look = async {
        loop {
            let page = world.engine.outbox().list(&filter, None, 100).await.unwrap();
            if page.entries.len() == count {
                return page.entries;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    soon(look).await
}

fn ids(calls: &[Call]) -> Vec<String> {
    calls.iter().map(|call| call.header("a2a-delivery-id").unwrap().rsplit(':').next().unwrap().to_owned()).collect()
}

async fn a_dead_letter_is_seen_and_redriven(stock: Stock) {
    let hooks = Hooks::answering([Answer::Status(500)]);
    let (world, acts) = world(stock, &hooks, |limits| limits.delivery_failures_max = 1);
    let task = world.client().send(at_once(with_hook("hello"))).await.unwrap();
    let act = acts.next().await;
    let letters = dead(&world, 1).await;
    act.turn.text_artifact("done").await.unwrap();
    act.returns();
    let entry = &letters[0];
    assert_eq!((&entry.task_id, entry.config_id.as_str(), entry.failures), (&task.id, "c", 1));
    assert_eq!(entry.last_error.as_deref(), Some("the receiver answered 500"));
    let detail = world.engine.outbox().show(entry.key).await.unwrap().unwrap();
    let delivery_id = format!("{}:c:1", task.id);
    assert_eq!(detail.next, Some(NextUpdate { seq: 1, delivery_id, kind: "task" }));
    let outbox = world.engine.outbox();
    let elsewhere = outbox.redrive_dead(Some(WebhookEndpoint::of("https://other.example")), None).await.unwrap();
    assert_eq!((elsewhere.changed, hooks.calls_so_far()), (0, 1));
    let redriven = outbox.redrive_dead(Some(WebhookEndpoint::of("https://hooks.example")), None).await.unwrap();
    assert_eq!(redriven.changed, 1);
    // The same id as before, then what came meanwhile, in order.
    assert_eq!(ids(&hooks.calls(4).await), ["1", "1", "2", "3"]);
    dead(&world, 0).await;
    assert!(!outbox.redrive(entry.key).await.unwrap(), "there is nothing left to redrive");
}

/// Failures in a row are counted for one update: a receiver that takes something is not given up on for what it failed at
/// before.
#[tokio::test(start_paused = true)]
async fn what_a_receiver_has_taken_starts_the_count_of_failures_anew() {
    let (fails, takes) = (Answer::Status(500), Answer::Status(200));
    let hooks = Hooks::answering([fails, takes, fails, takes, fails, takes]);
    let (world, acts) = world(Stock::memory(), &hooks, |limits| limits.delivery_failures_max = 2);
    world.client().send(at_once(with_hook("hello"))).await.unwrap();
    let act = acts.next().await;
    for text in ["one", "two"] {
        act.turn.working(text).await.unwrap();
    }
    act.returns();
    // Each of the first three is taken at the second attempt.
    assert_eq!(ids(&hooks.calls(7).await), ["1", "1", "2", "2", "3", "3", "4"]);
    dead(&world, 0).await;
}

async fn a_purged_dead_letter_is_not_sent(stock: Stock) {
    let hooks = Hooks::answering([Answer::Status(500)]);
    let (world, acts) = world(stock, &hooks, |limits| limits.delivery_failures_max = 1);
    world.client().send(at_once(with_hook("hello"))).await.unwrap();
    let act = acts.next().await;
    let letters = dead(&world, 1).await;
    act.turn.working("never told").await.unwrap();
    assert!(world.engine.outbox().purge(letters[0].key).await.unwrap());
    assert!(!world.engine.outbox().purge(letters[0].key).await.unwrap(), "once is enough");
    dead(&world, 0).await;
    act.turn.text_artifact("told").await.unwrap();
    act.returns();
    // The numbers tell the receiver that 1 and 2 are missing.
    assert_eq!(ids(&hooks.calls(3).await), ["1", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_of_an_older_version_is_shown_to_get_the_task_as_it_stands() {
    let hooks = Hooks::answering([Answer::Status(500)]);
    let (world, acts) = world(Stock::memory(), &hooks, |limits| limits.delivery_failures_max = 1);
    let client = world.client().with(|caller| caller.dialect = Dialect::V0_3);
    let task = client.send(at_once(with_hook("hello"))).await.unwrap();
    let act = acts.next().await;
    let key = dead(&world, 1).await[0].key;
    act.turn.working("").await.unwrap();
    act.turn.text_artifact("done").await.unwrap();
    // Not the first update it missed, but the newest: that is the number the next call carries.
    let detail = world.engine.outbox().show(key).await.unwrap().unwrap();
    assert_eq!((detail.entry.delivered_seq, detail.entry.task_seq), (0, 3));
    let delivery_id = format!("{}:c:3", task.id);
    assert_eq!(detail.next, Some(NextUpdate { seq: 3, delivery_id: delivery_id.clone(), kind: "task" }));
    assert!(world.engine.outbox().redrive(key).await.unwrap());
    assert_eq!(hooks.calls(2).await[1].header("a2a-delivery-id"), Some(delivery_id.as_str()));
}

#[tokio::test(start_paused = true)]
async fn many_dead_letters_are_redriven_page_by_page() {
    let hooks = Hooks::new();
    hooks.always("hooks.example", Answer::Status(500));
    let world = Setup::new()
        .limits(|limits| {
            limits.delivery_failures_max = 1;
            limits.endpoint_failures_max = u32::MAX;
        })
        .webhook(hooks.clone())
        .agent(registered("echo", echo()))
        .start();
    for number in 0..1_200 {
        world.client().send(with_hook(&format!("text {number}"))).await.unwrap();
    }
    hooks.calls(1_200).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    hooks.always("hooks.example", Answer::Status(200));
    let (mut changed, mut after, mut pages) = (0, None, 0);
    loop {
        let page = world.engine.outbox().redrive_dead(None, after).await.unwrap();
        (changed, after, pages) = (changed + page.changed, page.next, pages + 1);
        if after.is_none() {
            break;
        }
    }
    assert_eq!((changed, pages), (1_200, 3));
    hooks.until(|hooks| hooks.taken() == 3 * 1_200).await;
}

#[tokio::test(start_paused = true)]
async fn a_receiver_far_behind_gets_the_newest_state() {
    let hooks = Hooks::answering([Answer::Status(200), Answer::Status(500)]);
    let (world, acts) = world(Stock::memory(), &hooks, |limits| limits.delivery_coalesce_after = 3);
    let task = world.client().send(at_once(with_hook("hello"))).await.unwrap();
    let act = acts.next().await;
    hooks.calls(1).await;
    act.turn.working("").await.unwrap();
    hooks.calls(2).await;
    for number in 0..5 {
        act.turn.text_artifact(format!("answer {number}")).await.unwrap();
    }
    let calls = hooks.calls(3).await;
    let sent: Vec<(&str, Option<&str>)> = calls
        .iter()
        .map(|call| (call.header("a2a-delivery-seq").unwrap(), call.header("a2a-delivery-skipped")))
        .collect();
    assert_eq!(sent, [("1", None), ("2", None), ("7", Some("5"))]);
    assert_eq!(calls[2].header("a2a-delivery-id").unwrap(), format!("{}:c:7", task.id));
    let state = calls[2].json();
    assert_eq!(state["task"]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(state["task"]["artifacts"].as_array().unwrap().len(), 5, "nothing of the task is missing");
    // From there on update by update again.
    act.returns();
    assert_eq!(hooks.calls(4).await[3].gist(), "TASK_STATE_COMPLETED");
    assert_eq!(world.engine.counters().deliveries_skipped.load(std::sync::atomic::Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn without_the_setting_or_with_a_large_task_every_update_is_sent() {
    for (after, text) in [(0, "small"), (3, &"large ".repeat(300_000) as &str)] {
        let hooks = Hooks::answering([Answer::Status(500)]);
        let (world, acts) = world(Stock::memory(), &hooks, |limits| limits.delivery_coalesce_after = after);
        world.client().send(at_once(with_hook("hello"))).await.unwrap();
        let act = acts.next().await;
        for _ in 0..5 {
            act.turn.text_artifact(text).await.unwrap();
        }
        act.returns();
        assert_eq!(ids(&hooks.calls(8).await), ["1", "1", "2", "3", "4", "5", "6", "7"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_attempt_is_counted_for_each_update_by_itself() {
    let hooks = Hooks::answering([Answer::Status(500), Answer::Breaks, Answer::Status(200), Answer::Status(500)]);
    let (world, acts) = world(Stock::memory(), &hooks, |_| {});
    world.client().send(at_once(with_hook("hello"))).await.unwrap();
    acts.next().await.returns();
    let calls = hooks.calls(5).await;
    let sent: String = calls
        .iter()
        .map(|call| {
            format!("{} {}\n", ids(std::slice::from_ref(call))[0], call.header("a2a-delivery-attempt").unwrap())
        })
        .collect();
    expect![[r#"
        1 1
        1 2
        1 3
        2 1
        2 2
    "#]]
    .assert_eq(&sent);
}
