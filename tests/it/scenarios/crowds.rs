//! Many at once: runs beyond the limit wait their turn, and writers of one task do not lose each other's work.

use std::sync::Arc;

use switchboard_core::model::{TaskState, TaskView, Update};
use switchboard_engine::runs::{AgentSource, Traits, Turn};

use crate::support::callers::{at_once, reply_to, say, soon};
use crate::support::on_both_stores;
use crate::support::pictures::{next_frame, numbers};
use crate::support::puppets::{echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, registered};

on_both_stores!(many_writers_of_one_task_lose_nothing);

async fn many_writers_of_one_task_lose_nothing(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world =
        Setup::on(stock).limits(|limits| limits.commit_attempts_max = 64).agent(registered("puppet", agent)).start();
    let task = world.client().start("first").await;
    let act = acts.next().await;
    let senders: Vec<_> = (0..8)
        .map(|number| world.client().sending(at_once(reply_to(&task.id, &format!("message {number}")))))
        .collect();
    let writers: Vec<_> = (0..8)
        .map(|number| {
            let turn = act.turn.clone();
            tokio::spawn(async move { turn.text_artifact(format!("answer {number}")).await })
        })
        .collect();
    for sender in senders {
        soon(sender).await.unwrap().unwrap();
    }
    for writer in writers {
        soon(writer).await.unwrap().unwrap();
    }
    act.returns();
    for _ in 0..8 {
        acts.next().await.returns();
    }
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!((task.history.len(), task.artifacts.len()), (9, 8));
}

#[tokio::test(start_paused = true)]
async fn runs_beyond_the_limit_wait_until_one_has_ended() {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::new().limits(|limits| limits.runs_max = 2).agent(registered("puppet", agent)).start();
    let client = world.client();
    let mut tasks = Vec::new();
    for text in ["a", "b", "c", "d"] {
        tasks.push(client.start(text).await);
    }
    let (one, two) = (acts.next().await, acts.next().await);
    assert_eq!((one.turn.text().as_str(), two.turn.text().as_str()), ("a", "b"));
    tokio::time::sleep(std::time::Duration::from_secs(100)).await;
    assert!(acts.is_empty().await);
    // Waiting is no work: the third still has all its time, and a canceled one need not wait.
    assert_eq!(client.cancel(&tasks[3].id).await.unwrap().state(), TaskState::Canceled);
    one.returns();
    let three = acts.next().await;
    assert_eq!((three.turn.text().as_str(), three.turn.attempt()), ("c", 1));
    tokio::time::sleep(std::time::Duration::from_secs(250)).await;
    three.returns();
    client.task_in(&tasks[2].id, TaskState::Completed).await;
    drop(two);
}

#[tokio::test(start_paused = true)]
async fn a_full_store_refuses_new_tasks_while_all_of_its_own_are_active() {
    let (agent, acts) = puppet(Traits::default());
    let stock = Stock::memory_of(2);
    let world = Setup::on(stock).agent(registered("puppet", agent)).agent(registered("echo", echo())).start();
    let client = world.client();
    let first = client.start("a").await;
    client.start("b").await;
    let act = acts.next().await;
    let _other = acts.next().await;
    let refused = client.send(at_once(say("c"))).await.unwrap_err();
    let expected = "Temporarily unavailable: the store is full and every task in it is still active";
    assert_eq!(refused.to_string(), expected);
    act.returns();
    client.task_in(&first.id, TaskState::Completed).await;
    client.start("c").await;
    assert_eq!(
        client.task(&first.id).await.unwrap_err().to_string(),
        "Task not found",
        "the oldest ended one made room"
    );
}

/// Says a few things, then does what its message says.
fn busy() -> AgentSource {
    from_fn(Traits::default(), |turn: Turn| async move {
        let mut writer = turn.artifact_writer();
        for number in 0..5 {
            writer.text(format!("{number} ")).await?;
            tokio::task::yield_now().await;
        }
        match turn.text().split(' ').next() {
            Some("ask") => turn.ask("which?").await?,
            Some("fail") => turn.fail("no").await?,
            Some("wait") => turn.cancelled().await,
            _ => turn.working("nearly done").await?,
        }
        Ok(())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_writers_and_cancels_on_all_threads_agree_on_every_task() {
    let world = Arc::new(Setup::new().agent(registered("busy", busy())).start());
    let mut stories = Vec::new();
    for number in 0..400 {
        let world = world.clone();
        stories.push(tokio::spawn(async move {
            let client = world.client();
            let verb = ["go", "ask", "fail", "wait"][number % 4];
            let mut stream = client.stream(say(&format!("{verb} {number}"))).await.unwrap();
            let first = next_frame(&mut stream).await.unwrap().unwrap();
            let Update::Task(TaskView { task, .. }) = &first.update.update else { panic!("the task comes first") };
            let id = task.id.clone();
            let followed = tokio::spawn(numbers(client.after(0).subscribe(&id).await.unwrap()));
            let replying = (number % 3 == 0).then(|| client.sending(at_once(reply_to(&id, "go on"))));
            if verb == "wait" || number % 5 == 0 || verb == "ask" {
                let _ = soon(client.cancel(&id)).await;
            }
            if let Some(replying) = replying {
                let _ = soon(replying).await.unwrap();
            }
            // Whatever came first, the task ends, and both readers have seen all of it without a gap.
            if verb == "ask" {
                let _ = soon(client.cancel(&id)).await;
            }
            let followed = soon(followed).await.unwrap();
            let last = *followed.last().unwrap();
            assert_eq!(followed, (1..=last).collect::<Vec<u64>>(), "{verb} {number}");
            let sent = numbers(stream).await;
            assert_eq!(sent, (2..2 + sent.len() as u64).collect::<Vec<u64>>(), "{verb} {number}");
            assert!(client.task(&id).await.unwrap().state().is_terminal(), "{verb} {number}");
        }));
    }
    for story in stories {
        soon(story).await.unwrap();
    }
    assert_eq!(world.engine.runs_alive(), 0);
}
