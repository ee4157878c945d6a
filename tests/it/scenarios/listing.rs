//! ListTasks: whose tasks, which of them, in what order, page by page.

use std::time::Duration;

use expect_test::expect;
use switchboard_core::call::{ListTasks, Request};
use switchboard_core::model::{TaskState, Timestamp};
use switchboard_engine::runs::{Traits, Turn};

use crate::support::callers::{Client, reply_to, say};
use crate::support::on_both_stores;
use crate::support::pictures::{refusal, wire, words};
use crate::support::puppets::{echo, from_fn};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(pages_go_through_everything_once, bad_pages_are_refused);

fn page_of(page_size: u32) -> ListTasks {
    ListTasks { page_size: Some(page_size), ..ListTasks::default() }
}

async fn say_all(client: &Client, texts: &[&str]) {
    for text in texts {
        client.send(say(text)).await.unwrap();
    }
}

async fn pages_go_through_everything_once(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    let client = world.client();
    say_all(&client, &["a", "b", "c", "d", "e"]).await;
    let mut pages = Vec::new();
    let mut list = page_of(2);
    loop {
        let page = client.list(list.clone()).await.unwrap();
        assert_eq!((page.page_size, page.total_size), (2, 5));
        pages.push(page.tasks.iter().map(|view| words(&view.task.history[0])).collect::<Vec<_>>().join(" "));
        if page.next_page_token.is_empty() {
            break;
        }
        list.page_token = Some(page.next_page_token);
    }
    assert_eq!(pages, ["e d", "c b", "a"]);
    // A page that is just full is the last one if nothing follows.
    assert_eq!(client.list(page_of(5)).await.unwrap().next_page_token, "");
}

async fn bad_pages_are_refused(stock: Stock) {
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    let client = world.client();
    say_all(&client, &["a", "b"]).await;
    let token = client.list(page_of(1)).await.unwrap().next_page_token;
    let refused = async |list: ListTasks| client.list(list).await.err().unwrap().to_string();
    let not_ours = "Invalid parameters: pageToken: is not a token this server gave out; repeat the list without it";
    for bad in ["x", "0", &token[1..], &format!("{token}0"), &token.replace(&token[0..2], "zz"), "éééééééééééééééééééé"]
    {
        let list = ListTasks { page_token: Some(bad.to_owned()), ..page_of(1) };
        assert_eq!(refused(list).await, not_ours, "{bad}");
    }
    let other = ListTasks { state: Some(TaskState::Failed), page_token: Some(token.clone()), ..page_of(1) };
    let expected = "Invalid parameters: pageToken: belongs to a list with other filters; repeat the list without it";
    assert_eq!(refused(other).await, expected);
    for size in [0, 101, u32::MAX] {
        assert_eq!(refused(page_of(size)).await, "Invalid parameters: pageSize: must be between 1 and 100");
    }
    // Another page size is not another list.
    assert_eq!(client.listed(ListTasks { page_token: Some(token), ..page_of(100) }).await, ["a"]);
}

/// Asks when the text says so, else completes.
fn asking() -> switchboard_engine::runs::AgentSource {
    from_fn(Traits::default(), |turn: Turn| async move {
        if turn.text().starts_with("ask") {
            turn.ask("which?").await?;
        } else {
            turn.answer("done").await?;
        }
        Ok(())
    })
}

#[tokio::test(start_paused = true)]
async fn filters_are_joined_by_and() {
    let world = World::of(registered("asking", asking()));
    let client = world.client();
    let in_context = |text: &str| {
        let mut send = say(text);
        send.message.context_id = Some("here".into());
        send
    };
    client.send(in_context("ask 1")).await.unwrap();
    client.send(in_context("tell 2")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let noon = world.now();
    client.send(in_context("ask 3")).await.unwrap();
    client.send(say("ask 4")).await.unwrap();
    let here = || ListTasks { context_id: Some("here".into()), ..ListTasks::default() };
    let asked = |list: ListTasks| ListTasks { state: Some(TaskState::InputRequired), ..list };
    let since = |list: ListTasks, at: Timestamp| ListTasks { status_since: Some(at), ..list };
    assert_eq!(client.listed(ListTasks::default()).await, ["ask 4", "ask 3", "tell 2", "ask 1"]);
    assert_eq!(client.listed(here()).await, ["ask 3", "tell 2", "ask 1"]);
    assert_eq!(client.listed(asked(ListTasks::default())).await, ["ask 4", "ask 3", "ask 1"]);
    assert_eq!(client.listed(asked(here())).await, ["ask 3", "ask 1"]);
    assert_eq!(client.listed(since(asked(here()), noon)).await, ["ask 3"], "the moment itself counts");
    assert_eq!(client.listed(since(here(), noon.plus_ms(1))).await, [""; 0]);
    let page = client.list(ListTasks { page_size: Some(1), ..asked(here()) }).await.unwrap();
    assert_eq!(page.total_size, 2, "all that match, on whatever page");
    let elsewhere = ListTasks { context_id: Some("elsewhere".into()), ..ListTasks::default() };
    assert_eq!(client.list(elsewhere).await.unwrap().total_size, 0);
}

#[tokio::test(start_paused = true)]
async fn the_newest_status_comes_first() {
    let world = World::of(registered("asking", asking()));
    let client = world.client();
    say_all(&client, &["ask 1", "ask 2", "tell 3"]).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(client.listed(ListTasks::default()).await, ["tell 3", "ask 2", "ask 1"]);
    let oldest = client.list(ListTasks::default()).await.unwrap().tasks[2].task.id.clone();
    client.send(reply_to(&oldest, "red")).await.unwrap();
    assert_eq!(client.listed(ListTasks::default()).await, ["ask 1", "tell 3", "ask 2"]);
}

#[tokio::test(start_paused = true)]
async fn paging_is_not_disturbed_by_tasks_that_change_meanwhile() {
    let world = World::of(registered("asking", asking()));
    let client = world.client();
    say_all(&client, &["ask 1", "ask 2", "ask 3", "ask 4"]).await;
    let first = client.list(page_of(2)).await.unwrap();
    assert_eq!(words(&first.tasks[1].task.history[0]), "ask 3");
    // A task of the first page moves to the front, and a new one comes.
    tokio::time::advance(Duration::from_secs(1)).await;
    client.send(reply_to(&first.tasks[1].task.id, "ask on")).await.unwrap();
    client.send(say("ask 5")).await.unwrap();
    let rest = ListTasks { page_token: Some(first.next_page_token), ..page_of(2) };
    assert_eq!(client.listed(rest).await, ["ask 2", "ask 1"]);
}

#[tokio::test(start_paused = true)]
async fn only_the_callers_own_tasks_are_listed() {
    let world = Setup::new().agent(registered("echo", echo())).agent(registered("other", echo())).start();
    let (alice, bob) = (world.client().user("alice"), world.client().user("bob"));
    say_all(&alice, &["of alice"]).await;
    say_all(&bob, &["of bob"]).await;
    say_all(&world.client().user_of("acme", "alice"), &["of alice at acme"]).await;
    say_all(&world.client_of("other").user("alice"), &["of alice to the other"]).await;
    say_all(&world.client(), &["of nobody"]).await;
    assert_eq!(alice.listed(ListTasks::default()).await, ["of alice"]);
    assert_eq!(bob.listed(ListTasks::default()).await, ["of bob"]);
    assert_eq!(world.client().listed(ListTasks::default()).await, ["of nobody"]);
    assert_eq!(alice.list(ListTasks::default()).await.unwrap().total_size, 1);
    // A page token is a position in the caller's own list, even if another caller uses it.
    say_all(&alice, &["again of alice"]).await;
    let token = alice.list(page_of(1)).await.unwrap().next_page_token;
    let list = ListTasks { page_token: Some(token), ..ListTasks::default() };
    assert!(bob.listed(list).await.iter().all(|words| words == "of bob"));
}

#[tokio::test(start_paused = true)]
async fn artifacts_are_listed_only_when_asked_for() {
    let world = World::of(registered("asking", asking()));
    let client = world.client();
    say_all(&client, &["tell", "ask"]).await;
    let shown = async |include_artifacts| {
        let list = ListTasks { include_artifacts, history_length: Some(0), ..ListTasks::default() };
        let page = wire(&client.call(Request::ListTasks(list)).await.unwrap());
        let tasks: Vec<String> =
            page["tasks"].as_array().unwrap().iter().map(|task| task["artifacts"].to_string()).collect();
        tasks
    };
    assert_eq!(shown(false).await, ["null", "null"], "the key is not there at all");
    assert_eq!(shown(true).await, ["[]", r#"[{"artifactId":"artifact-1-1","parts":[{"text":"done"}]}]"#]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_has_all_its_keys() {
    let world = World::of(registered("echo", echo()));
    let reply = world.client().call(Request::ListTasks(ListTasks::default())).await.unwrap();
    expect![[r#"{"nextPageToken":"","pageSize":50,"tasks":[],"totalSize":0}"#]].assert_eq(&wire(&reply).to_string());
    let error = world.client().list(page_of(0)).await.err().unwrap();
    expect![[r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"Invalid parameters: pageSize: must be between 1 and 100","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"pageSize","description":"must be between 1 and 100"}]}]}}"#]]
    .assert_eq(&refusal(&error));
}
