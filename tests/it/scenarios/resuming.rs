//! Resuming a subscription by `Last-Event-ID`: exactly what came after that number, and nothing else.

use expect_test::expect;
use switchboard_core::model::TaskState;
use switchboard_engine::limits::Limits;
use switchboard_engine::runs::Traits;

use crate::support::callers::{say, soon};
use crate::support::on_both_stores;
use crate::support::pictures::{film, film_so_far, numbers, refusal};
use crate::support::puppets::{echo, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    a_stream_goes_on_after_the_number_the_client_names,
    an_ended_task_gives_its_tail_and_closes,
    a_number_that_was_never_given_out_is_refused,
    a_task_resumes_in_another_process,
);

async fn a_stream_goes_on_after_the_number_the_client_names(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    act.turn.working("one").await.unwrap();
    act.turn.working("two").await.unwrap();
    let from_the_start = world.client().after(0).subscribe(&task.id).await.unwrap();
    let from_the_middle = world.client().after(2).subscribe(&task.id).await.unwrap();
    let from_here = world.client().after(3).subscribe(&task.id).await.unwrap();
    act.turn.working("three").await.unwrap();
    act.returns();
    expect![[r#"
        1 task submitted said [hello] made []
        2 working "one"
        3 working "two"
        4 working "three"
        5 completed
    "#]]
    .assert_eq(&film(from_the_start).await);
    expect![[r#"
        3 working "two"
        4 working "three"
        5 completed
    "#]]
    .assert_eq(&film(from_the_middle).await);
    expect![[r#"
        4 working "three"
        5 completed
    "#]]
    .assert_eq(&film(from_here).await);
}

async fn an_ended_task_gives_its_tail_and_closes(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    let task = world.client().send(say("hello")).await.unwrap();
    for (after, expected) in [(0, vec![1, 2, 3]), (1, vec![2, 3]), (2, vec![3]), (3, Vec::new())] {
        let stream = world.client().after(after).subscribe(&task.id).await.unwrap();
        assert_eq!(numbers(stream).await, expected, "after {after}");
    }
}

async fn a_number_that_was_never_given_out_is_refused(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    let task = world.client().send(say("hello")).await.unwrap();
    for (given, why) in [
        ("4", "is 4, but the last event of task TASK is 3"),
        ("18446744073709551615", "is 18446744073709551615, but the last event of task TASK is 3"),
        ("18446744073709551616", "must be the number of an event, or 0"),
        ("-1", "must be the number of an event, or 0"),
        ("1.0", "must be the number of an event, or 0"),
        ("next", "must be the number of an event, or 0"),
        ("", "must be the number of an event, or 0"),
    ] {
        let error = world.client().after(given).subscribe(&task.id).await.err().unwrap();
        let expected = format!("Invalid parameters: Last-Event-ID: {why}");
        assert_eq!(error.to_string().replace(task.id.as_str(), "TASK"), expected);
    }
    let unknown = world.client().after("next").subscribe(&"no-such-task".into()).await.err().unwrap();
    assert_eq!(unknown.to_string(), "Task not found", "a task that is not there says nothing else");
}

async fn a_task_resumes_in_another_process(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    act.turn.working("one").await.unwrap();
    let (agent, acts) = puppet(Traits::default());
    drop(act);
    let world = Setup::on(world.crash().await).agent(registered("puppet", agent)).start();
    let stream = world.client().after(1).subscribe(&task.id).await.unwrap();
    let act = acts.next().await;
    act.turn.working("two").await.unwrap();
    act.returns();
    expect![[r#"
        2 working "one"
        3 working "two"
        4 completed
    "#]]
    .assert_eq(&film(stream).await);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_stream_of_a_paused_task_stays_open() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.ask("which?").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    let mut stream = world.client().after(1).subscribe(&task.id).await.unwrap();
    assert_eq!(film_so_far(&mut stream).await, "2 input-required \"which?\"\nopen\n");
    world.client().cancel(&task.id).await.unwrap();
    assert_eq!(film_so_far(&mut stream).await, "3 canceled\nclosed\n");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_kept_is_replaced_by_the_task_and_said_so() {
    let limits = |limits: &mut Limits| {
        limits.retention_events_s = 3_600;
        limits.resume_window_s = 60;
    };
    let world = Setup::new().limits(limits).agent(registered("echo", echo())).start();
    let task = world.client().send(say("hello")).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3_800)).await;
    let stream = world.client().after(1).subscribe(&task.id).await.unwrap();
    assert_eq!(film(stream).await, "3 task completed said [hello] made [hello] (truncated)\n");
    let stream = world.client().after(3).subscribe(&task.id).await.unwrap();
    assert_eq!(film(stream).await, "", "a reader that has everything misses nothing");
    assert_eq!(world.client().task(&task.id).await.unwrap().state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_not_ended_is_kept_however_old_it_is() {
    let (agent, acts) = puppet(Traits::default());
    let limits = |limits: &mut Limits| {
        limits.retention_tasks_s = 60;
        limits.retention_events_s = 60;
        limits.resume_window_s = 60;
    };
    let world = Setup::new().limits(limits).agent(registered("puppet", agent)).start();
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.ask("which?").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(86_400)).await;
    let mut stream = world.client().after(0).subscribe(&task.id).await.unwrap();
    let whole = "1 task submitted said [hello] made []\n2 input-required \"which?\"\nopen\n";
    assert_eq!(film_so_far(&mut stream).await, whole);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_no_longer_kept_is_missing() {
    let limits = |limits: &mut Limits| {
        limits.retention_tasks_s = 3_600;
        limits.resume_window_s = 60;
    };
    let world = Setup::new().limits(limits).agent(registered("echo", echo())).start();
    let task = world.client().send(say("hello")).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3_800)).await;
    let expected = refusal(&switchboard_core::error::ProtocolError::task_not_found(&task.id));
    assert_eq!(refusal(&world.client().task(&task.id).await.unwrap_err()), expected);
    assert_eq!(refusal(&world.client().after(0).subscribe(&task.id).await.err().unwrap()), expected);
}

#[tokio::test(start_paused = true)]
async fn a_stream_can_be_resumed_for_a_while_however_hasty_retention_is() {
    let hour = std::time::Duration::from_secs(3_600);
    let limits = |limits: &mut Limits| {
        limits.retention_events_s = 60;
        limits.retention_tasks_s = 120;
        limits.resume_window_s = 24 * 3_600;
    };
    let world = Setup::new().limits(limits).agent(registered("echo", echo())).start();
    let client = world.client();
    let task = client.send(say("hello")).await.unwrap();
    tokio::time::sleep(23 * hour).await;
    let resumed = client.after(1).subscribe(&task.id).await.unwrap();
    assert_eq!(film(resumed).await, "2 artifact-1-1. hello\n3 completed\n");
    tokio::time::sleep(2 * hour).await;
    assert_eq!(client.task(&task.id).await.unwrap_err().to_string(), "Task not found");
}
