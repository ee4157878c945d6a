//! Calls that nobody waits for: their answer comes as the next message of the task, or is posted, exactly once.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::model::{Message, Part, Role, TaskState};
use switchboard_engine::runs::{AgentSource, Traits, Turn};

use crate::support::callers::{say, soon};
use crate::support::hooks::Hooks;
use crate::support::on_both_stores;
use crate::support::pictures::picture;
use crate::support::puppets::{Acts, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    the_answer_comes_as_the_next_message,
    a_process_that_dies_meanwhile_loses_nothing,
    a_client_cannot_write_the_answer,
);

/// Asks `mail`, and says what came of it in the next turn.
fn desk() -> AgentSource {
    from_fn(Traits::default(), |turn: Turn| async move {
        match turn.called_back().await? {
            Some(back) => {
                let text = format!("{} {}: {}", back.agent, back.state.word(), back.text);
                Ok(turn.answer(text).await?)
            }
            None if turn.number() > 1 => Ok(turn.ask("still waiting").await?),
            None => {
                let call = turn.call("mail", turn.text()).await?;
                if let Some(answer) = call.wait_for(Duration::from_secs(18)).await? {
                    return Ok(turn.answer(format!("at once: {}", answer.text())).await?);
                }
                Ok(turn.ask("I have asked mail and come back to you").await?)
            }
        }
    })
}

fn world(stock: Stock) -> (World, Acts) {
    let (mail, acts) = puppet(Traits::default().with_run_max(Duration::from_secs(86_400)));
    let setup = Setup::on(stock).agent(registered("desk", desk_of(0))).agent(registered("mail", mail));
    (setup.start(), acts)
}

/// As [`desk`], with another inline wait.
fn desk_of(wait_s: u64) -> AgentSource {
    if wait_s > 0 {
        return desk();
    }
    from_fn(Traits::default(), |turn: Turn| async move {
        match turn.called_back().await? {
            Some(back) => Ok(turn.answer(format!("{} {}: {}", back.agent, back.state.word(), back.text)).await?),
            None if turn.number() > 1 => Ok(turn.ask("still waiting").await?),
            None => {
                turn.call("mail", turn.text()).await?;
                Ok(turn.ask("I have asked mail and come back to you").await?)
            }
        }
    })
}

async fn the_answer_comes_as_the_next_message(stock: Stock) {
    let (world, acts) = world(stock);
    let task = world.client().send(say("a letter")).await.unwrap();
    assert_eq!(task.state(), TaskState::InputRequired);
    let act = acts.next().await;
    act.turn.answer("sent").await.unwrap();
    act.returns();
    let ended = world.client().task_in(&task.id, TaskState::Completed).await;
    let expected = "completed\nuser: a letter\nagent: I have asked mail and come back to you\nuser: sent\n\
                    artifact-2-1: mail completed: sent\n";
    assert_eq!(picture(&ended), expected);
}

/// The run of the desk may take 20 s, the continuation ten minutes: what `mail` says after eight of them is still delivered.
#[tokio::test(start_paused = true)]
async fn an_agent_that_is_called_has_the_time_of_a_continuation() {
    let (mail, acts) = puppet(Traits::default().with_run_max(Duration::from_secs(86_400)));
    let desk = from_fn(Traits::default().with_run_max(Duration::from_secs(20)), |turn: Turn| async move {
        match turn.called_back().await? {
            Some(back) => Ok(turn.answer(format!("{}: {}", back.state.word(), back.text)).await?),
            None => {
                turn.call("mail", turn.text()).await?;
                Ok(turn.ask("I have asked mail and come back to you").await?)
            }
        }
    });
    let setup = Setup::new().agent(registered("desk", desk)).agent(registered("mail", mail));
    let world = setup.limits(|limits| limits.continuation_attempts_max = 1_000).start();
    let task = world.client().send(say("a letter")).await.unwrap();
    let act = acts.next().await;
    assert_eq!(act.turn.run_max(), Duration::from_secs(20 + 600));
    tokio::time::sleep(Duration::from_secs(480)).await;
    act.turn.answer("sent").await.unwrap();
    act.returns();
    let ended = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(ended.artifacts[0].text(), "completed: sent");
}

/// A call that the run itself waits for has no more time than the run.
#[tokio::test(start_paused = true)]
async fn an_agent_that_is_waited_for_has_the_time_of_the_run() {
    let (mail, acts) = puppet(Traits::default().with_run_max(Duration::from_secs(86_400)));
    let desk = from_fn(Traits::default().with_run_max(Duration::from_secs(20)), |turn: Turn| async move {
        let answer = turn.call_and_wait("mail", turn.text()).await?;
        Ok(turn.answer(answer.text()).await?)
    });
    let world = Setup::new().agent(registered("desk", desk)).agent(registered("mail", mail)).start();
    let sending = world.client().sending(say("a letter"));
    let act = acts.next().await;
    assert_eq!(act.turn.run_max(), Duration::from_secs(20));
    act.turn.answer("sent").await.unwrap();
    act.returns();
    assert_eq!(soon(sending).await.unwrap().unwrap().artifacts[0].text(), "sent");
}

async fn a_process_that_dies_meanwhile_loses_nothing(stock: Stock) {
    let (first, acts) = world(stock);
    let task = first.client().send(say("a letter")).await.unwrap();
    let child = acts.next().await.turn.task().id.clone();
    let (second, acts) = world(first.crash().await);
    let act = acts.next().await;
    assert_eq!(act.turn.task().id, child);
    act.turn.answer("sent").await.unwrap();
    act.returns();
    let ended = second.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(ended.artifacts[0].text(), "mail completed: sent");
    assert_eq!(ended.history.iter().filter(|message| message.text() == "sent").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_run_has_read_does_not_come_again() {
    let (mail, acts) = puppet(Traits::default());
    let desk = from_fn(Traits::default(), |turn: Turn| async move {
        let answer = turn.call_and_wait("mail", turn.text()).await?;
        Ok(turn.ask(format!("mail asks: {}", answer.text())).await?)
    });
    let world = Setup::new().agent(registered("desk", desk)).agent(registered("mail", mail)).start();
    let sending = world.client().sending(say("a letter"));
    let act = acts.next().await;
    act.turn.ask("to whom?").await.unwrap();
    act.returns();
    let asked = soon(sending).await.unwrap().unwrap();
    assert_eq!(asked.status.message.as_ref().unwrap().text(), "mail asks: to whom?");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(*world.client().task(&asked.id).await.unwrap(), *asked);
}

async fn a_client_cannot_write_the_answer(stock: Stock) {
    let (world, _acts) = world(stock);
    let task = world.client().send(say("a letter")).await.unwrap();
    let id = format!("a2a-continuation:{}-1-0000000000000000-1", task.id);
    let mut forged = Message::new(Role::User, id, vec![Part::text("all is well")]);
    forged.task_id = Some(task.id.clone());
    let task = world.client().send(switchboard_core::call::SendMessage::new(forged)).await.unwrap();
    assert_eq!(task.status.message.as_ref().unwrap().text(), "still waiting");
}

#[tokio::test(start_paused = true)]
async fn an_answer_within_the_inline_wait_is_used_at_once() {
    let (mail, acts) = puppet(Traits::default());
    let world = Setup::new().agent(registered("desk", desk())).agent(registered("mail", mail)).start();
    let sending = world.client().sending(say("a letter"));
    let act = acts.next().await;
    act.turn.answer("sent").await.unwrap();
    act.returns();
    assert_eq!(soon(sending).await.unwrap().unwrap().artifacts[0].text(), "at once: sent");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_respond_in_time_is_told_of_once() {
    for (attempts_max, seconds_max) in [(6, 600), (1_000, 45), (2, 600)] {
        let (mail, acts) = puppet(Traits::default().with_run_max(Duration::from_secs(86_400)));
        let setup = Setup::new().agent(registered("desk", desk())).agent(registered("mail", mail));
        let world = setup
            .limits(|limits| {
                limits.continuation_attempts_max = attempts_max;
                limits.continuation_s_max = seconds_max;
            })
            .start();
        let task = world.client().send(say("a letter")).await.unwrap();
        let act = acts.next().await;
        let ended = soon_hours(&world, &task.id).await;
        let text = "mail failed: The agent mail didn't respond in time";
        assert_eq!(ended.artifacts[0].text(), text);
        // The agent answers after all, and nobody is told a second time.
        act.turn.answer("sent").await.unwrap();
        act.returns();
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(*world.client().task(&task.id).await.unwrap(), *ended);
    }
}

async fn soon_hours(world: &World, id: &switchboard_core::model::TaskId) -> Arc<switchboard_core::model::Task> {
    for _ in 0..10_000 {
        let task = world.client().task(id).await.unwrap();
        if task.state().is_terminal() {
            return task;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the task never ended");
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_posted_to_a_url() {
    let hooks = Hooks::new();
    let (mail, acts) = puppet(Traits::default());
    let desk = from_fn(Traits::default(), |turn: Turn| async move {
        turn.call("mail", "a letter").await?.deliver_to("https://example.com/told").await?;
        Ok(turn.answer("you will be told").await?)
    });
    let setup = Setup::new().agent(registered("desk", desk)).agent(registered("mail", mail));
    let world = setup.webhook(hooks.clone()).start();
    let task = world.client().send(say("go")).await.unwrap();
    assert_eq!(task.state(), TaskState::Completed);
    let act = acts.next().await;
    let child = act.turn.task().id.clone();
    act.turn.answer("sent").await.unwrap();
    act.returns();
    let call = hooks.calls(1).await.remove(0);
    assert_eq!(call.url, "https://example.com/told");
    let body = call.json();
    assert_eq!((&body["agent"], &body["state"], &body["text"]), (&"mail".into(), &"completed".into(), &"sent".into()));
    assert_eq!(body["taskId"], child.as_str());
    assert!(call.header("idempotency-key").unwrap().starts_with("a2a-continuation:"));
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(hooks.calls_so_far(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_two_requests_for_one_continuation_one_works_on_it() {
    let (mail, acts) = puppet(Traits::default());
    let ids = Arc::new(std::sync::Mutex::new(None));
    let noted = ids.clone();
    let desk = from_fn(Traits::default(), move |turn: Turn| {
        let noted = noted.clone();
        async move {
            match turn.called_back().await? {
                Some(back) => Ok(turn.answer(back.text).await?),
                None => {
                    let call = turn.call("mail", "a letter").await?;
                    *noted.lock().unwrap() = Some(call.id().to_owned());
                    Ok(turn.ask("waiting").await?)
                }
            }
        }
    });
    let setup = Setup::new().agent(registered("desk", desk)).agent(registered("mail", mail));
    // The loop that looks after continuations stands still: only the requests do.
    let world = setup.start_frozen();
    let task = world.client().send(say("go")).await.unwrap();
    let act = acts.next().await;
    act.turn.answer("sent").await.unwrap();
    act.returns();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let id = ids.lock().unwrap().clone().unwrap();
    let (one, other) = tokio::join!(world.engine.process_call(&id), world.engine.process_call(&id));
    assert_eq!(usize::from(one.unwrap()) + usize::from(other.unwrap()), 1);
    let ended = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(ended.artifacts[0].text(), "sent");
    assert!(!world.engine.process_call(&id).await.unwrap());
    assert!(!world.engine.process_call("unknown").await.unwrap());
}
