//! Webhooks of a task: created, replaced, read, listed page by page, deleted, and bounded in number.

use expect_test::expect;
use switchboard_core::call::{PushConfigPage, Reply, Request, SendMessage};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AuthenticationInfo, PushConfig, TaskId};
use switchboard_engine::runs::{Traits, Turn};

use crate::support::callers::{Client, hook, reply_to, say};
use crate::support::on_both_stores;
use crate::support::pictures::wire;
use crate::support::puppets::{echo, from_fn};
use crate::support::world::{Setup, Stock, World, registered, with_card};

on_both_stores!(a_config_is_created_read_replaced_and_deleted, configs_are_bounded_in_number);

async fn get(client: &Client, task_id: &TaskId, id: &str) -> Result<PushConfig, ProtocolError> {
    match client.call(Request::GetPushConfig { task_id: task_id.clone(), id: id.into() }).await? {
        Reply::PushConfig(config) => Ok(config),
        _ => panic!("a config was expected"),
    }
}

async fn delete(client: &Client, task_id: &TaskId, id: &str) -> Result<(), ProtocolError> {
    match client.call(Request::DeletePushConfig { task_id: task_id.clone(), id: id.into() }).await? {
        Reply::Deleted => Ok(()),
        _ => panic!("a delete was expected"),
    }
}

async fn ids(client: &Client, task_id: &TaskId) -> Vec<String> {
    client.configs(task_id).await.unwrap().configs.iter().map(|config| config.id.to_string()).collect()
}

async fn a_config_is_created_read_replaced_and_deleted(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    let client = world.client();
    let task = client.send(say("hello")).await.unwrap();
    let whole = PushConfig {
        token: Some("a token".to_owned()),
        authentication: Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: Some("secret".to_owned()),
        }),
        ..hook(task.id.as_str(), "mine")
    };
    assert_eq!(client.register(whole.clone()).await.unwrap(), whole);
    assert_eq!(get(&client, &task.id, "mine").await.unwrap(), whole);

    let named = client.register(hook(task.id.as_str(), "")).await.unwrap();
    assert_eq!(named.id.as_str().len(), 36, "the server gives it a name: {}", named.id);
    assert_eq!(get(&client, &task.id, named.id.as_str()).await.unwrap(), named);
    assert_eq!(ids(&client, &task.id).await, [named.id.as_str(), "mine"]);

    let moved = PushConfig { url: "https://elsewhere.example/".to_owned(), ..hook(task.id.as_str(), "mine") };
    assert_eq!(client.register(moved.clone()).await.unwrap(), moved);
    assert_eq!(client.configs(&task.id).await.unwrap().configs, [named.clone(), moved], "replaced, not added");

    delete(&client, &task.id, "mine").await.unwrap();
    delete(&client, &task.id, "mine").await.unwrap();
    assert_eq!(ids(&client, &task.id).await, [named.id.as_str()]);
    let gone = get(&client, &task.id, "mine").await.unwrap_err();
    assert_eq!(gone, ProtocolError::PushConfigNotFound { task_id: task.id.clone(), id: "mine".into() });
    assert_eq!(gone.to_string(), "The task has no push config mine");
}

async fn configs_are_bounded_in_number(stock: Stock) {
    let agent = from_fn(Traits::default(), |turn: Turn| async move { Ok(turn.ask("which?").await?) });
    let world =
        Setup::on(stock).limits(|limits| limits.push_configs_max = 2).agent(registered("asking", agent)).start();
    let client = world.client();
    let send = SendMessage { push_config: Some(hook("", "a")), ..say("hello") };
    let task = client.send(send).await.unwrap();
    client.register(hook(task.id.as_str(), "b")).await.unwrap();
    let full = client.register(hook(task.id.as_str(), "c")).await.unwrap_err().to_string();
    assert_eq!(full, "Invalid parameters: id: task has 2 push configs, the most it keeps; delete one first");
    // The same bound holds for those that come with a message; replacing one is always possible.
    let inline = |id: &str| SendMessage { push_config: Some(hook("", id)), ..reply_to(&task.id, "red") };
    let full = client.send(inline("c")).await.unwrap_err().to_string();
    let expected = "Invalid parameters: configuration.taskPushNotificationConfig: task has 2 push configs, the most it keeps; delete one first";
    assert_eq!(full, expected);
    assert_eq!(client.task(&task.id).await.unwrap().history.len(), 1, "a refused message leaves nothing");
    client.register(hook(task.id.as_str(), "b")).await.unwrap();
    client.send(inline("a")).await.unwrap();
    assert_eq!(ids(&client, &task.id).await, ["a", "b"]);
    delete(&client, &task.id, "a").await.unwrap();
    client.register(hook(task.id.as_str(), "c")).await.unwrap();
    assert_eq!(ids(&client, &task.id).await, ["b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn configs_are_listed_page_by_page() {
    let world = World::of(registered("echo", echo()));
    let client = world.client();
    let task = client.send(say("hello")).await.unwrap();
    for id in ["c", "a", "e", "b", "d"] {
        client.register(hook(task.id.as_str(), id)).await.unwrap();
    }
    let page = async |page_size, page_token: &str| -> Result<PushConfigPage, ProtocolError> {
        let (task_id, page_token) = (task.id.clone(), Some(page_token.to_owned()));
        match client.call(Request::ListPushConfigs { task_id, page_size, page_token }).await? {
            Reply::PushConfigs(page) => Ok(page),
            _ => panic!("configs were expected"),
        }
    };
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let shown = page(Some(2), &token).await.unwrap();
        seen.push(shown.configs.iter().map(|config| config.id.to_string()).collect::<String>());
        token = shown.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, ["ab", "cd", "e"]);
    let refused = page(Some(2), "never given out").await.err().unwrap();
    assert_eq!(refused.to_string(), "Invalid parameters: pageToken: is not a token this server gave out");
}

#[tokio::test(start_paused = true)]
async fn what_the_client_reads() {
    let world = World::of(registered("echo", echo()));
    let task = world.client().send(say("hello")).await.unwrap();
    let reply = world.client().call(Request::CreatePushConfig(hook(task.id.as_str(), "c").into())).await.unwrap();
    expect![[r#"{"id":"c","taskId":"TASK","url":"https://hooks.example/in"}"#]]
        .assert_eq(&wire(&reply).to_string().replace(task.id.as_str(), "TASK"));
    let list = Request::ListPushConfigs { task_id: task.id.clone(), page_size: None, page_token: None };
    let reply = world.client().call(list).await.unwrap();
    expect![[r#"{"configs":[{"id":"c","taskId":"TASK","url":"https://hooks.example/in"}]}"#]]
        .assert_eq(&wire(&reply).to_string().replace(task.id.as_str(), "TASK"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_push_says_so_before_it_looks_for_the_task() {
    let agent = with_card(registered("echo", echo()), |card| card.capabilities.push_notifications = Some(false));
    let world = World::of(agent);
    let task = world.client().send(say("hello")).await.unwrap();
    for id in [task.id.as_str(), "no-such-task"] {
        let task_id = TaskId::from(id);
        for request in [
            Request::CreatePushConfig(hook(id, "c").into()),
            Request::GetPushConfig { task_id: task_id.clone(), id: "c".into() },
            Request::ListPushConfigs { task_id: task_id.clone(), page_size: None, page_token: None },
            Request::DeletePushConfig { task_id, id: "c".into() },
        ] {
            let refused = world.client().call(request).await.err().unwrap();
            assert_eq!(refused, ProtocolError::PushNotificationNotSupported);
        }
    }
}
