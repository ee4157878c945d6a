//! Every operation over every binding, in every version and dialect that our server has.

use switchboard::call::{Endpoint, ListTasks};
use switchboard::client::{Client, Credentials};
use switchboard::model::PushConfig;
use switchboard::outbound::Trust;
use switchboard::{
    AgentBuilder, AgentClient, Artifact, CallErrorKind, Dialect, Part, PartContent, ProtocolBinding, ProtocolError,
    Server, TaskId, TaskState, Tokens, Turn,
};

use super::{quick, served};
use crate::support::callers::soon;
use crate::support::edge::echo;
use crate::support::scripted::{Scripted, answer, json};
use crate::support::tls::{FIRST, tls};

const TOKEN: &str = "a-token-of-alice-for-tests";

/// One way to call: the binding, the version, and whether it can list tasks.
const WAYS: [(ProtocolBinding, &str, bool); 6] = [
    (ProtocolBinding::JsonRpc, "1.0", true),
    (ProtocolBinding::HttpJson, "1.0", true),
    (ProtocolBinding::JsonRpc, "0.3", false),
    (ProtocolBinding::HttpJson, "0.3", false),
    (ProtocolBinding::Grpc, "1.0", true),
    (ProtocolBinding::Grpc, "0.3", false),
];

async fn agent_over(url: &str, binding: ProtocolBinding, version: &str) -> AgentClient {
    let client =
        quick().bindings([binding]).versions([version]).credentials(Credentials::bearer(TOKEN)).build().unwrap();
    let agent = client.agent(url).await.unwrap();
    let spoken = agent.spoken().unwrap();
    assert_eq!((spoken.binding, spoken.version), (binding.as_str(), Some(version)));
    agent
}

#[tokio::test]
async fn every_operation_works_over_every_binding_and_version() {
    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    let server = Server::builder().agent(echo()).tokens(tokens).interfaces(ProtocolBinding::ALL);
    let (_served, url) = served(server.outbound_allow(["127.0.0.1"])).await;
    for (binding, version, lists) in WAYS {
        let agent = agent_over(&url, binding, version).await;
        soon(every_operation(&agent, lists)).await;
    }
}

async fn every_operation(agent: &AgentClient, lists: bool) {
    let way = format!("{:?}", agent.spoken());
    // Send, and read again.
    let sent = agent.send_text("hello").await.unwrap();
    assert_eq!(sent.text(), "hello", "{way}");
    let task = sent.into_task().unwrap();
    let done = task.id.clone();
    assert_eq!(agent.task(&done).await.unwrap().artifacts, task.artifacts, "{way}");
    // Several turns.
    let asked = agent.send_text("ask which?").await.unwrap().into_task().unwrap();
    assert_eq!(asked.state(), TaskState::InputRequired, "{way}");
    assert_eq!(agent.reply_text(&asked.id, "this").await.unwrap().text(), "this", "{way}");
    // Streams.
    let mut stream = agent.stream_text("chunks 3").await.unwrap();
    let mut seqs = Vec::new();
    while let Some(frame) = stream.next().await {
        seqs.extend(frame.unwrap().seq);
    }
    let task = stream.task().unwrap();
    assert_eq!((task.state(), task.artifacts[0].text().as_str()), (TaskState::Completed, "1 2 3 "), "{way}");
    assert_eq!(seqs, [1, 2, 3, 4, 5], "{way}");
    // Cancel, and follow what is canceled.
    let mut waiting = agent.stream_text("wait").await.unwrap();
    waiting.next().await.unwrap().unwrap();
    let id = waiting.task().unwrap().id.clone();
    let mut followed = agent.subscribe(&id).await.unwrap();
    assert_eq!(agent.cancel(&id).await.unwrap().state(), TaskState::Canceled, "{way}");
    for stream in [&mut waiting, &mut followed] {
        while let Some(frame) = stream.next().await {
            frame.unwrap();
        }
        assert_eq!(stream.task().unwrap().state(), TaskState::Canceled, "{way}");
    }
    let refused = agent.cancel(&done).await.unwrap_err();
    assert!(matches!(refused.protocol_error(), Some(ProtocolError::TaskNotCancelable { .. })), "{way}: {refused:?}");
    // Lists.
    match agent.tasks(ListTasks::default()).await {
        Ok(page) => assert!(lists && page.total_size >= 4, "{way}"),
        Err(error) => assert!(!lists && error.kind() == CallErrorKind::InvalidRequest, "{way}: {error:?}"),
    }
    // Webhooks.
    let open = agent.send_text("ask again?").await.unwrap().into_task().unwrap().id.clone();
    let hook = PushConfig {
        id: "hook".into(),
        task_id: open.clone(),
        url: "http://127.0.0.1:9/hook".to_owned(),
        token: None,
        authentication: None,
    };
    assert_eq!(agent.set_push_config(hook.clone()).await.unwrap().id, hook.id, "{way}");
    assert_eq!(agent.push_config(&open, &hook.id).await.unwrap().url, hook.url, "{way}");
    assert_eq!(agent.push_configs(&open, None).await.unwrap().configs.len(), 1, "{way}");
    agent.delete_push_config(&open, &hook.id).await.unwrap();
    assert_eq!(agent.push_configs(&open, None).await.unwrap().configs.len(), 0, "{way}");
    // The extended card.
    let refused = agent.extended_card().await.unwrap_err();
    use ProtocolError::{ExtendedAgentCardNotConfigured, UnsupportedOperation};
    let expected =
        matches!(refused.protocol_error(), Some(UnsupportedOperation { .. } | ExtendedAgentCardNotConfigured));
    assert!(expected && refused.kind() == CallErrorKind::Refused, "{way}: {refused:?}");
}

#[tokio::test]
async fn agents_of_older_systems_are_called_in_their_dialect() {
    let (_served, url) = served(Server::builder().agent(echo())).await;
    for dialect in Dialect::COMPAT {
        let client = quick().build().unwrap();
        let url = format!("{url}/dialects/{}", dialect.name());
        for agent in [client.agent(&url).await.unwrap(), client.agent_in(&url, dialect).await.unwrap()] {
            assert_eq!(agent.spoken().unwrap().version, None, "{dialect:?}");
            let message = agent.send_and_wait(text("hello")).await.unwrap();
            assert_eq!(message.text(), "hello", "{dialect:?}");
            let task = message.into_task().unwrap();
            // What was answered directly is not kept in every dialect.
            if let Ok(read) = agent.task(&task.id).await {
                assert_eq!(read.state(), TaskState::Completed, "{dialect:?}");
            }
        }
    }
}

fn text(text: &str) -> switchboard::Message {
    switchboard::Message::new(switchboard::Role::User, "", vec![Part::text(text)])
}

#[tokio::test]
async fn a_refusal_has_its_kind_and_what_the_wire_said() {
    let (_served, url) = served(Server::builder().agent(echo()).interfaces(ProtocolBinding::ALL)).await;
    for (binding, version, _) in WAYS {
        let agent = agent_over(&url, binding, version).await;
        let error = agent.task(&TaskId::from("nowhere")).await.unwrap_err();
        let way = format!("{binding} {version}");
        assert_eq!(error.kind(), CallErrorKind::Refused, "{way}");
        assert!(matches!(error.protocol_error(), Some(ProtocolError::TaskNotFound { .. })), "{way}: {error:?}");
        assert_eq!(error.wire_text(), Some("Task not found"), "{way}");
        assert!(!error.is_retryable() && error.may_have_arrived(), "{way}");
        let numbers = (error.http_status(), error.wire_code());
        let expected = match (binding, version) {
            (ProtocolBinding::JsonRpc, _) => (Some(200), Some(-32001)),
            (ProtocolBinding::Grpc, _) => (None, Some(5)),
            (_, "0.3") => (Some(404), Some(-32001)),
            _ => (Some(404), None),
        };
        assert_eq!(numbers, expected, "{way}");
    }
}

#[tokio::test]
async fn credentials_are_sent_with_every_call_and_can_differ_by_call() {
    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    let (_served, url) = served(Server::builder().agent(echo()).tokens(tokens)).await;
    let agent = quick().build().unwrap().agent(&url).await.unwrap();
    let refused = agent.send_text("hello").await.unwrap_err();
    assert!(matches!(refused.protocol_error(), Some(ProtocolError::Unauthenticated { .. })), "{refused:?}");
    assert_eq!(refused.http_status(), Some(401));
    let alice = agent.clone().with_credentials(Credentials::bearer(TOKEN));
    assert_eq!(alice.send_text("hello").await.unwrap().text(), "hello");
    assert!(agent.send_text("hello").await.is_err());
}

const CARD: &str = r#"{"name":"Old","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"here"}]}}"#;

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_looked_for_and_remembered() {
    for status in [404, 405] {
        let server = Scripted::start(move |_, asked| match asked.line.as_str() {
            "GET /.well-known/agent-card.json" => json(CARD),
            "POST /a2a" => json(ANSWER),
            _ => answer(status, "", "<html>not here</html>"),
        })
        .await;
        let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
        for _ in 0..2 {
            assert_eq!(agent.send_text("hello").await.unwrap().text(), "here");
        }
        let expected =
            ["GET /.well-known/agent-card.json", "POST /", "POST /_agent-native/a2a", "POST /a2a", "POST /a2a"];
        assert_eq!(server.lines(), expected);
        assert!(agent.spoken().unwrap().url.ends_with("/a2a"));
        assert!(server.asked().iter().skip(1).all(|asked| asked.header("a2a-version") == Some("0.3")));
    }
}

#[tokio::test]
async fn a_slash_that_a_server_redirects_to_is_followed() {
    let server = Scripted::start(|_, asked| match asked.line.as_str() {
        "POST /x/" => json(ANSWER),
        _ => answer(307, "location: /x/", ""),
    })
    .await;
    let card = CARD.replace(r#""url":"""#, &format!(r#""url":"{}/x""#, server.url));
    let agent = Client::builder().build().unwrap().agent(&card).await.unwrap();
    assert_eq!(agent.send_text("hello").await.unwrap().text(), "here");
    let asked = server.asked();
    assert_eq!(asked[0].body, asked[1].body);
}

#[tokio::test]
async fn a_certificate_must_be_trusted_over_every_binding() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), FIRST[0]).unwrap();
    let server = Server::builder().agent(echo()).tls(tls(FIRST)).interfaces(ProtocolBinding::ALL);
    let (served, _) = served(server).await;
    let url = format!("https://localhost:{}", served.address.port());
    let stranger = quick().build().unwrap().agent(&url).await.unwrap_err();
    assert_eq!((stranger.kind(), stranger.is_retryable()), (CallErrorKind::Unreachable, false), "{stranger}");
    assert!(stranger.to_string().contains("no known authority issued it"), "{stranger}");
    let trusts = [Trust::Certificate(file.path().to_owned()), Trust::without_verification()];
    for (binding, trust) in
        ProtocolBinding::ALL.into_iter().flat_map(|binding| trusts.clone().map(|own| (binding, own)))
    {
        let client = quick().trust(trust).bindings([binding]).build().unwrap();
        let agent = client.agent(&url).await.unwrap();
        assert!(agent.spoken().unwrap().url.starts_with("https://"), "{binding}");
        assert_eq!(soon(agent.send_text("hello")).await.unwrap().text(), "hello", "{binding}");
    }
}

#[tokio::test]
async fn the_extended_card_takes_the_place_of_the_public_one() {
    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    let extended = echo().extended_card(|card| card.description.push_str(", and more"));
    let server = Server::builder().agent(extended).tokens(tokens).interfaces(ProtocolBinding::ALL);
    let (_served, url) = served(server).await;
    for (binding, version, _) in WAYS {
        let agent = agent_over(&url, binding, version).await;
        assert_eq!(agent.card().description, "Says what it was told");
        let card = agent.extended_card().await.unwrap();
        assert_eq!(card.description, "Says what it was told, and more", "{binding} {version}");
        assert_eq!(agent.card(), card, "{binding} {version}");
        // A server that mounts the agent goes on to show the public one.
        assert_eq!(Endpoint::card(&agent).description, "Says what it was told");
    }
}

#[tokio::test]
async fn base64_that_the_python_sdk_0_3_puts_in_place_of_bytes_is_read_as_the_file() {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
    const WRAPPED: &[u8] = b"iVBORw0KGgo=";
    let painter = AgentBuilder::from_fn("Painter", |turn: Turn| async move {
        let picture = Part::raw(WRAPPED).with_media_type("image/png");
        turn.answer_with(Artifact::new("picture", vec![picture])).await?;
        Ok(())
    });
    let (_served, url) = served(Server::builder().agent(painter).interfaces(ProtocolBinding::ALL)).await;
    for (binding, version, _) in WAYS {
        let agent = agent_over(&url, binding, version).await;
        let is_wrapped = version == "0.3" && binding != ProtocolBinding::JsonRpc;
        let expected = PartContent::Raw(if is_wrapped { PNG.into() } else { WRAPPED.into() });
        let task = soon(agent.send_text("paint")).await.unwrap().into_task().unwrap();
        assert_eq!(task.artifacts[0].parts[0].content, expected, "{binding} {version}");
        let mut stream = soon(agent.stream_text("paint")).await.unwrap();
        while let Some(frame) = soon(stream.next()).await {
            frame.unwrap();
        }
        assert_eq!(stream.task().unwrap().artifacts[0].parts[0].content, expected, "{binding} {version}");
    }
}

#[tokio::test]
async fn a_task_whose_state_its_agent_does_not_know_has_ended() {
    let server = Scripted::start(|_, asked| match asked.line.starts_with("GET") {
        true => json(CARD),
        false => json(r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"unknown"}}}"#),
    })
    .await;
    let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
    let sent = soon(agent.send_and_wait(text("hello"))).await.unwrap();
    assert_eq!(sent.result().error.as_deref(), Some("the task failed"));
    assert_eq!(server.lines().len(), 2);
}
