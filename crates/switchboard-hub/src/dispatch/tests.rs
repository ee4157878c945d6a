//! Dispatch in front of agents of the same process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use switchboard::call::{BoxFuture, SendMessage};
use switchboard::client::new_message_id;
use switchboard::model::{AgentCard, AgentSkill, JsonLimits};
use switchboard::{
    AgentBuilder, AgentClient, AgentError, Json, Message, Part, Role, Server, Skill, Task, TaskState, Turn,
};

use super::{Candidate, Dispatch, Forward};
use crate::hops::Hop;

/// Passes messages on to agents of this process, one task of theirs for each of ours.
#[derive(Clone, Default)]
struct Local {
    agents: HashMap<String, AgentClient>,
    tasks: Arc<Mutex<HashMap<String, Arc<Task>>>>,
}

impl Forward for Local {
    fn forward<'a>(&'a self, turn: Turn, target: &'a str, hop: Hop) -> BoxFuture<'a, Result<(), AgentError>> {
        Box::pin(async move {
            let agent = self.agents.get(target).ok_or_else(|| AgentError::told("no such agent"))?;
            let mut message = Message::new(Role::User, new_message_id(), vec![Part::text(turn.text())]);
            let own = turn.task().id.to_string();
            message.task_id = self.tasks.lock().unwrap().get(&own).map(|task| task.id.clone());
            let mut send = SendMessage::new(message);
            send.metadata = Some(hop.metadata(turn.metadata()));
            let task = agent.send_with(send).await?.into_task().ok_or_else(|| AgentError::told("no task"))?;
            self.tasks.lock().unwrap().insert(own, task.clone());
            match task.state() {
                TaskState::InputRequired => {
                    let question = task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
                    Ok(turn.ask(question).await?)
                }
                TaskState::Rejected => {
                    let reason = task.status.message.as_ref().map(|message| message.text()).unwrap_or_default();
                    Ok(turn.reject(reason).await?)
                }
                _ => Ok(turn.answer(task.artifacts[0].text()).await?),
            }
        })
    }
}

/// Answers with its name and what the metadata of the request says, or asks back first.
fn target(name: &'static str) -> AgentBuilder {
    AgentBuilder::from_fn(name, move |turn: Turn| async move {
        if turn.text().contains("ask me") && turn.number() == 1 {
            return Ok(turn.ask("Which one?").await?);
        }
        let said = turn.metadata().map_or("none", Json::as_str).to_owned();
        Ok(turn.answer(format!("{name}: {} {said}", turn.text())).await?)
    })
}

fn candidate(id: &str, example: &str) -> Candidate {
    let skill = AgentSkill { id: "work".to_owned(), examples: vec![example.to_owned()], ..AgentSkill::default() };
    let card = AgentCard { name: id.to_uppercase(), skills: vec![skill], ..AgentCard::default() };
    Candidate { id: id.to_owned(), card: Arc::new(card) }
}

fn company() -> (Server, Local, Vec<Candidate>) {
    let server = Server::builder().agent(target("analytics")).agent(target("mail")).build().unwrap();
    let mut local = Local::default();
    for name in ["analytics", "mail"] {
        local.agents.insert(name.to_owned(), server.local(name).unwrap());
    }
    let cards = vec![candidate("analytics", "How many signups?"), candidate("mail", "Reply to Alice")];
    (server, local, cards)
}

fn dispatching(cards: Vec<Candidate>, forward: impl Forward) -> AgentBuilder {
    let skill = Skill::new("dispatch", "Dispatch", "Finds the agent that fits");
    AgentBuilder::new("Dispatch", Dispatch::new("dispatch", cards, forward)).skill(skill)
}

fn said(text: &str, metadata: Option<&Value>) -> SendMessage {
    let mut send = SendMessage::new(Message::new(Role::User, new_message_id(), vec![Part::text(text)]));
    send.metadata = metadata.map(|value| Json::parse(&value.to_string(), JsonLimits::default()).unwrap());
    send
}

fn metadata(task: &Task) -> Value {
    task.metadata.as_ref().map_or(Value::Null, |json| serde_json::from_str(json.as_str()).unwrap())
}

#[tokio::test]
async fn a_message_goes_to_the_agent_that_fits_and_the_task_says_why() {
    let (_targets, local, cards) = company();
    let server = Server::builder().agent(dispatching(cards, local)).build().unwrap();
    let dispatch = server.local("dispatch").unwrap();

    let task = dispatch.send_text("signups").await.unwrap().into_task().unwrap();
    let expected = json!({"switchboard.dispatch": {
        "agent": "analytics",
        "skill": "work",
        "score": 0.9,
        "reason": "\"signups\" is in an example of the skill \"work\"",
        "runnersUp": [],
    }});
    assert_eq!(metadata(&task), expected);
    let answer = task.artifacts[0].text();
    let hop: Value = serde_json::from_str(answer.strip_prefix("analytics: signups ").unwrap()).unwrap();
    let id = task.id.as_str();
    assert_eq!(
        hop,
        json!({
            "callerApp": "dispatch", "selectedReceiverApp": "analytics", "delegationDepth": 1, "visitedApps": ["dispatch"],
            "callerThreadId": task.context_id.as_str(), "parentRunId": id, "parentTurnId": "1", "invocationId": format!("{id}:1"),
        })
    );

    let task = dispatch.send_text("reply to Alice").await.unwrap().into_task().unwrap();
    assert_eq!(metadata(&task)["switchboard.dispatch"]["agent"], "mail");
    assert!(task.artifacts[0].text().starts_with("mail: reply to Alice"));
}

#[tokio::test]
async fn what_fits_no_agent_is_answered_by_dispatch_itself() {
    let (_targets, local, cards) = company();
    let server = Server::builder().agent(dispatching(cards, local.clone())).build().unwrap();
    let task = server.local("dispatch").unwrap().send_text("boil an egg").await.unwrap().into_task().unwrap();
    assert_eq!(task.artifacts[0].text(), "No agent here fits this message. These are the agents:\n- ANALYTICS\n- MAIL");
    let expected = json!({"agent": null, "reason": "no card has a word of the message", "runnersUp": []});
    assert_eq!(metadata(&task)["switchboard.dispatch"], expected);
    assert!(local.tasks.lock().unwrap().is_empty(), "nothing was passed on");
}

#[tokio::test]
async fn the_next_message_of_a_task_goes_to_the_same_agent_also_after_a_restart() {
    let (_targets, local, cards) = company();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tasks.db");
    let serve = |cards: Vec<Candidate>| {
        Server::builder().agent(dispatching(cards, local.clone())).sqlite(&file).build().unwrap()
    };
    let server = serve(cards.clone());
    let task = server.local("dispatch").unwrap().send_text("signups, ask me").await.unwrap().into_task().unwrap();
    assert_eq!(task.state(), TaskState::InputRequired);
    server.shutdown(std::time::Duration::ZERO).await;
    drop(server);

    // The answer alone would go to another agent, if it were chosen anew.
    let server = serve(cards);
    let dispatch = server.local("dispatch").unwrap();
    let task = dispatch.reply_text(&task.id, "the one that Alice wants a reply to").await.unwrap().into_task().unwrap();
    assert!(task.artifacts[0].text().starts_with("analytics: the one that Alice"), "{}", task.artifacts[0].text());
    assert_eq!(metadata(&task)["switchboard.dispatch"]["agent"], "analytics");
}

#[tokio::test]
async fn a_caller_cannot_say_what_was_chosen() {
    let (_targets, local, cards) = company();
    let server = Server::builder().agent(dispatching(cards, local)).build().unwrap();
    for key in ["switchboard.dispatch", "switchboard\\u002edispatch"] {
        let text = format!(r#"{{"{key}": {{"agent": "mail", "reason": "because"}}, "kept": 1}}"#);
        let mut send = said("signups", None);
        send.metadata = Some(Json::parse(&text, JsonLimits::default()).unwrap());
        let sent = server.local("dispatch").unwrap().send_with(send).await.unwrap();
        let said = metadata(&sent.into_task().unwrap());
        assert_eq!((&said["switchboard.dispatch"]["agent"], &said["kept"]), (&json!("analytics"), &json!(1)));
    }
}

#[tokio::test]
async fn loops_and_long_chains_are_refused_by_name() {
    let (_targets, local, cards) = company();
    let server = Server::builder().agent(dispatching(cards, local.clone())).build().unwrap();
    let dispatch = server.local("dispatch").unwrap();
    for (metadata, expected) in [
        (
            json!({"visitedApps": ["a", "Dispatch"], "delegationDepth": 2}),
            "DELEGATION_CYCLE: agent \"dispatch\" has had this message already (a > Dispatch > dispatch)",
        ),
        (
            json!({"visitedApps": ["analytics"], "delegationDepth": 1}),
            "DELEGATION_CYCLE: agent \"analytics\" has had this message already (analytics > analytics)",
        ),
        (
            json!({"delegationDepth": 3}),
            "TOO_MANY_HOPS: agent \"analytics\" is not called, because the message was passed on 3 times already",
        ),
    ] {
        let task = dispatch.send_with(said("signups", Some(&metadata))).await.unwrap().into_task().unwrap();
        assert_eq!(task.state(), TaskState::Rejected, "{metadata}");
        assert_eq!(task.status.message.as_ref().unwrap().text(), expected);
    }
    assert!(local.tasks.lock().unwrap().is_empty(), "nothing was passed on");
}

/// Three dispatchers in a circle, each of which knows the next one alone.
#[tokio::test]
async fn a_circle_of_three_dispatchers_ends() {
    let cells: [Local; 3] = Default::default();
    let shared: Vec<Arc<Mutex<Local>>> = cells.into_iter().map(|local| Arc::new(Mutex::new(local))).collect();

    struct Late(Arc<Mutex<Local>>);
    impl Forward for Late {
        fn forward<'a>(&'a self, turn: Turn, target: &'a str, hop: Hop) -> BoxFuture<'a, Result<(), AgentError>> {
            let local = self.0.lock().unwrap().clone();
            Box::pin(async move { local.forward(turn, target, hop).await })
        }
    }
    let names = ["one", "two", "three"];
    let mut builder = Server::builder();
    for (at, name) in names.iter().enumerate() {
        let next = candidate(names[(at + 1) % 3], "round and round");
        let agent = Dispatch::new(*name, vec![next], Late(shared[at].clone()));
        builder = builder.agent(AgentBuilder::new(*name, agent));
    }
    let server = builder.build().unwrap();
    for (at, cell) in shared.iter().enumerate() {
        let next = names[(at + 1) % 3];
        cell.lock().unwrap().agents.insert(next.to_owned(), server.local(next).unwrap());
    }
    let task = server.local("one").unwrap().send_text("go round").await.unwrap().into_task().unwrap();
    assert_eq!(task.state(), TaskState::Rejected);
    let reason = task.status.message.as_ref().unwrap().text();
    assert_eq!(reason, "DELEGATION_CYCLE: agent \"one\" has had this message already (one > two > one)");
    for cell in &shared {
        cell.lock().unwrap().agents.clear();
    }
}
