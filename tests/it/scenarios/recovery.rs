//! A process that dies in the middle of a run: the next one takes the run up, and nothing is doubled or lost.

use std::time::Duration;

use expect_test::expect;
use switchboard_core::model::{Artifact, Json, Part, TaskId, TaskState};
use switchboard_engine::Readiness;
use switchboard_engine::runs::{Agent, AgentError, AgentSource, Backoff, Recovery, RunEnd, Traits, Turn, TurnError};

use crate::support::callers::{at_once, reply_to, say, soon};
use crate::support::on_both_stores;
use crate::support::pictures::{film, picture};
use crate::support::puppets::{Acts, echo, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    an_interrupted_run_is_tried_again_and_its_artifacts_are_not_doubled,
    an_agent_that_may_not_be_tried_again_fails_its_task,
    attempts_are_bounded,
    a_paused_task_waits_on_for_its_answer,
    an_intended_cancel_is_obeyed_after_a_crash,
    waiting_messages_are_worked_on_after_a_crash,
    a_checkpoint_is_there_for_the_next_attempt,
    a_later_attempt_goes_on_with_an_artifact_at_its_checkpoint,
    what_was_written_after_the_checkpoint_is_taken_back,
    a_large_artifact_is_brought_back_in_pieces,
    a_run_that_was_given_back_goes_on_at_its_checkpoint,
);

/// A world with a puppet on what another one left.
fn world_on(stock: Stock, traits: Traits) -> (World, Acts) {
    let (agent, acts) = puppet(traits);
    (Setup::on(stock).agent(registered("puppet", agent)).start(), acts)
}

async fn an_interrupted_run_is_tried_again_and_its_artifacts_are_not_doubled(stock: Stock) {
    let (world, acts) = world_on(stock, Traits::default());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    let mut writer = act.turn.artifact_writer();
    for text in ["one ", "two "] {
        writer.text(text).await.unwrap();
    }
    act.turn.artifact(Artifact::new("named", vec![Part::text("first try")])).await.unwrap();
    act.turn.text_artifact("of the dead attempt only").await.unwrap();
    drop((act, writer));
    let (world, acts) = world_on(world.crash().await, Traits::default());
    let act = acts.next().await;
    assert_eq!((act.turn.attempt(), act.turn.number(), act.turn.text().as_str()), (2, 1, "hello"));
    assert!(act.turn.was_interrupted());
    let mut writer = act.turn.artifact_writer();
    for text in ["one ", "two ", "three"] {
        writer.text(text).await.unwrap();
    }
    act.turn.artifact(Artifact::new("named", vec![Part::text("second try")])).await.unwrap();
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    expect![[r#"
        completed
        user: hello
        artifact-1-1: one two three
        named: second try
        artifact-1-2: of the dead attempt only
    "#]]
    .assert_eq(&picture(&task));
    let stream = world.client().after(0).subscribe(&task.id).await.unwrap();
    expect![[r#"
        1 task submitted said [hello] made []
        2 artifact-1-1 one 
        3 artifact-1-1+ two 
        4 named. first try
        5 artifact-1-2. of the dead attempt only
        6 artifact-1-1 one 
        7 artifact-1-1+ two 
        8 artifact-1-1+ three
        9 named. second try
        10 completed
    "#]]
    .assert_eq(&film(stream).await);
}

fn number(value: u32) -> Json {
    Json::from_trusted(value.to_string())
}

async fn a_later_attempt_goes_on_with_an_artifact_at_its_checkpoint(stock: Stock) {
    let (world, acts) = world_on(stock, Traits::default());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    let mut writer = act.turn.artifact_writer().with_name("numbers").resume();
    assert!(!writer.resumes(), "there is nothing to go on with");
    writer.text_with_checkpoint("one ", &number(1)).await.unwrap();
    writer.text_with_checkpoint("two ", &number(2)).await.unwrap();
    drop((act, writer));
    let (world, acts) = world_on(world.crash().await, Traits::default());
    let act = acts.next().await;
    assert_eq!((act.turn.attempt(), act.turn.last_checkpoint()), (2, Some(&number(2))));
    let mut writer = act.turn.artifact_writer().with_name("numbers").resume();
    assert!(writer.resumes());
    writer.text_with_checkpoint("three ", &number(3)).await.unwrap();
    // Another writer of the same run goes on as well.
    let again = act.turn.artifact_writer().with_id(writer.id().clone()).resume();
    again.finish(vec![Part::text("four")]).await.unwrap();
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: one two three four\n");
    let stream = world.client().after(0).subscribe(&task.id).await.unwrap();
    expect![[r#"
        1 task submitted said [hello] made []
        2 artifact-1-1 one 
        3 artifact-1-1+ two 
        4 artifact-1-1+ three 
        5 artifact-1-1+. four
        6 completed
    "#]]
    .assert_eq(&film(stream).await);
}

async fn what_was_written_after_the_checkpoint_is_taken_back(stock: Stock) {
    // The third attempt, too, comes at once.
    let backoff = Some(Backoff { min: Duration::ZERO, max: Duration::ZERO });
    let traits = || Traits::default().with_recovery(Recovery::Retry { attempts_max: None, backoff });
    let (world, acts) = world_on(stock, traits());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    let mut writer = act.turn.artifact_writer();
    writer.text("one ").await.unwrap();
    writer.text("two ").await.unwrap();
    act.turn.checkpoint(&number(2)).await.unwrap();
    writer.text("lost ").await.unwrap();
    // Replaced as a whole, which cannot be told by its length.
    act.turn.artifact(Artifact::new("named", vec![Part::text("kept")])).await.unwrap();
    drop((act, writer));
    let (world, acts) = world_on(world.crash().await, traits());
    let act = acts.next().await;
    // A checkpoint before the first write does not make what the dead attempt added a part of it.
    act.turn.checkpoint(&number(22)).await.unwrap();
    let mut writer = act.turn.artifact_writer().resume();
    writer.text("three ").await.unwrap();
    act.turn.checkpoint(&number(3)).await.unwrap();
    let replacing = Artifact::new("artifact-1-1", vec![Part::text("one "), Part::text("two "), Part::text("other ")]);
    act.turn.artifact(replacing).await.unwrap();
    drop((act, writer));
    let (world, acts) = world_on(world.crash().await, traits());
    let act = acts.next().await;
    assert_eq!(act.turn.last_checkpoint(), Some(&number(3)));
    // Nothing of this one was recorded, so it begins anew.
    act.turn.artifact_writer().with_id("named").resume().text("new").await.unwrap();
    let mut writer = act.turn.artifact_writer().with_id("artifact-1-1").resume();
    writer.text("four").await.unwrap();
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    let film_after = async |seq| film(world.client().after(seq).subscribe(&task.id).await.unwrap()).await;
    let whole = film_after(0).await;
    expect![[r#"
        1 task submitted said [hello] made []
        2 artifact-1-1 one 
        3 artifact-1-1+ two 
        4 artifact-1-1+ lost 
        5 named. kept
        6 artifact-1-1 one two 
        7 artifact-1-1+ three 
        8 artifact-1-1. one two other 
        9 named new
        10 artifact-1-1 one two three 
        11 artifact-1-1+ four
        12 completed
    "#]]
    .assert_eq(&whole);
    assert_eq!(task.artifact("artifact-1-1").unwrap().text(), "one two three four");
    for (seq, _) in whole.lines().enumerate().skip(1) {
        let rest: String = whole.split_inclusive('\n').skip(seq).collect();
        assert_eq!(film_after(seq as u64).await, rest, "a stream that resumes after {seq}");
    }
}

async fn a_large_artifact_is_brought_back_in_pieces(stock: Stock) {
    let (world, acts) = world_on(stock, Traits::default());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    let mut writer = act.turn.artifact_writer().with_name("large");
    for letter in ["a", "b", "c", "d"] {
        writer.text(letter.repeat(400_000)).await.unwrap();
    }
    act.turn.checkpoint(&number(4)).await.unwrap();
    writer.text("lost").await.unwrap();
    drop((act, writer));
    let (world, acts) = world_on(world.crash().await, Traits::default());
    let act = acts.next().await;
    act.turn.artifact_writer().resume().text("end").await.unwrap();
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    let due: String = ["a", "b", "c", "d"].map(|letter| letter.repeat(400_000)).concat() + "end";
    assert!(task.artifacts[0].text() == due);
    assert_eq!((task.artifacts[0].name(), task.artifacts[0].parts.len()), (Some("large"), 5));
    let stream = world.client().after(6).subscribe(&task.id).await.unwrap();
    let seen = film(stream).await;
    let heads: Vec<&str> = seen.lines().map(|line| line.split_at(line.len().min(18)).0).collect();
    // Two chunks fit the first piece, two the second.
    assert_eq!(heads, ["7 artifact-1-1 aaa", "8 artifact-1-1+ cc", "9 artifact-1-1+ en", "10 completed"]);
}

async fn a_run_that_was_given_back_goes_on_at_its_checkpoint(stock: Stock) {
    let (world, acts) = world_on(stock, Traits::default());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    let mut writer = act.turn.artifact_writer();
    writer.text_with_checkpoint("one ", &number(1)).await.unwrap();
    writer.text("lost ").await.unwrap();
    world.engine.shutdown(Duration::ZERO).await;
    drop((act, writer));
    let (world, acts) = world_on(world.leave(), Traits::default());
    let act = acts.next().await;
    // As far as attempts go, it is the same one; it is another run all the same.
    assert_eq!((act.turn.attempt(), act.turn.was_interrupted()), (1, true));
    act.turn.artifact_writer().resume().text("two").await.unwrap();
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: one two\n");
}

async fn an_agent_that_may_not_be_tried_again_fails_its_task(stock: Stock) {
    let traits = || Traits::default().with_recovery(Recovery::Fail { reason: "The oven was switched off".to_owned() });
    let (world, acts) = world_on(stock, traits());
    let task = world.client().start("bake").await;
    acts.next().await.turn.text_artifact("half a cake").await.unwrap();
    let (world, acts) = world_on(world.crash().await, traits());
    let task = world.client().task_in(&task.id, TaskState::Failed).await;
    assert_eq!(picture(&task), "failed \"The oven was switched off\"\nuser: bake\nartifact-1-1: half a cake\n");
    assert!(acts.is_empty().await);
}

async fn attempts_are_bounded(stock: Stock) {
    let mut stock = stock;
    for (attempts_max, max) in [(None, 3), (Some(2), 2)] {
        let backoff = Some(Backoff { min: Duration::ZERO, max: Duration::ZERO });
        let traits = || Traits::default().with_recovery(Recovery::Retry { attempts_max, backoff });
        let (mut world, mut acts) = world_on(stock, traits());
        let task = world.client().start("hello").await;
        for attempt in 1..=max {
            assert_eq!(acts.next().await.turn.attempt(), attempt);
            (world, acts) = world_on(world.crash().await, traits());
        }
        let task = world.client().task_in(&task.id, TaskState::Failed).await;
        let reason = format!("The agent was interrupted {max} times and is not tried again");
        assert_eq!(picture(&task), format!("failed \"{reason}\"\nuser: hello\n"));
        assert!(acts.is_empty().await);
        assert_eq!(world.engine.agents()[0].source.runs().ended(RunEnd::Interrupted), 1);
        stock = world.crash().await;
    }
}

async fn a_paused_task_waits_on_for_its_answer(stock: Stock) {
    let (world, acts) = world_on(stock, Traits::default());
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.ask("which?").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    let (world, acts) = world_on(world.crash().await, Traits::default());
    assert_eq!(world.client().task(&task.id).await.unwrap(), task);
    assert!(acts.is_empty().await, "a paused task has no run to take up");
    let sending = world.client().sending(reply_to(&task.id, "red"));
    let act = acts.next().await;
    assert_eq!((act.turn.attempt(), act.turn.number()), (1, 2));
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&task), "completed\nuser: hello\nagent: which?\nuser: red\n");
}

async fn an_intended_cancel_is_obeyed_after_a_crash(stock: Stock) {
    let (world, acts) = world_on(stock, Traits::default());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    let canceling = tokio::spawn({
        let (client, id) = (world.client(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    canceling.abort();
    let _ = canceling.await;
    drop(act);
    let (world, acts) = world_on(world.crash().await, Traits::default());
    let task = world.client().task_in(&task.id, TaskState::Canceled).await;
    assert_eq!(picture(&task), "canceled\nuser: hello\n");
    assert!(acts.is_empty().await);
}

async fn waiting_messages_are_worked_on_after_a_crash(stock: Stock) {
    let (world, acts) = world_on(stock, Traits::default());
    let task = world.client().start("first").await;
    drop(acts.next().await);
    world.client().send(at_once(reply_to(&task.id, "second"))).await.unwrap();
    let (world, acts) = world_on(world.crash().await, Traits::default());
    for (text, attempt) in [("first", 2), ("second", 1)] {
        let act = acts.next().await;
        assert_eq!((act.turn.text().as_str(), act.turn.attempt()), (text, attempt));
        act.returns();
    }
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(picture(&task), "completed\nuser: first\nuser: second\n");
}

async fn a_checkpoint_is_there_for_the_next_attempt(stock: Stock) {
    let (world, acts) = world_on(stock, Traits::default());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    assert_eq!(act.turn.last_checkpoint(), None);
    for page in [1, 2] {
        act.turn.checkpoint(&Json::from_trusted(format!(r#"{{"page":{page}}}"#))).await.unwrap();
    }
    drop(act);
    let (world, acts) = world_on(world.crash().await, Traits::default());
    let act = acts.next().await;
    assert_eq!(act.turn.last_checkpoint().map(Json::as_str), Some(r#"{"page":2}"#));
    let page: std::collections::BTreeMap<String, u32> = act.turn.checkpoint_as().unwrap().unwrap();
    assert_eq!(page["page"], 2);
    let misread = act.turn.checkpoint_as::<Vec<String>>().unwrap_err();
    assert_eq!(misread.client_text(), "The agent could not read its checkpoint");
    // The next turn of the task begins with none.
    world.client().send(at_once(reply_to(&task.id, "more"))).await.unwrap();
    act.returns();
    let act = acts.next().await;
    assert_eq!(act.turn.last_checkpoint(), None);
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(task.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_task_of_an_agent_that_is_not_served_waits_for_it() {
    let (world, acts) = world_on(Stock::memory(), Traits::default());
    let task = world.client().start("hello").await;
    let _lost = acts.next().await;
    let stock = world.crash().await;
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.engine.readiness(), Readiness::Ready);
    let (world, acts) = world_on(world.crash().await, Traits::default());
    acts.next().await.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(task.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_unborn_record_is_taken_up_as_well() {
    use switchboard_engine::runs::Replies;
    let traits = || Traits::default().with_replies(Replies::Either);
    let (world, acts) = world_on(Stock::memory(), traits());
    let _sending = world.client().sending(say("hello"));
    let id: TaskId = acts.next().await.turn.task().id.clone();
    let (world, acts) = world_on(world.crash().await, traits());
    let act = acts.next().await;
    assert_eq!(act.turn.attempt(), 2);
    act.turn.text_artifact("a task after all").await.unwrap();
    act.returns();
    let task = world.client().task_in(&id, TaskState::Completed).await;
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: a task after all\n");
}

#[tokio::test(start_paused = true)]
async fn later_attempts_wait_and_the_wait_outlives_the_process() {
    let backoff = Some(Backoff { min: Duration::from_secs(100), max: Duration::from_secs(300) });
    let traits = || Traits::default().with_recovery(Recovery::Retry { attempts_max: Some(5), backoff });
    let (mut world, mut acts) = world_on(Stock::memory(), traits());
    let task = world.client().start("hello").await;
    // The second attempt comes at once; then after 100, 200 and 300 seconds, of which a part up to a half is left out.
    for (attempt, longest) in [(1, 0), (2, 0), (3, 100), (4, 200), (5, 300)] {
        let died = world.now();
        let early = Duration::from_secs(longest / 2).saturating_sub(Duration::from_secs(10));
        tokio::time::sleep(early).await;
        if longest > 0 {
            assert!(acts.is_empty().await, "attempt {attempt} waits");
            // An orderly stop and a crash in the middle of the pause change nothing about it.
            world.engine.shutdown(Duration::ZERO).await;
            world = world_on(world.leave(), traits()).0;
            (world, acts) = world_on(world.crash().await, traits());
        }
        let act = acts.next().await;
        assert_eq!(act.turn.attempt(), attempt);
        let waited = world.now().ms_since(died) / 1000;
        assert!((longest as i64 / 2..=longest as i64 + 6).contains(&waited), "attempt {attempt} after {waited} s");
        drop(act);
        (world, acts) = world_on(world.crash().await, traits());
    }
    let task = world.client().task_in(&task.id, TaskState::Failed).await;
    let reason = "The agent was interrupted 5 times and is not tried again";
    assert_eq!(picture(&task), format!("failed \"{reason}\"\nuser: hello\n"));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_its_next_attempt_can_be_canceled() {
    let backoff = Some(Backoff { min: Duration::from_secs(3600), max: Duration::from_secs(3600) });
    let traits = || Traits::default().with_recovery(Recovery::Retry { attempts_max: None, backoff });
    let (mut world, mut acts) = world_on(Stock::memory(), traits());
    let task = world.client().start("hello").await;
    for _ in 0..2 {
        acts.next().await;
        (world, acts) = world_on(world.crash().await, traits());
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let began = world.now();
    let task = soon(world.client().cancel(&task.id)).await.unwrap();
    assert_eq!(picture(&task), "canceled\nuser: hello\n");
    assert_eq!(world.now().ms_since(began), 0, "nobody had to be waited for");
    tokio::time::sleep(Duration::from_secs(4000)).await;
    assert!(acts.is_empty().await);
}

/// Keeps a checkpoint and hangs; says what it was asked to clear away.
struct Messy {
    recovery: Recovery,
    said: tokio::sync::mpsc::UnboundedSender<String>,
}

impl Agent for Messy {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let _ = self.said.send(format!("attempt {}", turn.attempt()));
        turn.checkpoint(&Json::from_trusted(format!("{{\"left\":{}}}", turn.attempt()))).await?;
        turn.working("").await?;
        std::future::pending().await
    }

    async fn clean_up_after(&self, checkpoint: Json) {
        let _ = self.said.send(format!("clear {}", checkpoint.as_str()));
    }

    fn traits(&self) -> Traits {
        Traits::default().with_recovery(self.recovery.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_run_left_is_cleared_away_before_the_next_and_after_the_last() {
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let start = |stock, recovery: &Recovery| {
        let agent = Messy { recovery: recovery.clone(), said: said.clone() };
        Setup::on(stock).agent(registered("messy", AgentSource::shared(agent))).start()
    };
    let (twice, fail) =
        (Recovery::Retry { attempts_max: Some(2), backoff: None }, Recovery::Fail { reason: "never twice".to_owned() });
    let mut world = start(Stock::memory(), &twice);
    let first = world.client().start("first").await;
    world.client().task_in(&first.id, TaskState::Working).await;
    for _ in 0..2 {
        world = start(world.crash().await, &twice);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    world.client().task_in(&first.id, TaskState::Failed).await;
    let second = world.client().start("second").await;
    world.client().task_in(&second.id, TaskState::Working).await;
    let world = start(world.crash().await, &fail);
    world.client().task_in(&second.id, TaskState::Failed).await;
    let mut all = Vec::new();
    while let Ok(one) = heard.try_recv() {
        all.push(one);
    }
    assert_eq!(
        all,
        ["attempt 1", "clear {\"left\":1}", "attempt 2", "clear {\"left\":2}", "attempt 1", "clear {\"left\":1}",]
    );
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_is_small() {
    let (world, acts) = world_on(Stock::memory(), Traits::default());
    world.client().start("hello").await;
    let act = acts.next().await;
    let text = |bytes: usize| Json::from_trusted(format!("\"{}\"", "x".repeat(bytes - 2)));
    assert_eq!(act.turn.checkpoint(&text(64 << 10)).await, Ok(()));
    let refused = act.turn.checkpoint(&text((64 << 10) + 1)).await.unwrap_err();
    assert!(refused.to_string().contains("a checkpoint of 65537 bytes, more than 65536"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_is_no_json_is_refused_by_name_and_writes_nothing() {
    let (world, acts) = world_on(Stock::memory(), Traits::default());
    world.client().start("hello").await;
    let act = acts.next().await;
    let unwritable = std::collections::BTreeMap::from([((1, 2), "a key that is no text")]);
    let refused = act.turn.checkpoint(&unwritable).await.unwrap_err();
    assert!(matches!(refused, TurnError::Checkpoint(_)), "{refused:?}");
    assert!(refused.to_string().starts_with("the checkpoint cannot be written as JSON: "), "{refused}");
    let mut writer = act.turn.artifact_writer();
    let refused = writer.text_with_checkpoint("lost", &unwritable).await.unwrap_err();
    assert!(matches!(refused, TurnError::Checkpoint(_)), "{refused:?}");
    assert!(!writer.resumes(), "the chunk was not written either");
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_has_no_checkpoint_to_read() {
    let (world, acts) = world_on(Stock::memory(), Traits::default());
    world.client().start("hello").await;
    let act = acts.next().await;
    assert!(matches!(act.turn.checkpoint_as::<u32>(), Ok(None)));
}
