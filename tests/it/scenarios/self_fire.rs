//! Asynchronous sends that are started by posts of the server to itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{TaskId, TaskState};
use switchboard_engine::ports::Dispatch;
use switchboard_engine::runs::{Traits, Turn};

use crate::support::callers::{at_once, say};
use crate::support::puppets::{Acts, echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

/// Notes what was posted. A post is lost on its way, as far as the engine knows, and takes its time.
#[derive(Default)]
struct Posts {
    made: Mutex<Vec<TaskId>>,
    calls: Mutex<Vec<String>>,
    takes: Duration,
}

impl Posts {
    fn count(&self) -> usize {
        self.made.lock().unwrap().len()
    }
}

impl Dispatch for Posts {
    fn post(&self, task: &TaskId) -> BoxFuture<'static, ()> {
        self.made.lock().unwrap().push(task.clone());
        Box::pin(tokio::time::sleep(self.takes))
    }

    fn post_call(&self, call: &str) -> BoxFuture<'static, ()> {
        self.calls.lock().unwrap().push(call.to_owned());
        Box::pin(std::future::ready(()))
    }
}

fn started(stock: Stock, takes: Duration) -> (World, Acts, Arc<Posts>) {
    let posts = Arc::new(Posts { takes, ..Posts::default() });
    let (agent, acts) = puppet(Traits::default());
    let setup = Setup::on(stock).agent(registered("puppet", agent)).self_fire(posts.clone());
    (setup.start(), acts, posts)
}

#[tokio::test(start_paused = true)]
async fn a_send_only_enqueues_and_a_post_starts_the_run_once() {
    let (world, acts, posts) = started(Stock::memory(), Duration::ZERO);
    let task = world.client().send(at_once(say("hello"))).await.unwrap();
    assert_eq!((task.state(), posts.made.lock().unwrap().clone()), (TaskState::Submitted, vec![task.id.clone()]));
    assert!(acts.is_empty().await, "nothing runs before the post arrives");
    assert_eq!(world.engine.process(&task.id).await, Ok(true));
    let act = acts.next().await;
    assert_eq!((act.turn.text().as_str(), act.turn.attempt(), act.turn.was_interrupted()), ("hello", 1, false));
    // The same post again, and one for a task that there is not.
    assert_eq!(world.engine.process(&task.id).await, Ok(false));
    assert_eq!(world.engine.process(&TaskId::from("nobody")).await, Ok(false));
    act.turn.complete("done").await.unwrap();
    act.returns();
    world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(world.engine.process(&task.id).await, Ok(false));
    assert!(acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn a_send_waits_for_its_post_a_quarter_of_a_second_at_most() {
    let (world, _acts, _) = started(Stock::memory(), Duration::from_secs(60));
    let begun = tokio::time::Instant::now();
    world.client().send(at_once(say("hello"))).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn a_lost_post_is_made_again_and_the_sweeper_never_runs_the_task_itself() {
    let (world, acts, posts) = started(Stock::memory(), Duration::ZERO);
    let task = world.client().send(at_once(say("hello"))).await.unwrap();
    let mut made = Vec::new();
    for _ in 0..24 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        made.push(posts.count());
    }
    assert_eq!(made[0], 1, "it is left alone at first");
    // After ten seconds, then twenty and forty seconds later, each at the next look of the sweeper.
    assert!(made[2] == 2 && made[5] == 2 && made[8] == 3 && *made.last().unwrap() <= 5, "{made:?}");
    assert!(acts.is_empty().await);
    // It is still the first post that starts it, whenever it comes.
    assert_eq!(world.engine.process(&task.id).await, Ok(true));
    acts.next().await.returns();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_not_started_within_three_minutes_fails() {
    let (world, acts, _) = started(Stock::memory(), Duration::ZERO);
    let task = world.client().send(at_once(say("hello"))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(170)).await;
    assert_eq!(world.client().task(&task.id).await.unwrap().state(), TaskState::Submitted);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let failed = world.client().task(&task.id).await.unwrap();
    assert_eq!(failed.state(), TaskState::Failed);
    let said = failed.status.message.as_ref().unwrap().text();
    assert!(said.contains("it was not started within 180 s"), "{said}");
    assert_eq!(world.engine.process(&task.id).await, Ok(false));
    assert!(acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn a_canceled_task_is_not_started() {
    let (world, acts, _) = started(Stock::memory(), Duration::ZERO);
    let task = world.client().send(at_once(say("hello"))).await.unwrap();
    assert_eq!(world.client().cancel(&task.id).await.unwrap().state(), TaskState::Canceled);
    assert_eq!(world.engine.process(&task.id).await, Ok(false));
    assert!(acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_next_process_posts_and_a_post_finds_the_task() {
    let (world, _acts, _) = started(Stock::memory(), Duration::ZERO);
    let task = world.client().send(at_once(say("hello"))).await.unwrap();
    let (world, acts, posts) = started(world.crash().await, Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(posts.made.lock().unwrap().first(), Some(&task.id));
    assert_eq!(world.engine.process(&task.id).await, Ok(true));
    acts.next().await.returns();
}

/// One post when the call is handed over and one for each further look, made before the look is due; what no post comes for is found within a
/// minute.
#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_posted_for_and_found_without_a_post() {
    let posts = Arc::new(Posts::default());
    let (mail, acts) = puppet(Traits::default().with_run_max(Duration::from_secs(86_400)));
    let desk = from_fn(Traits::default(), |turn: Turn| async move {
        match turn.called_back().await? {
            Some(back) => Ok(turn.answer(back.text).await?),
            None => {
                turn.call("mail", turn.text()).await?;
                Ok(turn.ask("waiting").await?)
            }
        }
    });
    let setup = Setup::new().agent(registered("desk", desk)).agent(registered("mail", mail));
    let world = setup.self_fire(posts.clone()).start();
    let calls = || posts.calls.lock().unwrap().clone();
    // The loop has looked once when it began, and looks again in a minute.
    let task = world.client().send(say("a letter")).await.unwrap();
    // The other agent was called by an asynchronous send, which a post starts, too.
    while posts.count() == 0 {
        tokio::task::yield_now().await;
    }
    let called = posts.made.lock().unwrap()[0].clone();
    assert_eq!(world.engine.process(&called).await, Ok(true));
    let act = acts.next().await;
    while calls().is_empty() {
        tokio::task::yield_now().await;
    }
    let id = calls()[0].clone();
    // The look that the post asks for finds the other agent at work, and asks for the next one.
    assert_eq!(world.engine.process_call(&id).await, Ok(true));
    assert_eq!(calls(), [id.clone(), id.clone()]);
    act.turn.answer("sent").await.unwrap();
    act.returns();
    // That post is lost.
    tokio::time::sleep(Duration::from_secs(61)).await;
    // What is delivered is an asynchronous send, too.
    assert_eq!(posts.made.lock().unwrap().last(), Some(&task.id));
    assert_eq!(world.engine.process(&task.id).await, Ok(true));
    let ended = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(ended.artifacts[0].text(), "sent");
    assert_eq!(calls().len(), 2, "what is over is not posted for");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_is_served_without_a_post() {
    let posts = Arc::new(Posts::default());
    let world = Setup::new().agent(registered("echo", echo())).self_fire(posts.clone()).start();
    assert_eq!(world.client().send(say("hello")).await.unwrap().state(), TaskState::Completed);
    assert_eq!(posts.count(), 0);
}
