//! Streams while a task is at work: the task first, then every update in order under dense numbers, the same for all.

use expect_test::expect;
use switchboard_core::call::SendMessage;
use switchboard_core::model::{Part, TaskState, Update};
use switchboard_engine::runs::Traits;

use crate::support::callers::{reply_to, say, soon};
use crate::support::on_both_stores;
use crate::support::pictures::{film, film_so_far, line, next_frame, numbers};
use crate::support::puppets::{echo, puppet};
use crate::support::world::{Setup, Stock, World, registered, with_card};

on_both_stores!(
    a_stream_begins_with_the_task_and_ends_with_its_end,
    no_empty_part_ends_an_artifact,
    a_follower_joins_with_the_task_as_it_is,
    all_followers_see_the_same_updates,
    a_follow_up_streams_from_the_task_as_it_is,
);

async fn a_stream_begins_with_the_task_and_ends_with_its_end(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let stream = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    act.turn.working("reading").await.unwrap();
    let mut writer = act.turn.artifact_writer().with_name("answer");
    writer.text("good ").await.unwrap();
    writer.text("day ").await.unwrap();
    writer.finish(vec![Part::text("sir")]).await.unwrap();
    act.turn.text_artifact("another thing").await.unwrap();
    act.turn.complete("that is all").await.unwrap();
    expect![[r#"
        1 task submitted said [hello] made []
        2 working "reading"
        3 artifact-1-1 good 
        4 artifact-1-1+ day 
        5 artifact-1-1+. sir
        6 artifact-1-2. another thing
        7 completed "that is all"
    "#]]
    .assert_eq(&film(stream).await);
    act.returns();
}

async fn no_empty_part_ends_an_artifact(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let stream = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    for last in [Vec::new(), vec![Part::text("")], vec![Part::text(""), Part::text("end")]] {
        let mut writer = act.turn.artifact_writer();
        writer.text("good ").await.unwrap();
        writer.text("").await.unwrap();
        writer.finish(last).await.unwrap();
    }
    // A part that is empty and says something is kept, and so is an answer that is empty altogether.
    let mut writer = act.turn.artifact_writer();
    writer.text("good ").await.unwrap();
    writer.finish(vec![Part::text("").with_filename("end")]).await.unwrap();
    act.turn.artifact_writer().finish(vec![Part::text("")]).await.unwrap();
    act.turn.artifact_writer().finish(Vec::new()).await.unwrap();
    act.returns();
    let stream = film(stream).await;
    expect![[r#"
        1 task submitted said [hello] made []
        2 artifact-1-1 good 
        3 artifact-1-2 good 
        4 artifact-1-3 good 
        5 artifact-1-3+. end
        6 artifact-1-4 good 
        7 artifact-1-4+. 
        8 artifact-1-5. 
        9 completed
    "#]]
    .assert_eq(&stream);
}

async fn a_follower_joins_with_the_task_as_it_is(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    act.turn.working("reading").await.unwrap();
    let mut writer = act.turn.artifact_writer();
    writer.text("good ").await.unwrap();
    let stream = world.client().subscribe(&task.id).await.unwrap();
    writer.text("day").await.unwrap();
    act.returns();
    expect![[r#"
        3 task working "reading" said [hello] made [good ]
        4 artifact-1-1+ day
        5 completed
    "#]]
    .assert_eq(&film(stream).await);
}

async fn all_followers_see_the_same_updates(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let sent = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    let id = act.turn.task().id.clone();
    let mut early = world.client().subscribe(&id).await.unwrap();
    assert_eq!(line(next_frame(&mut early).await.unwrap().as_ref()), "1 task submitted said [hello] made []\n");
    let gone = world.client().subscribe(&id).await.unwrap();
    act.turn.working("one").await.unwrap();
    drop(gone);
    act.turn.text_artifact("two").await.unwrap();
    let late = world.client().subscribe(&id).await.unwrap();
    act.turn.working("three").await.unwrap();
    act.returns();
    expect![[r#"
        1 task submitted said [hello] made []
        2 working "one"
        3 artifact-1-1. two
        4 working "three"
        5 completed
    "#]]
    .assert_eq(&film(sent).await);
    expect![[r#"
        2 working "one"
        3 artifact-1-1. two
        4 working "three"
        5 completed
    "#]]
    .assert_eq(&film(early).await);
    expect![[r#"
        3 task working "one" said [hello] made [two]
        4 working "three"
        5 completed
    "#]]
    .assert_eq(&film(late).await);
}

async fn a_follow_up_streams_from_the_task_as_it_is(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.text_artifact("so far").await.unwrap();
    act.turn.ask("which?").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    let stream = world.client().stream(reply_to(&task.id, "red")).await.unwrap();
    let act = acts.next().await;
    act.turn.text_artifact("red it is").await.unwrap();
    act.returns();
    expect![[r#"
        4 task submitted said [hello, which?, red] made [so far]
        5 artifact-2-1. red it is
        6 completed
    "#]]
    .assert_eq(&film(stream).await);
}

#[tokio::test(start_paused = true)]
async fn updates_are_there_as_soon_as_they_are_written() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let mut stream = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    assert_eq!(film_so_far(&mut stream).await, "1 task submitted said [hello] made []\nopen\n");
    act.turn.working("one").await.unwrap();
    assert_eq!(film_so_far(&mut stream).await, "2 working \"one\"\nopen\n");
    act.returns();
    assert_eq!(film_so_far(&mut stream).await, "3 completed\nclosed\n");
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_a_long_stream_have_no_gaps() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let sent = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    let followed = world.client().subscribe(&act.turn.task().id).await.unwrap();
    let counted = tokio::spawn(numbers(followed));
    let mut writer = act.turn.artifact_writer();
    for number in 0..2_000 {
        writer.text(format!("{number} ")).await.unwrap();
    }
    act.returns();
    let dense: Vec<u64> = (1..=2_002).collect();
    assert_eq!(numbers(sent).await, dense);
    assert_eq!(soon(counted).await.unwrap(), dense);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_does_not_stop_the_work() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let stream = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    drop(stream);
    let id = act.turn.task().id.clone();
    act.turn.text_artifact("to nobody").await.unwrap();
    act.returns();
    let task = world.client().task_in(&id, TaskState::Completed).await;
    assert_eq!(task.artifacts[0].text(), "to nobody");
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_streaming_says_so_whatever_the_task() {
    let agent = with_card(registered("quiet", echo()), |card| card.capabilities.streaming = Some(false));
    let world = World::of(agent);
    let task = world.client().send(say("hello")).await.unwrap();
    let refused = |error: Option<switchboard_core::error::ProtocolError>| error.unwrap().to_string();
    let expected = "This agent does not stream; use SendMessage and GetTask";
    assert_eq!(refused(world.client().stream(say("hello")).await.err()), expected);
    assert_eq!(refused(world.client().subscribe(&task.id).await.err()), expected);
    assert_eq!(refused(world.client().subscribe(&"no-such-task".into()).await.err()), expected);
}

#[tokio::test(start_paused = true)]
async fn the_first_frame_shows_as_much_history_as_was_asked_for() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let send = SendMessage { history_length: Some(0), ..say("hello") };
    let mut stream = world.client().stream(send).await.unwrap();
    match &next_frame(&mut stream).await.unwrap().unwrap().update.update {
        Update::Task(view) => assert_eq!(view.history().len(), 0),
        other => panic!("{other:?}"),
    }
    acts.next().await.returns();
    assert_eq!(film(stream).await, "2 completed\n");
}
