//! Endpoints that are down or slow: their deliveries wait together, one at a time is tried, and other endpoints are not
//! affected.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::SendMessage;
use switchboard_core::model::PushConfig;
use switchboard_engine::limits::Limits;

use crate::support::callers::{hook, say};
use crate::support::hooks::{Answer, Hooks};
use crate::support::puppets::echo;
use crate::support::world::{Setup, World, registered};

fn to(url: &str, text: &str) -> SendMessage {
    let config = PushConfig { url: url.to_owned(), ..hook("", "c") };
    SendMessage { push_config: Some(config), ..say(text) }
}

fn world(hooks: &Arc<Hooks>) -> World {
    // Circuits are what is looked at, so deliveries themselves never give up.
    let setup = Setup::new().limits(|limits| limits.delivery_failures_max = 1_000);
    setup.webhook(hooks.clone()).agent(registered("echo", echo())).start()
}

fn state(world: &World, endpoint: &str) -> Option<bool> {
    let endpoints = world.engine.outbox().endpoints();
    endpoints.into_iter().find(|health| health.endpoint.as_str() == endpoint).map(|health| health.open)
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_down_is_asked_by_one_delivery_at_a_time() {
    const SICK: &str = "https://sick.example/in";
    let hooks = Hooks::new();
    hooks.always(SICK, Answer::Late(503));
    let world = world(&hooks);
    let mut tasks = Vec::new();
    for number in 0..50 {
        tasks.push(world.client().send(to(SICK, &format!("text {number}"))).await.unwrap().id.clone());
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(state(&world, "https://sick.example:443"), Some(true));
    assert!(hooks.most_at_once(SICK) > 1, "before anybody knew");
    let before = hooks.calls_so_far();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(hooks.most_at_once(SICK), 1, "a probe at a time");
    // Fifty deliveries that each kept their own pace would have made a hundred attempts.
    let probes = hooks.calls_so_far() - before;
    assert!((5..=25).contains(&probes), "{probes} probes in ten minutes");

    // The first answer opens the way for all, and nothing was lost meanwhile.
    hooks.always(SICK, Answer::Status(200));
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(state(&world, "https://sick.example:443"), None);
    for task in &tasks {
        assert_eq!(hooks.taken_of(task), [1, 2, 3]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_down_and_says_when_to_come_back_is_not_asked_before() {
    const BUSY: &str = "https://busy.example/in";
    let hooks = Hooks::new();
    hooks.always(BUSY, Answer::Busy(503, 120_000));
    let world = world(&hooks);
    for number in 0..50 {
        world.client().send(to(BUSY, &format!("text {number}"))).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(state(&world, "https://busy.example:443"), Some(true));
    let before = hooks.calls_so_far();
    tokio::time::sleep(Duration::from_secs(600)).await;
    // Left to itself, a probe goes out at least every minute.
    let probes = hooks.calls_so_far() - before;
    assert!((3..=5).contains(&probes), "{probes} probes in ten minutes");
}

#[tokio::test(start_paused = true)]
async fn a_healthy_endpoint_is_not_held_up_by_any_number_of_silent_ones() {
    let hooks = Hooks::new();
    hooks.always("silent", Answer::NeverAnswers);
    let world = Setup::new()
        .limits(|limits| limits.deliveries_max = 16)
        .webhook(hooks.clone())
        .agent(registered("echo", echo()))
        .start();
    for number in 0..200 {
        // Four silent endpoints, fifty tasks each.
        let url = format!("https://silent-{}.example/in", number % 4);
        world.client().send(to(&url, &format!("text {number}"))).await.unwrap();
    }
    let began = world.now();
    let mut tasks = Vec::new();
    for number in 0..20 {
        tasks.push(world.client().send(to("https://well.example/in", &format!("well {number}"))).await.unwrap());
    }
    for task in &tasks {
        hooks.until(|hooks| hooks.taken_of(&task.id) == [1, 2, 3]).await;
    }
    let took = world.now().ms_since(began);
    assert!(took < 1_000, "it took {took} ms, and no silent call has run out of time by then");
}

/// How long the webhooks of this owner take, in milliseconds, while many of some others stay silent.
async fn delay_among_silent_ones(of: &str) -> i64 {
    let hooks = Hooks::new();
    hooks.always("silent", Answer::NeverAnswers);
    let limits = |limits: &mut Limits| limits.deliveries_max = 256;
    let world = Setup::new().limits(limits).webhook(hooks.clone()).agent(registered("echo", echo())).start();
    // One with many, and more with as many as they get.
    let hostile = (0..1_400).map(|number| (0, number)).chain((0..600).map(|number| (1 + number / 50, number)));
    for (who, number) in hostile {
        let client = world.client().user(&format!("owner {who}"));
        let url = format!("https://silent-{who}-{number}.example/in");
        client.send(to(&url, &format!("text {number}"))).await.unwrap();
    }
    // They are called meanwhile, and have not run out of time.
    hooks.until(|hooks| hooks.calls_so_far() > 200).await;
    let began = world.now();
    let client = world.client().user(of);
    for number in 0..5 {
        let task = client.send(to("https://well.example/in", &format!("well {number}"))).await.unwrap();
        hooks.until(|hooks| hooks.taken_of(&task.id) == [1, 2, 3]).await;
    }
    world.now().ms_since(began)
}

#[tokio::test(start_paused = true)]
async fn silent_endpoints_of_some_owners_do_not_delay_the_webhook_of_another() {
    let took = delay_among_silent_ones("bob").await;
    assert!(took < 500, "it took {took} ms");
    // Where owners do not count, because all of them are one, it waits until silent ones have run out of time.
    let took = delay_among_silent_ones("owner 0").await;
    assert!(took > 2_000, "it took {took} ms");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_is_refused_says_nothing_about_its_neighbours() {
    let hooks = Hooks::new();
    hooks.always("shared.example/gone", Answer::Status(410));
    let world = world(&hooks);
    world.client().send(to("https://shared.example/gone", "nobody")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(hooks.calls_so_far() > 8);
    assert_eq!(state(&world, "https://shared.example:443"), None);
    let began = world.now();
    let task = world.client().send(to("https://shared.example/in", "somebody")).await.unwrap();
    hooks.until(|hooks| hooks.taken_of(&task.id) == [1, 2, 3]).await;
    assert_eq!(world.now().ms_since(began), 0);
}

#[tokio::test(start_paused = true)]
async fn deliveries_to_an_endpoint_that_stays_down_are_given_up_on_in_the_end() {
    let hooks = Hooks::new();
    hooks.always("sick.example", Answer::Breaks);
    let world = Setup::new()
        .limits(|limits| {
            limits.delivery_failures_max = 1_000;
            limits.endpoint_down_s_max = 3_600;
        })
        .webhook(hooks.clone())
        .agent(registered("echo", echo()))
        .start();
    for number in 0..30 {
        world.client().send(to("https://sick.example/in", &format!("text {number}"))).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(3_500)).await;
    let dead = || world.engine.counters().deliveries_parked.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(dead(), 0, "nobody who only waited has failed");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(dead() >= 29, "{}", dead());
}
