//! Agents that call other agents: the same task is found again after a crash, a cancellation and the time that is left go down, and no
//! chain of calls is longer than it may be.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::call::{BoxFuture, Caller, Endpoint, ListTasks, Owner, Reply, Request};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, Json, JsonLimits, Message, Part, Role, TaskState};
use switchboard_engine::ports::{Callee, CalleeError, Callees};
use switchboard_engine::runs::{AgentCallError, AgentSource, Traits, Turn};

use crate::support::callers::{at_once, say, soon, still_waits, trace};
use crate::support::on_both_stores;
use crate::support::pictures::picture;
use crate::support::puppets::{echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    an_agent_calls_another_and_uses_its_answer,
    a_call_after_a_crash_finds_the_task_of_the_first_attempt,
    a_canceled_task_cancels_what_it_called,
    a_paused_task_that_is_canceled_cancels_what_it_called,
    equal_calls_are_different_calls,
    a_question_of_the_other_agent_is_answered_by_the_next_call,
);

/// Asks the agent `mail` what it was asked.
fn asking() -> AgentSource {
    from_fn(Traits::default(), |turn: Turn| async move {
        let answer = turn.call_and_wait("mail", turn.text()).await?;
        Ok(turn.answer(format!("{} says {}", answer.state().word(), answer.text())).await?)
    })
}

async fn count(world: &World, agent: &str) -> usize {
    world.client_of(agent).list(ListTasks::default()).await.unwrap().tasks.len()
}

async fn an_agent_calls_another_and_uses_its_answer(stock: Stock) {
    let (mail, acts) = puppet(Traits::default());
    let setup = Setup::on(stock).agent(registered("desk", asking())).agent(registered("mail", mail));
    let world = setup.start();
    let client = world.client().with(|caller| caller.trace = Some(trace()));
    let sending = client.sending(say("a letter"));
    let act = acts.next().await;
    let turn = &act.turn;
    let said: Value = serde_json::from_str(turn.metadata().unwrap().as_str()).unwrap();
    let parent = said["parentRunId"].as_str().unwrap().to_owned();
    let id = turn.message().message_id.to_string();
    assert_eq!(
        said,
        json!({
            "callerApp": "desk", "selectedReceiverApp": "mail", "callerThreadId": turn.task().context_id.as_str(),
            "parentRunId": parent, "parentTurnId": "1", "invocationId": id, "delegationDepth": 1,
            "visitedApps": ["desk"], "switchboard.runSecondsMax": 300,
        })
    );
    assert_eq!(turn.trace(), Some(&trace()));
    assert_eq!(turn.run_max(), Duration::from_secs(300));
    assert!(id.starts_with(&format!("{parent}-1-")), "{id}");
    turn.answer("sent").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&task), "completed\nuser: a letter\nartifact-1-1: completed says sent\n");
    assert_eq!(task.id.as_str(), parent);
}

async fn a_call_after_a_crash_finds_the_task_of_the_first_attempt(stock: Stock) {
    let setup = |stock: Stock| {
        let (mail, acts) = puppet(Traits::default());
        let setup = Setup::on(stock).agent(registered("desk", asking())).agent(registered("mail", mail));
        (setup.start(), acts)
    };
    let (world, acts) = setup(stock);
    let task = world.client().start("a letter").await;
    let child = acts.next().await.turn.task().id.clone();
    let stock = world.crash().await;

    let (world, acts) = setup(stock);
    let act = acts.next().await;
    assert_eq!((&act.turn.task().id, act.turn.attempt()), (&child, 2));
    act.turn.answer("sent").await.unwrap();
    act.returns();
    let ended = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(ended.artifacts[0].text(), "completed says sent");
    assert_eq!(count(&world, "mail").await, 1);
}

async fn a_canceled_task_cancels_what_it_called(stock: Stock) {
    let (mail, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("desk", asking())).agent(registered("mail", mail)).start();
    let task = world.client().start("a letter").await;
    let act = acts.next().await;
    let child = act.turn.task().id.clone();
    let canceling = tokio::spawn({
        let (client, id) = (world.client(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    assert_eq!(soon(canceling).await.unwrap().unwrap().state(), TaskState::Canceled);
    assert_eq!(world.client_of("mail").task(&child).await.unwrap().state(), TaskState::Canceled);
}

/// The run is over, so the call is found in the store.
async fn a_paused_task_that_is_canceled_cancels_what_it_called(stock: Stock) {
    let (mail, acts) = puppet(Traits::default());
    let desk = from_fn(Traits::default(), |turn: Turn| async move {
        turn.call("mail", turn.text()).await?;
        Ok(turn.ask("what else?").await?)
    });
    let world = Setup::on(stock).agent(registered("desk", desk)).agent(registered("mail", mail)).start();
    let task = world.client().send(say("a letter")).await.unwrap();
    assert_eq!(task.state(), TaskState::InputRequired);
    let act = acts.next().await;
    world.client().cancel(&task.id).await.unwrap();
    soon(act.turn.cancelled()).await;
}

async fn equal_calls_are_different_calls(stock: Stock) {
    let desk = from_fn(Traits::default(), |turn: Turn| async move {
        let (one, other) = tokio::join!(turn.call("mail", "again"), turn.call("mail", "again"));
        let (one, other) = (one?, other?);
        assert_ne!(one.id(), other.id());
        let other = other.wait().await?;
        let first = one.wait().await?;
        let (one, other) = (first.task().unwrap().id.clone(), other.task().unwrap().id.clone());
        assert_ne!(one, other);
        Ok(turn.answer("done").await?)
    });
    let world = Setup::on(stock).agent(registered("desk", desk)).agent(registered("mail", echo())).start();
    let task = world.client().send(say("go")).await.unwrap();
    assert_eq!(picture(&task), "completed\nuser: go\nartifact-1-1: done\n");
    assert_eq!(count(&world, "mail").await, 2);
}

async fn a_question_of_the_other_agent_is_answered_by_the_next_call(stock: Stock) {
    let mail = from_fn(Traits::default(), |turn: Turn| async move {
        match turn.number() {
            1 => Ok(turn.ask("to whom?").await?),
            _ => Ok(turn.answer(format!("sent to {}", turn.text())).await?),
        }
    });
    let desk = from_fn(Traits::default(), |turn: Turn| async move {
        let question = turn.call_and_wait("mail", "a letter").await?;
        assert_eq!((question.state(), question.text()), (TaskState::InputRequired, "to whom?".to_owned()));
        let mut reply = Message::new(Role::User, "", vec![Part::text("Alice")]);
        reply.task_id = Some(question.task().unwrap().id.clone());
        let answer = turn.call_and_wait("mail", reply).await?;
        Ok(turn.answer(answer.text()).await?)
    });
    let world = Setup::on(stock).agent(registered("desk", desk)).agent(registered("mail", mail)).start();
    let task = world.client().send(say("go")).await.unwrap();
    assert_eq!(picture(&task), "completed\nuser: go\nartifact-1-1: sent to Alice\n");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_time_is_over_takes_what_it_called_with_it() {
    let (mail, acts) = puppet(Traits::default());
    let desk = AgentSource::with_traits(asking(), |traits| traits.with_run_max(Duration::from_secs(10)));
    let world = Setup::new().agent(registered("desk", desk)).agent(registered("mail", mail)).start();
    let task = world.client().start("a letter").await;
    let act = acts.next().await;
    assert!(act.turn.run_max() <= Duration::from_secs(10), "{:?}", act.turn.run_max());
    let child = act.turn.task().id.clone();
    let ended = world.client().task_in(&task.id, TaskState::Failed).await;
    assert!(picture(&ended).contains("took too long") || picture(&ended).contains("time"), "{}", picture(&ended));
    let child = soon(async {
        loop {
            let child = world.client_of("mail").task(&child).await.unwrap();
            if child.state().is_terminal() {
                return child;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    assert!(matches!(child.await.state(), TaskState::Canceled | TaskState::Failed));
    drop(act);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_cancels_what_it_called() {
    let (mail, acts) = puppet(Traits::default());
    let desk = from_fn(Traits::default(), |turn: Turn| async move {
        turn.call("mail", "a letter").await?;
        Ok(turn.fail("changed my mind").await?)
    });
    let world = Setup::new().agent(registered("desk", desk)).agent(registered("mail", mail)).start();
    let task = world.client().send(say("go")).await.unwrap();
    assert_eq!(task.state(), TaskState::Failed);
    soon(acts.next().await.turn.cancelled()).await;
}

#[tokio::test(start_paused = true)]
async fn a_completed_task_leaves_what_it_called_at_work() {
    let (mail, acts) = puppet(Traits::default());
    let desk = from_fn(Traits::default(), |turn: Turn| async move {
        turn.call("mail", "a letter").await?;
        Ok(turn.answer("on its way").await?)
    });
    let world = Setup::new().agent(registered("desk", desk)).agent(registered("mail", mail)).start();
    assert_eq!(world.client().send(say("go")).await.unwrap().state(), TaskState::Completed);
    let act = acts.next().await;
    assert!(still_waits(&mut Box::pin(act.turn.cancelled())).await);
}

/// Sends with metadata, and gives the state and the text of the status.
async fn refused(world: &World, metadata: Value) -> (TaskState, String) {
    let mut send = say("go");
    send.metadata = Some(Json::parse(&metadata.to_string(), JsonLimits::default()).unwrap());
    let task = world.client().send(send).await.unwrap();
    let text = task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
    (task.state(), text)
}

#[tokio::test(start_paused = true)]
async fn circles_long_chains_and_unknown_names_are_refused_by_name() {
    let world = Setup::new().agent(registered("desk", asking())).agent(registered("mail", echo())).start();
    for (metadata, expected) in [
        (
            json!({"visitedApps": ["Mail"], "delegationDepth": 1}),
            "DELEGATION_CYCLE: agent \"mail\" has had this message already (Mail > mail)",
        ),
        (
            json!({"visitedApps": ["desk", "other"]}),
            "DELEGATION_CYCLE: agent \"desk\" has had this message already (desk > other > desk)",
        ),
        (
            json!({"delegationDepth": 3}),
            "TOO_MANY_HOPS: agent \"mail\" is not called, because the message was passed on 3 times already",
        ),
    ] {
        assert_eq!(refused(&world, metadata).await, (TaskState::Failed, expected.to_owned()));
    }
    assert_eq!(count(&world, "mail").await, 0);

    for (name, expected) in [
        ("desk", "SELF_CALL: agent \"desk\" cannot call itself"),
        ("DESK", "SELF_CALL: agent \"desk\" cannot call itself"),
        ("nobody", "UNKNOWN_AGENT: no agent is called \"nobody\"; there are: desk, mail"),
    ] {
        let desk = from_fn(Traits::default(), move |turn: Turn| async move {
            turn.call(name, "hello").await?;
            Ok(())
        });
        let world = Setup::new().agent(registered("desk", desk)).agent(registered("mail", echo())).start();
        assert_eq!(refused(&world, json!({})).await, (TaskState::Failed, expected.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_chain_is_three_calls_long_at_most() {
    let mut setup = Setup::new();
    for at in 0..5 {
        let next = format!("a{}", at + 1);
        let agent = from_fn(Traits::default(), move |turn: Turn| {
            let next = next.clone();
            async move {
                match turn.call_and_wait(&next, turn.text()).await {
                    Ok(answer) => Ok(turn.answer(answer.text()).await?),
                    Err(error) => Ok(turn.answer(format!("{} at {}", error.name(), turn.agent())).await?),
                }
            }
        });
        setup = setup.agent(registered(&format!("a{at}"), agent));
    }
    let task = setup.start().client().send(say("go")).await.unwrap();
    assert_eq!(task.artifacts[0].text(), "TOO_MANY_HOPS at a3");
}

#[tokio::test(start_paused = true)]
async fn a_turn_makes_a_hundred_calls_at_most() {
    let desk = from_fn(Traits::default(), |turn: Turn| async move {
        for _ in 0..100 {
            turn.call_and_wait("mail", "hello").await?;
        }
        let error = turn.call("mail", "hello").await.unwrap_err();
        Ok(turn.answer(error.to_string()).await?)
    });
    let world = Setup::new().agent(registered("desk", desk)).agent(registered("mail", echo())).start();
    let task = world.client().send(say("go")).await.unwrap();
    assert_eq!(task.artifacts[0].text(), "TOO_MANY_CALLS: a turn may make 100 calls");
}

/// An agent elsewhere, which is an agent of another world.
struct Elsewhere {
    endpoint: Arc<dyn Endpoint>,
    recognises_repeats: bool,
    is_down: AtomicBool,
    sends: AtomicUsize,
    /// Whether the answer to the next send is lost.
    loses_answers: AtomicBool,
    lost: Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
}

impl Elsewhere {
    fn new(world: &World, recognises_repeats: bool) -> Arc<Self> {
        Arc::new(Self {
            endpoint: world.engine.endpoint("mail").unwrap(),
            recognises_repeats,
            is_down: AtomicBool::new(false),
            sends: AtomicUsize::new(0),
            loses_answers: AtomicBool::new(false),
            lost: Mutex::new(None),
        })
    }
}

struct Found(Arc<Elsewhere>);

impl Callees for Found {
    fn find<'a>(&'a self, _: &'a Owner, name: &'a str) -> BoxFuture<'a, Result<Callee, CalleeError>> {
        let found = match name {
            "mail" if self.0.is_down.load(Ordering::SeqCst) => Err(CalleeError::Unavailable("it is down".to_owned())),
            "mail" => Ok(Callee {
                id: "mail".to_owned(),
                endpoint: Arc::new(Found(self.0.clone())),
                recognises_repeats: self.0.recognises_repeats,
                is_local: false,
            }),
            _ => Err(CalleeError::Unknown),
        };
        Box::pin(std::future::ready(found))
    }

    fn names(&self) -> Vec<String> {
        vec!["mail".to_owned()]
    }
}

impl Endpoint for Found {
    fn call(&self, caller: Caller, request: Request) -> BoxFuture<'_, Result<Reply, ProtocolError>> {
        Box::pin(async move {
            let is_send = matches!(request, Request::SendMessage(_));
            let reply = self.0.endpoint.call(caller, request).await;
            if is_send {
                self.0.sends.fetch_add(1, Ordering::SeqCst);
                if self.0.loses_answers.load(Ordering::SeqCst) {
                    if let Some(lost) = self.0.lost.lock().unwrap().take() {
                        let _ = lost.send(());
                    }
                    std::future::pending::<()>().await;
                }
            }
            reply
        })
    }

    fn card(&self) -> Arc<AgentCard> {
        self.0.endpoint.card()
    }
}

/// The process dies after the other agent has accepted the message, and before the caller knows of it.
async fn crashed_before_the_answer(recognises_repeats: bool) -> (String, usize, usize) {
    let other = Setup::new().agent(registered("mail", echo())).start();
    let elsewhere = Elsewhere::new(&other, recognises_repeats);
    let setup = |stock: Stock| {
        let callees = Arc::new(Found(elsewhere.clone()));
        Setup::on(stock).agent(registered("desk", asking())).callees(callees).start()
    };
    elsewhere.loses_answers.store(true, Ordering::SeqCst);
    let (sender, lost) = tokio::sync::oneshot::channel();
    *elsewhere.lost.lock().unwrap() = Some(sender);
    let world = setup(Stock::memory());
    let task = world.client().send(at_once(say("a letter"))).await.unwrap();
    soon(lost).await.unwrap();
    let stock = world.crash().await;
    elsewhere.loses_answers.store(false, Ordering::SeqCst);
    let world = setup(stock);
    let ended = soon(async {
        loop {
            let task = world.client().task(&task.id).await.unwrap();
            if task.state().is_terminal() {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    (picture(&ended), elsewhere.sends.load(Ordering::SeqCst), count(&other, "mail").await)
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_answer_was_lost_is_sent_again_where_repeats_are_recognised() {
    let (ended, sends, tasks) = crashed_before_the_answer(true).await;
    assert_eq!(ended, "completed\nuser: a letter\nartifact-1-1: completed says a letter\n");
    assert_eq!((sends, tasks), (2, 1), "sent twice and accepted once");
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_answer_was_lost_is_not_sent_again_where_it_might_be_done_twice() {
    let (ended, sends, tasks) = crashed_before_the_answer(false).await;
    assert!(ended.starts_with("failed \"CALL_OUTCOME_UNKNOWN: the message may have reached agent \"mail\""), "{ended}");
    assert_eq!((sends, tasks), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_reached_can_be_called_again() {
    let other = Setup::new().agent(registered("mail", echo())).start();
    let elsewhere = Elsewhere::new(&other, false);
    elsewhere.is_down.store(true, Ordering::SeqCst);
    let desk = {
        let elsewhere = elsewhere.clone();
        from_fn(Traits::default(), move |turn: Turn| {
            let elsewhere = elsewhere.clone();
            async move {
                let error = turn.call("mail", "a letter").await.unwrap_err();
                assert!(matches!(error, AgentCallError::Unreachable { .. }), "{error}");
                elsewhere.is_down.store(false, Ordering::SeqCst);
                Ok(turn.answer(turn.call_and_wait("mail", "a letter").await?.text()).await?)
            }
        })
    };
    let callees = Arc::new(Found(elsewhere));
    let world = Setup::new().agent(registered("desk", desk)).callees(callees).start();
    assert_eq!(world.client().send(say("go")).await.unwrap().artifacts[0].text(), "a letter");
}
