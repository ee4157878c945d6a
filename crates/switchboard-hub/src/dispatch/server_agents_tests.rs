//! Dispatch among the agents of one server.

use switchboard::call::Owner;
use switchboard::{AgentBuilder, AgentClient, Server, Skill, Task, TaskState, Turn};

use super::super::{DISPATCH_METADATA, Dispatch};
use super::ServerAgents;

/// Says its name and for whom it works, or asks back.
fn target(name: &'static str, example: &'static str) -> AgentBuilder {
    AgentBuilder::from_fn(name, move |turn: Turn| async move {
        if turn.text().contains("ask me") && turn.number() == 1 {
            return Ok(turn.ask("Which one?").await?);
        }
        Ok(turn.answer(format!("{name} for {}: {}", turn.owner().principal.as_str(), turn.text())).await?)
    })
    .skill(Skill::new("work", "Work", "").example(example))
}

fn front(name: &'static str, agents: &ServerAgents) -> AgentBuilder {
    agents.add_dispatcher(name);
    let skill = Skill::new("dispatch", "Dispatch", "Finds the agent that fits signups and everything else");
    AgentBuilder::new(name, Dispatch::new(name, agents.clone(), agents.clone())).skill(skill)
}

fn serve(agents: &ServerAgents) -> Server {
    Server::builder()
        .agent(front("front", agents))
        .agent(front("back", agents))
        .agent(target("analytics", "How many signups?"))
        .agent(target("mail", "Reply to Alice"))
        .build()
        .unwrap()
}

async fn said(agent: &AgentClient, text: &str) -> std::sync::Arc<Task> {
    agent.send_text(text).await.unwrap().into_task().unwrap()
}

fn chosen(task: &Task) -> serde_json::Value {
    let metadata: serde_json::Value = serde_json::from_str(task.metadata.as_ref().unwrap().as_str()).unwrap();
    metadata[DISPATCH_METADATA]["agent"].clone()
}

#[tokio::test]
async fn an_agent_of_the_server_works_for_the_owner_and_dispatchers_are_not_chosen() {
    let server = serve(&ServerAgents::new());
    let alice = server.local("front").unwrap().with_caller(|caller| {
        caller.owner = Owner { tenant: "acme".into(), principal: "alice".into() };
        caller.authenticated = true;
    });
    let task = said(&alice, "signups").await;
    assert_eq!(
        (task.artifacts[0].text().as_str(), chosen(&task)),
        ("analytics for alice: signups", "analytics".into())
    );
    // The other one that dispatches has every word of this on its card.
    let task = said(&alice, "finds the agent that fits everything else").await;
    assert_eq!(chosen(&task), serde_json::Value::Null);
    assert!(!task.artifacts[0].text().contains("back"), "{}", task.artifacts[0].text());
}

#[tokio::test]
async fn the_choice_can_be_bounded() {
    let server = serve(&ServerAgents::new().only(["MAIL", "nobody"]));
    let front = server.local("front").unwrap();
    let task = said(&front, "reply to Alice").await;
    assert_eq!(chosen(&task), "mail");
    let task = said(&front, "signups").await;
    assert_eq!(chosen(&task), serde_json::Value::Null);
    assert_eq!(
        task.artifacts[0].text(),
        "No agent here fits this message. These are the agents:\n- mail: mail, served by Switchboard"
    );
}

#[tokio::test]
async fn a_question_is_passed_on_and_a_cancel_ends_the_task_behind_it() {
    let server = serve(&ServerAgents::new());
    let (front, mail) = (server.local("front").unwrap(), server.local("mail").unwrap());
    let asked = said(&front, "reply to Alice, ask me").await;
    assert_eq!((asked.state(), chosen(&asked)), (TaskState::InputRequired, "mail".into()));
    let ended = front.reply_text(&asked.id, "signups").await.unwrap().into_task().unwrap();
    assert_eq!(ended.artifacts[0].text(), "mail for : signups", "the words of an answer choose nobody");
    let asked = said(&front, "reply to Alice, ask me again").await;
    front.cancel(&asked.id).await.unwrap();
    let states = mail.tasks(Default::default()).await.unwrap().tasks;
    let mut states: Vec<&str> = states.iter().map(|task| task.task.state().word()).collect();
    states.sort_unstable();
    assert_eq!(states, ["canceled", "completed"]);
}
