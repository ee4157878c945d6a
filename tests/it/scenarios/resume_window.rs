//! However short retention is set, a stream can be resumed for a while after its task has ended.

use std::time::Duration;

use switchboard_core::model::TaskState;
use switchboard_engine::limits::Limits;

use crate::support::callers::say;
use crate::support::pictures::{next_frame, numbers};
use crate::support::puppets::echo;
use crate::support::world::{Setup, registered};

const HOUR: Duration = Duration::from_secs(3_600);

fn hasty(limits: &mut Limits) {
    limits.retention_events_s = 60;
    limits.retention_tasks_s = 120;
    limits.resume_window_s = 24 * 3_600;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_compacted_inside_the_resume_window() {
    let world = Setup::new().limits(hasty).agent(registered("echo", echo())).start();
    let client = world.client();
    let task = client.send(say("hello")).await.unwrap();
    tokio::time::sleep(23 * HOUR).await;
    let resumed = client.after(1).subscribe(&task.id).await.unwrap();
    assert_eq!(numbers(resumed).await, [2, 3]);
    assert_eq!(client.task(&task.id).await.unwrap().state(), TaskState::Completed);
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(client.task(&task.id).await.unwrap_err().to_string(), "Task not found");
}

#[tokio::test(start_paused = true)]
async fn after_the_window_a_snapshot_stands_for_what_is_gone() {
    let keeps = |limits: &mut Limits| {
        hasty(limits);
        limits.retention_tasks_s = 1_000 * 3_600;
    };
    let world = Setup::new().limits(keeps).agent(registered("echo", echo())).start();
    let client = world.client();
    let task = client.send(say("hello")).await.unwrap();
    tokio::time::sleep(25 * HOUR).await;
    let mut resumed = client.after(1).subscribe(&task.id).await.unwrap();
    let frame = next_frame(&mut resumed).await.unwrap().unwrap();
    assert_eq!((frame.seq, frame.truncated), (Some(3), true));
}
