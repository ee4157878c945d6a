//! Delivery to webhooks: every update in order, tried again with growing pauses, given up on in the end, and never in
//! anybody's way.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use expect_test::expect;
use switchboard_core::call::SendMessage;
use switchboard_core::dialect::Dialect;
use switchboard_core::model::{AuthenticationInfo, Json, Part, PushConfig, TaskState};
use switchboard_engine::limits::Limits;
use switchboard_engine::runs::Traits;

use crate::support::callers::{hook, say, soon};
use crate::support::hooks::{Answer, Call, Hooks};
use crate::support::on_both_stores;
use crate::support::puppets::{Acts, echo, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(every_update_is_delivered_in_order, a_delivery_goes_on_in_the_next_process);

fn with_hook(text: &str) -> SendMessage {
    SendMessage { push_config: Some(hook("", "c")), ..say(text) }
}

fn gists(calls: &[Call]) -> String {
    calls.iter().map(|call| format!("{}\n", call.gist())).collect()
}

fn world(hooks: &Arc<Hooks>, limits: impl FnOnce(&mut Limits)) -> (World, Acts) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::new().limits(limits).webhook(hooks.clone()).agent(registered("puppet", agent)).start();
    (world, acts)
}

async fn every_update_is_delivered_in_order(stock: Stock) {
    let hooks = Hooks::new();
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).webhook(hooks.clone()).agent(registered("puppet", agent)).start();
    let sending = world.client().sending(with_hook("hello"));
    let act = acts.next().await;
    act.turn.working("").await.unwrap();
    for text in ["one", "two", "three"] {
        act.turn.text_artifact(text).await.unwrap();
    }
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    let calls = hooks.calls(6).await;
    expect![[r#"
        task TASK_STATE_SUBMITTED
        TASK_STATE_WORKING
        artifact one
        artifact two
        artifact three
        TASK_STATE_COMPLETED
    "#]]
    .assert_eq(&gists(&calls));
    let ids: Vec<&str> = calls.iter().map(|call| call.header("a2a-delivery-id").unwrap()).collect();
    let expected: Vec<String> = (1..=6).map(|seq| format!("{}:c:{seq}", task.id)).collect();
    assert_eq!(ids, expected);
}

async fn a_delivery_goes_on_in_the_next_process(stock: Stock) {
    let hooks = Hooks::answering([Answer::Status(200), Answer::NeverAnswers]);
    let world = Setup::on(stock).webhook(hooks.clone()).agent(registered("echo", echo())).start();
    let task = world.client().send(with_hook("hello")).await.unwrap();
    hooks.calls(2).await;
    let hooks = Hooks::new();
    let world = Setup::on(world.crash().await).webhook(hooks.clone()).agent(registered("echo", echo())).start();
    // At least once: what had arrived but was not recorded as delivered comes again, and nothing is left out.
    let again = hooks.calls(1).await[0].gist() == "task TASK_STATE_SUBMITTED";
    let calls = hooks.calls(if again { 3 } else { 2 }).await;
    let gists = gists(&calls);
    let rest = gists.strip_prefix("task TASK_STATE_SUBMITTED\n").unwrap_or(&gists);
    assert_eq!(rest, "artifact hello\nTASK_STATE_COMPLETED\n");
    assert_eq!(world.client().task(&task.id).await.unwrap().state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn what_the_receiver_is_sent() {
    let hooks = Hooks::new();
    let world = Setup::new().webhook(hooks.clone()).agent(registered("echo", echo())).start();
    let config = PushConfig {
        token: Some("a token".to_owned()),
        authentication: Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: Some("secret".to_owned()),
        }),
        ..hook("", "c")
    };
    world.client().send(SendMessage { push_config: Some(config), ..say("hello") }).await.unwrap();
    let calls = hooks.calls(3).await;
    let call = &calls[2];
    assert_eq!(call.url, "https://hooks.example/in");
    expect![[r#"
        [
            (
                "content-type",
                "application/a2a+json",
            ),
            (
                "a2a-delivery-id",
                "00000000-0000-4000-8000-000000000001:c:3",
            ),
            (
                "a2a-delivery-seq",
                "3",
            ),
            (
                "a2a-delivery-attempt",
                "1",
            ),
            (
                "authorization",
                "Bearer secret",
            ),
            (
                "x-a2a-notification-token",
                "a token",
            ),
            (
                "a2a-notification-token",
                "a token",
            ),
        ]
    "#]]
    .assert_debug_eq(&call.headers);
    expect![[r#"{"statusUpdate":{"taskId":"00000000-0000-4000-8000-000000000001","contextId":"00000000-0000-4000-8000-000000000002","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-01T00:00:00.000Z"}}}"#]].assert_eq(std::str::from_utf8(&call.body).unwrap());
}

/// A client reads its configs without secrets and sends them back so; the receiver still gets what it checks.
#[tokio::test(start_paused = true)]
async fn an_update_of_a_config_without_its_secrets_keeps_them() {
    let hooks = Hooks::new();
    let (world, acts) = world(&hooks, |_| {});
    let authentication = |credentials: Option<&str>| {
        Some(AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: credentials.map(str::to_owned) })
    };
    let config = PushConfig { token: Some("k".to_owned()), authentication: authentication(Some("c")), ..hook("", "c") };
    let send = SendMessage { push_config: Some(config.clone()), return_immediately: true, ..say("hello") };
    let task = world.client().send(send).await.unwrap();
    hooks.calls(1).await;
    let url = "https://hooks.example/another-path".to_owned();
    let update = PushConfig { url, authentication: authentication(None), ..hook(task.id.as_str(), "c") };
    world.client().register(update).await.unwrap();
    acts.next().await.returns();
    let calls = hooks.calls(2).await;
    assert_eq!(calls[1].url, "https://hooks.example/another-path");
    assert_eq!(calls[1].header("authorization"), Some("Bearer c"));
    assert_eq!(calls[1].header("x-a2a-notification-token"), Some("k"));
}

/// Whichever form a webhook gets: updates, the newest state after a backlog, or whole tasks.
#[tokio::test(start_paused = true)]
async fn a_receiver_is_not_told_what_must_not_leave() {
    let planted = || Json::from_trusted(r#"{"apiKey":"PLANTED","note":"kept","in":{"bearer":"PLANTED"}}"#);
    for (dialect, coalesce) in [(Dialect::V1_0, 0), (Dialect::V1_0, 1), (Dialect::V0_3, 0), (Dialect::AgentNative, 0)] {
        let hooks = Hooks::answering([Answer::Status(500)]);
        let (world, acts) = world(&hooks, |limits| limits.delivery_coalesce_after = coalesce);
        let mut send = SendMessage { return_immediately: true, metadata: Some(planted()), ..with_hook("hello") };
        send.message.metadata = Some(planted());
        let client = world.client().with(|caller| caller.dialect = dialect);
        let task = client.send(send).await.unwrap();
        let act = acts.next().await;
        assert_eq!(act.turn.metadata(), Some(&planted()), "the agent sees all");
        let part = Part::text("x").with_metadata(planted());
        act.turn.artifact_writer().with_metadata(planted()).finish(vec![part.clone()]).await.unwrap();
        act.turn.status(TaskState::Working, vec![part]).await.unwrap();
        act.returns();
        hooks.until(|hooks| hooks.taken_of(&task.id).last() == Some(&4)).await;
        let calls = hooks.calls(1).await;
        let bodies: Vec<_> = calls.iter().map(|call| std::str::from_utf8(&call.body).unwrap()).collect();
        assert!(bodies.iter().any(|body| body.contains("kept")), "{dialect:?}: {bodies:?}");
        assert!(!bodies.iter().any(|body| body.contains("PLANTED")), "{dialect:?} {coalesce}: {bodies:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_scheme_without_credentials_is_not_sent() {
    for credentials in [None, Some(String::new())] {
        let hooks = Hooks::new();
        let world = Setup::new().webhook(hooks.clone()).agent(registered("echo", echo())).start();
        let authentication = Some(AuthenticationInfo { scheme: "Bearer".to_owned(), credentials });
        let config = PushConfig { authentication, ..hook("", "c") };
        world.client().send(SendMessage { push_config: Some(config), ..say("hello") }).await.unwrap();
        for call in hooks.calls(3).await {
            assert_eq!(call.header("authorization"), None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_fails_is_tried_again_with_growing_pauses_and_misses_nothing() {
    let fails = [Answer::Status(500), Answer::Breaks, Answer::Status(302), Answer::NeverAnswers];
    let hooks = Hooks::answering(fails);
    let (world, acts) = world(&hooks, |limits| {
        limits.delivery_backoff_ms_min = 1_000;
        limits.delivery_timeout_ms = 10_000;
    });
    let task = world.client().send(SendMessage { return_immediately: true, ..with_hook("hello") }).await.unwrap();
    acts.next().await.returns();
    let calls = hooks.calls(6).await;
    expect![[r#"
        task TASK_STATE_SUBMITTED
        task TASK_STATE_SUBMITTED
        task TASK_STATE_SUBMITTED
        task TASK_STATE_SUBMITTED
        task TASK_STATE_SUBMITTED
        TASK_STATE_COMPLETED
    "#]]
    .assert_eq(&gists(&calls));
    let ids: Vec<&str> = calls.iter().map(|call| call.header("a2a-delivery-id").unwrap()).collect();
    let (first, last) = (format!("{}:c:1", task.id), format!("{}:c:2", task.id));
    assert_eq!(ids, [&first, &first, &first, &first, &first, &last]);
    let attempts: Vec<&str> = calls.iter().map(|call| call.header("a2a-delivery-attempt").unwrap()).collect();
    assert_eq!(attempts[..5], ["1", "2", "3", "4", "5"]);
    // Each pause is between half of its full length and all of it; the fourth also holds the time of the silent call.
    let pauses: Vec<u64> = calls.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms).collect();
    for (index, (pause, full, extra)) in
        [(pauses[0], 1_000, 0), (pauses[1], 2_000, 0), (pauses[2], 4_000, 0), (pauses[3], 8_000, 10_000)]
            .into_iter()
            .enumerate()
    {
        let slack = 2_000;
        assert!((full / 2 + extra..=full + extra + slack).contains(&pause), "pause {index}: {pause} of {full}");
    }
    let counters = world.engine.counters();
    assert_eq!(counters.deliveries_failed.load(Ordering::Relaxed), 4);
    assert_eq!(counters.deliveries_made.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_says_when_to_come_back_is_left_alone_so_long_within_bounds() {
    let answers = [
        Answer::Busy(429, 60_000),
        Answer::Busy(503, 1),
        Answer::Busy(503, u64::MAX),
        // This status has no say in it.
        Answer::Busy(500, 60_000),
    ];
    let hooks = Hooks::answering(answers);
    let (world, acts) = world(&hooks, |limits| {
        limits.delivery_backoff_ms_min = 1_000;
        limits.delivery_backoff_ms_max = 100_000;
    });
    world.client().send(SendMessage { return_immediately: true, ..with_hook("hello") }).await.unwrap();
    acts.next().await.returns();
    let calls = hooks.calls(5).await;
    let pauses = calls.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms);
    let bounds = [(60_000, 60_000), (1_000, 2_000), (100_000, 100_000), (4_000, 8_000)];
    for (pause, (least, most)) in pauses.zip(bounds) {
        // The loop looks every two seconds at the latest.
        assert!((least..=most + 2_000).contains(&pause), "{pause} is not between {least} and {most}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_delivery_whose_claim_runs_out_under_way_is_not_doubled_and_its_end_counts() {
    let hooks = Hooks::answering([Answer::Late(500)]);
    let world = Setup::new().webhook(hooks.clone()).agent(registered("echo", echo())).start();
    let first = world.client().send(with_hook("first")).await.unwrap();
    hooks.calls(1).await;
    // As after a sleep of the whole machine; the next delivery makes the loop look, and it takes the first one again.
    world.stock().clock.jump(3600);
    world.client().send(with_hook("second")).await.unwrap();
    let calls = hooks.calls(7).await;
    let of_first: Vec<(&str, &str)> = calls
        .iter()
        .filter(|call| call.header("a2a-delivery-id").unwrap().starts_with(first.id.as_str()))
        .map(|call| (call.header("a2a-delivery-seq").unwrap(), call.header("a2a-delivery-attempt").unwrap()))
        .collect();
    assert_eq!(of_first, [("1", "1"), ("1", "2"), ("2", "1"), ("3", "1")]);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_always_fails_is_given_up_on() {
    let hooks = Hooks::answering([Answer::Status(500); 100]);
    let (world, acts) = world(&hooks, |limits| limits.delivery_failures_max = 3);
    world.client().send(SendMessage { return_immediately: true, ..with_hook("hello") }).await.unwrap();
    let act = acts.next().await;
    hooks.calls(3).await;
    act.turn.working("more to tell").await.unwrap();
    act.returns();
    tokio::time::sleep(Duration::from_secs(86_000)).await;
    assert_eq!(hooks.calls_so_far(), 3);
    assert_eq!(world.engine.counters().deliveries_parked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_receiver_holds_up_nobody() {
    let hooks = Hooks::answering([Answer::NeverAnswers]);
    let (world, acts) = world(&hooks, |_| {});
    let began = world.now();
    let sending = world.client().sending(with_hook("hello"));
    let act = acts.next().await;
    hooks.calls(1).await;
    act.turn.text_artifact("done").await.unwrap();
    act.returns();
    soon(sending).await.unwrap().unwrap();
    let other = world.client().sending(with_hook("good day"));
    acts.next().await.returns();
    soon(other).await.unwrap().unwrap();
    assert_eq!(hooks.calls(3).await.len(), 3, "the other task's webhook is served meanwhile");
    assert!(world.now().ms_since(began) < 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_comes_later_is_sent_what_comes_later() {
    let hooks = Hooks::new();
    let (world, acts) = world(&hooks, |_| {});
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    act.turn.text_artifact("before").await.unwrap();
    world.client().register(hook(task.id.as_str(), "late")).await.unwrap();
    act.turn.text_artifact("after").await.unwrap();
    act.returns();
    assert_eq!(gists(&hooks.calls(2).await), "artifact after\nTASK_STATE_COMPLETED\n");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_webhook_is_sent_nothing_more() {
    let hooks = Hooks::new();
    let (world, acts) = world(&hooks, |_| {});
    let task = world.client().send(SendMessage { return_immediately: true, ..with_hook("hello") }).await.unwrap();
    let act = acts.next().await;
    hooks.calls(1).await;
    let delete = switchboard_core::call::Request::DeletePushConfig { task_id: task.id.clone(), id: "c".into() };
    world.client().call(delete).await.unwrap();
    act.returns();
    tokio::time::sleep(Duration::from_secs(3_000)).await;
    assert_eq!(hooks.calls_so_far(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_webhook_of_a_task_has_its_own_pace() {
    let hooks = Hooks::answering([Answer::Status(500)]);
    let (world, acts) = world(&hooks, |limits| limits.delivery_backoff_ms_min = 60_000);
    let task = world.client().start("hello").await;
    for id in ["one", "two"] {
        world.client().register(hook(task.id.as_str(), id)).await.unwrap();
    }
    let act = acts.next().await;
    act.turn.text_artifact("done").await.unwrap();
    act.returns();
    let calls = hooks.calls(5).await;
    let of = |id: &str| {
        let mine = calls.iter().filter(|call| call.header("a2a-delivery-id").unwrap().contains(&format!(":{id}:")));
        mine.map(Call::gist).collect::<Vec<_>>().join(", ")
    };
    let mut films = [of("one"), of("two")];
    films.sort();
    assert_eq!(films, ["artifact done, TASK_STATE_COMPLETED", "artifact done, artifact done, TASK_STATE_COMPLETED"]);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_of_an_older_version_is_sent_the_whole_task() {
    let hooks = Hooks::new();
    let (world, acts) = world(&hooks, |_| {});
    let client = world.client().with(|caller| caller.dialect = Dialect::V0_3);
    let mut send = with_hook("report");
    send.push_config.as_mut().unwrap().token = Some("echo-me".to_owned());
    let sending = client.sending(send);
    let act = acts.next().await;
    act.turn.text_artifact("all sold").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    // Changes that come together are one call, so there are as many as there were wake-ups; the last one tells all.
    let last = soon(async {
        let mut count = 1;
        loop {
            let call = hooks.calls(count).await.pop().unwrap();
            if call.json()["status"]["state"] == "completed" {
                return call;
            }
            count += 1;
        }
    })
    .await;
    let body = last.json();
    assert_eq!((&body["kind"], &body["id"]), (&"task".into(), &task.id.as_str().into()));
    assert_eq!(body["artifacts"][0]["parts"][0]["text"], "all sold");
    assert_eq!(last.header("content-type"), Some("application/json"));
    assert_eq!(last.header("x-a2a-notification-token"), Some("echo-me"));
    assert_eq!(last.header("a2a-delivery-id").map(str::to_owned), Some(format!("{}:c:3", task.id)));
}
