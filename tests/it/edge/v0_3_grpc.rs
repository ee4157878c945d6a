//! A2A 0.3 over gRPC: `a2a.v1.A2AService`.

use switchboard::{ProtocolBinding, Server};
use switchboard_core::dialect::v0_3::proto::generated as wire;
use wire::part::Part as Content;
use wire::send_message_response::Payload;
use wire::{TaskState, stream_response};

use crate::support::edge::echo;
use crate::support::grpc::{Client, Served, V0_3};

fn say(text: &str) -> wire::SendMessageRequest {
    let part = wire::Part { part: Some(Content::Text(text.to_owned())), ..Default::default() };
    let message = wire::Message { message_id: "m-1".to_owned(), role: 1, content: vec![part], ..Default::default() };
    wire::SendMessageRequest { request: Some(message), ..Default::default() }
}

async fn task(client: &Client, text: &str) -> wire::Task {
    let sent: wire::SendMessageResponse = client.call("SendMessage", &say(text)).await.unwrap();
    match sent.payload {
        Some(Payload::Task(task)) => task,
        other => panic!("{other:?}"),
    }
}

fn state(task: &wire::Task) -> TaskState {
    task.status.as_ref().unwrap().state()
}

#[tokio::test]
async fn tasks_are_sent_found_and_canceled_by_name() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let client = served.client_of(V0_3).await;
    let done = task(&client, "hello").await;
    assert_eq!(state(&done), TaskState::Completed);
    assert_eq!(done.artifacts[0].parts[0].part, Some(Content::Text("hello".to_owned())));
    let get = wire::GetTaskRequest { name: format!("tasks/{}", done.id), history_length: 0 };
    assert_eq!(client.call::<wire::Task>("GetTask", &get).await.unwrap(), done, "0 is no limit");
    let asking = task(&client, "ask which?").await;
    let cancel = wire::CancelTaskRequest { name: format!("tasks/{}", asking.id) };
    let canceled: wire::Task = client.call("CancelTask", &cancel).await.unwrap();
    assert_eq!(state(&canceled), TaskState::Cancelled);
    let bare = wire::GetTaskRequest { name: done.id, history_length: 0 };
    let refused = client.refusal("GetTask", &bare).await;
    assert_eq!((refused.gist(), refused.fields), ("3 INVALID_PARAMS".to_owned(), vec!["name".to_owned()]));
}

#[tokio::test]
async fn a_stream_says_where_it_ends() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let client = served.client_of(V0_3).await;
    let mut stream = client.open("SendStreamingMessage", &say("ask which?")).await;
    let mut last = None;
    let mut id = String::new();
    while let Some(update) = stream.next_of::<wire::StreamResponse>().await {
        match update.payload.unwrap() {
            stream_response::Payload::Task(task) => id = task.id,
            stream_response::Payload::StatusUpdate(update) => last = Some(update),
            other => panic!("{other:?}"),
        }
    }
    let last = last.unwrap();
    assert!(last.r#final);
    assert_eq!(last.status.unwrap().state(), TaskState::InputRequired);
    let subscription = wire::TaskSubscriptionRequest { name: format!("tasks/{id}") };
    let mut stream = client.open("TaskSubscription", &subscription).await;
    let first: wire::StreamResponse = stream.next_of().await.unwrap();
    assert!(matches!(first.payload, Some(stream_response::Payload::Task(_))), "{first:?}");
}

#[tokio::test]
async fn a_send_that_does_not_block_returns_at_once() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let client = served.client_of(V0_3).await;
    let send =
        wire::SendMessageRequest { configuration: Some(wire::SendMessageConfiguration::default()), ..say("wait") };
    let sent: wire::SendMessageResponse = client.call("SendMessage", &send).await.unwrap();
    let Some(Payload::Task(task)) = sent.payload else { panic!("{sent:?}") };
    assert!(matches!(state(&task), TaskState::Submitted | TaskState::Working), "{task:?}");
}

#[tokio::test]
async fn webhooks_are_resources() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let client = served.client_of(V0_3).await;
    let asking = task(&client, "ask which?").await;
    let parent = format!("tasks/{}", asking.id);
    let create = wire::CreateTaskPushNotificationConfigRequest {
        parent: parent.clone(),
        config_id: "hook".to_owned(),
        config: Some(wire::TaskPushNotificationConfig {
            name: String::new(),
            push_notification_config: Some(wire::PushNotificationConfig {
                url: "https://hooks.example/".to_owned(),
                authentication: Some(wire::AuthenticationInfo {
                    schemes: vec!["Bearer".to_owned()],
                    credentials: "c".to_owned(),
                }),
                ..Default::default()
            }),
        }),
    };
    let made: wire::TaskPushNotificationConfig =
        client.call("CreateTaskPushNotificationConfig", &create).await.unwrap();
    let name = format!("{parent}/pushNotificationConfigs/hook");
    assert_eq!(made.name, name);
    let get = wire::GetTaskPushNotificationConfigRequest { name: name.clone() };
    let found: wire::TaskPushNotificationConfig = client.call("GetTaskPushNotificationConfig", &get).await.unwrap();
    assert_eq!(found, made);
    let list = wire::ListTaskPushNotificationConfigRequest { parent, ..Default::default() };
    let listed: wire::ListTaskPushNotificationConfigResponse =
        client.call("ListTaskPushNotificationConfig", &list).await.unwrap();
    assert_eq!(listed.configs, [made]);
    let gone = wire::DeleteTaskPushNotificationConfigRequest { name };
    client.call::<()>("DeleteTaskPushNotificationConfig", &gone).await.unwrap();
    assert_eq!(client.refusal("GetTaskPushNotificationConfig", &get).await.gist(), "5 TASK_NOT_FOUND");
}

#[tokio::test]
async fn the_card_is_that_of_0_3() {
    let agent = echo().extended_card(|card| card.description.push_str(", and more")).extended_card_for_anyone();
    let served = Served::start(Server::builder().agent(agent).interfaces(ProtocolBinding::ALL)).await;
    let client = served.client_of(V0_3).await;
    let card: wire::AgentCard = client.call("GetAgentCard", &wire::GetAgentCardRequest {}).await.unwrap();
    assert_eq!((card.protocol_version.as_str(), card.preferred_transport.as_str()), ("0.3.0", "JSONRPC"));
    let transports: Vec<_> = card.additional_interfaces.iter().map(|it| it.transport.as_str()).collect();
    assert_eq!(transports, ["JSONRPC", "HTTP+JSON", "GRPC"]);
    assert_eq!(card.additional_interfaces[2].url, served.address.to_string());
    assert!(card.supports_authenticated_extended_card);
    let bare = Served::start(Server::builder().agent(echo())).await;
    let refused = bare.client_of(V0_3).await.refusal("GetAgentCard", &wire::GetAgentCardRequest {}).await;
    assert_eq!(refused.gist(), "9 EXTENDED_AGENT_CARD_NOT_CONFIGURED");
}

#[tokio::test]
async fn there_is_no_list_of_tasks() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let refused = served.client_of(V0_3).await.refusal("ListTasks", &()).await;
    assert_eq!(refused.gist(), "12 METHOD_NOT_FOUND");
}
