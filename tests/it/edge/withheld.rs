//! What must not leave the server leaves it in no dialect and over no binding: planted in every place that has metadata, by
//! client and agent alike, and read back in every way there is. The agent itself sees all of it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use switchboard::{AgentBuilder, CardForm, Dialect, Json, Part, Replies, Server, Skill, TaskState, Tokens, Turn};
use switchboard_core::dialect::{v0_3::proto::generated as v0_3, v1_0::proto::generated as v1_0};
use switchboard_core::model::redact::WITHHELD_KEYS;

use crate::support::callers::soon;
use crate::support::edge::{Edge, get, old_message, post, rpc_body, unversioned, with};
use crate::support::grpc::{V0_3, V1_0, grpc_request};

const SECRET: &str = "PLANTED";
const NOTE: &str = "kept-note";

/// Metadata with every withheld key, at the top, in an object, in a list and spelled with an escape; and a note.
fn planted() -> String {
    let own = "switchboard.runTimeoutSeconds";
    let keys = WITHHELD_KEYS.iter().map(|key| format!("\"{key}\":\"{SECRET}\"")).collect::<Vec<_>>().join(",");
    format!(
        r#"{{{keys},"note":"{NOTE}","inner":{{"\u0061piKey":"{SECRET}","deep":[{{"bearer":{{"x":["{SECRET}"]}}}},1]}},"{own}":30,"switchboard.x":"{SECRET}"}}"#
    )
}

fn metadata() -> Json {
    Json::from_trusted(planted())
}

fn text(text: &str) -> Part {
    Part::text(text).with_metadata(metadata())
}

type Seen = Arc<Mutex<Vec<String>>>;

/// Notes the metadata it is given, and plants its own wherever an agent can.
fn keeper(seen: &Seen) -> AgentBuilder {
    let seen = seen.clone();
    let agent = AgentBuilder::from_fn("Keeper", move |turn: Turn| {
        let seen = seen.clone();
        async move {
            let message = turn.message();
            let given = [turn.metadata(), message.metadata.as_ref(), message.parts[0].metadata()];
            let given = given.into_iter().flatten().map(|json| json.as_str().to_owned());
            seen.lock().unwrap().extend(given);
            if turn.text() == "reply" {
                turn.reply(vec![text("at once")]).await?;
                return Ok(());
            }
            turn.status(TaskState::Working, vec![text("on it")]).await?;
            let mut writer = turn.artifact_writer().with_name("named").with_metadata(metadata());
            writer.parts(vec![text("one ")]).await?;
            writer.finish(vec![text("two")]).await?;
            if turn.text() == "ask" {
                turn.status(TaskState::InputRequired, vec![text("which?")]).await?;
            }
            Ok(())
        }
    });
    let agent =
        agent.skill(Skill::new("mcp__user_ab12_gmail", "x", "y")).skill(Skill::new("mcp__org_7_slack", "x", "y"));
    let agent =
        agent.skill(Skill::new("mcp__stdio_fs", "Files", "Reads files")).skill(Skill::new("run-query", "Q", "z"));
    agent.traits(|traits| traits.with_replies(Replies::Either)).compat(|compat| compat.default_project = true)
}

fn edge() -> (Edge, Seen) {
    let seen = Seen::default();
    (Edge::new(Server::builder().agent(keeper(&seen))), seen)
}

/// The body of a send with metadata planted in the message, its part and the request; `{}` stands for where.
fn send_params(words: &str) -> Value {
    json!({
        "message": {
            "messageId": format!("m-{words}"), "role": "ROLE_USER", "metadata": "META",
            "parts": [{"text": words, "metadata": "META"}],
        },
        "metadata": "META",
    })
}

fn old_params(words: &str) -> Value {
    let mut params = old_message(words);
    params["metadata"] = json!("META");
    params["message"]["metadata"] = json!("META");
    params["message"]["parts"][0]["metadata"] = json!("META");
    params
}

/// As 0.3 has it over HTTP+JSON.
fn rest_params(words: &str) -> Value {
    json!({
        "message": {
            "messageId": format!("m-{words}"), "role": "ROLE_USER", "metadata": "META",
            "content": [{"text": words, "metadata": "META"}],
        },
        "configuration": {"blocking": true},
        "metadata": "META",
    })
}

fn plant(body: impl ToString) -> String {
    body.to_string().replace("\"META\"", &planted())
}

fn rpc(path: &str, method: &str, params: Value) -> Request<Full<Bytes>> {
    post(path, plant(rpc_body(method, params)))
}

fn old_rpc(path: &str, method: &str, params: Value) -> Request<Full<Bytes>> {
    unversioned(rpc(path, method, params))
}

fn holds(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Asks, and finds no secret in the answer. `notes` says whether metadata is shown in this dialect at all.
async fn asks(edge: &Edge, name: &str, notes: bool, request: Request<Full<Bytes>>) -> Bytes {
    let answer = edge.ask(request).await;
    let shown = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200, "{name}: {shown}");
    assert!(!shown.contains("\"error\""), "{name}: {shown}");
    assert!(!holds(&answer.body, SECRET), "{name} tells a secret: {shown}");
    assert!(!holds(&answer.body, "switchboard."), "{name} tells a key of our own: {shown}");
    for key in WITHHELD_KEYS {
        assert!(!holds(&answer.body, key), "{name} tells {key}: {shown}");
    }
    assert_eq!(holds(&answer.body, NOTE), notes, "{name}: other metadata: {shown}");
    answer.body
}

fn json_of(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn id_of(task: &Value) -> String {
    task["id"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned()
}

#[tokio::test(start_paused = true)]
async fn no_reply_of_1_0_tells_what_was_planted() {
    let (edge, seen) = edge();
    let sent = asks(&edge, "SendMessage", true, rpc("/", "SendMessage", send_params("go"))).await;
    let id = id_of(&json_of(&sent)["result"]["task"]);
    assert_eq!(*seen.lock().unwrap(), vec![planted(); 3], "the agent sees all");
    let asked = json_of(&asks(&edge, "ask", true, rpc("/", "SendMessage", send_params("ask"))).await);
    let asked = id_of(&asked["result"]["task"]);
    let list = json!({"includeArtifacts": true});
    for (name, request) in [
        ("HTTP send", post("/message:send", plant(send_params("rest")))),
        ("stream", rpc("/", "SendStreamingMessage", send_params("stream"))),
        ("HTTP stream", post("/message:stream", plant(send_params("rest stream")))),
        ("direct reply", rpc("/", "SendMessage", send_params("reply"))),
        ("direct reply, streamed", post("/message:stream", plant(send_params("reply")))),
        ("GetTask", rpc("/", "GetTask", json!({"id": id}))),
        ("HTTP get", get(&format!("/tasks/{id}"))),
        ("ListTasks", rpc("/", "ListTasks", list)),
        ("HTTP list", get("/tasks?includeArtifacts=true")),
        ("resumed", with(rpc("/", "SubscribeToTask", json!({"id": id})), "last-event-id", "0")),
        ("HTTP resumed", with(get(&format!("/tasks/{id}:subscribe")), "last-event-id", "0")),
        ("CancelTask", rpc("/", "CancelTask", json!({"id": asked}))),
    ] {
        asks(&edge, name, true, request).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_opens_a_stream_tells_nothing_either() {
    let (edge, _) = edge();
    let asked = edge.ask(rpc("/", "SendMessage", send_params("ask"))).await.json();
    let id = id_of(&asked["result"]["task"]);
    for request in [
        rpc("/", "SubscribeToTask", json!({"id": id})),
        get(&format!("/tasks/{id}:subscribe")),
        old_rpc("/", "tasks/resubscribe", json!({"id": id})),
        unversioned(get(&format!("/v1/tasks/{id}:subscribe"))),
        grpc_request(
            &format!("{V1_0}/SubscribeToTask"),
            &v1_0::SubscribeToTaskRequest { id: id.clone(), ..Default::default() },
        ),
        unversioned(grpc_request(
            &format!("{V0_3}/TaskSubscription"),
            &v0_3::TaskSubscriptionRequest { name: format!("tasks/{id}") },
        )),
    ] {
        let name = request.uri().to_string();
        let mut response = edge.open(request).await;
        let frame = soon(response.body_mut().frame()).await.unwrap().unwrap().into_data().unwrap();
        assert!(holds(&frame, NOTE), "{name}: {frame:?}");
        assert!(!holds(&frame, SECRET), "{name}: {frame:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_reply_of_0_3_tells_what_was_planted() {
    let (edge, seen) = edge();
    let sent = asks(&edge, "message/send", true, old_rpc("/", "message/send", old_params("go"))).await;
    let id = id_of(&json_of(&sent)["result"]);
    assert_eq!(*seen.lock().unwrap(), vec![planted(); 3], "the agent sees all");
    let asked =
        id_of(&json_of(&asks(&edge, "ask", true, old_rpc("/", "message/send", old_params("ask"))).await)["result"]);
    for (name, request) in [
        ("HTTP send", unversioned(post("/v1/message:send", plant(rest_params("rest"))))),
        ("message/stream", old_rpc("/", "message/stream", old_params("stream"))),
        ("HTTP stream", unversioned(post("/v1/message:stream", plant(rest_params("rest stream"))))),
        ("direct reply", old_rpc("/", "message/send", old_params("reply"))),
        ("tasks/get", old_rpc("/", "tasks/get", json!({"id": id}))),
        ("HTTP get", unversioned(get(&format!("/v1/tasks/{id}")))),
        ("resumed", with(old_rpc("/", "tasks/resubscribe", json!({"id": id})), "last-event-id", "0")),
        ("tasks/cancel", old_rpc("/", "tasks/cancel", json!({"id": asked}))),
    ] {
        asks(&edge, name, true, request).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_message_of_grpc_tells_what_was_planted() {
    let (edge, _) = edge();
    let id = id_of(&edge.ask(rpc("/", "SendMessage", send_params("go"))).await.json()["result"]["task"]);
    let new = |method: &str| format!("{V1_0}/{method}");
    let old = |method: &str| format!("{V0_3}/{method}");
    let list = v1_0::ListTasksRequest { include_artifacts: Some(true), ..Default::default() };
    let name = format!("tasks/{id}");
    let resume = |request| with(request, "last-event-id", "0");
    let new_send = || {
        let part = v1_0::Part { content: Some(v1_0::part::Content::Text("go".to_owned())), ..Default::default() };
        let message = v1_0::Message { message_id: "m".to_owned(), role: 1, parts: vec![part], ..Default::default() };
        v1_0::SendMessageRequest { message: Some(message), ..Default::default() }
    };
    let old_send = || {
        let part = v0_3::Part { part: Some(v0_3::part::Part::Text("go".to_owned())), ..Default::default() };
        let message = v0_3::Message { message_id: "m".to_owned(), role: 1, content: vec![part], ..Default::default() };
        v0_3::SendMessageRequest { request: Some(message), ..Default::default() }
    };
    for (name, request) in [
        ("GetTask", grpc_request(&new("GetTask"), &v1_0::GetTaskRequest { id: id.clone(), ..Default::default() })),
        ("ListTasks", grpc_request(&new("ListTasks"), &list)),
        ("SendMessage", grpc_request(&new("SendMessage"), &new_send())),
        ("SendStreamingMessage", grpc_request(&new("SendStreamingMessage"), &new_send())),
        ("SubscribeToTask", {
            resume(grpc_request(&new("SubscribeToTask"), &v1_0::SubscribeToTaskRequest { id, ..Default::default() }))
        }),
        ("0.3 GetTask", {
            let get = v0_3::GetTaskRequest { name: name.clone(), history_length: 0 };
            unversioned(grpc_request(&old("GetTask"), &get))
        }),
        ("0.3 SendMessage", unversioned(grpc_request(&old("SendMessage"), &old_send()))),
        ("0.3 SendStreamingMessage", unversioned(grpc_request(&old("SendStreamingMessage"), &old_send()))),
        ("0.3 TaskSubscription", {
            resume(unversioned(grpc_request(&old("TaskSubscription"), &v0_3::TaskSubscriptionRequest { name })))
        }),
    ] {
        asks(&edge, name, true, request).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_reply_of_a_single_systems_dialect_tells_what_was_planted() {
    let (edge, seen) = edge();
    let message = |part: Value| json!({"role": "user", "metadata": "META", "messageId": "m", "parts": [part]});
    let typed =
        json!({"message": message(json!({"type": "text", "text": "go", "metadata": "META"})), "metadata": "META"});
    let kinds =
        json!({"message": message(json!({"kind": "text", "text": "go", "metadata": "META"})), "metadata": "META"});
    let nexus = json!({"message": {"role": "user", "parts": [{"type": "text", "data": "go"}]}});
    for (path, params, notes, streams) in [
        ("/_agent-native/a2a", typed, true, true),
        ("/dialects/selectools/a2a", kinds, true, false),
        ("/dialects/nexus/rpc", nexus, false, false),
    ] {
        seen.lock().unwrap().clear();
        let sent = asks(&edge, path, notes, old_rpc(path, "message/send", params.clone())).await;
        let id = id_of(&json_of(&sent)["result"]);
        asks(&edge, path, notes, old_rpc(path, "tasks/get", json!({"id": id}))).await;
        if streams {
            asks(&edge, path, notes, old_rpc(path, "message/stream", params)).await;
        }
    }
    let body = plant(json!({"message": "go", "skill": "run-query", "metadata": "META"}));
    let sent = asks(&edge, "corvid", false, unversioned(post("/a2a/tasks/send", body))).await;
    let path = format!("/a2a/tasks/{}", id_of(&json_of(&sent)));
    asks(&edge, "corvid", false, unversioned(get(&path))).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_begun_in_one_dialect_is_read_without_secrets_in_every_other() {
    let (edge, _) = edge();
    let typed = json!({"message": {"role": "user", "metadata": "META", "parts": [{"type": "text", "text": "go"}]}, "metadata": "META"});
    let begun = edge.ask(old_rpc("/_agent-native/a2a", "message/send", typed)).await.json();
    let id = id_of(&begun["result"]);
    for (name, request) in [
        ("open", old_rpc("/", "tasks/get", json!({"id": id}))),
        ("1.0", rpc("/", "GetTask", json!({"id": id}))),
        ("selectools", old_rpc("/dialects/selectools/a2a", "tasks/get", json!({"id": id}))),
    ] {
        asks(&edge, name, true, request).await;
    }
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_read_without_their_secrets_and_updates_keep_them() {
    let (edge, _) = edge();
    let id = id_of(&edge.ask(rpc("/", "SendMessage", send_params("ask"))).await.json()["result"]["task"]);
    let url = "https://hooks.example/in";
    let authentication = json!({"scheme": "Bearer", "credentials": "PLANTED-c"});
    let create =
        json!({"taskId": id, "id": "mine", "url": url, "token": "PLANTED-t", "authentication": authentication});
    let shown = json!({"taskId": id, "id": "mine", "url": url, "authentication": {"scheme": "Bearer"}});
    let old_auth = json!({"schemes": ["Bearer"], "credentials": "PLANTED-c"});
    let old = json!({"id": "old", "url": url, "token": "PLANTED-t", "authentication": old_auth});
    let which = json!({"taskId": id, "id": "mine"});
    let created = edge.ask(rpc("/", "CreateTaskPushNotificationConfig", create.clone())).await;
    assert_eq!(created.json()["result"], shown, "{}", created.text());
    let read = edge.ask(rpc("/", "GetTaskPushNotificationConfig", which.clone())).await;
    assert_eq!(read.json()["result"], shown);
    let new = |method: &str| format!("{V1_0}/{method}");
    let grpc_get =
        v1_0::GetTaskPushNotificationConfigRequest { task_id: id.clone(), id: "mine".to_owned(), ..Default::default() };
    let grpc_list = v1_0::ListTaskPushNotificationConfigsRequest { task_id: id.clone(), ..Default::default() };
    let of_old = json!({"id": id, "pushNotificationConfigId": "mine"});
    for request in [
        rpc("/", "ListTaskPushNotificationConfigs", json!({"taskId": id})),
        post(&format!("/tasks/{id}/pushNotificationConfigs"), create.to_string()),
        get(&format!("/tasks/{id}/pushNotificationConfigs/mine")),
        get(&format!("/tasks/{id}/pushNotificationConfigs")),
        old_rpc("/", "tasks/pushNotificationConfig/set", json!({"taskId": id, "pushNotificationConfig": old})),
        old_rpc("/", "tasks/pushNotificationConfig/get", of_old),
        old_rpc("/", "tasks/pushNotificationConfig/list", json!({"id": id})),
        unversioned(get(&format!("/v1/tasks/{id}/pushNotificationConfigs/mine"))),
        unversioned(get(&format!("/v1/tasks/{id}/pushNotificationConfigs"))),
        grpc_request(&new("GetTaskPushNotificationConfig"), &grpc_get),
        grpc_request(&new("ListTaskPushNotificationConfigs"), &grpc_list),
    ] {
        let name = request.uri().to_string();
        let answer = edge.ask(request).await;
        assert_eq!(answer.status, 200, "{name}");
        assert!(holds(&answer.body, url), "{name}: {:?}", answer.body);
        assert!(!holds(&answer.body, SECRET), "{name}: {:?}", answer.body);
    }
    // What was read can be sent back as it is: the engine's tests show that the receiver still gets the secrets.
    let updated = edge.ask(rpc("/", "CreateTaskPushNotificationConfig", shown.clone())).await;
    assert_eq!(updated.json()["result"], shown);
}

#[tokio::test(start_paused = true)]
async fn no_card_names_the_skills_of_users_and_organisations() {
    const TOKEN: &str = "a-token-of-alice-for-tests";
    let ids = |card: &Value| -> Vec<String> {
        card["skills"].as_array().unwrap().iter().map(|skill| skill["id"].as_str().unwrap().to_owned()).collect()
    };
    let forms = [
        CardForm::All,
        CardForm::V1_0,
        CardForm::Compat(Dialect::AgentNative),
        CardForm::Compat(Dialect::Selectools),
        CardForm::Compat(Dialect::Corvid),
        CardForm::Compat(Dialect::Nexus),
    ];
    for form in forms {
        let agent = keeper(&Seen::default()).extended_card(|card| card.description.push_str(", extended"));
        let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
        let edge = Edge::new(Server::builder().agent(agent).card_form(form).tokens(tokens));
        let mut paths = vec!["/.well-known/agent-card.json".to_owned(), "/.well-known/agent.json".to_owned()];
        paths.push("/agents/keeper/.well-known/agent-card.json".to_owned());
        paths.push("/api/agents/keeper/agent-card".to_owned());
        paths.extend(Dialect::COMPAT.map(|compat| format!("/dialects/{}/.well-known/agent-card.json", compat.name())));
        for path in paths {
            for request in [get(&path), unversioned(get(&path))] {
                let card = edge.ask(request).await;
                assert!(!card.text().contains("mcp__user") && !card.text().contains("mcp__org"), "{path} {form:?}");
                if card.json()["skills"][0]["id"].is_string() {
                    assert_eq!(ids(&card.json()), ["mcp__stdio_fs", "run-query"], "{path} {form:?}");
                }
            }
        }
        let bearer = |request| with(request, "authorization", &format!("Bearer {TOKEN}"));
        for request in [
            get("/extendedAgentCard"),
            rpc("/", "GetExtendedAgentCard", json!({})),
            old_rpc("/", "agent/getAuthenticatedExtendedCard", json!({})),
            unversioned(get("/v1/card")),
        ] {
            let name = request.uri().to_string();
            let answer = edge.ask(bearer(request)).await;
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
            let card = answer.json();
            let card = card.get("result").unwrap_or(&card);
            assert_eq!(ids(card), ["mcp__stdio_fs", "run-query"], "{name}");
        }
        let request = v1_0::GetExtendedAgentCardRequest::default();
        let card = edge.ask(bearer(grpc_request(&format!("{V1_0}/GetExtendedAgentCard"), &request))).await;
        assert!(holds(&card.body, "run-query") && !holds(&card.body, "mcp__user_"), "{:?}", card.body);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_in_this_process_sees_all() {
    let seen = Seen::default();
    let server = Server::builder().agent(keeper(&seen)).build().unwrap();
    let task = server.local("keeper").unwrap().send_text("go").await.unwrap().into_task().unwrap();
    assert!(task.artifacts[0].metadata().unwrap().as_str().contains(SECRET));
}
