//! What an engine does differently for callers of one dialect or another.

use std::time::Duration;

use serde_json::Value;
use switchboard_core::call::{Reply, Request, SendMessage};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::corvid;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Artifact, Json, TaskId, TaskState, TaskView};
use switchboard_engine::runs::{Effects, Traits, Turn};

use crate::support::callers::{Client, at_once, reply_to, say, soon};
use crate::support::on_both_stores;
use crate::support::puppets::{echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    a_canceled_task_is_canceled_again_in_1_0_alone,
    a_wrong_answer_is_an_error_for_who_waits,
    a_question_that_outlived_its_process_ends_when_it_is_looked_at,
    a_batch_of_the_oldest_ended_tasks_goes_when_one_is_too_many,
);

fn speaking(client: &Client, dialect: Dialect) -> Client {
    client.with(|caller| caller.dialect = dialect)
}

async fn a_canceled_task_is_canceled_again_in_1_0_alone(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let task = client.start("wait").await;
    let act = acts.next().await;
    let canceling = tokio::spawn({
        let (client, id) = (client.clone(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    assert_eq!(soon(canceling).await.unwrap().unwrap().state(), TaskState::Canceled);
    for dialect in Dialect::ALL {
        let again = speaking(&client, dialect).cancel(&task.id).await;
        match dialect {
            Dialect::V1_0 => assert_eq!(again.unwrap().state(), TaskState::Canceled),
            _ => assert_eq!(
                again.unwrap_err(),
                ProtocolError::TaskNotCancelable { id: task.id.clone(), state: TaskState::Canceled },
                "{dialect:?}"
            ),
        }
    }
}

async fn a_wrong_answer_is_an_error_for_who_waits(stock: Stock) {
    let wrong = |effects| {
        from_fn(Traits::default().with_effects(effects), |turn: Turn| async move {
            turn.artifact(Artifact::new("empty", Vec::new())).await?;
            Ok(())
        })
    };
    let world = Setup::on(stock)
        .agent(registered("careful", wrong(Effects::Possible)))
        .agent(registered("pure", wrong(Effects::Never)))
        .start();
    let expected = ProtocolError::InvalidAgentResponse { reason: "artifact empty has no parts".to_owned() };
    for name in ["careful", "pure"] {
        let client = world.client_of(name);
        for dialect in [Dialect::V1_0, Dialect::V0_3, Dialect::AgentNative, Dialect::Nexus] {
            let send = SendMessage { open_as: None, ..say(&format!("{name} {dialect:?}")) };
            assert_eq!(speaking(&client, dialect).send(send).await.unwrap_err(), expected, "{name} {dialect:?}");
        }
        // The task that came of it has failed, and tells no more of why.
        let page = client.list(Default::default()).await.unwrap();
        assert_eq!((page.tasks.len(), page.tasks[0].task.state()), (4, TaskState::Failed), "{name}");
        let told = page.tasks[0].task.status.message.as_ref().unwrap().text();
        assert!(told.starts_with("The agent failed (incident "), "{told}");
        // Who does not wait, and who knows no such error, reads the task.
        let polled = client.send(at_once(say("polled"))).await.unwrap();
        assert_eq!(client.task_in(&polled.id, TaskState::Failed).await.state(), TaskState::Failed);
        let failed = speaking(&client, Dialect::Selectools).send(say("selectools")).await.unwrap();
        assert_eq!(failed.state(), TaskState::Failed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_push_config_that_is_not_there_is_named() {
    let world = World::of(registered("echo", echo()));
    let client = world.client();
    let task = client.send(say("hello")).await.unwrap();
    let get = async |task_id: &TaskId, id: &str| {
        let request = Request::GetPushConfig { task_id: task_id.clone(), id: id.into() };
        client.call(request).await.expect_err("there is none").to_string()
    };
    assert_eq!(get(&task.id, "mine").await, "The task has no push config mine");
    assert_eq!(get(&task.id, "").await, "The task has no push config");
    assert_eq!(get(&"nobody".into(), "mine").await, "Task not found");
}

/// A task of corvid's that may take this long.
fn within(seconds: u32, text: &str) -> SendMessage {
    let metadata = Json::from_trusted(format!(r#"{{"switchboard.runTimeoutSeconds":{seconds}}}"#));
    SendMessage { metadata: Some(metadata), ..at_once(say(text)) }
}

async fn a_question_that_outlived_its_process_ends_when_it_is_looked_at(stock: Stock) {
    let asker = || from_fn(Traits::default(), |turn: Turn| async move { Ok(turn.ask("Which one?").await?) });
    let world = Setup::on(stock).agent(registered("asker", asker())).start();
    let client = speaking(&world.client(), Dialect::Corvid);
    let task = client.send(within(5, "corvid")).await.unwrap();
    let other = world.client().send(say("1.0")).await.unwrap();
    client.task_in(&task.id, TaskState::InputRequired).await;
    // A client holds the engine, and the engine holds the file.
    drop(client);
    let world = Setup::on(world.crash().await).agent(registered("asker", asker())).start();
    let client = speaking(&world.client(), Dialect::Corvid);
    assert_eq!(client.task(&task.id).await.unwrap().state(), TaskState::InputRequired);
    world.stock().clock.jump(6);
    let ended = client.task(&task.id).await.unwrap();
    assert_eq!(
        (ended.state(), ended.status.message.as_ref().unwrap().text()),
        (TaskState::Failed, "Task timed out".to_owned())
    );
    let refused = client.send(reply_to(&task.id, "that one")).await;
    assert!(matches!(refused, Err(ProtocolError::UnsupportedOperation { .. })), "{refused:?}");
    assert_eq!(world.client().task(&other.id).await.unwrap().state(), TaskState::InputRequired);
}

/// What a corvid-agent is shown of a task.
async fn shown(client: &Client, id: &TaskId) -> Value {
    let mut out = Vec::new();
    corvid::encode_task(&TaskView::whole(client.task(id).await.unwrap()), &mut out);
    serde_json::from_slice(&out).unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_word_to_a_corvid_agent_moves_the_time_of_its_task() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let client = speaking(&world.client(), Dialect::Corvid);
    let task = client.start("go").await;
    let act = acts.next().await;
    let mut writer = act.turn.artifact_writer();
    let mut seen = vec![shown(&client, &task.id).await];
    for step in 0..5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        match step {
            0 => act.turn.working("looking").await.unwrap(),
            1 => act.turn.working("reading").await.unwrap(),
            _ => writer.text(format!("{step}")).await.unwrap(),
        }
        seen.push(shown(&client, &task.id).await);
    }
    act.returns();
    client.task_in(&task.id, TaskState::Completed).await;
    seen.push(shown(&client, &task.id).await);
    let times: Vec<_> = seen.iter().map(|task| task["updatedAt"].as_str().unwrap()).collect();
    assert!(times[..6].is_sorted_by(|earlier, later| earlier < later), "{times:?}");
    let counts: Vec<_> = seen.iter().map(|task| task["messages"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [1, 2, 3, 4, 4, 4, 4]);
    assert_eq!(seen[6]["messages"][3]["parts"][0]["text"], "234");
    // The notes are kept for this dialect alone.
    let task = world.client().start("go").await;
    let act = acts.next().await;
    act.turn.working("looking").await.unwrap();
    act.turn.working("reading").await.unwrap();
    assert_eq!(world.client().task(&task.id).await.unwrap().history.len(), 1);
    act.returns();
}

/// The cap of corvid-agents, with smaller numbers: one more than 10, and 3 go.
async fn a_batch_of_the_oldest_ended_tasks_goes_when_one_is_too_many(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock)
        .limits(|limits| {
            limits.retention_tasks_max = 10;
            limits.retention_tasks_batch = 3;
        })
        .agent(registered("echo", echo()))
        .agent(registered("puppet", agent))
        .start();
    let client = world.client();
    // Tasks at work are the oldest, and stay.
    let at_work = world.client_of("puppet").start("wait").await;
    let _act = acts.next().await;
    for number in 1..=9 {
        client.send(say(&number.to_string())).await.unwrap();
    }
    let left = async || client.listed(Default::default()).await;
    assert_eq!(left().await.len(), 9, "ten in all are not too many");
    client.send(say("10")).await.unwrap();
    soon(async {
        while left().await.len() > 7 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(left().await, ["10", "9", "8", "7", "6", "5", "4"]);
    assert_eq!(world.client_of("puppet").task(&at_work.id).await.unwrap().state(), TaskState::Submitted);
}

fn in_context(context: &str, text: &str) -> SendMessage {
    let mut send = say(text);
    send.message.context_id = Some(context.into());
    send
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_a_memory_reads_what_was_said_in_the_context() {
    for effects in [Effects::Never, Effects::Possible] {
        let recall = |messages_max| {
            let traits = Traits::default().with_effects(effects).with_context_messages_max(messages_max);
            from_fn(traits, |turn: Turn| async move {
                let said: Vec<String> = turn.context().iter().map(|message| message.text()).collect();
                Ok(turn.answer(format!("[{}]", said.join(", "))).await?)
            })
        };
        let world =
            Setup::new().agent(registered("recalls", recall(3))).agent(registered("forgets", recall(0))).start();
        let ask = async |client: &Client, send: SendMessage| client.send(send).await.unwrap().artifacts[0].text();
        let (alice, bob) = (world.client().user("alice"), world.client().user("bob"));
        assert_eq!(ask(&alice, in_context("c", "one")).await, "[]");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(ask(&alice, in_context("c", "two")).await, "[one, []]");
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The newest, as many as the agent asks for.
        assert_eq!(ask(&alice, in_context("c", "three")).await, "[[], two, [one, []]]");
        assert_eq!(ask(&alice, in_context("d", "elsewhere")).await, "[]");
        assert_eq!(ask(&alice, say("in a context of its own")).await, "[]");
        assert_eq!(ask(&bob, in_context("c", "of bob")).await, "[]", "what others said is theirs");
        let forgetful = world.client_of("forgets").user("alice");
        for text in ["one", "two"] {
            assert_eq!(ask(&forgetful, in_context("c", text)).await, "[]");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_does_not_wait_is_answered_before_a_quick_agent_in_two_dialects() {
    let quick = from_fn(Traits::pure(), |turn: Turn| async move { Ok(turn.answer("done").await?) });
    let world = World::of(registered("quick", quick));
    for dialect in Dialect::ALL {
        let reply = speaking(&world.client(), dialect).call(Request::SendMessage(at_once(say("x")).into())).await;
        let Ok(Reply::SentTask(view)) = reply else { panic!("a send is answered with a task") };
        let expected = match dialect {
            Dialect::AgentNative | Dialect::Corvid => TaskState::Submitted,
            _ => TaskState::Completed,
        };
        assert_eq!(view.task.state(), expected, "{dialect:?}");
        speaking(&world.client(), dialect).task_in(&view.task.id, TaskState::Completed).await;
    }
}
