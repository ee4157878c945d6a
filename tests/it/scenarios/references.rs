//! Tasks that a message refers to: an agent is shown those that exist and belong to the caller, and no others.

use switchboard_core::call::{ListTasks, SendMessage};
use switchboard_core::model::{Part, TaskId};
use switchboard_engine::runs::{Effects, Replies, Traits, Turn};

use crate::support::callers::{say, soon};
use crate::support::pictures::words;
use crate::support::puppets::{echo, from_fn, puppet};
use crate::support::world::{Setup, registered};

fn referring_to(ids: &[TaskId]) -> SendMessage {
    let mut send = say("see there");
    send.message.reference_task_ids = ids.to_vec();
    send
}

#[tokio::test(start_paused = true)]
async fn an_agent_sees_the_callers_own_tasks_only() {
    for effects in [Effects::Never, Effects::Possible] {
        let agent = from_fn(Traits::default().with_effects(effects), |turn: Turn| async move {
            let seen: Vec<String> = turn.referenced_tasks().iter().map(|task| words(&task.history[0])).collect();
            Ok(turn.answer(format!("{seen:?}")).await?)
        });
        let world = Setup::new()
            .limits(|limits| limits.referenced_tasks_max = 5)
            .agent(registered("curious", agent))
            .agent(registered("echo", echo()))
            .start();
        let (alice, bob) = (world.client().user("alice"), world.client().user("bob"));
        let one = alice.send(say("one")).await.unwrap();
        let two = alice.send(say("two")).await.unwrap();
        let of_bob = bob.send(say("of bob")).await.unwrap();
        let to_another = world.client_of("echo").user("alice").send(say("to another")).await.unwrap();
        let at_acme = world.client().user_of("acme", "alice").send(say("at acme")).await.unwrap();
        let ids = [two.id.clone(), of_bob.id.clone(), to_another.id.clone(), at_acme.id.clone(), one.id.clone()];
        let task = alice.send(referring_to(&ids)).await.unwrap();
        assert_eq!(task.artifacts[0].text(), r#"["two", "one"]"#, "{effects:?}");
        // More than the limit are not looked up, and unknown ones are no mistake.
        let mut many = vec![TaskId::from("no-such-task"); 5];
        many.push(one.id.clone());
        let task = alice.send(referring_to(&many)).await.unwrap();
        assert_eq!(task.artifacts[0].text(), "[]");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_a_task_yet_cannot_be_referred_to() {
    let (agent, acts) = puppet(Traits::default().with_replies(Replies::Either));
    let world = Setup::new().limits(|limits| limits.birth_wait_ms = 600_000).agent(registered("puppet", agent)).start();
    let client = world.client();
    let _first = client.sending(say("maybe a task"));
    let unborn = acts.next().await;
    let id = unborn.turn.task().id.clone();
    let _second = client.sending(referring_to(std::slice::from_ref(&id)));
    let act = acts.next().await;
    assert_eq!(act.turn.referenced_tasks().len(), 0);
    unborn.turn.reply(vec![Part::text("no task")]).await.unwrap();
    unborn.returns();
    let _third = client.sending({
        let mut send = referring_to(std::slice::from_ref(&id));
        send.message.message_id = "another".into();
        send
    });
    let act = soon(acts.next()).await;
    assert_eq!(act.turn.referenced_tasks().len(), 0, "nor what never became one");
    assert_eq!(client.list(ListTasks::default()).await.unwrap().total_size, 0);
}
