//! Every operation of A2A 1.0 over gRPC, and who may call.

use switchboard::{ProtocolBinding, Server, Tokens};
use switchboard_core::dialect::v1_0::proto::generated as wire;
use wire::part::Content;
use wire::send_message_response::Payload;
use wire::{TaskState, stream_response};

use crate::support::edge::echo;
use crate::support::grpc::{Client, Served, Whole};

async fn served() -> Served {
    Served::start(Server::builder().agent(echo())).await
}

pub(super) fn say(text: &str) -> wire::SendMessageRequest {
    let part = wire::Part { content: Some(Content::Text(text.to_owned())), ..Default::default() };
    let message = wire::Message { message_id: "m-1".to_owned(), role: 1, parts: vec![part], ..Default::default() };
    wire::SendMessageRequest { message: Some(message), ..Default::default() }
}

async fn task(client: &Client, text: &str) -> wire::Task {
    let sent: wire::SendMessageResponse = client.call("SendMessage", &say(text)).await.unwrap();
    match sent.payload {
        Some(Payload::Task(task)) => task,
        other => panic!("{other:?}"),
    }
}

fn get(id: &str) -> wire::GetTaskRequest {
    wire::GetTaskRequest { id: id.to_owned(), ..Default::default() }
}

fn state(task: &wire::Task) -> TaskState {
    task.status.as_ref().unwrap().state()
}

#[tokio::test]
async fn a_send_waits_for_the_task_and_get_and_list_find_it() {
    let served = served().await;
    let client = served.client().await;
    let done = task(&client, "hello").await;
    assert_eq!(state(&done), TaskState::Completed);
    assert_eq!(done.artifacts[0].parts[0].content, Some(Content::Text("hello".to_owned())));
    assert_eq!(done.history.len(), 1);
    assert!(done.status.as_ref().unwrap().timestamp.is_some());
    let again: wire::Task = client.call("GetTask", &get(&done.id)).await.unwrap();
    assert_eq!(again, done);
    let bare = wire::GetTaskRequest { history_length: Some(0), ..get(&done.id) };
    let bare: wire::Task = client.call("GetTask", &bare).await.unwrap();
    assert_eq!(bare, wire::Task { history: Vec::new(), ..done.clone() });

    let asked = wire::ListTasksRequest { page_size: Some(1), include_artifacts: Some(true), ..Default::default() };
    task(&client, "another").await;
    let page: wire::ListTasksResponse = client.call("ListTasks", &asked).await.unwrap();
    assert_eq!((page.tasks.len(), page.page_size, page.total_size), (1, 1, 2));
    let asked = wire::ListTasksRequest { page_token: page.next_page_token, ..asked };
    let page: wire::ListTasksResponse = client.call("ListTasks", &asked).await.unwrap();
    assert_eq!(page, wire::ListTasksResponse { tasks: vec![done], next_page_token: String::new(), ..page.clone() });
}

#[tokio::test]
async fn a_task_is_streamed_asked_continued_and_canceled() {
    let served = served().await;
    let client = served.client().await;
    let asking = task(&client, "ask which one?").await;
    assert_eq!(state(&asking), TaskState::InputRequired);
    let mut answer = say("that one");
    answer.message.as_mut().unwrap().task_id = asking.id.clone();
    let streamed = client.open("SendStreamingMessage", &answer).await.whole().await;
    streamed.ending().unwrap();
    let last = <wire::StreamResponse as prost::Message>::decode(streamed.messages.last().unwrap().clone()).unwrap();
    let Some(stream_response::Payload::StatusUpdate(last)) = last.payload else { panic!("{last:?}") };
    assert_eq!(last.status.unwrap().state(), TaskState::Completed);

    let asking = task(&client, "ask which one?").await;
    let cancel = wire::CancelTaskRequest { id: asking.id.clone(), ..Default::default() };
    let canceled: wire::Task = client.call("CancelTask", &cancel).await.unwrap();
    assert_eq!(state(&canceled), TaskState::Canceled);
}

#[tokio::test]
async fn a_subscription_begins_with_the_task_and_goes_on() {
    let served = served().await;
    let client = served.client().await;
    let asking = task(&client, "ask which one?").await;
    let subscribe = wire::SubscribeToTaskRequest { id: asking.id.clone(), ..Default::default() };
    let mut stream = client.open("SubscribeToTask", &subscribe).await;
    let first: wire::StreamResponse = stream.next_of().await.unwrap();
    assert_eq!(first.payload, Some(stream_response::Payload::Task(asking.clone())));
    let cancel = wire::CancelTaskRequest { id: asking.id, ..Default::default() };
    client.call::<wire::Task>("CancelTask", &cancel).await.unwrap();
    let mut last = None;
    while let Some(update) = stream.next_of::<wire::StreamResponse>().await {
        last = update.payload;
    }
    let Some(stream_response::Payload::StatusUpdate(last)) = last else { panic!("{last:?}") };
    assert_eq!(last.status.unwrap().state(), TaskState::Canceled);
}

#[tokio::test]
async fn webhooks_are_registered_found_listed_and_deleted() {
    let served = served().await;
    let client = served.client().await;
    let asking = task(&client, "ask which one?").await;
    let config = wire::TaskPushNotificationConfig {
        task_id: asking.id.clone(),
        url: "https://hooks.example/".to_owned(),
        token: "t".to_owned(),
        authentication: Some(wire::AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: "c".to_owned() }),
        ..Default::default()
    };
    let made: wire::TaskPushNotificationConfig =
        client.call("CreateTaskPushNotificationConfig", &config).await.unwrap();
    let scheme_only = Some(wire::AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: String::new() });
    let shown = wire::TaskPushNotificationConfig { token: String::new(), authentication: scheme_only, ..config };
    assert_eq!(made, wire::TaskPushNotificationConfig { id: made.id.clone(), ..shown }, "all but its secrets");
    let one = wire::GetTaskPushNotificationConfigRequest {
        task_id: asking.id.clone(),
        id: made.id.clone(),
        ..Default::default()
    };
    let found: wire::TaskPushNotificationConfig = client.call("GetTaskPushNotificationConfig", &one).await.unwrap();
    assert_eq!(found, made);
    let all = wire::ListTaskPushNotificationConfigsRequest { task_id: asking.id.clone(), ..Default::default() };
    let list = "ListTaskPushNotificationConfigs";
    let listed: wire::ListTaskPushNotificationConfigsResponse = client.call(list, &all).await.unwrap();
    assert_eq!(listed.configs, std::slice::from_ref(&made));
    let gone = wire::DeleteTaskPushNotificationConfigRequest { task_id: asking.id, id: made.id, ..Default::default() };
    for _ in 0..2 {
        client.call::<()>("DeleteTaskPushNotificationConfig", &gone).await.unwrap();
    }
    let listed: wire::ListTaskPushNotificationConfigsResponse = client.call(list, &all).await.unwrap();
    assert_eq!(listed.configs, []);
}

#[tokio::test]
async fn the_extended_card_names_every_interface() {
    let agent = echo().extended_card(|card| card.description.push_str(", and more")).extended_card_for_anyone();
    let served = Served::start(Server::builder().agent(agent).interfaces(ProtocolBinding::ALL)).await;
    let card: wire::AgentCard = served
        .client()
        .await
        .call("GetExtendedAgentCard", &wire::GetExtendedAgentCardRequest::default())
        .await
        .unwrap();
    assert_eq!(card.description, "Says what it was told, and more");
    let url = format!("http://{}", served.address);
    let interfaces: Vec<_> = card
        .supported_interfaces
        .iter()
        .map(|it| (it.protocol_binding.as_str(), it.protocol_version.as_str(), it.url.replace(&url, "URL")))
        .collect();
    let target = served.address.to_string();
    assert_eq!(
        interfaces,
        [
            ("JSONRPC", "1.0", "URL".to_owned()),
            ("HTTP+JSON", "1.0", "URL".to_owned()),
            ("GRPC", "1.0", target.clone()),
            ("JSONRPC", "0.3", "URL/rpc".to_owned()),
            ("HTTP+JSON", "0.3", "URL".to_owned()),
            ("GRPC", "0.3", target),
        ]
    );
}

#[tokio::test]
async fn an_activated_extension_is_said_in_the_answer() {
    let agent = echo().extension("urn:example:geo", "Coordinates", false);
    let served = Served::start(Server::builder().agent(agent)).await;
    let client = served.client().await.with("a2a-extensions", "urn:example:other, urn:example:geo");
    let answer: Whole = client.open("SendMessage", &say("hello")).await.whole().await;
    assert_eq!(answer.head["a2a-extensions"], "urn:example:geo");
}

const ALICE: &str = "a-token-of-alice-for-tests";

#[tokio::test]
async fn a_token_in_the_metadata_says_who_calls_and_the_tenant_only_selects() {
    let tokens = Tokens::parse(&format!("{ALICE} alice acme,globex\na-token-of-bob-for-tests bob acme")).unwrap();
    let served = Served::start(Server::builder().agent(echo()).tokens(tokens)).await;
    let nobody = served.client().await;
    let refused = nobody.refusal("SendMessage", &say("hello")).await;
    assert_eq!((refused.code, refused.reason.as_str()), (16, "UNAUTHENTICATED"));
    let alice = nobody.with("authorization", format!("Bearer {ALICE}"));
    let bob = nobody.with("authorization", "Bearer a-token-of-bob-for-tests");
    let own = task(&alice, "hello").await;
    assert_eq!(bob.refusal("GetTask", &get(&own.id)).await.gist(), "5 TASK_NOT_FOUND");
    let elsewhere = wire::GetTaskRequest { tenant: "globex".to_owned(), ..get(&own.id) };
    assert_eq!(alice.refusal("GetTask", &elsewhere).await.gist(), "5 TASK_NOT_FOUND");
    assert_eq!(bob.refusal("GetTask", &elsewhere).await.gist(), "7 PERMISSION_DENIED");
    let here = wire::GetTaskRequest { tenant: "acme".to_owned(), ..get(&own.id) };
    assert_eq!(alice.call::<wire::Task>("GetTask", &here).await.unwrap(), own);
}

#[tokio::test]
async fn another_agent_is_called_below_its_path() {
    let other = switchboard::AgentBuilder::from_fn("Other", |turn: switchboard::Turn| async move {
        turn.answer("the other one").await?;
        Ok(())
    });
    let served = Served::start(Server::builder().agent(echo()).agent(other)).await;
    let client = served.client().await;
    let body = crate::support::grpc::framed(&prost::Message::encode_to_vec(&say("hello")));
    let path = "/agents/other/lf.a2a.v1.A2AService/SendMessage";
    let answer = client.raw(path, body.clone()).await.whole().await;
    answer.ending().unwrap();
    let text = String::from_utf8_lossy(&answer.messages[0]).into_owned();
    assert!(text.contains("the other one"), "{text}");
    let nobody = client.raw("/agents/nobody/lf.a2a.v1.A2AService/SendMessage", body).await.whole().await;
    assert_eq!(nobody.ending().unwrap_err().gist(), "12 METHOD_NOT_FOUND");
}
