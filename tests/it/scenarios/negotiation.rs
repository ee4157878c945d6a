//! What an agent can read and write, and which extensions it insists on: refused before anything is stored.

use switchboard_core::call::{ListTasks, SendMessage};
use switchboard_core::model::{AgentExtension, AgentSkill, Part, TaskState};
use switchboard_engine::runs::Traits;

use crate::support::callers::{hook, reply_to, say, soon};
use crate::support::puppets::{echo, puppet};
use crate::support::world::{World, registered, with_card};

fn accepting(modes: &[&str]) -> SendMessage {
    SendMessage { accepted_output_modes: modes.iter().map(|mode| (*mode).to_owned()).collect(), ..say("hello") }
}

#[tokio::test(start_paused = true)]
async fn what_a_client_accepts_is_a_preference() {
    let world = World::of(registered("echo", echo()));
    let task = world.client().send(accepting(&["application/json"])).await.unwrap();
    assert_eq!((task.state(), task.artifacts[0].text().as_str()), (TaskState::Completed, "hello"));
    assert!(world.client().stream(accepting(&["audio/wav"])).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_strict_agent_refuses_a_client_that_accepts_nothing_it_writes() {
    let strict = echo().with_traits(|traits| traits.with_strict_output_modes(true));
    let agent = with_card(registered("echo", strict), |card| {
        card.skills = vec![AgentSkill { output_modes: vec!["image/png".to_owned()], ..AgentSkill::default() }];
    });
    let world = World::of(agent);
    for modes in
        [&["text/plain"][..], &[], &["*/*"], &["TEXT/*"], &["audio/wav", "text/plain; charset=utf-8"], &["image/png"]]
    {
        assert_eq!(world.client().send(accepting(modes)).await.unwrap().state(), TaskState::Completed, "{modes:?}");
    }
    let before = world.client().list(ListTasks::default()).await.unwrap().total_size;
    let refused = world.client().send(accepting(&["audio/wav", "text/html"])).await.unwrap_err();
    let expected = "configuration.acceptedOutputModes: this agent writes text/plain, none of audio/wav, text/html";
    assert_eq!(refused.to_string(), expected);
    let refused = world.client().stream(accepting(&["audio/wav"])).await.err().unwrap();
    assert_eq!(
        refused.to_string(),
        "configuration.acceptedOutputModes: this agent writes text/plain, none of audio/wav"
    );
    assert_eq!(world.client().list(ListTasks::default()).await.unwrap().total_size, before);
}

#[tokio::test(start_paused = true)]
async fn the_agent_is_told_what_the_caller_can_read() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let sending = world.client().sending(accepting(&["text/plain", "text/csv"]));
    let act = acts.next().await;
    assert_eq!(act.turn.accepted_output_modes(), ["text/plain", "text/csv"]);
    act.returns();
    soon(sending).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_part_the_agent_does_not_read_is_refused_by_name() {
    let agent = with_card(registered("echo", echo()), |card| {
        card.default_input_modes = vec!["text/plain".to_owned(), "application/*".to_owned()];
        card.skills = vec![AgentSkill { input_modes: vec!["image/png".to_owned()], ..AgentSkill::default() }];
    });
    let world = World::of(agent);
    let with_part = |part: Part| {
        let mut send = say("hello");
        send.message.parts.push(part);
        send
    };
    for media_type in ["text/plain", "application/pdf", "IMAGE/PNG"] {
        let part = Part::raw(b"x".as_slice()).with_media_type(media_type);
        assert_eq!(world.client().send(with_part(part)).await.unwrap().state(), TaskState::Completed, "{media_type}");
    }
    // A part that does not say what it is is taken.
    assert!(world.client().send(with_part(Part::url("https://example.com/x"))).await.is_ok());
    let refused = world.client().send(with_part(Part::text("<p>").with_media_type("text/html"))).await.unwrap_err();
    let expected =
        "message.parts[1].mediaType: this agent does not read text/html (it reads text/plain, application/*)";
    assert_eq!(refused.to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_required_extension_must_be_asked_for_with_every_message() {
    let extension =
        |uri: &str, required| AgentExtension { uri: uri.to_owned(), description: None, required, params: None };
    let (agent, acts) = puppet(Traits::default());
    let agent = with_card(registered("puppet", agent), |card| {
        card.capabilities.extensions = vec![extension("urn:must", true), extension("urn:may", false)];
    });
    let world = World::of(agent);
    let asking = world.client().with(|caller| caller.extensions = vec!["urn:must".to_owned(), "urn:may".to_owned()]);
    let sending = asking.sending(say("hello"));
    let act = acts.next().await;
    assert_eq!(act.turn.extensions(), ["urn:must", "urn:may"]);
    act.turn.ask("which?").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();

    let expected = "This agent requires the extension urn:must: send header A2A-Extensions: urn:must";
    let without = world.client().with(|caller| caller.extensions = vec!["urn:may".to_owned()]);
    for client in [world.client(), without] {
        assert_eq!(client.send(say("hello")).await.unwrap_err().to_string(), expected);
        assert_eq!(client.stream(say("hello")).await.err().unwrap().to_string(), expected);
        assert_eq!(client.send(reply_to(&task.id, "red")).await.unwrap_err().to_string(), expected);
    }
    // Reading needs no extension.
    assert_eq!(world.client().task(&task.id).await.unwrap().state(), TaskState::InputRequired);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_for_an_agent_without_push_is_refused() {
    let agent = with_card(registered("echo", echo()), |card| card.capabilities.push_notifications = None);
    let world = World::of(agent);
    let send = SendMessage { push_config: Some(hook("", "c")), ..say("hello") };
    let expected = "Push notifications are not supported by this agent";
    assert_eq!(world.client().send(send.clone()).await.unwrap_err().to_string(), expected);
    assert_eq!(world.client().stream(send).await.err().unwrap().to_string(), expected);
    assert_eq!(world.client().list(ListTasks::default()).await.unwrap().total_size, 0);
}
