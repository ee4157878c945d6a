//! Agents that fail: the client reads the text meant for it and nothing else, and no other task is harmed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use expect_test::expect;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Artifact, Part, TaskState};
use switchboard_engine::runs::{
    Agent, AgentError, AgentSource, Effects, ErrorDetails, LeftOver, RunEnd, Traits, Turn, TurnError,
};

use crate::support::callers::{reply_to, say, soon};
use crate::support::gated_store::GatedStore;
use crate::support::on_both_stores;
use crate::support::pictures::{film, picture};
use crate::support::puppets::{echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(the_client_reads_only_what_is_meant_for_it);

async fn the_client_reads_only_what_is_meant_for_it(stock: Stock) {
    fn failing(effects: Effects) -> AgentSource {
        from_fn(Traits::default().with_effects(effects), |turn: Turn| async move {
            match turn.text().as_str() {
                "error" => Err(io::Error::other("password=hunter2").into()),
                "told" => Err(AgentError::told("The printer is out of paper")),
                "panic" => panic!("password=hunter2"),
                "fail" => Ok(turn.fail("I gave up").await?),
                _ => Ok(turn.reject("I do not do that").await?),
            }
        })
    }
    let world = Setup::on(stock)
        .agent(registered("careful", failing(Effects::Possible)))
        .agent(registered("pure", failing(Effects::Never)))
        .start();
    for (text, expected) in [
        ("error", "failed \"The agent failed (incident *)\"\nuser: error\n"),
        ("told", "failed \"The printer is out of paper\"\nuser: told\n"),
        ("panic", "failed \"The agent failed (incident *)\"\nuser: panic\n"),
        ("fail", "failed \"I gave up\"\nuser: fail\n"),
        ("reject", "rejected \"I do not do that\"\nuser: reject\n"),
    ] {
        for agent in ["careful", "pure"] {
            let task = soon(world.client_of(agent).send(say(text))).await.unwrap();
            assert_eq!(picture(&task), expected, "{agent}");
            assert_eq!(world.client_of(agent).task(&task.id).await.unwrap(), task);
        }
    }
    for agent in world.engine.agents() {
        let runs = agent.source.runs();
        let counted: Vec<_> = RunEnd::ALL.into_iter().filter(|how| runs.ended(*how) > 0).collect();
        assert_eq!(counted, [RunEnd::Rejected, RunEnd::Failed, RunEnd::Error, RunEnd::Panicked], "{}", agent.name);
        assert_eq!((runs.started(), runs.failed(), runs.ended(RunEnd::Failed)), (5, 4, 2), "{}", agent.name);
        assert_eq!(runs.seconds().buckets().iter().sum::<u64>(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_may_show_its_clients_the_whole_text_of_a_failure() {
    let agent = from_fn(Traits::default().with_error_details(ErrorDetails::Full), |turn: Turn| async move {
        match turn.text().as_str() {
            "error" => Err(io::Error::other("no disk").into()),
            "panic" => panic!("no disk"),
            "details" => Err(AgentError::with_details("It broke", "no disk")),
            _ => Err(AgentError::with_details("It broke", "")),
        }
    });
    let world = World::of(registered("open", agent));
    for (text, expected) in [
        ("error", "failed \"no disk\"\nuser: error\n"),
        ("panic", "failed \"The agent failed:\npanicked: no disk\"\nuser: panic\n"),
        ("details", "failed \"It broke:\nno disk\"\nuser: details\n"),
        ("nothing", "failed \"It broke\"\nuser: nothing\n"),
    ] {
        assert_eq!(picture(&soon(world.client().send(say(text))).await.unwrap()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn every_way_to_end_a_run_is_counted_once() {
    let agent = from_fn(Traits::default().with_run_max(Duration::from_secs(5)), |turn: Turn| async move {
        match turn.text().as_str() {
            "ask" => turn.ask("which?").await?,
            "wait" => {
                turn.working("").await?;
                turn.cancelled().await;
            }
            "late" => return Err(AgentError::timed_out("Task timed out: too slow")),
            "huge" => turn.artifact(Artifact::new("a", Vec::new())).await?,
            "stuck" => std::future::pending().await,
            _ => turn.answer("done").await?,
        }
        Ok(())
    });
    let world = World::of(registered("busy", agent));
    for text in ["go", "ask", "late", "stuck"] {
        soon(world.client().send(say(text))).await.unwrap();
    }
    let refused = soon(world.client().send(say("huge"))).await.unwrap_err();
    assert!(matches!(refused, ProtocolError::InvalidAgentResponse { .. }), "{refused}");
    let task = world.client().start("wait").await;
    world.client().task_in(&task.id, TaskState::Working).await;
    soon(world.client().cancel(&task.id)).await.unwrap();
    let agents = world.engine.agents();
    let runs = agents[0].source.runs();
    let counted: Vec<_> = RunEnd::ALL.into_iter().map(|how| (how, runs.ended(how))).filter(|(_, n)| *n > 0).collect();
    let expected = [
        (RunEnd::Completed, 1),
        (RunEnd::Paused, 1),
        (RunEnd::InvalidResponse, 1),
        (RunEnd::TimedOut, 2),
        (RunEnd::Canceled, 1),
    ];
    assert_eq!(counted, expected);
    assert_eq!((runs.started(), runs.failed(), runs.timed_out()), (6, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_panic_after_a_wait_fails_the_task_and_keeps_what_was_written() {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        turn.text_artifact("half of it").await?;
        tokio::task::yield_now().await;
        panic!("no more");
    });
    let world = World::of(registered("clumsy", agent));
    let stream = world.client().stream(say("hello")).await.unwrap();
    expect![[r#"
        1 task submitted said [hello] made []
        2 artifact-1-1. half of it
        3 failed "The agent failed (incident *)"
    "#]]
    .assert_eq(&film(stream).await);
}

#[tokio::test(start_paused = true)]
async fn a_factory_that_panics_fails_the_task() {
    struct Never;
    impl Agent for Never {
        async fn run(&self, _: Turn) -> Result<(), AgentError> {
            Ok(())
        }
    }
    let made = std::sync::atomic::AtomicU32::new(0);
    let source = AgentSource::factory(move || {
        // The first one is made to read what the agent declares.
        assert_eq!(made.fetch_add(1, Ordering::SeqCst), 0, "no more of these");
        Never
    });
    let world = World::of(registered("scarce", source));
    let task = soon(world.client().send(say("hello"))).await.unwrap();
    assert_eq!(picture(&task), "failed \"The agent failed (incident *)\"\nuser: hello\n");
}

#[tokio::test(start_paused = true)]
async fn the_next_caller_is_served_after_a_panic() {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        assert_ne!(turn.text(), "panic");
        Ok(turn.answer(turn.text()).await?)
    });
    let world = World::of(registered("clumsy", agent));
    soon(world.client().send(say("panic"))).await.unwrap();
    let task = soon(world.client().send(say("hello"))).await.unwrap();
    assert_eq!(task.artifacts[0].text(), "hello");
    assert_eq!(world.engine.runs_alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn writes_that_make_no_sense_are_refused_and_change_nothing() {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::new()
        .limits(|limits| {
            limits.artifacts_max = 2;
            limits.artifact_bytes_max = 10;
        })
        .agent(registered("puppet", agent))
        .start();
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    let turn = &act.turn;
    let artifact = |id: &str, text: &str| Artifact::new(id, vec![Part::text(text)]);
    let mut refusals = Vec::new();
    refusals.push(turn.status(TaskState::Submitted, Vec::new()).await);
    refusals.push(turn.artifact(Artifact::new("empty", Vec::new())).await);
    refusals.push(turn.artifact(artifact("big", "eleven chars")).await);
    turn.artifact(artifact("a", "one")).await.unwrap();
    turn.artifact(artifact("b", "two")).await.unwrap();
    refusals.push(turn.artifact(artifact("c", "three")).await);
    let texts: Vec<String> = refusals.into_iter().map(|refused| refused.unwrap_err().to_string()).collect();
    expect![[r#"
        [
            "The agent answered wrongly: a run cannot set its task to submitted",
            "The agent answered wrongly: artifact empty has no parts",
            "The agent answered wrongly: artifact big grew over 10 bytes",
            "The agent answered wrongly: more than 2 artifacts",
        ]
    "#]]
    .assert_debug_eq(&texts);
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&task), "completed\nuser: hello\na: one\nb: two\n");
}

#[tokio::test(start_paused = true)]
async fn nothing_can_be_written_after_the_end() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.complete("done").await.unwrap();
    assert_eq!(act.turn.working("or not").await, Err(TurnError::Stopped));
    assert_eq!(act.turn.text_artifact("and this").await, Err(TurnError::Stopped));
    act.ends(Err(AgentError::told("a failure after the end")));
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&task), "completed \"done\"\nuser: hello\n");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_asked_cannot_go_on_writing() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.ask("which?").await.unwrap();
    let refused = act.turn.text_artifact("never mind").await.unwrap_err();
    assert_eq!(refused.to_string(), "The agent answered wrongly: an artifact after the turn ended in input-required");
    let task = soon(sending).await.unwrap().unwrap();
    // The run that asked is still there when the answer comes; the new turn takes its place.
    let sending = world.client().sending(reply_to(&task.id, "the red one"));
    let next = acts.next().await;
    assert!(act.turn.text_artifact("never mind").await.is_err());
    act.returns();
    next.turn.text_artifact("red").await.unwrap();
    next.returns();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&task), "completed\nuser: hello\nagent: which?\nuser: the red one\nartifact-2-1: red\n");
}

#[tokio::test(start_paused = true)]
async fn agents_do_not_see_each_others_failures() {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::new().agent(registered("puppet", agent)).agent(registered("echo", echo())).start();
    let sending = world.client().sending(say("hello"));
    acts.next().await.ends(Err(AgentError::told("broken")));
    assert_eq!(soon(sending).await.unwrap().unwrap().state(), TaskState::Failed);
    let task = world.client_of("echo").send(say("hello")).await.unwrap();
    assert_eq!(task.state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_an_agent_interrupts_it_and_does_not_fail_its_task() {
    let (agent, acts) = puppet(Traits::default());
    let mut gate = None;
    let stock = Stock::given(|clock| gate.insert(GatedStore::open(clock)).clone());
    let gate = gate.unwrap();
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    act.turn.text_artifact("half of it").await.unwrap();
    gate.fail(true);
    assert_eq!(act.turn.text_artifact("the rest").await, Err(TurnError::Unavailable));
    act.ends(Err(TurnError::Unavailable.into()));
    gate.fail(false);
    let again = acts.next().await;
    assert_eq!((again.turn.attempt(), again.turn.text().as_str()), (2, "hello"));
    again.turn.text_artifact("all of it").await.unwrap();
    again.returns();
    let done = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(picture(&done), "completed\nuser: hello\nartifact-1-1: all of it\n");
}

/// Panics as often as it is told to, wherever it is asked something outside its run.
struct Jumpy {
    panics: Arc<AtomicBool>,
}

impl Agent for Jumpy {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        turn.checkpoint(&"left").await?;
        Ok(turn.ask("which?").await?)
    }

    fn admit(&self) -> Result<(), ProtocolError> {
        assert!(!self.panics.load(Ordering::SeqCst), "password=hunter2");
        Ok(())
    }

    async fn cancel_left_over(&self, _: LeftOver) {
        panic!("password=hunter2");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_outside_a_run_harms_nothing_but_what_was_asked() {
    let panics = Arc::new(AtomicBool::new(true));
    let world = Setup::new().agent(registered("jumpy", AgentSource::shared(Jumpy { panics: panics.clone() }))).start();
    let client = world.client();
    for _ in 0..2 {
        let refused = soon(client.send(say("hello"))).await.unwrap_err();
        let ProtocolError::Internal { incident } = &refused else { panic!("{refused:?}") };
        assert!(incident.len() > 20 && !format!("{refused:?}").contains("hunter2"), "{refused:?}");
    }
    assert_eq!(world.engine.store_stats().commits, 0, "nothing was stored");
    panics.store(false, Ordering::SeqCst);
    let task = soon(client.send(say("hello"))).await.unwrap();
    assert_eq!(task.state(), TaskState::InputRequired);
    // No run is at work, so the agent is asked to end what it left, and panics.
    let canceled = soon(client.cancel(&task.id)).await.unwrap();
    assert_eq!(canceled.state(), TaskState::Canceled);
}
